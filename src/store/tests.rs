use super::*;
use crate::backend::{
    IndexWriter, LogPosition, ScanDirection, ScanRequest, SealKey, Snapshot, TableId, TableRow,
};
use crate::engine::verify::VerifyFindings;
use crate::error::ErrorKind;
use crate::format::{RevisionRow, key};
use crate::model::{BranchMetadata, Key, Kind, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn note(session: &Session, id: &str) {
    let act = WriteContext::asked("test", Timestamp::default());
    let change = ClaimChange::put(Key::new(Kind::Note, id), Value::from([("says", id.into())]));
    session.write(&act).change(change).commit().unwrap();
}

fn made(path: &Path) -> (Store, Session) {
    let store = Store::create(path, Options::default()).unwrap();
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    (store, session)
}

fn generations(path: &Path) -> usize {
    let entries = fs::read_dir(path.join(folder::INDEX_FOLDER)).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().join("CURRENT").exists()).count()
}

/// Regression: the old generation stayed until the next apply, so after a compaction half of the
/// store was waste, and on a full disk compaction freed nothing.
#[test]
fn the_previous_generation_is_removed_as_soon_as_it_has_no_readers() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let (store, session) = made(&path);
    let read = || session.state(&session.head().unwrap()).unwrap();
    note(&session, "N1");
    assert!(store.maintain(0).unwrap());
    note(&session, "N2");
    read();
    assert!(store.maintain(0).unwrap());
    assert_eq!(generations(&path), 1, "after an apply");
    read();
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 1, "after a compaction");
    read();
    store.rebuild().unwrap();
    assert_eq!(generations(&path), 1, "after a rebuild");
    // A generation that is being read stays until the next one is published.
    let other = Store::open(&path, Options::default()).unwrap();
    let reading = other.session("s").unwrap();
    let state = reading.state(&reading.head().unwrap()).unwrap();
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 2);
    assert_eq!(state.claims().entries().count(), 2);
    drop((state, reading, other));
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 1);
}

#[test]
fn the_limit_of_the_head_cache_changes_no_state() {
    for head_bytes in [0, 1500, 1 << 30] {
        let store = Store::in_memory_with(Options { head_bytes, ..Options::default() }).unwrap();
        let act = WriteContext::asked("test", Timestamp::default());
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        let mut wanted = BTreeMap::new();
        for step in 0..40 {
            let key = Key::new(Kind::Note, format!("N{}", step * 7 % 13));
            let value = Value::from([("says", format!("{step}").into())]);
            let change = if step % 5 == 4 && wanted.remove(&key).is_some() {
                ClaimChange::remove(key)
            } else {
                wanted.insert(key.clone(), value.clone());
                ClaimChange::put(key, value)
            };
            session.write(&act).change(change).commit().unwrap();
            let state = session.state(&session.head().unwrap()).unwrap();
            let found: BTreeMap<_, _> = state
                .claims()
                .entries()
                .map(|claim| claim.map(|(key, entry)| (key, entry.value)).unwrap())
                .collect();
            assert_eq!(found, wanted, "{head_bytes} bytes, step {step}");
        }
        let check = session.check_digest(&session.head().unwrap());
        check.unwrap_or_else(|error| panic!("{head_bytes} bytes: {error}"));
    }
}

/// Regression: an append after another thread had published a generation applied the new records to
/// an empty state.
#[test]
fn records_read_after_forgetting_the_refs_are_applied_to_the_whole_store() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let live = &store.engine.follower;
    let (_, from) = live.refs().unwrap();
    session.schedule(&act, Some(7_000_000)).unwrap();
    let tail = live.log.read(from, u64::MAX).unwrap();
    live.forget();
    let refs = live.take_in(&tail).unwrap();
    assert_eq!(refs.sessions.get(0).unwrap().unwrap().schedule, Some(7_000_000));
}

