//! Requests and effects of the browser: plain data.

use crate::answer::{StateTab, TimelineRow};
use crate::query::{TimelineFilter, TimelineLevel};
use forge_store::model::{Key, Timestamp};
use forge_store::shell::quoted;
use forge_store::store::{HistoryPosition, PageDirection};
use std::fmt;

/// A moment that can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentTarget {
    /// The newest revision.
    Head,
    /// The revision or checkpoint with this number.
    Sequence(u64),
    Time(Timestamp),
}

impl fmt::Display for MomentTarget {
    /// Formats the moment as on a command line.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => out.write_str("HEAD"),
            Self::Sequence(sequence) => write!(out, "#{sequence}"),
            Self::Time(time) => write!(out, "{time}"),
        }
    }
}

/// A part of the timeline to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAnchor {
    Newest,
    /// Rows older than this position.
    Before(HistoryPosition),
    /// Rows newer than this position.
    After(HistoryPosition),
    /// Rows on both sides of this position.
    Around(HistoryPosition),
    Oldest,
}

/// Landmarks that can be searched along the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandmarkKind {
    Checkpoint,
    /// A checkpoint with a tag that is not forge's own.
    Tag,
    Compaction,
    /// A revision that changes a status.
    Status,
    Prompt,
    /// A check or command that failed.
    Failure,
}

impl LandmarkKind {
    /// Whether it is a fact, not a revision or a checkpoint.
    #[must_use]
    pub const fn is_fact(self) -> bool {
        matches!(self, Self::Prompt | Self::Failure)
    }

    /// Returns its name for messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Tag => "tag",
            Self::Compaction => "compaction",
            Self::Status => "change of a claim",
            Self::Prompt => "prompt",
            Self::Failure => "failure",
        }
    }
}

/// A write that a person requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRequest {
    /// Make a checkpoint of the present or of a past moment.
    Create {
        message: String,
        /// The moment of the checkpoint.
        target: MomentTarget,
    },
    /// Add tags to a checkpoint, or remove them (`-word` removes one).
    Tag {
        /// The checkpoint's number.
        sequence: u64,
        /// The tags.
        words: Vec<String>,
    },
    Branch {
        name: String,
        /// The moment at which the branch begins.
        target: MomentTarget,
    },
    /// Restore the claims of a moment.
    Restore { target: MomentTarget },
    /// Undo the last operation.
    Undo,
    /// Redo the last undo.
    Redo,
    /// Add a note.
    Note(String),
    /// State a hypothesis.
    Hypothesis(String),
    /// Open a gap.
    Gap(String),
    /// Add evidence for or against a hypothesis.
    Evidence {
        /// The id of the hypothesis.
        hypothesis: String,
        /// How strongly the evidence speaks for the hypothesis, in hundredths. Negative: against
        /// it.
        hundredths: i8,
        /// What the evidence says.
        text: String,
    },
    /// Confirm or reject a hypothesis.
    Settle {
        /// The id of the hypothesis.
        hypothesis: String,
        confirm: bool,
        /// The reason; may be empty.
        reason: String,
    },
}

impl WriteRequest {
    /// Returns the forge command that does the same.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Create { message, target: MomentTarget::Head } => {
                format!("forge checkpoint create {}", quoted(message))
            }
            Self::Create { message, target } => {
                let target = quoted(&target.to_string());
                format!("forge checkpoint create {} --at {target}", quoted(message))
            }
            Self::Tag { sequence, words } => {
                let words = words.iter().map(String::as_str);
                let (remove, add): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
                let mut command = format!("forge checkpoint tag '#{sequence}'");
                if !add.is_empty() {
                    command.push_str(&format!(" --add {}", quoted(&add.join(","))));
                }
                if !remove.is_empty() {
                    let remove: Vec<&str> =
                        remove.into_iter().map(|word| word.trim_start_matches('-')).collect();
                    command.push_str(&format!(" --remove {}", quoted(&remove.join(","))));
                }
                command
            }
            Self::Branch { name, target } => {
                let target = quoted(&target.to_string());
                format!("forge branch create {} --from {target}", quoted(name))
            }
            Self::Restore { target } => {
                format!("forge checkpoint restore {}", quoted(&target.to_string()))
            }
            Self::Undo => "forge undo".to_owned(),
            Self::Redo => "forge redo".to_owned(),
            Self::Note(text) => format!("forge note add {}", quoted(text)),
            Self::Hypothesis(text) => format!("forge hypothesis add {}", quoted(text)),
            Self::Gap(text) => format!("forge gap add {}", quoted(text)),
            Self::Evidence { hypothesis, hundredths, text } => {
                let strength = f64::from(*hundredths) / 100.0;
                format!(
                    "forge evidence add {} --hypothesis {} --strength={strength}",
                    quoted(text),
                    quoted(hypothesis)
                )
            }
            Self::Settle { hypothesis, confirm, reason } => {
                let verb = if *confirm { "confirm" } else { "reject" };
                let reason = if reason.is_empty() {
                    String::new()
                } else {
                    format!(" --reason {}", quoted(reason))
                };
                format!("forge hypothesis {verb} {}{reason}", quoted(hypothesis))
            }
        }
    }
}

