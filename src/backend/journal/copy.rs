//! Copies a journal that is in use.

use super::segment::{self, JournalSegment};
use super::sync_mark::SyncMarkFile;
use super::{Journal, layout, lock};
use crate::backend::{Error, LogPosition, SealMode, WriteAheadLog, files};
use std::io::{self, Read};
use std::path::Path;

/// Maximum number of bytes per read.
const READ_BYTES: u64 = 4 << 20;

/// Durably copies the journal in `from` into the new folder `to`: the segment that contains
/// `position` and all later ones. Returns the end of the copy. Every record from the position on is
/// checked before it is copied, except for its seal.
///
/// # Errors
/// [`Error::Gone`] if segments were removed meanwhile; [`Error::Damaged`]; [`Error::Io`].
pub fn copy(from: &Path, to: &Path, position: LogPosition) -> Result<LogPosition, Error> {
    // The mark may lag behind the journal. Read first, it cannot be ahead of the copy.
    let mark = SyncMarkFile::open(from, false)?.read()?;
    // Seals are copied unchanged; only a holder of the key can check them.
    let journal = Journal::open_read_only(from)?.with_seals(SealMode::Unknown, None);
    let mut end = position;
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
    for (start, next) in between(&segment::list(from)?, position, end)? {
        let name = layout::segment_name(start);
        // A segment that has a successor ends with a frame that names it, so all of it is copied.
        let bytes = if next < end { u64::MAX } else { end - start };
        let copied = JournalSegment::open(from, start, false)
            .and_then(|segment| part(&segment, &to.join(&name), bytes));
        match copied {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Gone { position, start: next });
            }
            copied => copied.map_err(Error::io("copy", &from.join(&name)))?,
        }
    }
    let copy = SyncMarkFile::open(to, true)?;
    if let Some(mark) = mark.filter(|mark| mark.position <= end) {
        copy.note(&mark);
    }
    files::sync_folder(to)?;
    Ok(end)
}

/// Returns the segments that overlap the range, each with the start of its successor. Fails if the
/// segment with the beginning of the range was removed.
fn between(
    starts: &[LogPosition],
    position: LogPosition,
    end: LogPosition,
) -> Result<impl Iterator<Item = (LogPosition, LogPosition)>, Error> {
    if let Some(start) = starts.first().copied().filter(|start| *start > position) {
        return Err(Error::Gone { position, start });
    }
    let nexts = starts.iter().skip(1).copied().chain([end]);
    let segments = starts.iter().copied().zip(nexts);
    Ok(segments.filter(move |(start, next)| *next > position && *start < end))
}

/// Durably copies the first bytes of a segment to a private file.
fn part(segment: &JournalSegment, to: &Path, bytes: u64) -> io::Result<()> {
    let mut copy = files::create_private(to)?;
    let copied = io::copy(&mut (&segment.file).take(bytes), &mut copy)?;
    // A segment that was removed meanwhile is truncated in pieces, so the copy may be incomplete.
    if !segment.extent().map_err(io::Error::other)?.named {
        return Err(io::ErrorKind::NotFound.into());
    }
    if copied < bytes && bytes < u64::MAX {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    copy.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: a backup during the publication of a generation took the remaining segments
    /// for the whole journal and reported damage: the first segment had been removed after it was
    /// read and before the segments were listed.
    #[test]
    fn segments_from_a_position_before_the_first_one_are_reported_as_removed() {
        let removed = between(&[200, 300], 100, 400).map(Iterator::collect::<Vec<_>>);
        assert!(matches!(removed, Err(Error::Gone { position: 100, start: 200 })), "{removed:?}");
    }

    #[test]
    fn copying_a_segment_that_is_removed_meanwhile_reports_that_it_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let segment = JournalSegment::create(folder.path(), 0).unwrap();
        std::fs::write(&segment.path, vec![1; 300_000]).unwrap();
        files::remove_large(&segment.path).unwrap();
        let error = part(&segment, &folder.path().join("to"), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_segments_between_two_positions_are_those_that_hold_a_part_of_it() {
        let parts =
            |position, end| between(&[0, 100, 200], position, end).unwrap().collect::<Vec<_>>();
        assert_eq!(parts(0, 250), [(0, 100), (100, 200), (200, 250)]);
        assert_eq!(parts(150, 250), [(100, 200), (200, 250)]);
        assert_eq!(parts(100, 200), [(100, 200)]);
        assert_eq!(parts(200, 200), []);
    }
}
