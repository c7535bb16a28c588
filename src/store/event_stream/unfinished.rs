//! Unfinished imports of event streams: a mark records what was begun until the import ends.
//!
//! The mark is a separate bookmark in the session that has the stream's bookmark. The first record
//! of the import adds it and the last one removes it. It records the operation, so that an import
//! that continues after a crash is part of the same operation, and the session for lines that name
//! none.
//!
//! An operation belongs to one session, and moving the bookmark is an effect of an operation. So a
//! line for another session does not move the bookmark. Its record moves a second mark in the
//! session with the bookmark, which says up to where the stream was written: lines before this mark
//! are not written again after a crash. After many such lines, a record of its own moves the
//! bookmark.

use super::super::begin::{Clash, begun};
use super::super::new_session::NewSession;
use super::super::session::Session;
use super::import::StreamImporter;
use super::{StreamImportRequest, StreamPosition, another_stream};
use crate::backend::files::LockedFile;
use crate::backend::{self, LockHolder};
use crate::engine::commit::CommitDurability;
use crate::engine::random::operation_id;
use crate::engine::refs::{StoreRefs, UNFINISHED, WRITTEN, agent_session, session as session_refs};
use crate::engine::session_rows::{SessionLookup, is_mark_of_import};
use crate::error::{Error, Result};
use crate::format::{BookmarkRow, Record, RecordBytes, RecordChange};
use crate::model::{Operation, OperationId, SessionId, SessionNumber};
use crate::store::Store;
use crate::store::spooled_write::session_metadata;
use std::fs::File;
use std::time::Instant;

/// An unfinished import of a stream or a bundle: it is running, or was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedImport {
    /// The session with the stream's bookmark, or one of the bundle.
    pub session: String,
    /// The name of the stream there; `bundle:` and the file, if it is known, for a bundle; `pull:`
    /// for a bundle without a known file in a store that has exchanged sessions with a remote.
    pub source: String,
}

/// The state of an import that continues.
#[derive(Clone, Debug)]
pub(super) struct BegunImport {
    pub(super) operation: OperationId,
    /// The session for lines that name none, once there is one.
    pub(super) own: Option<String>,
}

impl Store {
    /// Returns the unfinished imports of streams and bundles, and unfinished pulls. The same import
    /// or pull finishes it.
    pub fn unfinished_imports(&self) -> Result<Vec<UnfinishedImport>> {
        let bundles = self.unfinished_bundles()?;
        let (refs, _) = self.engine.follower.refs()?;
        let mut found = Vec::new();
        for (_, session) in refs.sessions.find(SessionLookup::Unfinished)? {
            // The mark came with the part of a bundle, and the stream is where the bundle was made.
            if bundles.iter().any(|bundle| bundle.session == session.info.name) {
                continue;
            }
            let marks = session.bookmarks.iter();
            let marks = marks.filter(|mark| is_mark_of_import(&mark.source));
            let sources = marks.filter_map(|mark| mark.source.strip_prefix(UNFINISHED));
            found.extend(sources.map(|source| UnfinishedImport {
                session: session.info.name.clone(),
                source: source.to_owned(),
            }));
        }
        found.extend(bundles);
        Ok(found)
    }

    /// Locks imports of streams: a concurrent import waits. `None` if the store has no folder that
    /// can be locked.
    ///
    /// # Errors
    /// [`backend::Error::Busy`] if another import holds the lock for longer than the store's lock
    /// timeout.
    pub(super) fn lock_imports(&self) -> Result<Option<LockedFile>> {
        let Some(path) = &self.path else { return Ok(None) };
        let Ok(folder) = File::open(path) else { return Ok(None) };
        let since = Instant::now();
        match LockedFile::exclusive_within(folder, self.engine.options.lock_timeout) {
            Ok(Ok(locked)) => Ok(Some(locked)),
            Ok(Err(folder)) => {
                let (holder, waited) = (LockHolder::of(&folder), since.elapsed());
                Err(backend::Error::Busy { lock: "lock of imports", holder, waited }.into())
            }
            Err(error) => {
                tracing::debug!(%error, "the store's folder cannot be locked");
                Ok(None)
            }
        }
    }

    /// Returns the first session that a stream was imported into, completely or not.
    pub(super) fn home_of(&self, stream: &StreamImportRequest<'_>) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        Ok(home_in(&refs, stream)?.map(|number| self.session_at(number)))
    }
}

