//! What can be saved of a damaged store: every row and record that is whole, a list of what is not, and branches that
//! can be gone on with. Nothing is invented: what is not known to be right is left out and named.

mod content;
mod head;
mod number;
mod table;
mod tail;
#[cfg(test)]
mod tests;

use super::rebuild::complete;
use super::rows::{Merged, Rows};
use super::verify::chain;
use crate::backend::journal::Piece;
use crate::backend::rocks::Rescued;
use crate::backend::{Empty, Position};
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{Record, RecordChange, Refs, RefsRow, mend};
use crate::model::{Author, Operation, OperationId, SessionNumber, Timestamp};

/// What was saved.
pub(crate) struct Salvage {
    pub(crate) rows: Rows,
    pub(crate) refs: Refs,
    /// Where the journal ended.
    pub(crate) end: Position,
    /// What is lost, each in a line.
    pub(crate) lost: Vec<String>,
    /// How many rows and records had a single wrong bit that was put right.
    pub(crate) mended: u64,
    /// How many revisions are whole, with their changes.
    pub(crate) revisions: u64,
}

/// Saves what can be saved of an index and the journal behind it.
///
/// # Errors
/// [`Error::Corrupt`] if not even the sessions and branches are known.
pub(crate) fn salvage(
    index: Rescued,
    pieces: Vec<Piece>,
    end: Position,
    now: Timestamp,
) -> Result<Salvage> {
    let position = index.position;
    let mut saved = Salvage {
        rows: Rows::default(),
        refs: Refs::default(),
        end: end.max(position),
        lost: Vec::new(),
        mended: 0,
        revisions: 0,
    };
    saved.refs = saved.first_refs(&index, &pieces)?;
    if position > 0 {
        saved.index(index)?;
        saved.numbers(now)?;
        let mut lost = Vec::new();
        complete(&mut saved.rows, &saved.refs, position, &mut |place, error| {
            lost.push(format!("{place}: {}", chain(&error)));
        })?;
        saved.lost.append(&mut lost);
    }
    saved.tail(pieces, position, now)?;
    saved.heads(now)?;
    saved.counts()?;
    saved.lost.sort();
    saved.lost.dedup();
    Ok(saved)
}

fn repair_operation(seed: u64, now: Timestamp) -> Operation {
    let hash = blake3::hash(format!("repair {seed} {now}").as_bytes());
    let id = OperationId::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"));
    Operation { id, verb: "repair".to_owned(), author: Author::Hook, time: now }
}

impl Salvage {
    fn view(&self) -> Merged<'_> {
        Merged { base: &Empty, rows: &self.rows, position: self.end }
    }

    /// The refs at the position of the index.
    fn first_refs(&mut self, index: &Rescued, pieces: &[Piece]) -> Result<Refs> {
        let of_record = |piece: &Piece| match piece {
            Piece::Record(frame, _) if frame.position >= index.position => {
                let changes = Record::decode(&frame.payload).ok()?.changes;
                match changes.into_iter().next() {
                    Some(RecordChange::Refs(refs)) => Some((frame.position, *refs)),
                    _ => None,
                }
            }
            _ => None,
        };
        let first = pieces.iter().find_map(of_record);
        if let Some((at, refs)) = &first
            && *at == index.position
        {
            return Ok(refs.clone());
        }
        let row = index.rows.get(&(key::COUNTERS, key::REFS.to_vec()));
        if let Some(row) = row {
            let mut row = row.clone();
            let is_right = |row: &[u8]| RefsRow::decode(row).is_ok();
            if (is_right(&row) || self.mend(&mut row, &is_right))
                && let Ok(row) = RefsRow::decode(&row)
            {
                return Ok(row.refs);
            }
        }
        match first {
            // Of a later moment: what it knows and the rows do not is named as lost.
            Some((_, refs)) => Ok(refs),
            None if index.position == 0 => Ok(Refs::default()),
            None => Err(Error::Corrupt {
                what: "what sessions and branches there are".to_owned(),
                source: "both copies of the refs are damaged: nothing can be saved".into(),
            }),
        }
    }

    fn mend(&mut self, bytes: &mut [u8], is_right: &dyn Fn(&[u8]) -> bool) -> bool {
        let mended = mend(bytes, is_right);
        self.mended += u64::from(mended);
        mended
    }

    /// Whether the operation of this id is among what was saved.
    pub(crate) fn holds(&self, operation: &str) -> bool {
        operation
            .parse::<OperationId>()
            .is_ok_and(|id| self.rows.contains(key::OPERATION_IDS, &key::operation_id(&id)))
    }

    fn session_name(&self, number: SessionNumber) -> String {
        let session = self.refs.sessions.get(number);
        session.map_or_else(|| format!("session {number}"), |one| format!("'{}'", one.info.name))
    }
}
