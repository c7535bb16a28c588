//! A remote gets a new key: the key before and all grants open nothing that is pushed later.

use super::fault::{Fault, FaultyDepot};
use super::{act, note, overwrite, read};
use crate::bundle::law::{same, shared_contents};
use forge_store::error::DepotError;
use forge_store::format::remote::{PurgeNotice, RemoteRef, SessionPlace, handle_in};
use forge_store::model::{SessionHandle, Timestamp};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{
    Depot, DepotEntry, DepotRead, DepotRequests, DepotTag, DepotWrite, KnownRemote, MemoryDepot,
    PullReport, PushReport, Remote, RemoteGrant, RemoteKeyFile, RotationReport,
};
use forge_store::store::{NewSession, Options, Session, Store};
use forge_store::{Error, ErrorKind};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const SECRET: &str = "correct horse battery staple";

/// A remote in memory, and the folder of the machines, each with its own keyring.
struct Place {
    folder: TempDir,
    memory: MemoryDepot,
    key: RemoteKeyFile,
}

/// A machine with one store.
struct Machine {
    store: Store,
    depot: Arc<dyn Depot>,
}

impl Place {
    fn new() -> Self {
        let (folder, memory) = (tempfile::tempdir().unwrap(), MemoryDepot::default());
        let key = RemoteKeyFile::generate().unwrap();
        Remote::create_with(Arc::new(memory.clone()), &key).unwrap();
        Self { folder, memory, key }
    }

    fn depot(&self) -> Arc<dyn Depot> {
        Arc::new(self.memory.clone())
    }

    /// A machine that has joined the remote with this key.
    fn machine(&self, name: &str, key: &RemoteKeyFile) -> Machine {
        let keyring = self.folder.path().join(format!("keyring of {name}"));
        self.store_with(name, key, Options::default().keyring(keyring))
    }

    fn store_with(&self, name: &str, key: &RemoteKeyFile, options: Options) -> Machine {
        let store = Store::create(&self.folder.path().join(name), options).unwrap();
        let machine = Machine { store, depot: self.depot() };
        assert!(!machine.keep(key).unwrap());
        machine
    }

    /// A machine that has pushed the session `s`, whose pack is a separate object.
    fn first(&self) -> Machine {
        let first = self.machine("first", &self.key);
        first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
        let mut noise = vec![0; 30_000];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        note(&first.session("s"), "A", &format!("{noise:?}"));
        first.push("s").unwrap();
        assert_eq!(self.memory.list("packs/", "").unwrap().len(), 1);
        first
    }
}

impl Place {
    /// Two machines that have the secret in the session `s`, and the place of that session.
    fn leaked(&self) -> (Machine, Machine, SessionHandle) {
        let (first, second) = (self.first(), self.machine("second", &self.key));
        let handle = first.handle("s");
        note(&first.session("s"), "B", SECRET);
        first.push("s").unwrap();
        second.pull(&handle).unwrap();
        (first, second, handle)
    }
}

impl Machine {
    fn keep(&self, key: &RemoteKeyFile) -> Result<bool, Error> {
        let (name, url) = ("origin".to_owned(), "file:///mnt/x".to_owned());
        self.store.keep_remote(&KnownRemote { name, url, access: key.clone().into() })
    }

    fn key(&self) -> RemoteKeyFile {
        self.store.known_remotes().unwrap()[0].access.key().unwrap().clone()
    }

    /// The key file for another machine.
    fn exported(&self) -> RemoteKeyFile {
        let key = self.store.export_remote_key(&self.key()).unwrap();
        let key = RemoteKeyFile { url: None, ..key };
        assert!(!key.is_rotating() && key.earlier().is_none());
        RemoteKeyFile::decode(&key.encode()).unwrap()
    }

    fn open(&self) -> Result<Remote, Error> {
        Remote::open_with(Arc::clone(&self.depot), &self.key().into())
    }

    fn session(&self, name: &str) -> Session {
        self.store.session(name).unwrap()
    }

