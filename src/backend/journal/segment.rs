//! Segments as files: made private, found by name, read at an offset.

use super::{held, layout};
pub(crate) use crate::backend::files::{
    create_private, create_private_folder, remove, remove_large, sync_folder,
};
use crate::backend::{Error, LogPosition};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Read at a time, in bytes.
const WINDOW_BYTES: u64 = 64 << 10;
/// How the name of a copy ends.
const COPY: &str = "new";

/// An open segment.
#[derive(Debug)]
pub(crate) struct JournalSegment {
    /// The position of its first byte.
    pub(crate) start: LogPosition,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) file: File,
    /// Where nothing but zeros was seen.
    zeros: Mutex<Range<LogPosition>>,
}

/// How a segment's file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentExtent {
    /// Where its bytes end.
    pub(crate) end: LogPosition,
    /// Whether it still has its name; without it another file took its place, or none.
    pub(crate) named: bool,
}

impl JournalSegment {
    fn new(start: LogPosition, path: PathBuf, file: File) -> Self {
        Self { start, path, file, zeros: Mutex::default() }
    }

    /// A segment in a file of zeros.
    pub(crate) fn in_room(start: LogPosition, path: PathBuf, file: File) -> Result<Self, Error> {
        let segment = Self::new(start, path, file);
        *held(&segment.zeros) = start..segment.extent()?.end;
        Ok(segment)
    }

    /// Opens a segment, for writing too if asked.
    pub(crate) fn open(folder: &Path, start: LogPosition, write: bool) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = OpenOptions::new().read(true).write(write).open(&path)?;
        Ok(Self::new(start, path, file))
    }

    /// Makes a new, empty segment; there must be none of that name.
    pub(crate) fn create(folder: &Path, start: LogPosition) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = create_private(&path)?;
        Ok(Self::new(start, path, file))
    }

    /// How far it reaches now.
    pub(crate) fn extent(&self) -> Result<SegmentExtent, Error> {
        let (length, names) = size(&self.file).map_err(Error::io("look at", &self.path))?;
        Ok(SegmentExtent { end: self.start.saturating_add(length), named: names > 0 })
    }

    /// Writes all bytes at a position, or leaves the file ending there.
    pub(crate) fn write_or_cut(&self, position: LogPosition, bytes: &[u8]) -> Result<(), Error> {
        let offset = position - self.start;
        self.file.write_all_at(bytes, offset).map_err(|source| {
            // What a cut that fails leaves behind is a torn tail: the next appender's business.
            let _ = self.file.set_len(offset);
            Error::io("append to", &self.path)(source)
        })
    }

    /// Writes zeros behind a position that the file does not reach.
    pub(crate) fn extend_room(&self, position: LogPosition, zeros: &[u8]) -> Result<(), Error> {
        if held(&self.zeros).end >= position || self.extent()?.end >= position {
            return Ok(());
        }
        self.write_or_cut(position, zeros)?;
        *held(&self.zeros) = position..position + zeros.len() as u64;
        Ok(())
    }

    /// Has the system begin to write these bytes to the disk, so that the sync that must come yet takes less. It makes nothing
    /// durable.
    pub(crate) fn write_out(&self, position: LogPosition, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            // Linux writes out first what it is told to forget.
            let (offset, bytes) = (position - self.start, std::num::NonZero::new(bytes));
            let _ = rustix::fs::fadvise(&self.file, offset, bytes, rustix::fs::Advice::DontNeed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (position, bytes);
    }

    /// Whether no frame has been begun at a position: only zeros stand there, or nothing.
    pub(crate) fn is_blank(&self, position: LogPosition) -> Result<bool, Error> {
        let mut bytes = [0; layout::HEADER_BYTES];
        let offset = position - self.start;
        let count = self.file.read_at(&mut bytes, offset).map_err(Error::io("read", &self.path))?;
        Ok(bytes[..count].iter().all(|byte| *byte == 0))
    }

    /// Whether only zeros stand from a position on: room that was made for records to come. Where they were seen before, only the
    /// beginning is looked at again: whoever writes there writes from the beginning. Bytes behind a gap are left by a crash
    /// of the system, and no process outlives that.
    pub(crate) fn is_room(&self, position: LogPosition) -> Result<bool, Error> {
        if !self.is_blank(position)? {
            return Ok(false);
        }
        let mut zeros = held(&self.zeros);
        let mut seen = if (zeros.start..=zeros.end).contains(&position) {
            zeros.clone()
        } else {
            position..position
        };
        let end = self.extent()?.end;
        let mut bytes = if seen.end < end { vec![0; WINDOW_BYTES as usize] } else { Vec::new() };
        while seen.end < end {
            let count = match self.file.read_at(&mut bytes, seen.end - self.start) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("read", &self.path)(error)),
            };
            // All of them together, not up to the first that is another: many go at once then.
            if bytes[..count].iter().fold(0, |all, byte| all | byte) != 0 {
                return Ok(false);
            }
            seen.end += count as u64;
        }
        *zeros = seen;
        Ok(true)
    }

    /// Ends the file at a position.
    pub(crate) fn cut(&self, position: LogPosition) -> Result<(), Error> {
        self.file.set_len(position - self.start).map_err(Error::io("cut", &self.path))
    }
}

