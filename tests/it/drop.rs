//! Checkpoints that are replaced or dropped, sessions that are dropped, pages of checkpoints, and
//! claims as they are stored.

use crate::store::{act, note, time};
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Checkpoint, Key, Kind, SessionKind, Value};
use forge_store::store::{
    CheckpointFilter, NewCheckpoint, NewSession, Options, Session, Store, StoredClaim, VerifyDepth,
    VerifyOutcome,
};
use std::collections::BTreeSet;

fn stores() -> [(Store, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let files = Store::create(&folder.path().join(".forge"), Options::default()).unwrap();
    [(Store::in_memory().unwrap(), None), (files, Some(folder))]
}

fn check(folder: Option<&tempfile::TempDir>) {
    if let Some(folder) = folder {
        let path = folder.path().join(".forge");
        let verified = Store::verify(&path, VerifyDepth::ReadData, time(99), None).unwrap();
        assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, Vec::new()));
    }
}

fn named(message: &str) -> NewCheckpoint {
    NewCheckpoint {
        key: Some("event".to_owned()),
        body: Value::from([("said", message.into())]),
        ..NewCheckpoint::manual(message).tags([message])
    }
}

fn all(session: &Session) -> Vec<Checkpoint> {
    session.checkpoints(&CheckpointFilter::default()).unwrap()
}

fn tagged(session: &Session, tag: &str) -> usize {
    let filter = CheckpointFilter { tag: Some(tag.to_owned()), ..Default::default() };
    session.checkpoints(&filter).unwrap().len()
}

#[test]
fn a_checkpoint_replaces_the_earlier_one_with_the_same_key() {
    for (store, folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        let write = |minute, text: &str, checkpoint| {
            let context = act(minute);
            let write = session.write(&context).change(note("a", text));
            write.replacing_checkpoint(checkpoint).commit().unwrap().checkpoint.unwrap()
        };
        let old = write(1, "1", named("old"));
        let new = write(2, "2", named("new"));
        assert_eq!((new.id, new.sequence), (old.id, old.sequence));
        assert_eq!((new.revision, new.time), (Some(3), time(2)));
        assert_eq!((new.message.as_str(), new.body.field("said")), ("new", Some(&"new".into())));
        let last = |session: &Session| session.summary().unwrap().last_checkpoint;
        for applied in [false, true] {
            if applied {
                store.maintain(0).unwrap();
            }
            assert_eq!(session.checkpoint_of("event").unwrap().as_ref(), Some(&new));
            assert_eq!(all(&session), std::slice::from_ref(&new));
            assert_eq!((tagged(&session, "old"), tagged(&session, "new")), (0, 1));
            assert_eq!(session.summary().unwrap().checkpoints, 1);
            // Without being asked to replace it, another report changes nothing.
            let again = session.write(&act(3)).checkpoint(named("again")).commit().unwrap();
            assert!(again.is_unchanged());
        }
        for _ in 0..2 {
            session.undo(&act(4), None).unwrap();
            assert_eq!(all(&session), std::slice::from_ref(&old));
            assert_eq!(session.checkpoint_of("event").unwrap().as_ref(), Some(&old));
            assert_eq!(last(&session), Some(time(1)), "that of the one that is there");
            session.redo(&act(5)).unwrap();
            assert_eq!(all(&session), std::slice::from_ref(&new));
            assert_eq!(last(&session), Some(time(2)));
        }
        // Both parts of one operation are undone together.
        let operation = store.new_operation().unwrap();
        for message in ["first", "second"] {
            let context = act(6);
            let checkpoint = NewCheckpoint { key: Some("other".to_owned()), ..named(message) };
            let write = session.write(&context).part_of(operation);
            write.replacing_checkpoint(checkpoint).commit().unwrap();
        }
        assert_eq!(all(&session).len(), 2);
        session.undo(&act(7), None).unwrap();
        assert_eq!(all(&session), std::slice::from_ref(&new));
        session.redo(&act(8)).unwrap();
        assert_eq!(session.checkpoint_of("other").unwrap().unwrap().message, "second");
        store.maintain(0).unwrap();
        check(folder.as_ref());
    }
}

