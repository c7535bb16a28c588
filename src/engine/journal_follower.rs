//! Follows the journal: holds the newest known generation and the journal's tail after it.

use super::gap_check::GapCheckedSnapshot;
use super::index::{self, PositionedRecord};
use super::object;
use super::object_cache::ObjectCache;
use super::parallel;
use super::read_snapshot::{LazyOperationRows, ReadSnapshot};
use super::refs::{StoreRefs, advance, advance_by};
use super::request::{self, StoreRequest};
use super::row_overlay::RowOverlay;
use super::session_table::SessionSource;
use super::spool;
use crate::backend::{
    self, Index, IntegrityBreach, LogFrame, LogPosition, LogTail, ScanDirection, Snapshot, Spool,
    WriteAheadLog, locked,
};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, StoreHead, key};
use crate::model::{SessionId, SessionNumber};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The known part of the journal's tail.
#[derive(Default)]
pub(crate) struct TailState {
    /// Start of the tail: the position of its generation.
    start: LogPosition,
    end: LogPosition,
    records: Arc<Vec<Arc<PositionedRecord>>>,
    /// The refs at the end of the tail.
    refs: Arc<StoreRefs>,
    /// The generation, which is opened when it is needed.
    base: Option<Arc<PublishedGeneration>>,
    /// Cache of opened objects of the generation and the tail.
    object_cache: Arc<ObjectCache>,
    /// The rows of the first `indexed` records.
    rows: Arc<RowOverlay>,
    rows_refs: StoreRefs,
    /// Whether `rows` has no operation rows.
    lacks_operations: bool,
    /// Makes the operation rows on demand, if `rows` has none.
    operation_rows: Option<Arc<LazyOperationRows>>,
    indexed: usize,
    loaded: bool,
    /// Whether this is the tail of a copied store, which keeps its generation even if that expires
    /// soon.
    is_copy: bool,
}

impl TailState {
    /// Returns the position at which the tail ends.
    pub(crate) const fn end(&self) -> LogPosition {
        self.end
    }

    /// Rebases the tail onto the generation at this position. Earlier records are dropped; later
    /// ones stay, so that the next writer need not read them again. Returns the old state.
    fn rebase_onto(&mut self, position: LogPosition) -> Option<Self> {
        // The tail is already based on this generation or a newer one: another thread was faster.
        if self.loaded && position <= self.start {
            return None;
        }
        let mut next = Self::default();
        if self.loaded && (self.start..=self.end).contains(&position) {
            let applied = self.records.partition_point(|placed| placed.position < position);
            next.records = Arc::new(Arc::make_mut(&mut self.records).split_off(applied));
            (next.start, next.end, next.loaded) = (position, self.end, true);
        }
        Some(std::mem::replace(self, next))
    }

    /// Builds the refs again after a rebase, from the new generation and the records after it.
    /// Sessions that the old state had in memory are not read again.
    fn advance_all(&mut self, old: &Self, base: Arc<PublishedGeneration>) -> Result<()> {
        let mut refs = base.refs();
        let changes = || self.records.iter().flat_map(|placed| &placed.record.changes);
        let changed: HashSet<_> = changes().flat_map(RecordChange::sessions).collect();
        refs.sessions.keep_from(&old.refs.sessions, |number| changed.contains(&number));
        changes().try_for_each(|change| advance_by(&mut refs, change))?;
        self.base = Some(base);
        self.refs = Arc::new(refs);
        Ok(())
    }

    /// Adds a record to the list.
    fn push(&mut self, placed: PositionedRecord) {
        // `operation_rows` shares the list, so that each push would copy the list. The field is
        // cleared if no snapshot uses these rows and they are not made yet.
        self.operation_rows
            .take_if(|lazy| Arc::get_mut(lazy).is_some_and(|lazy| lazy.made().is_none()));
        Arc::make_mut(&mut self.records).push(Arc::new(placed));
    }

