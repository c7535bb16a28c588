//! The default key bindings.

use crate::action::BrowserCommand as Command;
use crate::keymap::KeyMode;
use KeyMode::{
    Charts, Choose, Confirm, Detail, Found, Held, Input, Replay, Sessions, Sheet, Story, Time,
};

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
    (Command::Accept, "accept", "<enter>", ASKING, "do it", "do it"),
    (Command::Cancel, "cancel", "<esc> <c-c>", ASKING, "leave it", "leave it"),
    (Command::Open, "open", "<enter>", OPENING, "unfold, open whole, or choose", "open"),
    (Command::NextPane, "next-pane", "<tab>", BROWSE, "to the next pane", "pane"),
    (Command::NextMatch, "next-match", "n", &[Found], "to the next match", "next"),
    (Command::PreviousMatch, "previous-match", "N", &[Found], "to the match before", "before"),
    (Command::Find, "find", "/", BROWSE, "find in what is listed", "find"),
    (Command::Jump, "jump", "t :", BROWSE, "go to a moment by typing it", "go to"),
    (Command::Mark, "mark", "m", BROWSE, "mark this moment to compare with", "mark"),
    (
        Command::Diff,
        "diff",
        "d",
        BROWSE,
        "show the difference to the mark, else to the moment before",
        "diff",
    ),
    (Command::Charts, "charts", "c", BROWSE, "show the charts in full", "charts"),
    (
        Command::NextStep,
        "next-step",
        "l <right>",
        STEPPING,
        "to the next change of a hypothesis",
        "next",
    ),
    (
        Command::PreviousStep,
        "previous-step",
        "h <left>",
        STEPPING,
        "to the change before",
        "before",
    ),
    (Command::Fold, "draw", "<space>", STEPPING, "draw or hide this hypothesis", "draw"),
    (Command::FoldAll, "draw-all", "z", &[Charts], "draw or hide the settled hypotheses", "active"),
    (Command::Fold, "fold", "<space> x", &[Sheet], "fold or unfold a section", "fold"),
    (Command::FoldAll, "fold-all", "z", &[Sheet], "fold or unfold all sections", ""),
    (
        Command::Why,
        "why",
        "w",
        WRITE,
        "why: what the selected claim rests on, and what rests on it",
        "why",
    ),
    (Command::Level, "level", "v", BROWSE, "the story, every revision, everything", "level"),
    (
        Command::EvidenceFor,
        "evidence-for",
        "+",
        WRITE,
        "evidence for the selected hypothesis: .7 what it says",
        "evidence",
    ),
    (Command::EvidenceAgainst, "evidence-against", "-", WRITE, "evidence against it", ""),
    (
        Command::EvidenceSources,
        "evidence-sources",
        "E",
        WRITE,
        "the evidence about the selected hypothesis, with the command that showed it",
        "",
    ),
    (Command::Note, "note", "n", &[Story, Detail, Held, Time, Charts], "add a note", "note"),
    (Command::LongNote, "long-note", "e", WRITE, "write a note in $EDITOR", ""),
    (Command::Idea, "idea", "i", WRITE, "state a hypothesis", ""),
    (Command::Question, "question", "Q", WRITE, "open a question", ""),
    (Command::ConfirmIdea, "confirm", "C", WRITE, "confirm the selected hypothesis", ""),
    (Command::RejectIdea, "reject", "!", WRITE, "reject it, with a reason", ""),
    (
        Command::Replay,
        "play",
        "p",
        &[Story, Found, Detail, Held, Time, Charts],
        "replay the session from here",
        "play",
    ),
    (Command::Faster, "faster", "+ <right>", &[Replay], "faster", "faster"),
    (Command::Slower, "slower", "- <left>", &[Replay], "slower", "slower"),
    (Command::Back, "stop", "p <space> <esc> q <enter>", &[Replay], "stop", "stop"),
    (Command::Create, "create", "a", BROWSE, "make a checkpoint", ""),
    (Command::Tag, "tag", "T", BROWSE, "tag this checkpoint", ""),
    (Command::Branch, "branch", "b", BROWSE, "begin a branch here", ""),
    (Command::Restore, "restore", "R", BROWSE, "restore the claims of this moment", ""),
    (Command::Undo, "undo", "u", BROWSE, "undo the last operation, which it names first", "undo"),
    (Command::Redo, "redo", "U", BROWSE, "redo the last undo", ""),
    (Command::Sessions, "sessions", "s", BROWSE, "choose a session", "sessions"),
    (
        Command::Filter,
        "filter",
        "f",
        BROWSE,
        "list only what has these words, kinds, tags or times",
        "",
    ),
    (Command::Order, "order", "o", BROWSE, "newest at the top, or at the bottom", ""),
    (
        Command::Hindsight,
        "hindsight",
        "H",
        BROWSE,
        "hide or show what came after the selection",
        "",
    ),
    (Command::Zoom, "zoom", "z", BROWSE, "show only this pane, or all panes again", ""),
    (Command::Copy, "copy", "y", LISTS, "copy the id", ""),
    (
        Command::CopyMarkdown,
        "copy-markdown",
        "Y",
        OPENING,
        "copy the details, or the page in front, as Markdown",
        "",
    ),
    (
        Command::Export,
        "export",
        "S",
        OPENING,
        "write this view to a file, or the report: NAME.html, NAME.md",
        "",
    ),
    (Command::Report, "report", "O", BROWSE, "show the report in a web browser", ""),
    (
        Command::Peek,
        "peek",
        "<space>",
        &[Story, Found, Detail, Held],
        "open the selection whole, and leave what is folded",
        "",
    ),
    (Command::Down, "down", "j <down> <c-n>", MOVING, "down", ""),
    (Command::Up, "up", "k <up> <c-p>", MOVING, "up", ""),
    (Command::PageDown, "page-down", "<pgdn> <c-f> <c-d>", PAGING, "a page down", ""),
    (Command::PageUp, "page-up", "<pgup> <c-b> <c-u>", PAGING, "a page up", ""),
    (Command::ScrollDown, "scroll-down", "<c-e>", BROWSE, "scroll the details down", ""),
    (Command::ScrollUp, "scroll-up", "<c-y>", BROWSE, "scroll the details up", ""),
    (Command::First, "first", "g <home>", ENDS, "to the beginning", ""),
    (
        Command::Last,
        "last",
        "G <end>",
        ENDS,
        "to the end; in the story to the head, which follows new writes",
        "",
    ),
    (Command::NextPrompt, "next-prompt", "J", BROWSE, "to the next prompt", ""),
    (Command::PreviousPrompt, "previous-prompt", "K", BROWSE, "to the prompt before", ""),
    (Command::NewerStatus, "newer-status", "}", BROWSE, "to the next change of a claim", ""),
    (Command::OlderStatus, "older-status", "{", BROWSE, "to the previous change of a claim", ""),
    (Command::NewerCheckpoint, "newer-checkpoint", "]", BROWSE, "to the next checkpoint", ""),
    (Command::OlderCheckpoint, "older-checkpoint", "[", BROWSE, "to the checkpoint before", ""),
    (Command::NewerTag, "newer-tag", ")", BROWSE, "to the next tag", ""),
    (Command::OlderTag, "older-tag", "(", BROWSE, "to the tag before", ""),
    (Command::NewerCompaction, "newer-compaction", ">", BROWSE, "to the next compaction", ""),
    (Command::OlderCompaction, "older-compaction", "<lt>", BROWSE, "to the compaction before", ""),
    (Command::NextFailure, "next-failure", "x", BROWSE, "to the next failure", ""),
    (Command::PreviousFailure, "previous-failure", "X", BROWSE, "to the failure before", ""),
    (
        Command::NextTab,
        "next-tab",
        "l <right>",
        &[Story, Found, Detail, Held],
        "the next kind of what was held",
        "",
    ),
    (
        Command::PreviousTab,
        "previous-tab",
        "h <left>",
        &[Story, Found, Detail, Held],
        "the kind before",
        "",
    ),
    (Command::PreviousPane, "previous-pane", "<s-tab>", BROWSE, "to the pane before", ""),
    (Command::Pane1, "pane-story", "1", BROWSE, "to Story", ""),
    (Command::Pane2, "pane-detail", "2", BROWSE, "to Detail", ""),
    (Command::Pane3, "pane-held", "3", BROWSE, "to Held", ""),
    (Command::Pane4, "pane-time", "4", BROWSE, "to Time", ""),
    (Command::Refresh, "refresh", "r <c-l>", OPENING, "reload and redraw", ""),
    (Command::Erase, "erase", "<backspace> <c-h>", &[Input, Choose], "delete a character", ""),
    (Command::EraseWord, "erase-word", "<c-w>", &[Input, Choose], "delete a word", ""),
    (Command::EraseAll, "erase-all", "<c-u>", &[Input, Choose], "begin again", ""),
    (Command::Editor, "editor", "<c-e>", &[Input], "go on writing this text in $EDITOR", "$EDITOR"),
    (Command::NextChip, "next-chip", "<right>", &[Input], "to the next chip of the filter", ""),
    (Command::PreviousChip, "previous-chip", "<left>", &[Input], "to the chip before", ""),
    (Command::ToggleChip, "chip", "<tab>", &[Input], "switch the chip on or off", ""),
    (Command::Accept, "yes", "y", &[Confirm], "yes", "yes"),
    (Command::Cancel, "no", "n q", &[Confirm], "no", "no"),
    (Command::Suspend, "suspend", "<c-z>", OPENING, "go to the background", ""),
    (
        Command::Back,
        "back",
        "<esc>",
        OPENING,
        "close what is in front; clear search, difference, filter and mark",
        "back",
    ),
    (Command::Help, "help", "?", OPENING, "the keys of this pane, and the signs", "keys"),
    (
        Command::Close,
        "quit",
        "q",
        OPENING,
        "close what is in front; on the main screen quit",
        "quit",
    ),
    (Command::Quit, "quit-now", "<c-c>", OPENING, "quit", ""),
];
