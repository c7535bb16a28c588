//! Builds a story from facts, revisions, checkpoints and branches, in the order of time.

use super::agent_work::AgentWork;
use super::check_item::check_item;
use super::check_run::CheckRun;
use super::claim_item::claim_items;
use super::delivery::{DeliveryKind, deliveries};
use super::edit_group::{EditGroup, edit_item, edited_path};
use super::events::{CheckedCommands, StoryEvent, StoryEvents, shown_at, text_field};
use super::findings::{DeliveredCommit, FindingsCollector};
use super::gist::{ITEM_CHARS, one_line};
use super::hypothesis_path::HypothesisCollector;
use super::item::{FoldKey, StoryItem, StoryKind, StoryMark};
use super::named_files::NamedFiles;
use super::project_root::{ProjectRoot, shown_path};
use super::record_item::{
    branch_created, branch_settled, commit_item, compaction_detail, delivery_item,
};
use super::whole_text::{TextPart, fill_from};
use super::{Story, StoryTurn, fact_item};
use crate::diff::{describe, summary};
use crate::error::Result;
use crate::model::claim::{
    Agent, CodeState, ExecutedCommand, FactText, Message, Prompt, VerificationResult,
    VerificationStatus,
};
use crate::model::{Checkpoint, CheckpointTrigger, EntryChange, Kind};
use crate::store::{CheckTracker, CheckTurn, LogEntry, LogItem, SourcedFact, StateAt};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of revisions whose changes are in memory at the same time.
const REVISIONS_AT_ONCE: usize = 4096;
/// A prompt with fewer characters than this is shown with the agent's message that it answers.
const SHORT_ANSWER: usize = 32;

/// Builds a story, event by event.
#[derive(Default)]
pub(super) struct StoryBuilder<'f> {
    session: String,
    root: Option<ProjectRoot>,
    turns: Vec<StoryTurn>,
    findings: FindingsCollector,
    checks: CheckTracker,
    runs: Vec<CheckRun>,
    hypotheses: HypothesisCollector,
    /// The checks that fail now.
    failing: Vec<String>,
    agents: AgentWork,
    /// The item that collects edits, by its index in the current turn, and its edits.
    open_edits: Option<(usize, EditGroup)>,
    /// The last message of the main agent: the index of its item in the current turn, and its fact.
    last_message: Option<(usize, &'f SourcedFact)>,
    /// The commands that verifications report.
    checked: CheckedCommands<'f>,
    /// The ids of the commands whose commits have an item.
    committed: BTreeSet<String>,
}

impl<'f> StoryBuilder<'f> {
    /// Creates a builder for the story of these events. Takes everything but the events from
    /// `read`.
    pub(super) fn new(session: String, read: &mut StoryEvents<'f>) -> Self {
        Self {
            session,
            root: read.root.take(),
            turns: vec![StoryTurn::default()],
            agents: std::mem::take(&mut read.agents),
            checked: std::mem::take(&mut read.checked),
            ..Self::default()
        }
    }

