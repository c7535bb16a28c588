//! Reads how a command of Codex, Gemini CLI or OpenCode ended, from fields of the response or from
//! lines around the output.

use super::event::HookCommandEnd;
use crate::claude_code::call_failure::{self, CallFailure};
use crate::gemini::{ShellRunFields, is_failed_edit, unwrapped};
use serde_json::Value;
use std::borrow::Cow;

/// The output of a command in a response, and how it ended.
pub(super) struct CommandResponse {
    pub(super) ended: HookCommandEnd,
    /// What the command printed.
    pub(super) output: String,
}

/// Parses the response to a command. An exit code in a field has priority over one in the text.
pub(super) fn read(response: &Value) -> CommandResponse {
    let answer = model_text(response).unwrap_or_default();
    let answer: &str = &answer;
    let (end, output) =
        codex(answer).or_else(|| gemini(answer)).unwrap_or((HookCommandEnd::Unknown, answer));
    let ended = code_in_field(response).map_or(end, HookCommandEnd::Code);
    CommandResponse { ended, output: output.to_owned() }
}

/// Reads whether OpenCode stopped a command that has no exit code. OpenCode says so after the
/// output.
pub(super) fn with_stop(response: CommandResponse) -> CommandResponse {
    let about = || {
        let text = response.output.trim_end().strip_suffix("\n</bash_metadata>")?;
        let (output, about) = text.rsplit_once("<bash_metadata>\n")?;
        let says = |words: &str| about.lines().any(|line| line.contains(words));
        let ended = if says("terminated command after exceeding timeout") {
            HookCommandEnd::TimedOut
        } else if says("User aborted the command") {
            HookCommandEnd::Interrupted
        } else {
            return None;
        };
        Some(CommandResponse { ended, output: output.trim_end().to_owned() })
    };
    let stopped = if response.ended == HookCommandEnd::Unknown { about() } else { None };
    stopped.unwrap_or(response)
}

/// Pointers to the fields that hold an exit code.
const CODES: [&str; 14] = [
    "/exit_code", "/exitCode", "/metadata/exit_code", "/metadata/exit", "/metadata/exitCode",
    "/exit", "/exit_status", "/exitStatus", "/returncode", "/return_code", "/code", "/ExitCode",
    "/returnCode", "/rc",
];

/// Returns the exit code that a field of the response holds.
fn code_in_field(response: &Value) -> Option<i64> {
    CODES.iter().find_map(|pointer| code(response.pointer(pointer)?))
}

/// Returns the error that a response in Claude Code's form reports: a text, unless it begins with
/// the exit code 0; a field with another exit code or with null instead of one; or no exit code and
/// no `stdout`, or a sign of a failure beside it. Claude Code has an event of its own for a
/// failure, but a client that uses its hooks may not.
pub(super) fn error_in_response(response: &Value) -> Option<String> {
    if let Some(said) = text(response) {
        let said = said.strip_prefix("Error: ").unwrap_or(&said);
        let code = said.lines().next().and_then(|line| line.strip_prefix("Exit code "));
        let code = code.and_then(|code| code.trim().parse::<i64>().ok());
        // Claude Code itself gives an object, so a text without a code says nothing of success.
        return (code != Some(0)).then(|| said.to_owned());
    }
    let printed = |name: &str| response.get(name).and_then(text).unwrap_or_default();
    let output = || [printed("stdout"), printed("stderr"), printed("output")].concat();
    match code_in_field(response) {
        Some(0) => None,
        Some(code) => Some(format!("Exit code {code}\n{}", output())),
        None => {
            // The client knows no exit code, so it is not 0.
            let is_null = CODES.iter().any(|name| response.pointer(name) == Some(&Value::Null));
            let has_stdout = response.get("stdout").is_some_and(|stdout| !stdout.is_null());
            let is_success = has_stdout && !is_null && !has_sign_of_failure(response);
            let is_given = !response.is_null() && error_in_field(response).is_none();
            (is_given && !is_success).then(|| format!("no exit code\n{}", output()))
        }
    }
}

