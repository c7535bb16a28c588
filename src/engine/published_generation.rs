//! The generation of the index below a tail of the journal, opened and checked when it is needed.

use super::gap_check::GapCheckedSnapshot;
use super::refs::StoreRefs;
use super::session_table::SessionSource;
use crate::backend::{
    self, Index, IntegrityBreach, LogPosition, ScanDirection, Snapshot, WriteAheadLog,
};
use crate::error::Result;
use crate::format::{StoreHead, key};
use std::sync::{Arc, OnceLock};

/// A generation of the index, below a tail of the journal.
pub(super) struct PublishedGeneration {
    log: Arc<dyn WriteAheadLog>,
    index: Arc<dyn Index>,
    position: LogPosition,
    /// The head of the segment after the generation, if it was read.
    pub(super) head: Option<StoreHead>,
    opened: OnceLock<Arc<dyn Snapshot>>,
}

impl PublishedGeneration {
    /// Returns the generation at this position, which is opened when it is needed.
    pub(super) fn new(
        log: Arc<dyn WriteAheadLog>,
        index: Arc<dyn Index>,
        position: LogPosition,
        head: Option<StoreHead>,
    ) -> Self {
        Self { log, index, position, head, opened: OnceLock::new() }
    }

    /// Opens the generation, if it is not open yet.
    ///
    /// # Errors
    /// [`Gone`](backend::Error::Gone) if a newer one has replaced it.
    pub(super) fn open(&self) -> Result<&Arc<dyn Snapshot>> {
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
    pub(super) fn expires_soon(&self) -> bool {
        self.opened.get().is_some_and(|base| base.expires_soon())
    }

    /// Returns the refs at the position of the generation.
    pub(super) fn refs(self: &Arc<Self>) -> StoreRefs {
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
