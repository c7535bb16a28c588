//! Revisions, objects, records and the journal.

use super::{golden, kept};
use forge_store::backend::journal::Journal;
use forge_store::backend::{LogFrame, WriteAheadLog};
use forge_store::format::key::of;
use forge_store::format::{
    BookmarkRef, BookmarkRow, BranchChange, BranchHead, BranchRefs, CompressionEffort, Delta,
    DeltaChange, DeltaPart, DeltaSide, DroppedText, FactPage, FormatMarker, HeadRow, ObjectKind,
    ParentRevision, RecentSession, Record, RecordBytes, RecordChange, ResetSource, RevisionBody,
    RevisionHeader, SessionRefs, SessionRemoval, SpoolEntry, SpooledCheckpoint, SpooledNote,
    SpooledPage, StateChunk, StoreHead, decode_entry, decode_key, decode_object,
    decode_object_with_prefix, decode_session, encode_entry, encode_key, encode_object,
    encode_object_with_prefix, encode_session, entity_hash, entry_hash, object_id, rekey_entry,
    session_hash,
};
use forge_store::model::{
    AutoTrigger, BranchMetadata, BranchStatus, Checkpoint, CheckpointId, CheckpointTrigger,
    ClaimEntry, Fact, FactOrigin, Key, Kind, ObjectId, Operation, OperationAuthor, OperationId,
    RevisionId, SessionId, SessionKind, SessionMetadata, StateDigest, Timestamp, Value,
};
use std::time::Duration;

pub(super) const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_123_456);

pub(super) fn operation() -> Operation {
    Operation {
        id: OperationId::from_bytes([0x11; 16]),
        verb: "hypothesis add".to_owned(),
        author: OperationAuthor::Asked,
        time: TIME,
    }
}

pub(super) fn checkpoint() -> Checkpoint {
    Checkpoint {
        id: CheckpointId::from_bytes([0x22; 16]),
        sequence: 7,
        time: TIME,
        branch: 1,
        revision: Some(6),
        message: "after the test".to_owned(),
        tags: vec!["auto".to_owned(), "green".to_owned()],
        trigger: CheckpointTrigger::Automatic(AutoTrigger::VerificationComplete),
        body: Value::from([("tokens", 12_345_i64.into())]),
        key: Some("compaction 3".to_owned()),
    }
}

fn value() -> Value {
    Value::from([
        ("confidence", 0.75.into()),
        ("description", "the cache is stale".into()),
        ("large", u64::MAX.into()),
        ("negative", (-3_i64).into()),
        ("tags", Value::List(vec!["a".into(), true.into(), Value::Null])),
    ])
}

fn key() -> Key {
    Key::new(Kind::Hypothesis, "H\u{fc}1")
}

pub(super) fn header() -> RevisionHeader {
    RevisionHeader {
        session: SessionId::from_bytes([0x33; 16]),
        branch: 2,
        sequence: 300,
        parents: vec![ParentRevision { sequence: 299, id: RevisionId::from_bytes([0x44; 32]) }],
        reset: Some(ResetSource::To(ParentRevision {
            sequence: 17,
            id: RevisionId::from_bytes([0x55; 32]),
        })),
        time: TIME,
        body: ObjectId::from_bytes([0x66; 32]),
        delta: ObjectId::from_bytes([0x77; 32]),
        digest: StateDigest::from_bytes(&[0x88; 32]),
        count: 4711,
    }
}

fn delta() -> Delta {
    let change =
        |id: &str, old, new| DeltaChange { key: encode_key(&Key::new(Kind::Note, id)), old, new };
    let entry = || DeltaSide::Inline(encode_entry(&ClaimEntry { added_at: TIME, value: value() }));
    Delta {
        changes: vec![
            change("a", DeltaSide::Absent, entry()),
            change("b", entry(), DeltaSide::Absent),
            change("c", entry(), DeltaSide::Blob(ObjectId::from_bytes([0x99; 32]))),
        ],
    }
}