/// Returns whether a field of a response says that a command did not succeed, without an exit code.
fn has_sign_of_failure(response: &Value) -> bool {
    const STOPPED: [&str; 7] =
        ["timedOut", "timed_out", "killed", "aborted", "cancelled", "canceled", "signal"];
    const ENDED: [&str; 7] =
        ["completed", "success", "succeeded", "ok", "done", "finished", "exited"];
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(said) => !said.is_empty(),
        _ => true,
    };
    let status = match response.get("status") {
        Some(Value::String(status)) => !ENDED.contains(&status.to_ascii_lowercase().as_str()),
        _ => false,
    };
    // Such as `statusCode` and `exit-code`. It is not known what the number means.
    let is_number = |(name, value): (&String, &Value)| {
        let name = name.to_ascii_lowercase();
        (name.ends_with("code") || name.ends_with("status"))
            && !matches!(code(value), None | Some(0))
    };
    let has_number = response.as_object().is_some_and(|fields| fields.iter().any(is_number));
    let is_stopped = STOPPED.iter().any(|name| response.get(*name).is_some_and(is_set));
    is_stopped || response.get("ok") == Some(&Value::Bool(false)) || status || has_number
}

/// Returns the error of a command with the line `Exit code N` first, as Claude Code writes it, if
/// one of these values has the exit code in a field, or the error says it in other words. A call
/// that was refused or stopped has no exit code of its command.
pub(super) fn with_exit_code<'v>(
    said: String,
    mut values: impl Iterator<Item = &'v Value>,
) -> String {
    let is_failure = call_failure::failure_of_tool(&said) == CallFailure::Failed;
    if said.starts_with("Exit code ") || !is_failure {
        return said;
    }
    let code = values.find_map(code_in_field).or_else(|| code_in_words(&said));
    match code.filter(|code| (1..=255).contains(code)) {
        Some(code) => format!("Exit code {code}\n{said}"),
        None => said,
    }
}

/// Parses an error such as `Command exited with non-zero status code 1`.
fn code_in_words(said: &str) -> Option<i64> {
    const KNOWN: [&str; 10] = [
        "exited", "failed", "returned", "finished", "with", "a", "non-zero", "exit", "status",
        "code",
    ];
    const BEFORE_CODE: [&str; 2] = ["status", "code"];
    let mut words = said.lines().next()?.split(':').next()?.split_ascii_whitespace();
    let is_subject = matches!(words.next()?, "Command" | "Process");
    let code = words.next_back()?.trim_end_matches('.');
    let is_code = words.next_back().is_some_and(|word| BEFORE_CODE.contains(&word));
    let is_known = is_subject && is_code && words.all(|word| KNOWN.contains(&word));
    is_known.then(|| code.parse().ok()).flatten()
}

/// Returns the response of an edit in Claude Code's form, in which an object says that the file was
/// changed and a text that it was not. Other clients report both in a text.
pub(super) fn edit_response(response: Value) -> Value {
    let said = match &response {
        Value::Object(fields) if fields.is_empty() || has_sign_of_failure(&response) => None,
        Value::Object(fields) => match fields.get("content") {
            Some(content) if content.is_array() && !fields.contains_key("filePath") => {
                text(content)
            }
            _ => return response,
        },
        other => text(other),
    };
    let said = said.unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    let begins = |with: &[&str]| with.iter().any(|with| first.starts_with(with));
    // A sentence that goes on, as in " has been updated since", is about another change.
    let is_end = |after: &str| after.is_empty() || after.starts_with('.');
    let is_file = first.strip_prefix("The file ").and_then(|rest| rest.split_once(" has been "));
    let is_file = is_file.is_some_and(|(_, change)| {
        let after = ["updated", "created"].iter().find_map(|done| change.strip_prefix(*done));
        after.is_some_and(|after| is_end(after.strip_prefix(" successfully").unwrap_or(after)))
    });
    let is_made = is_file
        || begins(&[
            "File created successfully", "Updated cell ", "Inserted cell ", "Deleted cell ",
        ]);
    if is_made { Value::Object(serde_json::Map::new()) } else { said.into_owned().into() }
}

/// Returns the error that a field of a response reports: `error`, or a flag with a text next to it.
pub(super) fn error_in_field(response: &Value) -> Option<String> {
    if let Some(error) = response.get("error").and_then(error_text) {
        return Some(error);
    }
    let has = |name: &str, value: bool| response.get(name) == Some(&Value::Bool(value));
    if !(has("is_error", true) || has("isError", true) || has("success", false)) {
        return None;
    }
    let texts = ["content", "stderr", "stdout", "output", "message"];
    let error = texts.iter().find_map(|name| said(response.get(*name)?));
    Some(error.unwrap_or_else(|| "failed".to_owned()))
}