    fn push(&self, name: &str) -> Result<PushReport, Error> {
        self.push_to(&self.open()?, name)
    }

    fn push_to(&self, remote: &Remote, name: &str) -> Result<PushReport, Error> {
        self.store.push(&act("push"), remote, &self.session(name))
    }

    fn pull(&self, handle: &SessionHandle) -> Result<PullReport, Error> {
        self.pull_from(&self.open()?, handle)
    }

    fn pull_from(&self, remote: &Remote, handle: &SessionHandle) -> Result<PullReport, Error> {
        self.store.pull(&act("pull"), remote, handle, None)
    }

    fn rotate(&self) -> Result<RotationReport, Error> {
        self.store.rotate_key(Arc::clone(&self.depot), "origin")
    }

    fn handle(&self, name: &str) -> SessionHandle {
        let id = self.session(name).summary().unwrap().info.id;
        self.store.known_remotes().unwrap()[0].access.handle(&id).unwrap()
    }

    fn purge(&self) {
        let known = KnownSecrets::new([SECRET]).unwrap();
        self.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    }

    /// Returns what the machine has of the session `s`, without its operations, because each store
    /// has its own operations of purges.
    fn content(&self) -> String {
        shared_contents(&self.store).split("\noperations: ").next().unwrap().to_owned()
    }

    fn has_secret(&self) -> bool {
        self.content().contains(SECRET)
    }
}

/// Checks that an error says that the key was changed.
fn changed<T>(result: Result<T, Error>) {
    let error = result.err().expect("an error");
    assert!(matches!(error, Error::RemoteKeyChanged), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unkeyed);
}

/// Checks that this key opens no ref and no notice on the remote, nor the remote itself.
fn opens_nothing(place: &Place, key: &RemoteKeyFile) {
    let keys = key.keys();
    let all = ["refs/", "purges/"].map(|prefix| place.memory.list(prefix, "").unwrap());
    for entry in all.iter().flatten() {
        let bytes = read(&place.memory, &entry.name);
        if let Some(handle) = handle_in(&entry.name) {
            let at = SessionPlace { remote: key.remote, handle };
            assert!(RemoteRef::open(&at, &keys.session(&handle), &bytes).is_err());
        } else if let Some(number) = entry.name.strip_prefix("purges/") {
            let at = (key.remote, number.parse().unwrap());
            assert!(PurgeNotice::open(at, keys.notices(), &bytes).is_err());
        }
    }
    changed(Remote::open_file(place.depot(), key));
}

