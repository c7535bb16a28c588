//! The bytes in a pruning's preview are about the bytes that the sweep frees. Regression: the
//! preview did not count removed sessions, full states, large values and index rows.

use super::ended::{noise, take};
use super::{MINUTE, act, bare, create, disk_bytes, open, revise, time};
use forge_store::model::{Fact, FactOrigin, Kind, RetentionPolicy, Value};
use forge_store::store::{NewCheckpoint, NewSession, Session, Store};
use std::path::Path;

fn settle(store: &Store) {
    store.maintain(0).unwrap();
    store.compact().unwrap();
}

/// Words that compress like prose.
fn prose(seed: u64, length: usize) -> String {
    const WORDS: [&str; 16] = [
        "the", "pool", "of", "connections", "was", "exhausted", "before", "a", "request", "came",
        "back", "from", "cache", "with", "timeout", "again",
    ];
    let mut text = String::with_capacity(length);
    for byte in noise(seed, length) {
        if text.len() >= length {
            break;
        }
        text.push_str(WORDS[usize::from(byte % 16)]);
        text.push(' ');
    }
    text
}

/// Returns the bytes that a preview reports, and those that pruning and sweeping free, in a store
/// that `fill` made.
fn previewed_and_freed(rules: &RetentionPolicy, fill: &dyn Fn(&Store) -> Session) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = create(&path);
    let session = fill(&store);
    let name = session.summary().unwrap().info.name;
    let raw = session.prune_preview(rules, time(100_000)).unwrap().bytes;
    settle(&store);
    drop((store, session));
    let full = disk_bytes(&path);
    let store = open(&path);
    let session = store.session(&name).unwrap();
    let looked = session.prune_preview(rules, time(100_000)).unwrap();
    // Before it is applied: data that is not compressed yet is counted as compressed, and full
    // states do not exist yet.
    assert!(raw * 2 > looked.bytes && raw * 10 < looked.bytes * 11, "{raw} {}", looked.bytes);
    let pruned = session.prune(&act(100_000), rules).unwrap();
    assert!(pruned.operation.is_some());
    assert_eq!(
        (&looked.verdicts, &looked.folds, &looked.sessions, &looked.transcripts),
        (&pruned.verdicts, &pruned.folds, &pruned.sessions, &pruned.transcripts)
    );
    // Random ids and salts do not always compress alike.
    assert!(looked.bytes.abs_diff(pruned.bytes) <= looked.bytes / 100, "{pruned:?}");
    assert_eq!(store.sweep(time(100_001), time(100_001)).unwrap().prunings, 1);
    settle(&store);
    drop((store, session));
    (looked.bytes, full.saturating_sub(disk_bytes(&path)))
}

/// Checks that the preview is neither much too high nor much too low.
#[track_caller]
fn assert_about((reported, freed): (u64, u64)) {
    assert!(
        reported * 10 > freed * 8 && reported * 10 < freed * 12,
        "reported {reported}, freed {freed}"
    );
}

fn begin(store: &Store, name: &str) -> Session {
    store.create_session(&act(0), NewSession::named(name)).unwrap()
}

#[test]
fn the_reported_bytes_of_folds_are_about_the_freed_bytes() {
    assert_about(previewed_and_freed(&bare(), &|store| {
        let session = begin(store, "s");
        for minute in 1..=2000 {
            let id = format!("n{}", minute % 40);
            revise(&session, minute, &[(&id, Some(prose(minute as u64, 400)))]);
        }
        session
    }));
}

#[test]
fn the_reported_bytes_of_large_values_are_about_the_freed_bytes() {
    assert_about(previewed_and_freed(&bare(), &|store| {
        let session = begin(store, "s");
        for minute in 1..=60 {
            let id = format!("n{}", minute % 3);
            revise(&session, minute, &[(&id, Some(prose(minute as u64, 60_000)))]);
        }
        session
    }));
}

/// Half of the removed bytes are full states of many claims, with few changes between two of them.
#[test]
fn the_reported_bytes_of_full_states_are_about_the_freed_bytes() {
    assert_about(previewed_and_freed(&bare(), &|store| {
        let session = begin(store, "s");
        let many: Vec<_> = (0..1500).map(|one| (format!("n{one}"), prose(one, 900))).collect();
        let all: Vec<_> = many.iter().map(|(id, text)| (&**id, Some(text.clone()))).collect();
        revise(&session, 1, &all);
        for minute in 2..=900 {
            let changed: Vec<_> = (0..6)
                .map(|place| {
                    let one = (minute as u64 * 6 + place) % 1500;
                    (&*many[one as usize].0, Some(prose(minute as u64 * 10 + place, 900)))
                })
                .collect();
            revise(&session, minute, &changed);
        }
        session
    }));
}

