//! The fact of a prompt that a hook reports, for agents without transcripts.

use super::event::{HookEvent, HookEventKind};
use super::tool::without_middle_to;
use crate::claude_code::line_context::fields;
use forge_store::model::{Fact, FactOrigin, Kind, Timestamp, Value};

/// The maximum size of a prompt, in bytes: no transcript has the full text.
const PROMPT_BYTES: usize = 64 << 10;

/// Returns the prompt of an event as a fact at the time of the hook. `None` if the event has no
/// text, or if forge can read the agent's transcript: it contains the prompt with another id, so
/// there would be two facts.
#[must_use]
pub fn prompt_fact(event: &HookEvent, now: Timestamp) -> Option<Fact> {
    let HookEventKind::Prompt { text: Some(text) } = &event.kind else { return None };
    if event.agent.dialect().is_some() && event.transcript.is_some() {
        return None;
    }
    // Two installations report the same prompt. One id for both makes it one fact: with a turn
    // always, without one only within the same millisecond.
    let moment = event.turn.clone().unwrap_or_else(|| (now.as_micros() / 1000).to_string());
    let hash = blake3::hash(format!("{moment}\0{text}").as_bytes()).to_hex();
    let tags = text.starts_with('/').then(|| Value::from(vec!["slash"]));
    let cwd = event.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned());
    Some(Fact {
        kind: Kind::Prompt,
        id: format!("{}-{}", event.agent.word(), hash.get(..16).unwrap_or_default()),
        at: now,
        origin: FactOrigin::Hook,
        place: 0,
        recorded_at: now,
        value: Value::Map(fields([
            ("text", without_middle_to(text, PROMPT_BYTES).into()),
            ("tags", tags.into()),
            ("cwd", cwd.into()),
        ])),
    })
}
