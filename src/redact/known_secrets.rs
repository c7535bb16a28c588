//! Searches for known secrets in a text: verbatim, and as JSON encodes them, including JSON nested
//! in JSON.
//!
//! A replacement is as long in bytes as what it replaces, at every depth of JSON, so offsets into
//! the text stay valid. It also keeps JSON valid: an escape is replaced by an escape, and a digit
//! of a number by a digit.

mod hashed;
mod order;
mod replacement;

pub use hashed::HashedSecrets;
pub(crate) use replacement::TextDifference;

use super::byte_text::backslashes;
use super::secret_detector::DetectorStream;
use super::secret_stream::SecretStream;
use crate::model::{MAX_PURGED_BYTES, MIN_HASHED_BYTES};
use order::{Descent, Entry, Order};
use std::ops::Range;

/// Minimum length of a secret, in bytes: shorter ones occur in texts by chance.
pub const MIN_SECRET_BYTES: usize = MIN_HASHED_BYTES;
/// Minimum length of a partial secret at an end of a truncated text, in bytes.
const MIN_PART_BYTES: usize = 8;
/// Maximum number of times that backslashes are doubled, once for each depth of JSON.
const MAX_DEPTH: u32 = 3;
/// Takes the place of a depth for compound ids, in which `/` and `%` are percent-encoded.
const JOINED: u32 = MAX_DEPTH + 1;
/// Maximum number of backslashes in an escape.
const MOST_SLASHES: usize = 64;
/// The beginning of a replacement, which continues with [`FILL`].
const MARK: &[u8] = b"purged";
const FILL: u8 = b'x';
/// The UTF-16 codes that replace a character in an escape, by its length in UTF-8.
const CODES: [[&[u8]; 2]; 4] = [[b"0078", b""], [b"00d7", b""], [b"2022", b""], [b"d83d", b"dd12"]];

/// Why a text cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidSecret {
    /// It is shorter than [`MIN_SECRET_BYTES`].
    Short,
    /// It is longer than [`MAX_PURGED_BYTES`].
    Long,
    /// It would still be found after it was replaced, because it is itself like a replacement.
    Mark,
}

/// A set of known secrets.
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets {
    secrets: Vec<SecretPattern>,
    /// For each byte, whether a secret that is not escaped may begin with it.
    first: Vec<bool>,
    order: Order,
}

#[derive(Clone, Debug)]
struct SecretPattern {
    chars: Vec<char>,
    /// For each character, the number of bytes before it; then the number of all bytes.
    bytes: Vec<usize>,
    /// Whether it contains a backslash: then it is written differently at every depth.
    doubled: bool,
    /// Whether it contains a quote, so that a match may extend beyond the end of a JSON string.
    quoted: bool,
    /// Whether it is written differently in a compound id.
    joined: bool,
}

/// A match of a secret, or of a part of one at an end of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSighting {
    /// The byte range.
    pub range: Range<usize>,
    /// Whether the match is complete.
    pub whole: bool,
    /// The index of the secret.
    secret: usize,
    /// The index of the first character of the secret that is in the match.
    from: usize,
    /// How often backslashes are doubled, or [`JOINED`].
    depth: u32,
}

/// One character of a secret as it is encoded in a text.
#[derive(Clone, Copy)]
enum CharEncoding {
    /// Unescaped.
    Plain,
    /// Backslashes and one character, as in `\n`.
    Letter,
    /// Backslashes, `u` and four hex digits, or two of these.
    Code,
    /// A backslash, doubled once for each depth.
    Doubled,
    /// A `%` and two hex digits, in a compound id.
    Joined,
}

