//! A table of frames in memory, whose calls can fail as the calls of a database do.

use super::{Error, FrameRow, FrameRows, FrameTable, LockedFrames, LogHead, LogPosition};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A function that runs in place of a call. Its argument does the work of that call.
type Fault<T> = Box<dyn FnOnce(&mut dyn FnMut() -> T) -> Result<T, Error> + Send>;

/// The rows that all handles share.
#[derive(Debug, Default)]
pub(crate) struct FakeRows {
    pub(crate) head: LogHead,
    pub(crate) frames: BTreeMap<LogPosition, FrameRow>,
}

impl FakeRows {
    fn read(&self, from: LogPosition, limit: u64) -> FrameRows {
        let to = from.saturating_add(limit.max(1));
        let frames = self.frames.range(from..to).map(|(_, row)| row.clone()).collect();
        FrameRows { head: self.head, frames }
    }

    fn append(&mut self, frames: &[FrameRow]) {
        for row in frames {
            (self.head.end, self.head.hash) = (row.end, row.hash);
            let twice = self.frames.insert(row.position, row.clone());
            assert_eq!(twice, None, "two frames at {}", row.position);
        }
    }
}

/// The faults of the next calls of a handle, in order, and the names of past calls.
#[derive(Default)]
struct Faults {
    reads: VecDeque<Fault<FrameRows>>,
    appends: VecDeque<Fault<bool>>,
    locked_appends: VecDeque<Fault<()>>,
    settlements: VecDeque<Fault<()>>,
    calls: Vec<&'static str>,
}

/// A handle of a table. A clone has the same faults; [`FakeTable::other`] has none.
#[derive(Clone, Default)]
pub(crate) struct FakeTable {
    rows: Arc<Mutex<FakeRows>>,
    faults: Arc<Mutex<Faults>>,
}

impl FakeTable {
    /// Returns a handle of the same rows without faults, as another process has it.
    pub(crate) fn other(&self) -> Self {
        Self { rows: Arc::clone(&self.rows), faults: Arc::default() }
    }

    /// Returns the rows, to read or to change them.
    pub(crate) fn rows(&self) -> MutexGuard<'_, FakeRows> {
        // A test whose thread panics must not panic again here.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T>(
        &self,
        name: &'static str,
        fault: impl FnOnce(&mut Faults) -> Option<Fault<T>>,
        work: &mut dyn FnMut() -> T,
    ) -> Result<T, Error> {
        let fault = {
            let mut faults = self.faults();
            faults.calls.push(name);
            fault(&mut faults)
        };
        match fault {
            Some(fault) => fault(work),
            None => Ok(work()),
        }
    }
}

#[allow(dead_code, reason = "the conformance suite needs no faults")]
impl FakeTable {
    /// Adds a fault for a later read.
    pub(crate) fn on_read(
        &self,
        fault: impl FnOnce(&mut dyn FnMut() -> FrameRows) -> Result<FrameRows, Error> + Send + 'static,
    ) {
        self.faults().reads.push_back(Box::new(fault));
    }

    /// Adds a fault for a later append without the lock.
    pub(crate) fn on_append(
        &self,
        fault: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<bool, Error> + Send + 'static,
    ) {
        self.faults().appends.push_back(Box::new(fault));
    }

    /// Adds a fault for a later append under the lock.
    pub(crate) fn on_locked_append(
        &self,
        fault: impl FnOnce(&mut dyn FnMut()) -> Result<(), Error> + Send + 'static,
    ) {
        self.faults().locked_appends.push_back(Box::new(fault));
    }

    /// Adds a fault for a later call of `settle`.
    pub(crate) fn on_settle(
        &self,
        fault: impl FnOnce(&mut dyn FnMut()) -> Result<(), Error> + Send + 'static,
    ) {
        self.faults().settlements.push_back(Box::new(fault));
    }

    /// Returns the names of the calls since this function was last called.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.faults().calls)
    }
}

impl FrameTable for FakeTable {
    /// Reads from the beginning, because there is no index beside this table.
    fn read_after_index(&self, limit: u64) -> Result<(LogPosition, FrameRows), Error> {
        Ok((0, self.read(0, limit)?))
    }

    fn read(&self, from: LogPosition, limit: u64) -> Result<FrameRows, Error> {
        let mut work = || self.rows().read(from, limit);
        self.call("read", |faults| faults.reads.pop_front(), &mut work)
    }

    fn append(&self, head: &LogHead, frames: &[FrameRow], _: Duration) -> Result<bool, Error> {
        let mut work = || {
            let mut rows = self.rows();
            let is_same = (rows.head.end, rows.head.hash) == (head.end, head.hash);
            if is_same {
                rows.append(frames);
            }
            is_same
        };
        self.call("append", |faults| faults.appends.pop_front(), &mut work)
    }

    fn settle(&self, _: Duration) -> Result<(), Error> {
        self.call("settle", |faults| faults.settlements.pop_front(), &mut || ())
    }

    fn lock(&self, _: Duration) -> Result<Box<dyn LockedFrames + '_>, Error> {
        self.faults().calls.push("lock");
        Ok(Box::new(LockedRows { table: self, rows: self.rows() }))
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), Error> {
        let mut rows = self.rows();
        let begun = |row: &&FrameRow| row.begins_segment;
        let kept = rows.frames.range(..=before).rev().map(|(_, row)| row).find(begun);
        if let Some(start) = kept.map(|row| row.position) {
            rows.head.start = rows.head.start.max(start);
            rows.frames = rows.frames.split_off(&start);
        }
        Ok(())
    }
}

struct LockedRows<'a> {
    table: &'a FakeTable,
    rows: MutexGuard<'a, FakeRows>,
}

impl LockedFrames for LockedRows<'_> {
    fn read(&mut self, from: LogPosition, limit: u64) -> Result<FrameRows, Error> {
        Ok(self.rows.read(from, limit))
    }

    fn append(mut self: Box<Self>, frames: &[FrameRow]) -> Result<(), Error> {
        let table = self.table;
        let mut work = || self.rows.append(frames);
        table.call("locked append", |faults| faults.locked_appends.pop_front(), &mut work)
    }
}
