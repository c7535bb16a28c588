//! The tool `state`: what was known at a moment, in pages.

use super::super::answer::{
    AnswerPlace, MOST_ROWS, StoredEntity, TEXT_BYTES, ToolAnswer, WHOLE_BYTES, cut_fields, page,
};
use super::super::request::{McpRequest, session_name};
use super::super::schema::KindWord;
use super::super::{cursor, resource};
use super::{McpTool, ToolEffect, ToolReply, parse_optional};
use crate::args::value::MomentArg;
use crate::error::CommandError;
use crate::report::entity::EntityJson;
use crate::session_reader::{KnownEntity, entities_of_kind, find_entity};
use crate::text::{TextLength, TextReader, json_word};
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{ResolvedMoment, Session, StateAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The default number of rows in a page.
const ROWS: usize = 30;

/// Arguments of `state`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct StateArguments {
    /// The moment: '2 hours ago', '2025-01-20 14:30', '#42', 'HEAD~3', a tag, a branch, 'before
    /// last compaction'. Now if left out.
    at: Option<String>,
    /// The kinds to list; all if left out.
    #[serde(default)]
    kinds: Vec<KindWord>,
    /// The id of the one entity to show; with exactly one kind.
    id: Option<String>,
    /// Whole texts instead of their beginnings.
    #[serde(default)]
    full: bool,
    /// Omit what was recorded only later.
    #[serde(default)]
    as_recorded: bool,
    /// At most this many rows a page.
    #[schemars(range(min = 1, max = MOST_ROWS))]
    limit: Option<usize>,
    /// The 'next_cursor' of the previous page, with the same arguments.
    cursor: Option<String>,
    /// The session, by name or id.
    session: Option<String>,
}

/// A moment of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Moment", deny_unknown_fields)]
pub(in crate::mcp) struct StateMoment {
    /// Its time; null if nothing has happened yet.
    at: Option<String>,
    /// Its branch.
    branch: String,
    /// The number of its revision in the session: '#7' names it. Null before the first.
    revision: Option<u64>,
    /// The id of the checkpoint it was named by; null if it was named otherwise.
    checkpoint: Option<String>,
}

impl StateMoment {
    pub(in crate::mcp) fn from_moment(
        session: &Session,
        resolved: &ResolvedMoment,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            at: session.time_of(resolved)?.map(|time| time.to_string()),
            branch: session.branch_of(resolved)?,
            revision: session.revision_of(resolved)?.map(|revision| revision.sequence),
            checkpoint: resolved.named_checkpoint().map(|checkpoint| checkpoint.id.to_string()),
        })
    }
}

/// What was known at a moment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct StateAnswer {
    /// Where it comes from.
    #[serde(flatten)]
    place: AnswerPlace,
    /// The moment.
    moment: StateMoment,
    /// How many entities of each kind asked for there are.
    counts: BTreeMap<&'static str, usize>,
    /// This page of them: claims first, then facts, each in the order of their times.
    entries: Vec<StoredEntity>,
    /// The cursor of the next page; null on the last.
    next_cursor: Option<String>,
    /// Remarks.
    warnings: Vec<String>,
}

/// The sort key of a row: kind, time, id.
type StateRowKey = (u8, i64, String);

