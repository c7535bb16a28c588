//! How many rows there are that nothing else would miss: without this number one that is gone looks
//! like one that never was.

use super::derive::for_each_row;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::{TotalsRow, key};

/// The totals as they are kept.
pub(crate) fn stored_totals(view: &dyn Snapshot) -> Result<Option<TotalsRow>> {
    let row = view.get(key::COUNTERS, key::TOTALS)?;
    row.map(|row| TotalsRow::decode(&row)).transpose().map_err(Error::corrupt("the totals"))
}

/// The totals of what is there.
pub(crate) fn count_totals(view: &dyn Snapshot) -> Result<TotalsRow> {
    let mut totals = TotalsRow::default();
    for (table, total) in
        [(key::OPERATIONS, &mut totals.operations), (key::SEGMENTS, &mut totals.segments)]
    {
        for_each_row(view, table, |_, _| {
            *total += 1;
            Ok(())
        })?;
    }
    Ok(totals)
}
