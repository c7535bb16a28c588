//! The summary lines of each tool, passing and failing: `summaries.tsv`. `docs/checks.md` shows an
//! example of each.

use forge_store::const_table::{count, rows, split};

/// What a line that matches a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineVerdict {
    /// Something failed.
    Failed,
    /// One thing failed. It counts only if no line after it reports a pass: the programs under test
    /// can print such lines too.
    OneFailure,
    /// Everything in the scope passed.
    Passed(VerdictScope),
    /// The groups of the pattern are counts of failures. Everything in the scope passed if all of
    /// them are 0 or absent.
    Counts(VerdictScope),
}

/// The scope of a line: what must be visible for it to prove that a run passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictScope {
    /// The whole run: the line alone proves it.
    Run,
    /// The run so far: nothing after it may be hidden.
    SoFar,
    /// A part, such as a package: nothing at all may be hidden.
    Part,
}

/// The summary lines of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct SummaryPatterns {
    pub(super) name: &'static str,
    /// Whether a run that passed prints nothing.
    pub(super) silent: bool,
    /// Whether these lines also count in the output of a script.
    pub(super) in_scripts: bool,
    /// Its index in [`SUMMARIES`].
    pub(super) number: usize,
    /// Its rows in the table, each a word and a text.
    rows: &'static [[&'static str; 2]],
}

const LINES: &str = include_str!("summaries.tsv");
const TABLE: &[[&str; 2]] = &rows::<{ count(LINES) }, 2>(LINES);
/// The number of tools.
pub(super) const COUNT: usize = {
    let (mut row, mut count) = (0, 0);
    while row < TABLE.len() {
        count += is_tool(row) as usize;
        row += 1;
    }
    count
};

/// The patterns of all tools.
pub(super) static SUMMARIES: [SummaryPatterns; COUNT] = {
    let none = SummaryPatterns { name: "", silent: false, in_scripts: false, number: 0, rows: &[] };
    let (mut summaries, mut number, mut row) = ([none; COUNT], 0, 0);
    while row < TABLE.len() {
        if is_tool(row) {
            summaries[number] = SummaryPatterns::read(row, number);
            number += 1;
        }
        row += 1;
    }
    summaries
};

/// Returns whether the rows of a tool begin with this row.
const fn is_tool(row: usize) -> bool {
    matches!(TABLE[row][0].as_bytes(), b"tool")
}

/// Returns the patterns of the tool with this name in `summaries.tsv`.
pub(super) fn find(name: &str) -> Option<&'static SummaryPatterns> {
    SUMMARIES.iter().find(|summary| summary.name == name)
}

/// Returns the patterns of what tools print after the summary of a run.
pub(super) fn trailers() -> impl Iterator<Item = &'static str> {
    texts_of(TABLE, "trailer")
}

/// Returns the texts of the rows with this word.
fn texts_of(
    rows: &'static [[&'static str; 2]],
    wanted: &'static str,
) -> impl Iterator<Item = &'static str> {
    rows.iter().filter(move |[word, _]| *word == wanted).map(|[_, text]| *text)
}

impl SummaryPatterns {
    /// Reads the tool that begins with this row.
    const fn read(row: usize, number: usize) -> Self {
        let mut end = row + 1;
        while end < TABLE.len() && !is_tool(end) {
            end += 1;
        }
        let (name, marks) = split(TABLE[row][1], b'\t');
        let (first, second) = split(marks, b'\t');
        let silent = matches!(first.as_bytes(), b"silent");
        let alone = matches!(first.as_bytes(), b"alone") || matches!(second.as_bytes(), b"alone");
        let rows = TABLE.split_at(end).0.split_at(row + 1).1;
        Self { name, silent, in_scripts: !alone, number, rows }
    }

    /// Returns the patterns of the lines, and what a line of each means.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (&'static str, LineVerdict)> + use<> {
        self.rows.iter().filter_map(|[word, text]| {
            let says = match *word {
                "failed" => LineVerdict::Failed,
                "failure" => LineVerdict::OneFailure,
                "passed-run" => LineVerdict::Passed(VerdictScope::Run),
                "passed-so-far" => LineVerdict::Passed(VerdictScope::SoFar),
                "passed-part" => LineVerdict::Passed(VerdictScope::Part),
                "counts-run" => LineVerdict::Counts(VerdictScope::Run),
                "counts-so-far" => LineVerdict::Counts(VerdictScope::SoFar),
                "counts-part" => LineVerdict::Counts(VerdictScope::Part),
                _ => return None,
            };
            let shared = text.starts_with('$').then(|| texts_of(TABLE, text).next()).flatten();
            Some((shared.unwrap_or(text), says))
        })
    }

    /// Returns an example of the last line of a run that failed.
    pub(super) fn failing(&self) -> &'static str {
        texts_of(self.rows, "example").next().unwrap_or_default()
    }

    /// Returns examples of other lines of a failed run. A pass counts after a filter only if the
    /// filter lets these lines through.
    pub(super) fn also_failing(&self) -> impl Iterator<Item = &'static str> {
        texts_of(self.rows, "another")
    }
}
