//! Salvages a damaged store: keeps the intact rows and records, lists what is lost, and makes
//! branches usable again. Nothing is guessed: data that is not known to be correct is left out and
//! reported.

mod branch_heads;
mod content;
mod sequence_gaps;
mod sessions;
mod table;
mod tail;
#[cfg(test)]
mod tests;

use super::rebuild::complete;
use super::row_overlay::{OverlaySnapshot, RowOverlay};
use super::verify::chain;
use crate::backend::journal::JournalPiece;
use crate::backend::rocks::RescuedIndex;
use crate::backend::{EmptySnapshot, LogPosition};
use crate::engine::refs::StoreRefs;
use crate::error::Result;
use crate::format::key;
use crate::format::repair_bit;
use crate::model::{Operation, OperationAuthor, OperationId, SessionNumber, Timestamp};

/// The salvaged data.
pub(crate) struct SalvagedStore {
    pub(crate) rows: RowOverlay,
    pub(crate) refs: StoreRefs,
    /// The end of the journal, plus 1 for each record that salvaging added.
    pub(crate) end: LogPosition,
    /// What is lost, one line each.
    pub(crate) lost: Vec<String>,
    /// Number of rows and records in which a single wrong bit was corrected.
    pub(crate) corrected_bits: u64,
    /// Number of revisions whose changes are intact.
    pub(crate) revisions: u64,
}

/// Salvages an index and the journal after it.
///
/// # Errors
/// [`Corrupt`](crate::error::Error::Corrupt) if not even the number of sessions is known: all
/// copies of the store's head are damaged.
pub(crate) fn salvage(
    index: RescuedIndex,
    pieces: Vec<JournalPiece>,
    end: LogPosition,
    now: Timestamp,
) -> Result<SalvagedStore> {
    let position = index.position;
    let end = end.max(position);
    let mut saved = SalvagedStore {
        rows: RowOverlay::default(),
        refs: StoreRefs::default(),
        end,
        lost: Vec::new(),
        corrected_bits: 0,
        revisions: 0,
    };
    saved.refs = saved.first_refs(&index, &pieces, now)?;
    if position > 0 {
        saved.index(index)?;
        saved.numbers(now)?;
        let mut lost = Vec::new();
        complete(&mut saved.rows, &saved.refs, position, &mut |place, error| {
            lost.push(format!("{place}: {}", chain(&error)));
        })?;
        saved.lost.append(&mut lost);
    }
    saved.tail(pieces, position, end, now)?;
    saved.replace_lost_heads(now)?;
    saved.counts()?;
    saved.lost.sort();
    saved.lost.dedup();
    Ok(saved)
}

fn repair_operation(seed: u64, now: Timestamp) -> Operation {
    let hash = blake3::hash(format!("repair {seed} {now}").as_bytes());
    let id = OperationId::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"));
    Operation { id, verb: "repair".to_owned(), author: OperationAuthor::Hook, time: now }
}

impl SalvagedStore {
    fn view(&self) -> OverlaySnapshot<'_> {
        OverlaySnapshot::new(&EmptySnapshot, &self.rows, self.end)
    }

    fn correct_bit(&mut self, bytes: &mut [u8], is_right: &dyn Fn(&[u8]) -> bool) -> bool {
        let is_corrected = repair_bit(bytes, is_right);
        self.corrected_bits += u64::from(is_corrected);
        is_corrected
    }

    /// Whether the operation with this id was salvaged.
    pub(crate) fn holds(&self, operation: &str) -> bool {
        operation
            .parse::<OperationId>()
            .is_ok_and(|id| self.rows.contains(key::OPERATION_IDS, &key::operation_id(&id)))
    }

    fn session_name(&self, number: SessionNumber) -> String {
        let session = self.refs.sessions.get(number).ok().flatten();
        session.map_or_else(|| format!("session {number}"), |one| format!("'{}'", one.info.name))
    }
}
