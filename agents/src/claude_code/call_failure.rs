//! Decides how a call ended if its result is an error. A call that never started was refused by a
//! person, a rule, a hook or a check of the client, or was cancelled together with other calls.
//!
//! Newer clients report a refusal in a field of the line (`toolDenialKind`). With older clients,
//! the text of the result begins with one of the fixed sentences of Claude Code. A command that
//! printed such a sentence did run: the client puts the exit code before the output of a command.

use super::line::CallDenial;
use std::ops::Range;

/// How a call ended, if its result is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It ran and failed.
    Failed,
    /// It never started.
    Refused,
    /// It was stopped while it ran.
    Interrupted,
    /// The record says that the outcome is not known.
    Unknown,
    /// It is a command, and the text is none of the known sentences. The text may be the output of
    /// a command that ran.
    NotRecognised,
}

impl CallFailure {
    pub(crate) fn outcome(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => super::command::REFUSED,
            Self::Interrupted => "interrupted",
            Self::Unknown | Self::NotRecognised => "unknown",
        }
    }
}

/// Beginnings of results of calls that never started.
const NEVER_STARTED: [&str; 24] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
    "User rejected tool use",
    "User denied ",
    "User declined ",
    "The user wants to clarify these questions",
    "The agent proposed a plan that was rejected by the user",
    "Auto mode could not evaluate this action",
    "Permission denied by hook",
    "Permission denied by PermissionRequest hook",
    "Tool permission request ",
    "Tool permission stream closed",
    "Tool use aborted",
    "This command requires approval",
    "Claude requested permissions to ",
    "This tool call was refused",
    "Sibling tool call errored",
    "Streaming fallback",
    "No such tool available",
    "InputValidationError",
    "Operation stopped by hook",
    "Blocked by hook",
    "[Tool call skipped",
    "[Tool call not completed",
];
/// Beginnings of such results that an error of a program, such as an MCP server, can have too. They
/// count only in the result of a command or inside the client's mark `<tool_use_error>`.
const NEVER_STARTED_IN_MARK: [&str; 3] = ["Command contains ", "Cancelled: ", "Blocked: "];
/// Parts of the first line of such results: a setting or an option of the client denied the call.
const DENIED_BY_RULE: [&str; 4] = [
    " is denied by your permission settings",
    " has been denied by permission rule '",
    "permissions.blockReadsOutsideWorkingDirectories",
    "; --restricted confines the file tools",
];
/// Beginnings of results of calls that may or may not have run.
const OUTCOME_NOT_KNOWN: [&str; 4] = [
    "[Tool call interrupted",
    "[Tool call result not in this copy",
    "[Tool call did not complete",
    "A safety monitor blocked this turn",
];
/// Beginnings of errors of a shell that could not be started.
const SHELL_NOT_STARTED: [&str; 1] = ["spawn "];
/// Part of the text if a call was refused after it had started.
const STOPPED_WHILE_RUNNING: &str = "this call was stopped while running";
/// Text before a person's reason.
const BEFORE_REASON: [&str; 3] = [
    "To tell you how to proceed, the user said:\n",
    "the following reason for the rejection:",
    "the user said:\n",
];
/// Text after a person's reason.
const AFTER_REASON: &str = "\n\nNote: The user's next message may contain a correction";

/// Returns how a call ended, from the fields of its line and its error text.
pub(crate) fn classify_failure(
    denial: &CallDenial<'_>,
    text: &str,
    is_command: bool,
) -> CallFailure {
    if denial.before_run {
        return CallFailure::Refused;
    }
    let stopped = text.contains(STOPPED_WHILE_RUNNING);
    let default = if is_command { CallFailure::NotRecognised } else { CallFailure::Failed };
    match denial.kind.text() {
        Some(_) if denial.after_run => CallFailure::Failed,
        None if denial.rejected && stopped => CallFailure::Interrupted,
        None if denial.rejected && !denial.after_run => CallFailure::Refused,
        Some("user-rejected") if stopped => CallFailure::Interrupted,
        Some("interrupted") => failure_from_text(text, is_command).unwrap_or(CallFailure::Unknown),
        Some(_) => CallFailure::Refused,
        None => failure_from_text(text, is_command).unwrap_or(default),
    }
}

/// Whether an error text says that its call never started.
pub(crate) fn is_refusal(text: &str, is_command: bool) -> bool {
    failure_from_text(text, is_command) == Some(CallFailure::Refused)
}

/// Returns how a call of a tool other than a command ended, from its error text alone.
pub(crate) fn failure_of_tool(text: &str) -> CallFailure {
    failure_from_text(text, false).unwrap_or(CallFailure::Failed)
}

