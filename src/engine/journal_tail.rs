//! The tail of the journal in memory: its records, with the refs and the rows that they make.

use super::index::{self, PositionedRecord};
use super::object;
use super::object_cache::ObjectCache;
use super::published_generation::PublishedGeneration;
use super::read_snapshot::{LazyOperationRows, ReadSnapshot};
use super::refs::{StoreRefs, advance, advance_by};
use super::row_overlay::RowOverlay;
use crate::backend::{LogPosition, Snapshot};
use crate::error::Result;
use crate::format::RecordChange;
use std::collections::HashSet;
use std::sync::Arc;

/// The known part of the journal's tail.
#[derive(Default)]
pub(crate) struct JournalTail {
    /// Start of the tail: the position of its generation.
    pub(super) start: LogPosition,
    pub(super) end: LogPosition,
    pub(super) records: Arc<Vec<Arc<PositionedRecord>>>,
    /// The refs at the end of the tail.
    pub(super) refs: Arc<StoreRefs>,
    /// The generation, which is opened when it is needed.
    pub(super) base: Option<Arc<PublishedGeneration>>,
    /// Cache of opened objects of the generation and the tail.
    object_cache: Arc<ObjectCache>,
    /// The rows of the first `indexed` records.
    rows: Arc<RowOverlay>,
    /// The refs after the first `indexed` records.
    rows_refs: StoreRefs,
    /// Whether `rows` has no operation rows.
    lacks_operations: bool,
    /// Makes the operation rows on demand, if `rows` has none.
    operation_rows: Option<Arc<LazyOperationRows>>,
    indexed: usize,
    /// Whether the journal was read, and no record was added by half since.
    pub(super) loaded: bool,
    /// Whether this is the tail of a copied store, which keeps its generation even if that expires
    /// soon.
    pub(super) is_copy: bool,
}

impl JournalTail {
    /// Returns the empty tail of the generation at this position.
    pub(super) fn begin(start: LogPosition) -> Self {
        Self { start, end: start, loaded: true, ..Self::default() }
    }

    /// Returns the tail with which the follower of a copy of the store begins.
    pub(super) fn copied(&self) -> Self {
        Self {
            start: self.start,
            end: self.end,
            records: Arc::clone(&self.records),
            refs: Arc::clone(&self.refs),
            base: self.base.clone(),
            loaded: true,
            is_copy: true,
            ..Self::default()
        }
    }

    /// Returns the position at which the tail ends.
    pub(crate) const fn end(&self) -> LogPosition {
        self.end
    }

    /// Rebases the tail onto the generation at this position. Earlier records are dropped; later
    /// ones stay, so that the next writer need not read them again. Returns the old state.
    pub(super) fn rebase_onto(&mut self, position: LogPosition) -> Option<Self> {
        // The tail is already based on this generation or a newer one: another thread was faster.
        if self.loaded && position <= self.start {
            return None;
        }
        let mut next = Self::default();
        if self.loaded && (self.start..=self.end).contains(&position) {
            let applied = self.records.partition_point(|placed| placed.position < position);
            next.records = Arc::new(Arc::make_mut(&mut self.records).split_off(applied));
            (next.start, next.end, next.loaded) = (position, self.end, true);
        }
        Some(std::mem::replace(self, next))
    }

    /// Builds the refs again after a rebase, from the new generation and the records after it.
    /// Sessions that the old state had in memory are not read again.
    pub(super) fn advance_all(&mut self, old: &Self, base: Arc<PublishedGeneration>) -> Result<()> {
        let mut refs = base.refs();
        let changes = || self.records.iter().flat_map(|placed| &placed.record.changes);
        let changed: HashSet<_> = changes().flat_map(RecordChange::sessions).collect();
        refs.sessions.keep_from(&old.refs.sessions, |number| changed.contains(&number));
        changes().try_for_each(|change| advance_by(&mut refs, change))?;
        self.base = Some(base);
        self.refs = Arc::new(refs);
        Ok(())
    }

    /// Adds a record to the list.
    fn push(&mut self, placed: PositionedRecord) {
        // `operation_rows` shares the list, so that each push would copy the list. The field is
        // cleared if no snapshot uses these rows and they are not made yet.
        self.operation_rows
            .take_if(|lazy| Arc::get_mut(lazy).is_some_and(|lazy| lazy.made().is_none()));
        Arc::make_mut(&mut self.records).push(Arc::new(placed));
    }

