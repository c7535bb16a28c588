//! Purges that reach other stores through a remote.

use super::fault::{Fault, FaultyDepot};
use super::{Machine, SECRET, access_of, command, judged};
use crate::bundle::law::{same, session_contents, time};
use crate::bundle::{act, note};
use forge_store::format::remote::{PurgeNotice, RemoteKeys, notice_name, pack_in, ref_name};
use forge_store::model::{CloneId, NoticeSalt, Value};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{
    Depot, DepotWrite, FinishedPurges, MemoryDepot, PurgeActivity, Remote, RemoteAccess,
    RewriteReason,
};
use forge_store::store::{NewSession, PurgeReport, Session, Store, VerifyDepth, VerifyOutcome};
use forge_store::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// What is purged. No rule finds it.
pub(super) const WORD: &str = "correct \"horse\" battery staple";

/// A machine whose store is in a folder.
pub(super) struct Place {
    pub(super) folder: TempDir,
    pub(super) machine: Machine,
}

impl Place {
    pub(super) fn new(depot: &Arc<dyn Depot>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store"), judged()).unwrap();
        let remote = Remote::open(Arc::clone(depot), &SECRET).unwrap();
        Self { folder, machine: Machine { store, remote } }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Returns the place as another process sees it.
    pub(super) fn opened_again(self, depot: &Arc<dyn Depot>) -> Self {
        let Self { folder, machine } = self;
        drop(machine);
        let store = Store::open(&folder.path().join("store"), judged()).unwrap();
        let remote = Remote::open(Arc::clone(depot), &SECRET).unwrap();
        Self { folder, machine: Machine { store, remote } }
    }

    pub(super) fn purge(&self) -> Result<PurgeReport, Error> {
        let (store, known) = (&self.machine.store, KnownSecrets::new([WORD]).unwrap());
        store.purge(&act("purge"), &known, Some("it leaked"), &|_, _| None, &|_| ())
    }

    pub(super) fn finish_purges(&self) -> FinishedPurges {
        finish_purges(&self.machine)
    }

    pub(super) fn key(&self) -> RemoteAccess {
        access_of(&self.machine.remote)
    }

    /// Checks that nothing of the store has the secret, and that the store is whole.
    pub(super) fn check(&self, context: &str) {
        let (store, known) = (&self.machine.store, KnownSecrets::new([WORD]).unwrap());
        let found = store.purge_preview(&act("preview"), &known, &|_, _| None, &|_| ()).unwrap();
        assert_eq!((&*found.places, &*found.searched.found), (&[][..], &[][..]), "{context}");
        self.check_whole(context);
    }

    /// Checks that the store is whole.
    pub(super) fn check_whole(&self, context: &str) {
        let verified = Store::verify(&self.path(), VerifyDepth::ReadData, time(9), None).unwrap();
        let outcome = (verified.outcome, verified.findings);
        assert_eq!(outcome, (VerifyOutcome::Clean, vec![]), "{context}");
    }
}

pub(super) fn finish_purges(machine: &Machine) -> FinishedPurges {
    let (finished, done) = machine.store.finish_purges(&act("finish"), &machine.remote);
    done.unwrap();
    finished
}

/// A remote with a session `s` that has a secret, and two machines that have it.
pub(super) fn leaked() -> (MemoryDepot, Arc<dyn Depot>, [Place; 2]) {
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let [first, second] = [(); 2].map(|()| Place::new(&depot));
    first.machine.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&first.machine.session(), "A", "nothing");
    first.machine.push().unwrap();
    // More than fits into a ref.
    let mut long = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut long);
    note(&first.machine.session(), "B", &format!("{{\"key\":{WORD:?}}} {WORD} {long:?}"));
    first.machine.push().unwrap();
    second.machine.pull().unwrap();
    (memory, depot, [first, second])
}

