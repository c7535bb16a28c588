//! The answers of the worker: plain data, prepared for display.

use crate::effect::{MomentTarget, PageAnchor, PaneSlot};
use crate::story_view::{StoryLine, StoryView};
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ActivityHistogram, BranchTimeline, HistoryPosition, SessionBrief};

/// The sign before a line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSign {
    Head,
    /// A checkpoint that a person or agent asked for.
    Manual,
    /// A checkpoint that an event triggered.
    Automatic,
    /// A checkpoint that was made by the clock.
    Scheduled,
    /// An agent's context was compacted.
    Compaction,
    Revision,
    /// A revision that changed the status of something.
    Status,
    /// A revision that restored earlier claims.
    Restore,
    /// A revision with two parents.
    Merge,
    Fact,
    /// A verification that passed.
    Passed,
    /// A verification or command that failed.
    Failed,
}

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRow {
    pub place: HistoryPosition,
    /// The moment that it selects.
    pub target: MomentTarget,
    pub branch: String,
    pub sign: RowSign,
    pub title: String,
    /// The trigger of a checkpoint, the verb of a revision, the kind of a fact.
    pub by: String,
    pub tags: Vec<String>,
    /// The full id.
    pub id: String,
    /// How important it is, from 0 to 3.
    pub weight: u8,
    /// For a merge, the merged revision.
    pub merged: Option<u64>,
    /// The line of the story that the row shows; `None` outside of the story.
    pub story: Option<Box<StoryLine>>,
}

impl TimelineRow {
    /// Creates a row without content at this position.
    #[must_use]
    pub const fn new(place: HistoryPosition, target: MomentTarget, branch: String) -> Self {
        Self {
            place,
            target,
            branch,
            sign: RowSign::Fact,
            title: String::new(),
            by: String::new(),
            tags: Vec::new(),
            id: String::new(),
            weight: 0,
            merged: None,
            story: None,
        }
    }

    #[must_use]
    pub const fn is_checkpoint(&self) -> bool {
        matches!(
            self.sign,
            RowSign::Manual | RowSign::Automatic | RowSign::Scheduled | RowSign::Compaction
        )
    }
}

/// An answer of the worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerReply {
    /// The number of the request that it answers.
    pub request_number: u64,
    pub slot: PaneSlot,
    /// The answer, or the error.
    pub answer: Result<WorkerAnswer, WorkerFailure>,
}

/// An error, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerFailure {
    /// The error message.
    pub message: String,
    /// What the user can do; empty if the message says it.
    pub advice: String,
    /// Whether the store is damaged.
    pub damaged: bool,
}

impl WorkerFailure {
    /// Returns the line below the message; empty without advice.
    #[must_use]
    pub fn advice_line(&self) -> String {
        if self.advice.is_empty() {
            return String::new();
        }
        format!("What to do: {}.", self.advice)
    }
}

/// A summary of the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionOverview {
    pub id: String,
    pub name: String,
    /// The current branch.
    pub branch: String,
    /// The number of revisions and checkpoints.
    pub count: u64,
    pub checkpoints: u64,
    /// The number of claims at the head.
    pub claims: u64,
    pub facts: u64,
    /// The time of the earliest event.
    pub first: Option<Timestamp>,
    /// The time of the latest event.
    pub last: Option<Timestamp>,
    pub lines: Vec<BranchTimeline>,
    /// The position of the store, which grows with every write.
    pub position: u64,
}

/// A tab of the pane Held: the brief, or entities of some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is a kind")]
pub enum StateTab {
    #[default]
    Brief,
    Hypotheses,
    Evidence,
    Beliefs,
    Gaps,
    Notes,
    Verifications,
    Commands,
    Code,
    Messages,
    Tasks,
    Measurements,
    Other,
}

