//! Rescans a text after redaction. The mark that replaces a secret ends a word, and it is usually
//! shorter than the secret, so the text on both sides comes closer together. Both may expose
//! further secrets. They are removed in the same call, so that the rules find no secret in a
//! redacted text.

use super::scan::ScanFindings;
use super::{MAX_SECRET_BYTES, Redactor, SecretFinding, TextForm, mark, replace_findings, scan};
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of bytes after a mark that are scanned again. Text before the mark can indicate a
/// secret after it, such as the password in a `.netrc` file.
const MAX_LOOKAHEAD_BYTES: usize = 512;
/// After this number of rescans, the whole word that contains a secret is removed. Otherwise each
/// rescan could expose one more secret, and a long word would need a rescan for each of its tokens.
const MAX_EXACT_ROUNDS: usize = 4;
/// The maximum number of bytes before a hint that a rule reads.
const CONTEXT: usize = 256;

/// Findings in order, without overlaps: overlapping findings are replaced by their union.
#[derive(Default)]
struct DisjointFindings(
    /// The end and kind of a finding, by its start.
    BTreeMap<usize, (usize, &'static str)>,
);

impl DisjointFindings {
    /// Adds a finding. Returns its union with the findings that it overlaps; `None` if an earlier
    /// finding contains it.
    fn add(&mut self, found: &SecretFinding) -> Option<SecretFinding> {
        let Range { mut start, mut end } = found.range;
        let (begin, mut kind) = (start, found.kind);
        while let Some((&at, &(until, other))) = self.0.range(..end).next_back()
            && until > start
        {
            if at <= begin {
                if until >= end {
                    return None;
                }
                kind = other;
            }
            self.0.remove(&at);
            (start, end) = (start.min(at), end.max(until));
        }
        self.0.insert(start, (end, kind));
        Some(SecretFinding { range: start..end, kind })
    }

    /// Returns the findings that overlap a range of the text.
    fn within(&self, part: &Range<usize>) -> impl DoubleEndedIterator<Item = SecretFinding> {
        let before = self.0.range(..part.start).next_back();
        let first = before.filter(|(_, (end, _))| *end > part.start);
        let start = first.map_or(part.start, |(at, _)| *at);
        let found = self.0.range(start..part.end.max(start));
        found.map(|(&at, &(end, kind))| SecretFinding { range: at..end, kind })
    }

    /// Returns the offset from which `bytes` bytes of redacted text lead to `from`. If it would be
    /// inside a mark, returns the start of what the mark replaces. Returns 0 if the text is too
    /// short.
    fn offset_backward(&self, from: usize, mut bytes: usize) -> usize {
        let mut at = from;
        for (start, (end, kind)) in self.0.range(..from).rev() {
            if at - (*end).min(at) >= bytes {
                break;
            }
            bytes = bytes.saturating_sub(at - (*end).min(at) + mark(kind).len());
            at = *start;
        }
        at.saturating_sub(bytes)
    }

    /// Like [`Self::offset_backward`], but towards the end of the text. The result can be after the
    /// end.
    fn offset_forward(&self, from: usize, mut bytes: usize) -> usize {
        let mut at = from;
        for (start, (end, kind)) in self.0.range(from..) {
            if start - at >= bytes {
                break;
            }
            bytes = bytes.saturating_sub(start - at + mark(kind).len());
            at = *end;
        }
        at + bytes
    }
}

impl Redactor {
    /// Drops the allowed findings of a scan, and adds the secrets that their marks expose, until a
    /// rescan finds no more.
    pub(super) fn rescan_until_stable(
        &self,
        text: &[u8],
        found: ScanFindings,
        form: TextForm,
    ) -> ScanFindings {
        let ScanFindings { findings, mut indicated_ranges, mut open } = found;
        let mut findings = self.drop_allowed(text, findings);
        findings.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
        let mut all = DisjointFindings::default();
        for found in &findings {
            all.add(found);
        }
        let mut fresh: Vec<SecretFinding> = all.within(&(0..text.len())).collect();
        for round in 0.. {
            if fresh.is_empty() {
                break;
            }
            let mut more = Vec::new();
            for share in affected_ranges(text, &all, &fresh) {
                let clean = RedactedWindow::with_context(text, &share, &all);
                let found = scan(&clean.bytes, clean.share.clone(), form);
                let place = |found: SecretFinding| SecretFinding {
                    range: clean.place(&found.range),
                    ..found
                };
                more.extend(found.findings.into_iter().map(place));
                indicated_ranges.extend(found.indicated_ranges.iter().map(|one| clean.place(one)));
                open = open.or(found.open.map(|at| clean.place(&(at..at)).start));
            }
            let more = self.drop_allowed(text, more);
            let mut add = |found: SecretFinding| {
                let is_new = all.add(&found);
                if round < MAX_EXACT_ROUNDS || is_new.is_none() {
                    return is_new;
                }
                all.add(&SecretFinding { range: word_around(text, &found.range), ..found })
                    .or(is_new)
            };
            fresh = more.into_iter().filter_map(&mut add).collect();
            fresh.sort_by_key(|found| found.range.start);
        }
        ScanFindings { findings: all.within(&(0..text.len())).collect(), indicated_ranges, open }
    }
}

/// Returns the range of the word that contains this range.
fn word_around(text: &[u8], range: &Range<usize>) -> Range<usize> {
    let inside = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_~.-+/=:@%".contains(byte);
    let before = text.get(..range.start).unwrap_or_default().iter().rev();
    let after = text.get(range.end..).unwrap_or_default().iter();
    let start = range.start - before.take_while(inside).count();
    // The letter of an escape is not part of the word.
    let is_escape = start > 0 && start < range.start && text.get(start - 1) == Some(&b'\\');
    start + usize::from(is_escape)..range.end + after.take_while(inside).count()
}

/// Returns the ranges around these findings in which their marks may expose secrets, in order and
/// disjoint.
fn affected_ranges(
    text: &[u8],
    all: &DisjointFindings,
    fresh: &[SecretFinding],
) -> Vec<Range<usize>> {
    let mut around: Vec<Range<usize>> = Vec::new();
    for found in fresh {
        let end = text.len().min(all.offset_forward(found.range.end, MAX_LOOKAHEAD_BYTES));
        if let Some(last) = around.last_mut()
            && found.range.start <= last.end
        {
            last.end = last.end.max(end);
            continue;
        }
        let start = all.offset_backward(found.range.start, MAX_SECRET_BYTES);
        match around.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => around.push(start..end),
        }
    }
    around
}

