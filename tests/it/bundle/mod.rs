//! Bundles: the import equals the export, and a faulty file is refused as a whole.

#[path = "../../../fuzz/src/bundle.rs"]
#[allow(unreachable_pub, reason = "a separate crate contains it too")]
mod fuzzed;
mod hostile;
pub(crate) mod increment;
mod kill;
pub(crate) mod law;

use crate::rot::store::{Read as StoreContents, make, read as read_all};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{BranchMetadata, Key, Kind, Timestamp, Value};
use forge_store::store::{
    BundleRange, ClaimChange, NewCheckpoint, NewSession, Options, Session, Store, VerifyDepth,
    VerifyOutcome, WriteContext,
};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_767_300_000_000_000);

pub(crate) fn act(verb: &str) -> WriteContext {
    WriteContext::asked(verb, NOW)
}

fn export(store: &Store, ranges: &[BundleRange]) -> Vec<u8> {
    try_export(store, ranges).unwrap()
}

fn try_export(store: &Store, ranges: &[BundleRange]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let write = &mut |part: &[u8]| -> Result<(), Error> {
        bytes.extend_from_slice(part);
        Ok(())
    };
    let written = store.export_bundle(ranges, write)?;
    assert_eq!(written.bytes, bytes.len() as u64);
    Ok(bytes)
}

pub(crate) fn whole(store: &Store) -> Vec<u8> {
    let sessions = store.every_session().unwrap().into_iter();
    let ranges: Vec<_> =
        sessions.map(|session| BundleRange { session, from: 0, to: None }).collect();
    export(store, &ranges)
}

pub(crate) fn note(session: &Session, id: &str, text: &str) {
    let value = Value::from([("description", text.into()), ("source", "test".into())]);
    session
        .write(&act("note"))
        .change(ClaimChange::put(Key::new(Kind::Note, id), value))
        .commit()
        .unwrap();
}

fn small() -> (Store, Vec<u8>) {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    for n in 0..4 {
        note(&session, &format!("N{n}"), "the cache is cold");
    }
    session.undo(&act("undo"), None).unwrap();
    let bytes = whole(&store);
    (store, bytes)
}

/// A store with every kind of record, including spooled writes that were drained.
fn rich(path: &Path) -> (Store, Vec<u8>) {
    make(path, &Options::default());
    let store = Store::open(path, Options::default()).unwrap();
    store.drain().unwrap();
    store.session("s").unwrap().undo(&act("undo"), None).unwrap();
    store.session("s").unwrap().redo(&act("redo")).unwrap();
    store.maintain(0).unwrap();
    let bytes = whole(&store);
    (store, bytes)
}

fn everything(path: &Path) -> StoreContents {
    read_all(path, &Options::default(), 100)
}

#[test]
fn an_import_has_every_id_and_exports_the_same_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (store, bytes) = rich(&from);
    let other = Store::create(&to, Options::default()).unwrap();
    let taken = other.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
    assert_eq!((taken.sessions.len(), taken.known), (3, 0));
    assert!(taken.records > 50, "{taken:?}");
    other.maintain(0).unwrap();
    assert_eq!(everything(&to), everything(&from));
    assert_eq!(Store::verify(&to, VerifyDepth::ReadData, NOW, None).unwrap().findings, []);
    assert!(whole(&other) == bytes, "the same session gives other bytes");
    // Existing revisions are skipped, in the other store and in the original.
    for store in [&other, &store] {
        let again = store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
        assert_eq!((again.records, again.known), (0, taken.records));
    }
    assert_eq!(everything(&to), everything(&from));
    // The session can be continued like any other.
    note(&other.session("s").unwrap(), "N500", "and then");
    other.session("s").unwrap().undo(&act("undo"), None).unwrap();
    assert_eq!(
        Store::verify(&to, VerifyDepth::ReadData, NOW, None).unwrap().outcome,
        VerifyOutcome::Clean
    );
}

#[test]
fn every_cut_and_every_wrong_byte_is_refused_and_nothing_is_written() {
    let (_, bytes) = small();
    let store = Store::in_memory().unwrap();
    let refused = |bytes: &[u8], what: &str| {
        let error = store.import_bundle(&act("import"), &mut Cursor::new(bytes), None);
        let error = error.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{what}: {error}");
        assert!(store.every_session().unwrap().is_empty(), "{what}");
    };
    for end in 0..bytes.len() {
        refused(&bytes[..end], &format!("cut at {end}"));
    }
    for place in 0..bytes.len() {
        // A higher minor version can still be read.
        if place == 15 {
            continue;
        }
        let mut wrong = bytes.clone();
        wrong[place] ^= 1 << (place % 8);
        refused(&wrong, &format!("byte {place}"));
    }
    let mut longer = bytes.clone();
    longer.push(0);
    refused(&longer, "a byte after the end");
    let mut later = bytes.clone();
    later[14] = 2;
    refused(&later, "a later version");
    assert_eq!(
        store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap().sessions,
        ["s"]
    );
}

/// A file that can be read completely once, and then fails after some bytes.
struct Failing {
    bytes: Cursor<Vec<u8>>,
    begun: u32,
    until: u64,
}

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.begun > 1 && self.bytes.position() >= self.until {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes.read(into)
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.begun += u32::from(to == SeekFrom::Start(0));
        self.bytes.seek(to)
    }
}

