//! Resolves times and ids to branches, revisions and checkpoints.

use super::index::fold;
use super::lineage::{self, RevisionRef, sequence_row};
use super::refs::{StoreRefs, head_branch, session};
use super::table_rows;
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{BranchHead, FoldRow, RevisionHeader, SequenceRow};
use crate::model::{BranchNumber, RevisionId, SessionNumber, Timestamp};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Returns the current branch at a time: `main` before the first switch.
pub(crate) fn branch_at(
    view: &dyn Snapshot,
    number: SessionNumber,
    time: Timestamp,
) -> Result<BranchNumber> {
    let from = of(number).build();
    let to = of(number).time(time).end();
    let rows = view.scan(key::SWITCHES, &from, &to, ScanDirection::Descending, 1)?;
    Ok(rows.first().and_then(|(_, branch)| key::short_at(branch, 0)).unwrap_or(0))
}

/// Returns the effective times and branches of all switches, earliest first.
pub(crate) fn switches(
    view: &dyn Snapshot,
    number: SessionNumber,
) -> Result<Vec<(Timestamp, BranchNumber)>> {
    let rows = table_rows::rows(view, key::SWITCHES, of(number))?;
    Ok(rows
        .iter()
        .filter_map(|(place, branch)| Some((key::time_at(place, 4)?, key::short_at(branch, 0)?)))
        .collect())
}

/// Returns a branch's last revision at or before a time, with its effective time. If the branch has
/// none of its own, its base is searched, up to the fork.
pub(crate) fn revision_at(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    branch: BranchNumber,
    time: Timestamp,
) -> Result<Option<(RevisionRef, Timestamp)>> {
    let session = session(refs, number)?;
    let (mut branch, mut upto) = (branch, u64::MAX);
    loop {
        let from = of(number).branch(branch).build();
        let mut to = of(number).branch(branch).time(time).end();
        // In a base, only revisions up to the fork count. Effective times never decrease along a
        // branch, so the last row with such a number is the answer.
        loop {
            let rows = view.scan(key::TIMES, &from, &to, ScanDirection::Descending, 16)?;
            for (place, _) in &rows {
                let sequence = key::last_number(place).unwrap_or(0);
                if sequence <= upto {
                    let effective = key::time_at(place, 8).unwrap_or_default();
                    return Ok(Some((RevisionRef { branch, sequence }, effective)));
                }
            }
            match rows.last() {
                Some((oldest, _)) => to.clone_from(oldest),
                None => break,
            }
        }
        match session.branch(branch)?.base {
            Some((base, sequence)) if sequence > 0 => {
                branch = base;
                upto = upto.min(sequence);
            }
            _ => return Ok(None),
        }
    }
}

/// Finds the first visible revision after `at`, on its branch, that contains folded revisions.
/// Returns how many of them have an effective time up to `time`, and the sequence number of the
/// visible revision; `None` if there are none.
pub(crate) fn folded_after(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    time: Timestamp,
) -> Result<Option<(u64, u64)>> {
    let from = of(number).branch(at.branch).number(at.sequence.saturating_add(1)).build();
    let to = of(number).branch(at.branch).end();
    let mut folds: FoldsByRevision = BTreeMap::new();
    for (place, row) in table_rows::rows_between(view, key::FOLDS, &from, &to)? {
        let into = key::number_at(&place, 8).unwrap_or(0);
        let fold = FoldRow::decode(&row).map_err(Error::corrupt("a fold"))?;
        folds.entry(into).or_default().push(fold);
    }
    for into in folds.keys() {
        // A revision that was itself folded is counted at its own fold target.
        if let Some(SequenceRow::Folded(..)) = sequence_row(view, number, *into)? {
            continue;
        }
        let count =
            folded_until(view, number, RevisionRef { sequence: *into, ..at }, time, &folds)?;
        return Ok((count > 0).then_some((count, *into)));
    }
    Ok(None)
}

/// The folds on a branch, by target revision.
type FoldsByRevision = BTreeMap<u64, Vec<FoldRow>>;

/// Counts the revisions up to a time that were folded into this one, directly or through others.
fn folded_until(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
    time: Timestamp,
    folds: &FoldsByRevision,
) -> Result<u64> {
    let mut count = 0;
    for fold in folds.get(&at.sequence).into_iter().flatten() {
        for (sequence, row) in fold::folded(view, number, at, fold)? {
            if sequence != at.sequence {
                count += u64::from(row.effective <= time);
                count += folded_until(view, number, RevisionRef { sequence, ..at }, time, folds)?;
            }
        }
    }
    Ok(count)
}

