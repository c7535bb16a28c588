//! Rules: the consequences of a verb.
//!
//! Rules apply to commands and API verbs, never to import, restore, merge or undo. The exception is
//! [`merged_confidence()`], which only a merge uses. Each rule is a pure function of the current
//! claims, and returns the changes.
//!
//! Doubt: a belief rests on a hypothesis through its `hypothesis` field, through a `source` that is
//! the id of the hypothesis or of evidence for it, and through its `evidence` list. It rests on
//! other beliefs through dependencies (all types except `contradicts`; see
//! [`Dependency::rests_on`]). Evidence is for its hypothesis unless its strength is negative.
//! Rejecting the hypothesis puts the beliefs that rest on it in doubt, at any distance. A
//! contradiction puts only its two beliefs in doubt: it is not known which of them is wrong, so
//! nothing is known about the beliefs that rest on them.

mod contradiction;
mod dependency;
mod evidence;
mod gap;
mod hypothesis;
mod merged_confidence;
mod retraction;
#[cfg(test)]
mod tests;
mod trigger;

pub use contradiction::contradict_beliefs;
pub use dependency::add_dependency;
pub use evidence::{
    LIKELIHOOD_RATIO, MAX_CONFIDENCE, MIN_CONFIDENCE, PRIOR, add_evidence, posterior,
    retract_evidence, update_evidence,
};
pub use gap::fill_gap;
pub use hypothesis::{confirm_hypothesis, reject_hypothesis};
pub use merged_confidence::{WeighedHypothesis, merged_confidence};
pub use retraction::{retract_belief, retract_note};
pub use trigger::trigger_of;

use super::claim::{self, Dependency, InvalidField, InvalidId};
use super::{AutoTrigger, FieldMap, Key, Kind, Value};

/// The current claims, for a rule to read.
pub trait ClaimLookup {
    /// Returns the value of a claim, if it exists.
    fn claim(&self, key: &Key) -> Option<Value>;
    /// Returns all claims of a kind with their ids, in any order.
    fn all(&self, kind: Kind) -> Vec<(String, Value)>;
}

/// Puts changed fields into the fields of a claim. What explains an earlier, different status does
/// not apply to the new one: the reason of a hypothesis, and the resolution of a gap.
pub fn change_fields(kind: Kind, fields: &mut FieldMap, changed: FieldMap) {
    let explanation = match kind {
        Kind::Hypothesis => Some("reason"),
        Kind::Gap => Some("resolution"),
        _ => None,
    };
    let is_other = |status: &Value| fields.get("status") != Some(status);
    if changed.get("status").is_some_and(is_other)
        && let Some(explanation) = explanation
    {
        fields.remove(explanation);
    }
    fields.extend(changed);
}

/// The consequences of a verb.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleOutcome {
    /// The changed claims with their new values, sorted by key; empty if nothing changes.
    pub changes: Vec<(Key, Value)>,
    /// The claims that are removed.
    pub removed: Vec<Key>,
    /// The trigger of the checkpoint that the verb causes, if it causes one.
    pub trigger: Option<AutoTrigger>,
    /// The tag of that checkpoint, if it is significant: `hypothesis_confirmed`,
    /// `hypothesis_rejected`, `contradiction_detected`.
    pub tag: Option<&'static str>,
    /// A description of contradicting claims. It must be shown; a contradiction is never resolved
    /// silently.
    pub contradiction: Option<String>,
}

impl RuleOutcome {
    /// Returns the outcome of a change of one claim without a rule, with the trigger that
    /// [`trigger_of`] finds.
    #[must_use]
    pub fn of_change(key: Key, old: Option<&Value>, new: Value) -> Self {
        let event = trigger_of(key.kind, old, &new);
        Self {
            changes: vec![(key, new)],
            trigger: event.map(|(trigger, _)| trigger),
            tag: event.and_then(|(_, tag)| tag),
            ..Self::default()
        }
    }

    /// Removes the unchanged claims, and replaces the trigger by the one that `select` returns for
    /// it; by none if no claim changes or is removed. The tag stays only with its trigger.
    #[must_use]
    pub fn triggered(
        mut self,
        claims: &impl ClaimLookup,
        select: impl FnOnce(Option<AutoTrigger>) -> Option<AutoTrigger>,
    ) -> Self {
        self.changes.retain(|(key, value)| claims.claim(key).as_ref() != Some(value));
        let is_unchanged = self.changes.is_empty() && self.removed.is_empty();
        let trigger = if is_unchanged { None } else { select(self.trigger) };
        if trigger != self.trigger {
            self.tag = None;
        }
        self.trigger = trigger;
        self
    }
}

/// Why a rule rejects a verb.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// A claim named by the verb does not exist.
    #[error(
        "no {} '{}': list those there are, or add it first",
        .0.kind,
        .0.id.escape_debug()
    )]
    NotFound(Key),
    /// A claim with this id already exists.
    #[error(
        "{} '{}' is there already: choose another id or update it",
        .0.kind,
        .0.id.escape_debug()
    )]
    AlreadyExists(Key),
    /// A belief would rest on itself. `->` means "rests on".
    #[error("a dependency cycle, {}: leave one of these out", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A belief cannot contradict itself.
    #[error("belief '{}' cannot contradict itself: name two beliefs", .0.escape_debug())]
    OneBelief(String),
    /// A dependency lacks an end.
    #[error("a dependency needs two beliefs: give both `from` and `to`")]
    NoEnds,
    /// The value cannot be stored.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// The id is not valid.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
}

/// Returns the value of a claim that a verb names, or [`RuleError::NotFound`].
fn find(claims: &impl ClaimLookup, kind: Kind, id: &str) -> Result<Value, RuleError> {
    let key = Key::new(kind, id);
    claims.claim(&key).ok_or(RuleError::NotFound(key))
}

/// Returns the value with these fields set, except those that are `None`; `None` if nothing
/// changes.
fn with<const N: usize>(value: &Value, fields: [(&str, Option<Value>); N]) -> Option<Value> {
    let mut map = value.as_map().cloned().unwrap_or_default();
    for (name, field) in fields {
        if let Some(field) = field {
            map.insert(name.to_owned(), field);
        }
    }
    let changed = Value::Map(map);
    (changed != *value).then_some(changed)
}

/// Returns the text in a field of a value, if it is a text.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.field(field).and_then(Value::as_text)
}

/// Returns whether a value is marked as in doubt.
fn in_doubt(value: &Value) -> bool {
    value.field("in_doubt").and_then(Value::as_bool) == Some(true)
}

/// Returns all dependencies that can be parsed.
fn dependencies(claims: &impl ClaimLookup) -> Vec<Dependency> {
    let all = claims.all(Kind::Dependency);
    all.iter().filter_map(|(_, value)| Dependency::from_value(value).ok()).collect()
}

/// Checks the id and value of a new claim, and that the id is free. Returns its key, and the value
/// in the form in which it is stored.
fn new_claim(
    claims: &impl ClaimLookup,
    kind: Kind,
    id: &str,
    value: &Value,
) -> Result<(Key, Value), RuleError> {
    claim::check_id(id)?;
    let value = claim::check(kind, value)?;
    let key = Key::new(kind, id);
    if claims.claim(&key).is_some() {
        return Err(RuleError::AlreadyExists(key));
    }
    Ok((key, value))
}

/// Returns the changes sorted by key.
fn sorted(mut changes: Vec<(Key, Value)>) -> Vec<(Key, Value)> {
    changes.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes
}
