//! Reports of compactions of an agent's context.

use crate::compaction::loss::{LossKind, LostItem};
use crate::output::{Report, Screen, TextTable, Tone, cells};
use crate::text::{common_folder, count_text, in_one_line};
use forge_store::model::{CheckpointId, Timestamp};
use serde::Serialize;

/// The compactions of a session, newest first.
#[derive(Debug, Serialize)]
pub struct CompactionListReport {
    pub session: String,
    pub compactions: Vec<CompactionJson>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CompactionJson {
    pub id: CheckpointId,
    /// The number of its checkpoint.
    pub sequence: u64,
    /// When it happened; for an announced one, when it was announced.
    pub time: Timestamp,
    /// The branch that was current then.
    pub branch: String,
    /// Its trigger, in the agent's word: auto, manual.
    pub trigger: Option<String>,
    /// How many tokens the context had.
    pub tokens: Option<i64>,
    /// How much is known about it: announced, `not_followed`, done, recorded.
    pub phase: &'static str,
    /// When a hook announced it; null if none did.
    pub announced_at: Option<Timestamp>,
    /// When a hook reported that it was done; null if none did.
    pub done_at: Option<Timestamp>,
    /// The id of its line in the transcript; null while that has not been read.
    pub boundary: Option<String>,
    /// Whether the agent's own summary is known.
    pub has_summary: bool,
    /// When the agent got the brief; null if it did not.
    pub handed_at: Option<Timestamp>,
    /// How many items the summary omits; null without a summary.
    pub lost: Option<usize>,
}

/// An item that a summary omits.
#[derive(Clone, Debug, Serialize)]
pub struct LostItemJson {
    /// Its kind: constraint, instruction, hypothesis, decision, gap, failing check, refused, task,
    /// prompt, file.
    pub kind: &'static str,
    /// Its id; for a file, its path.
    pub id: String,
    pub text: String,
    /// Its status or criticality.
    pub status: Option<String>,
    /// How many of its significant words the summary mentions.
    pub mentioned: usize,
    /// The number of its significant words.
    pub telling: usize,
    #[serde(skip)]
    has_meaningful_id: bool,
}

impl From<&LostItem> for LostItemJson {
    fn from(lost: &LostItem) -> Self {
        Self {
            kind: lost.item.kind.word(),
            id: lost.item.id.clone(),
            text: lost.item.text.clone(),
            status: lost.item.word.clone(),
            mentioned: lost.mentioned,
            telling: lost.significant_words,
            has_meaningful_id: lost.item.kind.has_meaningful_id(),
        }
    }
}

/// One compaction with its loss report.
#[derive(Debug, Serialize)]
pub struct CompactionShowReport {
    pub session: String,
    pub compaction: CompactionJson,
    /// The number of items that the summary was compared with.
    pub known: usize,
    /// The number of messages that the agent kept word for word.
    pub kept: usize,
    /// The items that the summary omits; null without a summary.
    pub lost: Option<Vec<LostItemJson>>,
    /// The agent's own summary in full.
    pub summary: Option<String>,
    /// The brief that the agent gets after the compaction.
    pub brief: String,
}

impl Report for CompactionListReport {
    fn human(&self, screen: &mut Screen) {
        if self.compactions.is_empty() {
            let text = format!("No compaction is known in the session '{}'.", self.session);
            return screen.plain(&text);
        }
        let titles =
            ["No", "Time", "Ago", "Cause", "Tokens", "Known as", "Handed back", "Left out"];
        let mut table = TextTable::new(&titles).right(0).right(4).right(7);
        for one in &self.compactions {
            let handed = one.handed_at.map(|at| screen.local_time(at));
            let lost = match one.lost {
                Some(lost) => lost.to_string(),
                None => "no summary".to_owned(),
            };
            table.row(cells![
                Id: format!("#{}", one.sequence), screen.column_time(one.time),
                Dim: screen.ago(one.time), one.trigger.as_deref().unwrap_or("-"),
                one.tokens.map_or("-".to_owned(), |tokens| tokens.to_string()), phase(one.phase),
                handed.unwrap_or_else(|| "-".to_owned()), lost,
            ]);
        }
        screen.table(&table);
    }
}

const fn phase(word: &str) -> &str {
    match word.as_bytes() {
        b"not_followed" => "announced, none followed",
        _ => word,
    }
}

fn print_lost(lost: &[LostItemJson], screen: &mut Screen) {
    let is_file = |one: &&LostItemJson| one.kind == LossKind::File.word();
    let paths: Vec<&str> = lost.iter().filter(is_file).map(|one| one.id.as_str()).collect();
    let folder = common_folder(&paths);
    for one in lost {
        let status = one.status.as_deref().filter(|status| *status != one.kind);
        let status = status.map(|word| format!("  {}", word.replace('_', " "))).unwrap_or_default();
        let why = match (is_file(&one), one.telling) {
            (true, _) => String::new(),
            (_, 0) => "  (does not occur)".to_owned(),
            (_, telling) => format!("  ({} of {telling} words)", one.mentioned),
        };
        let id = match (one.id.strip_prefix(folder), one.has_meaningful_id) {
            (Some(path), _) if is_file(&one) => path.to_owned(),
            (_, true) => format!("{}  ", one.id),
            (_, false) => String::new(),
        };
        screen.short_line(&[
            (Tone::Dim, &format!("  {:14}", one.kind)),
            (Tone::Id, &id),
            (Tone::Plain, &in_one_line(&one.text)),
            (Tone::Dim, &format!("{status}{why}")),
        ]);
    }
    if !folder.is_empty() {
        screen.dim(&format!("  (files in {folder})"));
    }
}

impl Report for CompactionShowReport {
    fn human(&self, screen: &mut Screen) {
        let one = &self.compaction;
        let cause = one.trigger.as_deref().unwrap_or("unknown cause");
        screen.put(Tone::Heading, &format!("Compaction #{}", one.sequence));
        let tokens = one.tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let time = screen.time(one.time);
        screen.plain(&format!(" ({cause}{tokens}) at {time}, {}", phase(one.phase)));
        for (what, at) in [
            ("announced by a hook", one.announced_at),
            ("done, a hook said", one.done_at),
            ("handed back", one.handed_at),
        ] {
            if let Some(at) = at {
                let time = screen.local_time(at);
                screen.dim(&format!("  {what} at {time}"));
            }
        }
        if self.kept > 0 {
            let kept = count_text(self.kept as u64, "message");
            screen.dim(&format!("  kept word for word: {kept}"));
        }
        screen.gap();
        match &self.lost {
            None => screen.plain("The agent's own summary is not known."),
            Some(lost) if lost.is_empty() => {
                let text = format!("The agent's own summary mentions all {} things.", self.known);
                screen.good(&text);
            }
            Some(lost) => {
                let text = format!(
                    "The agent's own summary leaves out {} of {} things:",
                    lost.len(),
                    self.known
                );
                screen.warning(&text);
                print_lost(lost, screen);
            }
        }
        screen.gap();
        let heading = match one.phase {
            "not_followed" => "What was known then; the agent was handed none of it",
            _ => "What the agent is handed",
        };
        screen.line(Tone::Heading, heading);
        for line in self.brief.lines() {
            screen.paragraph(Tone::Plain, 2, line);
        }
    }
}
