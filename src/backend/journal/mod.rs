//! The journal: a [`WriteAheadLog`] in a folder of append-only segment files, shared by many
//! processes.
//!
//! A writer takes the append lock, reads new records, writes its frame, releases the lock, and only
//! then syncs, so that processes that write at the same time share one disk sync. Readers take no
//! lock. The bytes are specified in `docs/format.md`.
//!
//! * `layout`: the bytes of the sync mark and the names of segments, without I/O.
//! * `segment`, `sync_mark`, `lock`: the files of the folder.
//! * `scan`: reads records, and distinguishes a torn tail from damage.
//! * `append`, `sync`, `rotate`: write records, make them durable, begin and remove segments.
//! * `copy`, `rescue`, `reseal`: copy a journal, salvage a damaged one, replace all seals.
//! * `witness`: notes outside the store how far the journal reached.
//! * `preallocation`: zeros after the end, so that a sync need not make a new file length durable.

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
pub(crate) use scan::{breach_of, damaged, replaced, rolled_back_error};
pub(crate) use witness::JournalWitness;

use crate::backend::frame::HEADER_BYTES;
use crate::backend::{
    AppendedRecord, CALLS, Cipher, Error, LogPosition, LogTail, RecordHash, SealMode,
    WriteAheadLog, files, locked,
};
use lock::AppendLock;
use scan::{JournalCursor, JournalWalk};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sync::SyncProgress;
use sync_mark::SyncMarkFile;

/// Maximum number of attempts to confirm a verdict while other processes change the files.
const VERDICTS: usize = 5;

/// A journal in a folder. Cheap to open; may be shared by threads.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// `None` if opened for reading only.
    lock: Option<AppendLock>,
    mark: SyncMarkFile,
    seals: SealMode,
    /// The cipher of the payloads, if they are encrypted.
    cipher: Option<Cipher>,
    witness: Option<JournalWitness>,
    /// The end of the journal as last seen under the append lock.
    tip: Mutex<Option<JournalCursor>>,
    /// The cursor at which the last read ended.
    place: Mutex<Option<JournalCursor>>,
    /// The range of the last record that was read.
    last_read: Mutex<Option<Range<LogPosition>>>,
    /// A preallocated file for the next segment.
    next: Mutex<Option<File>>,
    /// Whether appends through this handle preallocate more room.
    keeps_room: AtomicBool,
    progress: SyncProgress,
}

