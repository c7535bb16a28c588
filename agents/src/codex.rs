//! Rollouts of Codex: one JSON object per line, with a time, a type and a payload.
//!
//! Messages, calls and their results are `response_item` lines. `event_msg` lines repeat most of
//! them for the screen. Only what no other line has is read from events, for example prompts as
//! they were typed, ends of commands in the background and in scripts, patches and tokens.
//! `docs/transcripts.md` has the table.

mod agent;
mod call;
mod call_result;
mod command_end;
mod compaction;
mod event;
mod notice;
mod patch;
pub(crate) mod prompt;
mod script;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod tool;
mod turn_end;
mod user_shell;

use crate::claude_code::line_context::{PieceBuilder, fields, flag};
use crate::file_url::path_from_url;
use crate::lenient::{LenientFlag, LenientInteger, LenientText, field, object};
use crate::long_text;
use crate::text_hash::text_hash;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use state::{ForkCopyState, LastMessage};
use std::collections::BTreeMap;

/// A line of a rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(crate) struct CodexLine<'a> {
    timestamp: LenientText<'a>,
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    ordinal: LenientInteger,
    payload: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
}

/// The fields of a payload, of any type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CodexPayload<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    id: LenientText<'a>,
    turn_id: LenientText<'a>,
    cwd: LenientText<'a>,
    model: LenientText<'a>,
    role: LenientText<'a>,
    author: LenientText<'a>,
    message: LenientText<'a>,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    name: LenientText<'a>,
    namespace: LenientText<'a>,
    call_id: LenientText<'a>,
    arguments: LenientText<'a>,
    input: LenientText<'a>,
    action: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    started_at_ms: LenientInteger,
    internal_chat_message_metadata_passthrough: Option<&'a RawValue>,
    info: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    thread_name: LenientText<'a>,
    replacement_history: Option<&'a RawValue>,
    replacement_history_entries: Option<&'a RawValue>,
}

/// The first line of a rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CodexSessionMeta<'a> {
    id: LenientText<'a>,
    session_id: LenientText<'a>,
    timestamp: LenientText<'a>,
    cwd: LenientText<'a>,
    git: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    thread_source: LenientText<'a>,
    forked_from_id: LenientText<'a>,
    subagent_history_start_ordinal: LenientInteger,
    forked_from_ordinal_exclusive: LenientInteger,
    agent_nickname: LenientText<'a>,
    agent_role: LenientText<'a>,
}

/// Whether an event marks its text as written by Codex itself, as early versions did.
fn is_own_text(event: &RawValue) -> bool {
    let kind: LenientText<'_> = field(Some(event), "kind");
    kind.text().is_some_and(|kind| kind != "plain")
}

/// The types of lines that are read.
const READ_LINE_TYPES: [&str; 7] = [
    "session_meta", "turn_context", "response_item", "event_msg", "compacted",
    "token_usage_record", "inter_agent_communication",
];

/// Reads a line into the piece.
///
/// # Errors
///
/// The reason why the line cannot be read.
pub(crate) fn read_line(work: &mut PieceBuilder<'_>, line: &CodexLine<'_>) -> Result<(), String> {
    let Some(raw) = line.payload else {
        // The first versions of Codex wrote messages without a time.
        return if line.kind.is("message") { Err("has no time".to_owned()) } else { Ok(()) };
    };
    let kind = line.kind.text().unwrap_or_default();
    if !READ_LINE_TYPES.contains(&kind) {
        return Ok(());
    }
    // A payload that is not an object is ignored; serde would read a list as the fields in their
    // order.
    if !raw.get().starts_with('{') {
        return Ok(());
    }
    let at = line.timestamp.text().and_then(Timestamp::parse_rfc3339);
    if kind == "session_meta" {
        if let Ok(meta) = serde_json::from_str::<CodexSessionMeta<'_>>(raw.get()) {
            session(work, &meta, at);
        }
        return Ok(());
    }
    let Ok(payload) = serde_json::from_str::<CodexPayload<'_>>(raw.get()) else { return Ok(()) };
    let model = work.carry.other.model.clone();
    if kind == "turn_context" {
        note_directory(&mut work.carry.session.cwd, &payload.cwd);
        note(&mut work.carry.other.model, &payload.model);
    }
    let at = match (at, kind) {
        (Some(at), _) => at,
        (None, "turn_context") => return Ok(()),
        (None, _) => return Err("has no time".to_owned()),
    };
    let copied = is_copied(work, line, &payload, at);
    work.line.at = at;
    work.line.base = "/payload";
    work.line.cwd.clone_from(&work.carry.session.cwd);
    work.line.git_branch.clone_from(&work.carry.session.git_branch);
    // Few lines have an id. Equal lines with equal times get the same one.
    let own = || text_hash(&format!("{at}{}", raw.get())).get(..16).unwrap_or_default().to_owned();
    let id = payload.id.text().map_or_else(own, str::to_owned);
    match kind {
        "response_item" => response(work, &id, &payload, raw, copied),
        "event_msg" => event(work, &id, &payload, raw, copied),
        "compacted" => compaction::compacted(work, &id, &payload, copied),
        "token_usage_record" => notice::push_token_usage(work, payload.usage),
        "inter_agent_communication" => agent::message(work, &payload.author, payload.content),
        _ => {
            if let (Some(before), Some(now)) = (model, &work.carry.other.model)
                && before != *now
            {
                let now = now.as_str().into();
                notice::push_notice(work, &id, "model", now);
            }
        }
    }
    Ok(())
}

