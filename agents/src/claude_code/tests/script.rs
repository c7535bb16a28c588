//! Builds transcripts for tests.

#![expect(clippy::needless_pass_by_value, reason = "`json!` in a call reads better without `&`")]

use super::*;
use serde_json::{Value as Json, json};

/// A transcript, built line by line. Each line has its number as uuid (`m1`, ...) and its own time.
#[derive(Clone, Debug, Default)]
pub(super) struct Script {
    pub(super) text: String,
    lines: usize,
    seconds: i64,
}

impl Script {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Moves the clock by this number of seconds, which can be negative. Each line then adds one
    /// second.
    pub(super) fn after(mut self, seconds: i64) -> Self {
        self.seconds += seconds;
        self
    }

    /// Adds a line of this type with these fields.
    pub(super) fn line(mut self, kind: &str, fields: Json) -> Self {
        self.lines += 1;
        self.seconds += 1;
        let mut line = json!({
            "type": kind,
            "uuid": format!("m{}", self.lines),
            "timestamp": time(self.seconds).to_string(),
            "sessionId": "s",
            "cwd": "/work",
            "gitBranch": "main",
        });
        let added = fields.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(added);
        self.text.push_str(&line.to_string());
        self.text.push('\n');
        self
    }

    pub(super) fn user(self, text: &str) -> Self {
        self.line("user", json!({ "message": { "role": "user", "content": text } }))
    }

    pub(super) fn call(self, id: &str, tool: &str, input: Json) -> Self {
        self.line("assistant", json!({ "message": called(id, tool, input) }))
    }

    /// Adds a result without an error, with `tool_use_result` as its `toolUseResult`.
    pub(super) fn result(self, id: &str, output: &str, tool_use_result: Json) -> Self {
        self.line(
            "user",
            json!({ "message": answered(id, output, false), "toolUseResult": tool_use_result }),
        )
    }

    pub(super) fn error(self, id: &str, output: &str, tool_use_result: Json) -> Self {
        self.line(
            "user",
            json!({ "message": answered(id, output, true), "toolUseResult": tool_use_result }),
        )
    }

    pub(super) fn bash(self, command: &str, output: &str, tool_use_result: Json) -> Self {
        self.call("c", "Bash", json!({ "command": command })).result("c", output, tool_use_result)
    }

    pub(super) fn failed(self, command: &str, output: &str) -> Self {
        let tool_use_result = json!(format!("Error: {output}"));
        self.call("c", "Bash", json!({ "command": command })).error("c", output, tool_use_result)
    }

    /// Adds a line of a sub-agent inside a progress line of the call `task`.
    pub(super) fn progress(mut self, agent: &str, kind: &str, message: &Json) -> Self {
        let nested = json!({
            "type": kind,
            "uuid": format!("n{}", self.lines + 1),
            "timestamp": time(self.seconds + 1).to_string(),
            "message": message,
        });
        let data = json!({
            "type": "agent_progress", "agentId": agent, "prompt": "look around", "message": nested,
        });
        // The line itself is written later than the message inside it.
        self.seconds += 10;
        let mut script = self.line("progress", json!({ "data": data, "parentToolUseID": "task" }));
        script.seconds -= 10;
        script
    }

    pub(super) fn read(&self) -> TranscriptPiece {
        let piece = read_whole(self.text.as_bytes());
        assert_eq!(piece.skipped, []);
        assert_eq!(piece.taken, self.text.len() as u64);
        piece
    }
}

pub(super) fn called(id: &str, tool: &str, input: Json) -> Json {
    json!({
        "role": "assistant", "id": "msg", "model": "a-model",
        "content": [{ "type": "tool_use", "id": id, "name": tool, "input": input }],
    })
}

pub(super) fn answered(id: &str, output: &str, error: bool) -> Json {
    json!({
        "role": "user",
        "content": [
            { "type": "tool_result", "tool_use_id": id, "content": output, "is_error": error },
        ],
    })
}

/// Returns the time that is this number of seconds after the start of the transcript.
pub(super) fn time(seconds: i64) -> Timestamp {
    Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap().plus_micros(seconds * 1_000_000)
}
