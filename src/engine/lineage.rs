//! The revisions that make up a state or a log: ranges on branches, newest first.

use super::refs::{StoreRefs, session};
use super::table_rows::TableRows;
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{RevisionHeader, RevisionRow, SequenceRow};
use crate::model::{BranchNumber, SessionNumber};

/// A revision: its branch and its sequence number (0: before the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RevisionRef {
    pub(crate) branch: BranchNumber,
    pub(crate) sequence: u64,
}

/// The revisions of one branch with `after < sequence <= to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RevisionRange {
    pub(crate) branch: BranchNumber,
    pub(crate) after: u64,
    pub(crate) to: u64,
}

/// Returns the ranges whose deltas, replayed oldest first, make the claims of the revision `at`.
pub(crate) fn state_ranges(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    mut at: RevisionRef,
) -> Result<Vec<RevisionRange>> {
    let session = session(refs, number)?;
    let mut ranges = Vec::new();
    while at.sequence > 0 {
        let from = of(number).branch(at.branch).number(0).build();
        let to = of(number).branch(at.branch).number(at.sequence.saturating_add(1)).build();
        let reset = view.scan(key::RESETS, &from, &to, ScanDirection::Descending, 1)?;
        let next = if let Some((place, target)) = reset.first() {
            let sequence = key::last_number(place).unwrap_or(0);
            ranges.push(RevisionRange { branch: at.branch, after: sequence, to: at.sequence });
            RevisionRef {
                branch: key::short_at(target, 0).unwrap_or(0),
                sequence: key::last_number(target).unwrap_or(0),
            }
        } else {
            ranges.push(RevisionRange { branch: at.branch, after: 0, to: at.sequence });
            let base = session.branch(at.branch)?.base.unwrap_or((0, 0));
            RevisionRef { branch: base.0, sequence: base.1 }
        };
        if next.sequence >= at.sequence {
            return Err(Error::Internal(format!(
                "the claims of #{} come from a later revision",
                at.sequence
            )));
        }
        at = next;
    }
    Ok(ranges)
}

/// Returns the ranges of a revision's log: the revisions of its branch up to `at`, then the base's
/// revisions up to the fork, and so on. Resets are ignored.
pub(crate) fn log_ranges(
    refs: &StoreRefs,
    number: SessionNumber,
    mut at: RevisionRef,
) -> Result<Vec<RevisionRange>> {
    let session = session(refs, number)?;
    let mut ranges = Vec::new();
    loop {
        let base = session.branch(at.branch)?.base;
        ranges.push(RevisionRange { branch: at.branch, after: 0, to: at.sequence });
        match base {
            Some((branch, sequence)) if branch < at.branch => {
                at = RevisionRef { branch, sequence: sequence.min(at.sequence) };
            }
            _ => return Ok(ranges),
        }
    }
}

/// Returns the rows of the revisions in a range, at most `limit`.
pub(crate) fn revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
    range: RevisionRange,
    direction: ScanDirection,
    limit: usize,
) -> Result<Vec<(u64, RevisionRow)>> {
    let rows = scan_revisions(view, number, range, direction, limit)?;
    rows.into_iter().map(decoded).collect()
}

/// Returns rows like [`revisions`], with `None` for a revision that was lost before a repair.
pub(crate) fn known_revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
    range: RevisionRange,
    direction: ScanDirection,
    limit: usize,
) -> Result<Vec<(u64, Option<RevisionRow>)>> {
    let rows = scan_revisions(view, number, range, direction, limit)?;
    let known = |(sequence, row): (u64, Vec<u8>)| match row == RevisionRow::LOST {
        true => Ok((sequence, None)),
        false => decoded((sequence, row)).map(|(sequence, row)| (sequence, Some(row))),
    };
    rows.into_iter().map(known).collect()
}

/// Returns the rows of these revisions, read in one batch, with `None` for a revision that was lost
/// before a repair.
pub(crate) fn known_revisions_of(
    view: &dyn Snapshot,
    number: SessionNumber,
    revisions: &[RevisionRef],
) -> Result<Vec<Option<RevisionRow>>> {
    let place = |at: &RevisionRef| of(number).branch(at.branch).number(at.sequence).build();
    let places: Vec<_> = revisions.iter().map(place).collect();
    let rows = view.get_many(key::REVISIONS, &places)?.into_iter().zip(revisions);
    let known = rows.map(|(row, at)| match row {
        Some(row) if row == RevisionRow::LOST => Ok(None),
        Some(row) => decoded((at.sequence, row)).map(|(_, row)| Some(row)),
        None => Err(Error::missing(format!("revision #{}", at.sequence))),
    });
    known.collect()
}

