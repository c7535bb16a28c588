//! A view of a text in which escapes are resolved, if they encode a byte that a token can have:
//! `\u0067`, `\x67`, `%67`, `&#103;`, `=3D` and `\/`, or a character that is not ASCII: `\u043f`.
//! Bytes that do not show are left out: colour codes, invisible characters, line ends inside a
//! word. The `","` between the arguments of a command becomes a space.
//!
//! Escaped tokens are found in the view. The corresponding range of the text is removed, with whole
//! escapes.

use super::byte_text::{backslashes, backslashes_at_end};
use super::scan::ScanFindings;
use super::{MAX_SECRET_BYTES, SecretFinding, work_counter};
use memchr::memchr3_iter;
use std::ops::Range;

/// Context around an escape that is scanned with it, in bytes.
const CONTEXT_BYTES: usize = 512;
/// Maximum number of backslashes in one escape: JSON nested in JSON doubles them.
const MAX_SLASHES: usize = 16;

/// Maximum length of the parameters of a colour code, in bytes.
const MAX_PARAMETERS: usize = 24;

/// Maximum length of a flag in a list of arguments, in bytes.
const MAX_FLAG: usize = 64;

/// Texts at which an escape may begin, besides those that begin with a backslash, a percent sign,
/// the escape character or a byte that is not ASCII.
pub(super) const BEGINS: [&str; 7] = ["^[[", "&#", "=\n", "=\r\n", "=3d", "\"-", "'-"];

/// The range of an escape in the text, and the character that it encodes; `None` if it encodes
/// nothing.
type ResolvedEscape = (Range<usize>, Option<char>);

/// A range of a text with its escapes resolved.
pub(super) struct UnescapedView {
    pub(super) bytes: Vec<u8>,
    /// For each resolved escape: its range in `bytes`, and its range in the text.
    escapes: Vec<(Range<usize>, Range<usize>)>,
    /// The offsets in `bytes` of the spaces between the arguments of a command.
    joints: Vec<usize>,
    /// Offset of the range in the text.
    from: usize,
}

/// Returns views of the ranges with escapes in a share of a text, which is the range to search.
/// `begins` has the offsets at which a text of [`BEGINS`] begins.
pub(super) fn views(text: &[u8], share: &Range<usize>, begins: &[usize]) -> Vec<UnescapedView> {
    let mut parts: Vec<(Range<usize>, Vec<ResolvedEscape>)> = Vec::new();
    let mut from = share.start;
    for at in candidates(text, share, begins) {
        if at < from {
            continue;
        }
        let Some((place, character)) = escape(text, at) else { continue };
        if place.start < from {
            continue;
        }
        from = place.end;
        let part =
            place.start.saturating_sub(CONTEXT_BYTES)..text.len().min(from + MAX_SECRET_BYTES);
        match parts.last_mut() {
            Some((last, escapes)) if part.start <= last.end => {
                last.end = part.end;
                escapes.push((place, character));
            }
            _ => parts.push((part, vec![(place, character)])),
        }
    }
    parts.into_iter().map(|(part, escapes)| UnescapedView::of(text, &part, escapes)).collect()
}

/// Returns the offsets in a share at which an escape may begin, in order.
fn candidates(text: &[u8], share: &Range<usize>, begins: &[usize]) -> Vec<usize> {
    let inside = text.get(share.clone()).unwrap_or_default();
    // Most backslashes in JSON are before a quote or an `n`. A single one there encodes no byte of
    // a token.
    let may_begin = |at: &usize| match inside.get(at + 1) {
        Some(next) if inside[*at] == b'\\' => b"\\/\nue0x".contains(next),
        _ => true,
    };
    let mut all: Vec<usize> = memchr3_iter(b'\\', b'%', b'\x1b', inside)
        .filter(may_begin)
        .map(|at| share.start + at)
        .collect();
    if !inside.is_ascii() {
        all.extend(memchr3_iter(b'\xc2', b'\xe2', b'\xef', inside).map(|at| share.start + at));
    }
    for begin in begins {
        match text.get(*begin) {
            Some(b'"' | b'\'') => all.extend(commas(text, *begin)),
            _ => all.push(*begin),
        }
    }
    // A stable sort merges the few ascending runs.
    all.sort();
    all
}

