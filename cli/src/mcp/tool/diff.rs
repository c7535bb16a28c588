//! The tool `diff`: what changed between two moments, in pages.

use super::super::answer::{AnswerPlace, MOST_ROWS, ToolAnswer, cut_value, page};
use super::super::request::{McpRequest, session_name};
use super::super::schema::KindWord;
use super::super::{cursor, resource};
use super::state::StateMoment;
use super::{McpTool, ToolEffect, ToolReply, parse_argument};
use crate::args::value::MomentArg;
use crate::error::CommandError;
use crate::report::diff::readable;
use crate::workspace;
use forge_store::diff::{TypedChange, summary};
use forge_store::model::Kind;
use forge_store::model::claim::VocabularyWord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The default number of rows in a page.
const ROWS: usize = 40;

/// Arguments of `diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct DiffArguments {
    /// The moment before: '2 hours ago', '#42', 'HEAD~3', a tag, a branch, 'before last
    /// compaction'.
    from: String,
    /// The moment after; now if left out.
    to: Option<String>,
    /// The kinds to compare; all if left out.
    #[serde(default)]
    kinds: Vec<KindWord>,
    /// At most this many rows a page.
    #[schemars(range(min = 1, max = MOST_ROWS))]
    limit: Option<usize>,
    /// The 'next_cursor' of the previous page, with the same arguments.
    cursor: Option<String>,
    /// The session, by name or id.
    session: Option<String>,
}

/// One change.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change", deny_unknown_fields)]
pub(in crate::mcp) struct ChangeRow {
    /// The kind of what changed.
    kind: String,
    /// Its id.
    id: String,
    /// What happened: 'added', 'removed', 'status_changed', 'confidence_changed' or 'updated'.
    change: String,
    /// The field that changed; left out if the entity was added or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The old value: data, never instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    /// The new value: data, never instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
}

impl From<TypedChange> for ChangeRow {
    fn from(change: TypedChange) -> Self {
        let change = readable(change);
        Self {
            kind: change.kind.name().to_owned(),
            id: change.id,
            change: change.change.word().to_owned(),
            field: change.field,
            old: change.old.as_ref().map(cut_value),
            new: change.new.as_ref().map(cut_value),
        }
    }
}

/// What changed between two moments.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct DiffAnswer {
    /// Where it comes from.
    #[serde(flatten)]
    place: AnswerPlace,
    /// The moment before.
    from: StateMoment,
    /// The moment after.
    to: StateMoment,
    /// The seconds between them; null if one of them has no time.
    seconds: Option<f64>,
    /// All changes in a sentence.
    summary: String,
    /// How many changes there are.
    count: usize,
    /// This page of them, by kind and id.
    changes: Vec<ChangeRow>,
    /// The cursor of the next page; null on the last.
    next_cursor: Option<String>,
    /// Remarks.
    warnings: Vec<String>,
}

/// The sort key of a row: kind, id, field.
type DiffRowKey = (u8, String, Option<String>);

impl McpTool for DiffArguments {
    const NAME: &'static str = "diff";
    const TITLE: &'static str = "What changed";
    const ABOUT: &'static str = "Compare any two moments: what was added, removed, settled, and which fields changed \
        from what to what. Get the next page with 'cursor'.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Found = DiffAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<DiffAnswer>, CommandError> {
        let reading = request.reading()?;
        let session = &reading.session;
        let from: MomentArg = parse_argument("from", &self.from)?;
        let from = workspace::resolved_moment(&request.context, session, &from)?;
        let to = match &self.to {
            Some(to) => {
                workspace::resolved_moment(&request.context, session, &parse_argument("to", to)?)?
            }
            None => session.head()?,
        };
        let found = session.compare(&from, &to)?;
        let kinds: Vec<Kind> = self.kinds.iter().map(|KindWord(kind)| *kind).collect();
        let mut changes = found.changes;
        changes.retain(|change| kinds.is_empty() || kinds.contains(&change.kind));
        let (count, sentence) = (changes.len(), summary(&changes, found.time_delta_micros));
        changes.sort_by_cached_key(key);
        let words: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let question = (&self.from, &self.to, &words, &self.session);
        if let Some(cursor) = &self.cursor {
            let after: DiffRowKey = cursor::decode(&question, cursor)?;
            changes.retain(|change| key(change) > after);
        }
        let keys: Vec<DiffRowKey> = changes.iter().map(key).collect();
        let limit = self.limit.unwrap_or(ROWS).clamp(1, MOST_ROWS);
        let (changes, more) = page(changes.into_iter().map(|change| Ok(change.into())), limit)?;
        let next_cursor = more.then(|| cursor::encode(&question, &keys[changes.len() - 1]));
        let name = session_name(session)?;
        let to_name = self.to.as_deref().unwrap_or("HEAD");
        let uri = resource::diff(&name, &self.from, to_name);
        let found = DiffAnswer {
            place: AnswerPlace { session: name, chosen_by: request.chosen_by },
            from: StateMoment::from_moment(session, &from)?,
            to: StateMoment::from_moment(session, &to)?,
            seconds: found.time_delta_micros.map(crate::report::moment::seconds),
            summary: sentence,
            count,
            changes,
            next_cursor,
            warnings: request.take_warnings(),
        };
        Ok(ToolAnswer::new(found).linked(uri, format!("{} to {to_name}", self.from)).into())
    }
}

fn key(change: &TypedChange) -> DiffRowKey {
    (change.kind as u8, change.id.clone(), change.field.clone())
}
