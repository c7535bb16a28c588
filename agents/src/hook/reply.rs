//! Writes the reply to an event, in the agent's own form and within its limits.

use super::event::{HookAgent, HookEvent, HookEventKind};
use serde_json::json;

/// How much text an agent accepts in reply to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyBudget {
    /// At most this many UTF-16 units, which agents in JavaScript count as characters.
    pub units: usize,
    /// At most this many bytes: for an agent that counts tokens, three bytes per token.
    pub bytes: usize,
}

impl ReplyBudget {
    /// Whether this text fits.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        text.len() <= self.bytes && text.encode_utf16().count() <= self.units
    }

    /// Returns the longest prefix of a text that fits, cut at the end of a line if there is one.
    #[must_use]
    pub fn cut(self, text: &str) -> &str {
        let (mut units, mut end) = (0, 0);
        for (place, character) in text.char_indices() {
            units += character.len_utf16();
            let next = place + character.len_utf8();
            if units > self.units || next > self.bytes {
                let part = text.get(..end).unwrap_or_default();
                return part.rfind('\n').and_then(|line| part.get(..line)).unwrap_or(part);
            }
            end = next;
        }
        text
    }
}

/// Returns how much text the agent accepts at this event; `None` if it accepts none.
#[must_use]
pub fn reply_budget(event: &HookEvent) -> Option<ReplyBudget> {
    const UNITS: usize = 10_000;
    // 2,500 tokens; a longer text goes to a file that the model does not see.
    const CODEX_BYTES: usize = 7_500;
    let taken = matches!(
        (event.agent, &event.kind),
        (HookAgent::Cursor, HookEventKind::SessionStart { .. })
            | (
                HookAgent::Claude | HookAgent::Codex | HookAgent::Gemini,
                HookEventKind::SessionStart { .. } | HookEventKind::Prompt { .. },
            )
            // Claude Code uses the text as additional instructions for its summary.
            | (HookAgent::Claude, HookEventKind::PreCompact { .. })
            // Gemini has no event after a compaction: the next tool's result is the first chance
            // for a text.
            | (HookAgent::Gemini, HookEventKind::ToolUsed(_))
            | (HookAgent::OpenCode, HookEventKind::PreCompact { .. } | HookEventKind::BeforeModel)
    );
    let bytes = if event.agent == HookAgent::Codex { CODEX_BYTES } else { usize::MAX };
    taken.then_some(ReplyBudget { units: UNITS, bytes })
}

/// Returns what to print for this event: `text` for the model, cut to the limit of
/// [`reply_budget`]. Empty if nothing is to be printed.
#[must_use]
pub fn answer(event: &HookEvent, text: Option<&str>) -> String {
    let text = text.filter(|text| !text.is_empty()).zip(reply_budget(event));
    let text = text.map(|(text, budget)| budget.cut(text));
    let answer = match (event.agent, text) {
        (HookAgent::Claude | HookAgent::Codex, None) => return String::new(),
        // These agents parse the output as JSON, so it must not be empty.
        (HookAgent::Gemini | HookAgent::Cursor | HookAgent::OpenCode, None) => json!({}),
        (HookAgent::Claude, Some(text))
            if matches!(event.kind, HookEventKind::PreCompact { .. }) =>
        {
            return text.to_owned();
        }
        (HookAgent::Claude | HookAgent::Codex | HookAgent::Gemini, Some(text)) => {
            json!({ "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text } })
        }
        (HookAgent::Cursor, Some(text)) => json!({ "additional_context": text }),
        (HookAgent::OpenCode, Some(text)) => json!({ "context": [text] }),
    };
    format!("{answer}\n")
}
