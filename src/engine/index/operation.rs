//! Adds what records did to the rows of their operations.

use super::{RecordIndexer, operation_at};
use crate::backend::Snapshot;
use crate::engine::refs::{StoreRefs, session};
use crate::error::Result;
use crate::format::{OperationEffect, OperationRow, key};
use crate::model::{OperationId, SessionNumber};

/// What one record adds to the row of its operation.
pub(super) struct OperationPart {
    session: SessionNumber,
    /// The session's last sequence number before the record.
    sequence: u64,
    pub(super) effects: Vec<OperationEffect>,
    pub(super) takes_back: Option<OperationId>,
}

impl OperationPart {
    /// Returns the part of a record. Creates it for this session if there is none yet.
    pub(super) fn of<'a>(
        part: &'a mut Option<Self>,
        refs: &StoreRefs,
        number: SessionNumber,
    ) -> Result<&'a mut Self> {
        if part.is_none() {
            let sequence = session(refs, number)?.next_sequence - 1;
            let effects = Vec::new();
            *part = Some(Self { session: number, sequence, effects, takes_back: None });
        }
        Ok(part.as_mut().expect("filled above"))
    }

    /// Adds this part, which is of the record at `position`, to the row of an operation that an
    /// earlier record began.
    fn add_to(self, row: &mut OperationRow, position: u64) {
        row.continued.push((position, row.effects.len() as u64));
        row.effects.extend(self.effects);
        row.takes_back = self.takes_back.or(row.takes_back);
    }
}

impl RecordIndexer<'_> {
    /// Adds what this record did to the row of its operation. The first record of the operation
    /// creates the row. A row that was put into the overlay is neither encoded nor decoded, so the
    /// cost of a record does not depend on how many records of its operation the overlay has.
    pub(super) fn add_to_operation(&mut self, part: OperationPart) -> Result<()> {
        let operation = &self.placed.record.operation;
        let id = self.id_key(key::operation_id(&operation.id), part.session);
        let place = self.view().get(key::OPERATION_IDS, &id)?;
        let Some(place) = place else {
            self.added.operations += 1;
            self.put_operation(OperationRow {
                operation: operation.clone(),
                effects: part.effects,
                takes_back: part.takes_back,
                taken_back_by: None,
                sequence: part.sequence,
                session: part.session,
                position: self.placed.position,
                continued: Vec::new(),
            });
            return Ok(());
        };
        let position = self.placed.position;
        self.put_continuation(part.session, operation.id);
        if let Some(row) = self.rows.operation_mut(&place) {
            part.add_to(row, position);
            return Ok(());
        }
        let mut row = operation_at(&self.view(), &place, &operation.id)?;
        part.add_to(&mut row, position);
        self.put_operation(row);
        Ok(())
    }

    /// Adds a row that says that this record continues an operation. With these rows, the
    /// operations that continued after a position are found without reading all operations that
    /// began before it.
    pub(super) fn put_continuation(&mut self, session: SessionNumber, operation: OperationId) {
        let place = key::operation_place(session, self.placed.position, &operation);
        self.rows.put(key::CONTINUATIONS, place, Vec::new());
    }
}
