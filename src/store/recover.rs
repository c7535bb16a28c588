//! Where to continue after a crash, computed from what is recorded. Changes nothing.

use super::brief::SessionBrief;
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::state::RevisionSummary;
use crate::engine::fact::SourcedFact;
use crate::engine::lineage::{self, RevisionRange};
use crate::error::Result;
use crate::model::claim::{Agent, CommandOutcome, ExecutedCommand, Task};
use crate::model::{Checkpoint, Kind, Timestamp, Value};
use std::collections::BTreeMap;

/// The maximum length of each list of commands: of those without a known end, and of those that
/// ended.
const MAX_LISTED_COMMANDS: usize = 10;

/// A recovery point with its recovery steps.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverySummary {
    /// The moment of recovery: the last recorded event, or the named moment; `None` if there is
    /// none.
    pub time: Option<Timestamp>,
    /// The last checkpoint at or before it.
    pub checkpoint: Option<Checkpoint>,
    /// The revision with the claims at that moment.
    pub revision: Option<RevisionSummary>,
    /// How many revisions of the branch follow that checkpoint, up to the moment.
    pub revisions_since: u64,
    /// How many facts follow that checkpoint, up to the moment.
    pub facts_since: u64,
    /// The last captured state of the code: a fact with a commit or patches.
    pub code: Option<SourcedFact>,
    /// The edits after that state, or all edits if there is none, the earliest first.
    pub edits: Vec<SourcedFact>,
    /// The environment variables last recorded with a state of the code.
    pub env_vars: BTreeMap<String, String>,
    /// The last commands and sub-agents without a known end, the earliest first.
    pub running: Vec<SourcedFact>,
    /// The last commands that ended, the earliest first.
    pub commands: Vec<SourcedFact>,
    /// The open tasks.
    pub tasks: Vec<SourcedFact>,
    /// The brief of that moment.
    pub brief: SessionBrief,
}

impl Session {
    /// Returns where to continue from a moment, and how. Every event is durable by itself, so the
    /// time of the head is that of the last recorded event, with or without a checkpoint.
    pub fn recovery(&self, moment: &ResolvedMoment) -> Result<RecoverySummary> {
        let state = self.state(moment)?;
        let checkpoint = state.checkpoint()?;
        let facts = state.facts()?;
        let brief = state.brief_of(&facts)?;
        let facts_since = facts_since(&facts, checkpoint.as_ref());
        let (mut code, facts) = of_kind(facts, Kind::Code);
        let (tasks, facts) = of_kind(facts, Kind::Task);
        let captured = code.iter().rposition(|known| is_captured(&known.fact.value));
        let env_vars = code.iter().rev().find_map(|known| variables(&known.fact.value));
        let edits = code.split_off(captured.map_or(0, |place| place + 1));
        let (running, commands) = commands(facts);
        Ok(RecoverySummary {
            time: state.time()?,
            revision: state.revision()?,
            revisions_since: self.revisions_since(moment, checkpoint.as_ref())?,
            facts_since,
            checkpoint,
            code: captured.and(code.pop()),
            edits: edits.into_iter().filter(|known| is_edit(&known.fact.value)).collect(),
            env_vars: env_vars.unwrap_or_default(),
            running,
            commands,
            tasks: tasks
                .into_iter()
                .filter(|known| {
                    Task::from_value(&known.fact.value).is_ok_and(|task| task.is_open())
                })
                .collect(),
            brief,
        })
    }

    /// Counts the revisions of the moment's branch after a checkpoint, up to the moment.
    fn revisions_since(
        &self,
        moment: &ResolvedMoment,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<u64> {
        let Some(to) = moment.revision() else { return Ok(0) };
        let after = checkpoint.and_then(|one| one.revision).unwrap_or(0);
        let range = RevisionRange { branch: moment.branch, after, to };
        lineage::count_revisions(&self.view()?, self.number, range)
    }
}

/// Splits facts into the ones with this kind and the others.
fn of_kind(facts: Vec<SourcedFact>, kind: Kind) -> (Vec<SourcedFact>, Vec<SourcedFact>) {
    facts.into_iter().partition(|known| known.fact.kind == kind)
}

fn facts_since(facts: &[SourcedFact], checkpoint: Option<&Checkpoint>) -> u64 {
    let later = |known: &&SourcedFact| checkpoint.is_none_or(|one| known.fact.at > one.time);
    facts.iter().filter(later).count() as u64
}

/// Returns whether this is a captured state of the code, not an edit of one file.
fn is_captured(value: &Value) -> bool {
    value.field("path").is_none()
        && (value.field("commit").is_some() || value.field("patches").is_some())
}

/// Returns whether this is an applied edit: some agents also record edits that were refused.
fn is_edit(value: &Value) -> bool {
    value.field("patch").is_some() && value.field("applied") != Some(&Value::Bool(false))
}

/// Returns the environment variables recorded with a state of the code; `None` if there are none.
pub(super) fn variables(code: &Value) -> Option<BTreeMap<String, String>> {
    let variables = code.field("env_vars")?.as_map()?;
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_text()?.to_owned()));
    let found: BTreeMap<String, String> = variables.iter().filter_map(text).collect();
    Some(found).filter(|found| !found.is_empty())
}

/// Returns the last commands and sub-agents without a known end, and the last commands that ended.
fn commands(facts: Vec<SourcedFact>) -> (Vec<SourcedFact>, Vec<SourcedFact>) {
    let (commands, facts) = of_kind(facts, Kind::Command);
    let (mut running, mut ended): (Vec<_>, Vec<_>) = commands.into_iter().partition(|known| {
        ExecutedCommand::from_value(&known.fact.value).is_ok_and(|command| match command.outcome {
            Some(outcome) => outcome == CommandOutcome::Background,
            None => command.exit_code.is_none(),
        })
    });
    let is_at_work = |known: &SourcedFact| {
        let agent = Agent::from_value(&known.fact.value);
        agent.is_ok_and(|agent| agent.status.is_none() && agent.result.is_none())
    };
    running.extend(of_kind(facts, Kind::Agent).0.into_iter().filter(is_at_work));
    running.sort_by(|a, b| (a.fact.at, &a.fact.id).cmp(&(b.fact.at, &b.fact.id)));
    for list in [&mut running, &mut ended] {
        list.drain(..list.len().saturating_sub(MAX_LISTED_COMMANDS));
    }
    (running, ended)
}
