//! Notices of purges that are lost, cannot be carried out, or would be bypassed.

use super::purge::{Place, WORD, cleaned, leaked};
use super::{Machine, SECRET, access_of, judged};
use crate::bundle::law::session_contents;
use crate::bundle::{act, note};
use forge_store::Error;
use forge_store::format::remote::{PurgeNotice, RemoteKeys, notice_name};
use forge_store::model::{CloneId, NoticeSalt};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{
    Depot, DepotWrite, KnownRemote, MemoryDepot, PurgeActivity, Remote, RewriteReason,
    UnpurgedSecret,
};
use forge_store::store::{NewSession, Session, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Secrets of one length. No rule finds them.
const TWINS: [&str; 2] = ["station-alpha", "station-gamma"];

/// Writes the notice of a purge of these texts, as some other clone could.
fn notify(memory: &MemoryDepot, remote: &Remote, number: u64, texts: &[&str]) {
    let salt = NoticeSalt::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes());
    let notice = PurgeNotice {
        multiplier: 7,
        salt,
        secrets: KnownSecrets::new(texts).unwrap().hashes(7, &salt),
        sessions: Vec::new(),
        reason: Some("elsewhere".to_owned()),
        by: CloneId::from_bytes([1; 16]),
        time: super::time(1),
    };
    let sealed = notice.seal((remote.id(), number), RemoteKeys::new(&SECRET).notices()).unwrap();
    let written = memory.put_new(&notice_name(number), &sealed).unwrap();
    assert!(matches!(written, DepotWrite::Done(_)));
}

fn push(machine: &Machine, session: &Session) -> Result<Option<RewriteReason>, Error> {
    Ok(machine.store.push(&act("push"), &machine.remote, session)?.rewritten)
}

/// Returns the names of the sessions that hold a text.
fn holders(store: &Store, text: &str) -> Vec<String> {
    let known = KnownSecrets::new([text]).unwrap();
    let found = store.purge_preview(&act("preview"), &known, &|_, _| None, &|_| ()).unwrap();
    found.places.into_iter().filter_map(|place| place.session).collect()
}

fn pull_all(machine: &Machine) {
    let Machine { store, remote } = machine;
    for there in remote.sessions().unwrap() {
        store.pull(&act("pull"), remote, &there.handle, None).unwrap();
    }
}

fn begun(machine: &Machine, name: &str) -> Session {
    machine.store.create_session(&act("begin"), NewSession::named(name)).unwrap()
}

#[test]
fn a_secret_that_is_recorded_again_after_its_notice_was_read_is_purged_by_the_push() {
    for allows in [false, true] {
        let (memory, depot, [first, mut second]) = leaked();
        first.purge().unwrap();
        first.finish_purges();
        second.machine.pull().unwrap();
        assert!(!second.machine.remote.take_purge_activity().replaced.is_empty());
        if allows {
            // Allowing secrets is about texts that may be secrets. This one is known to be one.
            second.machine.remote = second.machine.remote.allowing_secrets();
        }
        note(&second.machine.session(), "D", &format!("again: {WORD}"));
        let new = begun(&second.machine, "t");
        note(&new, "E", &format!("{{\"in\": {WORD:?}}}"));
        let pushed = second.machine.push().unwrap();
        assert_eq!(pushed.operations, 1);
        let replaced = second.machine.remote.take_purge_activity().replaced;
        assert!(replaced.iter().any(|place| place.session.as_deref() == Some("s")), "{replaced:?}");
        push(&second.machine, &new).unwrap();
        second.check("pushed");
        assert!(cleaned(&memory, &depot, "pushed").contains("again: purged"));
        // It is settled: nothing is left to be purged or rewritten.
        assert_eq!(second.machine.push().unwrap().rewritten, None);
        assert_eq!(push(&second.machine, &new).unwrap(), None);
        assert_eq!(second.machine.remote.take_purge_activity(), PurgeActivity::default());
    }
}

#[test]
fn a_session_that_was_never_pushed_is_purged_when_it_is_pushed() {
    let (memory, depot, [first, second]) = leaked();
    let own = begun(&second.machine, "own");
    let text = "a word that others use too";
    note(&own, "O", text);
    notify(&memory, &first.machine.remote, 0, &["others use"]);
    first.purge().unwrap();
    first.finish_purges();
    second.finish_purges();
    // The notice is about sessions that are shared.
    assert_eq!(holders(&second.machine.store, text), ["own"]);
    push(&second.machine, &own).unwrap();
    assert_eq!(holders(&second.machine.store, text), [""; 0]);
    cleaned(&memory, &depot, "pushed");
}

