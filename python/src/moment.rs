//! The class `Moment`: a resolved moment of a session.

use crate::handle::StoreHandle;
use crate::plain::{PlainValue, checkpoint_fields, plain_map};
use crate::watch::detached;
use forge_store::error::Error;
use forge_store::model::{FactOrigin, OperationAuthor, TextRef};
use forge_store::store::{
    BriefLine, ClaimGraph, GraphDirection, LogEntry, LogItem, SessionBrief, SourcedFact,
};
use forge_store::story::Story;
use forge_store::{ClaimEntry, Key, Kind, ResolvedMoment, Session, Value};
use pyo3::prelude::*;
use std::sync::Arc;

/// A moment in a session: a branch, a revision, and the time up to which facts are included.
#[pyclass(frozen, name = "Moment", module = "forge_store._forge")]
pub(crate) struct SessionMoment {
    pub(crate) handle: Arc<StoreHandle>,
    /// The id of the session.
    pub(crate) session: String,
    pub(crate) moment: ResolvedMoment,
}

impl SessionMoment {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&Session, &ResolvedMoment) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let session = self.handle.session(py, &self.session)?;
        detached(py, || read(&session, &self.moment))
    }
}

#[pymethods]
impl SessionMoment {
    /// The number of the revision; `None` before the first revision.
    #[getter]
    fn revision(&self) -> Option<u64> {
        self.moment.revision()
    }

