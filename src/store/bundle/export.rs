//! Exporting sessions to a bundle.

use super::MAX_RECORD_BYTES;
use super::export_mark::{is_of, mark_of};
use super::replay::{ReplayStep, SessionReplay};
use crate::engine::object;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::visible_sessions;
use crate::error::{Error, Result};
use crate::format::{
    BundleChain, BundleContents, BundleEnd, BundleItemKind, BundleSession, DeltaPart, ExportMark,
    FactPage, ObjectKind, Record, RecordBytes, RecordChange, bundle_header, decode_object,
    object_id,
};
use crate::model::{ObjectId, OperationId, TextRef, Value};
use crate::store::{Session, Store};
use std::collections::HashSet;

/// A session to export, or a range of it.
#[derive(Clone, Debug)]
pub struct BundleRange {
    /// The session to export.
    pub session: Session,
    /// The last number before the range: the importing store must have the session up to there. 0
    /// for the beginning.
    pub from: u64,
    /// The last number in the range; `None` for the end.
    pub to: Option<u64>,
}

/// What an export did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleExportReport {
    /// The names of the sessions.
    pub sessions: Vec<String>,
    /// Where the next export of each session continues, with [`Store::export_bundle_since`].
    pub marks: Vec<ExportMark>,
    /// How many operations are in the bundle, completely or in part.
    pub operations: u64,
    /// How many objects were written as separate items.
    pub objects: u64,
    /// How many records were written.
    pub records: u64,
    /// How many bytes were written.
    pub bytes: u64,
    /// Whether data was swept or purged since the export that this one continues: earlier bundles
    /// still contain that data.
    pub erases: bool,
}

/// Writes the items of a bundle, each object once and before the first record that names it.
struct BundleWriter<'a, W> {
    view: &'a ReadSnapshot,
    write: W,
    chain: BundleChain,
    /// The objects that were written as separate items.
    written: HashSet<ObjectId>,
    operations: HashSet<OperationId>,
    end: BundleEnd,
    bytes: u64,
    /// A record with changes of one operation that are not written yet.
    open: Option<Record>,
    /// The size of the objects in `open`, in bytes.
    open_bytes: usize,
}

impl Store {
    /// Returns every session of every kind that is in the journal.
    pub fn every_session(&self) -> Result<Vec<Session>> {
        let (refs, _) = self.engine.follower.written_refs_to_read()?;
        visible_sessions(&refs).map(|one| Ok(self.session_at(one?.0))).collect()
    }