#[test]
fn after_a_rotation_only_the_new_key_opens_the_remote() {
    let place = Place::new();
    let (first, second) = (place.first(), place.machine("second", &place.key));
    let handle = first.handle("s");
    second.pull(&handle).unwrap();
    note(&second.session("s"), "B", SECRET);
    second.push("s").unwrap();
    second.purge();
    second.push("s").unwrap();
    first.pull(&handle).unwrap();
    let before = first.content();
    let (old, grant) = (second.open().unwrap(), first.store.grant(&first.open().unwrap(), &handle));
    let grant: RemoteGrant = grant.unwrap();

    let report = first.rotate().unwrap();
    let expected = RotationReport { sessions: 1, notices: 1, ..RotationReport::default() };
    assert_eq!(report, expected);
    opens_nothing(&place, &place.key);
    // What this machine knows of the session still counts: no pack is read again.
    let remote = first.open().unwrap();
    place.memory.take_requests();
    assert_eq!(first.pull_from(&remote, &handle).unwrap().operations, 0);
    let expected = DepotRequests { get: 3, ..DepotRequests::default() };
    assert_eq!(place.memory.take_requests(), expected);
    same(&first.content(), &before, "after the rotation");

    // The key before and a grant are refused, also where the remote was opened before.
    note(&second.session("s"), "C", "while nobody knew");
    changed(second.open());
    changed(old.sessions());
    changed(second.pull_from(&old, &handle));
    changed(second.push_to(&old, "s"));
    changed(second.store.preview_pull(&old, &handle));
    let cell = Store::in_memory().unwrap();
    let granted = Remote::open_with(place.depot(), &grant.into()).unwrap();
    let error = cell.pull(&act("pull"), &granted, &handle, None).unwrap_err();
    assert!(matches!(error, Error::WrongGrant { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unkeyed);

    // With the new key everything continues, and what was written meanwhile is kept.
    let exported = first.exported();
    assert!(second.keep(&exported).unwrap());
    let again = second.keep(&exported).unwrap_err();
    assert!(matches!(again, Error::Duplicate { .. }), "{again}");
    let pushed = second.push("s").unwrap();
    assert_eq!((pushed.operations, pushed.pulled), (1, 0));
    first.pull(&handle).unwrap();
    let third = place.machine("third", &exported);
    third.pull(&handle).unwrap();
    for (machine, what) in [(&second, "second"), (&third, "third")] {
        same(&machine.content(), &first.content(), what);
    }
    let grant = third.store.grant(&third.open().unwrap(), &handle).unwrap();
    let granted = Remote::open_with(place.depot(), &grant.into()).unwrap();
    cell.pull(&act("pull"), &granted, &handle, None).unwrap();
}

#[test]
fn a_purge_after_a_rotation_reaches_the_others() {
    let place = Place::new();
    let (first, second, handle) = place.leaked();
    first.rotate().unwrap();
    first.purge();
    first.push("s").unwrap();
    assert!(second.has_secret());
    second.keep(&first.exported()).unwrap();
    second.pull(&handle).unwrap();
    assert!(!second.has_secret());
    same(&second.content(), &first.content(), "purged");
}

#[test]
fn a_rotation_that_fails_at_any_request_is_finished_by_the_next_one() {
    let mut failed = 0;
    for fault in [Fault::Refused, Fault::AnswerLost] {
        for before in 0.. {
            let place = Place::new();
            let mut first = place.first();
            let handle = first.handle("s");
            note(&first.session("s"), "B", SECRET);
            first.purge();
            first.push("s").unwrap();
            first.depot = Arc::new(FaultyDepot::new(&place.memory, before, fault));
            let result = first.rotate();
            first.depot = place.depot();
            let what = format!("{fault:?} after {before}");
            let is_over = result.is_ok() && before > 8;
            if result.is_err() {
                failed += 1;
                // The machine has a key of the remote all the time.
                note(&first.session("s"), "C", "in between");
                first.push("s").unwrap_or_else(|error| panic!("{what}: {error}"));
                if first.key().is_rotating() {
                    let refused = first.store.grant(&first.open().unwrap(), &handle).unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
                }
                first.rotate().unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            assert!(!first.key().is_rotating(), "{what}");
            opens_nothing(&place, &place.key);
            let second = place.machine("second", &first.exported());
            second.pull(&handle).unwrap();
            same(&second.content(), &first.content(), &what);
            if is_over {
                break;
            }
        }
    }
    assert!(failed > 15, "{failed}");
}

/// A depot in which something happens once, before the first swap of an object whose name has this
/// prefix.
struct Interrupted {
    depot: MemoryDepot,
    prefix: &'static str,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Depot for Interrupted {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        self.depot.get(name, known)
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        self.depot.put_new(name, bytes)
    }

    fn swap(&self, name: &str, tag: &DepotTag, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        if name.starts_with(self.prefix)
            && let Some(meanwhile) = self.meanwhile.lock().unwrap().take()
        {
            meanwhile();
        }
        self.depot.swap(name, tag, bytes)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        self.depot.list(prefix, after)
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        self.depot.remove(name)
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        self.depot.now()
    }
}

impl Place {
    fn interrupted(
        &self,
        prefix: &'static str,
        meanwhile: impl FnOnce() + Send + 'static,
    ) -> Arc<dyn Depot> {
        let meanwhile = Mutex::new(Some(Box::new(meanwhile) as Box<dyn FnOnce() + Send>));
        Arc::new(Interrupted { depot: self.memory.clone(), prefix, meanwhile })
    }
}

#[test]
fn a_push_during_a_rotation_is_not_lost() {
    let place = Place::new();
    let (mut first, second) = (place.first(), place.machine("second", &place.key));
    let handle = first.handle("s");
    second.pull(&handle).unwrap();
    note(&second.session("s"), "B", "during the rotation");
    second.store.create_session(&act("begin"), NewSession::named("t")).unwrap();
    note(&second.session("t"), "T", "new during the rotation");
    let (old, store) = (second.open().unwrap(), second.store.clone());
    first.depot = place.interrupted("refs/", move || {
        for name in ["s", "t"] {
            store.push(&act("push"), &old, &store.session(name).unwrap()).unwrap();
        }
    });
    let report = first.rotate().unwrap();
    assert_eq!((report.sessions, report.unopened.len()), (2, 0));
    opens_nothing(&place, &place.key);
    first.pull(&handle).unwrap();
    first.pull(&second.handle("t")).unwrap();
    same(&first.content(), &second.content(), "pulled");
    second.keep(&first.exported()).unwrap();
    assert_eq!(second.push("s").unwrap().operations, 0);
}

#[test]
fn of_two_rotations_at_once_one_wins_and_the_other_changes_nothing() {
    let place = Place::new();
    let (first, mut second) = (place.first(), place.machine("second", &place.key));
    let handle = first.handle("s");
    second.pull(&handle).unwrap();
    let winner = first.store.clone();
    let depot = place.depot();
    second.depot = place.interrupted("forge", move || {
        winner.rotate_key(depot, "origin").unwrap();
    });
    let error = second.rotate().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(second.key() == RemoteKeyFile { url: second.key().url, ..place.key.clone() });
    changed(second.open());
    changed(second.rotate());
    second.keep(&first.exported()).unwrap();
    second.pull(&handle).unwrap();
    same(&second.content(), &first.content(), "with the new key");
    // Now the other one rotates, and what the first one knows of the session is not lost.
    assert_eq!(second.rotate().unwrap().sessions, 1);
    changed(first.open());
    first.keep(&second.exported()).unwrap();
    note(&first.session("s"), "B", "after two rotations");
    assert_eq!(first.push("s").unwrap().operations, 1);
}

/// A clone that has opened the remote before the rotation can still write what was not there.
#[test]
fn sessions_written_with_the_old_key_reappear_once_they_are_pushed_with_the_new_one() {
    let place = Place::new();
    let (first, second, handle) = place.leaked();
    second.store.create_session(&act("begin"), NewSession::named("t")).unwrap();
    note(&second.session("t"), "T", "late");
    let old = second.open().unwrap();
    first.rotate().unwrap();
    second.push_to(&old, "t").unwrap();
    second.purge();
    changed(second.push_to(&old, "s"));
    let late = second.handle("t");

    let remote = first.open().unwrap();
    assert_eq!(remote.sessions().unwrap().len(), 1);
    let unopened = remote.take_unopened();
    let [Error::UnopenedSession { handle: skipped }] = *unopened else { panic!("{unopened:?}") };
    assert_eq!(skipped, late);
    remote.tidy().unwrap();
    let error = first.pull_from(&remote, &late).unwrap_err();
    assert!(matches!(error, Error::UnopenedSession { .. }), "{error}");
    note(&first.session("s"), "C", "goes on");
    first.push("s").unwrap();
    assert!(first.has_secret());

    second.keep(&first.exported()).unwrap();
    second.push("s").unwrap();
    second.push("t").unwrap();
    first.pull(&handle).unwrap();
    first.pull(&late).unwrap();
    assert!(!first.has_secret());
    same(&first.content(), &second.content(), "at the end");
    opens_nothing(&place, &place.key);
}

/// The folders of a keyring with the files of remotes.
fn folders_with_remotes(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut folders_with_remotes(&path));
        } else if path.ends_with("origin") {
            found.insert(folder.to_owned());
        }
    }
    found
}

