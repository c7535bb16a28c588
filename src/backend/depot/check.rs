//! Checks whether a depot has the properties on which remotes rely.

use super::{Depot, DepotEntry, DepotError, DepotRead, DepotTag, DepotWrite};
use std::thread;

/// The folder of the objects that a check writes.
const FOLDER: &str = "check/";
/// Number of writers that try the same write at once.
const WRITERS: u8 = 8;
/// The time of a new object must differ less than this from the depot's clock, in microseconds.
const MAX_SKEW_MICROS: u64 = 3_600_000_000;

/// Checks whether a depot does what [`Depot`] promises: conditional writes with one winner, reads
/// and lists that see earlier writes, removal, and a clock. The check writes objects with random
/// names and removes them.
///
/// # Errors
/// [`DepotError::Unsupported`] names what the depot cannot do; any error of the depot.
pub fn check_depot(depot: &dyn Depot) -> Result<(), DepotError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| DepotError::Unavailable {
        what: "there are no random numbers".to_owned(),
        source: Some(Box::new(error)),
    })?;
    let prefix = format!("{FOLDER}{:032x}", u128::from_le_bytes(random));
    let [first, second, missing] = ["a", "b", "c"].map(|end| format!("{prefix}{end}"));
    let probe = DepotProbe { depot, prefix: &prefix, first: &first, second: &second };
    let checked = probe.all(&missing);
    for name in [&first, &second, &missing] {
        // The first error is the one to report.
        let removed = depot.remove(name);
        if checked.is_ok() {
            removed?;
        }
    }
    checked
}

/// A check in progress: the depot and the names of the objects.
struct DepotProbe<'a> {
    depot: &'a dyn Depot,
    /// The common prefix of the names of the objects.
    prefix: &'a str,
    first: &'a str,
    second: &'a str,
}

impl DepotProbe<'_> {
    fn all(&self, missing: &str) -> Result<(), DepotError> {
        let old = self.creates()?;
        let winner = self.has_one_winner(1, &|bytes| self.depot.put_new(self.second, bytes))?;
        let tag = self.has(self.second, &winner)?;
        let new = self.swaps(&old, missing)?;
        // Round 2 writes other bytes than round 1: a tag may be a hash of the contents, so equal
        // bytes would have the expected tag again.
        self.has_one_winner(2, &|bytes| self.depot.swap(self.second, &tag, bytes))?;
        self.lists()?;
        self.depot.remove(self.first)?;
        ensure(self.depot.get(self.first, Some(&new))? == DepotRead::Absent, "remove objects")
    }

    /// Checks that an object is created only if there is none. Returns its tag.
    fn creates(&self) -> Result<DepotTag, DepotError> {
        let what = "create an object only if there is none";
        let DepotWrite::Done(tag) = self.depot.put_new(self.first, b"first")? else {
            return Err(unable(what));
        };
        let unchanged = self.depot.get(self.first, Some(&tag))? == DepotRead::Unchanged;
        ensure(unchanged, "tell whether an object has changed")?;
        ensure(self.depot.put_new(self.first, b"other")? == DepotWrite::Conflict, what)?;
        let found = self.has(self.first, b"first")?;
        ensure(found == tag, "tell whether an object has changed")?;
        Ok(tag)
    }

    /// Checks that an object is replaced only if it has not changed. Returns its new tag.
    fn swaps(&self, old: &DepotTag, missing: &str) -> Result<DepotTag, DepotError> {
        let what = "replace an object only if it has not changed";
        let DepotWrite::Done(new) = self.depot.swap(self.first, old, b"second")? else {
            return Err(unable(what));
        };
        let late = self.depot.swap(self.first, old, b"third")?;
        ensure(late == DepotWrite::Conflict && new != *old, what)?;
        self.has(self.first, b"second")?;
        ensure(self.depot.swap(missing, &new, b"fourth")? == DepotWrite::Conflict, what)?;
        ensure(self.depot.get(missing, None)? == DepotRead::Absent, what)?;
        Ok(new)
    }

    /// Checks that exactly one of several simultaneous writes succeeds. Returns its bytes.
    fn has_one_winner(
        &self,
        round: u8,
        write: &(dyn Fn(&[u8]) -> Result<DepotWrite, DepotError> + Sync),
    ) -> Result<[u8; 2], DepotError> {
        let written = thread::scope(|scope| {
            let start = |writer| scope.spawn(move || Ok((writer, write(&[round, writer])?)));
            let started: Vec<_> = (0..WRITERS).map(start).collect();
            started.into_iter().map(|one| one.join()).collect::<Vec<_>>()
        });
        let mut winners = Vec::new();
        for one in written {
            let panicked = |_| DepotError::Unavailable {
                what: "a request ended with a panic".to_owned(),
                source: None,
            };
            match one.map_err(panicked)? {
                Ok((writer, DepotWrite::Done(_))) => winners.push(writer),
                Ok((_, DepotWrite::Conflict)) => {}
                Err(error) => return Err(error),
            }
        }
        match winners.as_slice() {
            [winner] => Ok([round, *winner]),
            _ => Err(unable("let exactly one of several writers win")),
        }
    }

    /// Checks that lists contain the written objects, in order, with their times.
    fn lists(&self) -> Result<(), DepotError> {
        let what = "list what was written";
        let listed = |after| -> Result<Vec<DepotEntry>, DepotError> {
            let mut listed = self.depot.list(FOLDER, after)?;
            // Another check may write to the same folder.
            listed.retain(|entry| entry.name.starts_with(self.prefix));
            Ok(listed)
        };
        // The list begins at the names of this check, so objects of other checks cannot fill it.
        let all = listed(self.prefix)?;
        let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
        ensure(names == [self.first, self.second], what)?;
        ensure(listed(self.first)?.first().map(|entry| &*entry.name) == Some(self.second), what)?;
        let now = self.depot.now()?;
        let skew = |entry: &DepotEntry| now.micros_since(entry.changed).unsigned_abs();
        let near = all.iter().all(|entry| skew(entry) < MAX_SKEW_MICROS);
        ensure(near, "tell when an object was written")
    }

    /// Checks that an object has these bytes. Returns its tag.
    fn has(&self, name: &str, expected: &[u8]) -> Result<DepotTag, DepotError> {
        match self.depot.get(name, None)? {
            DepotRead::Whole { bytes, tag } if bytes == expected => Ok(tag),
            _ => Err(unable("read what was just written")),
        }
    }
}

