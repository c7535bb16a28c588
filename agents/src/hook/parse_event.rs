//! Converts the inputs of five agents' hooks to one form of event. Fields differ between versions:
//! a field that is missing or has another type counts as absent.

use super::command_end;
use super::event::{
    HookAgent, HookCommandEnd, HookEvent, HookEventKind, SessionStartKind, ToolUse,
};
use crate::claude_code::call_failure::{self, CallFailure};
use crate::command_words::command_line_of;
use crate::{claude_code, codex, gemini};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::PathBuf;

/// How many places in a text are tried at which an event could begin.
const MAX_STARTS: usize = 8;
/// How deeply the lists and objects of an event may be nested.
const MAX_DEPTH: usize = 100;

/// The input of a hook is unreadable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the input of the hook {0}")]
pub struct HookInputError(String);

/// Returns the text of a hook's input, without what some shells add: a byte order mark, NUL bytes,
/// white space. UTF-16 is decoded if a byte order mark or the first characters show it. Bytes that
/// are not UTF-8, and lone surrogates, become U+FFFD. A string of JSON that contains an object
/// becomes this object. A backslash that escapes nothing becomes an escaped one.
///
/// # Errors
///
/// If the text is empty.
pub fn plain(input: &[u8]) -> Result<Cow<'_, str>, HookInputError> {
    let text = match input {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        [1..=255, 0, 1..=255, 0, ..] => Cow::Owned(utf16(input, u16::from_le_bytes)),
        [0, 1..=255, 0, 1..=255, ..] => Cow::Owned(utf16(input, u16::from_be_bytes)),
        // A shell that converts to another code page damages letters, but not the syntax of JSON.
        _ => String::from_utf8_lossy(input),
    };
    // The last is Ctrl+Z, the end of a text on Windows.
    let around = |c: char| c.is_whitespace() || matches!(c, '\0' | '\u{feff}' | '\u{1a}');
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(around)),
        Cow::Owned(text) => Cow::Owned(text.trim_matches(around).to_owned()),
    };
    if text.is_empty() {
        return Err(HookInputError("is empty".to_owned()));
    }
    let inner: Option<String> =
        text.starts_with('"').then(|| serde_json::from_str(&text).ok()).flatten();
    let text = inner.filter(|inner| inner.starts_with('{')).map_or(text, Cow::Owned);
    Ok(match escape_lone_backslashes(&text) {
        Some(escaped) => Cow::Owned(escaped),
        None => text,
    })
}

/// Returns this JSON with an escaped backslash in place of each one that escapes nothing; `None` if
/// there is none. Some agents write paths and texts as they are, such as `C:\Users` or `s/\./-/`.
/// If a text that begins as a path of Windows has such a backslash, none in it escapes a letter.
fn escape_lone_backslashes(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let (mut escaped, mut copied, mut at) = (String::new(), 0, 0);
    let (mut is_quoted, mut is_path) = (false, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                is_quoted = !is_quoted;
                is_path = is_quoted && is_unescaped_path(bytes.get(at + 1..).unwrap_or_default());
            }
            b'\\' if is_quoted => {
                let rest = bytes.get(at + 1..).unwrap_or_default();
                if is_escape(rest)
                    && !(is_path && rest.first().is_some_and(u8::is_ascii_alphabetic))
                {
                    at += 1;
                } else {
                    escaped.push_str(json.get(copied..=at)?);
                    escaped.push('\\');
                    copied = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return None;
    }
    escaped.push_str(json.get(copied..)?);
    Some(escaped)
}

/// Returns whether a backslash before these bytes escapes something.
fn is_escape(rest: &[u8]) -> bool {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => true,
        [b'u', digits @ ..] => {
            digits.iter().take(4).filter(|it| it.is_ascii_hexdigit()).count() == 4
        }
        _ => false,
    }
}

/// Returns whether the text of JSON that begins here begins as a path of Windows and has a
/// backslash that escapes nothing.
fn is_unescaped_path(mut text: &[u8]) -> bool {
    let [drive, b':', b'\\', next, ..] = text else { return false };
    if !drive.is_ascii_alphabetic() || *next == b'\\' {
        return false;
    }
    loop {
        text = match text {
            [b'\\', rest @ ..] if !is_escape(rest) => return true,
            [b'"', ..] | [] => return false,
            [b'\\', _, rest @ ..] | [_, rest @ ..] => rest,
        };
    }
}

