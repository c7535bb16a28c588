//! Stores that share sessions through a remote.

mod begun;
mod fault;
mod grant;
mod join;
mod kill;
mod known;
mod law;
mod notice;
mod purge;
mod rotate;
mod simulation;
mod two_remotes;
mod witness;

use crate::bundle::law::{same, session_contents, shared_contents, step, time};
use crate::bundle::{act, note};
use crate::fault::copy;
use forge_store::error::RemoteFormatError;
use forge_store::model::{Kind, Timestamp};
use forge_store::redact::{KnownSecrets, Redactor};
use forge_store::store::remote::{
    Depot, DepotRead, DepotRequests, DepotWrite, FolderDepot, MemoryDepot, PullReport, PushReport,
    Remote, RemoteAccess, RemoteKeyFile, RemoteSession, SeenRefs,
};
use forge_store::store::{NewSession, Options, Session, Store, VerifyDepth, VerifyOutcome};
use forge_store::{Error, ErrorKind};
use purge::Place;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SECRET: [u8; 32] = [7; 32];

/// The options of a store that redacts secrets, so that what it pushes is judged.
pub(crate) fn judged() -> Options {
    Options::default().redaction(Arc::new(Redactor::new()))
}

/// The access to a remote with [`SECRET`], of which nothing was seen.
fn access_of(remote: &Remote) -> RemoteAccess {
    let (remote, seen) = (remote.id(), SeenRefs::new());
    RemoteKeyFile { remote, secret: SECRET, url: None, seen, rotated: None }.into()
}

/// The ids of the revisions of a session that can be read, by number.
fn revisions(session: &Session) -> BTreeMap<u64, String> {
    let last = session.summary().unwrap().last_sequence;
    let moments = (1..=last).filter_map(|number| session.at_sequence(number).ok());
    let known = moments.filter_map(|moment| session.revision_of(&moment).unwrap());
    known.map(|revision| (revision.sequence, revision.id.to_string())).collect()
}

fn command(session: &Session, id: &str) {
    session.write(&act("run")).fact(crate::bundle::increment::command(id)).commit().unwrap();
}

/// A store with the remote as it sees it.
pub(crate) struct Machine {
    pub(crate) store: Store,
    pub(crate) remote: Remote,
}

impl Machine {
    pub(crate) fn new(depot: &Arc<dyn Depot>) -> Self {
        let remote = Remote::open(Arc::clone(depot), &SECRET).unwrap();
        Self { store: Store::in_memory_with(judged()).unwrap(), remote }
    }

    pub(crate) fn session(&self) -> Session {
        self.store.session("s").unwrap()
    }

    pub(crate) fn push(&self) -> Result<PushReport, Error> {
        self.store.push(&act("push"), &self.remote, &self.session())
    }

    pub(crate) fn pull(&self) -> Result<PullReport, Error> {
        let all = self.remote.sessions()?;
        let [only] = all.as_slice() else { panic!("{all:?}") };
        self.store.pull(&act("pull"), &self.remote, &only.handle, None)
    }
}

/// Makes a remote in memory, with a first machine that has pushed a session `s`.
fn shared() -> (MemoryDepot, Arc<dyn Depot>, Machine) {
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let first = Machine::new(&depot);
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&first.session(), "A", "first");
    first.push().unwrap();
    (memory, depot, first)
}

#[test]
fn a_session_is_continued_on_another_machine_and_pulled_back() {
    let (_, depot, first) = shared();
    let second = Machine::new(&depot);
    let report = second.pull().unwrap();
    assert_eq!((report.session.as_str(), report.version, report.operations), ("s", 1, 1));
    same(&shared_contents(&second.store), &shared_contents(&first.store), "pulled");
    for (round, machine) in [(1, &second), (2, &first), (3, &second)] {
        machine.pull().unwrap();
        note(&machine.session(), &format!("N{round}"), "more");
        command(&machine.session(), &format!("c{round}"));
        let report = machine.push().unwrap();
        assert_eq!((report.version, report.operations, report.pulled), (round + 1, 2, 0));
    }
    first.pull().unwrap();
    same(&shared_contents(&second.store), &shared_contents(&first.store), "at the end");
    let listed = first.remote.sessions().unwrap();
    assert_eq!((listed.len(), listed[0].version, listed[0].summary.claims), (1, 4, 4));
    assert_eq!(listed[0].info.name, "s");
}

