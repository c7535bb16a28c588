//! The history of a claim and of a session.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::lookup;
use crate::engine::object;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    ObjectKind, ResetSource, RevisionBody, RevisionHeader, RevisionRow, SequenceRow, decode_entry,
    encode_key,
};
use crate::model::{
    Checkpoint, ClaimEntry, EntryChange, Key, OperationAuthor, OperationId, RevisionId, Timestamp,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A change of one claim, with the revision that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// The revision that made the change.
    pub revision: LogEntry,
    /// The change of the claim.
    pub change: EntryChange,
}

/// A revision as shown in a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEntry {
    /// The sequence number.
    pub sequence: u64,
    /// The revision id.
    pub id: RevisionId,
    /// The effective time.
    pub time: Timestamp,
    /// The branch it is on.
    pub branch: String,
    /// The verb that made it.
    pub verb: String,
    /// The author of the operation.
    pub author: OperationAuthor,
    /// The operation it is part of.
    pub operation: OperationId,
    /// The number of the revision from whose claims it starts, if that is not its parent; 0 for the
    /// empty state.
    pub reset_to: Option<u64>,
    /// For a merge, the number of the revision that was merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    /// How many claims its state has.
    #[serde(skip)]
    pub claims: u64,
}

/// An item of a log.
#[derive(Clone, Debug, PartialEq)]
pub enum LogItem {
    /// A revision.
    Revision(LogEntry),
    /// A checkpoint.
    Checkpoint(Checkpoint),
    /// A revision that a repair could not save.
    Lost(LostRevision),
}

/// A revision that was lost before a repair. Only its number is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRevision {
    /// The sequence number.
    pub sequence: u64,
    /// The branch it was on.
    pub branch: String,
    /// The time of a revision or checkpoint next to it: its own time is not known.
    pub near: Timestamp,
}

impl LogItem {
    /// Returns the time of the item.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        match self {
            Self::Revision(entry) => entry.time,
            Self::Checkpoint(checkpoint) => checkpoint.time,
            Self::Lost(lost) => lost.near,
        }
    }

    /// Returns the sequence number of the item.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        match self {
            Self::Revision(entry) => entry.sequence,
            Self::Checkpoint(checkpoint) => checkpoint.sequence,
            Self::Lost(lost) => lost.sequence,
        }
    }
}