impl McpTool for StateArguments {
    const NAME: &'static str = "state";
    const TITLE: &'static str = "State at a moment";
    const ABOUT: &'static str = "Show what was known at any moment: hypotheses, evidence, beliefs, gaps, notes, and \
        the commands, edits, messages and test results up to then. Exact to the change. Get the next page with \
        'cursor'; pass 'kinds' to see less, 'id' and 'full' to see a whole entity.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Found = StateAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<StateAnswer>, CommandError> {
        let reading = request.reading()?;
        let at = parse_optional::<MomentArg>("at", self.at.as_ref())?;
        let resolved = reading.moment(&request.context, at.as_ref())?;
        let state = reading.state(&resolved, self.as_recorded)?;
        let mut kinds: Vec<Kind> = self.kinds.iter().map(|KindWord(kind)| *kind).collect();
        if kinds.is_empty() {
            kinds = Kind::ALL.to_vec();
        }
        kinds.sort_unstable();
        kinds.dedup();
        let (mut known, counts) = match (&self.id, kinds.as_slice()) {
            (None, _) => count_and_list(&state, &kinds)?,
            (Some(id), [kind]) => {
                (vec![find_entity(&state, *kind, id)?], BTreeMap::from([(kind.name(), 1)]))
            }
            (Some(_), _) => {
                return Err(CommandError::invalid("'id' needs exactly one kind in 'kinds'")
                    .hinted("'why' takes an id alone"));
            }
        };
        let words: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let question = (&self.at, &words, &self.id, self.full, self.as_recorded, &self.session);
        if let Some(cursor) = &self.cursor {
            let after: StateRowKey = cursor::decode(&question, cursor)?;
            known.retain(|known| row_key(known) > after);
        }
        let limit = self.limit.unwrap_or(ROWS).clamp(1, MOST_ROWS);
        let (length, bytes) = if self.full {
            (TextLength::Whole, WHOLE_BYTES)
        } else {
            (TextLength::Preview, TEXT_BYTES)
        };
        let mut texts = reading.texts(length);
        let rows = known.iter().map(|known| stored_entity(known, &mut texts, bytes));
        let (entries, more) = page(rows, limit)?;
        let next_cursor =
            more.then(|| cursor::encode(&question, &row_key(&known[entries.len() - 1])));
        let session = session_name(&reading.session)?;
        // An entity that was requested by its id gets a link; links for a whole page would repeat
        // the rows.
        let linked = entries.first().filter(|_| self.id.is_some());
        let links = linked.map(|entry| {
            let uri = resource::entity(&session, &entry.kind, &entry.id);
            (uri, format!("{} {}", entry.kind, entry.id))
        });
        let links = links.into_iter().collect();
        let found = StateAnswer {
            place: AnswerPlace { session, chosen_by: request.chosen_by },
            moment: StateMoment::from_moment(&reading.session, &resolved)?,
            counts,
            entries,
            next_cursor,
            warnings: request.take_warnings(),
        };
        Ok(ToolAnswer { found, links }.into())
    }
}

fn row_key(known: &KnownEntity) -> StateRowKey {
    (known.kind() as u8, known.at().as_micros(), known.id().to_owned())
}

/// Entities in the order of their rows, and how many there are of each kind.
type CountedEntities = (Vec<KnownEntity>, BTreeMap<&'static str, usize>);

/// Lists and counts all entities of these kinds.
fn count_and_list(state: &StateAt, kinds: &[Kind]) -> Result<CountedEntities, CommandError> {
    let (mut all, mut counts) = (Vec::new(), BTreeMap::new());
    for kind in kinds {
        let known = entities_of_kind(state, *kind)?;
        if !known.is_empty() {
            counts.insert(kind.name(), known.len());
        }
        all.extend(known);
    }
    all.sort_by_cached_key(row_key);
    Ok((all, counts))
}

/// Returns an entity for an answer, with its texts cut to this many bytes.
fn stored_entity(
    known: &KnownEntity,
    texts: &mut TextReader<'_>,
    bytes: usize,
) -> Result<StoredEntity, CommandError> {
    let entity = EntityJson::new(known.clone(), texts)?;
    let (origin, source) = match known {
        KnownEntity::Claim(..) => ("claimed".to_owned(), None),
        KnownEntity::Fact(fact) => {
            (json_word(fact.fact.origin), fact.source.as_deref().map(str::to_owned))
        }
    };
    let mut fields = cut_fields(&entity, bytes);
    // The answer has these already, outside of the fields.
    for name in ["id", "at", "created_at"] {
        fields.remove(name);
    }
    let at: Timestamp = known.at();
    let (kind, id) = (known.kind().name().to_owned(), known.id().to_owned());
    Ok(StoredEntity { kind, id, at: at.to_string(), origin, source, fields })
}
