//! Rows in memory on top of a snapshot: the part of the journal that no generation holds yet.

use super::materialize::Objects;
use super::opened::Opened;
use crate::backend::{self, Batch, Direction, Position, Row, Snapshot, Table};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Rows on top of a snapshot; `None` hides one of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>);

impl Rows {
    pub(crate) fn put(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.0.insert((table, key), Some(value));
    }

    pub(crate) fn delete(&mut self, table: Table, key: Vec<u8>) {
        self.0.insert((table, key), None);
    }

    pub(crate) fn contains(&self, table: Table, key: &[u8]) -> bool {
        self.0.get(&(table, key.to_vec())).is_some_and(Option::is_some)
    }

    /// Takes these rows on top.
    pub(crate) fn extend(&mut self, rows: Self) {
        self.0.extend(rows.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_batch(self) -> Batch {
        Batch {
            rows: self.0.into_iter().map(|((table, key), value)| (table, key, value)).collect(),
        }
    }
}

/// A snapshot with rows on top.
#[derive(Clone, Copy)]
pub(crate) struct Merged<'a> {
    pub(crate) base: &'a dyn Snapshot,
    pub(crate) rows: &'a Rows,
    pub(crate) position: Position,
}

impl Objects for Merged<'_> {
    /// Whoever writes a generation, or checks one, reads what is on the disk.
    fn opened(&self) -> Option<&Opened> {
        None
    }
}

impl Snapshot for Merged<'_> {
    fn position(&self) -> Position {
        self.position
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, backend::Error> {
        if self.rows.0.is_empty() {
            return self.base.get(table, key);
        }
        match self.rows.0.get(&(table, key.to_vec())) {
            Some(value) => Ok(value.clone()),
            None => self.base.get(table, key),
        }
    }

    fn get_many(
        &self,
        table: Table,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, backend::Error> {
        let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(keys.len());
        let (mut places, mut missing) = (Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            if let Some(value) = self.rows.0.get(&(table, key.clone())) {
                values.push(value.clone());
            } else {
                values.push(None);
                places.push(place);
                missing.push(key.clone());
            }
        }
        if !missing.is_empty() {
            for (place, value) in places.into_iter().zip(self.base.get_many(table, &missing)?) {
                if let Some(slot) = values.get_mut(place) {
                    *slot = value;
                }
            }
        }
        Ok(values)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, backend::Error> {
        let end = if to.is_empty() {
            Bound::Excluded((Table(table.0.saturating_add(1)), Vec::new()))
        } else {
            Bound::Excluded((table, to.to_vec()))
        };
        if !to.is_empty() && from >= to {
            return Ok(Vec::new());
        }
        let mut above: Vec<_> = self
            .rows
            .0
            .range((Bound::Included((table, from.to_vec())), end))
            .map(|((_, key), value)| (key, value))
            .collect();
        if above.is_empty() {
            return self.base.scan(table, from, to, direction, limit);
        }
        // Every row above may hide one below.
        let room = limit.saturating_add(above.len());
        let below = self.base.scan(table, from, to, direction, room)?;
        if direction == Direction::Descending {
            above.reverse();
        }
        let first = |left: &[u8], right: &[u8]| match direction {
            Direction::Ascending => left < right,
            Direction::Descending => left > right,
        };
        let mut result = Vec::new();
        let mut above = above.into_iter().peekable();
        let mut below = below.into_iter().peekable();
        while result.len() < limit {
            match (above.peek(), below.peek()) {
                (None, None) => break,
                (Some((key, _)), Some((other, _))) if first(other, key) => {
                    result.extend(below.next());
                }
                (None, Some(_)) => result.extend(below.next()),
                (Some((key, value)), other) => {
                    if other.is_some_and(|(other, _)| other == *key) {
                        below.next();
                    }
                    if let Some(value) = value {
                        result.push(((*key).clone(), value.clone()));
                    }
                    above.next();
                }
            }
        }
        Ok(result)
    }
}
