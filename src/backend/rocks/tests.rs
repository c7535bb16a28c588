use super::*;
use crate::backend::{OBJECTS, RowBatch, ScanDirection, TableId, TableRow};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const TABLE: TableId = TableId(7);

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Returns the rows `from..to` for both families, each with a value derived from its key.
fn rows(from: u64, to: u64) -> RowBatch {
    let rows = (from..to).flat_map(|number| {
        let object = number.to_le_bytes().repeat(50);
        [(TABLE, key(number), Some(key(!number))), (OBJECTS, key(number), Some(object))]
    });
    RowBatch { rows: rows.collect() }
}

fn publish(index: &RocksIndex, from: u64, to: u64) {
    let mut applier = index.try_writer().unwrap().unwrap();
    applier.write(rows(from, to)).unwrap();
    applier.publish(to).unwrap();
}

fn count(snapshot: &dyn Snapshot, table: TableId) -> u64 {
    snapshot.scan(table, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap().len() as u64
}

/// Returns the names of all files and folders below a folder.
fn names(path: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(self::names(&entry.path()).iter().map(|below| format!("{name}/{below}")));
        }
        names.insert(name);
    }
    names
}

fn index() -> (tempfile::TempDir, RocksIndex) {
    let folder = tempfile::tempdir().unwrap();
    let index = RocksIndex::new(folder.path().join("index"));
    (folder, index)
}

fn clustered() -> ClusteredTables {
    ClusteredTables::new(|table| table != OBJECTS)
}

/// Returns one of few keys, so that many share a cluster or a suffix.
fn some_key(bytes: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 0xff]), bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn reads_find_the_same_rows_with_clustered_tables(
        written in prop::collection::vec((1..3_u8, some_key(4..7), any::<bool>()), 1..80),
        scans in prop::collection::vec(
            (1..4_u8, some_key(0..7), some_key(0..7), any::<bool>(), 0..12_usize), 1..60
        ),
    ) {
        let (_folder, index) = index();
        let index = index.with_clustered(clustered());
        let mut known = BTreeMap::new();
        // The first half of the rows is in one generation, the rest in the next.
        for (position, part) in (1..).zip(written.chunks(written.len().div_ceil(2))) {
            let mut batch = RowBatch::default();
            for (table, key, is_put) in part {
                let value = is_put.then(|| [&[*table], key.as_slice()].concat());
                batch.rows.push((TableId(*table), key.clone(), value.clone()));
                match value {
                    Some(value) => known.insert((*table, key.clone()), value),
                    None => known.remove(&(*table, key.clone())),
                };
            }
            let mut applier = index.try_writer().unwrap().unwrap();
            applier.write(batch).unwrap();
            applier.publish(position).unwrap();
        }
        let snapshot = index.snapshot().unwrap();
        for (table, from, to, ascending, limit) in &scans {
            // One in twelve scans has no limit.
            let limit = if *limit == 0 { usize::MAX } else { *limit };
            let is_asked_for = |key: &[u8]| *key >= **from && (to.is_empty() || *key < **to);
            let rows = known.iter().filter(|((of, key), _)| of == table && is_asked_for(key));
            let rows = rows.map(|((_, key), value)| (key.clone(), value.clone()));
            let (direction, rows): (_, Vec<TableRow>) = match ascending {
                true => (ScanDirection::Ascending, rows.take(limit).collect()),
                false => (ScanDirection::Descending, rows.rev().take(limit).collect()),
            };
            let found = snapshot.scan(TableId(*table), from, to, direction, limit).unwrap();
            prop_assert_eq!(found, rows, "{:?} from {:?} to {:?}", direction, from, to);
            let one = known.get(&(*table, from.clone())).cloned();
            prop_assert_eq!(snapshot.get(TableId(*table), from).unwrap(), one);
            let number = |key: &[u8]| {
                let first = key.iter().chain(&[0; 4]).take(4);
                first.fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            };
            let clusters = number(from)..number(to);
            let within = |of: u8| {
                let rows = known.iter().filter(move |((table, _), _)| *table == of);
                let rows = rows.filter(|((_, key), _)| clusters.contains(&number(key)));
                rows.map(|((_, key), value)| (key.clone(), value.clone())).collect::<Vec<_>>()
            };
            let passed = (1..4).map(|table| within(table).len()).sum::<usize>();
            let wanted = (passed <= limit).then(|| vec![within(3), within(2)]);
            let tables = [TableId(3), TableId(2)];
            let found = snapshot.scan_clusters(&tables, clusters.clone(), limit).unwrap();
            prop_assert_eq!(found, wanted);
        }
    }
}

