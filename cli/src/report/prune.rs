//! Reports of prunings.

use super::import::size_text;
use crate::output::{Report, Screen, Tone};
use forge_store::model::{CheckpointId, OperationId, Timestamp};
use forge_store::store::{self, DroppedSession, DroppedSource};
use serde::Serialize;

/// A checkpoint, and why it is kept.
#[derive(Debug, Serialize)]
pub struct VerdictJson {
    pub id: CheckpointId,
    /// Its sequence number.
    pub sequence: u64,
    /// The time that it is about.
    pub time: Timestamp,
    pub message: String,
    pub tags: Vec<String>,
    /// The rules that keep it; empty if it is dropped.
    pub kept_by: Vec<String>,
}

/// The result for one session.
#[derive(Debug, Serialize)]
pub struct PrunedSession {
    pub session: String,
    /// The operation, for `forge undo`; null if nothing was changed.
    pub operation: Option<OperationId>,
    /// The checkpoints that are dropped.
    pub dropped: Vec<VerdictJson>,
    /// The checkpoints that are kept.
    pub kept: Vec<VerdictJson>,
    pub folds: Vec<store::FoldSummary>,
    /// The number of revisions in these folds.
    pub folded: u64,
    /// The debugging sessions that are dropped.
    pub sessions: Vec<DroppedSession>,
    /// The transcripts and outputs that are dropped, of other debugging sessions.
    pub transcripts: Vec<DroppedSource>,
    /// An estimate of the index bytes that a sweep will free after the undo period.
    pub bytes: u64,
}

/// The result of a sweep.
#[derive(Debug, Serialize)]
pub struct FreedSpace {
    /// The number of prunings that cannot be undone any more.
    pub prunings: u64,
    /// The number of large values that were removed with them.
    pub values: u64,
    /// The size of the store on disk before, in bytes.
    pub bytes_before: u64,
    /// The size now, in bytes.
    pub bytes: u64,
}

/// The result of a pruning.
#[derive(Debug, Serialize)]
pub struct CheckpointPruneReport {
    pub dry_run: bool,
    /// Whether the space is freed at once, so that nothing can be undone.
    #[serde(skip)]
    now: bool,
    /// The result for each session.
    pub sessions: Vec<PrunedSession>,
    /// The result of the sweep; null if nothing was changed.
    pub freed: Option<FreedSpace>,
}

impl CheckpointPruneReport {
    pub fn new(found: Vec<(String, store::PruneReport)>, (dry_run, now): (bool, bool)) -> Self {
        let sessions = found.into_iter().map(|(name, pruned)| PrunedSession::new(name, pruned));
        Self { dry_run, now, sessions: sessions.collect(), freed: None }
    }
}

impl PrunedSession {
    fn new(session: String, pruned: store::PruneReport) -> Self {
        let folded = pruned.folded_revisions();
        let verdict_json = |one: store::CheckpointVerdict| VerdictJson {
            id: one.checkpoint.id,
            sequence: one.checkpoint.sequence,
            time: one.checkpoint.time,
            message: one.checkpoint.message,
            tags: one.checkpoint.tags,
            kept_by: one.reasons.iter().map(forge_store::model::RetentionReason::word).collect(),
        };
        let verdicts = pruned.verdicts.into_iter().map(verdict_json);
        let (dropped, kept) = verdicts.partition(|one| one.kept_by.is_empty());
        Self {
            session,
            sessions: pruned.sessions,
            transcripts: pruned.transcripts,
            operation: pruned.operation,
            dropped,
            kept,
            folds: pruned.folds,
            folded,
            bytes: pruned.bytes,
        }
    }

    fn print(&self, screen: &mut Screen, dry_run: bool) {
        let (drops, folds) = match dry_run {
            true => ("would be removed", "would be folded"),
            false => ("removed", "folded"),
        };
        screen.put(Tone::Plain, &format!("{} of ", self.dropped.len()));
        let many = |count: usize, one: &str| crate::text::count_text(count as u64, one);
        let all = many(self.dropped.len() + self.kept.len(), "checkpoint");
        let folded = crate::text::count_text(self.folded, "revision");
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
            // Estimates this small depend on random data.
            1..1000 => screen.put(Tone::Plain, " (less than 1 kB)"),
            many => screen.put(Tone::Plain, &format!(" (about {})", size_text(many))),
        }
        screen.dim(&format!(" (session {})", self.session));
        if dry_run {
            for (tone, word, some) in
                [(Tone::Bad, "drop", &self.dropped), (Tone::Good, "keep", &self.kept)]
            {
                for one in some {
                    one.print(screen, tone, word);
                }
            }
            for fold in &self.folds {
                screen.put(Tone::Dim, "fold ");
                let (first, into) = (fold.first, fold.into);
                screen.put(Tone::Id, &format!("#{first} into #{into}"));
                screen.dim(&format!(" ({} on {})", fold.revisions, fold.branch));
            }
            for one in &self.sessions {
                screen.put(Tone::Bad, "drop ");
                screen.put(Tone::Plain, &one.session);
                screen.dim(&format!(" (a session that ended {})", screen.ago(one.ended)));
            }
            for text in &self.transcripts {
                screen.put(Tone::Bad, "drop ");
                screen.put(Tone::Plain, &text.source);
                let ended = format!(" of {}, which ended {}", text.session, screen.ago(text.ended));
                screen.dim(&ended);
            }
        }
    }
}

impl VerdictJson {
    fn print(&self, screen: &mut Screen, tone: Tone, word: &str) {
        screen.put(tone, word);
        screen.put(Tone::Id, &format!(" #{}", self.sequence));
        screen.put(Tone::Dim, &format!(" {} ", screen.ago(self.time)));
        screen.put(Tone::Plain, &self.message);
        let why = self.kept_by.join(", ");
        screen.dim(&if why.is_empty() { why } else { format!(" ({why})") });
    }
}

impl Report for CheckpointPruneReport {
    fn human(&self, screen: &mut Screen) {
        for session in &self.sessions {
            session.print(screen, self.dry_run);
            if session.operation.is_some() && !self.now {
                screen.dim(&format!("'{} undo' brings them back", screen.forge()));
            }
        }
        if let Some(freed) = self.freed.as_ref().filter(|freed| freed.prunings > 0) {
            let (before, now) = (size_text(freed.bytes_before), size_text(freed.bytes));
            let verb = if freed.prunings == 1 { "is" } else { "are" };
            let prunings = crate::text::count_text(freed.prunings, "pruning");
            screen.plain(&format!("{prunings} {verb} permanently deleted; {before} → {now}"));
        }
    }
}
