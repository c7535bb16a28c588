//! The key bindings of each mode, as data. The help, the bottom line and the table in `docs/tui.md`
//! are generated from it.

use crate::action::BrowserCommand;
use crate::key::{KeyChord, UnknownKey};
use std::collections::BTreeMap;

/// The mode that decides what keys do, by the pane in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyMode {
    /// The list of moments.
    Timeline,
    /// The state pane.
    State,
    /// A sheet: details, a comparison, the help.
    Sheet,
    /// Charts.
    Charts,
    /// The list of sessions.
    Sessions,
    /// A text input.
    Input,
    /// A question waits for yes or no.
    Confirm,
}

use KeyMode::{Charts, Confirm, Input, Sessions, Sheet, State, Timeline};

/// The binding of a command.
#[derive(Clone, Debug)]
pub struct KeyBinding {
    /// The command.
    pub command: BrowserCommand,
    /// Its name in the settings.
    pub name: &'static str,
    /// The keys that trigger it.
    pub keys: Vec<KeyChord>,
    /// The modes in which it is available.
    pub modes: &'static [KeyMode],
    /// A description for the help.
    pub about: &'static str,
    /// A word for the bottom line; empty if it is not shown there.
    pub short: &'static str,
}

const BROWSE: &[KeyMode] = &[Timeline, State];
const LISTS: &[KeyMode] = &[Timeline, State, Sheet, Sessions];
const OPENING: &[KeyMode] = &[Timeline, State, Sheet, Charts, Sessions];
const SHOWN: &[KeyMode] = &[Timeline, State, Sheet, Charts, Sessions];
const MOVING: &[KeyMode] = &[Timeline, State, Sheet, Charts, Sessions, Confirm];
const ASKING: &[KeyMode] = &[Input, Confirm];