/// Checks that no pack has the secret and that each is named by its ref. Returns what a new clone
/// has of the session `s`.
pub(super) fn cleaned(memory: &MemoryDepot, depot: &Arc<dyn Depot>, context: &str) -> String {
    let new = Place::new(depot);
    let Machine { store, remote } = &new.machine;
    for session in remote.sessions().unwrap() {
        store.pull(&act("pull"), remote, &session.handle, None).unwrap();
    }
    assert_eq!(remote.take_purge_activity(), PurgeActivity::default(), "{context}");
    new.check(context);
    // Packs that no ref names are orphans of pushes that failed, and were made after the purge.
    memory.set_now(time(1));
    remote.tidy().unwrap();
    for entry in memory.list("packs/", "").unwrap() {
        let (handle, _) = pack_in(&entry.name).unwrap();
        assert!(remote.session(&handle).unwrap().is_some(), "{context}: {}", entry.name);
    }
    session_contents(store)
}

/// Returns what a machine has of the session `s`, without its operations, because each store has its
/// own operations of purges.
fn content(machine: &Machine) -> String {
    let contents = session_contents(&machine.store);
    contents.split("\noperations: ").next().unwrap().to_owned()
}

/// Regression: the mark of what was pushed is before the fact, so the secret after it seemed to be
/// unpushed.
#[test]
fn a_purge_of_a_secret_pulled_after_unpushed_facts_cleans_the_remote() {
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let [first, second] = [(); 2].map(|()| Place::new(&depot));
    first.machine.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&first.machine.session(), "A", "nothing");
    first.machine.push().unwrap();
    second.machine.pull().unwrap();
    command(&second.machine.session(), "not pushed");
    note(&first.machine.session(), "B", WORD);
    first.machine.push().unwrap();
    second.machine.pull().unwrap();
    second.purge().unwrap();
    assert_eq!(second.machine.push().unwrap().rewritten, Some(RewriteReason::Purged));
    cleaned(&memory, &depot, "after the push");
}

#[test]
fn a_purge_reaches_a_store_that_had_pulled() {
    let (memory, depot, [first, second]) = leaked();
    assert_eq!(memory.list("packs/", "").unwrap().len(), 1);
    let purged = first.purge().unwrap();
    assert!(purged.is_done() && !purged.places.is_empty(), "{purged:?}");
    assert_eq!(first.machine.store.pending_purges(&first.key()).unwrap(), 1);
    let pushed = first.machine.push().unwrap();
    assert_eq!((pushed.operations, pushed.rewritten), (0, Some(RewriteReason::Purged)));
    assert_eq!(first.machine.store.pending_purges(&first.key()).unwrap(), 0);
    let activity = first.machine.remote.take_purge_activity();
    assert_eq!((activity.written, activity.replaced, activity.left), (1, vec![], vec![]));
    assert_eq!(first.machine.push().unwrap().rewritten, None);
    cleaned(&memory, &depot, "pushed");

    let pulled = second.machine.pull().unwrap();
    assert_eq!((pulled.operations, pulled.version), (0, 3));
    let replaced = second.machine.remote.take_purge_activity().replaced;
    assert!(!replaced.is_empty() && replaced.iter().all(|place| place.session.is_some()));
    second.check("pulled");
    let log = format!("{:?}", second.machine.session().operations(1).unwrap());
    assert!(log.contains("it leaked"), "{log}");
    assert_eq!(second.finish_purges(), FinishedPurges::default());
    note(&second.machine.session(), "C", "more");
    assert_eq!(second.machine.push().unwrap().rewritten, None);
    first.machine.pull().unwrap();
    let expected = cleaned(&memory, &depot, "at the end");
    for place in [&first, &second] {
        let has = session_contents(&place.machine.store);
        assert_eq!(has.contains("more"), expected.contains("more"));
        place.check("at the end");
    }
}

/// Regression: a store without a folder forgot its remotes, so its purge wrote no notice.
#[test]
fn a_purge_in_a_store_in_memory_reaches_a_store_that_had_pulled() {
    let (memory, depot, [_, second]) = leaked();
    let third = Machine::new(&depot);
    third.pull().unwrap();
    let known = KnownSecrets::new([WORD]).unwrap();
    third.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    assert_eq!(third.store.pending_purges(&second.key()).unwrap(), 1);
    assert_eq!(third.push().unwrap().rewritten, Some(RewriteReason::Purged));
    assert_eq!(third.remote.take_purge_activity().written, 1);
    cleaned(&memory, &depot, "pushed");
    second.machine.pull().unwrap();
    second.check("pulled");
}

