use super::*;
use crate::model::{FactOrigin, SessionKind, Timestamp};
use crate::store::{ClaimChange, NewSession, Options, Session, Store, WriteContext};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Barrier;

fn act() -> WriteContext {
    WriteContext::asked("note add", Timestamp::default())
}

fn session(store: &Store) -> Session {
    store.create_session(&act(), NewSession::named("s")).unwrap()
}

fn described(text: &str) -> Value {
    Value::from([("description", text.into())])
}

/// Adds a note and returns its id.
fn add(session: &Session) -> Result<String> {
    let done = session.write(&act()).add_next(Kind::Note, "N", described("a note")).commit()?;
    Ok(done.new_id.unwrap())
}

#[test]
fn the_first_free_number_is_found() {
    for taken in 0..70 {
        for start in 1..=taken + 1 {
            let is_taken = |number, _: &[u64]| Ok::<_, ()>(number <= taken);
            assert_eq!(first_free(start, is_taken), Ok(taken + 1));
        }
    }
    // With free numbers between taken ones, the result is free and follows a taken one.
    let with_gaps = |number, _: &[u64]| Ok::<_, ()>([1, 2, 4, 5].contains(&number));
    assert_eq!(first_free(1, with_gaps), Ok(6));
}

/// Regression: in a store in a database, each number that was checked cost a round trip.
#[test]
fn several_numbers_are_checked_in_one_request() {
    for taken in 0..3_000 {
        let (requests, known) = (Cell::new(0), RefCell::new(Vec::new()));
        let is_taken = |number: u64, next: &[u64]| {
            if !next.is_empty() {
                requests.set(requests.get() + 1);
                *known.borrow_mut() = next.to_vec();
            }
            assert!(
                known.borrow().contains(&number),
                "{number} was not read ahead, with {taken} taken"
            );
            Ok::<_, ()>(number <= taken)
        };
        assert_eq!(first_free(1, is_taken), Ok(taken + 1));
        assert!(requests.get() <= 4, "{} requests with {taken} taken", requests.get());
    }
}

#[test]
fn ids_are_free_on_all_branches_and_in_the_write_itself() {
    let store = Store::in_memory().unwrap();
    let session = session(&store);
    assert_eq!(add(&session).unwrap(), "N1");
    session.create_branch(&act(), "other", None, Default::default()).unwrap();
    assert_eq!(add(&session).unwrap(), "N2");
    session.switch_branch(&act(), "other", true).unwrap();
    assert_eq!(add(&session).unwrap(), "N3");
    let chosen = ClaimChange::add(Key::new(Kind::Note, "N4"), described("chosen"));
    let done = session
        .write(&act())
        .change(chosen)
        .add_next(Kind::Note, "N", described("next"))
        .commit()
        .unwrap();
    assert_eq!(done.new_id.as_deref(), Some("N5"));
    let changed: Vec<_> = done.changed.iter().map(|(key, _)| key.id.as_str()).collect();
    assert_eq!(changed, ["N4", "N5"]);
    // Another kind has its own numbers.
    let done = session.write(&act()).add_next(Kind::Gap, "G", described("why?")).commit().unwrap();
    assert_eq!(done.new_id.as_deref(), Some("G1"));
}

#[test]
fn rules_and_facts_get_the_next_free_id() {
    let store = Store::in_memory().unwrap();
    let session = session(&store);
    add(&session).unwrap();
    let rule = |_: &HeadClaims, id: &str| {
        Ok(RuleOutcome {
            changes: vec![(Key::new(Kind::Note, id), described(id))],
            ..RuleOutcome::default()
        })
    };
    let done = session.write(&act()).rule_with_next_id(Kind::Note, "N", rule).commit().unwrap();
    assert_eq!(done.new_id.as_deref(), Some("N2"));
    assert_eq!(done.changed, [(Key::new(Kind::Note, "N2"), Some(described("N2")))]);
    let fact = |at: Timestamp| {
        move |id: &str| {
            Some(Fact {
                kind: Kind::Tool,
                id: format!("of {id}"),
                at,
                origin: FactOrigin::Recorded,
                place: 0,
                recorded_at: at,
                value: Value::from([("tool", "t".into()), ("outcome", "finished".into())]),
            })
        }
    };
    let context = act();
    let write = || session.write(&context).add_next(Kind::Note, "N", described("with a fact"));
    let too_late = act().now.plus_micros(FUTURE_MICROS + 1);
    let error = write().fact_of_next(fact(too_late)).commit().unwrap_err();
    assert!(error.to_string().contains("more than a day ahead"), "{error}");
    let done = write().fact_of_next(fact(act().now)).commit().unwrap();
    assert_eq!((done.new_id.as_deref(), done.facts), (Some("N3"), 1));
    let state = session.state(&session.head().unwrap()).unwrap();
    let facts = state.facts_of(Kind::Tool).unwrap();
    assert_eq!(facts.iter().map(|one| one.fact.id.as_str()).collect::<Vec<_>>(), ["of N3"]);
}

#[test]
fn a_write_with_an_invalid_value_uses_no_id() {
    let store = Store::in_memory().unwrap();
    let session = session(&store);
    let context = act();
    let write = session.write(&context).add_next(
        Kind::Note,
        "N",
        Value::from([("description", Vec::<Value>::new().into())]),
    );
    assert!(matches!(write.commit(), Err(Error::Invalid { .. })));
    assert_eq!(add(&session).unwrap(), "N1");
}

#[test]
fn concurrent_writers_get_distinct_ids_in_one_commit_each() {
    const WRITERS: usize = 8;
    const CLAIMS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let name = session(&store).summary().unwrap().info.name;
    let begin = Barrier::new(WRITERS);
    let ids: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    // A separate handle of the store, as in another process.
                    let store = Store::open(&path, Options::default()).unwrap();
                    let session = store.session(&name).unwrap();
                    begin.wait();
                    (0..CLAIMS).map(|_| add(&session).unwrap()).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let distinct: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let expected: BTreeSet<String> =
        (1..=WRITERS * CLAIMS).map(|number| format!("N{number}")).collect();
    assert_eq!(distinct, expected.iter().map(String::as_str).collect());
    // No write was repeated: each made one revision.
    let session = store.session(&name).unwrap();
    assert_eq!(session.head().unwrap().revision(), Some((WRITERS * CLAIMS) as u64));
    assert_eq!(session.summary().unwrap().info.kind, SessionKind::Debug);
}
