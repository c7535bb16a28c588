//! Finds private keys between `BEGIN` and `END`, as files and programs write them: with a prefix on
//! each line (`+`, `> `, `12: `, a colour), with escaped line ends, or with the lines in a JSON
//! list.

use super::byte_text::{is_base64, is_letter_of_escape, run};
use super::credential::CredentialMatch;
use super::{MAX_SECRET_BYTES, SecretFinding, TextForm, secret_heuristics, work_counter};

/// Minimum number of base64 characters in a key.
const MIN_KEY_BYTES: usize = 40;
/// Minimum length of a line of a key. The last line may be shorter.
const MIN_LINE_BYTES: usize = 24;
/// Maximum number of bytes between two lines of a key: the line end and a prefix.
const MAX_GAP_BYTES: usize = 96;
/// Maximum number of bytes between `BEGIN` and the first line of a key: headers.
const MAX_HEADER_BYTES: usize = 256;
const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"-----BEGIN";
const END: &[u8] = b"-----END ";

/// Returns the offset after the label that begins at `at` and after its five dashes, if it is the
/// label of a private key. The second value is true if the text ends before the last dash.
fn label(text: &[u8], at: usize) -> (Option<usize>, bool) {
    let length = run(text, at, 64, |byte| byte.is_ascii_alphanumeric() || byte == b' ');
    let title = text.get(at..at + length).unwrap_or_default();
    let is_private = ["PRIVATE KEY", "PRIVATE KEY BLOCK", "OpenVPN Static key V1"]
        .iter()
        .any(|known| title.ends_with(known.as_bytes()));
    let after = text.get(at + length..text.len().min(at + length + 5)).unwrap_or_default();
    let is_open =
        after.len() < 5 && DASHES.starts_with(after) && at + length + after.len() == text.len();
    ((is_private && after == DASHES).then_some(at + length + 5), is_open)
}

/// Finds a private key, from `-----BEGIN ... PRIVATE KEY-----` to its `END` or, without an `END`,
/// to its last line. `end` is the offset of the label.
pub(super) fn find(text: &[u8], start: usize, end: usize, form: TextForm) -> CredentialMatch {
    let (body, is_open) = label(text, end);
    if is_open {
        return CredentialMatch::Open(start, None);
    }
    let Some(body) = body else { return CredentialMatch::Nothing };
    let whole =
        |key: &KeyBody| key.found(start).map_or(CredentialMatch::Nothing, CredentialMatch::Secret);
    let limit = text.len().min(start + MAX_SECRET_BYTES);
    let plain = plain_body(text, body, limit, form);
    if plain.closed {
        return whole(&plain);
    }
    let lines = lines(text, body, limit, form);
    let is_longer = lines.key >= MIN_KEY_BYTES && (lines.closed || lines.end > plain.end);
    let found = if is_longer { lines } else { plain };
    if found.stopped == text.len() {
        return CredentialMatch::Open(start, found.found(start));
    }
    whole(&found)
}

/// Finds the end of a private key whose `BEGIN` is missing: the lines before
/// `-----END ... PRIVATE KEY-----`, and this line. `start` is the offset of the line, `end` that of
/// its label.
pub(super) fn find_tail(
    text: &[u8],
    start: usize,
    end: usize,
    form: TextForm,
) -> Option<SecretFinding> {
    let end = label(text, end).0?;
    let least = start.saturating_sub(MAX_SECRET_BYTES);
    let (mut at, mut first, mut key, mut gap) = (start, start, 0, 0);
    while at > least && gap <= MAX_GAP_BYTES {
        work_counter::add(1);
        let before = text.get(least..at).unwrap_or_default();
        let length = before.iter().rev().take_while(|byte| is_of_line(**byte)).count();
        work_counter::add(length);
        let line = text.get(at - length..at).unwrap_or_default();
        if is_line(line) || key == 0 && length > 0 && is_last_line(text, at - length, at) {
            key += length;
            at -= length;
            // The letter of an escape stays with its backslash.
            (gap, first) = (0, at + usize::from(is_letter_of_escape(text, at)));
            continue;
        }
        gap += length.max(1);
        at -= length.max(1);
        let rest = text.get(at..).unwrap_or_default();
        // The dashes after an earlier key, or an empty line.
        let is_mark = rest.starts_with(DASHES) && at + DASHES.len() <= start;
        if length == 0 && (is_mark || rest.starts_with(b"\n\n")) {
            break;
        }
        if form == TextForm::Json && rest.first() == Some(&b'\n') {
            break;
        }
        if is_bare_quote(text, at, form) {
            let Some(other) = list_joint_before(text, at) else { break };
            gap += at - other;
            at = other;
        }
    }
    (key >= MIN_LINE_BYTES).then_some(SecretFinding { range: first..end, kind: "private-key" })
}

/// Finds the lines of a key that follow `at`, where a header other than `BEGIN` ends.
pub(super) fn lines_after(text: &[u8], at: usize, form: TextForm) -> Option<SecretFinding> {
    lines(text, at, text.len().min(at + MAX_SECRET_BYTES), form).found(at)
}

/// The key after a `BEGIN`.
struct KeyBody {
    /// The number of its base64 characters.
    key: usize,
    /// The offset of its end in the text.
    end: usize,
    /// The offset at which the search for its end stopped.
    stopped: usize,
    /// Whether an `END` was found.
    closed: bool,
}

impl KeyBody {
    fn found(&self, start: usize) -> Option<SecretFinding> {
        (self.key >= MIN_KEY_BYTES)
            .then_some(SecretFinding { range: start..self.end, kind: "private-key" })
    }
}

