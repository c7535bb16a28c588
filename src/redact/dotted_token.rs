//! Tokens without a fixed prefix: parts of known lengths, joined by a dot or a bar.
//!
//! They have no hint, so they are found by their joint, the dot or bar. A few comparisons dismiss
//! nearly every joint.

use super::byte_text::run;
use super::{SecretFinding, byte_text, secret_heuristics, work_counter};
use memchr::memchr2_iter;
use std::ops::Range;

/// Finds the tokens whose first joint is in this range of a text.
pub(super) fn find_all(text: &[u8], share: Range<usize>) -> impl Iterator<Item = SecretFinding> {
    let inside = text.get(share.clone()).unwrap_or_default();
    memchr2_iter(b'.', b'|', inside).filter_map(move |at| {
        work_counter::add(1);
        find(text, share.start + at)
    })
}

/// Finds the token that has its first joint here.
fn find(text: &[u8], at: usize) -> Option<SecretFinding> {
    let is_bot = text.get(at + 7) == Some(&b'.');
    let after = text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    let before = text.get(at.checked_sub(1)?).copied().filter(u8::is_ascii_alphanumeric)?;
    if !after {
        return None;
    }
    let has_letter = matches!(before, b's' | b'b' | b'o')
        && !at.checked_sub(2).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    let found = match text.get(at) {
        Some(b'|') => facebook(text, at),
        _ if has_letter => after_letter(text, at, before),
        _ if is_bot => discord(text, at),
        _ => hex_pair(text, at),
    }?;
    // The number before a bar is not random.
    let from = if text.get(at) == Some(&b'|') { at + 1 } else { found.range.start };
    let is_random = secret_heuristics::is_random(text.get(from..found.range.end)?);
    (is_random && byte_text::begins_word(text, found.range.start)).then_some(found)
}

/// Returns the length of the run of bytes that ends before `at`, at most `max`.
fn run_before(text: &[u8], at: usize, max: usize, inside: impl Fn(u8) -> bool) -> usize {
    let before = text.get(at.saturating_sub(max)..at).unwrap_or_default();
    let length = before.iter().rev().take_while(|byte| inside(**byte)).count();
    work_counter::add(length);
    length
}

fn is_url_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Finds the token of a Discord bot: its id in base64, a time, and a signature.
fn discord(text: &[u8], at: usize) -> Option<SecretFinding> {
    let id = run_before(text, at, 29, is_url_base64);
    let is_id = (23..=28).contains(&id) && matches!(text.get(at - id), Some(b'M' | b'N' | b'O'));
    let time = run(text, at + 1, 7, is_url_base64);
    let signature = run(text, at + 8, 40, is_url_base64);
    (is_id && time == 6 && (27..=38).contains(&signature))
        .then_some(SecretFinding { range: at - id..at + 8 + signature, kind: "discord-bot-token" })
}

/// Finds the access token of a Facebook app: its number and its secret.
fn facebook(text: &[u8], at: usize) -> Option<SecretFinding> {
    let number = run_before(text, at, 17, |byte| byte.is_ascii_digit());
    let secret = run(text, at + 1, 41, is_url_base64);
    ((15..=16).contains(&number) && (27..=40).contains(&secret)).then_some(SecretFinding {
        range: at - number..at + 1 + secret,
        kind: "facebook-app-token",
    })
}

/// Finds a token after one letter and a dot: of Vault (24 characters after `s` or `b`), of
/// Pushbullet (32 after `o`).
fn after_letter(text: &[u8], at: usize, letter: u8) -> Option<SecretFinding> {
    let length = run(text, at + 1, 33, |byte| byte.is_ascii_alphanumeric());
    let range = at - 1..at + 1 + length;
    match (letter, length) {
        (b'o', 32) => Some(SecretFinding { range, kind: "pushbullet-token" }),
        (b's' | b'b', 24) => Some(SecretFinding { range, kind: "vault-legacy-token" }),
        _ => None,
    }
}

/// Finds a key of Zhipu (32 hex digits and 16 characters), or a token of Zoho (`1000.` and twice 32
/// hex digits).
fn hex_pair(text: &[u8], at: usize) -> Option<SecretFinding> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if run_before(text, at, 33, is_hex) != 32 {
        return None;
    }
    let length = run(text, at + 1, 33, |byte| byte.is_ascii_alphanumeric());
    let hex = run(text, at + 1, 33, is_hex);
    let begin = text.get(at.saturating_sub(37)..at - 32);
    match (length, hex) {
        (16, _) => Some(SecretFinding { range: at - 32..at + 17, kind: "zhipu-key" }),
        (32, 32) if begin == Some(b"1000.") => {
            Some(SecretFinding { range: at - 37..at + 33, kind: "zoho-token" })
        }
        _ => None,
    }
}
