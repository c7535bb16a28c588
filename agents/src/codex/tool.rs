//! Uses of Codex's other tools: images viewed, searches, MCP servers, plans proposed.

use super::agent;
use super::call::CodexCall;
use super::call_result;
use super::state::OpenToolCall;
use crate::claude_code::command::REFUSED;
use crate::claude_code::line_context::{PieceBuilder, fields};
use crate::file_url::path_from_url;
use crate::lenient::{
    LenientBool, LenientFlag, LenientList, LenientText, field, object, parse_object,
};
use crate::long_text;
use crate::text_hash::text_hash;
use crate::tool_use::input_fields;
use forge_store::model::{FieldMap, Kind, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The kinds of lines that report a search or an image, one bit each.
pub(super) const CALL: u8 = 1;
pub(super) const EVENT: u8 = 2;
const ITEM: u8 = 4;

/// Remembers the call of a tool until its result comes.
pub(super) fn keep_call(work: &mut PieceBuilder<'_>, call: &CodexCall<'_>) {
    let input = call.arguments.and_then(|json| serde_json::from_str::<&RawValue>(json).ok());
    let fields = match call.input {
        Some(text) => {
            let text = fields([("text", work.text(text, "/input"))]);
            fields([("input", Value::Map(text))])
        }
        None => input_fields(&work.line, input, "/arguments#json"),
    };
    let open = OpenToolCall {
        called_at: work.line.at,
        tool: full_name(call.namespace, call.name),
        fields,
        agent: agent::requested_agent(&work.line, call, input),
        questions: questions(call, input),
    };
    work.carry.other.codex.tools.insert(call.id.to_owned(), open);
}

/// Returns the questions that a call asks the person, by their ids.
fn questions(call: &CodexCall<'_>, input: Option<&RawValue>) -> BTreeMap<String, String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CodexQuestion<'a> {
        #[serde(borrow)]
        id: LenientText<'a>,
        #[serde(borrow)]
        question: LenientText<'a>,
    }
    if call.name != "request_user_input" {
        return BTreeMap::new();
    }
    let questions: LenientList<CodexQuestion<'_>> = field(input, "questions");
    let named = questions.0.into_iter().filter_map(|one| {
        let text = long_text::beginning(one.question.text()?, long_text::INLINE_BYTES);
        Some((one.id.text()?.to_owned(), text.to_owned()))
    });
    named.collect()
}

/// Returns the person's answers, by the text of the question.
fn answers(questions: &BTreeMap<String, String>, answer: &str) -> Value {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CodexAnswers<'a> {
        #[serde(borrow)]
        answers: BTreeMap<String, &'a RawValue>,
    }
    if questions.is_empty() {
        return Value::Null;
    }
    let Some(CodexAnswers { answers }) = parse_object(answer) else { return Value::Null };
    let answers = answers.into_iter().map(|(name, chosen)| {
        let chosen: LenientList<LenientText<'_>> = field(Some(chosen), "answers");
        let texts: Vec<&str> = chosen.0.iter().filter_map(|text| text.0.as_deref()).collect();
        let text = texts.join(", ");
        let text = long_text::beginning(&text, long_text::INLINE_BYTES).to_owned();
        (questions.get(&name).cloned().unwrap_or(name), text.into())
    });
    Value::Map(answers.collect())
}

/// Records a use of `apply_patch` that was refused, or whose result is missing. The fact is the
/// use of a tool, not an edit.
pub(super) fn edit_not_made(
    work: &mut PieceBuilder<'_>,
    id: &str,
    path: &str,
    outcome: &'static str,
    reason: Value,
) {
    let ended = ToolUseEnd { tool: "apply_patch", outcome, reason, ..ToolUseEnd::default() };
    used(work, id, fields([("path", path.into())]), ended);
}

/// Returns the name of a tool with its server or namespace.
fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(space) if space.ends_with("__") => format!("{space}{name}"),
        Some(space) => format!("{space}__{name}"),
        None => name.to_owned(),
    }
}

