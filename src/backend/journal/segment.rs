//! Segment files: created private, found by name, read at an offset.

use super::{layout, locked};
use crate::backend::files::if_there;
pub(crate) use crate::backend::files::{
    create_private, create_private_folder, entries, remove, remove_large, sync_folder,
};
use crate::backend::frame::HEADER_BYTES;
use crate::backend::{Error, LogPosition};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Minimum number of bytes per read.
const WINDOW_BYTES: u64 = 64 << 10;
/// The file extension of a copy that will replace a segment.
const COPY: &str = "new";

/// An open segment.
#[derive(Debug)]
pub(crate) struct JournalSegment {
    /// The position of its first byte.
    pub(crate) start: LogPosition,
    /// The path of its file.
    pub(crate) path: PathBuf,
    /// Its open file.
    pub(crate) file: File,
    /// A range that is known to contain only zeros.
    zeros: Mutex<Range<LogPosition>>,
}

/// The current size and state of a segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentExtent {
    /// The position at which the file ends.
    pub(crate) end: LogPosition,
    /// Whether the file still has its name; otherwise it was removed or replaced.
    pub(crate) named: bool,
}

impl JournalSegment {
    fn new(start: LogPosition, path: PathBuf, file: File) -> Self {
        Self { start, path, file, zeros: Mutex::default() }
    }

    /// Creates a segment in a preallocated file of zeros.
    pub(crate) fn in_room(start: LogPosition, path: PathBuf, file: File) -> Result<Self, Error> {
        let segment = Self::new(start, path, file);
        *locked(&segment.zeros) = start..segment.extent()?.end;
        Ok(segment)
    }

    /// Opens a segment, optionally for writing.
    pub(crate) fn open(folder: &Path, start: LogPosition, write: bool) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = OpenOptions::new().read(true).write(write).open(&path)?;
        Ok(Self::new(start, path, file))
    }

    /// Opens a segment, optionally for writing; `None` if it is missing.
    pub(crate) fn open_if_there(
        folder: &Path,
        start: LogPosition,
        write: bool,
    ) -> Result<Option<Self>, Error> {
        if_there(Self::open(folder, start, write))
            .map_err(Error::io("open", &folder.join(layout::segment_name(start))))
    }

    /// Creates a new, empty segment; fails if the name exists.
    pub(crate) fn create(folder: &Path, start: LogPosition) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = create_private(&path)?;
        Ok(Self::new(start, path, file))
    }

    /// Returns the current extent of the file.
    pub(crate) fn extent(&self) -> Result<SegmentExtent, Error> {
        let (length, names) = size(&self.file).map_err(Error::io("look at", &self.path))?;
        Ok(SegmentExtent { end: self.start.saturating_add(length), named: names > 0 })
    }

    /// Writes all bytes at a position. If that fails, truncates the file at the position.
    pub(crate) fn write_or_cut(&self, position: LogPosition, bytes: &[u8]) -> Result<(), Error> {
        let offset = position - self.start;
        self.file.write_all_at(bytes, offset).map_err(|source| {
            // If truncating fails too, the rest is a torn tail, which the next writer cuts.
            let _ = self.file.set_len(offset);
            Error::io("append to", &self.path)(source)
        })
    }

    /// Writes zeros from a position on, unless the file reaches the position already. The caller
    /// then writes a record that ends at the position.
    pub(crate) fn extend_room(&self, position: LogPosition, zeros: &[u8]) -> Result<(), Error> {
        if locked(&self.zeros).end >= position || self.extent()?.end >= position {
            return Ok(());
        }
        self.write_or_cut(position, zeros)?;
        *locked(&self.zeros) = position..position + zeros.len() as u64;
        Ok(())
    }

    /// Asks the system to start writing these bytes to disk, so that the following sync takes less
    /// time. It makes nothing durable.
    pub(crate) fn write_out(&self, position: LogPosition, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            // For dirty pages, Linux starts writing them out on this advice.
            let (offset, bytes) = (position - self.start, std::num::NonZero::new(bytes));
            let _ = rustix::fs::fadvise(&self.file, offset, bytes, rustix::fs::Advice::DontNeed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (position, bytes);
    }

    /// Returns whether no frame begins at a position: there are only zeros, or nothing.
    pub(crate) fn is_blank(&self, position: LogPosition) -> Result<bool, Error> {
        let mut bytes = [0; HEADER_BYTES];
        let offset = position - self.start;
        let count = self.file.read_at(&mut bytes, offset).map_err(Error::io("read", &self.path))?;
        Ok(bytes[..count].iter().all(|byte| *byte == 0))
    }

    /// Returns whether only zeros follow a position: preallocated room for records. Of a range that
    /// is known to have only zeros, only the beginning is read again, because the next record
    /// begins there. Only a crash of the system can leave other bytes after a gap, and this process
    /// would not survive the crash.
    pub(crate) fn is_room(&self, position: LogPosition) -> Result<bool, Error> {
        if !self.is_blank(position)? {
            return Ok(false);
        }
        let mut zeros = locked(&self.zeros);
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
            // Combines all bytes without an early exit, which lets the compiler vectorise the loop.
            if bytes[..count].iter().fold(0, |all, byte| all | byte) != 0 {
                return Ok(false);
            }
            seen.end += count as u64;
        }
        *zeros = seen;
        Ok(true)
    }

    /// Truncates the file at a position.
    pub(crate) fn cut(&self, position: LogPosition) -> Result<(), Error> {
        self.file.set_len(position - self.start).map_err(Error::io("cut", &self.path))
    }
}

