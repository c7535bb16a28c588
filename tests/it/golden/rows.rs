//! Golden bytes of the rows of the index: keys and values.

use super::bytes::{TIME, bookmark, checkpoint, header, operation};
use super::golden;
use forge_store::format::key::{self, KeyBuilder, of};
use forge_store::format::{
    BookmarkRow, BranchChange, Checkout, CheckpointRow, FactRow, FoldRow, KeyframeChunk,
    KeyframeRow, OperationEffect, OperationRow, PrewrittenRow, RecordBytes, RecordRow, RevisionRow,
    SegmentRow, SequenceRow, TotalsRow,
};
use forge_store::model::{
    BranchMetadata, BranchStatus, CheckpointId, FactOrigin, Kind, ObjectId, OperationId, Timestamp,
};

#[test]
fn the_golden_table_keys_are_written_unchanged() {
    let parts = of(7).branch(3).time(TIME).number(300).kind(Kind::Note).text("a word").bytes(b"xy");
    golden("table-key", &parts.build());
    golden("table-key-before-1970", &KeyBuilder::new().time(Timestamp::from_micros(-1)).build());
    golden("table-key-object", &key::object_name(&ObjectId::from_bytes([0x99; 32])));
}

#[test]
fn each_table_keeps_its_number() {
    use key::*;
    let tables = [
        OBJECTS, OBJECT_NAMES, REVISIONS, SEQUENCES, TIMES, IDS, CHECKPOINTS, CHECKPOINT_TIMES,
        ALL_CHECKPOINTS, TAGS, HISTORY, FACTS, FACT_IDS, SWITCHES, KEYFRAMES, RESETS, OPERATIONS,
        OPERATION_IDS, RECORDS, BOOKMARKS, SEGMENTS, COUNTERS, CHECKPOINT_KEYS, FOLDS, FOLDED,
        PRUNINGS, MERGES, PREWRITTEN, SESSIONS, SESSION_COPIES, SESSION_IDS, SESSION_NAMES,
        SESSION_AGENTS, SESSION_SOURCES, SESSION_TIMES, CONTINUATIONS,
    ];
    for (number, table) in tables.iter().enumerate() {
        assert_eq!(usize::from(table.0), number);
    }
}

macro_rules! row {
    ($name:literal, $type:ty, $row:expr) => {
        let row = $row;
        let bytes = golden($name, &row.encode());
        assert_eq!(<$type>::decode(&bytes).unwrap(), row, $name);
    };
}

