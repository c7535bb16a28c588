use super::*;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::ClaimChange;

fn act(at: i64) -> WriteContext {
    WriteContext::asked("run record", Timestamp::from_micros(at))
}

fn put(session: &Session, at: i64, id: &str, count: i64) {
    let act = act(at);
    let value = Value::from([("count", count.into())]);
    let change = ClaimChange::put(Key::new(Kind::Item, id), value);
    session.write(&act).change(change).commit().unwrap();
}

#[test]
fn a_session_of_a_system_is_made_once_and_never_current() {
    let store = Store::in_memory().unwrap();
    let made = open_or_create(&store, &act(1), SessionKind::Run, "nightly").unwrap();
    put(&made, 2, "a", 1);
    assert!(store.current_session().unwrap().is_none());
    let again = open_or_create(&store, &act(3), SessionKind::Run, "nightly").unwrap();
    assert_eq!(again.summary().unwrap().info, made.summary().unwrap().info);
    let thread = open_or_create(&store, &act(3), SessionKind::Thread, "nightly").unwrap();
    assert_ne!(thread.summary().unwrap().info.id, made.summary().unwrap().info.id);
    let refused = store.pin_session(&act(4), Some(&made)).unwrap_err().to_string();
    assert!(refused.contains("never current"), "{refused}");
    let missing = open(&store, SessionKind::Program, "nightly").map(|_| ()).unwrap_err();
    assert_eq!(missing.to_string(), "there is no program 'nightly'");
}

#[test]
fn a_refused_first_write_creates_nothing() {
    let store = Store::in_memory().unwrap();
    let write = |count: i64| {
        write_or_begin(&store, SessionKind::Run, "nightly", |store| {
            let session = open_or_create(store, &act(1), SessionKind::Run, "nightly")?;
            if count == 0 {
                return Err(Error::invalid("there is nothing to count"));
            }
            put(&session, 2, "a", count);
            Ok(())
        })
    };
    assert!(write(0).is_err());
    assert!(store.session_by_kind(SessionKind::Run, "nightly").unwrap().is_none());
    write(1).unwrap();
    assert!(store.session_by_kind(SessionKind::Run, "nightly").unwrap().is_some());
}

#[test]
fn the_session_last_written_to_comes_first() {
    let store = Store::in_memory().unwrap();
    for (at, name) in [(10, "a"), (20, "b"), (20, "c")] {
        let session = open_or_create(&store, &act(1), SessionKind::Run, name).unwrap();
        put(&session, at, "x", 1);
    }
    let names = |store: &Store| -> Vec<String> {
        newest_first(store, SessionKind::Run).unwrap().into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(&store), ["c", "b", "a"]);
    put(&open(&store, SessionKind::Run, "a").unwrap(), 30, "x", 2);
    assert_eq!(names(&store), ["a", "c", "b"]);
}

#[test]
fn an_edit_sees_the_claims_it_named_and_the_changes_before_it() {
    let store = Store::in_memory().unwrap();
    let session = open_or_create(&store, &act(1), SessionKind::Run, "r").unwrap();
    put(&session, 2, "a", 1);
    let keys = || vec![Key::new(Kind::Item, "a"), Key::new(Kind::Item, "b")];
    let add_one_to_sum = |known: &[Option<Value>]| -> Result<Vec<ClaimChange>> {
        let count = |value: &Option<Value>| {
            value.as_ref().and_then(|value| value.field("count")?.as_i64()).unwrap_or(0)
        };
        let sum = known.iter().map(count).sum::<i64>();
        let value = Value::from([("count", (sum + 1).into())]);
        Ok(vec![ClaimChange::put(Key::new(Kind::Item, "b"), value)])
    };
    let act = act(3);
    session.write(&act).edit(keys(), add_one_to_sum).edit(keys(), add_one_to_sum).commit().unwrap();
    let head = session.head().unwrap();
    let found = session.claims(&head, &keys()).unwrap();
    let counts: Vec<Value> = found
        .into_iter()
        .map(|entry| entry.unwrap().value.field("count").unwrap().clone())
        .collect();
    assert_eq!(counts, [Value::Int(1), Value::Int(4)]);
    let refused = session.write(&act).edit(keys(), |_| Err(Error::invalid("no"))).commit();
    assert_eq!(refused.unwrap_err().to_string(), "no");
    assert_eq!(session.head().unwrap().revision(), head.revision());
}
