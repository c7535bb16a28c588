//! Uses of Gemini CLI's other tools: file reads, searches, fetched pages, questions, plans, MCP.

use super::call::GeminiCallResult;
use super::shell;
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{PieceBuilder, fields};
use crate::lenient::{LenientText, object, objects, parse_object};
use crate::tool_use::input_fields;
use forge_store::model::{FieldMap, Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A finished use of a tool.
#[derive(Debug)]
pub(super) struct GeminiToolUse<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) status: &'a str,
    pub(super) input: Option<&'a RawValue>,
    pub(super) result: &'a GeminiCallResult<'a>,
    /// The pointer from the message to the call.
    pub(super) base: &'a str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiToolInput<'a> {
    prompt: LenientText<'a>,
    questions: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiQuestion<'a> {
    #[serde(borrow)]
    question: LenientText<'a>,
}

/// Whether the tool with this name changes a file.
pub(super) fn is_edit(name: &str) -> bool {
    matches!(name, "replace" | "write_file" | "edit")
}

/// Adds the fact of a tool use.
pub(super) fn used(work: &mut PieceBuilder<'_>, used: &GeminiToolUse<'_>) {
    let text = &used.result.text;
    let refused = refused(used);
    let outcome = match used.status {
        _ if refused.is_some() => REFUSED,
        "success" if is_edit(used.name) => "failed",
        "success" => "finished",
        "cancelled" => "interrupted",
        _ => "failed",
    };
    let reason = match (refused, outcome) {
        (Some(reason), _) => work.text(reason, &used.result.pointer),
        (None, "finished") => Value::Null,
        (None, _) if text.is_empty() => Value::Null,
        (None, _) => work.text(text, &used.result.pointer),
    };
    let input: GeminiToolInput<'_> = object(used.input);
    let mut value = input_fields(&work.line, used.input, &format!("{}/args", used.base));
    if let (false, Some(address)) =
        (value.contains_key("address"), input.prompt.text().and_then(address))
    {
        value.insert("address".to_owned(), address.into());
    }
    let answers = match used.name {
        "ask_user" => answers(input.questions, text),
        _ => FieldMap::new(),
    };
    value.extend(fields([
        ("tool", used.name.into()),
        ("outcome", outcome.into()),
        ("reason", reason),
        ("answers", if answers.is_empty() { Value::Null } else { Value::Map(answers) }),
    ]));
    work.fact(Kind::Tool, used.id, value);
}

/// Returns the text of the refusal if the use was refused: it never started, or the person
/// declined.
fn refused<'a>(used: &GeminiToolUse<'a>) -> Option<&'a str> {
    let text = &*used.result.text;
    let no = match used.name {
        "ask_user" => text.starts_with("User dismissed ask_user dialog"),
        "exit_plan_mode" => {
            text.starts_with("Plan rejected.")
                || text.starts_with("User cancelled the plan approval")
        }
        _ => false,
    };
    (no || shell::not_started(text)).then_some(text)
}

/// Returns the first URL in a prompt. The tool `web_fetch` has its address in a prompt.
fn address(prompt: &str) -> Option<&str> {
    let start = ["https://", "http://"].iter().filter_map(|it| prompt.find(it)).min()?;
    let rest = prompt.get(start..)?;
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '`' | ')'));
    let address = rest.get(..end.unwrap_or(rest.len()))?;
    Some(address.trim_end_matches(['.', ',', ';', '\'']))
}

/// Returns the person's answers, by the text of the question. In the result, they are by the number
/// of the question, from 0.
fn answers(questions: Option<&RawValue>, text: &str) -> FieldMap {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct GeminiAnswers<'a> {
        #[serde(borrow)]
        answers: BTreeMap<String, LenientText<'a>>,
    }
    let answered: GeminiAnswers<'_> = parse_object(text).unwrap_or_default();
    let questions: BTreeMap<usize, GeminiQuestion<'_>> = objects(questions).into_iter().collect();
    answered
        .answers
        .into_iter()
        .filter_map(|(number, answer)| {
            let answer = answer.0?.into_owned();
            let question = number.parse().ok().and_then(|at| questions.get(&at)?.question.text());
            Some((question.map_or(number, str::to_owned), answer.into()))
        })
        .collect()
}
