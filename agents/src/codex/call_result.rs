//! Parses the text that the model receives as the result of a call: how a command ended, and
//! whether it started at all.

use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::LineContext;
use crate::lenient::{LenientBool, LenientId, LenientInteger, LenientText, object, parse_object};
use crate::long_text;
use forge_store::model::Value;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// What a result says about the run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CodexRunStatus {
    pub(super) exit_code: Option<i64>,
    pub(super) outcome: &'static str,
    pub(super) duration_ms: Option<i64>,
    /// The range of the output in the text; for a refusal, the range of the reason.
    pub(super) part: Range<usize>,
    /// Whether the command or tool did not start.
    pub(super) not_started: bool,
    /// The id of the process that still runs.
    pub(super) process: Option<String>,
    /// Whether the result itself reports success.
    pub(super) success: Option<bool>,
}

/// A result: its text, the pointer to it, and its meaning.
#[derive(Debug)]
pub(super) struct CodexCallResult {
    pub(super) text: String,
    pub(super) pointer: String,
    pub(super) status: CodexRunStatus,
}

impl CodexCallResult {
    /// Returns the output; for a refusal, the reason.
    pub(super) fn output(&self) -> &str {
        self.text.get(self.status.part.clone()).unwrap_or_default()
    }

    /// Returns the output as the value of a fact of this line.
    pub(super) fn shown(&self, line: &LineContext) -> Value {
        line.part(&self.text, self.status.part.clone(), &self.pointer)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct StructuredOutput<'a> {
    output: LenientText<'a>,
    content: LenientText<'a>,
    success: LenientBool,
    metadata: Option<&'a RawValue>,
    exit_code: LenientInteger,
    session_id: LenientId,
    wall_time_seconds: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputMetadata<'a> {
    exit_code: LenientInteger,
    #[serde(borrow)]
    duration_seconds: Option<&'a RawValue>,
}

/// Parses a result.
pub(super) fn read(raw: Option<&RawValue>) -> Option<CodexCallResult> {
    let json = raw?.get();
    let Ok(text) = serde_json::from_str::<String>(json) else {
        // Newer results are a list of blocks, or an object with the text and the success.
        if let Some(StructuredOutput { content: LenientText(Some(text)), success, .. }) =
            parse_object(json)
        {
            let (text, success) = (text.into_owned(), success.0);
            let mut status = parse_run_status(&text);
            status.success = success;
            if status.exit_code.is_none() && matches!(status.outcome, "unknown" | "finished") {
                status.outcome = match success {
                    Some(true) => "finished",
                    Some(false) => "failed",
                    None => status.outcome,
                };
            }
            let pointer = "/output/content".to_owned();
            return Some(CodexCallResult { text, pointer, status });
        }
        // A list of images has no text.
        let (text, pointer) = long_text::content_text(raw, "/output")
            .or_else(|| json.starts_with('[').then(Default::default))?;
        let status = parse_run_status(&text);
        return Some(CodexCallResult { text, pointer, status });
    };
    // The first versions of the shell tool answered in JSON.
    let structured: Option<StructuredOutput<'_>> = parse_object(&text);
    if let Some(structured) = structured
        && let Some(output) = structured.output.0
    {
        let output = output.into_owned();
        let metadata: OutputMetadata<'_> = object(structured.metadata);
        // Only with this field are the others Codex's own, and not fields of a program's output.
        let waited = structured.wall_time_seconds;
        let exit_code =
            metadata.exit_code.0.or(structured.exit_code.0.filter(|_| waited.is_some()));
        let seconds = metadata.duration_seconds.or(waited).and_then(|raw| raw.get().parse().ok());
        let process = structured.session_id.0;
        let process = process.filter(|_| waited.is_some() && exit_code.is_none());
        let mut status = CodexRunStatus {
            exit_code,
            outcome: if process.is_some() { "background" } else { outcome(exit_code) },
            duration_ms: seconds.map(milliseconds),
            part: 0..output.len(),
            process,
            ..CodexRunStatus::default()
        };
        status.stop_at_timeout(&output);
        let pointer = "/output#json/output".to_owned();
        return Some(CodexCallResult { text: output, pointer, status });
    }
    let status = parse_run_status(&text);
    Some(CodexCallResult { text, pointer: "/output".to_owned(), status })
}

/// The outcome of a run that ended with this exit code.
pub(super) fn outcome(exit_code: Option<i64>) -> &'static str {
    match exit_code {
        None => "unknown",
        Some(0) => "finished",
        Some(_) => "failed",
    }
}