impl StateTab {
    /// All tabs, in display order: the title and the kinds of each.
    pub const ALL: [(Self, &'static str, &'static [Kind]); 13] = {
        use Kind::*;
        [
            (Self::Brief, "brief", &[]),
            (Self::Hypotheses, "hypotheses", &[Hypothesis]),
            (Self::Evidence, "evidence", &[Evidence]),
            (Self::Beliefs, "beliefs", &[Belief]),
            (Self::Gaps, "gaps", &[Gap]),
            (Self::Notes, "notes", &[Note]),
            (Self::Verifications, "verifications", &[Verification]),
            (Self::Commands, "commands", &[Command]),
            (Self::Code, "code", &[Code]),
            (Self::Messages, "messages", &[Message, Prompt]),
            (Self::Tasks, "tasks", &[Task, Agent]),
            (Self::Measurements, "measurements", &[Measurement]),
            (
                Self::Other,
                "other",
                &[
                    Dependency, Output, Item, Progress, ThreadMessage, Program, Run, Thread,
                    GraphStep, Channel, ChannelElement, MemoryItem, GraphWrite, Inference, Tool,
                    Notice,
                ],
            ),
        ]
    };

    /// Returns its title.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the kinds that it shows.
    #[must_use]
    pub const fn kinds(self) -> &'static [Kind] {
        Self::ALL[self as usize].2
    }
}

/// How an entity changed since the moment that was selected before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemNovelty {
    /// Unchanged.
    Same,
    New,
    Changed,
}

/// A line of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateItem {
    /// The entity.
    pub key: Key,
    /// Its text.
    pub title: String,
    /// Its status, exit code or role.
    pub status: String,
    /// Its confidence, from 0 to 1, if it has one.
    pub confidence: Option<f64>,
    pub tone: crate::theme::TextTone,
    /// The depth of a belief in the tree of beliefs, at most 8: a belief is below one that it rests
    /// on. 0 for other entities.
    pub depth: u16,
    /// How it changed since the moment that was selected before.
    pub novelty: ItemNovelty,
    /// When it was added, or when it happened.
    pub time: Timestamp,
}

/// The state at a moment, for one tab.
#[derive(Clone, Debug, PartialEq)]
pub struct StateView {
    pub target: MomentTarget,
    pub time: Option<Timestamp>,
    pub branch: String,
    pub revision: Option<u64>,
    pub tab: StateTab,
    /// Its lines.
    pub items: Vec<StateItem>,
    /// How many lines are left out at the end, without the facts that were not read.
    pub more: usize,
    /// The number of claims in each tab; facts are not counted.
    pub counts: Vec<(StateTab, usize)>,
    /// The number of claims in each tab that changed since the moment that was selected before.
    pub moved: Vec<(StateTab, usize)>,
    /// What changed between the mark and this moment, in one line; empty without a mark.
    pub since_mark: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetLine {
    /// Its indentation.
    pub indent: u16,
    /// Its parts, each with its tone. It may be longer than the window is wide.
    pub parts: Vec<(crate::theme::TextTone, String)>,
}

/// A section of a sheet, which can be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetSection {
    pub title: String,
    pub lines: Vec<SheetLine>,
    /// Whether the lines are hidden.
    pub folded: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSheet {
    pub title: String,
    /// The forge command that shows the same.
    pub command: String,
    /// The id that is copied to the clipboard.
    pub id: String,
    pub sections: Vec<SheetSection>,
}

/// A change of the confidence or status of a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfidencePoint {
    /// The time of the change.
    pub at: Timestamp,
    /// The revision that made the change.
    pub sequence: u64,
    /// The confidence from then on, from 0 to 1.
    pub value: f64,
    /// The status from then on.
    pub status: String,
}

/// The confidence of a hypothesis over time, for a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfidenceSeries {
    pub id: String,
    /// The text of the hypothesis.
    pub title: String,
    /// Its status at the last moment.
    pub status: String,
    /// The changes of its confidence or status, oldest first.
    pub points: Vec<ConfidencePoint>,
}

impl ConfidenceSeries {
    /// Returns the confidence and the status at a time; `None` before the hypothesis was stated.
    #[must_use]
    pub fn at(&self, time: Timestamp) -> Option<&ConfidencePoint> {
        self.points.iter().rev().find(|point| point.at <= time)
    }

