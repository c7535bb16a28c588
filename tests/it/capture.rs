//! Connected systems are captured together, and are restored together or not at all.

use forge_store::error::{Error, ErrorKind};
use forge_store::model::{AutoTrigger, Key, Kind, Timestamp, Value};
use forge_store::store::{
    ConnectedSystem, NewSession, RecoveryStep, Store, SystemError, SystemRecorder, TemporalQuery,
    WriteContext,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type Claims = BTreeMap<Key, Value>;

/// A system that holds claims, and may refuse.
struct Board {
    name: &'static str,
    kinds: Vec<Kind>,
    claims: Mutex<Claims>,
    refuses: AtomicBool,
}

impl Board {
    fn new(name: &'static str, kinds: &[Kind]) -> Arc<Self> {
        Arc::new(Self {
            name,
            kinds: kinds.to_vec(),
            claims: Mutex::default(),
            refuses: AtomicBool::new(false),
        })
    }

    fn holds(&self) -> Claims {
        self.claims.lock().unwrap().clone()
    }

    fn put(&self, kind: Kind, id: &str, text: &str) {
        let value = Value::from([("description", text.into())]);
        self.claims.lock().unwrap().insert(Key::new(kind, id), value);
    }

    fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    fn check_in_order(&self) -> Result<(), SystemError> {
        if self.refuses.load(Ordering::Relaxed) { Err("out of order".into()) } else { Ok(()) }
    }
}

impl ConnectedSystem for Board {
    fn name(&self) -> &str {
        self.name
    }

    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn capture(&self) -> Result<Vec<(Key, Value)>, SystemError> {
        self.check_in_order()?;
        Ok(self.holds().into_iter().rev().collect())
    }

    fn restore(&self, claims: &[(Key, Value)]) -> Result<(), SystemError> {
        self.check_in_order()?;
        *self.claims.lock().unwrap() = claims.iter().cloned().collect();
        Ok(())
    }
}

fn act(seconds: i64) -> WriteContext {
    WriteContext::asked(
        "capture",
        Timestamp::from_micros(1_767_261_600_000_000 + seconds * 1_000_000),
    )
}

fn two() -> (SystemRecorder, Arc<Board>, Arc<Board>) {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let ideas = Board::new("ideas", &[Kind::Hypothesis]);
    let rest = Board::new("rest", &[Kind::Note, Kind::Gap]);
    let mut recorder = SystemRecorder::new(session);
    recorder.connect(ideas.clone()).unwrap();
    recorder.connect(rest.clone()).unwrap();
    (recorder, ideas, rest)
}

fn held(recorder: &SystemRecorder) -> Claims {
    let session = recorder.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    state.claims().entries().map(Result::unwrap).map(|(key, entry)| (key, entry.value)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]
    #[test]
    fn restoring_and_capturing_a_moment_gives_the_same_state(
        moments in prop::collection::vec(
            (prop::collection::btree_map(0..6_u8, 0..3_u8, 0..5), prop::collection::btree_map(0..6_u8, 0..3_u8, 0..5)),
            1..8,
        ),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
    ) {
        let (recorder, ideas, rest) = two();
        let mut seconds = 1;
        let mut made = Vec::new();
        for (hypotheses, notes) in &moments {
            ideas.claims.lock().unwrap().clear();
            rest.claims.lock().unwrap().clear();
            for (id, text) in hypotheses {
                ideas.put(Kind::Hypothesis, &format!("h{id}"), &format!("{text}"));
            }
            for (id, text) in notes {
                let kind = if id % 2 == 0 { Kind::Note } else { Kind::Gap };
                rest.put(kind, &format!("n{id}"), &format!("{text}"));
            }
            let checkpoint = recorder.checkpoint(&act(seconds), "moment", &[]).unwrap();
            let mut all = ideas.holds();
            all.extend(rest.holds());
            prop_assert_eq!(&held(&recorder), &all);
            made.push((checkpoint, all));
            seconds += 1;
        }
        for place in order {
            let (checkpoint, all) = place.get(&made);
            let query =
                TemporalQuery { checkpoint_id: Some(checkpoint.id), ..Default::default() };
            let moment = recorder.query(&query).unwrap().moment().clone();
            recorder.restore(&act(seconds), &moment).unwrap();
            let mut systems = ideas.holds();
            systems.extend(rest.holds());
            prop_assert_eq!(&systems, all);
            prop_assert_eq!(&held(&recorder), all);
            let before = recorder.session().summary().unwrap().last_sequence;
            recorder.checkpoint(&act(seconds), "again", &[]).unwrap();
            let after = recorder.session().summary().unwrap().last_sequence;
            prop_assert_eq!(after, before + 1, "a checkpoint and no revision");
            seconds += 1;
        }
    }
}

#[test]
fn a_system_that_cannot_be_captured_leaves_nothing_written() {
    let (recorder, ideas, rest) = two();
    ideas.put(Kind::Hypothesis, "H1", "x");
    rest.refuse(true);
    let before = recorder.session().store().tail_bytes().unwrap();
    let error = recorder.checkpoint(&act(1), "m", &[]).unwrap_err();
    assert_eq!(error.to_string(), "the connected system 'rest' could not be captured");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(recorder.session().store().tail_bytes().unwrap(), before);
    assert!(recorder.list().unwrap().is_empty());
}

#[test]
fn a_system_that_cannot_be_restored_leaves_all_systems_unchanged() {
    let (recorder, ideas, rest) = two();
    ideas.put(Kind::Hypothesis, "H1", "then");
    let then = recorder.checkpoint(&act(1), "then", &["then"]).unwrap();
    ideas.put(Kind::Hypothesis, "H1", "now");
    rest.put(Kind::Note, "n", "now");
    let now = (ideas.holds(), rest.holds());
    let moment = recorder.session().at_checkpoint(&then).unwrap();
    // Captures succeed, but restores fail.
    struct Stubborn;
    impl ConnectedSystem for Stubborn {
        fn name(&self) -> &str {
            "stubborn"
        }
        fn kinds(&self) -> &[Kind] {
            &[Kind::Belief]
        }
        fn capture(&self) -> Result<Vec<(Key, Value)>, SystemError> {
            Ok(Vec::new())
        }
        fn restore(&self, _: &[(Key, Value)]) -> Result<(), SystemError> {
            Err("never".into())
        }
    }
    let mut recorder = recorder;
    recorder.connect(Arc::new(Stubborn)).unwrap();
    let error = recorder.restore(&act(2), &moment).unwrap_err();
    assert!(matches!(error, Error::Connected { action: "restored", .. }), "{error}");
    assert_eq!((ideas.holds(), rest.holds()), now);
    assert_eq!(held(&recorder).len(), 2, "what they held is recorded");
}

#[test]
fn a_restore_records_what_it_replaces_and_undo_restores_that() {
    let (recorder, ideas, _rest) = two();
    ideas.put(Kind::Hypothesis, "H1", "then");
    let then = recorder.checkpoint(&act(1), "then", &["then"]).unwrap();
    ideas.put(Kind::Hypothesis, "H1", "never recorded");
    let moment = recorder.session().at_checkpoint(&then).unwrap();
    let report = recorder.restore(&act(2), &moment).unwrap();
    assert_eq!((report.restored_to, report.message.as_str()), (Some(then.id), "then"));
    assert_eq!((report.captured, report.revision), (Some(3), Some(4)));
    assert_eq!(report.systems, ["ideas", "rest"]);
    assert!(report.recovery_complete);
    recorder.session().undo(&act(3), None).unwrap();
    let value = held(&recorder)[&Key::new(Kind::Hypothesis, "H1")].clone();
    assert_eq!(value.field("description"), Some(&"never recorded".into()));
}

#[test]
fn a_restore_replaces_claims_of_its_kinds_and_keeps_other_kinds() {
    use forge_store::store::ClaimChange;
    let (recorder, ideas, _rest) = two();
    let value = || Value::from([("description", "x".into())]);
    let put = |kind, id: &str| ClaimChange::put(Key::new(kind, id), value());
    let now = act(1);
    let write = recorder.session().write(&now);
    write.change(put(Kind::Belief, "b")).change(put(Kind::Note, "n")).commit().unwrap();
    ideas.put(Kind::Hypothesis, "H1", "x");
    recorder.checkpoint(&act(2), "m", &[]).unwrap();
    let kinds: Vec<_> = held(&recorder).into_keys().map(|key| key.kind).collect();
    assert_eq!(kinds, [Kind::Hypothesis, Kind::Belief]);
}

#[test]
fn only_time_checkpoints_are_throttled() {
    let (recorder, ideas, _rest) = two();
    let auto = |seconds, trigger| recorder.auto_checkpoint(&act(seconds), trigger).unwrap();
    assert!(auto(1, AutoTrigger::GapFilled).is_some());
    ideas.put(Kind::Hypothesis, "H1", "x");
    assert!(auto(301, AutoTrigger::SignificantTimePassed).is_none(), "five minutes to the second");
    assert!(held(&recorder).is_empty(), "nothing was captured");
    assert!(auto(302, AutoTrigger::SignificantTimePassed).is_some());
    assert_eq!(held(&recorder).len(), 1);
    assert!(auto(302, AutoTrigger::ContextCompactionWarning).is_some());
    assert!(auto(303, AutoTrigger::HypothesisStatusChange).is_some());
    assert_eq!(recorder.find_by_tag("auto").unwrap().len(), 4);
}

#[test]
fn a_query_is_ordered_by_time_number_checkpoint_and_tag() {
    let (recorder, ideas, _rest) = two();
    let mut made = Vec::new();
    for second in 1..=4 {
        ideas.put(Kind::Hypothesis, &format!("H{second}"), "x");
        made.push(recorder.checkpoint(&act(second), "m", &[&format!("t{second}")]).unwrap());
    }
    let mut query = TemporalQuery {
        timestamp: Some(act(1).now),
        sequence_number: Some(made[1].sequence),
        checkpoint_id: Some(made[2].id),
        tag_filter: Some("t4".to_owned()),
    };
    let count = |query: &TemporalQuery| recorder.query(query).map(|state| state.claims().len());
    assert_eq!(count(&query).unwrap(), 1);
    query.timestamp = None;
    assert_eq!(count(&query).unwrap(), 2);
    query.sequence_number = None;
    assert_eq!(count(&query).unwrap(), 3);
    query.checkpoint_id = None;
    assert_eq!(count(&query).unwrap(), 4);
    query.tag_filter = None;
    assert!(matches!(count(&query), Err(Error::Invalid(_))));
    query.tag_filter = Some("none".to_owned());
    assert!(matches!(count(&query), Err(Error::NotFound { .. })));
    let changed = recorder.compare(&made[0].id, &made[2].id).unwrap();
    assert_eq!(changed.claims.len(), 2);
}

#[test]
fn unsuitable_systems_are_refused() {
    let (mut recorder, _ideas, _rest) = two();
    let connect =
        |recorder: &mut SystemRecorder, kinds: &[Kind]| recorder.connect(Board::new("x", kinds));
    assert!(connect(&mut recorder, &[Kind::Note]).is_err(), "two systems, one kind");
    assert!(connect(&mut recorder, &[Kind::Command]).is_err(), "facts are not captured");
    let liar = Board::new("liar", &[Kind::Belief]);
    liar.put(Kind::Note, "n", "not mine");
    recorder.connect(liar).unwrap();
    let error = recorder.checkpoint(&act(1), "m", &[]).unwrap_err();
    assert!(matches!(error, Error::Connected { action: "captured", .. }), "{error}");
}

#[test]
fn a_recovery_point_describes_how_to_continue() {
    use forge_store::model::{Fact, FactOrigin};
    let (recorder, _ideas, _rest) = two();
    assert_eq!(recorder.session().recovery_point().unwrap(), None);
    let variables = Value::from([("RUST_LOG", "debug".into())]);
    let fact = Fact {
        kind: Kind::Code,
        id: "state".to_owned(),
        at: act(1).now,
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: act(1).now,
        value: Value::from([("commit", "abc".into()), ("env_vars", variables)]),
    };
    recorder.session().write(&act(1)).fact(fact).commit().unwrap();
    let made = recorder.checkpoint(&act(2), "before the crash", &[]).unwrap();
    let point = recorder.session().recovery_point().unwrap().unwrap();
    assert_eq!(point.checkpoint, made);
    let [code, environment, RecoveryStep::ManualInstruction { instruction }] = &point.steps[..]
    else {
        panic!("{:?}", point.steps)
    };
    let commit = RecoveryStep::RestoreCodeState { commit: "abc".to_owned(), patches: Vec::new() };
    assert_eq!(code, &commit);
    assert!(
        matches!(environment, RecoveryStep::RestoreEnvironment { env_vars } if env_vars.len() == 1)
    );
    assert!(instruction.contains("before the crash"), "{instruction}");
}
