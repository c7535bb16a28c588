//! Row counts of the tables in which a missing row would not be noticed otherwise.

use super::table_rows::count_rows;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::{TotalsRow, key};

/// Returns the stored row counts, if there are any.
pub(crate) fn stored_totals(view: &dyn Snapshot) -> Result<Option<TotalsRow>> {
    let row = view.get(key::COUNTERS, key::TOTALS)?;
    row.map(|row| TotalsRow::decode(&row)).transpose().map_err(Error::corrupt("the totals"))
}

/// Counts the rows in the tables.
pub(crate) fn count_totals(view: &dyn Snapshot) -> Result<TotalsRow> {
    Ok(TotalsRow {
        operations: count_rows(view, key::OPERATIONS)?,
        segments: count_rows(view, key::SEGMENTS)?,
    })
}