fn decoded((sequence, row): (u64, Vec<u8>)) -> Result<(u64, RevisionRow)> {
    let row =
        RevisionRow::decode(&row).map_err(Error::corrupt(format_args!("revision #{sequence}")))?;
    Ok((sequence, row))
}

fn scan_revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
    range: RevisionRange,
    direction: ScanDirection,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>> {
    let (from, to) = row_bounds(number, range);
    let rows = view.scan(key::REVISIONS, &from, &to, direction, limit)?;
    let numbered = |(place, row): (Vec<u8>, Vec<u8>)| (key::last_number(&place).unwrap_or(0), row);
    Ok(rows.into_iter().map(numbered).collect())
}

/// Returns the number of revisions in a range, without the ones that were lost before a repair.
pub(crate) fn count_revisions(
    view: &dyn Snapshot,
    number: SessionNumber,
    range: RevisionRange,
) -> Result<u64> {
    let (from, to) = row_bounds(number, range);
    let mut count = 0;
    for row in TableRows::range(view, key::REVISIONS, from, to) {
        count += u64::from(row?.1 != RevisionRow::LOST);
    }
    Ok(count)
}

/// Returns the first key of the revisions in a range, and the key after the last.
pub(super) fn row_bounds(number: SessionNumber, range: RevisionRange) -> (Vec<u8>, Vec<u8>) {
    let bound = |sequence: u64| of(number).branch(range.branch).number(sequence).build();
    (bound(range.after.saturating_add(1)), bound(range.to.saturating_add(1)))
}

/// Returns the numbers of the revisions of a session that were lost before a repair.
pub(crate) fn lost_revisions(view: &dyn Snapshot, number: SessionNumber) -> Result<Vec<u64>> {
    let mut lost = Vec::new();
    for row in TableRows::range(view, key::REVISIONS, of(number).build(), of(number).end()) {
        let (place, row) = row?;
        if row == RevisionRow::LOST {
            lost.extend(key::last_number(&place));
        }
    }
    lost.sort_unstable();
    Ok(lost)
}

/// Decodes the header of a revision.
pub(crate) fn header(encoded: &[u8]) -> Result<RevisionHeader> {
    RevisionHeader::decode(encoded).map_err(Error::corrupt("a revision's header"))
}

/// Returns the row of one revision.
///
/// # Errors
/// [`Error::Folded`] if the revision was folded into a later one.
pub(crate) fn revision(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<RevisionRow> {
    if let Some(row) = find(view, number, at)? {
        return Ok(row);
    }
    check_visible(view, number, at)?;
    Err(Error::missing(format!("revision #{}", at.sequence)))
}

/// Returns the meaning of a sequence number of the session; `None` if it is not known.
pub(crate) fn sequence_row(
    view: &dyn Snapshot,
    number: SessionNumber,
    sequence: u64,
) -> Result<Option<SequenceRow>> {
    view.get(key::SEQUENCES, &of(number).number(sequence).build())?
        .map(|row| SequenceRow::decode(&row).map_err(Error::corrupt("a sequence number")))
        .transpose()
}

/// Returns the number of the visible revision that contains a folded one, starting at the fold
/// target `into`.
pub(crate) fn final_fold_target(
    view: &dyn Snapshot,
    number: SessionNumber,
    mut into: u64,
) -> Result<u64> {
    while let Some(SequenceRow::Folded(_, next)) = sequence_row(view, number, into)? {
        if next <= into {
            return Err(Error::Internal(format!("#{into} was folded into an earlier revision")));
        }
        into = next;
    }
    Ok(into)
}

/// Checks that a revision was not folded into a later one since it was found.
///
/// # Errors
/// [`Error::Folded`].
pub(crate) fn check_visible(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<()> {
    let sequence = at.sequence;
    match sequence_row(view, number, sequence)? {
        Some(SequenceRow::Folded(_, into)) => {
            let into = final_fold_target(view, number, into)?;
            Err(Error::Folded { sequence, into })
        }
        _ => Ok(()),
    }
}

/// Returns the row of a revision, unless it was folded into a later one.
pub(crate) fn find(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<Option<RevisionRow>> {
    let place = of(number).branch(at.branch).number(at.sequence).build();
    view.get(key::REVISIONS, &place)?
        .map(|row| RevisionRow::decode(&row))
        .transpose()
        .map_err(Error::corrupt(format_args!("revision #{}", at.sequence)))
}
