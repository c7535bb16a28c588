//! Reads sub-agents. Each sub-agent is one fact. Each of its messages adds a version that contains
//! the message.

use super::line::ClaudeLine;
use super::line_context::{LineSpeaker, PieceBuilder, SpokenLine, fields};
use super::open_call::{CallRequest, OpenCall};
use super::tool_result::ClaudeCallResult;
use super::transcript_state::SubAgentState;
use crate::lenient::{LenientFlag, LenientInteger, LenientText};
use crate::text_hash::text_hash;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of remembered lines of side chains that name no agent. A line of a chain
/// names its parent line, and several side chains run at once.
const CHAIN_LINES: usize = 256;

/// The beginnings of the results of calls that started an agent in the background.
const LAUNCHED: [&str; 3] =
    ["Async agent launched successfully", "Remote agent launched in ", "Spawned successfully."];
/// The beginning of the client's lines after what an agent said, and a part of the first of them.
const AFTER_RESULT: (&str, [&str; 2]) = ("agentId: ", [" (use SendMessage ", " (for resuming "]);
/// The beginning and the end of the client's line before what an agent said in its report.
const BEFORE_RESULT: (&str, &str) = ("[Subagent hand-back] ", "The report follows:\n");
/// The statuses of an agent that has not ended.
const RUNNING: [&str; 2] = ["pending", "running"];
/// The beginnings of the ids of agents in which the client continues a copy of the conversation for
/// itself: for a summary, for a suggestion, or for a question beside the work. None of their calls
/// runs: those in their files are the session's own.
const COPIES: [&str; 3] = ["acompact-", "aprompt_suggestion-", "aside_question-"];

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct AgentCompletion<'a> {
    agent_id: LenientText<'a>,
    /// The id of an agent that runs remotely.
    task_id: LenientText<'a>,
    prompt: LenientText<'a>,
    status: LenientText<'a>,
    was_interrupted: LenientFlag,
    total_duration_ms: LenientInteger,
    total_tokens: LenientInteger,
}

