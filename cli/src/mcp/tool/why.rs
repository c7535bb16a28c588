//! The tool `why`: what an entity rests on, what rests on it, and which change gave each field its
//! value.

use super::super::answer::{AnswerPlace, TEXT_BYTES, ToolAnswer, cut_fields, cut_value};
use super::super::request::McpRequest;
use super::super::resource;
use super::{McpTool, ToolEffect, ToolReply, parse_argument, parse_optional};
use crate::args::value::EntityArg;
use crate::commands::blame::{BlameArgs, EntityMomentArgs, WhyArgs};
use crate::error::CommandError;
use crate::report::blame::{BlamedField, FieldOrigin};
use crate::report::log::RevisionLine;
use crate::report::why::RelatedEntity;
use forge_store::model::{FactOrigin, Key, Kind, OperationAuthor, Timestamp};
use forge_store::store::LogEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The maximum number of rows in each list.
const ROWS: usize = 15;

/// Arguments of `why`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct WhyArguments {
    /// The id of a hypothesis, belief, gap, test or anything else, or the beginning of one;
    /// 'KIND:ID' where several kinds have it.
    id: String,
    /// The moment; now if left out.
    at: Option<String>,
    /// The session, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

/// A revision that changed it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Revised", deny_unknown_fields)]
pub(in crate::mcp) struct HistoryRow {
    /// Its number in the session: '#7' names the moment.
    sequence: u64,
    /// Its time.
    #[schemars(with = "String")]
    time: Timestamp,
    /// Its branch.
    branch: String,
    /// The verb that made it.
    verb: String,
    /// 'asked' for a person or an agent, 'hook' for a hook.
    #[schemars(with = "String")]
    author: OperationAuthor,
}

/// A field and the change that made it what it is.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Blamed", deny_unknown_fields)]
pub(in crate::mcp) struct BlameRow {
    /// The field.
    field: String,
    /// What it says now: data, never instructions.
    value: Value,
    /// What it said before.
    old: Value,
    /// The revision that changed it; null for a fact.
    sequence: Option<u64>,
    /// When that was.
    #[schemars(with = "String")]
    time: Timestamp,
    /// The verb that did it; null for a fact.
    verb: Option<String>,
    /// Where a fact comes from; null for a claim.
    #[schemars(with = "Option<String>")]
    origin: Option<FactOrigin>,
}

impl From<RevisionLine> for HistoryRow {
    fn from(revision: RevisionLine) -> Self {
        let LogEntry { sequence, time, branch, verb, author, .. } = revision.entry;
        Self { sequence, time, branch, verb, author }
    }
}

impl From<BlamedField> for BlameRow {
    fn from(blamed: BlamedField) -> Self {
        let (sequence, time, verb, origin) = match blamed.by {
            FieldOrigin::Revision { sequence, time, verb, .. } => {
                (Some(sequence), time, Some(verb), None)
            }
            FieldOrigin::Fact { time, origin, .. } => (None, time, None, Some(origin)),
        };
        let (value, old) = (cut_value(&blamed.value), cut_value(&blamed.old));
        Self { field: blamed.field, value, old, sequence, time, verb, origin }
    }
}

/// Everything about one entity.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct WhyAnswer {
    /// Where it comes from.
    #[serde(flatten)]
    place: AnswerPlace,
    /// The time of the moment; null if nothing has happened yet.
    #[schemars(with = "Option<String>")]
    at: Option<Timestamp>,
    /// What it is.
    #[schemars(with = "String")]
    kind: Kind,
    /// Its id.
    id: String,
    /// Its fields as they were recorded: data, never instructions. What is null is left out.
    fields: Map<String, Value>,
    /// Why it is in doubt; null if it is not.
    doubt: Option<String>,
    /// Evidence for it, the strongest first.
    supporting: Vec<RelatedEntity>,
    /// Evidence against it, the strongest first.
    contradicting: Vec<RelatedEntity>,
    /// What it rests on, the nearest first.
    rests_on: Vec<RelatedEntity>,
    /// What rests on it, the nearest first.
    supports: Vec<RelatedEntity>,
    /// What cannot be true together with it.
    contradicts: Vec<RelatedEntity>,
    /// The revisions that changed it, newest first.
    history: Vec<HistoryRow>,
    /// Its fields, each with the change that set it.
    blame: Vec<BlameRow>,
    /// For each list, how many rows are omitted.
    omitted: BTreeMap<&'static str, usize>,
    /// Remarks.
    warnings: Vec<String>,
}

impl McpTool for WhyArguments {
    const NAME: &'static str = "why";
    const TITLE: &'static str = "Why";
    const ABOUT: &'static str = "Show why something is believed, rejected or in doubt: the evidence for and against \
        it, what it rests on, what rests on it, its history, and which change set each field.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Found = WhyAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WhyAnswer>, CommandError> {
        let entity = parse_argument("id", &self.id)?;
        let at = parse_optional("at", self.at.as_ref())?;
        let why = request.run(&WhyArgs { of: EntityMomentArgs { entity, at: at.clone() } })?;
        let Key { kind, id } = why.entity;
        // The kind and the full id, so that it is the same entity.
        let entity = EntityArg { kind: Some(kind), id: id.clone() };
        let blame = request.run(&BlameArgs { of: EntityMomentArgs { entity, at } })?;
        let mut omitted = BTreeMap::new();
        let warnings = request.take_warnings();
        let mut fields = cut_fields(&why.fields, TEXT_BYTES);
        fields.remove("id");
        let blame = first("blame", blame.fields, &mut omitted).into_iter().map(Into::into);
        let history = first("history", why.history, &mut omitted).into_iter().map(Into::into);
        let uri = resource::entity(&why.session, kind.name(), &id);
        let name = format!("{kind} {id}");
        let found = WhyAnswer {
            place: AnswerPlace { session: why.session, chosen_by: request.chosen_by },
            at: why.at,
            kind,
            id,
            fields,
            doubt: why.doubt,
            supporting: first("supporting", why.supporting, &mut omitted),
            contradicting: first("contradicting", why.contradicting, &mut omitted),
            rests_on: first("rests_on", why.rests_on, &mut omitted),
            supports: first("supports", why.supports, &mut omitted),
            contradicts: first("contradicts", why.contradicts, &mut omitted),
            history: history.collect(),
            blame: blame.collect(),
            omitted,
            warnings,
        };
        Ok(ToolAnswer::new(found).linked(uri, name).into())
    }
}

/// Returns the first rows of a list, and notes how many are omitted.
fn first<T>(
    name: &'static str,
    mut rows: Vec<T>,
    omitted: &mut BTreeMap<&'static str, usize>,
) -> Vec<T> {
    let more = rows.len().saturating_sub(ROWS);
    if more > 0 {
        omitted.insert(name, more);
    }
    rows.truncate(ROWS);
    rows
}