#[test]
fn a_stale_store_with_unpushed_work_does_not_bring_the_secret_back() {
    for others in [false, true] {
        let (memory, depot, [first, second]) = leaked();
        note(&second.machine.session(), "D", &format!("mine: {WORD}"));
        command(&second.machine.session(), "mine");
        first.purge().unwrap();
        first.machine.push().unwrap();
        if others {
            note(&first.machine.session(), "E", "theirs");
            first.machine.push().unwrap();
        }
        let pushed = second.machine.push().unwrap();
        assert_eq!(pushed.operations, 2, "{pushed:?}");
        assert!(!second.machine.remote.take_purge_activity().replaced.is_empty());
        second.check("pushed");
        assert!(cleaned(&memory, &depot, "pushed").contains("mine: purged"));
        first.machine.pull().unwrap();
        first.check("pulled");
        same(&content(&first.machine), &content(&second.machine), "at the end");
    }
}

#[test]
fn a_session_of_another_clone_is_rewritten_too() {
    let (memory, depot, [first, second]) = leaked();
    let Machine { store, remote } = &second.machine;
    let other = store.create_session(&act("begin"), NewSession::named("t")).unwrap();
    note(&other, "T", &format!("{WORD:?} again"));
    store.push(&act("push"), remote, &other).unwrap();
    let kept = store.create_session(&act("begin"), NewSession::named("u")).unwrap();
    note(&kept, "U", WORD);
    store.push(&act("push"), remote, &kept).unwrap();
    note(&kept, "V", "not pushed");
    first.purge().unwrap();
    first.finish_purges();
    let done = second.finish_purges();
    let names = (done.rewritten, done.unpushed);
    assert_eq!(names, (vec!["t".to_owned()], vec!["u".to_owned()]));
    assert_eq!(store.push(&act("push"), remote, &kept).unwrap().operations, 1);
    assert_eq!(second.finish_purges(), FinishedPurges::default());
    second.check("settled");
    cleaned(&memory, &depot, "settled");
}

#[test]
fn pushes_of_others_that_did_not_know_the_purge_are_purged_by_the_pull() {
    for with_secret in [false, true] {
        for own in [false, true] {
            let context = format!("with the secret: {with_secret}, own work: {own}");
            let (memory, depot, [first, second]) = leaked();
            let text = if with_secret { WORD } else { "nothing" };
            note(&second.machine.session(), "D", &format!("theirs: {text}"));
            second.machine.push().unwrap();
            if own {
                note(&first.machine.session(), "E", "mine");
            }
            first.purge().unwrap();
            let pushed = first.machine.push().unwrap();
            assert_eq!(pushed.rewritten, Some(RewriteReason::Purged), "{context}");
            assert_eq!((pushed.pulled, pushed.operations), (1, u64::from(own)), "{context}");
            first.check(&context);
            let there = cleaned(&memory, &depot, &context);
            assert!(there.contains("theirs"), "{context}");
            second.machine.pull().unwrap();
            second.check(&context);
            same(&content(&first.machine), &content(&second.machine), &context);
        }
    }
}

#[test]
fn a_secret_deep_in_a_long_text_is_removed_from_the_remote() {
    let (memory, depot, [first, _]) = leaked();
    let session = first.machine.session();
    let deep = act("run");
    let mut write = session.write(&deep);
    let text = write.text(&format!("{} {WORD} {}", "before ".repeat(900), "after ".repeat(900)));
    let value = Value::from([("command", "login".into()), ("stdout_preview", text)]);
    let fact = forge_store::model::Fact { value, ..crate::bundle::increment::command("deep") };
    write.fact(fact).commit().unwrap();
    first.machine.push().unwrap();
    first.purge().unwrap();
    assert_eq!(first.machine.push().unwrap().rewritten, Some(RewriteReason::Purged));
    cleaned(&memory, &depot, "pushed");
}

