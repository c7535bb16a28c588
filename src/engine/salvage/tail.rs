//! Salvages the records of the journal after the index.

use super::SalvagedStore;
use crate::backend::LogPosition;
use crate::backend::journal::JournalPiece;
use crate::engine::index::{self, PositionedRecord};
use crate::engine::lineage;
use crate::engine::refs::visible_sessions;
use crate::engine::row_overlay::RowOverlay;
use crate::engine::verify::chain;
use crate::error::Result;
use crate::format::{Record, RecordChange};
use crate::model::Timestamp;
use crate::model::text::count_text;

impl SalvagedStore {
    /// Adds the records after the position of the index. `end` is the end of the journal itself.
    pub(super) fn tail(
        &mut self,
        pieces: Vec<JournalPiece>,
        position: LogPosition,
        end: LogPosition,
        now: Timestamp,
    ) -> Result<()> {
        // The record at the position of the index begins a segment, so its first change is the head
        // of the store. Otherwise the journal is not that of the index, and nothing is added.
        let is_after = |piece: &JournalPiece| matches!(piece, JournalPiece::Record(frame, _) if frame.position >= position);
        let first = pieces.iter().find(|piece| is_after(piece));
        let begun = match first {
            Some(JournalPiece::Record(frame, _)) if frame.position == position && position > 0 => {
                Record::decode(&frame.payload).map_or(true, |record| {
                    matches!(record.changes.first(), Some(RecordChange::Head(_)))
                })
            }
            first => first.is_some(),
        };
        let pieces = if begun { pieces } else { Vec::new() };
        let mut next = position;
        for piece in pieces {
            // A damaged piece is reported as a gap before the next record or before the end.
            let JournalPiece::Record(frame, is_corrected) = piece else { continue };
            if frame.position < position {
                continue;
            }
            self.gap(next, frame.position);
            next = frame.end;
            self.corrected_bits += u64::from(is_corrected);
            let what = format!("the record at {} of the journal", frame.position);
            let record = match Record::decode(&frame.payload) {
                Ok(record) => record,
                Err(error) => {
                    self.lost.push(format!("{what}: {error}"));
                    continue;
                }
            };
            let placed = PositionedRecord { position: frame.position, hash: frame.hash, record };
            if let Err(error) = self.take_in(&placed, now) {
                self.lost.push(format!("{what}: {}", chain(&error)));
            }
        }
        self.gap(next, end);
        if !begun {
            self.cut_off(position, end);
        }
        Ok(())
    }

    /// Reports a range of the journal without an intact record.
    fn gap(&mut self, from: LogPosition, to: LogPosition) {
        if from < to {
            self.lost.push(format!("{} bytes of the journal at {from}, up to {to}", to - from));
        }
    }

    /// Reports the loss of all records after the index, and where each session ends in the index.
    fn cut_off(&mut self, position: LogPosition, end: LogPosition) {
        let far = match end > position {
            true => format!("up to {end} at least"),
            false => "to an unknown position".to_owned(),
        };
        self.lost.push(format!(
            "all of the journal from position {position}, {far}: records, and what they changed"
        ));
        for (_, session) in visible_sessions(&self.refs).flatten() {
            self.lost.push(format!(
                "what was recorded in '{}' after #{} ({} and {} are left)",
                session.info.name,
                session.next_sequence.saturating_sub(1),
                count_text(session.facts, "fact"),
                count_text(session.checkpoints, "checkpoint"),
            ));
        }
    }

    /// Adds a record, after reporting the sequence numbers that are missing before it.
    pub(super) fn take_in(&mut self, placed: &PositionedRecord, now: Timestamp) -> Result<()> {
        for change in &placed.record.changes {
            match change {
                RecordChange::Revision { session, header, .. } => {
                    let header = lineage::header(&header.0)?;
                    let parent = header.parents.first().map(|one| (one.sequence, header.branch));
                    self.skip_to(*session, header.sequence, parent, now)?;
                    break;
                }
                RecordChange::Checkpoint { session, checkpoint } => {
                    let parent = checkpoint.revision.map(|one| (one, checkpoint.branch));
                    self.skip_to(*session, checkpoint.sequence, parent, now)?;
                    break;
                }
                _ => {}
            }
        }
        if let Some(RecordChange::Head(head)) = placed.record.changes.first() {
            self.later_head(head, now)?;
        }
        let mut refs = self.refs.clone();
        let mut rows = RowOverlay::default();
        index::apply(&self.view(), &mut rows, &mut refs, placed)?;
        self.rows.extend(rows);
        self.refs = refs;
        Ok(())
    }
}
