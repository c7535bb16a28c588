//! Purges the rows of checkpoints, operations, bookmarks and revisions.

use super::{PurgeKind, PurgeRewriter, SourceNaming, duplicate_name_error, reserved_word_error};
use crate::backend::TableId;
use crate::engine::random::random;
use crate::engine::table_rows::{TableRows, for_each_row};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, CheckpointRow, OperationEffect, OperationRow, PrewrittenRow, RecordBytes,
    RevisionBody, RevisionRow, rewrite_row,
};
use std::collections::{HashMap, HashSet};

impl PurgeRewriter<'_> {
    /// Puts a row, or fails if the key is taken.
    fn put(&mut self, table: TableId, place: Vec<u8>, row: Vec<u8>) -> Result<()> {
        if self.rows.contains(table, &place) {
            return Err(duplicate_name_error("names"));
        }
        self.rows.put(table, place, row);
        Ok(())
    }

    /// Returns the new key of a row. The old key begins with a session and a text hash.
    fn rekey_row(&self, place: &[u8]) -> Vec<u8> {
        let mut place = place.to_vec();
        if let Some(text) = place.get_mut(4..12)
            && let Some(new) = self.keys.get(&*text)
        {
            text.copy_from_slice(new);
        }
        place
    }

    /// Registers the names of blobs, as they are and without secrets. Bookmarks have these names.
    pub(super) fn register_blob_names(&mut self) -> Result<()> {
        let mut names = Vec::new();
        for_each_row(self.view, key::BOOKMARKS, |_, row| {
            names.push(BookmarkRow::decode(row).map_err(Error::corrupt("a bookmark"))?.blob);
            Ok(())
        })?;
        for name in names {
            let clean = self.clean(&name);
            self.keys.insert(key::text_hash(&name), key::text_hash(&clean));
            self.clean_names.insert(key::text_hash(&name), clean);
        }
        Ok(())
    }

    /// Registers the hashes of the texts in operations that change, because keys contain them.
    pub(super) fn register_operation_texts(&mut self) -> Result<()> {
        let mut rows = Vec::new();
        for_each_row(self.view, key::OPERATIONS, |_, row| {
            rows.push(row.to_vec());
            Ok(())
        })?;
        for row in rows {
            rewrite_row(&row, |content| self.packed_texts(content).map(|(new, _)| new))
                .map_err(Error::corrupt("an operation"))?;
        }
        Ok(())
    }

    /// Purges a MessagePack row. Returns the new row, if it changed, and the number of secrets.
    fn purged_row(&mut self, row: &[u8]) -> Result<(Option<Vec<u8>>, u64)> {
        let mut count = 0;
        let mut failed = None;
        let new = rewrite_row(row, |content| {
            let masked = self.packed_texts(content);
            count = masked.as_ref().map_or(0, |(_, count)| *count);
            let masked = masked.map(|(new, _)| new);
            let renamed = self.names.rewrite(masked.as_deref().unwrap_or(content));
            match renamed {
                Ok(renamed) => renamed.or(masked),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        })
        .map_err(Error::corrupt("a row"))?;
        failed.map_or(Ok((new, count)), Err)
    }

    /// Purges checkpoints, operations and bookmarks.
    pub(super) fn purge_packed_rows(&mut self, sources: SourceNaming) -> Result<()> {
        let mut named = HashSet::new();
        for one in self.refs.sessions.all() {
            let (number, session) = one?;
            named.extend(session.bookmarks.iter().map(|one| of(number).text(&one.source).build()));
        }
        for row in TableRows::all(self.view, key::CHECKPOINTS) {
            let (place, row) = row?;
            let (new, count) = self.purged_row(&row)?;
            let (session, number) =
                (key::short_at(&place, 0), key::last_number(&place).unwrap_or(0));
            self.change(session.filter(|_| new.is_some()), number);
            let new = new.unwrap_or(row);
            CheckpointRow::decode(&new).map_err(|_| reserved_word_error())?;
            self.note_at(session, PurgeKind::Checkpoint, number, count);
            self.put(key::CHECKPOINTS, place, new)?;
        }
        for row in TableRows::all(self.view, key::OPERATIONS) {
            let (place, row) = row?;
            let (new, count) = self.purged_row(&row)?;
            let is_changed = new.is_some();
            let new = new.unwrap_or(row);
            let decoded = OperationRow::decode(&new).map_err(|_| reserved_word_error())?;
            self.change(is_changed.then_some(decoded.session), 0);
            let name = format!("{} ({})", decoded.operation.id.short(), decoded.operation.verb);
            self.note(Some(decoded.session), PurgeKind::Operation, name, count);
            self.put(key::OPERATIONS, place, new)?;
        }
        for row in TableRows::all(self.view, key::BOOKMARKS) {
            let (place, row) = row?;
            // No source has this key: an earlier pass may have added the row under a new name.
            if !named.contains(&place) {
                continue;
            }
            let (new, count) = self.purged_row(&row)?;
            let new = new.unwrap_or(row);
            BookmarkRow::decode(&new).map_err(|_| reserved_word_error())?;
            let name = self.source_name(&place);
            self.note(key::short_at(&place, 0), PurgeKind::Source, name, count);
            let moved = self.rekey_row(&place);
            if sources == SourceNaming::OldAndNew && moved != place {
                self.put(key::BOOKMARKS, place, new.clone())?;
            }
            self.put(key::BOOKMARKS, moved, new)?;
        }
        Ok(())
    }

    /// Purges revisions, including folded ones.
    pub(super) fn purge_revisions(&mut self) -> Result<()> {
        for table in [key::REVISIONS, key::FOLDED] {
            for row in TableRows::all(self.view, table) {
                let (place, bytes) = row?;
                if bytes == RevisionRow::LOST {
                    self.put(table, place, bytes)?;
                    continue;
                }
                let mut row = RevisionRow::decode(&bytes).map_err(Error::corrupt("a revision"))?;
                let longer: i64 = row.parts.iter().filter_map(|part| self.longer.get(part)).sum();
                row.bytes = row.bytes.saturating_add_signed(longer);
                if let Some((new, count)) = self.packed_texts(&row.body) {
                    let mut body = RevisionBody::decode(&new).map_err(|_| reserved_word_error())?;
                    body.stands_for = Some(RevisionBody::name(&row.body));
                    body.salt = random()?;
                    row.body = body.encode();
                    let number = key::last_number(&place).unwrap_or(0);
                    let session = key::short_at(&place, 0);
                    self.note_at(session, PurgeKind::Body, number, count);
                }
                self.put(table, place, row.encode())?;
            }
        }
        Ok(())
    }

    /// Copies rows that contain no text; their keys may change.
    pub(super) fn copy_textless_rows(&mut self) -> Result<()> {
        for table in [key::FOLDS, key::PRUNINGS, key::RECORDS] {
            for row in TableRows::all(self.view, table) {
                let (place, row) = row?;
                self.put(table, place, row)?;
            }
        }
        for row in TableRows::all(self.view, key::SEGMENTS) {
            let (place, row) = row?;
            let place = self.rekey_row(&place);
            self.put(key::SEGMENTS, place, row)?;
        }
        for row in TableRows::all(self.view, key::PREWRITTEN) {
            let (place, row) = row?;
            let mut row =
                PrewrittenRow::decode(&row).map_err(Error::corrupt("a pre-written object"))?;
            row.part = row.part.map(|part| RecordBytes(self.rekey_row(&part.0)));
            self.put(key::PREWRITTEN, place, row.encode())?;
        }
        Ok(())
    }

    /// Returns the session of every fact page, by page number.
    pub(super) fn sessions_of_pages(&self) -> Result<HashMap<u64, u32>> {
        let mut sessions = HashMap::new();
        for_each_row(self.view, key::OPERATIONS, |_, row| {
            let row = OperationRow::decode(row).map_err(Error::corrupt("an operation"))?;
            for effect in &row.effects {
                if let OperationEffect::Facts { page, .. } = effect {
                    sessions.insert(*page, row.session);
                }
            }
            Ok(())
        })?;
        Ok(sessions)
    }
}
