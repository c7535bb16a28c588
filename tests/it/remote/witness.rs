//! What was seen of a remote is kept outside of the store, so a remote that was set back or
//! replaced is noticed.

use super::{SECRET, act, note, session_contents, time};
use crate::fault::copy;
use forge_store::store::remote::{Depot, FolderDepot, KnownRemote, Remote, RemoteKeyFile, SeenRef};
use forge_store::store::{NewSession, Options, Session, Store};
use forge_store::{Error, ErrorKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A remote in a folder, and stores with one keyring.
struct Place {
    folder: TempDir,
    key: RemoteKeyFile,
}

/// A store with the remote as it sees it.
struct Clone {
    store: Store,
    remote: Remote,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("remote")).unwrap();
        let key = RemoteKeyFile { secret: SECRET, ..RemoteKeyFile::generate().unwrap() };
        let place = Self { folder, key };
        Remote::create_with(place.depot(), &place.key).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn depot(&self) -> Arc<dyn Depot> {
        Arc::new(FolderDepot::open(&self.path("remote")).unwrap())
    }

    fn options(&self) -> Options {
        Options::default().keyring(self.path("keyring"))
    }

    /// A new store, with the keyring of this machine or without any.
    fn new_clone(&self, name: &str, options: Options) -> Clone {
        let store = Store::create(&self.path(name), options).unwrap();
        Clone { store, remote: Remote::open_with(self.depot(), &self.key.clone().into()).unwrap() }
    }

    /// A store with a session that was pushed twice.
    fn pushed(&self, name: &str) -> Clone {
        let clone = self.new_clone(name, self.options());
        clone.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
        for id in ["A", "B"] {
            note(&clone.session(), id, "text");
            clone.push().unwrap();
        }
        clone
    }

    /// The file of the only ref.
    fn ref_file(&self) -> PathBuf {
        let folder = fs::read_dir(self.path("remote/refs")).unwrap().next().unwrap();
        fs::read_dir(folder.unwrap().path()).unwrap().next().unwrap().unwrap().path()
    }

    /// The file of the witness of the only ref.
    fn witness_file(&self) -> PathBuf {
        let folder = self.path("keyring/remotes").join(self.key.remote.to_string());
        let [file] = files_in(&folder).try_into().unwrap();
        file
    }
}

impl Clone {
    fn session(&self) -> Session {
        self.store.session("s").unwrap()
    }

    fn push(&self) -> Result<u64, Error> {
        Ok(self.store.push(&act("push"), &self.remote, &self.session())?.version)
    }

    fn pull(&self) -> Result<u64, Error> {
        let handle = self.remote.sessions()?[0].handle;
        Ok(self.store.pull(&act("pull"), &self.remote, &handle, None)?.version)
    }

