//! Keys in text form: `j`, `<down>`, `<c-z>`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;
use std::str::FromStr;

/// A key, perhaps with Ctrl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyChord {
    code: KeyCode,
    ctrl: bool,
}

/// The named keys, as written and as the terminal reports them.
const NAMED: &[(&str, KeyCode)] = &[
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("tab", KeyCode::Tab),
    ("s-tab", KeyCode::BackTab),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
    ("lt", KeyCode::Char('<')),
    ("gt", KeyCode::Char('>')),
];

/// The error for a text that is not the name of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no key: write a character, or a name such as <down>, <pgdn>, <enter>, <c-z>")]
pub struct UnknownKey(pub String);

impl KeyChord {
    /// Returns the key that a terminal reported, if it has a name.
    #[must_use]
    pub fn from_event(event: KeyEvent) -> Option<Self> {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let code = match event.code {
            KeyCode::Char(letter) if ctrl => KeyCode::Char(letter.to_ascii_lowercase()),
            KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            other => other,
        };
        Self::from_code(code, ctrl)
    }

    fn from_code(code: KeyCode, ctrl: bool) -> Option<Self> {
        let has_name = code.as_char().is_some() || name_of(code).is_some();
        has_name.then_some(Self { code, ctrl })
    }

    /// Returns the character that this key types, if any.
    #[must_use]
    pub fn typed(self) -> Option<char> {
        self.code.as_char().filter(|_| !self.ctrl)
    }

    /// Parses the keys of a text: characters, and names in angle brackets. Blanks between them are
    /// ignored.
    ///
    /// # Errors
    /// [`UnknownKey`] for an unknown name.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, UnknownKey> {
        let mut chords = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let name = |end: &usize| {
                rest.get(1..*end).is_some_and(|name| !name.contains(char::is_whitespace))
            };
            let end = if first == '<' { rest.find('>').filter(name) } else { None };
            let end = end.map(|end| end + 1);
            let (one, after) = rest.split_at(end.unwrap_or(first.len_utf8()));
            chords.push(one.parse()?);
            rest = after.trim_start();
        }
        Ok(chords)
    }
}

impl FromStr for KeyChord {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        let mut letters = text.chars();
        if let (Some(letter), None) = (letters.next(), letters.next()) {
            return Self::from_code(KeyCode::Char(letter), false).ok_or_else(unknown);
        }
        let name = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
        let name = name.ok_or_else(unknown)?.to_ascii_lowercase();
        let (ctrl, name) = match name.strip_prefix("c-") {
            Some(rest) => (true, rest),
            None => (false, name.as_str()),
        };
        if let Some((_, code)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Self::from_code(*code, ctrl).ok_or_else(unknown);
        }
        let mut letters = name.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if ctrl => Self::from_code(KeyCode::Char(letter), true),
            _ => None,
        }
        .ok_or_else(unknown)
    }
}

impl fmt::Display for KeyChord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (name_of(self.code), self.ctrl) {
            (Some("lt" | "gt") | None, false) => write!(out, "{}", self.code),
            (Some(name), false) => write!(out, "<{name}>"),
            (Some(name), true) => write!(out, "<c-{name}>"),
            (None, true) => write!(out, "<c-{}>", self.code),
        }
    }
}

fn name_of(code: KeyCode) -> Option<&'static str> {
    NAMED.iter().find(|(_, named)| *named == code).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        let text = "j < > <down> <c-z> <s-tab> <space> é";
        let keys = KeyChord::parse_all(text).unwrap();
        let written: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(written.join(" "), text);
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_allowed_names() {
        for text in ["<bogus>", "<c-zz>"] {
            let error = KeyChord::parse_all(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("<down>"), "{error}");
        }
    }
}
