//! The summary lines of each tool, passing and failing: `summaries.tsv`. `docs/checks.md` shows an
//! example of each.

use super::summary::{LineVerdict, SummaryPatterns, VerdictScope};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const LINES: &str = include_str!("summaries.tsv");

/// The patterns of all tools.
pub(super) static SUMMARIES: LazyLock<Vec<SummaryPatterns>> = LazyLock::new(|| {
    let (mut found, mut named) = (Vec::<SummaryPatterns>::new(), BTreeMap::new());
    for line in LINES.lines() {
        let Some((word, rest)) = line.split_once('\t') else { continue };
        if let Some(name) = word.strip_prefix('$') {
            named.insert(name, rest);
        } else if word == "tool" {
            found.push(begun(rest));
        } else if let Some(summary) = found.last_mut() {
            let shared = rest.strip_prefix('$').and_then(|name| named.get(name).copied());
            add(summary, word, shared.unwrap_or(rest));
        }
    }
    found
});

/// Returns the patterns of the tool with this name in `summaries.tsv`.
pub(super) fn find(name: &str) -> Option<&'static SummaryPatterns> {
    SUMMARIES.iter().find(|summary| summary.name == name)
}

/// Returns the patterns of what tools print after the summary of a run.
pub(super) fn trailers() -> impl Iterator<Item = &'static str> {
    LINES.lines().filter_map(|line| line.strip_prefix("trailer\t"))
}

fn begun(columns: &'static str) -> SummaryPatterns {
    let mut columns = columns.split('\t');
    let name = columns.next().unwrap_or_default();
    let marks: Vec<&str> = columns.collect();
    let (silent, in_scripts) = (marks.contains(&"silent"), !marks.contains(&"alone"));
    SummaryPatterns { name, silent, in_scripts, ..SummaryPatterns::default() }
}

fn add(summary: &mut SummaryPatterns, word: &str, text: &'static str) {
    let says = match word {
        "failed" => LineVerdict::Failed,
        "failure" => LineVerdict::OneFailure,
        "passed-run" => LineVerdict::Passed(VerdictScope::Run),
        "passed-so-far" => LineVerdict::Passed(VerdictScope::SoFar),
        "passed-part" => LineVerdict::Passed(VerdictScope::Part),
        "counts-run" => LineVerdict::Counts(VerdictScope::Run),
        "counts-so-far" => LineVerdict::Counts(VerdictScope::SoFar),
        "counts-part" => LineVerdict::Counts(VerdictScope::Part),
        "example" => {
            summary.failing = text;
            return;
        }
        _ => {
            summary.also_failing.push(text);
            return;
        }
    };
    summary.shapes.push((text, says));
}