#[test]
fn the_golden_store_marker_is_written_and_read_unchanged() {
    let marker = FormatMarker::new([0x12; 16], [0x34; 32]);
    let bytes = golden("marker", marker.encode().as_bytes());
    assert_eq!(FormatMarker::decode(std::str::from_utf8(&bytes).unwrap()), Ok(marker));
}

#[test]
fn the_golden_keys_entries_and_hashes_are_written_and_read_unchanged() {
    let bytes = golden("key", &encode_key(&key()));
    assert_eq!(decode_key(&bytes).unwrap(), key());
    let entry = ClaimEntry { added_at: Timestamp::from_micros(-5), value: value() };
    let bytes = golden("entry", &encode_entry(&entry));
    assert_eq!(decode_entry(&bytes).unwrap(), entry);
    let raw = Value::from([("bytes", Value::Bytes(vec![0, 0xc1, 0xff])), ("place", 1_i64.into())]);
    let raw = ClaimEntry { added_at: Timestamp::from_micros(7), value: raw };
    assert_eq!(decode_entry(&golden("entry-with-bytes", &encode_entry(&raw))).unwrap(), raw);
    let purged = golden("entry-purged", &rekey_entry(&encode_key(&key()), &bytes));
    assert_eq!(decode_entry(&purged).unwrap(), entry);
    golden("entry-hash", &entry_hash(&encode_key(&key()), &bytes));
    golden("entity-hash", &entity_hash(&SessionId::from_bytes([0x33; 16]), &encode_key(&key())));
    let digest = StateDigest::EMPTY.plus(&entry_hash(b"a", b"b")).plus(&entry_hash(b"c", b"d"));
    golden("digest", &digest.to_bytes());
}

#[test]
fn the_golden_revision_headers_bodies_and_deltas_are_written_and_read_unchanged() {
    let bytes = golden("header", &header().encode());
    assert_eq!(RevisionHeader::decode(&bytes).unwrap(), header());
    golden("header-id", header().id().as_bytes());
    let first = RevisionHeader { parents: Vec::new(), reset: None, sequence: 1, ..header() };
    let bytes = golden("header-first", &first.encode());
    assert_eq!(RevisionHeader::decode(&bytes).unwrap(), first);
    let body = RevisionBody { salt: [0xaa; 16], operation: operation(), stands_for: None };
    let bytes = golden("body", &body.encode());
    assert_eq!(RevisionBody::decode(&bytes).unwrap(), body);
    let name = ObjectId::from_bytes([0x99; 32]);
    let purged = RevisionBody { stands_for: Some(name), ..body };
    let bytes = golden("body-purged", &purged.encode());
    assert_eq!((RevisionBody::decode(&bytes).unwrap(), RevisionBody::name(&bytes)), (purged, name));
    let bytes = golden("delta", &delta().encode([0xbb; 16]));
    assert_eq!(Delta::decode(&bytes).unwrap(), delta());
    let bytes = golden("delta-purged", &delta().encode_for([0xbb; 16], &name));
    assert_eq!((Delta::decode(&bytes).unwrap(), Delta::name(&bytes)), (delta(), name));
}

#[test]
fn the_golden_state_chunk_is_written_and_read_unchanged() {
    let mut chunk = StateChunk::default();
    let entries: [(&[u8], &[u8]); 3] = [(b"\x01a", b"one"), (b"\x01b", b""), (b"\x06c", b"three")];
    entries.iter().for_each(|(key, entry)| chunk.push(key, entry));
    let bytes = golden("chunk", &chunk.encode());
    let found = StateChunk::decode(&bytes).unwrap();
    let at = |range: &std::ops::Range<u32>| &bytes[range.start as usize..range.end as usize];
    let found: Vec<_> = found.iter().map(|one| (at(&one.key), at(&one.entry))).collect();
    assert_eq!(found, entries);
}

#[test]
fn the_golden_fact_pages_are_written_and_read_unchanged() {
    let fact = Fact {
        kind: Kind::Command,
        id: "c1".to_owned(),
        at: TIME,
        origin: FactOrigin::Imported,
        place: 4096,
        recorded_at: TIME.plus_micros(7),
        value: value(),
    };
    let page = FactPage::new(Some("log.jsonl".to_owned()), vec![fact]);
    let bytes = golden("page", &page.encode());
    assert_eq!(FactPage::decode(&bytes).unwrap(), page);
}

