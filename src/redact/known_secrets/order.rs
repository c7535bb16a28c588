//! Sorted secrets and suffixes of secrets, so that those at an offset of a text are found without
//! comparing each.

use super::super::byte_text::backslashes;
use super::super::work_counter;
use super::{JOINED, MAX_DEPTH, MOST_SLASHES, SecretPattern, step};
use std::ops::Range;

/// Maximum length, in characters, of a secret whose suffixes are sorted.
const MOST_CHARS: usize = 4096;

/// A suffix of a secret, from one of its characters on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) secret: usize,
    pub(super) from: usize,
}

/// An index of secrets by prefix, and by suffix.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The whole secrets, sorted.
    pub(super) whole: Vec<Entry>,
    /// The suffixes of secrets, sorted.
    pub(super) ends: Vec<Entry>,
    /// The secrets whose suffixes are not sorted, because they are too many.
    pub(super) long: Vec<usize>,
    /// The depths at which a secret may be written differently, the greatest first.
    pub(super) depths: Vec<u32>,
}

impl Order {
    /// Builds the index of these secrets, with suffixes of at least this many bytes.
    pub(super) fn of(secrets: &[SecretPattern], min_bytes: usize) -> Self {
        let mut order = Self::default();
        for (number, secret) in secrets.iter().enumerate() {
            order.whole.push(Entry { secret: number, from: 0 });
            let last = secret.chars.len();
            if last > MOST_CHARS {
                order.long.push(number);
                continue;
            }
            let is_enough = |from: &usize| secret.bytes[last] - secret.bytes[*from] >= min_bytes;
            let ends = (1..last).take_while(is_enough);
            order.ends.extend(ends.map(|from| Entry { secret: number, from }));
        }
        let chars = |entry: &Entry| &secrets[entry.secret].chars[entry.from..];
        for entries in [&mut order.whole, &mut order.ends] {
            entries.sort_unstable_by(|one, other| chars(one).cmp(chars(other)));
        }
        order.depths.extend(secrets.iter().any(|secret| secret.joined).then_some(JOINED));
        if secrets.iter().any(|secret| secret.doubled) {
            order.depths.extend((1..=MAX_DEPTH).rev());
        }
        order.depths.push(0);
        order
    }
}

/// A search for the sorted entries that a text has at an offset.
pub(super) struct Descent<'a> {
    pub(super) secrets: &'a [SecretPattern],
    pub(super) entries: &'a [Entry],
    pub(super) text: &'a [u8],
    pub(super) depth: u32,
}

impl Descent<'_> {
    /// Calls `each` for one matching character, for two, and so on while entries match: with the
    /// entries whose first characters are in the text from `at` on, the number of these characters,
    /// and the offset after them.
    pub(super) fn from(&self, at: usize, each: &mut dyn FnMut(&[Entry], usize, usize)) {
        self.go(0..self.entries.len(), 0, at, each);
    }

    fn go(
        &self,
        mut range: Range<usize>,
        mut count: usize,
        mut end: usize,
        each: &mut dyn FnMut(&[Entry], usize, usize),
    ) {
        loop {
            let entries = self.entries.get(range.clone()).unwrap_or_default();
            work_counter::add(1 + entries.len().checked_ilog2().unwrap_or(0) as usize);
            if count > 0 {
                each(entries, count, end);
            }
            let next =
                |entry: &Entry| self.secrets[entry.secret].chars.get(entry.from + count).copied();
            let mut found: Option<(Range<usize>, usize)> = None;
            for char in self.readings(end).into_iter().flatten() {
                let first = entries.partition_point(|entry| next(entry) < Some(char));
                let last = entries.partition_point(|entry| next(entry) <= Some(char));
                if first == last {
                    continue;
                }
                let Some((after, _)) = step(self.text, end, char, self.depth) else { continue };
                let narrowed = range.start + first..range.start + last;
                if let Some((other, after)) = found.replace((narrowed, after)) {
                    self.go(other, count + 1, after, each);
                }
            }
            let Some((narrowed, after)) = found else { return };
            (range, count, end) = (narrowed, count + 1, after);
        }
    }

    /// Returns the characters that may be encoded at an offset.
    fn readings(&self, at: usize) -> [Option<char>; 2] {
        let rest = self.text.get(at..).unwrap_or_default();
        let plain = match rest.first() {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => rest.get(..rest.len().min(4)).and_then(first_char),
        };
        match plain {
            Some('\\') => {
                let slashes = backslashes(rest, 0, MOST_SLASHES);
                let letter = match rest.get(slashes) {
                    Some(b'n') => Some('\n'),
                    Some(b'r') => Some('\r'),
                    Some(b't') => Some('\t'),
                    Some(b'b') => Some('\u{8}'),
                    Some(b'f') => Some('\u{c}'),
                    Some(byte @ (b'"' | b'/')) => Some(char::from(*byte)),
                    Some(b'u') => code(rest, slashes),
                    _ => None,
                };
                [plain, letter]
            }
            Some('%') if self.depth == JOINED => [plain, Some('/')],
            _ => [plain, None],
        }
    }
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?,
    };
    valid.chars().next()
}

/// Decodes the character that one code or two encode, the first after this many backslashes.
fn code(rest: &[u8], slashes: usize) -> Option<char> {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(rest.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(slashes + 1)?;
    if let Some(char) = char::from_u32(u32::from(first)) {
        return Some(char);
    }
    let after = rest.get(slashes + 5..)?;
    let more = backslashes(after, 0, MOST_SLASHES);
    let second = unit(slashes + 5 + more + 1)?;
    char::decode_utf16([first, second]).next()?.ok()
}
