//! Recordings of Gemini CLI: one JSON object a line; before version 0.40 one document for a session.
//!
//! A message is written again as its calls go on; the last version counts, and each call is told once, when it has
//! ended. `$set` lines change what is known of the session, `$rewindTo` takes messages back in the agent's eyes only: what
//! happened has happened.

mod call;
#[cfg(test)]
mod tests;

use crate::claude_code::scene::{Scene, Work, fields};
use crate::lenient::{Name, Word};
use crate::text::{self, Place};
use forge_store::model::{Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What the summary of a compressed conversation begins with.
const SNAPSHOT: &str = "<state_snapshot>";

/// A line of a recording, or an older recording as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Line<'a> {
    session_id: Name,
    #[serde(borrow)]
    summary: Word<'a>,
    #[serde(borrow)]
    last_updated: Word<'a>,
    directories: Option<Vec<Name>>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(borrow, rename = "$set")]
    set: Option<&'a RawValue>,
    // What follows is of messages.
    id: Name,
    #[serde(borrow)]
    timestamp: Word<'a>,
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    display_content: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Word<'a>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Thought<'a> {
    #[serde(borrow)]
    subject: Word<'a>,
    #[serde(borrow)]
    description: Word<'a>,
}

/// Reads a line: what it says goes into the work.
///
/// # Errors
///
/// Why it cannot be read.
pub(crate) fn line(
    work: &mut Work<'_>,
    line: &Line<'_>,
    place: Place,
    recorded_at: Timestamp,
) -> Result<(), String> {
    if let Some(raw) = line.set {
        let set: Line<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        session(work, &set);
        return rewritten(work, &set, place, recorded_at);
    }
    if line.id.0.is_none() || line.session_id.0.is_some() {
        session(work, line);
        for (index, raw) in line.messages.iter().flatten().enumerate() {
            let message: Line<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
            // One message that cannot be read is not the whole session's end.
            let _ = message_at(work, &message, place, recorded_at, &format!("/messages/{index}"));
        }
        return Ok(());
    }
    message_at(work, line, place, recorded_at, "")
}

fn session(work: &mut Work<'_>, line: &Line<'_>) {
    let session = &mut work.carry.session;
    if let Some(id) = &line.session_id.0 {
        session.id = Some(id.clone());
    }
    if let Some(summary) = line.summary.text() {
        session.title = text::headline(summary);
    }
    let directory = line.directories.iter().flatten().find_map(|directory| directory.0.clone());
    session.cwd = session.cwd.take().or(directory);
}

/// The history as the agent rewrote it: if it begins with a summary, it was compressed.
fn rewritten(
    work: &mut Work<'_>,
    set: &Line<'_>,
    place: Place,
    recorded_at: Timestamp,
) -> Result<(), String> {
    for (index, raw) in set.messages.iter().flatten().enumerate() {
        let message: Line<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let base = format!("/$set/messages/{index}");
        let Some((text, pointer)) = text::of_content(message.content, "/content") else { continue };
        if !text.trim_start().starts_with(SNAPSHOT) {
            continue;
        }
        let Some(id) = message.id.0.clone().filter(|id| !work.carry.other.tell(id)) else {
            continue;
        };
        // The summary has the time it was written at, or the rewriting has.
        let at = message.timestamp.text().or(set.last_updated.text());
        let at = at.and_then(Timestamp::parse_rfc3339).ok_or("has a summary without a time")?;
        let summary = text::value(&text, place, || format!("{base}{pointer}"));
        work.compacted(&scene(place, at, recorded_at, None), &id, Some(summary));
    }
    Ok(())
}

fn scene<'a>(
    place: Place,
    at: Timestamp,
    recorded_at: Timestamp,
    cwd: Option<&'a str>,
) -> Scene<'a> {
    Scene { place, at, recorded_at, agent: None, base: "", cwd, git_branch: None }
}

fn message_at(
    work: &mut Work<'_>,
    message: &Line<'_>,
    place: Place,
    recorded_at: Timestamp,
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
    let cwd = work.carry.session.cwd.clone();
    let scene = scene(place, at, recorded_at, cwd.as_deref());
    let shown = |text: &str, pointer: &str| text::value(text, place, || format!("{base}{pointer}"));
    let told = text::of_content(message.content, "/content");
    let text = told.as_ref().map(|(text, pointer)| shown(text, pointer));
    let thoughts: Vec<Thought<'_>> =
        message.thoughts.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let thinking: Vec<String> = thoughts
        .iter()
        .map(|it| {
            [&it.subject, &it.description].map(|word| word.text().unwrap_or_default()).join(": ")
        })
        .collect();
    let thinking = thinking.join("\n");
    let calls = call::read(message.tool_calls);
    let named: Vec<Value> = calls.iter().map(call::Call::named).collect();
    let value = fields([
        ("role", role.into()),
        ("subtype", if role == "system" { kind.into() } else { Value::Null }),
        ("model", message.model.text().into()),
        ("cwd", scene.cwd.into()),
        ("text", text.clone().into()),
        // Of several pieces, so that nothing can point at it.
        (
            "thinking",
            if thinking.is_empty() {
                Value::Null
            } else {
                text::beginning(&thinking, text::INLINE_BYTES).into()
            },
        ),
        ("tool_calls", if named.is_empty() { Value::Null } else { Value::List(named) }),
    ]);
    let summary = told.as_ref().is_some_and(|(text, _)| text.trim_start().starts_with(SNAPSHOT));
    work.carry.session.started_at.get_or_insert(at);
    work.facts.push(scene.fact(Kind::Message, id, value));
    if !work.carry.other.tell(id) {
        if let (true, Some(text)) = (summary, &text) {
            work.compacted(&scene, id, Some(text.clone()));
        } else if let ("user", Some((words, _)), Some(text)) = (kind, &told, &text) {
            prompt(work, &scene, id, words, text, message.display_content);
        }
        work.time_checkpoint(at, id);
    }
    for (index, call) in calls.iter().enumerate() {
        call::done(work, &scene, call, &format!("{base}/toolCalls/{index}"));
    }
    Ok(())
}

fn prompt(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    words: &str,
    text: &Value,
    display: Option<&RawValue>,
) {
    let shown = text::of_content(display, "").map(|(text, _)| text);
    let words = shown.as_deref().unwrap_or(words);
    // What the agent or a hook puts in front of the conversation.
    if words.trim_start().starts_with('<') {
        return;
    }
    if work.carry.session.first_prompt.is_none() {
        work.carry.session.first_prompt = text::headline(words);
    }
    let tags = words.starts_with('/').then(|| Value::from(vec!["slash"]));
    let value = fields([("text", text.clone()), ("tags", tags.into()), ("cwd", scene.cwd.into())]);
    work.facts.push(scene.fact(Kind::Prompt, id, value));
}