/// A new version of zstd may compress the same content differently; the old bytes must stay
/// readable.
#[test]
fn the_golden_raw_and_compressed_objects_are_read_unchanged() {
    let (id, encoded) = encode_object(ObjectKind::Delta, b"too short to compress");
    let bytes = golden("object-raw", &encoded);
    assert_eq!(decode_object(ObjectKind::Delta, &bytes).unwrap(), b"too short to compress");
    assert_eq!(object_id(&bytes).unwrap(), id);
    let content = b"the same line again\n".repeat(20);
    let bytes = kept("object-zstd", &encode_object(ObjectKind::Page, &content).1);
    assert!(bytes.len() < 100);
    assert_eq!(decode_object(ObjectKind::Page, &bytes).unwrap(), content);
    let prefix: Vec<u8> = (0..2000_u32).flat_map(|n| (n * n % 251).to_le_bytes()).collect();
    let bytes = kept(
        "object-prefix",
        &encode_object_with_prefix(
            ObjectKind::Blob,
            &prefix,
            &prefix[1000..],
            CompressionEffort::Quick,
        )
        .1,
    );
    assert!(bytes.len() < 100);
    assert_eq!(
        decode_object_with_prefix(ObjectKind::Blob, &prefix, &bytes).unwrap(),
        &prefix[1000..]
    );
}

fn head() -> BranchHead {
    BranchHead {
        sequence: 6,
        id: RevisionId::from_bytes([0xcc; 32]),
        effective: TIME,
        digest: StateDigest::from_bytes(&[0xdd; 32]),
        count: 3,
    }
}

fn info() -> SessionMetadata {
    SessionMetadata {
        id: SessionId::from_bytes([0x33; 16]),
        name: "broken build".to_owned(),
        kind: SessionKind::Debug,
        agent: Some("claude-code".to_owned()),
        agent_session: None,
        started_at: TIME,
    }
}

fn change() -> BranchChange {
    BranchChange {
        time: TIME,
        status: BranchStatus::Abandoned,
        metadata: BranchMetadata {
            hypothesis: Some("H1".to_owned()),
            approach: None,
            success_criteria: vec!["the test passes".to_owned()],
            results: Vec::new(),
            extra: Value::Null,
        },
    }
}

fn head_of_store(branches: usize) -> StoreHead {
    let branch = BranchRefs {
        name: "try".to_owned(),
        base: Some((0, 5)),
        head: Some(head()),
        changes: vec![change()],
        hidden: false,
    };
    let main = BranchRefs { name: "main".to_owned(), base: None, ..branch.clone() };
    let mut all = vec![branch; branches];
    all[0] = main;
    let session = SessionRefs {
        info: info(),
        next_sequence: 8,
        branches: all,
        current_branch: 1,
        first_event: Some(TIME),
        last_event: Some(TIME.plus_micros(1)),
        checkpoints: 1,
        last_checkpoint: None,
        pages: 2,
        facts: 3,
        hidden: vec![OperationId::from_bytes([0x11; 16])],
        bookmarks: vec![BookmarkRef { source: "log.jsonl".to_owned(), bytes: 70_000 }],
        schedule: Some(3_600_000_000),
        dropped: vec![DroppedText {
            blob: "log.jsonl".to_owned(),
            bytes: 60_000,
            pruning: Some(OperationId::from_bytes([0x12; 16])),
        }],
        removal: Some(SessionRemoval::Pruned(OperationId::from_bytes([0x13; 16]))),
    };
    let encoded = encode_session(&session);
    assert_eq!(decode_session(&encoded).unwrap(), session);
    StoreHead {
        sessions: 2,
        visible: [1, 0, 0, 0, 0, 0, 0],
        digest: RecordBytes(
            StateDigest::EMPTY.plus(&session_hash(0, &encoded)).to_bytes().to_vec(),
        ),
        recent: vec![RecentSession { number: 0, session: RecordBytes(encoded) }],
        pinned: None,
        last_used: Some(0),
        purges: 0,
    }
}

