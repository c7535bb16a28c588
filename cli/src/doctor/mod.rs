//! Checks whether forge works here, from files, logs and the store. Changes nothing.

mod agent;
pub mod store;

pub use agent::examine as examine_agents;
pub use store::examine as examine_store;

use crate::config::IgnoredSetting;
use crate::error::CommandError;
use crate::remote::name::remote_argument;
use crate::report::remote::{FailedExchange, UnpushedLine};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Something does not work.
    Problem,
    /// Something could be better.
    Advice,
}

/// A finding for a person, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    pub severity: FindingSeverity,
    /// What it is about: an agent's name, `store`, `session`, `database` or `remote`.
    pub about: String,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl DoctorFinding {
    fn problem(about: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let about = about.to_owned();
        Self { severity: FindingSeverity::Problem, about, what: what.into(), remedy: remedy.into() }
    }

    fn advice(about: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Advice, ..Self::problem(about, what, remedy) }
    }
}

/// Returns the finding that something a command needs cannot be used, from the error that the
/// command would end with.
#[must_use]
pub fn unusable(about: &str, error: &CommandError) -> DoctorFinding {
    let remedy = error.hints().first().map_or("correct what it says", String::as_str);
    DoctorFinding::problem(about, error.message(), remedy)
}

/// Returns the finding about settings of the project that are ignored.
#[must_use]
pub fn ignored_settings(ignored: &[IgnoredSetting]) -> Option<DoctorFinding> {
    let what = IgnoredSetting::describe(ignored);
    let remedy = "look at its config.toml; 'forge config trust' allows what it sets now";
    (!ignored.is_empty()).then(|| DoctorFinding::advice("store", what, remedy))
}

/// Returns the findings about what is not pushed to remotes.
#[must_use]
pub fn examine_remotes(unpushed: Result<Vec<UnpushedLine>, CommandError>) -> Vec<DoctorFinding> {
    match unpushed {
        Ok(lines) => {
            let advice = lines.iter().flat_map(|line| {
                let with = remote_argument(" --with ", &line.remote);
                let exchange = format!("'forge sync{with}' exchanges them");
                let work = line.describe(None).map(|text| (text, exchange));
                let purges = line.describe_purges().map(|text| (text, line.purge_remedy()));
                work.into_iter().chain(purges)
            });
            advice.map(|(text, remedy)| DoctorFinding::advice("remote", text, remedy)).collect()
        }
        Err(error) => vec![unusable("remote", &error)],
    }
}

/// Returns the findings about exchanges with a remote that hooks began and that failed.
#[must_use]
pub fn examine_exchanges(failed: &[FailedExchange]) -> Vec<DoctorFinding> {
    let finding =
        |one: &FailedExchange| DoctorFinding::problem("remote", one.describe(), one.remedy());
    failed.iter().map(finding).collect()
}
