//! What the browser asks of the world: plain data.

use crate::answer::{StateTab, TimelineRow};
use crate::query::{TimelineFilter, TimelineLevel};
use forge_store::model::{Key, Timestamp};
use forge_store::store::{HistoryPosition, PageDirection};
use std::fmt;

/// A moment to stand at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MomentTarget {
    /// All that is recorded.
    Head,
    /// A revision or checkpoint of this number.
    Sequence(u64),
    /// A time.
    Time(Timestamp),
}

impl fmt::Display for MomentTarget {
    /// As it is written on a command line.
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
    /// The newest.
    Newest,
    /// What is older than a place.
    Before(HistoryPosition),
    /// What is newer than a place.
    After(HistoryPosition),
    /// Both sides of a place.
    Around(HistoryPosition),
    /// The oldest.
    Oldest,
}

/// What is to be found along the timeline.
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
    /// In words.
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

/// A write, as a person asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRequest {
    /// Make a checkpoint of now, or of a past moment.
    Create {
        /// What it says.
        message: String,
        /// The moment; the head if it is the head.
        target: MomentTarget,
    },
    /// Add and remove (`-word`) tags.
    Tag {
        /// The checkpoint's number.
        sequence: u64,
        /// The words.
        words: Vec<String>,
    },
    /// Begin a branch.
    Branch {
        /// Its name.
        name: String,
        /// Where.
        target: MomentTarget,
    },
    /// Make the claims what they were.
    Restore {
        /// Then.
        target: MomentTarget,
    },
    /// Take back the last operation.
    Undo,
    /// Take back the last undo.
    Redo,
}

impl WriteRequest {
    /// The command that does the same.
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

/// A word as a shell takes it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Which pane an answer is for; of one slot only the latest request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaneSlot {
    /// What comes before all others: opening and writing. Nothing here is left out.
    Session,
    /// The timeline.
    Page,
    /// The state.
    State,
    /// The sheet in front.
    Sheet,
    /// The strip of activity.
    Strip,
    /// Whether the store has moved.
    Watch,
}

/// What the worker is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerRequest {
    /// Begin with a session (`None`: the current one).
    Open(Option<String>),
    /// Load a part of the timeline.
    Page {
        /// How much is shown.
        level: TimelineLevel,
        /// What passes.
        filter: TimelineFilter,
        /// Which part.
        from: PageAnchor,
        /// At most so many rows in each direction.
        limit: usize,
    },
    /// Load the state.
    State {
        /// Then.
        target: MomentTarget,
        /// Mark what changed since then.
        since: Option<MomentTarget>,
        /// The facts of this tab.
        tab: StateTab,
    },
    /// Load all there is to say about one entity.
    Detail {
        /// Then.
        target: MomentTarget,
        /// Which.
        key: Key,
    },
    /// Load all there is to say about a line of the timeline.
    Moment(Box<TimelineRow>),
    /// Compare two moments.
    Compare {
        /// From.
        from: MomentTarget,
        /// To.
        to: MomentTarget,
        /// Whether it is asked before a restore.
        preview: bool,
    },
    /// Draw charts up to a moment.
    Charts {
        /// The moment.
        target: MomentTarget,
    },
    /// Count what happened in so many stretches.
    Strip(usize),
    /// Find the next such thing.
    Find {
        /// What.
        wanted: LandmarkKind,
        /// From there.
        from: HistoryPosition,
        /// That way.
        way: PageDirection,
    },
    /// Find a moment by what somebody typed.
    Jump {
        /// What was typed.
        text: String,
        /// Now.
        now: Timestamp,
    },
    /// List the sessions.
    Sessions,
    /// Say whether anything was written.
    Watch,
    /// Write.
    Change {
        /// What.
        change: WriteRequest,
        /// Now.
        now: Timestamp,
    },
    /// Write a text to a file that must not be there yet.
    Export {
        /// The file.
        path: String,
        /// The text.
        text: String,
    },
}

impl WorkerRequest {
    /// Which pane it is for.
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

/// What the browser asks of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum AppEffect {
    /// The worker is to do this.
    Ask {
        /// What the answer is to carry.
        generation: u64,
        /// What.
        request: Box<WorkerRequest>,
    },
    /// Put this into the terminal's clipboard.
    Copy(String),
    /// Go to the background.
    Suspend,
    /// Draw everything afresh.
    Redraw,
}