    /// Adds the next record of the journal, which ends at this position. An error clears
    /// everything, because half-applied refs match no moment.
    fn add(&mut self, placed: PositionedRecord, end: LogPosition) -> Result<()> {
        // After a panic the tail counts as not loaded, so that the next reader begins again.
        self.loaded = false;
        let moved = advance(Arc::make_mut(&mut self.refs), &placed.record);
        if moved.is_err() {
            *self = Self::default();
            return moved;
        }
        self.push(placed);
        self.end = end;
        self.loaded = true;
        Ok(())
    }

    /// Makes the rows of the records that have none yet. The rows are moved out meanwhile, so that
    /// an error leaves no rows instead of rows of half a record.
    ///
    /// Operation rows are left out until they are needed by a reader or a record.
    fn index(&mut self, base: &dyn Snapshot) -> Result<()> {
        let empty = || (Arc::new(object::rows_of_tail()), StoreRefs::default(), 0);
        let (mut rows, mut refs, mut from) = match std::mem::take(&mut self.indexed) {
            0 => empty(),
            from => (std::mem::take(&mut self.rows), std::mem::take(&mut self.rows_refs), from),
        };
        let lazy = self.operation_rows.take();
        let all_rows = lazy.as_ref().and_then(|lazy| lazy.made());
        let none_yet = from == 0 || (self.lacks_operations && all_rows.is_none());
        let new = self.records.get(from..).unwrap_or_default();
        if none_yet && new.iter().all(|placed| index::needs_no_operations(&placed.record)) {
            index::apply_all_but_operations(base, Arc::make_mut(&mut rows), &mut refs, new)?;
            self.operation_rows = Some(Arc::new(LazyOperationRows::of(Arc::clone(&self.records))));
            self.lacks_operations = true;
        } else {
            if let Some(all) = all_rows {
                rows = Arc::new(all.clone());
            } else if none_yet {
                (rows, refs, from) = empty();
            }
            let new = self.records.get(from..).unwrap_or_default();
            index::apply_all(base, Arc::make_mut(&mut rows), &mut refs, new)?;
            self.lacks_operations = false;
        }
        (self.rows, self.rows_refs, self.indexed) = (rows, refs, self.records.len());
        Ok(())
    }
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

/// The generation below a tail, and the head of the segment after it.
pub(super) struct PublishedGeneration {
    log: Arc<dyn WriteAheadLog>,
    index: Arc<dyn Index>,
    position: LogPosition,
    head: Option<StoreHead>,
    opened: OnceLock<Arc<dyn Snapshot>>,
}

impl PublishedGeneration {
    /// Opens the generation, if it is not open yet.
    ///
    /// # Errors
    /// [`Gone`](backend::Error::Gone) if a newer one has replaced it.
    fn open(&self) -> Result<&Arc<dyn Snapshot>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let base = self.index.snapshot()?;
        if base.position() != self.position {
            let (position, start) = (self.position, base.position());
            return Err(backend::Error::Gone { position, start }.into());
        }
        self.check_witnessed(&*base)?;
        let base = match &self.head {
            Some(head) => Arc::new(GapCheckedSnapshot::new(base, head)),
            None => base,
        };
        Ok(self.opened.get_or_init(|| base))
    }

    /// Checks that the last record that the witness saw is in the index, if the index contains the
    /// position at which this record ends.
    fn check_witnessed(&self, base: &dyn Snapshot) -> Result<()> {
        let Some((position, hash)) = self.log.witnessed()? else { return Ok(()) };
        if position == 0 || position > base.position() {
            return Ok(());
        }
        let before = key::KeyBuilder::new().number(position).build();
        let last = base.scan(key::RECORDS, &[], &before, ScanDirection::Descending, 1)?;
        if last.first().is_some_and(|(_, found)| found.starts_with(&hash)) {
            self.log.note_witness_checked();
            return Ok(());
        }
        let what = format!(
            "the record that ends at position {position} is not the one that the store's witness saw: another copy of \
             the store was put in its place"
        );
        Err(backend::Error::Breach { breach: IntegrityBreach::Replaced, what }.into())
    }

