//! The conformance suite of an index.

use forge_store::backend::{
    Index, IndexWriter, LogPosition, OBJECTS, RowBatch, ScanDirection, Snapshot, TableId, TableRow,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ScanDirection::{Ascending, Descending};

const SMALL: TableId = TableId(1);
const LAST: TableId = TableId(253);

/// Table, key and value of a row. A value of `None` deletes the row.
type RowChange<'a> = (TableId, &'a [u8], Option<&'a [u8]>);

/// Runs the suite, with a new index for each case. At least this many snapshots are opened while a
/// writer runs.
pub fn index<F, O>(snapshots: usize, fresh: F)
where
    F: Fn() -> O,
    O: Fn() -> Box<dyn Index> + Sync,
{
    a_new_index_is_empty_at_zero(&fresh());
    what_is_published_reads_back(&fresh());
    later_rows_win_and_deletes_delete(&fresh());
    a_writer_sees_its_own_rows(&fresh());
    an_abandoned_writer_changes_nothing(&fresh());
    there_is_one_writer(&fresh());
    a_snapshot_never_changes(&fresh());
    scans_keep_range_order_and_limit(&fresh());
    scans_resume_at_every_boundary(&fresh());
    tables_do_not_leak_into_each_other(&fresh());
    the_reserved_tables_are_refused(&fresh());
    large_batches_are_whole(&fresh());
    snapshots_beside_a_writer_are_dense(snapshots, &fresh());
}

fn writer(index: &dyn Index) -> Box<dyn IndexWriter> {
    index.try_writer().expect("an index can be written").expect("nobody else writes")
}

fn publish(index: &dyn Index, position: LogPosition, rows: &[RowChange<'_>]) {
    let mut writer = writer(index);
    writer.write(batch(rows)).expect("rows can be written");
    writer.publish(position).expect("rows can be published");
}

fn batch(rows: &[RowChange<'_>]) -> RowBatch {
    let own = |row: &RowChange<'_>| (row.0, row.1.to_vec(), row.2.map(<[u8]>::to_vec));
    RowBatch { rows: rows.iter().map(own).collect() }
}

fn whole(snapshot: &dyn Snapshot, table: TableId) -> Vec<TableRow> {
    let rows = snapshot.scan(table, &[], &[], Ascending, usize::MAX).unwrap();
    let mut against = snapshot.scan(table, &[], &[], Descending, usize::MAX).unwrap();
    against.reverse();
    assert_eq!(rows, against, "both directions show the same rows");
    rows
}

fn a_new_index_is_empty_at_zero<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    assert_eq!(index.position().unwrap(), 0);
    let snapshot = index.snapshot().unwrap();
    assert_eq!(snapshot.position(), 0);
    for table in [OBJECTS, SMALL, LAST] {
        assert_eq!(snapshot.get(table, b"").unwrap(), None);
        assert_eq!(snapshot.get_many(table, &[vec![], vec![1]]).unwrap(), [None, None]);
        assert_eq!(whole(&*snapshot, table), []);
    }
}

fn what_is_published_reads_back<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    let large = vec![9; 200_000];
    publish(
        &*index,
        17,
        &[
            (OBJECTS, b"k", Some(&large)),
            (SMALL, b"", Some(b"empty key")),
            (SMALL, b"k", Some(b"")),
            (LAST, b"\xff\xff", Some(b"last")),
        ],
    );
    for index in [index, open()] {
        assert_eq!(index.position().unwrap(), 17);
        let snapshot = index.snapshot().unwrap();
        assert_eq!(snapshot.position(), 17);
        assert_eq!(snapshot.get(OBJECTS, b"k").unwrap(), Some(large.clone()));
        assert_eq!(snapshot.get(SMALL, b"").unwrap(), Some(b"empty key".to_vec()));
        assert_eq!(snapshot.get(SMALL, b"k").unwrap(), Some(Vec::new()));
        assert_eq!(snapshot.get(LAST, b"\xff\xff").unwrap(), Some(b"last".to_vec()));
        assert_eq!(snapshot.get(SMALL, b"x").unwrap(), None);
        let keys = [b"x".to_vec(), b"k".to_vec(), b"".to_vec(), b"k".to_vec()];
        let found = snapshot.get_many(SMALL, &keys).unwrap();
        assert_eq!(found, [None, Some(vec![]), Some(b"empty key".to_vec()), Some(vec![])]);
        let found = snapshot.get_many(OBJECTS, &keys[..2]).unwrap();
        assert_eq!(found, [None, Some(large.clone())]);
    }
}

fn later_rows_win_and_deletes_delete<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    publish(
        &*index,
        1,
        &[
            (SMALL, b"a", Some(b"old")),
            (SMALL, b"a", Some(b"new")),
            (SMALL, b"b", Some(b"b")),
            (SMALL, b"b", None),
            (SMALL, b"c", None),
            (SMALL, b"c", Some(b"c")),
            (OBJECTS, b"a", Some(b"object")),
        ],
    );
    let rows = whole(&*open().snapshot().unwrap(), SMALL);
    assert_eq!(rows, [(b"a".to_vec(), b"new".to_vec()), (b"c".to_vec(), b"c".to_vec())]);
    publish(&*index, 2, &[(SMALL, b"a", None), (OBJECTS, b"a", None), (SMALL, b"z", None)]);
    let snapshot = open().snapshot().unwrap();
    assert_eq!(whole(&*snapshot, SMALL), [(b"c".to_vec(), b"c".to_vec())]);
    assert_eq!(snapshot.get(OBJECTS, b"a").unwrap(), None);
    assert_eq!(snapshot.get(SMALL, b"a").unwrap(), None);
}