#[test]
fn all_stores_of_a_keyring_get_the_new_key_and_tracks_of_older_keys_are_rebuilt() {
    let place = Place::new();
    let first = place.first();
    let handle = first.handle("s");
    let keyring = place.folder.path().join("keyring of first");
    let before = folders_with_remotes(&keyring);
    let beside =
        place.store_with("beside", &place.key, Options::default().keyring(keyring.clone()));
    beside.pull(&handle).unwrap();
    note(&beside.session("s"), "B", "not pushed");
    // Regression: a damaged file of another remote hid the others from a rotation.
    let all = folders_with_remotes(&keyring);
    let damaged = all.difference(&before).next().unwrap().join("another");
    for _ in 0..2 {
        fs::write(&damaged, "damaged").unwrap();
        first.rotate().unwrap();
        fs::remove_file(&damaged).unwrap();
        assert!(beside.key().secret == first.key().secret);
    }
    assert_eq!(beside.push("s").unwrap().operations, 1);
    first.pull(&handle).unwrap();
    same(&first.content(), &beside.content(), "joined");
}

/// Regression: the machine that has both keys was advised to forget the key, because another remote
/// was there.
#[test]
fn a_marker_that_was_set_back_is_refused_until_it_gets_the_new_key_again() {
    let place = Place::new();
    let first = place.first();
    let handle = first.handle("s");
    let old = read(&place.memory, "forge");
    first.rotate().unwrap();
    let new = first.exported();
    overwrite(&place.memory, "forge", &old);
    let error = first.open().unwrap_err();
    assert!(matches!(error, Error::RemoteKeySetBack), "{error}");
    assert_eq!(error.kind(), ErrorKind::Forged);
    assert!(first.rotate().unwrap().continued);
    assert_eq!(first.exported().secret, new.secret);
    place.machine("second", &new).pull(&handle).unwrap();
    opens_nothing(&place, &place.key);
}