/// How many bytes a file has, and how many names. No times are asked for: Linux notes that somebody knows a file's times and
/// from then on keeps them exact, so that the next write changes them, and the sync behind it writes a block more.
#[cfg(target_os = "linux")]
fn size(file: &File) -> io::Result<(u64, u64)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    match statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::SIZE | StatxFlags::NLINK) {
        Ok(found) => Ok((found.stx_size, found.stx_nlink.into())),
        // Not in every sandbox.
        Err(_) => file.metadata().map(|found| (found.len(), found.nlink())),
    }
}

#[cfg(not(target_os = "linux"))]
fn size(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|found| (found.len(), found.nlink()))
}

/// A stretch of a segment in memory: what is read in pieces without reading twice.
#[derive(Debug, Default)]
pub(crate) struct SegmentWindow {
    bytes: Vec<u8>,
    begin: LogPosition,
}

impl SegmentWindow {
    /// At least `wanted` bytes from `position` on, fewer only where the file ends. The caller has
    /// checked that `wanted` is sane.
    pub(crate) fn at(
        &mut self,
        segment: &JournalSegment,
        position: LogPosition,
        wanted: usize,
    ) -> Result<&[u8], Error> {
        let held = position
            .checked_sub(self.begin)
            .and_then(|skip| usize::try_from(skip).ok())
            .and_then(|skip| self.bytes.get(skip..))
            .map_or(0, <[u8]>::len);
        if held < wanted {
            self.fill(segment, position, wanted)?;
        }
        Ok(&self.bytes[(position - self.begin) as usize..])
    }

    /// Bytes that are held. Many at its end are given away: memory for a copy of them would have to be touched first, which takes
    /// longer than to copy them.
    pub(crate) fn take(&mut self, wanted: Range<LogPosition>) -> Vec<u8> {
        let [from, to] = [wanted.start, wanted.end].map(|end| (end - self.begin) as usize);
        if to < self.bytes.len() || self.bytes.len() as u64 <= WINDOW_BYTES {
            return self.bytes[from..to].to_vec();
        }
        let mut taken = std::mem::take(&mut self.bytes);
        taken.drain(..from);
        taken
    }

    /// Forgets what was read: the segment is another one, or has changed.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }

