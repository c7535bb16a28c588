use super::*;
use crate::backend::OBJECTS;
use crate::backend::memory::MemoryIndex;
use crate::backend::{LogPosition, RowBatch, ScanDirection};
use proptest::prelude::*;

const PLAIN: TableId = TableId(2);
const BUCKETED: TableId = TableId(5);
const LEADING: TableId = TableId(1);
const BETWEEN: TableId = TableId(10);
const TRAILING: TableId = TableId(16);

fn hidden(table: TableId) -> Option<HiddenKeyBytes> {
    match table {
        BUCKETED => Some(HiddenKeyBytes { bucket: 2, ..HiddenKeyBytes::new(0, 4) }),
        LEADING => Some(HiddenKeyBytes::new(0, 4)),
        BETWEEN | TRAILING => Some(HiddenKeyBytes::new(2, 4)),
        _ => None,
    }
}

fn cipher() -> Cipher {
    Cipher::new(&[1; 32])
}

fn encrypted(inner: &MemoryIndex) -> EncryptedIndex {
    EncryptedIndex::new(Box::new(inner.clone()), cipher(), hidden)
}

fn write(index: &dyn Index, position: LogPosition, rows: &[(TableId, Vec<u8>, Vec<u8>)]) {
    let mut applier = index.try_writer().unwrap().unwrap();
    let rows = rows.iter().map(|(table, key, value)| (*table, key.clone(), Some(value.clone())));
    applier.write(RowBatch { rows: rows.collect() }).unwrap();
    applier.publish(position).unwrap();
}

fn inner_rows(inner: &MemoryIndex, table: TableId) -> Vec<TableRow> {
    let snapshot = inner.snapshot().unwrap();
    snapshot.scan(table, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap()
}

/// Generates keys of a table from few byte values, so that parts of keys are often equal.
fn key(table: TableId) -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![Just(0_u8), Just(1), Just(0x80), Just(0xfe), Just(0xff)];
    let length = match table {
        LEADING | BUCKETED => 4..5,
        BETWEEN => 8..9,
        TRAILING => 6..7,
        _ => 3..4,
    };
    proptest::collection::vec(byte(), length)
}

/// Generates bounds of scans, from few byte values.
fn bound() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(1), Just(2), Just(0x80), Just(0xfe), Just(0xff)];
    proptest::collection::vec(byte, 0..9)
}

fn table() -> impl Strategy<Value = TableId> {
    prop_oneof![Just(PLAIN), Just(BUCKETED), Just(LEADING), Just(BETWEEN), Just(TRAILING)]
}

fn row() -> impl Strategy<Value = (TableId, Vec<u8>, Vec<u8>)> {
    table().prop_flat_map(|table| {
        (Just(table), key(table), proptest::collection::vec(any::<u8>(), 0..20))
    })
}

proptest! {
    #[test]
    fn every_read_returns_the_same_as_from_an_unencrypted_index(
        rows in proptest::collection::vec(row(), 0..200),
        scans in proptest::collection::vec((table(), bound(), bound(), any::<bool>(), 0_usize..9), 60),
    ) {
        let (plain, inner) = (MemoryIndex::default(), MemoryIndex::default());
        let encrypted = encrypted(&inner);
        write(&plain, 1, &rows);
        write(&encrypted, 1, &rows);
        let (expected, found) = (plain.snapshot().unwrap(), encrypted.snapshot().unwrap());
        for (table, from, to, ascending, limit) in scans {
            let limit = if limit == 8 { usize::MAX } else { limit };
            let direction = if ascending { ScanDirection::Ascending } else { ScanDirection::Descending };
            prop_assert_eq!(
                found.scan(table, &from, &to, direction, limit).unwrap(),
                expected.scan(table, &from, &to, direction, limit).unwrap(),
                "{:?} {:?} {:?} {:?} {}", table, from, to, direction, limit
            );
        }
        for (table, key, _) in &rows {
            prop_assert_eq!(found.get(*table, key).unwrap(), expected.get(*table, key).unwrap());
        }
    }
}