#[test]
fn dropped_checkpoints_are_hidden_at_once_undone_and_swept() {
    for (store, folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        let mut made = Vec::new();
        for minute in 1..=4 {
            let message = format!("m{minute}");
            let checkpoint = NewCheckpoint { key: Some(message.clone()), ..named(&message) };
            let context = act(minute);
            let write = session.write(&context).change(note("a", &message)).checkpoint(checkpoint);
            made.push(write.commit().unwrap().checkpoint.unwrap());
        }
        let ids: Vec<_> = [1, 3, 1].map(|place| made[place].id).to_vec();
        let dropped = session.drop_checkpoints(&act(5), &ids).unwrap();
        let sequences: BTreeSet<u64> = dropped.iter().map(|one| one.sequence).collect();
        assert_eq!(sequences, BTreeSet::from([made[1].sequence, made[3].sequence]));
        let rest = [made[2].clone(), made[0].clone()];
        let is_hidden = |session: &Session| {
            assert_eq!(all(session), rest);
            assert_eq!(session.checkpoint_of("m2").unwrap(), None);
            assert_eq!((tagged(session, "m2"), tagged(session, "m3")), (0, 1));
            let summary = session.summary().unwrap();
            assert_eq!((summary.checkpoints, summary.last_checkpoint), (2, Some(time(3))));
        };
        is_hidden(&session);
        let error = session.drop_checkpoints(&act(6), &[made[0].id, made[1].id]).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        is_hidden(&session);
        assert_eq!(session.drop_checkpoints(&act(6), &[]).unwrap(), []);
        session.undo(&act(7), None).unwrap();
        assert_eq!(all(&session).len(), 4);
        assert_eq!(session.checkpoint_of("m2").unwrap().as_ref(), Some(&made[1]));
        session.redo(&act(8)).unwrap();
        is_hidden(&session);
        store.maintain(0).unwrap();
        is_hidden(&session);
        assert_eq!(store.sweep(time(9), time(9)).unwrap().prunings, 1);
        is_hidden(&session);
        let error = session.undo(&act(9), Some(&session.operations(9).unwrap()[2].id.to_string()));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
        // The revisions stay.
        assert!(session.at_sequence(made[1].revision.unwrap()).is_ok());
        store.maintain(0).unwrap();
        check(folder.as_ref());
    }
}

#[test]
fn remaining_checkpoints_are_amended_in_the_record_that_drops_others() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let mut made = Vec::new();
    for minute in 1..=3 {
        let message = format!("m{minute}");
        let checkpoint = NewCheckpoint { key: Some(message.clone()), ..named(&message) };
        let write = session.write(&act(minute)).checkpoint(checkpoint).commit();
        made.push(write.unwrap().checkpoint.unwrap());
    }
    let carry = |checkpoint: &mut Checkpoint| {
        checkpoint.body = Value::from([("carried", "m1".into())]);
    };
    let refused = session.drop_and_amend_checkpoints(&act(4), &[made[0].id], &[made[0].id], carry);
    assert!(matches!(refused, Err(Error::NotFound { .. })));
    assert_eq!(all(&session).len(), 3);
    let dropped = session.drop_and_amend_checkpoints(&act(4), &[made[0].id], &[made[1].id], carry);
    assert_eq!(dropped.unwrap(), [made[0].clone()]);
    let stays = session.checkpoint_of("m2").unwrap().unwrap();
    assert_eq!(stays.body.field("carried"), Some(&"m1".into()));
    assert_eq!(all(&session).len(), 2);
    session.undo(&act(5), None).unwrap();
    made.reverse();
    assert_eq!(all(&session), made);
}

