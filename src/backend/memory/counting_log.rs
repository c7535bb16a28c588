//! A log in memory that counts its calls, for tests.

use super::MemoryLog;
use crate::backend::{AppendedRecord, Error, LogPosition, LogTail, WriteAheadLog};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A [`MemoryLog`] that counts appends, and the records that appends read.
#[derive(Default)]
pub(crate) struct CountingLog {
    log: MemoryLog,
    appends: AtomicU64,
    group_appends: AtomicU64,
    records_read: AtomicU64,
}

impl CountingLog {
    /// Sets all counts to 0.
    pub(crate) fn reset(&self) {
        for count in [&self.appends, &self.group_appends, &self.records_read] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the number of appends of one record.
    pub(crate) fn appends(&self) -> u64 {
        self.appends.load(Ordering::Relaxed)
    }

    /// Returns the number of appends of several records at once.
    pub(crate) fn group_appends(&self) -> u64 {
        self.group_appends.load(Ordering::Relaxed)
    }

    /// Returns the number of records that appends of one record have read.
    pub(crate) fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::Relaxed)
    }
}

impl WriteAheadLog for CountingLog {
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        self.log.read(from, limit)
    }

    fn append(
        &self,
        from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.log.append(from, timeout, &mut |tail| {
            self.records_read.fetch_add(tail.frames.len() as u64, Ordering::Relaxed);
            build(tail)
        })
    }

    fn append_all(
        &self,
        from: LogPosition,
        timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error> {
        self.group_appends.fetch_add(1, Ordering::Relaxed);
        self.log.append_all(from, timeout, payloads)
    }

    fn sync(&self, to: LogPosition) -> Result<(), Error> {
        self.log.sync(to)
    }

    fn rotate(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        self.log.rotate(from, timeout, first)
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), Error> {
        self.log.remove_before(before)
    }

    fn start(&self) -> Result<LogPosition, Error> {
        self.log.start()
    }
}
