//! Tests of the log with a table in memory, whose calls fail as the calls of a database do.

mod fake_table;

use super::*;
use crate::backend::CIPHER_BYTES;
use crate::backend::database::LockedFrames;
use crate::backend::frame::MAX_PAYLOAD_BYTES;
use crate::backend::{IntegrityBreach, SealKey};
use fake_table::{FakeRows, FakeTable};
use std::path::{Path, PathBuf};

const WAIT: Duration = Duration::from_secs(20);
/// A time limit after which no append is sent again.
const NO_WAIT: Duration = Duration::ZERO;
/// A time limit that allows sending an append again, and is short enough to wait for an error.
const SHORT: Duration = Duration::from_millis(150);
const STORE: [u8; 16] = [7; 16];

fn log(table: &FakeTable) -> FramedLog {
    FramedLog::new(Box::new(table.clone()))
}

fn keyed(secret: u8) -> SealMode {
    SealMode::Keyed(SealKey::new(&[secret; 32], &[2; 16], &[3; 32]))
}

fn sealed(table: &FakeTable) -> FramedLog {
    log(table).with_seals(keyed(1), None)
}

fn add(log: &FramedLog, from: LogPosition, text: &str) -> AppendedRecord {
    try_add(log, from, text).unwrap()
}

fn try_add(log: &FramedLog, from: LogPosition, text: &str) -> Result<AppendedRecord, Error> {
    Ok(log.append(from, WAIT, &mut |_| Some(text.into()))?.unwrap())
}

/// Reads all texts, as another process would.
fn texts(table: &FakeTable) -> Vec<String> {
    let tail = log(&table.other()).read(0, u64::MAX).unwrap();
    tail.frames.into_iter().map(|frame| String::from_utf8(frame.payload).unwrap()).collect()
}

/// Appends a record as another process would.
fn add_as_other(table: &FakeTable, text: &str) -> AppendedRecord {
    add(&log(&table.other()), 0, text)
}

/// Returns the error of a connection that broke: the outcome is unknown.
fn broken() -> Error {
    database(true)
}

/// Returns the error of a connection that could not be made: nothing was done.
fn unreachable() -> Error {
    database(false)
}

fn database(unsure: bool) -> Error {
    Error::Database { action: "append to", place: "a table".to_owned(), unsure, source: "x".into() }
}

fn is_unsure<T: std::fmt::Debug>(outcome: Result<T, Error>) -> bool {
    match outcome {
        Err(Error::Database { unsure, .. }) => unsure,
        other => panic!("no error of the database: {other:?}"),
    }
}

fn is_damaged<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Damaged { .. }))
}

fn is_breach<T>(outcome: &Result<T, Error>, wanted: IntegrityBreach) -> bool {
    matches!(outcome, Err(Error::Breach { breach, .. }) if *breach == wanted)
}

#[test]
fn an_append_that_was_done_and_not_answered_is_found_and_not_repeated() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    for _ in 0..2 {
        table.on_append(|append| {
            append();
            Err(broken())
        });
    }
    let mut built = 0;
    let two = log.append(one.end, WAIT, &mut |_| {
        built += 1;
        Some(b"two".to_vec())
    });
    let two = two.unwrap().unwrap();
    assert_eq!((two.position, built), (one.end, 1));
    assert_eq!(texts(&table), ["one", "two"]);
    // A record that is found in the table may not be on a standby yet, so the log settles it.
    assert!(table.calls().ends_with(&["append", "append", "read", "settle"]));
    table.on_append(|append| {
        append();
        Err(broken())
    });
    let many = [b"three".to_vec(), b"four".to_vec()];
    assert_eq!(log.append_all(two.end, WAIT, &many).unwrap().unwrap().len(), 2);
    assert_eq!(texts(&table), ["one", "two", "three", "four"]);
}

#[test]
fn an_append_that_was_not_done_and_not_answered_is_sent_again() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.calls();
    table.on_append(|_| Err(broken()));
    // The second attempt finds that the database cannot be reached.
    table.on_append(|_| Err(unreachable()));
    assert_eq!(add(&log, one.end, "two").position, one.end);
    assert_eq!(texts(&table), ["one", "two"]);
    assert_eq!(table.calls(), ["append", "append", "append"]);
}