impl KnownSecrets {
    /// Creates the set of these secrets.
    ///
    /// # Errors
    /// Fails if one of them cannot be searched for.
    pub fn new<T: AsRef<str>>(secrets: impl IntoIterator<Item = T>) -> Result<Self, InvalidSecret> {
        let mut known = Self::default();
        let mut seen = std::collections::BTreeSet::new();
        for secret in secrets {
            let text = secret.as_ref();
            if text.len() < MIN_SECRET_BYTES {
                return Err(InvalidSecret::Short);
            }
            if text.len() > MAX_PURGED_BYTES {
                return Err(InvalidSecret::Long);
            }
            if !seen.insert(text.to_owned()) {
                continue;
            }
            let chars: Vec<char> = text.chars().collect();
            let mut bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            bytes.push(text.len());
            let doubled = chars.contains(&'\\');
            let quoted = chars.contains(&'"');
            let joined = chars.iter().any(is_joined);
            let secret = SecretPattern { chars, bytes, doubled, quoted, joined };
            let masked = Self::of(vec![secret.clone()]);
            let left = |(new, _): (Vec<u8>, u64)| !masked.find(&new).is_empty();
            if masked.mask(text.as_bytes()).is_none_or(left) {
                return Err(InvalidSecret::Mark);
            }
            known.secrets.push(secret);
        }
        Ok(Self::of(known.secrets))
    }