/// Returns the offset after the `-----END ... -----` that begins at `at`.
fn end_of_key(text: &[u8], at: usize) -> usize {
    // A quote or backslash belongs to the text around the key, never to its last line.
    let label = run(text, at + END.len(), 64, |byte| {
        !b"-\"\\".contains(&byte) && byte.is_ascii_graphic() || byte == b' '
    });
    let at = at + END.len() + label;
    let closes = text.get(at..at + 5) == Some(DASHES);
    at + if closes { 5 } else { 0 }
}

/// Reads a key that has only whitespace, quotes, escapes and some punctuation between its lines.
fn plain_body(text: &[u8], body: usize, limit: usize, form: TextForm) -> KeyBody {
    let (mut at, mut key) = (body, 0);
    while at < limit {
        let rest = text.get(at..limit).unwrap_or_default();
        if rest.starts_with(END) {
            let end = end_of_key(text, at);
            return KeyBody { key, end, stopped: end, closed: true };
        }
        if rest.starts_with(BEGIN) {
            break;
        }
        work_counter::add(1);
        match rest.first() {
            Some(byte) if is_base64(*byte) => {
                key += 1;
                at += 1;
            }
            Some(b' ' | b'\n' | b'\r' | b'\t' | b':' | b',' | b'.' | b'(' | b')' | b'\'') => {
                at += 1;
            }
            Some(b'"') if form == TextForm::Plain => at += 1,
            Some(b'\\') => {
                // Backslashes and the character that they escape are one step.
                let slashes = run(text, at, 16, |byte| byte == b'\\');
                if !matches!(text.get(at + slashes), Some(b'n' | b'r' | b't' | b'"' | b'/' | b'\''))
                {
                    break;
                }
                at += slashes + 1;
            }
            _ => break,
        }
    }
    let stopped = at;
    // What follows the last base64 character is not part of the key.
    while stopped < text.len()
        && at > body
        && !text.get(at - 1).is_some_and(|byte| is_base64(*byte))
    {
        at -= 1;
    }
    KeyBody { key, end: at, stopped, closed: false }
}

/// Reads a key whose lines have prefixes or unusual ends. Each long base64 word continues the key.
fn lines(text: &[u8], body: usize, limit: usize, form: TextForm) -> KeyBody {
    let (mut at, mut end, mut key, mut gap) = (body, body, 0, 0);
    while at < limit && gap <= if key == 0 { MAX_HEADER_BYTES } else { MAX_GAP_BYTES } {
        work_counter::add(1);
        let rest = text.get(at..limit).unwrap_or_default();
        if rest.starts_with(END) {
            let end = end_of_key(text, at);
            return KeyBody { key, end, stopped: end, closed: true };
        }
        let length = run(text, at, limit - at, is_of_line);
        if is_line(rest.get(..length).unwrap_or_default()) {
            key += length;
            at += length;
            (gap, end) = (0, at);
            continue;
        }
        let is_over = length == 0
            && (rest.starts_with(BEGIN)
                || rest.starts_with(b"\":")
                || key > 0 && rest.starts_with(b"\n\n")
                || form == TextForm::Json && rest.first() == Some(&b'\n'));
        if is_over {
            return KeyBody { key, end, stopped: at, closed: false };
        }
        let mut step = length.max(1);
        if is_bare_quote(text, at, form) {
            let Some(other) = list_joint(text, at) else {
                return KeyBody { key, end, stopped: at, closed: false };
            };
            step = other - at;
        }
        gap += step;
        at += step;
    }
    KeyBody { key, end: if at == text.len() { at } else { end }, stopped: at, closed: false }
}

fn is_of_line(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Returns whether a word may be a line of a key: it is long, has letters of both cases and digits,
/// and is not made mostly of words. 32 hexadecimal digits may be in lower case: they are a line of
/// an OpenVPN static key.
fn is_line(word: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    word.len() >= MIN_LINE_BYTES
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && (has(u8::is_ascii_uppercase)
            || word.len() == 32 && word.iter().all(u8::is_ascii_hexdigit))
        && !secret_heuristics::is_words(word.get(..word.len().min(128)).unwrap_or_default())
}

/// Returns whether the word from `start` to `end` may be the short last line of a key: it ends with
/// `=`, and no backslash precedes it.
fn is_last_line(text: &[u8], start: usize, end: usize) -> bool {
    text.get(end - 1) == Some(&b'=')
        && start.checked_sub(1).and_then(|at| text.get(at)) != Some(&b'\\')
}

/// Returns whether there is a quote at `at` that begins or ends a string of JSON.
fn is_bare_quote(text: &[u8], at: usize, form: TextForm) -> bool {
    form == TextForm::Json
        && text.get(at) == Some(&b'"')
        && at.checked_sub(1).and_then(|before| text.get(before)) != Some(&b'\\')
}

/// Returns the offset after the `", "` between two strings of a list. It begins at `at`.
fn list_joint(text: &[u8], at: usize) -> Option<usize> {
    let space = |at| run(text, at, 32, |byte| matches!(byte, b' ' | b'\t' | b'\n'));
    let comma = at + 1 + space(at + 1);
    let quote = comma + 1 + space(comma + 1);
    (text.get(comma) == Some(&b',') && text.get(quote) == Some(&b'"')).then_some(quote + 1)
}

/// Returns the offset of the first quote of the `", "` between two strings of a list. Its last
/// quote is at `at`.
fn list_joint_before(text: &[u8], at: usize) -> Option<usize> {
    let before = |at: usize| text.get(at.saturating_sub(32)..at).unwrap_or_default();
    let space =
        |at: usize| before(at).iter().rev().take_while(|byte| b" \t\n".contains(byte)).count();
    let comma = (at - space(at)).checked_sub(1)?;
    let quote = (comma - space(comma)).checked_sub(1)?;
    (text.get(comma) == Some(&b',') && text.get(quote) == Some(&b'"')).then_some(quote)
}
