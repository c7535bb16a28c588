//! Computes the rows of the derived tables: when a record is indexed, when an index is rebuilt, and
//! when it is verified. They depend only on primary rows and on the sessions.

use super::index::incomplete::key_in;
use super::lineage::RevisionRef;
use super::object::{self, LOST_OBJECT};
use super::session_rows::derive_session;
use super::table_rows::for_each_row;
use crate::backend::{Snapshot, TableId};
use crate::engine::refs::StoreRefs;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    Checkout, CheckpointRow, Delta, FactPage, FactPageOutline, FactRow, ObjectKind,
    OperationEffect, OperationRow, ResetSource, RevisionHeader, RevisionRow, SequenceRow,
    entity_hash, object_id, object_kind,
};
use crate::model::{
    BranchNumber, Checkpoint, ObjectId, OperationId, RevisionId, SessionId, SessionNumber,
    Timestamp,
};
use std::collections::{BTreeMap, HashMap};

/// Receives a derived row: table, key, value.
pub(crate) type RowSink<'a> = &'a mut dyn FnMut(TableId, Vec<u8>, Vec<u8>) -> Result<()>;

/// Primary tables: their rows cannot be computed from anything else.
pub(crate) const PRIMARY: [TableId; 10] = {
    use key::*;
    [
        OBJECTS, REVISIONS, CHECKPOINTS, OPERATIONS, BOOKMARKS, SEGMENTS, FOLDS, FOLDED, PRUNINGS,
        PREWRITTEN,
    ]
};

/// Derived tables: [`derive_all`] makes all of their rows.
pub(crate) const DERIVED: [TableId; 21] = {
    use key::*;
    [
        SEQUENCES, TIMES, IDS, CHECKPOINT_TIMES, ALL_CHECKPOINTS, TAGS, HISTORY, FACTS, FACT_IDS,
        SWITCHES, RESETS, OPERATION_IDS, CHECKPOINT_KEYS, MERGES, SESSION_COPIES, SESSION_IDS,
        SESSION_NAMES, SESSION_AGENTS, SESSION_SOURCES, SESSION_TIMES, CONTINUATIONS,
    ]
};

/// Returns the key under which the history of a claim lists a revision that changed it.
pub(crate) fn history_place(
    session: &SessionId,
    number: SessionNumber,
    at: RevisionRef,
    key: &[u8],
) -> Vec<u8> {
    let entity = entity_hash(session, key);
    of(number).bytes(&entity).branch(at.branch).number(at.sequence).build()
}

/// Makes the rows that index a revision. `reset_branch` is the branch of the revision that it
/// resets to; it is not used for other revisions.
pub(crate) fn derive_revision(
    session: SessionNumber,
    header: &RevisionHeader,
    id: &RevisionId,
    effective: Timestamp,
    reset_branch: BranchNumber,
    sink: RowSink<'_>,
) -> Result<()> {
    let (branch, sequence) = (header.branch, header.sequence);
    let target = match &header.reset {
        None => None,
        Some(ResetSource::Empty) => Some(of(0).number(0)),
        Some(ResetSource::To(parent)) => Some(of(reset_branch).number(parent.sequence)),
    };
    if let Some(target) = target {
        sink(key::RESETS, of(session).branch(branch).number(sequence).build(), target.build())?;
    }
    if let Some(merged) = header.parents.get(1) {
        let place = of(session).branch(branch).number(sequence).build();
        sink(key::MERGES, place, merged.sequence.to_be_bytes().to_vec())?;
    }
    let number = of(session).number(sequence).build();
    sink(key::SEQUENCES, number.clone(), SequenceRow::Revision(branch).encode())?;
    let time = of(session).branch(branch).time(effective).number(sequence).build();
    sink(key::TIMES, time, Vec::new())?;
    sink(key::IDS, key::revision_id(id), number)
}

/// Makes the rows that index a checkpoint.
pub(crate) fn derive_checkpoint(
    session: SessionNumber,
    checkpoint: &Checkpoint,
    sink: RowSink<'_>,
) -> Result<()> {
    let (time, sequence) = (checkpoint.time, checkpoint.sequence);
    let number = of(session).number(sequence).build();
    sink(key::CHECKPOINT_TIMES, number.clone(), time.as_micros().to_be_bytes().to_vec())?;
    let all = KeyBuilder::new().time(time).session(session).number(sequence).build();
    sink(key::ALL_CHECKPOINTS, all, Vec::new())?;
    for tag in &checkpoint.tags {
        let place = of(session).text(tag).time(time).number(sequence).build();
        sink(key::TAGS, place, Vec::new())?;
    }
    if let Some(event) = &checkpoint.key {
        let place = of(session).text(event).build();
        sink(key::CHECKPOINT_KEYS, place, key::checkpoint_id(&checkpoint.id))?;
    }
    sink(key::SEQUENCES, number.clone(), SequenceRow::Checkpoint(checkpoint.id).encode())?;
    sink(key::IDS, key::checkpoint_id(&checkpoint.id), number)
}

