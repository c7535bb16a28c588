//! Makes checkpoints for moments of a transcript: compactions, commits, and after five minutes.

use super::line::parsed;
use super::line::{ClaudeLine, CompactionMetadata, PreservedMessages};
use super::line_context::{PieceBuilder, SpokenLine, fields, flag};
use super::transcript_state::PendingCompaction;
use crate::lenient::LenientId;
use crate::piece::CheckpointDraft;
use crate::text_hash::text_hash;
use forge_store::model::{AutoTrigger, CheckpointTrigger, FieldMap, Timestamp, Value};
use forge_store::shell::GitCommitLine;
use forge_store::store::SIGNIFICANT_MICROS;

impl PieceBuilder<'_> {
    pub(crate) fn checkpoint(&mut self, at: Timestamp, draft: CheckpointDraft) {
        self.carry.last_checkpoint = Some(at);
        self.checkpoints.push(draft);
    }

    /// Adds the checkpoint of a compaction whose summary comes in a later line.
    pub(crate) fn compaction(
        &mut self,
        line: &ClaudeLine<'_>,
        uuid: &str,
        compacted: &CompactionMetadata<'_>,
    ) {
        let preserved: PreservedMessages = parsed(compacted.preserved_messages).unwrap_or_default();
        let all =
            if preserved.all_uuids.0.is_empty() { preserved.uuids } else { preserved.all_uuids };
        let message = |uuid: LenientId| Some(Value::from([("message", uuid.0?.into())]));
        let kept: Vec<Value> = all.0.into_iter().filter_map(message).collect();
        let body = fields([
            ("trigger", compacted.trigger.text().into()),
            ("pre_tokens", compacted.pre_tokens.0.into()),
            ("post_tokens", compacted.post_tokens.0.into()),
            ("kept", Some(kept).filter(|list| !list.is_empty()).into()),
            ("boundary", uuid.into()),
            ("logical_parent", line.logical_parent_uuid.text().into()),
            ("copied", flag(self.is_copy(line))),
        ]);
        let pending = PendingCompaction { uuid: uuid.to_owned(), at: self.line.at, body };
        self.checkpoint(self.line.at, pending.draft());
        self.carry.compaction = Some(pending);
    }

    /// Adds the checkpoint of a compaction that is in one line together with its summary.
    pub(crate) fn single_line_compaction(&mut self, id: &str, summary: Option<Value>) {
        let body = fields([("boundary", id.into()), ("summary", summary.into())]);
        let compaction = PendingCompaction { uuid: id.to_owned(), at: self.line.at, body };
        self.checkpoint(self.line.at, compaction.draft());
    }

    /// Completes the compaction before this line with the summary in this line. Without a line for
    /// the compaction, which older clients do not write, the summary is the compaction. A summary
    /// with the text of the one before is a repetition.
    pub(crate) fn compaction_summary(&mut self, line: &ClaudeLine<'_>, spoken: &SpokenLine<'_>) {
        let summary = spoken.content.full_text();
        let hash = summary.as_ref().map(|(text, _)| text_hash(text));
        let repeated = hash.is_some() && self.carry.claude.summary == hash;
        self.carry.claude.summary = hash;
        let mut compaction = match self.carry.compaction.take() {
            Some(compaction) => compaction,
            None if repeated => return,
            None => {
                self.carry.last_checkpoint = Some(self.line.at);
                let copied = flag(self.is_copy(line));
                let body = fields([("boundary", spoken.uuid.into()), ("copied", copied)]);
                PendingCompaction { uuid: spoken.uuid.to_owned(), at: self.line.at, body }
            }
        };
        if let Some((text, pointer)) = summary {
            let summary = self.text(&text, format!("/message/content{pointer}"));
            compaction.body.insert("summary".to_owned(), summary);
        }
        compaction.body.insert("summary_message".to_owned(), spoken.uuid.into());
        let draft = compaction.draft();
        // If this piece has the draft without the summary, the draft is replaced. Otherwise an
        // earlier piece has returned that draft, and this one completes its checkpoint by the same
        // key.
        match self.checkpoints.iter_mut().find(|made| made.key == draft.key) {
            Some(made) => *made = draft,
            None => self.checkpoints.push(draft),
        }
    }

    /// Adds the checkpoint of a commit, if the output of `git commit` reports one and no sub-agent
    /// made it.
    pub(crate) fn commit(&mut self, id: &str, output: &str) {
        let Some(commit) = GitCommitLine::last_in(output) else { return };
        // A commit of a sub-agent is a command of the session, but gets no checkpoint.
        if self.line.agent.is_some() {
            return;
        }
        let body = fields([
            ("branch", commit.branch.into()),
            ("commit", commit.sha.into()),
            ("command", id.into()),
        ]);
        let draft = CheckpointDraft {
            time: self.line.at,
            message: commit.subject.to_owned(),
            tags: vec!["commit".to_owned()],
            trigger: CheckpointTrigger::Automatic(AutoTrigger::CodeModified),
            body: Value::Map(body),
            key: format!("commit:{id}"),
        };
        self.checkpoint(self.line.at, draft);
    }

    /// Adds a checkpoint at this message if the last checkpoint is more than five minutes older.
    pub(crate) fn time_checkpoint(&mut self, at: Timestamp, uuid: &str) {
        let last = *self.carry.last_checkpoint.get_or_insert(at);
        let passed = at.micros_since(last);
        if passed <= SIGNIFICANT_MICROS {
            return;
        }
        let seconds = passed / 1_000_000;
        // `recent` does not contain the facts of this line yet.
        let place = self.facts.last().map(|fact| fact.place);
        let mut recent = self.carry.recent.clone();
        let of_line = self.facts.iter().rev().take_while(|fact| Some(fact.place) == place);
        of_line.for_each(|fact| recent.add(fact));
        let draft = CheckpointDraft {
            time: at,
            message: recent.name(),
            tags: vec!["time".to_owned()],
            trigger: CheckpointTrigger::Automatic(AutoTrigger::SignificantTimePassed),
            body: Value::Map(fields([("message", uuid.into()), ("seconds", seconds.into())])),
            key: format!("time:{uuid}"),
        };
        self.checkpoint(at, draft);
    }
}

impl PendingCompaction {
    pub(crate) fn draft(&self) -> CheckpointDraft {
        let number = |name| self.body.get(name).and_then(Value::as_i64);
        let trigger = self.body.get("trigger").and_then(Value::as_text).map(str::to_owned);
        let tokens = number("pre_tokens").map(|tokens| format!("{tokens} tokens before"));
        let known: Vec<String> = [trigger, tokens].into_iter().flatten().collect();
        let known =
            if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        let message = format!("context compacted{known}");
        CheckpointDraft {
            time: self.at,
            message,
            tags: vec!["compaction".to_owned()],
            trigger: CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning),
            body: Value::Map(FieldMap::clone(&self.body)),
            key: format!("compaction:{}", self.uuid),
        }
    }
}
