//! The one gate for texts on their way to a screen: what would drive the terminal or hide from the reader is shown.

use std::borrow::Cow;
use std::fmt::Write;

/// What a line break becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newlines {
    /// It is shown as `\n`: the text stays one line.
    Escape,
    /// It stays, and a tab becomes four spaces; a carriage return before it is left out.
    Keep,
}

/// The text with control characters, marks that change the direction of writing, and characters without width or look
/// shown as escapes.
#[must_use]
pub fn sanitise(text: &str, newlines: Newlines) -> Cow<'_, str> {
    if !has_hidden(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' if newlines == Newlines::Keep => shown.push('\n'),
            '\t' if newlines == Newlines::Keep => shown.push_str("    "),
            '\r' if newlines == Newlines::Keep && characters.peek() == Some(&'\n') => {}
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if !is_hidden(character) => shown.push(character),
            _ if (character as u32) < 0x100 => {
                write!(shown, "\\x{:02x}", character as u32).expect("a String takes all");
            }
            _ => write!(shown, "\\u{{{:x}}}", character as u32).expect("a String takes all"),
        }
    }
    Cow::Owned(shown)
}

/// Whether the text holds anything that is not simply seen.
#[must_use]
pub fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// Control characters (C0, DEL, C1) and format characters that reorder, hide or join text.
///
/// Variation selectors are let through: they only choose between looks of the character before them.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_character_is_shown_as_an_escape() {
        for code in (0..0x20).chain(0x7f..0xa0) {
            let text = char::from_u32(code).unwrap().to_string();
            let shown = sanitise(&text, Newlines::Escape);
            assert!(shown.starts_with('\\') && shown.len() > 1, "{code:x}: {shown}");
            assert!(!has_hidden(&shown));
        }
    }

    #[test]
    fn marks_that_reorder_or_hide_are_shown_as_escapes() {
        for hidden in
            "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{61c}\u{200b}\u{200d}\u{feff}\u{e0041}"
                .chars()
        {
            let shown = sanitise(&format!("a{hidden}b"), Newlines::Keep).into_owned();
            assert_eq!(shown, format!("a\\u{{{:x}}}b", hidden as u32));
        }
    }

    #[test]
    fn ordinary_text_of_any_language_is_not_touched() {
        for text in ["plain", "Käse", "日本語", "שלום", "🎉", "❤\u{fe0f}", "e\u{301}"] {
            assert!(
                matches!(sanitise(text, Newlines::Escape), Cow::Borrowed(same) if same == text)
            );
        }
    }

    #[test]
    fn line_breaks_are_kept_only_where_asked() {
        let text = "a\r\nb\tc\rd";
        assert_eq!(sanitise(text, Newlines::Escape), "a\\r\\nb\\tc\\rd");
        assert_eq!(sanitise(text, Newlines::Keep), "a\nb    c\\rd");
    }
}
