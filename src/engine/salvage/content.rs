//! Checks the objects to which rows refer: deltas, fact pages, parts of growing blobs.

use super::SalvagedStore;
use crate::engine::blob::{restart_before, segment_content};
use crate::engine::delta_parts;
use crate::engine::index::fold;
use crate::engine::lineage::RevisionRef;
use crate::engine::object::{DROPPED_OBJECT, LOST_OBJECT};
use crate::engine::row_overlay::RowOverlay;
use crate::engine::table_rows::for_each_row;
use crate::error::Result;
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, Delta, ObjectKind, OperationEffect, OperationRow, RevisionHeader, RevisionRow,
    SegmentRow, decode_object, object_id,
};
use crate::model::ObjectId;
use crate::model::text::count_text;
use std::collections::HashMap;

impl SalvagedStore {
    /// Marks the missing and unreadable parts of growing blobs as lost, and the parts that cannot
    /// be read without them.
    pub(super) fn segments(&mut self) -> Result<()> {
        let (mut changed, mut lost) = (RowOverlay::default(), Vec::new());
        let (mut blob, mut before) = (Vec::new(), Some(Vec::new()));
        // The end of each blob so far.
        let mut ends: HashMap<Vec<u8>, u64> = HashMap::new();
        let view = self.view();
        for_each_row(&view, key::SEGMENTS, |place, bytes| {
            let Ok(row) = SegmentRow::decode(bytes) else { return Ok(()) };
            let offset = key::last_number(place).unwrap_or(0);
            let name = place.get(..12).unwrap_or_default();
            if name != blob || restart_before(offset) == offset {
                (blob, before) = (name.to_vec(), Some(Vec::new()));
            }
            let end = ends.entry(blob.clone()).or_default();
            if *end < offset {
                let session = self.session_name(key::short_at(place, 0).unwrap_or(0));
                lost.push(format!("bytes {end} to {offset} of an imported source of {session}"));
                changed.put(key::SEGMENTS, at(&blob, *end), gap(*end, offset));
            }
            *end = offset + row.length;
            if row.object == DROPPED_OBJECT {
                before = Some(Vec::new());
                return Ok(());
            }
            let content = before
                .as_ref()
                .and_then(|before: &Vec<u8>| segment_content(&view, &row, before).ok());
            if let (Some(before), Some(content)) = (&mut before, content) {
                before.extend_from_slice(&content);
            } else {
                before = None;
                let session = self.session_name(key::short_at(place, 0).unwrap_or(0));
                let to = offset + row.length;
                lost.push(format!("bytes {offset} to {to} of an imported source of {session}"));
                let row = SegmentRow { object: LOST_OBJECT, ..row };
                changed.put(key::SEGMENTS, place.to_vec(), row.encode());
            }
            Ok(())
        })?;
        // A bookmark contains the length of its blob.
        for_each_row(&view, key::BOOKMARKS, |place, bytes| {
            let Ok(row) = BookmarkRow::decode(bytes) else { return Ok(()) };
            let number = key::short_at(place, 0).unwrap_or(0);
            let blob = of(number).text(&row.blob).build();
            let end = ends.get(&blob).copied().unwrap_or(0);
            let kept = row.kept_bytes();
            if !row.blob.is_empty() && end < kept {
                let session = self.session_name(number);
                lost.push(format!("bytes {end} to {kept} of an imported source of {session}"));
                changed.put(key::SEGMENTS, at(&blob, end), gap(end, kept));
            }
            Ok(())
        })?;
        self.rows.extend(changed);
        self.lost.append(&mut lost);
        Ok(())
    }

    /// Finds the delta parts of revisions and the fact pages of operations, by number or by id.
    /// Marks those that are missing as lost.
    pub(super) fn find_deltas_and_pages(&mut self) -> Result<()> {
        let mut names: HashMap<ObjectId, u64> = HashMap::new();
        let mut numbers: HashMap<u64, ObjectId> = HashMap::new();
        for_each_row(&self.view(), key::OBJECTS, |place, encoded| {
            if let Ok(id) = object_id(encoded) {
                let number = key::last_number(place).unwrap_or(0);
                // A delta that a purge has rewritten is named by its id before the purge.
                let stands_for =
                    decode_object(ObjectKind::Delta, encoded).map(|content| Delta::name(&content));
                let id = stands_for.unwrap_or(id);
                names.insert(id, number);
                numbers.insert(number, id);
            }
            Ok(())
        })?;
        let (mut changed, mut lost) = (RowOverlay::default(), Vec::new());
        for_each_row(&self.view(), key::REVISIONS, |place, bytes| {
            let Ok(mut row) = RevisionRow::decode(bytes) else { return Ok(()) };
            let Ok(header) = RevisionHeader::decode(&row.header) else { return Ok(()) };
            let found: Option<Vec<ObjectId>> =
                row.parts.iter().map(|part| numbers.get(part).copied()).collect();
            let at = RevisionRef { branch: header.branch, sequence: header.sequence };
            let session = key::short_at(place, 0).unwrap_or(0);
            let folds = fold::row(&self.view(), session, at)?.is_some();
            // An import that was stopped before a fold has revisions without changes.
            let is_right = |names: Vec<ObjectId>| {
                folds || names.is_empty() || delta_parts::list_id(&names) == header.delta
            };
            if found.is_some_and(is_right) {
                return Ok(());
            }
            match (row.parts.as_slice(), names.get(&header.delta)) {
                ([_], Some(number)) if !folds => row.parts = vec![*number],
                _ => {
                    let session = self.session_name(key::short_at(place, 0).unwrap_or(0));
                    lost.push(format!("the changes of revision #{} of {session}", header.sequence));
                    let known = |part: &u64| numbers.contains_key(part);
                    row.parts
                        .iter_mut()
                        .filter(|part| !known(part))
                        .for_each(|part| *part = LOST_OBJECT);
                    if !row.parts.contains(&LOST_OBJECT) {
                        row.parts = vec![LOST_OBJECT];
                    }
                }
            }
            changed.put(key::REVISIONS, place.to_vec(), row.encode());
            Ok(())
        })?;
        for_each_row(&self.view(), key::OPERATIONS, |place, bytes| {
            let Ok(mut row) = OperationRow::decode(bytes) else { return Ok(()) };
            let mut touched = false;
            for effect in &mut row.effects {
                let OperationEffect::Facts { page, name, count } = effect else { continue };
                if *page == LOST_OBJECT || numbers.get(page) == Some(name) {
                    continue;
                }
                touched = true;
                *page = names.get(name).copied().unwrap_or(LOST_OBJECT);
                if *page == LOST_OBJECT {
                    let session = self.session_name(row.session);
                    lost.push(format!("{} of {session}", count_text(*count, "fact")));
                }
            }
            if touched {
                changed.put(key::OPERATIONS, place.to_vec(), row.encode());
            }
            Ok(())
        })?;
        self.rows.extend(changed);
        self.lost.append(&mut lost);
        Ok(())
    }
}

/// Returns the key of the part of a blob that begins at this offset.
fn at(blob: &[u8], offset: u64) -> Vec<u8> {
    [blob, &offset.to_be_bytes()].concat()
}

/// Returns the row that marks a lost range of a blob.
fn gap(from: u64, to: u64) -> Vec<u8> {
    SegmentRow { object: LOST_OBJECT, length: to - from, prefix: 0 }.encode()
}
