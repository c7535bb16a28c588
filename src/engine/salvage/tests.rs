use super::*;
use crate::backend::LogFrame;
use crate::backend::rocks::RescuedIndex;
use crate::engine::table_rows::rows_between;
use crate::format::key::of;
use crate::format::{CheckpointRow, HeadRow, Record, RecordChange, SessionRemoval, TotalsRow};
use crate::model::{Checkpoint, CheckpointId};
use std::collections::HashMap;

const NOW: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);

/// Returns the record with which a segment at this position begins.
fn begun_at(position: LogPosition, refs: &StoreRefs) -> JournalPiece {
    let id = OperationId::from_bytes([4; 16]);
    let operation =
        Operation { id, verb: "begin".to_owned(), author: OperationAuthor::Hook, time: NOW };
    let payload =
        Record { operation, changes: vec![RecordChange::Head(Box::new(refs.head()))] }.encode();
    JournalPiece::Record(LogFrame { position, end: position + 1, hash: [0; 32], payload }, false)
}

/// Regression: a checkpoint whose key had a wrong bit was not found, and was not reported as lost.
#[test]
fn a_checkpoint_under_a_wrong_key_is_moved_to_its_right_key() {
    let mut refs = crate::engine::refs::tests::of_one_session(NOW);
    let checkpoint = Checkpoint {
        message: "here".to_owned(),
        ..Checkpoint::new(CheckpointId::from_bytes([2; 16]), 1, NOW)
    };
    let made = RecordChange::Checkpoint { session: 0, checkpoint: Box::new(checkpoint.clone()) };
    crate::engine::refs::advance_by(&mut refs, &made).unwrap();
    let operation = OperationId::from_bytes([3; 16]);
    let row = CheckpointRow { checkpoint, operation }.encode();
    let right = of(0).time(NOW).number(1).build();
    let mut wrong = right.clone();
    wrong[9] ^= 4;
    let mut index = RescuedIndex { position: 100, ..RescuedIndex::default() };
    let head = HeadRow { head: refs.head() }.encode();
    index.rows.insert((key::COUNTERS, key::HEAD.to_vec()), head);
    let totals = TotalsRow::default().encode();
    index.rows.insert((key::COUNTERS, key::TOTALS.to_vec()), totals);
    index.rows.insert((key::CHECKPOINTS, wrong.clone()), row);
    let journal = vec![begun_at(100, &refs)];
    let saved = salvage(index, journal, 0, NOW).unwrap();
    assert_eq!(saved.lost, [""; 0]);
    assert!(saved.rows.contains(key::CHECKPOINTS, &right));
    assert!(!saved.rows.contains(key::CHECKPOINTS, &wrong));
}

/// Regression: the first session with the id of a revision got it, also while another one was built
/// beside it to replace it.
#[test]
fn a_row_stays_in_its_session_while_two_sessions_have_its_id() {
    let session_of = |number, allowed| table::session_of(&of(number).number(1).build(), allowed);
    assert_eq!(session_of(2, &[1, 2]), Some(2));
    assert_eq!(session_of(1, &[1, 2]), Some(1));
    // The number in the key is wrong.
    assert_eq!(session_of(6, &[2]), Some(2));
    assert_eq!(session_of(6, &[]), None);
}

/// Regression: if a file of the index was damaged, rows of a session that a join had replaced were
/// read from an older file, and the repaired store was damaged.
#[test]
fn rows_of_a_removed_session_are_not_saved() {
    let mut refs = crate::engine::refs::tests::of_one_session(NOW);
    refs.sessions.change(0, |session| session.removal = Some(SessionRemoval::Swept)).unwrap();
    let checkpoint = Checkpoint::new(CheckpointId::from_bytes([2; 16]), 1, NOW);
    let row = CheckpointRow { checkpoint, operation: OperationId::from_bytes([3; 16]) }.encode();
    let place = of(0).time(NOW).number(1).build();
    let mut index = RescuedIndex { position: 100, ..RescuedIndex::default() };
    let head = HeadRow { head: refs.head() }.encode();
    index.rows.insert((key::COUNTERS, key::HEAD.to_vec()), head);
    let totals = TotalsRow::default().encode();
    index.rows.insert((key::COUNTERS, key::TOTALS.to_vec()), totals);
    index.rows.insert((key::CHECKPOINTS, place.clone()), row);
    let saved = salvage(index, vec![begun_at(100, &refs)], 0, NOW).unwrap();
    assert_eq!(saved.lost, [""; 0]);
    assert!(!saved.rows.contains(key::CHECKPOINTS, &place));
}

/// Regression: an operation that fills missing numbers moved the end up to which records are
/// expected. So a repair also reported bytes of the journal as lost, although it was whole.
#[test]
fn a_whole_journal_is_not_reported_as_lost_if_a_number_is_missing() {
    let mut refs = crate::engine::refs::tests::of_one_session(NOW);
    refs.sessions.change(0, |session| session.next_sequence = 2).unwrap();
    let mut index = RescuedIndex { position: 100, ..RescuedIndex::default() };
    let head = HeadRow { head: refs.head() }.encode();
    index.rows.insert((key::COUNTERS, key::HEAD.to_vec()), head);
    let totals = TotalsRow::default().encode();
    index.rows.insert((key::COUNTERS, key::TOTALS.to_vec()), totals);
    let journal = vec![begun_at(100, &refs)];
    let saved = salvage(index, journal, 101, NOW).unwrap();
    assert_eq!(saved.lost, ["the checkpoint #1 of 's'"]);
}

/// Regression: the number of the session was added to the position that the id of a repair's
/// operation is the hash of. One for session 1 and then one for session 0 got the same id, so only
/// one of them was found by it.
#[test]
fn every_operation_of_a_repair_has_a_different_id() {
    let mut saved = SalvagedStore {
        rows: RowOverlay::default(),
        refs: StoreRefs::default(),
        end: 100,
        lost: Vec::new(),
        corrected_bits: 0,
        revisions: 0,
    };
    for number in [1, 0] {
        saved.missing(number, &[1], &HashMap::new(), NOW).unwrap();
    }
    for table in [key::OPERATIONS, key::OPERATION_IDS] {
        assert_eq!(rows_between(&saved.view(), table, &[], &[]).unwrap().len(), 2, "{table:?}");
    }
}
