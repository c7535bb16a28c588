//! Reads the readable records of a damaged journal, to salvage them.

use super::is_own;
use super::layout::{self, SyncMark};
use super::sync_mark::SyncMarkFile;
use crate::backend::frame::{self, FRAME_MAGIC, FrameHeader, FrameKind, HEADER_BYTES};
use crate::backend::{
    Cipher, EncryptionContext, Error, LogFrame, LogPosition, SealMode, plain_file,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Offset of the position in a frame header.
const POSITION_AT: usize = 16;

/// A piece of a salvaged journal: a record, or a range that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalPiece {
    /// A whole record, and whether a single wrong bit in it was corrected.
    Record(LogFrame, bool),
    /// A range without any readable record.
    Lost {
        /// The start of the range.
        from: LogPosition,
        /// The end of the range.
        to: LogPosition,
    },
}

/// A function that corrects bytes so that the given check accepts them, and returns whether it
/// could.
pub type BitRepair<'a> = &'a dyn Fn(&mut [u8], &dyn Fn(&[u8]) -> bool) -> bool;

/// Reads the readable records of the journal in a folder. Returns its pieces in order, and its end.
///
/// A record without a valid seal counts as unreadable. A torn tail is reported as lost only as far
/// as it is known to have been durable. Writes nothing.
pub fn rescue(
    folder: &Path,
    seals: &SealMode,
    cipher: Option<&Cipher>,
    repair: BitRepair<'_>,
) -> Result<(Vec<JournalPiece>, LogPosition), Error> {
    let mark = match SyncMarkFile::open(folder, false).and_then(|file| file.read()) {
        // There is no mark if its file, or the folder of the file, is something else.
        Err(Error::Io { source, .. }) if plain_file::is_no_file(&source) => None,
        mark => mark?,
    };
    let synced = mark.map_or(0, |mark| mark.position);
    let segments = segments_in(folder, mark, seals);
    let mut pieces = Vec::new();
    let mut end = segments.first().map_or(0, |(start, _)| *start);
    let mut durable = synced;
    for (place, (start, bytes)) in segments.iter().enumerate() {
        if *start > end {
            pieces.push(JournalPiece::Lost { from: end, to: *start });
        }
        end = end.max(*start);
        let next = segments.get(place + 1).map(|(next, _)| *next);
        // A segment is linked only when its first record, and everything before its start, is
        // durable.
        durable = durable.max(next.unwrap_or(0));
        let mut at = usize::try_from(end - start).unwrap_or(usize::MAX);
        while at < bytes.len() && next.is_none_or(|next| start + (at as u64) < next) {
            let position = start + at as u64;
            let (whole, is_corrected) = match frame(bytes, at, position, seals) {
                Some(found) => (Some(found), false),
                None => (corrected_frame(bytes, (at, position, *start), seals, repair), true),
            };
            match whole {
                Some((header, frame)) if header.kind == FrameKind::Record => {
                    durable = durable.max(header.synced);
                    at += usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
                    end = frame.end;
                    pieces.push(match shown(frame, cipher) {
                        Ok(frame) => JournalPiece::Record(frame, is_corrected),
                        // The record is whole, but was not written with this key.
                        Err(_) => JournalPiece::Lost { from: position, to: end },
                    });
                }
                Some(_) => break,
                None => {
                    let Some(found) = next_whole_frame(bytes, at + 1, *start, seals) else { break };
                    let to = start + found as u64;
                    pieces.push(JournalPiece::Lost { from: position, to });
                    (at, end) = (found, to);
                }
            }
        }
    }
    if end < durable {
        pieces.push(JournalPiece::Lost { from: end, to: durable });
        end = durable;
    }
    Ok((pieces, end))
}

/// Returns the segments in a folder with their bytes, sorted by start.
///
/// A renamed file is also recognised, because records contain their position. A renamed file is
/// used if no other file holds the same records, if it follows the segment before it, and if it has
/// no other record in place of the record of the sync mark.
fn segments_in(
    folder: &Path,
    mark: Option<SyncMark>,
    seals: &SealMode,
) -> Vec<(LogPosition, Vec<u8>)> {
    let (mut segments, mut strays, mut unread) = (BTreeMap::new(), Vec::new(), Vec::new());
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let named = layout::segment_start(name);
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) || (named.is_none() && is_own(name))
        {
            continue;
        }
        // An unreadable file is treated as empty.
        let bytes = plain_file::read_written(&entry.path()).unwrap_or_default();
        let fits = |start: &LogPosition| next_whole_frame(&bytes, 0, *start, seals).is_some();
        if let Some(start) = named.filter(fits) {
            segments.insert(start, bytes);
        } else if let Some(start) = own_start(&bytes, seals) {
            strays.push((start, bytes));
        } else if let Some(start) = named {
            unread.push((start, bytes));
        }
    }
    // Whether the file contains the record of the sync mark; `None` if there is no mark, or
    // the file begins after that record or ends before it.
    let is_own = |(start, bytes): &(LogPosition, Vec<u8>)| {
        let mark = mark.filter(|mark| *start < mark.position)?;
        let mut own = beginning(bytes, *start, seals).map(|(_, frame)| frame);
        let reached = own.find(|frame| frame.end >= mark.position)?;
        Some((reached.end, reached.hash) == (mark.position, mark.hash))
    };
    strays.retain(|stray| is_own(stray) != Some(false));
    strays.sort_by_key(|stray| is_own(stray).is_none());
    for (start, bytes) in strays {
        let before = segments.range(..=start).next_back();
        let end = before.and_then(|(from, bytes): (&LogPosition, &Vec<u8>)| {
            beginning(bytes, *from, seals).last()
        });
        let first = beginning(&bytes, start, seals).next();
        let own_end = beginning(&bytes, start, seals).last().map_or(start, |(_, last)| last.end);
        let reaches_over = segments.range(start..).next().is_some_and(|(next, _)| *next < own_end);
        let follows = match (end, first) {
            (Some((_, last)), _) if last.end > start => false,
            (Some((_, last)), Some((header, _))) if last.end == start => {
                header.previous == last.hash
            }
            _ => true,
        };
        if follows && !reaches_over {
            segments.insert(start, bytes);
        }
    }
    for (start, bytes) in unread {
        let before = segments.range(..=start).next_back();
        let covers = |(from, bytes): (&LogPosition, &Vec<u8>)| {
            beginning(bytes, *from, seals).last().is_some_and(|(_, last)| last.end > start)
        };
        if !before.is_some_and(covers) {
            segments.entry(start).or_insert(bytes);
        }
    }
    segments.into_iter().collect()
}

