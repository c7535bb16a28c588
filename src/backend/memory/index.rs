//! An index in memory.

use crate::backend::{
    Error, INDEX_LOCK, Index, IndexWriter, LogPosition, RowBatch, ScanDirection, ScanRequest,
    Snapshot, TableId, TableRow, check_tables, locked,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// An [`Index`] in memory. Clones are handles to the same index.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    shared: Arc<MemoryIndexState>,
}

#[derive(Debug, Default)]
struct MemoryIndexState {
    newest: Mutex<Arc<MemoryGeneration>>,
    /// Whether a writer exists.
    has_writer: AtomicBool,
}

/// The rows of a table, sorted by key.
type SortedRows = BTreeMap<Vec<u8>, Vec<u8>>;

/// One generation. A table that did not change is shared with the generation before.
#[derive(Clone, Debug, Default)]
struct MemoryGeneration {
    position: LogPosition,
    tables: BTreeMap<TableId, Arc<SortedRows>>,
}

impl Snapshot for MemoryGeneration {
    fn position(&self) -> LogPosition {
        self.position
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.tables.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        let ScanRequest { table, from, to, direction, limit } = request;
        let Some(rows) = self.tables.get(&table) else { return Ok(Vec::new()) };
        if !to.is_empty() && from >= to {
            return Ok(Vec::new());
        }
        let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        let range = rows.range::<[u8], _>((Bound::Included(from), end));
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(match direction {
            ScanDirection::Ascending => range.take(limit).map(copy).collect(),
            ScanDirection::Descending => range.rev().take(limit).map(copy).collect(),
        })
    }
}

impl Index for MemoryIndex {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        let newest = Arc::clone(&locked(&self.shared.newest));
        Ok(newest)
    }

    fn position(&self) -> Result<LogPosition, Error> {
        Ok(locked(&self.shared.newest).position)
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        if self.shared.has_writer.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        let next = MemoryGeneration::clone(&locked(&self.shared.newest));
        Ok(Some(Box::new(MemoryIndexWriter { shared: Arc::clone(&self.shared), next })))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        let since = Instant::now();
        while self.shared.has_writer.swap(true, Ordering::AcqRel) {
            let waited = since.elapsed();
            if waited >= timeout {
                return Err(Error::Busy { lock: INDEX_LOCK, holder: None, waited });
            }
            thread::park_timeout(Duration::from_millis(1));
        }
        let (shared, next) = (Arc::clone(&self.shared), MemoryGeneration::default());
        Ok(Box::new(MemoryIndexWriter { shared, next }))
    }
}

struct MemoryIndexWriter {
    shared: Arc<MemoryIndexState>,
    /// The generation that is published next.
    next: MemoryGeneration,
}

impl IndexWriter for MemoryIndexWriter {
    fn view(&self) -> &dyn Snapshot {
        &self.next
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), Error> {
        check_tables(&batch)?;
        for (table, key, value) in batch.rows {
            let rows = Arc::make_mut(self.next.tables.entry(table).or_default());
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    fn publish(mut self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.next.position = position;
        let generation = std::mem::take(&mut self.next);
        *locked(&self.shared.newest) = Arc::new(generation);
        Ok(())
    }
}

impl Drop for MemoryIndexWriter {
    fn drop(&mut self) {
        self.shared.has_writer.store(false, Ordering::Release);
    }
}