/// How a tool's use ended.
#[derive(Default)]
struct ToolUseEnd<'a> {
    tool: &'a str,
    outcome: &'static str,
    reason: Value,
    called_at: Option<Timestamp>,
    duration_ms: Option<i64>,
}

fn used(work: &mut PieceBuilder<'_>, id: &str, mut value: FieldMap, used: ToolUseEnd<'_>) {
    value.extend(fields([
        ("tool", used.tool.into()),
        ("outcome", used.outcome.into()),
        ("reason", used.reason),
        ("called_at", used.called_at.map(|at| at.to_string()).into()),
        ("duration_ms", used.duration_ms.into()),
    ]));
    work.fact(Kind::Tool, id, value);
}

/// Reads a result: closes its call, and records the use of the tool or what the sub-agent did.
pub(super) fn result(work: &mut PieceBuilder<'_>, id: &str, raw: Option<&RawValue>) {
    let Some(open) = work.carry.other.codex.tools.remove(id) else { return };
    let Some(answer) = call_result::read(raw) else { return };
    work.carry.other.codex.end(id);
    let outcome = match answer.status.outcome {
        "unknown" if call_result::is_refused_mcp_call(answer.output()) => REFUSED,
        // The words of a server, not of Codex.
        REFUSED
            if open.tool.starts_with("mcp__")
                && call_result::says_refused(&answer.text)
                && !call_result::is_refused_mcp_call(&answer.text) =>
        {
            "finished"
        }
        // A result without an exit code still means that the tool has finished.
        "unknown" | "background" => "finished",
        "timed_out" => "failed",
        other => other,
    };
    let went_well = outcome == "finished";
    if agent::is_agent_call(&open.tool) && went_well {
        return agent::result(work, &open, &answer);
    }
    if agent::is_reported_elsewhere(&open.tool) {
        return;
    }
    let mut value = open.fields.clone();
    value.extend(fields([("answers", answers(&open.questions, &answer.text))]));
    let reason = match outcome {
        REFUSED => answer.shown(&work.line),
        "failed" => work.text(&answer.text, &answer.pointer),
        _ => Value::Null,
    };
    let called_at = Some(open.called_at);
    let ended =
        ToolUseEnd { tool: &open.tool, outcome, reason, called_at, ..ToolUseEnd::default() };
    used(work, id, value, ended);
}

/// Records the use of a tool whose call is still open when its turn ends.
pub(super) fn open_at_turn_end(work: &mut PieceBuilder<'_>, id: &str, outcome: &'static str) {
    let Some(open) = work.carry.other.codex.tools.get(id).cloned() else { return };
    if agent::is_reported_elsewhere(&open.tool) {
        return;
    }
    let called_at = Some(open.called_at);
    let ended = ToolUseEnd { tool: &open.tool, outcome, called_at, ..ToolUseEnd::default() };
    used(work, id, open.fields, ended);
}

/// The fields of an event or item about the use of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ReportedToolUse<'a> {
    #[serde(borrow, alias = "call_id")]
    id: LenientText<'a>,
    invocation: Option<&'a RawValue>,
    server: LenientText<'a>,
    namespace: LenientText<'a>,
    tool: LenientText<'a>,
    arguments: Option<&'a RawValue>,
    status: LenientText<'a>,
    success: LenientBool,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duration: Option<&'a RawValue>,
    path: LenientText<'a>,
    text: LenientText<'a>,
    revised_prompt: LenientText<'a>,
}

/// The result of a call to an MCP server, either as `Ok` or `Err` or with `isError`; also the error
/// of such a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpCallResult<'a> {
    #[serde(borrow, rename = "Err")]
    err: LenientText<'a>,
    #[serde(borrow, rename = "Ok")]
    ok: Option<&'a RawValue>,
    #[serde(alias = "isError")]
    is_error: LenientFlag,
    #[serde(borrow)]
    message: LenientText<'a>,
}

