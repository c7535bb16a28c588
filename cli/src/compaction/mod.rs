//! Compactions of an agent's context. All data about a compaction is on its checkpoint.
//!
//! Hooks report a compaction before and after it happens, in any order and number. The transcript
//! reports the compaction later. One checkpoint combines all these reports, by the rules in
//! `docs/hooks.md`.

mod kept_messages;
pub mod knowledge;
pub mod loss;
pub mod mention;
mod transcript_match;

pub use transcript_match::{is_compaction, is_conversation, match_hook_compactions};

use crate::error::CommandError;
use crate::text::{TextLength, TextReader};
use forge_store::error::ErrorKind;
use forge_store::model::{AutoTrigger, Checkpoint, CheckpointTrigger, Timestamp, Value};
use forge_store::store::{CheckpointFilter, NewCheckpoint, Session, WriteContext};

/// The tag of a compaction's checkpoint.
pub const TAG: &str = "compaction";
/// The number of newest compactions with which a new report is compared.
pub const RECENT: usize = 8;

/// How much is known about a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionPhase {
    /// A hook announced it. Nothing more has been reported.
    Announced,
    /// A hook announced it, and the conversation continued without a compaction.
    NotFollowed,
    /// A hook reported its end. The line of the transcript has not been read yet.
    Done,
    /// The transcript contains it.
    Recorded,
}

impl CompactionPhase {
    /// Returns the name of the phase in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::NotFollowed => "not_followed",
            Self::Done => "done",
            Self::Recorded => "recorded",
        }
    }
}

/// A compaction, read from its checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextCompaction {
    /// The checkpoint, with all data about the compaction.
    pub checkpoint: Checkpoint,
}

/// Returns the compactions of a session, newest first, at most `limit`.
pub fn newest_compactions(
    session: &Session,
    limit: Option<usize>,
) -> Result<Vec<ContextCompaction>, CommandError> {
    let tagged = |limit| {
        let tag = Some(TAG.to_owned());
        session.checkpoints(&CheckpointFilter { tag, limit, ..CheckpointFilter::default() })
    };
    let compactions = |checkpoints: Vec<Checkpoint>| -> Vec<ContextCompaction> {
        checkpoints.into_iter().filter_map(ContextCompaction::from_checkpoint).collect()
    };
    let newest = tagged(limit)?;
    let listed = newest.len();
    let mut found = compactions(newest);
    // Other checkpoints can have the tag too.
    if let Some(limit) = limit
        && found.len() < limit
        && listed >= limit
    {
        found = compactions(tagged(None)?);
        found.truncate(limit);
    }
    Ok(found)
}

