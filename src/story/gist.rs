//! The gist of a message: how it begins, in plain words, and the question it ends with.

pub(super) use crate::model::text::one_line;

/// The longest text of an item, in characters.
pub(super) const ITEM_CHARS: usize = 240;
/// The longest question that is repeated beside its answer, in characters.
const QUESTION_CHARS: usize = 160;
/// A first paragraph with fewer characters than this is continued by the next paragraph.
const SHORT_PARAGRAPH: usize = 60;

/// The paragraphs of a Markdown text as plain text: without code blocks, tables, marks of bold and
/// italic text, and addresses of links.
struct PlainText {
    paragraphs: Vec<PlainParagraph>,
}

struct PlainParagraph {
    text: String,
    /// Whether it is an entry of a list.
    listed: bool,
}

impl PlainText {
    fn of(text: &str) -> Self {
        let mut paragraphs: Vec<PlainParagraph> = Vec::new();
        let (mut fenced, mut open) = (false, false);
        for line in text.lines() {
            let line = line.trim();
            if line.starts_with("```") || line.starts_with("~~~") {
                (fenced, open) = (!fenced, false);
                continue;
            }
            let is_rule = line.len() >= 3 && line.chars().all(|c| "-=*_ ".contains(c));
            if fenced || line.is_empty() || line.starts_with('|') || is_rule {
                open = false;
                continue;
            }
            let (listed, words) = without_bullet(line);
            let text = without_marks(words);
            match paragraphs.last_mut() {
                Some(last) if open && !listed && !line.starts_with('#') => {
                    last.text.push(' ');
                    last.text.push_str(&text);
                }
                _ => paragraphs.push(PlainParagraph { text, listed }),
            }
            open = !line.starts_with('#');
        }
        paragraphs.retain(|paragraph| !paragraph.text.trim().is_empty());
        Self { paragraphs }
    }
}

/// Returns whether a line is an entry of a list, and its words without the bullet or number of the
/// entry, or the `#` of a heading.
fn without_bullet(line: &str) -> (bool, &str) {
    if let Some(rest) = line.strip_prefix(['-', '*', '•', '+']).filter(|it| it.starts_with(' ')) {
        return (true, rest.trim_start());
    }
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_short = (1..=3).contains(&(line.len() - number.len()));
    if let Some(rest) = number.strip_prefix(['.', ')']).filter(|it| is_short && it.starts_with(' '))
    {
        return (true, rest.trim_start());
    }
    (false, line.trim_start_matches('#').trim_start())
}

/// Removes the marks of bold and italic text, and the addresses of links.
fn without_marks(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(place) = rest.find(['*', '_', '[', '`']) {
        let (before, from) = rest.split_at(place);
        plain.push_str(before);
        if let Some(code) = from.strip_prefix('`') {
            // Inline code keeps its marks, and stays as it is.
            let end = code.find('`').map_or(code.len(), |end| end + 1);
            plain.push('`');
            plain.push_str(code.get(..end).unwrap_or(code));
            rest = code.get(end..).unwrap_or_default();
        } else if let Some((words, after)) = link(from) {
            plain.push_str(&without_marks(words));
            rest = after;
        } else {
            let mark = from.chars().next().unwrap_or_default();
            let inner = from.trim_start_matches(mark);
            let is_single = from.len() - inner.len() == 1;
            let within_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let inside =
                within_word(before.chars().next_back()) && within_word(inner.chars().next());
            let is_times = mark == '*' && is_single && inner.starts_with(' ');
            if mark == '[' || (inside && mark == '_') || is_times {
                plain.push_str(from.get(..from.len() - inner.len()).unwrap_or_default());
            }
            rest = inner;
        }
    }
    plain.push_str(rest);
    plain
}

/// Splits `[words](address) rest` into the words and the rest.
fn link(text: &str) -> Option<(&str, &str)> {
    let (words, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (address, rest) = rest.split_once(')')?;
    (!words.contains(['[', '\n']) && !address.contains(' ')).then_some((words, rest))
}

/// Returns the beginning of a message, at most this many characters long, and the question at its
/// end if the beginning does not contain it.
pub(super) fn gist(text: &str, chars: usize) -> String {
    let plain = PlainText::of(text);
    let mut paragraphs = plain.paragraphs.iter();
    let Some(first) = paragraphs.next() else { return String::new() };
    let mut head = first.text.clone();
    if head.chars().count() < SHORT_PARAGRAPH
        && let Some(next) = paragraphs.next()
    {
        head.push(' ');
        head.push_str(&next.text);
    }
    let question = question_at_end(&plain).filter(|question| !head.contains(question.as_str()));
    let mut gist = one_line(&head, chars);
    if let Some(question) = question {
        let joint = if gist.ends_with('…') { " " } else { " … " };
        gist = format!("{gist}{joint}{}", one_line(&question, QUESTION_CHARS));
    }
    gist
}

/// Returns the question that a message ends with. Options listed after it do not matter.
#[must_use]
pub fn closing_question(text: &str) -> Option<String> {
    let question = question_at_end(&PlainText::of(text))?;
    Some(one_line(&question, QUESTION_CHARS))
}

fn question_at_end(plain: &PlainText) -> Option<String> {
    let last = plain.paragraphs.iter().rfind(|paragraph| !paragraph.listed)?;
    let text = last.text.trim_end();
    let text = text.strip_suffix(['?'])?;
    let start = text
        .char_indices()
        .rfind(|(place, c)| {
            let next = text.get(place + c.len_utf8()..).and_then(|rest| rest.chars().next());
            matches!(c, '.' | '!' | '?' | ':') && next.is_some_and(char::is_whitespace)
        })
        .map_or(0, |(place, c)| place + c.len_utf8());
    let question = text.get(start..).unwrap_or_default().trim();
    (question.chars().count() > 8).then(|| format!("{question}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_is_the_first_paragraph_in_plain_words() {
        for (text, expected) in [
            ("Done.", "Done."),
            (
                "## Summary\n\nThe **cache** is `stale_at` [here](http://x/y).\n\nMore.",
                "Summary The cache is `stale_at` here.",
            ),
            (
                "```\ncode\n```\nIt works now, in every one of the sixteen cases that were tried before.",
                "It works now, in every one of the sixteen cases that were tried before.",
            ),
            ("| a | b |\n|---|---|\n\nA table came first.", "A table came first."),
            ("snake_case and 2 * 3 stay", "snake_case and 2 * 3 stay"),
            ("**Next:** how so?", "Next: how so?"),
            ("", ""),
            ("---\n```\nonly code", ""),
        ] {
            assert_eq!(gist(text, 200), expected, "{text}");
        }
    }

    #[test]
    fn a_shortened_text_keeps_the_question_at_its_end() {
        let text = "There are two ways to do it, and both of them have been tried by others before.\n\n\
                    - first\n- second\n\nBoth work. Which one do you want?\n\n1. **A**\n2. B";
        assert_eq!(closing_question(text).as_deref(), Some("Which one do you want?"));
        let short = gist(text, 40);
        assert_eq!(short, "There are two ways to do it, and both… Which one do you want?");
        for text in ["Did it work? Yes.", "It did.", "Is it?\n\nIt is.", "Why?", "Почему?"] {
            assert_eq!(closing_question(text), None, "{text}");
        }
        assert_eq!(
            closing_question("**Next question:** How so exactly?").as_deref(),
            Some("How so exactly?")
        );
        assert_eq!(closing_question("Почему это?").as_deref(), Some("Почему это?"));
    }
}
