//! `forge maintain`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::store::Maintained;
use crate::workplace::{self, Access};

/// Brings the index up to date and rewrites it.
pub fn run(context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let tail_bytes_before = store.tail_bytes()?;
    let applied = store.maintain(0)?;
    let compacted = store.compact()?;
    let tail_bytes = store.tail_bytes()?;
    context.out.emit(&Maintained { applied, compacted, tail_bytes_before, tail_bytes })
}
