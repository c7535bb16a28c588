//! A view of a text with those escapes resolved that stand for token bytes: `\u0067`, `\x67`, `%67`
//! and `\/`.
//!
//! Escaped tokens are found in the view; what is removed is the corresponding range of the text, in
//! whole escapes.

use super::scan::ScanFindings;
use super::{MAX_SECRET_BYTES, SecretFinding, work_counter};
use std::ops::Range;

/// Context around an escape that is scanned with it, in bytes.
const CONTEXT_BYTES: usize = 512;
/// Maximum number of backslashes in one escape: JSON nested in JSON doubles them.
const MOST_SLASHES: usize = 16;

/// The range of an escape, and the byte that it encodes.
type ResolvedEscape = (Range<usize>, u8);

/// A range of a text with its escapes resolved.
pub(super) struct UnescapedView {
    pub(super) bytes: Vec<u8>,
    /// For each resolved escape: its offset in `bytes`, and its range in the text.
    escapes: Vec<(usize, Range<usize>)>,
    /// Offset of the range in the text.
    from: usize,
}

/// Returns the ranges of a share that contain escapes, resolved.
pub(super) fn views(text: &[u8], share: &Range<usize>) -> Vec<UnescapedView> {
    let mut parts: Vec<(Range<usize>, Vec<ResolvedEscape>)> = Vec::new();
    let inside = text.get(share.clone()).unwrap_or_default();
    let mut from = share.start;
    for at in memchr_iter(inside).map(|at| share.start + at) {
        if at < from {
            continue;
        }
        let Some((end, byte)) = escape(text, at) else { continue };
        from = end;
        let part = at.saturating_sub(CONTEXT_BYTES)..text.len().min(end + MAX_SECRET_BYTES);
        match parts.last_mut() {
            Some((last, escapes)) if part.start <= last.end => {
                last.end = part.end;
                escapes.push((at..end, byte));
            }
            _ => parts.push((part, vec![(at..end, byte)])),
        }
    }
    parts.into_iter().map(|(part, escapes)| UnescapedView::of(text, &part, escapes)).collect()
}

fn memchr_iter(text: &[u8]) -> impl Iterator<Item = usize> {
    text.iter().enumerate().filter(|(_, byte)| matches!(byte, b'\\' | b'%')).map(|(at, _)| at)
}

/// Parses the escape that begins here: returns its end and the byte it encodes.
fn escape(text: &[u8], at: usize) -> Option<(usize, u8)> {
    let rest = text.get(at..)?;
    if rest.first() == Some(&b'%') {
        let byte = hex(rest.get(1..3)?)?;
        return (byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)).then_some((at + 3, byte));
    }
    let slashes = rest.iter().take(MOST_SLASHES).take_while(|byte| **byte == b'\\').count();
    let (digits, end) = match rest.get(slashes)? {
        b'/' => return Some((at + slashes + 1, b'/')),
        b'u' => (rest.get(slashes + 1..slashes + 5)?.strip_prefix(b"00")?, at + slashes + 5),
        b'x' => (rest.get(slashes + 1..slashes + 3)?, at + slashes + 3),
        _ => return None,
    };
    let byte = hex(digits)?;
    (byte.is_ascii_alphanumeric() || b"_-.~+=:/".contains(&byte)).then_some((end, byte))
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl UnescapedView {
    fn of(text: &[u8], part: &Range<usize>, escapes: Vec<ResolvedEscape>) -> Self {
        work_counter::add(part.len());
        let mut view =
            Self { bytes: Vec::with_capacity(part.len()), escapes: Vec::new(), from: part.start };
        let mut from = part.start;
        for (place, byte) in escapes {
            view.bytes.extend_from_slice(text.get(from..place.start).unwrap_or_default());
            view.bytes.push(byte);
            from = place.end;
            view.escapes.push((view.bytes.len() - 1, place));
        }
        view.bytes.extend_from_slice(text.get(from..part.end).unwrap_or_default());
        view
    }

    /// Maps a range of the view back to the text.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let at = |place: usize| {
            let before = self.escapes.partition_point(|(escape, _)| *escape < place);
            let last = before.checked_sub(1).and_then(|last| self.escapes.get(last));
            last.map_or(self.from + place, |(escape, stood)| stood.end + (place - escape - 1))
        };
        at(range.start)..at(range.end)
    }

    /// Maps findings in the view back to the text; keeps only those that begin in the share.
    pub(super) fn found(&self, found: ScanFindings, share: &Range<usize>, all: &mut ScanFindings) {
        let holds = |range: &Range<usize>| {
            let first = self.escapes.partition_point(|(escape, _)| *escape < range.start);
            self.escapes.get(first).is_some_and(|(escape, _)| *escape < range.end)
        };
        for (finding, stretch) in found.findings.into_iter().zip(found.stretches) {
            let whole = stretch.start.min(finding.range.start)..finding.range.end;
            let range = self.place(&finding.range);
            if holds(&whole) && share.contains(&range.start) {
                all.stretches.push(self.place(&stretch));
                all.findings.push(SecretFinding { range, ..finding });
            }
        }
    }
}