impl PieceBuilder<'_> {
    /// Returns the agent that a line of a side chain belongs to: the one that the line names, or
    /// else the agent of its parent line. If that is unknown, the id of the line becomes the id of
    /// a new agent.
    pub(super) fn agent_of(&mut self, line: &ClaudeLine<'_>, spoken: &SpokenLine<'_>) -> String {
        let parent = line.parent_uuid.text();
        let chains = &self.carry.chains;
        let chain = || {
            let found = chains.iter().rev().find(|(uuid, _)| Some(uuid.as_str()) == parent);
            found.map(|(_, agent)| agent.clone())
        };
        let named = line.agent_id.text().map(str::to_owned);
        let agent = named.clone().or_else(chain).unwrap_or_else(|| spoken.uuid.to_owned());
        if named.is_none() {
            self.carry.chains.push((spoken.uuid.to_owned(), agent.clone()));
            let surplus = self.carry.chains.len().saturating_sub(CHAIN_LINES);
            self.carry.chains.drain(..surplus);
        }
        agent
    }

    /// Notes an agent when it is first seen.
    pub(super) fn note_agent(
        &mut self,
        agent: &str,
        call: Option<&str>,
        prompt: impl FnOnce(&Self) -> Option<Value>,
    ) {
        if self.carry.agents.contains_key(agent) {
            return;
        }
        let open = call.and_then(|call| self.carry.calls.get(call));
        let request = open.map(|call| &call.request);
        let state = SubAgentState::begun(call, request, self.line.at, prompt(self));
        self.carry.agents.insert(agent.to_owned(), state);
    }

    /// Adds a version of the agent with its message.
    pub(super) fn agent_spoke(&mut self, spoken: &SpokenLine<'_>, mut message: FieldMap) {
        let Some(agent) = self.line.agent.clone() else { return };
        let first = spoken.content.full_text().filter(|_| spoken.speaker == LineSpeaker::User);
        let unknown = !self.carry.agents.contains_key(&agent);
        let prompt = first.as_ref().filter(|_| unknown);
        let call = prompt.and_then(|(prompt, _)| self.caller(&text_hash(prompt)));
        self.note_agent(&agent, call.as_deref(), |work| {
            let (text, pointer) = first.as_ref()?;
            Some(work.text(text, format!("/message/content{pointer}")))
        });
        let Some(state) = self.carry.agents.get_mut(&agent) else { return };
        state.messages += 1;
        state.tool_calls += message
            .get("tool_calls")
            .and_then(Value::as_list)
            .map_or(0, |calls| calls.len() as u64);
        message.insert("id".to_owned(), spoken.uuid.into());
        let mut value = state.version("running");
        value.insert("message".to_owned(), Value::Map(message));
        self.fact(Kind::Agent, &agent, value);
    }

    /// Returns the id of an open call that gives an agent the prompt with this hash.
    fn caller(&self, prompt_hash: &str) -> Option<String> {
        let mut calls = self.carry.calls.iter();
        let found = calls.find(
            |(_, call)| matches!(&call.request, CallRequest::Agent { prompt, .. } if prompt == prompt_hash),
        );
        found.map(|(id, _)| id.clone())
    }

    /// Adds a version of an agent with the result of the call that started it: the agent's own
    /// result, or only that the agent runs in the background. Returns whether the agent began.
    pub(super) fn agent_done(
        &mut self,
        id: &str,
        call: &OpenCall,
        answer: &ClaudeCallResult<'_>,
    ) -> bool {
        let done: AgentCompletion<'_> = answer.object();
        let own = Value::from(id);
        let known = self.carry.agents.iter().find(|(_, state)| state.is_of(&own));
        let known = known.map(|(agent, _)| agent.clone());
        // If the line has several results, only the text names the agent.
        let launch = answer.shown_to_agent.as_ref().map(|(text, _)| &**text);
        let launch = launch.filter(|text| LAUNCHED.iter().any(|with| text.starts_with(with)));
        let shown_id = launch.and_then(|text| {
            let (_, id) = text.split_once("agentId: ").or_else(|| text.split_once("taskId: "))?;
            id.split_whitespace().next()
        });
        let named = done.agent_id.text().or(done.task_id.text()).or(shown_id);
        let agent = match (named, known) {
            (Some(agent), _) => agent.to_owned(),
            (None, Some(agent)) => agent,
            // The call was refused or failed before an agent began.
            (None, None) if answer.error => return false,
            (None, None) => id.to_owned(),
        };
        let prompt = done.prompt.text().map(|text| self.text(text, "/toolUseResult/prompt"));
        let started = |status: &str| status.contains("launched") || status.contains("spawned");
        let launched = done.status.text().is_some_and(started) || launch.is_some();
        let status = match answer.failure(false) {
            Some(failure) => failure.outcome(),
            None if launched => "running",
            None if done.was_interrupted.0 => "interrupted",
            None => "completed",
        };
        // The text that says that an agent was started is not its result.
        let shown = answer.shown_to_agent.as_ref().filter(|_| !launched);
        let shown = shown.map(|(text, pointer)| (text, own_words(text), pointer));
        let result = shown.filter(|(_, words, _)| !words.is_empty());
        let said = result.as_ref().and_then(|(text, words, _)| text.get(words.clone()));
        let report = (!launched).then(|| report_hash(status, said.unwrap_or_default()));
        let result = result.map(|(text, words, pointer)| self.part(text, words, pointer));
        let state = self.carry.agents.entry(agent.clone()).or_insert_with(|| {
            SubAgentState::begun(Some(id), Some(&call.request), call.called_at, prompt)
        });
        if let Some(parent) = self.line.agent.as_deref().filter(|parent| *parent != agent) {
            state.fields.insert("agent".to_owned(), parent.into());
        }
        // An agent that has ended can be launched again.
        (state.last_report, state.goes_on) = (report, false);
        let mut value = state.version(status);
        value.extend(fields([
            ("result", result.into()),
            ("duration_ms", done.total_duration_ms.0.into()),
            ("tokens", done.total_tokens.0.into()),
        ]));
        self.fact(Kind::Agent, &agent, value);
        true
    }

    /// Adds a version of each agent that a person stopped, by the descriptions in the client's
    /// note. The client writes no other notice of their end.
    pub(super) fn agents_stopped(&mut self, descriptions: &[&str]) {
        let mut named: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
        for description in descriptions {
            named.entry(*description).or_default().0 += 1;
        }
        for (agent, state) in self.carry.agents.iter().filter(|(_, state)| !state.has_ended()) {
            if let Some(description) = state.fields.get("description").and_then(Value::as_text)
                && let Some((_, agents)) = named.get_mut(description)
            {
                agents.push(agent.clone());
            }
        }
        // Of several agents with one description, some may go on.
        let stopped = named.into_values().filter(|(count, agents)| agents.len() <= *count);
        for agent in stopped.flat_map(|(_, agents)| agents) {
            self.agent_reported(&agent, ("killed", ""), FieldMap::new());
        }
    }

    /// Adds a version of an agent with the status in a report, and the fields `more`. A report with
    /// the status and result of the last one is a repetition.
    pub(super) fn agent_reported(
        &mut self,
        agent: &str,
        (status, result): (&str, &str),
        more: FieldMap,
    ) {
        let Some(state) = self.carry.agents.get_mut(agent) else { return };
        let report = report_hash(status, result);
        if state.last_report.as_ref() == Some(&report) {
            return;
        }
        (state.last_report, state.goes_on) = (Some(report), RUNNING.contains(&status));
        let mut value = state.version(status);
        value.extend(more);
        self.fact(Kind::Agent, agent, value);
    }
}

