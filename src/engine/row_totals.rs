//! Total numbers of rows whose loss could not be noticed otherwise.

use super::table_rows::for_each_row;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::{TotalsRow, key};

pub(crate) fn stored_totals(view: &dyn Snapshot) -> Result<Option<TotalsRow>> {
    let row = view.get(key::COUNTERS, key::TOTALS)?;
    row.map(|row| TotalsRow::decode(&row)).transpose().map_err(Error::corrupt("the totals"))
}

/// Counts the rows that exist.
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
