//! A grant opens one session of a remote, and nothing else of it.

use super::{Machine, SECRET, act, note, overwrite, read, session_contents, shared};
use forge_store::error::RemoteFormatError;
use forge_store::format::remote::{RemoteKeys, RemoteRef, SessionPlace, open_pack, pack_in};
use forge_store::model::{RefLink, RemoteId, SessionHandle};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{
    Depot, KnownRemote, MemoryDepot, Remote, RemoteAccess, RemoteGrant, RewriteReason,
};
use forge_store::store::{NewSession, Options, Store};
use forge_store::{Error, ErrorKind};
use std::sync::Arc;

/// A remote with the sessions `s` and `other`, whose pack is a separate object, and the grant of
/// `s`.
fn granted() -> (MemoryDepot, Arc<dyn Depot>, Machine, RemoteGrant) {
    let (memory, depot, first) = shared();
    let other = first.store.create_session(&act("begin"), NewSession::named("other")).unwrap();
    let mut text = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut text);
    note(&other, "L", &format!("{text:?}"));
    first.store.push(&act("push"), &first.remote, &other).unwrap();
    let handle = first.remote.handle(&first.session().summary().unwrap().info.id).unwrap();
    let grant = first.store.grant(&first.remote, &handle).unwrap();
    (memory, depot, first, grant)
}

/// A machine that has nothing but a grant.
pub(super) fn container(depot: &Arc<dyn Depot>, grant: &RemoteGrant) -> Machine {
    let access = RemoteAccess::from(RemoteGrant::decode(&grant.encode()).unwrap());
    let remote = Remote::open_with(Arc::clone(depot), &access).unwrap();
    Machine { store: Store::in_memory().unwrap(), remote }
}

#[test]
fn a_grant_is_enough_to_pull_and_push_its_session() {
    let (_, depot, first, grant) = granted();
    let second = container(&depot, &grant);
    assert_eq!(second.pull().unwrap().operations, 1);
    note(&second.session(), "B", "from the container");
    assert_eq!(second.push().unwrap().version, 2);
    // Both sides write, and are joined.
    note(&second.session(), "C", "from the container too");
    first.push().unwrap();
    note(&first.session(), "D", "from here");
    assert_eq!(first.push().unwrap().version, 3);
    assert_eq!(second.push().unwrap().version, 4);
    let handle = first.remote.handle(&first.session().summary().unwrap().info.id).unwrap();
    first.store.pull(&act("pull"), &first.remote, &handle, None).unwrap();
    let third = container(&depot, &grant);
    third.pull().unwrap();
    assert_eq!(session_contents(&third.store), session_contents(&second.store));
    let claims = |machine: &Machine| machine.store.session("s").unwrap().summary().unwrap().claims;
    assert_eq!((claims(&first), claims(&second)), (4, 4));
}

/// Regression: a container cannot read notices of purges, but its push recorded that it had
/// searched for what they purge.
#[test]
fn the_pushes_of_a_container_are_searched_for_purged_secrets() {
    const WORD: &str = "correct horse battery staple";
    let (_, depot, first, grant) = granted();
    let handle = first.remote.handle(&first.session().summary().unwrap().info.id).unwrap();
    let pull = |machine: &Machine| {
        machine.store.pull(&act("pull"), &machine.remote, &handle, None).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let owner = Machine { store, remote: Remote::open(Arc::clone(&depot), &SECRET).unwrap() };
    pull(&owner);
    note(&owner.session(), "B", WORD);
    owner.push().unwrap();
    let cell = container(&depot, &grant);
    cell.pull().unwrap();
    note(&cell.session(), "C", WORD);
    let known = KnownSecrets::new([WORD]).unwrap();
    owner.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    owner.push().unwrap();
    cell.push().unwrap();
    pull(&owner);
    // What was just pulled is on the remote too, so its purge rewrites the remote.
    assert_eq!(owner.push().unwrap().rewritten, Some(RewriteReason::Purged));
    note(&owner.session(), "D", "later");
    owner.push().unwrap();
    let new = Machine::new(&depot);
    pull(&new);
    assert!(!session_contents(&new.store).contains(WORD));
    pull(&first);
    for machine in [&owner, &first] {
        assert_eq!(machine.session().summary().unwrap().claims, 4);
        assert!(
            !session_contents(&machine.store).contains(WORD),
            "{}",
            session_contents(&machine.store)
        );
    }
}

#[test]
fn a_grant_opens_no_other_session_and_not_the_whole_remote() {
    let (memory, depot, first, grant) = granted();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let second = Machine { store, ..container(&depot, &grant) };
    let other = first.store.session("other").unwrap().summary().unwrap().info;
    let there = first.remote.handle(&other.id).unwrap();
    let refused = |error: Error| {
        assert!(matches!(error, Error::NotGranted), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unkeyed);
    };
    refused(second.remote.handle(&other.id).unwrap_err());
    refused(second.remote.session(&there).unwrap_err());
    refused(second.store.pull(&act("pull"), &second.remote, &there, None).unwrap_err());
    refused(second.store.preview_pull(&second.remote, &there).unwrap_err());
    let own = second.store.create_session(&act("begin"), NewSession::named("own")).unwrap();
    note(&own, "A", "mine");
    let access = RemoteAccess::from(grant.clone());
    memory.take_requests();
    refused(second.store.push(&act("push"), &second.remote, &own).unwrap_err());
    refused(second.store.preview_push(&access, &own).unwrap_err());
    refused(second.store.unpushed(&access, &own).unwrap_err());
    refused(second.remote.tidy().unwrap_err());
    refused(second.store.grant(&second.remote, &grant.handle).unwrap_err());
    assert_eq!(memory.take_requests().total(), 0);
    let listed = second.remote.sessions().unwrap();
    assert_eq!(listed.iter().map(|one| &*one.info.name).collect::<Vec<_>>(), ["s"]);
    // No key in the grant opens data of the other session.
    let place = SessionPlace { remote: grant.remote, handle: there };
    let name = |prefix: &str, handle: &SessionHandle| {
        let all = memory.list(prefix, "").unwrap().into_iter().map(|entry| entry.name);
        let [name] = all
            .filter(|name| name.contains(&handle.to_string()))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        name
    };
    let sealed = read(&memory, &name("refs/", &there));
    assert!(RemoteRef::open(&place, &grant.key, &sealed).is_err());
    let opened =
        RemoteRef::open(&place, &RemoteKeys::new(&SECRET).session(&there), &sealed).unwrap();
    let pack = name("packs/", &there);
    let (_, id) = pack_in(&pack).unwrap();
    let own = RemoteRef::open(
        &SessionPlace { remote: grant.remote, handle: grant.handle },
        &grant.key,
        &read(&memory, &name("refs/", &grant.handle)),
    );
    for known in &own.unwrap().content.packs {
        assert!(open_pack(&place, &id, &known.key, &read(&memory, &pack)).is_err());
    }
    assert!(open_pack(&place, &id, &opened.content.packs[0].key, &read(&memory, &pack)).is_ok());
    // The secret and the keys of the whole remote are not in the grant.
    let text = grant.encode();
    let keys = RemoteKeys::new(&SECRET);
    for secret in [&SECRET, keys.notices(), keys.session(&there).as_bytes()] {
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!text.contains(&digits), "{text}");
    }
}

