//! Builds spooled writes and saves them.

use super::Store;
use super::new_checkpoint::NewCheckpoint;
use super::write_report::WriteReport;
use crate::engine::random::random;
use crate::error::{Error, Result};
use crate::format::{
    DeltaPart, RecordBytes, RecordChange, RevisionHeader, SpoolEntry, SpooledCheckpoint,
    SpooledNote, SpooledPage, encode_entry,
};
use crate::model::{
    Checkpoint, CheckpointId, ClaimEntry, Key, Kind, Operation, SessionMetadata, Timestamp, Value,
};

/// Returns a spooled write that contains nothing but its session.
pub(super) fn new_entry(operation: Operation, session: SessionMetadata) -> Result<SpoolEntry> {
    Ok(SpoolEntry {
        time: operation.time,
        operation,
        session,
        used: false,
        branch: None,
        salt: random()?,
        objects: Vec::new(),
        pages: Vec::new(),
        notes: Vec::new(),
        checkpoints: Vec::new(),
    })
}

/// Adds a note. By default it was added at the time of the write.
pub(super) fn add_note(
    write: &mut SpoolEntry,
    id: &str,
    value: &Value,
    added_at: Option<Timestamp>,
) {
    let added_at = added_at.unwrap_or(write.time);
    let entry = encode_entry(&ClaimEntry { added_at, value: value.clone() });
    write.notes.push(SpooledNote { id: id.to_owned(), entry: RecordBytes(entry.to_vec()) });
}

/// Adds the pages of facts that [`fact_pages`](super::fact_pages::fact_pages) made.
pub(super) fn add_pages(write: &mut SpoolEntry, facts: &[RecordChange]) {
    for change in facts {
        if let RecordChange::Facts { count, first, last, page: DeltaPart::Inline(page), .. } =
            change
        {
            let (count, first, last, page) = (*count, *first, *last, page.clone());
            write.pages.push(SpooledPage { count, first, last, page });
        }
    }
}

/// Adds a checkpoint. Its number and branch are assigned when the write is appended. `seen` is the
/// last revision that its author saw.
pub(super) fn add_checkpoint(
    write: &mut SpoolEntry,
    wanted: NewCheckpoint,
    id: CheckpointId,
    seen: Option<u64>,
) {
    let checkpoint = Checkpoint {
        id,
        sequence: 0,
        time: wanted.at.unwrap_or(write.operation.time),
        branch: 0,
        revision: seen,
        message: wanted.message,
        tags: wanted.tags,
        trigger: wanted.trigger,
        body: wanted.body.without_nulls(),
        key: wanted.key,
    };
    write.checkpoints.push(SpooledCheckpoint { checkpoint, past: wanted.at.is_some() });
}

/// Saves a write to the spool, unless it changes nothing. Returns its report: what the write would
/// append now or, if the store cannot be read, all that it contains. `reason` says why it was not
/// appended.
pub(super) fn save(store: &Store, write: &SpoolEntry, reason: &Error) -> Result<WriteReport> {
    let branch = write.branch.as_deref().unwrap_or_default();
    let mut report = WriteReport {
        checkpoint: write.checkpoints.last().map(|one| one.checkpoint.clone()),
        checkpoints: write.checkpoints.len() as u64,
        facts: write.pages.iter().map(|page| page.count).sum(),
        spooled: true,
        ..WriteReport::begun(&write.operation, &write.session, branch)
    };
    if let Some(record) = store.engine.spool(write)? {
        (report.checkpoint, report.checkpoints, report.facts) = (None, 0, 0);
        report.spooled = !record.changes.is_empty();
        for change in record.changes {
            match change {
                RecordChange::Revision { header, .. } => {
                    let id = RevisionHeader::id_of(&header.0);
                    let header = RevisionHeader::decode(&header.0)
                        .map_err(Error::corrupt("a revision just made"))?;
                    report.revision = Some((header.sequence, id));
                }
                RecordChange::Checkpoint { checkpoint, .. } => {
                    report.checkpoints += 1;
                    report.checkpoint = Some(*checkpoint);
                }
                RecordChange::Facts { count, .. } => report.facts += count,
                _ => {}
            }
        }
    }
    for note in &write.notes {
        let entry = crate::format::decode_entry(&note.entry.0)
            .map_err(Error::corrupt("a note just made"))?;
        report.changed.push((Key::new(Kind::Note, note.id.clone()), Some(entry.value)));
    }
    if report.spooled {
        let warning = format!("kept in the spool until the store can be written: {reason}");
        report.warnings.push(warning);
    }
    Ok(report)
}