/// Returns the event in a text with something before or after it, such as what a shell printed. It
/// begins at the first brace, or at one that begins a line.
fn event_in(text: &str) -> Option<Value> {
    let lines = text.match_indices("\n{").map(|(at, _)| at + 1);
    text.find('{').into_iter().chain(lines).take(MAX_STARTS).find_map(|at| {
        let mut events = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Value>();
        let event = events.next()?.ok()?;
        let names = ["session_id", "sessionId", "sessionID", "conversation_id"];
        names.iter().any(|name| event.get(*name).is_some()).then_some(event)
    })
}

/// Returns this JSON in a form that a parser accepts: with `null` in place of each bare word that
/// is no value of JSON, such as Python's `NaN`, and of each list or object that is nested too
/// deeply, and without the comma after the last element of a list or object.
fn with_strict_values(json: &str) -> String {
    let bytes = json.as_bytes();
    let (mut strict, mut at, mut depth) = (String::with_capacity(json.len()), 0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        let (from, before) = (at, depth);
        at += 1;
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"{}[],:\"".contains(byte);
                let rest = bytes.get(at..).unwrap_or_default();
                at += rest.iter().position(is_end).unwrap_or(rest.len());
            }
        }
        let piece = json.get(from..at).unwrap_or_default();
        if before > MAX_DEPTH || depth > MAX_DEPTH {
            if before == MAX_DEPTH {
                strict.push_str("null");
            }
            continue;
        }
        if depth < before {
            let elements = strict.trim_end();
            let length = elements.strip_suffix(',').unwrap_or(elements).len();
            strict.truncate(length);
        }
        let is_word = !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':')
            && !byte.is_ascii_whitespace();
        let is_value = !is_word || serde_json::from_str::<Value>(piece).is_ok();
        strict.push_str(if is_value { piece } else { "null" });
    }
    strict
}

/// Returns the end of the string of JSON whose text begins here.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == b'"' {
            break;
        }
    }
    at.min(bytes.len())
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

struct HookInputFields<'a>(&'a Map<String, Value>);

