//! Builds the entry of the spool that a write becomes, and saves it.

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

/// Makes an empty spooled write.
pub(super) fn begin(operation: Operation, session: SessionMetadata) -> Result<SpoolEntry> {
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

pub(super) fn note(waiting: &mut SpoolEntry, id: &str, value: &Value, added_at: Option<Timestamp>) {
    let added_at = added_at.unwrap_or(waiting.time);
    let entry = encode_entry(&ClaimEntry { added_at, value: value.clone() });
    waiting.notes.push(SpooledNote { id: id.to_owned(), entry: RecordBytes(entry.to_vec()) });
}

pub(super) fn pages(waiting: &mut SpoolEntry, facts: &[RecordChange]) {
    for change in facts {
        if let RecordChange::Facts { count, first, last, page: DeltaPart::Inline(page), .. } =
            change
        {
            let (count, first, last, page) = (*count, *first, *last, page.clone());
            waiting.pages.push(SpooledPage { count, first, last, page });
        }
    }
}

pub(super) fn checkpoint(
    waiting: &mut SpoolEntry,
    wanted: NewCheckpoint,
    id: CheckpointId,
    seen: Option<u64>,
) {
    let checkpoint = Checkpoint {
        id,
        sequence: 0,
        time: wanted.at.unwrap_or(waiting.operation.time),
        branch: 0,
        revision: seen,
        message: wanted.message,
        tags: wanted.tags,
        trigger: wanted.trigger,
        body: wanted.body.without_nulls(),
        key: wanted.key,
    };
    waiting.checkpoints.push(SpooledCheckpoint { checkpoint, past: wanted.at.is_some() });
}

/// Saves a write to the spool, and returns its report.
pub(super) fn keep(store: &Store, waiting: &SpoolEntry, reason: &Error) -> Result<WriteReport> {
    let branch = waiting.branch.as_deref().unwrap_or_default();
    let mut done = WriteReport {
        checkpoint: waiting.checkpoints.last().map(|one| one.checkpoint.clone()),
        checkpoints: waiting.checkpoints.len() as u64,
        facts: waiting.pages.iter().map(|page| page.count).sum(),
        spooled: true,
        ..WriteReport::begun(&waiting.operation, &waiting.session, branch)
    };
    if let Some(record) = store.engine.spool(waiting)? {
        (done.checkpoint, done.checkpoints, done.facts) = (None, 0, 0);
        for change in record.changes {
            match change {
                RecordChange::Revision { header, .. } => {
                    let id = RevisionHeader::id_of(&header.0);
                    let header = RevisionHeader::decode(&header.0)
                        .map_err(Error::corrupt("a revision just made"))?;
                    done.revision = Some((header.sequence, id));
                }
                RecordChange::Checkpoint { checkpoint, .. } => {
                    done.checkpoints += 1;
                    done.checkpoint = Some(*checkpoint);
                }
                RecordChange::Facts { count, .. } => done.facts += count,
                _ => {}
            }
        }
    }
    for note in &waiting.notes {
        let entry = crate::format::decode_entry(&note.entry.0)
            .map_err(Error::corrupt("a note just made"))?;
        done.changed.push((Key::new(Kind::Note, note.id.clone()), Some(entry.value)));
    }
    done.warnings.push(format!("kept in the spool until the store can be written: {reason}"));
    Ok(done)
}
