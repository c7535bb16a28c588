//! The results of a reader.

use forge_store::model::{CheckpointTrigger, Fact, Timestamp, Value};
use serde::Serialize;

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
