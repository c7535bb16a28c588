//! A depot in memory.

use super::{
    DEPOT_LIST_ENTRIES, Depot, DepotEntry, DepotError, DepotRead, DepotTag, DepotWrite,
    check_depot_name, check_depot_object, check_depot_prefix,
};
use crate::backend::locked;
use crate::model::Timestamp;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

/// A [`Depot`] in memory, for tests. Clones are handles to the same depot.
///
/// It counts its requests. Its clock has the time that [`MemoryDepot::set_now`] last set, and the
/// beginning of 1970 before that.
#[derive(Clone, Debug, Default)]
pub struct MemoryDepot(Arc<Mutex<MemoryObjects>>);

#[derive(Debug, Default)]
struct MemoryObjects {
    objects: BTreeMap<String, MemoryObject>,
    /// The number of writes, from which tags are made.
    writes: u64,
    now: Timestamp,
    requests: DepotRequests,
}

#[derive(Debug)]
struct MemoryObject {
    bytes: Vec<u8>,
    tag: DepotTag,
    changed: Timestamp,
}

/// The number of requests of each kind that a depot received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepotRequests {
    /// Calls of [`Depot::get`].
    pub get: u64,
    /// Calls of [`Depot::put_new`].
    pub put_new: u64,
    /// Calls of [`Depot::swap`].
    pub swap: u64,
    /// Calls of [`Depot::list`].
    pub list: u64,
    /// Calls of [`Depot::remove`].
    pub remove: u64,
    /// Calls of [`Depot::now`].
    pub now: u64,
}

impl DepotRequests {
    /// Returns the number of all requests.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.get + self.put_new + self.swap + self.list + self.remove + self.now
    }
}

impl MemoryDepot {
    /// Sets the clock of the depot.
    pub fn set_now(&self, now: Timestamp) {
        locked(&self.0).now = now;
    }

    /// Returns the requests since the last call of this function.
    pub fn take_requests(&self) -> DepotRequests {
        std::mem::take(&mut locked(&self.0).requests)
    }
}

impl MemoryObjects {
    /// Stores an object under a tag that was never used before.
    fn store(&mut self, name: &str, bytes: &[u8]) -> DepotWrite {
        self.writes += 1;
        let tag = DepotTag::new(self.writes.to_string());
        let object = MemoryObject { bytes: bytes.to_vec(), tag: tag.clone(), changed: self.now };
        self.objects.insert(name.to_owned(), object);
        DepotWrite::Done(tag)
    }
}

impl Depot for MemoryDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        check_depot_name(name)?;
        let mut depot = locked(&self.0);
        depot.requests.get += 1;
        let found = depot.objects.get(name);
        Ok(DepotRead::of(found.map(|object| (object.bytes.clone(), object.tag.clone())), known))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        check_depot_name(name)?;
        check_depot_object(bytes)?;
        let mut depot = locked(&self.0);
        depot.requests.put_new += 1;
        if depot.objects.contains_key(name) {
            return Ok(DepotWrite::Conflict);
        }
        Ok(depot.store(name, bytes))
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        check_depot_name(name)?;
        check_depot_object(bytes)?;
        let mut depot = locked(&self.0);
        depot.requests.swap += 1;
        if depot.objects.get(name).is_none_or(|object| object.tag != *expected) {
            return Ok(DepotWrite::Conflict);
        }
        Ok(depot.store(name, bytes))
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        check_depot_prefix(prefix)?;
        let mut depot = locked(&self.0);
        depot.requests.list += 1;
        let from = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let rows = depot.objects.range::<str, _>((from, Bound::Unbounded));
        let entry = |(name, object): (&String, &MemoryObject)| DepotEntry {
            name: name.clone(),
            tag: Some(object.tag.clone()),
            bytes: object.bytes.len() as u64,
            changed: object.changed,
        };
        let inside = rows.take_while(|(name, _)| name.starts_with(prefix));
        Ok(inside.take(DEPOT_LIST_ENTRIES).map(entry).collect())
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        check_depot_name(name)?;
        let mut depot = locked(&self.0);
        depot.requests.remove += 1;
        depot.objects.remove(name);
        Ok(())
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        let mut depot = locked(&self.0);
        depot.requests.now += 1;
        Ok(depot.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_kind_for_all_clones() {
        let depot = MemoryDepot::default();
        let other = depot.clone();
        let DepotWrite::Done(tag) = other.put_new("a", b"1").unwrap() else { panic!("no winner") };
        other.swap("a", &tag, b"2").unwrap();
        other.get("a", None).unwrap();
        other.get("b", None).unwrap();
        other.list("", "").unwrap();
        other.remove("a").unwrap();
        other.now().unwrap();
        // A name that is not permitted is no request.
        other.get("../a", None).unwrap_err();
        let counted = depot.take_requests();
        let expected = DepotRequests { get: 2, put_new: 1, swap: 1, list: 1, remove: 1, now: 1 };
        assert_eq!((counted, counted.total()), (expected, 7));
        assert_eq!(depot.take_requests(), DepotRequests::default());
    }

    #[test]
    fn the_clock_has_the_time_that_was_set() {
        let depot = MemoryDepot::default();
        let times = [0, 1_700_000_000_000_000].map(Timestamp::from_micros);
        for (name, time) in ["a", "b"].into_iter().zip(times) {
            depot.set_now(time);
            assert_eq!(depot.now().unwrap(), time);
            depot.put_new(name, b"").unwrap();
        }
        let changed = depot.list("", "").unwrap().into_iter().map(|entry| entry.changed);
        assert_eq!(changed.collect::<Vec<_>>(), times);
    }
}