#[test]
fn a_dropped_session_is_hidden_at_once_its_name_is_free_and_it_comes_back() {
    for kind in [SessionKind::Run, SessionKind::Thread, SessionKind::Debug] {
        for (store, folder) in stores() {
            let other = store.create_session(&act(0), NewSession::named("other")).unwrap();
            let new = || NewSession { kind, ..NewSession::named("s") };
            let session = store.create_session(&act(0), new()).unwrap();
            let context = act(1);
            let write = session.write(&context).change(note("a", "1")).checkpoint(named("one"));
            write.commit().unwrap();
            store.maintain(0).unwrap();
            let operation = store.drop_session(&act(2), &session).unwrap();
            let is_hidden = || {
                assert!(store.session_by_kind(kind, "s").unwrap().is_none());
                assert!(store.session("s").is_err());
                assert_eq!(store.every_session().unwrap().len(), 1);
                let listed = store.checkpoints(&CheckpointFilter::default()).unwrap();
                assert_eq!(listed.len(), 0, "{listed:?}");
                let current = store.current_session().unwrap().unwrap();
                assert_eq!(current.summary().unwrap().info.name, "other");
            };
            is_hidden();
            let error = session.write(&act(3)).change(note("b", "3")).commit().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            let error = store.drop_session(&act(3), &session).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            store.maintain(0).unwrap();
            is_hidden();
            // It comes back by its name.
            let dropped = store.dropped_session(kind, "s").unwrap().unwrap();
            assert_eq!(dropped.operations(1).unwrap()[0].id, operation);
            dropped.undo(&act(4), None).unwrap();
            let back = store.session_by_kind(kind, "s").unwrap().unwrap();
            assert_eq!(back.state(&back.head().unwrap()).unwrap().claims().len(), 1);
            assert_eq!(all(&back).len(), 1);
            assert!(store.dropped_session(kind, "s").unwrap().is_none());
            back.redo(&act(5)).unwrap();
            is_hidden();
            // Its name is free; then it does not come back.
            let second = store.create_session(&act(6), new()).unwrap();
            second.write(&act(6)).change(note("z", "6")).commit().unwrap();
            let dropped = store.dropped_session(kind, "s").unwrap().unwrap();
            let error = dropped.undo(&act(7), None).unwrap_err();
            assert!(matches!(&error, Error::Conflict(why) if why.contains("'s'")), "{error}");
            // It comes back after the other one went.
            store.drop_session(&act(8), &second).unwrap();
            let last = store.dropped_session(kind, "s").unwrap().unwrap();
            let claims = |session: &Session| {
                let state = session.state(&session.head().unwrap()).unwrap();
                let ids = state.claims().entries().map(|claim| claim.unwrap().0.id);
                ids.collect::<Vec<_>>()
            };
            assert_eq!(claims(&last), ["z"], "the one that was dropped last");
            dropped.undo(&act(9), None).unwrap();
            assert_eq!(claims(&store.session_by_kind(kind, "s").unwrap().unwrap()), ["a"]);
            // The other one is swept; nothing of it stays.
            let swept = store.sweep(time(10), time(10)).unwrap();
            assert!(swept.prunings >= 1, "{swept:?}");
            store.maintain(0).unwrap();
            assert!(store.dropped_session(kind, "s").unwrap().is_none());
            assert_eq!(claims(&store.session_by_kind(kind, "s").unwrap().unwrap()), ["a"]);
            assert_eq!(store.every_session().unwrap().len(), 2);
            let again = store.sweep(time(11), time(11)).unwrap();
            assert_eq!(again, Default::default());
            other.write(&act(12)).change(note("o", "12")).commit().unwrap();
            check(folder.as_ref());
            if folder.is_some() {
                store.rebuild().unwrap();
                check(folder.as_ref());
            }
        }
    }
}