impl Session {
    /// Returns every change of a claim up to a moment, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no such claim existed up to that moment.
    pub fn history(&self, moment: &ResolvedMoment, key: &Key) -> Result<Vec<HistoryEntry>> {
        let view = self.view()?;
        let touched = match moment.at {
            None => Vec::new(),
            Some(at) => lookup::history(&view, &view.refs, self.number, at, &encode_key(key))?,
        };
        if touched.is_empty() {
            return Err(Error::not_found(key.kind.name(), key.id.clone()));
        }
        touched
            .into_iter()
            .map(|touched| {
                let decode = |side| -> Result<Option<ClaimEntry>> {
                    lookup::delta_side_bytes(&view, side)?
                        .map(|bytes| {
                            decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))
                        })
                        .transpose()
                };
                let change = EntryChange {
                    key: key.clone(),
                    old: decode(&touched.old)?,
                    new: decode(&touched.new)?,
                };
                let row = lineage::revision(&view, self.number, touched.at)?;
                Ok(HistoryEntry { revision: self.entry_of_row(&view, touched.at, &row)?, change })
            })
            .collect()
    }

    /// Returns the revisions up to a moment along first parents, and the checkpoints of all
    /// branches up to its time, newest first: at most `limit`.
    pub fn log(&self, moment: &ResolvedMoment, limit: usize) -> Result<Vec<LogItem>> {
        let view = self.view()?;
        let mut items = Vec::new();
        if let Some(at) = moment.at {
            'ranges: for range in lineage::log_ranges(&view.refs, self.number, at)? {
                let room = limit - items.len();
                let rows = lineage::known_revisions(
                    &view,
                    self.number,
                    range,
                    ScanDirection::Descending,
                    room,
                )?;
                let known = rows.iter().find_map(|(_, row)| Some(row.as_ref()?.effective));
                let known = known.or(moment.time).unwrap_or(Timestamp::from_micros(0));
                for (sequence, row) in rows {
                    let at = RevisionRef { branch: range.branch, sequence };
                    let near = items.last().map_or(known, LogItem::time);
                    items.push(self.log_item(&view, at, row.as_ref(), near)?);
                    if items.len() >= limit {
                        break 'ranges;
                    }
                }
            }
        }
        let filter =
            CheckpointFilter { until: moment.time, limit: Some(limit), ..Default::default() };
        let checkpoints = checkpoint::list(&view, self.number, &filter)?;
        items.extend(checkpoints.into_iter().map(LogItem::Checkpoint));
        items.sort_by_key(|item| std::cmp::Reverse((item.time(), item.sequence())));
        items.truncate(limit);
        Ok(items)
    }

    /// Returns the revisions and checkpoints of all branches in the order of their numbers, from
    /// `from` on, without folded revisions. `limit` is the maximum with folded revisions, so fewer
    /// items may be returned although others follow.
    pub fn records(&self, from: u64, limit: usize) -> Result<Vec<LogItem>> {
        Ok(self.records_at(&self.view()?, from, limit)?.0)
    }

    /// Does the same as [`Session::records`] in an open snapshot. Also returns the number at which
    /// the next call has to begin; `None` if nothing follows.
    pub(super) fn records_at(
        &self,
        view: &ReadSnapshot,
        from: u64,
        limit: usize,
    ) -> Result<(Vec<LogItem>, Option<u64>)> {
        let first = of(self.number).number(from).build();
        let rows = view.scan(
            key::SEQUENCES,
            &first,
            &of(self.number).end(),
            ScanDirection::Ascending,
            limit,
        )?;
        let last = rows.last().filter(|_| rows.len() >= limit);
        let next = last.and_then(|(place, _)| key::last_number(place)?.checked_add(1));
        let (mut revisions, mut checkpoints) = (Vec::new(), Vec::new());
        for (place, row) in &rows {
            let sequence = key::last_number(place).unwrap_or(0);
            match SequenceRow::decode(row).map_err(Error::corrupt("a sequence number"))? {
                SequenceRow::Revision(branch) => revisions.push(RevisionRef { branch, sequence }),
                SequenceRow::Checkpoint(_) => checkpoints.push(sequence),
                SequenceRow::Folded(..) => {}
            }
        }
        let mut checkpoints =
            checkpoint::by_sequences(view, self.number, &checkpoints)?.into_values().peekable();
        let found = lineage::known_revisions_of(view, self.number, &revisions)?;
        let mut items = Vec::with_capacity(rows.len());
        for (at, row) in revisions.iter().zip(found) {
            while let Some(one) = checkpoints.next_if(|one| one.sequence < at.sequence) {
                items.push(LogItem::Checkpoint(one));
            }
            let near = items.last().map_or(Timestamp::from_micros(0), LogItem::time);
            items.push(self.log_item(view, *at, row.as_ref(), near)?);
        }
        items.extend(checkpoints.map(LogItem::Checkpoint));
        // Lost revisions that come first are next to the first item whose time is known.
        let lost = items.iter().take_while(|item| matches!(item, LogItem::Lost(_))).count();
        if let Some(known) = items.get(lost).map(LogItem::time) {
            for item in items.iter_mut().take(lost) {
                if let LogItem::Lost(lost) = item {
                    lost.near = known;
                }
            }
        }
        Ok((items, next))
    }

    /// Returns the number of the first of the last `count` revisions and checkpoints before the
    /// number `end`, with folded ones, and whether there are older ones.
    pub(super) fn number_of_last(
        &self,
        view: &ReadSnapshot,
        end: u64,
        count: usize,
    ) -> Result<(u64, bool)> {
        let (first, end) = (of(self.number).build(), of(self.number).number(end).build());
        let limit = count.saturating_add(1);
        let rows = view.scan(key::SEQUENCES, &first, &end, ScanDirection::Descending, limit)?;
        let has_older = rows.len() > count;
        let begin = rows.get(count.saturating_sub(1)).filter(|_| has_older);
        Ok((begin.and_then(|(place, _)| key::last_number(place)).unwrap_or(0), has_older))
    }

    /// Returns the item of a revision, which has no row if it is lost. `near` is the time of an
    /// item next to it.
    fn log_item(
        &self,
        view: &ReadSnapshot,
        at: RevisionRef,
        row: Option<&RevisionRow>,
        near: Timestamp,
    ) -> Result<LogItem> {
        let Some(row) = row else {
            let branch = session_refs(&view.refs, self.number)?.branch(at.branch)?.name.clone();
            return Ok(LogItem::Lost(LostRevision { sequence: at.sequence, branch, near }));
        };
        self.entry_of_row(view, at, row).map(LogItem::Revision)
    }

    /// Returns the changes of one revision.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such revision.
    pub fn changes_of(&self, sequence: u64) -> Result<Vec<EntryChange>> {
        self.changes_at(&self.view()?, sequence)
    }

    /// Does the same as [`Session::changes_of`] in an open snapshot.
    pub(super) fn changes_at(
        &self,
        view: &ReadSnapshot,
        sequence: u64,
    ) -> Result<Vec<EntryChange>> {
        let moment = self.of_sequence(view, sequence)?;
        let at = moment.at.ok_or_else(|| Error::not_found("revision", format!("#{sequence}")))?;
        let from = timeline::parent_of(view, &view.refs, self.number, at)?;
        crate::engine::compare::compare(view, &view.refs, self.number, from, Some(at))
    }

    /// Returns the changes of these revisions by number, read in batches of 256. Resets are left
    /// out, because their changes are not in their deltas, and so are lost revisions and revisions
    /// with an object that cannot be read.
    pub(super) fn changes_in_batches(
        &self,
        view: &ReadSnapshot,
        sequences: &[u64],
    ) -> Result<BTreeMap<u64, Vec<EntryChange>>> {
        const REVISIONS_PER_READ: usize = 256;
        let mut found = BTreeMap::new();
        for some in sequences.chunks(REVISIONS_PER_READ) {
            let places: Vec<_> =
                some.iter().map(|sequence| of(self.number).number(*sequence).build()).collect();
            let mut revisions = Vec::new();
            for (row, sequence) in view.get_many(key::SEQUENCES, &places)?.iter().zip(some) {
                let row = row.as_ref().map(|row| SequenceRow::decode(row)).transpose();
                if let Some(SequenceRow::Revision(branch)) =
                    row.map_err(Error::corrupt("a sequence number"))?
                {
                    revisions.push(RevisionRef { branch, sequence: *sequence });
                }
            }
            let mut deltas = Vec::new();
            let rows = lineage::known_revisions_of(view, self.number, &revisions)?;
            for (at, row) in revisions.iter().zip(rows) {
                let Some(row) = row else { continue };
                let header = lineage::header(&row.header)?;
                if header.reset.is_none() {
                    deltas.push((at.sequence, row.parts));
                }
            }
            let parts: Vec<u64> = deltas.iter().flat_map(|(_, parts)| parts).copied().collect();
            let mut encoded = object::encoded_many(view, &parts).ok().map(Vec::into_iter);
            for (sequence, parts) in deltas {
                let own: Option<Vec<Vec<u8>>> = match &mut encoded {
                    Some(encoded) => Some(encoded.by_ref().take(parts.len()).collect()),
                    // The objects of one of the revisions cannot be read.
                    None => object::encoded_many(view, &parts).ok(),
                };
                let Some(own) = own else { continue };
                let mut changes = Vec::new();
                for (number, encoded) in parts.iter().zip(own) {
                    let content = object::decoded(ObjectKind::Delta, *number, &encoded)?;
                    changes.extend(lookup::delta_changes(view, &content, usize::MAX)?);
                }
                found.insert(sequence, changes);
            }
        }
        Ok(found)
    }

    /// Returns the log entry of a revision with this row.
    pub(super) fn entry_of_row(
        &self,
        view: &ReadSnapshot,
        at: RevisionRef,
        row: &RevisionRow,
    ) -> Result<LogEntry> {
        let header = lineage::header(&row.header)?;
        let body = RevisionBody::decode(&row.body).map_err(Error::corrupt("a revision's body"))?;
        Ok(LogEntry {
            sequence: at.sequence,
            id: RevisionHeader::id_of(&row.header),
            time: row.effective,
            branch: session_refs(&view.refs, self.number)?.branch(at.branch)?.name.clone(),
            verb: body.operation.verb,
            author: body.operation.author,
            operation: body.operation.id,
            reset_to: header.reset.map(|reset| match reset {
                ResetSource::Empty => 0,
                ResetSource::To(parent) => parent.sequence,
            }),
            merged: header.parents.get(1).map(|parent| parent.sequence),
            claims: header.count,
        })
    }
}
