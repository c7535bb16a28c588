//! How a shell command ended, read from the text of the tool `run_shell_command`.
//!
//! The tool writes each field of a run on a line. Newer versions omit empty fields: no `Exit Code`
//! line means code 0, but only in the text of a run that ended by itself. Earlier versions write
//! every field, with `(none)` for unknown values.

use crate::claude_code::command::REFUSED;
use std::ops::Range;

/// How a command ended, as far as its result says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GeminiCommandEnd<'t> {
    pub(super) outcome: &'static str,
    pub(super) exit_code: Option<i64>,
    /// The number or name of the signal that ended it.
    pub(super) signal: Option<&'t str>,
    /// The process that still runs in the background.
    pub(super) pid: Option<&'t str>,
    /// The range of the output in the text; for a command that was refused, of the reason.
    pub(super) output: Range<usize>,
}

/// Beginnings of the client's texts about calls that did not start, because the client, a rule, a
/// hook or the person did not allow it.
const NOT_STARTED: &[&str] = &[
    "[Operation Cancelled] Reason: User denied execution",
    "[Operation Cancelled] Reason: User did not allow tool call",
    "[Operation Cancelled] Reason: User cancelled operation",
    "[Operation Cancelled] Reason: Tool call cancelled while in queue",
    "Tool call cancelled while in queue",
    "Tool execution denied by policy",
    "Tool execution blocked:",
    "Agent execution stopped by hook:",
    "Command was cancelled by user before it could start",
    "Command injection detected:",
    "Command rejected",
    "Command is not allowed: ",
    "Command substitution using ",
    "Command(s) not in the allowed commands list.",
    "Command(s) not on the allowed commands list.",
    "Invalid parameters provided.",
    "params must have required property ",
    "Path not in workspace",
];

/// Whether the result of a call says that it never started.
pub(super) fn not_started(answer: &str) -> bool {
    NOT_STARTED.iter().any(|begin| answer.starts_with(begin))
        || answer.trim_end() == "[Operation Cancelled] Reason: Operation cancelled"
        || (answer.starts_with("Tool execution for ")
            && (answer.contains(" denied by policy")
                || answer.contains(" requires user confirmation")))
        || (answer.starts_with("Command '")
            && (answer.contains("' is blocked by configuration")
                || answer.contains("' is not in the allowed commands list")))
        || is_unknown_tool(answer)
}

/// Whether the result of a shell call says that the command or its directory cannot be used. The
/// answer of another tool may begin so.
fn is_unusable(answer: &str) -> bool {
    const BEGINS: &[&str] = &[
        "Command cannot be empty.",
        "Could not identify command root to obtain permission",
        "Directory cannot be absolute.",
    ];
    BEGINS.iter().any(|begin| answer.starts_with(begin))
        || (answer.starts_with("Directory '")
            && (answer.contains("' is not a registered workspace directory")
                || answer.contains("' is not within any of the registered workspace directories")))
}

/// Whether the answer says that the client has no tool with the name that the model called.
fn is_unknown_tool(answer: &str) -> bool {
    let name = answer.strip_prefix("Tool \"").and_then(|rest| rest.split_once('"'));
    name.is_some_and(|(_, rest)| rest.starts_with(" not found"))
}

/// Parses the result of a shell call. `status` is the status of the call, `error` the error in its
/// response.
pub(super) fn ended<'t>(
    status: &str,
    answer: &'t str,
    error: Option<&str>,
) -> GeminiCommandEnd<'t> {
    let inside = unwrapped(answer);
    let text = answer.get(inside.clone()).unwrap_or_default();
    let end = |outcome| GeminiCommandEnd {
        outcome,
        exit_code: None,
        signal: None,
        pid: None,
        output: inside.clone(),
    };
    let first = first_line(text);
    let is_refused = |answer: &str| not_started(answer) || is_unusable(answer);
    if is_refused(text) || error.is_some_and(is_refused) {
        return end(REFUSED);
    }
    if first.starts_with("Command ")
        && (first.contains(" exceeded the timeout") || first.contains(" timed out"))
    {
        return end("timed_out");
    }
    if status == "cancelled" || first.starts_with("Command was cancelled by user") {
        return end("interrupted");
    }
    for begin in ["Command moved to background (PID: ", "Command is running in background. PID: "] {
        if let Some(rest) = first.strip_prefix(begin) {
            let pid = rest.get(..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
            return GeminiCommandEnd {
                pid: pid.filter(|pid| !pid.is_empty()),
                ..end("background")
            };
        }
    }
    if status == "error" {
        return end("failed");
    }
    let run = ShellRunFields::read(text);
    let code = run.exit_code.and_then(|code| code.parse().ok());
    let (outcome, exit_code) = match (code, run.signal) {
        (Some(0), None) => ("finished", code),
        (Some(_), _) => ("failed", code),
        (None, Some(_)) => ("failed", None),
        (None, None) if run.background => ("background", None),
        (None, None) if run.omits_zero => ("finished", Some(0)),
        (None, None) => ("unknown", None),
    };
    let output = inside.start + run.output.start..inside.start + run.output.end;
    GeminiCommandEnd { exit_code, signal: run.signal, output, ..end(outcome) }
}