fn a_writer_sees_its_own_rows<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    publish(&*index, 5, &[(SMALL, b"a", Some(b"1")), (SMALL, b"b", Some(b"1"))]);
    let mut writer = writer(&*index);
    assert_eq!(writer.view().position(), 5);
    writer.write(batch(&[(SMALL, b"b", Some(b"2")), (SMALL, b"c", Some(b"2"))])).unwrap();
    writer.write(batch(&[(SMALL, b"a", None)])).unwrap();
    let expected = [(b"b".to_vec(), b"2".to_vec()), (b"c".to_vec(), b"2".to_vec())];
    assert_eq!(whole(writer.view(), SMALL), expected);
    assert_eq!(writer.view().get(SMALL, b"a").unwrap(), None);
    assert_eq!(index.snapshot().unwrap().get(SMALL, b"c").unwrap(), None);
    writer.publish(6).unwrap();
    assert_eq!(whole(&*index.snapshot().unwrap(), SMALL), expected);
}

fn an_abandoned_writer_changes_nothing<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    let mut first = writer(&*index);
    first.write(batch(&[(SMALL, b"a", Some(b"lost")), (OBJECTS, b"a", Some(b"lost"))])).unwrap();
    drop(first);
    assert_eq!(index.position().unwrap(), 0);
    assert_eq!(whole(&*index.snapshot().unwrap(), SMALL), []);
    publish(&*index, 3, &[(SMALL, b"a", Some(b"kept"))]);
    let mut second = writer(&*index);
    second.write(batch(&[(SMALL, b"a", None), (SMALL, b"b", Some(b"lost"))])).unwrap();
    drop(second);
    for index in [index, open()] {
        assert_eq!(index.position().unwrap(), 3);
        let snapshot = index.snapshot().unwrap();
        assert_eq!(whole(&*snapshot, SMALL), [(b"a".to_vec(), b"kept".to_vec())]);
        assert_eq!(whole(&*snapshot, OBJECTS), []);
    }
}

fn there_is_one_writer<O: Fn() -> Box<dyn Index>>(open: &O) {
    let (index, other) = (open(), open());
    let first = writer(&*index);
    assert!(index.try_writer().unwrap().is_none());
    assert!(other.try_writer().unwrap().is_none());
    first.publish(1).unwrap();
    let second = writer(&*other);
    assert!(index.try_writer().unwrap().is_none());
    drop(second);
    assert!(index.try_writer().unwrap().is_some());
}

