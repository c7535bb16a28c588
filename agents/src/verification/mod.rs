//! Finds the tests, builds and lints in a command line, and decides whether they passed.
//!
//! Each check of a command line is decided separately, by the first rule that applies:
//!
//! 1. a call that was refused, or a line that no shell could parse, checked nothing;
//! 2. the exit code decides, if it is the check's own or only the check can explain it
//!    ([`outcome_solver`]);
//! 3. the counts of the tool's own summary decide ([`summary`]), if no hidden output could
//!    contradict them ([`visibility`]);
//! 4. otherwise the status is unknown.
//!
//! `docs/checks.md` lists the tools and the rules.

mod call_arguments;
mod check_call;
mod check_plan;
mod command_classifier;
mod command_words;
mod judge;
mod non_checking;
mod outcome_solver;
mod plan_builder;
mod program_words;
mod runner_failure;
mod script_call;
mod summary;
mod summary_table;
mod target;
mod tools;
mod visibility;
mod wrapper;

use forge_store::model::{FieldMap, Value};
use serde::{Deserialize, Serialize};

/// The kind of a check. If the words of a script's name say several kinds, the last in this order
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckKind {
    Lint,
    Build,
    Test,
}

/// A command line that has checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CheckCommandLine {
    line: String,
}

/// How a command line ended, as recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedCommandEnd<'a> {
    /// A word of a command's field `outcome`: `finished`, `background`, ...
    pub(crate) outcome: &'a str,
    pub(crate) exit_code: Option<i64>,
    pub(crate) output: &'a str,
}

/// One check of a command line that ran or may have run.
#[derive(Clone, Debug)]
pub(crate) struct CheckOutcome {
    /// Its index among the checks of the line, from 0.
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
    /// Returns the checks in a command line, if it has any.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let checks = !plan_builder::parse_line(line)?.checks.is_empty();
        checks.then(|| Self { line: line.to_owned() })
    }

    /// Returns the checks of the line that ran or may have run, each with its status.
    pub(crate) fn outcomes(&self, ended: &RecordedCommandEnd<'_>) -> Vec<CheckOutcome> {
        let Some(line) = plan_builder::parse_line(&self.line) else { return Vec::new() };
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
    /// Returns the fields of the verification. `working_dir` is the directory in which the command
    /// line began.
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

/// A command line, and how it ended.
#[derive(Clone, Copy, Debug)]
pub struct FinishedLine<'a> {
    /// The command line.
    pub line: &'a str,
    /// The directory that it ran in.
    pub working_dir: &'a str,
    /// How it ended, as a word of a command's field `outcome`.
    pub outcome: &'a str,
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// What it printed.
    pub output: &'a str,
}

/// Returns the tests, builds and lints of a command line that ran or may have run: for each the
/// fields of a verification.
#[must_use]
pub fn checks_of(finished: &FinishedLine<'_>) -> Vec<FieldMap> {
    let Some(checks) = CheckCommandLine::from_line(finished.line) else { return Vec::new() };
    let end = RecordedCommandEnd {
        outcome: finished.outcome,
        exit_code: finished.exit_code,
        output: finished.output,
    };
    let outcomes = checks.outcomes(&end);
    let fields = outcomes.iter().map(|check| check.fields(Some(finished.working_dir)));
    let named = |(name, value): (&str, Value)| (name.to_owned(), value);
    fields
        .map(|fields| fields.into_iter().filter(|(_, value)| *value != Value::Null).map(named))
        .map(FieldMap::from_iter)
        .collect()
}

#[cfg(test)]
mod tests;
