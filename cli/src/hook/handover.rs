//! Decides when an agent gets the brief: once per compaction, from one of the hooks that are called
//! at the same time; OpenCode gets it with each request.
//!
//! The process that delivers the brief marks the checkpoint of the compaction, first before it
//! answers and again after the agent got the answer. If it dies in between, the next process
//! delivers the brief again, because an agent ignores the answer of a hook that failed.

use super::agent_process::{self, AgentProcess};
use super::handover_brief;
use super::recorder::{HookRecorder, begins_conversation, follows_compaction};
use crate::compaction::knowledge::SessionKnowledge;
use crate::compaction::loss::{LostItem, find_lost};
use crate::compaction::{self, CompactionPhase, ContextCompaction, RECENT};
use crate::error::CommandError;
use crate::text::shorten;
use forge_agents::hook::{HookAgent, HookEvent, HookEventKind, ReplyBudget, reply_budget};
use forge_store::model::time_grammar::describe_distance;
use forge_store::model::{Checkpoint, SessionKind, Timestamp, Value};
use forge_store::store::{CheckpointFilter, Session, SessionBrief, SessionSummary, WriteContext};

/// An older compaction is handed over only to OpenCode, and when a session starts after a
/// compaction.
const NEWS_MICROS: i64 = 24 * 3600 * 1_000_000;
/// The number of latest sessions that are searched for open work when another session begins.
const GREETED_SESSIONS: usize = 4;

/// A text that is being delivered to an agent.
pub struct HandoverText {
    pub text: String,
    session: Session,
    act: WriteContext,
    checkpoint: Checkpoint,
    /// Whether the delivery of the brief is to be recorded.
    whole: bool,
    /// Whether the delivery of the loss report is to be recorded.
    with_loss: bool,
    /// How many items were lost, if that is known.
    lost: Option<usize>,
}

/// What is known about a compaction.
pub struct CompactionKnowledge {
    /// What the session knew at that time.
    pub knowledge: SessionKnowledge,
    /// The agent's own summary, if there is one.
    pub summary: Option<String>,
    /// What the summary leaves out.
    pub lost: Option<Vec<LostItem>>,
}

/// Returns what is known about a compaction.
pub fn compaction_knowledge(
    session: &Session,
    compaction: &ContextCompaction,
) -> Result<CompactionKnowledge, CommandError> {
    let state = session.state(&session.at_time(compaction.checkpoint.time)?)?;
    let known = compaction.has_remaining_context();
    let mut knowledge = SessionKnowledge::from_state(&state, known)?;
    let before = CheckpointFilter {
        tag: Some(compaction::TAG.to_owned()),
        until: Some(compaction.checkpoint.time.plus_micros(-1)),
        limit: Some(RECENT),
        ..CheckpointFilter::default()
    };
    let before = session.checkpoints(&before)?.into_iter();
    let mut before = before.filter_map(ContextCompaction::from_checkpoint);
    knowledge.since = before.find(ContextCompaction::is_over).map(|one| one.checkpoint.time);
    let summary = compaction.summary(session)?;
    // What the agent still has word for word is not lost.
    let stayed: Vec<String> =
        summary.iter().cloned().chain(compaction.kept_text(session)?).collect();
    let lost = known.then(|| find_lost(&knowledge.known_items(), &stayed.join("\n")));
    Ok(CompactionKnowledge { knowledge, summary, lost })
}