#[test]
fn a_wrong_grant_is_refused_with_the_reason() {
    let (_, depot, _, grant) = granted();
    let open = |access: RemoteAccess| Remote::open_with(Arc::clone(&depot), &access);
    let other = RemoteGrant { remote: RemoteId::from_bytes([9; 16]), ..grant.clone() };
    let error = open(other.into()).unwrap_err();
    assert!(error.to_string().contains("is one of another remote"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unkeyed);
    let key = RemoteKeys::new(&[8; 32]).session(&grant.handle);
    let remote = open(RemoteGrant { key, ..grant }.into()).unwrap();
    for error in [
        remote.sessions().unwrap_err(),
        remote.session(&grant.handle).unwrap_err(),
        Store::in_memory().unwrap().pull(&act("pull"), &remote, &grant.handle, None).unwrap_err(),
    ] {
        assert!(matches!(error, Error::WrongGrant { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unkeyed);
    }
    let cut = RemoteGrant::decode(&grant.encode()[..200]).unwrap_err();
    assert!(matches!(cut, RemoteFormatError::Damaged { what: "grant", .. }), "{cut}");
    let empty: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    let missing = Remote::open_with(empty, &grant.clone().into()).unwrap_err();
    assert!(matches!(missing, Error::OtherRemote { .. }), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().keyring(folder.path().join("keyring"));
    let store = Store::create(&folder.path().join("store"), options).unwrap();
    let (name, url) = ("origin".to_owned(), "file:///x".to_owned());
    let kept = store.keep_remote(&KnownRemote { name, url, access: grant.into() }).unwrap_err();
    assert_eq!(kept.kind(), ErrorKind::Invalid);
}

#[test]
fn a_grant_refuses_an_older_state_of_the_session_than_it_has_seen() {
    let (memory, depot, first, older) = granted();
    let name = memory.list("refs/", "").unwrap().into_iter().map(|entry| entry.name);
    let name = name.into_iter().find(|name| name.contains(&older.handle.to_string())).unwrap();
    let old = read(&memory, &name);
    note(&first.session(), "B", "second");
    first.push().unwrap();
    let grant = first.store.grant(&first.remote, &older.handle).unwrap();
    assert_eq!((older.seen.version, grant.seen.version), (1, 2));
    overwrite(&memory, &name, &old);
    let refused = |grant: &RemoteGrant, reason: &str| {
        let error = container(&depot, grant).pull().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forged);
        assert!(error.to_string().contains(reason), "{error}");
    };
    refused(&grant, "has an earlier version");
    container(&depot, &older).pull().unwrap();
    let mut other = older.clone();
    other.seen.link = RefLink::from_bytes([1; 32]);
    refused(&other, "has another history");
    // No grant is made from an older state either.
    let error = first.store.grant(&first.remote, &older.handle).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forged);
    memory.remove(&name).unwrap();
    let second = container(&depot, &grant);
    let missing = second.store.pull(&act("pull"), &second.remote, &grant.handle, None).unwrap_err();
    assert!(missing.to_string().contains("has no data of it any more"), "{missing}");
}