#[test]
fn a_purge_whose_secrets_need_several_notices_counts_once() {
    let (memory, _, [first, _]) = leaked();
    // A notice has secrets of at most 256 lengths.
    let mut secrets: Vec<String> =
        (0..300).map(|more| format!("secret-{}", "x".repeat(more + 9))).collect();
    secrets.push(WORD.to_owned());
    let known = KnownSecrets::new(&secrets).unwrap();
    let Machine { store, remote } = &first.machine;
    store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    assert_eq!(store.pending_purges(&first.key()).unwrap(), 1);
    let (finished, done) = store.finish_purges(&act("finish"), remote);
    done.unwrap();
    assert_eq!((finished.activity.written, finished.rewritten.len()), (1, 1));
    assert!(memory.list("purges/", "").unwrap().len() > 1);
}

#[test]
fn missing_notices_are_written_again_by_a_clone_that_has_seen_them() {
    // Lost, or another one was written meanwhile.
    for other in [false, true] {
        let (memory, depot, [first, second]) = leaked();
        let keeps = "another word";
        note(&first.machine.session(), "K", keeps);
        first.machine.push().unwrap();
        first.purge().unwrap();
        first.finish_purges();
        second.machine.pull().unwrap();
        assert_eq!(second.machine.remote.take_purge_activity().written, 0);
        memory.remove(&notice_name(0)).unwrap();
        let mut third = Place::new(&depot);
        let error = third.machine.pull().unwrap_err();
        assert!(matches!(error, Error::LostNotices { .. }), "{error}");
        let remote = Remote::open(Arc::clone(&depot), &SECRET).unwrap().accepting_history();
        third.machine.remote = remote;
        third.machine.pull().unwrap();
        if other {
            let known = KnownSecrets::new([keeps]).unwrap();
            let store = &third.machine.store;
            store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
            third.finish_purges();
        }
        assert_eq!(memory.list("purges/", "").unwrap().len(), usize::from(other));
        // A push that has nothing new is enough.
        second.machine.push().unwrap();
        assert_eq!(memory.list("purges/", "").unwrap().len(), 1 + usize::from(other));
        // It was counted when it was written first.
        assert_eq!(second.machine.remote.take_purge_activity().written, 0);
        note(&third.machine.session(), "D", &format!("again: {WORD}"));
        third.machine.push().unwrap();
        third.check("the rewritten notice");
        for place in [&first, &second, &third] {
            place.machine.pull().unwrap();
            place.check("at the end");
            assert_eq!(session_contents(&place.machine.store).contains(keeps), !other);
        }
        cleaned(&memory, &depot, "at the end");
    }
}

#[test]
fn a_secret_that_cannot_be_purged_stops_only_the_sessions_that_contain_it() {
    let (memory, depot, [first, second]) = leaked();
    let session = second.machine.session();
    TWINS.iter().for_each(|twin| note(&session, twin, "an id that is a secret"));
    note(&session, "D", WORD);
    second.machine.push().unwrap();
    let other = begun(&second.machine, "t");
    note(&other, "E", &format!("{WORD} of another session"));
    push(&second.machine, &other).unwrap();
    // `descript` is part of a word of forge's format.
    let texts = [WORD, TWINS[0], TWINS[1], "descript"];
    notify(&memory, &first.machine.remote, 0, &texts);
    let activity = second.finish_purges().activity;
    let [held] = activity.unpurged.as_slice() else { panic!("{activity:?}") };
    let UnpurgedSecret { sessions, reason } = held;
    assert_eq!((sessions.as_slice(), activity.ignored), (&["s".to_owned()][..], 1));
    assert!(reason.contains("two ids differ by nothing but secrets"), "{reason}");
    second.check("all that can be");
    let here = session_contents(&second.machine.store);
    assert_eq!(TWINS.iter().filter(|twin| here.contains(*twin)).count(), 1, "{here}");
    // It is reported once, and the rest continues.
    assert_eq!(second.finish_purges().activity, PurgeActivity::default());
    pull_all(&second.machine);
    note(&other, "F", "more");
    push(&second.machine, &other).unwrap();
    note(&session, "G", "more");
    for _ in 0..2 {
        let error = second.machine.push().unwrap_err();
        let Error::PurgedSecrets { session, .. } = &error else { panic!("{error}") };
        assert_eq!(session, "s", "{error}");
    }
    let mut second = second;
    second.machine.remote = second.machine.remote.allowing_secrets();
    second.machine.push().unwrap();
    let mut third = Place::new(&depot);
    // Others search the session again, because it still has what its notices purge.
    third.machine.remote = Remote::open(Arc::clone(&depot), &SECRET).unwrap();
    pull_all(&third.machine);
    assert_eq!(third.machine.remote.take_purge_activity().unpurged.len(), 1);
    third.check("pulled");
}