fn home_in(refs: &StoreRefs, stream: &StreamImportRequest<'_>) -> Result<Option<SessionNumber>> {
    let mut found = refs.sessions.find(SessionLookup::Source(stream.source))?;
    found.extend(refs.sessions.find(SessionLookup::Source(&mark_of(stream.source)))?);
    let wanted = |name: &str| stream.session.is_none_or(|wanted| wanted == name);
    let wanted = found.iter().filter(|(_, session)| wanted(&session.info.name));
    Ok(wanted.map(|(number, _)| *number).min())
}

impl Session {
    /// Returns the state of an unfinished import into this session.
    pub(super) fn begun_import(&self, source: &str) -> Result<Option<BegunImport>> {
        let Some(row) = self.bookmark_row(&mark_of(source))? else { return Ok(None) };
        let Some(id) = row.blocks.0.first_chunk() else {
            return Err(Error::missing("the operation of an import"));
        };
        let own = String::from_utf8_lossy(&row.carry.0).into_owned();
        let own = Some(own).filter(|own| !own.is_empty());
        Ok(Some(BegunImport { operation: OperationId::from_bytes(*id), own }))
    }
}

fn mark_of(source: &str) -> String {
    format!("{UNFINISHED}{source}")
}

/// Returns the name of the mark that says up to where a stream was written, for lines to other
/// sessions than the one with the bookmark.
fn written_mark_of(source: &str) -> String {
    format!("{WRITTEN}{source}")
}

/// Returns the change that marks up to where a stream was written. `home` is the session with the
/// bookmark.
pub(super) fn written_mark(
    home: SessionNumber,
    source: &str,
    upto: &StreamPosition,
) -> RecordChange {
    let (bytes, blocks) = (upto.bytes, upto.hash.clone());
    let bookmark = Some(Box::new(BookmarkRow { bytes, blocks, ..BookmarkRow::default() }));
    RecordChange::Bookmark { session: home, source: written_mark_of(source), bookmark }
}

/// Returns the change that marks an import as unfinished.
fn marking(session: SessionNumber, source: &str, begun: &BegunImport) -> RecordChange {
    let bookmark = BookmarkRow {
        blocks: RecordBytes(begun.operation.as_bytes().to_vec()),
        carry: RecordBytes(begun.own.clone().unwrap_or_default().into_bytes()),
        ..BookmarkRow::default()
    };
    RecordChange::Bookmark { session, source: mark_of(source), bookmark: Some(Box::new(bookmark)) }
}

/// Checks that no concurrent import has moved the bookmark.
pub(super) fn check_untouched(
    refs: &StoreRefs,
    home: SessionNumber,
    source: &str,
    noted: u64,
) -> Result<()> {
    let bookmarks = &session_refs(refs, home)?.bookmarks;
    let known = bookmarks.iter().find(|bookmark| bookmark.source == source);
    if known.map_or(0, |known| known.bytes) == noted { Ok(()) } else { Err(overtaken(source)) }
}

fn overtaken(source: &str) -> Error {
    Error::Conflict(format!("another process imports '{source}' too: import it again"))
}