#[test]
fn after_the_only_session_is_dropped_the_next_one_is_current() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    store.pin_session(&act(0), Some(&session)).unwrap();
    store.drop_session(&act(1), &session).unwrap();
    assert!(store.current_session().unwrap().is_none());
    let next = store.create_session(&act(2), NewSession::imported("next")).unwrap();
    assert!(next.summary().unwrap().current);
    session.undo(&act(3), None).unwrap();
    assert!(next.summary().unwrap().current && !session.summary().unwrap().current);
}

/// Regression: no session was current, and commands said that there was none.
#[test]
fn the_only_session_is_current_again_when_it_comes_back() {
    for (kind, is_current) in [(SessionKind::Debug, true), (SessionKind::Run, false)] {
        for (store, folder) in stores() {
            let new = NewSession { kind, ..NewSession::named("s") };
            let session = store.create_session(&act(0), new).unwrap();
            store.drop_session(&act(1), &session).unwrap();
            session.undo(&act(2), None).unwrap();
            assert_eq!(session.summary().unwrap().current, is_current);
            session.write(&act(3)).change(note("a", "1")).commit().unwrap();
            check(folder.as_ref());
        }
    }
}

#[test]
fn a_dropped_session_with_dropped_checkpoints_is_swept_completely() {
    for (store, folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        let long = "a large value ".repeat(2000);
        let context = act(1);
        let write = session.write(&context).change(note("a", &long)).checkpoint(named("one"));
        let made = write.commit().unwrap().checkpoint.unwrap();
        session.drop_checkpoints(&act(2), &[made.id]).unwrap();
        store.drop_session(&act(3), &session).unwrap();
        store.maintain(0).unwrap();
        let swept = store.sweep(time(4), time(4)).unwrap();
        assert_eq!((swept.prunings, swept.values), (2, 1));
        store.maintain(0).unwrap();
        assert_eq!(store.every_session().unwrap().len(), 0);
        assert!(session.undo(&act(5), None).is_err());
        check(folder.as_ref());
    }
}

#[test]
fn checkpoints_are_listed_in_pages() {
    for (store, _folder) in stores() {
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        for number in 0..20 {
            let tag = if number % 2 == 0 { "even" } else { "odd" };
            // Several have one time.
            let checkpoint = NewCheckpoint::manual(format!("m{number}")).tags([tag]);
            session.write(&act(number / 3)).checkpoint(checkpoint).commit().unwrap();
        }
        store.maintain(0).unwrap();
        for tag in [None, Some("odd".to_owned())] {
            let filter = CheckpointFilter { tag, ..Default::default() };
            let whole = session.checkpoints(&filter).unwrap();
            let (mut pages, mut before) = (Vec::new(), None);
            loop {
                let page = CheckpointFilter { before, limit: Some(3), ..filter.clone() };
                let page = session.checkpoints(&page).unwrap();
                let Some(last) = page.last() else { break };
                before = Some((last.time, last.sequence));
                pages.extend(page);
            }
            assert_eq!(pages, whole);
            let middle = &whole[whole.len() / 2];
            let before = Some((middle.time, middle.sequence));
            let page = CheckpointFilter { before, ..filter.clone() };
            assert_eq!(session.checkpoints(&page).unwrap(), whole[whole.len() / 2 + 1..]);
            let mut written = session.written_checkpoints(&page).unwrap();
            written.sort_by_key(|one| std::cmp::Reverse((one.time, one.sequence)));
            assert_eq!(written, whole[whole.len() / 2 + 1..]);
            let everywhere = store.checkpoints(&page).unwrap();
            assert_eq!(everywhere.len(), whole.len() - whole.len() / 2 - 1);
            // Until an earlier time, that is the bound.
            let until = Some(time(2));
            let early = CheckpointFilter { before, until, ..filter.clone() };
            let expected: Vec<_> =
                whole.iter().filter(|one| one.time <= time(2)).cloned().collect();
            assert_eq!(session.checkpoints(&early).unwrap(), expected);
        }
    }
}

