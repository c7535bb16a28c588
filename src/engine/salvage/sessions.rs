//! Salvages the sessions: from the journal, from their rows in the index, and from the copies of
//! these rows.

use super::SalvagedStore;
use crate::backend::TableId;
use crate::backend::journal::JournalPiece;
use crate::backend::rocks::RescuedIndex;
use crate::engine::refs::{MAIN, StoreRefs, begin};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BranchChange, BranchHead, BranchRefs, DecodeError, HeadRow, Record, RecordBytes, RecordChange,
    RevisionHeader, RevisionRow, SessionRefs, StoreHead, decode_session,
};
use crate::model::{
    BranchMetadata, BranchStatus, SessionId, SessionKind, SessionMetadata, SessionNumber, Timestamp,
};
use std::collections::{BTreeMap, HashMap};

impl SalvagedStore {
    /// Returns the salvaged refs at the position of the index.
    pub(super) fn first_refs(
        &mut self,
        index: &RescuedIndex,
        pieces: &[JournalPiece],
        now: Timestamp,
    ) -> Result<StoreRefs> {
        let head = self.head(index, pieces)?;
        let recent: HashMap<_, _> =
            head.recent.iter().map(|one| (one.number, &one.session)).collect();
        let stored = index.rows.keys().filter(|(table, _)| *table == key::SESSIONS);
        let stored = stored.filter_map(|(_, place)| key::short_at(place, 0)).max();
        let count = stored.map_or(0, |last| last + 1).max(head.sessions as SessionNumber);
        let mut sessions = Vec::with_capacity(count as usize);
        for number in 0..count {
            let journal = recent.get(&number).and_then(|bytes| decode_session(&bytes.0).ok());
            let tables = [key::SESSIONS, key::SESSION_COPIES];
            let stored = |table| self.decoded(index, table, of(number).build(), decode_session);
            let session = journal.or_else(|| tables.into_iter().find_map(stored));
            sessions.push(session.unwrap_or_else(|| self.unknown_session(index, number, now)));
        }
        let known = |number: &SessionNumber| *number < count;
        Ok(StoreRefs {
            sessions: sessions.into_iter().collect(),
            pinned: head.pinned.filter(known),
            last_used: head.last_used.filter(known),
            purges: head.purges,
        })
    }

    /// Returns the head of the store at the position of the index: from the journal, or else from
    /// its copy in the index, or else the next head in the journal.
    fn head(&mut self, index: &RescuedIndex, pieces: &[JournalPiece]) -> Result<StoreHead> {
        let of_record = |piece: &JournalPiece| match piece {
            JournalPiece::Record(frame, _) if frame.position >= index.position => {
                let changes = Record::decode(&frame.payload).ok()?.changes;
                match changes.into_iter().next() {
                    Some(RecordChange::Head(head)) => Some((frame.position, *head)),
                    _ => None,
                }
            }
            _ => None,
        };
        let first = pieces.iter().find_map(of_record);
        if let Some((at, head)) = &first
            && *at == index.position
        {
            return Ok(head.clone());
        }
        let row = self.decoded(index, key::COUNTERS, key::HEAD.to_vec(), HeadRow::decode);
        if let Some(row) = row {
            return Ok(row.head);
        }
        match first {
            // This head is of a later moment: sessions that have no rows are reported as lost.
            Some((_, head)) => Ok(head),
            None if index.position == 0 => Ok(StoreHead::default()),
            None => Err(Error::Corrupt {
                what: "the list of sessions and branches".to_owned(),
                source: "both copies of the store's head are damaged: nothing can be saved".into(),
            }),
        }
    }