/// Regression: if an apply took so long that the tail was long again at its end, the next writer
/// could find the new generation before this process had noted it, and read the whole tail again.
#[test]
fn records_after_a_newer_generation_are_not_read_again() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let (store, session) = made(&path);
    let act = WriteContext::asked("test", Timestamp::default());
    let long = |id: &str| {
        // Nearly incompressible bytes.
        let mut bytes = vec![0; 2_500_000];
        blake3::Hasher::new().update(id.as_bytes()).finalize_xof().fill(&mut bytes);
        let text: String = bytes.iter().map(|byte| char::from(b'0' + byte % 64)).collect();
        let change = ClaimChange::put(Key::new(Kind::Note, id), Value::from([("t", text.into())]));
        session.write(&act).change(change).commit().unwrap();
    };
    let live = &store.engine.follower;
    note(&session, "N1");
    assert!(Store::open(&path, Options::default()).unwrap().maintain(0).unwrap());
    let position = live.index.position().unwrap();
    for id in ["N2", "N3", "N4", "N5", "N6", "N7"] {
        long(id);
    }
    let known = live.records_since(0).expect("the short tail is kept from the beginning");
    long("N8");
    live.refs().unwrap();
    assert!(live.records_since(0).is_none(), "the kept tail begins at the generation");
    let behind = live.records_since(position).unwrap();
    let kept = known.iter().skip_while(|one| one.position < position);
    assert!(kept.clone().count() > 2);
    assert!(kept.zip(&behind).all(|(one, other)| Arc::ptr_eq(one, other)));
    // Noting it afterwards changes nothing, and all data is there.
    live.note_published(position);
    assert_eq!(live.records_since(position).unwrap().len(), behind.len());
    assert_eq!(session.state(&session.head().unwrap()).unwrap().claims().len(), 8);
}

