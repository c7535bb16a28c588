//! The journal: a [`WriteAheadLog`] in a folder of append-only segment files, shared by many processes.
//!
//! A writer takes the append lock, reads what came since, writes one frame, lets go, and only then
//! syncs: so eight processes share one disk sync instead of queueing for eight. Readers take no
//! lock at all. The bytes are specified in `docs/format.md`.
//!
//! * `layout`: every byte, pure.
//! * `segment`, `mark`, `lock`: the files of the folder.
//! * `scan`: reading, and what is a torn tail and what is damage.
//! * `append`, `sync`, `rotate`: the three ways to change it.
//! * `witness`: what the journal was seen to reach, noted outside the store.
//! * `room`: zeros behind the end, so that a sync need not make a longer file durable too.

mod append;
mod copy;
mod layout;
mod lock;
mod preallocation;
mod rescue;
mod reseal;
mod rotate;
mod scan;
mod segment;
mod sync;
mod sync_mark;
#[cfg(test)]
mod tests;
mod witness;

pub use copy::copy;
pub(crate) use layout::SyncMark;
pub use rescue::{BitRepair, JournalPiece, first_records, rescue};
pub(crate) use witness::JournalWitness;

use crate::backend::{
    AppendedRecord, Cipher, Error, LogPosition, LogTail, RecordHash, SealMode, WriteAheadLog,
};
use lock::AppendLock;
use scan::{JournalCursor, JournalWalk};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sync::SyncProgress;
use sync_mark::SyncMarkFile;

/// How often a verdict is formed anew while others change the files under the reader.
const VERDICTS: usize = 5;

/// A journal in a folder. Cheap to open; may be shared by threads.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// `None` if opened for reading only.
    lock: Option<AppendLock>,
    mark: SyncMarkFile,
    seals: SealMode,
    /// What payloads are encrypted with, if they are.
    cipher: Option<Cipher>,
    witness: Option<JournalWitness>,
    /// The end of the journal as last seen under the append lock.
    tip: Mutex<Option<JournalCursor>>,
    /// Where the last read ended.
    place: Mutex<Option<JournalCursor>>,
    /// Where the last record that was read begins and ends.
    last_read: Mutex<Option<Range<LogPosition>>>,
    /// Zeros for the next segment.
    next: Mutex<Option<File>>,
    /// Whether who appends through this handle makes more room where it ends.
    keeps_room: AtomicBool,
    progress: SyncProgress,
}

