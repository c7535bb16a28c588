//! Attacks on what waits in the spool.

use super::{Place, act, new_note, read};
use forge_store::store::Store;
use std::fs;
use std::time::Duration;

/// A place where a note waits, written with the key, and the file that it waits in.
fn waiting() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let lock = fs::File::open(place.store().join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let options =
        forge_store::store::Options { lock_timeout: Duration::from_millis(20), ..place.options() };
    let store = Store::open(&place.store(), options).unwrap();
    let session = store.session("first").unwrap();
    assert!(session.write(&act(60)).change(new_note("waits-1")).commit().unwrap().spooled);
    let entry = fs::read_dir(place.store().join("spool")).unwrap().next().unwrap().unwrap();
    (place, entry.path())
}

#[test]
fn a_write_that_waits_is_read_with_its_seal_and_comes_in() {
    let (place, _) = waiting();
    assert_eq!(place.read().unwrap().len(), 21);
    place.open().drain().unwrap();
    assert_eq!(place.read().unwrap().len(), 21);
    assert_eq!(place.open().waiting().unwrap().writes, 0);
}

#[test]
fn a_waiting_write_that_was_changed_or_made_up_is_left_out_and_said() {
    for sealed in [true, false] {
        let (place, file) = waiting();
        let bytes = fs::read(&file).unwrap();
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
        fs::write(&file, forged).unwrap();
        let store = place.open();
        assert_eq!(read(&store).unwrap().len(), 20);
        store.drain().unwrap();
        assert_eq!(read(&store).unwrap().len(), 20);
        assert_eq!(store.waiting().unwrap().unsealed.len(), 1);
    }
}
