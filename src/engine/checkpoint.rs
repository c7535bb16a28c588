//! Reads checkpoints from the index.

use super::index::incomplete::value_in;
use super::read_snapshot::ReadSnapshot;
use super::refs::session as session_refs;
use super::table_rows::{self, TableRows};
use crate::backend::{ScanDirection, Snapshot, TableRow};
use crate::engine::refs::StoreRefs;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{CheckpointRow, OperationEffect, OperationRow};
use crate::model::{Checkpoint, CheckpointId, OperationId, SessionNumber, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};

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

/// Makes the error for a checkpoint that the index lists but does not have.
fn missing_checkpoint(sequence: u64) -> Error {
    Error::missing(format!("the checkpoint #{sequence}"))
}

/// Returns the checkpoints with these sequence numbers, except hidden ones, by number. This needs
/// two batches of lookups.
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
    match value_in(view, key::IDS, key::checkpoint_id(id), session)? {
        Some(place) => by_sequence(view, session, key::last_number(&place).unwrap_or(0)),
        None => Ok(None),
    }
}

/// Returns the checkpoint with this event key, unless it is hidden.
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
/// completes the known checkpoint. A report about the present is a duplicate. `None`: nothing
/// changes.
pub(crate) fn merge_reported(
    known: &Checkpoint,
    mut new: Checkpoint,
    past: bool,
) -> Option<Checkpoint> {
    if !past {
        return None;
    }
    new.body = completed(&known.body, new.body);
    replaced(known, new)
}

/// Returns a new checkpoint of an event with the id and number of the known one, to replace it.
/// `None`: they are equal.
pub(crate) fn replaced(known: &Checkpoint, mut new: Checkpoint) -> Option<Checkpoint> {
    (new.id, new.sequence) = (known.id, known.sequence);
    (new != *known).then_some(new)
}

/// Merges the bodies of two checkpoints of an event. A new field replaces the old one of the same
/// name. All other old fields stay.
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
    /// Only checkpoints after this one in the list: those with an earlier time, or the same time
    /// and a lower number. The last checkpoint of a page selects the next page.
    pub before: Option<(Timestamp, u64)>,
    /// The id of the checkpoint that `before` means. Only a list of all sessions needs it: in
    /// several sessions, checkpoints can have the same time and number. Without it, such a list
    /// begins after the last of them, so it may skip some. If the checkpoint was removed since, the
    /// list may repeat or skip checkpoints of its time.
    pub before_id: Option<CheckpointId>,
    /// The maximum number of checkpoints. The first ones of the list are returned.
    pub limit: Option<usize>,
}

impl CheckpointFilter {
    /// Returns the end of the range of keys to read. A key consists of `keys`, and the time and the
    /// number of a checkpoint.
    fn end(&self, keys: KeyBuilder, until: Timestamp) -> Vec<u8> {
        let end = keys.clone().time(until).end();
        match self.before {
            Some((time, number)) => end.min(keys.time(time).number(number).build()),
            None => end,
        }
    }
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
        let to = filter.end(of(session), until);
        return view
            .scan(key::CHECKPOINTS, &from, &to, ScanDirection::Descending, limit)?
            .iter()
            .map(|(_, row)| decode(row))
            .collect();
    };
    let from = of(session).text(tag).time(since).build();
    let to = filter.end(of(session).text(tag), until);
    let rows = view.scan(key::TAGS, &from, &to, ScanDirection::Descending, limit)?;
    let mut found = listed(view, session, &rows)?;
    // Two tags may share a hash.
    found.retain(|checkpoint| checkpoint.tags.contains(tag));
    Ok(found)
}

/// Lists the checkpoints of a session like [`list`], but in the order in which they were written,
/// the last first: their times may come from a wrong clock.
pub(crate) fn list_written(
    view: &dyn Snapshot,
    number: SessionNumber,
    filter: &CheckpointFilter,
) -> Result<Vec<Checkpoint>> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    let bounds = (filter.since, filter.until, filter.before);
    if (filter.limit, &filter.tag, bounds) == (Some(limit), &None, (None, None, None)) {
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

/// Returns the checkpoints that rows list, in the order of the rows. The keys of the rows end with
/// sequence numbers.
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
    // Several tables contain the times. This one has the smallest rows.
    let rows = table_rows::rows(view, key::CHECKPOINT_TIMES, of(number))?;
    Ok(rows.iter().filter(|(_, time)| time_of(time) <= until).count() as u64)
}

/// The minimum number of rows per read. Not every row that is read belongs to the list.
const ROWS: usize = 256;

