//! The events of a session, read once and in the order of time.

use super::StoryCut;
use super::agent_work::AgentWork;
use super::fact_item::assistant_message;
use super::project_root::ProjectRoot;
use crate::error::Result;
use crate::model::claim::{FactText, FieldValue};
use crate::model::{BranchStatus, Fact, Kind, Timestamp, Value};
use crate::store::{BranchSummary, LogItem, SourcedFact, StateAt};
use std::collections::BTreeSet;

/// Something that happened, from which the story makes an item.
pub(super) enum StoryEvent<'f> {
    Fact(&'f SourcedFact),
    /// A revision or a checkpoint.
    Record(LogItem),
    BranchCreated(BranchSummary),
    /// A branch was merged, abandoned or archived.
    BranchSettled(BranchSummary),
}

impl StoryEvent<'_> {
    /// Returns the rank of the event among events of the same time: a prompt is first, a
    /// message last. Prompts are in the order of their source: those that were typed while the
    /// agent worked can have equal times.
    const fn rank(&self) -> (u8, u64) {
        let rank = match self {
            Self::Fact(known) => match known.fact.kind {
                Kind::Prompt => return (0, known.fact.place),
                Kind::Agent => 1,
                Kind::Message => 6,
                _ => 3,
            },
            Self::BranchCreated(_) => 2,
            Self::Record(LogItem::Checkpoint(_)) => 5,
            Self::Record(_) | Self::BranchSettled(_) => 4,
        };
        (rank, 0)
    }
}

/// Everything from which a story is built, except for the changes of revisions.
#[derive(Default)]
pub(super) struct StoryEvents<'f> {
    /// The events with the times at which the story shows them, oldest first.
    pub(super) events: Vec<(Timestamp, StoryEvent<'f>)>,
    /// The folder of the project.
    pub(super) root: Option<ProjectRoot>,
    /// The sub-agents, without their work.
    pub(super) agents: AgentWork,
    /// The commands that verifications report.
    pub(super) checked: CheckedCommands<'f>,
}

impl<'f> StoryEvents<'f> {
    /// Reads the events up to the moment of a state.
    pub(super) fn read(state: &StateAt, facts: &'f [SourcedFact]) -> Result<Self> {
        Self::of_facts(facts).with_records(state, state.records()?)
    }

    /// Reads the facts and checkpoints up to the moment of a state, and the revisions among the
    /// last `count` revisions and checkpoints up to that moment. The cut is `None` if the session
    /// has no older ones.
    pub(super) fn read_recent(
        state: &StateAt,
        facts: &'f [SourcedFact],
        count: usize,
    ) -> Result<(Self, Option<StoryCut>)> {
        let (mut records, has_older) = state.last_records(count)?;
        let first = records.first().filter(|_| has_older);
        let cut = first.map(|item| StoryCut { at: item.time(), sequence: item.sequence() });
        if let Some(cut) = cut {
            // The findings need the commits before the cut, too.
            let older = state.checkpoints_since(Timestamp::MIN)?.into_iter();
            let older = older.filter(|checkpoint| checkpoint.sequence < cut.sequence);
            records.extend(older.map(LogItem::Checkpoint));
        }
        Ok((Self::of_facts(facts).with_records(state, records)?, cut))
    }

    fn with_records(mut self, state: &StateAt, records: Vec<LogItem>) -> Result<Self> {
        for item in records {
            self.events.push((item.time(), StoryEvent::Record(item)));
        }
        for branch in state.branches()? {
            if branch.base.is_some() {
                self.events.push((branch.created_at, StoryEvent::BranchCreated(branch.clone())));
            }
            if branch.status != BranchStatus::Active {
                self.events.push((branch.changed_at, StoryEvent::BranchSettled(branch)));
            }
        }
        Ok(self.sorted())
    }