/// Returns the offsets of the commas before and after the argument that begins with this quote.
fn commas(text: &[u8], quote: usize) -> impl Iterator<Item = usize> {
    let before = text.get(quote.saturating_sub(MAX_SLASHES + 2)..quote).unwrap_or_default();
    let is_gap = |byte: &&u8| matches!(byte, b'\\' | b' ');
    let before = quote.checked_sub(before.iter().rev().take_while(is_gap).count() + 1);
    let inside = text.get(quote + 1..text.len().min(quote + MAX_FLAG)).unwrap_or_default();
    let end = inside.iter().position(|byte| Some(byte) == text.get(quote));
    let after = end.map(|end| quote + end + 2);
    let is_comma = |at: &usize| text.get(*at) == Some(&b',');
    before.into_iter().chain(after).filter(is_comma)
}

/// Parses the escape at this offset: returns its range, and the character that it encodes. Colour
/// codes, invisible characters and line ends that split a word encode nothing.
fn escape(text: &[u8], at: usize) -> Option<ResolvedEscape> {
    let rest = text.get(at..)?;
    let next = *rest.get(1)?;
    match rest.first()? {
        b'%' => percent(rest).map(|(length, byte)| (at..at + length, Some(byte.into()))),
        b'\\' => backslash(text, at),
        b'\x1b' | b'^' | b'\xc2' if let Some(length) = colour(rest) => {
            Some((at..at + length, None))
        }
        b'&' if next == b'#' => {
            entity(rest).map(|(length, byte)| (at..at + length, Some(byte.into())))
        }
        b'=' if matches!(next, b'\n' | b'\r') => {
            let length = 2 + usize::from(next == b'\r');
            let line = text.get(at.saturating_sub(76)..at)?;
            let length_of_line = line.iter().rev().take_while(|byte| **byte != b'\n').count();
            let is_text = text.get(at + length).is_some_and(u8::is_ascii_alphanumeric);
            (is_text && length_of_line > 16 && splits_word(text, at, at + length))
                .then_some((at..at + length, None))
        }
        // Quoted-printable.
        b'=' if next == b'3' && matches!(rest.get(2)?, b'D' | b'd') => {
            Some((at..at + 3, Some('=')))
        }
        b',' if matches!(next, b'"' | b'\'' | b'\\' | b' ') => argument_joint(text, at),
        b'\xc2' if next == b'\xad' => Some((at..at + 2, None)),
        b'\xe2' | b'\xef' if is_invisible(rest.get(..3)?) => Some((at..at + 3, None)),
        b'\xef' => wide(rest).map(|byte| (at..at + 3, Some(byte.into()))),
        _ => None,
    }
}

/// Parses `%67`, also if the percent sign is escaped itself: `%2567`.
fn percent(rest: &[u8]) -> Option<(usize, u8)> {
    let mut at = 1;
    while at < 9 && rest.get(at..at + 2) == Some(b"25") && rest.get(at + 2)?.is_ascii_hexdigit() {
        at += 2;
    }
    let byte = hex(rest.get(at..at + 2)?)?;
    (byte.is_ascii_alphanumeric() || b"_-. =:/+@~&,".contains(&byte)).then_some((at + 2, byte))
}

/// Returns whether this character has no width: a space or joiner, a mark of the direction of
/// writing, a selector of a variant, or a byte order mark.
fn is_invisible(character: &[u8]) -> bool {
    matches!(
        character,
        [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae]
            | [0xe2, 0x81, 0xa0..=0xa9]
            | [0xef, 0xb8, 0x80..=0x8f]
            | [0xef, 0xbb, 0xbf]
    )
}