    /// Writes sessions as one file, part by part, with everything they refer to, but without
    /// spooled writes. The same sessions give the same bytes.
    ///
    /// # Errors
    /// Any error of `write`; [`Error::Invalid`] if a range is not valid, or ends between a revision
    /// and the sweep that removed it; [`Error::Corrupt`] if something is missing; also if the store
    /// cannot be read or is damaged.
    pub fn export_bundle<E: From<Error>>(
        &self,
        ranges: &[BundleRange],
        write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<BundleExportReport, E> {
        with_errors_of(write, |write| {
            let view = self.engine.follower.written_view()?;
            write_bundle(&view, ranges, 0, write)
        })
    }

    /// Writes what was written to a session since an earlier export of it, as a bundle that
    /// continues that export. The cost depends only on what is new, unless that includes a pruning.
    ///
    /// # Errors
    /// Any error of `write`; [`Error::Invalid`] if the mark is not of this store's history; also if
    /// the store cannot be read or is damaged.
    pub fn export_bundle_since<E: From<Error>>(
        &self,
        session: &Session,
        mark: &ExportMark,
        write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<BundleExportReport, E> {
        with_errors_of(write, |write| {
            let view = self.engine.follower.written_view()?;
            if !is_of(&view, mark)? {
                return Err(Error::invalid(
                    "the earlier export is of another history than this store has, which may have \
                     been restored from a backup: export the whole session",
                ));
            }
            let range = BundleRange { session: session.clone(), from: mark.sequence, to: None };
            write_bundle(&view, &[range], mark.position, write)
        })
    }
}

/// Runs an export whose output may fail with an error of its own.
pub(in crate::store) fn with_errors_of<T, E: From<Error>>(
    write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    export: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<T>,
) -> Result<T, E> {
    let mut refused = None;
    let outcome = export(&mut |bytes| {
        write(bytes).map_err(|error| {
            refused = Some(error);
            Error::Internal("the output was refused".to_owned())
        })
    });
    match refused {
        Some(error) => Err(error),
        None => Ok(outcome?),
    }
}

/// Writes ranges of sessions as one bundle: only what was written at the position `since` or later.
fn write_bundle(
    view: &ReadSnapshot,
    ranges: &[BundleRange],
    since: u64,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<BundleExportReport> {
    let mut contents = BundleContents::default();
    let mut replays = Vec::with_capacity(ranges.len());
    let mut marks = Vec::with_capacity(ranges.len());
    let mut erases = false;
    for range in ranges {
        let session = crate::engine::refs::session(&view.refs, range.session.number)?;
        let last = session.next_sequence - 1;
        let to = range.to.unwrap_or(last);
        if range.from > to || to > last {
            return Err(Error::invalid(format!(
                "#{} to #{to} is not a range of the session '{}', which ends at #{last}",
                range.from, session.info.name
            )));
        }
        let named = contents.sessions.len() as u32;
        let replay = SessionReplay::new(view, range.session.number, named, since)?;
        // A range to the end includes what follows the last number. A range that continues an
        // export begins at the position of that export, not at a number.
        let from = if since > 0 { 0 } else { range.from };
        let span = (from, range.to.unwrap_or(u64::MAX));
        replay.check_end(span.1)?;
        erases |= since > 0 && replay.erases;
        let begun = replay.begun_operations(span.0, span.1);
        let (info, from) = (session.info.clone(), range.from);
        let continues = (since > 0).then(|| replay.branches_before());
        contents.sessions.push(BundleSession { info, from, to, begun, continues });
        marks.push(mark_of(view, range.session.number)?);
        replays.push((replay, span));
    }
    let header = bundle_header(&contents);
    let chain = BundleChain::begin(&header).map_err(Error::corrupt("a bundle"))?;
    write(&header)?;
    let mut writer = BundleWriter {
        view,
        write,
        chain,
        written: HashSet::new(),
        operations: HashSet::new(),
        end: BundleEnd::default(),
        bytes: header.len() as u64,
        open: None,
        open_bytes: 0,
    };
    writer.write_item(BundleItemKind::Contents, &contents.encode())?;
    for (replay, (from, to)) in replays {
        replay.each(from, to, &mut |step| writer.add_step(step))?;
        writer.write_open_record()?;
    }
    let end = writer.end;
    writer.write_item(BundleItemKind::End, &end.encode())?;
    Ok(BundleExportReport {
        sessions: contents.sessions.into_iter().map(|session| session.info.name).collect(),
        marks,
        operations: writer.operations.len() as u64,
        objects: end.objects,
        records: end.records,
        bytes: writer.bytes,
        erases,
    })
}

impl<W: FnMut(&[u8]) -> Result<()>> BundleWriter<'_, W> {
    fn write_item(&mut self, kind: BundleItemKind, content: &[u8]) -> Result<()> {
        let bytes = self.chain.item(kind, content);
        self.bytes += bytes.len() as u64;
        (self.write)(&bytes)
    }

    /// Adds the changes of a step to the open record, or to a new one if they do not fit.
    fn add_step(&mut self, step: ReplayStep) -> Result<()> {
        if step.has_own_record {
            self.write_open_record()?;
        }
        for mut change in step.changes {
            self.write_objects_of(&mut change)?;
            // An undo mark stays in the same record as the changes of its operation.
            let is_undo_mark = matches!(change, RecordChange::TakesBack { .. });
            let fits = |open: &Record| {
                open.operation == step.operation
                    && (is_undo_mark || self.open_bytes < MAX_RECORD_BYTES)
            };
            if !self.open.as_ref().is_some_and(fits) {
                self.write_open_record()?;
            }
            let operation = step.operation.clone();
            let open = self.open.get_or_insert(Record { operation, changes: Vec::new() });
            self.open_bytes += change.inline_bytes();
            open.changes.push(change);
        }
        if step.has_own_record {
            self.write_open_record()?;
        }
        Ok(())
    }

    /// Writes the open record, if there is one.
    fn write_open_record(&mut self) -> Result<()> {
        let Some(record) = self.open.take() else { return Ok(()) };
        self.open_bytes = 0;
        self.operations.insert(record.operation.id);
        self.end.records += 1;
        self.write_item(BundleItemKind::Record, &record.encode())
    }

    /// Writes the objects that a change refers to, and moves its large inline objects to separate
    /// items.
    fn write_objects_of(&mut self, change: &mut RecordChange) -> Result<()> {
        match change {
            RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. } => {
                for part in delta {
                    let DeltaPart::Inline(encoded) = part else { continue };
                    let content = decode_object(ObjectKind::Delta, &encoded.0)
                        .map_err(Error::corrupt("a delta"))?;
                    for named in object::blobs_named_in_delta(&content)? {
                        self.write_named_object(&named)?;
                    }
                    self.move_out_if_large(part)?;
                }
                Ok(())
            }
            RecordChange::Facts { page, .. } => {
                let DeltaPart::Inline(encoded) = page else { return Ok(()) };
                let content = decode_object(ObjectKind::Page, &encoded.0)
                    .map_err(Error::corrupt("a page"))?;
                let facts = FactPage::decode(&content).map_err(Error::corrupt("a page"))?.facts;
                facts.iter().try_for_each(|fact| self.write_texts(&fact.value))?;
                self.move_out_if_large(page)
            }
            RecordChange::Checkpoint { checkpoint, .. }
            | RecordChange::CheckpointShown { checkpoint, .. } => {
                self.write_texts(&checkpoint.body)
            }
            _ => Ok(()),
        }
    }

    /// Writes the long texts in a value that are separate objects. Other long texts are in a
    /// source, which is exported too.
    fn write_texts(&mut self, value: &Value) -> Result<()> {
        let mut written = Ok(());
        TextRef::each_in(value, &mut |text| {
            if text.place.is_none() && written.is_ok() {
                written = self.write_named_object(&text.hash);
            }
        });
        written
    }

    /// Writes the object with this id, unless it is written already.
    fn write_named_object(&mut self, id: &ObjectId) -> Result<()> {
        if self.written.contains(id) {
            return Ok(());
        }
        let number = object::find_number(self.view, id)?;
        let number = number.ok_or_else(|| Error::missing(format!("the object {id}")))?;
        let encoded = object::encoded(self.view, number)?;
        self.write_object(*id, &encoded)
    }

    fn write_object(&mut self, id: ObjectId, encoded: &[u8]) -> Result<()> {
        if self.written.insert(id) {
            self.end.objects += 1;
            self.write_item(BundleItemKind::Object, encoded)?;
        }
        Ok(())
    }

    /// Writes an inline object as a separate item if it is too large for its record. The record
    /// then only names it.
    fn move_out_if_large(&mut self, part: &mut DeltaPart) -> Result<()> {
        if let DeltaPart::Inline(RecordBytes(encoded)) = part
            && encoded.len() > MAX_RECORD_BYTES / 2
        {
            let id = object_id(encoded).map_err(Error::corrupt("an object"))?;
            let encoded = std::mem::take(encoded);
            self.write_object(id, &encoded)?;
            *part = DeltaPart::Named(id);
        }
        Ok(())
    }
}