/// Returns every row of the tables that an apply copies unchanged.
fn rows(store: &Store) -> Vec<(TableId, TableRow)> {
    let view = store.engine.follower.view().unwrap();
    // An apply compresses objects, makes keyframes, and begins a segment with a separate record.
    let other = [key::OBJECTS, key::KEYFRAMES, key::RECORDS];
    let tables = (0..=key::MERGES.0).map(TableId).filter(|table| !other.contains(table));
    let rows = tables.flat_map(|table| {
        let rows = view.scan(table, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap();
        rows.into_iter().map(move |row| (table, row))
    });
    rows.collect()
}

/// Operations of a whole tail are looked up together, and the size of a state is updated from
/// revision to revision. Both must give the same result as applying each record separately, and as
/// the generation made of them.
#[test]
fn a_tail_gives_the_same_state_record_by_record_at_once_and_applied() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let long = store.new_operation().unwrap();
    let add = |id: &str, part_of: Option<OperationId>| {
        let value = Value::from([("says", id.repeat(9).into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, id), value);
        let write = session.write(&act).change(change);
        let write = if let Some(operation) = part_of { write.part_of(operation) } else { write };
        write.checkpoint(NewCheckpoint::manual(id)).commit().unwrap();
        // Apply each record separately.
        store.engine.follower.view().unwrap();
    };
    add("N1", Some(long));
    assert!(store.maintain(0).unwrap());
    add("N2", Some(long));
    let past = session.head().unwrap();
    for id in ["N3", "N4", "N5"] {
        add(id, None);
    }
    session.undo(&act, None).unwrap();
    add("N6", Some(long));
    session.create_branch(&act, "other", Some(&past), Default::default()).unwrap();
    session.restore(&act, &past).unwrap();
    for id in ["N7", "N8", "N9"] {
        add(id, None);
    }
    let one_by_one = rows(&store);
    assert!(
        store.engine.follower.records_since(0).is_none(),
        "the kept tail begins at a generation"
    );
    store.engine.follower.forget();
    assert!(rows(&store) == one_by_one, "all at once");
    assert!(store.maintain(0).unwrap());
    // An apply also numbers the objects of its keyframes, and stores the final refs.
    let own = [key::COUNTERS, key::OBJECT_NAMES, key::REVISIONS];
    let others = |rows: &[(TableId, TableRow)]| -> Vec<_> {
        rows.iter().filter(|(table, _)| !own.contains(table)).cloned().collect()
    };
    let sizes = |rows: &[(TableId, TableRow)]| -> Vec<u64> {
        let revisions = rows.iter().filter(|(table, _)| *table == key::REVISIONS);
        revisions.map(|(_, (_, row))| RevisionRow::decode(row).unwrap().state_bytes).collect()
    };
    let applied = rows(&store);
    assert_eq!(sizes(&applied), sizes(&one_by_one));
    assert!(others(&applied) == others(&one_by_one), "applied");
    let operations = session.operations(100).unwrap();
    let long = operations.iter().find(|operation| operation.id == long).unwrap();
    assert_eq!(long.effects.len(), 6, "{:?}", long.effects);
}

/// If nothing in the tail is undone, rows of operations are only computed when a read needs them.
/// The result must not depend on when that happens.
#[test]
fn operations_do_not_depend_on_when_they_are_read() {
    let effect_counts = |asks: &dyn Fn(usize) -> bool| {
        let store = Store::in_memory().unwrap();
        let act = WriteContext::asked("test", Timestamp::default());
        let session = store.create_session(&act, NewSession::named("s")).unwrap();
        note(&session, "N0");
        assert!(store.maintain(0).unwrap());
        let mut are_read = false;
        for n in 1..9 {
            note(&session, &format!("N{n}"));
            if n % 2 == 0 {
                session.write(&act).checkpoint(NewCheckpoint::manual("here")).commit().unwrap();
            }
            let view = store.engine.follower.view().unwrap();
            assert_eq!(view.has_operations(), are_read, "{n}");
            if asks(n) {
                let count = session.operations(100).unwrap().len();
                assert_eq!(count, 1 + n + n / 2);
                are_read = true;
            }
        }
        let changes: Vec<_> =
            session.operations(100).unwrap().iter().map(|one| one.effects.len()).collect();
        assert!(store.maintain(0).unwrap());
        let applied: Vec<_> =
            session.operations(100).unwrap().iter().map(|one| one.effects.len()).collect();
        assert_eq!(changes, applied);
        changes
    };
    let never = effect_counts(&|_| false);
    assert_eq!(effect_counts(&|_| true), never);
    assert_eq!(effect_counts(&|n| n == 5), never);
}

/// Regression: to number the objects of a tail, each process read the counter of the generation,
/// and with it the refs of all sessions. The objects of a tail are numbered from a separate number,
/// and renumbered when they are applied.
#[test]
fn objects_of_a_tail_are_numbered_separately_and_renumbered_when_applied() {
    const APPLIED: std::ops::Range<u64> = 1..1000;
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let numbers = || -> Vec<u64> {
        let view = store.engine.follower.view().unwrap();
        let rows =
            view.scan(key::REVISIONS, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap();
        rows.iter().flat_map(|(_, row)| RevisionRow::decode(row).unwrap().parts).collect()
    };
    let mut before = Vec::new();
    for n in 0..5 {
        note(&session, &format!("N{n}"));
        let behind = numbers();
        let (applied, tail) = behind.split_at(before.len());
        assert_eq!(applied, before);
        assert!(tail.len() == 1 && !APPLIED.contains(&tail[0]), "{tail:?}");
        let counter = store.engine.follower.view().unwrap().get(key::COUNTERS, key::NEXT_OBJECT);
        assert_eq!(key::last_number(&counter.unwrap().unwrap()), Some(tail[0] + 1));
        let state = session.state(&session.head().unwrap()).unwrap();
        assert!(store.maintain(0).unwrap());
        let now = numbers();
        assert!(now.starts_with(&before) && now.is_sorted(), "{now:?}");
        assert!(now.len() == n + 1 && now.iter().all(|number| APPLIED.contains(number)), "{now:?}");
        let later = session.state(&session.head().unwrap()).unwrap();
        assert!(state.claims().encoded().eq(later.claims().encoded()));
        before = now;
    }
}

/// A write that replaces kinds is compared with the cached claims of the head, which follow this
/// process's writes. If it is equal to the head, it must change nothing, whatever moved the head
/// before.
#[test]
fn the_cached_claims_of_a_head_are_right_after_each_kind_of_write() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let (store, session) = made(&path);
    let act = WriteContext::asked("test", Timestamp::default());
    let other = Store::open(&path, Options::default()).unwrap();
    let elsewhere = other.session("s").unwrap();
    let kinds = || BTreeSet::from([Kind::Note, Kind::Gap]);
    let value = |step: usize| Value::from([("says", format!("{step}").into())]);
    let key = |n: usize| {
        Key::new(if n.is_multiple_of(3) { Kind::Gap } else { Kind::Note }, format!("{n}"))
    };
    for step in 0..120 {
        let change = match step % 7 {
            5 => ClaimChange::remove(key(step * 5 % 11)),
            _ => ClaimChange::put(key(step * 5 % 11), value(step)),
        };
        match step % 24 {
            6 => drop(elsewhere.write(&act).change(change).commit().unwrap()),
            9 => drop(session.undo(&act, None).unwrap()),
            12 => {
                let past = session.at_sequence(2 + step as u64 / 8).unwrap();
                session.restore(&act, &past).unwrap();
            }
            15 => {
                session.create_branch(&act, &format!("b{step}"), None, Default::default()).unwrap();
                session.switch_branch(&act, &format!("b{step}"), false).unwrap();
            }
            18 => drop(store.maintain(0).unwrap()),
            21 => drop(
                session
                    .write(&act)
                    .replace_kinds(BTreeSet::from([Kind::Gap]), vec![])
                    .commit()
                    .unwrap(),
            ),
            _ => drop(session.write(&act).change(change).commit().unwrap()),
        }
        if step % 4 == 1 {
            continue;
        }
        let state = session.state(&session.head().unwrap()).unwrap();
        let claims =
            state.claims().entries().map(|entry| entry.map(|(key, entry)| (key, entry.value)));
        let mut claims: Vec<_> = claims.collect::<Result<_>>().unwrap();
        if step % 4 == 2 {
            claims.reverse();
        }
        let done = session.write(&act).replace_kinds(kinds(), &claims).commit().unwrap();
        assert_eq!((done.revision, done.changed), (None, vec![]), "step {step}");
        claims.push((key(1000 + step), value(step)));
        if step % 4 == 3 {
            let done = session.write(&act).replace_kinds(kinds(), &claims).commit().unwrap();
            assert_eq!(done.changed.len(), 1, "step {step}");
        }
    }
}

#[test]
fn a_store_is_read_again_after_its_cleanup_was_skipped() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let (store, session) = made(&path);
    note(&session, "N1");
    assert!(store.maintain(0).unwrap());
    note(&session, "N2");
    let count = |store: &Store| {
        let session = store.session("s").unwrap();
        session.state(&session.head().unwrap()).unwrap().claims().len()
    };
    let reader = Store::open(&path, Options::default()).unwrap();
    assert_eq!(count(&reader), 2);
    reader.skip_cleanup();
    note(&session, "N3");
    assert_eq!(count(&reader), 3);
    // An index that cannot be opened is only reported by a read that needs it.
    let damaged = Store::open(&path, Options::default()).unwrap();
    let index = path.join(folder::INDEX_FOLDER);
    let mut generations = fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().path());
    let generation = generations.find(|path| path.join("CURRENT").exists()).unwrap();
    fs::write(generation.join("CURRENT"), "nothing\n").unwrap();
    let session = damaged.session("s").unwrap();
    assert!(session.head().and_then(|head| session.state(&head)).is_err());
}

