//! Which commands are tests, builds or lints, and how they went.
//!
//! One order of evidence decides, for each check of a command line by itself:
//!
//! 1. a call that never started checked nothing;
//! 2. the exit code, where it is the check's own or nothing but the check explains it ([`solve`]);
//! 3. the counts of the tool's own summary ([`summary`]), where nothing is hidden that could say otherwise ([`seen`]);
//! 4. else it is unknown.
//!
//! `docs/checks.md` shows the tools and tells the rules.

mod check_call;
mod check_plan;
mod judge;
mod outcome_solver;
mod summary;
mod summary_table;
mod target;
mod tools;
mod visibility;
mod wrapper;

use forge_store::model::Value;
use serde::{Deserialize, Serialize};

/// What a check checks. Of several in the name of a script the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckKind {
    Lint,
    Build,
    Test,
}

/// A command line that verifies something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CheckCommandLine {
    line: String,
}

/// How a command line ended, as the record tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedCommandEnd<'a> {
    /// The word for it: `finished`, `background`, ...
    pub(crate) outcome: &'a str,
    pub(crate) exit_code: Option<i64>,
    pub(crate) output: &'a str,
}

/// One check of a command line that ran, or may have run.
#[derive(Clone, Debug)]
pub(crate) struct CheckOutcome {
    /// Its number among the checks of the line, from 0.
    pub(crate) number: usize,
    pub(crate) status: &'static str,
    check: CheckKind,
    tool: &'static str,
    call: String,
    name: String,
    target: Vec<String>,
    directory: Option<String>,
}

impl CheckCommandLine {
    /// What a command line verifies, if it does.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let checks = !check_plan::parse_line(line)?.checks.is_empty();
        checks.then(|| Self { line: line.to_owned() })
    }

    /// The checks of the line that ran or may have run, each with its status.
    pub(crate) fn outcomes(&self, ended: &RecordedCommandEnd<'_>) -> Vec<CheckOutcome> {
        let Some(line) = check_plan::parse_line(&self.line) else { return Vec::new() };
        let statuses = judge::statuses(&line, ended);
        let places = line.checks.into_iter().zip(statuses).enumerate();
        let outcomes = places.filter_map(|(number, (place, status))| {
            let call = place.call;
            Some(CheckOutcome {
                number,
                status: status?,
                check: call.check,
                tool: call.tool,
                call: call.call,
                name: call.name,
                target: call.target,
                directory: call.directory,
            })
        });
        outcomes.collect()
    }
}

impl CheckOutcome {
    /// The fields of a fact about it; the command ran in `working_dir`.
    pub(crate) fn fields(&self, working_dir: Option<&str>) -> [(&'static str, Value); 7] {
        let check = match self.check {
            CheckKind::Lint => "lint",
            CheckKind::Build => "build",
            CheckKind::Test => "test",
        };
        let filled = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let directory = working_dir
            .map(|from| target::joined(from, self.directory.as_deref().unwrap_or_default()));
        let target = match self.target.as_slice() {
            [] => Value::Null,
            words => words.to_vec().into(),
        };
        [
            ("name", self.name.as_str().into()),
            ("tool", self.tool.into()),
            ("check", check.into()),
            ("call", filled(&self.call)),
            ("target", target),
            ("working_dir", directory.into()),
            ("status", self.status.into()),
        ]
    }
}

#[cfg(test)]
mod tests;
