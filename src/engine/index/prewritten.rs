//! Pre-written objects: they are listed until a record refers to them, or until they are
//! permanently deleted.

use super::{RecordIndexer, object};
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{BookmarkRow, PrewrittenRow, RecordBytes, SegmentRow};
use crate::model::{ObjectId, SessionNumber};
use std::collections::BTreeSet;

/// Number of segments of a growing blob that are read at once.
const PARTS: usize = 4;

impl RecordIndexer<'_> {
    /// Lists the objects of this record that it does not refer to. Returns the ids that it refers
    /// to and that are missing.
    pub(super) fn note_prewritten(&mut self) -> Result<BTreeSet<ObjectId>> {
        let mut missing = BTreeSet::new();
        for id in std::mem::take(&mut self.names) {
            match object::find_number(&self.view(), &id)? {
                Some(number) => self.named_number(number)?,
                None => drop(missing.insert(id)),
            }
        }
        let time = self.placed.record.operation.time;
        for (number, part) in std::mem::take(&mut self.unnamed) {
            let row = PrewrittenRow { time, part: part.map(RecordBytes) };
            object::put_prewritten(self.rows, number, &row);
        }
        Ok(missing)
    }

    /// Unlists an object because something refers to it, or because it is deleted.
    pub(super) fn named_number(&mut self, number: u64) -> Result<()> {
        self.unnamed.remove(&number);
        if object::prewritten_row(&self.view(), number)?.is_some() {
            object::delete_prewritten(self.rows, number);
        }
        Ok(())
    }

    /// Unlists the segments of a blob that a bookmark refers to. The pre-written segments are the
    /// last ones.
    pub(super) fn named_parts(&mut self, session: SessionNumber, row: &BookmarkRow) -> Result<()> {
        if row.blob.is_empty() {
            return Ok(());
        }
        let from = of(session).text(&row.blob).build();
        let mut to = of(session).text(&row.blob).number(row.kept_bytes()).build();
        loop {
            let all = ScanDirection::Descending;
            let found = self.view().scan(key::SEGMENTS, &from, &to, all, PARTS)?;
            for (place, part) in &found {
                let part = SegmentRow::decode(part).map_err(Error::corrupt("a part of a blob"))?;
                let is_new = self.unnamed.remove(&part.object).is_some();
                if object::prewritten_row(&self.view(), part.object)?.is_some() {
                    object::delete_prewritten(self.rows, part.object);
                } else if !is_new {
                    return Ok(());
                }
                to.clone_from(place);
            }
            if found.len() < PARTS {
                return Ok(());
            }
        }
    }

    /// Deletes pre-written objects, and segments by their keys, unless something refers to them by
    /// now. Unlists the objects in `named`: something refers to them.
    pub(super) fn sweep_ahead(
        &mut self,
        objects: &[ObjectId],
        parts: &[RecordBytes],
        named: &[ObjectId],
    ) -> Result<()> {
        for id in objects {
            if let Some(number) = object::find_number(&self.view(), id)?
                && object::prewritten_row(&self.view(), number)?.is_some()
            {
                self.forget_objects(&[number])?;
            }
        }
        for RecordBytes(place) in parts {
            let Some(part) = self.view().get(key::SEGMENTS, place)? else { continue };
            let part = SegmentRow::decode(&part).map_err(Error::corrupt("a part of a blob"))?;
            let ahead = object::prewritten_row(&self.view(), part.object)?;
            if ahead.and_then(|row| row.part).is_some_and(|own| own.0 == *place) {
                self.forget_objects(&[part.object])?;
                self.rows.delete(key::SEGMENTS, place.clone());
                self.cut.segments += 1;
            }
        }
        self.names.extend(named);
        Ok(())
    }
}
