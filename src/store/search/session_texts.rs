//! Extracts the texts of a session for searching.

use super::catalogue::SessionProgress;
use super::text_block::{TextEntry, TextSource};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::{fact, table_rows};
use crate::error::{Error, Result};
use crate::format::FactRow;
use crate::format::key::{self, of};
use crate::model::{Checkpoint, Fact, Kind, TextRef, Value};
use crate::store::event_stream::TextResolver;
use crate::store::history::LogItem;
use crate::store::session::Session;
use std::collections::HashSet;

/// Fields that are not worth searching.
const UNSEARCHED_FIELDS: [&str; 14] = [
    "parent", "message_id", "model", "cwd", "git_branch", "agent", "call", "called_at", "outcome",
    "streams", "role", "source", "working_dir", "tool_calls",
];
/// Separates the texts of one entity: a white space that phrases do not have, so that none is found
/// over the end of a text.
const TEXT_BREAK: char = '\u{b}';
/// How many revisions and checkpoints are read at a time.
const RECORDS: usize = 500;

/// The texts of a session that the copy has already.
#[derive(Default)]
pub(super) struct KnownTexts {
    /// The hashes of the keys of facts.
    facts: HashSet<u64>,
    /// The revision, kind and id of each claim.
    claims: HashSet<(u64, Option<Kind>, String)>,
    /// The hashes of checkpoints.
    checkpoints: HashSet<u64>,
}

impl KnownTexts {
    pub(super) fn add(&mut self, entry: TextEntry) {
        match entry.source {
            TextSource::Fact { row, .. } => drop(self.facts.insert(row)),
            TextSource::Claim => {
                self.claims.insert((entry.sequence.unwrap_or(0), entry.kind, entry.id));
            }
            TextSource::Checkpoint { state } => drop(self.checkpoints.insert(state)),
        }
    }
}

/// Receives the texts of a session.
pub(super) type TextSink<'s> = &'s mut dyn FnMut(TextEntry, &str) -> Result<()>;

/// Passes the texts of a session that the copy lacks to `sink`. `before` is how much of the session
/// the copy has. `known` returns the texts that the copy has: it is called only if there are new
/// facts, or if `before` is `None`. Returns how much of the session the copy has with the new
/// texts.
pub(super) fn new_texts(
    session: &Session,
    view: &ReadSnapshot,
    before: Option<&SessionProgress>,
    known: &dyn Fn() -> Result<KnownTexts>,
    resolve: TextResolver<'_>,
    sink: TextSink<'_>,
) -> Result<SessionProgress> {
    let refs = session_refs(&view.refs, session.number)?;
    let mut progress = SessionProgress { session: session.number, ..SessionProgress::default() };
    if refs.removal.is_some() {
        return Ok(progress);
    }
    (progress.facts, progress.pages) = (refs.facts, refs.pages);
    progress.sequence = refs.next_sequence;
    let facts_are_new = before.is_none_or(|one| (one.facts, one.pages) != (refs.facts, refs.pages));
    let mut known =
        if before.is_none() || facts_are_new { known()? } else { KnownTexts::default() };
    let from = match before {
        Some(before) => {
            known.claims.clear();
            known.checkpoints = before.checkpoints.iter().copied().collect();
            before.sequence
        }
        None => 0,
    };
    if facts_are_new && refs.pages > 0 {
        facts(session, view, &known, resolve, sink)?;
    }
    claims(session, view, from, &known, sink)?;
    for checkpoint in checkpoint::list(view, session.number, &CheckpointFilter::default())? {
        let state = checkpoint_state(&checkpoint);
        progress.checkpoints.push(state);
        if !known.checkpoints.contains(&state) {
            let entry = TextEntry {
                kind: None,
                id: checkpoint.id.to_string(),
                at: checkpoint.time,
                sequence: Some(checkpoint.sequence),
                source: TextSource::Checkpoint { state },
                length: 0,
            };
            sink(entry, &text_of(&checkpoint, TEXT_BREAK))?;
        }
    }
    progress.checkpoints.sort_unstable();
    Ok(progress)
}

