//! The default key bindings.

use crate::action::{BrowserCommand as Command, EraseRange};
use crate::effect::LandmarkKind;
use crate::keymap::KeyMode;
use crate::panes::PaneFocus;
use Command::{
    Accept, Back, Branch, Cancel, ChangeSpeed, Close, CopyMarkdown, Create, Diff, Editor, Erase,
    Evidence, EvidenceSources, Export, Filter, Find, First, Fold, Help, Hindsight, Hypothesis,
    Jump, Landmark, Last, Level, LongNote, Mark, MovePages, MoveRows, Note, Open, Order, Pane,
    Peek, Question, Quit, Redo, Refresh, Report, Restore, ScrollDetail, Settle, StepChart,
    StepChip, StepMatch, StepPane, StepTab, Suspend, ToggleChip, Undo, Why, Zoom,
};
use KeyMode::{
    Charts, Choose, Confirm, Detail, Found, Held, Input, Replay, Sessions, Sheet, Story, Time,
};
use LandmarkKind::{Checkpoint, Compaction, Failure, Prompt, Status, Tag};
use PageDirection::{Newer, Older};
use forge_store::store::PageDirection;

/// The panes of the main screen.
pub(crate) const BROWSE: &[KeyMode] = &[Story, Found, Detail, Held, Time];
/// The modes in which claims can be added.
const WRITE: &[KeyMode] = &[Story, Found, Detail, Held, Time, Charts];
/// The modes whose selection has an id.
const LISTS: &[KeyMode] = &[Story, Found, Held, Sheet, Sessions];
/// The modes that show something and wait for no answer.
const OPENING: &[KeyMode] = &[Story, Found, Detail, Held, Time, Sheet, Charts, Sessions];
/// The modes with something that moves up and down.
const MOVING: &[KeyMode] =
    &[Story, Found, Detail, Held, Time, Sheet, Charts, Sessions, Confirm, Choose];
/// The modes that move by pages.
const PAGING: &[KeyMode] = &[Story, Found, Detail, Held, Sheet, Sessions, Confirm];
/// The modes that have a beginning and an end to go to.
const ENDS: &[KeyMode] = &[Story, Found, Detail, Held, Time, Sheet, Charts, Sessions, Confirm];
/// The modes that wait for an answer.
const ASKING: &[KeyMode] = &[Input, Confirm, Choose];
/// The modes that step along the changes of hypotheses.
const STEPPING: &[KeyMode] = &[Time, Charts];

