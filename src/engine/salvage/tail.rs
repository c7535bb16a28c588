//! The records of the journal behind the index.

use super::Salvage;
use crate::backend::Position;
use crate::backend::journal::Piece;
use crate::engine::index::{self, Placed};
use crate::engine::rows::Rows;
use crate::engine::verify::chain;
use crate::error::{Error, Result};
use crate::format::{Header, Record, RecordChange};
use crate::model::Timestamp;

impl Salvage {
    /// Takes in the records behind the index.
    pub(super) fn tail(
        &mut self,
        pieces: Vec<Piece>,
        position: Position,
        now: Timestamp,
    ) -> Result<()> {
        for piece in pieces {
            let (frame, mended) = match piece {
                Piece::Lost { from, to } if to > position => {
                    let from = from.max(position);
                    self.lost.push(format!("{} bytes of the journal at {from}", to - from));
                    continue;
                }
                Piece::Record(frame, mended) if frame.position >= position => (frame, mended),
                _ => continue,
            };
            self.mended += u64::from(mended);
            let what = format!("the record at {} of the journal", frame.position);
            let record = match Record::decode(&frame.payload) {
                Ok(record) => record,
                Err(error) => {
                    self.lost.push(format!("{what}: {error}"));
                    continue;
                }
            };
            let placed = Placed { position: frame.position, hash: frame.hash, record };
            if let Err(error) = self.take_in(&placed, now) {
                self.lost.push(format!("{what}: {}", chain(&error)));
            }
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, placed: &Placed, now: Timestamp) -> Result<()> {
        for change in &placed.record.changes {
            match change {
                RecordChange::Revision { session, header, .. } => {
                    let header =
                        Header::decode(&header.0).map_err(Error::corrupt("a revision's header"))?;
                    let parent = header.parents.first().map(|parent| parent.sequence);
                    self.skip_to(
                        *session,
                        header.sequence,
                        parent.map(|one| (one, header.branch)),
                        now,
                    )?;
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
        if let Some(RecordChange::Refs(refs)) = placed.record.changes.first() {
            // They know what was lost before them.
            let refs = (**refs).clone();
            for (number, session) in refs.sessions.all() {
                if (number as usize) < self.refs.sessions.len() {
                    self.skip_to(number, session.next_sequence, None, now)?;
                }
            }
        }
        let mut refs = self.refs.clone();
        let mut rows = Rows::default();
        index::apply(&self.view(), &mut rows, &mut refs, placed)?;
        self.rows.extend(rows);
        self.refs = refs;
        Ok(())
    }
}