/// Regression: the ref that a rotation wrote has another version, and nothing new. It looked like
/// work of others, with which unpushed work had to be joined.
#[test]
fn unpushed_work_is_not_joined_with_a_rotation() {
    let place = Place::new();
    let first = place.first();
    let handle = first.handle("s");
    let second = place.machine("second", &place.key);
    second.pull(&handle).unwrap();
    note(&second.session("s"), "B", "not pushed");
    first.rotate().unwrap();
    second.keep(&first.exported()).unwrap();
    let alone = second.open().unwrap().refusing_joins();
    let pulled = second.pull_from(&alone, &handle).unwrap();
    assert_eq!((pulled.operations, pulled.joined.renumbered), (0, vec![]));
    assert_eq!(second.push("s").unwrap().operations, 1);
    first.pull(&handle).unwrap();
    same(&first.content(), &second.content(), "after the push");
}

/// Regression: the keyring said for ever that the rotation was unfinished, and the key could not be
/// exported.
#[test]
fn a_rotation_whose_marker_may_not_be_written_changes_nothing() {
    struct ReadOnly(MemoryDepot);

    fn refused() -> DepotError {
        DepotError::Refused { action: "write".to_owned(), source: "may not".into() }
    }

    impl Depot for ReadOnly {
        fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
            self.0.get(name, known)
        }

        fn put_new(&self, _: &str, _: &[u8]) -> Result<DepotWrite, DepotError> {
            Err(refused())
        }

        fn swap(&self, _: &str, _: &DepotTag, _: &[u8]) -> Result<DepotWrite, DepotError> {
            Err(refused())
        }

        fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
            self.0.list(prefix, after)
        }

        fn remove(&self, _: &str) -> Result<(), DepotError> {
            Err(refused())
        }

        fn now(&self) -> Result<Timestamp, DepotError> {
            self.0.now()
        }
    }

    let place = Place::new();
    let mut first = place.first();
    let key = first.key();
    first.depot = Arc::new(ReadOnly(place.memory.clone()));
    let error = first.rotate().unwrap_err();
    assert!(matches!(error, Error::Depot(DepotError::Refused { .. })), "{error}");
    assert_eq!(first.key(), key);
    assert_eq!(first.exported().secret, place.key.secret);
}
