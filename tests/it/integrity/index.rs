//! Attacks on the index: on everything that is no longer in the journal.

use super::{Place, add, breach_of, copy};
use forge_store::backend::IntegrityBreach;
use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options, WriteOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// Opens a generation as a database and changes rows of it, so that RocksDB itself finds nothing
/// wrong.
pub(crate) fn edit_generation(folder: &Path, change: impl FnOnce(&DB, &WriteOptions)) {
    let mut options = Options::default();
    options.set_disable_auto_compactions(true);
    let families =
        ["default", "objects"].map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let database = DB::open_cf_descriptors(&options, folder, families).unwrap();
    let mut write = WriteOptions::default();
    write.disable_wal(true);
    change(&database, &write);
    database.flush().unwrap();
    drop(database);
    // The files that a database leaves next to its tables would reveal the change.
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let part = name.ends_with(".sst") || name == "CURRENT" || name.starts_with("MANIFEST-");
        if !part && name != "SEAL" {
            fs::remove_file(path).unwrap();
        }
    }
}

fn edit(place: &Place, change: impl FnOnce(&DB, &WriteOptions)) {
    edit_generation(&place.generation(), change);
}

/// The rows of a table, by their keys on disk.
pub(crate) fn rows(database: &DB, table: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = database.iterator(IteratorMode::Start).map(|row| row.unwrap());
    // Rows of one session are together: the table comes after `fe` and the session.
    let table_of = |key: &[u8]| if key[0] == 0xfe { key[5] } else { key[0] };
    all.filter(|(key, _)| table_of(key) == table)
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

const CHECKPOINTS: u8 = 6;
const TIMES: u8 = 4;

/// A row with a correct hash for other content.
fn wrapped(content: &[u8]) -> Vec<u8> {
    let mut row = b"fRw1".to_vec();
    row.extend((content.len() as u32).to_le_bytes());
    row.extend(&blake3::hash(content).as_bytes()[..16]);
    row.extend(content);
    row
}

fn replaced(row: &[u8], text: &str, other: &str) -> Vec<u8> {
    let mut content = row[24..].to_vec();
    let at = content.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
    content[at..at + text.len()].copy_from_slice(other.as_bytes());
    wrapped(&content)
}

fn saying(rows: &[(Vec<u8>, Vec<u8>)], text: &str) -> usize {
    let says = |row: &[u8]| row.windows(text.len()).any(|part| part == text.as_bytes());
    rows.iter().position(|(_, row)| says(row)).unwrap()
}

#[test]
fn a_row_whose_content_was_changed_is_refused() {
    let place = Place::applied();
    edit(&place, |database, write| {
        let rows = rows(database, CHECKPOINTS);
        let (key, row) = &rows[saying(&rows, "first-3")];
        database.put_opt(key, replaced(row, "first-3", "FORGED!"), write).unwrap();
    });
    assert!(matches!(place.refusal(), IntegrityBreach::Altered | IntegrityBreach::Unsealed));
}

#[test]
fn a_row_whose_metadata_was_changed_is_refused() {
    let place = Place::applied();
    edit(&place, |database, write| {
        let rows = rows(database, CHECKPOINTS);
        let (key, row) = &rows[saying(&rows, "first-3")];
        database.put_opt(key, replaced(row, "manual", "MANUAL"), write).unwrap();
    });
    assert!(matches!(place.refusal(), IntegrityBreach::Altered | IntegrityBreach::Unsealed));
}

#[test]
fn removed_rows_are_detected() {
    for last in [false, true] {
        let place = Place::applied();
        edit(&place, |database, write| {
            for table in [CHECKPOINTS, TIMES] {
                let rows = rows(database, table);
                let removed = if last { rows.len() - 1 } else { rows.len() / 2 };
                database.delete_opt(&rows[removed].0, write).unwrap();
            }
        });
        assert!(matches!(place.refusal(), IntegrityBreach::Altered | IntegrityBreach::Unsealed));
    }
}

#[test]
fn swapped_rows_and_rows_of_another_session_are_refused() {
    for (one, other) in [("first-3", "first-4"), ("first-5", "other-5"), ("first-5", "first-1")] {
        let place = Place::applied();
        edit(&place, |database, write| {
            let rows = rows(database, CHECKPOINTS);
            let (victim, donor) = (saying(&rows, one), saying(&rows, other));
            database.put_opt(&rows[victim].0, &rows[donor].1, write).unwrap();
        });
        assert!(matches!(place.refusal(), IntegrityBreach::Altered | IntegrityBreach::Unsealed));
    }
}

#[test]
fn a_forged_row_is_refused() {
    let place = Place::applied();
    edit(&place, |database, write| {
        let rows = rows(database, CHECKPOINTS);
        let (key, row) = rows.last().unwrap();
        let mut next = key.clone();
        *next.last_mut().unwrap() += 1;
        database.put_opt(next, replaced(row, "other-5", "FORGED!"), write).unwrap();
    });
    assert!(matches!(place.refusal(), IntegrityBreach::Altered | IntegrityBreach::Unsealed));
}

/// The tables of the newest generation.
fn tables(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "sst")).collect()
}

