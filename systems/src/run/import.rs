//! Imports checkpoints of runs that another program kept in the rows of a table.

use super::WorkflowRun;
use super::model::{RunItem, output_id};
use super::plan::{self, StepRecord};
use crate::row_import::RowImport;
use forge_store::error::Result;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{Store, WriteContext};
use std::cell::Cell;

/// A row of a table of checkpoints: a finished step of an item, and the outputs that the item had
/// then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointRow {
    /// The number of the row in its table. A later row of the same item has a greater number.
    pub number: i64,
    /// The finished step.
    pub record: StepRecord,
    /// The other steps with their outputs, in the order in which the steps were done.
    pub others: Vec<(String, String)>,
}

impl CheckpointRow {
    /// Returns the records of the other steps, and then the record of the row's own step.
    fn records(&self) -> Vec<StepRecord> {
        let own = StepRecord { row: Some(self.number), ..self.record.clone() };
        let others = self.others.iter().filter(|(step, _)| *step != own.step);
        let other = |(step, output): &(String, String)| StepRecord {
            item: own.item.clone(),
            step: step.clone(),
            output: output.clone(),
            ..StepRecord::default()
        };
        let mut records: Vec<StepRecord> = others.map(other).collect();
        records.push(own);
        records
    }
}

impl WorkflowRun {
    /// Imports a row in one revision, at the time of the context. The outputs of other steps are
    /// recorded before the step of the row, unless they are known. Durable after [`Store::sync`].
    ///
    /// Import the rows of an item from the oldest to the newest. A row that was imported before
    /// changes nothing. Neither does a row that is older than the last imported one.
    ///
    /// # Errors
    /// [`forge_store::error::Error::Invalid`] if the names are not valid; or any error of a write.
    pub fn import_row(
        store: &Store,
        act: &WriteContext,
        run: &str,
        row: &CheckpointRow,
    ) -> Result<RowImport> {
        let records = row.records();
        let mut keys = vec![plan::run_key(), Key::new(Kind::Item, row.record.item.clone())];
        for record in &records {
            keys.push(Key::new(Kind::Output, output_id(&record.item, &record.step)?));
        }
        let (wanted, result) = (keys.clone(), Cell::new(RowImport::Known));
        let edit = |known: &[Option<Value>]| {
            result.set(result_of(row, known.get(1)));
            if result.get() != RowImport::Saved {
                return Ok(Vec::new());
            }
            // Secrets are removed from stored texts, so they are removed before the comparison.
            let is_known = |record: &StepRecord, output: &Option<Value>| {
                let content = output.as_ref().and_then(|output| output.field("content")?.as_text());
                content == Some(&*store.without_secrets(&record.output))
            };
            let outputs = known.get(2..).unwrap_or_default();
            let new = records
                .iter()
                .zip(outputs)
                .filter(|(record, output)| record.row.is_some() || !is_known(record, output));
            let new: Vec<StepRecord> = new.map(|(record, _)| record.clone()).collect();
            plan::record(&wanted, known, &new, act.now)
        };
        let run = Self::open_or_create(store, act, run)?;
        run.session.write(act).imported().edit(keys, edit).commit()?;
        Ok(result.get())
    }
}

/// Returns the result of importing a row, given the stored item.
fn result_of(row: &CheckpointRow, stored: Option<&Option<Value>>) -> RowImport {
    let stored = stored.and_then(Option::as_ref);
    let rows = stored.map(|item| RunItem::read(&row.record.item, item).rows).unwrap_or_default();
    match rows.last() {
        _ if rows.contains(&row.number) => RowImport::Known,
        Some(last) if *last > row.number => RowImport::Older,
        _ => RowImport::Saved,
    }
}
