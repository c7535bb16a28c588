//! Room behind the end: zeros that are on the disk already.
//!
//! To sync a record that made its file longer, the file system commits the new length to a log of its own, and shares
//! that log with whoever else is writing to the disk. To sync a record written over zeros it writes the record's bytes
//! and nothing else.

use super::{Journal, sync};
use crate::backend::{Error, Position};

/// So many zeros are written at once: whoever syncs a record meanwhile waits for them.
const PIECE_BYTES: u64 = 128 << 10;

impl Journal {
    /// Sees to it that there are at least half of so many zeros behind the end, durably. The append lock is let go
    /// between pieces.
    pub(super) fn write_zeros(&self, from: Position, bytes: u64) -> Result<(), Error> {
        let lock = self.writer("make room in")?;
        let mut enough = bytes / 2;
        let mut from = from;
        loop {
            let held = lock.acquire(sync::LOCK_TIMEOUT)?;
            let (_, tip) = self.catch_up(from)?;
            from = tip.end;
            let end = tip.segment.extent()?.end;
            if end - tip.end >= enough {
                return Ok(());
            }
            tip.segment.write_or_cut(end, &vec![0; PIECE_BYTES as usize])?;
            drop(held);
            self.flush(&tip)?;
            enough = bytes;
        }
    }

    /// Ends the last segment's file where its records end.
    pub(super) fn cut_zeros(&self, from: Position) -> Result<(), Error> {
        let _held = self.writer("give back room of")?.acquire(sync::LOCK_TIMEOUT)?;
        let (_, tip) = self.catch_up(from)?;
        if tip.segment.extent()?.end > tip.end { tip.segment.cut(tip.end) } else { Ok(()) }
    }
}