fn note(field: &mut Option<String>, word: &LenientText<'_>) {
    if let Some(text) = word.text() {
        *field = Some(text.to_owned());
    }
}

fn note_directory(field: &mut Option<String>, word: &LenientText<'_>) {
    if let Some(directory) = word.text() {
        *field = Some(path_from_url(directory));
    }
}

/// Reads the first line of a rollout, which names its session. In a fork, copies of the lines of
/// the original session follow, including its first line.
fn session(work: &mut PieceBuilder<'_>, meta: &CodexSessionMeta<'_>, at: Option<Timestamp>) {
    let id = meta.id.text().or(meta.session_id.text());
    let state = &mut work.carry.other.codex;
    if let Some(own) = work.carry.session.id.as_deref() {
        if let (true, Some(at), None) = (id.is_some_and(|id| id != own), at, state.own_from) {
            state.copying = Some(ForkCopyState { last: at });
        }
        return;
    }
    work.carry.session.id = id.map(str::to_owned);
    note_directory(&mut work.carry.session.cwd, &meta.cwd);
    note(&mut work.carry.session.git_branch, &field(meta.git, "branch"));
    state.began = meta.timestamp.text().and_then(Timestamp::parse_rfc3339).or(at);
    state.own_from = meta.subagent_history_start_ordinal.0.or(meta.forked_from_ordinal_exclusive.0);
    if let (Some(_), Some(began), None) = (meta.forked_from_id.text(), state.began, state.own_from)
    {
        state.copying = Some(ForkCopyState::before(began));
    }
    // In an internal session, Codex works for itself.
    let source: BTreeMap<String, &RawValue> = object(meta.source);
    let is_from = |name: &str| source.contains_key(name);
    let thread_source = meta.thread_source.text();
    state.sub_agent = ["subagent", "subAgent", "internal"].into_iter().any(is_from)
        || matches!(thread_source, Some("subagent" | "memory_consolidation"));
    if state.sub_agent {
        let names = [meta.agent_nickname.text(), meta.agent_role.text()];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        work.carry.session.title = (!names.is_empty()).then(|| names.join(", "));
    }
}

/// Returns the session that the first line of a rollout names, and the one that it was forked from.
#[must_use]
pub fn begun_codex_session(line: &[u8]) -> Option<(String, Option<String>)> {
    let line = String::from_utf8_lossy(line);
    let line = long_text::readable_json(line.trim());
    let line: CodexLine<'_> = serde_json::from_str(&line).ok()?;
    if !line.kind.is("session_meta") {
        return None;
    }
    let meta: CodexSessionMeta<'_> = object(line.payload);
    let id = meta.id.text().or(meta.session_id.text())?;
    Some((id.to_owned(), meta.forked_from_id.text().map(str::to_owned)))
}

/// Whether a line was copied from the session that this one was forked from.
fn is_copied(
    work: &mut PieceBuilder<'_>,
    line: &CodexLine<'_>,
    payload: &CodexPayload<'_>,
    at: Timestamp,
) -> bool {
    let metadata = line.metadata.filter(|raw| raw.get().contains("\"inherited_user_message\""));
    let LenientFlag(inherited) = field(metadata, "inherited_user_message");
    let state = &work.carry.other.codex;
    if !inherited && state.copying.is_none() && state.own_from.is_none() {
        return false;
    }
    let passed: LenientText<'_> =
        field(payload.internal_chat_message_metadata_passthrough, "turn_id");
    let turn = payload.turn_id.text().or(passed.text());
    prompt::LineOrigin { at, ordinal: line.ordinal.0, turn, inherited }.is_copied(work)
}

fn response(
    work: &mut PieceBuilder<'_>,
    id: &str,
    payload: &CodexPayload<'_>,
    raw: &RawValue,
    copied: bool,
) {
    match payload.kind.text().unwrap_or_default() {
        "message" => message(work, id, payload, copied),
        "reasoning" => thought(work, id, payload),
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            call(work, id, payload);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let call = payload.call_id.text().unwrap_or_default();
            command_end::call_returned(work, call, payload.output);
        }
        "web_search_call" => {
            tool::searched(work, raw, "", Some(id), tool::CALL);
        }
        "image_generation_call" => tool::image_made(work, raw, "", Some(id), tool::CALL),
        "tool_search_call" => {
            tool::tools_searched(work, raw, payload.call_id.text().unwrap_or(id));
        }
        "agent_message" => agent::message(work, &payload.author, payload.content),
        _ => {}
    }
}