    fn of(secrets: Vec<SecretPattern>) -> Self {
        let mut first = vec![false; 256];
        for char in secrets.iter().filter_map(|secret| secret.chars.first()) {
            first[usize::from(char.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
            first[usize::from(b'%')] |= *char == '/';
        }
        let order = Order::of(&secrets, MIN_PART_BYTES);
        Self { secrets, first, order }
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns a limit for the length in bytes of a secret as it is found in a text, in any
    /// encoding.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        let longest = self.secrets.iter().map(|secret| secret.chars.len()).max().unwrap_or(0);
        // For each character two codes, each after as many backslashes as an escape may have.
        longest.saturating_mul(2 * (MOST_SLASHES + 5)).saturating_add(64)
    }

    /// Returns whether a text contains a secret.
    #[must_use]
    pub fn holds(&self, text: &[u8]) -> bool {
        self.sightings(text, 0..text.len(), true).next().is_some()
    }

    /// Returns the matches in a text, in order and disjoint, including partial secrets at its ends
    /// and where the text says that it was truncated.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Vec<SecretSighting> {
        let mut found: Vec<SecretSighting> = self.sightings(text, 0..text.len(), true).collect();
        self.tails(text, 0..text.len() + 1, &mut found);
        found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end)));
        let mut end = 0;
        found.retain(|one| {
            let apart = one.range.start >= end;
            if apart {
                end = one.range.end;
            }
            apart
        });
        found
    }

    /// Returns the complete matches in a text that may be a piece of a longer one, such as of a
    /// file. They are in order and disjoint.
    pub fn find_whole(&self, text: &[u8]) -> impl Iterator<Item = SecretSighting> {
        self.sightings(text, 0..text.len(), false)
    }

    /// Returns the text with each match replaced by text of the same length, and the number of
    /// matches; `None` if there are none.
    #[must_use]
    pub fn mask(&self, text: &[u8]) -> Option<(Vec<u8>, u64)> {
        let (masked, places) = self.masked(text)?;
        Some((masked, places.len() as u64))
    }

    /// Returns the matches that begin in a range, in order and disjoint. If `ends`, they include
    /// the beginnings of secrets where the text ends, or says that it was truncated.
    pub(super) fn sightings(
        &self,
        text: &[u8],
        range: Range<usize>,
        ends: bool,
    ) -> impl Iterator<Item = SecretSighting> {
        let mut at = range.start;
        let end = range.end.min(text.len());
        std::iter::from_fn(move || {
            while at < end {
                let here = at;
                at += 1;
                let byte = text[here];
                let escape = byte == b'\\' && here.checked_sub(1).is_none_or(|b| text[b] != b'\\');
                if !(escape || self.first[usize::from(byte)]) {
                    continue;
                }
                if let Some(found) = self.best(text, here, ends) {
                    at = found.range.end.max(at);
                    return Some(found);
                }
            }
            None
        })
    }

    fn descent<'a>(&'a self, entries: &'a [Entry], text: &'a [u8], depth: u32) -> Descent<'a> {
        Descent { secrets: &self.secrets, entries, text, depth }
    }

    /// Returns the longest match that begins at an offset. If `ends`, it may be the beginning of a
    /// secret, where the text ends or says that it was truncated.
    fn best(&self, text: &[u8], at: usize, ends: bool) -> Option<SecretSighting> {
        let mut best: Option<SecretSighting> = None;
        for depth in self.order.depths.iter().copied() {
            let descent = self.descent(&self.order.whole, text, depth);
            descent.from(at, &mut |entries, count, end| {
                // The first entry is the shortest.
                let Some(secret) = entries.first().map(|entry| entry.secret) else { return };
                let whole = self.secrets[secret].chars.len() == count;
                let long = || self.secrets[secret].bytes[count] >= MIN_PART_BYTES;
                let part = || ends && long() && is_cut(&text[end..]);
                if best.as_ref().is_none_or(|best| best.range.end < end) && (whole || part()) {
                    best = Some(SecretSighting { range: at..end, whole, secret, from: 0, depth });
                }
            });
        }
        best
    }

    /// Finds the ends of secrets where the text begins, or may have omitted something: at the
    /// offsets in a range that are 0 or follow `...`, `…` or a quote.
    pub(super) fn tails(&self, text: &[u8], range: Range<usize>, found: &mut Vec<SecretSighting>) {
        let is_omission = |before: &[u8]| {
            before.ends_with(b"...")
                || before.ends_with("\u{2026}".as_bytes())
                || before.ends_with(b"\"")
        };
        let last = range.end.min(text.len() + 1);
        for at in (range.start..last).filter(|at| *at == 0 || is_omission(&text[..*at])) {
            for depth in self.order.depths.iter().copied() {
                let mut add = |secret: usize, from: usize, end: usize| {
                    found.push(SecretSighting {
                        range: at..end,
                        whole: false,
                        secret,
                        from,
                        depth,
                    });
                };
                let descent = self.descent(&self.order.ends, text, depth);
                descent.from(at, &mut |entries, count, end| {
                    let Some(Entry { secret, from }) = entries.first().copied() else { return };
                    if self.secrets[secret].chars.len() - from == count {
                        add(secret, from, end);
                    }
                });
                for number in self.order.long.iter().copied() {
                    let secret = &self.secrets[number];
                    let last = secret.chars.len();
                    let is_enough =
                        |from: &usize| secret.bytes[last] - secret.bytes[*from] >= MIN_PART_BYTES;
                    for from in (1..last).take_while(is_enough) {
                        let (count, end) = secret.walk(text, at, from, depth, &mut |_, _, _| {});
                        if count == last - from {
                            add(number, from, end);
                        }
                    }
                }
            }
        }
    }

    /// Overwrites a match in `out`, which is a copy of `text`.
    fn cover(&self, text: &[u8], found: &SecretSighting, out: &mut [u8]) {
        let Some(secret) = self.secrets.get(found.secret) else { return };
        let mut units = Vec::new();
        let mut add = |range: Range<usize>, written, char| {
            if range.end <= found.range.end {
                units.push((range, written, char));
            }
        };
        secret.walk(text, found.range.start, found.from, found.depth, &mut add);
        let plain = |unit: &(Range<usize>, CharEncoding, char)| {
            matches!(unit.1, CharEncoding::Plain) && unit.0.len() == 1 && !secret.keeps(unit.2)
        };
        let marked = units.len() >= MARK.len() && units.iter().take(MARK.len()).all(plain);
        let number = units.iter().all(|unit| plain(unit) && unit.2.is_ascii_digit())
            && is_number_in_json(text, &found.range);
        for (place, (range, written, char)) in units.iter().enumerate() {
            let bytes = &mut out[range.clone()];
            match written {
                CharEncoding::Plain if secret.keeps(*char) => {}
                // These characters are kept in every encoding, so that equal texts stay equal.
                CharEncoding::Joined => {}
                CharEncoding::Code if is_joined(char) => {}
                CharEncoding::Plain if number => bytes.fill(if *char == '7' { b'1' } else { b'7' }),
                CharEncoding::Plain if marked && place < MARK.len() => bytes.fill(MARK[place]),
                CharEncoding::Plain => bytes.fill(FILL),
                CharEncoding::Letter => *bytes.last_mut().expect("a letter") = b'/',
                CharEncoding::Doubled if bytes.len() == 1 => bytes.fill(FILL),
                CharEncoding::Doubled => *bytes.last_mut().expect("a backslash") = b'/',
                CharEncoding::Code => code(*char, bytes),
            }
        }
        if let Some((range, CharEncoding::Plain, char)) = units.first() {
            keep_escape(text, range.start, *char, &found.range, out);
        }
    }
}

