//! Runs the conformance suites on every backend.

mod depot;
mod framed;
mod spread;

use forge_store::backend::encrypted::{EncryptedIndex, HiddenKeyBytes};
use forge_store::backend::journal::Journal;
use forge_store::backend::memory::{MemoryIndex, MemoryLog};
use forge_store::backend::rocks::{ClusteredTables, RocksIndex};
use forge_store::backend::{
    Cipher, Index, OBJECTS, RowBatch, ScanDirection, TableId, WriteAheadLog,
};
use forge_testkit::conformance;
use std::process::{Command, Stdio};

#[test]
fn memory_log_conforms() {
    conformance::log(|| {
        let log = MemoryLog::default();
        move || Box::new(log.clone()) as Box<dyn WriteAheadLog>
    });
}

#[test]
fn file_journal_conforms() {
    conformance::log(|| {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("journal");
        Journal::create(&folder).unwrap();
        move || {
            let _kept = &root;
            Box::new(Journal::open(&folder).unwrap()) as Box<dyn WriteAheadLog>
        }
    });
}

#[test]
fn memory_index_conforms() {
    conformance::index(1_000, || {
        let index = MemoryIndex::default();
        move || Box::new(index.clone()) as Box<dyn Index>
    });
}

#[test]
fn rocks_index_conforms() {
    conformance::index(1_000, || {
        let folder = tempfile::tempdir().unwrap();
        move || Box::new(RocksIndex::new(folder.path().join("index"))) as Box<dyn Index>
    });
}

#[test]
fn clustered_rocks_index_conforms() {
    conformance::index(1_000, || {
        let folder = tempfile::tempdir().unwrap();
        let clustered = ClusteredTables::new(|table| table != OBJECTS);
        let index = move || RocksIndex::new(folder.path().join("index")).with_clustered(clustered);
        move || Box::new(spread::Spread(index())) as Box<dyn Index>
    });
}

#[test]
fn encrypted_indexes_conform() {
    let cipher = || Cipher::new(&[7; 32]);
    conformance::index(200, || {
        let index = MemoryIndex::default();
        let hiding = move || EncryptedIndex::new(Box::new(index.clone()), cipher(), |_| None);
        move || Box::new(hiding()) as Box<dyn Index>
    });
    // Hidden ranges after, before and around the bytes that stay readable.
    let hidden = [
        |table: TableId| (table != OBJECTS).then_some(HiddenKeyBytes::new(0, 16)),
        |table: TableId| (table != OBJECTS).then_some(HiddenKeyBytes::new(2, 14)),
        |table: TableId| (table != OBJECTS).then_some(HiddenKeyBytes::new(1, 4)),
        |table: TableId| {
            Some(HiddenKeyBytes { bucket: 2, ..HiddenKeyBytes::new(0, 16) })
                .filter(|_| table != OBJECTS)
        },
    ];
    for hidden in hidden {
        conformance::index(200, || {
            let folder = tempfile::tempdir().unwrap();
            let index = move || RocksIndex::new(folder.path().join("index"));
            let hiding = move || EncryptedIndex::new(Box::new(index()), cipher(), hidden);
            move || Box::new(spread::Spread(hiding())) as Box<dyn Index>
        });
    }
}

const CRASHED_INDEX: &str = "FORGE_TEST_CRASHED_INDEX";
const ROWS: TableId = TableId(1);

/// Not a test: the next test starts it and kills it. Publishes generations until then.
#[test]
#[ignore = "started by killed_appliers_leave_a_whole_generation"]
fn applies_until_it_is_killed() {
    let Ok(path) = std::env::var(CRASHED_INDEX) else { return };
    let index = RocksIndex::new(path);
    loop {
        let mut applier = index.try_writer().unwrap().expect("nobody else applies");
        let position = applier.view().position();
        for table in [ROWS, OBJECTS] {
            let row = |number: u64| (table, number.to_be_bytes().to_vec(), Some(vec![7; 100]));
            applier.write(RowBatch { rows: (position..position + 50).map(row).collect() }).unwrap();
        }
        applier.publish(position + 50).unwrap();
    }
}

#[test]
fn killed_appliers_leave_a_whole_generation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let index = RocksIndex::new(&path);
    for round in 0..20 {
        let before = index.position().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "backend::applies_until_it_is_killed", "--ignored"])
            .env(CRASHED_INDEX, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Each round is killed a little later within an apply than the one before.
        while index.position().unwrap() == before {
            assert!(child.try_wait().unwrap().is_none(), "the applier ended by itself");
        }
        for _ in 0..round * 40 {
            index.position().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let snapshot = index.snapshot().unwrap();
        assert!(snapshot.position() > before);
        for table in [ROWS, OBJECTS] {
            let rows =
                snapshot.scan(table, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap();
            assert_eq!(rows.len() as u64, snapshot.position(), "round {round}, {table:?}");
            assert!((0_u64..).zip(&rows).all(|(number, row)| row.0 == number.to_be_bytes()));
        }
    }
    drop(index.try_writer().unwrap().expect("the lock of a killed process is free"));
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    left.retain(|name| !name.ends_with(&format!("-{:016x}", index.position().unwrap())));
    left.sort();
    assert_eq!(left.len(), 3, "beside the newest generation: {left:?}");
}