fn unable(what: &str) -> DepotError {
    DepotError::Unsupported { what: what.to_owned() }
}

fn ensure(holds: bool, what: &str) -> Result<(), DepotError> {
    if holds { Ok(()) } else { Err(unable(what)) }
}

#[cfg(test)]
mod tests {
    use super::super::{FolderDepot, MemoryDepot};
    use super::*;
    use crate::model::Timestamp;

    /// What a depot does wrong.
    #[derive(Clone, Copy, Debug)]
    enum DepotFlaw {
        CreatesTwice,
        SwapsAlways,
        ListsNothing,
        KeepsRemoved,
        HasAnotherClock,
    }

    struct FlawedDepot(MemoryDepot, DepotFlaw);

    impl FlawedDepot {
        fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
            self.0.remove(name)?;
            self.0.put_new(name, bytes)
        }
    }

    impl Depot for FlawedDepot {
        fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
            self.0.get(name, known)
        }

        fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
            match self.1 {
                DepotFlaw::CreatesTwice => self.overwrite(name, bytes),
                _ => self.0.put_new(name, bytes),
            }
        }

        fn swap(
            &self,
            name: &str,
            expected: &DepotTag,
            bytes: &[u8],
        ) -> Result<DepotWrite, DepotError> {
            match self.1 {
                DepotFlaw::SwapsAlways => self.overwrite(name, bytes),
                _ => self.0.swap(name, expected, bytes),
            }
        }

        fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
            match self.1 {
                DepotFlaw::ListsNothing => Ok(Vec::new()),
                _ => self.0.list(prefix, after),
            }
        }

        fn remove(&self, name: &str) -> Result<(), DepotError> {
            match self.1 {
                DepotFlaw::KeepsRemoved => Ok(()),
                _ => self.0.remove(name),
            }
        }

        fn now(&self) -> Result<Timestamp, DepotError> {
            match self.1 {
                DepotFlaw::HasAnotherClock => Ok(Timestamp::from_micros(1_700_000_000_000_000)),
                _ => self.0.now(),
            }
        }
    }

    #[test]
    fn a_conforming_depot_passes_the_check_and_is_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        let depots: [Box<dyn Depot>; 2] =
            [Box::new(MemoryDepot::default()), Box::new(FolderDepot::open(folder.path()).unwrap())];
        for depot in depots {
            for _ in 0..10 {
                check_depot(&*depot).unwrap();
            }
            assert!(depot.list("", "").unwrap().is_empty());
        }
    }

    #[test]
    fn a_depot_that_breaks_a_promise_is_refused_by_name() {
        for (flaw, cannot) in [
            (DepotFlaw::CreatesTwice, "create an object only if there is none"),
            (DepotFlaw::SwapsAlways, "replace an object only if it has not changed"),
            (DepotFlaw::ListsNothing, "list what was written"),
            (DepotFlaw::KeepsRemoved, "remove objects"),
            (DepotFlaw::HasAnotherClock, "tell when an object was written"),
        ] {
            let depot = FlawedDepot(MemoryDepot::default(), flaw);
            let error = check_depot(&depot).unwrap_err();
            let expected = format!("the remote cannot {cannot}: use another one");
            assert_eq!(error.to_string(), expected, "{flaw:?}");
            if !matches!(flaw, DepotFlaw::KeepsRemoved) {
                assert!(depot.0.list("", "").unwrap().is_empty(), "{flaw:?}");
            }
        }
    }
}