/// Replaces ranges of a text.
pub(crate) trait TextMasker {
    /// Returns the text with some ranges replaced by text of the same length, and these ranges;
    /// `None` if nothing changes.
    fn masked(&self, text: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)>;

    /// Returns the text with the same ranges replaced.
    fn masked_text(&self, text: &str) -> String {
        match self.masked(text.as_bytes()) {
            Some((masked, _)) => String::from_utf8_lossy(&masked).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Returns a search of a text that is read in pieces; `None` if it could find something else
    /// than a search of the whole text.
    fn pieces(&self) -> Option<TextPieces<'_>> {
        None
    }
}

/// A search of a text that is read in pieces.
pub(crate) enum TextPieces<'a> {
    /// Counts known secrets.
    Known(SecretStream<'a>),
    /// Collects the secrets that a detector finds.
    Sought(DetectorStream<'a>),
}

impl TextMasker for KnownSecrets {
    fn masked(&self, text: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)> {
        let found = self.find(text);
        if found.is_empty() {
            return None;
        }
        let mut masked = text.to_vec();
        for one in &found {
            self.cover(text, one, &mut masked);
        }
        Some((masked, found.into_iter().map(|one| one.range).collect()))
    }

    fn pieces(&self) -> Option<TextPieces<'_>> {
        Some(TextPieces::Known(SecretStream::new(self)))
    }
}

/// Returns whether a character is percent-encoded in a compound id.
const fn is_joined(char: &char) -> bool {
    matches!(char, '/' | '%')
}

impl SecretPattern {
    /// Returns whether a character that is not escaped is kept: `/`, `%`, a line break, and what
    /// may be JSON syntax if a match may extend beyond a string.
    const fn keeps(&self, char: char) -> bool {
        is_joined(&char)
            || matches!(char, '\n' | '\r')
            || (self.quoted && matches!(char, '"' | '{' | '}' | '[' | ']' | ':' | ','))
    }

