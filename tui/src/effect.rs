//! Requests and effects of the browser: plain data.

use crate::answer::{StateTab, TimelineRow};
use crate::query::{TimelineFilter, TimelineLevel};
use forge_store::model::{Key, Timestamp};
use forge_store::store::{HistoryPosition, PageDirection};
use std::fmt;

/// A moment that can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentTarget {
    /// The newest revision.
    Head,
    /// The revision or checkpoint with this number.
    Sequence(u64),
    /// A time.
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
    /// The newest rows.
    Newest,
    /// Rows older than this position.
    Before(HistoryPosition),
    /// Rows newer than this position.
    After(HistoryPosition),
    /// Rows on both sides of this position.
    Around(HistoryPosition),
    /// The oldest rows.
    Oldest,
}

/// Landmarks that can be searched along the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LandmarkKind {
    /// A checkpoint.
    Checkpoint,
    /// A checkpoint with a tag that is not forge's own.
    Tag,
    /// A compaction.
    Compaction,
    /// A revision that changes a status.
    Status,
}

impl LandmarkKind {
    /// Its name for messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Tag => "tag",
            Self::Compaction => "compaction",
            Self::Status => "change of a status",
        }
    }
}

/// A write that a person requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRequest {
    /// Make a checkpoint of the present or of a past moment.
    Create {
        /// Its message.
        message: String,
        /// The moment of the checkpoint.
        target: MomentTarget,
    },
    /// Add tags, and remove them (`-word`).
    Tag {
        /// The checkpoint's number.
        sequence: u64,
        /// The tags.
        words: Vec<String>,
    },
    /// Create a branch.
    Branch {
        /// Its name.
        name: String,
        /// The moment where it begins.
        target: MomentTarget,
    },
    /// Restore the claims of a moment.
    Restore {
        /// The moment.
        target: MomentTarget,
    },
    /// Undo the last operation.
    Undo,
    /// Redo the last undo.
    Redo,
}

impl WriteRequest {
    /// Returns the command that does the same.
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
                let (remove, add): (Vec<_>, Vec<_>) =
                    words.iter().partition(|word| word.starts_with('-'));
                let mut command = format!("forge checkpoint tag '#{sequence}'");
                if !add.is_empty() {
                    let add: Vec<&str> = add.into_iter().map(String::as_str).collect();
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
        }
    }
}

/// Quotes a word for a shell.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The pane that an answer is for. Only the latest request of each slot is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaneSlot {
    /// Opening and writing, which come before all others. No request of this slot is dropped.
    Session,
    /// The timeline is shown.
    Page,
    /// The state.
    State,
    /// The sheet in front of the other panes.
    Sheet,
    /// The strip of activity.
    Strip,
    /// Checks whether the store has changed.
    Watch,
}

/// A request to the worker.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerRequest {
    /// Open a session (`None`: the current one).
    Open(Option<String>),
    /// Load a part of the timeline.
    Page {
        /// How much is shown.
        level: TimelineLevel,
        /// The filter.
        filter: TimelineFilter,
        /// The part.
        from: PageAnchor,
        /// The maximum number of rows in each direction.
        limit: usize,
    },
    /// Load the state.
    State {
        /// The moment.
        target: MomentTarget,
        /// The moment to compare with, whose changes are marked.
        since: Option<MomentTarget>,
        /// The tab whose entities are loaded.
        tab: StateTab,
    },
    /// Load the details of one entity.
    Detail {
        /// The moment.
        target: MomentTarget,
        /// The entity.
        key: Key,
    },
    /// Load the details of a line of the timeline.
    Moment(Box<TimelineRow>),
    /// Compare two moments.
    Compare {
        /// The earlier moment.
        from: MomentTarget,
        /// The later moment.
        to: MomentTarget,
        /// Whether it is the preview of a restore.
        preview: bool,
    },
    /// Load the data of charts up to a moment.
    Charts {
        /// The last moment.
        target: MomentTarget,
    },
    /// Count the events in this many intervals.
    Strip(usize),
    /// Find the next landmark.
    Find {
        /// The kind of landmark.
        wanted: LandmarkKind,
        /// Where the search starts.
        from: HistoryPosition,
        /// The direction of the search.
        way: PageDirection,
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
        /// The write.
        change: WriteRequest,
        /// The current time.
        now: Timestamp,
    },
    /// Write a text to a new file, which must not exist yet.
    Export {
        /// The path of the file.
        path: String,
        /// The content.
        text: String,
    },
}

impl WorkerRequest {
    /// Returns the slot of the request.
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
            Self::Detail { .. }
            | Self::Moment(_)
            | Self::Compare { .. }
            | Self::Charts { .. }
            | Self::Sessions => PaneSlot::Sheet,
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
        generation: u64,
        /// The request.
        request: Box<WorkerRequest>,
    },
    /// Copy this text to the terminal's clipboard.
    Copy(String),
    /// Suspend the process.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
}
