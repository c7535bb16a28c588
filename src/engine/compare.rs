//! What changed between two revisions: from the deltas between them where one is on the way to the other, else from
//! both states.

use super::lineage::{self, At, Stretch};
use super::lookup;
use super::materialize::{cost, deltas, materialize};
use crate::backend::{Direction, Snapshot};
use crate::diff;
use crate::error::{Error, Result};
use crate::format::{EntryBytes, Refs, Side, decode_entry, decode_key};
use crate::model::{Change, Entry, SessionNumber};
use std::collections::BTreeMap;

/// A changed key with both entries, as stored.
pub type RawChange = (Vec<u8>, Option<EntryBytes>, Option<EntryBytes>);

/// The claims that differ, sorted by key.
pub(crate) fn compare(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    from: Option<At>,
    to: Option<At>,
) -> Result<Vec<Change>> {
    raw(view, refs, number, from, to)?
        .into_iter()
        .map(|(key, old, new)| {
            let key = decode_key(&key).map_err(Error::corrupt("a delta"))?;
            let decode = |bytes: Option<EntryBytes>| -> Result<Option<Entry>> {
                bytes
                    .map(|bytes| decode_entry(&bytes).map_err(Error::corrupt(format!("the {key}"))))
                    .transpose()
            };
            Ok(Change { old: decode(old)?, new: decode(new)?, key: key.clone() })
        })
        .collect()
}

/// As [`compare`], not decoded.
pub(crate) fn raw(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    from: Option<At>,
    to: Option<At>,
) -> Result<Vec<RawChange>> {
    if from == to {
        return Ok(Vec::new());
    }
    let at = |at: Option<At>| at.unwrap_or(At { branch: 0, sequence: 0 });
    let (from, to) = (at(from), at(to));
    if let Some(changes) = along(view, refs, number, from, to)? {
        return Ok(changes);
    }
    if let Some(mut changes) = along(view, refs, number, to, from)? {
        for (_, old, new) in &mut changes {
            std::mem::swap(old, new);
        }
        return Ok(changes);
    }
    let old = materialize(view, refs, number, from)?;
    let new = materialize(view, refs, number, to)?;
    Ok(diff::differences(old.encoded(), new.encoded(), |old, new| old == new)
        .map(|(key, old, new)| (key.to_vec(), old.map(EntryBytes::from), new.map(EntryBytes::from)))
        .collect())
}

/// The net changes of the deltas from one revision to a later one that stands on it; `None` if it does not, or if
/// reading both states costs less.
fn along(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    from: At,
    to: At,
) -> Result<Option<Vec<RawChange>>> {
    if from.sequence >= to.sequence {
        return Ok(None);
    }
    let mut between = Vec::new();
    let mut reached = from.sequence == 0;
    for stretch in lineage::stretches(view, refs, number, to)? {
        if stretch.branch == from.branch && (stretch.after..=stretch.to).contains(&from.sequence) {
            between.push(Stretch { after: from.sequence, ..stretch });
            reached = true;
            break;
        }
        between.push(stretch);
    }
    if !reached {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for stretch in between {
        rows.extend(lineage::revisions(view, number, stretch, Direction::Descending, usize::MAX)?);
    }
    let later = lineage::revision(view, number, to)?.state_bytes;
    if rows.len() > 64
        && rows.iter().map(|(_, row)| cost(row)).sum::<u64>() > later.saturating_mul(2)
    {
        return Ok(None);
    }
    let parts: Vec<u64> =
        rows.iter().rev().flat_map(|(_, row)| row.parts.iter().copied()).collect();
    let mut net: BTreeMap<Vec<u8>, (Side, Side)> = BTreeMap::new();
    for delta in deltas(view, &parts)? {
        for change in delta.changes {
            net.entry(change.key)
                .and_modify(|(_, new)| *new = change.new.clone())
                .or_insert((change.old, change.new));
        }
    }
    net.into_iter()
        .filter(|(_, (old, new))| old != new)
        .map(|(key, (old, new))| Ok((key, lookup::bytes(view, &old)?, lookup::bytes(view, &new)?)))
        .collect::<Result<_>>()
        .map(Some)
}
