//! Recognises the summary lines that tools print at the end of a run.
//!
//! A line counts only if it has the whole form of a summary, with the counts. A word such as
//! `failed` proves nothing.

use super::summary_table::{self, COUNT, LineVerdict, SUMMARIES, SummaryPatterns, VerdictScope};
use super::visibility::OutputVisibility;
use regex::{Regex, RegexSet};
use std::sync::OnceLock;

/// What the output says about the runs of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SummaryMatches {
    /// The numbers of the lines that report a failure.
    pub(super) failed: Vec<usize>,
    /// The numbers of the lines that report a passed run.
    pub(super) runs: Vec<usize>,
    /// Whether everything passed: no line reports a failure, and enough of the output is visible
    /// for the scope of a line that reports a pass.
    pub(super) passed: bool,
    /// Whether a line that reports a pass follows a line that reports one failure.
    pub(super) mixed: bool,
}

/// The maximum length of a summary line, in bytes.
const MAX_LINE: usize = 1000;

/// Returns the pattern with ASCII character classes. Unicode classes compile to much larger
/// programs.
pub(super) fn ascii(pattern: &str) -> String {
    let replaced = pattern.replace(r"\d", "[0-9]").replace(r"\s", r"[ \t]");
    replaced.replace(r"\S", r"[^ \t]").replace(r"\b", r"(?-u:\b)")
}

/// A compiled set of patterns of summary lines.
#[derive(Debug)]
pub(super) struct SummaryMatcher {
    set: RegexSet,
    each: Vec<LinePattern>,
}

/// A pattern of a set. It is also compiled alone if its groups are needed.
#[derive(Debug)]
struct LinePattern {
    pattern: String,
    compiled: OnceLock<Option<Regex>>,
    says: LineVerdict,
}

impl LinePattern {
    fn captures<'l>(&self, line: &'l str) -> Option<regex::Captures<'l>> {
        self.compiled.get_or_init(|| Regex::new(&self.pattern).ok()).as_ref()?.captures(line)
    }
}

impl SummaryMatcher {
    fn new<'s>(summaries: impl Iterator<Item = &'s SummaryPatterns>) -> Option<Self> {
        let shapes = summaries.flat_map(SummaryPatterns::shapes);
        let each: Vec<_> = shapes
            .map(|(pattern, says)| LinePattern {
                pattern: ascii(pattern),
                compiled: OnceLock::new(),
                says,
            })
            .collect();
        let set = RegexSet::new(each.iter().map(|shape| &shape.pattern)).ok()?;
        Some(Self { set, each })
    }

    /// Returns the meaning of a line, with its counts read; `None` if no pattern matches.
    fn line(&self, line: &str) -> Option<LineVerdict> {
        let (mut passed, mut one_failure) = (None, None);
        for index in self.set.matches(line) {
            let shape = self.each.get(index)?;
            match &shape.says {
                LineVerdict::Failed => return Some(LineVerdict::Failed),
                LineVerdict::OneFailure => one_failure = Some(LineVerdict::OneFailure),
                LineVerdict::Passed(reach) => passed = Some(LineVerdict::Passed(*reach)),
                LineVerdict::Counts(reach) => {
                    let captures = shape.captures(line)?;
                    let mut counts = captures.iter().skip(1).flatten().map(|it| it.as_str());
                    if counts.any(|count| count.bytes().any(|digit| matches!(digit, b'1'..=b'9'))) {
                        return Some(LineVerdict::Failed);
                    }
                    passed = Some(LineVerdict::Passed(*reach));
                }
            }
        }
        one_failure.or(passed)
    }

    /// Returns the index of the first line of the output's end. The end has only blank lines,
    /// passes, lines that tools print after a summary, and lines that the command line prints
    /// itself (`own`).
    pub(super) fn ending(&self, lines: &[&str], own: impl Fn(&str) -> bool) -> usize {
        let follows = |line: &str| {
            line.trim().is_empty()
                || own(line)
                || trailer_patterns().is_some_and(|trailers| trailers.is_match(line))
                || matches!(self.line(line), Some(LineVerdict::Passed(_)))
        };
        lines.iter().rposition(|line| !follows(line)).map_or(0, |last| last + 1)
    }

    /// Evaluates the lines of an output. Passes count only from the line `from` on. If the run has
    /// only one part (`one_part`), the line of a part covers the whole run.
    pub(super) fn read(
        &self,
        lines: &[&str],
        seen: OutputVisibility,
        from: usize,
        one_part: bool,
    ) -> SummaryMatches {
        let mut found = SummaryMatches::default();
        let mut one_failures = Vec::new();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            match self.line(line) {
                Some(LineVerdict::Failed) if found.failed.len() < MAX_FOUND => {
                    found.failed.push(number);
                }
                Some(LineVerdict::OneFailure) if one_failures.len() < MAX_FOUND => {
                    one_failures.push(number);
                }
                Some(LineVerdict::Passed(reach)) => {
                    found.mixed |= !one_failures.is_empty();
                    one_failures.clear();
                    if number < from {
                        continue;
                    }
                    found.passed |= match reach {
                        VerdictScope::Run => true,
                        VerdictScope::SoFar => seen.end,
                        VerdictScope::Part => one_part || (seen.beginning && seen.end),
                    };
                    if found.runs.len() < MAX_FOUND {
                        found.runs.push(number);
                    }
                }
                _ => {}
            }
        }
        found.failed.extend(one_failures);
        found.failed.sort_unstable();
        found.failed.truncate(MAX_FOUND);
        found.passed &= found.failed.is_empty();
        found
    }
}

