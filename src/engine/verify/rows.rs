//! Verifies every derived row by making it again.

use super::{VerifyFindings, chain};
use crate::backend::{Snapshot, TableId};
use crate::engine::derive;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::StoreRefs;
use crate::engine::row_totals;
use crate::engine::table_rows::for_each_row;
use crate::error::Result;
use crate::format::{PrewrittenRow, key};
use std::collections::{HashMap, HashSet};

/// Makes every derived row again, compares it with the stored one, and checks that there are no
/// others.
pub(super) fn derived_rows(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let mut made: HashSet<[u8; 8]> = HashSet::new();
    let mut wrong: HashMap<TableId, u64> = HashMap::new();
    let mut troubles = Vec::new();
    let mut rows = 0;
    let refs: &StoreRefs = &view.refs;
    derive::derive_all(
        view,
        refs,
        &mut |table, key, value| {
            made.insert(short(table, &key));
            rows += 1;
            if view.get(table, &key)?.as_ref() != Some(&value) {
                *wrong.entry(table).or_default() += 1;
            }
            Ok(())
        },
        &mut |place, error| troubles.push((place, chain(&error))),
    )?;
    findings.checked.rows = rows;
    for table in derive::DERIVED {
        for_each_row(view, table, |key, _| {
            if !made.contains(&short(table, key)) {
                *wrong.entry(table).or_default() += 1;
            }
            Ok(())
        })?;
    }
    for (table, count) in wrong {
        // If primary data is damaged, its derived rows cannot be made; the damage is already
        // reported.
        if troubles.is_empty() {
            findings.add_derived(format!("table {}", table.0), &format!("{count} rows are wrong"));
        }
    }
    let known: HashSet<String> = findings.found.iter().map(|one| one.place.clone()).collect();
    for (place, problem) in troubles {
        if !known.contains(&place) {
            findings.add_primary(place, &problem);
        }
    }
    Ok(())
}

fn short(table: TableId, key: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[table.0]).update(key);
    *hasher.finalize().as_bytes().first_chunk().expect("8 of 32 bytes")
}

/// Checks that the rows that list pre-written objects can be decoded: a sweep needs them.
pub(super) fn prewritten_rows(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    for_each_row(view, key::PREWRITTEN, |place, row| {
        if let Err(error) = PrewrittenRow::decode(row) {
            let number = key::last_number(place).unwrap_or(0);
            findings
                .add_primary(format!("when the object number {number} was pre-written"), &error);
        }
        Ok(())
    })
}

/// Checks the totals of operations and segments: the loss of these rows could not be noticed
/// otherwise.
pub(super) fn totals(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let (kept, counted) =
        (row_totals::stored_totals(view)?.unwrap_or_default(), row_totals::count_totals(view)?);
    if counted.operations < kept.operations || counted.segments < kept.segments {
        let problem = format!(
            "there are {} of {} operations, and {} of {} parts",
            counted.operations, kept.operations, counted.segments, kept.segments
        );
        findings.add_primary("operations and parts of sources", &problem);
    } else if counted != kept {
        findings.add_derived("the totals", &"they are too low");
    }
    Ok(())
}
