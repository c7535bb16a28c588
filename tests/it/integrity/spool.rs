//! Attacks on writes in the spool.

use super::{Place, act, new_note, read};
use crate::store::time;
use forge_store::backend::IntegrityBreach;
use forge_store::store::Store;
use std::fs;
use std::time::Duration;

/// A place with a spooled note, written with the key, and its file.
fn waiting() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let lock = fs::File::open(place.store().join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let options = place.options().lock_timeout(Duration::from_millis(20));
    let store = Store::open(&place.store(), options).unwrap();
    let session = store.session("first").unwrap();
    assert!(session.write(&act(60)).change(new_note("waits-1")).commit().unwrap().spooled);
    let entry = fs::read_dir(place.store().join("spool")).unwrap().next().unwrap().unwrap();
    (place, entry.path())
}

#[test]
fn a_spooled_write_is_read_with_its_seal_and_drained() {
    let (place, _) = waiting();
    assert_eq!(place.read().unwrap().len(), 21);
    place.open().drain().unwrap();
    assert_eq!(place.read().unwrap().len(), 21);
    assert_eq!(place.open().spool_status().unwrap().writes, 0);
}

/// The bytes of a write with other content, with the seal of the original or without one.
fn forged(bytes: &[u8], sealed: bool) -> Vec<u8> {
    let trailer = bytes.len() - 32;
    let mut content = bytes[24..trailer].to_vec();
    let at = content.windows(7).position(|part| part == b"waits-1").unwrap();
    content[at..at + 7].copy_from_slice(b"FORGED!");
    let mut forged = bytes[..8].to_vec();
    forged.extend(&blake3::hash(&content).as_bytes()[..16]);
    forged.extend(content);
    if sealed {
        forged.extend(&bytes[trailer..]);
    }
    forged
}

#[test]
fn a_changed_spooled_write_is_read_from_its_copy_or_refused() {
    for sealed in [true, false] {
        let (place, file) = waiting();
        let bytes = fs::read(&file).unwrap();
        let copy = place.store().join("spool.copy").join(file.file_name().unwrap());
        fs::write(&file, forged(&bytes, sealed)).unwrap();
        assert_eq!(place.read().unwrap().len(), 21);
        fs::write(&copy, forged(&bytes, sealed)).unwrap();
        let breach = if sealed { IntegrityBreach::Altered } else { IntegrityBreach::Unsealed };
        assert_eq!(place.refusal(), breach);
        // Draining the readable writes does not remove it either.
        place.open().drain().unwrap();
        assert_eq!(place.refusal(), breach);
        assert_eq!(place.open().spool_status().unwrap().damaged.len(), 1);
    }
}

#[test]
fn a_removed_spooled_write_is_detected() {
    let (place, file) = waiting();
    fs::remove_file(place.store().join("spool.copy").join(file.file_name().unwrap())).unwrap();
    assert_eq!(place.read().unwrap().len(), 21);
    fs::remove_file(&file).unwrap();
    assert_eq!(place.refusal(), IntegrityBreach::Missing);
    fs::remove_dir_all(place.store().join("spool")).unwrap();
    fs::remove_dir_all(place.store().join("spool.copy")).unwrap();
    assert_eq!(place.refusal(), IntegrityBreach::Missing);
    // The store can be adopted without the removed write.
    let adopted = Store::adopt(&place.store(), &place.options(), time(0)).unwrap();
    assert!(adopted.resealed);
    assert_eq!(place.read().unwrap().len(), 20);
}

#[test]
fn a_forged_spooled_write_is_ignored_and_reported() {
    for sealed in [true, false] {
        let (place, file) = waiting();
        let bytes = fs::read(&file).unwrap();
        let stranger = "0123456789abcdef0123456789abcdef";
        for folder in ["spool", "spool.copy"] {
            let file = place.store().join(folder).join(stranger);
            fs::write(file, forged(&bytes, sealed)).unwrap();
        }
        let store = place.open();
        assert_eq!(read(&store).unwrap().len(), 21);
        store.drain().unwrap();
        assert_eq!(read(&store).unwrap().len(), 21);
        assert_eq!(store.spool_status().unwrap().unsealed, [stranger]);
    }
}
