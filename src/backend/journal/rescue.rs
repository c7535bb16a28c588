//! Reading what can be read of a damaged journal.

use super::layout::{self, FRAME_MAGIC, HEADER_BYTES, Header, Kind};
use super::mark::MarkFile;
use super::segment;
use crate::backend::{Cipher, Error, Frame, Place, Position, Seals};
use std::fs;
use std::path::Path;

/// A piece of a journal, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A record that is whole; whether a single wrong bit was put right.
    Record(Frame, bool),
    /// Nothing that can be read stands from here on up to there.
    Lost {
        /// From here.
        from: Position,
        /// Up to there.
        to: Position,
    },
}

/// Puts bytes right so that they are whole, if it can.
pub type Mender<'a> = &'a dyn Fn(&mut [u8], &dyn Fn(&[u8]) -> bool) -> bool;

/// Everything that can be read of the journal in this folder, and where it ends. What was cut off by a crash, and was
/// never known to be durable, is not counted as lost; what does not bear the seal it must is. Writes nothing.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be read.
pub fn rescue(
    folder: &Path,
    seals: &Seals,
    cipher: Option<&Cipher>,
    mend: Mender<'_>,
) -> Result<(Vec<Piece>, Position), Error> {
    let synced = MarkFile::open(folder, false)?.position()?;
    let starts = segment::list(folder).unwrap_or_default();
    let mut pieces = Vec::new();
    let mut end = starts.first().copied().unwrap_or(0);
    let mut durable = synced;
    for (place, start) in starts.iter().enumerate() {
        let path = folder.join(layout::segment_name(*start));
        // A file that the disk refuses is as good as lost.
        let bytes = fs::read(&path).unwrap_or_default();
        if *start > end {
            pieces.push(Piece::Lost { from: end, to: *start });
        }
        end = end.max(*start);
        let next = starts.get(place + 1).copied();
        // A segment that was begun was linked with a durable first record, and what it ends before is durable.
        durable = durable.max(next.unwrap_or(0));
        let mut at = usize::try_from(end - start).unwrap_or(usize::MAX);
        while at < bytes.len() && next.is_none_or(|next| start + (at as u64) < next) {
            let position = start + at as u64;
            let (whole, mended) = match frame(&bytes, at, position, seals) {
                Some(found) => (Some(found), false),
                None => (mended(&bytes, (at, position, *start), seals, mend), true),
            };
            match whole {
                Some((header, frame)) if header.kind == Kind::Record => {
                    durable = durable.max(header.synced);
                    at += usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
                    end = frame.end;
                    pieces.push(match shown(frame, cipher) {
                        Ok(frame) => Piece::Record(frame, mended),
                        // Whole, and not written with this key.
                        Err(_) => Piece::Lost { from: position, to: end },
                    });
                }
                Some(_) => break,
                None => {
                    let Some(found) = following(&bytes, at + 1, *start, seals) else { break };
                    let to = start + found as u64;
                    pieces.push(Piece::Lost { from: position, to });
                    (at, end) = (found, to);
                }
            }
        }
    }
    if end < durable {
        pieces.push(Piece::Lost { from: end, to: durable });
        end = durable;
    }
    Ok((pieces, end))
}

/// The first records of the journal in this folder that are whole, so many at most: as they were written, encrypted or not. What is
/// damaged is passed over.
#[must_use]
pub fn first_records(folder: &Path, most: usize) -> Vec<Frame> {
    let mut found = Vec::new();
    for start in segment::list(folder).unwrap_or_default() {
        let bytes = fs::read(folder.join(layout::segment_name(start))).unwrap_or_default();
        let mut at = Some(0);
        while let Some(place) = at {
            if found.len() == most {
                return found;
            }
            at = match frame(&bytes, place, start + place as u64, &Seals::Unknown) {
                Some((header, frame)) => {
                    found.extend((header.kind == Kind::Record).then_some(frame));
                    usize::try_from(header.frame_bytes())
                        .ok()
                        .and_then(|long| place.checked_add(long))
                }
                None => following(&bytes, place + 1, start, &Seals::Unknown),
            };
            at = at.filter(|at| *at < bytes.len());
        }
    }
    found
}

/// The record with what it says.
fn shown(frame: Frame, cipher: Option<&Cipher>) -> Result<Frame, Error> {
    let Some(cipher) = cipher else { return Ok(frame) };
    let payload = cipher.open(Place::Record(frame.position), &frame.payload)?;
    Ok(Frame { payload, ..frame })
}

/// The whole frame that stands at this byte.
fn frame(bytes: &[u8], at: usize, position: Position, seals: &Seals) -> Option<(Header, Frame)> {
    let rest = bytes.get(at..)?;
    let header = Header::decode(rest.first_chunk::<HEADER_BYTES>()?, position).ok()?;
    let whole = rest.get(..HEADER_BYTES + header.length)?;
    let hash = layout::verify(whole, seals).ok()?;
    let payload = whole.get(HEADER_BYTES..)?.to_vec();
    let end = position + header.frame_bytes();
    Some((header, Frame { position, end, hash, payload }))
}

/// Where the next whole frame begins.
fn following(bytes: &[u8], from: usize, start: Position, seals: &Seals) -> Option<usize> {
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

/// The frame at this byte with one wrong bit put right: it reaches to the next whole one, to the end, or as far as it says.
fn mended(
    bytes: &[u8],
    (at, position, start): (usize, Position, Position),
    seals: &Seals,
    mend: Mender<'_>,
) -> Option<(Header, Frame)> {
    let said = bytes.get(at + 4..at + 8)?.first_chunk().map(|four| u32::from_le_bytes(*four));
    let said = said.and_then(|length| at.checked_add(HEADER_BYTES + length as usize));
    let ends = [following(bytes, at + 1, start, seals), said, Some(bytes.len())];
    for end in ends.into_iter().flatten() {
        let Some(mut copy) = bytes.get(at..end).map(<[u8]>::to_vec) else { continue };
        let is_whole = |bytes: &[u8]| {
            frame(bytes, 0, position, seals).is_some_and(|(header, _)| {
                header.frame_bytes() as usize == bytes.len() || header.kind == Kind::End
            })
        };
        if mend(&mut copy, &is_whole) {
            return frame(&copy, 0, position, seals);
        }
    }
    None
}