    /// Reads what a brief needs: facts, and the checkpoints since the first edit. The cost does not
    /// depend on the number of revisions.
    pub(super) fn read_for_brief(state: &StateAt, facts: &'f [SourcedFact]) -> Result<Self> {
        let edits = facts.iter().filter(|known| known.fact.kind == Kind::Code);
        let first_edit = edits.map(|known| known.fact.at).min();
        let mut read = Self::of_facts(facts);
        read.events.retain(|(_, event)| match event {
            StoryEvent::Fact(known) => match known.fact.kind {
                Kind::Prompt | Kind::Message | Kind::Code | Kind::Agent => true,
                // Only a command of git commits files, adds them to a commit or discards edits.
                Kind::Command => mentions_git(&known.fact.value),
                // A person answered questions of the agent.
                Kind::Tool => known.fact.value.field("answers").is_some(),
                _ => false,
            },
            _ => true,
        });
        if let Some(first) = first_edit {
            for checkpoint in state.checkpoints_since(first)? {
                let item = LogItem::Checkpoint(checkpoint);
                read.events.push((item.time(), StoryEvent::Record(item)));
            }
        }
        let mut read = read.sorted();
        read.keep_answered_messages();
        Ok(read)
    }

    /// Removes the messages except for the last one of the main agent before each prompt: a short
    /// prompt is shown with the question that it answers.
    fn keep_answered_messages(&mut self) {
        let mut is_answered = false;
        let kept = self.events.iter().rev().map(|(_, event)| match event {
            StoryEvent::Fact(known) if known.fact.kind == Kind::Prompt => {
                is_answered = true;
                true
            }
            StoryEvent::Fact(known) if known.fact.kind == Kind::Message => {
                let is_kept = is_answered
                    && assistant_message(known).is_some_and(|message| message.agent.is_none());
                is_answered &= !is_kept;
                is_kept
            }
            _ => true,
        });
        let mut kept: Vec<bool> = kept.collect();
        self.events.retain(|_| kept.pop().unwrap_or_default());
    }

    fn of_facts(facts: &'f [SourcedFact]) -> Self {
        let mut read = Self::default();
        let mut folders = Vec::new();
        for known in facts {
            let fact = &known.fact;
            match fact.kind {
                // An inference is not an event: rules found it in a message.
                Kind::Inference => continue,
                Kind::Agent => read.agents.begin(&fact.id),
                Kind::Verification => read.checked.add(fact),
                _ => {}
            }
            for name in ["working_dir", "cwd"] {
                folders.extend(text_field(&fact.value, name));
            }
            read.events.push((shown_at(known), StoryEvent::Fact(known)));
        }
        read.root = ProjectRoot::most_common(folders.into_iter());
        read
    }

    fn sorted(mut self) -> Self {
        self.events.sort_by_key(|(at, event)| (*at, event.rank()));
        self
    }
}

/// The commands that verifications report.
#[derive(Debug, Default)]
pub(super) struct CheckedCommands<'f> {
    ids: BTreeSet<&'f str>,
    lines: BTreeSet<(Timestamp, &'f str)>,
}

impl<'f> CheckedCommands<'f> {
    fn add(&mut self, verification: &'f Fact) {
        self.ids.insert(call_of_check(&verification.id));
        if let Some(line) = text_field(&verification.value, "command") {
            self.lines.insert((verification.at, line));
        }
    }

    /// Returns whether a verification reports this command.
    pub(super) fn contains(&self, command: &Fact) -> bool {
        let line = text_field(&command.value, "command").unwrap_or_default();
        self.ids.contains(command.id.as_str()) || self.lines.contains(&(command.at, line))
    }
}

fn mentions_git(command: &Value) -> bool {
    let line = command.field("command").and_then(FactText::read);
    line.is_some_and(|line| line.preview().contains("git"))
}

/// Returns the id of the call that made a check. If a command line has several checks, their ids
/// are the id of the call and a number.
#[must_use]
pub fn call_of_check(check: &str) -> &str {
    check.split_once('/').map_or(check, |(call, _)| call)
}

/// Returns the time at which the story shows a fact: its own, but for a sub-agent its start.
pub(super) fn shown_at(known: &SourcedFact) -> Timestamp {
    let fact = &known.fact;
    let began = (fact.kind == Kind::Agent).then(|| text_field(&fact.value, "started_at")).flatten();
    began.and_then(Timestamp::parse_rfc3339).unwrap_or(fact.at).min(fact.at)
}

/// Returns a field that is a short text.
pub(super) fn text_field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.field(name)?.as_text()
}
