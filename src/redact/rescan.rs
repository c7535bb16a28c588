//! What comes to light once a secret is taken out: the mark in its place ends a word, and brings what stands on both
//! sides of it nearer together. It is taken out at once, so that a text without its secrets is one.

use super::scan::ScanFindings;
use super::{MAX_SECRET_BYTES, Redactor, SecretFinding, TextForm, mark, replace_findings, scan};
use std::collections::BTreeMap;
use std::ops::Range;

/// What precedes a mark may tell of what stands at most this many bytes after it: a name of a password in `.netrc`.
const MAX_LOOKAHEAD_BYTES: usize = 512;
/// After so many rounds of looking again the whole word goes that a secret is found in: else each round could bring one
/// more to light, and a long word take as many rounds as it has tokens.
const MAX_EXACT_ROUNDS: usize = 4;
/// No rule looks further back than this from what tells of a secret, in bytes.
const CONTEXT: usize = 256;

/// Findings in order, none of which reaches into another: of two that do, what both cover goes.
#[derive(Default)]
struct DisjointFindings(BTreeMap<usize, (usize, &'static str)>);

impl DisjointFindings {
    /// Adds a finding; returns what it became a part of, if that is new.
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

    /// The findings that reach into a part of a text.
    fn within(&self, part: &Range<usize>) -> impl DoubleEndedIterator<Item = SecretFinding> {
        let before = self.0.range(..part.start).next_back();
        let first = before.filter(|(_, (end, _))| *end > part.start);
        let start = first.map_or(part.start, |(at, _)| *at);
        self.0.range(start..part.end.max(start)).map(|(at, (end, kind))| finding(*at, *end, kind))
    }

    /// The place that has this many bytes of the clean text between it and `from`, or a little more.
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

    /// As [`Apart::back`], towards the end of the text.
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

const fn finding(start: usize, end: usize, kind: &'static str) -> SecretFinding {
    SecretFinding { range: start..end, kind }
}

impl Redactor {
    /// What was found in a text, but for what is let through, with all that comes to light once that is taken out.
    pub(super) fn rescan_until_stable(
        &self,
        text: &[u8],
        found: ScanFindings,
        form: TextForm,
    ) -> ScanFindings {
        let ScanFindings { findings, mut stretches, mut open } = found;
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
                stretches.extend(found.stretches.iter().map(|one| clean.place(one)));
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
        ScanFindings { findings: all.within(&(0..text.len())).collect(), stretches, open }
    }
}

/// The word that holds these bytes.
fn word_around(text: &[u8], range: &Range<usize>) -> Range<usize> {
    let inside = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_~.-+/=:@%".contains(byte);
    let before = text.get(..range.start).unwrap_or_default().iter().rev();
    let after = text.get(range.end..).unwrap_or_default().iter();
    let start = range.start - before.take_while(inside).count();
    // The letter of an escape stays with its backslash.
    let is_escape = start > 0 && start < range.start && text.get(start - 1) == Some(&b'\\');
    start + usize::from(is_escape)..range.end + after.take_while(inside).count()
}

/// The places around these findings whose meaning their marks may have changed, in order and apart.
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

/// A part of a text without what was found in it.
struct RedactedWindow {
    bytes: Vec<u8>,
    /// What of it is looked at; the rest is what stands around that.
    share: Range<usize>,
    /// Where the part begins in the text.
    from: usize,
    /// Where each mark stands in it, and what stood there in the text.
    marks: Vec<(Range<usize>, Range<usize>)>,
}

impl RedactedWindow {
    /// What is in this share of a text, with as much around it as rules look at.
    fn with_context(text: &[u8], share: &Range<usize>, all: &DisjointFindings) -> Self {
        let from = all.offset_backward(share.start, CONTEXT);
        let to = text.len().min(all.offset_forward(share.end, 2 * MAX_SECRET_BYTES));
        let findings: Vec<SecretFinding> = all.within(&(from..to)).collect();
        let from = findings.first().map_or(from, |first| from.min(first.range.start));
        let to = findings.last().map_or(to, |last| to.max(last.range.end));
        let mut marks = Vec::with_capacity(findings.len());
        // What stands between two findings stays as long as it is.
        let (mut at, mut behind) = (0, from);
        let place = |at: usize, behind: usize, wanted: usize| at + wanted.saturating_sub(behind);
        let mut shared = share.start - from.min(share.start)..0;
        for found in &findings {
            let start = at + (found.range.start - behind);
            if found.range.start < share.start {
                shared.start = place(start + mark(found.kind).len(), found.range.end, share.start);
            }
            if found.range.start < share.end {
                shared.end = place(start + mark(found.kind).len(), found.range.end, share.end);
            }
            (at, behind) = (start + mark(found.kind).len(), found.range.end);
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

    /// Where this stood in the text; of a mark all that it stands for.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| self.marks.partition_point(|(mark, _)| mark.end <= at);
        let shifted = |count: usize, at: usize| match count.checked_sub(1) {
            Some(last) => {
                self.marks.get(last).map_or(at, |(mark, stood)| at - mark.end + stood.end)
            }
            None => self.from + at,
        };
        let start = before(range.start);
        let start = match self.marks.get(start) {
            Some((mark, stood)) if mark.start < range.start => stood.start,
            _ => shifted(start, range.start),
        };
        let end = before(range.end);
        let end = match self.marks.get(end) {
            Some((mark, stood)) if mark.start < range.end => stood.end,
            _ => shifted(end, range.end),
        };
        start..end.max(start)
    }
}