impl Journal {
    /// Opens the journal in a folder, or durably creates the folder (0700) and an empty journal
    /// (0600).
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Busy`] if another process holds the append lock for too long.
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

    /// Returns whether a folder contains at most the files of a journal with one record of this
    /// size.
    pub(crate) fn is_at_most(folder: &Path, payload: u64) -> io::Result<bool> {
        let first = layout::segment_name(0);
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let size = match entry.file_name().to_str() {
                Some(lock::NAME) => 0,
                Some(sync_mark::NAME) => layout::MARK_BYTES as u64,
                Some(name) if name == first => HEADER_BYTES as u64 + payload,
                _ => return Ok(false),
            };
            if entry.metadata()?.len() > size {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Durably creates a folder and a journal in it that starts at a position with this record.
    ///
    /// # Errors
    /// [`Error::Io`], also if a journal exists there.
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

    /// Opens an existing journal. A missing lock file or mark is created again.
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

    /// Opens a journal for reading only. This needs no write permission, and every attempt to write
    /// fails.
    pub fn open_read_only(folder: &Path) -> Result<Self, Error> {
        check_folder(folder)?;
        Self::new(folder, None, SyncMarkFile::open(folder, false)?)
    }

    /// Opens a journal that reports syncs without doing them. Fault tests use it to prove that they
    /// would detect a loss; it guarantees nothing.
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

    /// Sets the seals and the witness.
    pub(crate) fn with_seals(mut self, seals: SealMode, witness: Option<JournalWitness>) -> Self {
        (self.seals, self.witness) = (seals, witness);
        self
    }

    /// Sets the cipher of the payloads.
    pub(crate) fn with_cipher(self, cipher: Option<Cipher>) -> Self {
        Self { cipher, ..self }
    }

    /// Returns the end of the journal as last seen by the witness.
    fn last_seen(&self) -> Result<Option<SyncMark>, Error> {
        self.witness.as_ref().map_or(Ok(None), JournalWitness::read)
    }

    /// Returns the context of a walk: the marks, the seals and the cipher.
    fn walk_context(&self) -> Result<scan::WalkContext, Error> {
        let mark = self.mark.read()?;
        let witnessed = self.last_seen()?;
        let write = self.lock.is_some();
        let (seals, cipher) = (self.seals.clone(), self.cipher.clone());
        Ok(scan::WalkContext { write, mark, witnessed, seals, cipher })
    }

    /// Returns the append lock, or an error if the journal is read-only.
    fn writer(&self, action: &'static str) -> Result<&AppendLock, Error> {
        self.lock.as_ref().ok_or_else(|| {
            let source = io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                "the journal was opened for reading only",
            );
            Error::Io { action, path: self.folder.clone(), source }
        })
    }

    /// Starts a walk at `from`, at a known cursor if that is possible.
    fn walk(&self, from: LogPosition, known: Option<JournalCursor>) -> Result<JournalWalk, Error> {
        let about = self.walk_context()?;
        // If a mark names the record before `from`, the hash chain is checked across `from`.
        let marks = [about.witnessed, about.mark].into_iter().flatten();
        let named = marks.into_iter().find(|mark| mark.position == from).map(|mark| mark.hash);
        // A cursor that ends before `from` cannot be used: the next bytes may be an end frame,
        // which occupies no positions.
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
            // The segment was replaced by another file, perhaps sealed with another key.
            let segment = walk.cursor().segment.clone();
            let begin = JournalCursor { end: segment.start, segment, previous: None };
            let mut before = JournalWalk::resume(&self.folder, about, begin);
            while before.cursor().end < from && before.next()?.is_some() {}
        }
        walk.expect_after(named);
        Ok(walk)
    }

    /// Retries until an attempt succeeds, or two attempts find the same damage or breach. A single
    /// finding may be due to a file that another process was just replacing.
    fn confirmed<T>(&self, mut attempt: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let (mut before, mut breach) = (None, None);
        for _ in 1..VERDICTS {
            match attempt() {
                Err(Error::Damaged { position, .. }) if before != Some(position) => {
                    before = Some(position);
                    *locked(&self.tip) = None;
                    *locked(&self.place) = None;
                }
                Err(Error::Breach { what, .. }) if breach.as_ref() != Some(&what) => {
                    // The cursors are kept: they show whether another file took the place of the
                    // known segment.
                    breach = Some(what);
                }
                verdict => return verdict,
            }
        }
        attempt()
    }

    fn read_once(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        let ends_there = |cursor: &JournalCursor| cursor.end == from && cursor.previous.is_some();
        let written = locked(&self.tip).clone().filter(ends_there);
        let known = written.or_else(|| locked(&self.place).clone());
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
            *locked(&self.last_read) = Some(frame.position..frame.end);
        }
        *locked(&self.place) = Some(walk.cursor().clone());
        Ok(tail)
    }
}

impl WriteAheadLog for Journal {
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        tracing::trace!(target: CALLS, call = "read");
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

    fn append_all(
        &self,
        from: LogPosition,
        timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error> {
        self.append_records(from, timeout, payloads)
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
        oldest.ok_or_else(|| damaged(0, "its segments are missing"))
    }
}

/// Checks that the folder exists and is readable. A store without it is damaged.
fn check_folder(folder: &Path) -> Result<(), Error> {
    let listed = files::if_there(folder.read_dir()).map_err(Error::io("open", folder))?;
    listed.map(drop).ok_or_else(|| damaged(0, "its folder is missing"))
}

/// Returns whether a file name in a journal's folder belongs to the journal.
pub(crate) fn is_own(name: &str) -> bool {
    layout::segment_start(name).is_some()
        || [lock::NAME, sync_mark::NAME, preallocation::NEXT_SEGMENT_FILE].contains(&name)
}
