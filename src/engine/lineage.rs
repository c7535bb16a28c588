//! Which revisions a state is made of: stretches of branches, newest first.

use super::refs::session;
use super::timeline;
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{Refs, RevisionRow, SequenceRow};
use crate::model::{BranchNumber, SessionNumber};

/// A revision's place: its branch and its sequence number (0: before the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    pub(crate) branch: BranchNumber,
    pub(crate) sequence: u64,
}

/// The revisions of one branch with `after < sequence <= to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) branch: BranchNumber,
    pub(crate) after: u64,
    pub(crate) to: u64,
}

/// The stretches whose deltas, oldest last, make the claims of the revision `at`.
pub(crate) fn stretches(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    at: At,
) -> Result<Vec<Stretch>> {
    let session = session(refs, number)?;
    let mut stretches = Vec::new();
    let mut at = at;
    while at.sequence > 0 {
        let from = of(number).branch(at.branch).number(0).build();
        let to = of(number).branch(at.branch).number(at.sequence.saturating_add(1)).build();
        let reset = view.scan(key::RESETS, &from, &to, Direction::Descending, 1)?;
        let next = if let Some((place, target)) = reset.first() {
            let sequence = key::last_number(place).unwrap_or(0);
            stretches.push(Stretch { branch: at.branch, after: sequence, to: at.sequence });
            At {
                branch: key::short_at(target, 0).unwrap_or(0),
                sequence: key::last_number(target).unwrap_or(0),
            }
        } else {
            stretches.push(Stretch { branch: at.branch, after: 0, to: at.sequence });
            let base = session.branch(at.branch)?.base.unwrap_or((0, 0));
            At { branch: base.0, sequence: base.1 }
        };
        if next.sequence >= at.sequence {
            return Err(Error::Internal(format!(
                "the claims of #{} come from a later revision",
                at.sequence
            )));
        }
        at = next;
    }
    Ok(stretches)
}

/// The stretches that the log of a branch goes along: first parents, then into the base; resets do not matter.
pub(crate) fn parents(refs: &Refs, number: SessionNumber, at: At) -> Result<Vec<Stretch>> {
    let session = session(refs, number)?;
    let mut stretches = Vec::new();
    let mut at = at;
    loop {
        let base = session.branch(at.branch)?.base;
        stretches.push(Stretch { branch: at.branch, after: 0, to: at.sequence });
        match base {
            Some((branch, sequence)) if branch < at.branch => {
                at = At { branch, sequence: sequence.min(at.sequence) };
            }
            _ => return Ok(stretches),
        }
    }
}

/// The rows of the revisions of a stretch, at most `limit`.
pub(crate) fn revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
    stretch: Stretch,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(u64, RevisionRow)>> {
    let from = of(number).branch(stretch.branch).number(stretch.after.saturating_add(1)).build();
    let to = of(number).branch(stretch.branch).number(stretch.to.saturating_add(1)).build();
    view.scan(key::REVISIONS, &from, &to, direction, limit)?
        .into_iter()
        .map(|(place, row)| {
            let sequence = key::last_number(&place).unwrap_or(0);
            let row = RevisionRow::decode(&row)
                .map_err(Error::corrupt(format_args!("revision #{sequence}")))?;
            Ok((sequence, row))
        })
        .collect()
}

/// The row of one revision.
pub(crate) fn revision(view: &dyn Snapshot, number: SessionNumber, at: At) -> Result<RevisionRow> {
    if let Some(row) = find(view, number, at)? {
        return Ok(row);
    }
    check_in_sight(view, number, at)?;
    Err(Error::missing(format!("revision #{}", at.sequence)))
}

/// That a revision was not folded into a later one since it was found.
///
/// # Errors
/// [`Error::Folded`].
pub(crate) fn check_in_sight(view: &dyn Snapshot, number: SessionNumber, at: At) -> Result<()> {
    let sequence = at.sequence;
    match timeline::sequence(view, number, sequence)? {
        Some(SequenceRow::Folded(_, into)) => {
            let into = timeline::found_in(view, number, into)?;
            Err(Error::Folded { sequence, into })
        }
        _ => Ok(()),
    }
}

/// The row of a revision, unless it was folded into a later one.
pub(crate) fn find(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: At,
) -> Result<Option<RevisionRow>> {
    let place = of(number).branch(at.branch).number(at.sequence).build();
    view.get(key::REVISIONS, &place)?
        .map(|row| RevisionRow::decode(&row))
        .transpose()
        .map_err(Error::corrupt(format_args!("revision #{}", at.sequence)))
}