/// An index without clustered tables, as earlier versions made it, is readable and keeps its layout
/// until it is rebuilt.
#[test]
fn an_index_keeps_its_layout_until_it_is_rebuilt() {
    let (_folder, index) = index();
    let of = |index: &RocksIndex| {
        let generation = index.folder.newest().unwrap().unwrap();
        let path = index.folder.path(generation);
        let database =
            RocksDatabase::open_read_only(&path, generation.position, &index.cache).unwrap();
        database.clustered()
    };
    publish(&index, 0, 100);
    let index = index.with_clustered(clustered());
    publish(&index, 100, 200);
    assert_eq!(of(&index), ClusteredTables::default());
    assert_eq!(count(&*index.snapshot().unwrap(), TABLE), 200);
    let mut writer = index.empty_writer(Duration::ZERO).unwrap();
    writer.write(rows(0, 300)).unwrap();
    writer.publish(300).unwrap();
    assert_eq!(of(&index), clustered());
    // A handle without clustered tables reads and writes the existing layout.
    let other = RocksIndex::new(index.folder.path("").as_path());
    publish(&other, 300, 400);
    assert_eq!(of(&other), clustered());
    for table in [TABLE, OBJECTS] {
        assert_eq!(count(&*other.snapshot().unwrap(), table), 400);
    }
    assert!(other.compact().unwrap());
    assert_eq!(count(&*other.snapshot().unwrap(), TABLE), 400);
}

#[test]
fn reading_creates_nothing_before_the_first_generation() {
    let (folder, index) = index();
    assert_eq!(index.snapshot().unwrap().position(), 0);
    assert_eq!(index.position().unwrap(), 0);
    assert!(!index.compact().unwrap());
    assert_eq!(names(folder.path()), BTreeSet::new());
}

#[test]
fn opening_fifty_times_leaves_no_files() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let before = names(folder.path());
    for _ in 0..50 {
        let reader = RocksIndex::new(folder.path().join("index"));
        assert_eq!(count(&*reader.snapshot().unwrap(), TABLE), 10);
        drop(reader.try_writer().unwrap().unwrap());
        let _second = reader.snapshot().unwrap();
    }
    assert_eq!(names(folder.path()), before);
}

#[test]
fn a_generation_holds_only_what_a_reader_needs() {
    let (folder, index) = index();
    for number in 0..3 {
        publish(&index, number * 10, number * 10 + 10);
    }
    let mut kinds = BTreeSet::new();
    for name in names(&folder.path().join("index")) {
        let last = name.rsplit('/').next().unwrap().to_owned();
        kinds.insert(match last.split_once(['-', '.']) {
            Some((_, "sst")) => "table".to_owned(),
            Some(("MANIFEST", _)) => "manifest".to_owned(),
            _ => last,
        });
    }
    let expected = [
        "3-000000000000001e", "3-000000000000001e.lease", "CURRENT", "apply.lock", "manifest",
        "published", "table",
    ];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}

#[test]
fn everything_is_private_whatever_the_umask() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let _kept = index.snapshot().unwrap();
    publish(&index, 10, 20);
    let path = folder.path().join("index");
    for name in names(&path).into_iter().chain([String::new()]) {
        let about = fs::metadata(path.join(&name)).unwrap();
        let expected = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.permissions().mode() & 0o777, expected, "{name}");
    }
}