/// Returns the key of the checkpoint that `filter.before` means in the list of all sessions. If no
/// id says which of several it is, it is the last one. `None` if there is no such checkpoint.
fn border_of_all(view: &dyn Snapshot, filter: &CheckpointFilter) -> Result<Option<Vec<u8>>> {
    let Some((time, sequence)) = filter.before else { return Ok(None) };
    let same_time = KeyBuilder::new().time(time);
    if let Some(id) = &filter.before_id {
        let Some(number) = view.get(key::IDS, &key::checkpoint_id(id))? else { return Ok(None) };
        let session = key::short_at(&number, 0).unwrap_or(0);
        let place = same_time.session(session).number(sequence).build();
        let is_there = key::last_number(&number) == Some(sequence)
            && view.get(key::ALL_CHECKPOINTS, &place)?.is_some();
        return Ok(is_there.then_some(place));
    }
    // They are ascending, and the list is descending.
    let (from, to) = (same_time.clone().build(), same_time.end());
    for row in TableRows::range(view, key::ALL_CHECKPOINTS, from, to) {
        let (place, _) = row?;
        if key::last_number(&place) == Some(sequence) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Lists the newest checkpoints of all sessions that were not dropped.
pub(crate) fn list_all(
    view: &ReadSnapshot,
    filter: &CheckpointFilter,
) -> Result<Vec<(SessionNumber, Checkpoint)>> {
    let since = filter.since.unwrap_or(Timestamp::from_micros(i64::MIN));
    let until = filter.until.unwrap_or(Timestamp::from_micros(i64::MAX));
    let until = filter.before.map_or(until, |(time, _)| time.min(until));
    let limit = filter.limit.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    if since > until {
        return Ok(found);
    }
    let from = KeyBuilder::new().time(since).build();
    let mut to = KeyBuilder::new().time(until).end();
    let border = border_of_all(view, filter)?;
    // Without its checkpoint, the number at the border says what was listed before.
    let before = filter.before.filter(|_| border.is_none());
    if let Some(border) = border {
        to = to.min(border);
    }
    while found.len() < limit {
        let room = (limit - found.len()).max(ROWS);
        let rows = view.scan(key::ALL_CHECKPOINTS, &from, &to, ScanDirection::Descending, room)?;
        let Some((last, _)) = rows.last() else { break };
        to.clone_from(last);
        for (place, _) in &rows {
            let (number, sequence) =
                (key::short_at(place, 8).unwrap_or(0), key::last_number(place).unwrap_or(0));
            let time = key::time_at(place, 0).unwrap_or_default();
            if before.is_some_and(|before| (time, sequence) >= before)
                || session_refs(&view.refs, number)?.removal.is_some()
            {
                continue;
            }
            let checkpoint =
                by_sequence(view, number, sequence)?.ok_or_else(|| missing_checkpoint(sequence))?;
            if filter.tag.as_ref().is_none_or(|tag| checkpoint.tags.contains(tag)) {
                found.push((number, checkpoint));
            }
            if found.len() >= limit {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the time of the newest checkpoint of a session, without those in `hidden`.
pub(crate) fn last_time_without(
    view: &dyn Snapshot,
    session: SessionNumber,
    hidden: &BTreeSet<CheckpointId>,
) -> Result<Option<Timestamp>> {
    let filter = CheckpointFilter { limit: Some(hidden.len() + 1), ..Default::default() };
    let newest = list(view, session, &filter)?;
    Ok(newest.into_iter().find(|one| !hidden.contains(&one.id)).map(|one| one.time))
}

/// Returns the last checkpoint of a session at or before a time.
pub(crate) fn last_at(
    view: &dyn Snapshot,
    session: SessionNumber,
    time: Timestamp,
) -> Result<Option<Checkpoint>> {
    let filter = CheckpointFilter { until: Some(time), limit: Some(1), ..Default::default() };
    Ok(list(view, session, &filter)?.pop())
}

/// Returns for each checkpoint that was hidden or swept the last operation that did so. `rows` are
/// in journal order. For a redo, the operation that it repeats is returned.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::counting_snapshot::CountingSnapshot;
    use crate::engine::derive::derive_checkpoint;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};

    /// Regression: to find where a page begins, all checkpoints with its time were read, in each
    /// page. After an import of many sessions these can be all checkpoints.
    #[test]
    fn a_page_of_checkpoints_begins_after_an_id_without_reading_all_of_the_same_time() {
        let time = Timestamp::from_micros(1);
        let id = |session: SessionNumber| {
            let mut id = [0; 16];
            id[..4].copy_from_slice(&session.to_be_bytes());
            CheckpointId::from_bytes(id)
        };
        let mut rows = RowOverlay::default();
        for session in 0..3000 {
            let checkpoint = Checkpoint::new(id(session), 1, time);
            derive_checkpoint(session, &checkpoint, &mut |table, key, value| {
                rows.put(table, key, value);
                Ok(())
            })
            .unwrap();
        }
        let view = OverlaySnapshot::new(&EmptySnapshot, &rows, 1);
        let place = |session| KeyBuilder::new().time(time).session(session).number(1).build();
        for (before_id, session, most) in [(Some(id(2500)), 2500, 2), (None, 0, 1000)] {
            let view = CountingSnapshot::new(view, None);
            let filter =
                CheckpointFilter { before: Some((time, 1)), before_id, ..Default::default() };
            assert_eq!(border_of_all(&view, &filter).unwrap(), Some(place(session)));
            assert!(view.rows() <= most, "{before_id:?}");
        }
        let other = CheckpointFilter {
            before: Some((time, 2)),
            before_id: Some(id(1)),
            ..Default::default()
        };
        assert_eq!(border_of_all(&view, &other).unwrap(), None);
    }
}
