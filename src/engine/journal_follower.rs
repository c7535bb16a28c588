//! Where a process stands: the newest generation it knows and the journal's tail behind it.

mod read_snapshot;

use super::gap_check::GapCheckedSnapshot;
use super::index::{self, PositionedRecord};
use super::object;
use super::object_cache::ObjectCache;
use super::parallel;
use super::refs::advance;
use super::row_overlay::RowOverlay;
use super::spool;
use crate::backend::{
    self, Index, IntegrityBreach, LogFrame, LogPosition, LogTail, ScanDirection, Snapshot, Spool,
    WriteAheadLog,
};
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange, StoreRefs, key};
use crate::model::{SessionId, SessionNumber};
use read_snapshot::LazyOperationRows;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use read_snapshot::ReadSnapshot;

/// What is known of the journal's tail.
#[derive(Default)]
struct TailState {
    /// Where the tail begins: the position of the generation it stands on.
    start: LogPosition,
    /// Where it ends.
    end: LogPosition,
    records: Vec<Arc<PositionedRecord>>,
    /// The refs at the end.
    refs: Arc<StoreRefs>,
    /// The generation, once somebody needed it.
    base: Option<Arc<dyn Snapshot>>,
    /// Objects of the generation and the tail that were opened.
    opened: Arc<ObjectCache>,
    /// The rows of the first `indexed` records.
    rows: Arc<RowOverlay>,
    rows_refs: StoreRefs,
    /// Where those have none of operations: what makes all.
    operation_rows: Option<Arc<LazyOperationRows>>,
    indexed: usize,
    loaded: bool,
}

impl TailState {
    /// Stands on the generation at this position: what is before it need not be known any longer.
    /// What is behind it stays, so that the next writer need not read it again. Gives what was
    /// known.
    fn rebase_onto(&mut self, position: LogPosition) -> Self {
        // It does, or on a newer one: whoever made it is not the first to say so.
        if self.loaded && position <= self.start {
            return Self::default();
        }
        let mut next = Self::default();
        if self.loaded && (self.start..=self.end).contains(&position) {
            let applied = self.records.partition_point(|placed| placed.position < position);
            next.records = self.records.split_off(applied);
            (next.start, next.end, next.loaded) = (position, self.end, true);
            next.refs = std::mem::take(&mut self.refs);
        }
        std::mem::replace(self, next)
    }

    /// Moves the refs on by a record. With half of it they would be those of no moment, so an error
    /// leaves nothing known.
    fn advance_refs(&mut self, record: &Record) -> Result<()> {
        let moved = advance(Arc::make_mut(&mut self.refs), record);
        if moved.is_err() {
            *self = Self::default();
        }
        moved
    }

    /// Makes the rows of the records that have none yet. With half of a record they would be those
    /// of no moment: they are taken out meanwhile, and after an error begun anew.
    ///
    /// Those of operations are left to whoever asks for them, until somebody does, or a record
    /// needs them.
    fn index(&mut self, base: &dyn Snapshot) -> Result<()> {
        let anew = || (Arc::new(object::rows_of_tail()), StoreRefs::default(), 0);
        let (mut rows, mut refs, mut from) = match std::mem::take(&mut self.indexed) {
            0 => anew(),
            from => (std::mem::take(&mut self.rows), std::mem::take(&mut self.rows_refs), from),
        };
        let whole = self.operation_rows.take();
        let asked_for = whole.as_ref().and_then(|whole| whole.made());
        let none_yet = from == 0 || (whole.is_some() && asked_for.is_none());
        let new = self.records.get(from..).unwrap_or_default();
        if none_yet && new.iter().all(|placed| index::needs_no_operations(&placed.record)) {
            index::apply_all_but_operations(base, Arc::make_mut(&mut rows), &mut refs, new)?;
            self.operation_rows = Some(Arc::new(LazyOperationRows::of(self.records.clone())));
        } else {
            if let Some(all) = asked_for {
                rows = Arc::new(all.clone());
            } else if none_yet {
                (rows, refs, from) = anew();
            }
            let new = self.records.get(from..).unwrap_or_default();
            index::apply_all(base, Arc::make_mut(&mut rows), &mut refs, new)?;
        }
        (self.rows, self.rows_refs, self.indexed) = (rows, refs, self.records.len());
        Ok(())
    }
}