    /// Returns whether the generation is open and will be removed soon.
    fn expires_soon(&self) -> bool {
        self.opened.get().is_some_and(|base| base.expires_soon())
    }

    /// Returns the refs at the position of the generation.
    fn refs(self: &Arc<Self>) -> StoreRefs {
        let mut refs = StoreRefs::begin(&self.head.clone().unwrap_or_default());
        refs.sessions.set_source(Arc::clone(self) as _);
        refs
    }
}

impl SessionSource for PublishedGeneration {
    fn generation(&self) -> Result<&dyn Snapshot> {
        self.open().map(|base| &**base)
    }
}

/// Follows the journal and the index of a store. Shared by all users of the store in one process.
pub(crate) struct JournalFollower {
    pub(crate) log: Arc<dyn WriteAheadLog>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) spool: Option<Arc<dyn Spool>>,
    tail: Mutex<TailState>,
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

    fn lock_tail(&self) -> MutexGuard<'_, TailState> {
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
            *known = TailState::default();
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
        Self::indexed(&mut known, base)
    }

    /// Returns the generation below the tail, and the tail with which the follower of a copy of
    /// this store begins; see [`JournalFollower::begin_with`].
    pub(crate) fn copied_tail(&self) -> Result<(Arc<dyn Snapshot>, TailState)> {
        let mut known = self.lock_tail();
        // The request of this thread may have read the journal before other writers appended.
        self.catch_up(&mut known)?;
        let generation = self.look_with_base(&mut known)?;
        let tail = TailState {
            start: known.start,
            end: known.end,
            records: Arc::clone(&known.records),
            refs: Arc::clone(&known.refs),
            base: known.base.clone(),
            loaded: true,
            is_copy: true,
            ..TailState::default()
        };
        Ok((generation, tail))
    }

    /// Begins with the tail of a copied store. The journal of the copy need not contain it.
    pub(crate) fn begin_with(&self, tail: TailState) {
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
        let TailState { records, .. } = std::mem::take(&mut *self.lock_tail());
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
        *self.lock_tail() = TailState::default();
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
            return Self::indexed(&mut known, base);
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
    fn adopt_newer_base(&self, known: &mut TailState) -> Result<bool> {
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
            *known = TailState::default();
        } else {
            self.rebase(known, newest);
        }
        Ok(true)
    }

    /// Rebases the tail onto the generation at this position. Returns the old state.
    fn rebase(&self, known: &mut TailState, position: LogPosition) -> Option<TailState> {
        let old = known.rebase_onto(position)?;
        let begun = known.records.first().and_then(|first| head_of(&first.record)).cloned();
        let rebased = begun.is_some_and(|head| {
            known.advance_all(&old, self.generation(position, Some(head))).is_ok()
        });
        if !rebased {
            // The next reader reads the journal again, and reports what is wrong.
            *known = TailState::default();
        }
        Some(old)
    }

    fn generation(
        &self,
        position: LogPosition,
        head: Option<StoreHead>,
    ) -> Arc<PublishedGeneration> {
        let (log, index) = (Arc::clone(&self.log), Arc::clone(&self.index));
        Arc::new(PublishedGeneration { log, index, position, head, opened: OnceLock::new() })
    }

    /// Begins a request of this thread; see [`StoreRequest`].
    pub(crate) fn begin_request(&self, has_looked: bool) -> StoreRequest {
        StoreRequest::begin(self.address(), has_looked)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Reads the new records of the journal, unless this thread's request has done so.
    fn look(&self, known: &mut TailState) -> Result<()> {
        if known.loaded && request::has_looked(self.address()) {
            return Ok(());
        }
        self.catch_up(known)?;
        request::note_look(self.address());
        Ok(())
    }

    /// Reads the new records like [`JournalFollower::look`], and opens the generation below the
    /// tail.
    fn look_with_base(&self, known: &mut TailState) -> Result<Arc<dyn Snapshot>> {
        for _ in 0..MAX_ATTEMPTS {
            self.look(known)?;
            if self.adopt_newer_base(known)? {
                continue;
            }
            if let Some(base) = self.ensure_base(known)? {
                return Ok(base);
            }
            *known = TailState::default();
        }
        Err(replaced_too_fast())
    }

    fn catch_up(&self, known: &mut TailState) -> Result<()> {
        let mut lost: Option<(LogPosition, backend::Error)> = None;
        if !known.is_copy && known.base.as_ref().is_some_and(|base| base.expires_soon()) {
            *known = TailState::default();
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
                *known = TailState { start, end: start, loaded: true, ..TailState::default() };
            }
            match self.read_more(known, first) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Error::Backend(error @ backend::Error::Gone { .. })) => {
                    lost = Some((known.start, error));
                    *known = TailState::default();
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
        known: &mut TailState,
        read: Option<Result<LogTail, backend::Error>>,
    ) -> Result<bool> {
        let tail = read.unwrap_or_else(|| self.log.read(known.end, READ_BYTES))?;
        let is_more = tail.end - known.end >= READ_BYTES;
        // Each frame is freed after decoding, so that the next record reuses its memory.
        tail.frames.into_iter().try_for_each(|frame| self.extend(known, &frame))?;
        Ok(is_more)
    }

    fn extend(&self, known: &mut TailState, frame: &LogFrame) -> Result<()> {
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
    fn ensure_base(&self, known: &mut TailState) -> Result<Option<Arc<dyn Snapshot>>> {
        let start = known.start;
        let base = known.base.get_or_insert_with(|| self.generation(start, None));
        match base.open() {
            Ok(base) => Ok(Some(Arc::clone(base))),
            Err(Error::Backend(backend::Error::Gone { .. })) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn indexed(known: &mut TailState, base: Arc<dyn Snapshot>) -> Result<ReadSnapshot> {
        if known.indexed < known.records.len() {
            known.index(&*base)?;
        }
        Ok(ReadSnapshot {
            base,
            rows: Arc::clone(&known.rows),
            operation_rows: known.operation_rows.clone(),
            position: known.end,
            object_cache: Arc::clone(&known.object_cache),
            planned: false,
            refs: Arc::clone(&known.refs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::refs::tests::of_one_session;
    use crate::format::{DeltaPart, RecordBytes};
    use crate::model::{Operation, OperationAuthor, OperationId, Timestamp};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn record(counts: &[u64]) -> PositionedRecord {
        let operation = Operation {
            id: OperationId::from_bytes([0; 16]),
            verb: "import".to_owned(),
            author: OperationAuthor::Hook,
            time: Timestamp::default(),
        };
        let facts = |count: &u64| RecordChange::Facts {
            session: 0,
            count: *count,
            first: Timestamp::default(),
            last: Timestamp::default(),
            page: DeltaPart::Inline(RecordBytes::default()),
        };
        let changes = counts.iter().map(facts).collect();
        PositionedRecord { position: 0, hash: [0; 32], record: Record { operation, changes } }
    }

    /// After a panic between two changes of a record, the same process read half of the record.
    #[test]
    fn after_a_panic_in_a_record_the_tail_is_read_again() {
        let refs = Arc::new(of_one_session(Timestamp::default()));
        let mut tail = TailState { refs, loaded: true, ..TailState::default() };
        tail.add(record(&[1, 2]), 10).unwrap();
        assert_eq!((tail.loaded, tail.end, tail.records.len()), (true, 10, 1));
        // The second count is more than fits.
        let added = catch_unwind(AssertUnwindSafe(|| tail.add(record(&[1, u64::MAX]), 20)));
        assert!(added.is_err());
        assert_eq!((tail.loaded, tail.end, tail.records.len()), (false, 10, 1));
    }
}
