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

mod call;
mod judge;
mod plan;
mod runner;
mod seen;
mod shapes;
mod solve;
mod summary;
mod target;
mod tools;

use forge_store::model::Value;
use serde::{Deserialize, Serialize};

/// What a check checks. Of several in the name of a script the last of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    Lint,
    Build,
    Test,
}

/// A command line that verifies something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Verification {
    line: String,
}

/// How a command line ended, as the record tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    /// The word for it: `finished`, `background`, ...
    pub(crate) outcome: &'a str,
    pub(crate) exit_code: Option<i64>,
    pub(crate) output: &'a str,
}

/// One check of a command line that ran, or may have run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Its number among the checks of the line, from 0.
    pub(crate) number: usize,
    pub(crate) status: &'static str,
    check: Check,
    tool: &'static str,
    call: String,
    name: String,
    target: Vec<String>,
    directory: Option<String>,
}

impl Verification {
    /// What a command line verifies, if it does.
    pub(crate) fn of(line: &str) -> Option<Self> {
        let checks = !plan::of(line)?.checks.is_empty();
        checks.then(|| Self { line: line.to_owned() })
    }

    /// The checks of the line that ran or may have run, each with its status.
    pub(crate) fn outcomes(&self, ended: &Ended<'_>) -> Vec<Outcome> {
        let Some(line) = plan::of(&self.line) else { return Vec::new() };
        let statuses = judge::statuses(&line, ended);
        let places = line.checks.into_iter().zip(statuses).enumerate();
        let outcomes = places.filter_map(|(number, (place, status))| {
            let call = place.call;
            Some(Outcome {
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

impl Outcome {
    /// The fields of a fact about it; the command ran in `working_dir`.
    pub(crate) fn fields(&self, working_dir: Option<&str>) -> [(&'static str, Value); 7] {
        let check = match self.check {
            Check::Lint => "lint",
            Check::Build => "build",
            Check::Test => "test",
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