/// Returns the letter, digit, `-` or `_` that the wide character at the beginning is a variant of.
fn wide(rest: &[u8]) -> Option<u8> {
    let byte = match rest.get(1..3)? {
        [0xbc, last @ 0x81..=0xbf] => last - 0x60,
        [0xbd, last @ 0x80..=0x9e] => last - 0x20,
        _ => return None,
    };
    (byte.is_ascii_alphanumeric() || b"-_".contains(&byte)).then_some(byte)
}

fn backslash(text: &[u8], at: usize) -> Option<ResolvedEscape> {
    let rest = text.get(at..)?;
    let slashes = backslashes(rest, 0, MAX_SLASHES);
    let letter = at + slashes;
    let (digits, end) = match (slashes, rest.get(slashes)?) {
        (_, b'/') => return Some((at..letter + 1, Some('/'))),
        (1, b'\n') | (3, b'n') => {
            return splits_word(text, at, letter + 1).then_some((at..letter + 1, None));
        }
        (_, b'0' | b'e' | b'u' | b'x') if let Some(length) = colour(rest) => {
            return Some((at..at + length, None));
        }
        (_, b'u') => {
            let digits = rest.get(slashes + 1..slashes + 5)?;
            let is_without_width = ["00ad", "200b", "200c", "200d", "2060", "feff"]
                .iter()
                .any(|known| digits.eq_ignore_ascii_case(known.as_bytes()));
            if is_without_width {
                return Some((at..letter + 5, None));
            }
            if let Some(character) = beyond_ascii(digits) {
                return Some((at..letter + 5, Some(character)));
            }
            (digits.strip_prefix(b"00")?, letter + 5)
        }
        (_, b'x') => (rest.get(slashes + 1..slashes + 3)?, letter + 3),
        _ => return None,
    };
    let byte = hex(digits)?;
    (byte.is_ascii_alphanumeric() || b"_-.~+=:/".contains(&byte))
        .then_some((at..end, Some(byte.into())))
}

/// Returns the character with these hex digits, if it is neither ASCII nor a control character.
fn beyond_ascii(digits: &[u8]) -> Option<char> {
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    char::from_u32(code).filter(|character| !character.is_ascii() && !character.is_control())
}

/// Returns the length of the colour code at the beginning, in any notation of the escape character.
fn colour(rest: &[u8]) -> Option<usize> {
    let slashes = backslashes(rest, 0, MAX_SLASHES);
    let begins: &[&[u8]] = match slashes {
        0 => &[b"\x1b[", b"\xc2\x9b", b"^[["],
        _ => &[b"u001b[", b"u001B[", b"x1b[", b"x1B[", b"033[", b"e[", b"u{1b}["],
    };
    let rest = rest.get(slashes..)?;
    let begin = begins.iter().find(|begin| rest.starts_with(begin))?.len();
    let parameters = rest.get(begin..)?;
    let is_parameter = |byte: &&u8| byte.is_ascii_digit() || b";:".contains(byte);
    let count = parameters.iter().take(MAX_PARAMETERS).take_while(is_parameter).count();
    matches!(parameters.get(count)?, b'm' | b'K').then_some(slashes + begin + count + 1)
}

/// Parses `&#103;` or `&#x67;`.
fn entity(rest: &[u8]) -> Option<(usize, u8)> {
    let end = rest.iter().take(8).position(|byte| *byte == b';')?;
    let number = std::str::from_utf8(rest.get(2..end)?).ok()?;
    let byte = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u8::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    (byte.is_ascii_alphanumeric() || b"_-.~+=:/".contains(&byte)).then_some((end + 1, byte))
}

/// Returns whether a word continues on both sides of a range.
fn splits_word(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    before.is_some_and(is_word) && text.get(end).is_some_and(is_word)
}