#[test]
fn a_table_with_the_same_length_and_time_is_refused_even_after_a_valid_one() {
    let place = Place::applied();
    assert_eq!(place.read().unwrap().len(), 20);
    let table = tables(&place.generation()).pop().unwrap();
    let time = fs::metadata(&table).unwrap().modified().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    // One wrong bit would be attributed to the disk.
    bytes[middle] ^= 3;
    fs::write(&table, bytes).unwrap();
    fs::File::options().write(true).open(&table).unwrap().set_modified(time).unwrap();
    assert_eq!(place.refusal(), IntegrityBreach::Altered);
}

/// A wrong bit proves nothing about other changes: an attacker who replaced the store by an older
/// one may have flipped it.
#[test]
fn an_older_store_with_a_wrong_bit_is_refused_as_older() {
    let place = Place::applied();
    let aside = place.root.path().join("aside");
    copy(&place.store(), &aside);
    add(&place.open().session("first").unwrap(), 60, "newest");
    fs::remove_dir_all(place.store()).unwrap();
    copy(&aside, &place.store());
    let table = tables(&place.generation()).pop().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();
    place.refusal();
}

#[test]
fn a_missing_or_added_table_is_refused() {
    let place = Place::applied();
    let table = tables(&place.generation()).pop().unwrap();
    fs::copy(&table, table.with_file_name("999999.sst")).unwrap();
    assert_eq!(place.refusal(), IntegrityBreach::Unsealed);
    fs::remove_file(table.with_file_name("999999.sst")).unwrap();
    assert_eq!(place.read().unwrap().len(), 20);
    fs::remove_file(table).unwrap();
    assert_eq!(place.refusal(), IntegrityBreach::Missing);
}

#[test]
fn an_older_generation_under_another_name_is_refused() {
    let place = Place::applied();
    let old = place.root.path().join("old");
    copy(&place.generation(), &old);
    add(&place.open().session("first").unwrap(), 60, "newest");
    assert!(place.open().maintain(0).unwrap());
    let new = place.generation();
    fs::remove_dir_all(&new).unwrap();
    copy(&old, &new);
    assert_eq!(place.refusal(), IntegrityBreach::Altered);
}

#[test]
fn an_older_copy_of_the_store_is_refused_even_with_an_applied_journal() {
    let place = Place::applied();
    let aside = place.root.path().join("aside");
    copy(&place.store(), &aside);
    add(&place.open().session("first").unwrap(), 60, "newest");
    assert!(place.open().maintain(0).unwrap());
    fs::remove_dir_all(place.store()).unwrap();
    copy(&aside, &place.store());
    assert_eq!(place.refusal(), IntegrityBreach::RolledBack);
}

#[test]
fn a_diverged_copy_is_refused_even_with_an_applied_journal() {
    let place = Place::applied();
    let (aside, keys) = (place.root.path().join("aside"), place.root.path().join("keys"));
    copy(&place.store(), &aside);
    copy(&place.keyring(), &keys);
    add(&place.open().session("first").unwrap(), 60, "mine");
    let options = place.options().keyring(keys);
    let other = forge_store::store::Store::open(&aside, options).unwrap();
    (0..3).for_each(|minute| add(&other.session("first").unwrap(), 70 + minute, "theirs"));
    assert!(other.maintain(0).unwrap());
    drop(other);
    fs::remove_dir_all(place.store()).unwrap();
    copy(&aside, &place.store());
    let error = place.read().unwrap_err();
    assert_eq!(breach_of(&error), IntegrityBreach::Replaced);
}

#[test]
fn a_forged_search_index_is_refused() {
    let place = Place::new();
    let query = || forge_store::store::SearchQuery::parse("first-3").unwrap();
    let find = |store: &forge_store::store::Store| {
        let session = store.session("first").unwrap();
        store.search(&[session], &query(), &|_, _| None).unwrap().hits.len()
    };
    let store = place.open();
    let found = find(&store);
    assert!(found > 0);
    drop(store);
    let folder = place.store().join("search");
    let file = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "texts"))
        .unwrap();
    let bytes = fs::read(&file).unwrap();
    // The pieces of its only block, compressed again, with hashes that need no key.
    let (mut forged, mut rest) = (Vec::new(), &bytes[..]);
    for place in 0..2_u64 {
        let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        let mut plain = zstd::decode_all(&rest[20..20 + length]).unwrap();
        if let Some(at) = plain.windows(7).position(|part| part == b"first-3") {
            plain[at..at + 7].copy_from_slice(b"FORGED!");
        }
        let content = zstd::encode_all(plain.as_slice(), 3).unwrap();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[1]).update(&1_u64.to_le_bytes()).update(&place.to_le_bytes());
        forged.extend((content.len() as u32).to_le_bytes());
        forged.extend(&hasher.update(&content).finalize().as_bytes()[..16]);
        forged.extend(content);
        rest = &rest[20 + length..];
    }
    assert!(rest.is_empty() && forged != bytes);
    let bytes = forged;
    fs::write(&file, bytes).unwrap();
    assert_eq!(find(&place.open()), found);
}