#[test]
fn the_session_pushed_last_is_read_first() {
    let (memory, depot, first) = shared();
    for (minute, name) in [(1, "t"), (2, "u"), (3, "t")] {
        memory.set_now(time(minute));
        if first.store.session(name).is_err() {
            first.store.create_session(&act("begin"), NewSession::named(name)).unwrap();
        }
        let session = first.store.session(name).unwrap();
        note(&session, &format!("{name}{minute}"), "more");
        first.store.push(&act("push"), &first.remote, &session).unwrap();
    }
    let second = Machine::new(&depot);
    let found = |limit, names: [&str; 2]| {
        memory.take_requests();
        let accepts = |one: &RemoteSession| names.contains(&one.info.name.as_str());
        let found = second.remote.latest_session(limit, accepts).unwrap();
        (found.map(|one| one.info.name), memory.take_requests().get)
    };
    assert_eq!(found(9, ["u", "t"]), (Some("t".to_owned()), 1));
    assert_eq!(found(9, ["u", "s"]), (Some("u".to_owned()), 2));
    assert_eq!(found(2, ["s", "x"]), (None, 2));
    // A session whose ref cannot be read is skipped.
    let latest = memory.list("refs/", "").unwrap().into_iter().max_by_key(|entry| entry.changed);
    overwrite(&memory, &latest.unwrap().name, b"damaged");
    assert_eq!(found(9, ["t", "s"]).0, Some("s".to_owned()));
}

#[test]
fn a_push_and_a_pull_take_few_requests() {
    let (memory, depot, first) = shared();
    let second = Machine::new(&depot);
    let handle = second.remote.sessions().unwrap()[0].handle;
    let pull = || second.store.pull(&act("pull"), &second.remote, &handle, None).unwrap();
    memory.take_requests();
    // The pack is small enough to be in the ref. One request of each push and pull looks for
    // notices of purges.
    pull();
    assert_eq!(memory.take_requests(), DepotRequests { get: 2, ..DepotRequests::default() });
    assert_eq!(pull().operations, 0);
    assert_eq!(memory.take_requests(), DepotRequests { get: 2, ..DepotRequests::default() });
    note(&first.session(), "B", "more");
    assert_eq!(first.push().unwrap().operations, 1);
    let expected = DepotRequests { get: 1, swap: 1, ..DepotRequests::default() };
    assert_eq!(memory.take_requests(), expected);
    // A push of nothing checks that the remote still has the session.
    assert_eq!(first.push().unwrap().operations, 0);
    assert_eq!(memory.take_requests(), DepotRequests { get: 2, ..DepotRequests::default() });
    // A large pack is a separate object, stored before the ref names it.
    for place in 0..40_u8 {
        let mut text = vec![0; 900];
        blake3::Hasher::new().update(&[place]).finalize_xof().fill(&mut text);
        note(&first.session(), &format!("L{place}"), &format!("{text:?}"));
    }
    assert_eq!(first.push().unwrap().operations, 40);
    let expected = DepotRequests { get: 1, put_new: 1, swap: 1, ..DepotRequests::default() };
    assert_eq!(memory.take_requests(), expected);
    assert_eq!(pull().operations, 41);
    assert_eq!(memory.take_requests(), DepotRequests { get: 3, ..DepotRequests::default() });
    same(&shared_contents(&second.store), &shared_contents(&first.store), "at the end");
}