#[test]
fn an_append_that_was_lost_while_another_writer_appended_is_built_again_once() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    let other = table.clone();
    table.on_append(move |_| {
        add_as_other(&other, "theirs");
        Err(broken())
    });
    let mut seen = Vec::new();
    let appended = log.append(one.end, WAIT, &mut |tail| {
        seen.push(tail.frames.len());
        Some(b"ours".to_vec())
    });
    assert!(appended.unwrap().is_some());
    assert_eq!(seen, [0, 1]);
    assert_eq!(texts(&table), ["one", "theirs", "ours"]);
    // Several records at once are not built again here, but by the caller.
    let (end, other) = (log.last_seen().unwrap().0, table.clone());
    table.on_append(move |_| {
        add_as_other(&other, "theirs too");
        Err(broken())
    });
    assert_eq!(log.append_all(end, WAIT, &[b"no".to_vec(), b"not".to_vec()]).unwrap(), None);
    assert_eq!(texts(&table), ["one", "theirs", "ours", "theirs too"]);
}

#[test]
fn an_append_whose_outcome_stays_unknown_is_reported_as_unknown() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    let append = |timeout| log.append(one.end, timeout, &mut |_| Some(b"two".to_vec()));
    table.on_append(|_| Err(broken()));
    assert!(is_unsure(append(NO_WAIT)));
    // The last error says that nothing was done, but after the first one it is unknown.
    table.on_append(|_| Err(broken()));
    for _ in 0..50 {
        table.on_append(|_| Err(unreachable()));
    }
    assert!(is_unsure(append(SHORT)));
    assert_eq!(texts(&table), ["one"]);
}

#[test]
fn an_append_that_was_certainly_not_done_fails_at_once() {
    let table = FakeTable::default();
    let log = log(&table);
    table.on_append(|_| Err(unreachable()));
    assert!(!is_unsure(try_add(&log, 0, "one")));
    assert_eq!(table.calls(), ["read", "append"]);
    assert_eq!(texts(&table), [""; 0]);
}

/// The first attempt may still wait in the database, for the lock that the second one waits for.
#[test]
fn an_append_that_is_refused_because_of_a_lock_after_a_lost_one_is_of_unknown_outcome() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_append(|append| {
        append();
        Err(broken())
    });
    for _ in 0..50 {
        let (lock, holder, waited) = ("lock of the log", None, WAIT);
        table.on_append(move |_| Err(Error::Busy { lock, holder, waited }));
    }
    assert!(is_unsure(log.append(one.end, SHORT, &mut |_| Some(b"two".to_vec()))));
}

#[test]
fn an_append_that_cannot_be_looked_for_is_of_unknown_outcome() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_append(|append| {
        append();
        Err(broken())
    });
    for _ in 0..50 {
        table.on_read(|_| Err(unreachable()));
    }
    assert!(is_unsure(log.append(one.end, SHORT, &mut |_| Some(b"two".to_vec()))));
    assert_eq!(texts(&table), ["one", "two"]);
}

#[test]
fn an_append_that_is_found_is_acknowledged_when_it_is_durable_and_not_before() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    let lose_answer = || {
        table.on_append(|append| {
            append();
            Err(broken())
        });
    };
    lose_answer();
    table.on_settle(|_| Err(broken()));
    table.on_settle(|_| Err(unreachable()));
    let two = add(&log, one.end, "two");
    assert_eq!(two.position, one.end);
    lose_answer();
    for _ in 0..50 {
        table.on_settle(|_| Err(unreachable()));
    }
    assert!(is_unsure(log.append(two.end, SHORT, &mut |_| Some(b"three".to_vec()))));
    assert_eq!(texts(&table), ["one", "two", "three"]);
}

#[test]
fn an_append_that_is_found_and_cannot_be_made_durable_because_of_a_lock_is_of_unknown_outcome() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_append(|append| {
        append();
        Err(broken())
    });
    for _ in 0..50 {
        let (lock, holder, waited) = ("lock of the log", None, WAIT);
        table.on_settle(move |_| Err(Error::Busy { lock, holder, waited }));
    }
    assert!(is_unsure(log.append(one.end, SHORT, &mut |_| Some(b"two".to_vec()))));
    assert_eq!(texts(&table), ["one", "two"]);
}