/// Returns what the agent must get at this event, if anything.
///
/// # Errors
///
/// Any error of a read or write. If the text cannot be built, the mark that this process delivers
/// it is removed.
pub fn next_handover(
    recorder: &mut HookRecorder<'_>,
    event: &HookEvent,
) -> Result<Option<HandoverText>, CommandError> {
    let (Some(budget), Some(session)) = (reply_budget(event), recorder.session.clone()) else {
        return Ok(None);
    };
    match (event.agent, &event.kind) {
        (agent @ (HookAgent::OpenCode | HookAgent::Claude), HookEventKind::PreCompact { .. }) => {
            return for_summary(recorder, session, agent, budget);
        }
        (HookAgent::OpenCode, _) => return for_each_request(recorder, session, budget),
        _ => {}
    }
    let known = compaction::newest_compactions(&session, Some(RECENT))?;
    // Cursor has no event after a compaction, and forge does not read its transcripts: there is
    // only the announcement.
    let is_cursor = event.agent == HookAgent::Cursor;
    let Some(newest) = known.iter().find(|one| is_cursor || one.is_over()) else {
        return Ok(None);
    };
    let age = recorder.act.now.micros_since(newest.checkpoint.time);
    let is_news = age < NEWS_MICROS || follows_compaction(event);
    if !is_news || newest.is_handed_over() {
        return Ok(None);
    }
    let me = agent_process::process_name();
    let (claimed, _) = recorder.amend(&session, &newest.checkpoint, |one| {
        let current = ContextCompaction { checkpoint: one.clone() };
        let busy =
            current.handing_process().is_some_and(|by| by != me && agent_process::is_alive(by));
        let done = current.is_handed_over();
        if let (Value::Map(body), false, false) = (&mut one.body, done, busy) {
            body.insert("handing".to_owned(), me.clone().into());
        }
    })?;
    // If another process held the lock, the recorder has a new session handle.
    let session = recorder.session.clone().unwrap_or(session);
    let claimed = ContextCompaction { checkpoint: claimed };
    if claimed.handing_process() != Some(me.as_str()) {
        return Ok(None);
    }
    let text_and_loss = handover_text(&session, &claimed, budget);
    if text_and_loss.is_err() {
        release(&session, &recorder.act, &claimed.checkpoint);
    }
    let (text, lost) = text_and_loss?;
    let handover = HandoverText {
        text: text.unwrap_or_default(),
        whole: claimed.handed_at().is_none(),
        with_loss: lost.is_some(),
        lost,
        checkpoint: claimed.checkpoint,
        session,
        act: recorder.act.clone(),
    };
    if handover.text.is_empty() {
        // Nothing was lost, so there is no text; only the delivery is recorded.
        handover.note_delivered()?;
        return Ok(None);
    }
    Ok(Some(handover))
}

/// Returns the text, if there is one, and the number of lost items, if it is known.
fn handover_text(
    session: &Session,
    compaction: &ContextCompaction,
    budget: ReplyBudget,
) -> Result<(Option<String>, Option<usize>), CommandError> {
    let CompactionKnowledge { knowledge, lost, .. } = compaction_knowledge(session, compaction)?;
    let name = session.summary()?.info.name;
    let count = lost.as_ref().map(Vec::len);
    let text = if compaction.handed_at().is_none() {
        Some(handover_brief::brief(&name, compaction, &knowledge, lost.as_deref(), budget))
    } else {
        handover_brief::loss(&name, compaction, lost.as_deref().unwrap_or_default(), budget)
    };
    Ok((text, count))
}

/// Returns a text for the prompt of the summary, if a compaction was announced. It improves the
/// summary and does not count as delivery. OpenCode gets the brief, because it has no other event
/// before the next request; Claude Code gets a list of what the summary should keep, as additional
/// instructions for the summary.
fn for_summary(
    recorder: &HookRecorder<'_>,
    session: Session,
    agent: HookAgent,
    budget: ReplyBudget,
) -> Result<Option<HandoverText>, CommandError> {
    let known = compaction::newest_compactions(&session, Some(1))?;
    let Some(newest) = known.first().filter(|one| one.phase() == CompactionPhase::Announced) else {
        return Ok(None);
    };
    let known = compaction_knowledge(&session, newest)?.knowledge;
    let text = if agent == HookAgent::Claude {
        handover_brief::keep_list(&known, budget)
    } else {
        let name = session.summary()?.info.name;
        Some(handover_brief::brief(&name, newest, &known, None, budget))
    };
    let Some(text) = text else { return Ok(None) };
    Ok(Some(HandoverText {
        text,
        whole: false,
        with_loss: false,
        lost: None,
        checkpoint: newest.checkpoint.clone(),
        session,
        act: recorder.act.clone(),
    }))
}