#[test]
fn facts_of_both_sides_are_kept_after_concurrent_pushes() {
    let (_, depot, first) = shared();
    let second = Machine::new(&depot);
    second.pull().unwrap();
    command(&second.session(), "here");
    note(&first.session(), "B", "there");
    command(&first.session(), "there");
    first.push().unwrap();
    let report = second.push().unwrap();
    assert_eq!((report.pulled, report.version), (2, 3));
    first.pull().unwrap();
    let facts = |machine: &Machine| {
        let session = machine.session();
        let state = session.state(&session.head().unwrap()).unwrap();
        state.facts_of(Kind::Command).unwrap().len()
    };
    assert_eq!((facts(&first), facts(&second)), (2, 2));
}

#[test]
fn a_store_without_its_track_of_a_remote_can_push_and_pull() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("remote");
    std::fs::create_dir(&there).unwrap();
    let depot: Arc<dyn Depot> = Arc::new(FolderDepot::open(&there).unwrap());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let first = Machine { store, remote: Remote::open(Arc::clone(&depot), &SECRET).unwrap() };
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&first.session(), "A", "first");
    first.push().unwrap();
    note(&first.session(), "B", "second");
    first.push().unwrap();
    note(&first.session(), "C", "not pushed");
    std::fs::remove_dir_all(path.join("remotes")).unwrap();
    let report = first.push().unwrap();
    assert_eq!((report.version, report.operations, report.pulled), (3, 1, 0));
    // The same in a second process, which finds what the first one noted.
    let again = Store::open(&path, Options::default()).unwrap();
    let again = Machine { store: again, remote: first.remote };
    assert_eq!(again.push().unwrap().operations, 0);
    let second = Machine::new(&depot);
    second.pull().unwrap();
    same(&shared_contents(&second.store), &shared_contents(&again.store), "pulled");
    let verified = Store::verify(&path, VerifyDepth::ReadData, time(2), None).unwrap();
    assert_eq!(verified.outcome, VerifyOutcome::Clean);
}

#[test]
fn a_store_restored_from_a_backup_can_pull() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("store"), folder.path().join("backup"));
    let (_, depot, first) = shared();
    let store = Store::create(&path, Options::default()).unwrap();
    let second = Machine { store, remote: Remote::open(Arc::clone(&depot), &SECRET).unwrap() };
    second.pull().unwrap();
    second.store.maintain(0).unwrap();
    Store::backup(&path, &backup, time(3), None).unwrap();
    note(&second.session(), "B", "after the backup");
    second.push().unwrap();
    // What the store knew of the remote belongs to a later history than that of the backup.
    copy(&path.join("remotes"), &backup.join("remotes"));
    let store = Store::open(&backup, Options::default()).unwrap();
    let restored = Machine { store, remote: Remote::open(depot, &SECRET).unwrap() };
    let pulled = restored.pull().unwrap();
    assert_eq!(pulled.operations, 1);
    first.pull().unwrap();
    same(&shared_contents(&restored.store), &shared_contents(&first.store), "restored");
}

/// Regression: a session that a join has replaced keeps its id, and a repair gave it all revisions
/// of the joined session. So it lost everything in that session, also of a store without damage.
#[test]
fn a_store_with_a_joined_session_is_repaired_without_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let (path, repaired) = (folder.path().join("store"), folder.path().join("repaired"));
    let (_, depot, first) = shared();
    let store = Store::create(&path, Options::default()).unwrap();
    let second = Machine { store, remote: Remote::open(Arc::clone(&depot), &SECRET).unwrap() };
    second.pull().unwrap();
    note(&second.session(), "B", "here");
    note(&first.session(), "C", "there");
    first.push().unwrap();
    second.pull().unwrap();
    second.store.maintain(0).unwrap();
    let done = Store::repair(&path, &repaired, time(3), None).unwrap();
    assert_eq!(done.lost, [""; 0]);
    let verified = Store::verify(&repaired, VerifyDepth::ReadData, time(4), None).unwrap();
    assert_eq!(verified.outcome, VerifyOutcome::Clean, "{:?}", verified.findings);
    let store = Store::open(&repaired, Options::default()).unwrap();
    same(&shared_contents(&store), &shared_contents(&second.store), "repaired");
    let again = Machine { store, remote: Remote::open(depot, &SECRET).unwrap() };
    assert_eq!(again.push().unwrap().operations, 1);
}