impl<'a> HookInputFields<'a> {
    /// Returns the field of this name, in snake or in camel case.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).or_else(|| self.0.get(&camel_case(name)?))
    }

    /// Returns the first of these fields that is a text and not blank.
    fn text(&self, names: &[&str]) -> Option<&'a str> {
        let mut texts = names.iter().filter_map(|name| self.get(name)?.as_str());
        texts.find(|text| !text.trim().is_empty())
    }

    fn owned(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(str::to_owned)
    }

    fn whole(&self, names: &[&str]) -> Option<i64> {
        names.iter().find_map(|name| self.get(name)?.as_i64())
    }

    fn value(&self, names: &[&str]) -> Value {
        names.iter().find_map(|name| self.get(name)).cloned().unwrap_or_default()
    }

    /// Returns the first of these fields. Some agents write an object as a string of JSON.
    fn object(&self, names: &[&str]) -> Value {
        match self.value(names) {
            Value::String(text) if text.starts_with('{') => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            value => value,
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn path(&self, names: &[&str]) -> Option<PathBuf> {
        self.text(names).map(PathBuf::from)
    }
}

/// Returns a name in snake case in camel case; `None` if it is of one word.
fn camel_case(name: &str) -> Option<String> {
    let mut words = name.split('_');
    let mut camel = words.next()?.to_owned();
    let first = camel.len();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    (camel.len() > first).then_some(camel)
}

impl HookAgent {
    /// Returns what happened at an event of this name, as far as the name alone says.
    #[must_use]
    pub fn happening(self, name: &str) -> HookEventKind {
        happening(self, name, &HookInputFields(&Map::new()))
    }
}

impl HookEvent {
    /// Parses what an agent wrote to a hook's standard input. `name` is the event that the hook was
    /// called with. If it is empty, or forge knows only the name in the input, that one counts.
    ///
    /// # Errors
    ///
    /// If the input is not a JSON object.
    pub fn read(agent: HookAgent, name: &str, input: &[u8]) -> Result<Self, HookInputError> {
        Self::read_plain(agent, name, &plain(input)?)
    }

    /// Parses an input like [`HookEvent::read`], from the text that [`plain`] returned for it.
    ///
    /// # Errors
    ///
    /// If the input is not a JSON object.
    pub fn read_plain(agent: HookAgent, name: &str, text: &str) -> Result<Self, HookInputError> {
        let text = crate::long_text::readable_json(text);
        let input: Value = serde_json::from_str(&text)
            .or_else(|error| {
                let strict = event_in(&with_strict_values(&text));
                strict.or_else(|| event_in(&text)).ok_or(error)
            })
            .map_err(|error| HookInputError(format!("is not JSON: {error}")))?;
        let Value::Object(fields) = &input else {
            return Err(HookInputError("is not a JSON object".to_owned()));
        };
        let fields = HookInputFields(fields);
        let said = fields.text(&["hook_event_name", "event"]);
        let is_known = |name: &str| agent.happening(name) != HookEventKind::Other;
        let said = said.filter(|said| name.is_empty() || !is_known(name) && is_known(said));
        let name = said.unwrap_or(name);
        let roots = fields.0.get("workspace_roots").and_then(Value::as_array);
        let roots: Vec<PathBuf> =
            roots.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect();
        Ok(Self {
            agent,
            name: name.to_owned(),
            session: fields
                .text(&["session_id", "conversation_id", "sessionID", "sessionId"])
                .map(|id| id.trim().to_owned()),
            transcript: fields.path(&["transcript_path", "transcript"]),
            sub_transcript: fields.path(&["agent_transcript_path"]),
            cwd: fields.path(&["cwd", "directory"]).or_else(|| roots.first().cloned()),
            roots,
            sub_agent: fields.owned(&["agent_id"]),
            turn: fields.owned(&["prompt_id", "turn_id", "generation_id", "messageID"]),
            kind: happening(agent, name, &fields),
        })
    }
}

fn happening(agent: HookAgent, name: &str, fields: &HookInputFields<'_>) -> HookEventKind {
    // Cursor's names begin with a lower-case letter; Gemini and OpenCode have other names.
    let name = match (agent, name) {
        (HookAgent::OpenCode, name) => opencode(name),
        (HookAgent::Cursor, "sessionStart") => "SessionStart",
        (HookAgent::Cursor, "beforeSubmitPrompt") | (HookAgent::Gemini, "BeforeAgent") => {
            "UserPromptSubmit"
        }
        (HookAgent::Cursor, "afterShellExecution" | "afterFileEdit")
        | (HookAgent::Gemini, "AfterTool") => "PostToolUse",
        (HookAgent::Cursor, "stop") | (HookAgent::Gemini, "AfterAgent") => "Stop",
        (HookAgent::Cursor, "preCompact") => "PreCompact",
        (HookAgent::Cursor, "sessionEnd") => "SessionEnd",
        (_, name) => name,
    };
    let automatic = || fields.text(&["trigger"]).map(|trigger| trigger != "manual");
    match name {
        "SessionStart" => HookEventKind::SessionStart { start: start(fields) },
        "UserPromptSubmit" => {
            // Claude Code names the source: notifications and timers send prompts too.
            let person = fields.text(&["source"]).is_none_or(|it| matches!(it, "user" | "sdk"));
            let prompt = fields.text(&["prompt"]).filter(|_| person);
            let text = prompt.and_then(|prompt| typed_part(agent, prompt));
            HookEventKind::Prompt { text: text.map(str::to_owned) }
        }
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
            HookEventKind::ToolUsed(Box::new(tool(agent, name, fields)))
        }
        "Stop" | "StopFailure" | "Interrupt" => HookEventKind::Stop,
        "SubagentStart" => HookEventKind::SubAgentStart,
        "SubagentStop" => HookEventKind::SubAgentStop,
        "TaskCreated" | "TaskCompleted" => HookEventKind::Task,
        // A sub-agent compacts its own context, not that of the session.
        "PreCompact" | "PostCompact" if fields.text(&["agent_id"]).is_some() => {
            HookEventKind::Other
        }
        "PreCompact" => HookEventKind::PreCompact {
            automatic: automatic(),
            tokens: fields.whole(&["context_tokens", "pre_tokens"]),
        },
        "PostCompact" => HookEventKind::PostCompact {
            automatic: automatic(),
            summary: fields.owned(&["compact_summary", "summary"]),
        },
        "BeforeModel" => HookEventKind::BeforeModel,
        "SessionEnd" => HookEventKind::SessionEnd { reason: fields.owned(&["reason"]) },
        _ => HookEventKind::Other,
    }
}

