//! Reading records in order over all segments, and deciding at the end whether nothing more was
//! written or something is damaged.
//!
//! A *floor* is a position below which everything is known to have been durable: the mark in
//! `SYNCED`, the marks in readable frames, and the first record of a linked segment. A flaw at or
//! above the floor is a torn tail, as a crash leaves it: it was never acknowledged. A flaw below
//! the floor is damage. A whole record with a wrong seal is never a torn tail.

use super::layout::SyncMark;
use super::segment::{self, JournalSegment, SegmentWindow};
use crate::backend::frame::{self, FRAME_MAGIC, FrameFlaw, FrameHeader, FrameKind, HEADER_BYTES};
use crate::backend::{
    Cipher, EncryptionContext, Error, IntegrityBreach, LogFrame, LogPosition, RecordHash, SealMode,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The place of a walk: an open segment, a position in it, and the hash of the record before it.
#[derive(Clone, Debug)]
pub(crate) struct JournalCursor {
    /// The segment that contains the position, or ends there.
    pub(crate) segment: Arc<JournalSegment>,
    /// The position of the next record.
    pub(crate) end: LogPosition,
    /// The hash of the record that ends there, if known.
    pub(crate) previous: Option<RecordHash>,
}

impl JournalCursor {
    /// Returns whether this cursor, which was at the end of the journal, still is.
    pub(crate) fn is_last(&self) -> Result<bool, Error> {
        let extent = self.segment.extent()?;
        let blank = || self.segment.is_blank(self.end);
        Ok(extent.named && (extent.end == self.end || (extent.end > self.end && blank()?)))
    }
}

/// What is known about a journal before it is read. The marks must be read first.
#[derive(Clone, Debug, Default)]
pub(crate) struct WalkContext {
    /// Whether segments are opened for writing.
    pub(crate) write: bool,
    /// The sync mark: how far the journal is durable.
    pub(crate) mark: Option<SyncMark>,
    /// The witness's mark: how far the journal was last seen to reach.
    pub(crate) witnessed: Option<SyncMark>,
    /// How the seals of records are checked.
    pub(crate) seals: SealMode,
    /// The cipher of the payloads, if they are encrypted.
    pub(crate) cipher: Option<Cipher>,
}

/// A walk over the records from a position on.
#[derive(Debug)]
pub(crate) struct JournalWalk {
    folder: PathBuf,
    known: WalkContext,
    cursor: JournalCursor,
    window: SegmentWindow,
    floor: LogPosition,
    /// The hash of this segment's first record, as given by the end frame of the previous segment.
    linked: Option<RecordHash>,
    /// Later segments that the walk has not reached. They may be unlinked.
    later: Vec<LogPosition>,
    state: WalkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkState {
    Walking,
    /// All whole records were read; `torn` if unreadable bytes follow them.
    Ended {
        torn: bool,
    },
}

impl JournalWalk {
    /// Starts a walk at `from`, in the segment whose name shows that it contains this position.
    pub(crate) fn locate(
        folder: &Path,
        known: WalkContext,
        from: LogPosition,
    ) -> Result<Self, Error> {
        let starts = segment::list(folder)?;
        let Some(&oldest) = starts.first() else {
            return Err(damaged(0, "its segments are missing"));
        };
        if from < oldest {
            return Err(Error::Gone { position: from, start: oldest });
        }
        let mut index = starts.partition_point(|start| *start <= from) - 1;
        let mut linked = None;
        // Only the newest segment can be one that a crash left unlinked.
        let synced = known.mark.map_or(0, |mark| mark.position);
        if index > 0 && index + 1 == starts.len() && synced <= starts[index] {
            linked = link(folder, starts[index - 1], starts[index], &known.seals)?;
            if linked.is_none() {
                index -= 1;
            }
        }
        let start = starts[index];
        let segment = JournalSegment::open_if_there(folder, start, known.write)?;
        let segment = Arc::new(segment.ok_or_else(|| missing(start))?);
        let cursor = JournalCursor { segment, end: from, previous: None };
        let mut walk = Self::resume(folder, known, cursor);
        walk.linked = linked.filter(|_| from == start);
        walk.later = starts[index + 1..].to_vec();
        Ok(walk)
    }

    /// Continues at the cursor of another walk.
    pub(crate) fn resume(folder: &Path, known: WalkContext, cursor: JournalCursor) -> Self {
        let start = cursor.segment.start;
        // Every segment but the first was linked after its first record was durable.
        let begun = if start > 0 { start + 1 } else { 0 };
        Self {
            folder: folder.to_owned(),
            cursor,
            window: SegmentWindow::default(),
            floor: begun.max(known.mark.map_or(0, |mark| mark.position)),
            known,
            linked: None,
            later: Vec::new(),
            state: WalkState::Walking,
        }
    }

    /// Requires the first record to follow the record with this hash, if given.
    pub(crate) fn expect_after(&mut self, previous: Option<RecordHash>) {
        self.cursor.previous = previous;
    }

    /// Returns the current cursor.
    pub(crate) fn cursor(&self) -> &JournalCursor {
        &self.cursor
    }

    /// Returns whether the walk ended at bytes that are not a record.
    pub(crate) fn is_torn(&self) -> bool {
        self.state == WalkState::Ended { torn: true }
    }

    /// Returns the next record; `None` at the end of the journal.
    pub(crate) fn next(&mut self) -> Result<Option<LogFrame>, Error> {
        while self.state == WalkState::Walking {
            let position = self.cursor.end;
            let parsed =
                parse(&mut self.window, &self.cursor.segment, position, &self.known.seals)?;
            let linked = parsed.and_then(|frame| match self.cursor.previous {
                Some(previous) if previous != frame.0.previous => Err(FrameFlaw::Link),
                _ => Ok(frame),
            });
            match linked {
                Err(flaw) => self.stop(flaw)?,
                Ok((header, hash, _)) if header.kind == FrameKind::Record => {
                    let end = position + header.frame_bytes();
                    let payload = self.window.take(position + HEADER_BYTES as u64..end);
                    let mut frame = LogFrame { position, end, hash, payload };
                    self.check(&frame)?;
                    if let Some(cipher) = &self.known.cipher {
                        frame.payload =
                            cipher.open(EncryptionContext::Record(position), &frame.payload)?;
                    }
                    self.cursor.end = end;
                    self.cursor.previous = Some(hash);
                    return Ok(Some(frame));
                }
                Ok((_, _, payload)) => {
                    let next = payload.try_into().expect("an end frame holds one hash");
                    self.follow(next)?;
                }
            }
        }
        Ok(None)
    }

    /// Checks a whole record against the link from the previous segment and against the marks.
    fn check(&mut self, frame: &LogFrame) -> Result<(), Error> {
        if self.linked.take().is_some_and(|linked| linked != frame.hash) {
            return Err(damaged(frame.position, "the segment is not the one that was begun here"));
        }
        let is_other = |mark: SyncMark| {
            (frame.position + 1..=frame.end).contains(&mark.position)
                && (mark.position != frame.end || mark.hash != frame.hash)
        };
        if self.known.mark.is_some_and(is_other) {
            return Err(damaged(frame.position, "the record is not the one that was synced"));
        }
        if self.known.witnessed.is_some_and(is_other) {
            return Err(replaced(frame.position));
        }
        Ok(())
    }

    /// Continues in the next segment, whose first record has this hash.
    fn follow(&mut self, first: RecordHash) -> Result<(), Error> {
        let start = self.cursor.end;
        let opened = JournalSegment::open_if_there(&self.folder, start, self.known.write)?;
        let Some(segment) = opened else {
            let oldest = segment::list(&self.folder)?.first().copied();
            return Err(match oldest.filter(|oldest| *oldest > start) {
                Some(oldest) => Error::Gone { position: start, start: oldest },
                None => missing(start),
            });
        };
        self.cursor.segment = Arc::new(segment);
        self.window.clear();
        self.linked = Some(first);
        self.later.retain(|later| *later > start);
        self.floor = self.floor.max(start + 1);
        Ok(())
    }

    /// Ends the walk before a flaw, or returns an error if the flaw is damage.
    fn stop(&mut self, flaw: FrameFlaw) -> Result<(), Error> {
        let at = self.cursor.end;
        let extent = self.cursor.segment.extent()?;
        // A file that was removed or replaced proves nothing about the journal.
        if !extent.named {
            return Err(damaged(at, "the segment was removed or replaced"));
        }
        // A crash cannot leave a whole record with a wrong seal.
        if let Some(breach) = breach_of(flaw) {
            return Err(Error::Breach { breach, what: format!("at position {at} {flaw}") });
        }
        let wrong = || damaged(at, &flaw.to_string());
        if flaw == FrameFlaw::SealBit {
            return Err(wrong());
        }
        if let Some(seen) = self.known.witnessed.filter(|seen| at < seen.position) {
            let ends = extent.end <= at || self.cursor.segment.is_room(at)?;
            return Err(if ends { rolled_back_error(at, seen.position) } else { wrong() });
        }
        if at < self.floor || extent.end < at {
            return Err(wrong());
        }
        let torn = extent.end > at && !self.cursor.segment.is_room(at)?;
        if torn && marks(&self.cursor.segment, at + 1, &self.known.seals)? > at {
            return Err(wrong());
        }
        for &start in &self.later {
            match JournalSegment::open(&self.folder, start, false) {
                Ok(segment) if marks(&segment, start, &self.known.seals)? > at => {
                    return Err(wrong());
                }
                // A segment that was removed proves nothing.
                _ => {}
            }
        }
        self.state = WalkState::Ended { torn };
        Ok(())
    }
}

fn missing(start: LogPosition) -> Error {
    damaged(start, "the segment that starts here is missing")
}

/// Returns the greatest position that a whole frame in a segment, from `from` on, records as
/// synced; 0 if there is no frame.
fn marks(
    segment: &JournalSegment,
    from: LogPosition,
    seals: &SealMode,
) -> Result<LogPosition, Error> {
    let mut window = SegmentWindow::default();
    let (mut position, mut greatest) = (from, 0);
    loop {
        let bytes = window.at(segment, position, HEADER_BYTES)?;
        if bytes.len() < HEADER_BYTES {
            return Ok(greatest);
        }
        let begins = bytes.windows(FRAME_MAGIC.len()).position(|four| four == FRAME_MAGIC);
        let Some(skipped) = begins else {
            position += (bytes.len() - (FRAME_MAGIC.len() - 1)) as u64;
            continue;
        };
        position += skipped as u64;
        position += match parse(&mut window, segment, position, seals)? {
            Ok((header, _, _)) => {
                greatest = greatest.max(header.synced);
                header.frame_bytes()
            }
            Err(_) => 1,
        };
    }
}

/// Returns the hash of the first record of `next` from the end frame of the segment before it;
/// `None` if there is no end frame.
fn link(
    folder: &Path,
    start: LogPosition,
    next: LogPosition,
    seals: &SealMode,
) -> Result<Option<RecordHash>, Error> {
    let Some(segment) = JournalSegment::open_if_there(folder, start, false)? else {
        return Ok(None);
    };
    let mut window = SegmentWindow::default();
    Ok(match parse(&mut window, &segment, next, seals)? {
        Ok((header, _, payload)) if header.kind == FrameKind::End => payload.try_into().ok(),
        _ => None,
    })
}

type ParsedFrame<'w> = Result<(FrameHeader, RecordHash, &'w [u8]), FrameFlaw>;

/// Parses the frame at a position, without checking it against its neighbours.
fn parse<'w>(
    window: &'w mut SegmentWindow,
    segment: &JournalSegment,
    position: LogPosition,
    seals: &SealMode,
) -> Result<ParsedFrame<'w>, Error> {
    let bytes = window.at(segment, position, HEADER_BYTES)?;
    let Some(head) = bytes.first_chunk() else {
        return Ok(Err(if bytes.is_empty() { FrameFlaw::Missing } else { FrameFlaw::Short }));
    };
    let header = match FrameHeader::decode(head, position) {
        Ok(header) => header,
        Err(flaw) => return Ok(Err(flaw)),
    };
    let whole = HEADER_BYTES + header.length;
    let bytes = window.at(segment, position, whole)?;
    let Some(frame) = bytes.get(..whole) else { return Ok(Err(FrameFlaw::Short)) };
    Ok(frame::verify(frame, seals).map(|hash| (header, hash, &frame[HEADER_BYTES..])))
}

