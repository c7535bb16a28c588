//! Makes records durable, also after a sync has failed.

use super::layout::SyncMark;
use super::scan::{JournalCursor, JournalWalk, damaged};
use super::segment::{self, JournalSegment};
use super::{Journal, locked};
use crate::backend::{Error, LogPosition};
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The timeout for the append lock, where the caller gives none.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The position of a failure that has not happened.
const NEVER: LogPosition = LogPosition::MAX;

/// How far this process knows the journal to be durable.
#[derive(Debug)]
pub(super) struct SyncProgress {
    known: AtomicU64,
    /// The position from which a failed sync may have lost data; [`NEVER`] if none failed.
    failed: AtomicU64,
    /// Whether a thread syncs. The others wait: usually their records are durable afterwards.
    is_syncing: Mutex<bool>,
    /// Notified when `is_syncing` becomes false.
    synced: Condvar,
    count: AtomicU64,
    /// Whether syncs are only counted; see [`Journal::without_sync_for_canary`].
    left_out: bool,
    #[cfg(test)]
    pub(super) failures: AtomicU64,
}

impl SyncProgress {
    pub(super) fn new(known: LogPosition) -> Self {
        Self {
            known: AtomicU64::new(known),
            failed: AtomicU64::new(NEVER),
            is_syncing: Mutex::new(false),
            synced: Condvar::new(),
            count: AtomicU64::new(0),
            left_out: false,
            #[cfg(test)]
            failures: AtomicU64::new(0),
        }
    }

    /// From now on, only counts syncs and does none.
    pub(super) fn leave_syncs_out(&mut self) {
        self.left_out = true;
    }

    /// Returns the number of syncs.
    pub(super) fn syncs(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the position before which everything is durable.
    pub(super) fn known(&self) -> LogPosition {
        self.known.load(Ordering::Acquire)
    }

    pub(super) fn advance(&self, to: LogPosition) {
        self.known.fetch_max(to, Ordering::AcqRel);
    }

    fn covers(&self, to: LogPosition) -> bool {
        !self.has_failed() && self.known() >= to
    }

    /// Waits until everything before `to` is durable (`None`), or until no other thread syncs. In
    /// the second case, this thread has to sync: the others wait until it drops the guard.
    fn wait_unless_covered(&self, to: LogPosition) -> Option<SyncTurn<'_>> {
        let waits = |is_syncing: &mut bool| *is_syncing && !self.covers(to);
        let waited = self.synced.wait_while(locked(&self.is_syncing), waits);
        let mut is_syncing = waited.unwrap_or_else(PoisonError::into_inner);
        if self.covers(to) {
            return None;
        }
        *is_syncing = true;
        Some(SyncTurn(self))
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) != NEVER
    }

    pub(super) fn fail(&self, from: LogPosition) {
        self.failed.fetch_min(from, Ordering::AcqRel);
    }

    /// Asks the disk to make a file's data durable.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        self.count.fetch_add(1, Ordering::Relaxed);
        #[cfg(test)]
        if self
            .failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            .is_ok()
        {
            return Err(io::Error::other("a failure for a test"));
        }
        if self.left_out { Ok(()) } else { file.sync_data() }
    }
}

/// The turn of the thread that syncs.
struct SyncTurn<'a>(&'a SyncProgress);

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        *locked(&self.0.is_syncing) = false;
        // All at once: a chain of threads that wake each other would take longer than a sync.
        self.0.synced.notify_all();
    }
}

impl Journal {
    /// Makes everything before `to` durable. If a sync fails, the records are written again.
    pub(super) fn make_durable(&self, to: LogPosition) -> Result<(), Error> {
        let lock = self.writer("sync")?;
        let Some(_turn) = self.progress.wait_unless_covered(to) else { return Ok(()) };
        if !self.progress.has_failed() {
            self.progress.advance(self.mark.position()?);
            if self.progress.covers(to) {
                return Ok(());
            }
            match self.flush(&self.tip_from(to)?) {
                Err(error) if !self.progress.has_failed() => return Err(error),
                Err(error) => tracing::warn!(%error, "a sync failed; writing the records again"),
                Ok(()) => return Ok(()),
            }
        }
        let _lock = lock.acquire(LOCK_TIMEOUT)?;
        self.write_again()?;
        if self.progress.covers(to) { Ok(()) } else { Err(beyond(to)) }
    }

