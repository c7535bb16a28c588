//! What was known at a moment, page by page.

use super::super::answer::{
    Answer, MOST_ROWS, Place, Stored, TEXT_BYTES, WHOLE_BYTES, cut_fields, page,
};
use super::super::schema::KindWord;
use super::super::visit::{Visit, name_of};
use super::super::{cursor, resource};
use super::{Client, Does, Effect, Outcome, word_if};
use crate::args::value::Moment as Given;
use crate::error::CommandError;
use crate::reading::{Known, known_of, one_of};
use crate::report::entity::Entity;
use crate::text::{Length, Texts};
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{ResolvedMoment, Session, StateAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many rows a page has if nobody says.
const ROWS: usize = 30;

/// `state`.
pub(in crate::mcp) struct State;

/// Arguments of `state`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct StateArguments {
    /// The moment: '2 hours ago', '2025-01-20 14:30', '#42', 'HEAD~3', a tag, a branch, 'before last compaction'. Now
    /// if left out.
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
    /// The 'next_cursor' of the page before, with the same arguments.
    cursor: Option<String>,
    /// The session, by name or id.
    session: Option<String>,
}

/// A moment of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct Moment {
    /// Its time; null if nothing has happened yet.
    at: Option<String>,
    /// Its branch.
    branch: String,
    /// The number of its revision in the session: '#7' names it. Null before the first.
    revision: Option<u64>,
    /// The id of the checkpoint it was named by; null if it was named otherwise.
    checkpoint: Option<String>,
}

impl Moment {
    /// The moment of this point.
    ///
    /// # Errors
    ///
    /// As every read.
    pub(in crate::mcp) fn of(
        session: &Session,
        point: &ResolvedMoment,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            at: session.time_of(point)?.map(|time| time.to_string()),
            branch: session.branch_of(point)?,
            revision: session.revision_of(point)?.map(|revision| revision.sequence),
            checkpoint: point.named_checkpoint().map(|checkpoint| checkpoint.id.to_string()),
        })
    }
}

/// What was known at a moment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct StateFound {
    /// Where it comes from.
    #[serde(flatten)]
    place: Place,
    /// The moment.
    moment: Moment,
    /// How many entities of each kind asked for there are.
    counts: BTreeMap<&'static str, usize>,
    /// This page of them: claims first, then facts, each in the order of their times.
    entries: Vec<Stored>,
    /// The cursor of the next page; null on the last.
    next_cursor: Option<String>,
    /// Remarks.
    warnings: Vec<String>,
}

/// A row: kind, time, id.
type RowKey = (u8, i64, String);

impl Does for State {
    const NAME: &'static str = "state";
    const TITLE: &'static str = "State at a moment";
    const ABOUT: &'static str = "Show what was known at any moment: hypotheses, evidence, beliefs, gaps, notes, and \
        the commands, edits, messages and test results up to then. Exact to the change. Get the next page with \
        'cursor'; pass 'kinds' to see less, 'id' and 'full' to see a whole entity.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = StateArguments;
    type Found = StateFound;

    fn session(arguments: &StateArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &StateArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<StateFound>, CommandError> {
        let reading = visit.reading()?;
        let at = word_if::<Given>("at", given.at.as_ref())?;
        let point = reading.point(&visit.context, at.as_ref())?;
        let state = reading.state(&point, given.as_recorded)?;
        let kinds = given.kinds.iter().map(|KindWord(kind)| *kind);
        let mut kinds: Vec<Kind> = kinds.collect();
        if kinds.is_empty() {
            kinds = Kind::ALL.to_vec();
        }
        kinds.sort_unstable();
        kinds.dedup();
        let (mut known, counts) = match (&given.id, kinds.as_slice()) {
            (None, _) => all_of(&state, &kinds)?,
            (Some(id), [kind]) => {
                (vec![one_of(&state, *kind, id)?], BTreeMap::from([(kind.name(), 1)]))
            }
            (Some(_), _) => {
                return Err(CommandError::invalid("'id' needs exactly one kind in 'kinds'")
                    .hinted("'why' takes an id alone"));
            }
        };
        let words: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let question =
            (&given.at, &words, &given.id, given.full, given.as_recorded, &given.session);
        if let Some(cursor) = &given.cursor {
            let after: RowKey = cursor::read(&question, cursor)?;
            known.retain(|known| key(known) > after);
        }
        let limit = given.limit.unwrap_or(ROWS).clamp(1, MOST_ROWS);
        let (length, bytes) =
            if given.full { (Length::Whole, WHOLE_BYTES) } else { (Length::Preview, TEXT_BYTES) };
        let mut texts = reading.texts(length);
        let rows = known.iter().map(|known| stored(known, &mut texts, bytes));
        let (entries, more) = page(rows, limit)?;
        let next_cursor = more.then(|| cursor::behind(&question, &key(&known[entries.len() - 1])));
        let session = name_of(&reading.session)?;
        // One that was asked for by its id has an address of its own; a whole page of addresses says nothing new.
        let linked = entries.first().filter(|_| given.id.is_some());
        let links = linked.map(|entry| {
            let uri = resource::entity(&session, &entry.kind, &entry.id);
            (uri, format!("{} {}", entry.kind, entry.id))
        });
        let links = links.into_iter().collect();
        let found = StateFound {
            place: Place { session, chosen_by: visit.chosen_by },
            moment: Moment::of(&reading.session, &point)?,
            counts,
            entries,
            next_cursor,
            warnings: visit.take_warnings(),
        };
        Ok(Answer { found, links }.into())
    }
}

fn key(known: &Known) -> RowKey {
    (known.kind() as u8, known.at().as_micros(), known.id().to_owned())
}

type Counted = (Vec<Known>, BTreeMap<&'static str, usize>);

fn all_of(state: &StateAt, kinds: &[Kind]) -> Result<Counted, CommandError> {
    let (mut all, mut counts) = (Vec::new(), BTreeMap::new());
    for kind in kinds {
        let known = known_of(state, *kind)?;
        if !known.is_empty() {
            counts.insert(kind.name(), known.len());
        }
        all.extend(known);
    }
    all.sort_by_cached_key(key);
    Ok((all, counts))
}

/// An entity as it is handed back, its texts cut to so many bytes.
///
/// # Errors
///
/// As reading texts does.
fn stored(known: &Known, texts: &mut Texts<'_>, bytes: usize) -> Result<Stored, CommandError> {
    let entity = Entity::new(known.clone(), texts)?;
    let (origin, source) = match known {
        Known::Claim(..) => ("claimed".to_owned(), None),
        Known::Fact(fact) => {
            let origin = serde_json::to_value(fact.fact.origin).unwrap_or_default();
            (
                origin.as_str().unwrap_or_default().to_owned(),
                fact.source.as_deref().map(str::to_owned),
            )
        }
    };
    let mut fields = match serde_json::to_value(&entity) {
        Ok(Value::Object(fields)) => cut_fields(fields, bytes),
        _ => serde_json::Map::new(),
    };
    // These stand beside the fields already.
    for name in ["id", "at", "created_at"] {
        fields.remove(name);
    }
    let at: Timestamp = known.at();
    let (kind, id) = (known.kind().name().to_owned(), known.id().to_owned());
    Ok(Stored { kind, id, at: at.to_string(), origin, source, fields })
}
