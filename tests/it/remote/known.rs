//! The remotes that a store knows, and what it knows of them without asking them.

use super::{access_of, judged, shared};
use crate::bundle::law::time;
use crate::bundle::{act, note};
use forge_store::store::remote::{
    Depot, FolderDepot, KnownRemote, MemoryDepot, PushPreview, Remote, RemoteAccess, RemoteKeyFile,
    UnpushedWork,
};
use forge_store::store::{NewSession, Options, Store};
use forge_store::{Error, ErrorKind};
use std::path::Path;
use std::sync::Arc;

fn options(folder: &Path) -> Options {
    Options::default().keyring(folder.join("keyring"))
}

fn known(name: &str) -> KnownRemote {
    let key = RemoteKeyFile::generate().unwrap();
    KnownRemote { name: name.to_owned(), url: "file:///mnt/x%20y".to_owned(), access: key.into() }
}

#[test]
fn remotes_are_kept_under_their_names_for_each_store() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        |name: &str| Store::create(&folder.path().join(name), options(folder.path())).unwrap();
    let (store, other) = (open("store"), open("other"));
    assert!(store.known_remotes().unwrap().is_empty());
    let (origin, backup) = (known("origin"), known("backup.2"));
    store.keep_remote(&origin).unwrap();
    store.keep_remote(&backup).unwrap();
    assert_eq!(store.known_remotes().unwrap(), [backup.clone(), origin.clone()]);
    assert!(other.known_remotes().unwrap().is_empty());
    let again = store.keep_remote(&known("origin")).unwrap_err();
    assert!(matches!(again, Error::Duplicate { kind: "remote", .. }), "{again}");
    assert_eq!(store.forget_remote("missing").unwrap_err().kind(), ErrorKind::NotFound);
    for name in ["", ".hidden", "a/b", "a b", "ä", "x.new", &"x".repeat(65)] {
        assert_eq!(store.keep_remote(&known(name)).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(store.forget_remote(name).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let spaced = KnownRemote { url: "a b".to_owned(), ..known("spaced") };
    assert_eq!(store.keep_remote(&spaced).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!store.keeps_key_elsewhere(&origin).unwrap());
    other.keep_remote(&KnownRemote { name: "theirs".to_owned(), ..origin.clone() }).unwrap();
    assert!(store.keeps_key_elsewhere(&origin).unwrap());
    assert!(!store.keeps_key_elsewhere(&backup).unwrap());
    store.forget_remote("origin").unwrap();
    assert_eq!(store.known_remotes().unwrap(), [backup]);
    // A store without a keyring has no place for a key.
    let plain = Store::create(&folder.path().join("plain"), Options::default()).unwrap();
    assert_eq!(plain.keep_remote(&origin).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(plain.known_remotes().unwrap().is_empty());
}

#[test]
fn a_store_that_is_adopted_keeps_its_remotes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let origin = known("origin");
    Store::create(&path, options(folder.path())).unwrap().keep_remote(&origin).unwrap();
    let before = Store::id_in(&path).unwrap();
    // Without its witness the store gets a new id and a new key.
    let keyring = folder.path().join("keyring");
    let own = std::fs::read_dir(&keyring).unwrap().map(|entry| entry.unwrap().path());
    let own = own.into_iter().find(|path| path.join("witness").exists()).unwrap();
    std::fs::remove_file(own.join("witness")).unwrap();
    Store::adopt(&path, &options(folder.path()), time(1)).unwrap();
    assert_ne!(Store::id_in(&path).unwrap(), before);
    let store = Store::open(&path, options(folder.path())).unwrap();
    assert_eq!(store.known_remotes().unwrap(), [origin]);
    let kept = files_named(&keyring, "origin");
    assert_eq!(kept.len(), 2, "{kept:?}");
    std::fs::write(&kept[0], "forge").unwrap();
    std::fs::write(&kept[1], "forge").unwrap();
    let damaged = store.known_remotes().unwrap_err();
    assert!(matches!(damaged, Error::DamagedKey { .. }), "{damaged}");
}

fn files_named(folder: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_named(&path, name));
        } else if path.file_name().is_some_and(|own| own == name) {
            found.push(path);
        }
    }
    found
}