/// Records the end of a call to an MCP server.
pub(super) fn mcp_ended(
    work: &mut PieceBuilder<'_>,
    raw: &RawValue,
    base: &str,
    started_at: Option<Timestamp>,
) {
    let one: ReportedToolUse<'_> = object(Some(raw));
    let (inner, at) = match one.invocation {
        Some(invocation) => (object(Some(invocation)), format!("{base}/invocation")),
        None => (object(Some(raw)), base.to_owned()),
    };
    let call: ReportedToolUse<'_> = inner;
    let (Some(id), Some(tool)) = (one.id.text(), call.tool.text()) else { return };
    let Some(open) = take_unended_call(work, id) else { return };
    let server = call.server.text().map(|server| format!("mcp__{server}"));
    let name = full_name(server.as_deref().or(call.namespace.text()), tool);
    let result: McpCallResult<'_> = object(one.result);
    let inner: McpCallResult<'_> = object(result.ok);
    let error: McpCallResult<'_> = object(one.error);
    let error_text = one.error.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let texts = [
        (result.err.text(), "result/Err"),
        (error.message.text(), "error/message"),
        (error_text.as_deref().filter(|text| !text.is_empty()), "error"),
    ];
    let reason = texts.into_iter().find_map(|(text, pointer)| Some((text?, pointer)));
    let failed = result.is_error.0
        || inner.is_error.0
        || reason.is_some()
        || one.success.0 == Some(false)
        || one.status.is("failed");
    let declined = one.status.is("declined")
        || reason.is_some_and(|(it, _)| {
            call_result::is_refused_mcp_call(it) || call_result::says_refused(it)
        });
    let outcome = match (declined, failed, one.status.text()) {
        (true, ..) => REFUSED,
        (false, true, _) => "failed",
        (false, false, Some("in_progress" | "inProgress")) => return,
        (false, false, Some("completed") | None) => "finished",
        _ => "unknown",
    };
    let ended = ToolUseEnd {
        tool: &name,
        outcome,
        reason: reason.map(|(text, name)| work.text(text, format!("{base}/{name}"))).into(),
        called_at: open.as_ref().map(|open| open.called_at).or(started_at),
        duration_ms: call_result::duration_ms(one.duration),
    };
    let value = match open {
        Some(open) => open.fields,
        None => input_fields(&work.line, call.arguments, &format!("{at}/arguments")),
    };
    used(work, id, value, ended);
}

/// Notes that the end of this call is known. Returns `None` if it was already known; otherwise
/// removes and returns the open call, if there is one.
fn take_unended_call(work: &mut PieceBuilder<'_>, id: &str) -> Option<Option<OpenToolCall>> {
    let state = &mut work.carry.other.codex;
    if state.has_ended(id) {
        return None;
    }
    state.end(id);
    Some(state.tools.remove(id))
}

