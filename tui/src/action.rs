//! Commands and events of the browser.

use crate::answer::WorkerReply;
use crate::host::EditedText;
use crate::key::KeyChord;
use forge_store::model::Timestamp;

/// What a key asks the browser to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is explained in the map of keys")]
pub enum BrowserCommand {
    Help,
    Accept,
    Back,
    Cancel,
    Open,
    Close,
    NextPane,
    PreviousPane,
    Pane1,
    Pane2,
    Pane3,
    Pane4,
    Zoom,
    Find,
    NextMatch,
    PreviousMatch,
    Filter,
    Jump,
    Level,
    Order,
    Hindsight,
    Mark,
    Diff,
    Charts,
    Sessions,
    Create,
    Tag,
    Branch,
    Restore,
    Undo,
    Redo,
    Copy,
    CopyMarkdown,
    Export,
    Report,
    Peek,
    Why,
    EvidenceSources,
    Editor,
    LongNote,
    NextChip,
    PreviousChip,
    ToggleChip,
    Note,
    Idea,
    Question,
    EvidenceFor,
    EvidenceAgainst,
    ConfirmIdea,
    RejectIdea,
    Replay,
    Faster,
    Slower,
    Fold,
    FoldAll,
    Down,
    Up,
    PageDown,
    PageUp,
    ScrollDown,
    ScrollUp,
    First,
    Last,
    NextPrompt,
    PreviousPrompt,
    NextFailure,
    PreviousFailure,
    OlderCheckpoint,
    NewerCheckpoint,
    OlderTag,
    NewerTag,
    OlderCompaction,
    NewerCompaction,
    OlderStatus,
    NewerStatus,
    NextTab,
    PreviousTab,
    NextStep,
    PreviousStep,
    Refresh,
    Erase,
    EraseWord,
    EraseAll,
    Suspend,
    Quit,
}

/// An event that the browser handles.
#[derive(Clone, Debug, PartialEq)]
pub enum BrowserAction {
    Key(KeyChord),
    /// A text was pasted.
    Paste(String),
    /// The mouse was pressed here.
    Click {
        /// Columns from the left.
        x: u16,
        /// Rows from the top.
        y: u16,
    },
    /// The wheel was turned: rows down (or up, if negative).
    Wheel(i16),
    /// The window has this size.
    Resize {
        /// Its columns.
        width: u16,
        /// Its rows.
        height: u16,
    },
    /// The terminal has the focus, or lost it.
    Focus(bool),
    /// The editor ended.
    Edited(EditedText),
    /// What the program that runs the browser did, or why it could not.
    Said(Result<String, String>),
    /// The current time.
    Tick(Timestamp),
    /// The worker has answered a request.
    Reply(Box<WorkerReply>),
}
