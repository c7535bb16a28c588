//! Beliefs that contradict each other.

use super::{ClaimLookup, RuleError, RuleOutcome, find, in_doubt, new_claim, sorted, text, with};
use crate::model::claim::{Dependency, DependencyType, VocabularyWord};
use crate::model::{AutoTrigger, Key, Kind, Value};

/// Records that two beliefs cannot both hold: adds a dependency of type `contradicts`, and puts
/// both beliefs in doubt. The reason of the doubt names the other belief. If a belief is already in
/// doubt, the new reason is appended to the old one.
///
/// No confidence changes, because it is not known which of the two is wrong.
///
/// Trigger: [`AutoTrigger::NewContradictionDetected`].
///
/// # Errors
/// [`RuleError::NotFound`], [`RuleError::OneBelief`], [`RuleError::InvalidId`] if both ids together
/// are longer than 198 bytes, [`RuleError::AlreadyExists`] if the contradiction is already
/// recorded, in either direction, or if other dependencies have both possible ids.
pub fn contradict_beliefs(
    claims: &impl ClaimLookup,
    first: &str,
    second: &str,
    reason: Option<&str>,
) -> Result<RuleOutcome, RuleError> {
    let dependency = Dependency {
        dependency_type: Some(DependencyType::Contradicts),
        reason: reason.map(str::to_owned),
        ..Dependency::default()
    };
    contradict(claims, first, second, &dependency)
}

/// Records a contradiction like [`contradict_beliefs`], with the fields of this dependency.
pub(super) fn contradict(
    claims: &impl ClaimLookup,
    first: &str,
    second: &str,
    dependency: &Dependency,
) -> Result<RuleOutcome, RuleError> {
    let beliefs = [find(claims, Kind::Belief, first)?, find(claims, Kind::Belief, second)?];
    if first == second {
        return Err(RuleError::OneBelief(first.to_owned()));
    }
    let noted = claims.all(Kind::Dependency).into_iter().find(|(_, noted)| {
        let ends = (text(noted, "from"), text(noted, "to"));
        text(noted, "type") == Some(DependencyType::Contradicts.word())
            && (ends == (Some(first), Some(second)) || ends == (Some(second), Some(first)))
    });
    if let Some((id, _)) = noted {
        return Err(RuleError::AlreadyExists(Key::new(Kind::Dependency, id)));
    }
    let reason = dependency.reason.as_deref();
    let between = |from: &str, to: &str| {
        let ends = (Some(from.to_owned()), Some(to.to_owned()));
        let turned = Dependency { from: ends.0, to: ends.1, ..dependency.clone() };
        new_claim(claims, Kind::Dependency, &Dependency::id(from, to), &turned.to_value())
    };
    // A contradiction has no direction: if another dependency has this id, use the reverse one.
    let added = between(first, second).or_else(|error| match error {
        RuleError::AlreadyExists(_) => between(second, first),
        other => Err(other),
    })?;
    let mut changes = vec![added];
    for (value, (id, other)) in beliefs.iter().zip([(first, second), (second, first)]) {
        let why = match reason {
            Some(reason) => format!("contradicts belief {other}: {reason}"),
            None => format!("contradicts belief {other}"),
        };
        if let Some(value) = doubted(value, why) {
            changes.push((Key::new(Kind::Belief, id), value));
        }
    }
    Ok(RuleOutcome {
        changes: sorted(changes),
        trigger: Some(AutoTrigger::NewContradictionDetected),
        tag: Some("contradiction_detected"),
        contradiction: Some(format!("beliefs {first} and {second} contradict each other")),
        ..RuleOutcome::default()
    })
}

fn doubted(belief: &Value, why: String) -> Option<Value> {
    let reason = match text(belief, "doubt_reason").filter(|_| in_doubt(belief)) {
        Some(old) => format!("{old}; {why}"),
        None => why,
    };
    with(belief, [("in_doubt", Some(true.into())), ("doubt_reason", Some(reason.into()))])
}