/// The mark that newer versions put before a result.
const UNTRUSTED: &str = "<untrusted_context>\n";

/// Returns the first line of a result. It may be below a line that says how much of the text is
/// left out.
fn first_line(text: &str) -> &str {
    let shortened = text.starts_with("Output too large.");
    let rest = text.split_once('\n').filter(|_| shortened).map_or(text, |(_, rest)| rest);
    let rest = rest.strip_prefix(UNTRUSTED).unwrap_or(rest);
    rest.lines().next().unwrap_or_default()
}

/// Returns the range of the text inside the marks that newer versions put around a result.
pub(crate) fn unwrapped(answer: &str) -> Range<usize> {
    let start = if answer.starts_with(UNTRUSTED) { UNTRUSTED.len() } else { 0 };
    // The end mark is escaped inside the output.
    let end = answer.find("\n</untrusted_context>").filter(|end| *end >= start);
    start..end.unwrap_or(answer.len())
}

/// Returns the text of a run without what the client adds after an empty line: that a hook changed
/// the input, or the context of a hook.
fn before_additions(text: &str) -> &str {
    let last_field = text.rfind("\nProcess Group PGID: ").map(|at| at + 1);
    let end = last_field.and_then(|at| Some(at + text.get(at..)?.find('\n')?));
    let added = |end: &usize| text.get(*end..).is_some_and(|rest| rest.starts_with("\n\n"));
    end.filter(added).and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The fields in the text of a run, without those that have no value.
#[derive(Debug, Default)]
pub(crate) struct ShellRunFields<'t> {
    pub(crate) exit_code: Option<&'t str>,
    signal: Option<&'t str>,
    background: bool,
    /// The range of the output in the text.
    pub(crate) output: Range<usize>,
    /// Whether a newer version wrote the text, which omits code 0. Its text begins with the output,
    /// that of earlier versions with the command.
    omits_zero: bool,
}

