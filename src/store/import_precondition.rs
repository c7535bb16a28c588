//! Checks that no other import of a source happened between reading its bookmark and writing.

use crate::backend::Snapshot;
use crate::engine::object;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::StoreRefs;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{RecordChange, SegmentRow};
use crate::model::SessionNumber;

/// The precondition of an import: there was no concurrent import of the same source, and no purge.
#[derive(Clone, Debug)]
pub(crate) struct ImportPrecondition {
    pub(super) source: String,
    /// How many bytes of the source were imported before.
    pub(super) from: u64,
    /// The segments that were written in advance.
    pub(super) parts: Vec<RecordChange>,
    /// The number of purges so far: a purge may change the bytes that a segment's compression
    /// depends on.
    pub(super) purges: u64,
}

impl ImportPrecondition {
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Checks that the bookmark is unchanged and that no purge happened.
    pub(super) fn check_bookmark(&self, refs: &StoreRefs, session: SessionNumber) -> Result<()> {
        let session = session_refs(refs, session)?;
        if refs.purges != self.purges {
            return Err(Error::Conflict(format!(
                "a secret was purged while '{}' was imported: continue from its bookmark",
                self.source
            )));
        }
        let known = session.bookmarks.iter().find(|known| known.source == self.source);
        if known.map_or(0, |known| known.bytes) == self.from {
            Ok(())
        } else {
            Err(self.overtaken())
        }
    }

    /// Checks the bookmark, and that the pre-written segments are still stored.
    pub(crate) fn check(
        &self,
        refs: &StoreRefs,
        session: SessionNumber,
        view: impl FnOnce() -> Result<ReadSnapshot>,
    ) -> Result<()> {
        self.check_bookmark(refs, session)?;
        if self.parts.is_empty() {
            return Ok(());
        }
        let view = view()?;
        for part in &self.parts {
            let RecordChange::Segment { session, blob, offset, object, .. } = part else {
                continue;
            };
            let place = of(*session).text(blob).number(*offset).build();
            let Some(row) = view.get(key::SEGMENTS, &place)? else { return Err(self.overtaken()) };
            let row = SegmentRow::decode(&row).map_err(Error::corrupt("a part of a blob"))?;
            if object::encoded(&view, row.object)? != object.0 {
                return Err(self.overtaken());
            }
        }
        Ok(())
    }

    fn overtaken(&self) -> Error {
        Error::Conflict(format!(
            "another process has just imported '{}': continue from its bookmark",
            self.source
        ))
    }
}
