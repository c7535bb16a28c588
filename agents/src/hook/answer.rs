//! What is said back, in the agent's own form and within what it takes.

use super::event::{Agent, Event, Happening};
use serde_json::json;

/// How much text an agent takes back at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// At most so many UTF-16 units: what its agents, most of them in JavaScript, count as characters.
    pub units: usize,
    /// At most so many bytes: where an agent counts tokens, three bytes are one.
    pub bytes: usize,
}

impl Room {
    /// Whether this text fits.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        text.len() <= self.bytes && text.encode_utf16().count() <= self.units
    }

    /// The longest beginning of a text that fits, cut at the end of a line where there is one.
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

/// How much text the agent takes back at this event; `None` if none.
#[must_use]
pub fn room(event: &Event) -> Option<Room> {
    const UNITS: usize = 10_000;
    // 2,500 tokens; what is longer goes to a file that the model does not see.
    const CODEX_BYTES: usize = 7_500;
    let taken = matches!(
        (event.agent, &event.happening),
        (Agent::Cursor, Happening::SessionStart { .. })
            | (
                Agent::Claude | Agent::Codex | Agent::Gemini,
                Happening::SessionStart { .. } | Happening::Prompt { .. },
            )
            // It has no event after a compaction: the result of the next tool is the first place for a text.
            | (Agent::Gemini, Happening::ToolUsed(_))
            | (Agent::OpenCode, Happening::PreCompact { .. } | Happening::BeforeModel)
    );
    let bytes = if event.agent == Agent::Codex { CODEX_BYTES } else { usize::MAX };
    taken.then_some(Room { units: UNITS, bytes })
}

/// What to print for this event: with `text` for the model where [`room`] says that there is some; what does not fit is
/// cut. Empty where nothing is to be printed.
#[must_use]
pub fn answer(event: &Event, text: Option<&str>) -> String {
    let text = text.filter(|text| !text.is_empty()).zip(room(event));
    let text = text.map(|(text, room)| room.cut(text));
    let answer = match (event.agent, text) {
        (Agent::Claude | Agent::Codex, None) => return String::new(),
        // These parse whatever is printed.
        (Agent::Gemini | Agent::Cursor | Agent::OpenCode, None) => json!({}),
        (Agent::Claude | Agent::Codex | Agent::Gemini, Some(text)) => {
            json!({ "hookSpecificOutput": { "hookEventName": event.name, "additionalContext": text } })
        }
        (Agent::Cursor, Some(text)) => json!({ "additional_context": text }),
        (Agent::OpenCode, Some(text)) => json!({ "context": [text] }),
    };
    format!("{answer}\n")
}