#[test]
fn an_append_whose_segment_was_removed_before_it_was_looked_for_is_of_unknown_outcome() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    let other = table.other();
    table.on_append(move |append| {
        append();
        let others = FramedLog::new(Box::new(other));
        let begun = others.rotate(0, WAIT, &mut |_| Some(b"head".to_vec()));
        others.remove_before(begun.unwrap().unwrap().position).unwrap();
        Err(broken())
    });
    let mut built = 0;
    let outcome = log.append(one.end, WAIT, &mut |_| {
        built += 1;
        Some(b"two".to_vec())
    });
    assert!(is_unsure(outcome));
    assert_eq!(built, 1, "it may be in what was removed");
}

#[test]
fn after_three_losses_an_append_takes_the_lock() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.calls();
    for number in 0..4 {
        let other = table.clone();
        table.on_append(move |append| {
            add_as_other(&other, &format!("theirs {number}"));
            Ok(append())
        });
    }
    let mut seen = Vec::new();
    let appended = log.append(one.end, WAIT, &mut |tail| {
        seen.push(tail.frames.len());
        Some(b"ours".to_vec())
    });
    assert!(appended.unwrap().is_some());
    assert_eq!(
        table.calls(),
        ["append", "read", "append", "read", "append", "lock", "locked append"]
    );
    // Each build sees only the records since the last one.
    assert_eq!(seen, [0, 1, 1, 1]);
    assert_eq!(texts(&table), ["one", "theirs 0", "theirs 1", "theirs 2", "ours"]);
}

#[test]
fn an_append_under_the_lock_that_was_done_and_not_answered_is_found_and_not_repeated() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_locked_append(|append| {
        append();
        Err(broken())
    });
    let two = log.rotate(one.end, WAIT, &mut |_| Some(b"two".to_vec()));
    assert_eq!(two.unwrap().unwrap().position, one.end);
    assert_eq!(texts(&table), ["one", "two"]);
}

#[test]
fn an_append_under_the_lock_that_was_not_done_and_not_answered_is_sent_again() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_locked_append(|_| Err(broken()));
    let two = log.rotate(one.end, WAIT, &mut |_| Some(b"two".to_vec()));
    assert_eq!(two.unwrap().unwrap().position, one.end);
    assert_eq!(texts(&table), ["one", "two"]);
    assert!(table.rows().frames[&one.end].begins_segment);
}

#[test]
fn an_append_under_the_lock_that_was_lost_while_another_writer_appended_is_built_again_once() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_locked_append(|_| Err(broken()));
    // The lock is lost with the connection.
    let other = table.clone();
    table.on_append(move |append| {
        add_as_other(&other, "theirs");
        Ok(append())
    });
    let two = log.rotate(one.end, WAIT, &mut |_| Some(b"two".to_vec()));
    assert!(two.unwrap().is_some());
    assert_eq!(texts(&table), ["one", "theirs", "two"]);
}

#[test]
fn an_append_under_the_lock_whose_outcome_stays_unknown_is_reported_as_unknown() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.on_locked_append(|_| Err(broken()));
    table.on_append(|_| Err(unreachable()));
    assert!(is_unsure(log.rotate(one.end, NO_WAIT, &mut |_| Some(b"two".to_vec()))));
    table.on_locked_append(|_| Err(unreachable()));
    assert!(!is_unsure(log.rotate(one.end, NO_WAIT, &mut |_| Some(b"two".to_vec()))));
    assert_eq!(texts(&table), ["one"]);
}

#[test]
fn a_record_that_is_too_large_is_refused_before_anything_is_sent() {
    let table = FakeTable::default();
    let log = log(&table);
    let one = add(&log, 0, "one");
    table.calls();
    let refused = log.append(one.end, WAIT, &mut |_| Some(vec![0; MAX_PAYLOAD_BYTES + 1]));
    assert!(is_damaged(&refused));
    assert_eq!(table.calls(), [""; 0]);
}