    /// Builds the story of all events.
    pub(super) fn build(mut self, state: &StateAt, read: StoryEvents<'f>) -> Result<Story> {
        let revisions = read.events.iter().filter_map(|(_, event)| match event {
            StoryEvent::Record(LogItem::Revision(entry)) => Some(entry.sequence),
            _ => None,
        });
        let revisions: Vec<u64> = revisions.collect();
        let mut parts = revisions.chunks(REVISIONS_AT_ONCE);
        let (mut changes, mut left) = (BTreeMap::new(), 0);
        for (at, event) in read.events {
            match event {
                StoryEvent::Fact(known) => self.add_fact(known),
                StoryEvent::Record(LogItem::Revision(entry)) => {
                    if left == 0 {
                        let part = parts.next().unwrap_or_default();
                        left = part.len();
                        changes = state.changes_of_many(part)?;
                    }
                    left = left.saturating_sub(1);
                    let known = changes.remove(&entry.sequence);
                    let changes = known.map_or_else(|| state.changes_of(entry.sequence), Ok);
                    self.add_revision(&entry, changes)?;
                }
                StoryEvent::Record(LogItem::Checkpoint(checkpoint)) => {
                    self.add_checkpoint(&checkpoint);
                }
                StoryEvent::Record(LogItem::Lost(lost)) => {
                    let text = format!("#{} lost before a repair", lost.sequence);
                    self.push(StoryItem::loud(at, StoryKind::Lost, text).marked(StoryMark::Bad));
                }
                StoryEvent::BranchCreated(branch) => self.push(branch_created(&branch)),
                StoryEvent::BranchSettled(branch) => self.push(branch_settled(&branch)),
            }
        }
        self.end_turn();
        self.turns.retain(|turn| turn.prompt.is_some() || !turn.items.is_empty());
        self.summarise_agents();
        let findings = self.findings.finish(&self.turns, self.checks.finish());
        let Self { session, root, turns, runs, hypotheses, .. } = self;
        let (hypotheses, checks) = (hypotheses.finish(), runs);
        Ok(Story { session, root, turns, findings, hypotheses, checks, cut: None, unfolded: false })
    }

    /// Adds an item to the current turn. If a sub-agent has a line in the story, its other items
    /// are neither loud nor counted, because the line has a summary of them.
    fn push(&mut self, mut item: StoryItem) {
        if item.kind != StoryKind::Agent && self.agents.contains(item.agent.as_deref()) {
            item.loud = false;
            item.fold_key = None;
        }
        if item.loud && item.kind != StoryKind::Edit {
            self.close_edits();
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.items.push(item);
        }
    }

    fn add_fact(&mut self, known: &'f SourcedFact) {
        let fact = &known.fact;
        let agent = text_field(&fact.value, "agent").map(str::to_owned);
        if let Some(agent) = &agent {
            self.agents.add_fact(agent, fact);
        }
        match fact.kind {
            Kind::Prompt => self.add_prompt(known),
            Kind::Message => self.add_message(known),
            Kind::Command => self.add_command(known),
            Kind::Code => self.add_code(known),
            Kind::Verification => self.add_check(known),
            Kind::Measurement => {
                if let Some(item) = fact_item::measurement_item(known) {
                    self.push(item);
                }
            }
            Kind::Agent => {
                let sent = Agent::from_value(&fact.value).unwrap_or_default();
                let name = sent.description.or(sent.agent_type);
                let name = name.as_ref().map_or(&*fact.id, FactText::preview);
                let item = StoryItem::loud(
                    shown_at(known),
                    StoryKind::Agent,
                    format!("sub-agent: {}", one_line(name, ITEM_CHARS)),
                );
                self.push(item.about(Kind::Agent, &fact.id).by(Some(fact.id.clone())));
            }
            Kind::Task => {
                if let Some(item) = fact_item::task_item(known) {
                    self.push(item);
                }
            }
            Kind::Tool => self.push(fact_item::tool_item(known, self.root.as_ref())),
            Kind::Notice => self.push(fact_item::notice_item(known, self.root.as_ref())),
            _ => {}
        }
    }

    fn add_prompt(&mut self, known: &SourcedFact) {
        let Some(mut item) = fact_item::prompt_item(known, self.root.as_ref()) else { return };
        let prompt = Prompt::from_value(&known.fact.value).unwrap_or_default();
        let is_slash = prompt.tags.is_some_and(|tags| tags.iter().any(|tag| tag == "slash"));
        item.is_client_command = is_slash;
        let whole = prompt.text.as_ref().map_or("", FactText::preview);
        self.findings.add_prompt(whole, is_slash);
        let last = self.end_turn();
        if item.text.chars().count() < SHORT_ANSWER
            && !is_slash
            && let Some(question) = last
            && let Some(text) = message_text(question)
        {
            fill_from(&mut item, TextPart::Question, question, &text, self.root.as_ref());
        }
        self.turns.push(StoryTurn { prompt: Some(item), items: Vec::new() });
    }