    fn fill(
        &mut self,
        segment: &JournalSegment,
        position: LogPosition,
        wanted: usize,
    ) -> Result<(), Error> {
        let there = segment.extent()?.end.saturating_sub(position);
        let length = there.min(WINDOW_BYTES.max(wanted as u64)) as usize;
        if length > self.bytes.capacity() {
            // The system gives zeros: none are written, and nothing is moved that is not wanted any more.
            self.bytes = vec![0; length];
        } else {
            self.bytes.clear();
            self.bytes.resize(length, 0);
        }
        self.begin = position;
        let mut filled = 0;
        while filled < length {
            let offset = position - segment.start + filled as u64;
            match segment.file.read_at(&mut self.bytes[filled..], offset) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &segment.path)(error)),
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

/// The starts of all segments in a folder, ascending.
pub(crate) fn list(folder: &Path) -> Result<Vec<LogPosition>, Error> {
    let mut starts = Vec::new();
    for entry in folder.read_dir().map_err(Error::io("list", folder))? {
        let name = entry.map_err(Error::io("list", folder))?.file_name();
        starts.extend(name.to_str().and_then(layout::segment_start));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// A copy of a segment that is to take its place.
pub(super) fn copy_of(segment: &Path) -> PathBuf {
    segment.with_extension(COPY)
}

/// Removes the copies that were not finished. The caller holds the append lock, so nobody is at one.
pub(super) fn remove_copies(folder: &Path) -> Result<(), Error> {
    for entry in folder.read_dir().map_err(Error::io("list", folder))? {
        let path = entry.map_err(Error::io("list", folder))?.path();
        if path.extension().is_some_and(|ending| ending == COPY) {
            remove(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_of_a_window_is_what_stands_there_and_what_follows_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let segment = JournalSegment::create(folder.path(), 100).unwrap();
        let bytes: Vec<u8> = (0..300_000_u32).map(|place| (place % 251) as u8).collect();
        segment.file.write_all_at(&bytes, 0).unwrap();
        let mut window = SegmentWindow::default();
        for (begin, header, length) in [
            (0, 10, 1000),
            (1000, 0, 0),
            (1000, 96, 200_000),
            (201_000, 96, 65_536),
            (266_536, 1, 2),
        ] {
            let place = 100 + begin as u64;
            assert!(window.at(&segment, place, header).unwrap().len() >= header);
            assert!(window.at(&segment, place, length).unwrap().len() >= length);
            let taken = window.take(place + header as u64..place + length.max(header) as u64);
            assert_eq!(taken, bytes[begin + header..begin + length.max(header)], "at {begin}");
        }
    }

    /// Whoever found the end of the journal read all of the room behind it, at each record of another thread or process: after a
    /// rotation 3 MB, under the append lock.
    #[test]
    fn room_that_was_seen_is_not_read_again_and_what_is_behind_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let segment = JournalSegment::create(folder.path(), 100).unwrap();
        segment.file.write_all_at(&[0; 200_000], 0).unwrap();
        assert!(segment.is_room(100).unwrap());
        // What no process that lives can meet shows what is read.
        segment.file.write_all_at(b"x", 150_000).unwrap();
        assert!(segment.is_room(100).unwrap() && segment.is_room(5_000).unwrap());
        let other = JournalSegment::open(folder.path(), 100, false).unwrap();
        assert!(!other.is_room(100).unwrap() && other.is_room(150_101).unwrap());
        // A record that was begun, and more room with something in it.
        segment.file.write_all_at(b"FRJ", 10_000).unwrap();
        assert!(!segment.is_room(10_100).unwrap());
        segment.file.write_all_at(b"x", 300_000).unwrap();
        assert!(!segment.is_room(20_000).unwrap());
        segment.cut(1_000).unwrap();
        assert!(segment.is_room(500).unwrap());
        let roomy = JournalSegment::in_room(100, segment.path, other.file).unwrap();
        assert_eq!(*held(&roomy.zeros), 100..1_000);
    }

    #[test]
    fn the_size_of_a_file_is_what_its_metadata_says_also_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = create_private(&path).unwrap();
        file.write_all_at(b"12345", 0).unwrap();
        assert_eq!(size(&file).unwrap(), (5, 1));
        std::fs::hard_link(&path, folder.path().join("b")).unwrap();
        assert_eq!(size(&file).unwrap(), (5, 2));
        remove(&path).unwrap();
        remove(&folder.path().join("b")).unwrap();
        assert_eq!(size(&file).unwrap(), (5, 0));
    }
}
