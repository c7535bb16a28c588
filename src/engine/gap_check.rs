//! A generation that checks, when a session is first read, that the session's row and its last
//! sequence number are there: otherwise a store with missing rows would look like a shorter one.

use crate::backend::{
    Error, LastRows, LogPosition, ScanDirection, ScanRequest, Snapshot, TableId, TableRow, locked,
};
use crate::format::key::{self, of};
use crate::format::{RecordBytes, StoreHead, decode_session};
use crate::model::SessionNumber;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Maximum number of sessions that are checked together, if at least [`MANY_SESSIONS`] of them are
/// unchecked.
const BLOCK_SESSIONS: SessionNumber = 1024;
const MANY_SESSIONS: usize = 8;
/// Number of the last sequence numbers that are prefetched: the head of the branch is often among
/// them.
const AHEAD: usize = 16;

/// A generation and the head of the segment after it.
///
/// A session is checked when it is first read, because checking all of them takes longer than most
/// commands.
pub(crate) struct GapCheckedSnapshot {
    base: Arc<dyn Snapshot>,
    /// The number of sessions of the generation.
    sessions: SessionNumber,
    /// The sessions that the head contains, encoded.
    recent: HashMap<SessionNumber, RecordBytes>,
    checked: Mutex<CheckedSessions>,
}

#[derive(Default)]
struct CheckedSessions {
    /// All sessions before this one were checked.
    first_unchecked: SessionNumber,
    others: HashSet<SessionNumber>,
}

impl CheckedSessions {
    fn has(&self, number: SessionNumber) -> bool {
        number < self.first_unchecked || self.others.contains(&number)
    }
}

impl GapCheckedSnapshot {
    /// Wraps the generation that the segment with this head follows.
    pub(crate) fn new(base: Arc<dyn Snapshot>, head: &StoreHead) -> Self {
        let recent = head.recent.iter().map(|one| (one.number, one.session.clone())).collect();
        let sessions = head.sessions as SessionNumber;
        Self { base, sessions, recent, checked: Mutex::default() }
    }

    /// Checks one session if it was not checked before. A session that began after the generation
    /// has no rows here.
    fn check(&self, number: SessionNumber) -> Result<(), Error> {
        if number >= self.sessions || locked(&self.checked).has(number) {
            return Ok(());
        }
        let damaged = |what: String| Error::DamagedIndex { what };
        let (from, to) = (of(number).build(), of(number).end());
        self.base.prefetch(&|| {
            let (from, to) = (from.clone(), to.clone());
            let session = LastRows::one(key::SESSIONS, from.clone());
            vec![session, LastRows { table: key::SEQUENCES, from, to, limit: AHEAD }]
        })?;
        let Some(row) = self.base.get(key::SESSIONS, &of(number).build())? else {
            return Err(damaged(format!("the session number {number} is missing there")));
        };
        let session = decode_session(&row)
            .map_err(|error| damaged(format!("the session number {number}: {error}")))?;
        let name = &session.info.name;
        if self.recent.get(&number).is_some_and(|recent| recent.0 != row) {
            return Err(damaged(format!(
                "the session '{name}' is another there than in the journal"
            )));
        }
        let last = self.base.scan(key::SEQUENCES, &from, &to, ScanDirection::Descending, 1)?;
        let last = last.first().and_then(|(place, _)| key::last_number(place)).unwrap_or(0);
        let end = session.next_sequence.saturating_sub(1);
        if last != end {
            return Err(damaged(format!(
                "the session '{name}' ends there at #{last}, not at #{end}"
            )));
        }
        locked(&self.checked).others.insert(number);
        Ok(())
    }

    /// Returns whether many sessions of a range were not checked yet.
    fn are_many_unchecked(&self, first: SessionNumber, end: SessionNumber) -> bool {
        let checked = locked(&self.checked);
        (first..end).filter(|number| !checked.has(*number)).count() >= MANY_SESSIONS
    }

    /// Checks many sessions with two scans, and notes those that are right. Does nothing if they
    /// have too many rows.
    fn check_block(&self, first: SessionNumber, end: SessionNumber) -> Result<(), Error> {
        const MAX_ROWS: usize = 1 << 16;
        let (from, to) = (of(first).build(), of(end).build());
        let ascending = ScanDirection::Ascending;
        let sequences = self.base.scan(key::SEQUENCES, &from, &to, ascending, MAX_ROWS)?;
        if sequences.len() == MAX_ROWS {
            return Ok(());
        }
        self.check_sequences(first, end, &sequences)
    }

