//! Rollouts of Codex: one JSON object a line, with a time, a type and a payload.
//!
//! Messages, calls and their results are `response_item` lines. `event_msg` lines tell most of it again for the screen;
//! of them only the prompts are read, as the person typed them.

mod call;
mod output;
#[cfg(test)]
mod tests;

use crate::claude_code::call::hash;
use crate::claude_code::scene::{Scene, Work, fields, flag};
use crate::lenient::Word;
use crate::text::{self, Place};
use forge_store::model::{Kind, Map, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line of a rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    #[serde(borrow)]
    timestamp: Word<'a>,
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// What a payload may hold, whatever its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    kind: Word<'a>,
    #[serde(borrow)]
    id: Word<'a>,
    #[serde(borrow)]
    cwd: Word<'a>,
    #[serde(borrow)]
    model: Word<'a>,
    #[serde(borrow)]
    role: Word<'a>,
    #[serde(borrow)]
    message: Word<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    git: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Word<'a>,
    #[serde(borrow)]
    call_id: Word<'a>,
    #[serde(borrow)]
    arguments: Word<'a>,
    #[serde(borrow)]
    input: Word<'a>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Git<'a> {
    #[serde(borrow)]
    branch: Word<'a>,
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
    let Some(raw) = line.payload else {
        // The first Codex wrote messages without a time.
        return if line.kind.is("message") { Err("has no time".to_owned()) } else { Ok(()) };
    };
    let kind = line.kind.text().unwrap_or_default();
    let known = ["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
    if !known.contains(&kind) {
        return Ok(());
    }
    // A payload that is no object says nothing; a list would be read as the fields in their order.
    if !raw.get().starts_with('{') {
        return Ok(());
    }
    let Ok(payload) = serde_json::from_str::<Payload<'_>>(raw.get()) else { return Ok(()) };
    match kind {
        "session_meta" => {
            session(work, &payload);
            return Ok(());
        }
        "turn_context" => {
            note(&mut work.carry.session.cwd, &payload.cwd);
            note(&mut work.carry.other.model, &payload.model);
            return Ok(());
        }
        _ => {}
    }
    let at = line.timestamp.text().and_then(Timestamp::parse_rfc3339).ok_or("has no time")?;
    let cwd = work.carry.session.cwd.clone();
    let git_branch = work.carry.session.git_branch.clone();
    let scene = Scene {
        place,
        at,
        recorded_at,
        agent: None,
        base: "/payload",
        cwd: cwd.as_deref(),
        git_branch: git_branch.as_deref(),
    };
    // Few lines have an id of their own; what is written the same twice at one time is one.
    let own = || hash(&format!("{at}{}", raw.get())).get(..16).unwrap_or_default().to_owned();
    let id = payload.id.text().map_or_else(own, str::to_owned);
    match (kind, payload.kind.text().unwrap_or_default()) {
        ("response_item", "message") => message(work, &scene, &id, &payload),
        ("response_item", "reasoning") => thought(work, &scene, &id, &payload),
        ("response_item", "function_call" | "custom_tool_call" | "local_shell_call") => {
            call(work, &scene, &id, &payload);
        }
        ("response_item", "function_call_output" | "custom_tool_call_output") => {
            let call = payload.call_id.text().unwrap_or_default();
            output::result(work, &scene, call, payload.output);
        }
        ("event_msg", "user_message") => {
            if let Some(text) = payload.message.text() {
                prompt(work, &scene, &id, text, "/message", true);
            }
        }
        ("compacted", _) => compacted(work, &scene, &id, &payload),
        _ => {}
    }
    Ok(())
}

fn note(field: &mut Option<String>, word: &Word<'_>) {
    if let Some(text) = word.text() {
        *field = Some(text.to_owned());
    }
}

/// The first line of a rollout names its session; of a fork the lines of the session it came from follow.
fn session(work: &mut Work<'_>, payload: &Payload<'_>) {
    if work.carry.session.id.is_some() {
        return;
    }
    note(&mut work.carry.session.id, &payload.id);
    note(&mut work.carry.session.cwd, &payload.cwd);
    let git: Option<Git<'_>> = payload.git.and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(git) = git {
        note(&mut work.carry.session.git_branch, &git.branch);
    }
}

/// Whether Codex itself wrote this in the user's name: instructions, surroundings, what a hook said.
fn is_injected(text: &str) -> bool {
    let begin = text.trim_start();
    begin.starts_with('<') || begin.starts_with("# AGENTS.md instructions")
}

fn message(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, payload: &Payload<'_>) {
    let role = payload.role.text().unwrap_or("assistant");
    let Some((text, pointer)) = text::of_content(payload.content, "/content") else { return };
    let injected = role != "assistant" && (role != "user" || is_injected(&text));
    let value = fields([
        ("role", role.into()),
        ("model", work.carry.other.model.clone().filter(|_| role == "assistant").into()),
        ("cwd", scene.cwd.into()),
        ("git_branch", scene.git_branch.into()),
        ("text", scene.text(&text, &pointer)),
        ("meta", flag(injected)),
    ]);
    speak(work, scene, id, value);
    if role == "user" && !injected {
        prompt(work, scene, id, &text, &pointer, false);
    }
}

fn thought(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, payload: &Payload<'_>) {
    // Most of it is encrypted; the summary is not.
    let said = text::of_content(payload.summary, "/summary")
        .or_else(|| text::of_content(payload.content, "/content"));
    let Some((text, pointer)) = said else { return };
    let value = fields([
        ("role", "assistant".into()),
        ("model", work.carry.other.model.clone().into()),
        ("thinking", scene.text(&text, pointer)),
    ]);
    speak(work, scene, id, value);
}

fn speak(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, value: Map) {
    work.carry.session.started_at.get_or_insert(scene.at);
    work.facts.push(scene.fact(Kind::Message, id, value));
    work.time_checkpoint(scene.at, id);
}

fn call(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, payload: &Payload<'_>) {
    let call_id = payload.call_id.text().unwrap_or(id);
    let name = payload.name.text().unwrap_or("local_shell");
    let named = Value::from([("id", call_id.into()), ("name", name.into())]);
    let value = fields([
        ("role", "assistant".into()),
        ("model", work.carry.other.model.clone().into()),
        ("tool_calls", Value::List(vec![named])),
    ]);
    speak(work, scene, id, value);
    let asked =
        call::asked(scene, name, payload.arguments.text(), payload.input.text(), payload.action);
    call::keep(work, scene, call_id, name, asked);
}

/// A prompt comes twice: as the model's input and as what the screen shows. Whichever is first is told.
fn prompt(
    work: &mut Work<'_>,
    scene: &Scene<'_>,
    id: &str,
    text: &str,
    pointer: &str,
    shown: bool,
) {
    let own = hash(text);
    let last = work.carry.other.prompt.take();
    if last.is_some_and(|(last, from)| last == own && from != shown) {
        return;
    }
    work.carry.other.prompt = Some((own, shown));
    if work.carry.session.first_prompt.is_none() {
        work.carry.session.first_prompt = text::headline(text);
    }
    let value = fields([
        ("text", scene.text(text, pointer)),
        ("cwd", scene.cwd.into()),
        ("git_branch", scene.git_branch.into()),
    ]);
    work.facts.push(scene.fact(Kind::Prompt, id, value));
}

fn compacted(work: &mut Work<'_>, scene: &Scene<'_>, id: &str, payload: &Payload<'_>) {
    let summary = payload.message.text().map(|text| scene.text(text, "/message"));
    let value = fields([
        ("role", "system".into()),
        ("subtype", "compacted".into()),
        ("text", summary.clone().into()),
        ("compact_summary", flag(summary.is_some())),
    ]);
    speak(work, scene, id, value);
    work.compacted(scene, id, summary);
}