/// Returns the first ancestor of a revision along first parents that is not folded.
pub(crate) fn parent_of(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<Option<RevisionRef>> {
    nth_ancestor(view, refs, number, at, 1)
}

/// Returns the revision at a branch's head.
pub(crate) fn head_of(
    refs: &StoreRefs,
    number: SessionNumber,
    branch: BranchNumber,
) -> Result<Option<RevisionRef>> {
    let Some(head) = session(refs, number)?.branch(branch)?.head else { return Ok(None) };
    let on = head_branch(refs, number, branch, head.sequence)?;
    Ok(Some(RevisionRef { branch: on, sequence: head.sequence }))
}

/// Returns the summary of a revision, and its effective time.
pub(crate) fn head_at(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<(BranchHead, RevisionHeader)> {
    let row = lineage::revision(view, number, at)?;
    let header = lineage::header(&row.header)?;
    let head = BranchHead::of(&header, RevisionHeader::id_of(&row.header), row.effective);
    Ok((head, header))
}

/// Returns the ancestor `back` steps before this revision along first parents; `None` if there are
/// fewer.
pub(crate) fn nth_ancestor(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
    back: u64,
) -> Result<Option<RevisionRef>> {
    let mut left = usize::try_from(back).unwrap_or(usize::MAX);
    for range in lineage::log_ranges(refs, number, at)? {
        let (from, to) = lineage::row_bounds(number, range);
        let limit = left.saturating_add(1);
        let rows = view.scan(key::REVISIONS, &from, &to, ScanDirection::Descending, limit)?;
        if let Some((place, _)) = rows.get(left) {
            let sequence = key::last_number(place).unwrap_or(0);
            return Ok(Some(RevisionRef { branch: range.branch, sequence }));
        }
        left -= rows.len();
    }
    Ok(None)
}

/// A revision or checkpoint that the prefix of an id may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdPrefixMatch {
    pub(crate) id: [u8; 16],
    pub(crate) session: SessionNumber,
    pub(crate) sequence: u64,
}

/// Returns the revisions and checkpoints whose ids are at or after `from` and before `to`, at most
/// `limit`.
pub(crate) fn ids_between(
    view: &dyn Snapshot,
    from: &[u8],
    to: &[u8],
    limit: usize,
) -> Result<Vec<IdPrefixMatch>> {
    let rows = view.scan(key::IDS, from, to, ScanDirection::Ascending, limit)?;
    Ok(rows
        .iter()
        .filter_map(|(id, place)| {
            Some(IdPrefixMatch {
                // Only an incomplete session has longer keys.
                id: id.as_slice().try_into().ok()?,
                session: key::short_at(place, 0)?,
                sequence: key::last_number(place)?,
            })
        })
        .collect())
}

/// Returns the full id of a revision.
pub(crate) fn revision_id(
    view: &dyn Snapshot,
    number: SessionNumber,
    at: RevisionRef,
) -> Result<RevisionId> {
    Ok(head_at(view, number, at)?.0.id)
}

/// Number of rows per read where revisions may be far apart in time.
const FEW: usize = 32;

/// Returns the active periods of a session up to a time, unsorted: those that the revisions of each
/// branch form, and those that the checkpoints form. In a period, consecutive events are at most
/// `idle` apart; it reaches from its first event to its last.
///
/// In dense periods only about one row per `idle` is read, so the cost depends on the length of the
/// periods and not on the number of rows.
pub(crate) fn active_periods(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    until: Timestamp,
    idle: Duration,
) -> Result<Vec<RangeInclusive<Timestamp>>> {
    let idle = i64::try_from(idle.as_micros()).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    for branch in 0..session(refs, number)?.branches.len() as u32 {
        let timed =
            TimedRows { table: key::TIMES, begin: &|| of(number).branch(branch), time_at: 8 };
        add_periods(view, &timed, until, idle, &mut found)?;
    }
    let timed = TimedRows { table: key::CHECKPOINTS, begin: &|| of(number), time_at: 4 };
    add_periods(view, &timed, until, idle, &mut found)?;
    Ok(found)
}

/// A table range in the order of its times.
struct TimedRows<'a> {
    table: TableId,
    /// Returns the beginning of the keys.
    begin: &'a dyn Fn() -> KeyBuilder,
    /// Offset of the time in the keys.
    time_at: usize,
}

/// Adds the active periods of these rows to `found`; `idle` is in microseconds.
fn add_periods(
    view: &dyn Snapshot,
    rows: &TimedRows<'_>,
    until: Timestamp,
    idle: i64,
    found: &mut Vec<RangeInclusive<Timestamp>>,
) -> Result<()> {
    let begin = rows.begin;
    let times = |from: &[u8], to: Timestamp, direction, limit| -> Result<Vec<Timestamp>> {
        let found = view.scan(rows.table, from, &begin().time(to).end(), direction, limit)?;
        Ok(found.iter().filter_map(|(place, _)| key::time_at(place, rows.time_at)).collect())
    };
    let mut from = begin().build();
    let mut period: Option<(Timestamp, Timestamp)> = None;
    loop {
        let few = times(&from, until, ScanDirection::Ascending, FEW)?;
        for time in &few {
            period = match period {
                Some((start, end)) if time.micros_since(end) <= idle => Some((start, *time)),
                before => {
                    found.extend(before.map(|(start, end)| start..=end));
                    Some((*time, *time))
                }
            };
        }
        let (Some((start, mut end)), Some(first)) = (period, few.first()) else { break };
        if few.len() < FEW {
            break;
        }
        let mut step = if end.micros_since(*first) <= idle { idle } else { 0 };
        while step >= idle / 2 {
            let reach = end.plus_micros(idle).min(until);
            let far = times(&begin().time(end).end(), reach, ScanDirection::Descending, 1)?;
            let Some(far) = far.first() else { break };
            step = far.micros_since(end);
            end = *far;
        }
        period = Some((start, end));
        from = begin().time(end).end();
    }
    found.extend(period.map(|(start, end)| start..=end));
    Ok(())
}
