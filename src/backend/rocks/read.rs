//! Reading an open database.

use super::options::{self, OBJECTS, ROWS};
use super::{POSITION_KEY, manifest, refused};
use crate::backend::{self, Direction, Error, Position, Row, Snapshot, Table};
use rocksdb::{Cache, ColumnFamily, ColumnFamilyDescriptor, DB, ReadOptions};
use std::borrow::Cow;
use std::path::Path;

/// An open database and the position it was opened at.
pub(super) struct Database {
    db: DB,
    position: Position,
}

impl Database {
    /// Opens a generation. Writes nothing.
    pub(super) fn open_read_only(
        path: &Path,
        position: Position,
        cache: &Cache,
    ) -> Result<Self, Error> {
        manifest::check(path)?;
        let options = options::database();
        let families = options::families_to_read(cache);
        let db = DB::open_cf_descriptors_read_only(&options, path, families, false)
            .map_err(refused("open"))?;
        Self::checked(db, Some(position))
    }

    /// Opens a working copy of the generation at `position`; makes an empty one if there is no generation yet.
    pub(super) fn open_work(
        path: &Path,
        position: Option<Position>,
        families: [ColumnFamilyDescriptor; 2],
    ) -> Result<Self, Error> {
        manifest::check(path)?;
        let mut options = options::database();
        options.create_if_missing(position.is_none());
        options.create_missing_column_families(position.is_none());
        let db = DB::open_cf_descriptors(&options, path, families).map_err(refused("open"))?;
        Self::checked(db, position)
    }

    /// Checks that the rows are those that the folder's name promises.
    fn checked(db: DB, expected: Option<Position>) -> Result<Self, Error> {
        let database = Self { db, position: expected.unwrap_or(0) };
        let found = database.position_row()?;
        if found != expected {
            let text = |p: Option<Position>| p.map_or("none".to_owned(), |p| p.to_string());
            let (found, expected) = (text(found), text(expected));
            let what = format!("its rows are of position {found}, its name says {expected}");
            return Err(Error::DamagedIndex { what });
        }
        Ok(database)
    }

    fn position_row(&self) -> Result<Option<Position>, Error> {
        let row = self.db.get_pinned_cf(self.family(ROWS)?, POSITION_KEY);
        let Some(row) = row.map_err(refused("read"))? else { return Ok(None) };
        let bytes: [u8; 8] = row.as_ref().try_into().map_err(|_| Error::DamagedIndex {
            what: "its position row is not 8 bytes long".to_owned(),
        })?;
        Ok(Some(u64::from_be_bytes(bytes)))
    }

    pub(super) const fn rocks(&self) -> &DB {
        &self.db
    }

    pub(super) fn family(&self, name: &str) -> Result<&ColumnFamily, Error> {
        self.db.cf_handle(name).ok_or_else(|| Error::DamagedIndex {
            what: format!("it has no column family `{name}`"),
        })
    }
}

/// The family a table lives in.
pub(super) const fn family_of(table: Table) -> &'static str {
    if table.0 == backend::OBJECTS.0 { OBJECTS } else { ROWS }
}

/// A key as the family stores it.
pub(super) fn stored_key(table: Table, key: &[u8]) -> Cow<'_, [u8]> {
    if table == backend::OBJECTS {
        return Cow::Borrowed(key);
    }
    let mut stored = Vec::with_capacity(key.len() + 1);
    stored.push(table.0);
    stored.extend_from_slice(key);
    Cow::Owned(stored)
}

/// The first key that no longer belongs to the range, if there can be one behind it.
fn stored_end(table: Table, to: &[u8]) -> Option<Vec<u8>> {
    if !to.is_empty() {
        return Some(stored_key(table, to).into_owned());
    }
    if table == backend::OBJECTS { None } else { table.0.checked_add(1).map(|next| vec![next]) }
}

/// How a table is read. Objects stay out of the cache: whoever opens one keeps it, and of most of their blocks one is asked for. What
/// is freed at once goes to the next block, where the cache would take memory that the process has never touched, page by page.
fn reading(table: Table) -> ReadOptions {
    let mut reading = ReadOptions::default();
    reading.fill_cache(table != backend::OBJECTS);
    reading
}

impl Snapshot for Database {
    fn position(&self) -> Position {
        self.position
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let family = self.family(family_of(table))?;
        self.db.get_cf_opt(family, stored_key(table, key), &reading(table)).map_err(refused("read"))
    }

    fn get_many(&self, table: Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let family = self.family(family_of(table))?;
        let stored: Vec<_> = keys.iter().map(|key| stored_key(table, key)).collect();
        let places = stored.iter().map(AsRef::<[u8]>::as_ref);
        self.db
            .batched_multi_get_cf_opt(family, places, false, &reading(table))
            .into_iter()
            .map(|found| found.map(|value| value.map(|v| v.to_vec())).map_err(refused("read")))
            .collect()
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        if limit == 0 || (!to.is_empty() && from >= to) {
            return Ok(Vec::new());
        }
        let family = self.family(family_of(table))?;
        let prefix = if table == backend::OBJECTS { 0 } else { 1 };
        let mut bounds = reading(table);
        let first = stored_key(table, from).into_owned();
        bounds.set_iterate_lower_bound(first.clone());
        if let Some(end) = stored_end(table, to) {
            bounds.set_iterate_upper_bound(end);
        }
        let mut rows = Vec::new();
        let mut iterator = self.db.raw_iterator_cf_opt(family, bounds);
        match direction {
            Direction::Ascending => iterator.seek(&first),
            Direction::Descending => iterator.seek_to_last(),
        }
        while let Some((key, value)) = iterator.item() {
            rows.push((key[prefix..].to_vec(), value.to_vec()));
            if rows.len() == limit {
                break;
            }
            match direction {
                Direction::Ascending => iterator.next(),
                Direction::Descending => iterator.prev(),
            }
        }
        // A damaged file only ends the iterator: without this the answer would be shorter, not an error.
        iterator.status().map_err(refused("scan"))?;
        Ok(rows)
    }
}