/// Makes the rows that index the facts of a page.
pub(crate) fn derive_fact_page(
    session: SessionNumber,
    number: u64,
    operation: OperationId,
    page: &FactPageOutline,
    sink: RowSink<'_>,
) -> Result<()> {
    for (ordinal, fact) in (0..).zip(&page.facts) {
        let row = FactRow { page: number, ordinal, origin: fact.origin, operation }.encode();
        let kind = of(session).kind(fact.kind);
        let by_time =
            kind.clone().time(fact.at).number(fact.place).text(&fact.id).number(number).build();
        let by_id = kind.text(&fact.id).time(fact.at).number(fact.place).number(number).build();
        sink(key::FACTS, by_time, row.clone())?;
        sink(key::FACT_IDS, by_id, row)?;
    }
    Ok(())
}

/// Receives the name of data from which no rows can be derived, and the error. All other rows are
/// still made.
pub(crate) type FailureSink<'a> = &'a mut dyn FnMut(String, Error);

/// Makes every row of the [`DERIVED`] tables from primary rows.
pub(crate) fn derive_all(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    sink: RowSink<'_>,
    trouble: FailureSink<'_>,
) -> Result<()> {
    let sink: RowSink<'_> =
        &mut |table, key, value| sink(table, key_in(refs, table, key, &value)?, value);
    for one in refs.sessions.all() {
        let (number, session) = one?;
        derive_session(number, &session, sink)?;
    }
    derive_revisions(view, refs, sink, trouble)?;
    derive_folded_revisions(view, sink, trouble)?;
    for_each_row(view, key::CHECKPOINTS, |place, row| {
        let session = key::short_at(place, 0).unwrap_or(0);
        match CheckpointRow::decode(row).map_err(Error::corrupt("a checkpoint")) {
            Ok(row) => derive_checkpoint(session, &row.checkpoint, sink)?,
            Err(error) => {
                trouble(format!("the checkpoint #{}", key::last_number(place).unwrap_or(0)), error);
            }
        }
        Ok(())
    })?;
    let pages = fact_pages_by_id(view, trouble)?;
    for_each_row(view, key::OPERATIONS, |place, row| {
        match OperationRow::decode(row).map_err(Error::corrupt("an operation")) {
            Ok(row) => derive_operation(view, place, &row, &pages, sink, trouble)?,
            Err(error) => trouble("an operation".to_owned(), error),
        }
        Ok(())
    })
}

/// Returns the branch of every revision that is not folded, by session and sequence number.
fn branches_of_revisions(
    view: &dyn Snapshot,
) -> Result<HashMap<(SessionNumber, u64), BranchNumber>> {
    let mut branches = HashMap::new();
    for_each_row(view, key::REVISIONS, |place, _| {
        if let (Some(session), Some(branch), Some(sequence)) =
            (key::short_at(place, 0), key::short_at(place, 4), key::last_number(place))
        {
            branches.insert((session, sequence), branch);
        }
        Ok(())
    })?;
    Ok(branches)
}

/// Makes the rows that index the revisions that are not folded, and the histories of claims.
fn derive_revisions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    sink: RowSink<'_>,
    trouble: FailureSink<'_>,
) -> Result<()> {
    let branches = branches_of_revisions(view)?;
    for_each_row(view, key::REVISIONS, |place, bytes| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let at = RevisionRef {
            branch: key::short_at(place, 4).unwrap_or(0),
            sequence: key::last_number(place).unwrap_or(0),
        };
        let sequence = of(number).number(at.sequence).build();
        if bytes == RevisionRow::LOST {
            return sink(key::SEQUENCES, sequence, SequenceRow::Revision(at.branch).encode());
        }
        let what = || format!("revision #{}", at.sequence);
        let decoded = RevisionRow::decode(bytes)
            .and_then(|row| RevisionHeader::decode(&row.header).map(|header| (row, header)))
            .map_err(Error::corrupt(what()));
        let (row, header) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                trouble(what(), error);
                return Ok(());
            }
        };
        let reset_branch = match &header.reset {
            Some(ResetSource::To(parent)) => {
                branches.get(&(number, parent.sequence)).copied().unwrap_or(0)
            }
            _ => 0,
        };
        derive_revision(
            number,
            &header,
            &RevisionHeader::id_of(&row.header),
            row.effective,
            reset_branch,
            sink,
        )?;
        let Some(session) = refs.sessions.get(number)? else {
            trouble(what(), Error::missing(format!("the session number {number}")));
            return Ok(());
        };
        for (ordinal, part) in (0_u32..).zip(&row.parts) {
            // An earlier repair reported that this part was lost.
            if *part == LOST_OBJECT {
                continue;
            }
            let content = object::content(view, ObjectKind::Delta, *part).and_then(|content| {
                let scanned = Delta::scan(&content).map_err(Error::corrupt("a delta"))?;
                Ok((content, scanned))
            });
            let (content, changes) = match content {
                Ok(content) => content,
                Err(error) => {
                    trouble(format!("the delta of {}", what()), error);
                    continue;
                }
            };
            for change in changes {
                let place = history_place(&session.info.id, number, at, change.key_in(&content));
                sink(key::HISTORY, place, ordinal.to_be_bytes().to_vec())?;
            }
        }
        Ok(())
    })
}

