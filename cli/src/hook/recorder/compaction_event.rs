//! Records the announcement and the end of a compaction, each in one checkpoint, however many
//! events report it.

use super::{HookRecorder, with_stored_patches};
use crate::compaction::{self, CompactionPhase, ContextCompaction, RECENT};
use crate::error::CommandError;
use crate::hook::log::HookLogEntry;
use forge_store::model::{Checkpoint, Value};
use forge_store::store::Session;

/// Two announcements within this time are one, if no transcript distinguishes them.
const SAME_MICROS: i64 = 10_000_000;
/// The maximum size of a summary that is stored in a checkpoint, in bytes.
const SUMMARY_BYTES: usize = 128 << 10;

impl HookRecorder<'_> {
    /// Records that the context is about to be compacted.
    pub fn record_announcement(
        &mut self,
        automatic: Option<bool>,
        tokens: Option<i64>,
        line: &mut HookLogEntry,
    ) -> Result<(), CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let code = self.captured_code(&session, line)?;
        let known = compaction::newest_compactions(&session, Some(RECENT))?;
        if let Some(same) = known.iter().find(|one| self.is_announced(one)) {
            line.checkpoint = Some(same.checkpoint.id.to_string());
            return Ok(());
        }
        let (code, fact) = code.map_or((None, None), |code| (Some(code.id), code.new));
        let body = Value::from([
            ("trigger", trigger_word(automatic).into()),
            ("pre_tokens", tokens.into()),
            ("tail", self.tail.as_ref().map(|tail| tail.name.clone()).into()),
            ("turn", self.event.turn.clone().into()),
            ("announced_at", self.act.now.to_string().into()),
            ("code", code.into()),
        ]);
        let message = format!(
            "context is about to be compacted ({})",
            trigger_word(automatic).unwrap_or("unknown cause")
        );
        let checkpoint = compaction::first_checkpoint(self.event_key("announced"), message, body);
        let mut write = session.write(&self.act).checkpoint(checkpoint);
        if let Some(fact) = fact {
            let fact = with_stored_patches(&mut write, fact);
            write = write.fact(fact);
        }
        let done = write.commit()?;
        line.checkpoint = done.checkpoint.as_ref().map(|checkpoint| checkpoint.id.to_string());
        self.check_spooled(&done)
    }

    /// Returns the key of an event of this compaction. Events at the same end of the same
    /// transcript get the same key.
    fn event_key(&self, what: &str) -> String {
        let moment = match (&self.tail, &self.event.turn) {
            (Some(tail), _) => tail.name.clone(),
            (None, Some(turn)) => format!("turn:{turn}"),
            (None, None) => format!("time:{}", self.act.now.as_micros()),
        };
        format!("{what}:{moment}")
    }

    /// Whether a compaction is the one that a `PreCompact` event now announces.
    fn is_announced(&self, one: &ContextCompaction) -> bool {
        let at = one.checkpoint.time;
        let turn = one.checkpoint.body.field("turn").and_then(Value::as_text);
        let same_turn = self.event.turn.is_some() && turn == self.event.turn.as_deref();
        let Some(tail) = &self.tail else {
            let close = self.act.now.micros_since(at).abs() < SAME_MICROS;
            // After a finished compaction, an announcement is about another one, however soon it
            // comes.
            let open = one.phase() == CompactionPhase::Announced;
            return same_turn || (self.event.turn.is_none() && close && open);
        };
        if one.tail() == Some(tail.name.as_str()) {
            return true;
        }
        let nothing_since = match tail.at {
            Some(last) => tail.is_compaction || last <= at,
            None => same_turn,
        };
        match one.phase() {
            // The event came too late: that compaction is over, and no message followed.
            CompactionPhase::Recorded => nothing_since || self.act.now < at,
            // The agent may write messages before the compaction to disk after it.
            CompactionPhase::Announced | CompactionPhase::Done => nothing_since,
            CompactionPhase::NotFollowed => false,
        }
    }

    /// Records that the context was compacted, with the agent's own summary if it gave one.
    pub fn record_compaction(
        &mut self,
        automatic: Option<bool>,
        summary: Option<&str>,
        line: &mut HookLogEntry,
    ) -> Result<(), CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let known = compaction::newest_compactions(&session, Some(RECENT))?;
        let found = self.find_done(&session, &known, summary)?;
        let now = self.act.now.to_string();
        let text = summary.map(cut_for_checkpoint);
        let Some(found) = found else {
            let body = Value::from([
                ("trigger", trigger_word(automatic).into()),
                ("tail", self.tail.as_ref().map(|tail| tail.name.clone()).into()),
                ("done_at", now.into()),
                ("hook_summary", text.into()),
            ]);
            let message = format!(
                "context compacted ({})",
                trigger_word(automatic).unwrap_or("unknown cause")
            );
            let checkpoint = compaction::first_checkpoint(self.event_key("done"), message, body);
            let done = session.write(&self.act).checkpoint(checkpoint).commit()?;
            if done.checkpoint.is_some() {
                self.check_spooled(&done)?;
            }
            line.checkpoint = done.checkpoint.as_ref().map(|one| one.id.to_string());
            return Ok(());
        };
        line.checkpoint = Some(found.id.to_string());
        let new_text = text.filter(|_| found.body.field("hook_summary").is_none());
        if found.body.field("done_at").is_some() && new_text.is_none() {
            return Ok(());
        }
        let (_, changed) = self.amend(&session, &found, |one| {
            let Value::Map(body) = &mut one.body else { return };
            if !body.contains_key("boundary") && !body.contains_key("done_at") {
                one.message =
                    one.message.replace("context is about to be compacted", "context compacted");
            }
            body.entry("done_at".to_owned()).or_insert_with(|| now.clone().into());
            if let Some(text) = &new_text {
                body.entry("hook_summary".to_owned()).or_insert_with(|| text.clone().into());
            }
        })?;
        self.saved |= changed;
        Ok(())
    }

    /// Finds the compaction that this event reports as done, among the known ones.
    fn find_done(
        &self,
        session: &Session,
        known: &[ContextCompaction],
        summary: Option<&str>,
    ) -> Result<Option<Checkpoint>, CommandError> {
        // A summary that is already known identifies the compaction, however late it comes.
        if let Some(summary) = summary {
            for one in known.iter().filter(|one| one.has_summary()) {
                let known = one.summary(session)?.unwrap_or_default();
                if known.contains(summary.trim()) || summary.contains(known.trim()) {
                    return Ok(Some(one.checkpoint.clone()));
                }
            }
        }
        let Some(newest) = known.first() else { return Ok(None) };
        let at = newest.checkpoint.time;
        let nothing_since = match &self.tail {
            Some(tail) => {
                tail.is_compaction
                    || newest.tail() == Some(tail.name.as_str())
                    || tail.at.is_some_and(|last| last <= at)
            }
            None => true,
        };
        let has_other = summary.is_some()
            && newest.has_summary()
            && newest.checkpoint.body.field("hook_summary").is_some();
        let is_it = match newest.phase() {
            CompactionPhase::Announced => true,
            CompactionPhase::NotFollowed => false,
            CompactionPhase::Done => nothing_since && !has_other,
            CompactionPhase::Recorded => {
                (nothing_since || newest.done_at().is_none()) && !has_other
            }
        };
        Ok(is_it.then(|| newest.checkpoint.clone()))
    }
}

fn trigger_word(automatic: Option<bool>) -> Option<&'static str> {
    automatic.map(|automatic| if automatic { "auto" } else { "manual" })
}

/// Returns the beginning of a text, up to `SUMMARY_BYTES`.
fn cut_for_checkpoint(text: &str) -> String {
    text.get(..text.floor_char_boundary(SUMMARY_BYTES)).unwrap_or_default().to_owned()
}
