//! Salvages the intact rows of an index, and finds what is missing between them.

use super::SalvagedStore;
use crate::backend::TableId;
use crate::backend::rocks::RescuedIndex;
use crate::engine::session_rows::SessionLookup;
use crate::engine::table_rows::for_each_row;
use crate::engine::{keyframe, row_totals};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BookmarkRow, CheckpointRow, FoldRow, KeyframeRow, OperationRow, PrewrittenRow, RecordRow,
    RevisionHeader, RevisionRow, SegmentRow, SequenceRow, SessionRemoval, TotalsRow, is_whole,
};
use crate::model::text::count_text;
use crate::model::{OperationId, SessionId, SessionNumber};
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl SalvagedStore {
    /// Takes over the intact rows of the index, except for most derived tables.
    pub(super) fn index(&mut self, index: RescuedIndex) -> Result<()> {
        let mut sequences = BTreeMap::new();
        let mut named = BTreeSet::new();
        let totals = self.decoded(&index, key::COUNTERS, key::TOTALS.to_vec(), TotalsRow::decode);
        let removed = self.removed_sessions()?;
        for ((table, place), mut value) in index.rows {
            let session = match table {
                key::PRUNINGS => key::short_at(&value, 0),
                _ => key::short_at(&place, 0).filter(|_| key::begins_with_session(table)),
            };
            // If a file of the index is damaged, older files can have rows that were deleted.
            if session.is_some_and(|session| removed.contains(&session)) {
                continue;
            }
            if table == key::OBJECT_NAMES {
                named.extend(key::last_number(&value));
                continue;
            }
            if table == key::SEQUENCES {
                sequences.insert(place, value);
                continue;
            }
            let Some(is_right) = check_of(table) else { continue };
            if !is_right(&value) && !self.correct_bit(&mut value, &is_right) {
                // Other steps report these: a missing revision is found by its number, a missing
                // object by the rows that name it. Keyframes and their chunks are computed again.
                if ![key::REVISIONS, key::KEYFRAMES, key::OBJECTS].contains(&table) {
                    self.lost.push(format!("a row of table {}", table.0));
                }
                continue;
            }
            let place = self.place_of(table, place, &value);
            self.rows.put(table, place, value);
        }
        // Where a revision or checkpoint is lost, its row in this table shows which it was.
        for (place, value) in sequences {
            if SequenceRow::decode(&value).is_ok() {
                self.rows.put(key::SEQUENCES, place, value);
            }
        }
        self.checkpoints()?;
        self.report_missing_rows(totals)?;
        self.find_deltas_and_pages()?;
        self.segments()?;
        self.report_missing_objects(named)
    }

    /// Moves each checkpoint to the key that follows from its content and from the session of its
    /// operation. One without a session is lost.
    fn checkpoints(&mut self) -> Result<()> {
        let mut sessions: HashMap<OperationId, Vec<SessionNumber>> = HashMap::new();
        for_each_row(&self.view(), key::OPERATIONS, |_, row| {
            if let Ok(row) = OperationRow::decode(row) {
                sessions.entry(row.operation.id).or_default().push(row.session);
            }
            Ok(())
        })?;
        let (mut moved, mut astray) = (Vec::new(), Vec::new());
        for_each_row(&self.view(), key::CHECKPOINTS, |place, bytes| {
            let row = CheckpointRow::decode(bytes).map_err(Error::corrupt("a checkpoint"))?;
            let known = sessions.get(&row.operation).and_then(|known| session_of(place, known));
            let session = known.or_else(|| key::short_at(place, 0)).unwrap_or(0);
            let (time, sequence) = (row.checkpoint.time, row.checkpoint.sequence);
            if session as usize >= self.refs.sessions.len() {
                astray.push((place.to_vec(), sequence));
                return Ok(());
            }
            let own = of(session).time(time).number(sequence).build();
            if own != place {
                moved.push((place.to_vec(), own, bytes.to_vec()));
            }
            Ok(())
        })?;
        for (place, sequence) in astray {
            self.rows.delete(key::CHECKPOINTS, place);
            self.lost.push(format!("the checkpoint #{sequence}, which belongs to no session"));
        }
        for (place, own, row) in moved {
            self.rows.delete(key::CHECKPOINTS, place);
            self.rows.put(key::CHECKPOINTS, own, row);
        }
        Ok(())
    }

    /// Reports lost rows that only the totals of the index and the counts in the refs reveal.
    fn report_missing_rows(&mut self, totals: Option<TotalsRow>) -> Result<()> {
        let saved = row_totals::count_totals(&self.view())?;
        match totals {
            None => self.lost.push(
                "the totals of operations and parts of sources: some of these may be missing"
                    .to_owned(),
            ),
            Some(totals) => {
                if let Some(count @ 1..) = totals.operations.checked_sub(saved.operations) {
                    let operations = count_text(count, "operation");
                    self.lost.push(format!("{operations}, {EFFECTS}"));
                }
                if let Some(count @ 1..) = totals.segments.checked_sub(saved.segments) {
                    self.lost.push(format!("{} of sources", count_text(count, "part")));
                }
            }
        }
        let facts = self.known_facts()?;
        for one in self.refs.sessions.all() {
            let (number, session) = one?;
            let known = facts.get(&number).copied().unwrap_or(0);
            if let Some(count @ 1..) = session.facts.checked_sub(known) {
                self.lost.push(format!("{} of '{}'", count_text(count, "fact"), session.info.name));
            }
            for bookmark in &session.bookmarks {
                let place = of(number).text(&bookmark.source).build();
                if !self.rows.contains(key::BOOKMARKS, &place) {
                    self.lost.push(format!(
                        "how far '{}' had been imported into '{}'",
                        bookmark.source, session.info.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reports missing objects with these numbers, which the table of object ids listed: long texts
    /// and values.
    pub(super) fn report_missing_objects(&mut self, mut named: BTreeSet<u64>) -> Result<()> {
        // A missing chunk is no loss: keyframes are computed again.
        for chunk in keyframe::all_chunks(&self.view())? {
            named.remove(&chunk);
        }
        for_each_row(&self.view(), key::OBJECTS, |place, _| {
            named.remove(&key::last_number(place).unwrap_or(0));
            Ok(())
        })?;
        let lost = named.into_iter();
        self.lost.extend(lost.map(|number| format!("a long text or value (the object {number})")));
        Ok(())
    }

    /// Returns the key of a row: computed from its content if possible, otherwise `place`.
    pub(super) fn place_of(&self, table: TableId, place: Vec<u8>, value: &[u8]) -> Vec<u8> {
        if table == key::REVISIONS
            && let Ok(row) = RevisionRow::decode(value)
            && let Ok(header) = RevisionHeader::decode(&row.header)
            && let Some(number) = session_of(&place, &self.sessions_with(header.session))
        {
            return of(number).branch(header.branch).number(header.sequence).build();
        }
        if table == key::OPERATIONS
            && let Ok(row) = OperationRow::decode(value)
        {
            return key::operation_place(row.session, row.position, &row.operation.id);
        }
        place
    }

    /// Returns the sessions that were permanently removed, or that a join has replaced by another
    /// one. They have no rows.
    fn removed_sessions(&self) -> Result<BTreeSet<SessionNumber>> {
        let mut removed = BTreeSet::new();
        for one in self.refs.sessions.all() {
            let (number, session) = one?;
            if session.removal == Some(SessionRemoval::Swept) {
                removed.insert(number);
            }
        }
        Ok(removed)
    }

    /// Returns the sessions with this id that can have rows.
    fn sessions_with(&self, id: SessionId) -> Vec<SessionNumber> {
        let found = self.refs.sessions.find(SessionLookup::Id(id)).unwrap_or_default();
        let found = found.into_iter();
        let there = found.filter(|(_, session)| session.removal != Some(SessionRemoval::Swept));
        there.map(|(number, _)| number).collect()
    }
}

/// Returns the session of a row, given the sessions that its content allows. While two sessions are
/// joined, both have the same ids: then the row's key decides.
pub(super) fn session_of(place: &[u8], allowed: &[SessionNumber]) -> Option<SessionNumber> {
    let in_key = key::short_at(place, 0).filter(|number| allowed.contains(number));
    in_key.or_else(|| allowed.first().copied())
}

/// The effects of operations that are lost with their rows.
const EFFECTS: &str = "with all facts and switches of branches; undo is no longer possible";

type RowCheck = fn(&[u8]) -> bool;

/// Returns the check for the rows of a table; `None` for the tables that are derived or handled
/// separately.
fn check_of(table: TableId) -> Option<RowCheck> {
    let check: RowCheck = match table {
        key::OBJECTS => is_whole,
        key::REVISIONS => |row| row == RevisionRow::LOST || RevisionRow::decode(row).is_ok(),
        key::CHECKPOINTS => |row| CheckpointRow::decode(row).is_ok(),
        key::OPERATIONS => |row| OperationRow::decode(row).is_ok(),
        key::BOOKMARKS => |row| BookmarkRow::decode(row).is_ok(),
        key::SEGMENTS => |row| SegmentRow::decode(row).is_ok(),
        key::KEYFRAMES => |row| KeyframeRow::decode(row).is_ok(),
        key::FOLDS => |row| FoldRow::decode(row).is_ok(),
        key::FOLDED => |row| RevisionRow::decode(row).is_ok(),
        key::PRUNINGS => |row| row.len() == 4,
        key::PREWRITTEN => |row| PrewrittenRow::decode(row).is_ok(),
        key::RECORDS => |row| RecordRow::decode(row).is_ok(),
        _ => return None,
    };
    Some(check)
}
