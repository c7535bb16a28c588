//! Prepares texts to be displayed: shows characters that would control the terminal or be hidden
//! from the reader as escapes, and puts a text on one line.

mod hidden_chars;

use hidden_chars::{belongs_to_neighbour, chars_with_hidden, is_unseen};
use std::borrow::Cow;
use std::fmt::Write;

/// What to do with line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewlineMode {
    /// Show them as `\n`: the text stays one line.
    Escape,
    /// Keep them, and turn a tab into four spaces; a carriage return before a line break is
    /// dropped.
    Keep,
}

/// Returns the text with control characters, direction marks, and characters without width or
/// appearance shown as escapes. Joiners between letters that they shape (Persian, Hindi), invisible
/// spaces of scripts without other spaces (Thai, Khmer), and components of emoji, are kept.
#[must_use]
pub fn sanitise(text: &str, newlines: NewlineMode) -> Cow<'_, str> {
    if !has_hidden(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    if newlines == NewlineMode::Escape {
        escape(text, newlines, &mut shown);
        return Cow::Owned(shown);
    }
    // Most lines need no escapes. How a line is shown does not depend on the text before it.
    for line in text.split_inclusive('\n') {
        if has_unseen(line.strip_suffix('\n').unwrap_or(line)) {
            escape(line, newlines, &mut shown);
        } else {
            shown.push_str(line);
        }
    }
    Cow::Owned(shown)
}

/// Appends the text, with escapes for characters that are not plainly visible.
fn escape(text: &str, newlines: NewlineMode, shown: &mut String) {
    let mut characters = chars_with_hidden(text).peekable();
    while let Some((character, hidden)) = characters.next() {
        match character {
            '\n' if newlines == NewlineMode::Keep => shown.push('\n'),
            '\t' if newlines == NewlineMode::Keep => shown.push_str("    "),
            '\r' if newlines == NewlineMode::Keep
                && characters.peek().is_some_and(|(next, _)| *next == '\n') => {}
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if !hidden => shown.push(character),
            _ if (character as u32) < 0x100 => {
                write!(shown, "\\x{:02x}", character as u32).expect("a String takes all");
            }
            _ => write!(shown, "\\u{{{:x}}}", character as u32).expect("a String takes all"),
        }
    }
}

/// Returns whether the text contains a character that is not plainly visible, whatever its context.
fn has_unseen(text: &str) -> bool {
    if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(is_unseen)
    }
}

/// Returns whether the text contains a character that is not plainly visible in its context. Line
/// breaks and tabs count.
#[must_use]
pub fn has_hidden(text: &str) -> bool {
    has_unseen(text) && chars_with_hidden(text).any(|(_, hidden)| hidden)
}

/// Replaces each character that is not plainly visible, including line breaks and tabs, by another.
#[must_use]
pub fn without_hidden(text: &str, instead: char) -> String {
    chars_with_hidden(text)
        .map(|(character, hidden)| if hidden { instead } else { character })
        .collect()
}

/// Returns the text on one line. A text of more than `chars` characters is cut, between two words
/// if possible, and ends with `…`.
#[must_use]
pub fn one_line(text: &str, chars: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let Some((end, _)) = line.char_indices().nth(chars) else { return line };
    let kept = line.get(..end).unwrap_or_default();
    // A last word that is not very long is left out rather than broken.
    let word = kept.rfind(' ').filter(|space| end - space < 30).unwrap_or(end);
    let shown = trim_cut_end(kept.get(..word).unwrap_or_default());
    format!("{}…", shown.trim_end_matches([' ', ',', ';', ':']))
}

/// Returns the whole text on one line, for a list. A line break becomes one space, together with
/// the white space around it and the backslashes before it. A tab becomes a space.
#[must_use]
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t']) {
        return text.into();
    }
    let lines = text.lines().map(|line| line.trim_end_matches('\\').trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ").replace('\t', " ").into()
}