#[test]
fn many_pushes_leave_few_packs_and_garbage_is_removed_after_a_day() {
    let (memory, depot, first) = shared();
    for number in 0..150 {
        note(&first.session(), &format!("N{number}"), &"text ".repeat(number));
        first.push().unwrap();
    }
    let packs = |depot: &MemoryDepot| depot.list("packs/", "").unwrap().len();
    let before = packs(&memory);
    let second = Machine::new(&depot);
    let all = second.remote.sessions().unwrap();
    let preview = second.store.preview_pull(&second.remote, &all[0].handle).unwrap();
    assert_eq!(preview.operations, 151, "packs that were combined count all operations");
    memory.take_requests();
    second.pull().unwrap();
    let read = memory.take_requests().get;
    assert!(read < 40, "{read} requests for 151 pushes");
    same(&shared_contents(&second.store), &shared_contents(&first.store), "pulled");
    assert_eq!(first.remote.tidy().unwrap(), 0);
    memory.set_now(Timestamp::from_micros(25 * 3_600_000_000));
    let removed = first.remote.tidy().unwrap();
    assert!(
        removed > 0 && packs(&memory) as u64 == before as u64 - removed,
        "{removed} of {before}"
    );
    let third = Machine::new(&depot);
    third.pull().unwrap();
    same(
        &shared_contents(&third.store),
        &shared_contents(&first.store),
        "pulled after the garbage was removed",
    );
}

#[test]
fn a_purge_leaves_no_pack_that_has_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, depot, _) = shared();
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let first = Machine { store, remote: Remote::open(Arc::clone(&depot), &SECRET).unwrap() };
    first.pull().unwrap();
    let secret = "correct horse battery staple";
    note(&first.session(), "B", &format!("{secret} {}", "long ".repeat(20_000)));
    first.push().unwrap();
    note(&first.session(), "C", "later");
    first.push().unwrap();
    let known = KnownSecrets::new([secret]).unwrap();
    first.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    first.push().unwrap();
    assert_eq!(memory.list("packs/", "").unwrap().len(), 0);
    let second = Machine::new(&depot);
    second.pull().unwrap();
    let contents = session_contents(&second.store);
    assert!(contents.contains("later") && !contents.contains(secret), "{contents}");
}