/// Appends three records of 100 stored bytes, at the positions 0, 196 and 392.
fn append_three(log: &FramedLog) -> [AppendedRecord; 3] {
    let bytes = 100 - if log.cipher.is_some() { CIPHER_BYTES } else { 0 };
    let mut end = 0;
    ["a", "b", "c"].map(|letter| {
        let appended = add(log, end, &letter.repeat(bytes));
        end = appended.end;
        appended
    })
}

/// Replaces the second record by one with this text, previous hash and seal.
fn forge(rows: &mut FakeRows, text: &[u8], previous: Option<RecordHash>, seals: &SealMode) {
    let previous = previous.unwrap_or(rows.frames[&0].hash);
    let (bytes, hash) = frame::encode(FrameKind::Record, 196, 196, &previous, text, seals);
    let row = rows.frames.get_mut(&196).unwrap();
    assert_eq!(row.bytes.len(), bytes.len());
    (row.bytes, row.hash) = (bytes, hash);
}

/// Replaces the last record as [`forge`] does, and the end of the log with it.
fn forge_last(rows: &mut FakeRows, text: &[u8], seals: &SealMode) {
    let previous = rows.frames[&196].hash;
    let (bytes, hash) = frame::encode(FrameKind::Record, 392, 392, &previous, text, seals);
    let row = rows.frames.get_mut(&392).unwrap();
    (row.bytes, row.hash) = (bytes, hash);
    rows.head.hash = hash;
}

fn swap(rows: &mut FakeRows, what: fn(&mut FrameRow) -> &mut Vec<u8>) {
    let [mut second, mut third] = [196, 392].map(|position| rows.frames[&position].clone());
    std::mem::swap(what(&mut second), what(&mut third));
    rows.frames.insert(196, second);
    rows.frames.insert(392, third);
}

fn byte(rows: &mut FakeRows, position: LogPosition, at: usize) {
    rows.frames.get_mut(&position).unwrap().bytes[at] ^= 3;
}

type Tamper = fn(&mut FakeRows);

/// Damage that is found without any key.
const DAMAGE: [(&str, Tamper); 15] = [
    ("an altered byte", |rows| byte(rows, 196, 150)),
    ("an altered length", |rows| byte(rows, 196, 4)),
    ("an altered position", |rows| byte(rows, 196, 16)),
    ("an altered previous hash", |rows| byte(rows, 196, 40)),
    ("a record of a segment's end", |rows| byte(rows, 196, 64)),
    ("a cut record", |rows| rows.frames.get_mut(&196).unwrap().bytes.truncate(190)),
    ("a cut header", |rows| rows.frames.get_mut(&196).unwrap().bytes.truncate(20)),
    ("a longer record", |rows| rows.frames.get_mut(&196).unwrap().bytes.push(0)),
    ("swapped bytes", |rows| swap(rows, |row| &mut row.bytes)),
    ("no first record", |rows| drop(rows.frames.remove(&0))),
    ("no second record", |rows| drop(rows.frames.remove(&196))),
    ("another hash in the row", |rows| rows.frames.get_mut(&196).unwrap().hash[0] ^= 1),
    ("another end in the row", |rows| rows.frames.get_mut(&196).unwrap().end += 1),
    ("another hash of the log", |rows| rows.head.hash[0] ^= 1),
    ("another previous record", |rows| {
        forge(rows, &[b'b'; 100], Some([9; 32]), &keyed(1));
    }),
];

fn tampered(open: fn(&FakeTable) -> FramedLog, tamper: Tamper) -> FakeTable {
    let table = FakeTable::default();
    append_three(&open(&table));
    tamper(&mut table.rows());
    table
}

#[test]
fn a_damaged_row_is_an_error_and_never_a_record() {
    for open in [log, sealed, encrypted] {
        for (what, tamper) in DAMAGE {
            let table = tampered(open, tamper);
            let read = open(&table.other()).read(0, u64::MAX);
            assert!(is_damaged(&read), "{what}: {read:?}");
        }
    }
    // A record with a right seal is damage too, if the next record does not follow it.
    for open in [log, sealed] {
        let table = tampered(open, |rows| forge(rows, &[b'x'; 100], None, &keyed(1)));
        let read = open(&table.other()).read(0, u64::MAX);
        assert!(is_damaged(&read), "{read:?}");
    }
}