/// Returns the part of a prompt that a person typed: the client and an editor add texts of their
/// own.
fn typed_part(agent: HookAgent, prompt: &str) -> Option<&str> {
    match agent {
        HookAgent::Claude => claude_code::typed_text::typed_part(prompt),
        HookAgent::Codex => codex::prompt::typed_part(prompt),
        HookAgent::Gemini => gemini::typed_part(prompt),
        HookAgent::Cursor | HookAgent::OpenCode => Some(prompt),
    }
}

/// Returns Claude Code's name for an event that forge's plugin for OpenCode forwards under the name
/// of the plugin API.
fn opencode(name: &str) -> &str {
    match name {
        "session.created" => "SessionStart",
        "chat.message" => "UserPromptSubmit",
        "tool.execute.after" => "PostToolUse",
        "session.idle" => "Stop",
        "session.compacting" | "experimental.session.compacting" => "PreCompact",
        "session.compacted" => "PostCompact",
        "chat.system.transform" | "experimental.chat.system.transform" => "BeforeModel",
        "session.deleted" => "SessionEnd",
        other => other,
    }
}

fn start(fields: &HookInputFields<'_>) -> SessionStartKind {
    match fields.text(&["source", "trigger"]) {
        Some("resume") => SessionStartKind::Resume,
        Some("clear") => SessionStartKind::Clear,
        Some("compact") => SessionStartKind::Compact,
        Some("fork") => SessionStartKind::Fork,
        _ => SessionStartKind::Startup,
    }
}

fn tool(agent: HookAgent, name: &str, fields: &HookInputFields<'_>) -> ToolUse {
    let mut used = ToolUse {
        tool: fields.owned(&["tool_name", "tool"]).unwrap_or_default(),
        call: fields.owned(&["tool_use_id", "callID", "call_id", "tool_call_id"]),
        input: fields.object(&["tool_input", "args"]),
        response: command_end::read_response(
            fields.value(&["tool_response", "tool_output", "output"]),
        ),
        error: ["error", "error_message"]
            .iter()
            .find_map(|name| command_end::error_text(fields.get(name)?)),
        interrupted: fields.flag("is_interrupt"),
        duration_ms: fields.whole(&["duration_ms", "duration"]),
        ..ToolUse::default()
    };
    if name == "PermissionDenied" {
        used.refused = Some(fields.owned(&["reason"]).unwrap_or_default());
    }
    if name == "PostToolUseFailure" && used.error.is_none() {
        used.error = Some("failed".to_owned());
    }
    if agent == HookAgent::Claude && used.is_command() {
        claude_command(&mut used, name, fields);
    }
    if used.error.is_none() {
        used.error = command_end::error_in_field(&used.response);
    }
    match agent {
        HookAgent::Claude if used.is_command() => {}
        HookAgent::Claude => claude(&mut used),
        HookAgent::Cursor => cursor(&mut used, fields),
        _ => like_claude(&mut used, agent),
    }
    used
}

/// Reads the error of a command of Claude Code, or of a client that uses its hooks.
fn claude_command(used: &mut ToolUse, name: &str, fields: &HookInputFields<'_>) {
    if name == "PostToolUseFailure" {
        let fields = fields.get("error").into_iter().chain([&used.response]);
        used.error = used.error.take().map(|error| command_end::with_exit_code(error, fields));
    }
    if used.error.is_none() {
        used.error = command_end::error_in_response(&used.response);
        if name == "PostToolUse" && used.response.is_null() {
            used.error = Some("no response".to_owned());
        }
    }
}

