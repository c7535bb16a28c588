//! Texts of the store as a page may show them.

use forge_store::model::text::{NewlineMode, one_line, sanitise, trim_cut_start, with_ellipsis};
use forge_store::redact::{Redactor, TextForm};
use maud::{Escaper, Markup, Render, html};
use std::fmt::Write;

/// A text of the store for a page: without secrets, and with hidden characters as escapes. Only a
/// [`TextCleaner`] makes one that is not empty. Rendering it escapes what HTML does not allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageText(String);

impl PageText {
    /// Returns the text, not escaped for HTML.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }

    /// Returns the text on one line. If it has more than this many characters, it is cut, and `…`
    /// is added.
    #[must_use]
    pub fn short(&self, chars: usize) -> Self {
        Self(one_line(&self.0, chars))
    }

    /// Returns the text with its line breaks. If it has more than this many characters, it is cut,
    /// and `…` is added.
    #[must_use]
    pub fn beginning(&self, chars: usize) -> Self {
        match self.0.char_indices().nth(chars) {
            Some((end, _)) => Self(with_ellipsis(&self.0[..end])),
            None => self.clone(),
        }
    }

    /// Returns the text with its line breaks. If it has more than this many characters, only its
    /// beginning and its end are kept, with `…` between them.
    #[must_use]
    pub fn ends(&self, chars: usize) -> Self {
        let (count, half) = (self.0.chars().count(), chars / 2);
        if count <= chars {
            return self.clone();
        }
        let place = |nth| self.0.char_indices().nth(nth).map_or(self.0.len(), |(place, _)| place);
        let (head, tail) = (&self.0[..place(half)], &self.0[place(count - half)..]);
        Self(format!("{}\n{}", with_ellipsis(head), trim_cut_start(tail)))
    }

    /// Returns this text, and the other one below it.
    #[must_use]
    pub fn above(mut self, below: &Self) -> Self {
        if !self.0.is_empty() && !self.0.ends_with('\n') && !below.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(&below.0);
        self
    }

    /// Returns the text as HTML. What is between two back quotes becomes code.
    #[must_use]
    pub fn inline(&self) -> Markup {
        let parts: Vec<&str> = self.0.split('`').collect();
        // A back quote without a second one is an ordinary character.
        if parts.len() < 3 || parts.len().is_multiple_of(2) || self.0.contains("``") {
            return html! { (self) };
        }
        html! {
            @for (place, part) in parts.iter().enumerate() {
                @if place % 2 == 1 { code { (part) } } @else { (part) }
            }
        }
    }
}

impl Render for PageText {
    fn render_to(&self, buffer: &mut String) {
        // To write to a string cannot fail.
        let _ = Escaper::new(buffer).write_str(&self.0);
    }
}

/// Makes a [`PageText`] of a text of the store.
#[derive(Debug)]
pub struct TextCleaner<'r> {
    redactor: &'r Redactor,
}

impl<'r> TextCleaner<'r> {
    /// Creates a cleaner that removes what this redactor finds.
    #[must_use]
    pub const fn new(redactor: &'r Redactor) -> Self {
        Self { redactor }
    }

    /// Removes secrets, and shows hidden characters as escapes. Line breaks stay.
    #[must_use]
    pub fn clean(&self, text: &str) -> PageText {
        let clean = self.redactor.clean(text, TextForm::Plain);
        PageText(sanitise(&clean, NewlineMode::Keep).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> PageText {
        TextCleaner::new(&Redactor::new()).clean(text)
    }

    #[test]
    fn a_text_is_escaped_and_code_is_marked() {
        for (given, html) in [
            ("a <b> & \"c\"", "a &lt;b&gt; &amp; &quot;c&quot;"),
            ("run `a<b` now", "run <code>a&lt;b</code> now"),
            ("one ` only", "one ` only"),
            ("``` fence ```", "``` fence ```"),
        ] {
            assert_eq!(text(given).inline().into_string(), html);
        }
    }

    #[test]
    fn secrets_are_removed_and_hidden_characters_are_shown() {
        let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).get(..36).unwrap());
        let shown = text(&format!("key {token} \u{202e}end\u{1b}[0m"));
        assert!(!shown.as_str().contains(&token), "{shown:?}");
        assert!(shown.as_str().ends_with("\\u{202e}end\\x1b[0m"), "{shown:?}");
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(text("one two three").short(9).as_str(), "one two…");
        assert_eq!(text("one\ntwo").beginning(4).as_str(), "one…");
        assert_eq!(text("one\ntwo").beginning(7).as_str(), "one\ntwo");
        assert_eq!(text("one\ntwo\nthree\nfour").ends(8).as_str(), "one…\nfour");
        assert_eq!(text("one\ntwo").ends(7).as_str(), "one\ntwo");
    }

    #[test]
    fn a_text_begins_on_a_line_of_its_own_below_another() {
        for (above, below, both) in [
            ("one", "two", "one\ntwo"),
            ("one\n", "two", "one\ntwo"),
            ("one", "", "one"),
            ("", "two", "two"),
        ] {
            assert_eq!(text(above).above(&text(below)).as_str(), both);
        }
    }
}
