//! An index in memory.

use super::lock;
use crate::backend::{
    Applier, Batch, Direction, Error, INDEX_LOCK, Index, Position, Row, Snapshot, Table,
    check_tables,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// An [`Index`] in memory. Clones are handles on the same index.
#[derive(Clone, Debug, Default)]
pub struct MemoryIndex {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    newest: Mutex<Arc<Rows>>,
    applying: AtomicBool,
}

/// The rows of a table.
type Sorted = BTreeMap<Vec<u8>, Vec<u8>>;

/// One generation. Tables are shared between generations until one of them is written.
#[derive(Clone, Debug, Default)]
struct Rows {
    position: Position,
    tables: BTreeMap<Table, Arc<Sorted>>,
}

impl Snapshot for Rows {
    fn position(&self) -> Position {
        self.position
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.tables.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let Some(rows) = self.tables.get(&table) else { return Ok(Vec::new()) };
        if !to.is_empty() && from >= to {
            return Ok(Vec::new());
        }
        let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        let range = rows.range::<[u8], _>((Bound::Included(from), end));
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(match direction {
            Direction::Ascending => range.take(limit).map(copy).collect(),
            Direction::Descending => range.rev().take(limit).map(copy).collect(),
        })
    }
}

impl Index for MemoryIndex {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        let newest = Arc::clone(&lock(&self.shared.newest));
        Ok(newest)
    }

    fn position(&self) -> Result<Position, Error> {
        Ok(lock(&self.shared.newest).position)
    }

    fn try_applier(&self) -> Result<Option<Box<dyn Applier>>, Error> {
        if self.shared.applying.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        let rows = Rows::clone(&lock(&self.shared.newest));
        Ok(Some(Box::new(MemoryApplier { shared: Arc::clone(&self.shared), rows })))
    }

    fn anew(&self, timeout: Duration) -> Result<Box<dyn Applier>, Error> {
        let since = Instant::now();
        while self.shared.applying.swap(true, Ordering::AcqRel) {
            let waited = since.elapsed();
            if waited >= timeout {
                return Err(Error::Busy { lock: INDEX_LOCK, holder: None, waited });
            }
            thread::park_timeout(Duration::from_millis(1));
        }
        let (shared, rows) = (Arc::clone(&self.shared), Rows::default());
        Ok(Box::new(MemoryApplier { shared, rows }))
    }
}

struct MemoryApplier {
    shared: Arc<Shared>,
    rows: Rows,
}

impl Applier for MemoryApplier {
    fn view(&self) -> &dyn Snapshot {
        &self.rows
    }

    fn write(&mut self, batch: Batch) -> Result<(), Error> {
        check_tables(&batch)?;
        for (table, key, value) in batch.rows {
            let rows = Arc::make_mut(self.rows.tables.entry(table).or_default());
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    fn publish(mut self: Box<Self>, position: Position) -> Result<(), Error> {
        self.rows.position = position;
        let rows = std::mem::take(&mut self.rows);
        *lock(&self.shared.newest) = Arc::new(rows);
        Ok(())
    }
}

impl Drop for MemoryApplier {
    fn drop(&mut self) {
        self.shared.applying.store(false, Ordering::Release);
    }
}