/// The part of the browser that an answer is for. Of the waiting requests for a slot, only the
/// latest is answered, except in the slot `Session`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaneSlot {
    /// The session as a whole: opening, searching, writing, exporting. These requests come before
    /// all others, and each is answered.
    Session,
    /// The rows of the timeline.
    Page,
    State,
    Detail,
    /// The sheet in front of the other panes.
    Sheet,
    Strip,
    /// Checks whether the store has changed.
    Watch,
    /// The brief of the selected moment.
    Brief,
    Story,
}

impl PaneSlot {
    /// Returns whether the work for its requests grows with the session. A second worker does it.
    #[must_use]
    pub const fn is_slow(self) -> bool {
        matches!(self, Self::Brief | Self::Story)
    }
}

/// What a sheet is about.
#[derive(Clone, Debug, PartialEq)]
pub enum SheetOf {
    /// A line of the timeline.
    Row(Box<TimelineRow>),
    /// An entity at a moment.
    Entity {
        target: MomentTarget,
        /// The entity.
        key: Key,
    },
    /// The difference between two moments.
    Difference {
        /// One moment.
        from: MomentTarget,
        /// The other moment.
        to: MomentTarget,
    },
    /// What a claim rests on, and what rests on it.
    Why {
        target: MomentTarget,
        /// The claim.
        key: Key,
    },
    /// The evidence about a hypothesis, with the commands that showed it.
    EvidenceSources {
        target: MomentTarget,
        /// The id of the hypothesis.
        hypothesis: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum WorkerRequest {
    /// Open a session (`None`: the current one).
    Open(Option<String>),
    /// Load a part of the timeline.
    Page {
        /// How much is shown.
        level: TimelineLevel,
        filter: TimelineFilter,
        /// The part.
        from: PageAnchor,
        /// The maximum number of rows in each direction.
        limit: usize,
    },
    /// Load the state.
    State {
        target: MomentTarget,
        /// The moment since which changes are marked.
        since: Option<MomentTarget>,
        /// The moment that the person marked. One line says what changed since then.
        mark: Option<MomentTarget>,
        /// The tab whose entities are loaded.
        tab: StateTab,
    },
    /// Load a sheet.
    Sheet {
        of: SheetOf,
        /// Whether it opens in front of the other panes. If not, it is for the pane Detail.
        whole: bool,
    },
    /// Read the story of a session, and the confidence of its hypotheses over time.
    Story {
        /// The id of the session.
        session: String,
        /// How many revisions and checkpoints are read, counted from the last one.
        revisions: usize,
    },
    /// Read the brief of a moment.
    Brief {
        /// The id of the session.
        session: String,
        target: MomentTarget,
    },
    /// Find out what a restore of this moment would change.
    RestorePlan(MomentTarget),
    /// Find out what an undo or a redo would do.
    UndoPlan { redo: bool },
    /// Count the events in this many intervals.
    Strip(usize),
    /// Find the next landmark.
    Find {
        wanted: LandmarkKind,
        /// Where the search starts.
        from: HistoryPosition,
        /// The direction of the search.
        direction: PageDirection,
    },
    /// Find the moment for a typed text.
    Jump {
        /// The typed text.
        text: String,
        /// The current time.
        now: Timestamp,
    },
    /// List the sessions.
    Sessions,
    /// Check whether anything was written.
    Watch,
    /// Execute a write.
    Change {
        change: WriteRequest,
        /// The current time.
        now: Timestamp,
    },
    /// Write a text to a new file, which must not exist yet.
    Export {
        path: String,
        /// The content.
        text: String,
    },
}

impl WorkerRequest {
    #[must_use]
    pub const fn slot(&self) -> PaneSlot {
        match self {
            Self::Open(_)
            | Self::Change { .. }
            | Self::Export { .. }
            | Self::Find { .. }
            | Self::Jump { .. } => PaneSlot::Session,
            Self::Page { .. } => PaneSlot::Page,
            Self::State { .. } => PaneSlot::State,
            Self::Sheet { whole: true, .. }
            | Self::RestorePlan(_)
            | Self::UndoPlan { .. }
            | Self::Sessions => PaneSlot::Sheet,
            Self::Sheet { whole: false, .. } => PaneSlot::Detail,
            Self::Story { .. } => PaneSlot::Story,
            Self::Brief { .. } => PaneSlot::Brief,
            Self::Strip(_) => PaneSlot::Strip,
            Self::Watch => PaneSlot::Watch,
        }
    }
}

/// An effect that the caller of the browser executes.
#[derive(Clone, Debug, PartialEq)]
pub enum AppEffect {
    /// Send a request to the worker.
    Ask {
        /// The number that the answer must have.
        request_number: u64,
        request: Box<WorkerRequest>,
    },
    /// Copy this text to the terminal's clipboard.
    Copy(String),
    /// Ring the bell, and show this text as a notification of the terminal.
    Notify(String),
    /// Let the person continue this text in an editor.
    Edit(String),
    /// Write the report of a session, or show it.
    Report {
        /// The number that the answer must have.
        request_number: u64,
        /// The id of the session.
        session: String,
        /// The path of the file; `None` to show it in a web browser.
        path: Option<String>,
    },
    /// Suspend the process.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
}
