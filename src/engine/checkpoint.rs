//! Reads checkpoints from the index.

use super::refs::session as session_refs;
use crate::backend::{ScanDirection, Snapshot, TableRow};
use crate::engine::refs::StoreRefs;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{CheckpointRow, OperationEffect, OperationRow};
use crate::model::{Checkpoint, CheckpointId, OperationId, SessionNumber, Timestamp, Value};
use std::collections::BTreeMap;

fn decode(bytes: &[u8]) -> Result<Checkpoint> {
    CheckpointRow::decode(bytes).map(|row| row.checkpoint).map_err(Error::corrupt("a checkpoint"))
}

/// Decodes a row of the table of checkpoint times.
fn time_of(row: &[u8]) -> Timestamp {
    let micros = row.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
    Timestamp::from_micros(micros.unwrap_or_default())
}

/// Returns the checkpoint with this sequence number, unless it is hidden.
pub(crate) fn by_sequence(
    view: &dyn Snapshot,
    session: SessionNumber,
    sequence: u64,
) -> Result<Option<Checkpoint>> {
    Ok(by_sequences(view, session, &[sequence])?.remove(&sequence))
}

/// The error of a checkpoint that the index lists and does not have.
fn missing_checkpoint(sequence: u64) -> Error {
    Error::missing(format!("the checkpoint #{sequence}"))
}

/// Returns the checkpoints with these sequence numbers, except hidden ones, by number. Reads them
/// in two batches.
pub(crate) fn by_sequences(
    view: &dyn Snapshot,
    session: SessionNumber,
    sequences: &[u64],
) -> Result<BTreeMap<u64, Checkpoint>> {
    let numbers: Vec<_> = sequences.iter().map(|one| of(session).number(*one).build()).collect();
    let times = view.get_many(key::CHECKPOINT_TIMES, &numbers)?;
    let (mut shown, mut places) = (Vec::new(), Vec::new());
    for (sequence, time) in sequences.iter().zip(times) {
        if let Some(time) = time {
            shown.push(*sequence);
            places.push(of(session).time(time_of(&time)).number(*sequence).build());
        }
    }
    let rows = view.get_many(key::CHECKPOINTS, &places)?;
    let decoded = shown.into_iter().zip(rows).map(|(sequence, row)| {
        let row = row.ok_or_else(|| missing_checkpoint(sequence))?;
        Ok((sequence, decode(&row)?))
    });
    decoded.collect()
}

/// Returns the checkpoint with this id, unless it is hidden.
pub(crate) fn by_id(
    view: &dyn Snapshot,
    session: SessionNumber,
    id: &CheckpointId,
) -> Result<Option<Checkpoint>> {
    let Some(place) = view.get(key::IDS, &key::checkpoint_id(id))? else { return Ok(None) };
    if key::short_at(&place, 0) != Some(session) {
        return Ok(None);
    }
    by_sequence(view, session, key::last_number(&place).unwrap_or(0))
}

/// Returns the checkpoint of this event.
pub(crate) fn by_key(
    view: &dyn Snapshot,
    session: SessionNumber,
    event: &str,
) -> Result<Option<Checkpoint>> {
    let Some(id) = view.get(key::CHECKPOINT_KEYS, &of(session).text(event).build())? else {
        return Ok(None);
    };
    let Some(id) = id.first_chunk() else { return Ok(None) };
    by_id(view, session, &CheckpointId::from_bytes(*id))
}

/// Merges a newly reported checkpoint of an event into the known one. A report about the past
/// completes it; a report about the present is a duplicate. `None`: nothing changes.
pub(crate) fn merge_reported(
    known: &Checkpoint,
    mut new: Checkpoint,
    past: bool,
) -> Option<Checkpoint> {
    if !past {
        return None;
    }
    (new.id, new.sequence) = (known.id, known.sequence);
    new.body = completed(&known.body, new.body);
    (new != *known).then_some(new)
}

/// Merges two bodies of an event: a new field replaces an old one of the same name, the other old
/// fields stay.
fn completed(old: &Value, new: Value) -> Value {
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => {
            let mut fields = old.clone();
            fields.extend(new);
            Value::Map(fields)
        }
        (old, Value::Null) => old.clone(),
        (_, new) => new,
    }
}

/// Selects the checkpoints of a list.
#[derive(Clone, Debug, Default)]
pub struct CheckpointFilter {
    /// Only checkpoints with this tag.
    pub tag: Option<String>,
    /// Only checkpoints at or after this time.
    pub since: Option<Timestamp>,
    /// Only checkpoints at or before this time.
    pub until: Option<Timestamp>,
    /// Largest number of checkpoints; the newest are listed.
    pub limit: Option<usize>,
}

/// Lists the checkpoints of a session, newest first.
pub(crate) fn list(
    view: &dyn Snapshot,
    session: SessionNumber,
    filter: &CheckpointFilter,
) -> Result<Vec<Checkpoint>> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    let since = filter.since.unwrap_or(Timestamp::from_micros(i64::MIN));
    let until = filter.until.unwrap_or(Timestamp::from_micros(i64::MAX));
    if since > until {
        return Ok(Vec::new());
    }
    let Some(tag) = &filter.tag else {
        let from = of(session).time(since).build();
        let to = of(session).time(until).end();
        return view
            .scan(key::CHECKPOINTS, &from, &to, ScanDirection::Descending, limit)?
            .iter()
            .map(|(_, row)| decode(row))
            .collect();
    };
    let from = of(session).text(tag).time(since).build();
    let to = of(session).text(tag).time(until).end();
    let rows = view.scan(key::TAGS, &from, &to, ScanDirection::Descending, limit)?;
    let mut found = listed(view, session, &rows)?;
    // Two tags may share a hash.
    found.retain(|checkpoint| checkpoint.tags.contains(tag));
    Ok(found)
}