impl Journal {
    /// Makes the folder (0700) and an empty journal (0600) in it, durably; one that is there is
    /// opened.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Busy`] if another process is at it for too long.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        segment::create_private_folder(folder).map_err(Error::io("create", folder))?;
        let lock = AppendLock::create(folder)?;
        let held = lock.acquire(sync::LOCK_TIMEOUT)?;
        let mark = SyncMarkFile::open(folder, true)?;
        if segment::list(folder)?.is_empty() && mark.position()? == 0 {
            let path = folder.join(layout::segment_name(0));
            segment::create_private(&path).map_err(Error::io("create", &path))?;
            segment::sync_folder(folder)?;
        }
        drop(held);
        Self::new(folder, Some(lock), mark)
    }

    /// Whether a folder holds no more than a journal's own files and one record of this size, if anything.
    pub(crate) fn is_at_most(folder: &Path, payload: u64) -> io::Result<bool> {
        let first = layout::segment_name(0);
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let size = match entry.file_name().to_str() {
                Some(lock::NAME) => 0,
                Some(sync_mark::NAME) => layout::MARK_BYTES as u64,
                Some(name) if name == first => layout::HEADER_BYTES as u64 + payload,
                _ => return Ok(false),
            };
            if entry.metadata()?.len() > size {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the folder and a journal in it that begins at a position with this record, durably.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is one.
    pub(crate) fn create_at(
        folder: &Path,
        start: LogPosition,
        first: &[u8],
        (seals, cipher): (SealMode, Option<Cipher>),
        witness: Option<JournalWitness>,
    ) -> Result<Self, Error> {
        segment::create_private_folder(folder).map_err(Error::io("create", folder))?;
        let lock = AppendLock::create(folder)?;
        let mark = SyncMarkFile::open(folder, true)?;
        let journal = Self::new(folder, Some(lock), mark)?;
        let journal = journal.with_seals(seals, witness).with_cipher(cipher);
        journal.begin_at(start, first)?;
        Ok(journal)
    }

    /// Opens a journal that is there. Files of it that are missing but say nothing by themselves are made again.
    ///
    /// # Errors
    /// [`Error::Damaged`] if its folder is missing; [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let lock = match AppendLock::open(folder) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                check_folder(folder)?;
                AppendLock::create(folder)?
            }
            lock => lock?,
        };
        let mark = SyncMarkFile::open(folder, true)?;
        Self::new(folder, Some(lock), mark)
    }

    /// Opens a journal for reading only: it needs no right to write anything, and every attempt to
    /// write is refused.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_read_only(folder: &Path) -> Result<Self, Error> {
        check_folder(folder)?;
        Self::new(folder, None, SyncMarkFile::open(folder, false)?)
    }

    /// Opens a journal that never syncs but says it did. Fault tests use it to prove that they
    /// would see a loss; it keeps no promise.
    ///
    /// # Errors
    /// As [`Journal::open`].
    #[doc(hidden)]
    pub fn without_sync_for_canary(folder: &Path) -> Result<Self, Error> {
        let mut journal = Self::open(folder)?;
        journal.progress.leave_syncs_out();
        Ok(journal)
    }

    fn new(folder: &Path, lock: Option<AppendLock>, mark: SyncMarkFile) -> Result<Self, Error> {
        let progress = SyncProgress::new(mark.position()?);
        Ok(Self {
            folder: folder.to_owned(),
            lock,
            mark,
            seals: SealMode::Absent,
            cipher: None,
            witness: None,
            tip: Mutex::new(None),
            place: Mutex::new(None),
            last_read: Mutex::new(None),
            next: Mutex::new(None),
            keeps_room: AtomicBool::new(false),
            progress,
        })
    }

    /// With these seals, and what was seen of it outside the store.
    pub(crate) fn with_seals(mut self, seals: SealMode, witness: Option<JournalWitness>) -> Self {
        (self.seals, self.witness) = (seals, witness);
        self
    }

    /// With payloads that are encrypted.
    pub(crate) fn with_cipher(self, cipher: Option<Cipher>) -> Self {
        Self { cipher, ..self }
    }

    /// What is known from outside: where it ended when it was last seen.
    fn last_seen(&self) -> Result<Option<SyncMark>, Error> {
        self.witness.as_ref().map_or(Ok(None), JournalWitness::read)
    }

    /// How to walk over its records.
    fn walk_context(&self) -> Result<scan::WalkContext, Error> {
        let mark = self.mark.read()?;
        let witnessed = self.last_seen()?;
        let write = self.lock.is_some();
        let (seals, cipher) = (self.seals.clone(), self.cipher.clone());
        Ok(scan::WalkContext { write, mark, witnessed, seals, cipher })
    }

    /// The append lock, if this journal may write.
    fn writer(&self, action: &'static str) -> Result<&AppendLock, Error> {
        self.lock.as_ref().ok_or_else(|| {
            let source = io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                "the journal was opened for reading only",
            );
            Error::Io { action, path: self.folder.clone(), source }
        })
    }

    /// A walk from `from` on, from a place seen before if that helps.
    fn walk(&self, from: LogPosition, known: Option<JournalCursor>) -> Result<JournalWalk, Error> {
        let about = self.walk_context()?;
        // A mark may name the record before `from`: then the chain is checked across it.
        let marks = [about.witnessed, about.mark].into_iter().flatten();
        let named = marks.into_iter().find(|mark| mark.position == from).map(|mark| mark.hash);
        // Not behind the cursor: the bytes there may be the end frame, which takes no positions.
        let holds = |cursor: &JournalCursor| (cursor.segment.start..=cursor.end).contains(&from);
        let mut taken_away = false;
        if let Some(mut cursor) = known.filter(holds) {
            let extent = cursor.segment.extent()?;
            taken_away = !extent.named;
            if extent.named && from <= extent.end {
                if cursor.end != from {
                    cursor.end = from;
                    cursor.previous = named;
                }
                return Ok(JournalWalk::resume(&self.folder, about, cursor));
            }
        }
        let mut walk = JournalWalk::locate(&self.folder, about.clone(), from)?;
        if taken_away && self.seals.key().is_some() {
            // Another file stands in its place, perhaps sealed with another key.
            let segment = walk.cursor().segment.clone();
            let begin = JournalCursor { end: segment.start, segment, previous: None };
            let mut before = JournalWalk::resume(&self.folder, about, begin);
            while before.cursor().end < from && before.next()?.is_some() {}
        }
        walk.expect_after(named);
        Ok(walk)
    }

    /// Tries until a verdict of damage is reached twice at one position: what looked like it may
    /// have been a file that another process was just replacing.
    fn confirmed<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let (mut before, mut told) = (None, None);
        for _ in 1..VERDICTS {
            match attempt() {
                Err(Error::Damaged { position, .. }) if before != Some(position) => {
                    before = Some(position);
                    *held(&self.tip) = None;
                    *held(&self.place) = None;
                }
                Err(Error::Breach { what, .. }) if told.as_ref() != Some(&what) => {
                    // Where this process stood before tells whether another file took the place of its own.
                    told = Some(what);
                }
                verdict => return verdict,
            }
        }
        attempt()
    }

    fn read_once(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        let ends_there = |cursor: &JournalCursor| cursor.end == from && cursor.previous.is_some();
        let written = held(&self.tip).clone().filter(ends_there);
        let known = written.or_else(|| held(&self.place).clone());
        if let Some(cursor) = known.as_ref().filter(|cursor| ends_there(cursor))
            && cursor.is_last()?
            && self.mark.position()? <= from
            && self.last_seen()?.is_none_or(|seen| seen.position <= from)
        {
            return Ok(LogTail { frames: Vec::new(), end: from });
        }
        let mut walk = self.walk(from, known)?;
        let mut tail = LogTail { frames: Vec::new(), end: from };
        while tail.frames.is_empty() || tail.end - from < limit {
            let Some(frame) = walk.next()? else { break };
            tail.end = frame.end;
            tail.frames.push(frame);
        }
        if let Some(frame) = tail.frames.last() {
            *held(&self.last_read) = Some(frame.position..frame.end);
        }
        *held(&self.place) = Some(walk.cursor().clone());
        Ok(tail)
    }
}

