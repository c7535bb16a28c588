//! Prints each kind of line in transcripts that no reader uses, with the number of such lines:
//! `scripts/unread-lines FILE...`.

mod kinds;
#[cfg(test)]
#[path = "../../src/recorded.rs"]
mod recorded;

use std::io::Write;
use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        writeln!(std::io::stderr(), "usage: scripts/unread-lines FILE...")?;
        return Ok(ExitCode::from(2));
    }
    for file in files {
        for (kind, count) in kinds::count_unread_kinds(&std::fs::read(file)?) {
            *counts.entry(kind).or_default() += count;
        }
    }
    for (kind, count) in counts {
        writeln!(out, "{count}\t{kind}")?;
    }
    Ok(ExitCode::SUCCESS)
}