    /// Returns a cursor at an end of the journal, at or after `to`.
    fn tip_from(&self, to: LogPosition) -> Result<JournalCursor, Error> {
        let known = locked(&self.tip).clone().filter(|tip| tip.previous.is_some());
        if let Some(tip) = known.filter(|tip| tip.end >= to) {
            return Ok(tip);
        }
        self.confirmed(|| {
            let from =
                self.progress.known().max(segment::list(&self.folder)?.first().map_or(0, |s| *s));
            let mut walk = self.walk(from, None)?;
            while walk.next()?.is_some() {}
            let tip = walk.cursor().clone();
            if tip.end >= to && tip.previous.is_some() { Ok(tip) } else { Err(beyond(to)) }
        })
    }

    /// Syncs everything up to `tip`, and updates the sync mark and the witness. A failed sync is
    /// remembered.
    pub(super) fn flush(&self, tip: &JournalCursor) -> Result<(), Error> {
        let known = self.progress.known();
        for segment in self.unsynced(known, tip)? {
            if let Err(source) = self.progress.sync(&segment.file) {
                self.progress.fail(known);
                return Err(Error::io("sync", &segment.path)(source));
            }
        }
        self.note(tip);
        Ok(())
    }

    /// Records that everything before `tip` is durable, in the sync mark and the witness.
    pub(super) fn note(&self, tip: &JournalCursor) {
        self.progress.advance(tip.end);
        if let Some(hash) = tip.previous {
            let mark = SyncMark { position: tip.end, hash };
            self.mark.note(&mark);
            if let Some(witness) = &self.witness {
                witness.note(&mark);
            }
        }
    }

    /// Returns the segments that may have unsynced bytes: from the one that reaches `known` to the
    /// one of `tip`. A segment that ends exactly at `known` counts: its end frame occupies no
    /// positions.
    fn unsynced(
        &self,
        known: LogPosition,
        tip: &JournalCursor,
    ) -> Result<Vec<Arc<JournalSegment>>, Error> {
        let mut segments = Vec::new();
        if known <= tip.segment.start && tip.segment.start > 0 {
            for pair in segment::list(&self.folder)?.windows(2) {
                if pair[1] >= known && pair[1] <= tip.segment.start {
                    // A removed segment was applied, and it was synced before that.
                    let segment = JournalSegment::open_if_there(&self.folder, pair[0], true)?;
                    segments.extend(segment.map(Arc::new));
                }
            }
        }
        segments.push(tip.segment.clone());
        Ok(segments)
    }

    /// Copies the segments that may not be durable to new files, which replace the old ones after
    /// they are synced. Syncing the old files again is not enough: after a failed sync, the system
    /// may treat pages as written that are not on disk. The bytes are the same, so readers need no
    /// notice. The caller must hold the append lock.
    pub(super) fn write_again(&self) -> Result<(), Error> {
        let from = self.progress.failed.load(Ordering::Acquire).min(self.progress.known());
        let starts = segment::list(&self.folder)?;
        let first = starts.iter().rfind(|start| **start < from).or(starts.first());
        let first = first.copied().ok_or_else(|| damaged(0, "its segments are missing"))?;
        let mut walk = JournalWalk::locate(&self.folder, self.walk_context()?, first)?;
        let mut segments = vec![walk.cursor().segment.clone()];
        loop {
            let more = walk.next()?.is_some();
            let segment = &walk.cursor().segment;
            if segments.last().is_some_and(|last| last.start != segment.start) {
                segments.push(segment.clone());
            }
            if !more {
                break;
            }
        }
        let tip = walk.cursor();
        for segment in &segments {
            let last = segment.start == tip.segment.start;
            let end = if last { tip.end } else { segment.extent()?.end };
            self.replace(segment, end)?;
        }
        segment::sync_folder(&self.folder)?;
        *locked(&self.tip) = None;
        *locked(&self.place) = None;
        self.progress.failed.store(NEVER, Ordering::Release);
        self.note(tip);
        Ok(())
    }

    /// Copies a segment's bytes up to `end` to a new file, syncs it, and renames it over the
    /// segment.
    fn replace(&self, old: &JournalSegment, end: LogPosition) -> Result<(), Error> {
        let path = segment::copy_of(&old.path);
        segment::remove(&path)?;
        let copied = || {
            let mut new = segment::create_private(&path)?;
            let length = end - old.start;
            if io::copy(&mut File::open(&old.path)?.take(length), &mut new)? != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.progress.sync(&new)?;
            std::fs::rename(&path, &old.path)
        };
        copied().map_err(Error::io("write again", &old.path))
    }
}

/// Returns the error that the journal ends before a position that it had reached.
fn beyond(to: LogPosition) -> Error {
    damaged(to, "the journal ends before this position")
}