fn a_snapshot_never_changes<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    publish(&*index, 1, &[(SMALL, b"a", Some(b"1")), (SMALL, b"c", Some(b"1"))]);
    let (old, older) = (index.snapshot().unwrap(), open().snapshot().unwrap());
    for position in 2..10 {
        let value = position.to_string();
        publish(
            &*index,
            position,
            &[
                (SMALL, b"a", Some(value.as_bytes())),
                (SMALL, b"b", Some(b"phantom")),
                (SMALL, b"c", None),
                (OBJECTS, value.as_bytes(), Some(b"phantom")),
            ],
        );
    }
    for snapshot in [old, older] {
        assert_eq!(snapshot.position(), 1);
        let rows = whole(&*snapshot, SMALL);
        assert_eq!(rows, [(b"a".to_vec(), b"1".to_vec()), (b"c".to_vec(), b"1".to_vec())]);
        assert_eq!(whole(&*snapshot, OBJECTS), []);
    }
    let new = index.snapshot().unwrap();
    assert_eq!(new.position(), 9);
    assert_eq!(new.get(SMALL, b"a").unwrap(), Some(b"9".to_vec()));
}

/// Keys at every boundary: the empty key, a key and its prefix, zero bytes, the greatest bytes.
fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = ["", "\0", "\0\0", "a", "a\0", "aa", "b"]
        .iter()
        .map(|key| key.as_bytes().to_vec())
        .collect();
    keys.extend([vec![0x7f], vec![0xff], vec![0xff, 0], vec![0xff, 0xff], vec![0xff; 9]]);
    keys
}

fn with_keys(index: &dyn Index, tables: &[TableId]) {
    let mut writer = writer(index);
    // In two batches, so that the rows may be in more than one file.
    for half in 0..2 {
        let rows = tables.iter().flat_map(|table| {
            let rows = keys().into_iter().enumerate().skip(half).step_by(2);
            rows.map(|(i, key)| (*table, key, Some(vec![table.0, i as u8])))
        });
        writer.write(RowBatch { rows: rows.collect() }).unwrap();
    }
    writer.publish(1).unwrap();
}

fn scans_keep_range_order_and_limit<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    with_keys(&*index, &[OBJECTS, SMALL, LAST]);
    let snapshot = index.snapshot().unwrap();
    let keys = keys();
    for table in [OBJECTS, SMALL, LAST] {
        let rows: Vec<TableRow> =
            (0_u8..).zip(&keys).map(|(i, key)| (key.clone(), vec![table.0, i])).collect();
        for from in &keys {
            for to in &keys {
                for limit in [0, 1, 3, usize::MAX] {
                    let within = |key: &[u8]| key >= &from[..] && (to.is_empty() || key < &to[..]);
                    let mut expected: Vec<TableRow> =
                        rows.iter().filter(|(key, _)| within(key)).cloned().collect();
                    let mut against = expected.clone();
                    against.reverse();
                    expected.truncate(limit);
                    against.truncate(limit);
                    let scan =
                        |direction| snapshot.scan(table, from, to, direction, limit).unwrap();
                    assert_eq!(scan(Ascending), expected, "{table:?} {from:?}..{to:?} {limit}");
                    assert_eq!(scan(Descending), against, "{table:?} {from:?}..{to:?} {limit}");
                }
            }
        }
    }
}

fn scans_resume_at_every_boundary<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    with_keys(&*index, &[OBJECTS, SMALL]);
    let snapshot = index.snapshot().unwrap();
    for table in [OBJECTS, SMALL] {
        for limit in 1..5 {
            let (mut up, mut from) = (Vec::new(), Vec::new());
            loop {
                let rows = snapshot.scan(table, &from, &[], Ascending, limit).unwrap();
                let Some((last, _)) = rows.last() else { break };
                from = [last.as_slice(), &[0]].concat();
                up.extend(rows.into_iter().map(|(key, _)| key));
            }
            assert_eq!(up, keys());
            let (mut down, mut to) = (Vec::new(), vec![0xff; 10]);
            loop {
                let rows = snapshot.scan(table, &[], &to, Descending, limit).unwrap();
                let Some((last, _)) = rows.last() else { break };
                to.clone_from(last);
                down.extend(rows.into_iter().map(|(key, _)| key));
                // An empty end would mean the end of the table: no key is less than the empty key.
                if to.is_empty() {
                    break;
                }
            }
            down.reverse();
            assert_eq!(down, keys());
        }
    }
}

