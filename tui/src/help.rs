//! The help: the keys of one pane, and the signs.

use crate::action::BrowserCommand;
use crate::fuzzy::FuzzyPattern;
use crate::keymap::{KeyMode, Keymap};
use crate::theme::{TextTone, Theme};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpLine {
    /// The command that the line names; `None` if the line only explains something.
    pub command: Option<BrowserCommand>,
    /// The keys of the command, or a sign.
    pub left: String,
    /// What the keys do, or what the sign means.
    pub text: String,
    /// The name of the command in the file of keys.
    pub name: &'static str,
    /// The tone of the left side.
    pub tone: TextTone,
}

/// The signs of the story in Unicode and in ASCII, with their meanings.
const SIGNS: &[(&str, &str, &str)] = &[
    ("YOU", "YOU", "you asked or answered"),
    ("▲ ▼", "^ v", "confidence rose, fell"),
    ("✓ ✗", "v x", "confirmed, filled or passed; rejected or failed"),
    ("+ ?", "+ ?", "a claim is new; a gap is open"),
    ("±", "~", "edits, until something else happens"),
    ("◆ ↑", "# ^", "a commit; a push or a pull request"),
    ("⤷ ⚙", "> @", "what the agent said last; a sub-agent"),
    ("┄", "-", "the agent's context was compacted"),
    ("★ ⑂ ↶", "* Y <", "a named checkpoint; a branch; claims restored"),
    ("✎ #", "n #", "a note; a measured value"),
    ("▸", "+", "folded: <enter> unfolds it"),
];

/// The signs of the other levels of the timeline.
const RAW_SIGNS: &[(&str, &str, &str)] = &[
    ("○", "@", "the head"),
    ("◆ ◇ ◷", "# o t", "a checkpoint by hand, by an event, by the clock"),
    ("• !", ". !", "a revision; one that changed a status"),
    ("↶ M", "< M", "back to earlier claims; a merge"),
    ("·", "-", "a fact"),
];

/// The fields of a filter and the words for moments.
const WORDS: &[(&str, &str)] = &[
    ("f", "words, kind:command tag:start trigger:compaction branch:main session:NAME"),
    ("f", "since:\"2 hours ago\" until:14:30 since:mark"),
    ("f", "chips: <left> <right> choose one, <tab> or a click switches it on or off"),
    ("n", "<c-e> goes on with any text that is written in $EDITOR"),
    ("t", "2 hours ago, yesterday 14:30, #42, a tag, a branch, HEAD~3"),
    ("t", "before last compaction, when H3 was rejected, before commit 1a2b3c4"),
];

/// Returns the signs of the story with their meanings, to be read at a glance.
#[must_use]
pub fn sign_words(theme: Theme) -> Vec<(&'static str, &'static str)> {
    SIGNS.iter().map(|(unicode, ascii, text)| (theme.glyph(unicode, ascii), *text)).collect()
}

/// Returns the lines of the help for a mode that contain the typed words.
#[must_use]
pub fn help_lines(keymap: &Keymap, mode: KeyMode, typed: &str, theme: Theme) -> Vec<HelpLine> {
    let mut lines = Vec::new();
    for binding in keymap.bindings_in(mode) {
        let keys: Vec<String> = binding.keys.iter().map(ToString::to_string).collect();
        lines.push(HelpLine {
            command: Some(binding.command),
            left: keys.join(" "),
            text: binding.about.to_owned(),
            name: binding.name,
            tone: TextTone::Id,
        });
    }
    let explained = |left: &str, text: &str, tone| HelpLine {
        command: None,
        left: left.to_owned(),
        text: text.to_owned(),
        name: "",
        tone,
    };
    for (unicode, ascii, text) in SIGNS.iter().chain(RAW_SIGNS) {
        lines.push(explained(theme.glyph(unicode, ascii), text, TextTone::Accent));
    }
    for (key, text) in WORDS {
        lines.push(explained(key, text, TextTone::Dim));
    }
    let pattern = FuzzyPattern::new(typed);
    if pattern.is_empty() {
        return lines;
    }
    lines.retain(|line| {
        pattern.find(&format!("{} {} {}", line.left, line.text, line.name)).is_some()
    });
    lines
}