#[test]
fn a_remote_opens_only_with_its_key_and_is_made_once() {
    let (_, depot, _) = shared();
    let again = Remote::create(Arc::clone(&depot), &SECRET).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    let wrong = Remote::open(Arc::clone(&depot), &[8; 32]).unwrap_err();
    assert!(matches!(wrong, Error::RemoteFormat(RemoteFormatError::WrongKey)), "{wrong}");
    let empty: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    assert_eq!(Remote::open(empty, &SECRET).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Overwrites an object, whatever is there.
fn overwrite(depot: &MemoryDepot, name: &str, bytes: &[u8]) {
    depot.remove(name).unwrap();
    assert!(matches!(depot.put_new(name, bytes).unwrap(), DepotWrite::Done(_)));
}

fn read(depot: &MemoryDepot, name: &str) -> Vec<u8> {
    match depot.get(name, None).unwrap() {
        DepotRead::Whole { bytes, .. } => bytes,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_remote_that_is_set_back_replaced_or_damaged_is_refused() {
    let (memory, depot, first) = shared();
    let second = Machine::new(&depot);
    second.pull().unwrap();
    let name = memory.list("refs/", "").unwrap()[0].name.clone();
    let old = read(&memory, &name);
    note(&first.session(), "B", &format!("{:?}", vec![3_u8; 60_000]));
    note(&first.session(), "C", "more");
    first.push().unwrap();
    second.pull().unwrap();
    let newest = read(&memory, &name);
    let before = session_contents(&second.store);
    overwrite(&memory, &name, &old);
    for refused in [second.pull().map(drop), {
        note(&second.session(), "D", "mine");
        second.push().map(drop)
    }] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forged);
        assert!(error.to_string().contains("has an earlier version"), "{error}");
    }
    memory.remove(&name).unwrap();
    overwrite(&memory, &name, &newest);
    // A new machine notices any changed byte of the ref.
    for place in (0..newest.len()).step_by(97) {
        let mut wrong = newest.clone();
        wrong[place] ^= 1;
        overwrite(&memory, &name, &wrong);
        let third = Machine::new(&depot);
        assert!(third.remote.sessions().unwrap().is_empty());
        let skipped = third.remote.take_unopened();
        let kinds: Vec<ErrorKind> = skipped.iter().map(Error::kind).collect();
        assert!(matches!(*kinds, [ErrorKind::Corrupt | ErrorKind::Unsupported]), "{skipped:?}");
        assert!(third.store.every_session().unwrap().is_empty());
    }
    assert_ne!(session_contents(&second.store), before);
}

pub(crate) fn step_of(machine: &Machine, minute: u64, what: (u8, u8)) {
    step(&machine.store, &machine.session(), minute, what, "");
}

/// Checks that a new machine gets all claims after many pushes, which write earlier packs again.
fn check_clone_after_many_pushes(depot: &Arc<dyn Depot>, machine: &Machine, context: &str) {
    for number in 0..20 {
        note(&machine.session(), &format!("M{number}"), "more");
        machine.push().unwrap();
    }
    let new = Machine::new(depot);
    new.pull().unwrap_or_else(|error| panic!("{context}: {error}"));
    same(&shared_contents(&new.store), &shared_contents(&machine.store), context);
}

/// Makes a remote in memory, and a machine with a folder that has pushed a session `s`.
fn shared_from_folder() -> (Arc<dyn Depot>, Place) {
    let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let place = Place::new(&depot);
    place.machine.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&place.machine.session(), "A", "first");
    place.machine.push().unwrap();
    (depot, place)
}

/// Regression: a store that had pulled packs, or that did not know its own push, took the end of the
/// session for their beginning. When they were written again as one, their content was left out.
#[test]
fn packs_are_written_again_as_a_whole_by_a_store_that_did_not_push_them() {
    let (depot, place) = shared_from_folder();
    let lost = &place.machine;
    note(&lost.session(), "B", "second");
    lost.push().unwrap();
    std::fs::remove_dir_all(place.path().join("remotes")).unwrap();
    check_clone_after_many_pushes(&depot, lost, "the track was lost");
    let second = Machine::new(&depot);
    second.pull().unwrap();
    note(&lost.session(), "C", "there");
    lost.push().unwrap();
    note(&second.session(), "D", "here");
    second.push().unwrap();
    check_clone_after_many_pushes(&depot, &second, "after a join");
}

#[test]
fn packs_are_written_again_as_a_whole_after_a_push_whose_answer_was_lost() {
    let (depot, place) = shared_from_folder();
    let first = &place.machine;
    note(&first.session(), "B", "second");
    let (tracks, before) = (place.path().join("remotes"), place.folder.path().join("before"));
    copy(&tracks, &before);
    first.push().unwrap();
    // As if the answer had been lost, so that the push was not noted.
    std::fs::remove_dir_all(&tracks).unwrap();
    copy(&before, &tracks);
    check_clone_after_many_pushes(&depot, first, "the push was not known");
}
