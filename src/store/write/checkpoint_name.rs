//! The name of an automatic checkpoint: what happened, in a few words.

use crate::model::text::one_line;
use crate::model::{AutoTrigger, Fact, Key, Kind, Value};
use crate::store::entity_title;
use std::collections::BTreeSet;

/// The maximum length of a name, in characters.
const NAME_CHARS: usize = 100;

/// Returns what a write of claims did, for a checkpoint with this trigger: `H4 confirmed: reason`.
/// `None` if no claim that was written has a kind of the trigger.
pub(super) fn name_of_claims<'c>(
    trigger: AutoTrigger,
    claims: impl Iterator<Item = (&'c Key, Option<&'c Value>)>,
) -> Option<String> {
    let kinds: &[Kind] = match trigger {
        AutoTrigger::HypothesisStatusChange => &[Kind::Hypothesis],
        AutoTrigger::GapFilled => &[Kind::Gap],
        AutoTrigger::NewContradictionDetected => &[Kind::Dependency, Kind::Evidence, Kind::Belief],
        AutoTrigger::SignificantTimePassed => {
            &[Kind::Hypothesis, Kind::Evidence, Kind::Belief, Kind::Gap, Kind::Note]
        }
        _ => return None,
    };
    let claims: Vec<(&Key, &Value)> = claims
        .filter(|(key, _)| kinds.contains(&key.kind))
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    // Rejecting a hypothesis rejects its descendants too: the name is about the topmost one.
    let ids: BTreeSet<&str> = claims.iter().map(|(key, _)| key.id.as_str()).collect();
    let is_cause = |(_, value): &&(&Key, &Value)| {
        let parent = value.field("parent").and_then(Value::as_text);
        parent.is_none_or(|parent| !ids.contains(parent))
    };
    let (key, value) = claims.iter().find(is_cause).or(claims.first()).copied()?;
    let text = |name| value.field(name).and_then(Value::as_text).filter(|text| !text.is_empty());
    // A hypothesis that is active again keeps the reason for which it was confirmed or rejected.
    let is_open = matches!(text("status"), Some("active" | "under_test"));
    let reason = text("reason").filter(|_| !is_open);
    let because = reason.or_else(|| text("resolution")).or_else(|| text("description"));
    let status = text("status").filter(|_| {
        matches!(trigger, AutoTrigger::HypothesisStatusChange | AutoTrigger::GapFilled)
    });
    let status = status.map(|status| format!(" {}", status.replace('_', " "))).unwrap_or_default();
    let contradiction = trigger == AutoTrigger::NewContradictionDetected;
    let word = if contradiction { "contradiction: " } else { "" };
    let because = because.map(|because| format!(": {because}")).unwrap_or_default();
    Some(one_line(&format!("{word}{}{status}{because}", key.id), NAME_CHARS))
}