    /// Checks many sessions, given all their sequence numbers, and notes those that are right.
    fn check_sequences(
        &self,
        first: SessionNumber,
        end: SessionNumber,
        sequences: &[TableRow],
    ) -> Result<(), Error> {
        let number_of = |place: &[u8]| key::short_at(place, 0);
        let mut ends: HashMap<SessionNumber, u64> = HashMap::new();
        for (place, _) in sequences {
            if let (Some(number), Some(last)) = (number_of(place), key::last_number(place)) {
                ends.insert(number, last);
            }
        }
        let (from, to) = (of(first).build(), of(end).build());
        let ascending = ScanDirection::Ascending;
        let sessions = self.base.scan(key::SESSIONS, &from, &to, ascending, usize::MAX)?;
        let right = sessions.iter().filter_map(|(place, row)| {
            let number = number_of(place)?;
            let end = decode_session(row).ok()?.next_sequence.saturating_sub(1);
            let is_right = ends.get(&number).copied().unwrap_or(0) == end
                && self.recent.get(&number).is_none_or(|recent| recent.0 == *row);
            is_right.then_some(number)
        });
        locked(&self.checked).others.extend(right);
        Ok(())
    }

    /// Checks the sessions from `first` up to, but not including, `end`.
    fn check_range(&self, first: SessionNumber, end: SessionNumber) -> Result<(), Error> {
        let known = locked(&self.checked).first_unchecked;
        let mut from = first.max(known);
        while from < end {
            let to = end.min(from.saturating_add(BLOCK_SESSIONS));
            if self.are_many_unchecked(from, to) {
                self.check_block(from, to)?;
            }
            // A session that the block did not find right is checked alone, for the error.
            (from..to).try_for_each(|number| self.check(number))?;
            from = to;
        }
        let mut checked = locked(&self.checked);
        let checked = &mut *checked;
        if first <= checked.first_unchecked {
            // Another thread may have checked the next sessions.
            while checked.first_unchecked < end || checked.others.contains(&checked.first_unchecked)
            {
                checked.others.remove(&checked.first_unchecked);
                checked.first_unchecked += 1;
            }
        }
        Ok(())
    }

    /// Checks the session that a key begins with.
    fn check_key(&self, table: TableId, key: &[u8]) -> Result<(), Error> {
        match key::short_at(key, 0) {
            Some(number) if key::begins_with_session(table) => self.check(number),
            _ => Ok(()),
        }
    }
}

impl Snapshot for GapCheckedSnapshot {
    fn position(&self) -> LogPosition {
        self.base.position()
    }

