//! Makes the facts of a tool call that a hook reports. If the hook reports the id of the call, they
//! have the same ids as the facts from the transcript, which replace them when the transcript is
//! read.

use super::event::{HookAgent, HookCommandEnd, HookEvent, HookEventKind, ToolUse};
use crate::claude_code::{InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader};
use crate::long_text;
use crate::piece::fact_id;
use forge_store::model::{Fact, FactOrigin, Kind, TextRef, Timestamp, Value};
use serde_json::json;
use std::time::Duration;

/// The size in bytes to which a long text in a hook's fact is shortened. The transcript has the
/// full text.
const TEXT_BYTES: usize = 4000;
/// The maximum duration of a call, in milliseconds: a day.
pub(super) const MAX_DURATION_MS: i64 = 86_400_000;

/// Returns the facts of a tool call: a command or edit, with its check if there is one, or the use
/// of another tool; none for any other event. `now` is when the hook was called.
#[must_use]
pub fn tool_facts(event: &HookEvent, now: Timestamp) -> Vec<Fact> {
    let HookEventKind::ToolUsed(used) = &event.kind else { return Vec::new() };
    // The patch was not applied, or it is not known whether it was.
    if used.tool == "apply_patch" && used.refused.is_none() && used.ended != HookCommandEnd::Code(0)
    {
        return Vec::new();
    }
    let call = used.call.clone().unwrap_or_else(|| generated_id(event, used, now));
    let (lines, dialect) = transcript_lines(event, used, &call, now);
    let mut reader =
        TranscriptReader::new(TranscriptOptions { dialect, ..TranscriptOptions::default() });
    let Ok(piece) = reader.read(lines.as_bytes(), InputEnding::File, now) else {
        return Vec::new();
    };
    let wanted = |kind| matches!(kind, Kind::Command | Kind::Code | Kind::Verification);
    let mut facts = piece.facts;
    facts.retain(|fact| wanted(fact.kind));
    if let Some(reason) = &used.refused {
        // A call that did not run checked nothing and changed nothing.
        facts.retain(|fact| fact.kind == Kind::Command);
        for fact in &mut facts {
            refuse(fact, reason);
        }
    }
    if facts.is_empty() {
        facts.extend(other_tool(used, &call, now));
    }
    let checks = facts.iter().filter(|fact| fact.kind == Kind::Verification).count();
    for fact in &mut facts {
        set_outcome(fact, used, dialect);
        if used.ended == HookCommandEnd::TimedOut
            && checks == 1
            && let (Kind::Verification, Value::Map(fields)) = (fact.kind, &mut fact.value)
        {
            fields.insert("status".to_owned(), "timed_out".into());
        }
        fact.origin = FactOrigin::Hook;
        fact.place = 0;
        fact.value = with_texts(std::mem::take(&mut fact.value), lines.as_bytes());
        if let Value::Map(fields) = &mut fact.value {
            if let Some(agent) = &event.sub_agent {
                fields.insert("agent".to_owned(), agent.as_str().into());
            }
            // The transcript has the earlier content of the file.
            fields.remove("original_file");
            let description = used.input.get("description").and_then(serde_json::Value::as_str);
            if let Some(description) = description
                && matches!(fact.kind, Kind::Command | Kind::Verification)
            {
                let entry = fields.entry("description".to_owned());
                entry.or_insert_with(|| without_middle(description).into());
            }
        }
    }
    facts
}

/// Sets the outcome of a command for which the lines of a transcript cannot say it.
fn set_outcome(fact: &mut Fact, used: &ToolUse, dialect: TranscriptDialect) {
    let outcome = match (used.ended, &used.error) {
        (HookCommandEnd::Code(_) | HookCommandEnd::Background, _) => return,
        (HookCommandEnd::TimedOut, _) => "timed_out",
        (HookCommandEnd::Interrupted, _) => "interrupted",
        (HookCommandEnd::Unknown, Some(_)) if used.interrupted => "interrupted",
        (HookCommandEnd::Unknown, Some(_)) => "failed",
        (HookCommandEnd::Unknown, None) => "unknown",
    };
    let unknown = dialect == TranscriptDialect::Codex;
    if let (Value::Map(fields), Kind::Command, true) = (&mut fact.value, fact.kind, unknown) {
        fields.insert("outcome".to_owned(), outcome.into());
    }
}

/// Returns the fact of a tool call that is neither a command nor an edit, or that was refused;
/// `None` if `super::other_tool` makes no fact for the tool.
fn other_tool(used: &ToolUse, call: &str, now: Timestamp) -> Option<Fact> {
    let known = used.is_edit() || used.is_command() || used.tool == "apply_patch";
    // Without the id of the call, a transcript may report the failure of the edit once more.
    let failed = used.is_edit() && used.error.is_some() && used.call.is_some();
    if used.refused.is_none() && known && !failed {
        return None;
    }
    Some(Fact {
        kind: Kind::Tool,
        id: fact_id(call),
        at: now,
        origin: FactOrigin::Hook,
        place: 0,
        recorded_at: now,
        value: Value::Map(super::other_tool::fields_of(used, now)?),
    })
}

/// Changes the fact of a command to that of a command that was refused for this reason.
fn refuse(fact: &mut Fact, reason: &str) {
    let Value::Map(fields) = &mut fact.value else { return };
    for name in ["exit_code", "stdout_preview", "stderr_preview", "streams", "interrupted"] {
        fields.remove(name);
    }
    fields.insert("outcome".to_owned(), "refused".into());
    if !reason.is_empty() {
        fields.insert("reason".to_owned(), without_middle(reason).into());
    }
}