/// Returns what was known at the last compaction, for every request of OpenCode in the same words:
/// OpenCode builds its system prompt for each request, so a text is in one request only.
fn for_each_request(
    recorder: &HookRecorder<'_>,
    session: Session,
    budget: ReplyBudget,
) -> Result<Option<HandoverText>, CommandError> {
    let known = compaction::newest_compactions(&session, Some(RECENT))?;
    let Some(newest) = known.iter().find(|one| one.is_over()) else { return Ok(None) };
    let CompactionKnowledge { knowledge, lost, .. } = compaction_knowledge(&session, newest)?;
    let name = session.summary()?.info.name;
    Ok(Some(HandoverText {
        text: handover_brief::brief(&name, newest, &knowledge, lost.as_deref(), budget),
        whole: newest.handed_at().is_none(),
        with_loss: lost.is_some() && !newest.is_loss_settled(),
        lost: lost.as_ref().map(Vec::len),
        checkpoint: newest.checkpoint.clone(),
        session,
        act: recorder.act.clone(),
    }))
}

fn release(session: &Session, act: &WriteContext, checkpoint: &Checkpoint) {
    // If this fails, the next process sees that this one has ended.
    let _ = compaction::amend_checkpoint(session, act, checkpoint, |one| {
        if let Value::Map(body) = &mut one.body {
            body.remove("handing");
        }
    });
}

impl HandoverText {
    /// Records that the agent got the text.
    pub fn note_delivered(&self) -> Result<(), CommandError> {
        if !self.whole && !self.with_loss {
            return Ok(());
        }
        let now = self.act.now.to_string();
        compaction::amend_checkpoint(&self.session, &self.act, &self.checkpoint, |one| {
            let Value::Map(body) = &mut one.body else { return };
            body.remove("handing");
            if self.whole {
                body.entry("handed_at".to_owned()).or_insert_with(|| now.clone().into());
            }
            if self.with_loss {
                body.entry("loss_told_at".to_owned()).or_insert_with(|| now.clone().into());
            }
            if let Some(lost) = self.lost {
                body.insert("lost".to_owned(), (lost as u64).into());
            }
        })?;
        Ok(())
    }
}

/// Returns, for a session that begins, one line with what is open in the last other session that
/// left something open, and whether another agent works in it now; `None` if nothing is open in the
/// latest sessions.
pub fn greeting(
    recorder: &HookRecorder<'_>,
    event: &HookEvent,
) -> Result<Option<String>, CommandError> {
    if !begins_conversation(event) || reply_budget(event).is_none() {
        return Ok(None);
    }
    let own = event.session.as_deref();
    for last in recorder.store.latest_sessions(&[SessionKind::Debug], GREETED_SESSIONS)? {
        if own.is_some() && last.info.agent_session.as_deref() == own {
            continue;
        }
        let Some(ended) = last.last_event else { continue };
        let session = recorder.store.session(&last.info.id.to_string())?;
        let open = open_work(&session.state(&session.head()?)?.brief_of_open_work()?);
        if !open.is_empty() {
            return Ok(Some(greeting_about(recorder, &last, ended, &open)));
        }
    }
    Ok(None)
}

/// Returns the counts of what is open.
fn open_work(brief: &SessionBrief) -> Vec<String> {
    let counts = [
        (brief.active.len(), "hypothesis", "hypotheses"),
        (brief.gaps.len(), "gap", "gaps"),
        (brief.failing.len(), "failing check", "failing checks"),
        (brief.tasks.len(), "task", "tasks"),
    ];
    let open = counts.into_iter().filter(|(count, ..)| *count > 0);
    open.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect()
}

fn greeting_about(
    recorder: &HookRecorder<'_>,
    last: &SessionSummary,
    ended: Timestamp,
    open: &[String],
) -> String {
    let name = shorten(&last.info.name, 60);
    let id = last.info.id.short();
    let notes = recorder.store.notes();
    let works_in_it = |process: AgentProcess| {
        let session = recorder.store.agent_session(&process.session).ok().flatten();
        let summary = session.and_then(|session| session.summary().ok());
        summary.is_some_and(|summary| summary.info.id == last.info.id)
    };
    let state = if agent_process::running_agents(notes.as_deref()).any(works_in_it) {
        format!("another agent works here now, on '{name}'. Open in it")
    } else {
        let age = describe_distance(recorder.act.now.micros_since(ended).max(0));
        format!("the last unfinished effort here, '{name}', ended {age} ago and left open")
    };
    format!(
        "forge: {state}: {}. `forge --session {id} brief` shows it; `forge session join {id}` makes this session part \
         of it.\n",
        open.join(", ")
    )
}
