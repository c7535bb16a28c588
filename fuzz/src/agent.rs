//! Input from agents: transcripts and hook payloads.

use crate::NOW;
use forge_agents::claude_code::{
    InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader,
};
use forge_agents::hook::{HookAgent, HookEvent, HookEventKind, answer, tool_facts};

/// Each line of a transcript is read or reported, with the same result at once and in two parts.
fn transcript(dialect: TranscriptDialect, data: &[u8]) {
    let Some((cut, text)) = data.split_first() else { return };
    let options = TranscriptOptions {
        dialect,
        infer: cut & 1 == 1,
        max_line: 4096,
        ..TranscriptOptions::default()
    };
    let mut whole = TranscriptReader::new(options);
    let all = whole.read(text, InputEnding::File, NOW).expect("without strict no line is an error");
    assert!(all.taken as usize <= text.len());
    assert!(all.facts.iter().all(|fact| !fact.id.is_empty()));

    // In two parts, the second reader continues where the first one stopped.
    let at = text.len() * usize::from(*cut) / 256;
    let mut first = TranscriptReader::new(options);
    let one = first.read(&text[..at], InputEnding::More, NOW).expect("no line is an error");
    let carry = first.into_carry();
    assert_eq!(carry.offset(), one.taken);
    let mut second = TranscriptReader::resume(options, carry);
    let two = second
        .read(&text[one.taken as usize..], InputEnding::File, NOW)
        .expect("no line is an error");
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

/// Reads transcripts of Claude Code.
pub fn claude_code(data: &[u8]) {
    transcript(TranscriptDialect::ClaudeCode, data);
}

/// Reads rollouts of Codex.
pub fn codex(data: &[u8]) {
    transcript(TranscriptDialect::Codex, data);
}

/// Reads recordings of Gemini CLI.
pub fn gemini(data: &[u8]) {
    transcript(TranscriptDialect::Gemini, data);
}

/// Hook payloads: each is refused, or gives facts and an answer in a valid form.
pub fn hook(data: &[u8]) {
    let Some((which, input)) = data.split_first() else { return };
    let agent = HookAgent::ALL[usize::from(*which) % HookAgent::ALL.len()];
    let name =
        ["", "PreToolUse", "PostToolUse", "SessionStart", "Stop", "UserPromptSubmit", "PreCompact"]
            [usize::from(*which) / HookAgent::ALL.len() % 7];
    let Ok(event) = HookEvent::read(agent, name, input) else { return };
    drop(tool_facts(&event, NOW));
    for text in [None, Some("what is known\nof it")] {
        let answer = answer(&event, text);
        let is_json = serde_json::from_str::<serde_json::Value>(&answer).is_ok();
        // Claude Code adds the plain text of this answer to the prompt of its summary.
        let is_before_compaction =
            agent == HookAgent::Claude && matches!(event.kind, HookEventKind::PreCompact { .. });
        let is_text = is_before_compaction && Some(answer.as_str()) == text;
        assert!(
            answer.trim().is_empty() || is_json || is_text,
            "an answer is JSON, the text for a summary, or nothing: {answer}"
        );
    }
}
