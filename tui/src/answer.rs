//! What comes back to the browser: plain data, made to be shown.

use crate::effect::{MomentTarget, PageAnchor, PaneSlot};
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ActivityHistogram, BranchTimeline, HistoryPosition};

/// What stands in front of a line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSign {
    /// The head.
    Head,
    /// A checkpoint somebody asked for.
    Manual,
    /// A checkpoint made by an event.
    Automatic,
    /// A checkpoint made by the clock.
    Scheduled,
    /// An agent's context was compacted.
    Compaction,
    /// A revision.
    Revision,
    /// A revision that changed the status of something.
    Status,
    /// A revision that went back to earlier claims.
    Restore,
    /// A revision of two parents.
    Merge,
    /// A fact.
    Fact,
    /// A verification that passed.
    Passed,
    /// A verification or command that failed.
    Failed,
}

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRow {
    /// Where it stands.
    pub place: HistoryPosition,
    /// The moment it names.
    pub target: MomentTarget,
    /// The branch it lies on.
    pub branch: String,
    /// What it is, in a sign.
    pub sign: RowSign,
    /// What it is, in words.
    pub title: String,
    /// The trigger of a checkpoint, the verb of a revision, the kind of a fact.
    pub by: String,
    /// Tags.
    pub tags: Vec<String>,
    /// The whole id.
    pub id: String,
    /// How much it matters, 0 to 3.
    pub weight: u8,
    /// Of a merge, the revision merged.
    pub merged: Option<u64>,
}

impl TimelineRow {
    /// Whether it is a checkpoint.
    #[must_use]
    pub const fn is_checkpoint(&self) -> bool {
        matches!(
            self.sign,
            RowSign::Manual | RowSign::Automatic | RowSign::Scheduled | RowSign::Compaction
        )
    }
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerReply {
    /// Which request it answers.
    pub generation: u64,
    /// Which pane it is for.
    pub slot: PaneSlot,
    /// The answer, or what went wrong.
    pub answer: Result<WorkerAnswer, WorkerFailure>,
}

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerFailure {
    /// What.
    pub message: String,
    /// What to do.
    pub advice: String,
    /// Whether the store is damaged.
    pub damaged: bool,
}

/// The session in short.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionOverview {
    /// Its name.
    pub name: String,
    /// The branch checked out.
    pub branch: String,
    /// Revisions and checkpoints.
    pub count: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Claims held.
    pub claims: u64,
    /// Facts.
    pub facts: u64,
    /// The earliest event.
    pub first: Option<Timestamp>,
    /// The latest.
    pub last: Option<Timestamp>,
    /// The branches.
    pub lines: Vec<BranchTimeline>,
    /// How far the store is written.
    pub position: u64,
}

/// A kind, or kinds, of what a state holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is a kind")]
pub enum StateTab {
    #[default]
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
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 12] = [
        Self::Hypotheses,
        Self::Evidence,
        Self::Beliefs,
        Self::Gaps,
        Self::Notes,
        Self::Verifications,
        Self::Commands,
        Self::Code,
        Self::Messages,
        Self::Tasks,
        Self::Measurements,
        Self::Other,
    ];

    /// What it is called.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hypotheses => "hypotheses",
            Self::Evidence => "evidence",
            Self::Beliefs => "beliefs",
            Self::Gaps => "gaps",
            Self::Notes => "notes",
            Self::Verifications => "verifications",
            Self::Commands => "commands",
            Self::Code => "code",
            Self::Messages => "messages",
            Self::Tasks => "tasks",
            Self::Measurements => "measurements",
            Self::Other => "other",
        }
    }

    /// What it shows.
    #[must_use]
    pub const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Hypotheses => &[Kind::Hypothesis],
            Self::Evidence => &[Kind::Evidence],
            Self::Beliefs => &[Kind::Belief],
            Self::Gaps => &[Kind::Gap],
            Self::Notes => &[Kind::Note],
            Self::Verifications => &[Kind::Verification],
            Self::Commands => &[Kind::Command],
            Self::Code => &[Kind::Code],
            Self::Messages => &[Kind::Message, Kind::Prompt],
            Self::Tasks => &[Kind::Task, Kind::Agent],
            Self::Measurements => &[Kind::Measurement],
            Self::Other => &[
                Kind::Dependency,
                Kind::Output,
                Kind::Item,
                Kind::Progress,
                Kind::ThreadMessage,
                Kind::Program,
                Kind::Run,
                Kind::Thread,
                Kind::Inference,
                Kind::Tool,
                Kind::Notice,
            ],
        }
    }
}