#[test]
fn a_hundred_generations_leave_few_files() {
    let (folder, index) = index();
    for number in 0..100 {
        publish(&index, number * 20, number * 20 + 20);
    }
    let tables = names(&folder.path().join("index"));
    let tables = tables.iter().filter(|name| name.ends_with(".sst")).count();
    assert!(tables <= 30, "{tables} tables after 100 generations");
    let snapshot = index.snapshot().unwrap();
    assert_eq!([count(&*snapshot, TABLE), count(&*snapshot, OBJECTS)], [2000, 2000]);
}

#[test]
fn a_generation_lives_as_long_as_its_readers() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let other = RocksIndex::new(folder.path().join("index"));
    let (first, shared) = (other.snapshot().unwrap(), index.snapshot().unwrap());
    publish(&index, 10, 20);
    let old = folder.path().join("index/1-000000000000000a");
    assert!(old.exists());
    drop(first);
    publish(&index, 20, 30);
    assert!(old.exists(), "still read by the second reader");
    assert!(!folder.path().join("index/2-0000000000000014").exists(), "nobody reads it");
    assert_eq!(count(&*shared, OBJECTS), 10);
    drop(shared);
    publish(&index, 30, 40);
    assert!(!old.exists());
    assert_eq!(index.snapshot().unwrap().position(), 40);
}

#[test]
fn leftovers_of_a_crash_are_removed_by_the_next_applier() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let path = folder.path().join("index");
    let before = names(&path);
    // As if processes had been killed while they wrote, between the lease and the rename, and while
    // they removed an old generation.
    fs::create_dir(path.join("work")).unwrap();
    fs::write(path.join("work/000099.sst"), "half").unwrap();
    fs::write(path.join("2-0000000000000014.lease"), "").unwrap();
    fs::create_dir(path.join("retired-0-0000000000000000")).unwrap();
    fs::write(path.join("retired-0-0000000000000000/CURRENT"), "").unwrap();
    fs::create_dir(path.join("notes")).unwrap();
    assert_eq!(index.position().unwrap(), 10);
    assert_eq!(count(&*index.snapshot().unwrap(), TABLE), 10);
    drop(index.try_writer().unwrap().unwrap());
    fs::remove_dir(path.join("notes")).expect("what is not the index's own stays");
    assert_eq!(names(&path), before);
    publish(&index, 10, 20);
    assert_eq!(count(&*index.snapshot().unwrap(), TABLE), 20);
}

/// Uses a copy of the folder that was made while the next generation was written, as a crash leaves
/// it.
#[test]
fn a_crash_during_an_apply_leaves_the_last_generation() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let mut applier = index.try_writer().unwrap().unwrap();
    applier.write(rows(10, 20)).unwrap();
    let image = folder.path().join("image");
    for name in names(&folder.path().join("index")) {
        let (from, to) = (folder.path().join("index").join(&name), image.join(&name));
        if from.is_dir() {
            fs::create_dir_all(to).unwrap();
        } else {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
    assert!(image.join("work/CURRENT").exists());
    let after = RocksIndex::new(&image);
    assert_eq!(count(&*after.snapshot().unwrap(), TABLE), 10);
    let mut next = after.try_writer().unwrap().unwrap();
    assert_eq!([count(next.view(), TABLE), count(next.view(), OBJECTS)], [10, 10]);
    next.write(rows(10, 30)).unwrap();
    next.publish(30).unwrap();
    assert_eq!(count(&*after.snapshot().unwrap(), OBJECTS), 30);
    applier.publish(20).unwrap();
    assert_eq!(count(&*index.snapshot().unwrap(), OBJECTS), 20);
}

#[test]
fn a_failed_publish_changes_nothing() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let in_the_way = folder.path().join("index/2-0000000000000014.lease");
    fs::create_dir(&in_the_way).unwrap();
    let mut applier = index.try_writer().unwrap().unwrap();
    applier.write(rows(10, 20)).unwrap();
    assert!(applier.publish(20).is_err());
    assert_eq!(index.position().unwrap(), 10);
    assert_eq!(count(&*index.snapshot().unwrap(), TABLE), 10);
    fs::remove_dir(in_the_way).unwrap();
    publish(&index, 10, 20);
    assert_eq!(count(&*index.snapshot().unwrap(), TABLE), 20);
}

