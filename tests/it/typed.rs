//! Claims and facts as typed records: they are added and read back, with the changes that follow
//! from them.

use crate::store::act;
use forge_store::model::{BranchMetadata, FactOrigin};
use forge_store::{
    Belief, Confidence, Dependency, Error, ErrorKind, Evidence, Fact, Hypothesis, HypothesisStatus,
    Kind, NewCheckpoint, NewSession, Note, Options, Session, Store, Strength, Timestamp, Value,
    VerificationResult,
};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

fn session() -> Session {
    let store = Store::in_memory().unwrap();
    store.create_session(&act(0), NewSession::named("broken build")).unwrap()
}

fn hypothesis(text: &str) -> Hypothesis {
    Hypothesis::default().description(text)
}

fn all_hypotheses(session: &Session) -> Vec<(String, Hypothesis)> {
    session.state(&session.head().unwrap()).unwrap().all().unwrap()
}

#[test]
fn added_claims_are_read_back_under_consecutive_ids() {
    let session = session();
    let (first, second) =
        (hypothesis("stale").confidence(Confidence::EVEN), hypothesis("slow").tags(["net".into()]));
    let (one, report) = session.add(&act(1), first.clone()).unwrap();
    assert_eq!((one.as_str(), report.revision.map(|(number, _)| number)), ("H1", Some(1)));
    let (two, _) = session.add(&act(2), second.clone()).unwrap();
    assert_eq!(two, "H2");
    let wanted = [(one.clone(), first.clone()), (two, second)];
    assert_eq!(all_hypotheses(&session), wanted);
    let state = session.state(&session.at("#1", act(3).now).unwrap()).unwrap();
    assert_eq!(state.get::<Hypothesis>(&one).unwrap(), Some(first));
    assert_eq!(state.get::<Hypothesis>("H2").unwrap(), None);
    assert_eq!(state.get::<Note>("H1").unwrap(), None);
}

#[test]
fn evidence_moves_the_confidence_of_its_hypothesis_in_the_same_revision() {
    let session = session();
    let (id, _) = session.add(&act(1), hypothesis("stale")).unwrap();
    let evidence = Evidence { strength: Strength::new(1.0), ..Evidence::default() };
    session.add(&act(2), evidence.clone().hypothesis(&*id)).unwrap();
    assert_eq!(session.head().unwrap().revision(), Some(2));
    let moved = all_hypotheses(&session).remove(0).1.confidence.unwrap().value();
    assert!((moved - 0.9).abs() < 1e-9, "{moved}");
    let error = session.add(&act(3), evidence.hypothesis("H7")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(session.head().unwrap().revision(), Some(2), "nothing was written");
}

#[test]
fn a_settled_hypothesis_and_a_finished_check_make_their_checkpoints() {
    let session = session();
    let confirmed = hypothesis("stale").status(HypothesisStatus::Confirmed);
    let (_, report) = session.add(&act(1), confirmed).unwrap();
    let checkpoint = report.checkpoint.unwrap();
    assert_eq!(checkpoint.tags, ["auto", "hypothesis_confirmed"]);
    let (id, report) = session.add(&act(2), VerificationResult::default()).unwrap();
    assert_eq!(report.checkpoint.unwrap().tags, ["auto"]);
    assert!(id.starts_with("v-") && id.len() == 18, "{id}");
    let state = session.state(&session.head().unwrap()).unwrap();
    let found = state.get::<VerificationResult>(&id).unwrap();
    assert_eq!(found, Some(VerificationResult::default()));
    assert_eq!(state.all::<VerificationResult>().unwrap().len(), 1);
}

#[test]
fn add_refuses_an_existing_id_and_put_replaces_the_claim() {
    let session = session();
    let act = act(1);
    session.write(&act).add("cache", hypothesis("stale")).commit().unwrap();
    let error = session.write(&act).add("cache", hypothesis("slow")).commit().unwrap_err();
    assert!(matches!(error, Error::Duplicate { .. }), "{error}");
    session.write(&act).put("cache", hypothesis("slow")).commit().unwrap();
    assert_eq!(all_hypotheses(&session), [("cache".to_owned(), hypothesis("slow"))]);
    let fact = session.write(&act).put("check", VerificationResult::default()).commit();
    assert_eq!(fact.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn the_id_of_a_dependency_consists_of_the_ids_of_its_ends() {
    let session = session();
    let act = act(1);
    session.write(&act).add("a", Belief::default()).add("b", Belief::default()).commit().unwrap();
    let (id, _) = session.add(&act, Dependency::default().from("a").to("b")).unwrap();
    assert_eq!(id, Dependency::id("a", "b"));
    let again = session.add(&act, Dependency::default().from("a").to("b")).unwrap_err();
    assert!(matches!(again, Error::Duplicate { .. }), "{again}");
}

#[test]
fn a_new_id_is_free_on_all_branches() {
    let session = session();
    session.add(&act(1), hypothesis("stale")).unwrap();
    session.create_branch(&act(2), "other", None, Default::default()).unwrap();
    session.add(&act(3), hypothesis("slow")).unwrap();
    session.switch_branch(&act(4), "other", true).unwrap();
    let (id, _) = session.add(&act(5), hypothesis("wrong")).unwrap();
    assert_eq!(id, "H3", "H2 is on main");
}

#[test]
fn concurrent_writers_get_different_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open_or_create(&path, Options::default()).unwrap();
    store.create_session(&act(0), NewSession::named("s")).unwrap();
    let ids: BTreeSet<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let path = &path;
                scope.spawn(move || {
                    let store = Store::open_or_create(path, Options::default()).unwrap();
                    let session = store.current_session().unwrap().unwrap();
                    session.add(&act(1), Note::default()).unwrap().0
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(ids, ["N1", "N2", "N3", "N4"].map(str::to_owned).into());
}

#[test]
fn a_store_that_many_create_at_once_is_one_store() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let gate = Barrier::new(6);
        let stores: Vec<Store> = thread::scope(|scope| {
            let openers: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        gate.wait();
                        Store::open_or_create(&path, Options::default()).unwrap()
                    })
                })
                .collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        stores[0].create_session(&act(0), NewSession::named("s")).unwrap();
        assert!(stores.iter().all(|store| store.session("s").is_ok()));
    }
}