    /// The revision, time, branch and named checkpoint of the moment.
    fn about(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let checkpoint = moment.named_checkpoint().cloned();
            let checkpoint = checkpoint
                .map(|one| Ok::<_, Error>((session.branch_name(one.branch)?, one)))
                .transpose()?
                .map(|(branch, one)| checkpoint_fields(one, branch));
            Ok(plain_map! {
                "revision": moment.revision(),
                "time": session.time_of(moment)?,
                "branch": session.branch_of(moment)?,
                "checkpoint": checkpoint,
            })
        })
    }

    /// The claims of these kinds, or of all kinds.
    #[pyo3(signature = (kinds=None))]
    fn claims(&self, py: Python<'_>, kinds: Option<Vec<String>>) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let kinds = kinds_of(kinds, Kind::claims())?;
            let state = session.state(moment)?;
            let mut claims = Vec::new();
            for kind in kinds {
                let known = state.claims_of(kind)?.into_iter();
                claims.extend(known.map(|(id, entry)| claim_fields(Key::new(kind, id), entry)));
            }
            Ok(PlainValue::List(claims))
        })
    }

    /// One claim, read without the rest of the state; `None` if the state does not contain it.
    fn claim(&self, py: Python<'_>, kind: &str, id: &str) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let key = Key::new(kind_of(kind)?, id);
            Ok(session.claim(moment, &key)?.map(|entry| claim_fields(key, entry)).into())
        })
    }

    /// The kind and id of the claim with this id. The id may have its kind before it (`gap:G1`).
    fn kind_of(&self, py: Python<'_>, id: &str) -> PyResult<(String, String)> {
        self.read(py, |session, moment| {
            let key = find_claim(session, moment, id)?;
            Ok((key.kind.name().to_owned(), key.id))
        })
    }

    /// The kinds and ids of the claims that a claim rests on directly.
    fn rests_on(&self, py: Python<'_>, kind: &str, id: &str) -> PyResult<Vec<(String, String)>> {
        self.read(py, |session, moment| {
            let graph = ClaimGraph::read(&session.state(moment)?)?;
            let key = Key::new(kind_of(kind)?, id);
            let found = graph.neighbours(&key, GraphDirection::Down);
            Ok(found.map(|(key, _)| (key.kind.name().to_owned(), key.id.clone())).collect())
        })
    }

    /// The facts of these kinds, or of all kinds, the earliest first. With `full`, long texts are
    /// whole; otherwise only their beginnings.
    #[pyo3(signature = (kinds=None, full=false))]
    fn facts(
        &self,
        py: Python<'_>,
        kinds: Option<Vec<String>>,
        full: bool,
    ) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let state = session.state(moment)?;
            let kinds = kinds_of(kinds, Kind::facts())?;
            if let Some(kind) = kinds.iter().find(|kind| kind.is_claim()) {
                return Err(Error::invalid(format!(
                    "'{kind}' is a kind of claims, not of facts: read the claims of a moment with \
                    'state'"
                )));
            }
            let mut facts = Vec::new();
            for kind in kinds {
                facts.extend(state.facts_of(kind)?);
            }
            facts.sort_by_key(|known| (known.fact.at, known.fact.place));
            let facts = facts.into_iter().map(|known| {
                let mut known = known;
                read_texts(session, known.source.as_deref(), &mut known.fact.value, full)?;
                Ok(fact_fields(known))
            });
            Ok(PlainValue::List(facts.collect::<Result<_, Error>>()?))
        })
    }

    /// Every change of a claim up to this moment, the latest first.
    fn history(&self, py: Python<'_>, kind: &str, id: &str) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let known = session.history(moment, &Key::new(kind_of(kind)?, id))?.into_iter();
            let changes = known.map(|entry| {
                let fields =
                    |side: Option<ClaimEntry>| side.map(|entry| PlainValue::from(entry.value));
                let (old, new) = (fields(entry.change.old), fields(entry.change.new));
                revision_fields(entry.revision)
                    .with([("old".to_owned(), old.into()), ("new".to_owned(), new.into())])
            });
            Ok(PlainValue::List(changes.collect()))
        })
    }

    /// Revisions and checkpoints up to this moment, the latest first, at most `limit`.
    fn log(&self, py: Python<'_>, limit: usize) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let items = session.log(moment, limit)?.into_iter().map(|item| {
                Ok(match item {
                    LogItem::Revision(entry) => revision_fields(entry),
                    LogItem::Checkpoint(checkpoint) => {
                        let branch = session.branch_name(checkpoint.branch)?;
                        checkpoint_fields(checkpoint, branch)
                            .with([("type".to_owned(), "checkpoint".into())])
                    }
                    LogItem::Lost(lost) => plain_map! {
                        "type": "lost",
                        "number": lost.sequence,
                        "branch": lost.branch,
                        "time": lost.near,
                    },
                })
            });
            Ok(PlainValue::List(items.collect::<Result<_, Error>>()?))
        })
    }

    /// The branches at this moment.
    fn branches(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let branches = session.branches(moment)?.into_iter().map(|branch| {
                let word = serde_json::to_value(branch.status).ok();
                let status = word.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
                plain_map! {
                    "name": branch.name,
                    "current": branch.current,
                    "revision": branch.revision,
                    "base": branch.base.as_ref().map(|(name, _)| name.clone()),
                    "base_revision": branch.base.and_then(|(_, revision)| revision),
                    "status": status,
                    "created_at": branch.created_at,
                    "changed_at": branch.changed_at,
                    "hypothesis": branch.metadata.hypothesis,
                    "approach": branch.metadata.approach,
                    "success_criteria": branch.metadata.success_criteria,
                    "results": branch.metadata.results,
                }
            });
            Ok(PlainValue::List(branches.collect()))
        })
    }

    /// The brief at this moment: what is needed to continue.
    fn brief(&self, py: Python<'_>) -> PyResult<PlainValue> {
        self.read(py, |session, moment| {
            let state = session.state(moment)?;
            Ok(brief_fields(Story::brief(&state, &forge_agents::resolve)?))
        })
    }
}

/// Returns the kind with this name.
pub(crate) fn kind_of(name: &str) -> Result<Kind, Error> {
    name.parse::<Kind>().map_err(|error| Error::invalid(error.to_string()))
}

fn kinds_of(
    names: Option<Vec<String>>,
    all: impl Iterator<Item = Kind>,
) -> Result<Vec<Kind>, Error> {
    match names {
        None => Ok(all.collect()),
        Some(names) => names.iter().map(|name| kind_of(name)).collect(),
    }
}

