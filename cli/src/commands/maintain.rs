//! `forge maintain`.

use super::prune;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::store::MaintainReport;
use crate::workspace::{self, StoreAccess};

/// Prunes if the settings say so, sweeps what can no longer be undone, updates the index and
/// rewrites it.
pub fn run(context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let tail_bytes_before = store.tail_bytes()?;
    prune::prune_automatically(context, &store)?;
    let applied = store.maintain(0)?;
    let undo = prune::undo_window(&context.config);
    let swept = store.sweep(context.now, context.now.plus_micros(-prune::micros(undo)))?;
    if swept.prunings > 0 || swept.prewritten > 0 {
        store.maintain(0)?;
    }
    let compacted = store.compact()?;
    store.keep_reserve()?;
    let tail_bytes = store.tail_bytes()?;
    context.out.emit(&MaintainReport {
        applied,
        compacted,
        swept: swept.prunings,
        tail_bytes_before,
        tail_bytes,
    })
}
