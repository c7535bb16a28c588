//! `forge maintain`.

use super::prune;
use crate::args::value::to_micros;
use crate::context::Context;
use crate::report::store::MaintainReport;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::StoreAccess;

#[derive(Debug, clap::Args)]
pub struct MaintainArgs {}

impl Verb for MaintainArgs {
    const NAME: &'static str = "maintain";
    type Opened = OpenedStore;
    type Report = MaintainReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let tail_bytes_before = store.tail_bytes()?;
        prune::prune_automatically(context, store)?;
        let mut applied = store.maintain(0)?;
        let undo = prune::undo_window(&context.config);
        let swept = store.sweep(context.now, context.now.plus_micros(-to_micros(undo)))?;
        if swept.prunings > 0 || swept.prewritten > 0 {
            // This applies the sweep to the index, so that the compaction frees the space.
            applied |= store.maintain(0)?;
        }
        let compacted = store.compact()?;
        store.keep_reserve()?;
        let tail_bytes = store.tail_bytes()?;
        Ok(MaintainReport {
            applied,
            compacted,
            swept: swept.prunings,
            tail_bytes_before,
            tail_bytes,
        })
    }
}