fn event(
    work: &mut PieceBuilder<'_>,
    id: &str,
    payload: &CodexPayload<'_>,
    raw: &RawValue,
    copied: bool,
) {
    let started = payload.started_at_ms.0.map(|it| Timestamp::from_micros(it.saturating_mul(1000)));
    match payload.kind.text().unwrap_or_default() {
        "user_message" => {
            if let (Some(text), false) = (payload.message.text(), copied || is_own_text(raw)) {
                prompt::push_event_prompt(work, id, text, "/message", prompt::source::EVENT);
            }
        }
        "item_completed" => {
            if let Some(item) = payload.item {
                event::item(work, item, id, started, copied);
            }
        }
        "exec_command_end" => event::execution(work, raw, "", started),
        "patch_apply_end" => event::changed(work, raw, ""),
        "mcp_tool_call_end" => tool::mcp_ended(work, raw, "", started),
        "web_search_end" => tool::searched(work, raw, "", None, tool::EVENT),
        "image_generation_end" => tool::image_made(work, raw, "", None, tool::EVENT),
        "collab_agent_spawn_end"
        | "collab_agent_interaction_end"
        | "collab_waiting_end"
        | "collab_close_end" => agent::event(work, raw),
        "sub_agent_activity" => agent::activity(work, raw, started),
        "token_count" => notice::push_reported_token_usage(work, payload.info),
        "thread_name_updated" => note(&mut work.carry.session.title, &payload.thread_name),
        "task_started" | "turn_started" => turn_end::record_open_calls(work, "unknown"),
        kind => {
            notice::push_event_notice(work, id, kind, raw);
            if kind == "turn_aborted" {
                turn_end::record_open_calls(work, "interrupted");
            }
        }
    }
}

fn message(work: &mut PieceBuilder<'_>, id: &str, payload: &CodexPayload<'_>, copied: bool) {
    let role = payload.role.text().unwrap_or("assistant");
    let Some((text, pointer)) = long_text::content_text(payload.content, "/content") else {
        return;
    };
    let typed = (role == "user")
        .then(|| {
            let metadata = payload.internal_chat_message_metadata_passthrough;
            prompt::typed_in_message(payload.content, metadata)
        })
        .flatten();
    let value = fields([
        ("role", role.into()),
        ("model", work.carry.other.model.clone().filter(|_| role == "assistant").into()),
        ("cwd", work.line.cwd.clone().into()),
        ("git_branch", work.line.git_branch.clone().into()),
        ("text", work.text(&text, &pointer)),
        ("meta", flag(role != "assistant" && typed.is_none())),
    ]);
    speak(work, id, value);
    if role == "assistant" {
        work.infer(id, &text);
    }
    match typed {
        Some((text, part, pointer)) if !copied => {
            let text_part = (text.as_str(), part, pointer.as_str());
            prompt::push_prompt(work, id, text_part, prompt::source::MESSAGE);
        }
        Some(_) => {}
        None => {
            agent::notified(work, &text);
            if role == "user" {
                user_shell::typed(work, id, &text, &pointer);
            }
        }
    }
}

fn thought(work: &mut PieceBuilder<'_>, id: &str, payload: &CodexPayload<'_>) {
    // Most of the reasoning is encrypted; the summary is not.
    let summary = long_text::content_text(payload.summary, "/summary")
        .or_else(|| long_text::content_text(payload.content, "/content"));
    let Some((text, pointer)) = summary else { return };
    let value = fields([
        ("role", "assistant".into()),
        ("model", work.carry.other.model.clone().into()),
        ("thinking", work.text(&text, pointer)),
    ]);
    speak(work, id, value);
}

fn speak(work: &mut PieceBuilder<'_>, id: &str, value: FieldMap) {
    work.carry.session.started_at.get_or_insert(work.line.at);
    if value.get("role") == Some(&"assistant".into()) {
        work.carry.other.codex.message_without_usage = Some(LastMessage {
            id: id.to_owned(),
            at: work.line.at,
            place: work.line.place,
            value: value.clone(),
        });
    }
    work.fact(Kind::Message, id, value);
    work.time_checkpoint(work.line.at, id);
}

fn call(work: &mut PieceBuilder<'_>, id: &str, payload: &CodexPayload<'_>) {
    let call_id = payload.call_id.text().unwrap_or(id);
    let name = payload.name.text().unwrap_or("local_shell");
    let named = Value::from([("id", call_id.into()), ("name", name.into())]);
    let value = fields([
        ("role", "assistant".into()),
        ("model", work.carry.other.model.clone().into()),
        ("tool_calls", Value::List(vec![named])),
    ]);
    speak(work, id, value);
    // Models write line breaks into the strings of their arguments, which JSON does not allow.
    let arguments = payload.arguments.text().map(long_text::readable_json);
    let call = call::CodexCall {
        id: call_id,
        name,
        // `functions` is the namespace of the model's own tools, not that of a server.
        namespace: payload.namespace.text().filter(|space| *space != "functions"),
        arguments: arguments.as_deref(),
        input: payload.input.text(),
        action: payload.action,
    };
    call::keep_call(work, &call);
}