    /// Decodes a row of the index, after correcting a flipped bit if there is one.
    pub(super) fn decoded<T>(
        &mut self,
        index: &RescuedIndex,
        table: TableId,
        place: Vec<u8>,
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Option<T> {
        let mut row = index.rows.get(&(table, place))?.clone();
        let is_right = |row: &[u8]| decode(row).is_ok();
        if !is_right(&row) {
            self.correct_bit(&mut row, &is_right);
        }
        decode(&row).ok()
    }

    /// Rebuilds a session from its revisions, if its row and the copy are lost. Reports the loss of
    /// its name.
    fn unknown_session(
        &mut self,
        index: &RescuedIndex,
        number: SessionNumber,
        now: Timestamp,
    ) -> SessionRefs {
        let name = format!("recovered-{number}");
        self.lost.push(format!(
            "the name, the kind and the sources of the session number {number}: it is '{name}' now"
        ));
        let hash = blake3::hash(format!("lost session {number} {now}").as_bytes());
        let mut id = SessionId::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32"));
        let mut heads: BTreeMap<u32, (RevisionRow, RevisionHeader)> = BTreeMap::new();
        let mut bases = BTreeMap::new();
        let mut branch_of = HashMap::new();
        let (from, to) = ((key::REVISIONS, of(number).build()), (key::REVISIONS, of(number).end()));
        for (_, row) in index.rows.range(from..to) {
            let Ok(row) = RevisionRow::decode(row) else { continue };
            let Ok(header) = RevisionHeader::decode(&row.header) else { continue };
            id = header.session;
            branch_of.insert(header.sequence, header.branch);
            if let Some(parent) = header.parents.first() {
                bases.entry(header.branch).or_insert(parent.sequence);
            }
            heads.insert(header.branch, (row, header));
        }
        let last = heads.keys().next_back().copied().unwrap_or(0);
        let checkpoints =
            (key::CHECKPOINTS, of(number).build())..(key::CHECKPOINTS, of(number).end());
        let checkpoints = index.rows.range(checkpoints).map(|((_, place), _)| place);
        let numbers = checkpoints.filter_map(|place| key::last_number(place));
        let end = numbers.chain(branch_of.keys().copied()).max().unwrap_or(0);
        let branches = (0..=last).map(|branch| {
            let head = heads.get(&branch);
            let head = head.map(|(row, header)| BranchHead::of(header, header.id(), row.effective));
            let from = bases.get(&branch).copied().unwrap_or(0);
            let base = branch_of.get(&from).copied().filter(|base| *base < branch).unwrap_or(0);
            let change = BranchChange {
                time: head.map_or(now, |head| head.effective),
                status: BranchStatus::Active,
                metadata: BranchMetadata::default(),
            };
            BranchRefs {
                name: if branch == 0 { MAIN.to_owned() } else { format!("recovered-{branch}") },
                base: (branch > 0).then_some((base, from)),
                head,
                changes: vec![change],
                hidden: false,
            }
        });
        let time = heads.values().map(|(row, _)| row.effective).max();
        let info = SessionMetadata {
            id,
            name,
            kind: SessionKind::Debug,
            agent: None,
            agent_session: None,
            started_at: time.unwrap_or(now),
        };
        SessionRefs {
            next_sequence: end + 1,
            branches: branches.collect(),
            first_event: time,
            last_event: time,
            ..begin(&info)
        }
    }

    /// Adds the head of a later segment, which shows how many sessions and sequence numbers were
    /// lost before it, and contains the sessions used last.
    pub(super) fn later_head(&mut self, head: &StoreHead, now: Timestamp) -> Result<()> {
        let recent: HashMap<_, _> =
            head.recent.iter().map(|one| (one.number, &one.session)).collect();
        let none = RescuedIndex::default();
        for number in 0..head.sessions as SessionNumber {
            let bytes: Option<&&RecordBytes> = recent.get(&number);
            let session = bytes.and_then(|bytes| decode_session(&bytes.0).ok());
            if (number as usize) < self.refs.sessions.len() {
                let Some(session) = session else { continue };
                self.skip_to(number, session.next_sequence, None, now)?;
                self.refs.sessions.change(number, |known| *known = session)?;
            } else {
                let session = session.unwrap_or_else(|| self.unknown_session(&none, number, now));
                let end = session.next_sequence;
                let begun = SessionRefs { next_sequence: 1, ..session.clone() };
                self.refs.sessions.push(begun);
                self.skip_to(number, end, None, now)?;
                self.refs.sessions.change(number, |known| *known = session)?;
            }
        }
        Ok(())
    }
}
