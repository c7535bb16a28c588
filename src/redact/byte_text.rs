//! Functions on the bytes of a text that several rules use.

use super::work_counter;

pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns how many bytes in a row from `at` on are `inside`: at most `max`.
pub(super) fn run(text: &[u8], at: usize, max: usize, inside: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(at..text.len().min(at + max)).unwrap_or_default();
    let length = rest.iter().take_while(|byte| inside(**byte)).count();
    work_counter::add(length);
    length
}

/// Returns how many backslashes in a row there are from `at` on: at most `max`.
pub(super) fn backslashes(text: &[u8], at: usize, max: usize) -> usize {
    text.iter().skip(at).take(max).take_while(|byte| **byte == b'\\').count()
}

/// Returns how many backslashes there are at the end of a text: those before a quote that is
/// escaped once or more often.
pub(super) fn backslashes_at_end(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Returns whether the byte at `at` is the letter of an escaped line end or tab: `\n`.
pub(super) fn is_letter_of_escape(text: &[u8], at: usize) -> bool {
    matches!(text.get(at.wrapping_sub(1)..), Some([b'\\', b'n' | b'r' | b't', ..]))
}

/// Returns whether a word can begin at `at`: the letters and digits before it, if any, belong to an
/// escape, a flag or a prefix such as `token_`.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let before = text.get(at.saturating_sub(32)..at).unwrap_or_default();
    let Some(last) = before.last() else { return true };
    if !is_word(*last) || text.get(at).is_some_and(|byte| !is_word(*byte)) {
        return true;
    }
    match before {
        // An escape in a string, a URL or terminal output.
        [.., b'\\', b'n' | b'r' | b't' | b'f' | b'b' | b'v' | b'a' | b'0' | b'_'] => true,
        [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()),
        [.., b'\\', b'x', a, b] | [.., b'%', a, b] | [.., b'%', b'2', b'5', a, b] => {
            a.is_ascii_hexdigit() && b.is_ascii_hexdigit()
        }
        [.., b'\\', a @ b'0'..=b'3', b, c] => {
            [a, b, c].iter().all(|digit| (b'0'..=b'7').contains(*digit))
        }
        [.., b'(', b'B'] => true,
        // A one-letter flag: `-pSECRET`.
        [b'-', letter] | [.., b' ' | b'"' | b'\'' | b'=' | b',' | b'\n' | b'\t', b'-', letter] => {
            letter.is_ascii_alphabetic()
        }
        // The end of a terminal escape: `ESC[1;31m`.
        [rest @ .., b'm' | b'K'] => {
            let rest =
                rest.iter().rev().find(|byte| !byte.is_ascii_digit() && !b";:".contains(byte));
            rest == Some(&b'[')
        }
        _ => is_glued(before),
    }
}

/// Returns whether a token may follow these bytes without a separator: `--token`, `token_`, `-hp`
/// of an archiver, or a word with letters that are not ASCII.
fn is_glued(before: &[u8]) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let count = before.iter().rev().take_while(|byte| is_word(byte)).count();
    let word = before.get(before.len() - count..).unwrap_or_default();
    let ends = |end: &str| {
        word.len()
            .checked_sub(end.len())
            .is_some_and(|at| word[at..].eq_ignore_ascii_case(end.as_bytes()))
    };
    ["token", "token_", "key_", "secret_"].iter().any(|end| ends(end))
        || before.ends_with(b"-hp")
        || word.iter().any(|byte| !byte.is_ascii())
}

/// Returns whether the byte occurs in base64, in either alphabet.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Decodes base64 (RFC 4648) in either alphabet, with or without padding; `None` if the text is not
/// base64 or has fewer than 8 characters without padding.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    if text.len() < 8 || text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut count) = (0_u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}
