//! Follows the journal: holds the newest known generation and the journal's tail after it.

use super::index::{self, PositionedRecord};
use super::journal_tail::JournalTail;
use super::object;
use super::parallel;
use super::published_generation::PublishedGeneration;
use super::read_snapshot::ReadSnapshot;
use super::refs::StoreRefs;
use super::request::{self, StoreRequest};
use super::row_overlay::RowOverlay;
use super::spool;
use crate::backend::{
    self, Index, LogFrame, LogPosition, LogTail, Snapshot, Spool, WriteAheadLog, locked,
};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, StoreHead};
use crate::model::{SessionId, SessionNumber};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Follows the journal and the index of a store. Shared by all users of the store in one process.
pub(crate) struct JournalFollower {
    pub(crate) log: Arc<dyn WriteAheadLog>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) spool: Option<Arc<dyn Spool>>,
    tail: Mutex<JournalTail>,
    /// Sessions in the spool, with the numbers that this process returned for them.
    promised: Mutex<Vec<(SessionNumber, SessionId)>>,
    /// Set if all reads of this process show one fixed moment: what was read of it.
    held: OnceLock<Mutex<HeldMoment>>,
}

/// Cost of the tail, in bytes, from which a new generation is worth making: fewer than 147 records,
/// or about 125 revisions of 25 changes. See `docs/benchmarks.md`.
pub const APPLY_BYTES: u64 = 1_200_000;
/// Maximum tail cost in bytes that an import or the turn of an agent leaves, because each later
/// process reads the tail.
pub const IDLE_TAIL_BYTES: u64 = APPLY_BYTES / 8;
/// Approximate number of bytes per read of the journal.
const READ_BYTES: u64 = 8 << 20;
/// Tail length in bytes from which a newer generation is looked for. During an apply, a writer of
/// 25 changes per revision adds 3 to 7 MB; the limit is higher, so that the process that applies is
/// the first to use its own generation.
const LONG_TAIL_BYTES: u64 = 12 << 20;
/// A generation may be replaced while it is being opened; more attempts than this indicate a bug.
const MAX_ATTEMPTS: usize = 100;

/// What was read of the moment that [`JournalFollower::hold`] fixes.
#[derive(Default)]
enum HeldMoment {
    /// Nothing yet.
    #[default]
    NotRead,
    /// The refs; the spool was empty.
    Refs(Arc<StoreRefs>, LogPosition),
    /// All of it.
    View(ReadSnapshot),
}

fn replaced_too_fast() -> Error {
    Error::Internal("the index is replaced faster than it can be opened".to_owned())
}

/// Returns the head with which a record begins a segment.
fn head_of(record: &Record) -> Option<&StoreHead> {
    match record.changes.first() {
        Some(RecordChange::Head(head)) => Some(head),
        _ => None,
    }
}

impl JournalFollower {
    pub(crate) fn new(
        log: Arc<dyn WriteAheadLog>,
        index: Arc<dyn Index>,
        spool: Option<Arc<dyn Spool>>,
    ) -> Self {
        let (known, promised) = (Mutex::default(), Mutex::default());
        Self { log, index, spool, tail: known, promised, held: OnceLock::new() }
    }

    /// Makes all reads from now on show the moment of the first one, whatever is written meanwhile.
    pub(crate) fn hold(&self) {
        self.held.get_or_init(Mutex::default);
    }

