//! Brings the copy of texts up to date with the store, in proportion to what is new.

use super::catalogue::{Catalogue, ExaminedJournal};
use super::copy_writer::CopyWriter;
use super::session_texts::{KnownTexts, TextSink, new_texts};
use super::text_copy::{DamagedParts, TextCopy};
use crate::backend::Snapshot as _;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::table_rows;
use crate::error::{Error, Result};
use crate::format::RecordRow;
use crate::format::key::{self, KeyBuilder};
use crate::model::SessionNumber;
use crate::store::Store;
use crate::store::event_stream::TextResolver;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

/// If more records than this were examined, the new position is written even if there are no texts
/// to copy.
const MANY_RECORDS: usize = 256;

/// What is searched: sessions in a snapshot of a store.
pub(super) struct SearchScope<'a> {
    pub(super) store: &'a Store,
    pub(super) view: &'a ReadSnapshot,
    /// The sessions; `None` for all.
    pub(super) sessions: Option<BTreeSet<SessionNumber>>,
    pub(super) resolve: TextResolver<'a>,
}

/// The copy as a search uses it.
pub(super) struct CurrentCopy {
    /// `None` for a store in memory.
    pub(super) copy: Option<TextCopy>,
    /// The sessions in the scope that the copy does not have completely.
    pub(super) lacking: BTreeSet<SessionNumber>,
}

/// What is new in the journal since a copy was written.
struct ExaminedChanges {
    /// How far the journal is examined now.
    now: ExaminedJournal,
    /// The sessions in the new records.
    changed: BTreeSet<SessionNumber>,
    /// The number of new records.
    records: usize,
}