/// Lists the checkpoints of a session like [`list`], the last written first: their times may come
/// from a wrong clock.
pub(crate) fn list_written(
    view: &dyn Snapshot,
    number: SessionNumber,
    filter: &CheckpointFilter,
) -> Result<Vec<Checkpoint>> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    if (filter.limit, &filter.tag, filter.since, filter.until) == (Some(limit), &None, None, None) {
        let (from, to) = (of(number).build(), of(number).end());
        let last =
            view.scan(key::CHECKPOINT_TIMES, &from, &to, ScanDirection::Descending, limit)?;
        return listed(view, number, &last);
    }
    let mut found = list(view, number, &CheckpointFilter { limit: None, ..filter.clone() })?;
    found.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.sequence));
    found.truncate(limit);
    Ok(found)
}

/// Returns the checkpoints of rows whose keys end with a sequence number, in their order.
fn listed(
    view: &dyn Snapshot,
    session: SessionNumber,
    rows: &[TableRow],
) -> Result<Vec<Checkpoint>> {
    let sequences: Vec<u64> =
        rows.iter().map(|(place, _)| key::last_number(place).unwrap_or(0)).collect();
    let mut found = by_sequences(view, session, &sequences)?;
    let taken =
        sequences.iter().map(|one| found.remove(one).ok_or_else(|| missing_checkpoint(*one)));
    taken.collect()
}

/// Counts the checkpoints of a session up to a time.
pub(crate) fn count(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    until: Timestamp,
) -> Result<u64> {
    let session = session_refs(refs, number)?;
    if session.last_checkpoint.is_none_or(|last| last <= until) {
        return Ok(session.checkpoints);
    }
    // Of the tables that contain the times, this one has the smallest rows.
    let (from, to) = (of(number).build(), of(number).end());
    let rows =
        view.scan(key::CHECKPOINT_TIMES, &from, &to, ScanDirection::Ascending, usize::MAX)?;
    Ok(rows.iter().filter(|(_, time)| time_of(time) <= until).count() as u64)
}

/// Lists the newest checkpoints of all sessions.
pub(crate) fn list_all(
    view: &dyn Snapshot,
    filter: &CheckpointFilter,
) -> Result<Vec<(SessionNumber, Checkpoint)>> {
    let since = filter.since.unwrap_or(Timestamp::from_micros(i64::MIN));
    let until = filter.until.unwrap_or(Timestamp::from_micros(i64::MAX));
    if since > until {
        return Ok(Vec::new());
    }
    let from = key::KeyBuilder::new().time(since).build();
    let to = key::KeyBuilder::new().time(until).end();
    // With a tag, the number of rows to read is not known in advance.
    let room = if filter.tag.is_some() { usize::MAX } else { filter.limit.unwrap_or(usize::MAX) };
    let mut found = Vec::new();
    for (place, _) in
        view.scan(key::ALL_CHECKPOINTS, &from, &to, ScanDirection::Descending, room)?
    {
        let session = key::short_at(&place, 8).unwrap_or(0);
        let sequence = key::last_number(&place).unwrap_or(0);
        let checkpoint =
            by_sequence(view, session, sequence)?.ok_or_else(|| missing_checkpoint(sequence))?;
        if filter.tag.as_ref().is_none_or(|tag| checkpoint.tags.contains(tag)) {
            found.push((session, checkpoint));
        }
        if filter.limit.is_some_and(|limit| found.len() >= limit) {
            break;
        }
    }
    Ok(found)
}

/// Returns the last checkpoint at or before a time.
pub(crate) fn last_at(
    view: &dyn Snapshot,
    session: SessionNumber,
    time: Timestamp,
) -> Result<Option<Checkpoint>> {
    let filter = CheckpointFilter { until: Some(time), limit: Some(1), ..Default::default() };
    Ok(list(view, session, &filter)?.pop())
}

/// Returns for each checkpoint the operation that hid it last. `rows` are in journal order. A redo
/// counts as the operation that it repeats.
pub(crate) fn last_hiding_operations<'a>(
    rows: impl Iterator<Item = &'a OperationRow>,
) -> BTreeMap<CheckpointId, OperationId> {
    let (mut takes_back, mut hiders) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let own = row.operation.id;
        takes_back.extend(row.takes_back.map(|other| (own, other)));
        let first = row.takes_back.and_then(|undo| takes_back.get(&undo)).copied();
        for effect in &row.effects {
            match effect {
                OperationEffect::CheckpointHidden { old } => {
                    hiders.insert(old.id, first.unwrap_or(own));
                }
                OperationEffect::Swept { checkpoints, .. } => {
                    hiders.extend(checkpoints.iter().map(|(_, id)| (*id, own)));
                }
                _ => {}
            }
        }
    }
    hiders
}
