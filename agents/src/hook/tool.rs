//! Facts of a tool call, as a hook reports it: the same as its transcript will say, until that is read.

use super::event::{Event, Happening, ToolUse};
use crate::claude_code::{Ending, Options, Reader};
use crate::text;
use forge_store::model::{Fact, Kind, Origin, TextRef, Timestamp, Value};
use serde_json::json;

/// A text of a hook's fact is kept up to this many bytes: the transcript brings the whole.
const TEXT_BYTES: usize = 4000;

/// The command, edit and check that a tool call was, if it was one. `now` is when the hook was called.
#[must_use]
pub fn tool_facts(event: &Event, now: Timestamp) -> Vec<Fact> {
    let Happening::ToolUsed(used) = &event.happening else { return Vec::new() };
    let call = used.call.clone().unwrap_or_else(|| made_up(event, used, now));
    let lines = lines(event, used, &call, now);
    let mut reader = Reader::new(Options::default());
    let Ok(piece) = reader.read(lines.as_bytes(), Ending::File, now) else { return Vec::new() };
    let wanted = |kind| matches!(kind, Kind::Command | Kind::Code | Kind::Verification);
    let mut facts = piece.facts;
    facts.retain(|fact| wanted(fact.kind));
    for fact in &mut facts {
        fact.origin = Origin::Hook;
        fact.place = 0;
        fact.value = with_texts(std::mem::take(&mut fact.value), lines.as_bytes());
        if let Value::Map(fields) = &mut fact.value {
            if let Some(agent) = &event.sub_agent {
                fields.insert("agent".to_owned(), agent.as_str().into());
            }
            // What stood in the file before belongs to the transcript.
            fields.remove("original_file");
            if used.response.get("exit_code_known").is_some() && used.error.is_none() {
                forget_exit_code(fields);
            }
        }
    }
    facts
}

/// Without an id the call is named by what it was and when.
fn made_up(event: &Event, used: &ToolUse, now: Timestamp) -> String {
    let what = format!("{}\0{}\0{}", used.tool, used.input, now.as_micros());
    let hash = blake3::hash(what.as_bytes()).to_hex();
    format!("{}-{}", event.agent.word(), hash.get(..16).unwrap_or_default())
}

/// Not every agent says how a command ended.
fn forget_exit_code(fields: &mut forge_store::model::Map) {
    fields.remove("exit_code");
    if fields.get("status").and_then(Value::as_text) == Some("passed") {
        fields.insert("status".to_owned(), "unknown".into());
    }
}

/// The call and its result as two lines of a transcript, so that one set of rules says what they mean.
fn lines(event: &Event, used: &ToolUse, call: &str, now: Timestamp) -> String {
    let began = now.plus_micros(-used.duration_ms.unwrap_or(0).clamp(0, 86_400_000) * 1000);
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
    let mut asked = line("assistant", began);
    asked["message"] = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": call, "name": used.tool, "input": used.input }
    ]});
    let mut answered = line("user", now);
    let mut result = json!({ "type": "tool_result", "tool_use_id": call });
    match &used.error {
        Some(error) => {
            result["is_error"] = true.into();
            result["content"] = error.as_str().into();
            answered["toolUseResult"] = format!("Error: {error}").into();
            if used.interrupted {
                result["content"] = format!("{error}\n[Request interrupted by user").into();
            }
        }
        None => {
            result["content"] = "".into();
            answered["toolUseResult"] = used.response.clone();
        }
    }
    answered["message"] = json!({ "role": "user", "content": [result] });
    format!("{asked}\n{answered}\n")
}

/// The value with its texts themselves in the place of references into `document`.
fn with_texts(value: Value, document: &[u8]) -> Value {
    if let Some(reference) = TextRef::from_value(&value) {
        let whole = reference.place.and_then(|(offset, length)| {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            text::resolve(document.get(start..end)?, &reference.pointer)
        });
        return kept(&whole.unwrap_or(reference.preview)).into();
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

/// The beginning and the end of a text.
fn kept(whole: &str) -> String {
    if whole.len() <= TEXT_BYTES {
        return whole.to_owned();
    }
    let start = text::beginning(whole, TEXT_BYTES / 2);
    let end = whole.get(whole.ceil_char_boundary(whole.len() - TEXT_BYTES / 2)..);
    let end = end.unwrap_or_default();
    let left_out = whole.len() - start.len() - end.len();
    format!("{start}\n[{left_out} bytes left out]\n{end}")
}