/// Computes the start of a segment from the position in its first whole frame.
fn own_start(bytes: &[u8], seals: &SealMode) -> Option<LogPosition> {
    let magics = bytes.windows(FRAME_MAGIC.len()).enumerate();
    magics.filter(|(_, four)| *four == FRAME_MAGIC).find_map(|(at, _)| {
        let position_bytes = bytes.get(at + POSITION_AT..)?.first_chunk();
        let position = position_bytes.map(|eight| LogPosition::from_le_bytes(*eight))?;
        let start = position.checked_sub(at as u64)?;
        frame(bytes, at, position, seals).map(|_| start)
    })
}

/// Iterates over the records at the beginning of a segment, up to the first frame that is damaged
/// or no record.
fn beginning(
    bytes: &[u8],
    start: LogPosition,
    seals: &SealMode,
) -> impl Iterator<Item = (FrameHeader, LogFrame)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (header, frame) = frame(bytes, at, start + at as u64, seals)?;
        at = at.checked_add(usize::try_from(header.frame_bytes()).ok()?)?;
        (header.kind == FrameKind::Record).then_some((header, frame))
    })
}

/// Returns the first whole records of the journal, at most `most`, as stored (encrypted or not).
/// Skips damaged parts.
#[must_use]
pub fn first_records(folder: &Path, most: usize) -> Vec<LogFrame> {
    let mut found = Vec::new();
    for (start, bytes) in segments_in(folder, None, &SealMode::Unknown) {
        let mut at = Some(0);
        while let Some(place) = at {
            if found.len() == most {
                return found;
            }
            at = match frame(&bytes, place, start + place as u64, &SealMode::Unknown) {
                Some((header, frame)) => {
                    found.extend((header.kind == FrameKind::Record).then_some(frame));
                    usize::try_from(header.frame_bytes())
                        .ok()
                        .and_then(|long| place.checked_add(long))
                }
                None => next_whole_frame(&bytes, place + 1, start, &SealMode::Unknown),
            };
            at = at.filter(|at| *at < bytes.len());
        }
    }
    found
}

/// Decrypts the payload of a record, if there is a cipher.
fn shown(frame: LogFrame, cipher: Option<&Cipher>) -> Result<LogFrame, Error> {
    let Some(cipher) = cipher else { return Ok(frame) };
    let payload = cipher.open(EncryptionContext::Record(frame.position), &frame.payload)?;
    Ok(LogFrame { payload, ..frame })
}

/// Returns the frame at this offset if it is whole and its seal is valid.
fn frame(
    bytes: &[u8],
    at: usize,
    position: LogPosition,
    seals: &SealMode,
) -> Option<(FrameHeader, LogFrame)> {
    let rest = bytes.get(at..)?;
    let header = FrameHeader::decode(rest.first_chunk::<HEADER_BYTES>()?, position).ok()?;
    let whole = rest.get(..HEADER_BYTES + header.length)?;
    let hash = frame::verify(whole, seals).ok()?;
    let payload = whole.get(HEADER_BYTES..)?.to_vec();
    let end = position + header.frame_bytes();
    Some((header, LogFrame { position, end, hash, payload }))
}

/// Returns the offset of the first whole frame at or after `from`.
fn next_whole_frame(
    bytes: &[u8],
    from: usize,
    start: LogPosition,
    seals: &SealMode,
) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.windows(FRAME_MAGIC.len()).position(|four| four == FRAME_MAGIC)?;
        if frame(bytes, at, start + at as u64, seals).is_some() {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the frame at this offset after correcting one wrong bit. The frame is assumed to end, in
/// turn, at the next whole frame, at its declared length, and at the end of the file.
fn corrected_frame(
    bytes: &[u8],
    (at, position, start): (usize, LogPosition, LogPosition),
    seals: &SealMode,
    repair: BitRepair<'_>,
) -> Option<(FrameHeader, LogFrame)> {
    let declared_end =
        bytes.get(at + 4..at + 8)?.first_chunk().map(|four| u32::from_le_bytes(*four));
    let declared_end =
        declared_end.and_then(|length| at.checked_add(HEADER_BYTES + length as usize));
    let ends = [next_whole_frame(bytes, at + 1, start, seals), declared_end, Some(bytes.len())];
    for end in ends.into_iter().flatten() {
        let Some(mut copy) = bytes.get(at..end).map(<[u8]>::to_vec) else { continue };
        let is_whole = |bytes: &[u8]| {
            frame(bytes, 0, position, seals).is_some_and(|(header, _)| {
                header.frame_bytes() as usize == bytes.len() || header.kind == FrameKind::End
            })
        };
        if repair(&mut copy, &is_whole) {
            return frame(&copy, 0, position, seals);
        }
    }
    None
}