/// Returns the hash of the status and the result in a report about an agent.
fn report_hash(status: &str, result: &str) -> String {
    text_hash(&format!("{status} {result}"))
}

/// Whether an agent with this id continues a copy of the conversation for the client.
pub(super) fn is_copy(agent: &str) -> bool {
    COPIES.iter().any(|with| agent.starts_with(with))
}

/// Returns the range of what an agent said in its result. The client's line can be before it.
pub(super) fn own_words(text: &str) -> Range<usize> {
    let (begin, end) = BEFORE_RESULT;
    let report = text.find(end).filter(|_| text.starts_with(begin)).map(|at| at + end.len());
    // The client indents the report.
    let start = report.map_or(0, |at| {
        let report = text.get(at..).unwrap_or_default();
        at + report.len() - report.trim_start().len()
    });
    start..words_end(text).max(start)
}

/// Returns where the client's lines after what an agent said begin.
fn words_end(text: &str) -> usize {
    let (before, parts) = AFTER_RESULT;
    let note = text.rfind(before).filter(|at| {
        let (said, note) = text.split_at(*at);
        let first = note.lines().next().unwrap_or_default();
        (said.is_empty() || said.ends_with('\n')) && parts.iter().any(|part| first.contains(part))
    });
    note.map_or(text.len(), |at| text.get(..at).map_or(0, |said| said.trim_end().len()))
}

impl SubAgentState {
    /// Returns an agent that a call with this request started.
    fn begun(
        call: Option<&str>,
        request: Option<&CallRequest>,
        at: Timestamp,
        prompt: Option<Value>,
    ) -> Self {
        let (kind, description) = match request {
            Some(CallRequest::Agent { kind, description, .. }) => {
                (kind.clone(), description.clone())
            }
            _ => (None, None),
        };
        let fields = fields([
            ("type", kind.into()),
            ("description", description.into()),
            ("call", call.into()),
            ("prompt", prompt.into()),
            ("started_at", at.to_string().into()),
        ]);
        Self { fields, ..Self::default() }
    }

    /// Whether a report said that the agent ended.
    pub(super) fn has_ended(&self) -> bool {
        self.last_report.is_some() && !self.goes_on
    }

    /// Whether this call started the agent.
    pub(super) fn is_of(&self, call: &Value) -> bool {
        self.fields.get("call") == Some(call)
    }

    fn version(&self, status: &str) -> FieldMap {
        let mut value = self.fields.clone();
        value.extend(fields([
            ("status", status.into()),
            ("messages", self.messages.into()),
            ("tool_calls", self.tool_calls.into()),
        ]));
        value
    }
}