/// Returns an id for a call that has none: a hash of its tool, its input and `now`.
fn generated_id(event: &HookEvent, used: &ToolUse, now: Timestamp) -> String {
    let what = format!("{}\0{}\0{}", used.tool, used.input, now.as_micros());
    let hash = blake3::hash(what.as_bytes()).to_hex();
    format!("{}-{}", event.agent.word(), hash.get(..16).unwrap_or_default())
}

/// Writes the call and its result as lines of a transcript, so that the rules for transcripts apply
/// to hooks too. In Claude Code's form, a command without an error has exit code 0. Codex's form
/// has the exit code, if it is known. A duration counts as at most a day.
fn transcript_lines(
    event: &HookEvent,
    used: &ToolUse,
    call: &str,
    now: Timestamp,
) -> (String, TranscriptDialect) {
    let began = now.plus_micros(-used.duration_ms.unwrap_or(0).clamp(0, MAX_DURATION_MS) * 1000);
    let is_codex = match used.tool.as_str() {
        "Bash" => event.agent != HookAgent::Claude,
        tool => tool == "apply_patch",
    };
    if is_codex {
        (codex_lines(event, used, call, (began, now)), TranscriptDialect::Codex)
    } else {
        (claude_lines(event, used, call, (began, now)), TranscriptDialect::ClaudeCode)
    }
}

fn claude_lines(
    event: &HookEvent,
    used: &ToolUse,
    call: &str,
    (began, ended): (Timestamp, Timestamp),
) -> String {
    let cwd = event.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    let line = |kind: &str, at: Timestamp| {
        json!({
            "type": kind,
            "uuid": format!("{call}-{kind}"),
            "sessionId": event.session.as_deref().unwrap_or("hook"),
            "timestamp": at.to_string(),
            "cwd": cwd,
        })
    };
    let mut call_line = line("assistant", began);
    call_line["message"] = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": call, "name": used.tool, "input": used.input }
    ]});
    let mut result_line = line("user", ended);
    let mut result = json!({ "type": "tool_result", "tool_use_id": call });
    match &used.error {
        Some(error) => {
            result["is_error"] = true.into();
            result["content"] = error.as_str().into();
            result_line["toolUseResult"] = format!("Error: {error}").into();
            if used.interrupted {
                result["content"] = format!("{error}\n[Request interrupted by user]").into();
            }
        }
        None => {
            result["content"] = "".into();
            result_line["toolUseResult"] = used.response.clone();
        }
    }
    result_line["message"] = json!({ "role": "user", "content": [result] });
    format!("{call_line}\n{result_line}\n")
}

fn codex_lines(
    event: &HookEvent,
    used: &ToolUse,
    call: &str,
    (began, ended): (Timestamp, Timestamp),
) -> String {
    let text = |value: &serde_json::Value, name: &str| {
        value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let (name, arguments, output) = if used.tool == "apply_patch" {
        ("apply_patch", json!({ "input": used.input }), "Exit code: 0\nOutput:\n".to_owned())
    } else {
        let code = match used.ended {
            HookCommandEnd::Code(code) => format!("Process exited with code {code}\n"),
            HookCommandEnd::Background => "Process running with session ID 0\n".to_owned(),
            HookCommandEnd::Unknown | HookCommandEnd::TimedOut | HookCommandEnd::Interrupted => {
                String::new()
            }
        };
        let took = used.duration_ms.map(|took| Duration::from_millis(took.unsigned_abs()));
        let took = took.map(|took| format!("Wall time: {} seconds\n", took.as_secs_f64()));
        let output = text(&used.response, "stdout");
        let output = format!("{}{code}Output:\n{output}", took.unwrap_or_default());
        ("exec_command", json!({ "cmd": text(&used.input, "command") }), output)
    };
    let cwd = event.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    let line = |at: Timestamp, kind: &str, payload: serde_json::Value| json!({ "timestamp": at.to_string(), "type": kind, "payload": payload });
    let begun = line(began, "session_meta", json!({ "id": event.session, "cwd": cwd }));
    let request = json!({
        "type": "function_call", "name": name, "arguments": arguments.to_string(), "call_id": call
    });
    let result = json!({ "type": "function_call_output", "call_id": call, "output": output });
    let call_line = line(began, "response_item", request);
    let result_line = line(ended, "response_item", result);
    format!("{begun}\n{call_line}\n{result_line}\n")
}

/// Replaces references into `document` by the texts that they refer to, shortened.
fn with_texts(value: Value, document: &[u8]) -> Value {
    if let Some(reference) = TextRef::from_value(&value) {
        let whole = reference.place.and_then(|(offset, length)| {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            long_text::resolve(document.get(start..end)?, &reference.pointer)
        });
        return without_middle(&whole.unwrap_or(reference.preview)).into();
    }
    match value {
        Value::Map(fields) => Value::Map(
            fields.into_iter().map(|(name, value)| (name, with_texts(value, document))).collect(),
        ),
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| with_texts(item, document)).collect())
        }
        other => other,
    }
}

/// Shortens a text of more than [`TEXT_BYTES`] to its beginning and its end.
pub(super) fn without_middle(whole: &str) -> String {
    without_middle_to(whole, TEXT_BYTES)
}

/// Shortens a text of more than `bytes` bytes to its beginning and its end, each of at most half of
/// these bytes. A line between them says how many bytes are left out.
pub(super) fn without_middle_to(whole: &str, bytes: usize) -> String {
    if whole.len() <= bytes {
        return whole.to_owned();
    }
    let start = long_text::beginning(whole, bytes / 2);
    let end = long_text::ending(whole, bytes / 2);
    let left_out = whole.len() - start.len() - end.len();
    format!("{start}\n[{left_out} bytes left out]\n{end}")
}