/// Follows a store. Shared by all that work with it in one process.
pub(crate) struct JournalFollower {
    pub(crate) log: Arc<dyn WriteAheadLog>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) spool: Option<Arc<dyn Spool>>,
    tail: Mutex<TailState>,
    /// Sessions that wait in the spool, with the numbers that this process gave them out under.
    promised: Mutex<Vec<(SessionNumber, SessionId)>>,
    /// Where one moment is held: that moment, once somebody has read it.
    held: OnceLock<Mutex<Option<ReadSnapshot>>>,
}

/// One read of the journal takes about this many bytes.
const READ_BYTES: u64 = 8 << 20;
/// With a longer tail it is worth looking for a newer generation. While one is applied a writer of
/// 25 changes at a time adds 3 to 7 MB: if the thread that applies it is this process's, that one
/// should be the first to stand on it.
const LONG_TAIL_BYTES: u64 = 12 << 20;
/// A generation may be replaced while it is being opened; more often than this in a row something
/// is wrong.
const MAX_ATTEMPTS: usize = 100;

impl JournalFollower {
    pub(crate) fn new(
        log: Arc<dyn WriteAheadLog>,
        index: Arc<dyn Index>,
        spool: Option<Arc<dyn Spool>>,
    ) -> Self {
        let (known, promised) = (Mutex::default(), Mutex::default());
        Self { log, index, spool, tail: known, promised, held: OnceLock::new() }
    }

    /// Shows the moment of the first read from now on, whatever is written meanwhile.
    pub(crate) fn hold(&self) {
        self.held.get_or_init(Mutex::default);
    }

