//! A copy of a journal that is in use.

use super::mark::MarkFile;
use super::{Journal, layout, lock, segment};
use crate::backend::{Error, Log, Position, Seals, files};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// So much is read at once.
const READ_BYTES: u64 = 4 << 20;

/// Copies what the journal in `from` holds from a position on into the folder `to`, which is made, durably. Gives where it
/// ends. Every record is checked on the way.
///
/// # Errors
/// [`Error::Gone`] if segments were removed meanwhile; [`Error::Damaged`]; [`Error::Io`].
pub fn copy(from: &Path, to: &Path, position: Position) -> Result<Position, Error> {
    // The mark lags; read first, it does not lead what is copied.
    let mark = MarkFile::open(from, false)?.read()?;
    // Seals are copied as they are: whether they are right is for whoever has the key.
    let journal = Journal::open_read_only(from)?.with_seals(Seals::Unknown, None);
    let start = journal.start()?;
    let mut end = position.max(start);
    if start > position {
        return Err(Error::Gone { position, start });
    }
    loop {
        let tail = journal.read(end, READ_BYTES)?;
        if tail.frames.is_empty() {
            break;
        }
        end = tail.end;
    }
    files::create_private_folder(to).map_err(Error::io("create", to))?;
    let lock = to.join(lock::NAME);
    files::create_private(&lock).map_err(Error::io("create", &lock))?;
    let starts = segment::list(from)?;
    for (place, start) in starts.iter().enumerate() {
        let next = starts.get(place + 1).copied().unwrap_or(end);
        if next <= position || *start >= end {
            continue;
        }
        let name = layout::segment_name(*start);
        // A segment that was gone on from ends with a frame that names the next one.
        let bytes = if next < end { u64::MAX } else { end - start };
        let copied = part(&from.join(&name), &to.join(&name), bytes);
        match copied {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Gone { position, start: next });
            }
            copied => copied.map_err(Error::io("copy", &from.join(&name)))?,
        }
    }
    let copy = MarkFile::open(to, true)?;
    if let Some(mark) = mark.filter(|mark| mark.position <= end) {
        copy.note(&mark);
    }
    files::sync_folder(to)?;
    Ok(end)
}

/// The first bytes of a file, durably, for its owner only.
fn part(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    let mut source = File::open(from)?.take(bytes);
    let mut copy = files::create_private(to)?;
    if io::copy(&mut source, &mut copy)? < bytes && bytes < u64::MAX {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    copy.sync_all()
}
