//! What pruning folded, as it was before.

use crate::backend::{Direction, Snapshot};
use crate::engine::index::fold;
use crate::engine::lineage::{self, At};
use crate::engine::live::View;
use crate::engine::revise::list_id;
use crate::engine::{object, retain, timeline};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    Bytes, DeltaPart, Effect, FoldRow, Header, ObjectKind, RevisionRow, SequenceRow, open,
    sealed_id,
};
use crate::model::{Operation, OperationId, SessionNumber};

/// The revisions of a session, those that were folded too.
pub(super) struct Pruned<'a> {
    pub(super) view: &'a View,
    pub(super) number: SessionNumber,
}

/// A revision as it was made: header, body, delta. What is gone for good is empty.
pub(super) type Made = (Vec<u8>, Vec<u8>, Vec<DeltaPart>);

impl Pruned<'_> {
    /// Whether an operation pruned, and can still be taken back.
    pub(super) fn is_pruning(&self, operation: &Operation) -> Result<bool> {
        let place = KeyBuilder::new().time(operation.time).bytes(operation.id.as_bytes()).build();
        Ok(self.view.get(key::PRUNINGS, &place)?.is_some())
    }

    /// What an operation folded that was not brought back.
    pub(super) fn folded_by(&self, operation: &OperationId) -> Result<Vec<Effect>> {
        let (from, to) = (of(self.number).build(), of(self.number).end());
        let rows = self.view.scan(key::FOLDS, &from, &to, Direction::Ascending, usize::MAX)?;
        let mut folded = Vec::new();
        for (place, row) in rows {
            let row = FoldRow::decode(&row).map_err(Error::corrupt("a fold"))?;
            if row.operation == *operation {
                let branch = key::short_at(&place, 4).unwrap_or(0);
                let last = key::last_number(&place).unwrap_or(0);
                folded.push(Effect::Folded { branch, first: row.first, last });
            }
        }
        Ok(folded)
    }

    /// A revision as it was made.
    pub(super) fn revision(&self, at: At) -> Result<Made> {
        let seen = self.seen(at)?;
        let own = match fold::row(self.view, self.number, at)? {
            None => None,
            Some(_) => self.aside(at, at.sequence)?,
        };
        let header = Header::decode(&seen.header).map_err(Error::corrupt("a revision's header"))?;
        for row in [own.as_ref(), Some(&seen)].into_iter().flatten() {
            let (names, delta) = self.parts(row)?;
            if list_id(&names) == header.delta {
                return Ok((row.header.clone(), row.body.clone(), delta));
            }
        }
        Ok((seen.header, seen.body, Vec::new()))
    }

    /// What revisions from `first` on changed together with the one they were folded into; nothing if nobody knows.
    pub(super) fn fold(&self, at: At, first: u64) -> Result<Vec<DeltaPart>> {
        let seen = self.seen(at)?;
        match fold::row(self.view, self.number, at)? {
            Some(row) if row.first == first && !seen.parts.is_empty() => {
                return Ok(self.parts(&seen)?.1);
            }
            _ => {}
        }
        // It came back since, or was folded again: then it is made as it was then.
        let mut first = first;
        while let Some(row) = fold::row(self.view, self.number, At { sequence: first, ..at })?
            && row.first < first
        {
            first = row.first;
        }
        let mut deltas = Vec::new();
        let (from, to) = (
            of(self.number).number(first).build(),
            of(self.number).number(at.sequence + 1).build(),
        );
        for (place, row) in
            self.view.scan(key::SEQUENCES, &from, &to, Direction::Ascending, usize::MAX)?
        {
            let row = SequenceRow::decode(&row).map_err(Error::corrupt("a sequence number"))?;
            match row {
                SequenceRow::Revision(branch) | SequenceRow::Folded(branch, _)
                    if branch == at.branch => {}
                _ => continue,
            }
            let sequence = key::last_number(&place).unwrap_or(0);
            let (header, _, delta) = self.revision(At { sequence, ..at })?;
            let header = Header::decode(&header).map_err(Error::corrupt("a revision's header"))?;
            if delta.is_empty() && header.delta != list_id(&[]) {
                return Ok(Vec::new());
            }
            for part in delta {
                let DeltaPart::Inline(Bytes(sealed)) = part else { continue };
                deltas.push(open(ObjectKind::Delta, &sealed).map_err(Error::corrupt("a delta"))?);
            }
        }
        // The same each time: nothing is named by what is made here.
        let what = [at.branch.to_le_bytes().as_slice(), &first.to_le_bytes()].concat();
        let salt = *blake3::hash(&what).as_bytes().first_chunk().expect("16 of 32 bytes");
        retain::together(deltas.iter().map(Vec::as_slice), &mut || Ok(salt))
    }

    /// The row of a revision, or what it was when it was folded into another one.
    fn seen(&self, at: At) -> Result<RevisionRow> {
        match timeline::sequence(self.view, self.number, at.sequence)? {
            Some(SequenceRow::Folded(branch, into)) => {
                fold::find(self.view, self.number, branch, (at.sequence, into))
            }
            _ => lineage::revision(self.view, self.number, at),
        }
    }

    /// The row that was put aside when a revision was folded.
    fn aside(&self, at: At, sequence: u64) -> Result<Option<RevisionRow>> {
        let place = fold::place(self.number, at).number(sequence).build();
        let row = self.view.get(key::FOLDED, &place)?;
        row.map(|row| RevisionRow::decode(&row))
            .transpose()
            .map_err(Error::corrupt(format!("revision #{sequence}")))
    }

    fn parts(&self, row: &RevisionRow) -> Result<(Vec<crate::model::ObjectId>, Vec<DeltaPart>)> {
        let mut names = Vec::with_capacity(row.parts.len());
        let mut parts = Vec::with_capacity(row.parts.len());
        for part in &row.parts {
            let sealed = object::sealed(self.view, *part)?;
            names.push(sealed_id(&sealed).map_err(Error::corrupt("a delta"))?);
            parts.push(DeltaPart::Inline(Bytes(sealed)));
        }
        Ok((names, parts))
    }
}