impl ContextCompaction {
    /// Reads the compaction from its checkpoint; `None` for any other checkpoint.
    #[must_use]
    pub fn from_checkpoint(checkpoint: Checkpoint) -> Option<Self> {
        let is_one = checkpoint.key.is_some()
            && checkpoint.trigger
                == CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning);
        is_one.then_some(Self { checkpoint })
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.checkpoint.body.field(field)?.as_text()
    }

    fn time(&self, field: &str) -> Option<Timestamp> {
        Timestamp::parse_rfc3339(self.text(field)?)
    }

    /// Returns how much is known about the compaction.
    #[must_use]
    pub fn phase(&self) -> CompactionPhase {
        if self.boundary().is_some() {
            CompactionPhase::Recorded
        } else if self.done_at().is_some() {
            CompactionPhase::Done
        } else if self.checkpoint.body.field("not_followed").is_some() {
            CompactionPhase::NotFollowed
        } else {
            CompactionPhase::Announced
        }
    }

    /// Whether the context was compacted. Otherwise a compaction was only announced.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase(), CompactionPhase::Done | CompactionPhase::Recorded)
    }

    /// Returns the trigger in the agent's own word: `auto` or `manual`.
    #[must_use]
    pub fn trigger(&self) -> Option<&str> {
        self.text("trigger")
    }

    /// Returns the number of tokens in the context before the compaction.
    #[must_use]
    pub fn tokens(&self) -> Option<i64> {
        self.checkpoint.body.field("pre_tokens")?.as_i64()
    }

    /// Returns the id of the compaction's line in the transcript.
    #[must_use]
    pub fn boundary(&self) -> Option<&str> {
        self.text("boundary")
    }

    /// Returns the keyed hash of the last message that a hook found in the transcript when it
    /// reported the compaction.
    #[must_use]
    pub fn tail(&self) -> Option<&str> {
        self.text("tail")
    }

    /// Returns when a hook announced the compaction.
    #[must_use]
    pub fn announced_at(&self) -> Option<Timestamp> {
        self.time("announced_at")
    }

    /// Returns when a hook reported the end of the compaction.
    #[must_use]
    pub fn done_at(&self) -> Option<Timestamp> {
        self.time("done_at")
    }

    /// Returns when the agent got the brief of what was known before the compaction.
    #[must_use]
    pub fn handed_at(&self) -> Option<Timestamp> {
        self.time("handed_at")
    }

    /// Whether the agent got the loss report, or nothing was lost.
    #[must_use]
    pub fn is_loss_settled(&self) -> bool {
        self.checkpoint.body.field("loss_told_at").is_some()
    }

    /// Returns the name of the process that is giving the brief to the agent now.
    #[must_use]
    pub fn handing_process(&self) -> Option<&str> {
        self.text("handing")
    }

    /// Whether the agent's own summary is known.
    #[must_use]
    pub fn has_summary(&self) -> bool {
        ["summary", "hook_summary"].iter().any(|name| self.checkpoint.body.field(name).is_some())
    }

    /// Whether it is known what is still in the agent's context: the summary or, if the summary is
    /// encrypted, the messages that the agent kept.
    #[must_use]
    pub fn has_remaining_context(&self) -> bool {
        self.has_summary() || self.checkpoint.body.field("summary_encrypted").is_some()
    }

    /// Returns the agent's own summary in full: from the transcript, or else from a hook.
    pub fn summary(&self, session: &Session) -> Result<Option<String>, CommandError> {
        let body = &self.checkpoint.body;
        let Some(value) = body.field("summary").or_else(|| body.field("hook_summary")) else {
            return Ok(None);
        };
        let mut texts = TextReader::new(session, TextLength::Whole);
        let source = texts.source_of(value)?;
        Ok(texts.resolve(source.as_deref(), value.clone())?.as_text().map(str::to_owned))
    }

    /// Whether it is the compaction of another session, from which this one was forked. The agent
    /// of that session got the text, which is in the copied conversation.
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.checkpoint.body.field("copied").is_some()
    }

    /// Whether the agent needs no further text about it.
    #[must_use]
    pub fn is_handed_over(&self) -> bool {
        let is_loss_known = self.is_loss_settled() || !self.has_remaining_context();
        self.is_copied() || (self.handed_at().is_some() && is_loss_known)
    }

    fn cause(&self) -> &str {
        self.trigger().unwrap_or("unknown cause")
    }
}

/// Builds a checkpoint that completes this one, at its own time.
fn completion(known: &Checkpoint) -> NewCheckpoint {
    NewCheckpoint {
        message: known.message.clone(),
        tags: known.tags.clone(),
        trigger: known.trigger,
        at: Some(known.time),
        body: known.body.clone(),
        key: known.key.clone(),
    }
}

/// Changes a compaction's checkpoint, as [`Session::amend_checkpoint`] does. If another process
/// holds the lock for too long, the change is spooled, and readers see it at once. Returns the
/// checkpoint, and whether it was changed.
pub fn amend_checkpoint(
    session: &Session,
    act: &WriteContext,
    known: &Checkpoint,
    amend: impl Fn(&mut Checkpoint),
) -> Result<(Checkpoint, bool), CommandError> {
    match session.amend_checkpoint(act, &known.id, &amend) {
        Err(error) if error.kind() == ErrorKind::Locked => {}
        done => return Ok(done?),
    }
    let mut one = known.clone();
    amend(&mut one);
    if one == *known {
        return Ok((one, false));
    }
    session.write(act).checkpoint(completion(&one)).commit()?;
    Ok((one, true))
}

/// Builds the checkpoint of a compaction for the first hook that reports the compaction.
#[must_use]
pub fn first_checkpoint(key: String, message: String, body: Value) -> NewCheckpoint {
    let trigger = CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning);
    NewCheckpoint { body, key: Some(key), ..NewCheckpoint::new(message, trigger).tags([TAG]) }
}