impl WriteAheadLog for Journal {
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        self.confirmed(|| self.read_once(from, limit))
    }

    fn append(
        &self,
        from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        self.append_record(from, timeout, build)
    }

    fn sync(&self, to: LogPosition) -> Result<(), Error> {
        self.make_durable(to)
    }

    fn rotate(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        self.begin_segment(from, timeout, first)
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), Error> {
        self.remove_segments(before)
    }

    fn make_room(&self, from: LogPosition, bytes: u64) -> Result<(), Error> {
        self.write_zeros(from, bytes)
    }

    fn make_room_in_next(&self, bytes: u64) -> Result<(), Error> {
        self.write_next(bytes)
    }

    fn syncs(&self) -> u64 {
        self.progress.syncs()
    }

    fn give_back_room(&self, from: LogPosition) -> Result<(), Error> {
        self.cut_zeros(from)
    }

    fn witnessed(&self) -> Result<Option<(LogPosition, RecordHash)>, Error> {
        Ok(self.last_seen()?.map(|mark| (mark.position, mark.hash)))
    }

    fn start(&self) -> Result<LogPosition, Error> {
        let oldest = segment::list(&self.folder)?.first().copied();
        oldest.ok_or_else(|| scan::damaged(0, "its segments are missing"))
    }
}

/// Whether there is a folder that can be read: a store without it is damaged.
fn check_folder(folder: &Path) -> Result<(), Error> {
    match folder.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(scan::damaged(0, "its folder is missing"))
        }
        listed => listed.map(drop).map_err(Error::io("open", folder)),
    }
}

/// Whether a file of this name in a journal's folder is one of its own.
pub(crate) fn is_own(name: &str) -> bool {
    layout::segment_start(name).is_some()
        || [lock::NAME, sync_mark::NAME, preallocation::NEXT_SEGMENT_FILE].contains(&name)
}

/// What a mutex guards, also after a panic: every value put there is whole.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