#[test]
fn a_purge_killed_at_any_request_is_finished_by_the_next_contact() {
    let mut failed = 0;
    for fault in [Fault::Refused, Fault::RequestLost, Fault::AnswerLost] {
        for before in 0..9 {
            let context = format!("{fault:?} after {before}");
            let (memory, depot, [first, second]) = leaked();
            first.purge().unwrap();
            let faulty: Arc<dyn Depot> = Arc::new(FaultyDepot::new(&memory, before + 1, fault));
            let flaky = Remote::open(faulty, &SECRET).unwrap();
            let (store, session) = (&first.machine.store, first.machine.session());
            failed += usize::from(store.push(&act("push"), &flaky, &session).is_err());
            failed += usize::from(!flaky.take_purge_activity().left.is_empty());
            let first = first.opened_again(&depot);
            first.finish_purges();
            assert_eq!(first.finish_purges(), FinishedPurges::default(), "{context}");
            assert_eq!(memory.list("purges/", "").unwrap().len(), 1, "{context}");
            assert_eq!(first.machine.push().unwrap().operations, 0, "{context}");
            cleaned(&memory, &depot, &context);
            let named = memory.list("packs/", "").unwrap().len();
            assert!(named <= 2, "{context}: {named}");
            second.machine.pull().unwrap();
            second.check(&context);
        }
    }
    assert!(failed > 8, "{failed}");
}

#[test]
fn an_old_pack_that_cannot_be_removed_is_named_until_it_is_removed() {
    let mut named = 0;
    for before in 7..10 {
        let (memory, depot, [first, _]) = leaked();
        let old = memory.list("packs/", "").unwrap()[0].name.clone();
        let is_there = || memory.list("packs/", "").unwrap().iter().any(|one| one.name == old);
        first.purge().unwrap();
        let faulty = FaultyDepot::new(&memory, before, Fault::Refused);
        let remote = Remote::open(Arc::new(faulty), &SECRET).unwrap();
        let (store, session) = (&first.machine.store, first.machine.session());
        let pushed = store.push(&act("push"), &remote, &session);
        let left = remote.take_purge_activity().left;
        if pushed.is_ok() && !left.is_empty() {
            assert_eq!(left, std::slice::from_ref(&old));
            assert!(is_there());
            named += 1;
        }
        assert_eq!(first.finish_purges().activity.left, [""; 0]);
        assert!(!is_there());
        cleaned(&memory, &depot, "removed");
    }
    assert_eq!(named, 1);
}

#[test]
fn only_a_purge_that_changed_something_is_announced_in_a_note_without_the_secret() {
    let (_, depot, [first, _]) = leaked();
    let other = KnownSecrets::new(["another secret"]).unwrap();
    let store = &first.machine.store;
    store.purge(&act("purge"), &other, None, &|_, _| None, &|_| ()).unwrap();
    let word = KnownSecrets::new(["description"]).unwrap();
    let refused = store.purge(&act("purge"), &word, None, &|_, _| None, &|_| ());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(store.pending_purges(&first.key()).unwrap(), 0);
    first.purge().unwrap();
    let first = first.opened_again(&depot);
    assert_eq!(first.machine.store.pending_purges(&first.key()).unwrap(), 1);
    let note = first.path().join("remotes").join(first.key().remote().to_string()).join("purges");
    let note = std::fs::read(note).unwrap();
    let holds = |part: &str| note.windows(part.len()).any(|bytes| bytes == part.as_bytes());
    assert!(holds("it leaked") && !holds("horse") && !holds("staple"));
    first.check("noted");
}

#[test]
fn a_pulled_purge_is_forwarded_to_the_other_remote() {
    let (memory, depot, [first, second]) = leaked();
    let other = MemoryDepot::default();
    let there: Arc<dyn Depot> = Arc::new(other.clone());
    let remote = Remote::create(Arc::clone(&there), &SECRET).unwrap();
    let store = &second.machine.store;
    store.push(&act("push"), &remote, &second.machine.session()).unwrap();
    first.purge().unwrap();
    first.finish_purges();
    second.finish_purges();
    let (finished, done) = store.finish_purges(&act("finish"), &remote);
    done.unwrap();
    assert_eq!((finished.activity.written, finished.rewritten), (1, vec!["s".to_owned()]));
    cleaned(&other, &there, "the other");
    cleaned(&memory, &depot, "the first");
    assert_eq!(second.finish_purges(), FinishedPurges::default());
}

