//! Extracts the texts of a session for searching.

use super::corpus::{CorpusEntry, CorpusProgress, CorpusSeal, CorpusSource, SearchCorpus};
use crate::backend::{ScanDirection, Snapshot as _};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::fact;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::FactRow;
use crate::format::key::{self, of};
use crate::model::{Fact, Kind, SessionId, TextRef, Value};
use crate::store::Store;
use crate::store::event_stream::TextResolver;
use crate::store::folder::SEARCH_FOLDER;
use crate::store::history::LogItem;
use crate::store::session::Session;
use std::collections::HashSet;
use std::path::PathBuf;

/// Fields that are not worth searching.
const UNSEARCHED_FIELDS: [&str; 14] = [
    "parent",
    "message_id",
    "model",
    "cwd",
    "git_branch",
    "agent",
    "call",
    "called_at",
    "outcome",
    "streams",
    "role",
    "source",
    "working_dir",
    "tool_calls",
];
const RECORDS: usize = 500;

/// Returns the keys of a session's search copy.
fn stamp_of(store: &Store, id: &SessionId) -> CorpusSeal {
    CorpusSeal::new(store.engine.seals.key(), store.engine.cipher.as_ref(), id)
}

/// Returns the path of a session's search copy.
pub(in crate::store) fn copy_of(store: &Store, id: &SessionId) -> Option<PathBuf> {
    store.path().map(|path| path.join(SEARCH_FOLDER).join(stamp_of(store, id).file()))
}

/// Returns the texts of a session as it is now, and updates the search copy if possible.
pub(super) fn current(
    store: &Store,
    session: &Session,
    resolve: TextResolver<'_>,
) -> Result<SearchCorpus> {
    let view = session.view()?;
    let refs = session_refs(&view.refs, session.number)?;
    let now = CorpusProgress { facts: refs.facts, pages: refs.pages, sequence: refs.next_sequence };
    let stamp = stamp_of(store, &refs.info.id);
    let path = copy_of(store, &refs.info.id);
    let (mut corpus, good) = match &path {
        Some(path) => SearchCorpus::read(path, &stamp)?,
        None => (SearchCorpus::default(), 0),
    };
    if corpus.seen != now {
        let known = corpus.entries.iter().filter_map(|entry| match entry.source {
            CorpusSource::Fact { row, .. } => Some(row),
            _ => None,
        });
        let known: HashSet<u64> = known.collect();
        let sequenced = corpus.entries.iter().filter_map(|entry| match entry.source {
            CorpusSource::Fact { .. } => None,
            _ => entry.sequence,
        });
        let from = sequenced.max().map_or(0, |last| last + 1);
        facts(session, &view, &known, resolve, &mut corpus)?;
        claims(session, &view, from, &mut corpus)?;
        corpus.seen = now;
        // Spooled writes may get other numbers later, so they are not stored.
        if let Some(path) = &path
            && !store.engine.options.read_only
            && !view.planned
            && let Err(error) = corpus.write(path, good, &stamp)
        {
            tracing::info!(%error, "the texts for searching were not kept");
        }
    }
    // Undone facts are not found.
    let hidden: HashSet<_> = refs.hidden.iter().copied().collect();
    if !hidden.is_empty() {
        corpus.forget(|entry| {
            matches!(&entry.source, CorpusSource::Fact { operation, .. } if hidden.contains(operation))
        });
    }
    // A checkpoint can be changed or undone: it is read each time, never stored.
    for checkpoint in checkpoint::list(&view, session.number, &CheckpointFilter::default())? {
        let mut text = checkpoint.message;
        for tag in &checkpoint.tags {
            text.push('\n');
            text.push_str(tag);
        }
        let entry = CorpusEntry {
            kind: None,
            id: checkpoint.id.to_string(),
            at: checkpoint.time,
            sequence: Some(checkpoint.sequence),
            source: CorpusSource::Checkpoint,
            length: 0,
        };
        corpus.add(entry, &text);
    }
    Ok(corpus)
}

fn facts(
    session: &Session,
    view: &ReadSnapshot,
    known: &HashSet<u64>,
    resolve: TextResolver<'_>,
    corpus: &mut SearchCorpus,
) -> Result<()> {
    let mut reader = fact::FactReader::default();
    for kind in Kind::facts() {
        let place = of(session.number).kind(kind);
        let (from, to) = (place.clone().build(), place.end());
        for (key, row) in view.scan(key::FACTS, &from, &to, ScanDirection::Ascending, usize::MAX)? {
            let hash = row_hash(&key);
            if known.contains(&hash) {
                continue;
            }
            let row = FactRow::decode(&row).map_err(Error::corrupt("a fact's place"))?;
            let found = reader.read(view, &row)?;
            let Fact { id, at, value, .. } = found.fact;
            let mut text = String::new();
            let source = found.source.as_deref();
            // If a text cannot be read, use its preview.
            put(&value, &mut text, &mut |reference| {
                let whole = session.text(source, reference, resolve);
                whole.unwrap_or_else(|_| reference.preview.clone())
            });
            let source = CorpusSource::Fact { row: hash, operation: row.operation };
            corpus.add(
                CorpusEntry { kind: Some(kind), id, at, sequence: None, source, length: 0 },
                &text,
            );
        }
    }
    Ok(())
}

fn row_hash(key: &[u8]) -> u64 {
    let hash = blake3::hash(key);
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("8 of 32 bytes"))
}

/// Adds the claims of the revisions from this number on.
fn claims(
    session: &Session,
    view: &ReadSnapshot,
    from: u64,
    corpus: &mut SearchCorpus,
) -> Result<()> {
    let mut from = from;
    loop {
        let items = session.records_at(view, from, RECORDS)?;
        let Some(last) = items.last() else { return Ok(()) };
        from = last.sequence() + 1;
        for item in items {
            let LogItem::Revision(revision) = item else { continue };
            for change in session.changes_at(view, revision.sequence)? {
                let Some(new) = change.new else { continue };
                let mut text = String::new();
                put(&new.value, &mut text, &mut |text| text.preview.clone());
                let entry = CorpusEntry {
                    kind: Some(change.key.kind),
                    id: change.key.id,
                    at: revision.time,
                    sequence: Some(revision.sequence),
                    source: CorpusSource::Claim,
                    length: 0,
                };
                corpus.add(entry, &text);
            }
        }
    }
}

/// Adds the texts of a value, one line each.
fn put(value: &Value, text: &mut String, long: &mut dyn FnMut(&TextRef) -> String) {
    match value {
        Value::Text(said) => line(said, text),
        Value::List(items) => items.iter().for_each(|item| put(item, text, long)),
        Value::Map(fields) => {
            if let Some(reference) = TextRef::from_value(value) {
                return line(&long(&reference), text);
            }
            let loud =
                fields.iter().filter(|(name, _)| !UNSEARCHED_FIELDS.contains(&name.as_str()));
            loud.for_each(|(_, field)| put(field, text, long));
        }
        _ => {}
    }
}

fn line(said: &str, text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(said);
}
