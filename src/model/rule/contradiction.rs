//! Beliefs that contradict each other.

use super::{
    Claims, Outcome, RuleError, dependencies, find, in_doubt, new_claim, sorted, text, with,
};
use crate::model::claim::{Dependency, DependencyType, Strength};
use crate::model::{AutoTrigger, Key, Kind, Map, Value};

/// Notes that two beliefs cannot both hold: a dependency of type `contradicts` between them, and both are put in
/// doubt, each with the other and the reason as why. One that is in doubt already gets the new reason behind the old.
///
/// Confidence is unchanged: which of the two is wrong is not known. Evidence and people move it.
///
/// Trigger: [`AutoTrigger::NewContradictionDetected`].
///
/// # Errors
/// [`RuleError::NotFound`], [`RuleError::OneBelief`], [`RuleError::AlreadyThere`] if the contradiction is noted
/// already, in either direction, or two other dependencies have both ids that it could have.
pub fn contradict_beliefs(
    claims: &impl Claims,
    first: &str,
    second: &str,
    reason: Option<&str>,
) -> Result<Outcome, RuleError> {
    contradict(claims, first, second, None, reason, Map::new())
}

/// As [`contradict_beliefs`], with the other fields of the dependency.
pub(super) fn contradict(
    claims: &impl Claims,
    first: &str,
    second: &str,
    strength: Option<Strength>,
    reason: Option<&str>,
    extra: Map,
) -> Result<Outcome, RuleError> {
    let beliefs = [find(claims, Kind::Belief, first)?, find(claims, Kind::Belief, second)?];
    if first == second {
        return Err(RuleError::OneBelief(first.to_owned()));
    }
    if let Some(noted) = dependencies(claims).into_iter().find(|noted| {
        let ends = (noted.from.as_deref(), noted.to.as_deref());
        noted.dependency_type == Some(DependencyType::Contradicts)
            && (ends == (Some(first), Some(second)) || ends == (Some(second), Some(first)))
    }) {
        let [from, to] = [noted.from, noted.to].map(Option::unwrap_or_default);
        return Err(RuleError::AlreadyThere(Key::new(
            Kind::Dependency,
            Dependency::id(&from, &to),
        )));
    }
    let between = |from: &str, to: &str| {
        let dependency = Dependency {
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            dependency_type: Some(DependencyType::Contradicts),
            strength,
            reason: reason.map(str::to_owned),
            extra: extra.clone(),
        };
        let id = Dependency::id(from, to);
        new_claim(claims, Kind::Dependency, &id, &dependency.to_value())
    };
    // A contradiction has no direction: where one already rests on the other, it takes the other id.
    let dependency = between(first, second).or_else(|error| match error {
        RuleError::AlreadyThere(_) => between(second, first),
        other => Err(other),
    })?;
    let mut changes = vec![dependency];
    for (value, (id, other)) in beliefs.iter().zip([(first, second), (second, first)]) {
        let why = match reason {
            Some(reason) => format!("contradicts belief {other}: {reason}"),
            None => format!("contradicts belief {other}"),
        };
        if let Some(value) = doubted(value, why) {
            changes.push((Key::new(Kind::Belief, id), value));
        }
    }
    Ok(Outcome {
        changes: sorted(changes),
        trigger: Some(AutoTrigger::NewContradictionDetected),
        tag: Some("contradiction_detected"),
        contradiction: Some(format!("beliefs {first} and {second} contradict each other")),
    })
}

fn doubted(belief: &Value, why: String) -> Option<Value> {
    let reason = match text(belief, "doubt_reason").filter(|_| in_doubt(belief)) {
        Some(old) => format!("{old}; {why}"),
        None => why,
    };
    with(belief, [("in_doubt", Some(true.into())), ("doubt_reason", Some(reason.into()))])
}
