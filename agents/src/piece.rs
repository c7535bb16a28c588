//! The results of a reader.

use forge_store::model::{CheckpointTrigger, Fact, Timestamp, Value, claim};
use serde::Serialize;

/// How many characters of an id that a store does not accept are kept.
const KEPT_CHARACTERS: usize = 40;

/// Returns the id of a fact for an id that an agent gave: the same id if a store accepts it,
/// otherwise its beginning with a hash of all of it. Some proxies keep data in the ids of calls,
/// which become longer than an id may be.
pub(crate) fn fact_id(given: &str) -> String {
    if claim::check_id(given).is_ok() {
        return given.to_owned();
    }
    let shown = given.chars().filter(|character| !character.is_control());
    let shown: String = shown.take(KEPT_CHARACTERS).collect();
    let hash = blake3::hash(given.as_bytes()).to_hex();
    format!("{}-{}", shown.trim(), hash.get(..16).unwrap_or_default())
}

/// What a transcript says about its session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDraft {
    /// The agent's own id of the session. If a transcript names several, the last one counts.
    pub agent_session: String,
    /// The last working directory of the agent.
    pub cwd: Option<String>,
    /// The git branch last checked out there.
    pub git_branch: Option<String>,
    /// When the first message was written; `None` before there is one.
    pub started_at: Option<Timestamp>,
    /// The title that the person or the agent gave, or else the beginning of the first prompt.
    pub title: Option<String>,
}

/// A checkpoint for a moment of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointDraft {
    /// The time of the moment.
    pub time: Timestamp,
    /// The message of the checkpoint, in one line.
    pub message: String,
    /// Words by which it is found, sorted.
    pub tags: Vec<String>,
    /// Why the checkpoint is made.
    pub trigger: CheckpointTrigger,
    /// The body of the checkpoint: further data about the event.
    pub body: Value,
    /// The key of the event. A draft with the key of an earlier one completes it: same checkpoint,
    /// this body.
    pub key: String,
}

/// A line that cannot be read, or only with replaced bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Its offset in bytes.
    pub offset: u64,
    /// Why it cannot be read as it is.
    pub reason: String,
    /// Whether it was read nevertheless, with U+FFFD in place of bytes that are not UTF-8.
    pub read: bool,
}

/// The result of reading one block of bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptPiece {
    /// The session as known after this piece; `None` if no line has named one yet.
    pub session: Option<SessionDraft>,
    /// How many of the given bytes were read. The rest is the beginning of an incomplete line.
    pub taken: u64,
    /// The facts, in the order of the file. A later piece may add versions, but changes none.
    pub facts: Vec<Fact>,
    /// The moments that get a checkpoint, in the order of the file.
    pub checkpoints: Vec<CheckpointDraft>,
    /// The lines that cannot be read, or only with replaced bytes.
    pub skipped: Vec<SkippedLine>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_a_store_does_not_accept_is_replaced_by_one_that_is_as_unique() {
        let long = format!("call_1__thought__{}", "Cr9A".repeat(400));
        let wide = "日".repeat(100);
        for given in [long.as_str(), wide.as_str(), "a\nb", " a", "a ", "", "\0"] {
            let id = fact_id(given);
            assert!(claim::check_id(&id).is_ok(), "{id}");
            assert_eq!(fact_id(&id), id, "an accepted id is kept");
            assert_ne!(fact_id(&format!("{given}\n")), id, "{given:?}");
        }
        assert!(fact_id(&long).starts_with("call_1__thought__Cr9A"));
    }
}