impl SearchScope<'_> {
    /// Returns whether a session is searched.
    pub(super) fn has(&self, session: SessionNumber) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&session))
            && (session as usize) < self.view.refs.sessions.len()
    }

    /// Reads the copy without these damaged parts. Brings it up to date if `may_write`, unless
    /// another process is writing it or it cannot be written.
    pub(super) fn current_copy(
        &self,
        damaged: &DamagedParts,
        may_write: bool,
    ) -> Result<CurrentCopy> {
        let Some(mut copy) = TextCopy::open(self.store)? else {
            let lacking = self.lacking(&Catalogue::default(), None);
            return Ok(CurrentCopy { copy: None, lacking });
        };
        let forgotten = copy.catalogue.removal_of(&damaged.blocks, &damaged.groups);
        let is_damaged = !forgotten.removed.is_empty() || !forgotten.removed_groups.is_empty();
        copy.catalogue.apply(forgotten);
        let examined = self.examine(&copy.catalogue)?;
        if examined.is_none() {
            copy.catalogue = Catalogue::default();
        }
        let lacking = self.lacking(&copy.catalogue, examined.as_ref());
        let many = examined.as_ref().is_some_and(|examined| examined.records > MANY_RECORDS);
        if !may_write || (lacking.is_empty() && !is_damaged && !many) {
            return Ok(CurrentCopy { copy: Some(copy), lacking });
        }
        match self.write(copy, damaged) {
            Ok(Some(copy)) => {
                let lacking = self.lacking(&copy.catalogue, None);
                return Ok(CurrentCopy { copy: Some(copy), lacking });
            }
            Ok(None) => {}
            // If the texts cannot be copied, each search reads them from the store.
            Err(error @ Error::Backend(_)) => {
                tracing::info!(%error, "the texts for searching were not kept");
            }
            Err(other) => return Err(other),
        }
        self.current_copy(damaged, false)
    }

    /// Returns the sessions in the scope that the copy does not have completely.
    fn lacking(
        &self,
        catalogue: &Catalogue,
        examined: Option<&ExaminedChanges>,
    ) -> BTreeSet<SessionNumber> {
        let lacks = |number: &SessionNumber| {
            catalogue.lacks(*number)
                || examined.is_some_and(|examined| examined.changed.contains(number))
        };
        match &self.sessions {
            Some(sessions) => sessions.iter().copied().filter(lacks).collect(),
            None => (0..self.view.refs.sessions.len() as SessionNumber).filter(lacks).collect(),
        }
    }

    /// Returns what is new in the journal; `None` if the copy is of another history, because the
    /// store was set back or the copy comes from another store.
    fn examine(&self, catalogue: &Catalogue) -> Result<Option<ExaminedChanges>> {
        let Some(known) = catalogue.examined else {
            let changed = BTreeSet::new();
            return Ok(Some(ExaminedChanges { now: self.now()?, changed, records: 0 }));
        };
        // Another search may have examined the journal further than this snapshot reaches.
        let later;
        let view = if known.position > self.view.position() {
            later = self.store.engine.follower.written_view()?;
            &later
        } else {
            self.view
        };
        let before = view.hash_before(known.position)?;
        if known.position > view.position() || ExaminedJournal::new(known.position, before) != known
        {
            return Ok(None);
        }
        let from = KeyBuilder::new().number(known.position).build();
        let rows = table_rows::rows_between(self.view, key::RECORDS, &from, &[])?;
        let mut changed = BTreeSet::new();
        for (_, row) in &rows {
            let row = RecordRow::decode(row).map_err(Error::corrupt("a record's row"))?;
            changed.extend(row.sessions);
        }
        let now = if rows.is_empty() { known } else { self.now()? };
        Ok(Some(ExaminedChanges { now, changed, records: rows.len() }))
    }

    fn now(&self) -> Result<ExaminedJournal> {
        let position = self.view.position();
        Ok(ExaminedJournal::new(position, self.view.hash_before(position)?))
    }

    /// Writes what the copy lacks, and returns the copy; `None` if another process is writing it,
    /// or if it already has something that is later than this view.
    fn write(&self, copy: TextCopy, damaged: &DamagedParts) -> Result<Option<TextCopy>> {
        let Some(mut writer) = CopyWriter::begin(copy, Duration::ZERO)? else { return Ok(None) };
        writer.forget(damaged)?;
        let examined = match self.examine(&writer.copy.catalogue)? {
            Some(examined) => examined,
            None => {
                writer.restart()?;
                let (now, changed) = (self.now()?, BTreeSet::new());
                ExaminedChanges { now, changed, records: 0 }
            }
        };
        // The copy has something later than this view: an older state must not replace it.
        if examined.now.position > self.view.position() {
            return Ok(None);
        }
        writer.examined(examined.now, examined.changed.iter().copied())?;
        for number in self.lacking(&writer.copy.catalogue, None) {
            let is_removed = session_refs(&self.view.refs, number)?.removal.is_some();
            if is_removed && writer.copy.catalogue.blocks_of(number).next().is_some() {
                writer.remove_session(number)?;
            }
        }
        for number in self.lacking(&writer.copy.catalogue, None) {
            let writing = RefCell::new(&mut writer);
            let damaged = RefCell::new(DamagedParts::default());
            let before = writing.borrow().copy.catalogue.sessions.get(&number).cloned();
            let known = || Ok(writing.borrow().copy.known(number, &mut damaged.borrow_mut()));
            let mut sink = |entry, text: &str| writing.borrow_mut().add(number, entry, text);
            let session = self.store.session_at(number);
            let progress =
                new_texts(&session, self.view, before.as_ref(), &known, self.resolve, &mut sink)?;
            // With `before`, older claims were not read again. If they may have been in damaged
            // blocks, the session stays incomplete.
            if damaged.borrow().is_empty() || before.is_none() {
                writer.complete(progress);
            }
            writer.forget(&damaged.into_inner())?;
        }
        writer.finish().map(Some)
    }

    /// Passes the texts of a session that the copy lacks to `sink`, without copying them.
    pub(super) fn unkept_texts(
        &self,
        copy: Option<&TextCopy>,
        session: SessionNumber,
        damaged: &mut DamagedParts,
        sink: TextSink<'_>,
    ) -> Result<()> {
        let before = copy.and_then(|copy| copy.catalogue.sessions.get(&session));
        let damaged = RefCell::new(damaged);
        let known = || {
            Ok(copy.map_or_else(KnownTexts::default, |copy| {
                copy.known(session, &mut damaged.borrow_mut())
            }))
        };
        let of = self.store.session_at(session);
        new_texts(&of, self.view, before, &known, self.resolve, sink)?;
        Ok(())
    }
}