pub(super) fn bookmark() -> BookmarkRow {
    BookmarkRow {
        blob: "log.jsonl".to_owned(),
        bytes: 70_000,
        lines: 900,
        blocks: RecordBytes(vec![0xee; 32]),
        carry: RecordBytes(b"carry".to_vec()),
        cleaned: None,
    }
}

/// One record with most kinds of changes. The other kinds have separate golden records.
fn record() -> Record {
    let session = 0;
    let id = CheckpointId::from_bytes([0x22; 16]);
    let object = || RecordBytes(encode_object(ObjectKind::Blob, b"content").1);
    let checkpoint = || Box::new(checkpoint());
    let named = DeltaPart::Named(ObjectId::from_bytes([0x99; 32]));
    let changes = vec![
        RecordChange::Session { info: Box::new(info()) },
        RecordChange::Pinned { session: None },
        RecordChange::Used { session },
        RecordChange::Branch {
            session,
            name: "try".to_owned(),
            base: 0,
            head: Some(head()),
            change: Box::new(change()),
        },
        RecordChange::BranchChanged { session, branch: 1, change: Box::new(change()) },
        RecordChange::BranchHidden { session, branch: 1, hidden: true },
        RecordChange::switched(session, 1, TIME),
        RecordChange::Object { object: object() },
        RecordChange::Segment {
            session,
            blob: "log.jsonl".to_owned(),
            offset: 4096,
            prefix: 4096,
            object: object(),
        },
        RecordChange::Revision {
            session,
            header: RecordBytes(header().encode()),
            body: RecordBytes(b"body".to_vec()),
            delta: vec![DeltaPart::Inline(object()), named.clone()],
        },
        RecordChange::Checkpoint { session, checkpoint: checkpoint() },
        RecordChange::CheckpointHidden { session, id, last: Some(TIME) },
        RecordChange::CheckpointShown { session, checkpoint: checkpoint() },
        RecordChange::Facts { session, count: 3, first: TIME, last: TIME, page: named },
        RecordChange::Bookmark {
            session,
            source: "log.jsonl".to_owned(),
            bookmark: Some(Box::new(bookmark())),
        },
        RecordChange::TakesBack {
            session,
            operation: OperationId::from_bytes([0x11; 16]),
            facts_hidden: true,
        },
        RecordChange::Schedule { session, every_micros: None },
        RecordChange::Pruned { session },
        RecordChange::Folded {
            session,
            branch: 1,
            first: 290,
            last: 300,
            pruning: OperationId::from_bytes([0x11; 16]),
            delta: vec![DeltaPart::Inline(object())],
        },
        RecordChange::Unfolded { session, branch: 1, last: 300 },
        RecordChange::SessionDropped {
            session,
            of: 1,
            pruning: OperationId::from_bytes([0x11; 16]),
        },
        RecordChange::SessionShown { session, of: 1 },
        RecordChange::TextDropped {
            session,
            of: 1,
            blob: "log.jsonl".to_owned(),
            bytes: 70_000,
            pruning: OperationId::from_bytes([0x11; 16]),
        },
        RecordChange::TextShown { session, of: 1, blob: "log.jsonl".to_owned(), bytes: 0 },
        RecordChange::TextMissing { session, blob: "log.jsonl".to_owned(), bytes: 70_000 },
        RecordChange::Swept {
            session,
            operation: OperationId::from_bytes([0x11; 16]),
            blobs: vec![ObjectId::from_bytes([0x99; 32])],
            sessions: Vec::new(),
        },
    ];
    Record { operation: operation(), changes }
}

