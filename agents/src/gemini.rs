//! Reads recordings of Gemini CLI: one JSON object per line; before version 0.40, one document per
//! session.
//!
//! A message is written again as its calls progress. The last version counts, and each call becomes
//! a fact once, when it has ended. `$set` lines change the data of the session. `$rewindTo` removes
//! messages for the model only: the facts stay.

mod call;
mod prompt;
mod shell;
#[cfg(test)]
mod tests;
mod tool;

pub(crate) use call::is_failed_edit;
pub(crate) use prompt::typed_part;
pub(crate) use shell::{ShellRunFields, unwrapped};

use crate::claude_code::line_context::{PieceBuilder, fields, flag};
use crate::lenient::{LenientId, LenientInteger, LenientText, object, objects};
use crate::long_text;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line of a recording, or an older recording as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(crate) struct GeminiLine<'a> {
    session_id: LenientId,
    summary: LenientText<'a>,
    last_updated: LenientText<'a>,
    directories: Option<&'a RawValue>,
    /// `subagent` in a conversation of one agent with another.
    #[serde(borrow, rename = "kind")]
    conversation: LenientText<'a>,
    messages: Option<&'a RawValue>,
    #[serde(borrow, rename = "$set")]
    set: Option<&'a RawValue>,
    // Fields of messages.
    id: LenientId,
    timestamp: LenientText<'a>,
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    content: Option<&'a RawValue>,
    display_content: Option<&'a RawValue>,
    model: LenientText<'a>,
    thoughts: Option<&'a RawValue>,
    tokens: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
}

/// The token counts of one answer, from the provider.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiTokenUsage {
    input: LenientInteger,
    output: LenientInteger,
    cached: LenientInteger,
}

/// A thought of the model, before its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiThought<'a> {
    subject: LenientText<'a>,
    description: LenientText<'a>,
}

/// Reads a line into the piece.
///
/// # Errors
///
/// The reason why the line cannot be read.
pub(crate) fn read_line(work: &mut PieceBuilder<'_>, line: &GeminiLine<'_>) -> Result<(), String> {
    if let Some(raw) = line.set {
        let set: GeminiLine<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        update_session(work, &set);
        return read_rewritten_history(work, &set);
    }
    if line.id.0.is_none() || line.session_id.0.is_some() {
        update_session(work, line);
        for (index, message) in objects::<GeminiLine<'_>>(line.messages) {
            // An unreadable message must not keep the others from being read.
            let _ = read_message(work, &message, &format!("/messages/{index}"));
        }
        return Ok(());
    }
    read_message(work, line, "")
}

/// Takes over the data of the session that a line has.
fn update_session(work: &mut PieceBuilder<'_>, line: &GeminiLine<'_>) {
    let session = &mut work.carry.session;
    if let Some(id) = &line.session_id.0 {
        session.id = Some(id.clone());
    }
    if let Some(summary) = line.summary.text() {
        session.title = long_text::headline(summary);
    }
    let directories: Vec<LenientId> =
        line.directories.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let directory = directories.into_iter().find_map(|directory| directory.0);
    session.cwd = session.cwd.take().or(directory);
    if let Some(conversation) = line.conversation.text() {
        work.carry.other.sub_agent = conversation == "subagent";
    }
}

/// Returns the session that a line begins, if it is the first line of a recording.
#[must_use]
pub fn begun_gemini_session(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let line = long_text::readable_json(line.trim());
    let line: GeminiLine<'_> = serde_json::from_str(&line).ok()?;
    let begins = line.set.is_none() && line.id.0.is_none();
    line.session_id.0.filter(|_| begins)
}

/// Reads a history that the agent replaced. A summary in it means that it was compressed.
fn read_rewritten_history(work: &mut PieceBuilder<'_>, set: &GeminiLine<'_>) -> Result<(), String> {
    if !set.messages.is_some_and(|raw| prompt::may_hold_summary(raw.get())) {
        return Ok(());
    }
    for (index, message) in objects::<GeminiLine<'_>>(set.messages) {
        let base = format!("/$set/messages/{index}");
        let content = long_text::content_text(message.content, "/content");
        let Some((text, pointer)) = content.filter(|_| message.kind.text() == Some("user")) else {
            continue;
        };
        if !prompt::is_summary(&text) {
            continue;
        }
        let Some(id) = message.id.0.clone().filter(|id| !work.carry.other.mark_reported(id)) else {
            continue;
        };
        // The time of the summary, or else of the replacement.
        let at = message.timestamp.text().or(set.last_updated.text());
        let at = at.and_then(Timestamp::parse_rfc3339).ok_or("has a summary without a time")?;
        work.line.at = at;
        let summary = work.text(&text, format!("{base}{pointer}"));
        work.single_line_compaction(&id, Some(summary));
    }
    Ok(())
}