/// Returns the text of an error, which may be an object with a `message`, or another object; `None`
/// if it is blank.
pub(super) fn error_text(error: &Value) -> Option<String> {
    match error {
        Value::Bool(true) => Some("failed".to_owned()),
        Value::Object(fields) if !fields.is_empty() && !fields.contains_key("message") => {
            Some(error.to_string())
        }
        _ => said(error.get("message").unwrap_or(error)),
    }
}

/// Returns the text that an edit reports to the model if it says that the edit failed.
pub(super) fn edit_failure(response: &Value) -> Option<String> {
    let said = model_text(response)?;
    is_failed_edit(&said).then(|| said.into_owned())
}

/// Returns the text of a field, without `Error: ` at its beginning, if it is not blank.
fn said(field: &Value) -> Option<String> {
    let said = text(field).filter(|said| !said.trim().is_empty())?;
    Some(said.strip_prefix("Error: ").unwrap_or(&said).to_owned())
}

/// Returns the response of a tool. A text with JSON is read if it is in the form of a response;
/// otherwise the tool may have printed it.
pub(super) fn read_response(given: Value) -> Value {
    const FIELDS: [&str; 5] = ["stdout", "llmContent", "aggregated_output", "filePath", "isError"];
    let inner = given.as_str().filter(|said| said.starts_with('{'));
    let inner: Option<Value> = inner.and_then(|said| serde_json::from_str(said).ok());
    let is_response = |inner: &Value| {
        let has = |name: &str| inner.get(name).is_some();
        // Objects of Kubernetes and notebooks have `metadata` too.
        FIELDS.iter().any(|name| has(name)) || has("metadata") && has("output")
    };
    inner.filter(is_response).unwrap_or(given)
}

/// Parses an exit code: an integer, perhaps written as `2.0`, or a text that contains only one.
#[expect(clippy::cast_possible_truncation, reason = "the number is whole and in the range")]
fn code(value: &Value) -> Option<i64> {
    // Windows has codes up to 32 bits without a sign.
    let is_code = |number: &f64| number.fract() == 0.0 && number.abs() <= f64::from(u32::MAX);
    let whole = || value.as_f64().filter(is_code).map(|number| number as i64);
    value.as_i64().or_else(whole).or_else(|| value.as_str()?.trim().parse().ok())
}

/// Returns the text in which the agent reports the command to its model.
pub(super) fn model_text(response: &Value) -> Option<Cow<'_, str>> {
    text(response).or_else(|| {
        ["stdout", "output", "content", "llmContent", "returnDisplay", "aggregated_output"]
            .iter()
            .find_map(|name| text(response.get(*name)?))
    })
}

/// Returns a text as it is, or joins the texts of a list of content parts. `None` for other values.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    if let Some(text) = value.as_str() {
        return Some(Cow::Borrowed(text));
    }
    let parts = value.as_array()?.iter();
    let texts: Vec<&str> =
        parts.filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str())).collect();
    Some(Cow::Owned(texts.concat()))
}

/// Splits off the header of Codex, which ends with the line `Output:`. Returns `None` if there is
/// no such line, or if another line that is not empty is above it: then the whole text is output.
fn codex(text: &str) -> Option<(HookCommandEnd, &str)> {
    const HEADS: [&str; 7] = [
        "Chunk ID:", "Wall time:", "Original token count:", "Total output lines:", "Process ",
        "Exit code:", "Warning: truncated output",
    ];
    let mut ended = HookCommandEnd::Unknown;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if matches!(line, "Output:" | "Final output:") {
            return Some((ended, text.get(at..).unwrap_or_default()));
        }
        if !line.is_empty() && !HEADS.iter().any(|head| line.starts_with(head)) {
            return None;
        }
        let code = ["Process exited with code ", "Exit code: "]
            .iter()
            .find_map(|head| line.strip_prefix(head)?.trim().parse().ok());
        if let Some(code) = code {
            ended = HookCommandEnd::Code(code);
        } else if line.starts_with("Process running with session ID") {
            ended = HookCommandEnd::Background;
        }
    }
    None
}

