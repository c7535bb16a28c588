//! Retention of sessions that ended long ago: dropping their transcripts and outputs, or the whole
//! session.

use super::prune::program_references;
use super::session::Session;
use super::{Store, search};
use crate::backend::Snapshot;
use crate::engine::blob;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{BookmarkRow, RecordChange, SessionRefs};
use crate::model::{OperationId, RetentionPolicy, SessionKind, SessionNumber, Timestamp};
use serde::Serialize;
use std::collections::BTreeSet;

/// The bytes of a source that pruning drops: one blob. The facts of the source are kept, with the
/// previews of their texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DroppedSource {
    /// The name of its session.
    pub session: String,
    /// When the session ended.
    pub ended: Timestamp,
    /// The name of the source.
    pub source: String,
    /// How many bytes a sweep will free; 0 if that was not measured.
    pub bytes: u64,
    #[serde(skip)]
    number: SessionNumber,
    #[serde(skip)]
    blob: String,
    #[serde(skip)]
    length: u64,
}

impl Store {
    /// Removes the search copy of the texts of these sessions; the next search makes it again.
    pub(super) fn forget_text_copies(
        &self,
        sessions: impl IntoIterator<Item = SessionNumber>,
    ) -> Result<()> {
        let sessions: BTreeSet<_> = sessions.into_iter().collect();
        if sessions.is_empty() { Ok(()) } else { search::forget(self, &sessions) }
    }
}

impl DroppedSource {
    pub(super) const fn session_number(&self) -> SessionNumber {
        self.number
    }

    /// Sets `bytes` to the size of the blob on disk. This reads all rows of the blob, so no lock
    /// should be held.
    pub(super) fn measure(&mut self, view: &ReadSnapshot) -> Result<()> {
        self.bytes = blob::stored_bytes(view, self.number, &self.blob)?;
        Ok(())
    }

    pub(super) fn change(&self, session: SessionNumber, pruning: OperationId) -> RecordChange {
        let (blob, bytes) = (self.blob.clone(), self.length);
        RecordChange::TextDropped { session, of: self.number, blob, bytes, pruning }
    }
}

/// A session that pruning drops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DroppedSession {
    /// The name of the session.
    pub session: String,
    /// When it ended.
    pub ended: Timestamp,
    /// The number of its last revision or checkpoint.
    pub last_sequence: u64,
    /// How many facts it has.
    pub facts: u64,
    #[serde(skip)]
    number: SessionNumber,
}

impl DroppedSession {
    pub(super) const fn session_number(&self) -> SessionNumber {
        self.number
    }

    pub(super) fn change(&self, session: SessionNumber, pruning: OperationId) -> RecordChange {
        RecordChange::SessionDropped { session, of: self.number, pruning }
    }
}

impl Session {
    /// Returns the debugging sessions that ended at `until` or earlier, each with the time of its
    /// last event. This session, the pinned one and the last used one are left out.
    fn ended_sessions<'v>(
        &self,
        view: &'v ReadSnapshot,
        until: Timestamp,
    ) -> Result<Vec<(SessionNumber, &'v SessionRefs, Timestamp)>> {
        let refs = &view.refs;
        let at_work = [Some(self.number), refs.pinned, refs.last_used];
        let mut ended = Vec::new();
        for (number, session) in refs.sessions.latest(SessionKind::Debug, usize::MAX)? {
            let end = session.last_time();
            if end <= until && !at_work.contains(&Some(number)) {
                ended.push((number, session, end));
            }
        }
        ended.sort_unstable_by_key(|(number, ..)| *number);
        Ok(ended)
    }

    /// Returns the sessions that these rules drop. A session that a program's checkpoint names is
    /// kept.
    pub(super) fn expired_sessions(
        &self,
        view: &ReadSnapshot,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Result<Vec<DroppedSession>> {
        let Some(age) = retention.sessions else { return Ok(Vec::new()) };
        let named: BTreeSet<_> =
            program_references(view)?.into_iter().map(|named| named.agent).collect();
        let ended = self.ended_sessions(view, now.plus_micros(age.saturating_neg()))?;
        let expired =
            ended.into_iter().filter(|(_, session, _)| !named.contains(&session.info.name));
        let dropped = expired.map(|(of, session, ended)| DroppedSession {
            session: session.info.name.clone(),
            ended,
            last_sequence: session.next_sequence - 1,
            facts: session.facts,
            number: of,
        });
        Ok(dropped.collect())
    }

    /// Returns the blobs that these rules drop: of all sources of the debugging sessions that ended
    /// long enough ago, the blobs that are not completely dropped. Their sizes are not
    /// [measured](DroppedSource::measure) yet.
    pub(super) fn expired_texts(
        &self,
        view: &ReadSnapshot,
        retention: &RetentionPolicy,
        now: Timestamp,
    ) -> Result<Vec<DroppedSource>> {
        let Some(age) = retention.texts else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (number, session, ended) in
            self.ended_sessions(view, now.plus_micros(age.saturating_neg()))?
        {
            for known in &session.bookmarks {
                let blobs =
                    self.store.session_at(number).kept_blobs(view, session, &known.source)?;
                found.extend(blobs.into_iter().map(|(blob, length)| DroppedSource {
                    session: session.info.name.clone(),
                    ended,
                    source: known.source.clone(),
                    bytes: 0,
                    number,
                    blob,
                    length,
                }));
            }
        }
        Ok(found)
    }

    /// Returns the blobs of a source that still have bytes to drop, each with its length.
    fn kept_blobs(
        &self,
        view: &ReadSnapshot,
        session: &SessionRefs,
        source: &str,
    ) -> Result<Vec<(String, u64)>> {
        let row = view.get(key::BOOKMARKS, &of(self.number).text(source).build())?;
        let row = row.map(|row| BookmarkRow::decode(&row)).transpose();
        let Some(row) = row.map_err(Error::corrupt("a bookmark"))? else { return Ok(Vec::new()) };
        let mut kept = Vec::new();
        for blob in self.blobs_of(source)? {
            // Bytes after the bookmark were written by an import that was killed.
            let length = if blob == row.blob {
                row.kept_bytes()
            } else {
                blob::end(view, self.number, &blob)?
            };
            if length > session.dropped(&blob) {
                kept.push((blob, length));
            }
        }
        Ok(kept)
    }
}
