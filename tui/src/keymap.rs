//! The key bindings of each mode, as data. The help, the bottom line and the table in `docs/tui.md`
//! are generated from them.

use crate::action::BrowserCommand;
use crate::default_keys::{BROWSE, DEFAULTS, DefaultBinding};
use crate::key::{KeyChord, UnknownKey};
use std::collections::BTreeMap;

/// The mode that decides what keys do, by the pane in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyMode {
    /// The list of moments.
    Story,
    /// The list of moments, while the matches of a search are highlighted.
    Found,
    Detail,
    /// The state at the selected moment.
    Held,
    /// The axis of time.
    Time,
    /// A sheet: details, a comparison.
    Sheet,
    Charts,
    /// The list of sessions.
    Sessions,
    /// A list that typing filters: the help, a search.
    Choose,
    /// A text input.
    Input,
    /// A question waits for yes or no.
    Confirm,
    Replay,
}

impl KeyMode {
    /// Returns its name for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Story | Self::Found => "Story",
            Self::Detail => "Detail",
            Self::Held => "Held",
            Self::Time => "Time",
            Self::Sheet => "a page",
            Self::Charts => "Charts",
            Self::Sessions => "Sessions",
            Self::Choose => "a list",
            Self::Input => "an input",
            Self::Confirm => "a question",
            Self::Replay => "Replay",
        }
    }
}

use KeyMode::Found;

#[derive(Clone, Debug)]
pub struct KeyBinding {
    pub command: BrowserCommand,
    /// The name of the command in the settings.
    pub name: &'static str,
    /// The keys that trigger the command.
    pub keys: Vec<KeyChord>,
    /// The modes in which the binding is available.
    pub modes: &'static [KeyMode],
    /// A description for the help.
    pub about: &'static str,
    /// A word for the bottom line; empty if it is not shown there.
    pub short: &'static str,
}

/// What is wrong with the key bindings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// There is no command with this name.
    #[error("there is no command '{0}' to bind: 'forge tui' names them all under '?'")]
    UnknownCommand(String),
    /// There is no key with this name.
    #[error(transparent)]
    UnknownKey(#[from] UnknownKey),
    /// One key has two commands in the same mode.
    #[error("the key {key} would both {first} and {second}: bind one of them to another key")]
    Twice {
        key: String,
        /// The name of one command.
        first: &'static str,
        /// The name of the other command.
        second: &'static str,
    },
    /// A command got no key.
    #[error("'{0}' needs a key: write at least one")]
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
    /// For an unknown command or key, a command without a key, and a key with two commands.
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
            let everywhere = BROWSE.iter().all(|mode| binding.modes.contains(mode));
            let mut modes = if everywhere { vec!["the panes"] } else { Vec::new() };
            for mode in binding.modes.iter().filter(|mode| !everywhere || !BROWSE.contains(mode)) {
                let word = if *mode == Found { "a search" } else { mode.word() };
                modes.push(word);
            }
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
        let map = Keymap::with(&keys(&[("down", "M")])).unwrap();
        let down = Some(BrowserCommand::MoveRows(1));
        assert_eq!(map.command(KeyMode::Story, "M".parse().unwrap()), down);
        assert_eq!(map.command(KeyMode::Story, "j".parse().unwrap()), None);
    }

    #[test]
    fn a_key_for_two_commands_or_for_none_is_refused() {
        for (name, key, expected) in [
            ("down", "k", "both down and up"),
            ("fly", "F", "no command 'fly'"),
            ("down", "<nowhere>", "names no key"),
            ("down", "", "needs a key"),
        ] {
            let error = Keymap::with(&keys(&[(name, key)])).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_page_in_the_documentation_shows_these_keys() {
        let page = include_str!("../../docs/tui.md");
        let table = Keymap::default().table();
        assert!(page.contains(&table), "put this into docs/tui.md:\n{table}");
    }
}
