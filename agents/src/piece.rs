//! What a reader hands back.

use forge_store::model::{CheckpointTrigger, Fact, Timestamp, Value};

/// What a transcript says of its session so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDraft {
    /// The agent's own id of the session. A transcript that names several belongs to the last.
    pub agent_session: String,
    /// The directory the agent last worked in.
    pub cwd: Option<String>,
    /// The git branch last checked out there.
    pub git_branch: Option<String>,
    /// When the first message was written; `None` before there is one.
    pub started_at: Option<Timestamp>,
    /// A line that says what it is about: the title the agent gave it, else the beginning of the first prompt.
    pub title: Option<String>,
}

/// A checkpoint to be made for a moment of the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointDraft {
    /// The moment.
    pub time: Timestamp,
    /// What happened.
    pub message: String,
    /// Words it is found by, sorted.
    pub tags: Vec<String>,
    /// Why it is made.
    pub trigger: CheckpointTrigger,
    /// What else is known.
    pub body: Value,
    /// Names the event. A draft with the key of an earlier one completes it: same checkpoint, this body.
    pub key: String,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What one reading gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranscriptPiece {
    /// The session as known after this piece; `None` while no line has named one.
    pub session: Option<SessionDraft>,
    /// How many of the bytes handed in were read. The rest is the beginning of a line that is not whole yet.
    pub taken: u64,
    /// What happened, in the order of the file. Every one is final.
    pub facts: Vec<Fact>,
    /// Moments worth a checkpoint, in the order of the file.
    pub checkpoints: Vec<CheckpointDraft>,
    /// Lines that could not be read.
    pub skipped: Vec<SkippedLine>,
}