    fn held(&self) -> Option<MutexGuard<'_, Option<ReadSnapshot>>> {
        // Every change to it is one assignment.
        self.held.get().map(|held| held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One consistent moment: now, with what waits in the spool.
    pub(crate) fn view(&self) -> Result<ReadSnapshot> {
        let Some(mut held) = self.held() else { return self.view_now() };
        let view = match held.take() {
            Some(view) => view,
            None => self.view_now()?,
        };
        Ok(held.insert(view).clone())
    }

    fn view_now(&self) -> Result<ReadSnapshot> {
        // The spool first: what leaves it meanwhile stands in the journal by then.
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

    /// The refs now, with what waits in the spool. Where nothing waits, nothing but the journal is
    /// opened.
    pub(crate) fn refs(&self) -> Result<(Arc<StoreRefs>, LogPosition)> {
        if let Some(view) = self.held().and_then(|held| held.clone()) {
            return Ok((view.refs, view.position));
        }
        let waiting = self.waiting()?;
        if waiting.whole.is_empty() && waiting.broken.is_empty() {
            let (refs, end) = self.written_refs()?;
            self.check_promised(&refs)?;
            return Ok((refs, end));
        }
        let view = self.view()?;
        Ok((view.refs, view.position))
    }

    /// Leaves what was read to the system, which frees it all at once when the process ends.
    pub(crate) fn leave(&self) {
        std::mem::forget(std::mem::take(&mut *self.lock_tail()));
        std::mem::forget(self.held().and_then(|mut held| held.take()));
    }

    /// What this process knew last, without looking.
    pub(crate) fn known_refs(&self) -> Arc<StoreRefs> {
        Arc::clone(&self.lock_tail().refs)
    }

    fn waiting(&self) -> Result<spool::Waiting> {
        match &self.spool {
            Some(spool) => spool::pending_entries(&**spool),
            None => Ok(spool::Waiting::default()),
        }
    }

    /// Notes under which number a session was given out that waits in the spool.
    pub(crate) fn promise(&self, number: SessionNumber, id: SessionId) {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner).push((number, id));
    }

    pub(crate) fn has_promised(&self) -> bool {
        !self.promised.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// A session that waited may have come to stand behind another one: then nothing here may go on
    /// to call it by the number it was given out under.
    pub(crate) fn check_promised(&self, refs: &StoreRefs) -> Result<()> {
        let promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, id) in promised.iter() {
            let there = refs.sessions.get(*number);
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
        // A panic while it was held leaves at worst a known prefix, and every change to it is one
        // assignment.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this process stands, without looking at the store.
    pub(crate) fn end(&self) -> LogPosition {
        self.lock_tail().end
    }

    /// The refs at the end of the journal. Opens nothing but the journal.
    pub(crate) fn written_refs(&self) -> Result<(Arc<StoreRefs>, LogPosition)> {
        let mut known = self.lock_tail();
        self.catch_up(&mut known)?;
        if self.adopt_newer_base(&mut known)? {
            self.catch_up(&mut known)?;
        }
        Ok((Arc::clone(&known.refs), known.end))
    }

    /// How many bytes of journal stand behind the generation.
    pub(crate) fn tail_bytes(&self) -> u64 {
        let known = self.lock_tail();
        known.end - known.start
    }

    /// The moment at the end of the journal.
    pub(crate) fn written_view(&self) -> Result<ReadSnapshot> {
        let mut known = self.lock_tail();
        for _ in 0..MAX_ATTEMPTS {
            self.catch_up(&mut known)?;
            if self.adopt_newer_base(&mut known)? {
                continue;
            }
            if self.ensure_base(&mut known)? {
                return Self::indexed(&mut known);
            }
            *known = TailState::default();
        }
        Err(Error::Internal("the index is replaced faster than it can be opened".to_owned()))
    }

    /// Takes in records that this process has read or written by itself. Those it knows already are
    /// passed over.
    pub(crate) fn take_in(&self, tail: &LogTail) -> Result<Arc<StoreRefs>> {
        let mut known = self.lock_tail();
        // Another thread may have published a generation since this one began, and nothing is known
        // but the store.
        let follows = tail.frames.first().is_none_or(|frame| frame.position <= known.end);
        if known.loaded && follows {
            for frame in &tail.frames {
                Self::extend(&mut known, frame)?;
            }
        } else {
            self.catch_up(&mut known)?;
        }
        if self.adopt_newer_base(&mut known)? {
            self.catch_up(&mut known)?;
        }
        Ok(Arc::clone(&known.refs))
    }

    /// Takes in a record that this process has just written.
    pub(crate) fn note_written(&self, placed: PositionedRecord, end: LogPosition) -> Result<()> {
        let mut known = self.lock_tail();
        // Another thread may have read it from the journal already.
        if known.loaded && known.end == placed.position {
            known.advance_refs(&placed.record)?;
            known.end = end;
            known.records.push(Arc::new(placed));
        }
        Ok(())
    }

    /// The records from a position on; `None` if they are no longer known one by one.
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

    /// What it costs a reader to take in the tail, in bytes of compressed objects: half of those it
    /// has, since small deltas stand there as they are, and some for each record.
    pub(crate) fn tail_cost(&self) -> u64 {
        const RECORD_BYTES: u64 = 8192;
        let known = self.lock_tail();
        (known.end - known.start) / 2 + known.records.len() as u64 * RECORD_BYTES
    }

    /// Forgets everything: the store is read anew.
    pub(crate) fn forget(&self) {
        *self.lock_tail() = TailState::default();
    }

    /// Removes generations that nobody reads any more. What somebody still reads goes with a later
    /// one.
    pub(crate) fn tidy(&self) {
        if let Err(error) = self.index.tidy() {
            tracing::debug!(%error, "older generations of the index were left");
        }
    }

    /// Notes that a generation at this position was published.
    pub(crate) fn note_published(&self, position: LogPosition) {
        let mut known = self.lock_tail();
        let old = known.rebase_onto(position);
        drop(known);
        // Who waited for it may have been woken up on this core.
        parallel::yield_to_foreground();
        // To close a generation and to free what was read of it takes longer than a writer should
        // wait.
        drop(old);
    }

    /// As [`Live::written`], but of what is known, without reading the journal: for use under the
    /// append lock, after [`Live::take_in`].
    pub(crate) fn view_known(&self) -> Result<ReadSnapshot> {
        let mut known = self.lock_tail();
        if known.loaded && self.ensure_base(&mut known)? {
            return Self::indexed(&mut known);
        }
        drop(known);
        self.written_view()
    }

    /// As [`Live::view_known`], to make a generation of it: objects of the tail have the numbers
    /// that follow those of the generation below, as an apply would give them.
    pub(crate) fn view_to_write_anew(&self) -> Result<ReadSnapshot> {
        let view = self.view_known()?;
        let known = self.lock_tail();
        if (known.start, known.end) != (view.base.position(), view.position) {
            return Err(Error::Internal("the journal moved on under its lock".to_owned()));
        }
        object::check_counter(view.generation())?;
        let mut rows = RowOverlay::default();
        index::apply_all(view.generation(), &mut rows, &mut StoreRefs::default(), &known.records)?;
        Ok(ReadSnapshot {
            rows: Arc::new(rows),
            operation_rows: None,
            opened: Arc::default(),
            ..view
        })
    }

    /// Stands on a newer generation where there is one and it should be: the tail is long, or a
    /// secret was purged from what this one holds. Returns whether it does.
    fn adopt_newer_base(&self, known: &mut TailState) -> Result<bool> {
        let begun = known.records.first().and_then(|first| first.record.changes.first());
        let purged = match begun {
            Some(RecordChange::Refs(refs)) => refs.purges < known.refs.purges,
            _ => known.refs.purges > 0,
        };
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
            known.rebase_onto(newest);
        }
        Ok(true)
    }

    fn catch_up(&self, known: &mut TailState) -> Result<()> {
        let mut gone: Option<(LogPosition, backend::Error)> = None;
        for _ in 0..MAX_ATTEMPTS {
            if !known.loaded {
                let start = self.index.position()?;
                // The journal begins behind the newest generation: its first segments are lost.
                if let Some((_, error)) = gone.take_if(|(from, _)| *from >= start) {
                    return Err(error.into());
                }
                *known = TailState { start, end: start, loaded: true, ..TailState::default() };
            }
            match self.log.read(known.end, READ_BYTES) {
                Ok(tail) if tail.frames.is_empty() => return Ok(()),
                Ok(tail) => {
                    // Each is freed as soon as it was decoded: what is decoded next takes its place
                    // in memory.
                    for frame in tail.frames {
                        Self::extend(known, &frame)?;
                    }
                }
                Err(error @ backend::Error::Gone { .. }) => {
                    gone = Some((known.start, error));
                    *known = TailState::default();
                }
                Err(other) => return Err(other.into()),
            }
        }
        if known.loaded {
            // Somebody writes faster than we read: what is known is a moment too.
            Ok(())
        } else {
            Err(Error::Internal("the journal is replaced faster than it can be read".to_owned()))
        }
    }

    fn extend(known: &mut TailState, frame: &LogFrame) -> Result<()> {
        if frame.position < known.end {
            return Ok(());
        }
        let record = Record::decode(&frame.payload)
            .map_err(Error::corrupt(format_args!("the record at {}", frame.position)))?;
        // A generation ends where a segment begins, and that with the refs: else it stands
        // elsewhere than its name says.
        let begins = matches!(record.changes.first(), Some(RecordChange::Refs(_)));
        if known.end == known.start && known.start > 0 && !begins {
            return Err(Error::Corrupt {
                what: "the index".to_owned(),
                source: format!("it ends at {}, where no segment begins", known.start).into(),
            });
        }
        known.advance_refs(&record)?;
        let placed = PositionedRecord { position: frame.position, hash: frame.hash, record };
        known.records.push(Arc::new(placed));
        known.end = frame.end;
        Ok(())
    }

    /// Opens the generation that the tail stands on. `false`: it is another one by now, begin
    /// again.
    fn ensure_base(&self, known: &mut TailState) -> Result<bool> {
        if known.base.is_some() {
            return Ok(true);
        }
        let base = self.index.snapshot()?;
        if base.position() != known.start {
            return Ok(false);
        }
        self.check_witnessed(&*base)?;
        known.base = Some(match known.records.first() {
            Some(behind) => Arc::new(GapCheckedSnapshot::new(base, behind)),
            None => base,
        });
        Ok(true)
    }

    /// Whether the record that the journal was last seen to end with is the one that the index
    /// holds, if it holds it.
    fn check_witnessed(&self, base: &dyn Snapshot) -> Result<()> {
        let Some((position, hash)) = self.log.witnessed()? else { return Ok(()) };
        if position == 0 || position > base.position() {
            return Ok(());
        }
        let before = key::KeyBuilder::new().number(position).build();
        let last = base.scan(key::RECORDS, &[], &before, ScanDirection::Descending, 1)?;
        if last.first().is_some_and(|(_, found)| *found == hash) {
            return Ok(());
        }
        let what = format!(
            "the record that ends at position {position} is not the one that the store's witness saw: another copy of \
             the store was put in its place"
        );
        Err(backend::Error::Breach { breach: IntegrityBreach::Replaced, what }.into())
    }

    fn indexed(known: &mut TailState) -> Result<ReadSnapshot> {
        let base = Arc::clone(known.base.as_ref().expect("opened by the caller"));
        if known.indexed < known.records.len() {
            known.index(&*base)?;
        }
        Ok(ReadSnapshot {
            base,
            rows: Arc::clone(&known.rows),
            operation_rows: known.operation_rows.clone(),
            position: known.end,
            opened: Arc::clone(&known.opened),
            planned: false,
            refs: Arc::clone(&known.refs),
        })
    }
}