#[test]
fn a_copy_without_leases_is_readable_and_writable() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let path = folder.path().join("index");
    fs::remove_file(path.join("1-000000000000000a.lease")).unwrap();
    let kept = index.snapshot().unwrap();
    publish(&index, 10, 20);
    assert_eq!(count(&*kept, OBJECTS), 10);
    assert!(path.join("1-000000000000000a").exists());
    assert_eq!(index.snapshot().unwrap().position(), 20);
}

#[test]
fn a_lost_generation_is_an_error_not_an_empty_index() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    fs::remove_dir_all(folder.path().join("index/1-000000000000000a")).unwrap();
    assert!(index.snapshot().is_err());
    assert!(index.position().is_err());
    assert!(index.try_writer().is_err());
}

#[test]
fn a_renamed_generation_is_refused() {
    let (folder, index) = index();
    publish(&index, 0, 10);
    let path = folder.path().join("index");
    let renamed = path.join("1-000000000000000b");
    fs::rename(path.join("1-000000000000000a"), renamed).unwrap();
    let Err(error) = index.snapshot() else { panic!("its rows are at position 10") };
    let expected = "the index is damaged: its rows are at position 10, but its name says 11";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_whole_compaction_leaves_no_trace_of_deleted_rows() {
    const SECRET: &[u8] = b"correct horse battery staple";
    let (folder, index) = index();
    let path = folder.path().join("index");
    let found = || {
        names(&path).iter().filter(|name| name.ends_with(".sst")).any(|name| {
            let bytes = fs::read(path.join(name)).unwrap();
            bytes.windows(SECRET.len()).any(|window| window == SECRET)
        })
    };
    let write = |value: Option<&[u8]>, position| {
        let mut applier = index.try_writer().unwrap().unwrap();
        let row = |table| (table, key(5), value.map(<[u8]>::to_vec));
        applier.write(RowBatch { rows: vec![row(TABLE), row(OBJECTS)] }).unwrap();
        applier.publish(position).unwrap();
    };
    publish(&index, 0, 10);
    write(Some(SECRET), 11);
    assert!(found());
    write(None, 12);
    assert!(found(), "deleting alone erases nothing");
    assert!(index.compact().unwrap());
    assert!(!found());
    let snapshot = index.snapshot().unwrap();
    assert_eq!(snapshot.position(), 12);
    assert_eq!([count(&*snapshot, TABLE), count(&*snapshot, OBJECTS)], [9, 9]);
}

/// Half of all rows are deleted in many places. Each file is rewritten without them, whatever is in
/// the levels above it.
#[test]
fn rewritten_pieces_contain_only_the_remaining_rows() {
    const ROWS: u64 = 4000;
    let (folder, index) = index();
    let value = |n: u64| {
        let mut bytes = vec![0; 1000];
        blake3::Hasher::new().update(&key(n)).finalize_xof().fill(&mut bytes);
        bytes
    };
    let write = |rows: Vec<TableRow>, position| {
        let mut applier = index.try_writer().unwrap().unwrap();
        let rows = rows
            .into_iter()
            .map(|(key, value)| (OBJECTS, key, (!value.is_empty()).then_some(value)));
        applier.write(RowBatch { rows: rows.collect() }).unwrap();
        applier.publish(position).unwrap();
    };
    write((0..ROWS).map(|n| (key(n), value(n))).collect(), 10);
    assert!(index.compact().unwrap() && index.compact().unwrap());
    let size = || {
        let generation = index.folder.newest().unwrap().unwrap();
        index.folder.table_bytes(generation).unwrap()
    };
    let before = size();
    let is_left = |n: &u64| n.is_multiple_of(3) || (1000..1500).contains(n);
    write((0..ROWS).filter(|n| !is_left(n)).map(|n| (key(n), Vec::new())).collect(), 11);
    assert!(size() >= before, "deleting alone frees nothing");
    assert!(index.compact_pieces().unwrap());
    assert!(size() < before * 6 / 10, "{} of {before}", size());
    assert_eq!(
        names(&folder.path().join("index")).iter().filter(|name| name.ends_with("CURRENT")).count(),
        1
    );
    let left: Vec<TableRow> = (0..ROWS).filter(is_left).map(|n| (key(n), value(n))).collect();
    let all = |index: &RocksIndex| {
        let snapshot = index.snapshot().unwrap();
        (
            snapshot.position(),
            snapshot.scan(OBJECTS, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap(),
        )
    };
    assert!(all(&index) == (11, left.clone()));
    assert!(!index.compact_pieces().unwrap(), "once is enough");
    assert!(index.compact().unwrap());
    assert!(all(&index) == (11, left));
}

/// RocksDB's call that compacts a range returns nothing, not even whether it succeeded.
#[test]
fn compacting_a_damaged_table_is_an_error_and_changes_nothing() {
    let (_folder, index) = index();
    publish(&index, 0, 100);
    publish(&index, 100, 200);
    let generation = index.folder.newest().unwrap().unwrap();
    let path = index.folder.path(generation);
    for name in names(&path).iter().filter(|name| name.ends_with(".sst")) {
        let file = path.join(name);
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        bad[300] ^= 1;
        fs::write(&file, &bad).unwrap();
        let fresh = RocksIndex::new(path.parent().unwrap());
        assert!(fresh.compact().is_err(), "{name}");
        assert_eq!(index.folder.newest().unwrap(), Some(generation));
        fs::write(&file, &good).unwrap();
    }
    assert!(index.compact().unwrap());
    assert_eq!(count(&*index.snapshot().unwrap(), OBJECTS), 200);
}

/// On a damaged table an iterator ends early, and only its status reports the damage. A scan with
/// fewer rows would show a false state.
#[test]
fn a_wrong_byte_in_the_index_never_hides_rows_without_an_error() {
    const ROWS: u64 = 60;
    let (folder, index) = index();
    publish(&index, 0, ROWS / 2);
    publish(&index, ROWS / 2, ROWS);
    let generation = index.folder.newest().unwrap().unwrap();
    let path = index.folder.path(generation);
    let keys: Vec<_> = (0..ROWS).map(key).collect();
    let expected = |table| -> Vec<TableRow> {
        let rows = rows(0, ROWS).rows.into_iter();
        rows.filter(|row| row.0 == table).map(|row| (row.1, row.2.unwrap())).collect()
    };
    let (mut errors, mut harmless) = (0, 0);
    for name in names(&path) {
        let file = path.join(&name);
        let good = fs::read(&file).unwrap();
        let tables = name.ends_with(".sst");
        let step = if tables { good.len() / 60 } else { good.len() / 20 };
        for at in (0..good.len()).step_by(step.max(1)) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            // Writes a new file, because generations share the files of tables, and uses an empty
            // cache.
            fs::remove_file(&file).unwrap();
            fs::write(&file, &bad).unwrap();
            let cache = options::cache();
            let database = RocksDatabase::open_read_only(&path, generation.position, &cache);
            let Ok(database) = database else {
                errors += 1;
                continue;
            };
            let mut wrong = false;
            for table in [TABLE, OBJECTS] {
                let expected = expected(table);
                for direction in [ScanDirection::Ascending, ScanDirection::Descending] {
                    match database.scan(table, &[], &[], direction, usize::MAX) {
                        Ok(mut rows) => {
                            if direction == ScanDirection::Descending {
                                rows.reverse();
                            }
                            assert!(rows == expected, "{name} at {at}: {} rows", rows.len());
                        }
                        Err(_) => wrong = true,
                    }
                }
                let values = expected.iter().map(|row| Some(row.1.clone()));
                match database.get_many(table, &keys) {
                    Ok(found) => assert!(found.into_iter().eq(values), "{name} at {at}"),
                    Err(_) => wrong = true,
                }
                for (key, value) in &expected {
                    match database.get(table, key) {
                        Ok(found) => assert_eq!(found.as_ref(), Some(value), "{name} at {at}"),
                        Err(_) => wrong = true,
                    }
                }
            }
            if wrong { errors += 1 } else { harmless += 1 }
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(errors > 100, "{errors} errors, {harmless} harmless: the flips hit nothing");
    drop(folder);
}