/// Regression: if one session could not be rewritten, the names of the rewritten ones got lost.
#[test]
fn rewritten_sessions_are_reported_even_if_another_cannot_be_rewritten() {
    let (memory, _, [first, _]) = leaked();
    let Machine { store, remote } = &first.machine;
    let other = store.create_session(&act("begin"), NewSession::named("other")).unwrap();
    note(&other, "A", WORD);
    store.push(&act("push"), remote, &other).unwrap();
    let name = ref_name(&remote.handle(&other.summary().unwrap().info.id).unwrap());
    let old = super::read(&memory, &name);
    note(&other, "B", "more");
    store.push(&act("push"), remote, &other).unwrap();
    first.purge().unwrap();
    super::overwrite(&memory, &name, &old);
    let (finished, done) = store.finish_purges(&act("finish"), remote);
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Forged);
    assert_eq!((finished.activity.written, finished.rewritten), (1, vec!["s".to_owned()]));
}

#[test]
fn a_thousand_notices_are_read_once() {
    let (memory, depot, [first, second]) = leaked();
    let keys = RemoteKeys::new(&SECRET);
    let id = first.machine.remote.id();
    for number in 0..1000_u64 {
        let salt = NoticeSalt::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes());
        let known = KnownSecrets::new([format!("another secret {number}")]).unwrap();
        let notice = PurgeNotice {
            multiplier: 7 + 2 * (number % 3),
            salt,
            secrets: known.hashes(7 + 2 * (number % 3), &salt),
            sessions: Vec::new(),
            reason: None,
            by: CloneId::from_bytes([1; 16]),
            time: time(1),
        };
        let sealed = notice.seal((id, number), keys.notices()).unwrap();
        let written = memory.put_new(&notice_name(number), &sealed).unwrap();
        assert!(matches!(written, DepotWrite::Done(_)));
    }
    note(&first.machine.session(), "C", "this is another secret 501");
    memory.take_requests();
    first.machine.push().unwrap();
    let requests = memory.take_requests();
    // The secret is not on the remote yet, so the session is not rewritten.
    assert_eq!((requests.get, requests.put_new, requests.swap), (1001, 0, 1), "{requests:?}");
    assert_eq!(first.machine.remote.take_purge_activity().replaced.len(), 1);
    assert_eq!(first.machine.push().unwrap().operations, 0);
    // The push reads the last notice again, and looks for the next one and for the session.
    assert_eq!(memory.take_requests().get, 3);
    let first = first.opened_again(&depot);
    memory.take_requests();
    assert_eq!(first.machine.push().unwrap().operations, 0);
    assert_eq!(memory.take_requests().get, 3);
    // What was pulled from a ref that is older than they are is searched without reading them again.
    second.machine.pull().unwrap();
    memory.take_requests();
    let third = Place::new(&depot);
    third.machine.pull().unwrap();
    assert!(memory.take_requests().get < 1010);
}

#[test]
fn an_altered_moved_or_missing_notice_is_refused() {
    let (memory, depot, [first, second]) = leaked();
    first.purge().unwrap();
    first.finish_purges();
    let whole = super::read(&memory, "purges/0");
    for wrong in [whole[..whole.len() - 1].to_vec(), {
        let mut wrong = whole.clone();
        wrong[40] ^= 1;
        wrong
    }] {
        super::overwrite(&memory, "purges/0", &wrong);
        let error = second.machine.pull().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(second.machine.push().is_err());
    }
    super::overwrite(&memory, "purges/0", &whole);
    memory.put_new("purges/1", &whole).unwrap();
    assert_eq!(second.machine.pull().unwrap_err().kind(), ErrorKind::Corrupt);
    memory.remove("purges/1").unwrap();
    // The ref shows that there was one.
    memory.remove("purges/0").unwrap();
    let error = Place::new(&depot).machine.pull().unwrap_err();
    assert!(matches!(error, Error::LostNotices { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Forged, "{error}");
    memory.put_new("purges/0", &whole).unwrap();
    second.machine.pull().unwrap();
    second.check("pulled");
}

#[test]
fn a_store_in_memory_applies_purges_of_others_when_it_pushes() {
    let (memory, depot, [first, _]) = leaked();
    let third = Machine::new(&depot);
    third.pull().unwrap();
    note(&third.session(), "D", WORD);
    first.purge().unwrap();
    first.finish_purges();
    third.push().unwrap();
    assert!(!session_contents(&third.store).contains("battery"));
    assert!(!session_text(&third.session()).contains("battery"));
    cleaned(&memory, &depot, "pushed");
}

fn session_text(session: &Session) -> String {
    format!("{:?}", session.records(1, usize::MAX).unwrap())
}
