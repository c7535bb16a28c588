//! Uses of tools that are no commands, edits, task lists or sub-agents: what was read, searched, fetched and
//! asked.

use super::carry::{Asked, OpenCall};
use super::message::parsed;
use super::outcome::Answer;
use super::refusal::{self, Failure};
use super::scene::{Scene, Work, fields};
use crate::lenient::{Whole, Word};
use crate::tool_use;
use forge_store::model::{Kind, Map, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    plan: Word<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Noted<'a> {
    duration_ms: Whole,
    #[serde(borrow)]
    answers: Option<&'a RawValue>,
    #[serde(borrow)]
    plan: Word<'a>,
}

/// What a call of any other tool asks for. `at` leads to its block.
pub(crate) fn asked(scene: &Scene<'_>, tool: &str, input: Option<&RawValue>, at: &str) -> Asked {
    let mut fields = tool_use::input_fields(scene, input, &format!("{at}/input"));
    if tool == "ExitPlanMode" {
        let input: Input<'_> = parsed(input).unwrap_or_default();
        if let Some(plan) = input.plan.text() {
            fields.insert("plan".to_owned(), scene.text(plan, format!("{at}/input/plan")));
        }
    }
    Asked::Tool { fields }
}

impl Work<'_> {
    /// Makes the fact of the use of a tool.
    pub(super) fn tool(
        &mut self,
        scene: &Scene<'_>,
        id: &str,
        call: &OpenCall,
        answer: &Answer<'_>,
    ) {
        let asked = match &call.asked {
            Asked::Tool { fields } => fields.clone(),
            // Of the others what matters of the call is kept only as far as it was to be done.
            Asked::Edit { path, patch, .. } => {
                fields([("path", path.clone().into()), ("patch", patch.clone())])
            }
            Asked::Agent { kind, description, .. } => fields([(
                "input",
                Value::Map(fields([
                    ("subagent_type", kind.clone().into()),
                    ("description", description.clone().into()),
                ])),
            )]),
            _ => Map::new(),
        };
        let failure = answer.failure(false);
        let noted: Noted<'_> = answer.object();
        let reason = failure.and_then(|_| {
            let (text, pointer) = answer.refused_text()?;
            Some(scene.part(&text, refusal::reason(&text), pointer))
        });
        let mut value = fields([
            ("tool", call.tool.as_str().into()),
            ("outcome", failure.map_or("finished", Failure::outcome).into()),
            ("reason", reason.into()),
            ("called_at", call.called_at.to_string().into()),
            ("duration_ms", noted.duration_ms.0.into()),
            ("answers", answers(scene, &noted).into()),
            ("agent", scene.agent.clone().into()),
        ]);
        if let Some(plan) = noted.plan.text().filter(|_| call.tool == "ExitPlanMode") {
            value.insert("plan".to_owned(), scene.text(plan, "/toolUseResult/plan"));
        }
        for (name, field) in asked {
            value.entry(name).or_insert(field);
        }
        self.facts.push(scene.fact(Kind::Tool, id, value));
    }
}

/// What a person answered to each question.
fn answers(scene: &Scene<'_>, noted: &Noted<'_>) -> Option<Value> {
    let answers: Map = serde_json::from_str(noted.answers?.get()).ok()?;
    let answers = Value::Map(answers);
    (answers != Value::Map(Map::new()))
        .then(|| tool_use::kept(scene, answers, "/toolUseResult/answers", 0))
}
