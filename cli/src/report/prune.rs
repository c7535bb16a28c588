//! What was pruned.

use super::import::bytes;
use crate::output::{Report, Screen, Tone};
use forge_store::model::{CheckpointId, OperationId, Timestamp};
use forge_store::store;
use serde::Serialize;

/// A checkpoint and why it stays.
#[derive(Debug, Serialize)]
pub struct VerdictJson {
    /// Its id.
    pub id: CheckpointId,
    /// Its number.
    pub sequence: u64,
    /// The moment it names.
    pub time: Timestamp,
    /// What somebody said about it.
    pub message: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// The rules that keep it; none if it goes.
    pub kept_by: Vec<String>,
}

/// Revisions that fold into a later one.
#[derive(Debug, Serialize)]
pub struct FoldJson {
    /// The branch.
    pub branch: String,
    /// The number of the first.
    pub first: u64,
    /// The number of the revision that they fold into.
    pub into: u64,
    /// How many there are.
    pub revisions: u64,
}

/// A source of a session that ended, whose bytes go.
#[derive(Debug, Serialize)]
pub struct SourceJson {
    /// The session.
    pub session: String,
    /// When that ended.
    pub ended: Timestamp,
    /// The source.
    pub source: String,
    /// Bytes on disk.
    pub bytes: u64,
}

/// A session that goes, since it ended.
#[derive(Debug, Serialize)]
pub struct EndedJson {
    /// The session.
    pub session: String,
    /// When it ended.
    pub ended: Timestamp,
    /// How many revisions and checkpoints it has.
    pub last_sequence: u64,
    /// How many facts.
    pub facts: u64,
}

/// One session.
#[derive(Debug, Serialize)]
pub struct PrunedSession {
    /// The session.
    pub session: String,
    /// The operation, for `forge undo`; null if nothing was changed.
    pub operation: Option<OperationId>,
    /// The checkpoints that go.
    pub dropped: Vec<VerdictJson>,
    /// Those that stay.
    pub kept: Vec<VerdictJson>,
    /// The revisions that fold.
    pub folds: Vec<FoldJson>,
    /// How many revisions fold.
    pub folded: u64,
    /// The debugging sessions that are dropped.
    pub sessions: Vec<EndedJson>,
    /// Transcripts and outputs that are dropped, of any other.
    pub transcripts: Vec<SourceJson>,
    /// About how many bytes of the index are free once they can no longer be taken back.
    pub bytes: u64,
}

/// What became free.
#[derive(Debug, Serialize)]
pub struct Freed {
    /// Prunings that can no longer be taken back.
    pub prunings: u64,
    /// Large values that were dropped with them.
    pub values: u64,
    /// Bytes of the store on disk before.
    pub bytes_before: u64,
    /// Bytes now.
    pub bytes: u64,
}

/// A pruning.
#[derive(Debug, Serialize)]
pub struct Pruned {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Each session.
    pub sessions: Vec<PrunedSession>,
    /// What became free; null if nothing was changed.
    pub freed: Option<Freed>,
}

impl Pruned {
    /// What is told of it.
    #[must_use]
    pub fn of(found: Vec<(String, store::PruneReport)>, dry_run: bool) -> Self {
        let sessions = found.into_iter().map(|(name, pruned)| PrunedSession::of(name, pruned));
        Self { dry_run, sessions: sessions.collect(), freed: None }
    }
}

impl PrunedSession {
    fn of(session: String, pruned: store::PruneReport) -> Self {
        let folded = pruned.folded_revisions();
        let told = |one: store::CheckpointVerdict| VerdictJson {
            id: one.checkpoint.id,
            sequence: one.checkpoint.sequence,
            time: one.checkpoint.time,
            message: one.checkpoint.message,
            tags: one.checkpoint.tags,
            kept_by: one.reasons.iter().map(forge_store::model::RetentionReason::word).collect(),
        };
        let verdicts = pruned.verdicts.into_iter().map(told);
        let (dropped, kept) = verdicts.partition(|one| one.kept_by.is_empty());
        let folds = pruned.folds.into_iter().map(|fold| FoldJson {
            branch: fold.branch,
            first: fold.first,
            into: fold.into,
            revisions: fold.count,
        });
        let transcripts = pruned.texts.into_iter().map(|text| SourceJson {
            session: text.session,
            ended: text.ended,
            source: text.source,
            bytes: text.bytes,
        });
        let sessions = pruned.sessions.into_iter().map(|one| EndedJson {
            session: one.session,
            ended: one.ended,
            last_sequence: one.last_sequence,
            facts: one.facts,
        });
        Self {
            session,
            sessions: sessions.collect(),
            transcripts: transcripts.collect(),
            operation: pruned.operation,
            dropped,
            kept,
            folds: folds.collect(),
            folded,
            bytes: pruned.bytes,
        }
    }