/// Returns a count with its noun in the singular or plural: `1 session`, `2 sessions`.
#[must_use]
pub fn count_text(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the beginning of a text that was cut there, without invisible characters at its end that
/// belong to what follows: a joiner joins nothing there.
#[must_use]
pub fn trim_cut_end(beginning: &str) -> &str {
    beginning.trim_end_matches(belongs_to_neighbour)
}

/// Returns the beginning of a text that was cut there, with a `…` directly after its last visible
/// character.
#[must_use]
pub fn with_ellipsis(beginning: &str) -> String {
    format!("{}…", trim_cut_end(beginning).trim_end())
}

/// Returns the rest of a text whose beginning was cut off, without such characters in front.
#[must_use]
pub fn trim_cut_start(rest: &str) -> &str {
    rest.trim_start_matches(belongs_to_neighbour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Characters that occur in texts with joiners.
    const PARTS: [&str; 26] = [
        "a", " ", "1", "\n", "ក", "\u{200b}", "ᠠ", "\u{180e}", "م", "ی", "क", "\u{94d}", "👨",
        "👩", "🏽", "❤", "🏴", "葛", "\u{200c}", "\u{200d}", "\u{202e}", "\u{fe0f}", "\u{20e3}",
        "\u{e0067}", "\u{e007f}", "\u{e0100}",
    ];

    #[test]
    fn a_text_of_several_lines_is_shown_in_one() {
        assert_eq!(in_one_line("curl x \\\n  -X POST \\\n  -f y\n"), "curl x -X POST -f y");
        assert_eq!(in_one_line("said:\n\n- a\tb"), "said: - a b");
        assert_eq!(in_one_line("a  b\\"), "a  b\\");
    }

    #[test]
    fn a_long_line_is_cut_at_a_word() {
        assert_eq!(one_line("  one\n two  three ", 99), "one two three");
        assert_eq!(one_line("one two three", 9), "one two…");
        assert_eq!(one_line(&"x".repeat(50), 40), format!("{}…", "x".repeat(40)));
        assert_eq!(one_line("日本語", 2), "日本…");
    }

    #[test]
    fn a_line_that_is_cut_within_an_emoji_or_a_word_has_no_joiner_at_its_end() {
        for (text, cut) in [
            ("👨\u{200d}👩\u{200d}👧", "👨…"),
            ("می\u{200c}خواهم", "می…"),
            ("1\u{fe0f}\u{20e3}2", "1…"),
            ("🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}", "🏴…"),
        ] {
            let chars = if text.starts_with('م') { 3 } else { 2 };
            assert_eq!(one_line(text, chars), cut);
        }
        assert_eq!(trim_cut_start("\u{200d}👩\u{200d}👧"), "👩\u{200d}👧");
        assert_eq!((trim_cut_end("a \n"), trim_cut_start("\n a")), ("a \n", "\n a"));
    }

    #[test]
    fn every_control_character_is_shown_as_an_escape() {
        for code in (0..0x20).chain(0x7f..0xa0) {
            let text = char::from_u32(code).unwrap().to_string();
            let shown = sanitise(&text, NewlineMode::Escape);
            assert!(shown.starts_with('\\') && shown.len() > 1, "{code:x}: {shown}");
            assert!(!has_hidden(&shown));
        }
    }

    #[test]
    fn marks_that_reorder_or_hide_are_shown_as_escapes() {
        for hidden in
            "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{61c}\u{200b}\u{200d}\u{feff}\u{e0041}\u{fff0}\
             \u{1bca0}"
                .chars()
        {
            let shown = sanitise(&format!("a{hidden}b"), NewlineMode::Keep).into_owned();
            assert_eq!(shown, format!("a\\u{{{:x}}}b", hidden as u32));
        }
    }

    /// Escapes a text to one line.
    fn shown(text: &str) -> String {
        sanitise(text, NewlineMode::Escape).into_owned()
    }

    #[test]
    fn ordinary_text_of_any_language_is_not_touched() {
        for text in [
            "plain",
            "Käse",
            "日本語",
            "שלום",
            "🎉",
            "❤\u{fe0f}",
            "e\u{301}",
            // Persian and Hindi, Bengali, Malayalam and Sinhala with joiners.
            "می\u{200c}خواهم",
            "کتاب\u{200c}ها",
            "ه\u{64f}\u{200c}م",
            "क्\u{200d}ष",
            "क्\u{200c}ष",
            "र्\u{200d}\u{915}",
            "অ্\u{200d}যা",
            "ക്\u{200d} പാൽ",
            "ශ්\u{200d}රී",
            // An abbreviation in Persian, Mongolian with a vowel separator and a variant, and Khmer
            // and Thai with invisible spaces between words.
            "ه\u{200d}.ش",
            "ᠭᠠᠯ\u{180e}ᠠ",
            "ᠠ\u{180b}ᠭ",
            "ខ្ញុំ\u{200b}ទៅ",
            "ได้\u{200b}ว่า",
            // A family, a heart on fire, a woman at work, a running man with a skin tone, the
            // rainbow flag.
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "👩🏽\u{200d}💻",
            "🏃🏿\u{200d}♂\u{fe0f}",
            "🏳\u{fe0f}\u{200d}🌈",
            // A keycap, a flag of two letters, the flag of Scotland, a sign with a variant, an
            // ideograph with one.
            "1\u{fe0f}\u{20e3}",
            "🇮🇷",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "∩\u{fe00}",
            "葛\u{e0100}",
        ] {
            assert_eq!(shown(text), text);
            assert!(!has_hidden(text), "{text:?}");
            assert_eq!(without_hidden(text, ' '), text);
        }
    }

    #[test]
    fn joiners_and_selectors_without_effect_are_shown_as_escapes() {
        for (text, escaped) in [
            // Between Latin letters, next to a space or digit, between two scripts.
            ("a\u{200d}b", r"a\u{200d}b"),
            ("pass\u{200c}word", r"pass\u{200c}word"),
            ("می\u{200c} خواهم", r"می\u{200c} خواهم"),
            ("می\u{200c}x", r"می\u{200c}x"),
            ("١\u{200c}٢", r"١\u{200c}٢"),
            ("م\u{200c}क", r"م\u{200c}क"),
            // At the edges, alone, repeated.
            ("\u{200d}م", r"\u{200d}م"),
            ("م\u{200d}\u{200d}.", r"م\u{200d}\u{200d}."),
            ("ក\u{200b}\u{200b}ក", r"ក\u{200b}\u{200b}ក"),
            ("ក\u{200b}a", r"ក\u{200b}a"),
            ("日\u{200b}本", r"日\u{200b}本"),
            ("a\u{180e}b", r"a\u{180e}b"),
            ("می\u{200c}", r"می\u{200c}"),
            ("\u{200d}", r"\u{200d}"),
            ("می\u{200c}\u{200c}خواهم", r"می\u{200c}\u{200c}خواهم"),
            ("क्\u{200d}\u{200d}ष", r"क्\u{200d}\u{200d}ष"),
            // An emoji with something else, and other joiners in it.
            ("👨\u{200d}a", r"👨\u{200d}a"),
            ("a\u{200d}👨", r"a\u{200d}👨"),
            ("👨\u{200c}👩", r"👨\u{200c}👩"),
            ("👨\u{200d}\u{200d}👩", r"👨\u{200d}\u{200d}👩"),
            // Selectors and tags that select no variant, as used to hide text.
            ("a\u{fe0f}", r"a\u{fe0f}"),
            ("1\u{fe0f}", r"1\u{fe0f}"),
            ("\u{fe0f}a", r"\u{fe0f}a"),
            ("∩\u{fe01}\u{fe00}", "∩\u{fe01}\\u{fe00}"),
            ("a\u{e0100}", r"a\u{e0100}"),
            ("🎉\u{e0061}\u{e007f}", r"🎉\u{e0061}\u{e007f}"),
            ("🏴\u{e0067}\u{e0062}\u{e0073}", r"🏴\u{e0067}\u{e0062}\u{e0073}"),
            // Direction marks, in any script.
            ("م\u{202e}ی", r"م\u{202e}ی"),
            ("👨\u{200e}\u{200d}👩", r"👨\u{200e}\u{200d}👩"),
        ] {
            assert_eq!(shown(text), escaped, "{text:?}");
            assert!(has_hidden(text), "{text:?}");
            assert_eq!(shown(escaped), escaped, "what is shown is shown as it is");
        }
        assert_eq!(without_hidden("می\u{200c}خواهم a\u{200d}b", ' '), "می\u{200c}خواهم a b");
    }

    proptest! {
        #[test]
        fn a_sanitised_text_has_no_hidden_characters_and_is_not_sanitised_again(
            parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..12),
        ) {
            let text = parts.concat();
            let once = shown(&text);
            prop_assert!(!has_hidden(&once), "{:?}", once);
            prop_assert_eq!(shown(&once), once);
            prop_assert!(!has_hidden(&without_hidden(&text, ' ')));
            // Line by line it is the same as at once.
            let mut whole = String::new();
            escape(&text, NewlineMode::Keep, &mut whole);
            prop_assert_eq!(sanitise(&text, NewlineMode::Keep), whole);
        }
    }

    #[test]
    fn line_breaks_are_kept_only_in_the_mode_that_keeps_them() {
        let text = "a\r\nb\tc\rd";
        assert_eq!(sanitise(text, NewlineMode::Escape), "a\\r\\nb\\tc\\rd");
        assert_eq!(sanitise(text, NewlineMode::Keep), "a\nb    c\\rd");
    }
}