/// Reads the response of an edit, and how a call failed, of Claude Code or of a client that uses
/// its hooks.
fn claude(used: &mut ToolUse) {
    if used.is_edit() {
        used.response = command_end::edit_response(std::mem::take(&mut used.response));
    }
    if used.refused.is_none()
        && let Some(error) = &used.error
    {
        match call_failure::failure_of_tool(error) {
            CallFailure::Refused => {
                let reason = error.get(call_failure::reason(error)).unwrap_or(error);
                used.refused = Some(reason.to_owned());
            }
            CallFailure::Interrupted => used.interrupted = true,
            _ => {}
        }
    }
}

/// Reads a tool event of Cursor. Each tool has its own event, with the fields at the top level.
fn cursor(used: &mut ToolUse, fields: &HookInputFields<'_>) {
    let copied = |names: &[&str]| -> Value {
        names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), fields.get(name)?.clone())))
            .collect::<Map<_, _>>()
            .into()
    };
    if fields.get("command").is_some() {
        used.tool = "Bash".to_owned();
        used.input = copied(&["command"]);
        // Most versions do not say how the command ended.
        let code = fields.whole(&["exit_code"]);
        used.ended = code.map_or(HookCommandEnd::Unknown, HookCommandEnd::Code);
        used.response = json!({ "stdout": fields.text(&["output"]).unwrap_or_default() });
    } else if fields.get("file_path").is_some() {
        used.tool = "Edit".to_owned();
        used.input = copied(&["file_path", "edits"]);
        used.response = json!({ "filePath": fields.text(&["file_path"]) });
    }
}

/// Gives the tools and fields of other agents the names that Claude Code uses.
fn like_claude(used: &mut ToolUse, agent: HookAgent) {
    let known = match used.tool.as_str() {
        "Bash" | "bash" | "shell" | "shell_command" | "local_shell" | "container.exec"
        | "exec_command" | "run_shell_command" => "Bash",
        "edit" | "replace" | "Edit" => "Edit",
        "write" | "write_file" | "Write" => "Write",
        "apply_patch" => return patch(used, agent),
        _ => return,
    };
    used.tool = known.to_owned();
    if let Value::Object(input) = &mut used.input {
        for (theirs, ours) in [
            ("cmd", "command"),
            ("filePath", "file_path"),
            ("oldString", "old_string"),
            ("newString", "new_string"),
            ("absolute_path", "file_path"),
        ] {
            if let Some(value) = input.remove(theirs) {
                input.entry(ours).or_insert(value);
            }
        }
        if let Some(Value::Array(words)) = input.get("command") {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let line = command_line_of(&words);
            input.insert("command".to_owned(), line.into());
        }
    }
    let file = used.input.get("file_path").cloned();
    if known == "Bash" {
        let mut answer = command_end::read(&used.response);
        if agent == HookAgent::OpenCode {
            answer = command_end::with_stop(answer);
        }
        used.ended = answer.ended;
        used.response = json!({ "stdout": answer.output });
    } else if let Some(file) = file {
        used.error = used.error.take().or_else(|| command_end::edit_failure(&used.response));
        // OpenCode reports only edits that were made. Other agents say in the response what was
        // done.
        let is_made = agent == HookAgent::OpenCode || !used.response.is_null();
        used.response = if is_made { json!({ "filePath": file }) } else { "".into() };
    }
}

/// Reads a patch in Codex's form. Codex reports in a text whether the patch was applied; OpenCode
/// reports only applied patches.
fn patch(used: &mut ToolUse, agent: HookAgent) {
    let answer = command_end::read(&used.response);
    let applied = agent == HookAgent::OpenCode
        || answer.ended == HookCommandEnd::Code(0)
        || (answer.ended == HookCommandEnd::Unknown
            && answer.output.trim_start().starts_with("Success"));
    if applied && used.error.is_none() {
        used.ended = HookCommandEnd::Code(0);
    }
    let names = ["command", "input", "patchText", "patch"];
    let text = names.iter().find_map(|name| used.input.get(*name)?.as_str());
    if let Some(text) = text {
        used.input = Value::String(text.to_owned());
    }
}