#[test]
fn an_interrupted_import_continues_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bytes) = rich(&folder.path().join("from"));
    let length = bytes.len() as u64;
    for until in (0..24).map(|part| length * part / 24) {
        let store = Store::in_memory().unwrap();
        let mut failing = Failing { bytes: Cursor::new(bytes.clone()), begun: 0, until };
        store.import_bundle(&act("import"), &mut failing, None).unwrap_err();
        // What was imported is the beginning of each session, and can be read.
        for session in store.every_session().unwrap() {
            let moment = session.head().unwrap();
            session.state(&moment).unwrap();
        }
        store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
        store.maintain(0).unwrap();
        assert!(whole(&store) == bytes, "stopped at byte {until}");
    }
}

#[test]
fn importing_consecutive_ranges_gives_the_whole_session() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = rich(&folder.path().join("from"));
    let session = store.session("s").unwrap();
    let range = |from, to| export(&store, &[BundleRange { session: session.clone(), from, to }]);
    let all = range(0, None);
    let parts = [range(0, Some(13)), range(13, Some(40)), range(40, None)];
    let other = Store::in_memory().unwrap();
    let take = |bytes: &Vec<u8>| other.import_bundle(&act("import"), &mut Cursor::new(bytes), None);
    assert_eq!(take(&parts[1]).unwrap_err().kind(), ErrorKind::NotFound);
    take(&parts[0]).unwrap();
    assert_eq!(take(&parts[2]).unwrap_err().kind(), ErrorKind::NotFound);
    take(&parts[1]).unwrap();
    take(&parts[2]).unwrap();
    other.maintain(0).unwrap();
    let copy = other.session("s").unwrap();
    assert!(export(&other, &[BundleRange { session: copy, from: 0, to: None }]) == all);
    for (from, to) in [(9, Some(3)), (0, Some(100_000))] {
        let none = BundleRange { session: session.clone(), from, to };
        let refused = store.export_bundle(&[none], &mut |_| Ok::<(), Error>(()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_diverged_session_or_one_with_a_used_name_is_left_unchanged() {
    let (_, bytes) = small();
    let store = Store::in_memory().unwrap();
    store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    let take = |name| store.import_bundle(&act("import"), &mut Cursor::new(&bytes), name);
    assert_eq!(take(None).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(take(Some("t")).unwrap().sessions, ["t"]);
    // Both continued the same session differently.
    let (here, there) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    for store in [&here, &there] {
        store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
    }
    note(&here.session("s").unwrap(), "A", "here");
    note(&there.session("s").unwrap(), "B", "there");
    let before = whole(&here);
    let other = whole(&there);
    let refused = here.import_bundle(&act("import"), &mut Cursor::new(&other), None);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(whole(&here) == before);
}

/// Regression: records name a branch by its number. Both sides had made a branch with the same
/// number, so a switch to one of them would have led to the other.
#[test]
fn branches_that_both_sides_made_are_refused() {
    let (_, bytes) = small();
    let stores = [(); 2].map(|()| Store::in_memory().unwrap());
    for (store, name) in stores.iter().zip(["here", "there"]) {
        store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
        let session = store.session("s").unwrap();
        session.create_branch(&act("branch"), name, None, BranchMetadata::default()).unwrap();
        session.switch_branch(&act("switch"), name, false).unwrap();
    }
    let [here, there] = stores;
    let before = whole(&here);
    let other = whole(&there);
    let refused = here.import_bundle(&act("import"), &mut Cursor::new(&other), None);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(whole(&here) == before);
}

/// Regression: the checkpoint was taken, and its number then led to it and to the revision here.
#[test]
fn a_checkpoint_with_the_number_of_a_revision_here_is_refused() {
    let (_, bytes) = small();
    let (here, there) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    for store in [&here, &there] {
        store.import_bundle(&act("import"), &mut Cursor::new(&bytes), None).unwrap();
    }
    note(&here.session("s").unwrap(), "A", "here");
    let (session, context) = (there.session("s").unwrap(), act("checkpoint"));
    session.write(&context).checkpoint(NewCheckpoint::manual("there")).commit().unwrap();
    let before = whole(&here);
    let other = whole(&there);
    let refused = here.import_bundle(&act("import"), &mut Cursor::new(&other), None);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(whole(&here) == before);
}

/// Applies the fuzzed properties to bundles with single changed bytes.
#[test]
fn the_fuzzed_properties_hold_for_bundles_with_single_wrong_bytes() {
    let (_, bytes) = small();
    fuzzed::bundle(&bytes);
    for place in (16..bytes.len()).step_by(7) {
        let mut wrong = bytes.clone();
        wrong[place] ^= 1 << (place % 8);
        fuzzed::bundle(&wrong);
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_backup_during_writes_has_all_acknowledged_data_and_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, stop) = (&store, &stop);
        scope.spawn(move || {
            let session = store.session("s").unwrap();
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                note(&session, &format!("W{}", n % 50), &format!("written {n}"));
                if n % 20 == 19 {
                    store.maintain(0).unwrap();
                }
            }
        });
        // A failed assertion must stop the writer too.
        let _stopped = Stop(stop);
        for round in 0..6 {
            note(&session, &format!("R{round}"), "acknowledged");
            let to = folder.path().join(format!("copy {round}"));
            let done = Store::backup(&path, &to, NOW, None).unwrap();
            let verified = Store::verify(&to, VerifyDepth::ReadData, NOW, None).unwrap();
            assert_eq!((verified.findings, verified.checked.revisions), (vec![], done.revisions));
            let copy = Store::open(&to, Options::default()).unwrap().session("s").unwrap();
            let state = copy.state(&copy.head().unwrap()).unwrap();
            let key = Key::new(Kind::Note, format!("R{round}"));
            assert!(state.claims().entry(&key).unwrap().is_some(), "round {round}");
            note(&copy, "mine", "a copy is a store");
            let error = Store::backup(&path, &to, NOW, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
    });
}