    fn expires_soon(&self) -> bool {
        self.base.expires_soon()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.check_key(table, key)?;
        self.base.get(table, key)
    }

    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().try_for_each(|key| self.check_key(table, key))?;
        self.base.get_many(table, keys)
    }

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), Error> {
        self.base.prefetch(ranges)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        let ScanRequest { table, from, to, direction, limit } = request;
        let rows = self.base.rows(request)?;
        if key::begins_with_session(table) {
            let first = key::short_at(from, 0).unwrap_or(0);
            let end = match key::short_at(to, 0) {
                // A key of four bytes is the first possible key of its session.
                Some(number) if to.len() == size_of::<SessionNumber>() => number,
                Some(number) => number.saturating_add(1),
                None => SessionNumber::MAX,
            };
            let last = rows.last().filter(|_| rows.len() == limit);
            let last = last.and_then(|(place, _)| key::short_at(place, 0));
            let (first, end) = match (last, direction) {
                (None, _) => (first, end),
                (Some(last), ScanDirection::Ascending) => (first, last.saturating_add(1)),
                (Some(last), ScanDirection::Descending) => (last, end),
            };
            self.check_range(first, end.min(self.sessions))?;
        }
        Ok(rows)
    }

    fn scan_clusters(
        &self,
        tables: &[TableId],
        clusters: Range<u32>,
        limit: usize,
    ) -> Result<Option<Vec<Vec<TableRow>>>, Error> {
        let (first, end) = (clusters.start, clusters.end.min(self.sessions));
        let found = self.base.scan_clusters(tables, clusters, limit)?;
        if let Some(found) = &found
            && tables.iter().any(|table| key::begins_with_session(*table))
        {
            let place = tables.iter().position(|table| *table == key::SEQUENCES);
            if let Some(sequences) = place.and_then(|place| found.get(place))
                && self.are_many_unchecked(first, end)
            {
                self.check_sequences(first, end, sequences)?;
            }
            self.check_range(first, end)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::refs::tests::of_one_session;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
    use crate::engine::session_rows::put_session;
    use crate::engine::session_table::SessionTable;
    use crate::format::SessionRefs;
    use crate::model::{SessionMetadata, Timestamp};
    use std::sync::Mutex;

    /// Counts in its mutex how many sessions were checked.
    struct Counted(RowOverlay, Mutex<u64>);

    impl Snapshot for Counted {
        fn position(&self) -> LogPosition {
            7
        }

        fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            OverlaySnapshot::new(&EmptySnapshot, &self.0, 7).get(table, key)
        }

        fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
            *self.1.lock().unwrap() += u64::from(request.table == key::SEQUENCES);
            OverlaySnapshot::new(&EmptySnapshot, &self.0, 7).rows(request)
        }

        fn scan_clusters(
            &self,
            tables: &[TableId],
            clusters: Range<u32>,
            limit: usize,
        ) -> Result<Option<Vec<Vec<TableRow>>>, Error> {
            let view = OverlaySnapshot::new(&EmptySnapshot, &self.0, 7);
            let (from, to) = (of(clusters.start).build(), of(clusters.end).build());
            let scan =
                |table: &TableId| view.scan(*table, &from, &to, ScanDirection::Ascending, limit);
            tables.iter().map(scan).collect::<Result<_, _>>().map(Some)
        }
    }

    fn sessions(ends: &[u64]) -> Vec<SessionRefs> {
        let refs = of_one_session(Timestamp::default());
        let one = refs.sessions.get(0).unwrap().unwrap();
        let session = |(number, end): (usize, &u64)| {
            let info = SessionMetadata { name: format!("s{number}"), ..one.info.clone() };
            SessionRefs { info, next_sequence: end + 1, ..one.clone() }
        };
        ends.iter().enumerate().map(session).collect()
    }

    fn rows(ends: &[u64], sessions: &[SessionRefs]) -> RowOverlay {
        let mut rows = RowOverlay::default();
        for (number, session) in (0..).zip(sessions) {
            put_session(&mut rows, number, None, session).unwrap();
        }
        for (number, end) in (0..).zip(ends) {
            for sequence in 1..=*end {
                rows.put(key::SEQUENCES, of(number).number(sequence).build(), vec![]);
            }
        }
        rows
    }

    fn head(sessions: &[SessionRefs]) -> StoreHead {
        let table: SessionTable = sessions.iter().cloned().collect();
        StoreHead { recent: table.recent(), ..table.totals() }
    }

    #[test]
    fn a_session_without_its_last_row_is_refused_and_the_others_are_read() {
        let sessions = sessions(&[2, 2, 0]);
        let base = Arc::new(Counted(rows(&[2, 1, 0], &sessions), Mutex::default()));
        let counted = || *base.1.lock().unwrap();
        let dense = GapCheckedSnapshot::new(Arc::clone(&base) as _, &head(&sessions));
        assert_eq!((dense.position(), counted()), (7, 0));
        // A key outside all sessions checks none.
        assert_eq!(dense.get(key::IDS, &of(1).number(2).build()).unwrap(), None);
        assert_eq!(counted(), 0);
        let place = of(0).number(2).build();
        for _ in 0..3 {
            assert_eq!(dense.get(key::SEQUENCES, &place).unwrap(), Some(vec![]));
            assert_eq!(dense.get_many(key::TIMES, &[of(2).build()]).unwrap(), [None]);
            // A session that began after the generation has no missing rows.
            assert_eq!(dense.get(key::TIMES, &of(9).build()).unwrap(), None);
        }
        assert_eq!(counted(), 2, "each is looked at once");
        let missing = "the index is damaged: the session 's1' ends there at #1, not at #2";
        let scan =
            |from: &[u8], to: &[u8]| dense.scan(key::TIMES, from, to, ScanDirection::Ascending, 1);
        for result in [
            dense.get(key::TIMES, &of(1).number(1).build()).map(drop),
            dense.get_many(key::REVISIONS, &[of(0).build(), of(1).build()]).map(drop),
            scan(&of(1).build(), &of(1).end()).map(drop),
            scan(&of(0).build(), &of(1).number(1).build()).map(drop),
            scan(&[], &[]).map(drop),
        ] {
            assert_eq!(result.unwrap_err().to_string(), missing);
        }
        assert_eq!(scan(&of(0).build(), &of(1).build()).unwrap(), []);
        assert_eq!(scan(&of(2).build(), &[]).unwrap(), []);
    }

    #[test]
    fn many_sessions_are_checked_in_one_scan_that_finds_a_missing_row() {
        let scans = |count: usize| {
            let ends = vec![2; count];
            let sessions = sessions(&ends);
            let base = Arc::new(Counted(rows(&ends, &sessions), Mutex::default()));
            let dense = GapCheckedSnapshot::new(Arc::clone(&base) as _, &head(&sessions));
            dense.scan(key::TIMES, &[], &[], ScanDirection::Ascending, 1).unwrap();
            *base.1.lock().unwrap()
        };
        assert_eq!([300, 600, 1200].map(scans), [1, 1, 2]);
        let (whole, mut lacking) = (vec![2; 100], vec![2; 100]);
        lacking[57] = 1;
        let sessions = sessions(&whole);
        let base = Arc::new(Counted(rows(&lacking, &sessions), Mutex::default()));
        let dense = GapCheckedSnapshot::new(base, &head(&sessions));
        let scan = dense.scan(key::TIMES, &[], &[], ScanDirection::Ascending, 1);
        let missing = "the index is damaged: the session 's57' ends there at #1, not at #2";
        assert_eq!(scan.unwrap_err().to_string(), missing);
        dense.get(key::TIMES, &of(58).build()).unwrap();
        assert_eq!(dense.get(key::TIMES, &of(57).build()).unwrap_err().to_string(), missing);
    }

    #[test]
    fn sessions_read_together_are_checked_without_reading_their_rows_again() {
        let (whole, mut lacking) = (vec![2; 100], vec![2; 100]);
        lacking[57] = 1;
        let sessions = sessions(&whole);
        let base = Arc::new(Counted(rows(&lacking, &sessions), Mutex::default()));
        let dense = GapCheckedSnapshot::new(Arc::clone(&base) as _, &head(&sessions));
        let read = |clusters| {
            let found = dense.scan_clusters(&[key::TIMES, key::SEQUENCES], clusters, 1000);
            found.map(|found| found.unwrap()[1].len()).map_err(|error| error.to_string())
        };
        // The later ones first, as by another thread.
        assert_eq!((read(58..200), read(0..57)), (Ok(84), Ok(114)));
        dense.get(key::TIMES, &of(3).build()).unwrap();
        assert_eq!(*base.1.lock().unwrap(), 0, "no row is read again");
        let missing = "the index is damaged: the session 's57' ends there at #1, not at #2";
        assert_eq!(read(0..100), Err(missing.to_owned()));
        // One table without sequence numbers is checked with scans.
        let found = dense.scan_clusters(&[key::TIMES], 40..60, 1000);
        assert_eq!(found.unwrap_err().to_string(), missing);
    }

    #[test]
    fn a_session_that_is_missing_or_older_than_in_the_journal_is_refused() {
        let all = sessions(&[1, 1]);
        let check = |rows: RowOverlay, number: u32| {
            let base = Arc::new(Counted(rows, Mutex::default()));
            let dense = GapCheckedSnapshot::new(base, &head(&all));
            dense.get(key::TIMES, &of(number).build()).map(drop).map_err(|error| error.to_string())
        };
        let mut without = rows(&[1, 1], &all);
        without.delete(key::SESSIONS, of(1).build());
        assert_eq!(check(without.clone(), 0), Ok(()));
        let missing = "the index is damaged: the session number 1 is missing there";
        assert_eq!(check(without, 1), Err(missing.to_owned()));
        // Both the session and its revisions are those of an earlier moment.
        let older = rows(&[1, 0], &sessions(&[1, 0]));
        let another = "the index is damaged: the session 's1' is another there than in the journal";
        assert_eq!(check(older, 1), Err(another.to_owned()));
    }
}