type DefaultBinding =
    (BrowserCommand, &'static str, &'static str, &'static [KeyMode], &'static str, &'static str);

/// Bindings with a short word are shown in the bottom line, in this order, as many as fit.
const DEFAULTS: &[DefaultBinding] = &[
    (BrowserCommand::Help, "help", "?", SHOWN, "show all keys", "help"),
    (BrowserCommand::Accept, "accept", "<enter>", ASKING, "do it", "do it"),
    (
        BrowserCommand::Back,
        "back",
        "<esc>",
        SHOWN,
        "close what is in front, clear filter and mark",
        "back",
    ),
    (BrowserCommand::Cancel, "cancel", "<esc> <c-c>", ASKING, "leave it", "leave it"),
    (BrowserCommand::Open, "open", "<enter>", OPENING, "open in full, or choose", "open"),
    (BrowserCommand::NextPane, "next-pane", "<tab>", BROWSE, "go to the other side", "other side"),
    (BrowserCommand::Search, "search", "/", BROWSE, "search and filter", "search"),
    (BrowserCommand::Jump, "jump", "t :", BROWSE, "go to a moment by typing it", "go to"),
    (
        BrowserCommand::Level,
        "level",
        "v",
        BROWSE,
        "checkpoints, every revision, everything",
        "detail",
    ),
    (BrowserCommand::Mark, "mark", "m", BROWSE, "mark this moment to compare with", "mark"),
    (
        BrowserCommand::Diff,
        "diff",
        "d",
        BROWSE,
        "compare with the mark, else with the moment before",
        "diff",
    ),
    (BrowserCommand::Charts, "charts", "c", BROWSE, "show charts", "charts"),
    (BrowserCommand::Sessions, "sessions", "s", BROWSE, "choose a session", "sessions"),
    (BrowserCommand::Create, "create", "a", BROWSE, "make a checkpoint", "checkpoint"),
    (BrowserCommand::Tag, "tag", "T", BROWSE, "tag this checkpoint", "tag"),
    (BrowserCommand::Branch, "branch", "b", BROWSE, "begin a branch here", "branch"),
    (
        BrowserCommand::Restore,
        "restore",
        "R",
        BROWSE,
        "restore the claims of this moment",
        "restore",
    ),
    (BrowserCommand::Undo, "undo", "u", BROWSE, "undo the last operation", "undo"),
    (BrowserCommand::Redo, "redo", "U", BROWSE, "redo the last undo", ""),
    (BrowserCommand::Copy, "copy", "y", LISTS, "copy the id", "copy"),
    (BrowserCommand::Export, "export", "e", SHOWN, "write this view to a file", "export"),
    (BrowserCommand::Fold, "fold", "<space> x", &[Sheet], "fold or unfold a section", "fold"),
    (BrowserCommand::FoldAll, "fold-all", "z", &[Sheet], "fold or unfold all sections", ""),
    (BrowserCommand::Fold, "draw", "<space> x", &[Charts], "draw or hide this hypothesis", "draw"),
    (BrowserCommand::FoldAll, "draw-all", "z", &[Charts], "draw or hide all hypotheses", "all"),
    (BrowserCommand::Down, "down", "j <down> <c-n>", MOVING, "down: back in time", ""),
    (BrowserCommand::Up, "up", "k <up> <c-p>", MOVING, "up: forward in time", ""),
    (BrowserCommand::PageDown, "page-down", "<pgdn> <c-f> <c-d>", MOVING, "a page down", ""),
    (BrowserCommand::PageUp, "page-up", "<pgup> <c-b> <c-u>", MOVING, "a page up", ""),
    (
        BrowserCommand::First,
        "first",
        "g <home>",
        MOVING,
        "to the top: the head, which follows new writes",
        "",
    ),
    (BrowserCommand::Last, "last", "G <end>", MOVING, "to the bottom: the beginning", ""),
    (
        BrowserCommand::OlderCheckpoint,
        "older-checkpoint",
        "]",
        BROWSE,
        "to the checkpoint before",
        "",
    ),
    (
        BrowserCommand::NewerCheckpoint,
        "newer-checkpoint",
        "[",
        BROWSE,
        "to the checkpoint after",
        "",
    ),
    (BrowserCommand::OlderTag, "older-tag", ")", BROWSE, "to the tag before", ""),
    (BrowserCommand::NewerTag, "newer-tag", "(", BROWSE, "to the tag after", ""),
    (
        BrowserCommand::OlderCompaction,
        "older-compaction",
        ">",
        BROWSE,
        "to the compaction before",
        "",
    ),
    (
        BrowserCommand::NewerCompaction,
        "newer-compaction",
        "<lt>",
        BROWSE,
        "to the compaction after",
        "",
    ),
    (
        BrowserCommand::OlderStatus,
        "older-status",
        "}",
        BROWSE,
        "to the change of a status before",
        "",
    ),
    (
        BrowserCommand::NewerStatus,
        "newer-status",
        "{",
        BROWSE,
        "to the change of a status after",
        "",
    ),
    (BrowserCommand::NextTab, "next-tab", "l <right>", BROWSE, "the next kind of the state", ""),
    (BrowserCommand::PreviousTab, "previous-tab", "h <left>", BROWSE, "the kind before", ""),
    (
        BrowserCommand::NextTab,
        "next-tab-here",
        "<s-tab>",
        &[State],
        "the next kind, on the state's side",
        "",
    ),
    (BrowserCommand::Refresh, "refresh", "r <c-l>", SHOWN, "reload and redraw", ""),
    (BrowserCommand::Erase, "erase", "<backspace> <c-h>", &[Input], "delete a character", ""),
    (BrowserCommand::EraseWord, "erase-word", "<c-w>", &[Input], "delete a word", ""),
    (BrowserCommand::EraseAll, "erase-all", "<c-u>", &[Input], "begin again", ""),
    (BrowserCommand::Accept, "yes", "y", &[Confirm], "yes", "yes"),
    (BrowserCommand::Cancel, "no", "n q", &[Confirm], "no", "no"),
    (BrowserCommand::Suspend, "suspend", "<c-z>", SHOWN, "go to the background", ""),
    (BrowserCommand::Quit, "quit", "q <c-c>", SHOWN, "quit", "quit"),
];

/// What is wrong with the key bindings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// There is no command with this name.
    #[error("there is no command '{0}' to bind: 'forge tui' names them all under '?'")]
    UnknownCommand(String),
    /// There is no key with this name.
    #[error(transparent)]
    UnknownKey(#[from] UnknownKey),
    /// One key has two commands.
    #[error("the key {key} would both {first} and {second}: bind one of them to another key")]
    Twice {
        /// The key.
        key: String,
        /// The name of one command.
        first: &'static str,
        /// The name of the other command.
        second: &'static str,
    },
    /// A command that no key triggers any more.
    #[error("'{0}' needs a key")]
    NoKey(&'static str),
}

/// All bindings.
#[derive(Clone, Debug)]
pub struct Keymap {
    bindings: Vec<KeyBinding>,
}

impl Default for Keymap {
    fn default() -> Self {
        let binding = |(command, name, keys, modes, about, short): &DefaultBinding| KeyBinding {
            command: *command,
            name,
            keys: KeyChord::parse_all(keys).expect("the default keys are keys"),
            modes,
            about,
            short,
        };
        Self { bindings: DEFAULTS.iter().map(binding).collect() }
    }
}

impl Keymap {
    /// Builds the default bindings with some replaced. The map holds the names of commands with
    /// their new keys, such as `down` and `n <down>`.
    ///
    /// # Errors
    /// For unknown commands or keys, and for a key with two commands.
    pub fn with(keys: &BTreeMap<String, String>) -> Result<Self, KeymapError> {
        let mut map = Self::default();
        for (name, chords) in keys {
            let binding = map
                .bindings
                .iter_mut()
                .find(|binding| binding.name == name)
                .ok_or_else(|| KeymapError::UnknownCommand(name.clone()))?;
            binding.keys = KeyChord::parse_all(chords)?;
            if binding.keys.is_empty() {
                return Err(KeymapError::NoKey(binding.name));
            }
        }
        map.check().map(|()| map)
    }

    fn check(&self) -> Result<(), KeymapError> {
        for (place, one) in self.bindings.iter().enumerate() {
            for other in self.bindings.iter().skip(place + 1) {
                let shared = one.keys.iter().find(|key| other.keys.contains(key));
                if let Some(key) = shared
                    && one.modes.iter().any(|mode| other.modes.contains(mode))
                {
                    let (key, first, second) = (key.to_string(), one.name, other.name);
                    return Err(KeymapError::Twice { key, first, second });
                }
            }
        }
        Ok(())
    }

    /// Returns the command of a key in a mode.
    #[must_use]
    pub fn command(&self, mode: KeyMode, key: KeyChord) -> Option<BrowserCommand> {
        self.bindings_in(mode)
            .find(|binding| binding.keys.contains(&key))
            .map(|binding| binding.command)
    }

    /// Returns the bindings that are available in a mode.
    pub fn bindings_in(&self, mode: KeyMode) -> impl Iterator<Item = &KeyBinding> {
        self.bindings.iter().filter(move |binding| binding.modes.contains(&mode))
    }

    /// Returns all bindings.
    #[must_use]
    pub fn bindings(&self) -> &[KeyBinding] {
        &self.bindings
    }

    /// Returns the table of keys for the documentation, in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = "| Keys | Does | Name | Where |\n|---|---|---|---|\n".to_owned();
        for binding in &self.bindings {
            let keys: Vec<String> = binding.keys.iter().map(|key| format!("`{key}`")).collect();
            let modes: Vec<String> =
                binding.modes.iter().map(|mode| format!("{mode:?}").to_lowercase()).collect();
            let line = format!(
                "| {} | {} | `{}` | {} |\n",
                keys.join(" "),
                binding.about,
                binding.name,
                modes.join(", ")
            );
            table.push_str(&line);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned())).collect()
    }

    #[test]
    fn no_default_key_does_two_things() {
        assert_eq!(Keymap::default().check(), Ok(()));
    }

    #[test]
    fn a_key_that_was_set_replaces_the_default_ones() {
        let map = Keymap::with(&keys(&[("down", "J")])).unwrap();
        assert_eq!(map.command(Timeline, "J".parse().unwrap()), Some(BrowserCommand::Down));
        assert_eq!(map.command(Timeline, "j".parse().unwrap()), None);
    }

    #[test]
    fn a_key_for_two_commands_or_for_none_is_refused() {
        for (name, key, said) in [
            ("down", "k", "both down and up"),
            ("fly", "F", "no command 'fly'"),
            ("down", "<nowhere>", "names no key"),
            ("down", "", "needs a key"),
        ] {
            let error = Keymap::with(&keys(&[(name, key)])).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn the_page_in_the_documentation_shows_these_keys() {
        let page = include_str!("../../docs/tui.md");
        let table = Keymap::default().table();
        assert!(page.contains(&table), "put this into docs/tui.md:\n{table}");
    }
}