#[test]
fn a_log_whose_end_differs_from_its_row_is_damaged() {
    let ends: [(&str, Tamper); 3] = [
        ("no last record", |rows| drop(rows.frames.remove(&392))),
        ("the log goes on", |rows| rows.head.end += 1000),
        ("the log has ended before", |rows| {
            (rows.head.end, rows.head.hash) = (392, rows.frames[&196].hash);
        }),
    ];
    for (what, tamper) in ends {
        let table = tampered(log, tamper);
        // A read may end before the end of the log only if it has reached its limit.
        for limit in [u64::MAX, 1000] {
            let read = log(&table.other()).read(0, limit);
            assert!(is_damaged(&read), "{what}: {read:?}");
        }
        let limited = log(&table.other()).read(0, 300).unwrap();
        assert_eq!(limited.frames.len(), 2, "{what}");
    }
}

/// Opens a log with encryption and without seals.
fn encrypted(table: &FakeTable) -> FramedLog {
    log(table).with_cipher(Some(Cipher::new(&[5; 32])))
}

#[test]
fn a_record_that_was_not_sealed_with_the_key_is_a_breach() {
    let altered = IntegrityBreach::Altered;
    let forgeries: [(&str, IntegrityBreach, Tamper); 4] = [
        ("no seal", IntegrityBreach::Unsealed, |rows| {
            forge_last(rows, &[b'x'; 100], &SealMode::Absent);
        }),
        ("the seal of another key", altered, |rows| forge_last(rows, &[b'x'; 100], &keyed(2))),
        ("the seal of another record", altered, |rows| {
            let seal = rows.frames[&196].bytes[68..96].to_vec();
            rows.frames.get_mut(&392).unwrap().bytes[68..96].copy_from_slice(&seal);
        }),
        ("a seal in the middle", IntegrityBreach::Unsealed, |rows| {
            rows.frames.get_mut(&196).unwrap().bytes[68..96].fill(0);
        }),
    ];
    for (what, breach, tamper) in forgeries {
        let table = tampered(sealed, tamper);
        let reader = sealed(&table.other());
        let read = reader.read(0, u64::MAX);
        assert!(is_breach(&read, breach), "{what}: {read:?}");
        let appended = try_add(&reader, 0, "d");
        assert!(is_breach(&appended, breach), "{what}: {appended:?}");
        let rotated = reader.rotate(0, WAIT, &mut |_| Some(b"d".to_vec()));
        assert!(is_breach(&rotated, breach), "{what}: {rotated:?}");
        assert_eq!(table.rows().frames.len(), 3);
        // Without the key, seals are not checked.
        log(&table.other()).read(0, u64::MAX).unwrap();
    }
    let table = FakeTable::default();
    append_three(&sealed(&table));
    // One wrong bit in a seal is damage and no breach: a forged seal has many wrong bits.
    table.rows().frames.get_mut(&196).unwrap().bytes[70] ^= 1;
    assert!(is_damaged(&sealed(&table).read(0, u64::MAX)));
    // After the store was sealed again with another key, the old seals are a breach.
    assert!(is_breach(&log(&table).with_seals(keyed(2), None).read(0, u64::MAX), altered));
}

#[test]
fn a_record_that_was_not_encrypted_for_its_position_is_a_breach() {
    let table = FakeTable::default();
    let [_, second, third] = append_three(&encrypted(&table));
    let plain = encrypted(&table).read(0, u64::MAX).unwrap();
    assert_eq!(plain.frames[1].payload, [b'b'; 100 - CIPHER_BYTES]);
    let shown = log(&table).read(0, u64::MAX).unwrap();
    assert_eq!(shown.frames[1].payload.len(), 100);
    assert!(!shown.frames[1].payload.windows(4).any(|part| part == b"bbbb"));
    let moved = shown.frames[1].payload.clone();
    let last = third.position;
    {
        let mut rows = table.rows();
        let (kind, seals) = (FrameKind::Record, SealMode::Absent);
        let (bytes, hash) = frame::encode(kind, last, last, &second.hash, &moved, &seals);
        let row = rows.frames.get_mut(&last).unwrap();
        (row.bytes, row.hash) = (bytes, hash);
        rows.head.hash = hash;
    }
    let read = encrypted(&table).read(0, u64::MAX);
    assert!(is_breach(&read, IntegrityBreach::Altered), "{read:?}");
    let other_key = log(&table).with_cipher(Some(Cipher::new(&[6; 32])));
    assert!(is_breach(&other_key.read(0, u64::MAX), IntegrityBreach::Altered));
}