    fn preview(&self) -> Result<u64, Error> {
        let handle = self.remote.sessions()?[0].handle;
        Ok(self.store.preview_pull(&self.remote, &handle)?.version)
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn refused(result: Result<u64, Error>, reason: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forged, "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

const SET_BACK: &str = "has an earlier version";
const REPLACED: &str = "has another history";
const GONE: &str = "has no data of it any more";

#[test]
fn a_store_that_is_made_again_or_restored_refuses_a_remote_that_was_set_back() {
    let place = Place::new();
    let first = place.pushed("first");
    let (path, backup) = (place.path("first"), place.path("backup"));
    first.store.maintain(0).unwrap();
    Store::backup(&path, &backup, time(3), None).unwrap();
    copy(&path.join("remotes"), &backup.join("remotes"));
    let old = fs::read(place.ref_file()).unwrap();
    note(&first.session(), "C", "third");
    assert_eq!(first.push().unwrap(), 3);
    let newest = fs::read(place.ref_file()).unwrap();
    drop(first);
    fs::remove_dir_all(&path).unwrap();
    fs::write(place.ref_file(), &old).unwrap();
    // The restored one knows the very state that the remote has.
    Store::adopt(&backup, &place.options(), time(4)).unwrap();
    let remote = Remote::open_with(place.depot(), &place.key.clone().into()).unwrap();
    let restored = Clone { store: Store::open(&backup, place.options()).unwrap(), remote };
    note(&restored.session(), "D", "not pushed");
    let anew = place.new_clone("anew", place.options());
    refused(restored.pull(), SET_BACK);
    refused(restored.push(), SET_BACK);
    refused(restored.preview(), SET_BACK);
    refused(anew.pull(), SET_BACK);
    refused(anew.preview(), SET_BACK);
    assert!(anew.store.every_session().unwrap().is_empty());
    assert_eq!(fs::read(place.ref_file()).unwrap(), old);
    // Another machine has seen nothing.
    assert_eq!(place.new_clone("other", Options::default()).pull().unwrap(), 2);
    fs::write(place.ref_file(), &newest).unwrap();
    assert_eq!(anew.pull().unwrap(), 3);
    assert_eq!(restored.push().unwrap(), 4);
    assert_eq!(anew.pull().unwrap(), 4);
    assert_eq!(session_contents(&anew.store), session_contents(&restored.store));
}

/// A push of nothing new did not look at the session, so only a pull noticed.
#[test]
fn a_push_of_nothing_refuses_a_remote_that_lost_the_session_or_was_set_back() {
    let place = Place::new();
    let first = place.pushed("first");
    let file = place.ref_file();
    let old = fs::read(&file).unwrap();
    let other = place.new_clone("other", Options::default());
    other.pull().unwrap();
    note(&other.session(), "C", "third");
    assert_eq!(other.push().unwrap(), 3);
    let newest = fs::read(&file).unwrap();
    assert_eq!(first.push().unwrap(), 2, "what others pushed is not pulled");
    fs::write(&file, &old).unwrap();
    refused(other.push(), SET_BACK);
    fs::remove_file(&file).unwrap();
    refused(other.push(), GONE);
    refused(first.push(), GONE);
    fs::write(&file, &newest).unwrap();
    assert_eq!(other.push().unwrap(), 3);
}

#[test]
fn another_history_is_refused() {
    let place = Place::new();
    let first = place.pushed("first");
    let other = place.new_clone("other", Options::default());
    other.pull().unwrap();
    let before = fs::read(place.ref_file()).unwrap();
    note(&first.session(), "C", "ours");
    first.push().unwrap();
    fs::write(place.ref_file(), before).unwrap();
    note(&other.session(), "C", "theirs");
    let anew = place.new_clone("anew", place.options());
    for version in [3, 4] {
        note(&other.session(), &format!("T{version}"), "theirs");
        assert_eq!(other.push().unwrap(), version);
        refused(anew.pull(), REPLACED);
        refused(first.pull(), REPLACED);
    }
    let handle = anew.remote.sessions().unwrap()[0].handle;
    fs::remove_file(place.ref_file()).unwrap();
    note(&first.session(), "D", "ours");
    refused(first.push(), GONE);
    let pulled = anew.store.pull(&act("pull"), &anew.remote, &handle, None);
    refused(pulled.map(|pulled| pulled.version), GONE);
    let previewed = anew.store.preview_pull(&anew.remote, &handle);
    refused(previewed.map(|preview| preview.version), GONE);
}

#[test]
fn another_history_can_be_accepted() {
    let place = Place::new();
    let mut first = place.pushed("first");
    let old = fs::read(place.ref_file()).unwrap();
    note(&first.session(), "C", "third");
    first.push().unwrap();
    // It was set back on purpose: a pull accepts that, and a push sends what is missing.
    fs::write(place.ref_file(), &old).unwrap();
    refused(first.pull(), SET_BACK);
    let before = session_contents(&first.store);
    first.remote = first.remote.accepting_history();
    assert_eq!(first.pull().unwrap(), 2);
    assert_eq!(session_contents(&first.store), before);
    first.remote = Remote::open_with(place.depot(), &place.key.clone().into()).unwrap();
    assert_eq!(place.new_clone("second", place.options()).pull().unwrap(), 2);
    assert_eq!(first.push().unwrap(), 3);
    let anew = place.new_clone("anew", place.options());
    assert_eq!(anew.pull().unwrap(), 3);
    assert_eq!(session_contents(&anew.store), before);
    // A push does both, also if nothing is left.
    fs::write(place.ref_file(), &old).unwrap();
    note(&first.session(), "D", "fourth");
    refused(first.push(), SET_BACK);
    first.remote = first.remote.accepting_history();
    assert_eq!(first.push().unwrap(), 3);
    fs::remove_file(place.ref_file()).unwrap();
    assert_eq!(first.push().unwrap(), 1);
    let last = place.new_clone("last", Options::default());
    last.pull().unwrap();
    assert_eq!(session_contents(&last.store), session_contents(&first.store));
}

#[test]
fn a_key_file_takes_the_witness_to_another_machine() {
    let place = Place::new();
    let first = place.pushed("first");
    let old = fs::read(place.ref_file()).unwrap();
    note(&first.session(), "C", "third");
    first.push().unwrap();
    let seen = first.store.seen_refs(&place.key).unwrap();
    let key = RemoteKeyFile { seen: seen.clone(), ..place.key.clone() };
    assert_eq!(seen.values().map(|seen| seen.version).collect::<Vec<_>>(), [3]);
    let newest = fs::read(place.ref_file()).unwrap();
    fs::write(place.ref_file(), &old).unwrap();
    // Without a keyring, the witness in the key file is used.
    let mut second = place.new_clone("second", Options::default());
    second.remote = Remote::open_with(place.depot(), &key.clone().into()).unwrap();
    refused(second.pull(), SET_BACK);
    assert_eq!(second.store.seen_refs(&key).unwrap(), seen);
    // A keyring keeps the witness of the key file, but not in its copy of the key.
    let elsewhere = place.options().keyring(place.path("elsewhere"));
    let third = place.new_clone("third", elsewhere);
    let (name, url) = ("origin".to_owned(), "file:///x".to_owned());
    let known = KnownRemote { name, url, access: key.clone().into() };
    third.store.keep_remote(&known).unwrap();
    assert_eq!(third.store.known_remotes().unwrap()[0].access.key(), Some(&place.key));
    assert_eq!(third.store.seen_refs(&place.key).unwrap(), seen);
    refused(third.pull(), SET_BACK);
    assert!(!third.store.keeps_key_elsewhere(&known).unwrap());
    // The later one of both counts.
    fs::write(place.ref_file(), &newest).unwrap();
    second.pull().unwrap();
    note(&first.session(), "D", "fourth");
    first.push().unwrap();
    third.pull().unwrap();
    let later = third.store.seen_refs(&key).unwrap();
    assert_eq!(later.values().map(|seen| seen.version).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_witness_that_is_lost_or_damaged_is_made_again() {
    let place = Place::new();
    let first = place.pushed("first");
    for damage in [None, Some(&b"fRs1"[..])] {
        let file = place.witness_file();
        fs::remove_file(&file).unwrap();
        damage.into_iter().for_each(|bytes| fs::write(&file, bytes).unwrap());
        note(&first.session(), damage.map_or("C", |_| "D"), "text");
        let version = first.push().unwrap();
        let seen = SeenRef::decode(&fs::read(place.witness_file()).unwrap()).unwrap();
        assert_eq!(seen.version, version);
    }
    // A keyring that cannot be written stops nothing.
    let folder = place.witness_file().parent().unwrap().to_owned();
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    note(&first.session(), "E", "text");
    first.push().unwrap();
}