#[test]
fn a_read_only_open_does_not_create_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let error = Store::open_or_create(&path, Options::default().read_only(true)).unwrap_err();
    assert!(matches!(error, Error::NoStore { .. }), "{error}");
    assert!(!path.exists());
}

#[test]
fn texts_that_name_no_moment_are_refused() {
    let session = session();
    session.add(&act(1), hypothesis("stale")).unwrap();
    let error = session.at("", act(2).now).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let unknown = session.at("nowhere", act(2).now).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
    assert!(Timestamp::now() > act(2).now, "the clock is read");
}

/// Regression: these values panicked.
#[test]
fn a_value_when_too_large_is_refused_and_nothing_changes() {
    let session = session();
    let (text, act) = ("x".repeat((64 << 20) + 1), act(1));
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("is too large: divide it"), "{error}");
    };
    refused(session.add(&act, hypothesis(&text)).unwrap_err());
    let mut write = session.write(&act);
    let value = Value::from([("stdout_preview", write.text(&text))]);
    let (id, at, origin) = ("c-1".to_owned(), act.now, FactOrigin::Recorded);
    let fact = Fact { kind: Kind::Command, id, at, origin, place: 0, recorded_at: at, value };
    refused(write.fact(fact).commit().unwrap_err());
    let named = NewCheckpoint::manual(&*text);
    refused(session.write(&act).checkpoint(named.clone()).commit().unwrap_err());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let spooled = store.spooled_write(&act, NewSession::named("s")).unwrap();
    refused(spooled.checkpoint(named).save().unwrap_err());
    assert_eq!(store.spool_status().unwrap().writes, 0);
    let tried = BranchMetadata { approach: Some(text), ..BranchMetadata::default() };
    refused(session.create_branch(&act, "try", None, tried).unwrap_err());
    let head = session.head().unwrap();
    assert_eq!((head.revision(), session.branches(&head).unwrap().len()), (None, 1));
}

/// Regression: facts that were too large for one page were refused together.
#[test]
fn large_facts_that_are_recorded_together_are_all_kept() {
    let (session, act) = (session(), act(1));
    let mut write = session.write(&act);
    for id in ["c-1", "c-2", "c-3"].map(str::to_owned) {
        let value = Value::from([("reason", "x".repeat(30 << 20).into())]);
        let (kind, at, origin) = (Kind::Command, act.now, FactOrigin::Recorded);
        write = write.fact(Fact { kind, id, at, origin, place: 0, recorded_at: at, value });
    }
    write.commit().unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    let kept = state.facts_of(Kind::Command).unwrap().into_iter().map(|known| known.fact.id);
    assert_eq!(kept.collect::<Vec<_>>(), ["c-1", "c-2", "c-3"]);
}

#[test]
fn debug_output_leaves_out_the_claims() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().encrypted(true).keyring(folder.path().join("keys"));
    let store = Store::create(&folder.path().join("store"), options).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.add(&act(1), hypothesis("zebra")).unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    let act = act(2);
    let write = session.write(&act).add("x", hypothesis("zebra"));
    let shown = format!("{store:?} {session:?} {state:?} {write:?}");
    assert!(!shown.contains("zebra"), "{shown}");
    assert!(shown.contains("claims: 1") && shown.contains("steps: 1"), "{shown}");
}
