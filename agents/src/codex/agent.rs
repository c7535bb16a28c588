//! Sub-agents that a session starts. Each has its own rollout; this module reads what the parent's
//! rollout reports.

use super::call::CodexCall;
use super::call_result::CodexCallResult;
use super::state::OpenToolCall;
use crate::claude_code::line_context::{LineContext, PieceBuilder, fields};
use crate::claude_code::transcript_state::SubAgentState;
use crate::lenient::{LenientList, LenientText, field, object, parse_object};
use crate::long_text;
use crate::text_hash::text_hash;
use crate::tool_use::escaped;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The calls whose result reports the state of agents.
const CALLS: [&str; 4] = ["spawn_agent", "wait", "wait_agent", "close_agent"];
/// Other calls that only communicate with agents or running commands.
const MESSAGING_CALLS: [&str; 6] =
    ["send_input", "send_message", "resume_agent", "list_agents", "followup_task", "write_stdin"];

fn own_name(tool: &str) -> &str {
    tool.rsplit("__").next().unwrap_or(tool)
}

/// Whether a tool starts, awaits or ends agents.
pub(super) fn is_agent_call(tool: &str) -> bool {
    !tool.starts_with("mcp__") && CALLS.contains(&own_name(tool))
}

/// Whether a use of a tool is not a fact, because the facts of agents and commands report it.
pub(super) fn is_reported_elsewhere(tool: &str) -> bool {
    let waits = is_agent_call(tool) && own_name(tool) != "spawn_agent";
    waits || (!tool.starts_with("mcp__") && MESSAGING_CALLS.contains(&own_name(tool)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SpawnArguments<'a> {
    agent_type: LenientText<'a>,
    task_name: LenientText<'a>,
    message: LenientText<'a>,
}

/// Returns the fields of the agent that a call starts; `None` for any other call.
pub(super) fn requested_agent(
    context: &LineContext,
    call: &CodexCall<'_>,
    input: Option<&RawValue>,
) -> Option<FieldMap> {
    if call.name != "spawn_agent" || call.namespace.is_some_and(|it| it.starts_with("mcp__")) {
        return None;
    }
    let spawn: SpawnArguments<'_> = parse_object(input?.get())?;
    let prompt = spawn.message.text().map(|text| context.text(text, "/arguments#json/message"));
    Some(fields([
        ("type", spawn.agent_type.text().into()),
        ("description", spawn.task_name.text().into()),
        ("call", call.id.into()),
        ("prompt", prompt.into()),
        ("started_at", context.at.to_string().into()),
    ]))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SpawnResult<'a> {
    agent_id: LenientText<'a>,
    task_name: LenientText<'a>,
    status: Option<&'a RawValue>,
    previous_status: Option<&'a RawValue>,
}

/// Reads the result of a call that starts, awaits or ends agents.
pub(super) fn result(work: &mut PieceBuilder<'_>, open: &OpenToolCall, answer: &CodexCallResult) {
    let Some(spawned) = parse_object::<SpawnResult<'_>>(&answer.text) else { return };
    if own_name(&open.tool) == "spawn_agent" {
        if let Some(agent) = spawned.agent_id.text().or(spawned.task_name.text()) {
            started(work, agent, open.agent.clone().unwrap_or_default());
        }
        return;
    }
    if answer.pointer.contains("#json") {
        return;
    }
    if own_name(&open.tool) == "close_agent" {
        let ended = spawned.previous_status.or(spawned.status);
        if let (Some(agent), Some(raw)) = (named_agent(open), ended) {
            status(work, agent, raw, None);
        }
        return;
    }
    statuses(work, spawned.status, &format!("{}#json/status", answer.pointer));
}

/// Returns the agent that a call names in its input.
fn named_agent(open: &OpenToolCall) -> Option<&str> {
    let Some(Value::Map(input)) = open.fields.get("input") else { return None };
    input.get("target").or_else(|| input.get("id"))?.as_text()
}

fn started(work: &mut PieceBuilder<'_>, agent: &str, fields: FieldMap) {
    if work.carry.agents.contains_key(agent) {
        return;
    }
    let state = SubAgentState { fields, ..SubAgentState::default() };
    work.carry.agents.insert(agent.to_owned(), state);
    version(work, agent, "running", Value::Null);
}

fn version(work: &mut PieceBuilder<'_>, agent: &str, status: &str, result: Value) {
    let Some(state) = work.carry.agents.get(agent) else { return };
    let mut value = state.fields.clone();
    value.extend(fields([("status", status.into()), ("result", result)]));
    work.fact(Kind::Agent, agent, value);
}

/// Reads the statuses of agents, by agent. `pointer` leads to them.
fn statuses(work: &mut PieceBuilder<'_>, raw: Option<&RawValue>, pointer: &str) {
    let all: BTreeMap<String, &RawValue> = object(raw);
    for (agent, raw) in all {
        let at = format!("{pointer}/{}", escaped(&agent));
        status(work, &agent, raw, Some(&at));
    }
}

/// Reads the status of an agent: a word, `{"completed": "..."}` with the result, or `{"status":
/// "completed", "message": "..."}`. `pointer` leads to it; without a pointer a long result is cut.
fn status(work: &mut PieceBuilder<'_>, agent: &str, raw: &RawValue, pointer: Option<&str>) {
    let shown = |text: &str, name: &str| match pointer {
        Some(pointer) => work.text(text, format!("{pointer}/{name}")),
        None => long_text::beginning(text, long_text::INLINE_BYTES).into(),
    };
    let parts: BTreeMap<String, &RawValue> = object(Some(raw));
    let LenientText(named) = field(Some(raw), "status");
    let (said, name) = match (&named, parts.keys().next()) {
        (Some(said), _) => (&**said, "message"),
        (None, Some(said)) => (said.as_str(), said.as_str()),
        (None, None) => (raw.get().trim_matches('"'), ""),
    };
    let word = match said {
        "completed" => "completed",
        "errored" => "failed",
        "interrupted" => "interrupted",
        "shutdown" => "stopped",
        // The agent still runs, or nothing is known about it.
        _ => return,
    };
    let text: LenientText<'_> = field(Some(raw), name);
    let result = text.text().map(|text| shown(text, name));
    ended(work, agent, word, raw.get(), result.into());
}

/// Adds the end of an agent, unless an equal report came before: each call that waits for the agent
/// reports the same end.
fn ended(work: &mut PieceBuilder<'_>, agent: &str, word: &str, report: &str, result: Value) {
    let end = format!("{}{}", end_key(agent, word), text_hash(report));
    let state = &mut work.carry.other.codex;
    if !state.has_ended(&end) {
        state.end(&end);
        version(work, agent, word, result);
    }
}

/// The beginning of the keys of an agent's ends of this kind.
fn end_key(agent: &str, word: &str) -> String {
    format!("agent:{agent}:{word}:")
}

/// Reads a message of another agent. Its final answer is its result, or says why it has none.
pub(super) fn message(
    work: &mut PieceBuilder<'_>,
    author: &LenientText<'_>,
    content: Option<&RawValue>,
) {
    const PAYLOAD: &str = "\nPayload:";
    let Some((text, pointer)) = long_text::content_text(content, "/content") else { return };
    let (Some(agent), true) = (author.text(), text.starts_with("Message Type: FINAL_ANSWER"))
    else {
        return;
    };
    let Some(at) = text.find(PAYLOAD) else { return };
    let answer = text.get(at + PAYLOAD.len()..).unwrap_or_default().trim_start();
    let word = match answer {
        "Agent was not found." => return,
        "Agent shut down." => "stopped",
        _ if answer.starts_with("Agent errored: ") => "failed",
        _ => "completed",
    };
    let part = text.len() - answer.len()..text.len();
    let result = (!part.is_empty()).then(|| work.part(&text, part, &pointer));
    ended(work, agent, word, answer, result.into());
}

/// What happened to an agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AgentActivity<'a> {
    /// The call that caused it.
    #[serde(borrow, alias = "event_id")]
    id: LenientText<'a>,
    kind: LenientText<'a>,
    #[serde(alias = "agentPath")]
    agent_path: LenientText<'a>,
    #[serde(alias = "agentThreadId")]
    agent_thread_id: LenientText<'a>,
}

/// Reads an event or item that an agent started or ended.
pub(super) fn activity(work: &mut PieceBuilder<'_>, raw: &RawValue, started_at: Option<Timestamp>) {
    let one: AgentActivity<'_> = object(Some(raw));
    let Some(agent) = one.agent_path.text().or(one.agent_thread_id.text()) else { return };
    let call = one.id.text();
    match one.kind.text() {
        Some("started") => {
            let open = call.and_then(|call| work.carry.other.codex.tools.get(call));
            let fields = open.and_then(|open| open.agent.clone()).unwrap_or_else(|| {
                let at = started_at.unwrap_or(work.line.at).to_string();
                fields([("call", call.into()), ("started_at", at.into())])
            });
            started(work, agent, fields);
        }
        Some("interrupted") => {
            ended(work, agent, "interrupted", call.unwrap_or_default(), Value::Null);
        }
        // The final answer has the result: it must not be replaced.
        Some("completed") => {
            let known = end_key(agent, "completed");
            if !work.carry.other.codex.ended.iter().any(|end| end.starts_with(&known)) {
                ended(work, agent, "completed", call.unwrap_or_default(), Value::Null);
            }
        }
        _ => {}
    }
}

/// Reads the notices to the model that an agent ended: elements that contain JSON.
pub(super) fn notified(work: &mut PieceBuilder<'_>, message: &str) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct AgentNotification<'a> {
        #[serde(borrow)]
        agent_id: LenientText<'a>,
        #[serde(borrow)]
        agent_path: LenientText<'a>,
        #[serde(borrow)]
        status: Option<&'a RawValue>,
    }
    const BEGIN: &str = "<subagent_notification>";
    let message = message.trim();
    let notices = message.split(BEGIN).skip(1).filter(|_| message.starts_with(BEGIN));
    for notice in notices {
        let inside = notice.trim_end().strip_suffix("</subagent_notification>");
        let read = inside.and_then(|text| parse_object::<AgentNotification<'_>>(text.trim()));
        let Some(read) = read else { continue };
        if let (Some(agent), Some(raw)) =
            (read.agent_id.text().or(read.agent_path.text()), read.status)
        {
            status(work, agent, raw, None);
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CollaborationItem<'a> {
    #[serde(borrow, alias = "call_id")]
    id: LenientText<'a>,
    tool: LenientText<'a>,
    prompt: LenientText<'a>,
    #[serde(alias = "receiverThreadIds")]
    receiver_thread_ids: LenientList<LenientText<'a>>,
    new_thread_id: LenientText<'a>,
    new_agent_nickname: LenientText<'a>,
    new_agent_role: LenientText<'a>,
    agents_states: Option<&'a RawValue>,
    /// The name of `agents_states` in some versions.
    #[serde(rename = "agentsStates")]
    states: Option<&'a RawValue>,
    statuses: Option<&'a RawValue>,
    receiver_thread_id: LenientText<'a>,
    status: Option<&'a RawValue>,
}

/// Reads a completed item about agents.
pub(super) fn item(work: &mut PieceBuilder<'_>, raw: &RawValue, started_at: Option<Timestamp>) {
    let Ok(one) = serde_json::from_str::<CollaborationItem<'_>>(raw.get()) else { return };
    if matches!(one.tool.text(), Some("spawnAgent" | "spawn_agent")) {
        for agent in one.receiver_thread_ids.0.iter().filter_map(LenientText::text) {
            begun(work, &one, agent, "/item", started_at);
        }
    }
    statuses(work, one.agents_states, "/item/agents_states");
    statuses(work, one.states, "/item/agentsStates");
}

/// Reads an event about the start of an agent, or about the status of one or several.
pub(super) fn event(work: &mut PieceBuilder<'_>, raw: &RawValue) {
    let Ok(one) = serde_json::from_str::<CollaborationItem<'_>>(raw.get()) else { return };
    if let Some(agent) = one.new_thread_id.text() {
        begun(work, &one, agent, "", None);
    }
    statuses(work, one.statuses, "/statuses");
    if let (Some(agent), Some(raw)) = (one.receiver_thread_id.text(), one.status) {
        status(work, agent, raw, Some("/status"));
    }
}

fn begun(
    work: &mut PieceBuilder<'_>,
    one: &CollaborationItem<'_>,
    agent: &str,
    base: &str,
    started_at: Option<Timestamp>,
) {
    let prompt = one.prompt.text().map(|text| work.text(text, format!("{base}/prompt")));
    let fields = fields([
        ("type", one.new_agent_role.text().into()),
        ("description", one.new_agent_nickname.text().into()),
        ("call", one.id.text().into()),
        ("prompt", prompt.into()),
        ("started_at", started_at.unwrap_or(work.line.at).to_string().into()),
    ]);
    started(work, agent, fields);
}
