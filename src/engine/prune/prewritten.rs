//! Garbage from interrupted writes: pre-written objects whose record never followed.

use super::super::table_rows::for_each_row;
use super::unreferenced::{SweepSet, UnreferencedBlobs};
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{
    BookmarkRow, OperationEffect, OperationRow, PrewrittenRow, Record, RecordBytes, RecordChange,
    RevisionRow, object_id,
};
use crate::model::{ObjectId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The objects that are listed as pre-written and were written up to a time.
#[derive(Clone, Default)]
pub(crate) struct PrewrittenObjects {
    objects: BTreeMap<ObjectId, u64>,
    /// Parts of growing blobs, by their keys.
    parts: BTreeSet<Vec<u8>>,
    /// The numbers of all pre-written objects, regardless of time.
    all: BTreeSet<u64>,
}

/// The objects that can be deleted, as of the snapshot that was searched.
#[derive(Clone)]
pub(crate) struct PrewrittenGarbage {
    objects: BTreeSet<ObjectId>,
    parts: BTreeSet<Vec<u8>>,
    /// Listed objects that something refers to after all.
    named: BTreeSet<ObjectId>,
    loose: UnreferencedBlobs,
}

impl PrewrittenObjects {
    /// Finds the objects that were pre-written up to a time.
    pub(crate) fn written_until(view: &dyn Snapshot, until: Timestamp) -> Result<Self> {
        let mut found = Vec::new();
        for_each_row(view, key::PREWRITTEN, |place, row| {
            let row = PrewrittenRow::decode(row).map_err(Error::corrupt("a pre-written object"))?;
            found.push((place.to_vec(), row));
            Ok(())
        })?;
        let mut ahead = Self::default();
        for (place, row) in found {
            let number = key::last_number(&place).unwrap_or(0);
            ahead.all.insert(number);
            if row.time > until {
                continue;
            }
            if let Some(RecordBytes(part)) = row.part {
                ahead.parts.insert(part);
            } else if let Some(encoded) = view.get(key::OBJECTS, &place)? {
                let id = object_id(&encoded).map_err(Error::corrupt("an object"))?;
                ahead.objects.insert(id, number);
            }
        }
        Ok(ahead)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.parts.is_empty()
    }

    /// Checks whether anything refers to the objects after all. Reads the whole store.
    pub(crate) fn find_garbage(self, view: &dyn Snapshot) -> Result<PrewrittenGarbage> {
        let mut numbers = BTreeSet::new();
        for table in [key::REVISIONS, key::FOLDED] {
            for_each_row(view, table, |_, row| {
                if row != RevisionRow::LOST {
                    let row = RevisionRow::decode(row).map_err(Error::corrupt("a revision"))?;
                    numbers.extend(row.parts);
                }
                Ok(())
            })?;
        }
        let mut bookmarks: Vec<(Vec<u8>, BookmarkRow)> = Vec::new();
        for_each_row(view, key::BOOKMARKS, |place, row| {
            let row = BookmarkRow::decode(row).map_err(Error::corrupt("a bookmark"))?;
            bookmarks.push((place.to_vec(), row));
            Ok(())
        })?;
        for_each_row(view, key::OPERATIONS, |place, row| {
            let row = OperationRow::decode(row).map_err(Error::corrupt("an operation"))?;
            for effect in row.effects {
                match effect {
                    OperationEffect::Facts { page, .. } => drop(numbers.insert(page)),
                    OperationEffect::Bookmark { old: Some(old), .. } => {
                        bookmarks.push((place.to_vec(), *old));
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        let mut parts = self.parts;
        for (place, bookmark) in bookmarks {
            let session = key::short_at(&place, 0).unwrap_or(0);
            let blob = key::of(session).text(&bookmark.blob);
            let (from, to) = (blob.clone().build(), blob.number(bookmark.kept_bytes()).build());
            parts.retain(|part| !(&from..&to).contains(&part));
        }
        // A pre-written object counts as a referrer only if something refers to it.
        let leaving = SweepSet {
            objects: self.all.difference(&numbers).copied().collect(),
            ..SweepSet::default()
        };
        let by_name: BTreeSet<ObjectId> = self
            .objects
            .iter()
            .filter(|(_, number)| !numbers.contains(number))
            .map(|(id, _)| *id)
            .collect();
        let mut loose = UnreferencedBlobs::new(by_name);
        loose.keep_stored(view, &leaving)?;
        let (objects, named) = self.objects.into_keys().partition(|id| loose.has(id));
        Ok(PrewrittenGarbage { objects, parts, named, loose })
    }
}

impl PrewrittenGarbage {
    /// Returns the change that deletes the objects that are still pre-written and that none of
    /// these records refers to; `None` if there is nothing to do.
    pub(crate) fn change<'a>(
        &self,
        now: &PrewrittenObjects,
        mut since: impl Iterator<Item = &'a Record>,
    ) -> Result<Option<RecordChange>> {
        let mut loose = self.loose.clone();
        since.try_for_each(|record| loose.keep_recorded(record))?;
        let still = |id: &&ObjectId| now.objects.contains_key(id);
        let objects: Vec<_> =
            self.objects.iter().filter(still).filter(|id| loose.has(id)).copied().collect();
        let parts: Vec<_> = self.parts.intersection(&now.parts).cloned().map(RecordBytes).collect();
        let named: Vec<_> = self.named.iter().filter(still).copied().collect();
        let any = !(objects.is_empty() && parts.is_empty() && named.is_empty());
        Ok(any.then_some(RecordChange::SweptAhead { objects, parts, named }))
    }
}