/// A command, its name in the settings, its keys, its modes, what it does, and a word for the
/// bottom line.
pub(crate) type DefaultBinding =
    (Command, &'static str, &'static str, &'static [KeyMode], &'static str, &'static str);

/// All default bindings. Those with a word for the bottom line are shown there, in this order, as
/// far as there is room.
pub(crate) const DEFAULTS: &[DefaultBinding] = &[
    (Accept, "accept", "<enter>", ASKING, "do it", "do it"),
    (Cancel, "cancel", "<esc> <c-c>", ASKING, "leave it", "leave it"),
    (Open, "open", "<enter>", OPENING, "unfold, open whole, or choose", "open"),
    (StepPane(1), "next-pane", "<tab>", BROWSE, "to the next pane", "pane"),
    (StepMatch(Newer), "next-match", "n", &[Found], "to the next match", "next"),
    (StepMatch(Older), "previous-match", "N", &[Found], "to the match before", "before"),
    (Find, "find", "/", BROWSE, "find in what is listed", "find"),
    (Jump, "jump", "t :", BROWSE, "go to a moment by typing it", "go to"),
    (Mark, "mark", "m", BROWSE, "mark this moment to compare with", "mark"),
    (
        Diff,
        "diff",
        "d",
        BROWSE,
        "show the difference to the mark, else to the moment before",
        "diff",
    ),
    (Command::Charts, "charts", "c", BROWSE, "show the charts in full", "charts"),
    (
        StepChart(Newer),
        "next-step",
        "l <right>",
        STEPPING,
        "to the next change of a hypothesis",
        "next",
    ),
    (StepChart(Older), "previous-step", "h <left>", STEPPING, "to the change before", "before"),
    (Fold { all: false }, "draw", "<space>", STEPPING, "draw or hide this hypothesis", "draw"),
    (
        Fold { all: true },
        "draw-all",
        "z",
        &[Charts],
        "draw or hide the settled hypotheses",
        "active",
    ),
    (Fold { all: false }, "fold", "<space> x", &[Sheet], "fold or unfold a section", "fold"),
    (Fold { all: true }, "fold-all", "z", &[Sheet], "fold or unfold all sections", ""),
    (Why, "why", "w", WRITE, "why: what the selected claim rests on, and what rests on it", "why"),
    (Level, "level", "v", BROWSE, "the story, every revision, everything", "level"),
    (
        Evidence { supports: true },
        "evidence-for",
        "+",
        WRITE,
        "evidence for the selected hypothesis: .7 what it says",
        "evidence",
    ),
    (Evidence { supports: false }, "evidence-against", "-", WRITE, "evidence against it", ""),
    (
        EvidenceSources,
        "evidence-sources",
        "E",
        WRITE,
        "the evidence about the selected hypothesis, with the command that showed it",
        "",
    ),
    (Note, "note", "n", &[Story, Detail, Held, Time, Charts], "add a note", "note"),
    (LongNote, "long-note", "e", WRITE, "write a note in $EDITOR", ""),
    (Hypothesis, "idea", "i", WRITE, "state a hypothesis", ""),
    (Question, "question", "Q", WRITE, "open a question", ""),
    (Settle { confirm: true }, "confirm", "C", WRITE, "confirm the selected hypothesis", ""),
    (Settle { confirm: false }, "reject", "!", WRITE, "reject it, with a reason", ""),
    (
        Command::Replay,
        "play",
        "p",
        &[Story, Found, Detail, Held, Time, Charts],
        "replay the session from here",
        "play",
    ),
    (ChangeSpeed(1), "faster", "+ <right>", &[Replay], "faster", "faster"),
    (ChangeSpeed(-1), "slower", "- <left>", &[Replay], "slower", "slower"),
    (Back, "stop", "p <space> <esc> q <enter>", &[Replay], "stop", "stop"),
    (Create, "create", "a", BROWSE, "make a checkpoint", ""),
    (Command::Tag, "tag", "T", BROWSE, "tag this checkpoint", ""),
    (Branch, "branch", "b", BROWSE, "begin a branch here", ""),
    (Restore, "restore", "R", BROWSE, "restore the claims of this moment", ""),
    (Undo, "undo", "u", BROWSE, "undo the last operation, which it names first", "undo"),
    (Redo, "redo", "U", BROWSE, "redo the last undo", ""),
    (Command::Sessions, "sessions", "s", BROWSE, "choose a session", "sessions"),
    (Filter, "filter", "f", BROWSE, "list only what has these words, kinds, tags or times", ""),
    (Order, "order", "o", BROWSE, "newest at the top, or at the bottom", ""),
    (Hindsight, "hindsight", "H", BROWSE, "hide or show what came after the selection", ""),
    (Zoom, "zoom", "z", BROWSE, "show only this pane, or all panes again", ""),
    (Command::Copy, "copy", "y", LISTS, "copy the id", ""),
    (
        CopyMarkdown,
        "copy-markdown",
        "Y",
        OPENING,
        "copy the details, or the page in front, as Markdown",
        "",
    ),
    (
        Export,
        "export",
        "S",
        OPENING,
        "write this view to a file, or the report: NAME.html, NAME.md",
        "",
    ),
    (Report, "report", "O", BROWSE, "show the report in a web browser", ""),
    (
        Peek,
        "peek",
        "<space>",
        &[Story, Found, Detail, Held],
        "open the selection whole, and leave what is folded",
        "",
    ),
    (MoveRows(1), "down", "j <down> <c-n>", MOVING, "down", ""),
    (MoveRows(-1), "up", "k <up> <c-p>", MOVING, "up", ""),
    (MovePages(1), "page-down", "<pgdn> <c-f> <c-d>", PAGING, "a page down", ""),
    (MovePages(-1), "page-up", "<pgup> <c-b> <c-u>", PAGING, "a page up", ""),
    (ScrollDetail(1), "scroll-down", "<c-e>", BROWSE, "scroll the details down", ""),
    (ScrollDetail(-1), "scroll-up", "<c-y>", BROWSE, "scroll the details up", ""),
    (First, "first", "g <home>", ENDS, "to the beginning", ""),
    (
        Last,
        "last",
        "G <end>",
        ENDS,
        "to the end; in the story to the head, which follows new writes",
        "",
    ),
    (Landmark(Prompt, Newer), "next-prompt", "J", BROWSE, "to the next prompt", ""),
    (Landmark(Prompt, Older), "previous-prompt", "K", BROWSE, "to the prompt before", ""),
    (Landmark(Status, Newer), "newer-status", "}", BROWSE, "to the next change of a claim", ""),
    (Landmark(Status, Older), "older-status", "{", BROWSE, "to the previous change of a claim", ""),
    (Landmark(Checkpoint, Newer), "newer-checkpoint", "]", BROWSE, "to the next checkpoint", ""),
    (Landmark(Checkpoint, Older), "older-checkpoint", "[", BROWSE, "to the checkpoint before", ""),
    (Landmark(Tag, Newer), "newer-tag", ")", BROWSE, "to the next tag", ""),
    (Landmark(Tag, Older), "older-tag", "(", BROWSE, "to the tag before", ""),
    (Landmark(Compaction, Newer), "newer-compaction", ">", BROWSE, "to the next compaction", ""),
    (
        Landmark(Compaction, Older),
        "older-compaction",
        "<lt>",
        BROWSE,
        "to the compaction before",
        "",
    ),
    (Landmark(Failure, Newer), "next-failure", "x", BROWSE, "to the next failure", ""),
    (Landmark(Failure, Older), "previous-failure", "X", BROWSE, "to the failure before", ""),
    (
        StepTab(1),
        "next-tab",
        "l <right>",
        &[Story, Found, Detail, Held],
        "the next kind of what was held",
        "",
    ),
    (StepTab(-1), "previous-tab", "h <left>", &[Story, Found, Detail, Held], "the kind before", ""),
    (StepPane(-1), "previous-pane", "<s-tab>", BROWSE, "to the pane before", ""),
    (Pane(PaneFocus::Story), "pane-story", "1", BROWSE, "to Story", ""),
    (Pane(PaneFocus::Detail), "pane-detail", "2", BROWSE, "to Detail", ""),
    (Pane(PaneFocus::Held), "pane-held", "3", BROWSE, "to Held", ""),
    (Pane(PaneFocus::Time), "pane-time", "4", BROWSE, "to Time", ""),
    (Refresh, "refresh", "r <c-l>", OPENING, "reload and redraw", ""),
    (
        Erase(EraseRange::Character),
        "erase",
        "<backspace> <c-h>",
        &[Input, Choose],
        "delete a character",
        "",
    ),
    (Erase(EraseRange::Word), "erase-word", "<c-w>", &[Input, Choose], "delete a word", ""),
    (Erase(EraseRange::All), "erase-all", "<c-u>", &[Input, Choose], "begin again", ""),
    (Editor, "editor", "<c-e>", &[Input], "go on writing this text in $EDITOR", "$EDITOR"),
    (StepChip(1), "next-chip", "<right>", &[Input], "to the next chip of the filter", ""),
    (StepChip(-1), "previous-chip", "<left>", &[Input], "to the chip before", ""),
    (ToggleChip, "chip", "<tab>", &[Input], "switch the chip on or off", ""),
    (Accept, "yes", "y", &[Confirm], "yes", "yes"),
    (Cancel, "no", "n q", &[Confirm], "no", "no"),
    (Suspend, "suspend", "<c-z>", OPENING, "go to the background", ""),
    (
        Back,
        "back",
        "<esc>",
        OPENING,
        "close what is in front; clear search, difference, filter and mark",
        "back",
    ),
    (Help, "help", "?", OPENING, "the keys of this pane, and the signs", "keys"),
    (Close, "quit", "q", OPENING, "close what is in front; on the main screen quit", "quit"),
    (Quit, "quit-now", "<c-c>", OPENING, "quit", ""),
];