/// Parses the `","` between a flag and its neighbour in a list of arguments, given the offset of
/// the comma. It encodes a space.
fn argument_joint(text: &[u8], at: usize) -> Option<ResolvedEscape> {
    let before = text.get(at.saturating_sub(MAX_FLAG)..at)?;
    let quote = *before.last().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let before = before.get(..before.len() - 1)?;
    let level = backslashes_at_end(before);
    let before = before.get(..before.len() - level)?;
    let rest = text.get(at + 1..)?;
    let space = usize::from(rest.first() == Some(&b' '));
    let opened = rest.get(space..)?;
    let is_same =
        opened.iter().take(level).all(|byte| *byte == b'\\') && opened.get(level) == Some(&quote);
    let argument = opened.get(level + 1..)?;
    // A quote with other backslashes is inside the argument.
    let opens =
        |place: &usize| before[*place] == quote && backslashes_at_end(&before[..*place]) == level;
    let begun = (0..before.len()).rev().find(opens).map_or(0, |place| place + 1);
    let is_flag = |argument: &[u8]| matches!(argument, [b'-', next, ..] if next.is_ascii_alphabetic() || *next == b'-');
    let is_listed = is_flag(argument) || begun > 0 && is_flag(before.get(begun..)?);
    work_counter::add(before.len());
    (is_same && is_listed && argument.first() != Some(&quote))
        .then_some((at - 1 - level..at + 1 + space + level + 1, Some(' ')))
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl UnescapedView {
    fn of(text: &[u8], part: &Range<usize>, escapes: Vec<ResolvedEscape>) -> Self {
        work_counter::add(part.len());
        let mut view = Self {
            bytes: Vec::with_capacity(part.len()),
            escapes: Vec::new(),
            joints: Vec::new(),
            from: part.start,
        };
        let mut from = part.start;
        for (place, character) in escapes {
            view.bytes.extend_from_slice(text.get(from..place.start).unwrap_or_default());
            let begun = view.bytes.len();
            if let Some(character) = character {
                view.bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // Only the escape between two arguments contains a comma.
            if text.get(place.clone()).is_some_and(|escape| escape.contains(&b',')) {
                view.joints.push(begun);
            }
            from = place.end;
            view.escapes.push((begun..view.bytes.len(), place));
        }
        view.bytes.extend_from_slice(text.get(from..part.end).unwrap_or_default());
        view
    }

    /// Maps a range of the view back to the text.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        // An escape that encodes nothing belongs to the range only between two of its bytes.
        let at = |place: usize, before: usize| {
            let last = before.checked_sub(1).and_then(|last| self.escapes.get(last));
            last.map_or(self.from + place, |(here, in_text)| in_text.end + (place - here.end))
        };
        let start = self.escapes.partition_point(|(here, _)| here.end <= range.start);
        let end = self.escapes.partition_point(|(here, _)| here.start < range.end);
        at(range.start, start)..at(range.end, end)
    }

    /// Returns the part of a range of the view that is in the argument where it begins. A secret is
    /// in one argument, and a longer range would remove the quotes between two arguments.
    fn in_one_argument(&self, range: &Range<usize>) -> Range<usize> {
        let next = self.joints.partition_point(|joint| *joint <= range.start);
        range.start..self.joints.get(next).map_or(range.end, |joint| range.end.min(*joint))
    }

    /// Maps findings in the view back to the text; keeps only those that begin in the share.
    pub(super) fn found(&self, found: ScanFindings, share: &Range<usize>, all: &mut ScanFindings) {
        let holds = |range: &Range<usize>| {
            let first = self.escapes.partition_point(|(here, _)| here.start < range.start);
            self.escapes.get(first).is_some_and(|(here, _)| here.start < range.end)
        };
        for (finding, indicated) in found.findings.into_iter().zip(found.indicated_ranges) {
            let whole = indicated.start.min(finding.range.start)..finding.range.end;
            let range = self.place(&self.in_one_argument(&finding.range));
            if holds(&whole) && share.contains(&range.start) {
                all.indicated_ranges.push(self.place(&indicated));
                all.findings.push(SecretFinding { range, ..finding });
            }
        }
    }
}