    /// Adds the next record of the journal, which ends at this position. An error clears
    /// everything, because half-applied refs match no moment.
    pub(super) fn add(&mut self, placed: PositionedRecord, end: LogPosition) -> Result<()> {
        // After a panic the tail counts as not loaded, so that the next reader begins again.
        self.loaded = false;
        let moved = advance(Arc::make_mut(&mut self.refs), &placed.record);
        if moved.is_err() {
            *self = Self::default();
            return moved;
        }
        self.push(placed);
        self.end = end;
        self.loaded = true;
        Ok(())
    }

    /// Makes the rows of the records that have none yet. The rows are moved out meanwhile, so that
    /// an error leaves no rows instead of rows of half a record.
    ///
    /// Operation rows are left out until they are needed by a reader or a record.
    fn index(&mut self, base: &dyn Snapshot) -> Result<()> {
        let empty = || (Arc::new(object::rows_of_tail()), StoreRefs::default(), 0);
        let (mut rows, mut refs, mut from) = match std::mem::take(&mut self.indexed) {
            0 => empty(),
            from => (std::mem::take(&mut self.rows), std::mem::take(&mut self.rows_refs), from),
        };
        let lazy = self.operation_rows.take();
        let all_rows = lazy.as_ref().and_then(|lazy| lazy.made());
        let none_yet = from == 0 || (self.lacks_operations && all_rows.is_none());
        let new = self.records.get(from..).unwrap_or_default();
        if none_yet && new.iter().all(|placed| index::needs_no_operations(&placed.record)) {
            index::apply_all_but_operations(base, Arc::make_mut(&mut rows), &mut refs, new)?;
            self.operation_rows = Some(Arc::new(LazyOperationRows::of(Arc::clone(&self.records))));
            self.lacks_operations = true;
        } else {
            if let Some(all) = all_rows {
                rows = Arc::new(all.clone());
            } else if none_yet {
                (rows, refs, from) = empty();
            }
            let new = self.records.get(from..).unwrap_or_default();
            index::apply_all(base, Arc::make_mut(&mut rows), &mut refs, new)?;
            self.lacks_operations = false;
        }
        (self.rows, self.rows_refs, self.indexed) = (rows, refs, self.records.len());
        Ok(())
    }

    /// Returns a snapshot at the end of the tail. `base` is its opened generation.
    pub(super) fn view(&mut self, base: Arc<dyn Snapshot>) -> Result<ReadSnapshot> {
        if self.indexed < self.records.len() {
            self.index(&*base)?;
        }
        Ok(ReadSnapshot {
            base,
            rows: Arc::clone(&self.rows),
            operation_rows: self.operation_rows.clone(),
            position: self.end,
            object_cache: Arc::clone(&self.object_cache),
            planned: false,
            refs: Arc::clone(&self.refs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::refs::tests::of_one_session;
    use crate::format::{DeltaPart, Record, RecordBytes};
    use crate::model::{Operation, OperationAuthor, OperationId, Timestamp};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn record(counts: &[u64]) -> PositionedRecord {
        let operation = Operation {
            id: OperationId::from_bytes([0; 16]),
            verb: "import".to_owned(),
            author: OperationAuthor::Hook,
            time: Timestamp::default(),
        };
        let facts = |count: &u64| RecordChange::Facts {
            session: 0,
            count: *count,
            first: Timestamp::default(),
            last: Timestamp::default(),
            page: DeltaPart::Inline(RecordBytes::default()),
        };
        let changes = counts.iter().map(facts).collect();
        PositionedRecord { position: 0, hash: [0; 32], record: Record { operation, changes } }
    }

    /// After a panic between two changes of a record, the same process read half of the record.
    #[test]
    fn after_a_panic_in_a_record_the_tail_is_read_again() {
        let refs = Arc::new(of_one_session(Timestamp::default()));
        let mut tail = JournalTail { refs, loaded: true, ..JournalTail::default() };
        tail.add(record(&[1, 2]), 10).unwrap();
        assert_eq!((tail.loaded, tail.end, tail.records.len()), (true, 10, 1));
        // The second count is more than fits.
        let added = catch_unwind(AssertUnwindSafe(|| tail.add(record(&[1, u64::MAX]), 20)));
        assert!(added.is_err());
        assert_eq!((tail.loaded, tail.end, tail.records.len()), (false, 10, 1));
    }
}
