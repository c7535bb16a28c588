//! Preallocation: durable zeros after the end of the journal.
//!
//! Syncing a record that made its file longer also commits the new length to the file system's own
//! journal, which is shared with every other process that writes to the disk. Syncing a record
//! written over zeros writes only the bytes of the record.

use super::scan::JournalCursor;
use super::{Journal, locked, segment, sync};
use crate::backend::files::PIECE_BYTES;
use crate::backend::{Error, LogPosition};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Pause after each piece of zeros ([`PIECE_BYTES`]) written in the background, so that concurrent
/// syncs of records can proceed.
const PAUSE: Duration = Duration::from_micros(100);
/// Zeros written after a record that ends beyond the preallocated room. The sync of that record
/// takes longer; the next records are as fast as in preallocated room.
static EXTRA_ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// The preallocated file for the next segment. It has no segment name, because it contains only
/// zeros.
pub(super) const NEXT_SEGMENT_FILE: &str = "next.room";

impl Journal {
    /// Adds `bytes` durable zeros to the current segment, unless at least half of that follows the
    /// end already. Later appends through this handle add more when the room ends. All zeros are
    /// synced at once: a concurrent sync of a record waits for that, but writing in pieces would
    /// delay several syncs.
    pub(super) fn write_zeros(&self, from: LogPosition, bytes: u64) -> Result<(), Error> {
        self.keeps_room.store(true, Ordering::Relaxed);
        let zeros = vec![0; bytes as usize];
        let held = self.writer("make room in")?.acquire(sync::LOCK_TIMEOUT)?;
        let (_, tip) = self.catch_up(from)?;
        let end = tip.segment.extent()?.end;
        if end - tip.end >= bytes / 2 {
            return Ok(());
        }
        tip.segment.write_or_cut(end, &zeros)?;
        drop(held);
        self.flush(&tip)
    }

    /// Writes a file of zeros for the next segment. Meanwhile, appends continue in the current
    /// segment. Later appends through this handle add more when the room ends.
    pub(super) fn write_next(&self, bytes: u64) -> Result<(), Error> {
        self.keeps_room.store(true, Ordering::Relaxed);
        let path = self.next_path();
        let lock = self.writer("make room in")?.acquire(sync::LOCK_TIMEOUT)?;
        // An existing file was left by a crash, or belongs to another process, which then rotates
        // without it.
        segment::remove(&path)?;
        let file = segment::create_private(&path).map_err(Error::io("create", &path))?;
        drop(lock);
        let zeros = vec![0; PIECE_BYTES as usize];
        for piece in 0..bytes.div_ceil(PIECE_BYTES) {
            let written = file.write_all_at(&zeros, piece * PIECE_BYTES);
            if let Err(error) = written.and_then(|()| self.progress.sync(&file)) {
                // The zeros would take up a full disk until the next rotation. The name may belong
                // to another process by now.
                let _ = file.set_len(0);
                return Err(Error::io("write", &path)(error));
            }
            thread::park_timeout(PAUSE);
        }
        *locked(&self.next) = Some(file);
        Ok(())
    }

    /// Writes more zeros after `bytes` bytes that are about to be appended, if these end beyond the
    /// room and room was preallocated through this handle. The sync of the records makes the zeros
    /// durable. The caller must hold the append lock.
    pub(super) fn keep_room(&self, tip: &JournalCursor, bytes: usize) {
        // For more bytes, writing them dominates the cost.
        let is_worth_it = bytes <= EXTRA_ZEROS.len() / 2;
        let end = tip.end + bytes as u64;
        if is_worth_it
            && self.keeps_room.load(Ordering::Relaxed)
            && let Err(error) = tip.segment.extend_room(end, &EXTRA_ZEROS)
        {
            // The only consequence is that syncs take longer.
            tracing::debug!(%error, "no more room was made in the journal");
        }
    }

    pub(super) fn next_path(&self) -> PathBuf {
        self.folder.join(NEXT_SEGMENT_FILE)
    }

    /// Returns the file of zeros that this process wrote, unless it was removed or replaced. The
    /// caller must hold the append lock.
    pub(super) fn take_next(&self) -> Option<File> {
        let file = locked(&self.next).take()?;
        let (own, there) = (file.metadata().ok()?, self.next_path().symlink_metadata().ok()?);
        ((own.dev(), own.ino()) == (there.dev(), there.ino())).then_some(file)
    }

    /// Removes all preallocated room: truncates the last segment after its last record, and removes
    /// the file for the next one. Later appends through this handle add none.
    pub(super) fn cut_zeros(&self, from: LogPosition) -> Result<(), Error> {
        self.keeps_room.store(false, Ordering::Relaxed);
        let _held = self.writer("give back room of")?.acquire(sync::LOCK_TIMEOUT)?;
        *locked(&self.next) = None;
        segment::remove(&self.next_path())?;
        let (_, tip) = self.catch_up(from)?;
        if tip.segment.extent()?.end > tip.end { tip.segment.cut(tip.end) } else { Ok(()) }
    }
}