    fn held(&self) -> Option<MutexGuard<'_, HeldMoment>> {
        // A poisoned lock is safe: every change is one assignment.
        self.held.get().map(locked)
    }

    /// Returns a snapshot of the present, with the entries of the spool.
    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        let Some(mut held) = self.held() else { return self.view_now() };
        let view = match &*held {
            HeldMoment::View(view) => return Ok(view.clone()),
            HeldMoment::Refs(..) => self.view_known()?,
            HeldMoment::NotRead => self.view_now()?,
        };
        *held = HeldMoment::View(view.clone());
        Ok(view)
    }

    fn view_now(&self) -> Result<ReadSnapshot> {
        // The spool is read first: an entry that leaves it meanwhile is in the journal by then.
        let waiting = self.waiting()?;
        let mut view = self.written_view()?;
        for (name, error) in waiting.broken {
            if !spool::is_written(&view, &name)? {
                return Err(error);
            }
        }
        for waiting in waiting.whole {
            if let Some(record) = spool::plan(&view, &waiting, spool::NameClashPolicy::Rename)? {
                view = view.with_record(record)?;
            }
        }
        self.check_promised(&view.refs)?;
        Ok(view)
    }

    /// Returns the refs of the present, with the entries of the spool. If the spool is empty and
    /// the refs of all sessions are in memory, only the journal is read.
    pub(crate) fn refs(&self) -> Result<(Arc<StoreRefs>, LogPosition)> {
        if let Some(held) = self.held() {
            match &*held {
                HeldMoment::View(view) => return Ok((Arc::clone(&view.refs), view.position)),
                HeldMoment::Refs(refs, position) => return Ok((Arc::clone(refs), *position)),
                HeldMoment::NotRead => {}
            }
        }
        let waiting = self.waiting()?;
        if !waiting.whole.is_empty() || !waiting.broken.is_empty() {
            let view = self.view()?;
            return Ok((view.refs, view.position));
        }
        let (refs, end) = self.written_refs_to_read()?;
        self.check_promised(&refs)?;
        if let Some(mut held) = self.held()
            && matches!(*held, HeldMoment::NotRead)
        {
            *held = HeldMoment::Refs(Arc::clone(&refs), end);
        }
        Ok((refs, end))
    }

    /// Leaks the state on purpose: the system frees it at once when the process ends.
    pub(crate) fn leave(&self) {
        std::mem::forget(std::mem::take(&mut *self.lock_tail()));
        std::mem::forget(self.held().map(|mut held| std::mem::take(&mut *held)));
    }

    /// Returns the last known refs without reading the journal.
    pub(crate) fn known_refs(&self) -> Arc<StoreRefs> {
        Arc::clone(&self.lock_tail().refs)
    }

    fn waiting(&self) -> Result<spool::PendingWrites> {
        match &self.spool {
            Some(spool) => spool::pending_entries(&**spool),
            None => Ok(spool::PendingWrites::default()),
        }
    }

    /// Records the number that was returned for a session in the spool.
    pub(crate) fn promise(&self, number: SessionNumber, id: SessionId) {
        locked(&self.promised).push((number, id));
    }

    pub(crate) fn has_promised(&self) -> bool {
        !locked(&self.promised).is_empty()
    }

    /// Checks that no session from the spool got another number in the journal than the one that
    /// was returned for it.
    pub(crate) fn check_promised(&self, refs: &StoreRefs) -> Result<()> {
        let promised = locked(&self.promised);
        for (number, id) in promised.iter() {
            let there = refs.sessions.get(*number)?;
            if there.is_none_or(|session| session.info.id != *id) {
                return Err(Error::Conflict(
                    "another session was begun while this one waited in the spool: open the store again"
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn lock_tail(&self) -> MutexGuard<'_, JournalTail> {
        // A poisoned lock is used too: a panic in another request must not end all later ones.
        locked(&self.tail)
    }

    /// Returns the last known end of the journal without reading it.
    pub(crate) fn end(&self) -> LogPosition {
        self.lock_tail().end
    }

    /// Returns the refs at the end of the journal. Opens the generation only if a new record
    /// changes a session that is not in memory.
    pub(crate) fn written_refs(&self) -> Result<(Arc<StoreRefs>, LogPosition)> {
        let mut known = self.lock_tail();
        self.look(&mut known)?;
        if self.adopt_newer_base(&mut known)? {
            self.catch_up(&mut known)?;
        }
        Ok((Arc::clone(&known.refs), known.end))
    }

    /// Returns the refs at the end of the journal. Opens the generation if some sessions are only
    /// there.
    pub(crate) fn written_refs_to_read(&self) -> Result<(Arc<StoreRefs>, LogPosition)> {
        for _ in 0..MAX_ATTEMPTS {
            let (refs, end) = self.written_refs()?;
            if refs.sessions.is_complete() {
                return Ok((refs, end));
            }
            let mut known = self.lock_tail();
            if self.ensure_base(&mut known)?.is_some() {
                return Ok((Arc::clone(&known.refs), known.end));
            }
            *known = JournalTail::default();
        }
        Err(replaced_too_fast())
    }

    /// Returns the length of the tail in bytes.
    pub(crate) fn tail_bytes(&self) -> u64 {
        let known = self.lock_tail();
        known.end - known.start
    }

    /// Returns a snapshot at the end of the journal.
    pub(crate) fn written_view(&self) -> Result<ReadSnapshot> {
        let mut known = self.lock_tail();
        let base = self.look_with_base(&mut known)?;
        known.view(base)
    }

    /// Returns the generation below the tail, and the tail with which the follower of a copy of
    /// this store begins; see [`JournalFollower::begin_with`].
    pub(crate) fn copied_tail(&self) -> Result<(Arc<dyn Snapshot>, JournalTail)> {
        let mut known = self.lock_tail();
        // The request of this thread may have read the journal before other writers appended.
        self.catch_up(&mut known)?;
        let generation = self.look_with_base(&mut known)?;
        Ok((generation, known.copied()))
    }

    /// Begins with the tail of a copied store. The journal of the copy need not contain it.
    pub(crate) fn begin_with(&self, tail: JournalTail) {
        *self.lock_tail() = tail;
    }

    /// Adds records that this process has read or written itself. Known ones are skipped.
    pub(crate) fn take_in(&self, tail: &LogTail) -> Result<Arc<StoreRefs>> {
        let mut known = self.lock_tail();
        // Another thread may have published a generation meanwhile and cleared the tail.
        let follows = tail.frames.first().is_none_or(|frame| frame.position <= known.end);
        if known.loaded && follows {
            tail.frames.iter().try_for_each(|frame| self.extend(&mut known, frame))?;
        } else {
            self.catch_up(&mut known)?;
        }
        if self.adopt_newer_base(&mut known)? {
            self.catch_up(&mut known)?;
        }
        Ok(Arc::clone(&known.refs))
    }

    /// Adds a record that this process has just written.
    pub(crate) fn note_written(&self, placed: PositionedRecord, end: LogPosition) -> Result<()> {
        let mut known = self.lock_tail();
        // Another thread may have read the record from the journal already.
        if known.loaded && known.end == placed.position {
            known.add(placed, end)?;
        }
        Ok(())
    }

    /// Returns the records from a position on; `None` if they are no longer in memory.
    pub(crate) fn records_since(
        &self,
        position: LogPosition,
    ) -> Option<Vec<Arc<PositionedRecord>>> {
        let known = self.lock_tail();
        if !known.loaded || position < known.start {
            return None;
        }
        let from = known.records.partition_point(|placed| placed.position < position);
        known.records.get(from..).map(<[_]>::to_vec)
    }

    /// Returns the records between two positions; `None` if not all of them are in memory.
    pub(crate) fn records_between(
        &self,
        from: LogPosition,
        to: LogPosition,
    ) -> Option<Vec<Arc<PositionedRecord>>> {
        let known = self.lock_tail();
        if !known.loaded || from < known.start || to > known.end {
            return None;
        }
        let place = |position| known.records.partition_point(|placed| placed.position < position);
        known.records.get(place(from)..place(to)).map(<[_]>::to_vec)
    }

    /// Clears the tail in memory, and returns its records from a position on. The next read starts
    /// from the store.
    pub(crate) fn take_records(&self, from: LogPosition) -> Vec<PositionedRecord> {
        let JournalTail { records, .. } = std::mem::take(&mut *self.lock_tail());
        let mut records = Arc::unwrap_or_clone(records);
        let first = records.partition_point(|placed| placed.position < from);
        records.drain(first..).map(Arc::unwrap_or_clone).collect()
    }

    /// Estimates what the tail costs a reader, in bytes of compressed objects: half of the tail's
    /// bytes, because small deltas are uncompressed there, and a fixed amount per record.
    pub(crate) fn tail_cost(&self) -> u64 {
        const RECORD_BYTES: u64 = 8192;
        let known = self.lock_tail();
        (known.end - known.start) / 2 + known.records.len() as u64 * RECORD_BYTES
    }

    /// Clears the tail in memory. The next read starts from the store.
    pub(crate) fn forget(&self) {
        *self.lock_tail() = JournalTail::default();
    }

    /// Removes generations without readers. Those that are still in use are removed by a later
    /// call.
    pub(crate) fn tidy(&self) {
        if let Err(error) = self.index.tidy() {
            tracing::debug!(%error, "older generations of the index were left");
        }
    }

    /// Rebases onto the generation that was published at this position.
    pub(crate) fn note_published(&self, position: LogPosition) {
        let mut known = self.lock_tail();
        let old = self.rebase(&mut known, position);
        drop(known);
        // A thread that waited for the lock may have been woken on this core.
        parallel::yield_to_foreground();
        // Closing a generation and freeing its memory takes longer than a writer should wait, so
        // the lock is released first.
        drop(old);
    }

    /// Returns a snapshot like [`JournalFollower::written_view`], without reading the journal: for
    /// use under the append lock, after [`JournalFollower::take_in`].
    pub(crate) fn view_known(&self) -> Result<ReadSnapshot> {
        let mut known = self.lock_tail();
        if known.loaded
            && let Some(base) = self.ensure_base(&mut known)?
        {
            return known.view(base);
        }
        drop(known);
        self.written_view()
    }

    /// Returns a snapshot like [`JournalFollower::view_known`], for writing a new generation:
    /// objects of the tail continue the numbers of the generation below, as in an apply.
    pub(crate) fn view_to_rewrite(&self) -> Result<ReadSnapshot> {
        let view = self.view_known()?;
        let known = self.lock_tail();
        if (known.start, known.end) != (view.base.position(), view.position) {
            return Err(Error::Internal("the journal moved on under its lock".to_owned()));
        }
        object::check_counter(view.generation())?;
        let mut rows = RowOverlay::default();
        index::apply_all(view.generation(), &mut rows, &mut StoreRefs::default(), &known.records)?;
        let rows = Arc::new(rows);
        Ok(ReadSnapshot { rows, operation_rows: None, object_cache: Arc::default(), ..view })
    }

    /// If there is a newer generation: rebases the tail onto it if the tail is long, and clears the
    /// tail if a secret was purged since the present generation. Returns whether it did either.
    fn adopt_newer_base(&self, known: &mut JournalTail) -> Result<bool> {
        let begun = known.base.as_ref().and_then(|base| base.head.as_ref());
        let purged = begun.map_or(0, |head| head.purges) < known.refs.purges;
        if !purged && known.end - known.start <= LONG_TAIL_BYTES {
            return Ok(false);
        }
        let newest = self.index.position()?;
        if newest <= known.start {
            return Ok(false);
        }
        if purged {
            *known = JournalTail::default();
        } else {
            self.rebase(known, newest);
        }
        Ok(true)
    }

    /// Rebases the tail onto the generation at this position. Returns the old state.
    fn rebase(&self, known: &mut JournalTail, position: LogPosition) -> Option<JournalTail> {
        let old = known.rebase_onto(position)?;
        let begun = known.records.first().and_then(|first| head_of(&first.record)).cloned();
        let rebased = begun.is_some_and(|head| {
            known.advance_all(&old, self.generation(position, Some(head))).is_ok()
        });
        if !rebased {
            // The next reader reads the journal again, and reports what is wrong.
            *known = JournalTail::default();
        }
        Some(old)
    }

    fn generation(
        &self,
        position: LogPosition,
        head: Option<StoreHead>,
    ) -> Arc<PublishedGeneration> {
        let (log, index) = (Arc::clone(&self.log), Arc::clone(&self.index));
        Arc::new(PublishedGeneration::new(log, index, position, head))
    }

    /// Begins a request of this thread; see [`StoreRequest`].
    pub(crate) fn begin_request(&self, has_looked: bool) -> StoreRequest {
        StoreRequest::begin(self.address(), has_looked)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Reads the new records of the journal, unless this thread's request has done so.
    fn look(&self, known: &mut JournalTail) -> Result<()> {
        if known.loaded && request::has_looked(self.address()) {
            return Ok(());
        }
        self.catch_up(known)?;
        request::note_look(self.address());
        Ok(())
    }

    /// Reads the new records like [`JournalFollower::look`], and opens the generation below the
    /// tail.
    fn look_with_base(&self, known: &mut JournalTail) -> Result<Arc<dyn Snapshot>> {
        for _ in 0..MAX_ATTEMPTS {
            self.look(known)?;
            if self.adopt_newer_base(known)? {
                continue;
            }
            if let Some(base) = self.ensure_base(known)? {
                return Ok(base);
            }
            *known = JournalTail::default();
        }
        Err(replaced_too_fast())
    }

    fn catch_up(&self, known: &mut JournalTail) -> Result<()> {
        let mut lost: Option<(LogPosition, backend::Error)> = None;
        if !known.is_copy && known.base.as_ref().is_some_and(|base| base.expires_soon()) {
            *known = JournalTail::default();
        }
        for _ in 0..MAX_ATTEMPTS {
            let mut first = None;
            if !known.loaded {
                let (start, tail) = self.log.read_after_index(&*self.index, READ_BYTES)?;
                first = Some(tail);
                // The journal begins after the newest generation: its first segments are lost.
                if let Some((_, error)) = lost.take_if(|(from, _)| *from >= start) {
                    return Err(error.into());
                }
                *known = JournalTail::begin(start);
            }
            match self.read_more(known, first) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Error::Backend(error @ backend::Error::Gone { .. })) => {
                    lost = Some((known.start, error));
                    *known = JournalTail::default();
                }
                Err(other) => return Err(other),
            }
        }
        if known.loaded {
            // Other writers append faster than this process reads. The records read so far are a
            // consistent moment too.
            Ok(())
        } else {
            Err(Error::Internal("the journal is replaced faster than it can be read".to_owned()))
        }
    }

    /// Adds the next records to the tail: those in `read`, or else from the journal. Returns
    /// whether there may be more.
    fn read_more(
        &self,
        known: &mut JournalTail,
        read: Option<Result<LogTail, backend::Error>>,
    ) -> Result<bool> {
        let tail = read.unwrap_or_else(|| self.log.read(known.end, READ_BYTES))?;
        let is_more = tail.end - known.end >= READ_BYTES;
        // Each frame is freed after decoding, so that the next record reuses its memory.
        tail.frames.into_iter().try_for_each(|frame| self.extend(known, &frame))?;
        Ok(is_more)
    }

    fn extend(&self, known: &mut JournalTail, frame: &LogFrame) -> Result<()> {
        if frame.position < known.end {
            return Ok(());
        }
        let record = Record::decode(&frame.payload)
            .map_err(Error::corrupt(format_args!("the record at {}", frame.position)))?;
        if known.end == known.start {
            let head = head_of(&record).cloned();
            // A generation ends where a segment begins, and a segment begins with a head. Otherwise
            // the generation's position is wrong.
            if known.start > 0 && head.is_none() {
                return Err(Error::Corrupt {
                    what: "the index".to_owned(),
                    source: format!("it ends at {}, where no segment begins", known.start).into(),
                });
            }
            let base = self.generation(known.start, head);
            known.refs = Arc::new(base.refs());
            known.base = Some(base);
        }
        let placed = PositionedRecord { position: frame.position, hash: frame.hash, record };
        known.add(placed, frame.end)
    }

    /// Opens the generation below the tail. `None` if a newer one has replaced it: then the caller
    /// starts again.
    fn ensure_base(&self, known: &mut JournalTail) -> Result<Option<Arc<dyn Snapshot>>> {
        let start = known.start;
        let base = known.base.get_or_insert_with(|| self.generation(start, None));
        match base.open() {
            Ok(base) => Ok(Some(Arc::clone(base))),
            Err(Error::Backend(backend::Error::Gone { .. })) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
