//! Reads objects from the index, and makes the rows that store them.

use super::row_overlay::RowOverlay;
use crate::backend::{self, ScanDirection, Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{self, Delta, DeltaSideRange, ObjectKind, PrewrittenRow, object_id};
use crate::model::ObjectId;

/// Placeholder for the number of an object that a repair could not save. Never assigned to an
/// object.
pub(crate) const LOST_OBJECT: u64 = 0;

/// Placeholder for the number of an object that pruning has dropped. Never assigned to an object.
pub(crate) const DROPPED_OBJECT: u64 = u64::MAX;

/// Number of the first object of the tail. It is higher than the number of every object of a
/// generation, so the counter of the generation need not be read.
const FIRST_TAIL_NUMBER: u64 = 1 << 48;

/// Returns whether a number is the number of an object, and not a placeholder.
pub(crate) const fn is_object_number(number: u64) -> bool {
    number != LOST_OBJECT && number != DROPPED_OBJECT
}

/// Returns the key of the rows of the object with this number.
fn number_key(number: u64) -> Vec<u8> {
    key::KeyBuilder::new().number(number).build()
}

/// Returns the number of the object with this id; `None` if there is none.
pub(crate) fn find_number(view: &dyn Snapshot, id: &ObjectId) -> Result<Option<u64>> {
    let row = view.get(key::OBJECT_NAMES, &key::object_name(id))?;
    Ok(row.and_then(|bytes| key::last_number(&bytes)))
}

/// Returns the number of the stored object with the same id as this encoded one; `None` if there
/// is none.
pub(crate) fn number_of(view: &dyn Snapshot, encoded: &[u8]) -> Result<Option<u64>> {
    let id = object_id(encoded).map_err(Error::corrupt("an object in the journal"))?;
    find_number(view, &id)
}

/// Returns the length of the content of a stored object in bytes, as its header says.
pub(crate) fn length(encoded: &[u8]) -> Result<u64> {
    format::content_length(encoded).map_err(Error::corrupt("an object in the journal"))
}

/// Returns the number that the next object gets.
pub(crate) fn next_number(view: &dyn Snapshot) -> Result<u64> {
    let row = view.get(key::COUNTERS, key::NEXT_OBJECT)?;
    Ok(row.and_then(|bytes| key::last_number(&bytes)).unwrap_or(1))
}

/// Returns the number of the last object of a generation if the counter of objects is not above
/// it. New objects would then overwrite stored ones.
pub(crate) fn beyond_counter(generation: &dyn Snapshot) -> Result<Option<u64>> {
    let last = generation.scan(key::OBJECTS, &[], &[], ScanDirection::Descending, 1)?;
    let last = last.first().and_then(|(row, _)| key::last_number(row));
    let next = next_number(generation)?;
    Ok(last.filter(|last| *last >= next))
}

/// Checks that the counter of objects of a generation is above the numbers of all its objects.
pub(crate) fn check_counter(generation: &dyn Snapshot) -> Result<()> {
    let Some(last) = beyond_counter(generation)? else { return Ok(()) };
    let what = format!("its counter of objects is not above the object {last}");
    Err(backend::Error::DamagedIndex { what }.into())
}

/// Creates the rows of a journal's tail, for reading only. They have nothing but a counter of
/// objects, so that the counter of the generation is never looked up.
pub(crate) fn rows_of_tail() -> RowOverlay {
    let mut rows = RowOverlay::default();
    put_next_number(&mut rows, FIRST_TAIL_NUMBER);
    rows
}

/// Sets the number that the next object gets.
pub(crate) fn put_next_number(rows: &mut RowOverlay, number: u64) {
    rows.put(key::COUNTERS, key::NEXT_OBJECT.to_vec(), number.to_be_bytes().to_vec());
}

/// Stores an object under its number and its id.
pub(crate) fn put(rows: &mut RowOverlay, number: u64, encoded: &[u8]) -> Result<()> {
    let id = object_id(encoded).map_err(Error::corrupt("an object in the journal"))?;
    rows.put(key::OBJECTS, number_key(number), encoded.to_vec());
    rows.put(key::OBJECT_NAMES, key::object_name(&id), number.to_be_bytes().to_vec());
    Ok(())
}

/// Stores an object under its number only: it cannot be found by its id.
pub(crate) fn put_unnamed(rows: &mut RowOverlay, number: u64, encoded: &[u8]) {
    rows.put(key::OBJECTS, number_key(number), encoded.to_vec());
}

/// Returns the keys of an object's rows. Deleting these rows deletes the object.
pub(crate) fn object_row_keys(view: &dyn Snapshot, number: u64) -> Result<Vec<(TableId, Vec<u8>)>> {
    let id = object_id(&encoded(view, number)?).map_err(Error::corrupt("an object"))?;
    let mut rows = vec![(key::OBJECTS, number_key(number))];
    if find_number(view, &id)? == Some(number) {
        rows.push((key::OBJECT_NAMES, key::object_name(&id)));
    }
    Ok(rows)
}

/// Returns the row that lists an object as pre-written, if there is one. An object is listed until
/// something refers to it.
pub(crate) fn prewritten_row(view: &dyn Snapshot, number: u64) -> Result<Option<PrewrittenRow>> {
    let row = view.get(key::PREWRITTEN, &number_key(number))?;
    row.map(|row| PrewrittenRow::decode(&row))
        .transpose()
        .map_err(Error::corrupt("a pre-written object"))
}

/// Adds an object to the list of pre-written objects.
pub(crate) fn put_prewritten(rows: &mut RowOverlay, number: u64, row: &PrewrittenRow) {
    rows.put(key::PREWRITTEN, number_key(number), row.encode());
}

/// Removes an object from the list of pre-written objects.
pub(crate) fn delete_prewritten(rows: &mut RowOverlay, number: u64) {
    rows.delete(key::PREWRITTEN, number_key(number));
}

/// Returns the stored bytes of an object: its encoded form, which names its id.
pub(crate) fn encoded(view: &dyn Snapshot, number: u64) -> Result<Vec<u8>> {
    view.get(key::OBJECTS, &number_key(number))?
        .ok_or_else(|| Error::missing(format!("the object number {number}")))
}

/// Returns the stored bytes of several objects, with one batch of lookups.
pub(crate) fn encoded_many(view: &dyn Snapshot, numbers: &[u64]) -> Result<Vec<Vec<u8>>> {
    let keys: Vec<_> = numbers.iter().copied().map(number_key).collect();
    let found = view.get_many(key::OBJECTS, &keys)?.into_iter().zip(numbers);
    let missing = |number| Error::missing(format!("the object number {number}"));
    found.map(|(bytes, number)| bytes.ok_or_else(|| missing(number))).collect()
}

/// Returns the content of an object, checked against its id.
pub(crate) fn content(view: &dyn Snapshot, kind: ObjectKind, number: u64) -> Result<Vec<u8>> {
    decoded(kind, number, &encoded(view, number)?)
}

/// Returns the content of an object from its stored bytes, checked against its id.
pub(crate) fn decoded(kind: ObjectKind, number: u64, encoded: &[u8]) -> Result<Vec<u8>> {
    format::decode_object(kind, encoded)
        .map_err(Error::corrupt(format_args!("the object number {number}")))
}

/// Returns the content of the object with this id, checked against the id.
pub(crate) fn content_of(view: &dyn Snapshot, kind: ObjectKind, id: &ObjectId) -> Result<Vec<u8>> {
    let missing = || Error::missing(format!("the object {id}"));
    let encoded = encoded(view, find_number(view, id)?.ok_or_else(missing)?)?;
    // The row that leads from the id to the number is derived data and may be wrong.
    match object_id(&encoded) {
        Ok(found) if found == *id => {}
        Ok(_) => return Err(missing()),
        Err(error) => return Err(Error::corrupt(format_args!("the object {id}"))(error)),
    }
    format::decode_object(kind, &encoded).map_err(Error::corrupt(format_args!("the object {id}")))
}

/// Returns the ids of the blobs that a delta refers to: values too large to be stored in the delta.
pub(crate) fn blobs_named_in_delta(delta: &[u8]) -> Result<Vec<ObjectId>> {
    let changes = Delta::scan(delta).map_err(Error::corrupt("a delta"))?;
    let sides = changes.into_iter().flat_map(|change| [change.old, change.new]);
    Ok(sides
        .filter_map(|side| if let DeltaSideRange::Blob(id) = side { Some(id) } else { None })
        .collect())
}
