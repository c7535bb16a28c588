//! Merges the compactions of a transcript with those that hooks reported: one compaction is one
//! checkpoint.

use super::{CompactionPhase, ContextCompaction, RECENT, completion, newest_compactions};
use crate::error::CommandError;
use forge_store::model::{Fact, Kind, TextRef, Timestamp, Value};
use forge_store::store::{NewCheckpoint, Session};

/// The prefix of the event key of a checkpoint that a boundary in the transcript makes. The id of
/// the boundary follows.
const KEY: &str = "compaction:";
/// A message within this time after an announcement was begun before the announcement.
const MAX_MESSAGE_DELAY_MICROS: i64 = 2_000_000;
/// The maximum delay of a hook's report after the time of the compaction's boundary.
const MAX_REPORT_DELAY_MICROS: i64 = 60_000_000;

/// Returns the checkpoints for a part of a transcript. The checkpoint of a boundary gets the event
/// key of the compaction that hooks reported before, and so completes that checkpoint. Another
/// checkpoint marks each announcement after which the conversation continued without a compaction.
pub fn match_hook_compactions(
    session: &Session,
    facts: &[Fact],
    mut drafts: Vec<NewCheckpoint>,
) -> Result<Vec<NewCheckpoint>, CommandError> {
    let mut known = newest_compactions(session, Some(RECENT))?;
    let boundaries: Vec<(usize, String, Timestamp)> = drafts
        .iter()
        .enumerate()
        .filter_map(|(place, draft)| {
            let uuid = draft.key.as_deref()?.strip_prefix(KEY)?;
            Some((place, uuid.to_owned(), draft.at?))
        })
        .collect();
    let unknown = |known: &[ContextCompaction]| {
        boundaries.iter().any(|(_, uuid, _)| known.iter().all(|one| one.boundary() != Some(uuid)))
    };
    if known.len() == RECENT && unknown(&known) {
        known = newest_compactions(session, None)?;
    }
    let spoken: Vec<Timestamp> =
        facts.iter().filter(|fact| is_conversation(fact)).map(|f| f.at).collect();
    let went_on =
        |since: Timestamp, until: Timestamp| spoken.iter().any(|at| *at > since && *at < until);
    let mut adopted: Vec<Option<String>> = Vec::new();
    for (place, uuid, at) in &boundaries {
        let same = known.iter().find(|one| one.boundary() == Some(uuid));
        let found = same.or_else(|| {
            known.iter().find(|one| {
                let open =
                    matches!(one.phase(), CompactionPhase::Announced | CompactionPhase::Done);
                let since = one.checkpoint.time.plus_micros(MAX_MESSAGE_DELAY_MICROS);
                let late =
                    if one.phase() == CompactionPhase::Done { MAX_REPORT_DELAY_MICROS } else { 0 };
                open && !adopted.contains(&one.checkpoint.key)
                    && one.checkpoint.time <= at.plus_micros(late)
                    && !went_on(since, *at)
                    && !boundaries
                        .iter()
                        .any(|(_, _, other)| one.checkpoint.time <= *other && *other < *at)
            })
        });
        if let (Some(found), Some(draft)) = (found, drafts.get_mut(*place)) {
            draft.key.clone_from(&found.checkpoint.key);
            adopted.push(found.checkpoint.key.clone());
            // A fork that joined this session has a copy of a compaction that happened here.
            if same.is_some_and(|one| !one.is_copied())
                && let Value::Map(body) = &mut draft.body
            {
                body.remove("copied");
            }
        }
    }
    for one in &known {
        let since = one.checkpoint.time.plus_micros(MAX_MESSAGE_DELAY_MICROS);
        if one.phase() == CompactionPhase::Announced
            && !adopted.contains(&one.checkpoint.key)
            && went_on(since, Timestamp::MAX)
        {
            let message = format!("context compaction announced ({}), none followed", one.cause());
            let body = Value::from([("not_followed", true.into())]);
            drafts.push(NewCheckpoint { message, body, ..completion(&one.checkpoint) });
        }
    }
    Ok(drafts)
}

/// Whether a transcript's checkpoint with this key is a compaction.
#[must_use]
pub fn is_compaction(key: &str) -> bool {
    key.starts_with(KEY)
}

/// Whether a fact is a message that continues a conversation: not one that the agent's program
/// added, and not a summary.
#[must_use]
pub fn is_conversation(fact: &Fact) -> bool {
    let field = |name| fact.value.field(name);
    fact.kind == Kind::Message
        && field("meta").is_none()
        && field("compact_summary").is_none()
        && matches!(field("role").and_then(Value::as_text), Some("user" | "assistant"))
        && !field("text").map(preview).is_some_and(|text| {
            text.starts_with("<local-command-") || text.starts_with("<command-")
        })
}

fn preview(text: &Value) -> &str {
    let long = || text.field(TextRef::FIELD)?.field("preview")?.as_text();
    text.as_text().or_else(long).unwrap_or_default()
}
