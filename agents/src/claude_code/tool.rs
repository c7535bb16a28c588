//! Uses of tools other than commands, edits, task lists and sub-agents: reads, searches, fetches
//! and questions.

use super::call_failure;
use super::line_context::{LineContext, PieceBuilder, fields};
use super::open_call::{CallRequest, OpenCall};
use super::tool_result::ClaudeCallResult;
use crate::lenient::{LenientInteger, LenientText, field};
use crate::tool_use;
use forge_store::model::{FieldMap, Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The names of the tool that shows a plan to a person; the second one is of older clients.
const PLAN_TOOLS: [&str; 2] = ["ExitPlanMode", "exit_plan_mode"];
/// The status of a result that only says that a call goes on in the background.
pub(crate) const LAUNCHED: &str = "async_launched";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct ClaudeToolResult<'a> {
    status: LenientText<'a>,
    duration_ms: LenientInteger,
    answers: Option<&'a RawValue>,
    plan: LenientText<'a>,
}

/// Returns the request of a call of such a tool. The pointer `at` leads to the block of the call.
pub(crate) fn tool_request(
    context: &LineContext,
    tool: &str,
    input: Option<&RawValue>,
    at: &str,
) -> CallRequest {
    let mut fields = tool_use::input_fields(context, input, &format!("{at}/input"));
    if PLAN_TOOLS.contains(&tool) {
        let plan: LenientText<'_> = field(input, "plan");
        if let Some(plan) = plan.text() {
            fields.insert("plan".to_owned(), context.text(plan, format!("{at}/input/plan")));
        }
    }
    CallRequest::Tool { fields }
}

impl PieceBuilder<'_> {
    /// Adds the fact of the use of a tool. An edit or a change of the task list that failed, and a
    /// sub-agent that was refused or did not begin, are also recorded as uses of a tool.
    pub(super) fn tool(&mut self, id: &str, call: &OpenCall, answer: &ClaudeCallResult<'_>) {
        let request_fields = match &call.request {
            CallRequest::Tool { fields } => fields.clone(),
            // An open call of another kind keeps only the fields that its own facts need.
            CallRequest::Edit { path, patch, .. } => {
                fields([("path", path.clone().into()), ("patch", patch.clone())])
            }
            CallRequest::Agent { kind, description, .. } => fields([(
                "input",
                Value::Map(fields([
                    ("subagent_type", kind.clone().into()),
                    ("description", description.clone().into()),
                ])),
            )]),
            _ => FieldMap::new(),
        };
        let failure = answer.failure(false);
        let noted: ClaudeToolResult<'_> = answer.object();
        let outcome = match failure {
            Some(failure) => failure.outcome(),
            None if noted.status.is(LAUNCHED) || answer.says(goes_on) => "unknown",
            None => "finished",
        };
        let reason = failure.and_then(|_| {
            let (text, pointer) = answer.refused_text()?;
            Some(self.part(&text, call_failure::reason(&text), pointer))
        });
        let mut value = fields([
            ("tool", call.tool.as_str().into()),
            ("outcome", outcome.into()),
            ("reason", reason.into()),
            ("called_at", call.called_at.to_string().into()),
            ("duration_ms", noted.duration_ms.0.into()),
            ("answers", answers(&self.line, &noted).into()),
            ("agent", self.line.agent.clone().into()),
        ]);
        if let Some(plan) = noted.plan.text().filter(|_| PLAN_TOOLS.contains(&call.tool.as_str())) {
            value.insert("plan".to_owned(), self.text(plan, "/toolUseResult/plan"));
        }
        for (name, field) in request_fields {
            value.entry(name).or_insert(field);
        }
        self.fact(Kind::Tool, id, value);
    }
}

/// Whether a result only says that a workflow or a call of an MCP server goes on in the background.
pub(crate) fn goes_on(text: &str) -> bool {
    text.starts_with("Workflow launched in background.")
        || text.starts_with("MCP tool \"")
            && text.contains(" It was moved to the background as task ")
}

/// Returns the person's answers, by the text of the question; `None` if there are none.
fn answers(context: &LineContext, noted: &ClaudeToolResult<'_>) -> Option<Value> {
    let answers: FieldMap = serde_json::from_str(noted.answers?.get()).ok()?;
    let answers = Value::Map(answers);
    (answers != Value::Map(FieldMap::new()))
        .then(|| tool_use::stored_value(context, answers, "/toolUseResult/answers", 0))
}