/// Returns the hashes of a session's checkpoints as they are now.
pub(super) fn checkpoint_states(session: &Session, view: &ReadSnapshot) -> Result<HashSet<u64>> {
    let list = checkpoint::list(view, session.number, &CheckpointFilter::default())?;
    Ok(list.iter().map(checkpoint_state).collect())
}

fn checkpoint_state(checkpoint: &Checkpoint) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(checkpoint.id.as_bytes());
    hasher.update(&checkpoint.sequence.to_le_bytes());
    hasher.update(&checkpoint.time.as_micros().to_le_bytes());
    // Existing copies have this hash.
    hasher.update(text_of(checkpoint, '\n').as_bytes());
    number_of(&hasher.finalize())
}

fn text_of(checkpoint: &Checkpoint, text_break: char) -> String {
    let mut text = checkpoint.message.clone();
    for tag in &checkpoint.tags {
        text.push(text_break);
        text.push_str(tag);
    }
    text
}

fn facts(
    session: &Session,
    view: &ReadSnapshot,
    known: &KnownTexts,
    resolve: TextResolver<'_>,
    sink: TextSink<'_>,
) -> Result<()> {
    let mut reader = fact::FactReader::default();
    for kind in Kind::facts() {
        for (key, row) in table_rows::rows(view, key::FACTS, of(session.number).kind(kind))? {
            let hash = number_of(&blake3::hash(&key));
            if known.facts.contains(&hash) {
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
            let source = TextSource::Fact { row: hash, operation: row.operation };
            let entry = TextEntry { kind: Some(kind), id, at, sequence: None, source, length: 0 };
            sink(entry, &text)?;
        }
    }
    Ok(())
}

fn number_of(hash: &blake3::Hash) -> u64 {
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("8 of 32 bytes"))
}

/// Passes the claims that changed in the revisions from this number on to `sink`.
fn claims(
    session: &Session,
    view: &ReadSnapshot,
    from: u64,
    known: &KnownTexts,
    sink: TextSink<'_>,
) -> Result<()> {
    let mut next = Some(from);
    while let Some(from) = next {
        let (items, following) = session.records_at(view, from, RECORDS)?;
        next = following;
        for item in items {
            let LogItem::Revision(revision) = item else { continue };
            for change in session.changes_at(view, revision.sequence)? {
                let Some(new) = change.new else { continue };
                let mut text = String::new();
                put(&new.value, &mut text, &mut |text| text.preview.clone());
                let entry = TextEntry {
                    kind: Some(change.key.kind),
                    id: change.key.id,
                    at: revision.time,
                    sequence: Some(revision.sequence),
                    source: TextSource::Claim,
                    length: 0,
                };
                if known.claims.is_empty()
                    || !known.claims.contains(&(revision.sequence, entry.kind, entry.id.clone()))
                {
                    sink(entry, &text)?;
                }
            }
        }
    }
    Ok(())
}

/// Adds the texts of a value, each after a [`TEXT_BREAK`]. `long` reads a text that is stored
/// elsewhere.
fn put(value: &Value, text: &mut String, long: &mut dyn FnMut(&TextRef) -> String) {
    match value {
        Value::Text(part) => add(part, text),
        Value::List(items) => items.iter().for_each(|item| put(item, text, long)),
        Value::Map(fields) => {
            if let Some(reference) = TextRef::from_value(value) {
                return add(&long(&reference), text);
            }
            let searched =
                fields.iter().filter(|(name, _)| !UNSEARCHED_FIELDS.contains(&name.as_str()));
            searched.for_each(|(_, field)| put(field, text, long));
        }
        _ => {}
    }
}

fn add(part: &str, text: &mut String) {
    if !text.is_empty() {
        text.push(TEXT_BREAK);
    }
    text.push_str(part);
}