/// Returns the size of a file in bytes and its number of names. The call does not request the
/// timestamps of the file: after such a request, Linux keeps finer timestamps for the file. Then
/// the next write changes them, and the sync of the write writes one more block.
#[cfg(target_os = "linux")]
fn size(file: &File) -> io::Result<(u64, u64)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    match statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::SIZE | StatxFlags::NLINK) {
        Ok(found) => Ok((found.stx_size, found.stx_nlink.into())),
        // `statx` is not allowed in every sandbox.
        Err(_) => file.metadata().map(|found| (found.len(), found.nlink())),
    }
}

#[cfg(not(target_os = "linux"))]
fn size(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|found| (found.len(), found.nlink()))
}

/// A part of a segment in memory, so that frames are read without reading any byte twice.
#[derive(Debug, Default)]
pub(crate) struct SegmentWindow {
    bytes: Vec<u8>,
    begin: LogPosition,
}

impl SegmentWindow {
    /// Returns at least `wanted` bytes from `position` on, fewer only at the end of the file. The
    /// caller has checked that `wanted` is reasonable.
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

    /// Returns bytes of the window. If they end where a window of more than [`WINDOW_BYTES`] ends,
    /// the buffer itself is returned, and the window is empty afterwards: to get the memory for a
    /// copy would take longer than to copy.
    pub(crate) fn take(&mut self, wanted: Range<LogPosition>) -> Vec<u8> {
        let [from, to] = [wanted.start, wanted.end].map(|end| (end - self.begin) as usize);
        if to < self.bytes.len() || self.bytes.len() as u64 <= WINDOW_BYTES {
            return self.bytes[from..to].to_vec();
        }
        let mut taken = std::mem::take(&mut self.bytes);
        taken.drain(..from);
        taken
    }

    /// Empties the window, because the segment has changed or the next read is of another segment.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }

    /// Reads at least `wanted` bytes from a position on into the window, fewer only at the end of
    /// the file.
    fn fill(
        &mut self,
        segment: &JournalSegment,
        position: LogPosition,
        wanted: usize,
    ) -> Result<(), Error> {
        let there = segment.extent()?.end.saturating_sub(position);
        let length = there.min(WINDOW_BYTES.max(wanted as u64)) as usize;
        if length > self.bytes.capacity() {
            // A fresh zeroed allocation avoids both writing zeros and moving old bytes.
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

/// Lists the positions at which the segments in a folder begin, ascending.
pub(crate) fn list(folder: &Path) -> Result<Vec<LogPosition>, Error> {
    let mut starts = Vec::new();
    for entry in entries(folder)? {
        starts.extend(entry.file_name().to_str().and_then(layout::segment_start));
    }
    starts.sort_unstable();
    Ok(starts)
}

/// Returns the path of a copy that is to replace a segment.
pub(super) fn copy_of(segment: &Path) -> PathBuf {
    segment.with_extension(COPY)
}

/// Removes unfinished copies of segments. The caller must hold the append lock, so that no copy is
/// being written.
pub(super) fn remove_copies(folder: &Path) -> Result<(), Error> {
    for entry in entries(folder)? {
        let path = entry.path();
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
    fn bytes_taken_from_a_window_are_the_bytes_of_the_segment() {
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

    /// The end of the journal is looked for under the append lock, after each record of another
    /// thread or process.
    #[test]
    fn known_zeros_are_not_read_again_but_the_bytes_after_them_are() {
        let folder = tempfile::tempdir().unwrap();
        let segment = JournalSegment::create(folder.path(), 100).unwrap();
        segment.file.write_all_at(&[0; 200_000], 0).unwrap();
        assert!(segment.is_room(100).unwrap());
        // A changed byte inside the known zeros, which cannot occur otherwise, shows what is read.
        segment.file.write_all_at(b"x", 150_000).unwrap();
        assert!(segment.is_room(100).unwrap() && segment.is_room(5_000).unwrap());
        let other = JournalSegment::open(folder.path(), 100, false).unwrap();
        assert!(!other.is_room(100).unwrap() && other.is_room(150_101).unwrap());
        // A record that was begun, and more room that is not all zeros.
        segment.file.write_all_at(b"FRJ", 10_000).unwrap();
        assert!(!segment.is_room(10_100).unwrap());
        segment.file.write_all_at(b"x", 300_000).unwrap();
        assert!(!segment.is_room(20_000).unwrap());
        segment.cut(1_000).unwrap();
        assert!(segment.is_room(500).unwrap());
        let roomy = JournalSegment::in_room(100, segment.path, other.file).unwrap();
        assert_eq!(*locked(&roomy.zeros), 100..1_000);
    }

    #[test]
    fn the_size_and_link_count_of_an_open_file_are_read_even_without_a_link() {
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