/// A log, and a folder for its witness.
struct Witnessed {
    folder: tempfile::TempDir,
    table: FakeTable,
}

impl Witnessed {
    fn new() -> Self {
        let made = Self { folder: tempfile::tempdir().unwrap(), table: FakeTable::default() };
        let nothing = SyncMark { position: 0, hash: [0; 32] };
        JournalWitness::create(&made.path(), &STORE, &nothing).unwrap();
        made
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("witness")
    }

    fn open(&self) -> FramedLog {
        opened(&self.path(), &self.table)
    }
}

/// Opens a log with this witness, as another process would.
fn opened(witness: &Path, table: &FakeTable) -> FramedLog {
    let witness = JournalWitness::open(witness, &STORE).unwrap();
    log(&table.other()).with_seals(SealMode::Absent, Some(witness.unwrap()))
}

/// Copies a table as it is now, for a server that takes over later and lacks newer records.
fn copy_of(table: &FakeTable) -> FakeTable {
    let copy = FakeTable::default();
    let (head, frames) = {
        let rows = table.rows();
        (rows.head, rows.frames.clone())
    };
    *copy.rows() = FakeRows { head, frames };
    copy
}

fn become_copy(table: &FakeTable, copy: &FakeTable) {
    let copied = copy_of(copy);
    std::mem::swap(&mut *table.rows(), &mut *copied.rows());
}

/// Uses a log in every way from a position on, and returns the outcomes.
fn every_use(log: &FramedLog, from: LogPosition) -> Vec<Result<(), Error>> {
    let mut build = |_: &LogTail| Some(b"new".to_vec());
    vec![
        log.read(from, u64::MAX).map(drop),
        log.append(from, WAIT, &mut build).map(drop),
        // This call only reports that a record was appended meanwhile.
        log.append_all(from, WAIT, &[b"new".to_vec()]).and_then(|appended| {
            assert_eq!(appended, None);
            log.read(from, u64::MAX).map(drop)
        }),
        log.rotate(from, WAIT, &mut build).map(drop),
    ]
}

#[test]
fn the_witness_notes_every_acknowledged_or_read_end_of_the_log() {
    let place = Witnessed::new();
    let log = place.open();
    let mut last = add(&log, 0, "one");
    let seen = |log: &FramedLog| log.witnessed().unwrap();
    assert_eq!(seen(&log), Some((last.end, last.hash)));
    last = log.rotate(last.end, WAIT, &mut |_| Some(b"two".to_vec())).unwrap().unwrap();
    assert_eq!(seen(&place.open()), Some((last.end, last.hash)));
    let all = log.append_all(last.end, WAIT, &[b"three".to_vec(), b"four".to_vec()]);
    last = *all.unwrap().unwrap().last().unwrap();
    assert_eq!(seen(&log), Some((last.end, last.hash)));
    let theirs = add_as_other(&place.table, "five");
    log.read(last.end, u64::MAX).unwrap();
    assert_eq!(seen(&log), Some((theirs.end, theirs.hash)));
    // The witness does not see a record that was not acknowledged.
    let failing = {
        let table = place.table.other();
        table.on_append(|_| Err(broken()));
        let witness = JournalWitness::open(&place.path(), &STORE).unwrap();
        FramedLog::new(Box::new(table)).with_seals(SealMode::Absent, witness)
    };
    let outcome = failing.append(theirs.end, NO_WAIT, &mut |_| Some(b"six".to_vec()));
    assert!(is_unsure(outcome));
    assert_eq!(seen(&log), Some((theirs.end, theirs.hash)));
}