#[test]
fn the_golden_rows_of_every_table_are_written_and_read_unchanged() {
    row!(
        "row-revision",
        RevisionRow,
        RevisionRow {
            header: header().encode(),
            body: b"body".to_vec(),
            effective: TIME,
            parts: vec![1, 300],
            bytes: 70_000,
            state_bytes: 1_000_000,
        }
    );
    row!("row-sequence-revision", SequenceRow, SequenceRow::Revision(3));
    let id = CheckpointId::from_bytes([0x22; 16]);
    row!("row-sequence-checkpoint", SequenceRow, SequenceRow::Checkpoint(id));
    row!("row-sequence-folded", SequenceRow, SequenceRow::Folded(3, 300));
    let operation_id = OperationId::from_bytes([0x11; 16]);
    row!(
        "row-fold",
        FoldRow,
        FoldRow { first: 290, count: 8, operation: operation_id, swept: true }
    );
    row!(
        "row-fact",
        FactRow,
        FactRow {
            page: 300,
            ordinal: 7,
            origin: FactOrigin::Imported,
            operation: OperationId::from_bytes([0x11; 16]),
        }
    );
    row!(
        "row-keyframe",
        KeyframeRow,
        KeyframeRow {
            digest: RecordBytes(vec![0x88; 32]),
            count: 4711,
            bytes: 1_000_000,
            chunks: vec![KeyframeChunk {
                object: 17,
                count: 4711,
                first: RecordBytes(b"\x01H1".to_vec())
            }],
        }
    );
    row!(
        "row-checkpoint",
        CheckpointRow,
        CheckpointRow { checkpoint: checkpoint(), operation: OperationId::from_bytes([0x11; 16]) }
    );
    row!("row-bookmark", BookmarkRow, bookmark());
    row!("row-segment", SegmentRow, SegmentRow { object: 17, length: 4096, prefix: 8192 });
    let part = Some(RecordBytes(of(2).text("log.jsonl").number(70_000).build()));
    row!("row-ahead", PrewrittenRow, PrewrittenRow { time: TIME, part });
    row!("row-ahead-object", PrewrittenRow, PrewrittenRow { time: TIME, part: None });
    let hash = std::array::from_fn(|place| place as u8);
    row!("row-record", RecordRow, RecordRow { hash, sessions: vec![0, 2, 70_000] });
    row!("row-totals", TotalsRow, TotalsRow { operations: 311, segments: 12 });
    let whole = OperationRow {
        operation: operation(),
        effects: effects(),
        takes_back: Some(OperationId::from_bytes([0x10; 16])),
        taken_back_by: None,
        sequence: 299,
        session: 0,
        position: 21_379,
        continued: Vec::new(),
    };
    let continued = OperationRow {
        continued: vec![(21_900, 3), (70_000, OperationRow::ALL_EFFECTS)],
        ..whole.clone()
    };
    let elsewhere = OperationRow { effects: vec![switched(true)], ..whole.clone() };
    // The branch that is checked out here was hidden by another store; then the clock went back.
    let checkout = Some(Checkout { branch: 0, time: TIME, position: 4096 });
    let left = vec![
        OperationEffect::BranchHidden { branch: 1, hidden: true, checkout },
        OperationEffect::Switched {
            old: 1,
            branch: 0,
            time: Timestamp::from_micros(TIME.as_micros() - 1),
            position: 4096,
            elsewhere: false,
            checkout,
        },
    ];
    let checked_out = OperationRow { effects: left, ..whole.clone() };
    row!("row-operation", OperationRow, whole);
    row!("row-operation-elsewhere", OperationRow, elsewhere);
    row!("row-operation-continued", OperationRow, continued);
    row!("row-operation-checkout", OperationRow, checked_out);
}

fn switched(elsewhere: bool) -> OperationEffect {
    OperationEffect::Switched {
        old: 0,
        branch: 1,
        time: TIME,
        position: 4096,
        elsewhere,
        checkout: None,
    }
}

fn effects() -> Vec<OperationEffect> {
    let change = BranchChange {
        time: TIME,
        status: BranchStatus::Active,
        metadata: BranchMetadata::default(),
    };
    vec![
        OperationEffect::Revision { branch: 0, sequence: 300 },
        OperationEffect::CheckpointMade { id: CheckpointId::from_bytes([0x22; 16]) },
        OperationEffect::CheckpointChanged { old: Box::new(checkpoint()) },
        OperationEffect::CheckpointHidden { old: Box::new(checkpoint()) },
        OperationEffect::BranchMade { branch: 1 },
        OperationEffect::BranchChanged { branch: 1, old: change },
        OperationEffect::BranchHidden { branch: 1, hidden: true, checkout: None },
        switched(false),
        OperationEffect::Facts { count: 3, page: 8, name: ObjectId::from_bytes([0x99; 32]) },
        OperationEffect::Bookmark {
            source: "log.jsonl".to_owned(),
            old: Some(Box::new(bookmark())),
            bytes: 70_000,
        },
        OperationEffect::Schedule { old: Some(3_600_000_000) },
        OperationEffect::Folded { branch: 1, first: 290, last: 300 },
        OperationEffect::Unfolded { branch: 1, first: 290, last: 300 },
        OperationEffect::SessionDropped { of: 1 },
        OperationEffect::SessionShown { of: 1 },
        OperationEffect::TextDropped {
            of: 1,
            blob: "log.jsonl".to_owned(),
            bytes: 70_000,
            old: 60_000,
        },
        OperationEffect::TextShown { of: 1, blob: "log.jsonl".to_owned(), bytes: 70_000 },
        OperationEffect::Swept {
            checkpoints: vec![(290, CheckpointId::from_bytes([0x22; 16]))],
            revisions: 8,
        },
        OperationEffect::Purged { reason: Some("it leaked".to_owned()), places: 7, first: 0 },
    ]
}