/// Parses the text of Gemini CLI, which names each part. Returns `None` if the text does not begin
/// with `Output: ` or `Command: `.
fn gemini(text: &str) -> Option<(HookCommandEnd, &str)> {
    let text = text.get(unwrapped(text))?.trim_end();
    let names_parts = text.starts_with("Output: ")
        || (text.starts_with("Command: ") && text.contains("\nOutput: "));
    let run = names_parts.then(|| ShellRunFields::read(text))?;
    let code = run.exit_code.and_then(|code| code.parse().ok());
    Some((code.map_or(HookCommandEnd::Unknown, HookCommandEnd::Code), text.get(run.output)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(response: &Value) -> (HookCommandEnd, String) {
        let answer = read(response);
        (answer.ended, answer.output)
    }

    #[test]
    fn an_exit_code_is_read_in_the_form_of_the_agent() {
        for (response, ended, output) in [
            (
                json!(
                    "Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 2\nOutput:\nx\n"
                ),
                HookCommandEnd::Code(2),
                "x\n",
            ),
            (json!("Exit code: 2\nWall time: 1 seconds\nOutput:\nx"), HookCommandEnd::Code(2), "x"),
            (
                json!(
                    "Warning: truncated output (original token count: 9)\nTotal output lines: 9\n\nExit code: 2\nOutput:\nx"
                ),
                HookCommandEnd::Code(2),
                "x",
            ),
            (json!("Process exited with code 2\nFinal output:\nx"), HookCommandEnd::Code(2), "x"),
            (
                json!({"llmContent":"Output: x\nExit Code: 3\nProcess Group PGID: 9\n\n[System] Tool input parameters (command) were modified by a hook before execution."}),
                HookCommandEnd::Code(3),
                "x",
            ),
            (
                json!("Exit code: 0\nWall time: 1 seconds\nTotal output lines: 9\nOutput:\n"),
                HookCommandEnd::Code(0),
                "",
            ),
            (
                json!("Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\nx"),
                HookCommandEnd::Background,
                "x",
            ),
            (
                json!({"llmContent":"Command: make\nDirectory: (root)\nOutput: a\nb\nError: (none)\nExit Code: 2\nSignal: (none)\n"}),
                HookCommandEnd::Code(2),
                "a\nb",
            ),
            (
                json!({"llmContent":"<untrusted_context>\nOutput: x\nExit Code: 3\nProcess Group PGID: 9\n</untrusted_context>"}),
                HookCommandEnd::Code(3),
                "x",
            ),
            // A line of the program's own that looks like a field, and an error of two lines.
            (
                json!({"llmContent":"Output: a\nError: boom\nExit Code: 1"}),
                HookCommandEnd::Code(1),
                "a\nError: boom",
            ),
            (
                json!({"llmContent":"Command: make\nOutput: a\nError: no\nsuch file\nExit Code: 1\nSignal: (none)"}),
                HookCommandEnd::Code(1),
                "a",
            ),
            (json!({"llmContent":"Output: (empty)\nExit Code: 1"}), HookCommandEnd::Code(1), ""),
            (json!({"output":"x","metadata":{"exit":1}}), HookCommandEnd::Code(1), "x"),
            (json!({"output":"x","exit_code":"4"}), HookCommandEnd::Code(4), "x"),
            (json!({"aggregated_output":"x","exit_code":4.0}), HookCommandEnd::Code(4), "x"),
            (
                json!([{"type":"text","text":"Exit code: 2\nOutput:\nx"}]),
                HookCommandEnd::Code(2),
                "x",
            ),
            (
                json!({"content":[{"type":"text","text":"Exit code: 2\nOutput:\nx"}]}),
                HookCommandEnd::Code(2),
                "x",
            ),
            (
                json!({"llmContent":[{"text":"Output: x\nExit Code: 3"}]}),
                HookCommandEnd::Code(3),
                "x",
            ),
        ] {
            assert_eq!(parsed(&response), (ended, output.to_owned()), "{response}");
        }
    }

    #[test]
    fn the_output_of_a_program_is_not_an_exit_code() {
        for response in [
            json!("x"),
            json!("Exit code: 2\nsome other program said so"),
            json!("building\nProcess exited with code 2\nOutput:\n"),
            json!({"llmContent":"Command: make\nOutput: Exit Code: 2\nand more\nError: (none)\nExit Code: (none)"}),
            json!({"llmContent":"<untrusted_context>\nOutput: x\nProcess Group PGID: 9\n</untrusted_context>"}),
            json!({"output":"x","metadata":{"exit":null}}),
            json!({"output":"x","exit_code":1e300}),
            json!(7),
        ] {
            assert_eq!(parsed(&response).0, HookCommandEnd::Unknown, "{response}");
        }
    }
}
