//! Room behind the end: zeros that are on the disk already.
//!
//! To sync a record that made its file longer, the file system commits the new length to a log of its own, and shares
//! that log with whoever else is writing to the disk. To sync a record written over zeros it writes the record's bytes
//! and nothing else.

use super::scan::JournalCursor;
use super::{Journal, held, segment, sync};
use crate::backend::files::PIECE_BYTES;
use crate::backend::{Error, LogPosition};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// Behind each piece of zeros ([`PIECE_BYTES`]) that is written aside, so that who syncs a record meanwhile has its turn.
const PAUSE: Duration = Duration::from_micros(100);
/// So many zeros are written behind a record that reaches beyond the room: one record in five or so then takes half as long again,
/// and the others as long as in room that was made before.
static EXTRA_ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// The file that the next segment will be. The name is no segment's: it holds nothing but zeros.
pub(super) const NEXT_SEGMENT_FILE: &str = "next.room";

impl Journal {
    /// Sees to it that there are at least half of so many zeros behind the end, durably. All at once: whoever syncs a record
    /// meanwhile waits, and in pieces somebody would for each.
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

    /// Writes the zeros that the next segment begins with, while nobody is held up by it: those who append go on in a
    /// file of their own.
    pub(super) fn write_next(&self, bytes: u64) -> Result<(), Error> {
        self.keeps_room.store(true, Ordering::Relaxed);
        let path = self.next_path();
        let lock = self.writer("make room in")?.acquire(sync::LOCK_TIMEOUT)?;
        // One that is there was left by a crash, or is another process's: that one's next segment begins without.
        segment::remove(&path)?;
        let file = segment::create_private(&path).map_err(Error::io("create", &path))?;
        drop(lock);
        let zeros = vec![0; PIECE_BYTES as usize];
        for piece in 0..bytes.div_ceil(PIECE_BYTES) {
            let written = file.write_all_at(&zeros, piece * PIECE_BYTES);
            written.and_then(|()| self.progress.sync(&file)).map_err(Error::io("write", &path))?;
            thread::park_timeout(PAUSE);
        }
        *held(&self.next) = Some(file);
        Ok(())
    }

    /// Makes more room behind a record of so many bytes about to be written at the end, if it reaches beyond what is left and this
    /// handle was told to keep room. The sync of the record makes it durable. The append lock must be held.
    pub(super) fn keep_room(&self, tip: &JournalCursor, bytes: usize) {
        // What a larger one costs is its own bytes.
        let is_worth_it = bytes <= EXTRA_ZEROS.len() / 2;
        let end = tip.end + bytes as u64;
        if is_worth_it
            && self.keeps_room.load(Ordering::Relaxed)
            && let Err(error) = tip.segment.extend_room(end, &EXTRA_ZEROS)
        {
            // Syncs take longer without, and that is all.
            tracing::debug!(%error, "no more room was made in the journal");
        }
    }

    pub(super) fn next_path(&self) -> PathBuf {
        self.folder.join(NEXT_SEGMENT_FILE)
    }

    /// The file of zeros that this process has written, unless another one has taken its place. The append lock must be
    /// held.
    pub(super) fn take_next(&self) -> Option<File> {
        let file = held(&self.next).take()?;
        let (own, there) = (file.metadata().ok()?, self.next_path().symlink_metadata().ok()?);
        ((own.dev(), own.ino()) == (there.dev(), there.ino())).then_some(file)
    }

    /// Ends the last segment's file where its records end, and keeps no room from then on.
    pub(super) fn cut_zeros(&self, from: LogPosition) -> Result<(), Error> {
        self.keeps_room.store(false, Ordering::Relaxed);
        let _held = self.writer("give back room of")?.acquire(sync::LOCK_TIMEOUT)?;
        *held(&self.next) = None;
        segment::remove(&self.next_path())?;
        let (_, tip) = self.catch_up(from)?;
        if tip.segment.extent()?.end > tip.end { tip.segment.cut(tip.end) } else { Ok(()) }
    }
}