/// A range of a text with a mark in place of each finding.
struct RedactedWindow {
    bytes: Vec<u8>,
    /// The range of `bytes` that is scanned. The rest is context.
    share: Range<usize>,
    /// The offset of the range in the text.
    from: usize,
    /// For each mark: its range in `bytes`, and the range in the text that it replaces.
    marks: Vec<(Range<usize>, Range<usize>)>,
}

impl RedactedWindow {
    /// Creates the window in which this range of a text is scanned, with all the context that the
    /// rules read.
    fn with_context(text: &[u8], share: &Range<usize>, all: &DisjointFindings) -> Self {
        let from = all.offset_backward(share.start, CONTEXT);
        let to = text.len().min(all.offset_forward(share.end, 2 * MAX_SECRET_BYTES));
        let findings: Vec<SecretFinding> = all.within(&(from..to)).collect();
        let from = findings.first().map_or(from, |first| from.min(first.range.start));
        let to = findings.last().map_or(to, |last| to.max(last.range.end));
        let mut marks = Vec::with_capacity(findings.len());
        // An offset in `bytes`, and the offset up to which the text was read. The text between two
        // findings keeps its length.
        let (mut at, mut read_to) = (0, from);
        let mut shared = share.start - from.min(share.start)..0;
        for found in &findings {
            let start = at + (found.range.start - read_to);
            (at, read_to) = (start + mark(found.kind).len(), found.range.end);
            if found.range.start < share.start {
                shared.start = at + share.start.saturating_sub(read_to);
            }
            if found.range.start < share.end {
                shared.end = at + share.end.saturating_sub(read_to);
            }
            marks.push((start..at, found.range.clone()));
        }
        if findings.first().is_none_or(|first| first.range.start >= share.end) {
            shared.end = share.end - from;
        }
        let shifted = findings.into_iter().map(|found| SecretFinding {
            range: found.range.start - from..found.range.end - from,
            ..found
        });
        let shifted: Vec<SecretFinding> = shifted.collect();
        let bytes = replace_findings(text.get(from..to).unwrap_or_default(), &shifted);
        Self { bytes, share: shared, from, marks }
    }

    /// Maps a range of `bytes` to the text; a mark maps to everything that it replaces.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| self.marks.partition_point(|(mark, _)| mark.end <= at);
        let shifted = |count: usize, at: usize| match count.checked_sub(1) {
            Some(last) => {
                self.marks.get(last).map_or(at, |(mark, replaced)| at - mark.end + replaced.end)
            }
            None => self.from + at,
        };
        let start = before(range.start);
        let start = match self.marks.get(start) {
            Some((mark, replaced)) if mark.start < range.start => replaced.start,
            _ => shifted(start, range.start),
        };
        let end = before(range.end);
        let end = match self.marks.get(end) {
            Some((mark, replaced)) if mark.start < range.end => replaced.end,
            _ => shifted(end, range.end),
        };
        start..end.max(start)
    }
}