/// Adds the facts of a message and of its calls. `base` is the pointer to the message in the line.
fn read_message(
    work: &mut PieceBuilder<'_>,
    message: &GeminiLine<'_>,
    base: &str,
) -> Result<(), String> {
    let Some(id) = message.id.0.as_deref() else { return Ok(()) };
    let kind = message.kind.text().unwrap_or_default();
    let role = match kind {
        "user" => "user",
        "gemini" => "assistant",
        "info" | "error" | "warning" => "system",
        _ => return Ok(()),
    };
    let at = message.timestamp.text().and_then(Timestamp::parse_rfc3339).ok_or("has no time")?;
    work.line.at = at;
    work.line.cwd.clone_from(&work.carry.session.cwd);
    let content = long_text::content_text(message.content, "/content");
    let text = content.as_ref().map(|(text, pointer)| work.text(text, format!("{base}{pointer}")));
    let by_user = kind == "user" && !work.carry.other.sub_agent;
    let typed = by_user
        .then(|| prompt::typed(message.content, message.display_content, work.line.place, base))
        .flatten();
    let calls: Vec<(usize, call::GeminiCall<'_>)> = objects(message.tool_calls);
    let mut value = fields([
        ("role", role.into()),
        ("subtype", if role == "system" { kind.into() } else { Value::Null }),
        ("cwd", work.line.cwd.clone().into()),
        ("text", text.clone().into()),
        ("meta", flag(by_user && typed.is_none() && text.is_some())),
    ]);
    value.extend(model_answer_fields(message, &calls));
    if kind == "user" {
        value.extend(fields([("tool_results", list(prompt::results(message.content)))]));
    }
    let summary =
        kind == "user" && content.as_ref().is_some_and(|(text, _)| prompt::is_snapshot(text));
    work.carry.session.started_at.get_or_insert(at);
    work.fact(Kind::Message, id, value);
    if kind == "gemini"
        && !work.carry.other.sub_agent
        && let Some((text, _)) = &content
    {
        work.infer(id, text);
    }
    if !work.carry.other.mark_reported(id) {
        if summary {
            work.single_line_compaction(id, text);
        } else if let Some(typed) = typed {
            push_prompt(work, id, typed);
        }
        work.time_checkpoint(at, id);
        if let Some((pid, failed)) = prompt::background_end(message.content) {
            let outcome = if failed { "failed" } else { "finished" };
            call::ended_later(work, &pid, (outcome, None));
        }
    }
    for (index, call) in &calls {
        call::done(work, call, at, &format!("{base}/toolCalls/{index}"));
    }
    Ok(())
}

/// Returns the fields of an answer of the model besides its text.
fn model_answer_fields(
    message: &GeminiLine<'_>,
    calls: &[(usize, call::GeminiCall<'_>)],
) -> FieldMap {
    let thoughts =
        objects::<GeminiThought<'_>>(message.thoughts).into_iter().map(|(_, thought)| {
            let parts = [&thought.subject, &thought.description];
            parts.map(|word| word.text().unwrap_or_default()).join(": ")
        });
    let thinking = thoughts.collect::<Vec<_>>().join("\n");
    // No pointer can refer to a text that is joined from several pieces.
    let thinking = Some(long_text::beginning(&thinking, long_text::INLINE_BYTES));
    let tokens: GeminiTokenUsage = object(message.tokens);
    // The input tokens include the cached ones.
    let input = tokens.input.0.map(|all| all.saturating_sub(tokens.cached.0.unwrap_or(0)).max(0));
    fields([
        ("model", message.model.text().into()),
        ("thinking", thinking.filter(|text| !text.is_empty()).into()),
        ("tool_calls", list(calls.iter().map(|(_, call)| call.named()).collect())),
        ("input_tokens", input.into()),
        ("output_tokens", tokens.output.0.into()),
        ("cache_read_tokens", tokens.cached.0.into()),
    ])
}

/// Returns a list as the value of a fact: null if it is empty.
fn list(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { Value::List(items) }
}

/// Adds the fact of a prompt.
fn push_prompt(work: &mut PieceBuilder<'_>, id: &str, typed: prompt::TypedPrompt) {
    work.carry.session.note_prompt(&typed.text);
    let tags = typed.text.starts_with('/').then(|| Value::from(vec!["slash"]));
    let value = fields([
        ("text", typed.value),
        ("tags", tags.into()),
        ("cwd", work.line.cwd.clone().into()),
    ]);
    work.fact(Kind::Prompt, id, value);
}
