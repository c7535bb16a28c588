//! Uses of tools that are no commands, edits, task lists or sub-agents: what was read, searched, fetched and
//! asked.

use super::carry::{Asked, OpenCall};
use super::message::parsed;
use super::outcome::Answer;
use super::refusal::{self, Failure};
use super::scene::{Scene, Work, fields};
use crate::lenient::{Whole, Word};
use crate::text::{self, INLINE_BYTES};
use forge_store::model::{Kind, Map, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most fields and elements of an input that are kept.
const MOST: usize = 32;
/// Values nested deeper than this are kept as JSON, if they are short.
const DEPTH: usize = 2;
/// The largest input that is read, in bytes.
const LARGEST: usize = 1 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    file_path: Word<'a>,
    #[serde(borrow)]
    notebook_path: Word<'a>,
    #[serde(borrow)]
    path: Word<'a>,
    #[serde(borrow)]
    pattern: Word<'a>,
    #[serde(borrow)]
    url: Word<'a>,
    #[serde(borrow)]
    query: Word<'a>,
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
    let known: Input<'_> = parsed(input).unwrap_or_default();
    let path = known.file_path.text().or(known.notebook_path.text()).or(known.path.text());
    let plan = known.plan.text().filter(|_| tool == "ExitPlanMode");
    let short =
        |text: Option<&str>| text.map(|text| text::beginning(text, INLINE_BYTES).to_owned());
    let read = input.filter(|raw| raw.get().len() <= LARGEST);
    let all: Option<Value> = read.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let all = all.map(|all| kept(scene, all, &format!("{at}/input"), 0));
    Asked::Tool {
        fields: fields([
            ("path", short(path).into()),
            ("pattern", short(known.pattern.text()).into()),
            ("address", short(known.url.text()).into()),
            ("query", short(known.query.text()).into()),
            ("plan", plan.map(|plan| scene.text(plan, format!("{at}/input/plan"))).into()),
            ("input", all.into()),
        ]),
    }
}

/// A value of an input as a fact holds it; `pointer` leads to it.
fn kept(scene: &Scene<'_>, value: Value, pointer: &str, depth: usize) -> Value {
    match value {
        Value::Text(text) => scene.text(&text, pointer),
        Value::Map(_) | Value::List(_) if depth >= DEPTH => {
            let json = serde_json::to_string(&value).unwrap_or_default();
            if json.len() <= INLINE_BYTES { json.into() } else { Value::Null }
        }
        Value::Map(map) => {
            let below = map.into_iter().take(MOST).map(|(name, value)| {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                let value = kept(scene, value, &pointer, depth + 1);
                (name, value)
            });
            Value::Map(below.filter(|(_, value)| *value != Value::Null).collect())
        }
        Value::List(list) => {
            let below = list.into_iter().take(MOST).enumerate();
            let kept = below
                .map(|(index, value)| kept(scene, value, &format!("{pointer}/{index}"), depth + 1));
            Value::List(kept.collect())
        }
        other => other,
    }
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
    (!answers.is_empty()).then(|| kept(scene, Value::Map(answers), "/toolUseResult/answers", 0))
}
