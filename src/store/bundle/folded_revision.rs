//! Reads folded revisions as they were before pruning.

use crate::engine::delta_parts::{is_delta_lost, list_id};
use crate::engine::index::fold;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::{object, prune, table_rows};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Delta, DeltaPart, FoldRow, ObjectKind, OperationEffect, RecordBytes, RevisionRow, SequenceRow,
    decode_object,
};
use crate::model::{OperationId, SessionNumber};

/// Reads the revisions of a session, including those that were folded.
pub(super) struct FoldedRevisionReader<'a> {
    pub(super) view: &'a ReadSnapshot,
    pub(super) number: SessionNumber,
}

/// Decompresses the inline parts of a delta.
fn opened(parts: Vec<DeltaPart>) -> Result<Vec<Vec<u8>>> {
    let inline = parts.into_iter().filter_map(|part| match part {
        DeltaPart::Inline(RecordBytes(encoded)) => Some(encoded),
        DeltaPart::Named(_) => None,
    });
    inline
        .map(|encoded| {
            decode_object(ObjectKind::Delta, &encoded).map_err(Error::corrupt("a delta"))
        })
        .collect()
}

/// A revision as it was made: header, body and delta. What was permanently removed is empty.
pub(super) type OriginalRevision = (Vec<u8>, Vec<u8>, Vec<DeltaPart>);

impl FoldedRevisionReader<'_> {
    /// Returns the folds of an operation that were not undone.
    pub(super) fn folded_by(&self, operation: &OperationId) -> Result<Vec<OperationEffect>> {
        let rows = table_rows::rows(self.view, key::FOLDS, of(self.number))?;
        let mut folded = Vec::new();
        for (place, row) in rows {
            let row = FoldRow::decode(&row).map_err(Error::corrupt("a fold"))?;
            if row.operation == *operation {
                let branch = key::short_at(&place, 4).unwrap_or(0);
                let last = key::number_at(&place, 8).unwrap_or(0);
                folded.push(OperationEffect::Folded { branch, first: row.first, last });
            }
        }
        Ok(folded)
    }

    /// Reads a revision as it was made.
    pub(super) fn revision(&self, at: RevisionRef) -> Result<OriginalRevision> {
        let seen = self.row_before_fold(at)?;
        let first = fold::rows(self.view, self.number, at)?.pop();
        let own = first.map(|fold| fold::before(self.view, self.number, at, &fold)).transpose()?;
        let own = own.flatten();
        let header = lineage::header(&seen.header)?;
        for row in [own.as_ref(), Some(&seen)].into_iter().flatten() {
            let (names, delta) = self.parts(row)?;
            if list_id(&names) == header.delta {
                return Ok((row.header.clone(), row.body.clone(), delta));
            }
        }
        Ok((seen.header, seen.body, Vec::new()))
    }

    /// Returns the combined changes of the revisions from `first` to `at`, the revision that they
    /// were folded into; empty if the changes are not known any more. `begin` is the first of the
    /// revisions that were folded into `first` before, or `first` itself.
    pub(super) fn fold(&self, at: RevisionRef, first: u64, begin: u64) -> Result<Vec<DeltaPart>> {
        let folds = fold::rows(self.view, self.number, at)?;
        let left = match folds.iter().position(|fold| fold.first == first) {
            Some(0) => Some(self.row_before_fold(at)?),
            // The row that the next fold into the revision replaced.
            Some(place) => match folds.get(place - 1) {
                Some(next) => fold::before(self.view, self.number, at, next)?,
                None => None,
            },
            None => None,
        };
        if let Some(left) = left.filter(|row| !row.parts.is_empty()) {
            return Ok(self.parts(&left)?.1);
        }
        // The fold was undone since: combine the deltas again.
        let mut deltas: Vec<(u64, Vec<u8>)> = Vec::new();
        let (from, to) = (
            of(self.number).number(begin).build(),
            of(self.number).number(at.sequence + 1).build(),
        );
        let mut known_to = 0;
        for (place, row) in table_rows::rows_between(self.view, key::SEQUENCES, &from, &to)? {
            let sequence = key::last_number(&place).unwrap_or(0);
            let row = SequenceRow::decode(&row).map_err(Error::corrupt("a sequence number"))?;
            let holder = match row {
                SequenceRow::Revision(branch) if branch == at.branch => sequence,
                SequenceRow::Folded(branch, into) if branch == at.branch => into,
                _ => continue,
            };
            if sequence <= known_to {
                continue;
            }
            let (header, _, delta) = self.revision(RevisionRef { sequence, ..at })?;
            let header = lineage::header(&header)?;
            if !is_delta_lost(&header, &delta) {
                deltas.extend(opened(delta)?.into_iter().map(|delta| (sequence, delta)));
                continue;
            }
            // The delta of the revision was permanently removed. The revision into which it was
            // folded may contain the changes.
            let Some((first, together)) = self.held(RevisionRef { sequence: holder, ..at })? else {
                return Ok(Vec::new());
            };
            if holder > at.sequence || first < begin {
                return Ok(Vec::new());
            }
            deltas.retain(|(sequence, _)| *sequence < first);
            deltas.extend(opened(together)?.into_iter().map(|delta| (holder, delta)));
            known_to = holder;
        }
        // The salt is fixed, so that the result is always the same.
        let what = [at.branch.to_le_bytes().as_slice(), &first.to_le_bytes()].concat();
        let salt = *blake3::hash(&what).as_bytes().first_chunk().expect("16 of 32 bytes");
        prune::combine_deltas(deltas.iter().map(|(_, delta)| delta.as_slice()), &mut || Ok(salt))
    }

    /// Returns the first of the revisions that were folded into a visible revision, and their
    /// combined changes. `None` if there are none, or if this revision is folded itself.
    fn held(&self, at: RevisionRef) -> Result<Option<(u64, Vec<DeltaPart>)>> {
        let in_sight = Some(SequenceRow::Revision(at.branch));
        if lineage::sequence_row(self.view, self.number, at.sequence)? != in_sight {
            return Ok(None);
        }
        let folds = fold::rows(self.view, self.number, at)?;
        let (_, together) = self.parts(&lineage::revision(self.view, self.number, at)?)?;
        Ok(folds.first().filter(|_| !together.is_empty()).map(|fold| (fold.first, together)))
    }

    /// Reads the row of a revision. If it was folded into another revision, reads its row as it was
    /// then.
    fn row_before_fold(&self, at: RevisionRef) -> Result<RevisionRow> {
        match lineage::sequence_row(self.view, self.number, at.sequence)? {
            Some(SequenceRow::Folded(branch, into)) => {
                fold::find(self.view, self.number, branch, (at.sequence, into))
            }
            _ => lineage::revision(self.view, self.number, at),
        }
    }

    /// Reads the parts of the delta of a revision. Returns their names and their bytes.
    fn parts(&self, row: &RevisionRow) -> Result<(Vec<crate::model::ObjectId>, Vec<DeltaPart>)> {
        let mut names = Vec::with_capacity(row.parts.len());
        let mut parts = Vec::with_capacity(row.parts.len());
        for part in &row.parts {
            let encoded = object::encoded(self.view, *part)?;
            let content =
                decode_object(ObjectKind::Delta, &encoded).map_err(Error::corrupt("a delta"))?;
            names.push(Delta::name(&content));
            parts.push(DeltaPart::Inline(RecordBytes(encoded)));
        }
        Ok((names, parts))
    }
}