fn tables_do_not_leak_into_each_other<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    with_keys(&*index, &[OBJECTS, SMALL, TableId(2), TableId(128), TableId(252), LAST]);
    let snapshot = index.snapshot().unwrap();
    for number in 0..=LAST.0 {
        let rows = whole(&*snapshot, TableId(number));
        let expected = if [0, 1, 2, 128, 252, 253].contains(&number) { keys().len() } else { 0 };
        assert_eq!(rows.len(), expected, "table {number}");
        assert!(rows.iter().all(|(_, value)| value[0] == number), "table {number}");
        assert_eq!(snapshot.get(TableId(number), b"a").unwrap().is_some(), expected > 0);
    }
}

fn the_reserved_tables_are_refused<O: Fn() -> Box<dyn Index>>(open: &O) {
    let index = open();
    let mut writer = writer(&*index);
    for own in [254, 255] {
        let rows = batch(&[(SMALL, b"a", Some(b"1")), (TableId(own), b"", Some(b"position"))]);
        assert!(writer.write(rows).is_err());
        assert_eq!(whole(writer.view(), SMALL), [], "all rows of a batch or none");
    }
}

fn large_batches_are_whole<O: Fn() -> Box<dyn Index>>(open: &O) {
    const ROWS: u32 = 60_000;
    let index = open();
    let mut writer = writer(&*index);
    let small = (0..ROWS).map(|i| (SMALL, i.to_be_bytes().to_vec(), Some(vec![i as u8; 30])));
    writer.write(RowBatch { rows: small.collect() }).unwrap();
    for part in 0..20_u32 {
        let objects = (part * 200..(part + 1) * 200)
            .map(|i| (OBJECTS, i.to_be_bytes().to_vec(), Some(vec![i as u8; 10_000])));
        writer.write(RowBatch { rows: objects.collect() }).unwrap();
    }
    writer.publish(1).unwrap();
    let snapshot = open().snapshot().unwrap();
    let rows = whole(&*snapshot, SMALL);
    assert_eq!(rows.len(), ROWS as usize);
    for (i, (key, value)) in (0_u32..).zip(&rows) {
        assert_eq!((&key[..], &value[..]), (&i.to_be_bytes()[..], &[i as u8; 30][..]));
    }
    let keys: Vec<_> = (0..4_000_u32).rev().map(|i| i.to_be_bytes().to_vec()).collect();
    let objects = snapshot.get_many(OBJECTS, &keys).unwrap();
    for (i, object) in (0..4_000_u32).rev().zip(objects) {
        assert!(object == Some(vec![i as u8; 10_000]), "object {i}");
    }
}

/// Every generation adds rows to two tables and counts them. In a snapshot that lacks a row, the
/// counts do not match.
fn snapshots_beside_a_writer_are_dense<O: Fn() -> Box<dyn Index> + Sync>(count: usize, open: &O) {
    const COUNTER: &[u8] = b"rows";
    let index = open();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rows = 0_u64;
            while !done.load(Ordering::Relaxed) {
                let mut writer = writer(&*index);
                for _ in 0..3 {
                    let key = rows.to_be_bytes();
                    rows += 1;
                    let counter = rows.to_be_bytes();
                    let write = batch(&[
                        (SMALL, &key, Some(&key)),
                        (OBJECTS, &key, Some(&[7; 500])),
                        (LAST, COUNTER, Some(&counter)),
                    ]);
                    writer.write(write).unwrap();
                }
                writer.publish(rows).unwrap();
            }
        });
        let _stop = StopOnDrop(&done);
        let mut newest = 0;
        let mut opened = 0;
        // At least 50 generations are published meanwhile, with 3 rows each.
        while opened < count || newest < 150 {
            opened += 1;
            let snapshot = open().snapshot().unwrap();
            let position = snapshot.position();
            assert!(position >= newest, "snapshot {opened} went back from {newest} to {position}");
            newest = position;
            let counter = snapshot.get(LAST, COUNTER).unwrap();
            let counted = counter.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
            assert_eq!(counted, position);
            for table in [SMALL, OBJECTS] {
                let rows = snapshot.scan(table, &[], &[], Ascending, usize::MAX).unwrap();
                assert_eq!(rows.len() as u64, position, "{table:?} of snapshot {opened}");
                assert!((0_u64..).zip(&rows).all(|(i, (key, _))| key[..] == i.to_be_bytes()));
            }
        }
    });
}

/// Stops the writer when it is dropped, even if the reader fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