/// A duration: seconds and nanoseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexDuration {
    secs: u64,
    nanos: u32,
}

/// Reads a duration, and returns it in milliseconds.
pub(super) fn duration_ms(raw: Option<&RawValue>) -> Option<i64> {
    let CodexDuration { secs, nanos } = parse_object(raw?.get())?;
    i64::try_from(secs.checked_mul(1000)?.checked_add(u64::from(nanos / 1_000_000))?).ok()
}

#[expect(clippy::cast_possible_truncation, reason = "a cast from float to whole number saturates")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

/// The header lines above the output of a command.
const HEADS: [&str; 8] = [
    "Chunk ID:",
    "Wall time",
    "Exit code:",
    "Process exited with code",
    "Process running with session ID",
    "Original token count:",
    "Total output lines:",
    "Warning: truncated output",
];

/// Parses the header above `Output:`, or a text without this header.
pub(super) fn parse_run_status(text: &str) -> CodexRunStatus {
    let begin = after_command(text.trim_start());
    let skipped = text.len() - begin.len();
    if !HEADS.iter().any(|head| begin.starts_with(head)) && !begin.starts_with("Output:") {
        return without_head(text);
    }
    let mut status = CodexRunStatus {
        part: text.len()..text.len(),
        outcome: "unknown",
        ..CodexRunStatus::default()
    };
    let mut at = skipped;
    for line in begin.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if matches!(line, "Output:" | "Final output:") {
            status.part = at..text.len();
            break;
        }
        if line == "aborted by user" {
            status.outcome = "interrupted";
        }
        let after = |name: &str| line.strip_prefix(name).map(str::trim);
        if let Some(code) = after("Exit code:").or_else(|| after("Process exited with code")) {
            status.exit_code = code.parse().ok();
        } else if let Some(time) = after("Wall time:").or_else(|| after("Duration:")) {
            let seconds = time.split(' ').next().and_then(|it| it.parse::<f64>().ok());
            status.duration_ms = seconds.map(milliseconds);
        } else if let Some(process) = after("Process running with session ID") {
            status.process = Some(process.to_owned());
        }
    }
    if status.exit_code.is_some() {
        status.process = None;
        status.outcome = outcome(status.exit_code);
        status.stop_at_timeout(text.get(status.part.clone()).unwrap_or_default());
    } else if status.process.is_some() {
        status.outcome = "background";
    }
    status
}

/// Skips the command line with which results of older versions begin. It may span several lines.
fn after_command(text: &str) -> &str {
    if !text.starts_with("Command: ") {
        return text;
    }
    let next = ["\nChunk ID: ", "\nWall time: "].iter().filter_map(|head| text.find(head)).min();
    next.and_then(|at| text.get(at + 1..)).unwrap_or(text)
}

/// Returns the exit code of a patch that a command line applies. The output of the command contains
/// the result of the patch.
pub(super) fn inner_exit_code(output: &str) -> Option<i64> {
    match parse_object::<StructuredOutput<'_>>(output) {
        Some(structured) => object::<OutputMetadata<'_>>(structured.metadata).exit_code.0,
        None => parse_run_status(output).exit_code,
    }
}

