//! Finds gaps in the sequence numbers of sessions. Missing numbers are reported, and filled with
//! placeholders.

use super::SalvagedStore;
use super::repair_operation;
use crate::backend::Snapshot;
use crate::engine::table_rows;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{OperationEffect, OperationRow, RevisionHeader, RevisionRow, SequenceRow};
use crate::model::{BranchNumber, Checkpoint, CheckpointId, SessionNumber, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Maximum size of a gap that damage can explain. A larger gap comes from a wrong number.
const MAX_MISSING: u64 = 1 << 24;

/// Refuses to fill a gap larger than damage can explain.
fn check_missing(missing: u64, next: u64, what: impl FnOnce() -> String) -> Result<()> {
    if missing <= MAX_MISSING {
        return Ok(());
    }
    let source = format!("too many numbers are missing: it should continue at #{next}").into();
    Err(Error::Corrupt { what: what(), source })
}

impl SalvagedStore {
    /// Reports every missing sequence number of every session, and fills it with a placeholder.
    pub(super) fn numbers(&mut self, now: Timestamp) -> Result<()> {
        let refs = self.refs.clone();
        for one in refs.sessions.all() {
            let (number, session) = one?;
            let mut known = BTreeSet::new();
            let mut parents: HashMap<u64, BranchNumber> = HashMap::new();
            let view = self.view();
            for (place, row) in table_rows::rows(&view, key::REVISIONS, of(number))? {
                known.extend(key::last_number(&place));
                if let Ok(header) =
                    RevisionRow::decode(&row).and_then(|row| RevisionHeader::decode(&row.header))
                    && let Some(parent) = header.parents.first()
                {
                    parents.insert(parent.sequence, header.branch);
                }
            }
            for table in [key::CHECKPOINTS, key::FOLDED] {
                let rows = table_rows::rows(&view, table, of(number))?;
                known.extend(rows.iter().filter_map(|(place, _)| key::last_number(place)));
            }
            for (_, row) in table_rows::rows(&view, key::OPERATIONS, of(number))? {
                let Ok(row) = OperationRow::decode(&row) else { continue };
                for effect in &row.effects {
                    match effect {
                        OperationEffect::CheckpointHidden { old } => {
                            known.insert(old.sequence);
                        }
                        OperationEffect::Swept { checkpoints, .. } => {
                            known.extend(checkpoints.iter().map(|(sequence, _)| *sequence));
                        }
                        _ => {}
                    }
                }
            }
            for (branch, one) in (0..).zip(&session.branches) {
                if let Some(head) = one.head
                    && one.base.is_none_or(|(_, sequence)| sequence != head.sequence)
                {
                    parents.entry(head.sequence).or_insert(branch);
                }
                if let Some((base, sequence)) = one.base {
                    parents.insert(sequence, base);
                }
            }
            let count = || format!("the count of '{}'", session.info.name);
            let missing = session.next_sequence.saturating_sub(known.len() as u64);
            check_missing(missing, session.next_sequence, count)?;
            let missing: Vec<u64> =
                (1..session.next_sequence).filter(|sequence| !known.contains(sequence)).collect();
            self.missing(number, &missing, &parents, now)?;
        }
        // These rows were read above, and are derived again.
        let rows = table_rows::rows_between(&self.view(), key::SEQUENCES, &[], &[])?;
        for (place, _) in rows {
            self.rows.delete(key::SEQUENCES, place);
        }
        Ok(())
    }

    /// Fills missing sequence numbers with placeholders: a lost revision, or a hidden checkpoint.
    pub(super) fn missing(
        &mut self,
        number: SessionNumber,
        missing: &[u64],
        parents: &HashMap<u64, BranchNumber>,
        now: Timestamp,
    ) -> Result<()> {
        let name = self.session_name(number);
        let mut effects = Vec::new();
        for sequence in missing {
            let place = of(number).number(*sequence).build();
            let row = self.view().get(key::SEQUENCES, &place)?;
            let row = row.and_then(|row| SequenceRow::decode(&row).ok());
            let branch = match row {
                Some(SequenceRow::Checkpoint(_)) => None,
                Some(SequenceRow::Revision(branch) | SequenceRow::Folded(branch, _)) => {
                    Some(branch)
                }
                None => parents.get(sequence).copied(),
            };
            if let Some(branch) = branch {
                self.lost.push(format!("revision #{sequence} of {name}"));
                self.rows.put(key::SEQUENCES, place, SequenceRow::Revision(branch).encode());
                let place = of(number).branch(branch).number(*sequence).build();
                self.rows.put(key::REVISIONS, place, RevisionRow::LOST.to_vec());
            } else {
                self.lost.push(format!("the checkpoint #{sequence} of {name}"));
                let hash = blake3::hash(format!("lost checkpoint {number} {sequence}").as_bytes());
                let id = *hash.as_bytes().first_chunk().expect("16 of 32 bytes");
                let old = Checkpoint {
                    message: "lost before a repair".to_owned(),
                    ..Checkpoint::new(CheckpointId::from_bytes(id), *sequence, now)
                };
                self.rows.put(key::SEQUENCES, place, SequenceRow::Checkpoint(old.id).encode());
                effects.push(OperationEffect::CheckpointHidden { old: Box::new(old) });
            }
        }
        if !effects.is_empty() {
            let row = OperationRow {
                operation: repair_operation(self.end, now),
                effects,
                takes_back: None,
                taken_back_by: None,
                sequence: 0,
                session: number,
                position: self.end,
                continued: Vec::new(),
            };
            let id = row.operation.id;
            let place = key::operation_place(number, row.position, &id);
            self.rows.put(key::OPERATION_IDS, key::operation_id(&id), place.clone());
            self.rows.put(key::OPERATIONS, place, row.encode());
            self.end += 1;
        }
        Ok(())
    }

    /// Reports the missing numbers before `sequence`, and fills them with placeholders.
    pub(super) fn skip_to(
        &mut self,
        number: SessionNumber,
        sequence: u64,
        parent: Option<(u64, BranchNumber)>,
        now: Timestamp,
    ) -> Result<()> {
        let Some(session) = self.refs.sessions.get(number)? else { return Ok(()) };
        let missing = sequence.saturating_sub(session.next_sequence);
        check_missing(missing, session.next_sequence, || format!("the number #{sequence}"))?;
        let missing: Vec<u64> = (session.next_sequence..sequence).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let current = session.current_branch;
        self.refs.sessions.change(number, |session| session.next_sequence = sequence)?;
        // A record contains at most one revision, perhaps followed by its checkpoint.
        let mut parents: HashMap<u64, BranchNumber> = parent.into_iter().collect();
        if parents.keys().all(|known| !missing.contains(known))
            && let Some(first) = missing.first()
        {
            parents.insert(*first, current);
        }
        self.missing(number, &missing, &parents, now)
    }
}
