//! The public API end to end: what is written is read, at every moment, on every backend.

use forge_store::error::{Error, Result};
use forge_store::model::time_grammar::parse_moment;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, ResolvedMoment, Session,
    Store, WriteContext,
};

pub(crate) fn time(minute: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000)
}

pub(crate) fn act(minute: i64) -> WriteContext {
    WriteContext::asked("test", time(minute))
}

pub(crate) fn note(id: &str, text: &str) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), Value::from([("text", text.into())]))
}

fn resolve(session: &Session, moment: &str) -> Result<ResolvedMoment> {
    session.resolve(&parse_moment(moment, time(100_000), &chrono::Utc).expect("a moment"))
}

fn text(session: &Session, moment: &str, id: &str) -> Result<Option<String>> {
    let state = session.state(&resolve(session, moment)?)?;
    let value = state.claim(Kind::Note, id)?;
    Ok(value.and_then(|value| value.field("text")?.as_text().map(str::to_owned)))
}

fn stores() -> Vec<(Store, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Store::create(&folder.path().join(".forge"), Options::default()).expect("a store");
    vec![(Store::in_memory().expect("a store"), None), (files, Some(folder))]
}

#[test]
fn every_moment_of_a_session_is_readable_before_and_after_it_is_applied() -> Result<()> {
    for (store, _folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s"))?;
        for minute in 1..=20 {
            let checkpoint = NewCheckpoint::manual(format!("m{minute}")).tags(["t"]);
            session
                .write(&act(minute))
                .change(note("n", &format!("at {minute}")))
                .change(note(&format!("n{minute}"), "new"))
                .checkpoint(checkpoint)
                .commit()?;
        }
        for applied in [false, true] {
            if applied {
                assert!(store.maintain(0)?);
                assert!(store.tail_bytes()? < 10_000);
            }
            for minute in 1..=20 {
                let moment = format!("@{}", time(minute).as_micros() / 1_000_000);
                assert_eq!(text(&session, &moment, "n")?, Some(format!("at {minute}")));
                let state = session.state(&resolve(&session, &moment)?)?;
                assert_eq!(state.claims().len() as i64, minute + 1);
                assert_eq!(state.checkpoint()?.expect("one").message, format!("m{minute}"));
                assert_eq!(state.distance_micros()?, Some(0));
                let key = Key::new(Kind::Note, "n");
                let entry = session.claim(&resolve(&session, &moment)?, &key)?.expect("there");
                assert_eq!(entry.value.field("text"), Some(&format!("at {minute}").into()));
                assert_eq!(entry.added_at, time(1));
            }
            assert_eq!(text(&session, "#1", "n")?.as_deref(), Some("at 1"));
            assert_eq!(text(&session, "HEAD~3", "n")?.as_deref(), Some("at 17"));
            assert_eq!(text(&session, "t", "n")?.as_deref(), Some("at 20"));
            let listed = session.checkpoints(&CheckpointFilter::default())?;
            assert_eq!(listed.len(), 20);
            assert_eq!(listed[0].message, "m20");
            let id = listed[4].id.to_string();
            assert_eq!(text(&session, &id[..12], "n")?.as_deref(), Some("at 16"));
            let changed =
                session.compare(&resolve(&session, "#1")?, &resolve(&session, "HEAD")?)?;
            assert_eq!(changed.claims.len(), 20);
            let history = session.history(&session.head()?, &Key::new(Kind::Note, "n"))?;
            assert_eq!(history.len(), 20);
            assert_eq!(history[0].revision.sequence, 39);
        }
        assert!(matches!(resolve(&session, "@1700000000"), Err(Error::NothingAt { .. })));
    }
    Ok(())
}

