//! The commands and events of the terminal browser.

use crate::answer::WorkerReply;
use crate::effect::LandmarkKind;
use crate::host::EditedText;
use crate::key::KeyChord;
use crate::panes::PaneFocus;
use forge_store::model::Timestamp;
use forge_store::store::PageDirection;

/// A command of the browser. Each is bound to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`default_keys` explains each")]
pub enum BrowserCommand {
    Help,
    Accept,
    Back,
    Cancel,
    Open,
    Close,
    Pane(PaneFocus),
    StepPane(isize),
    Zoom,
    Find,
    StepMatch(PageDirection),
    Filter,
    Jump,
    Level,
    Order,
    Hindsight,
    Mark,
    Diff,
    Charts,
    StepChart(PageDirection),
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
    StepChip(isize),
    ToggleChip,
    Note,
    Hypothesis,
    Question,
    Evidence { supports: bool },
    Settle { confirm: bool },
    Replay,
    ChangeSpeed(i8),
    Fold { all: bool },
    MoveRows(isize),
    MovePages(isize),
    ScrollDetail(isize),
    First,
    Last,
    Landmark(LandmarkKind, PageDirection),
    StepTab(isize),
    Refresh,
    Erase(EraseRange),
    Suspend,
    Quit,
}

/// A part of the text that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseRange {
    /// The last character.
    Character,
    /// The last word.
    Word,
    /// Everything.
    All,
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
    /// The program that runs the browser has written or shown a report.
    Reported {
        /// The number of the request.
        request_number: u64,
        /// What it did, or why it failed.
        said: Result<String, String>,
    },
    /// The current time.
    Tick(Timestamp),
    /// The worker has answered a request.
    Reply(Box<WorkerReply>),
}
