//! The result of a tool call, as a line gives it.

use super::call_failure::{self, CallFailure};
use super::line::{CallDenial, LocatedText, MessageContent, parsed};
use crate::lenient::LenientText;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The beginnings of the recorded text of a call that failed.
const RECORDED_ERRORS: [&str; 3] = ["Error: ", "User rejected tool use", "InputValidationError"];
/// The beginning of the text that the agent receives when a person refuses a call.
const REJECTED: &str = "The user doesn't want to proceed with this tool use";
/// The beginnings of the text of an error that has neither a flag nor a record.
const SHOWN_ERRORS: [&str; 2] = ["<tool_use_error>", "[Request interrupted by user"];

/// The result of a call, with the data that its facts need.
#[derive(Debug)]
pub(crate) struct ClaudeCallResult<'a> {
    pub(crate) error: bool,
    /// The text that the agent received, and the pointer to it.
    pub(crate) shown_to_agent: Option<LocatedText<'a>>,
    /// The `toolUseResult` of the line: what the program that runs the tools recorded.
    pub(crate) tool_use_result: ToolUseResult<'a>,
    /// The fields of the line about a call that did not run.
    pub(crate) denial: CallDenial<'a>,
}

#[derive(Debug)]
pub(crate) enum ToolUseResult<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Object(&'a RawValue),
}

impl<'a> ClaudeCallResult<'a> {
    /// Builds the result from a line; `at` leads to its block. If the block does not say whether
    /// the call failed, the recorded text does.
    pub(crate) fn from_line(
        error: Option<bool>,
        content: &'a MessageContent<'a>,
        result: Option<&'a RawValue>,
        at: &str,
        denial: CallDenial<'a>,
    ) -> Self {
        let noted = match result.map(|raw| (raw.get().as_bytes().first(), raw)) {
            Some((Some(b'{'), raw)) => ToolUseResult::Object(raw),
            Some((Some(b'"'), raw)) => {
                let text: LenientText<'_> = parsed(Some(raw)).unwrap_or_default();
                text.0.map_or(ToolUseResult::Nothing, ToolUseResult::Text)
            }
            _ => ToolUseResult::Nothing,
        };
        let shown =
            content.full_text().map(|(text, pointer)| (text, format!("{at}/content{pointer}")));
        let begins = |text: &str, with: &[&str]| with.iter().any(|with| text.starts_with(with));
        let recorded = match &noted {
            ToolUseResult::Text(text) => &**text,
            _ => "",
        };
        let error = match error {
            Some(true) => true,
            // The client records an object for a command that did not fail.
            Some(false) => begins(recorded, &["Error: Exit code "]),
            None => {
                let text = shown.as_ref().map_or("", |(text, _)| &**text);
                let unrecorded = matches!(noted, ToolUseResult::Nothing);
                begins(recorded, &RECORDED_ERRORS)
                    || begins(text, &[REJECTED])
                    || unrecorded && (begins(text, &SHOWN_ERRORS) || is_error_line(text))
            }
        };
        ClaudeCallResult { error, shown_to_agent: shown, tool_use_result: noted, denial }
    }

    /// Returns the text about the run and its pointer: the recorded text, or else the text that
    /// the agent received.
    pub(super) fn text(&self) -> Option<(Cow<'_, str>, &str)> {
        match &self.tool_use_result {
            ToolUseResult::Text(text) => Some((Cow::Borrowed(text), "/toolUseResult")),
            _ => self
                .shown_to_agent
                .as_ref()
                .map(|(text, pointer)| (Cow::Borrowed(&**text), pointer.as_str())),
        }
    }

    /// Returns the text that says why a call did not run, and its pointer. The text that the agent
    /// received comes first, because it contains the person's words.
    pub(crate) fn refused_text(&self) -> Option<(Cow<'_, str>, &str)> {
        let shown = self.shown_to_agent.as_ref().filter(|(text, _)| !text.is_empty());
        shown
            .map(|(text, pointer)| (Cow::Borrowed(&**text), pointer.as_str()))
            .or_else(|| self.text())
    }

    /// Returns the text that the agent received, and the recorded one.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let shown = self.shown_to_agent.as_ref().map(|(text, _)| &**text);
        let noted = match &self.tool_use_result {
            ToolUseResult::Text(text) => Some(&**text),
            _ => None,
        };
        shown.into_iter().chain(noted)
    }

    pub(super) fn says(&self, what: impl Fn(&str) -> bool) -> bool {
        self.texts().any(what)
    }

    /// Returns how the call failed, if its result is an error. If its two texts disagree, the more
    /// specific failure counts.
    pub(crate) fn failure(&self, is_command: bool) -> Option<CallFailure> {
        if !self.error {
            return None;
        }
        let of = |text: &str| call_failure::classify_failure(&self.denial, text, is_command);
        let found = self.texts().map(of).max_by_key(|failure| match failure {
            CallFailure::NotRecognised => 0,
            CallFailure::Failed => 1,
            CallFailure::Unknown => 2,
            CallFailure::Refused | CallFailure::Interrupted => 3,
        });
        Some(found.unwrap_or_else(|| of("")))
    }

    /// Returns the recorded `toolUseResult` if it is an object.
    pub(crate) fn recorded(&self) -> Option<&'a RawValue> {
        match self.tool_use_result {
            ToolUseResult::Object(raw) => Some(raw),
            _ => None,
        }
    }

    /// Parses the recorded `toolUseResult` if it is an object, or else returns the default.
    pub(crate) fn object<T: Deserialize<'a> + Default>(&self) -> T {
        parsed(self.recorded()).unwrap_or_default()
    }
}

/// Whether the client wrote the first line of a text about a command that failed, that ran out of
/// time, or that a rule denied.
fn is_error_line(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let code = first.strip_prefix("Exit code ");
    code.is_some_and(|code| code.trim().parse::<i64>().is_ok_and(|code| code != 0))
        || first.starts_with("Command timed out after ") && !first.contains(" background")
        || first.starts_with("Permission to use ") && first.contains(" has been denied")
}