/// Extracts the output of commands from the results that a script printed. Other lines are kept.
pub(super) fn printed(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let output = parse_object::<StructuredOutput<'_>>(line).and_then(|it| it.output.0);
        output.map_or_else(|| line.to_owned(), Cow::into_owned)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the output of a command says that Codex stopped it after its time.
pub(super) fn says_timed_out(output: &str) -> bool {
    output.starts_with("command timed out after ")
}

impl CodexRunStatus {
    fn stop_at_timeout(&mut self, output: &str) {
        if says_timed_out(output) {
            self.outcome = "timed_out";
        }
    }
}

/// Parses a result that is a message of Codex, not the output of a command.
fn without_head(text: &str) -> CodexRunStatus {
    let begin = text.trim_start();
    let whole = CodexRunStatus { part: 0..text.len(), ..CodexRunStatus::default() };
    if let Some(part) = refusal(text) {
        // A failure to start a process has the same form.
        let reason = text.get(part.clone()).unwrap_or_default();
        let outcome = if reason.starts_with("Failed to ") { "failed" } else { REFUSED };
        return CodexRunStatus { outcome, part, not_started: true, ..whole };
    }
    let starts = |begins: &[&str]| begins.iter().any(|it| begin.starts_with(it));
    // A program may print such a line after others.
    let cancelled = begin.lines().nth(1).is_none()
        && begin.trim_end().ends_with(" was cancelled before receiving a response");
    // The whole text of an answer that Codex made up, because a call had none.
    let aborted = begin.trim_end() == "aborted";
    if cancelled || aborted || starts(&["aborted by user", "command aborted by user"]) {
        let seconds = begin.rsplit_once("after ").and_then(|(_, it)| it.strip_suffix('s'));
        let duration_ms = seconds.and_then(|it| it.parse::<f64>().ok()).map(milliseconds);
        return CodexRunStatus { outcome: "interrupted", duration_ms, ..whole };
    }
    if starts(&["command timed out", "execution error: Sandbox(Timeout"]) {
        return CodexRunStatus { outcome: "timed_out", ..whole };
    }
    // If the sandbox stopped the command while it ran, the error has the exit code.
    let denials = ["SandboxDenied {", "Sandbox(Denied {"];
    if let Some((_, after)) = denials.into_iter().find_map(|denial| begin.split_once(denial)) {
        let code = after.split_once("exit_code: ").and_then(|(_, code)| {
            let end = code.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(code.len());
            code.get(..end)?.parse().ok()
        });
        if starts(&["exec_command failed", "execution error"]) {
            let outcome = if code.is_some() { "failed" } else { REFUSED };
            return CodexRunStatus {
                exit_code: code,
                outcome,
                not_started: code.is_none(),
                ..whole
            };
        }
    }
    // Older versions wrote the exit code of a command that ran in the sandbox into a sentence.
    if begin.starts_with("failed in sandbox ")
        && let Some((_, after)) = begin.split_once("exit code: ")
    {
        let end = after.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(after.len());
        let exit_code = after.get(..end).and_then(|code| code.parse().ok());
        return CodexRunStatus { exit_code, outcome: outcome(exit_code), ..whole };
    }
    let failures = [
        "exec_command failed",
        "Failed to create unified exec process",
        "execution error",
        "failed to ",
        "unsupported call",
        "unsupported custom tool call",
        "unable to ",
        "apply_patch verification failed",
        "apply_patch handler received",
        "write_stdin failed",
        "Invalid patch",
        "tool call error",
        "resources/list failed",
        "resources/read failed",
        "err: \"",
        "image path `",
    ];
    let first = begin.lines().next().unwrap_or_default();
    if starts(&failures) || first.ends_with(" is not allowed in Plan mode") {
        return CodexRunStatus { outcome: "failed", not_started: true, ..whole };
    }
    CodexRunStatus { outcome: "unknown", ..whole }
}

/// Beginnings of Codex's messages that a call of any tool was not allowed.
const NOT_ALLOWED: [&str; 3] = [
    "This action was rejected",
    "Tool call blocked by ",
    "The automatic permission approval review did not finish",
];

/// The range of the reason in a message, if it says that a call did not run.
fn refusal(text: &str) -> Option<Range<usize>> {
    let begin = text.trim_start();
    let start = text.len() - begin.len();
    let whole = start..text.len();
    let reported = ["exec_command failed", "execution error", "Script error", "Rejected("];
    if reported.iter().any(|it| begin.starts_with(it)) {
        // The reason is an escaped string inside the text: `Rejected(\"...\")`.
        let at = text.find("Rejected(")? + "Rejected(".len();
        let inner = text.get(at..)?;
        let from = at + inner.len() - inner.trim_start_matches(['\\', '"']).len();
        let to = text.get(from..)?.rfind("\")").map_or(text.len(), |end| from + end);
        let to = from + text.get(from..to)?.trim_end_matches(['\\', '"']).len();
        return Some(from..to);
    }
    let begins = [
        "exec command rejected", "patch rejected", "rejected: ", "approval policy is ",
        "approval required by policy", "command not allowed", "Command blocked by ",
        "MCP tool call blocked",
    ];
    let mut begins = begins.iter().chain(&NOT_ALLOWED);
    let rejected = begin.starts_with('`') && begin.contains("` rejected: ");
    let refused = rejected || says_refused(begin) || begins.any(|it| begin.starts_with(it));
    refused.then_some(whole)
}

/// Whether the first line of a message of Codex says that the person, a policy or a hook did not
/// allow a call.
pub(super) fn says_refused(message: &str) -> bool {
    let message = message.trim_start().trim_start_matches("err: \"");
    if is_answer(message) {
        return false;
    }
    let first = message.lines().next().unwrap_or_default().to_ascii_lowercase();
    let without_article = |text: &str| text.strip_prefix("the ").unwrap_or(text).to_owned();
    let refusals = ["rejected ", "denied ", "declined ", "cancelled ", "did not approve "];
    let by_user = without_article(&first)
        .strip_prefix("user ")
        .is_some_and(|rest| refusals.iter().any(|refusal| rest.starts_with(refusal)));
    let verbs = ["rejected by ", "denied by ", "declined by ", "blocked by "];
    let who = ["user", "policy", "hook", "pretooluse hook", "guardian", "configuration"];
    by_user
        || verbs.iter().any(|verb| {
            first.match_indices(verb).any(|(at, _)| {
                let before = first.get(..at).unwrap_or_default();
                let after = without_article(first.get(at + verb.len()..).unwrap_or_default());
                // Not in the name of a file.
                !before.ends_with(['/', '\\', '-', '_'])
                    && who.iter().any(|it| after.starts_with(it))
            })
        })
}

/// Whether a message has the form of a tool's own answer: JSON, the numbered lines of a file, or
/// the error of an MCP server.
fn is_answer(message: &str) -> bool {
    let number = message.strip_prefix('L').and_then(|rest| rest.split_once(": "));
    message.starts_with(['[', '{'])
        || message.starts_with("tool call error")
        || number.is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the output of a call to an MCP server is Codex's message that the call was not allowed.
/// It is a text, or the first text in a list of content blocks.
pub(super) fn is_refused_mcp_call(output: &str) -> bool {
    let text = output.trim().trim_start_matches("[{\"type\":\"text\",\"text\":\"");
    let text = text.trim_start_matches("err: \"");
    let refusals = [
        "user rejected MCP tool call", "user cancelled MCP tool call", "MCP tool call blocked by ",
    ];
    let mut refusals = refusals.iter().chain(&NOT_ALLOWED);
    text == "rejected by user" || refusals.any(|refusal| text.starts_with(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_read_from_the_lines_above_its_output() {
        for (text, exit_code, outcome, duration_ms, rest) in [
            (
                "Exit code: 1\nWall time: 0.5 seconds\nOutput:\nno\n",
                Some(1),
                "failed",
                Some(500),
                "no\n",
            ),
            (
                "Chunk ID: 1a\nWall time: 2.0000 seconds\nProcess exited with code 0\nOutput:\nok",
                Some(0),
                "finished",
                Some(2000),
                "ok",
            ),
            ("Process exited with code 0\nFinal output:\nok", Some(0), "finished", None, "ok"),
            (
                "Command: /bin/bash -lc 'echo a\nExit code: 7\nOutput:\n'\nChunk ID: 1a\nWall time: 1.0 seconds\nProcess exited with code 0\nOutput:\nok",
                Some(0),
                "finished",
                Some(1000),
                "ok",
            ),
            (
                "Wall time: 10 seconds\nProcess running with session ID 7\nOutput:\n",
                None,
                "background",
                Some(10_000),
                "",
            ),
            (
                "Exit code: 124\nWall time: 9 seconds\nOutput:\ncommand timed out after 9000 milliseconds\nx",
                Some(124),
                "timed_out",
                Some(9000),
                "command timed out after 9000 milliseconds\nx",
            ),
            ("Wall time: 3.1 seconds\naborted by user", None, "interrupted", Some(3100), ""),
            ("aborted", None, "interrupted", None, "aborted"),
            ("aborted 3 jobs", None, "unknown", None, "aborted 3 jobs"),
            (
                "aborted by user after 3.1s",
                None,
                "interrupted",
                Some(3100),
                "aborted by user after 3.1s",
            ),
            // A header or a message that a program printed does not count.
            (
                "plain\nx was cancelled before receiving a response",
                None,
                "unknown",
                None,
                "plain\nx was cancelled before receiving a response",
            ),
            (
                "plain\nExit code: 3\nOutput:\n",
                None,
                "unknown",
                None,
                "plain\nExit code: 3\nOutput:\n",
            ),
            (
                "Wall time: 1 seconds\nOutput:\nExit code: 3\n",
                None,
                "unknown",
                Some(1000),
                "Exit code: 3\n",
            ),
        ] {
            let status = parse_run_status(text);
            let read = (status.exit_code, status.outcome, status.duration_ms);
            assert_eq!(read, (exit_code, outcome, duration_ms), "{text}");
            assert_eq!(&text[status.part], rest);
            assert!(!status.not_started, "{text}");
        }
    }

    #[test]
    fn a_result_in_json_says_how_its_command_ended() {
        for (result, exit_code, outcome, process) in [
            (r#"{"output":"x","metadata":{"exit_code":1}}"#, Some(1), "failed", None),
            (r#"{"wall_time_seconds":1.5,"exit_code":2,"output":"x"}"#, Some(2), "failed", None),
            (
                r#"{"wall_time_seconds":9,"session_id":7,"output":""}"#,
                None,
                "background",
                Some("7"),
            ),
            // A program may have printed this.
            (r#"{"exit_code":0,"output":"x"}"#, None, "unknown", None),
        ] {
            let raw = serde_json::value::to_raw_value(result).unwrap();
            let status = read(Some(&raw)).unwrap().status;
            assert_eq!((status.exit_code, status.outcome), (exit_code, outcome), "{result}");
            assert_eq!(status.process.as_deref(), process, "{result}");
        }
    }

    #[test]
    fn a_message_of_a_program_is_no_refusal() {
        for text in [
            "rejected 3 rows",
            "push declined by remote",
            "the user denied",
            // Regression: each of these answers was taken for a refusal.
            r#"[{"type":"text","text":"The review was declined by the user"}]"#,
            r#"{"log":"request denied by policy 7"}"#,
            "L12: // Requests denied by the policy are logged.",
            "/w/docs/denied by user.md",
            "tool call error: the query was rejected by policy 7",
        ] {
            assert!(!says_refused(text), "{text}");
        }
        assert!(is_refused_mcp_call(r#"[{"type":"text","text":"user rejected MCP tool call"}]"#));
        assert!(is_refused_mcp_call("This action was rejected due to unacceptable risk."));
        assert!(!is_refused_mcp_call("text: user rejected MCP tool call"));
    }

    #[test]
    fn a_call_that_was_not_allowed_is_refused_with_its_reason() {
        for (text, reason) in [
            ("exec command rejected by user", "exec command rejected by user"),
            (
                r#"exec_command failed for `/bin/sh -lc 'make'`: CreateProcess { message: "Rejected(\"rejected by user\")" }"#,
                "rejected by user",
            ),
            (
                r#"exec_command failed for `make`: CreateProcess { message: "Rejected(\"`make` rejected: blocked by policy\")" }"#,
                "`make` rejected: blocked by policy",
            ),
            (r#"exec_command failed: Rejected("risky")"#, "risky"),
            ("patch rejected by user", "patch rejected by user"),
            ("The user declined to run this command", "The user declined to run this command"),
            ("Request denied by the user", "Request denied by the user"),
            (
                "Tool call blocked by PreToolUse hook: no",
                "Tool call blocked by PreToolUse hook: no",
            ),
            ("user cancelled MCP tool call", "user cancelled MCP tool call"),
            ("`rm -rf x` rejected: blocked by policy", "`rm -rf x` rejected: blocked by policy"),
            (
                "exec_command failed for `a`: SandboxDenied { message: \"no\" }",
                "exec_command failed for `a`: SandboxDenied { message: \"no\" }",
            ),
        ] {
            let status = parse_run_status(text);
            assert_eq!((status.outcome, status.exit_code), ("refused", None), "{text}");
            assert!(status.not_started);
            assert_eq!(&text[status.part], reason);
        }
    }

    #[test]
    fn a_failure_to_start_has_no_exit_code() {
        for text in [
            r#"exec_command failed for `x`: CreateProcess { message: "No such file or directory (os error 2)" }"#,
            r#"exec_command failed: CreateProcess { message: "Rejected(\"Failed to create unified exec process: No such file or directory (os error 2)\")" }"#,
            "execution error: Io(Os { code: 2, kind: NotFound, message: \"No such file\" })",
            "failed to parse function arguments: x",
            "update_plan is a TODO/checklist tool and is not allowed in Plan mode",
            "tool call error: timed out",
        ] {
            let status = parse_run_status(text);
            assert_eq!(
                (status.outcome, status.exit_code, status.not_started),
                ("failed", None, true)
            );
        }
        for text in [
            r#"exec_command failed for `x`: SandboxDenied { message: "no", output: ExecToolCallOutput { exit_code: 101, stdout"#,
            "execution error: Sandbox(Denied { output: ExecToolCallOutput { exit_code: 101, stdout",
        ] {
            let status = parse_run_status(text);
            assert_eq!(
                (status.outcome, status.exit_code, status.not_started),
                ("failed", Some(101), false)
            );
        }
        let text = "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: 101, stdout: , stderr: x";
        let status = parse_run_status(text);
        assert_eq!(
            (status.outcome, status.exit_code, status.not_started),
            ("failed", Some(101), false)
        );
    }
}