/// Since the moment stood at before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemNovelty {
    /// As it was.
    Same,
    /// New.
    New,
    /// Changed.
    Changed,
}

/// A line of the state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateItem {
    /// Which.
    pub key: Key,
    /// What it says.
    pub title: String,
    /// Its status, its exit code, who speaks.
    pub status: String,
    /// How sure somebody is of it.
    pub confidence: Option<f64>,
    /// How it is to be seen.
    pub tone: crate::theme::TextTone,
    /// How far it is indented: it rests on the one above.
    pub depth: u16,
    /// Since the moment stood at before.
    pub novelty: ItemNovelty,
    /// When it was added or happened.
    pub time: Timestamp,
}

/// The state at a moment, for one tab.
#[derive(Clone, Debug, PartialEq)]
pub struct StateView {
    /// The moment.
    pub target: MomentTarget,
    /// Its time.
    pub time: Option<Timestamp>,
    /// Its branch.
    pub branch: String,
    /// The number of its revision.
    pub revision: Option<u64>,
    /// The tab.
    pub tab: StateTab,
    /// Its lines.
    pub items: Vec<StateItem>,
    /// How many claims each tab has; of facts nothing is counted.
    pub counts: Vec<(StateTab, usize)>,
    /// What is gone since the moment stood at before.
    pub gone: Vec<Key>,
    /// How many claims changed since, in each tab.
    pub moved: Vec<(StateTab, usize)>,
}

/// A line of a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetLine {
    /// How it is to be seen.
    pub tone: crate::theme::TextTone,
    /// How far it is indented.
    pub indent: u16,
    /// What it says; may be longer than the window, is one line.
    pub text: String,
}

/// A part of a sheet that folds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetSection {
    /// Its title.
    pub title: String,
    /// Its lines.
    pub lines: Vec<SheetLine>,
    /// Whether they are hidden.
    pub folded: bool,
}

/// A text to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextSheet {
    /// What it is about.
    pub title: String,
    /// The command that shows the same.
    pub command: String,
    /// What is copied.
    pub id: String,
    /// Its parts.
    pub sections: Vec<SheetSection>,
}

/// A hypothesis as a line in a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfidenceSeries {
    /// Its id.
    pub id: String,
    /// What it says.
    pub title: String,
    /// Its status at the last moment.
    pub status: String,
    /// Times and values from 0 to 1.
    pub points: Vec<(Timestamp, f64)>,
}

/// What charts are drawn of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartValues {
    /// The first moment.
    pub from: Timestamp,
    /// The last.
    pub to: Timestamp,
    /// Confidence of hypotheses.
    pub confidence: Vec<ConfidenceSeries>,
    /// How much happened.
    pub activity: ActivityHistogram,
}

/// How much happened over the whole session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivityStrip {
    /// Its first moment.
    pub from: Timestamp,
    /// Its last.
    pub to: Timestamp,
    /// What happened between them.
    pub activity: ActivityHistogram,
}

/// A session to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// What there is in it.
    pub about: String,
    /// Whether it is the one shown.
    pub current: bool,
}

/// The answers.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerAnswer {
    /// The session.
    Opened(Box<SessionOverview>),
    /// There is no session.
    NoSession,
    /// A part of the timeline.
    Page {
        /// Which.
        from: PageAnchor,
        /// The rows, newest first.
        rows: Vec<TimelineRow>,
        /// Where older ones begin.
        older: Option<HistoryPosition>,
        /// Where newer ones begin.
        newer: Option<HistoryPosition>,
    },
    /// The state.
    State(Box<StateView>),
    /// A sheet.
    Sheet(Box<TextSheet>),
    /// What a restore would do.
    Preview {
        /// To this moment.
        target: MomentTarget,
        /// What would change.
        sheet: Box<TextSheet>,
        /// Whether anything would.
        changes: bool,
    },
    /// Charts.
    Charts(Box<ChartValues>),
    /// The strip.
    Strip(Box<ActivityStrip>),
    /// A place to go to; `None`: there is none that way.
    Found {
        /// Where.
        place: Option<HistoryPosition>,
        /// What was looked for.
        what: String,
    },
    /// The sessions.
    Sessions(Vec<SessionRow>),
    /// How far the store is written.
    Watched(u64),
    /// What was done, and the command that does the same.
    Done {
        /// What.
        said: String,
        /// The command; empty if there is none.
        command: String,
    },
}

/// A field as one line of text.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::List(items) => items.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Value::Map(_) => {
            if let Some(text) = forge_store::model::TextRef::from_value(value) {
                return format!("{}… ({} bytes)", text.preview, text.bytes);
            }
            serde_json::to_string(value).unwrap_or_default()
        }
    }
}