/// An index whose reads fail once, as when the system has no file handle left for a moment.
#[derive(Clone)]
struct FailsOnce<T> {
    inner: T,
    /// How many reads succeed before the failure.
    until: Arc<AtomicU64>,
}

impl FailsOnce<Arc<dyn Snapshot>> {
    fn read(&self) -> Result<&dyn Snapshot, backend::Error> {
        if self.until.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(backend::Error::Index { action: "read", source: "once".into() });
        }
        Ok(&*self.inner)
    }
}

impl Snapshot for FailsOnce<Arc<dyn Snapshot>> {
    fn position(&self) -> LogPosition {
        self.inner.position()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, backend::Error> {
        self.read()?.get(table, key)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, backend::Error> {
        self.read()?.rows(request)
    }
}

impl Index for FailsOnce<MemoryIndex> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, backend::Error> {
        let snapshot = FailsOnce { inner: self.inner.snapshot()?, until: Arc::clone(&self.until) };
        Ok(Arc::new(snapshot))
    }

    fn position(&self) -> Result<LogPosition, backend::Error> {
        self.inner.position()
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, backend::Error> {
        self.inner.try_writer()
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, backend::Error> {
        self.inner.empty_writer(timeout)
    }
}

/// Opens a store in which one read of the index fails, after the given number of reads.
type Open<'a> = &'a dyn Fn(u64) -> Store;

/// Calls `work` with a function that opens a store with a history, two thirds of which are in the
/// index.
fn with_history(work: impl FnOnce(Open<'_>)) {
    let (log, index) = (Arc::new(MemoryLog::default()), MemoryIndex::default());
    write_first_record(&*log).unwrap();
    let open = |until| {
        let marker = FormatMarker::new([1; 16], [2; 32]);
        let until = Arc::new(AtomicU64::new(until));
        let index = Arc::new(FailsOnce { inner: index.clone(), until });
        let about = (SealStatus::Unsealed, SealMode::Absent, None);
        Store::assemble(Arc::clone(&log) as _, index, marker, Options::default(), about, None)
    };
    let act = WriteContext::asked("test", Timestamp::default());
    let store = open(u64::MAX);
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    for n in 0..24 {
        note(&session, &format!("N{}", n % 3));
        if n % 3 == 0 {
            let checkpoint = NewCheckpoint::manual(format!("at {n}"));
            session.write(&act).checkpoint(checkpoint).commit().unwrap();
        }
        match n {
            7 | 15 => assert!(store.maintain(0).unwrap()),
            12 => {
                session.create_branch(&act, "try", None, BranchMetadata::default()).unwrap();
                session.switch_branch(&act, "try", false).unwrap();
            }
            17 => drop(session.undo(&act, None).unwrap()),
            _ => {}
        }
    }
    work(&open);
}

fn all_of(store: &Store) -> Result<String> {
    let session = store.session("s")?;
    let head = session.head()?;
    let claims = session.state(&head)?.claims().entries().collect::<Result<Vec<_>>>()?;
    let checkpoints = session.checkpoints(&CheckpointFilter::default())?;
    let branches = session.branches(&head)?;
    let (log, operations) = (session.log(&head, 1000)?, session.operations(1000)?);
    Ok(format!("{claims:?} {checkpoints:?} {branches:?} {log:?} {operations:?}"))
}

/// Regression: the refs of all sessions were advanced by the changes before the failed read, and
/// again by the same changes at the next read: "revision #55 follows #55" from then on, or
/// checkpoints counted twice.
#[test]
fn a_read_that_fails_once_does_not_damage_the_cached_state() {
    with_history(|open| {
        let sound = all_of(&open(u64::MAX)).unwrap();
        let mut failed = 0;
        for until in 0.. {
            let store = open(until);
            let Err(error) = all_of(&store) else { break };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(all_of(&store).unwrap() == sound, "after read {until} failed");
            failed += 1;
        }
        assert!(failed > 20, "{failed} reads failed");
    });
}

#[test]
fn a_write_with_one_failed_read_changes_nothing_and_succeeds_when_repeated() {
    type Verb<'a> = &'a dyn Fn(&Session) -> Result<()>;
    let act = WriteContext::asked("again", Timestamp::default());
    let verbs: [(&str, Verb<'_>); 6] = [
        ("write", &|session| {
            let value = Value::from([("says", "again".into())]);
            let change = ClaimChange::put(Key::new(Kind::Note, "N1"), value);
            session.write(&act).change(change).commit().map(drop)
        }),
        ("checkpoint", &|session| {
            session.write(&act).checkpoint(NewCheckpoint::manual("again")).commit().map(drop)
        }),
        ("undo", &|session| session.undo(&act, None).map(drop)),
        ("restore", &|session| session.restore(&act, &session.at_sequence(3)?).map(drop)),
        ("switch", &|session| session.switch_branch(&act, "main", false).map(drop)),
        ("branch", &|session| {
            let moment = session.at_sequence(5)?;
            session.create_branch(&act, "other", Some(&moment), BranchMetadata::default()).map(drop)
        }),
    ];
    let mut failed = 0;
    for (verb, does) in verbs {
        with_history(|open| {
            let before = all_of(&open(u64::MAX)).unwrap();
            for until in 0.. {
                let store = open(until);
                let tried = store.session("s").and_then(|session| does(&session));
                let Err(error) = tried else { break };
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{verb}: {error}");
                assert!(all_of(&store).unwrap() == before, "{verb} after read {until} failed");
                failed += 1;
            }
            assert!(all_of(&open(u64::MAX)).unwrap() != before, "{verb}: it is done");
        });
    }
    assert!(failed > 20, "{failed} reads failed");
}

/// Opens the store of a journal and an index in memory.
fn opened(log: &Arc<MemoryLog>, index: &MemoryIndex) -> Store {
    let marker = FormatMarker::new([1; 16], [2; 32]);
    let index = Arc::new(index.clone());
    let about = (SealStatus::Unsealed, SealMode::Absent, None);
    Store::assemble(Arc::clone(log) as _, index, marker, Options::default(), about, None)
}

/// Puts a row into the newest generation of an index.
fn put_row(index: &MemoryIndex, table: TableId, place: Vec<u8>, row: Vec<u8>) {
    write_rows(index, vec![(table, place, Some(row))]);
}

/// Puts rows into the newest generation of an index, or removes them.
fn write_rows(index: &MemoryIndex, rows: Vec<(TableId, Vec<u8>, Option<Vec<u8>>)>) {
    let mut writer = index.try_writer().unwrap().unwrap();
    let position = writer.view().position();
    writer.write(backend::RowBatch { rows }).unwrap();
    writer.publish(position).unwrap();
}

/// Regression: a lost revision that was the first one read had the time 1970. So it was among the
/// last records up to a moment before it, and a story began there in 1970.
#[test]
fn the_last_records_up_to_a_moment_do_not_include_a_later_lost_revision() {
    let (log, index) = (Arc::new(MemoryLog::default()), MemoryIndex::default());
    write_first_record(&*log).unwrap();
    let at = |minute: i64| Timestamp::from_micros(minute * 60_000_000);
    let store = opened(&log, &index);
    let begun = WriteContext::asked("test", at(0));
    let session = store.create_session(&begun, NewSession::named("s")).unwrap();
    for minute in 1..=6 {
        let act = WriteContext::asked("test", at(minute));
        let value = Value::from([("says", minute.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "N1"), value);
        session.write(&act).change(change).commit().unwrap();
    }
    assert!(store.maintain(0).unwrap());
    let place = key::of(session.number).branch(0).number(5).build();
    put_row(&index, key::REVISIONS, place, RevisionRow::LOST.to_vec());
    let session = opened(&log, &index).session("s").unwrap();
    let times = |items: &[LogItem]| -> Vec<Timestamp> { items.iter().map(LogItem::time).collect() };
    assert_eq!(times(&session.records(5, 2).unwrap()), [at(6), at(6)]);
    let state = session.state(&session.at_time(at(3)).unwrap()).unwrap();
    for (count, first) in [(1, 3), (2, 2), (3, 1)] {
        let (items, has_older) = state.last_records(count).unwrap();
        let expected: Vec<Timestamp> = (first..=3).map(at).collect();
        assert_eq!((times(&items), has_older), (expected, first > 1), "{count}");
    }
}

/// Regression: if an object was lost, the changes of all revisions that were read together with its
/// own were left out.
#[test]
fn a_lost_object_leaves_out_only_the_changes_of_its_revision() {
    let (log, index) = (Arc::new(MemoryLog::default()), MemoryIndex::default());
    write_first_record(&*log).unwrap();
    let store = opened(&log, &index);
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    for id in ["N1", "N2", "N3"] {
        note(&session, id);
    }
    assert!(store.maintain(0).unwrap());
    let place = key::of(session.number).branch(0).number(2).build();
    let row = index.snapshot().unwrap().get(key::REVISIONS, &place).unwrap().unwrap();
    let lost = RevisionRow::decode(&row).unwrap().parts.into_iter();
    let object = |number| (key::OBJECTS, key::KeyBuilder::new().number(number).build(), None);
    write_rows(&index, lost.map(object).collect());
    let store = opened(&log, &index);
    let session = store.session("s").unwrap();
    let view = store.engine.follower.view().unwrap();
    let found = session.changes_in_batches(&view, &[1, 2, 3]).unwrap();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [1, 3]);
}

/// Regression: a file of losses that cannot be read was taken for none. So a verification called a
/// store clean whose status could not be read, and a repair forgot the earlier losses silently.
#[test]
fn an_unreadable_file_of_losses_is_reported_as_a_finding_and_a_loss() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let (store, session) = made(&path);
    note(&session, "N1");
    fs::write(path.join(folder::LOST_FILE), [b'1'; 65]).unwrap();
    store.repair_losses().unwrap_err();
    let now = Timestamp::default();
    let found = Store::verify(&path, VerifyDepth::Quick, now, None).unwrap();
    let places: Vec<&str> = found.findings.iter().map(|finding| &*finding.place).collect();
    assert_eq!((found.outcome, places), (VerifyOutcome::Loss, vec![folder::LOST_FILE]));
    let repaired = Store::repair(&path, &root.path().join("repaired"), now, None).unwrap();
    assert_eq!(repaired.lost, found.lost);
    assert!(repaired.lost[0].starts_with("how many losses"), "{:?}", repaired.lost);
}

/// Regression: of the rows that belong to no session, those of checkpoints were not looked at.
#[test]
fn a_checkpoint_that_belongs_to_no_session_is_a_finding() {
    let (log, index) = (Arc::new(MemoryLog::default()), MemoryIndex::default());
    write_first_record(&*log).unwrap();
    let store = opened(&log, &index);
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    session.write(&act).checkpoint(NewCheckpoint::manual("here")).commit().unwrap();
    assert!(store.maintain(0).unwrap());
    let row = index.snapshot().unwrap();
    let row =
        row.scan(key::CHECKPOINTS, &[], &[], ScanDirection::Ascending, 1).unwrap().remove(0).1;
    let place = key::of(7).time(Timestamp::default()).number(1).build();
    put_row(&index, key::CHECKPOINTS, place, row);
    let mut findings = VerifyFindings::default();
    opened(&log, &index).engine.verify(VerifyDepth::Quick, &mut findings);
    let found: Vec<String> =
        findings.found.iter().map(|one| format!("{}: {}", one.place, one.problem)).collect();
    assert_eq!(found, ["the checkpoint #1: it belongs to no session"]);
}

/// Regression: only the verification of a store in files reported such a write.
#[test]
fn a_spooled_write_without_the_seal_of_a_store_in_a_database_is_a_finding() {
    let root = tempfile::tempdir().unwrap();
    let open = |seal_status, seals| {
        let log = MemoryLog::default();
        write_first_record(&log).unwrap();
        let marker = FormatMarker::new([1; 16], [2; 32]).sealed();
        let (index, about) = (Arc::new(MemoryIndex::default()), (seal_status, seals, None));
        let path = Some(root.path());
        Store::assemble(Arc::new(log), index, marker, Options::default(), about, path)
    };
    let key = SealKey::new(&[3; 32], &[1; 16], &[2; 32]);
    let store = open(SealStatus::Sealed, SealMode::Keyed(key));
    let verified = || store.verify_in_database(VerifyDepth::Quick).unwrap();
    assert_eq!(verified().outcome, VerifyOutcome::Clean);
    let act = WriteContext::asked("test", Timestamp::default());
    let other = open(SealStatus::NoKey, SealMode::Unknown);
    let write = other.spooled_write(&act, NewSession::named("s")).unwrap();
    assert!(write.checkpoint(NewCheckpoint::manual("here")).save().unwrap().spooled);
    let found = verified();
    assert_eq!((found.outcome, found.findings.len()), (VerifyOutcome::Forged, 1));
    assert_eq!(found.waiting.unsealed.len(), 1);
}

/// Regression: each of 64 threads read and checked again what the other threads of the process had
/// appended since it began its write. Together they were slower than one.
#[test]
fn a_write_reads_no_records_that_its_own_process_appended_meanwhile() {
    let log = MemoryLog::default();
    write_first_record(&log).unwrap();
    let (marker, index) = (FormatMarker::new([1; 16], [2; 32]), Arc::new(MemoryIndex::default()));
    let about = (SealStatus::Unsealed, SealMode::Absent, None);
    let store =
        Store::assemble(Arc::new(log.clone()), index, marker, Options::default(), about, None);
    let act = WriteContext::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let mut plans = 0;
    log.take_counts();
    let next_sequence = store.engine.commit(CommitDurability::Now, &mut |context| {
        plans += 1;
        if plans == 1 {
            note(&session, "N1");
            note(&session, "N2");
        }
        let next = refs::session(&context.refs, session.number)?.next_sequence;
        let changes = vec![RecordChange::Pinned { session: None }];
        Ok((Some(Record { operation: act.operation()?, changes }), next))
    });
    assert_eq!((next_sequence.unwrap(), plans), (3, 2), "it is planned again after both notes");
    let counts = log.take_counts();
    assert_eq!((counts.appends, counts.records_read), (3, 0));
}