/// Reads a completed item about a tool. `kind` is its type in lower case, without underscores.
pub(super) fn item(
    work: &mut PieceBuilder<'_>,
    kind: &str,
    raw: &RawValue,
    started_at: Option<Timestamp>,
) {
    match kind {
        "mcptoolcall" | "dynamictoolcall" => mcp_ended(work, raw, "/item", started_at),
        "websearch" => searched(work, raw, "/item", None, ITEM),
        "imagegeneration" => image_made(work, raw, "/item", None, ITEM),
        "subagentactivity" => agent::activity(work, raw, started_at),
        "imageview" => {
            let one: ReportedToolUse<'_> = object(Some(raw));
            let Some(id) = one.id.text() else { return };
            let Some(open) = take_unended_call(work, id) else { return };
            let value = fields([("path", one.path.text().map(path_from_url).into())]);
            let called_at = open.map(|open| open.called_at).or(started_at);
            let ended = ToolUseEnd {
                tool: "view_image",
                outcome: "finished",
                called_at,
                ..ToolUseEnd::default()
            };
            used(work, id, value, ended);
        }
        "plan" => {
            let one: ReportedToolUse<'_> = object(Some(raw));
            let (Some(id), Some(text)) = (one.id.text(), one.text.text()) else { return };
            let value = fields([("plan", work.text(text, "/item/text"))]);
            let ended = ToolUseEnd { tool: "plan", outcome: "finished", ..ToolUseEnd::default() };
            used(work, id, value, ended);
        }
        "collabagenttoolcall" => agent::item(work, raw, started_at),
        _ => {}
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WebSearch<'a> {
    #[serde(borrow, alias = "call_id")]
    id: LenientText<'a>,
    query: LenientText<'a>,
    action: Option<&'a RawValue>,
    status: LenientText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WebSearchAction<'a> {
    query: LenientText<'a>,
    queries: LenientList<LenientText<'a>>,
    url: LenientText<'a>,
    pattern: LenientText<'a>,
}

/// Records a web search that a line of the kind `source` reports. `own_id` names it if the report
/// has no id.
pub(super) fn searched(
    work: &mut PieceBuilder<'_>,
    raw: &RawValue,
    base: &str,
    own_id: Option<&str>,
    source: u8,
) {
    let one: WebSearch<'_> = object(Some(raw));
    let action: WebSearchAction<'_> = object(one.action);
    let Some(id) = one.id.text().or(own_id) else { return };
    let mut several = action.queries.0.iter().enumerate();
    let several = several.find_map(|(index, query)| Some((index, query.text()?)));
    let (query, pointer) = match (action.query.text(), several) {
        (Some(query), _) => (Some(query), format!("{base}/action/query")),
        (None, Some((index, query))) => (Some(query), format!("{base}/action/queries/{index}")),
        (None, None) => (one.query.text(), format!("{base}/query")),
    };
    // If a page was opened, the event repeats the address in the field `query`.
    let address = action.url.text();
    let query = query.filter(|query| Some(*query) != address && action.pattern.text().is_none());
    if query.is_none() && address.is_none() {
        return;
    }
    let same = text_hash(&format!("search\n{query:?}\n{address:?}\n{:?}", action.pattern.text()));
    if !work.carry.other.codex.is_news(same, source, work.line.at) {
        return;
    }
    let text = |text: Option<&str>, pointer: String| {
        Value::from(text.map(|text| work.text(text, pointer)))
    };
    let value = fields([
        ("query", text(query, pointer)),
        ("address", text(address, format!("{base}/action/url"))),
        ("pattern", text(action.pattern.text(), format!("{base}/action/pattern"))),
    ]);
    let outcome = outcome_of_status(&one.status);
    let ended = ToolUseEnd { tool: "web_search", outcome, ..ToolUseEnd::default() };
    used(work, id, value, ended);
}

/// Returns the outcome of a use of one of the model's own tools.
fn outcome_of_status(status: &LenientText<'_>) -> &'static str {
    match status.text() {
        Some("failed") => "failed",
        Some("completed") | None => "finished",
        Some(_) => "unknown",
    }
}

/// Records that the model made an image, which a line of the kind `source` reports. `own_id` names
/// it if the report has no id.
pub(super) fn image_made(
    work: &mut PieceBuilder<'_>,
    raw: &RawValue,
    base: &str,
    own_id: Option<&str>,
    source: u8,
) {
    let one: ReportedToolUse<'_> = object(Some(raw));
    let Some(id) = one.id.text().or(own_id) else { return };
    let prompt = one.revised_prompt.text();
    let same = text_hash(&format!("image\n{prompt:?}"));
    if !work.carry.other.codex.is_news(same, source, work.line.at) {
        return;
    }
    let prompt = prompt.map(|text| work.text(text, format!("{base}/revised_prompt")));
    let outcome = outcome_of_status(&one.status);
    let ended = ToolUseEnd { tool: "image_generation", outcome, ..ToolUseEnd::default() };
    used(work, id, fields([("prompt", prompt.into())]), ended);
}

/// Records that the model searched the tools that it can call.
pub(super) fn tools_searched(work: &mut PieceBuilder<'_>, raw: &RawValue, id: &str) {
    let value = input_fields(&work.line, field(Some(raw), "arguments"), "/arguments");
    let outcome = outcome_of_status(&field(Some(raw), "status"));
    let ended = ToolUseEnd { tool: "tool_search", outcome, ..ToolUseEnd::default() };
    used(work, id, value, ended);
}