    /// Returns the change that settled the hypothesis, if it is settled.
    #[must_use]
    pub fn settled(&self) -> Option<&ConfidencePoint> {
        let is_open = |point: &ConfidencePoint| !is_settled(&point.status);
        let last_open = self.points.iter().rposition(is_open);
        self.points.get(last_open.map_or(0, |place| place + 1))
    }
}

/// Whether a hypothesis with this status is settled: neither active nor under test.
fn is_settled(status: &str) -> bool {
    matches!(status, "confirmed" | "rejected" | "archived")
}

/// The number of events over time, for the whole session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityStrip {
    /// The first moment of the session.
    pub from: Timestamp,
    /// The last moment of the session.
    pub to: Timestamp,
    /// The number of events between them.
    pub activity: ActivityHistogram,
}

/// An entry in the list of sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub name: String,
    pub id: String,
    /// A summary of its content.
    pub about: String,
    /// What is not pushed to a remote; empty if nothing is known to be missing there.
    pub unpushed: String,
    /// Whether it is the session that is shown.
    pub current: bool,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerAnswer {
    Opened(Box<SessionOverview>),
    /// There is no session in the store.
    NoSession,
    /// A part of the timeline.
    Page {
        /// The requested part.
        from: PageAnchor,
        /// The rows, newest first.
        rows: Vec<TimelineRow>,
        /// Where older rows begin, if there are any.
        older: Option<HistoryPosition>,
        /// Where newer rows begin, if there are any.
        newer: Option<HistoryPosition>,
    },
    /// The state at a moment.
    State(Box<StateView>),
    /// A sheet for the pane that requested it.
    Sheet(Box<TextSheet>),
    /// What a restore would change.
    RestorePlan {
        /// The moment to restore.
        target: MomentTarget,
        /// The changes; `None` if there are none.
        sheet: Option<Box<TextSheet>>,
    },
    Story(Box<StoryView>),
    /// The brief of a moment.
    Brief {
        target: MomentTarget,
        brief: Box<SessionBrief>,
    },
    /// What an undo or a redo would do.
    UndoPlan {
        redo: bool,
        /// The operation; `None` if there is nothing to undo or redo.
        sheet: Option<Box<TextSheet>>,
    },
    /// The data of the activity strip.
    Strip(Box<ActivityStrip>),
    /// The result of a search for a moment.
    Found {
        /// The position that was found, and the moment to select there; `None` if none was found.
        place: Option<(HistoryPosition, MomentTarget)>,
        /// A message: what was found, or that nothing was found.
        what: String,
    },
    /// The list of sessions.
    Sessions {
        /// The sessions, the latest first.
        rows: Vec<SessionRow>,
        /// For each remote to which something is not pushed: what that is.
        unpushed: Vec<String>,
    },
    /// The position of the store, which grows with every write.
    Watched(u64),
    /// A write is done.
    Done {
        /// A message about what was done.
        message: String,
        /// The command that does the same; empty if there is none.
        command: String,
    },
}

/// Formats a field as text. A text keeps its line breaks; a long one is shown as its beginning.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Value::List(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Value::Map(_) => {
            if let Some(text) = forge_store::model::TextRef::from_value(value) {
                return format!("{}… ({} bytes)", text.preview, text.bytes);
            }
            serde_json::to_string(value).unwrap_or_default()
        }
    }
}

/// Formats a field like [`text_of`]; a confidence or strength has two decimals.
#[must_use]
pub fn field_text(field: &str, value: &Value) -> String {
    match value {
        Value::Float(share) if matches!(field, "confidence" | "strength") => format!("{share:.2}"),
        other => text_of(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_state_tabs_is_that_of_their_table() {
        for (place, (tab, word, _)) in StateTab::ALL.iter().enumerate() {
            assert_eq!((*tab as usize, tab.word()), (place, *word));
        }
    }
}