/// Returns how a call ended if its error text says so.
fn failure_from_text(text: &str, is_command: bool) -> Option<CallFailure> {
    let text = text.trim_start();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let inside_mark = text.strip_prefix("<tool_use_error>");
    let text = inside_mark.unwrap_or(text);
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    let begins = |with: &[&str]| with.iter().any(|with| text.starts_with(with));
    if begins(&["[Request interrupted", "<error>Command was aborted before completion"]) {
        return Some(CallFailure::Interrupted);
    }
    if begins(&OUTCOME_NOT_KNOWN) {
        return Some(CallFailure::Unknown);
    }
    let first = text.lines().next().unwrap_or_default();
    let is_denied = begins(&["Permission to ", "Permission for this action "])
        && (first.contains(" denied") || first.contains("-denied"))
        || first.contains(", so auto mode cannot determine the safety of ")
        || DENIED_BY_RULE.iter().any(|words| first.contains(words));
    let is_by_hook = first.starts_with("PreToolUse:") && first.contains(" hook ")
        || first.starts_with("Hook PreToolUse:")
        || first.starts_with("Execution stopped by PreToolUse")
        || first.contains(" operation blocked by hook");
    // The client checks a command before the command starts. The text of a command that ran begins
    // with the exit code.
    let approval = ["requires approval", "require approval", "requires explicit approval"];
    let ran = begins(&["Error calling tool", "Exit code ", "Command timed out after "]);
    let is_by_check = is_command && inside_mark.is_some() && !ran
        || is_command && approval.iter().any(|words| first.contains(words))
        || first.starts_with("This ") && first.contains(" command contains multiple operations");
    // The command would use a folder that is not allowed. The text begins with the command's name.
    let is_folder_blocked = first.contains(" was blocked. For security, Claude Code ");
    let never_started = begins(&NEVER_STARTED)
        || (is_command || inside_mark.is_some()) && begins(&NEVER_STARTED_IN_MARK);
    if never_started || is_denied || is_by_hook || is_by_check || is_folder_blocked {
        let stopped = text.contains(STOPPED_WHILE_RUNNING);
        return Some(if stopped { CallFailure::Interrupted } else { CallFailure::Refused });
    }
    (is_command && begins(&SHELL_NOT_STARTED)).then_some(CallFailure::Failed)
}

