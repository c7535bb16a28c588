//! An index that lengthens keys to at least sixteen bytes and keeps their order, so that parts of
//! keys of any length can be hidden.

use forge_store::backend::{
    Error, Index, IndexWriter, LogPosition, RowBatch, ScanRequest, Snapshot, TableId, TableRow,
};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Spread<I>(pub(super) I);

struct Shown(Arc<dyn Snapshot>);
struct Written(Box<dyn IndexWriter>);

/// Puts a one before each byte and zeros at the end, so that a key sorts before its extensions.
fn spread(key: &[u8]) -> Vec<u8> {
    let mut long: Vec<u8> = key.iter().flat_map(|byte| [1, *byte]).collect();
    let length = (long.len() + 1).max(16);
    long.resize(length, 0);
    long
}

fn gathered(long: &[u8]) -> Vec<u8> {
    long.chunks(2).take_while(|pair| pair[0] == 1).map(|pair| pair[1]).collect()
}

fn get(inner: &dyn Snapshot, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    inner.get(table, &spread(key))
}

fn rows(inner: &dyn Snapshot, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
    let bound = |key: &[u8]| if key.is_empty() { Vec::new() } else { spread(key) };
    let (from, to) = (bound(request.from), bound(request.to));
    let rows = inner.rows(ScanRequest { from: &from, to: &to, ..request })?;
    Ok(rows.into_iter().map(|(key, value)| (gathered(&key), value)).collect())
}

impl<I: Index> Index for Spread<I> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(Shown(self.0.snapshot()?)))
    }

    fn position(&self) -> Result<LogPosition, Error> {
        self.0.position()
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        Ok(self.0.try_writer()?.map(|inner| Box::new(Written(inner)) as Box<dyn IndexWriter>))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        Ok(Box::new(Written(self.0.empty_writer(timeout)?)))
    }
}

impl Snapshot for Shown {
    fn position(&self) -> LogPosition {
        self.0.position()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        get(&*self.0, table, key)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        rows(&*self.0, request)
    }
}

impl Snapshot for Written {
    fn position(&self) -> LogPosition {
        self.0.view().position()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        get(self.0.view(), table, key)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        rows(self.0.view(), request)
    }
}

impl IndexWriter for Written {
    fn view(&self) -> &dyn Snapshot {
        self
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), Error> {
        let rows = batch.rows.into_iter();
        let rows = rows.map(|(table, key, value)| (table, spread(&key), value)).collect();
        self.0.write(RowBatch { rows })
    }

    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.0.publish(position)
    }
}