#[test]
fn unpushed_work_is_known_without_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    let key = RemoteKeyFile::generate().unwrap();
    let remote = Remote::create_with(Arc::clone(&depot), &key).unwrap();
    let access = RemoteAccess::from(key);
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let begin = |name| store.create_session(&act("begin"), NewSession::named(name)).unwrap();
    let (session, _other) = (begin("s"), begin("other"));
    note(&session, "A", "first");
    let unpushed = || store.unpushed(&access, &session).unwrap();
    let preview = || store.preview_push(&access, &session).unwrap();
    assert!(store.shared_sessions(&access).unwrap().is_empty());
    assert_eq!((unpushed().operations, preview().operations), (1, 1));
    store.push(&act("push"), &remote, &session).unwrap();
    memory.take_requests();
    assert_eq!(unpushed(), UnpushedWork::default());
    assert_eq!(preview(), PushPreview::default());
    note(&session, "B", "second");
    note(&session, "C", "third");
    let work = unpushed();
    assert_eq!(work.operations, 2);
    assert_eq!(work.since, Some(act("then").now));
    let preview = preview();
    assert_eq!((preview.operations, preview.secrets), (2, None));
    assert!(preview.bytes > 100);
    let shared = store.shared_sessions(&access).unwrap();
    let names: Vec<_> = shared.iter().map(|one| one.summary().unwrap().info.name).collect();
    assert_eq!(names, ["s"]);
    assert_eq!(memory.take_requests().total(), 0);
    // Another machine sees what a pull would bring, and nothing is written.
    let second = Store::in_memory().unwrap();
    store.push(&act("push"), &remote, &session).unwrap();
    let handle = access.handle(&session.summary().unwrap().info.id).unwrap();
    let there = remote.session(&handle).unwrap().unwrap();
    assert_eq!((there.handle, there.version), (remote.handle(&there.info.id).unwrap(), 2));
    let opened = Remote::open_with(Arc::clone(&depot), &access).unwrap();
    let brings = second.preview_pull(&opened, &handle).unwrap();
    assert_eq!((brings.version, brings.operations), (2, 3));
    assert!(second.every_session().unwrap().is_empty());
    second.pull(&act("pull"), &opened, &handle, None).unwrap();
    let brings = second.preview_pull(&opened, &handle).unwrap();
    assert_eq!((brings.version, brings.operations, brings.bytes), (2, 0, 0));
}

/// Regression: a store without a folder forgot what it had pushed.
#[test]
fn a_store_in_memory_knows_what_it_has_not_pushed() {
    let (memory, _, first) = shared();
    let access = access_of(&first.remote);
    memory.take_requests();
    let unpushed = || first.store.unpushed(&access, &first.session()).unwrap();
    assert_eq!(unpushed(), UnpushedWork::default());
    note(&first.session(), "B", "second");
    assert_eq!(unpushed().operations, 1);
    assert_eq!(first.store.preview_push(&access, &first.session()).unwrap().operations, 1);
    let shared = first.store.shared_sessions(&access).unwrap();
    let names: Vec<_> = shared.iter().map(|one| one.summary().unwrap().info.name).collect();
    assert_eq!(names, ["s"]);
    assert_eq!(memory.take_requests().total(), 0);
}

#[test]
fn a_remote_that_was_replaced_or_emptied_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let depot: Arc<dyn Depot> = Arc::new(FolderDepot::open(folder.path()).unwrap());
    let access = RemoteAccess::from(RemoteKeyFile::generate().unwrap());
    let removed = Remote::open_with(Arc::clone(&depot), &access).unwrap_err();
    assert!(removed.to_string().contains("the remote is gone"), "{removed}");
    Remote::create(Arc::clone(&depot), &[3; 32]).unwrap();
    let other = Remote::open_with(Arc::clone(&depot), &access).unwrap_err();
    assert!(other.to_string().contains("is another one now"), "{other}");
    assert_eq!([removed.kind(), other.kind()], [ErrorKind::Forged; 2]);
}

#[test]
fn a_secret_that_is_not_pushed_yet_stops_the_push() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    let key = RemoteKeyFile::generate().unwrap();
    let remote = Remote::create_with(Arc::clone(&depot), &key).unwrap();
    let access = RemoteAccess::from(key);
    // It was written without the rules of redaction.
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&session, "A", &format!("the token is {token}"));
    drop((session, store));
    let store = Store::open(&path, judged()).unwrap();
    let session = store.session("s").unwrap();
    memory.take_requests();
    let refused = store.push(&act("push"), &remote, &session).unwrap_err();
    assert!(matches!(refused, Error::UnpushedSecrets { .. }), "{refused}");
    assert!(refused.to_string().contains("holds 1 secret ("), "{refused}");
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let requests = memory.take_requests();
    assert_eq!((requests.put_new, requests.swap), (0, 0));
    assert!(store.preview_push(&access, &session).unwrap().secrets.is_some());
    let remote = remote.allowing_secrets();
    store.push(&act("push"), &remote, &session).unwrap();
    // What is on the remote does not stop a push of what is new.
    let remote = Remote::open_with(depot, &access).unwrap();
    note(&session, "B", "more");
    assert_eq!(store.push(&act("push"), &remote, &session).unwrap().operations, 1);
}