/// The maximum number of line numbers in each list of [`SummaryMatches`].
const MAX_FOUND: usize = 64;

/// Returns the compiled patterns of a tool; `None` if it has none.
pub(super) fn tool_matcher(summary: &SummaryPatterns) -> Option<&'static SummaryMatcher> {
    static MATCHERS: [OnceLock<Option<SummaryMatcher>>; COUNT] = [const { OnceLock::new() }; COUNT];
    summary.shapes().next()?;
    let compile = || SummaryMatcher::new(std::iter::once(summary));
    MATCHERS.get(summary.number)?.get_or_init(compile).as_ref()
}

/// Returns the patterns that count in the output of any script.
pub(super) fn script_matcher() -> Option<&'static SummaryMatcher> {
    static COMPILED: OnceLock<Option<SummaryMatcher>> = OnceLock::new();
    let known = SUMMARIES.iter().filter(|summary| summary.in_scripts);
    COMPILED.get_or_init(|| SummaryMatcher::new(known)).as_ref()
}

/// Returns the patterns of the lines that tools print after the summary of a run.
fn trailer_patterns() -> Option<&'static RegexSet> {
    static TRAILERS: OnceLock<Option<RegexSet>> = OnceLock::new();
    let patterns = summary_table::trailers().map(ascii);
    TRAILERS.get_or_init(|| RegexSet::new(patterns).ok()).as_ref()
}

/// What clients write in an output that no program of the line printed.
const CLIENT_NOTES: [&str; 3] =
    ["(Bash completed with no output)", "(no output)", "Tool ran without output or errors"];

/// Returns the lines of an output that are not too long for a summary, as a terminal shows them:
/// without colours, and without the text before a carriage return.
pub(super) fn lines(output: &str) -> Vec<std::borrow::Cow<'_, str>> {
    let is_note =
        |line: &str| CLIENT_NOTES.contains(&line) || line.starts_with("Shell cwd was reset to ");
    let lines = output.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or_default());
    let lines = lines.filter(|line| line.len() <= MAX_LINE && !is_note(line));
    lines.map(without_colours).collect()
}

/// Returns the rest of a text after the code of a colour whose escape character was lost: `[32m`.
fn after_lost_colour(text: &str) -> Option<&str> {
    let code = text.strip_prefix('[')?;
    let rest = code.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';');
    rest.strip_prefix('m').filter(|_| rest.len() < code.len())
}

/// Returns a line without escape sequences, such as those for colours.
fn without_colours(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains(['\u{1b}', '[']) {
        return line.into();
    }
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = after_lost_colour(rest) {
            rest = after;
            continue;
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        let mut sequence = rest.chars();
        match sequence.next() {
            Some('[') => {
                sequence.by_ref().find(|it| ('@'..='~').contains(it));
            }
            // The address of a link, which ends with a bell or with `ESC \`.
            Some(']') => {
                let ends = |it: &char| matches!(it, '\u{7}' | '\u{1b}');
                if sequence.by_ref().find(ends) == Some('\u{1b}') {
                    sequence.next();
                }
            }
            // A set of characters.
            Some('(' | ')') => {
                sequence.next();
            }
            _ => {}
        }
        rest = sequence.as_str();
    }
    plain.truncate(plain.trim_end().len());
    plain.into()
}
