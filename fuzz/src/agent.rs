//! What agents write: transcripts and hook payloads.

use crate::NOW;
use forge_agents::claude_code::{Dialect, Ending, Options, Reader};
use forge_agents::hook::{Agent, Event, answer, tool_facts};

/// A transcript is read or its lines are reported, whole as in parts.
fn transcript(dialect: Dialect, data: &[u8]) {
    let Some((cut, text)) = data.split_first() else { return };
    let options = Options { dialect, infer: cut & 1 == 1, max_line: 4096, ..Options::default() };
    let mut whole = Reader::new(options);
    let all = whole.read(text, Ending::File, NOW).expect("without strict no line is an error");
    assert!(all.taken as usize <= text.len());
    assert!(all.facts.iter().all(|fact| !fact.id.is_empty()));

    // The same in two parts, the second by a reader that goes on where the first stopped.
    let at = text.len() * usize::from(*cut) / 256;
    let mut first = Reader::new(options);
    let one = first.read(&text[..at], Ending::More, NOW).expect("no line is an error");
    let carry = first.into_carry();
    assert_eq!(carry.offset(), one.taken);
    let mut second = Reader::resume(options, carry);
    let two =
        second.read(&text[one.taken as usize..], Ending::File, NOW).expect("no line is an error");
    assert_eq!(one.taken + two.taken, all.taken);
    assert_eq!(
        one.facts.len() + two.facts.len(),
        all.facts.len(),
        "parts give the facts of the whole"
    );
    assert_eq!([one.facts, two.facts].concat(), all.facts);
    assert_eq!([one.skipped, two.skipped].concat(), all.skipped);
    assert_eq!([one.checkpoints, two.checkpoints].concat(), all.checkpoints);
}

/// Transcripts of Claude Code.
pub fn claude_code(data: &[u8]) {
    transcript(Dialect::ClaudeCode, data);
}

/// Rollouts of Codex.
pub fn codex(data: &[u8]) {
    transcript(Dialect::Codex, data);
}

/// Recordings of Gemini CLI.
pub fn gemini(data: &[u8]) {
    transcript(Dialect::Gemini, data);
}

/// What agents hand to hooks.
pub fn hook(data: &[u8]) {
    let Some((which, input)) = data.split_first() else { return };
    let agent = Agent::ALL[usize::from(*which) % Agent::ALL.len()];
    let name =
        ["", "PreToolUse", "PostToolUse", "SessionStart", "Stop", "UserPromptSubmit", "PreCompact"]
            [usize::from(*which) / Agent::ALL.len() % 7];
    let Ok(event) = Event::read(agent, name, input) else { return };
    drop(tool_facts(&event, NOW));
    for text in [None, Some("what is known\nof it")] {
        let answer = answer(&event, text);
        assert!(
            answer.trim().is_empty() || serde_json::from_str::<serde_json::Value>(&answer).is_ok(),
            "an answer is JSON or nothing: {answer}"
        );
    }
}