#[test]
fn the_golden_records_are_written_and_read_unchanged() {
    let bytes = golden("record", &record().encode());
    assert_eq!(Record::decode(&bytes).unwrap(), record());
    let head = |branches| Record {
        operation: operation(),
        changes: vec![RecordChange::Head(Box::new(head_of_store(branches)))],
    };
    let bytes = golden("record-head", &head(2).encode());
    assert_eq!(Record::decode(&bytes).unwrap(), head(2));
    let row = HeadRow { head: head_of_store(2) };
    assert_eq!(HeadRow::decode(&golden("row-head", &row.encode())).unwrap(), row);
    let swept = Record {
        operation: operation(),
        changes: vec![RecordChange::SweptAhead {
            objects: vec![ObjectId::from_bytes([0x99; 32])],
            parts: vec![RecordBytes(of(2).text("log.jsonl").number(70_000).build())],
            named: vec![ObjectId::from_bytes([0x98; 32])],
        }],
    };
    let bytes = golden("record-swept-ahead", &swept.encode());
    assert_eq!(Record::decode(&bytes).unwrap(), swept);
    let elsewhere = Record {
        operation: operation(),
        changes: vec![RecordChange::Switched {
            session: 0,
            branch: 1,
            time: TIME,
            elsewhere: true,
        }],
    };
    let bytes = golden("record-switched-elsewhere", &elsewhere.encode());
    assert_eq!(Record::decode(&bytes).unwrap(), elsewhere);
    let joined = Record {
        operation: operation(),
        changes: vec![
            RecordChange::SessionBegun { info: Box::new(info()) },
            RecordChange::SessionReplaced { session: 2, of: 1 },
            RecordChange::SessionAbandoned { session: 3 },
        ],
    };
    let bytes = golden("record-joined", &joined.encode());
    assert_eq!(Record::decode(&bytes).unwrap(), joined);
    // Written when there were five kinds of sessions.
    let bytes = kept("record-head-zstd", &head(40).encode());
    assert_eq!(bytes[0], 2);
    assert_eq!(Record::decode(&bytes).unwrap(), head(40));
}

/// A record with an unknown change is refused as a whole.
#[test]
fn a_record_with_an_unknown_change_or_field_is_refused() {
    let bytes = record().encode();
    for (known, unknown) in
        [(&b"Schedule"[..], &b"Sthedule"[..]), (b"every_micros", b"every_micrus")]
    {
        let place = bytes.windows(known.len()).position(|window| window == known).unwrap();
        let mut other = bytes.clone();
        other[place..place + unknown.len()].copy_from_slice(unknown);
        assert!(Record::decode(&other).is_err());
    }
}

#[test]
fn the_golden_spooled_write_is_written_and_read_unchanged() {
    let waiting = SpoolEntry {
        operation: operation(),
        session: info(),
        used: true,
        branch: Some("try".to_owned()),
        time: TIME,
        salt: [0x42; 16],
        objects: vec![RecordBytes(vec![1, 2, 3])],
        pages: vec![SpooledPage { count: 1, first: TIME, last: TIME, page: RecordBytes(vec![4]) }],
        notes: vec![SpooledNote { id: "N1".to_owned(), entry: RecordBytes(vec![5, 6]) }],
        checkpoints: vec![SpooledCheckpoint { checkpoint: checkpoint(), past: false }],
    };
    let bytes = golden("spooled", &waiting.encode());
    assert_eq!(SpoolEntry::decode(&bytes).unwrap(), waiting);
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 0x10;
        assert!(SpoolEntry::decode(&flipped).is_err(), "byte {place}");
        assert!(SpoolEntry::decode(&bytes[..place]).is_err(), "cut at {place}");
    }
}

#[test]
fn the_golden_journal_frame_and_mark_are_written_and_read_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let journal = Journal::create(&path).unwrap();
    let wait = Duration::from_secs(60);
    let mut build = |_: &forge_store::backend::LogTail| Some(b"payload".to_vec());
    let appended = journal.append(0, wait, &mut build).unwrap().unwrap();
    journal.sync(appended.end).unwrap();
    let name = format!("{:016x}.log", 0);
    let frame = golden("frame", &std::fs::read(path.join(&name)).unwrap());
    let mark = golden("mark", &std::fs::read(path.join("SYNCED")).unwrap());
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join(&name), &frame).unwrap();
    std::fs::write(copy.join("SYNCED"), &mark).unwrap();
    let read = Journal::open_read_only(&copy).unwrap().read(0, u64::MAX).unwrap();
    let payload = b"payload".to_vec();
    let end = frame.len() as u64;
    assert_eq!(read.frames, [LogFrame { position: 0, end, hash: appended.hash, payload }]);
}
