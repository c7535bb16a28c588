//! Checks the examples of `docs/time.md`.

use super::*;

const PAGE: &str = include_str!("../../../../docs/time.md");

/// Returns the rows `input -> result` of the documentation's blocks of this name.
fn rows(block: &str) -> Vec<(&'static str, &'static str)> {
    let mut inside = "";
    let mut rows = Vec::new();
    for line in PAGE.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            inside = fence;
        } else if inside == block {
            let (text, expected) = line.split_once("->").expect("an example has an arrow");
            rows.push((text.trim(), expected.trim()));
        }
    }
    rows
}

#[test]
fn time_examples_on_the_page_hold() {
    let rows = rows("time");
    assert!(rows.len() > 50, "{}", rows.len());
    check_times(now(), &BERLIN, &rows);
}

#[test]
fn moment_examples_on_the_page_hold() {
    let rows = rows("moment");
    assert!(rows.len() > 25, "{}", rows.len());
    check(rows.iter().map(|(text, expected)| (*text, moment_outcome(text), (*expected).into())));
}

#[test]
fn duration_examples_on_the_page_hold() {
    let rows = rows("duration");
    assert!(rows.len() > 7, "{}", rows.len());
    check(rows.iter().map(|(text, expected)| {
        let found = parse_duration(text).map_or_else(|_| "refused".into(), describe_distance);
        (*text, found, (*expected).into())
    }));
}