/// A page of the list of all sessions skipped checkpoints with the time of the page before, if they
/// were in another session and had no lower number.
#[test]
fn checkpoints_of_all_sessions_are_listed_in_pages() {
    for (store, _folder) in stores() {
        let sessions = ["a", "b", "c"]
            .map(|name| store.create_session(&act(0), NewSession::named(name)).unwrap());
        // At one time, each session has other numbers, and some of the others.
        for round in 0..6 {
            for (more, session) in sessions.iter().enumerate() {
                for number in 0..=more {
                    let checkpoint = NewCheckpoint::manual(format!("{round}: {number}"));
                    session.write(&act(round / 2)).checkpoint(checkpoint).commit().unwrap();
                }
            }
        }
        store.maintain(0).unwrap();
        let whole = store.checkpoints(&CheckpointFilter::default()).unwrap();
        assert_eq!(whole.len(), 36);
        for limit in 1..8 {
            let mut next = CheckpointFilter { limit: Some(limit), ..Default::default() };
            let mut pages = Vec::new();
            loop {
                let page = store.checkpoints(&next).unwrap();
                let Some((_, last)) = page.last() else { break };
                next.before = Some((last.time, last.sequence));
                next.before_id = Some(last.id);
                pages.extend(page);
            }
            assert_eq!(pages, whole, "{limit}");
        }
        // Without an id, none is listed twice, and those of earlier times are listed.
        for (place, (_, last)) in whole.iter().enumerate() {
            let before = Some((last.time, last.sequence));
            let page = CheckpointFilter { before, ..Default::default() };
            let page = store.checkpoints(&page).unwrap();
            assert!(whole[place + 1..].ends_with(&page), "{place}");
            let earlier = whole.iter().filter(|(_, one)| one.time < last.time).count();
            assert!(page.len() >= earlier, "{place}: {} of {earlier}", page.len());
        }
    }
}

#[test]
fn claims_are_read_by_a_prefix_of_their_ids_as_they_are_stored() {
    #[derive(serde::Deserialize)]
    struct Fields<'a> {
        text: &'a str,
        none: Option<&'a str>,
    }
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let ids = ["a", "a/", "a/1", "a/2", "a0", "b/1", "ä/1"];
    let notes = ids.map(|id| note(id, &format!("text of {id}")));
    session.write(&act(1)).changes(notes).commit().unwrap();
    let hypothesis = Value::from([("description", "x".into())]);
    let put = forge_store::store::ClaimChange::put(Key::new(Kind::Hypothesis, "a/9"), hypothesis);
    session.write(&act(2)).change(put).commit().unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    for prefix in ["", "a", "a/", "a/1", "a/3", "b", "ä", "c"] {
        let expected: Vec<&str> = ids.into_iter().filter(|id| id.starts_with(prefix)).collect();
        let found = state.claims().claims_with_prefix(Kind::Note, prefix);
        assert_eq!(found.len(), expected.len(), "{prefix}");
        let found: Vec<&str> = found.map(|claim| claim.id().unwrap()).collect();
        assert_eq!(found, expected, "{prefix}");
    }
    for claim in state.claims().claims_with_prefix(Kind::Note, "a/") {
        let fields: Fields<'_> = claim.fields().unwrap();
        let expected = format!("text of {}", claim.id().unwrap());
        assert_eq!((fields.text, fields.none), (expected.as_str(), None));
        assert_eq!(claim.added_at().unwrap(), time(1));
        let (key, entry) = claim.decode().unwrap();
        assert_eq!(state.claims().entry(&key).unwrap().as_ref(), Some(&entry));
        assert!(!claim.entry().is_empty());
    }
    assert_eq!(state.claims().claims_with_prefix(Kind::Hypothesis, "a").len(), 1);
    let last = state.claims().claims_with_prefix(Kind::Note, "a/").next_back();
    assert_eq!(last.as_ref().map(StoredClaim::id).unwrap().unwrap(), "a/2");
}