#[test]
fn the_reported_bytes_of_checkpoints_are_about_the_freed_bytes() {
    assert_about(previewed_and_freed(
        &RetentionPolicy { revisions: 1000 * 60 * 24 * MINUTE, ..bare() },
        &|store| {
            let session = begin(store, "s");
            for minute in 1..=3000 {
                let wanted = NewCheckpoint::manual(prose(minute as u64, 100));
                session.write(&act(minute)).checkpoint(wanted).commit().unwrap();
            }
            session
        },
    ));
}

#[test]
fn the_reported_bytes_of_transcripts_are_about_the_freed_bytes() {
    let rules = RetentionPolicy { texts: Some(MINUTE), ..RetentionPolicy::none() };
    assert_about(previewed_and_freed(&rules, &|store| {
        let old = begin(store, "old");
        let mut source = Vec::new();
        for minute in 1..=20 {
            let text = prose(minute as u64, 200_000);
            take(&old, store, minute, &mut source, text.as_bytes());
        }
        store.create_session(&act(600), NewSession::named("work")).unwrap()
    }));
}

/// What a session of an agent leaves: claims, facts with long texts, checkpoints, a transcript.
fn lived(store: &Store, name: &str) {
    let session = begin(store, name);
    let mut source = Vec::new();
    for minute in 1..=300 {
        let seed = minute as u64;
        revise(&session, minute, &[(&format!("n{}", minute % 20), Some(prose(seed, 600)))]);
        let about = act(minute);
        let mut write = session.write(&about);
        let text = write.text(&prose(seed + 1000, if minute % 10 == 0 { 30_000 } else { 300 }));
        let fact = Fact {
            kind: Kind::Message,
            id: format!("m{minute}"),
            at: about.now,
            origin: FactOrigin::Recorded,
            place: 0,
            recorded_at: about.now,
            value: Value::from([("text", text)]),
        };
        write.fact(fact).commit().unwrap();
        if minute % 30 == 0 {
            let wanted = NewCheckpoint::manual(format!("c{minute}"));
            session.write(&act(minute)).checkpoint(wanted).commit().unwrap();
            take(&session, store, minute, &mut source, prose(seed + 2000, 40_000).as_bytes());
        }
    }
}

#[test]
fn the_reported_bytes_of_sessions_are_about_the_freed_bytes() {
    let rules =
        RetentionPolicy { sessions: Some(MINUTE), texts: Some(MINUTE), ..RetentionPolicy::none() };
    assert_about(previewed_and_freed(&rules, &|store| {
        lived(store, "old");
        lived(store, "older");
        store.create_session(&act(600), NewSession::named("work")).unwrap()
    }));
}

/// Two sessions with the same large value: as long as one of them stays, its bytes stay.
#[test]
fn a_value_with_other_references_is_not_counted() {
    let store = Store::in_memory().unwrap();
    let (old, kept) = (begin(&store, "old"), begin(&store, "kept"));
    let shared: String = noise(1, 40_000).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    revise(&old, 1, &[("a", Some(shared.clone()))]);
    let rules = RetentionPolicy { sessions: Some(MINUTE), ..RetentionPolicy::none() };
    let work = store.create_session(&act(600), NewSession::named("work")).unwrap();
    revise(&kept, 600, &[("n", Some("at work".to_owned()))]);
    let bytes = || work.prune_preview(&rules, time(600)).unwrap().bytes;
    assert!(bytes() > 20_000, "{}", bytes());
    // At the same time: a value in a separate object includes the time at which it was added.
    revise(&kept, 1, &[("a", Some(shared))]);
    assert!(bytes() < 10_000, "{}", bytes());
}

#[test]
fn without_a_pruning_nothing_is_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join(".forge");
    let store = create(path);
    lived(&store, "s");
    let session = store.session("s").unwrap();
    assert_eq!(session.prune_preview(&RetentionPolicy::default(), time(10)).unwrap().bytes, 0);
}