impl StreamImporter<'_> {
    /// Returns the operation for writes in a session. An import is one operation per session, even
    /// if it was killed and continued.
    pub(super) fn operation_in(&self, number: SessionNumber) -> Result<Operation> {
        let (Some(begun), Some(home)) = (&self.begun, &self.home) else {
            return self.act.operation();
        };
        let id = if home.number == number {
            begun.operation
        } else {
            let refs = self.store.engine.follower.refs()?.0;
            operation_id_in(&begun.operation, session_refs(&refs, number)?.info.id)
        };
        Ok(self.act.operation_with(id))
    }

    /// Begins a session for lines of the stream. The first session gets the mark in the same
    /// record.
    pub(super) fn begin_session(&mut self, mut new: NewSession, clash: Clash) -> Result<Session> {
        if self.home.is_some() {
            return self.store.begin_session(self.act, new, clash, CommitDurability::Later);
        }
        self.store.gate().session(&mut new);
        let mut operation = self.act.operation()?;
        let begin = BegunImport { operation: operation_id()?, own: None };
        operation.id = begin.operation;
        let (info, stream) = (session_metadata(self.act, new)?, self.stream);
        let (number, own) = self.store.engine.commit(CommitDurability::Later, &mut |context| {
            if home_in(&context.refs, &stream)?.is_some() {
                return Err(overtaken(stream.source));
            }
            let mut info = info.clone();
            // Only one session may have an agent's id, since hooks find a session by it.
            if let Some(id) = &info.agent_session
                && agent_session(&context.refs, id)?.is_some()
            {
                info.agent_session = None;
            }
            let (record, number) = begun(context, &operation, &info, (clash, false))?;
            let name = record.iter().flat_map(|record| &record.changes).find_map(|change| {
                if let RecordChange::Session { info } = change { Some(&info.name) } else { None }
            });
            // A session that a line names need not be the one for lines that name none.
            let own = name.filter(|_| clash == Clash::NextName).cloned();
            let begin = BegunImport { own: own.clone(), ..begin.clone() };
            let mark = marking(number, stream.source, &begin);
            let record = record.map(|record| Record {
                changes: record.changes.into_iter().chain([mark]).collect(),
                ..record
            });
            Ok((record, (number, own)))
        })?;
        self.begun = Some(BegunImport { own, ..begin });
        Ok(self.store.session_at(number))
    }

    /// Marks the import as unfinished in the session that will have its bookmark, unless it is
    /// marked already.
    pub(super) fn mark(&mut self) -> Result<()> {
        let (Some(home), None) = (self.home.clone(), &self.begun) else { return Ok(()) };
        let operation = self.act.operation()?;
        let begin = BegunImport { operation: operation.id, own: self.own.clone() };
        let (source, noted) = (self.stream.source, self.noted);
        self.store.engine.commit(CommitDurability::Later, &mut |context| {
            check_untouched(&context.refs, home.number, source, noted)?;
            let changes = vec![marking(home.number, source, &begin)];
            Ok((Some(Record { operation: operation.clone(), changes }), ()))
        })?;
        self.begun = Some(begin);
        Ok(())
    }

    /// Returns whether an earlier import that was killed has written the line between these
    /// positions.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the stream is not the one that the earlier import read.
    pub(super) fn was_written(
        &mut self,
        before: &StreamPosition,
        after: &StreamPosition,
    ) -> Result<bool> {
        let Some(home) = self.home.clone() else { return Ok(false) };
        if self.written.is_none() {
            let mark = home.bookmark_row(&written_mark_of(self.stream.source))?;
            let mark = mark.unwrap_or_default();
            self.written =
                Some(StreamPosition { bytes: mark.bytes, hash: mark.blocks, lines: mark.lines });
        }
        let written = self.written.as_ref().expect("just read");
        if before.bytes >= written.bytes {
            return Ok(false);
        }
        let at_end = after.bytes == written.bytes;
        if after.bytes > written.bytes || (at_end && after.hash != written.hash) {
            return Err(another_stream(written.bytes));
        }
        Ok(true)
    }

    /// Moves the bookmark forward; does nothing if it is already there or further on.
    pub(super) fn move_bookmark(&mut self, row: BookmarkRow) -> Result<()> {
        let Some(home) = self.home.clone().filter(|_| self.noted < row.bytes) else {
            return Ok(());
        };
        self.noted = row.bytes;
        let operation = self.operation_in(home.number)?;
        let bookmark = self.bookmark_change(home.number, row);
        home.commit_changes(&operation, CommitDurability::Later, &[bookmark])?;
        Ok(())
    }

    /// Moves the bookmark to the end of the stream and removes the marks.
    pub(super) fn end(&mut self, mark: &StreamPosition) -> Result<()> {
        let Some(home) = self.home.clone() else { return Ok(()) };
        self.move_bookmark(self.bookmark(mark))?;
        if self.begun.is_none() {
            return Ok(());
        }
        let operation = self.operation_in(home.number)?;
        self.begun = None;
        let refs = self.store.engine.follower.refs()?.0;
        let known = &session_refs(&refs, home.number)?.bookmarks;
        let marks = [written_mark_of(self.stream.source), mark_of(self.stream.source)];
        let marks = marks.into_iter().filter(|mark| known.iter().any(|one| one.source == *mark));
        let removed = marks.map(|source| RecordChange::Bookmark {
            session: home.number,
            source,
            bookmark: None,
        });
        let removed: Vec<RecordChange> = removed.collect();
        drop(refs);
        home.commit_changes(&operation, CommitDurability::Later, &removed)
    }
}

/// Derives the id of the operation in another session from the id of the operation in the session
/// with the bookmark.
fn operation_id_in(operation: &OperationId, session: SessionId) -> OperationId {
    let hash =
        blake3::Hasher::new().update(operation.as_bytes()).update(session.as_bytes()).finalize();
    OperationId::from_bytes(*hash.as_bytes().first_chunk().expect("16 of 32 bytes"))
}

#[cfg(test)]
#[path = "unfinished_tests.rs"]
mod tests;
