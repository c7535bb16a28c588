//! Segments as files: made private, found by name, read at an offset.

use super::layout;
pub(crate) use crate::backend::files::{
    create_private, create_private_folder, remove, sync_folder,
};
use crate::backend::{Error, Position};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Read at a time, in bytes.
const WINDOW_BYTES: u64 = 64 << 10;
/// How the name of a copy ends.
const COPY: &str = "new";

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The position of its first byte.
    pub(crate) start: Position,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) file: File,
}

/// How a segment's file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where its bytes end.
    pub(crate) end: Position,
    /// Whether it still has its name; without it another file took its place, or none.
    pub(crate) named: bool,
}

impl Segment {
    /// Opens a segment, for writing too if asked.
    pub(crate) fn open(folder: &Path, start: Position, write: bool) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = OpenOptions::new().read(true).write(write).open(&path)?;
        Ok(Self { start, path, file })
    }

    /// Makes a new, empty segment; there must be none of that name.
    pub(crate) fn create(folder: &Path, start: Position) -> io::Result<Self> {
        let path = folder.join(layout::segment_name(start));
        let file = create_private(&path)?;
        Ok(Self { start, path, file })
    }

    /// How far it reaches now.
    pub(crate) fn extent(&self) -> Result<Extent, Error> {
        let (length, names) = size(&self.file).map_err(Error::io("look at", &self.path))?;
        Ok(Extent { end: self.start.saturating_add(length), named: names > 0 })
    }

    /// Writes all bytes at a position, or leaves the file ending there.
    pub(crate) fn write_or_cut(&self, position: Position, bytes: &[u8]) -> Result<(), Error> {
        let offset = position - self.start;
        self.file.write_all_at(bytes, offset).map_err(|source| {
            // What a cut that fails leaves behind is a torn tail: the next appender's business.
            let _ = self.file.set_len(offset);
            Error::io("append to", &self.path)(source)
        })
    }

    /// Whether no frame has been begun at a position: only zeros stand there, or nothing.
    pub(crate) fn is_blank(&self, position: Position) -> Result<bool, Error> {
        let mut bytes = [0; layout::HEADER_BYTES];
        let offset = position - self.start;
        let count = self.file.read_at(&mut bytes, offset).map_err(Error::io("read", &self.path))?;
        Ok(bytes[..count].iter().all(|byte| *byte == 0))
    }

    /// Whether only zeros stand from a position on: room that was made for records to come.
    pub(crate) fn is_room(&self, position: Position) -> Result<bool, Error> {
        if !self.is_blank(position)? {
            return Ok(false);
        }
        let mut bytes = vec![0; WINDOW_BYTES as usize];
        let mut offset = position - self.start;
        loop {
            let count = match self.file.read_at(&mut bytes, offset) {
                Ok(0) => return Ok(true),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("read", &self.path)(error)),
            };
            if bytes[..count].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += count as u64;
        }
    }

    /// Ends the file at a position.
    pub(crate) fn cut(&self, position: Position) -> Result<(), Error> {
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
pub(crate) struct Window {
    bytes: Vec<u8>,
    begin: Position,
}

impl Window {
    /// At least `wanted` bytes from `position` on, fewer only where the file ends. The caller has
    /// checked that `wanted` is sane.
    pub(crate) fn at(
        &mut self,
        segment: &Segment,
        position: Position,
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

    /// Forgets what was read: the segment is another one, or has changed.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }

    fn fill(&mut self, segment: &Segment, position: Position, wanted: usize) -> Result<(), Error> {
        let there = segment.extent()?.end.saturating_sub(position);
        let length = there.min(WINDOW_BYTES.max(wanted as u64)) as usize;
        self.bytes.clear();
        self.bytes.resize(length, 0);
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
pub(crate) fn list(folder: &Path) -> Result<Vec<Position>, Error> {
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