/// Makes the rows that locate folded revisions.
fn derive_folded_revisions(
    view: &dyn Snapshot,
    sink: RowSink<'_>,
    trouble: FailureSink<'_>,
) -> Result<()> {
    for_each_row(view, key::FOLDED, |place, bytes| {
        let session = key::short_at(place, 0).unwrap_or(0);
        let branch = key::short_at(place, 4).unwrap_or(0);
        let into = key::number_at(place, 8).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        if sequence == into {
            return Ok(());
        }
        let number = of(session).number(sequence).build();
        sink(key::SEQUENCES, number.clone(), SequenceRow::Folded(branch, into).encode())?;
        match RevisionRow::decode(bytes).map_err(Error::corrupt(format!("revision #{sequence}"))) {
            Ok(row) => {
                let id = RevisionHeader::id_of(&row.header);
                sink(key::IDS, key::revision_id(&id), number)?;
            }
            Err(error) => trouble(format!("revision #{sequence}"), error),
        }
        Ok(())
    })
}

/// Returns the object numbers of all fact pages, by page id.
fn fact_pages_by_id(
    view: &dyn Snapshot,
    trouble: FailureSink<'_>,
) -> Result<HashMap<ObjectId, u64>> {
    let mut pages = HashMap::new();
    for_each_row(view, key::OBJECTS, |place, encoded| {
        let number = key::last_number(place).unwrap_or(0);
        match object_kind(encoded) {
            Ok(ObjectKind::Page) => {
                let name = object_id(encoded).map_err(Error::corrupt("a page of facts"))?;
                pages.insert(name, number);
            }
            Ok(_) => {}
            Err(error) => {
                let what = format!("the object number {number}");
                trouble(what.clone(), Error::corrupt(what)(error));
            }
        }
        Ok(())
    })?;
    Ok(pages)
}

/// Makes the row that lists a checkout.
pub(crate) fn derive_checkout(
    session: SessionNumber,
    checkout: Checkout,
    sink: RowSink<'_>,
) -> Result<()> {
    let place = of(session).time(checkout.time).number(checkout.position).build();
    sink(key::SWITCHES, place, checkout.branch.to_be_bytes().to_vec())
}

/// Makes the rows that index an operation and its effects.
fn derive_operation(
    view: &dyn Snapshot,
    place: &[u8],
    row: &OperationRow,
    pages: &HashMap<ObjectId, u64>,
    sink: RowSink<'_>,
    trouble: FailureSink<'_>,
) -> Result<()> {
    sink(key::OPERATION_IDS, key::operation_id(&row.operation.id), place.to_vec())?;
    for (position, _) in &row.continued {
        let place = key::operation_place(row.session, *position, &row.operation.id);
        sink(key::CONTINUATIONS, place, Vec::new())?;
    }
    // Checkouts of one record at one time share a row, which has the last of them.
    let checkouts = row.effects.iter().filter_map(OperationEffect::checkout);
    let checkouts: BTreeMap<_, _> = checkouts.map(|one| ((one.time, one.position), one)).collect();
    for checkout in checkouts.into_values() {
        derive_checkout(row.session, checkout, sink)?;
    }
    for effect in &row.effects {
        match effect {
            // A hidden checkpoint keeps its sequence number.
            OperationEffect::CheckpointHidden { old } => {
                let number = of(row.session).number(old.sequence).build();
                sink(key::SEQUENCES, number, SequenceRow::Checkpoint(old.id).encode())?;
            }
            OperationEffect::Swept { checkpoints, .. } => {
                for (sequence, id) in checkpoints {
                    let number = of(row.session).number(*sequence).build();
                    sink(key::SEQUENCES, number, SequenceRow::Checkpoint(*id).encode())?;
                }
            }
            OperationEffect::Facts { page: LOST_OBJECT, .. } => {}
            OperationEffect::Facts { page, name, .. } => {
                let encoded = object::encoded(view, *page).ok();
                let named = encoded.and_then(|encoded| object_id(&encoded).ok()) == Some(*name);
                let found = if named { Some(*page) } else { pages.get(name).copied() };
                let found = found.ok_or_else(|| Error::missing(format!("the object {name}")));
                let found = found.and_then(|number| {
                    let content = object::content(view, ObjectKind::Page, number)?;
                    // Decoding the whole page also finds values that cannot be read.
                    let page =
                        FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))?;
                    Ok((number, FactPageOutline::from(page)))
                });
                match found {
                    Ok((number, page)) => {
                        derive_fact_page(row.session, number, row.operation.id, &page, sink)?;
                    }
                    Err(error) => {
                        trouble(
                            format!("facts of '{}' at {}", row.operation.verb, row.operation.time),
                            error,
                        );
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
