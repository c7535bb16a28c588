//! Recovery points: what is read from a session.

use forge_store::model::{Fact, FactOrigin, Key, Kind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Session, SourcedFact, Store, WriteContext,
};

fn at(second: i64) -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(1_767_261_600_000_000 + second * 1_000_000))
}

fn happened(session: &Session, second: i64, kind: Kind, id: &str, json: &str) {
    let now = at(second).now;
    let value: Value = serde_json::from_str(json).unwrap();
    let (id, origin) = (id.to_owned(), FactOrigin::Recorded);
    let fact = Fact { kind, id, at: now, origin, place: 0, recorded_at: now, value };
    session.write(&at(second)).fact(fact).commit().unwrap();
}

fn ids(list: &[SourcedFact]) -> Vec<&str> {
    list.iter().map(|known| known.fact.id.as_str()).collect()
}

#[test]
fn the_recovery_point_is_the_last_record_with_or_without_a_checkpoint() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&at(0), NewSession::named("s")).unwrap();
    let empty = session.recovery(&session.head().unwrap()).unwrap();
    assert_eq!((empty.time, empty.checkpoint, empty.code), (None, None, None));
    let note = |second: i64| {
        let key = Key::new(Kind::Note, format!("n{second}"));
        let value = Value::from([("description", "x".into())]);
        session.write(&at(second)).change(ClaimChange::put(key, value)).commit().unwrap();
    };
    note(1);
    session.write(&at(2)).checkpoint(NewCheckpoint::manual("named")).commit().unwrap();
    happened(&session, 3, Kind::Code, "edit-0", r#"{"path": "a", "patch": "@@"}"#);
    happened(&session, 4, Kind::Code, "old", r#"{"commit": "1", "env_vars": {"LANG": "C"}}"#);
    happened(&session, 5, Kind::Code, "state", r#"{"commit": "2", "patches": ["p"]}"#);
    happened(&session, 6, Kind::Code, "edit-1", r#"{"path": "a", "patch": "@@"}"#);
    happened(&session, 7, Kind::Code, "not", r#"{"path": "a", "patch": "@@", "applied": false}"#);
    happened(&session, 8, Kind::Command, "ended", r#"{"command": "make", "exit_code": 2}"#);
    happened(&session, 9, Kind::Command, "begun", r#"{"command": "cargo test"}"#);
    happened(
        &session,
        10,
        Kind::Command,
        "behind",
        r#"{"command": "serve", "outcome": "background"}"#,
    );
    happened(&session, 11, Kind::Agent, "sub", r#"{"description": "look"}"#);
    happened(&session, 12, Kind::Agent, "done", r#"{"description": "look", "result": "seen"}"#);
    happened(&session, 13, Kind::Task, "t1", r#"{"subject": "mend", "status": "in_progress"}"#);
    happened(&session, 14, Kind::Task, "t2", r#"{"subject": "rest", "status": "completed"}"#);
    note(15);
    let found = session.recovery(&session.head().unwrap()).unwrap();
    assert_eq!(found.time, Some(at(15).now));
    assert_eq!(found.checkpoint.unwrap().message, "named");
    assert_eq!((found.revisions_since, found.facts_since), (1, 12));
    assert_eq!(found.revision.unwrap().sequence, 3);
    assert_eq!(found.code.unwrap().fact.id, "state");
    assert_eq!(ids(&found.edits), ["edit-1"]);
    // A state without variables does not hide variables that were recorded in an earlier one.
    assert_eq!(
        found.env_vars.into_iter().collect::<Vec<_>>(),
        [("LANG".to_owned(), "C".to_owned())]
    );
    assert_eq!(ids(&found.running), ["begun", "behind", "sub"]);
    assert_eq!((ids(&found.commands), ids(&found.tasks)), (vec!["ended"], vec!["t1"]));
    // A past moment has the data of that time.
    let then = session.recovery(&session.at_time(at(4).now).unwrap()).unwrap();
    assert_eq!(then.code.unwrap().fact.id, "old");
    assert_eq!((then.revisions_since, then.facts_since, then.edits.len()), (0, 2, 0));
}
