//! The commands and events of the terminal browser.

use crate::answer::WorkerReply;
use crate::host::EditedText;
use crate::key::KeyChord;
use forge_store::model::Timestamp;

/// A command of the browser. Each is bound to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`default_keys` explains each")]
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
    /// A mouse button was pressed at this cell of the terminal.
    Click {
        /// The column, from 0 at the left.
        x: u16,
        /// The row, from 0 at the top.
        y: u16,
    },
    /// The wheel was turned: scroll down by this number of rows (up, if negative).
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
    /// The program that runs the browser has performed an effect: what it did, or why it failed.
    Said(Result<String, String>),
    /// The current time.
    Tick(Timestamp),
    /// The worker has answered a request.
    Reply(Box<WorkerReply>),
}