#[test]
fn a_log_that_lost_what_the_witness_saw_was_set_back() {
    let place = Witnessed::new();
    let open_meanwhile = place.open();
    let one = add(&open_meanwhile, 0, "one");
    let before = copy_of(&place.table);
    let two = add(&open_meanwhile, one.end, "two");
    become_copy(&place.table, &before);
    for log in [place.open(), open_meanwhile] {
        for from in [0, one.end, two.end] {
            for outcome in every_use(&log, from) {
                assert!(is_breach(&outcome, IntegrityBreach::RolledBack), "{outcome:?}");
            }
        }
    }
    // A process that was open meanwhile without a witness notices it too.
    assert_eq!(texts(&place.table), ["one"]);
    let table = FakeTable::default();
    let open_meanwhile = log(&table);
    let one = add(&open_meanwhile, 0, "one");
    let before = copy_of(&table);
    add(&open_meanwhile, one.end, "two");
    become_copy(&table, &before);
    let read = open_meanwhile.read(one.end, u64::MAX);
    assert!(is_breach(&read, IntegrityBreach::RolledBack), "{read:?}");
}

#[test]
fn a_log_with_another_record_where_the_witness_saw_one_was_replaced() {
    // Another record of the same size, one that ends before, and one that ends after.
    for theirs in ["owt", "2", "two and more"] {
        let place = Witnessed::new();
        let open_meanwhile = place.open();
        let one = add(&open_meanwhile, 0, "one");
        let before = copy_of(&place.table);
        let two = add(&open_meanwhile, one.end, "two");
        become_copy(&place.table, &before);
        add_as_other(&place.table, theirs);
        add_as_other(&place.table, "theirs");
        for log in [place.open(), open_meanwhile] {
            // Reads from the end that the witness saw, and from before it.
            for from in [two.end, 0, one.end] {
                for outcome in every_use(&log, from) {
                    assert!(
                        is_breach(&outcome, IntegrityBreach::Replaced),
                        "'{theirs}' from {from}: {outcome:?}"
                    );
                }
            }
        }
        assert_eq!(texts(&place.table), ["one", theirs, "theirs"]);
    }
}

#[test]
fn a_log_with_another_last_record_than_the_witness_saw_was_replaced() {
    let place = Witnessed::new();
    let open_meanwhile = place.open();
    let one = add(&open_meanwhile, 0, "one");
    let before = copy_of(&place.table);
    let two = add(&open_meanwhile, one.end, "two");
    become_copy(&place.table, &before);
    add_as_other(&place.table, "owt");
    for log in [place.open(), open_meanwhile] {
        for from in [two.end, 0, one.end] {
            for outcome in every_use(&log, from) {
                assert!(is_breach(&outcome, IntegrityBreach::Replaced), "{from}: {outcome:?}");
            }
        }
    }
    assert_eq!(texts(&place.table), ["one", "owt"]);
}

/// The log begins after the record that the witness saw, because the index has that record. The
/// witness keeps it until it is compared with the index: otherwise a look at the end of the log
/// would accept a store that was replaced.
#[test]
fn a_witness_keeps_a_removed_record_until_it_is_compared_with_the_index() {
    let place = Witnessed::new();
    let one = add(&place.open(), 0, "one");
    let others = log(&place.table.other());
    add(&others, one.end, "two");
    let begun = others.rotate(0, WAIT, &mut |_| Some(b"three".to_vec())).unwrap().unwrap();
    others.remove_before(begun.position).unwrap();
    let reader = place.open();
    let seen = |log: &FramedLog| log.witnessed().unwrap().unwrap();
    assert_eq!(reader.read(begun.position, u64::MAX).unwrap().frames.len(), 1);
    add(&reader, begun.end, "four");
    assert_eq!(seen(&reader), (one.end, one.hash));
    assert_eq!(seen(&place.open()), (one.end, one.hash));
}

#[test]
fn threads_that_share_a_log_see_only_later_ends() {
    let place = Witnessed::new();
    let log = place.open();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for number in 0..50 {
                    add(log, 0, &format!("{thread} {number}"));
                    log.read(0, u64::MAX).unwrap();
                }
            });
        }
    });
    assert_eq!(texts(&place.table).len(), 200);
    let end = place.table.rows().head;
    assert_eq!(log.witnessed().unwrap(), Some((end.end, end.hash)));
    assert_eq!(log.syncs(), 200);
}
