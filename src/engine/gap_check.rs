//! A generation that checks, when a session is first read, that none of its rows are missing:
//! otherwise a store with missing rows would look like a shorter one.

use super::index::PositionedRecord;
use crate::backend::{Error, LogPosition, ScanDirection, Snapshot, TableId, TableRow};
use crate::format::key::{self, of};
use crate::format::{RecordChange, StoreRefs};
use crate::model::SessionNumber;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A generation and its refs.
///
/// A session is checked when it is first read, because checking a thousand sessions takes longer
/// than most commands.
pub(crate) struct GapCheckedSnapshot {
    base: Arc<dyn Snapshot>,
    /// The record after the generation. It begins with the refs at the generation's position.
    next_record: Arc<PositionedRecord>,
    /// By session number: whether the session was checked.
    checked_sessions: Vec<AtomicBool>,
}

impl GapCheckedSnapshot {
    /// Wraps the generation; `behind` is the record that follows it in the journal.
    pub(crate) fn new(base: Arc<dyn Snapshot>, behind: &Arc<PositionedRecord>) -> Self {
        let mut dense =
            Self { base, next_record: Arc::clone(behind), checked_sessions: Vec::new() };
        let sessions = dense.refs().map_or(0, |refs| refs.sessions.len());
        dense.checked_sessions.resize_with(sessions, Default::default);
        dense
    }

    fn refs(&self) -> Option<&StoreRefs> {
        match self.next_record.record.changes.first() {
            Some(RecordChange::Refs(refs)) => Some(refs),
            _ => None,
        }
    }

    /// Checks one session if it was not checked before. A session that began later has no rows
    /// here.
    fn check(&self, number: SessionNumber) -> Result<(), Error> {
        let Some(found) = self.checked_sessions.get(number as usize) else { return Ok(()) };
        if found.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (from, to) = (of(number).build(), of(number).end());
        let last = self.base.scan(key::SEQUENCES, &from, &to, ScanDirection::Descending, 1)?;
        let last = last.first().and_then(|(place, _)| key::last_number(place)).unwrap_or(0);
        let session = self.refs().and_then(|refs| refs.sessions.get(number));
        if let Some(session) = session {
            let end = session.next_sequence.saturating_sub(1);
            if last != end {
                let name = &session.info.name;
                let what = format!("the session '{name}' ends there at #{last}, not at #{end}");
                return Err(Error::DamagedIndex { what });
            }
        }
        found.store(true, Ordering::Relaxed);
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

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.check_key(table, key)?;
        self.base.get(table, key)
    }

    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().try_for_each(|key| self.check_key(table, key))?;
        self.base.get_many(table, keys)
    }

    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        if key::begins_with_session(table) {
            let first = key::short_at(from, 0).unwrap_or(0);
            let end = match key::short_at(to, 0) {
                // A key of four bytes is the first possible key of its session.
                Some(number) if to.len() == size_of::<SessionNumber>() => number,
                Some(number) => number.saturating_add(1),
                None => SessionNumber::MAX,
            };
            let all = self.checked_sessions.len() as SessionNumber;
            (first..end.min(all)).try_for_each(|number| self.check(number))?;
        }
        self.base.scan(table, from, to, direction, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::refs::tests::of_one_session;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
    use crate::format::{Record, SessionRefs};
    use crate::model::{Operation, OperationAuthor, OperationId, SessionMetadata, Timestamp};
    use std::sync::Mutex;

    /// Counts in its mutex how many sessions were checked.
    struct Counted(RowOverlay, Mutex<u64>);

    impl Snapshot for Counted {
        fn position(&self) -> LogPosition {
            7
        }

        fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            OverlaySnapshot { base: &EmptySnapshot, rows: &self.0, position: 7 }.get(table, key)
        }

        fn scan(
            &self,
            table: TableId,
            from: &[u8],
            to: &[u8],
            direction: ScanDirection,
            limit: usize,
        ) -> Result<Vec<TableRow>, Error> {
            *self.1.lock().unwrap() += u64::from(table == key::SEQUENCES);
            OverlaySnapshot { base: &EmptySnapshot, rows: &self.0, position: 7 }
                .scan(table, from, to, direction, limit)
        }
    }

    fn behind(ends: &[u64]) -> Arc<PositionedRecord> {
        let refs = of_one_session(Timestamp::default());
        let one = refs.sessions.get(0).unwrap();
        let sessions = ends.iter().enumerate().map(|(number, end)| {
            let info = SessionMetadata { name: format!("s{number}"), ..one.info.clone() };
            SessionRefs { info, next_sequence: end + 1, ..one.clone() }
        });
        let refs = StoreRefs { sessions: sessions.collect(), ..StoreRefs::default() };
        let operation = Operation {
            id: OperationId::from_bytes([1; 16]),
            verb: String::new(),
            author: OperationAuthor::Asked,
            time: Timestamp::default(),
        };
        let record = Record { operation, changes: vec![RecordChange::Refs(Box::new(refs))] };
        Arc::new(PositionedRecord { position: 7, hash: Default::default(), record })
    }

    fn rows(ends: &[u64]) -> RowOverlay {
        let mut rows = RowOverlay::default();
        for (number, end) in (0..).zip(ends) {
            for sequence in 1..=*end {
                rows.put(key::SEQUENCES, of(number).number(sequence).build(), vec![]);
            }
        }
        rows
    }

    #[test]
    fn a_session_that_lacks_its_last_row_is_not_read_and_the_others_are() {
        let base = Arc::new(Counted(rows(&[2, 1, 0]), Mutex::default()));
        let counted = || *base.1.lock().unwrap();
        let dense = GapCheckedSnapshot::new(Arc::clone(&base) as _, &behind(&[2, 2, 0]));
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
        for said in [
            dense.get(key::TIMES, &of(1).number(1).build()).map(drop),
            dense.get_many(key::REVISIONS, &[of(0).build(), of(1).build()]).map(drop),
            scan(&of(1).build(), &of(1).end()).map(drop),
            scan(&of(0).build(), &of(1).number(1).build()).map(drop),
            scan(&[], &[]).map(drop),
        ] {
            assert_eq!(said.unwrap_err().to_string(), missing);
        }
        assert_eq!(scan(&of(0).build(), &of(1).build()).unwrap(), []);
        assert_eq!(scan(&of(2).build(), &[]).unwrap(), []);
    }
}