    fn add_message(&mut self, known: &'f SourcedFact) {
        let Some(item) = fact_item::message_item(known, self.root.as_ref()) else { return };
        let is_main = item.agent.is_none();
        self.push(item);
        if is_main && let Some(turn) = self.turns.last() {
            self.last_message = Some((turn.items.len() - 1, known));
        }
    }

    fn add_command(&mut self, known: &SourcedFact) {
        let fact = &known.fact;
        let Ok(command) = ExecutedCommand::from_value(&fact.value) else { return };
        if let Some(files) = NamedFiles::discarded(&command, self.root.as_ref()) {
            self.findings.discard(&files);
        }
        if let Some(files) = NamedFiles::added(&command, self.root.as_ref()) {
            self.findings.stage(&files);
        }
        let made = deliveries(&command);
        for delivery in &made {
            self.findings.add_delivery(fact.at, command.agent.as_deref(), delivery);
            if delivery.kind == DeliveryKind::Commit {
                self.committed.insert(fact.id.clone());
                if let Some(agent) = &command.agent {
                    self.agents.add_commit(agent);
                }
            }
            let item = delivery_item(fact.at, delivery).about(Kind::Command, &fact.id);
            self.push(item.by(command.agent.clone()));
        }
        if made.iter().any(|delivery| delivery.kind == DeliveryKind::Commit) {
            self.findings.end_commit();
        }
        if made.is_empty() && !self.checked.contains(fact) {
            let item = fact_item::command_item(known, &command, self.root.as_ref());
            self.push(item);
        }
    }

    fn add_code(&mut self, known: &SourcedFact) {
        let fact = &known.fact;
        let Ok(code) = CodeState::from_value(&fact.value) else { return };
        let Some(path) = edited_path(&code) else {
            let text = match code.commit.as_ref().map(FactText::preview) {
                Some(commit) => format!("code captured on {commit}"),
                None => "code captured, no commit yet".to_owned(),
            };
            let text = one_line(&text, ITEM_CHARS);
            let item = StoryItem::quiet(fact.at, StoryKind::Code, FoldKey::Code, text);
            return self.push(item.about(Kind::Code, &fact.id));
        };
        let path = shown_path(self.root.as_ref(), path).into_owned();
        self.findings.add_edit(fact.at, &path);
        if let Some(agent) = code.agent.as_deref().filter(|it| self.agents.contains(Some(it))) {
            self.agents.add_edit(agent, &path);
            return self.push(edit_item(fact, &path, &code));
        }
        if let Some((place, group)) = &mut self.open_edits
            && let Some(item) = self.turns.last_mut().and_then(|turn| turn.items.get_mut(*place))
        {
            group.add(&path, &code);
            item.refs.push(super::StoryRef::Entity(crate::model::Key::new(Kind::Code, &*fact.id)));
            return;
        }
        let mut group = EditGroup::default();
        group.add(&path, &code);
        self.push(edit_item(fact, &path, &code));
        let place = self.turns.last().map_or(0, |turn| turn.items.len() - 1);
        self.open_edits = Some((place, group));
    }

    fn add_check(&mut self, known: &SourcedFact) {
        let fact = &known.fact;
        let Ok(found) = VerificationResult::from_value(&fact.value) else { return };
        let turn = self.checks.add(fact, &found);
        if let Some(agent) = &found.agent
            && turn != CheckTurn::Undecided
        {
            self.agents.add_check(agent, found.status == Some(VerificationStatus::Passed));
        }
        let mut run = CheckRun::new(fact, &found, turn, self.root.as_ref());
        let failing = self.checks.failing_labels();
        if failing != self.failing {
            run.failing = Some(failing.clone());
            self.failing = failing;
        }
        self.runs.push(run);
        self.push(check_item(fact, &found, turn));
    }

