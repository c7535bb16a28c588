//! Counts what each sub-agent did, for its line in the story.

use crate::model::claim::time_in_debugging;
use crate::model::time_grammar::describe_distance;
use crate::model::{Fact, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The work of all sub-agents.
#[derive(Debug, Default)]
pub(super) struct AgentWork {
    /// The sub-agents that have a line, by id.
    agents: BTreeMap<String, OneAgent>,
}

/// The work of one sub-agent.
#[derive(Debug, Default)]
struct OneAgent {
    /// The times from call to end of everything that it did.
    periods: Vec<RangeInclusive<Timestamp>>,
    files: BTreeSet<String>,
    passed: usize,
    failed: usize,
    commits: usize,
}

impl AgentWork {
    /// Adds a sub-agent that gets a line.
    pub(super) fn begin(&mut self, id: &str) {
        self.agents.entry(id.to_owned()).or_default();
    }

    /// Returns whether a fact belongs to a sub-agent that has a line.
    pub(super) fn contains(&self, agent: Option<&str>) -> bool {
        agent.is_some_and(|agent| self.agents.contains_key(agent))
    }

    /// Adds the time of a fact of a sub-agent.
    pub(super) fn add_fact(&mut self, agent: &str, fact: &Fact) {
        let Some(work) = self.agents.get_mut(agent) else { return };
        let called = fact.value.field("called_at").and_then(Value::as_text);
        let start = called.and_then(Timestamp::parse_rfc3339).unwrap_or(fact.at).min(fact.at);
        work.periods.push(start..=fact.at);
    }

    pub(super) fn add_edit(&mut self, agent: &str, path: &str) {
        if let Some(work) = self.agents.get_mut(agent) {
            work.files.insert(path.to_owned());
        }
    }

    /// Adds the result of a check of a sub-agent.
    pub(super) fn add_check(&mut self, agent: &str, passed: bool) {
        if let Some(work) = self.agents.get_mut(agent) {
            *(if passed { &mut work.passed } else { &mut work.failed }) += 1;
        }
    }

    pub(super) fn add_commit(&mut self, agent: &str) {
        if let Some(work) = self.agents.get_mut(agent) {
            work.commits += 1;
        }
    }

    /// Returns what a sub-agent did, in words: `6 min, 2 files edited, 7 checks passed, 1 commit`.
    /// The time does not include long pauses. `None` if it did nothing.
    pub(super) fn summary(&self, agent: &str) -> Option<String> {
        let work = self.agents.get(agent)?;
        let active = time_in_debugging(work.periods.iter().cloned());
        let micros = i64::try_from(active.as_micros()).unwrap_or(i64::MAX);
        let mut parts = Vec::new();
        if micros > 0 {
            parts.push(describe_distance(micros));
        }
        for (count, one, many) in [
            (work.files.len(), "file edited", "files edited"),
            (work.passed, "check passed", "checks passed"),
            (work.failed, "check failed", "checks failed"),
            (work.commits, "commit", "commits"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { one } else { many }));
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FactOrigin, Kind};

    #[test]
    fn the_work_of_a_sub_agent_leaves_out_idle_time() {
        let mut work = AgentWork::default();
        work.begin("a1");
        assert!(work.contains(Some("a1")) && !work.contains(Some("a2")) && !work.contains(None));
        assert_eq!(work.summary("a1"), None);
        let minute = 60_000_000;
        for at in [0, 2, 4, 600, 601] {
            let at = Timestamp::from_micros(at * minute);
            let fact = Fact {
                kind: Kind::Command,
                id: "c".to_owned(),
                at,
                origin: FactOrigin::Imported,
                place: 0,
                recorded_at: at,
                value: Value::Null,
            };
            work.add_fact("a1", &fact);
        }
        work.add_edit("a1", "src/a.rs");
        work.add_edit("a1", "src/a.rs");
        work.add_check("a1", true);
        work.add_check("a1", true);
        work.add_check("a1", false);
        work.add_commit("a1");
        let expected = "5 min, 1 file edited, 2 checks passed, 1 check failed, 1 commit";
        assert_eq!(work.summary("a1").as_deref(), Some(expected));
    }
}