/// Returns the range of the reason that a person typed in a refusal. If there is none, returns the
/// range of the whole text without the marks of an error.
pub(crate) fn reason(text: &str) -> Range<usize> {
    let typed = BEFORE_REASON.iter().find_map(|before| {
        let start = text.find(before)? + before.len();
        let end = text.find(AFTER_REASON).filter(|end| *end > start).unwrap_or(text.len());
        let words = text.get(start..end)?;
        let start = start + words.len() - words.trim_start().len();
        Some(start..start + words.trim().len()).filter(|range| !range.is_empty())
    });
    typed.unwrap_or_else(|| {
        let start = if text.starts_with("Error: ") { "Error: ".len() } else { 0 };
        let rest = text.get(start..).unwrap_or_default();
        let inside = rest.strip_prefix("<tool_use_error>").map(|inside| {
            let from = start + rest.len() - inside.len();
            let inside = inside.trim_end();
            from..from + inside.strip_suffix("</tool_use_error>").unwrap_or(inside).len()
        });
        inside.unwrap_or(start..text.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lenient::LenientText;

    fn ended(text: &str) -> CallFailure {
        classify_failure(&CallDenial::default(), text, true)
    }

    #[test]
    fn a_call_that_never_started_is_refused() {
        for text in [
            "<tool_use_error>Cancelled: parallel tool call Bash(go vet) errored</tool_use_error>",
            "Error: <tool_use_error>Sibling tool call errored</tool_use_error>",
            "Sibling tool call errored",
            "This command requires approval",
            "<tool_use_error>Blocked: sleep 60 followed by: go test</tool_use_error>",
            "<tool_use_error>InputValidationError: Bash failed</tool_use_error>",
            "PreToolUse:Bash hook error: [check.sh]: not allowed",
            "Error: Hook PreToolUse:Bash denied this tool",
            "cd in '/x' was blocked. For security, Claude Code may only change directories to these: '/w'.",
            "Permission to use Bash with command go test has been denied.",
            "Permission to use Bash has been auto-denied (prompts unavailable).",
            "opus is temporarily unavailable, so auto mode cannot determine the safety of Bash right now.",
            "Permission for this action was denied by the Claude Code auto mode classifier. Reason: x.",
            "Claude requested permissions to use Bash, but you haven't granted it yet.",
            "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            "[Tool call skipped: the turn ended.]",
            "Auto mode could not evaluate this action and is blocking it for safety",
            "The agent proposed a plan that was rejected by the user. The user chose to stay in plan mode",
            "User declined to enter plan mode",
            "The user wants to clarify these questions.\nThis means they may have more to say",
        ] {
            assert_eq!(ended(text), CallFailure::Refused, "{text}");
        }
    }

    /// Regression: errors of programs that begin with such a word were refusals.
    #[test]
    fn a_refusal_of_another_tool_has_the_mark_or_the_words_of_the_client() {
        let failed = CallFailure::Failed;
        let refused = CallFailure::Refused;
        for (text, expected) in [
            ("Blocked: robots.txt forbids this page", failed),
            ("Cancelled: statement timeout after 30 s", failed),
            ("Command contains a syntax error near 'fi'", failed),
            ("Execution stopped by breakpoint at main.c:3", failed),
            ("Permission for this file is missing: EACCES", failed),
            ("Permission for this file was denied: EACCES", failed),
            ("Access denied by permission rule 7 of the proxy", failed),
            ("The call was denied by your permission settings on the site", failed),
            ("Execution stopped by the signal hook", failed),
            ("<tool_use_error>Blocked: sleep 60</tool_use_error>", refused),
            ("Error: <tool_use_error>Cancelled: parallel tool call Read(x) errored", refused),
            ("Execution stopped by PreToolUse hook: not now", refused),
            ("Permission for this action was denied by the classifier", refused),
            (
                "<tool_use_error>File is in a directory that is denied by your permission settings.",
                refused,
            ),
            ("Agent type 'Plan' has been denied by permission rule 'Agent(Plan)'.", refused),
            (
                "/x is outside /w; --restricted confines the file tools to the working directory.",
                refused,
            ),
            ("Tool permission request was cancelled before a decision could be committed", refused),
        ] {
            assert_eq!(failure_of_tool(text), expected, "{text}");
        }
    }

    #[test]
    fn a_command_that_prints_a_message_of_refusal_is_not_refused() {
        for text in [
            "Exit code 1\nPermission to use Bash has been denied",
            "Error: Exit code 2\nThis command requires approval",
            "make: Permission denied",
            "Permission denied (publickey).",
            "Error calling tool",
            "<tool_use_error>Command timed out after 2m 0.0s</tool_use_error>",
        ] {
            assert_eq!(ended(text), CallFailure::NotRecognised, "{text}");
            let of_a_tool = classify_failure(&CallDenial::default(), text, false);
            assert_eq!(of_a_tool, CallFailure::Failed, "{text}");
        }
        assert_eq!(ended("spawn /bin/zsh ENOENT"), CallFailure::Failed);
    }

    #[test]
    fn a_call_that_was_stopped_or_lost_is_not_refused() {
        let stopped = "The user doesn't want to proceed with this tool use. Correction to the text above: this call was \
                       stopped while running, not refused before it ran.";
        assert_eq!(ended(stopped), CallFailure::Interrupted);
        assert_eq!(ended("[Request interrupted by user for tool use]"), CallFailure::Interrupted);
        let aborted = "<error>Command was aborted before completion</error>";
        assert_eq!(ended(aborted), CallFailure::Interrupted);
        let lost =
            "[Tool call interrupted: the session ended before this call's result was recorded]";
        assert_eq!(ended(lost), CallFailure::Unknown);
    }

    #[test]
    fn fields_about_a_denied_call_have_priority_over_its_text() {
        let denial = |kind: &'static str, before_run, after_run| CallDenial {
            kind: LenientText(Some(kind.into())),
            before_run,
            after_run,
            rejected: false,
        };
        let rejected = CallDenial { rejected: true, ..CallDenial::default() };
        assert_eq!(classify_failure(&rejected, "some words", true), CallFailure::Refused);
        assert_eq!(
            classify_failure(&rejected, STOPPED_WHILE_RUNNING, true),
            CallFailure::Interrupted
        );
        for (denial, expected) in [
            (denial("permission-rule", false, false), CallFailure::Refused),
            (denial("automode-blocked", false, false), CallFailure::Refused),
            (denial("cancelled", false, false), CallFailure::Refused),
            (denial("permission-rule", false, true), CallFailure::Failed),
            (denial("interrupted", true, false), CallFailure::Refused),
            (denial("interrupted", false, false), CallFailure::Unknown),
        ] {
            assert_eq!(classify_failure(&denial, "some words", true), expected, "{denial:?}");
        }
    }

    #[test]
    fn the_reason_of_a_refusal_is_found_without_the_words_of_the_client() {
        for (text, expected) in [
            ("Rejected. To tell you how to proceed, the user said:\nnot yet", "not yet"),
            (
                "The user provided the following reason for the rejection:  use make\n\nNote: The user's next message may contain a correction or",
                "use make",
            ),
            ("Error: <tool_use_error>Blocked: sleep</tool_use_error>", "Blocked: sleep"),
            ("This command requires approval", "This command requires approval"),
        ] {
            assert_eq!(&text[reason(text)], expected);
        }
    }
}