impl<'t> ShellRunFields<'t> {
    /// Reads the fields from the end, in reverse order, because the output may contain lines of the
    /// same form.
    pub(crate) fn read(text: &'t str) -> Self {
        let mut rest = before_additions(text).trim_end();
        let mut last = |label: &str| {
            let at = rest.rfind('\n').map_or(0, |at| at + 1);
            let value = rest.get(at..)?.strip_prefix(label)?;
            rest = rest.get(..at.saturating_sub(1))?;
            Some(value.trim()).filter(|value| *value != "(none)")
        };
        let _ = last("Process Group PGID: ");
        let background = last("Background PIDs: ").is_some();
        // A terminal reports signal 0 for a run that no signal ended, and exit code 0 for one that
        // a signal ended.
        let signal = last("Signal: ").filter(|signal| *signal != "0");
        let exit_code = last("Exit Code: ").filter(|code| signal.is_none() || *code != "0");
        let start = ["Output: ", "Stdout: "].into_iter().find_map(|label| {
            if rest.starts_with(label) {
                return Some(label.len());
            }
            rest.find(&format!("\n{label}")).map(|at| at + 1 + label.len())
        });
        let newer = rest.starts_with("Output: ") || rest.starts_with("Output too large.");
        let body = rest.get(start.unwrap_or(0)..).unwrap_or_default();
        // Versions that write every field put the error after the output.
        let end = if newer { None } else { body.rfind("\nError: ") };
        let start = start.unwrap_or(0);
        let output = start..start + end.unwrap_or(body.len());
        let output =
            if text.get(output.clone()) == Some("(empty)") { start..start } else { output };
        Self { exit_code, signal, background, output, omits_zero: newer && start > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{ended, not_started};

    #[test]
    fn a_result_says_how_its_command_ended() {
        for (answer, outcome, exit_code, output) in [
            ("Output: ok\nProcess Group PGID: 9", "finished", Some(0), "ok"),
            ("Output: (empty)\nProcess Group PGID: 9", "finished", Some(0), ""),
            ("Output: no\nExit Code: 1\nProcess Group PGID: 9", "failed", Some(1), "no"),
            ("Output: no\nSignal: 9\nProcess Group PGID: 9", "failed", None, "no"),
            // Such lines in the program's own output do not count.
            (
                "Output: Exit Code: 3\nError: x\nProcess Group PGID: 9",
                "finished",
                Some(0),
                "Exit Code: 3\nError: x",
            ),
            // Regression: the exit code before a note of the client was lost.
            (
                "Output: no\nExit Code: 1\nProcess Group PGID: 9\n\n[System] Tool input parameters (command) were modified by a hook before execution.",
                "failed",
                Some(1),
                "no",
            ),
            (
                "Output: no\nExit Code: 1\nProcess Group PGID: 9\n\n<hook_context>a\nb</hook_context>",
                "failed",
                Some(1),
                "no",
            ),
            (
                "Output: Process Group PGID: 1\n\nx\nProcess Group PGID: 9",
                "finished",
                Some(0),
                "Process Group PGID: 1\n\nx",
            ),
            ("Output: \nBackground PIDs: 7\nProcess Group PGID: 9", "background", None, ""),
            (
                "<untrusted_context>\nOutput: bad\nExit Code: 2\nProcess Group PGID: 9\n</untrusted_context>\n\n[System] x",
                "failed",
                Some(2),
                "bad",
            ),
            (
                "Command: ls\nDirectory: (root)\nOutput: a\nError: (none)\nExit Code: 0\nSignal: (none)",
                "finished",
                Some(0),
                "a",
            ),
            (
                "Command: ls\nOutput: a\nError: (none)\nExit Code: (none)\nSignal: (none)",
                "unknown",
                None,
                "a",
            ),
            (
                "Command: ls\nStdout: a\nStderr: (empty)\nError: (none)\nExit Code: (none)\nSignal: 15",
                "failed",
                None,
                "a\nStderr: (empty)",
            ),
            // Regression: every command that ran in a terminal was failed.
            (
                "Command: ls\nOutput: a\nError: (none)\nExit Code: 0\nSignal: 0\nProcess Group PGID: 9",
                "finished",
                Some(0),
                "a",
            ),
            (
                "Command: ls\nOutput: a\nError: (none)\nExit Code: 2\nSignal: 0\nProcess Group PGID: 9",
                "failed",
                Some(2),
                "a",
            ),
            // Regression: the check of a command that a signal ended was passed.
            (
                "Command: ls\nOutput: a\nError: (none)\nExit Code: 0\nSignal: 9\nProcess Group PGID: 9",
                "failed",
                None,
                "a",
            ),
            ("a summary of what was printed", "unknown", None, "a summary of what was printed"),
            ("", "unknown", None, ""),
        ] {
            let end = ended("success", answer, None);
            assert_eq!(
                (end.outcome, end.exit_code, &answer[end.output]),
                (outcome, exit_code, output),
                "{answer}"
            );
        }
    }

    #[test]
    fn a_stopped_or_running_command_did_not_finish() {
        let timeout = "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.";
        for (status, answer, outcome, pid) in [
            ("success", timeout, "timed_out", None),
            ("cancelled", timeout, "timed_out", None),
            // Regression: a time limit was not seen if a part of the text is left out.
            (
                "success",
                "Output too large. Showing first 8,000 characters.\n<untrusted_context>\nCommand was automatically cancelled because it exceeded the timeout of 5.0 minutes",
                "timed_out",
                None,
            ),
            (
                "success",
                "Command was cancelled by user before it could complete. There was no output",
                "interrupted",
                None,
            ),
            ("success", "Command was cancelled by user before it could start.", "refused", None),
            (
                "cancelled",
                "[Operation Cancelled] User cancelled tool execution.",
                "interrupted",
                None,
            ),
            ("cancelled", "[Operation Cancelled] Reason: User denied execution.", "refused", None),
            (
                "cancelled",
                "[Operation Cancelled] Reason: Operation cancelled by user",
                "interrupted",
                None,
            ),
            (
                "success",
                "Command moved to background (PID: 71). Output hidden.",
                "background",
                Some("71"),
            ),
            (
                "success",
                "Command is running in background. PID: 8. Initial output:\nx",
                "background",
                Some("8"),
            ),
            ("error", "Tool execution denied by policy. Not here.", "refused", None),
            (
                "error",
                "Tool execution for \"Shell\" requires user confirmation, which is not supported",
                "refused",
                None,
            ),
            ("error", "params must have required property 'command'", "refused", None),
            ("error", "Command 'rm' is blocked by configuration", "refused", None),
            ("error", "Directory '/x' is not a registered workspace directory.", "refused", None),
            (
                "success",
                "Command rejected: rm x\nReason: Command 'rm' is not in the allowed commands list",
                "refused",
                None,
            ),
            (
                "error",
                "Tool \"run_shell\" not found. Did you mean \"run_shell_command\"?",
                "refused",
                None,
            ),
            ("error", "Tool \"cargo\" failed: not found", "failed", None),
            ("error", "spawn ENOENT", "failed", None),
        ] {
            let end = ended(status, answer, None);
            assert_eq!((end.outcome, end.pid, end.exit_code), (outcome, pid, None), "{answer}");
        }
    }

    #[test]
    fn the_output_of_a_program_is_not_a_refusal() {
        assert!(!not_started("Output: Tool execution denied by policy"));
        // Regression: the use of another tool whose answer begins so was refused.
        assert!(!not_started("Directory '/x' is not a registered workspace directory."));
        assert_eq!(
            ended("success", "Output: Command timed out\nProcess Group PGID: 1", None).outcome,
            "finished"
        );
    }
}
