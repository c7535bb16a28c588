//! Compares two sessions of one id, an original and a copy: what has the same id in both may differ
//! only in what a purge writes.

use crate::backend::{ScanDirection, Snapshot};
use crate::engine::blob::restart_before;
use crate::engine::commit::Engine;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::lookup::delta_side_bytes;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::{object, table_rows};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Delta, DeltaChange, DeltaSide, FactPage, ObjectKind, RevisionBody, RevisionRow, SegmentRow,
    decode_entry, decode_object, object_kind, pack_derived, unpack_bytes,
};
use crate::model::{Checkpoint, ObjectId, SessionNumber, Value};
use crate::redact::TextDifference;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many bytes of growing blobs are compared at once.
const WINDOW_BYTES: u64 = 8 << 20;
/// The length of an object's id in hex digits.
const ID_DIGITS: usize = 64;

/// A comparison of two sessions: of the originals in one with the copies in the other.
pub(super) struct PurgedCopy<'a> {
    engine: &'a Engine,
    view: &'a ReadSnapshot,
    original: SessionNumber,
    copy: SessionNumber,
    /// Whether something was purged from the originals too.
    was_purged: bool,
    /// The pairs of objects that compared values name.
    objects: BTreeSet<(ObjectId, ObjectId)>,
    /// The pairs of growing blobs that compared facts refer to.
    blobs: BTreeSet<(String, String)>,
}