    /// Returns how many characters, counted from `from`, match the text at an offset, and where
    /// they end. Calls `each` with the range, encoding and value of each of them.
    fn walk(
        &self,
        text: &[u8],
        at: usize,
        from: usize,
        depth: u32,
        each: &mut dyn FnMut(Range<usize>, CharEncoding, char),
    ) -> (usize, usize) {
        let mut end = at;
        let mut count = 0;
        for char in &self.chars[from..] {
            let Some((next, written)) = step(text, end, *char, depth) else { break };
            each(end..next, written, *char);
            end = next;
            count += 1;
        }
        (count, end)
    }
}

/// Returns where a character that is encoded at an offset ends, and its encoding; `None` if another
/// one is there.
fn step(text: &[u8], at: usize, char: char, depth: u32) -> Option<(usize, CharEncoding)> {
    let rest = text.get(at..)?;
    if depth == JOINED && is_joined(&char) {
        let code: &[u8] = if char == '/' { b"%2F" } else { b"%25" };
        return rest.starts_with(code).then_some((at + code.len(), CharEncoding::Joined));
    }
    if char == '\\' && depth != JOINED {
        let bytes = 1 << depth;
        if rest.len() >= bytes && rest[..bytes].iter().all(|byte| *byte == b'\\') {
            return Some((at + bytes, CharEncoding::Doubled));
        }
    } else {
        let mut plain = [0; 4];
        let plain = char.encode_utf8(&mut plain).as_bytes();
        if rest.starts_with(plain) {
            return Some((at + plain.len(), CharEncoding::Plain));
        }
    }
    let slashes = backslashes(rest, 0, MOST_SLASHES);
    if slashes == 0 {
        return None;
    }
    let letter = match char {
        '"' | '/' => char as u8,
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => 0,
    };
    if letter != 0 && rest.get(slashes) == Some(&letter) {
        return Some((at + slashes + 1, CharEncoding::Letter));
    }
    let mut codes = [0_u16; 2];
    let mut end = 0;
    for (place, wanted) in char.encode_utf16(&mut codes).iter().enumerate() {
        let rest = rest.get(end..)?;
        let slashes = if place == 0 { slashes } else { backslashes(rest, 0, MOST_SLASHES) };
        let digits = rest.get(slashes + 1..slashes + 5)?;
        let value = std::str::from_utf8(digits).ok().and_then(|d| u16::from_str_radix(d, 16).ok());
        if slashes == 0 || rest.get(slashes) != Some(&b'u') || value != Some(*wanted) {
            return None;
        }
        end += slashes + 5;
    }
    Some((at + end, CharEncoding::Code))
}

/// Returns whether the text or a string in it ends before `rest`, or says that it was truncated.
fn is_cut(rest: &[u8]) -> bool {
    let slashes = backslashes(rest, 0, MOST_SLASHES);
    let bare = &rest[slashes..];
    rest.is_empty()
        || rest.starts_with(b"...")
        || rest.starts_with("\u{2026}".as_bytes())
        || bare.starts_with(b"\"")
        || bare.starts_with(b"u2026")
}

/// Overwrites the code in an escape by that of another character with the same length in UTF-8.
fn code(char: char, bytes: &mut [u8]) {
    let mut codes = CODES[char.len_utf8() - 1].iter();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'u'
            && let Some(code) = codes.next()
            && let Some(place) = bytes.get_mut(at + 1..at + 1 + code.len())
        {
            place.copy_from_slice(code);
            at += 5;
        } else {
            at += 1;
        }
    }
}

/// Returns whether the range may be a number of a JSON document, or a part of one.
fn is_number_in_json(text: &[u8], range: &Range<usize>) -> bool {
    let of_number =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let before = text[..range.start].iter().rev().find(|byte| !of_number(byte) && **byte != b' ');
    let after = text[range.end..].iter().find(|byte| !of_number(byte) && **byte != b' ');
    before.is_none_or(|byte| matches!(byte, b':' | b',' | b'[' | b'\n'))
        && after.is_none_or(|byte| matches!(byte, b',' | b']' | b'}' | b'\n' | b'\r'))
}

/// Keeps an escape valid that begins before a secret and ends with its first characters.
fn keep_escape(text: &[u8], start: usize, first: char, range: &Range<usize>, out: &mut [u8]) {
    let before = &text[..start];
    let slash = before.last() == Some(&b'\\');
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    if slash && first == 'u' && text.get(start + 1..start + 5).is_some_and(digits) {
        let length = range.len().min(5);
        out[start..start + length].copy_from_slice(&b"u0078"[..length]);
    } else if slash && matches!(first, '"' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') {
        out[start] = b'/';
    }
    for known in 0..4 {
        let Some(at) = start.checked_sub(known + 2) else { break };
        if text[at] == b'\\' && text[at + 1] == b'u' && digits(&text[at + 2..start]) {
            let missing = (4 - known).min(range.len());
            if digits(&text[start..start + missing]) {
                out[start..start + missing].fill(b'7');
            }
        }
    }
}

#[cfg(test)]
mod tests;