#[test]
fn a_notice_purges_the_sessions_of_its_remote_and_is_forwarded_only_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let options = || judged().keyring(folder.path().join("keyring"));
    let store = Store::create(&folder.path().join("store"), options()).unwrap();
    let [here, there] = [(); 2].map(|()| {
        let memory = MemoryDepot::default();
        let depot: Arc<dyn Depot> = Arc::new(memory.clone());
        (memory, Remote::create(depot, &SECRET).unwrap())
    });
    for (name, (_, remote)) in [("here", &here), ("there", &there)] {
        let (name, url) = (name.to_owned(), "file:///x".to_owned());
        store.keep_remote(&KnownRemote { name, url, access: access_of(remote) }).unwrap();
    }
    let named = |name: &str, texts: &[&str]| {
        let session = store.create_session(&act("begin"), NewSession::named(name)).unwrap();
        texts.iter().enumerate().for_each(|(id, text)| note(&session, &format!("N{id}"), text));
        session
    };
    let both = named("both", &["in both remotes"]);
    let only = named("only", &["in one remote"]);
    let other = named("other", &["in the other remote"]);
    named("own", &["in no remote", "in both remotes"]);
    for (session, (_, remote)) in
        [(&both, &here), (&both, &there), (&only, &here), (&other, &there)]
    {
        store.push(&act("push"), remote, session).unwrap();
    }
    let holds = || {
        let texts = ["in both", "in one", "in the other", "in no remote"].into_iter();
        let all = texts.map(|text| (text, !holders(&store, text).is_empty()));
        all.collect::<BTreeMap<_, _>>()
    };
    let contact = || {
        store.finish_purges(&act("finish"), &here.1).1.unwrap();
        (holds(), store.pending_purges(&access_of(&there.1)).unwrap())
    };
    notify(&here.0, &here.1, 0, &["in the other", "in no remote"]);
    assert!(contact().0.values().all(|is_there| *is_there));
    assert_eq!(contact().1, 0);
    notify(&here.0, &here.1, 1, &["in one", "in no remote"]);
    let (after, pending) = contact();
    assert_eq!(
        (after["in one"], after["in no remote"], after["in the other"]),
        (false, true, true)
    );
    assert_eq!(pending, 0);
    notify(&here.0, &here.1, 2, &["in both"]);
    let (after, pending) = contact();
    assert_eq!((after["in both"], pending), (false, 1));
}

#[test]
fn a_purge_that_fails_before_it_changes_anything_is_not_announced() {
    let (_, _, [first, _]) = leaked();
    let path = first.path();
    let access = first.key();
    let lock = std::fs::File::open(path.join("journal/append.lock")).unwrap();
    let Place { folder, machine } = first;
    drop(machine.store);
    let store = Store::open(&path, judged().lock_timeout(Duration::ZERO)).unwrap();
    let busy = Place { folder, machine: Machine { store, remote: machine.remote } };
    lock.lock().unwrap();
    let error = busy.purge().unwrap_err();
    assert_eq!(busy.machine.store.pending_purges(&access).unwrap(), 0, "{error}");
    drop(lock);
    busy.purge().unwrap();
    assert_eq!(busy.machine.store.pending_purges(&access).unwrap(), 1);
}

#[test]
fn a_secret_that_was_not_pushed_leaves_nothing_to_rewrite() {
    let (memory, depot, [first, second]) = leaked();
    first.purge().unwrap();
    first.finish_purges();
    let other = begun(&second.machine, "t");
    note(&other, "T", "nothing");
    push(&second.machine, &other).unwrap();
    second.finish_purges();
    let Machine { store, .. } = &second.machine;
    for round in ["one", "two"] {
        let [unpushed, pushed] = [format!("harbour-{round}"), format!("station-{round}")];
        note(&other, "U", &unpushed);
        let purge = |text: &str| {
            let known = KnownSecrets::new([text]).unwrap();
            store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap().places.len()
        };
        assert_eq!(purge(&unpushed), 1);
        let done = second.finish_purges();
        assert_eq!((done.rewritten, done.unpushed), (vec![], vec![]));
        assert_eq!(done.activity.written, 1);
        assert_eq!(push(&second.machine, &other).unwrap(), None);
        cleaned(&memory, &depot, "pushed");
        note(&other, "V", &pushed);
        push(&second.machine, &other).unwrap();
        note(&other, "W", &format!("not pushed in round {round}"));
        assert_eq!(purge(&pushed), 1);
        assert_eq!(second.finish_purges().unpushed, ["t"]);
        assert_eq!(push(&second.machine, &other).unwrap(), Some(RewriteReason::Purged));
        assert_eq!(second.finish_purges().unpushed, [""; 0]);
    }
}