    fn add_revision(&mut self, entry: &LogEntry, changes: Result<Vec<EntryChange>>) -> Result<()> {
        let changes = match changes {
            Ok(changes) => changes,
            Err(error) if error.is_lost() => {
                let text = format!("the changes of #{} were lost before a repair", entry.sequence);
                let item = StoryItem::loud(entry.time, StoryKind::Lost, text);
                self.push(item.marked(StoryMark::Bad).at_sequence(entry.sequence));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.hypotheses.add(entry, &changes);
        let text = match (entry.merged, entry.reset_to) {
            (Some(merged), _) => Some((StoryKind::Branch, format!("merged #{merged}"))),
            (None, Some(0)) => Some((StoryKind::Restore, "back to no claims".to_owned())),
            (None, Some(to)) => Some((StoryKind::Restore, format!("back to the claims of #{to}"))),
            (None, None) => None,
        };
        let Some((kind, text)) = text else {
            for item in claim_items(entry, &changes) {
                self.push(item);
            }
            return Ok(());
        };
        let item = StoryItem::loud(entry.time, kind, text).at_sequence(entry.sequence);
        let item = item.detailed(Some(summary(&describe(&changes), None)));
        self.push(StoryItem { branch: Some(entry.branch.clone()), ..item });
        Ok(())
    }

    /// Adds an item for a manual checkpoint, a compaction, or a commit that no item of a command
    /// shows. Other checkpoints get no item.
    fn add_checkpoint(&mut self, checkpoint: &Checkpoint) {
        let message = one_line(&checkpoint.message, ITEM_CHARS);
        let item = if checkpoint.is_compaction() {
            self.findings.add_compaction();
            StoryItem::loud(checkpoint.time, StoryKind::Compaction, "context compacted")
                .detailed(compaction_detail(&checkpoint.body))
        } else if checkpoint.trigger == CheckpointTrigger::Manual {
            StoryItem::loud(checkpoint.time, StoryKind::Checkpoint, message)
        } else if let Some(sha) = self.unshown_commit(checkpoint) {
            let commit = DeliveredCommit {
                at: checkpoint.time,
                subject: Some(checkpoint.message.clone()),
                sha: Some(sha),
                agent: None,
            };
            let item =
                commit_item(checkpoint.time, commit.subject.as_deref(), commit.sha.as_deref());
            self.findings.add_commit(commit);
            self.findings.end_commit();
            item
        } else {
            return;
        };
        self.push(item.at_sequence(checkpoint.sequence));
    }

    /// Returns the hash of the commit that a checkpoint was made for, unless the item of a command
    /// shows this commit.
    fn unshown_commit(&self, checkpoint: &Checkpoint) -> Option<String> {
        let sha = text_field(&checkpoint.body, "commit")?;
        let is_shown =
            text_field(&checkpoint.body, "command").is_some_and(|it| self.committed.contains(it));
        (!is_shown && checkpoint.tags.iter().any(|tag| tag == "commit")).then(|| sha.to_owned())
    }

    fn close_edits(&mut self) {
        let Some((place, group)) = self.open_edits.take() else { return };
        if let Some(item) = self.turns.last_mut().and_then(|turn| turn.items.get_mut(place)) {
            group.write_to(item);
        }
    }

    /// Ends the current turn. Makes the last message of the main agent in it loud, and returns this
    /// message.
    fn end_turn(&mut self) -> Option<&'f SourcedFact> {
        self.close_edits();
        let (place, message) = self.last_message.take()?;
        if let Some(item) = self.turns.last_mut().and_then(|turn| turn.items.get_mut(place)) {
            item.loud = true;
            item.fold_key = None;
        }
        Some(message)
    }

    /// Adds to the item of each sub-agent a summary of what it did.
    fn summarise_agents(&mut self) {
        for item in self.turns.iter_mut().flat_map(|turn| &mut turn.items) {
            if item.kind == StoryKind::Agent {
                item.detail = item.agent.as_deref().and_then(|agent| self.agents.summary(agent));
            }
        }
    }
}

fn message_text(known: &SourcedFact) -> Option<FactText> {
    Message::from_value(&known.fact.value).ok()?.text
}
