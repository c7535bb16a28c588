//! Checks whether the installation works, from files, logs and the store. Changes nothing.

mod agent;
pub mod store;

pub use agent::examine as examine_agents;
pub use store::examine as examine_store;

use crate::config::IgnoredSetting;
use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work.
    Problem,
    /// Something could be better.
    Advice,
}

/// A finding for a person, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// What it is about: an agent's name, `store` or `forge`.
    pub about: String,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    fn problem(about: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let about = about.to_owned();
        Self { severity: Severity::Problem, about, what: what.into(), remedy: remedy.into() }
    }

    fn advice(about: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Advice, ..Self::problem(about, what, remedy) }
    }
}

/// Returns the finding about settings of the project that are ignored.
#[must_use]
pub fn ignored_settings(ignored: &[IgnoredSetting]) -> Option<Finding> {
    let what = IgnoredSetting::told(ignored);
    let remedy = "look at its config.toml; 'forge config trust' allows what it sets now";
    (!ignored.is_empty()).then(|| Finding::advice("store", what, remedy))
}