#[test]
fn a_large_group_read_page_by_page_has_every_row_in_order() {
    let inner = MemoryIndex::default();
    let index = encrypted(&inner);
    let key = |number: u32| (number.wrapping_mul(2_654_435_761)).to_be_bytes().to_vec();
    let rows: Vec<_> = (0..5_000).map(|n| (LEADING, key(n), n.to_be_bytes().to_vec())).collect();
    write(&index, 1, &rows);
    let snapshot = index.snapshot().unwrap();
    let all = snapshot.scan(LEADING, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap();
    assert!(all.len() == 5_000 && all.is_sorted());
    for page in [1, 7, 1_000, 4_999, 5_000] {
        let (mut paged, mut from) = (Vec::new(), Vec::new());
        loop {
            let rows = snapshot.scan(LEADING, &from, &[], ScanDirection::Ascending, page).unwrap();
            let Some((last, _)) = rows.last() else { break };
            from = [last.as_slice(), &[0]].concat();
            paged.extend(rows);
            if page == 1 && paged.len() == 400 {
                break;
            }
        }
        assert_eq!(paged, all[..paged.len()], "pages of {page}");
        assert!(page == 1 || paged.len() == all.len());
    }
    // Rows that were read ahead are not used after a write by the same writer.
    let mut applier = index.try_writer().unwrap().unwrap();
    let first = applier.view().scan(LEADING, &[], &[], ScanDirection::Ascending, 2).unwrap();
    let removal = vec![(LEADING, first[1].0.clone(), None)];
    applier.write(RowBatch { rows: removal }).unwrap();
    let next = applier.view().scan(LEADING, &first[0].0, &[], ScanDirection::Ascending, 2).unwrap();
    assert_eq!(next, [all[0].clone(), all[2].clone()]);
}

#[test]
fn the_inner_index_has_neither_hidden_key_bytes_nor_values() {
    let inner = MemoryIndex::default();
    let rows = [
        (BETWEEN, b"aaIIIIzz".to_vec(), b"a value of a row".to_vec()),
        (BETWEEN, b"bbIIIIzz".to_vec(), b"a value of a row".to_vec()),
        (OBJECTS, b"number".to_vec(), b"a value of a row".to_vec()),
    ];
    write(&encrypted(&inner), 1, &rows);
    let stored = [inner_rows(&inner, BETWEEN), inner_rows(&inner, OBJECTS)].concat();
    for (key, value) in &stored {
        assert!(!key.windows(4).any(|bytes| bytes == b"IIII"));
        assert!(!value.windows(4).any(|bytes| bytes == b"IIII" || bytes == b"valu"));
    }
    let [first, second, number] = stored.as_slice() else { panic!("{stored:?}") };
    assert_eq!(
        (&first.0[..2], &first.0[6..], &second.0[..2]),
        (&b"aa"[..], &b"zz"[..], &b"bb"[..])
    );
    assert_ne!(
        first.0[2..6],
        second.0[2..6],
        "equal hidden bytes after different bytes have different hashes"
    );
    assert_eq!(number.0, b"number");
}

#[test]
fn swapped_or_changed_rows_and_rows_of_another_key_are_errors() {
    let inner = MemoryIndex::default();
    let rows = [
        (BETWEEN, b"aaIIIIzz".to_vec(), b"one".to_vec()),
        (BETWEEN, b"aaJJJJzz".to_vec(), b"two".to_vec()),
    ];
    write(&encrypted(&inner), 1, &rows);
    let stored = inner_rows(&inner, BETWEEN);
    let (one, other) = (&stored[0], &stored[1]);
    let swapped =
        [(BETWEEN, one.0.clone(), other.1.clone()), (BETWEEN, other.0.clone(), one.1.clone())];
    let mut flipped = one.1.clone();
    flipped[3] ^= 1;
    let edits = [swapped.to_vec(), vec![(BETWEEN, one.0.clone(), flipped)]];
    for edit in edits {
        write(&inner, 2, &edit);
        let snapshot = encrypted(&inner).snapshot().unwrap();
        let error = snapshot.scan(BETWEEN, &[], &[], ScanDirection::Ascending, 9).unwrap_err();
        let expected =
            "a row of table 10 of the index cannot be decrypted with the store's key (altered)";
        assert_eq!(error.to_string(), expected);
        write(&inner, 3, &[(BETWEEN, one.0.clone(), one.1.clone())]);
    }
    write(&inner, 4, &[(BETWEEN, other.0.clone(), other.1.clone())]);
    assert!(encrypted(&inner).snapshot().unwrap().get(BETWEEN, b"aaIIIIzz").unwrap().is_some());
    let another = EncryptedIndex::new(Box::new(inner), Cipher::new(&[2; 32]), |_| None);
    assert!(
        another.snapshot().unwrap().scan(BETWEEN, &[], &[], ScanDirection::Ascending, 9).is_err()
    );
}

#[test]
fn a_key_that_is_too_short_to_be_hidden_is_refused_and_not_found() {
    let index = encrypted(&MemoryIndex::default());
    let mut applier = index.try_writer().unwrap().unwrap();
    let rows = vec![(BETWEEN, b"short".to_vec(), Some(vec![1]))];
    assert!(applier.write(RowBatch { rows }).is_err());
    assert_eq!(applier.view().get(BETWEEN, b"short").unwrap(), None);
    assert_eq!(applier.view().get_many(BETWEEN, &[b"short".to_vec()]).unwrap(), [None]);
}