#[test]
fn a_restore_returns_old_claims_and_loses_nothing() -> Result<()> {
    for (store, _folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s"))?;
        session.write(&act(1)).change(note("a", "1")).commit()?;
        session.write(&act(2)).change(note("a", "2")).change(note("b", "2")).commit()?;
        session.restore(&act(3), &resolve(&session, "#1")?)?;
        session.write(&act(4)).change(note("c", "4")).commit()?;
        for applied in [false, true] {
            if applied {
                store.maintain(0)?;
            }
            assert_eq!(text(&session, "#2", "b")?.as_deref(), Some("2"));
            assert_eq!(text(&session, "HEAD", "a")?.as_deref(), Some("1"));
            assert_eq!(text(&session, "HEAD", "b")?, None);
            assert_eq!(text(&session, "HEAD", "c")?.as_deref(), Some("4"));
            let key = Key::new(Kind::Note, "b");
            assert_eq!(session.claim(&session.head()?, &key)?, None);
            let changed = session.compare(&resolve(&session, "#2")?, &session.head()?)?;
            assert_eq!(changed.claims.len(), 3);
        }
    }
    Ok(())
}

#[test]
fn a_branch_is_independent_and_its_past_is_that_of_its_base() -> Result<()> {
    for (store, _folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s"))?;
        session.write(&act(1)).change(note("a", "1")).commit()?;
        session.write(&act(2)).change(note("a", "2")).commit()?;
        let from = resolve(&session, "#1")?;
        session.create_branch(&act(3), "try", Some(&from), Default::default())?;
        session.switch_branch(&act(3), "try", true)?;
        session.write(&act(4)).change(note("b", "try")).commit()?;
        for applied in [false, true] {
            if applied {
                store.maintain(0)?;
            }
            assert_eq!(text(&session, "HEAD", "a")?.as_deref(), Some("1"));
            assert_eq!(text(&session, "main", "a")?.as_deref(), Some("2"));
            assert_eq!(text(&session, "main", "b")?, None);
            let at_two = format!("try@{{@{}}}", time(2).as_micros() / 1_000_000);
            assert_eq!(text(&session, &at_two, "a")?.as_deref(), Some("1"));
            let plain = format!("@{}", time(2).as_micros() / 1_000_000);
            assert_eq!(text(&session, &plain, "a")?.as_deref(), Some("2"));
            let branches = session.branches(&session.head()?)?;
            let names: Vec<_> = branches.iter().map(|branch| branch.name.as_str()).collect();
            assert_eq!(names, ["main", "try"]);
            assert_eq!(branches[1].base, Some(("main".to_owned(), Some(1))));
        }
    }
    Ok(())
}

#[test]
fn a_reopened_store_has_all_acknowledged_data() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(".forge");
    {
        let store = Store::create(&path, Options::default())?;
        let session = store.create_session(&act(0), NewSession::named("s"))?;
        session.write(&act(1)).change(note("a", "1")).commit()?;
        store.maintain(0)?;
        session.write(&act(2)).change(note("a", "2")).commit()?;
    }
    for read_only in [true, false] {
        let store = Store::open(&path, Options::default().read_only(read_only))?;
        let session = store.current_session()?.expect("the one last used");
        assert_eq!(text(&session, "HEAD", "a")?.as_deref(), Some("2"));
        assert_eq!(text(&session, "#1", "a")?.as_deref(), Some("1"));
        let written = session.write(&act(3)).change(note("a", "3")).commit();
        assert_eq!(written.is_err(), read_only);
    }
    Ok(())
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() -> Result<()> {
    let store = Store::in_memory()?;
    let session = store.create_session(&act(0), NewSession::named("s"))?;
    let key = |kind, id: &str| Key::new(kind, id);
    let value = Value::from([("description", "x".into())]);
    let wrong = Value::from([("description", "x".into()), ("confidence", 1.7.into())]);
    let dangling = Value::from([("description", "x".into()), ("parent", "H9".into())]);
    session
        .write(&act(1))
        .change(ClaimChange::add(key(Kind::Hypothesis, "H1"), value.clone()))
        .commit()?;
    let before = store.tail_bytes()?;
    let refused = |change| session.write(&act(2)).change(change).commit();
    assert!(matches!(
        refused(ClaimChange::add(key(Kind::Hypothesis, "H1"), value.clone())),
        Err(Error::Duplicate { .. })
    ));
    assert!(matches!(
        refused(ClaimChange::put(key(Kind::Hypothesis, "H2"), wrong)),
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        refused(ClaimChange::put(key(Kind::Hypothesis, "H2"), dangling)),
        Err(Error::Dangling { .. })
    ));
    assert!(refused(ClaimChange::put(key(Kind::Command, "c"), value.clone())).is_err());
    assert!(refused(ClaimChange::put(key(Kind::Note, "a\u{1b}b"), value)).is_err());
    assert_eq!(store.tail_bytes()?, before);
    Ok(())
}

