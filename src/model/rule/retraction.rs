//! Retracts beliefs and notes, and puts in doubt the beliefs that rest on retracted evidence.

use super::hypothesis::spread_doubt;
use super::{ClaimLookup, RuleError, RuleOutcome, find, sorted, text, with};
use crate::model::claim::{Dependency, DependencyType, VocabularyWord};
use crate::model::{Key, Kind, Value};
use std::collections::BTreeMap;

/// Retracts a note: removes it.
///
/// # Errors
/// [`RuleError::NotFound`].
pub fn retract_note(claims: &impl ClaimLookup, id: &str) -> Result<RuleOutcome, RuleError> {
    find(claims, Kind::Note, id)?;
    Ok(RuleOutcome { removed: vec![Key::new(Kind::Note, id)], ..RuleOutcome::default() })
}

/// Retracts a belief: removes it with its dependencies, and puts in doubt the beliefs that rest on
/// it, at any distance. A belief that was in doubt only because it contradicts this one is not in
/// doubt any more.
///
/// # Errors
/// [`RuleError::NotFound`].
pub fn retract_belief(claims: &impl ClaimLookup, id: &str) -> Result<RuleOutcome, RuleError> {
    find(claims, Kind::Belief, id)?;
    let mut removed = vec![Key::new(Kind::Belief, id)];
    let mut causes = BTreeMap::new();
    let mut changes = Vec::new();
    for (dependency_id, value) in claims.all(Kind::Dependency) {
        let (from, to) = (text(&value, "from"), text(&value, "to"));
        if from != Some(id) && to != Some(id) {
            continue;
        }
        removed.push(Key::new(Kind::Dependency, dependency_id));
        let contradicts = text(&value, "type") == Some(DependencyType::Contradicts.word());
        let other = if from == Some(id) { to } else { from };
        if let Some(other) = other.filter(|_| contradicts) {
            changes.extend(cleared(claims, other, id));
        } else if let Some((rests, _)) =
            Dependency::from_value(&value).ok().as_ref().and_then(Dependency::rests_on)
            && rests != id
        {
            causes.insert(rests.to_owned(), format!("belief {id} was retracted"));
        }
    }
    let doubted = spread_doubt(claims, causes);
    changes.retain(|(key, _)| doubted.iter().all(|(other, _)| other != key));
    changes.extend(doubted.into_iter().filter(|(key, _)| key.id != id));
    removed.sort();
    Ok(RuleOutcome { changes: sorted(changes), removed, ..RuleOutcome::default() })
}

/// Returns a belief without its doubt. `None` if the doubt has another reason than that it
/// contradicts the belief `other`.
fn cleared(claims: &impl ClaimLookup, id: &str, other: &str) -> Option<(Key, Value)> {
    let key = Key::new(Kind::Belief, id);
    let belief = claims.claim(&key)?;
    let cause = format!("contradicts belief {other}");
    let rest = text(&belief, "doubt_reason")?.strip_prefix(&cause)?;
    // A semicolon separates reasons.
    if rest.contains(';') || !(rest.is_empty() || rest.starts_with(':')) {
        return None;
    }
    let fields = [("in_doubt", Some(false.into())), ("doubt_reason", Some(Value::Null))];
    Some((key, with(&belief, fields)?.without_nulls()))
}

/// Returns the beliefs that rest on this evidence, directly or through other beliefs, with their
/// new values: in doubt, and without the evidence in their lists.
pub(super) fn doubt_without_evidence(claims: &impl ClaimLookup, id: &str) -> Vec<(Key, Value)> {
    let mut causes = BTreeMap::new();
    let mut lists = BTreeMap::new();
    for (belief_id, value) in claims.all(Kind::Belief) {
        let evidence = value.field("evidence").and_then(Value::as_list).unwrap_or_default();
        let rest: Vec<Value> =
            evidence.iter().filter(|one| one.as_text() != Some(id)).cloned().collect();
        let is_listed = rest.len() < evidence.len();
        if is_listed || text(&value, "source") == Some(id) {
            causes.insert(belief_id.clone(), format!("evidence {id} was retracted"));
        }
        if is_listed {
            lists.insert(belief_id, (value.clone(), Value::List(rest)));
        }
    }
    let mut changes: BTreeMap<Key, Value> = spread_doubt(claims, causes).into_iter().collect();
    for (belief_id, (old, rest)) in lists {
        let key = Key::new(Kind::Belief, belief_id);
        let belief = changes.remove(&key).unwrap_or(old);
        changes.extend(with(&belief, [("evidence", Some(rest))]).map(|belief| (key, belief)));
    }
    changes.into_iter().collect()
}
