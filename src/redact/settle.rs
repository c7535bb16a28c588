//! What comes to light once a secret is taken out: the mark in its place ends a word, and brings what stands on both sides of it
//! nearer together. It is taken out at once, so that a text without its secrets is one.

use super::scan::Found;
use super::{Finding, Form, MAX_SECRET_BYTES, Redactor, mark, scan, without};
use std::ops::Range;

/// So far behind a mark something may stand that what precedes it tells of: a name and a password in `.netrc`.
const BEHIND: usize = 512;

/// Findings in order, none of which reaches into another: of two that do, what both cover goes.
pub(super) fn apart(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut apart: Vec<Finding> = Vec::with_capacity(findings.len());
    for found in findings {
        match apart.last_mut() {
            Some(last) if found.range.start < last.range.end => {
                last.range.end = last.range.end.max(found.range.end);
            }
            _ => apart.push(found),
        }
    }
    apart
}

impl Redactor {
    /// What was found in a text, but for what is let through, with all that comes to light once that is taken out.
    pub(super) fn settle(&self, text: &[u8], found: Found, form: Form) -> Found {
        let Found { findings, mut stretches, mut open } = found;
        let mut findings = apart(self.keep_known(text, findings));
        let mut fresh = findings.clone();
        while !fresh.is_empty() {
            let clean = Clean::of(text, &findings);
            let mut more = Found::default();
            for share in clean.around(&fresh) {
                let found = scan(&clean.bytes, share, form);
                more.findings.extend(found.findings);
                more.stretches.extend(found.stretches);
                more.open = more.open.or(found.open);
            }
            let place = |found: Finding| Finding { range: clean.place(&found.range), ..found };
            fresh = self.keep_known(text, more.findings.into_iter().map(place).collect());
            stretches.extend(more.stretches.iter().map(|one| clean.place(one)));
            open = open.or(more.open.map(|at| clean.place(&(at..at)).start));
            let all = apart(findings.iter().chain(&fresh).cloned().collect());
            if all == findings {
                break;
            }
            findings = all;
        }
        Found { findings, stretches, open }
    }
}

/// A text without what was found in it.
struct Clean {
    bytes: Vec<u8>,
    /// Where each mark stands in it, and what stood there.
    marks: Vec<(Range<usize>, Range<usize>)>,
}

impl Clean {
    fn of(text: &[u8], findings: &[Finding]) -> Self {
        let mut marks = Vec::with_capacity(findings.len());
        // What stands between two findings stays as long as it is.
        let (mut at, mut from) = (0, 0);
        for found in findings {
            let start = at + (found.range.start - from);
            (at, from) = (start + mark(found.kind).len(), found.range.end);
            marks.push((start..at, found.range.clone()));
        }
        Self { bytes: without(text, findings), marks }
    }

    /// The places around these marks whose meaning they may have changed, in order and apart.
    fn around(&self, fresh: &[Finding]) -> Vec<Range<usize>> {
        let mut around: Vec<Range<usize>> = Vec::new();
        for found in fresh {
            let known = self.marks.partition_point(|(_, stood)| stood.end <= found.range.start);
            let Some((mark, _)) = self.marks.get(known) else { continue };
            let start = mark.start.saturating_sub(MAX_SECRET_BYTES);
            let end = self.bytes.len().min(mark.end + BEHIND);
            match around.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ => around.push(start..end),
            }
        }
        around
    }

    /// Where this stood in the text; of a mark all that it stands for.
    fn place(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| self.marks.partition_point(|(mark, _)| mark.end <= at);
        let shifted = |count: usize, at: usize| match count.checked_sub(1) {
            Some(last) => {
                self.marks.get(last).map_or(at, |(mark, stood)| at - mark.end + stood.end)
            }
            None => at,
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
