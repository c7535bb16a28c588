//! Validation of input: claims, facts, checkpoints and tags.

use super::new_checkpoint::NewCheckpoint;
use super::redaction_gate::{RedactionCounts, RedactionGate};
use crate::engine::revision_plan::{ClaimChange, ClaimPrecondition};
use crate::error::{Error, Result};
use crate::model::{Fact, claim};

/// Validates the change of a claim: the kind, the id and the fields. Brings the value into its
/// stored form.
pub(crate) fn check_claim(change: &mut ClaimChange) -> Result<()> {
    if !change.key.kind.is_claim() {
        return Err(Error::invalid(format!("a {} is a fact, not a claim", change.key.kind)));
    }
    if let Some(value) = &change.value {
        claim::check_id(&change.key.id).map_err(|error| Error::invalid(error.to_string()))?;
        if claim::is_checked(change.key.kind, value) {
            return Ok(());
        }
        let checked = claim::check(change.key.kind, value).map_err(|error| {
            Error::invalid(format!("{} '{}': {error}", change.key.kind, change.key.id))
        })?;
        change.value = Some(checked);
    } else if change.expect == ClaimPrecondition::Absent {
        return Err(Error::invalid("this write cannot remove a claim: give it a value"));
    }
    Ok(())
}

/// Redacts and validates a fact: its kind, its id and its fields. Brings the value into its stored
/// form.
pub(crate) fn check_fact(
    gate: RedactionGate<'_>,
    fact: &mut Fact,
    removed: &mut RedactionCounts,
) -> Result<()> {
    if fact.kind.is_claim() {
        return Err(Error::invalid(format!("a {} is a claim, not a fact", fact.kind)));
    }
    gate.fact(fact, removed);
    claim::check_id(&fact.id).map_err(|error| Error::invalid(error.to_string()))?;
    fact.value =
        claim::check(fact.kind, &fact.value).map_err(|error| Error::invalid(error.to_string()))?;
    Ok(())
}

/// Redacts and validates a checkpoint, and removes duplicate tags.
pub(crate) fn check_checkpoint(
    gate: RedactionGate<'_>,
    wanted: &mut NewCheckpoint,
    removed: &mut RedactionCounts,
) -> Result<()> {
    wanted.tags.iter().try_for_each(|tag| check_tag(tag))?;
    gate.checkpoint(wanted, removed);
    wanted.tags.sort();
    wanted.tags.dedup();
    Ok(())
}

/// Validates a tag. A tag is one word, since it appears in lists, moments and file names.
pub(crate) fn check_tag(tag: &str) -> Result<()> {
    let wrong = tag.is_empty()
        || tag.len() > 100
        || tag.chars().any(|c| c.is_control() || c.is_whitespace() || c == ',');
    if wrong {
        return Err(Error::invalid(format!(
            "'{}' is not a tag: use one word of at most 100 bytes without commas",
            tag.escape_debug()
        )));
    }
    Ok(())
}