/// Regression: a note written while a transcript was imported made a time checkpoint at the
/// writer's clock, so the checkpoints of a session depended on whether its transcript was imported
/// at once or in pieces.
#[test]
fn an_imported_session_gets_no_time_checkpoints_from_other_writers() -> Result<()> {
    use forge_store::model::AutoTrigger;
    use forge_store::redact::{PartEnding, TextForm};
    use forge_store::store::SourceChunk;
    let store = Store::in_memory()?;
    let session = store.create_session(&act(0), NewSession::named("s"))?;
    let write = |minute, id: &str| {
        let act = act(minute);
        session.write(&act).change(note(id, "x")).event(AutoTrigger::SignificantTimePassed).commit()
    };
    assert!(write(1, "a")?.checkpoint.is_some());
    assert!(write(2, "b")?.checkpoint.is_none());
    assert!(write(9, "c")?.checkpoint.is_some());
    let line = store.redact_source(b"a line\n", TextForm::Plain, PartEnding::End);
    let taken = SourceChunk { bytes: line, lines: 1, keep: true, ..SourceChunk::default() };
    session.import_chunk(&act(10), store.new_operation()?, "transcript", taken)?;
    assert!(write(90, "d")?.checkpoint.is_none());
    Ok(())
}

#[test]
fn later_reports_of_an_event_complete_its_one_checkpoint() -> Result<()> {
    for (store, _folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s"))?;
        let of = |message: &str, body: Value| {
            let key = Some("event".to_owned());
            NewCheckpoint { body, key, ..NewCheckpoint::manual(message) }
        };
        let now = |minute, message: &str, body| {
            session.write(&act(minute)).checkpoint(of(message, body)).commit()
        };
        let first = now(5, "announced", Value::from([("a", 1_i64.into()), ("b", 1_i64.into())]))?;
        let first = first.checkpoint.expect("it is made");
        // The same event, reported twice.
        let again = now(6, "again", Value::from([("a", 2_i64.into())]))?;
        assert!(again.is_unchanged());
        // About a past moment: the time is replaced, and known fields stay.
        let past = of("done", Value::from([("b", 2_i64.into()), ("c", 3_i64.into())])).at(time(4));
        session.write(&act(7)).checkpoint(past).commit()?;
        let known = session.checkpoint_of("event")?.expect("it is there");
        assert_eq!((known.id, known.sequence), (first.id, first.sequence));
        assert_eq!((known.time, known.message.as_str()), (time(4), "done"));
        let body = [("a", 1_i64), ("b", 2), ("c", 3)].map(|(name, n)| (name, n.into()));
        assert_eq!(known.body, Value::from(body));
        assert_eq!(session.checkpoints(&CheckpointFilter::default())?.len(), 1);
        // The time cannot be amended; an amendment without a difference is no change.
        for minute in [8, 9] {
            let (amended, changed) = session.amend_checkpoint(&act(minute), &known.id, |one| {
                one.time = time(99);
                one.tags = vec!["seen".to_owned()];
            })?;
            assert_eq!((amended.time, changed), (time(4), minute == 8));
        }
        let wrong = session.amend_checkpoint(&act(10), &known.id, |one| {
            one.tags = vec!["two words".to_owned()];
        });
        assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
    }
    Ok(())
}