/// Returns what a write of facts recorded, for a checkpoint with this trigger: `unit tests failed`.
/// `None` if no fact has the kind of the trigger, or if it has no title.
pub(super) fn name_of_facts(trigger: AutoTrigger, facts: &[Fact]) -> Option<String> {
    let fact = match trigger {
        AutoTrigger::VerificationComplete => {
            facts.iter().find(|fact| fact.kind == Kind::Verification)?
        }
        AutoTrigger::CodeModified => facts.iter().find(|fact| fact.kind == Kind::Code)?,
        AutoTrigger::SignificantTimePassed => facts.first()?,
        _ => return None,
    };
    let title = entity_title(fact.kind, &fact.value);
    let text = |name| fact.value.field(name).and_then(Value::as_text);
    let name = match fact.kind {
        Kind::Verification => {
            let status = text("status").unwrap_or("unknown").replace('_', " ");
            format!("{title} {status}")
        }
        Kind::Code if text("path").is_some() => format!("edited {title}"),
        Kind::Code => format!("code captured: {}", text("description").unwrap_or(&title)),
        Kind::Command => format!("$ {title}"),
        _ => title.clone(),
    };
    (!title.is_empty()).then(|| one_line(&name, NAME_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FactOrigin, Timestamp};

    #[test]
    fn checkpoints_of_claims_are_named_with_their_new_status() {
        let value = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
            Value::Map(fields.collect())
        };
        let says = ("description", "the cache is stale");
        for (trigger, kind, fields, expected) in [
            (
                AutoTrigger::HypothesisStatusChange,
                Kind::Hypothesis,
                &[says, ("status", "under_test")][..],
                Some("X1 under test: the cache is stale"),
            ),
            (
                AutoTrigger::HypothesisStatusChange,
                Kind::Hypothesis,
                &[says, ("status", "under_test"), ("reason", "of its rejection")],
                Some("X1 under test: the cache is stale"),
            ),
            (
                AutoTrigger::HypothesisStatusChange,
                Kind::Hypothesis,
                &[says, ("status", "confirmed"), ("reason", "5.9 and 5.1 share a key")],
                Some("X1 confirmed: 5.9 and 5.1 share a key"),
            ),
            (
                AutoTrigger::GapFilled,
                Kind::Gap,
                &[says, ("status", "filled"), ("resolution", "Yes")],
                Some("X1 filled: Yes"),
            ),
            (
                AutoTrigger::SignificantTimePassed,
                Kind::Note,
                &[says],
                Some("X1: the cache is stale"),
            ),
            (AutoTrigger::GapFilled, Kind::Note, &[says], None),
        ] {
            let (key, value) = (Key::new(kind, "X1"), value(fields));
            let name = name_of_claims(trigger, std::iter::once((&key, Some(&value))));
            assert_eq!(name.as_deref(), expected, "{trigger:?}");
        }
    }

    #[test]
    fn a_checkpoint_of_a_rejection_is_named_after_the_topmost_hypothesis() {
        let value = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
            Value::Map(fields.collect())
        };
        let rejected = |reason| [("status", "rejected"), ("reason", reason), ("parent", "H9")];
        let (child, cause) = (rejected("parent H9 was rejected"), rejected("the log is empty"));
        // Keys are sorted as text, so the child comes first.
        let (child_key, key) =
            (Key::new(Kind::Hypothesis, "H10"), Key::new(Kind::Hypothesis, "H9"));
        let (child, cause) = (value(&child), value(&cause[..2]));
        let claims = [(&child_key, Some(&child)), (&key, Some(&cause))];
        let name = name_of_claims(AutoTrigger::HypothesisStatusChange, claims.into_iter());
        assert_eq!(name.as_deref(), Some("H9 rejected: the log is empty"));
    }

    #[test]
    fn checkpoints_of_facts_are_named_with_the_text_of_the_fact() {
        let fact = |kind, fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).into()));
            let at = Timestamp::from_micros(0);
            Fact {
                kind,
                id: "f".to_owned(),
                at,
                origin: FactOrigin::Recorded,
                place: 0,
                recorded_at: at,
                value: Value::Map(fields.collect()),
            }
        };
        for (trigger, kind, fields, expected) in [
            (
                AutoTrigger::VerificationComplete,
                Kind::Verification,
                &[("name", "unit tests"), ("status", "timed_out")][..],
                Some("unit tests timed out"),
            ),
            (AutoTrigger::CodeModified, Kind::Code, &[("path", "a.rs")], Some("edited a.rs")),
            (
                AutoTrigger::CodeModified,
                Kind::Code,
                &[("commit", "1e2"), ("description", "half done")],
                Some("code captured: half done"),
            ),
            (AutoTrigger::SignificantTimePassed, Kind::Command, &[("command", "ls")], Some("$ ls")),
            (AutoTrigger::SignificantTimePassed, Kind::Message, &[("role", "user")], None),
        ] {
            let name = name_of_facts(trigger, &[fact(kind, fields)]);
            assert_eq!(name.as_deref(), expected, "{trigger:?}");
        }
    }
}