/// Finds the claim with this id, which may have its kind before it (`gap:G1`).
pub(crate) fn find_claim(
    session: &Session,
    moment: &ResolvedMoment,
    name: &str,
) -> Result<Key, Error> {
    if let Some((kind, id)) = name.split_once(':')
        && let Ok(kind) = kind.parse::<Kind>()
    {
        let key = Key::new(kind, id);
        let known = kind.is_claim() && session.claim(moment, &key)?.is_some();
        return if known { Ok(key) } else { Err(Error::not_found(kind.name(), id)) };
    }
    let keys: Vec<Key> = Kind::claims().map(|kind| Key::new(kind, name)).collect();
    let found = session.claims(moment, &keys)?;
    let mut known = keys.into_iter().zip(found).filter(|(_, entry)| entry.is_some());
    match (known.next(), known.next()) {
        (None, _) => Err(Error::not_found("claim", name)),
        (Some((key, _)), None) => Ok(key),
        (Some((one, _)), Some((other, _))) => Err(Error::invalid(format!(
            "there is a {} and a {} with the id '{name}': write '{}:{name}' for the first",
            one.kind, other.kind, one.kind
        ))),
    }
}

/// Replaces references to long texts by the texts, or by their beginnings.
fn read_texts(
    session: &Session,
    source: Option<&str>,
    value: &mut Value,
    full: bool,
) -> Result<(), Error> {
    if let Some(text) = TextRef::from_value(value) {
        *value = match full {
            false => text.preview.into(),
            true => match session.text(source, &text, &forge_agents::resolve) {
                // The source was dropped, so only the beginning of the text is left.
                Err(Error::TextRemoved { .. }) => text.preview.into(),
                whole => whole?.into(),
            },
        };
        return Ok(());
    }
    match value {
        Value::Map(fields) => {
            fields.iter_mut().try_for_each(|(_, field)| read_texts(session, source, field, full))
        }
        Value::List(items) => {
            items.iter_mut().try_for_each(|item| read_texts(session, source, item, full))
        }
        _ => Ok(()),
    }
}

fn claim_fields(key: Key, entry: ClaimEntry) -> PlainValue {
    plain_map! {
        "kind": key.kind.name(),
        "id": key.id,
        "at": entry.added_at,
        "fields": entry.value,
    }
}

fn fact_fields(known: SourcedFact) -> PlainValue {
    let fact = known.fact;
    let origin = match fact.origin {
        FactOrigin::Hook => "hook",
        FactOrigin::Recorded => "recorded",
        FactOrigin::Imported => "imported",
    };
    plain_map! {
        "kind": fact.kind.name(),
        "id": fact.id,
        "at": fact.at,
        "recorded_at": fact.recorded_at,
        "origin": origin,
        "fields": fact.value,
    }
}

fn revision_fields(entry: LogEntry) -> PlainValue {
    let author = match entry.author {
        OperationAuthor::Asked => "asked",
        OperationAuthor::Hook => "hook",
    };
    plain_map! {
        "type": "revision",
        "number": entry.sequence,
        "id": entry.id.to_string(),
        "time": entry.time,
        "branch": entry.branch,
        "verb": entry.verb,
        "author": author,
        "operation": entry.operation.to_string(),
        "claims": entry.claims,
        "reset_to": entry.reset_to,
        "merged": entry.merged,
    }
}

fn brief_fields(brief: SessionBrief) -> PlainValue {
    let line = |line: &BriefLine| {
        plain_map! {
            "kind": line.kind.name(),
            "id": line.id.clone(),
            "text": line.text.clone(),
            "word": line.word,
            "confidence": line.confidence,
            "reason": line.reason.clone(),
        }
    };
    let lists = brief
        .lists()
        .map(|(name, lines)| (name.to_owned(), PlainValue::List(lines.iter().map(line).collect())));
    let about = plain_map! {
        "session": brief.session,
        "branch": brief.branch,
        "at": brief.at,
        "next": brief.next,
    };
    about.with(lists)
}