    fn tell(&self, screen: &mut Screen, dry_run: bool) {
        let (drops, folds) = match dry_run {
            true => ("would be removed", "would be folded"),
            false => ("removed", "folded"),
        };
        screen.put(Tone::Plain, &format!("{} of ", self.dropped.len()));
        let many = |count: usize, one: &str| super::counted(count as u64, one);
        let all = many(self.dropped.len() + self.kept.len(), "checkpoint");
        let folded = super::counted(self.folded, "revision");
        screen.put(Tone::Plain, &format!("{all} {drops}, {folded} {folds}"));
        if !self.sessions.is_empty() {
            screen.put(Tone::Plain, &format!(", {} {drops}", many(self.sessions.len(), "session")));
        }
        if !self.transcripts.is_empty() {
            screen.put(
                Tone::Plain,
                &format!(", {} {drops}", many(self.transcripts.len(), "transcript")),
            );
        }
        match self.bytes {
            0 => {}
            // Of little they depend on chance.
            1..1000 => screen.put(Tone::Plain, " (less than 1 kB)"),
            many => screen.put(Tone::Plain, &format!(" (about {})", bytes(many))),
        }
        screen.line(Tone::Dim, &format!(" (session {})", self.session));
        if dry_run {
            for (tone, word, some) in
                [(Tone::Bad, "drop", &self.dropped), (Tone::Good, "keep", &self.kept)]
            {
                for one in some {
                    one.tell(screen, tone, word);
                }
            }
            for fold in &self.folds {
                screen.put(Tone::Dim, "fold ");
                let (first, into) = (fold.first, fold.into);
                screen.put(Tone::Id, &format!("#{first} into #{into}"));
                screen.line(Tone::Dim, &format!(" ({} on {})", fold.revisions, fold.branch));
            }
            for one in &self.sessions {
                screen.put(Tone::Bad, "drop ");
                screen.put(Tone::Plain, &one.session);
                let ended = format!(" (a session that ended {})", screen.ago(one.ended));
                screen.line(Tone::Dim, &ended);
            }
            for text in &self.transcripts {
                screen.put(Tone::Bad, "drop ");
                screen.put(Tone::Plain, &text.source);
                let ended = format!(" of {}, which ended {}", text.session, screen.ago(text.ended));
                screen.line(Tone::Dim, &ended);
            }
        }
        if self.operation.is_some() {
            screen.line(Tone::Dim, "'forge undo' brings them back");
        }
    }
}

impl VerdictJson {
    fn tell(&self, screen: &mut Screen, tone: Tone, word: &str) {
        screen.put(tone, word);
        screen.put(Tone::Id, &format!(" #{}", self.sequence));
        screen.put(Tone::Dim, &format!(" {} ", screen.ago(self.time)));
        screen.put(Tone::Plain, &self.message);
        let why = self.kept_by.join(", ");
        screen.line(Tone::Dim, &if why.is_empty() { why } else { format!(" ({why})") });
    }
}

impl Report for Pruned {
    const SCHEMA: &'static str = "forge.checkpoint.prune/1";

    fn human(&self, screen: &mut Screen) {
        for session in &self.sessions {
            session.tell(screen, self.dry_run);
        }
        if let Some(freed) = self.freed.as_ref().filter(|freed| freed.prunings > 0) {
            let (before, now) = (bytes(freed.bytes_before), bytes(freed.bytes));
            let verb = if freed.prunings == 1 { "is" } else { "are" };
            let gone = super::counted(freed.prunings, "pruning");
            screen.line(
                Tone::Plain,
                &format!("{gone} {verb} permanently deleted; {before} -> {now}"),
            );
        }
    }
}