/// Returns the breach that a flaw shows, if only a writer without the key can have caused it.
pub(crate) const fn breach_of(flaw: FrameFlaw) -> Option<IntegrityBreach> {
    match flaw {
        FrameFlaw::Seal => Some(IntegrityBreach::Altered),
        FrameFlaw::Unsealed => Some(IntegrityBreach::Unsealed),
        _ => None,
    }
}

/// Creates a damage error for a position.
pub(crate) fn damaged(position: LogPosition, reason: &str) -> Error {
    Error::Damaged { position, reason: reason.to_owned() }
}

/// Creates the error for a journal that ends before what its witness saw.
pub(crate) fn rolled_back_error(end: LogPosition, witnessed: LogPosition) -> Error {
    let what = format!(
        "the store ends at position {end}, and its witness saw it reach {witnessed}: it was cut short, or an older \
         copy was put in its place"
    );
    Error::Breach { breach: IntegrityBreach::RolledBack, what }
}

/// Creates the error for a journal with another record where the witness saw it end.
pub(crate) fn replaced(position: LogPosition) -> Error {
    let what = format!(
        "the record at position {position} is not the one that the store's witness saw: another copy of the store was \
         put in its place"
    );
    Error::Breach { breach: IntegrityBreach::Replaced, what }
}
