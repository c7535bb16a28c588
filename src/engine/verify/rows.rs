//! Every derived row, made again and compared.

use super::{Findings, chain};
use crate::backend::{Snapshot, Table};
use crate::engine::derive;
use crate::engine::derive::each;
use crate::engine::live::View;
use crate::engine::total;
use crate::error::Result;
use crate::format::{AheadRow, Refs, key};
use std::collections::{HashMap, HashSet};

/// Every derived row, made again and compared; and that there are no others.
pub(super) fn derived_rows(view: &View, findings: &mut Findings) -> Result<()> {
    let mut made: HashSet<[u8; 8]> = HashSet::new();
    let mut wrong: HashMap<Table, u64> = HashMap::new();
    let mut troubles = Vec::new();
    let mut rows = 0;
    let refs: &Refs = &view.refs;
    derive::all(
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
        each(view, table, |key, _| {
            if !made.contains(&short(table, key)) {
                *wrong.entry(table).or_default() += 1;
            }
            Ok(())
        })?;
    }
    for (table, count) in wrong {
        // Where something stored is damaged, its derived rows cannot be made: that is said already.
        if troubles.is_empty() {
            findings.derived(format!("table {}", table.0), &format!("{count} rows are wrong"));
        }
    }
    let known: HashSet<String> = findings.found.iter().map(|one| one.place.clone()).collect();
    for (place, problem) in troubles {
        if !known.contains(&place) {
            findings.stored(place, &problem);
        }
    }
    Ok(())
}

fn short(table: Table, key: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[table.0]).update(key);
    *hasher.finalize().as_bytes().first_chunk().expect("8 of 32 bytes")
}

/// What was written ahead can be swept.
pub(super) fn ahead(view: &View, findings: &mut Findings) -> Result<()> {
    each(view, key::AHEAD, |place, row| {
        if let Err(error) = AheadRow::decode(row) {
            let number = key::last_number(place).unwrap_or(0);
            findings.stored(format!("when the object number {number} was written ahead"), &error);
        }
        Ok(())
    })
}

/// That no row is gone which nothing else would miss.
pub(super) fn totals(view: &View, findings: &mut Findings) -> Result<()> {
    let (kept, counted) = (total::kept(view)?.unwrap_or_default(), total::counted(view)?);
    if counted.operations < kept.operations || counted.segments < kept.segments {
        let problem = format!(
            "of {} and {} there are {} and {}",
            kept.operations, kept.segments, counted.operations, counted.segments
        );
        findings.stored("operations and parts of sources", &problem);
    } else if counted != kept {
        findings.derived("the totals", &"they are behind what is there");
    }
    Ok(())
}