impl<'a> PurgedCopy<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        view: &'a ReadSnapshot,
        (original, copy): (SessionNumber, SessionNumber),
        was_purged: bool,
    ) -> Self {
        let (objects, blobs) = (BTreeSet::new(), BTreeSet::new());
        Self { engine, view, original, copy, was_purged, objects, blobs }
    }

    /// Returns whether a revision is the same in both sessions, apart from purges. What was pruned
    /// from one of them is not compared.
    pub(super) fn has_revision(&mut self, at: RevisionRef) -> Result<bool> {
        let original = lineage::find(self.view, self.original, at)?;
        let copy = lineage::find(self.view, self.copy, at)?;
        let Some((original, copy)) = original.zip(copy) else { return Ok(true) };
        if original.header != copy.header || !self.has_body(&original.body, &copy.body)? {
            return Ok(false);
        }
        // The delta of a revision into which others were folded also has their changes.
        let is_folded = self.is_folded(self.original, at)? || self.is_folded(self.copy, at)?;
        Ok(is_folded || self.has_delta(&original, &copy)?)
    }

    /// Returns whether revisions were folded into this one.
    fn is_folded(&self, session: SessionNumber, at: RevisionRef) -> Result<bool> {
        let place = of(session).branch(at.branch).number(at.sequence);
        let (from, to) = (place.clone().build(), place.end());
        let folds = self.view.scan(key::FOLDS, &from, &to, ScanDirection::Ascending, 1)?;
        Ok(!folds.is_empty())
    }

    fn has_body(&mut self, original: &[u8], copy: &[u8]) -> Result<bool> {
        if original == copy || original.is_empty() || copy.is_empty() {
            return Ok(true);
        }
        let body = |bytes| RevisionBody::decode(bytes).map_err(Error::corrupt("a revision"));
        self.has_same(&body(original)?.operation, &body(copy)?.operation)
    }

    fn has_delta(&mut self, original: &RevisionRow, copy: &RevisionRow) -> Result<bool> {
        let (original, copy) = (&original.parts, &copy.parts);
        if original == copy || original.is_empty() || copy.is_empty() {
            return Ok(true);
        }
        let (original, changed) = (self.changes(original)?, self.changes(copy)?);
        let mut left: BTreeMap<_, _> =
            original.into_iter().map(|change| (change.key.clone(), change)).collect();
        if left.len() != changed.len() {
            return Ok(false);
        }
        for change in changed {
            // A purge in the id of a claim gives its change another key.
            let key = match left.contains_key(&change.key) {
                true => Some(change.key.clone()),
                false => left.keys().find(|key| self.has_text(key, &change.key)).cloned(),
            };
            let Some(original) = key.and_then(|key| left.remove(&key)) else { return Ok(false) };
            if !(self.has_side(&original.old, &change.old)?
                && self.has_side(&original.new, &change.new)?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn changes(&self, parts: &[u64]) -> Result<Vec<DeltaChange<Vec<u8>>>> {
        let mut changes = Vec::new();
        for part in parts {
            let content = object::content(self.view, ObjectKind::Delta, *part)?;
            changes.extend(Delta::decode(&content).map_err(Error::corrupt("a delta"))?.changes);
        }
        Ok(changes)
    }

    fn has_side(&mut self, original: &DeltaSide, copy: &DeltaSide) -> Result<bool> {
        if original == copy {
            return Ok(true);
        }
        let entry = |side| -> Result<_> {
            let bytes = delta_side_bytes(self.view, side)?;
            bytes.map(|bytes| decode_entry(&bytes).map_err(Error::corrupt("a claim"))).transpose()
        };
        Ok(match (entry(original)?, entry(copy)?) {
            (None, None) => true,
            (Some(original), Some(copy)) => {
                original.added_at == copy.added_at && self.has_value(&original.value, &copy.value)
            }
            _ => false,
        })
    }

    /// Returns whether the facts of two pages are the same, apart from purges. The pages are given
    /// by their object numbers.
    pub(super) fn has_facts(&mut self, original: u64, copy: u64) -> Result<bool> {
        let page = |number| -> Result<FactPage> {
            let content = object::content(self.view, ObjectKind::Page, number)?;
            FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))
        };
        let (before, after) = (page(original)?, page(copy)?);
        if let (Some(before), Some(after)) = (&before.source, &after.source) {
            self.blobs.insert((before.clone(), after.clone()));
        }
        Ok(original == copy || self.has_same(&before, &after)?)
    }

    /// Returns whether two checkpoints are the same, apart from purges.
    pub(super) fn has_checkpoint(
        &mut self,
        original: &Checkpoint,
        copy: &Checkpoint,
    ) -> Result<bool> {
        Ok(original == copy || self.has_same(original, copy)?)
    }

    /// Returns whether the objects and growing blobs that the compared entries name are the same,
    /// apart from purges.
    pub(super) fn has_named(self) -> Result<bool> {
        for (original, copy) in &self.objects {
            if !self.has_object(original, copy)? {
                return Ok(false);
            }
        }
        for (original, copy) in &self.blobs {
            if !self.has_blob(original, copy)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_object(&self, original: &ObjectId, copy: &ObjectId) -> Result<bool> {
        let content = |id| -> Result<Option<Vec<u8>>> {
            let Some(number) = object::find_number(self.view, id)? else { return Ok(None) };
            let encoded = object::encoded(self.view, number)?;
            let kind = object_kind(&encoded).map_err(Error::corrupt("an object"))?;
            Ok(Some(decode_object(kind, &encoded).map_err(Error::corrupt("an object"))?))
        };
        // Most hashes name no object. An object that one side does not have is missing, not
        // changed.
        let Some((original, copy)) = content(original)?.zip(content(copy)?) else {
            return Ok(true);
        };
        Ok(self.text_pairs(&original, &copy, false).is_some())
    }

    /// Returns whether two growing blobs are the same up to the end of the shorter one, apart from
    /// purges.
    fn has_blob(&self, original: &str, copy: &str) -> Result<bool> {
        let before = self.segments(self.original, original)?;
        let after = self.segments(self.copy, copy)?;
        let pairs = before.iter().zip(&after);
        let Some(((from, _), _)) = pairs.into_iter().find(|(one, other)| one != other) else {
            return Ok(true);
        };
        let end = |segments: &[(u64, SegmentRow)]| {
            segments.last().map_or(0, |(offset, row)| offset + row.length)
        };
        let end = end(&before).min(end(&after));
        let dropped = |session, blob| -> Result<u64> {
            Ok(session_refs(&self.view.refs, session)?.dropped(blob))
        };
        let dropped = dropped(self.original, original)?.max(dropped(self.copy, copy)?);
        let mut at = restart_before(*from).max(dropped);
        while at < end {
            let length = WINDOW_BYTES.min(end - at);
            let window = |session, blob| -> Result<Vec<u8>> {
                let (start, bytes) =
                    self.engine.blobs.read(self.view, session, blob, at, length)?;
                let bytes = bytes.iter().skip((at - start) as usize).take(length as usize);
                Ok(bytes.copied().collect())
            };
            let (before, after) = (window(self.original, original)?, window(self.copy, copy)?);
            if self.text_pairs(&before, &after, true).is_none() {
                return Ok(false);
            }
            at += length;
        }
        Ok(true)
    }

    fn segments(&self, session: SessionNumber, blob: &str) -> Result<Vec<(u64, SegmentRow)>> {
        let rows = table_rows::rows(self.view, key::SEGMENTS, of(session).text(blob))?;
        let segment = |(place, row): &(Vec<u8>, Vec<u8>)| -> Result<_> {
            let row = SegmentRow::decode(row).map_err(Error::corrupt("a part of a blob"))?;
            Ok((key::last_number(place).unwrap_or(0), row))
        };
        rows.iter().map(segment).collect()
    }

    fn has_same<T: Serialize>(&mut self, original: &T, copy: &T) -> Result<bool> {
        let value = |one: &T| {
            unpack_bytes::<Value>("value", &pack_derived(one)).map_err(Error::corrupt("a value"))
        };
        Ok(self.has_value(&value(original)?, &value(copy)?))
    }

    fn has_value(&mut self, original: &Value, copy: &Value) -> bool {
        match (original, copy) {
            (Value::Text(before), Value::Text(after)) => {
                self.has_text(before.as_bytes(), after.as_bytes())
            }
            (Value::Bytes(before), Value::Bytes(after)) => self.has_text(before, after),
            (Value::List(before), Value::List(after)) => {
                before.len() == after.len()
                    && before.iter().zip(after).all(|(one, other)| self.has_value(one, other))
            }
            (Value::Map(before), Value::Map(after)) if before.len() == after.len() => {
                let mut left: Vec<_> = before.iter().collect();
                after.iter().all(|(name, value)| {
                    let same = left.iter().position(|(other, _)| *other == name);
                    let place = same.or_else(|| {
                        // A purge in the name of a field moves the field.
                        left.iter().position(|(other, _)| {
                            !after.contains_key(*other)
                                && self.has_text(other.as_bytes(), name.as_bytes())
                        })
                    });
                    place.is_some_and(|place| self.has_value(left.swap_remove(place).1, value))
                })
            }
            (before, after) => before == after,
        }
    }

    fn has_text(&mut self, original: &[u8], copy: &[u8]) -> bool {
        let pairs = self.text_pairs(original, copy, false);
        let is_same = pairs.is_some();
        self.objects.extend(pairs.into_iter().flatten());
        is_same
    }

    /// Returns the object ids in a text that a purge replaced, each with the new one; `None` if a
    /// copy of the text also differs in anything that a purge does not write. With `is_cut`, both
    /// are parts of longer texts.
    fn text_pairs(
        &self,
        original: &[u8],
        copy: &[u8],
        is_cut: bool,
    ) -> Option<Vec<(ObjectId, ObjectId)>> {
        let differs = TextDifference { is_cut, both_purged: self.was_purged };
        if differs.is_purge(original, copy) {
            return Some(Vec::new());
        }
        let id = |text: &[u8], at: usize| -> Option<ObjectId> {
            std::str::from_utf8(text.get(at..at + ID_DIGITS)?).ok()?.parse().ok()
        };
        let mut renamed = original.to_vec();
        let mut pairs = Vec::new();
        let mut at = 0;
        while at + ID_DIGITS <= original.len() {
            match id(original, at).zip(id(copy, at)) {
                Some(pair) => {
                    pairs.extend((pair.0 != pair.1).then_some(pair));
                    let place = at..at + ID_DIGITS;
                    renamed.get_mut(place.clone())?.copy_from_slice(copy.get(place)?);
                    at += ID_DIGITS;
                }
                None => at += 1,
            }
        }
        differs.is_purge(&renamed, copy).then_some(pairs)
    }
}
