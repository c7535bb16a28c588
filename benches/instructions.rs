//! A small run that is the same every time, for counting instructions: `make instructions` runs it
//! under callgrind and prints the cost of each part. Unlike times, the counts do not depend on what
//! else the machine does.
//!
//! Each part is a function that is never inlined, so that callgrind can separate them. All data is
//! in memory: no disk, no RocksDB.

use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, ResolvedMoment, Session, Store, WriteContext,
};
use std::collections::BTreeSet;

const CLAIMS: usize = 1000;
const STEPS: usize = 50;
const CHANGES: usize = 25;

fn act(step: usize) -> WriteContext {
    let start = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").expect("a time");
    WriteContext::asked("bench", start.plus_micros(60_000_000 * step as i64))
}

fn claim(place: usize, step: usize) -> (Key, Value) {
    const WORDS: [&str; 8] =
        ["tensor", "layer", "offset", "kernel", "cache", "stale", "lock", "retry"];
    let words: Vec<&str> =
        (0..25).map(|n| WORDS[(place * 31 + step * 17 + n * n * 7 + n) % 8]).collect();
    let value = Value::from([
        ("description", words.join(" ").into()),
        ("confidence", ((place * 7 + step * 13) as f64 % 1000.0 / 1000.0).into()),
        ("tags", vec!["one", "two", WORDS[step % 8]].into()),
    ]);
    (Key::new(Kind::Belief, format!("b{place:06}")), value)
}

#[inline(never)]
fn first(session: &Session) {
    let changes = (0..CLAIMS).map(|place| {
        let (key, value) = claim(place, 0);
        ClaimChange::put(key, value)
    });
    session.write(&act(0)).changes(changes).commit().expect("a revision");
}

fn changed(step: usize) -> Vec<ClaimChange> {
    (0..CHANGES)
        .map(|n| {
            let (key, value) = claim((step * 97 + n * 41) % CLAIMS, step);
            ClaimChange::put(key, value)
        })
        .collect()
}

#[inline(never)]
fn create(session: &Session, step: usize, changes: Vec<ClaimChange>) {
    let act = act(step);
    let checkpoint = NewCheckpoint::manual("step").tags(["bench"]);
    session.write(&act).changes(changes).checkpoint(checkpoint).commit().expect("a checkpoint");
}

#[inline(never)]
fn capture(session: &Session, step: usize, claims: &[(Key, Value)]) {
    let kinds = BTreeSet::from([Kind::Belief]);
    session.write(&act(step)).replace_kinds(kinds, claims).commit().expect("a capture");
}

#[inline(never)]
fn apply(store: &Store) {
    assert!(store.maintain(0).expect("maintenance"));
}

/// Materialises a state of which nothing is cached except what the diff and the lookup read.
#[inline(never)]
fn materialize_cold(session: &Session, moment: &ResolvedMoment) {
    assert_eq!(session.state(moment).expect("a state").claims().len(), CLAIMS);
}

/// Materialises the same state again, with warm caches.
#[inline(never)]
fn materialize_warm(session: &Session, moment: &ResolvedMoment) {
    assert_eq!(session.state(moment).expect("a state").claims().len(), CLAIMS);
}

#[inline(never)]
fn lookup(session: &Session, moment: &ResolvedMoment, key: &Key) {
    assert!(session.claim(moment, key).expect("an answer").is_some());
}

#[inline(never)]
fn diff_of_neighbours(session: &Session, from: &ResolvedMoment, to: &ResolvedMoment) {
    assert!(!session.changed_claims(from, to).expect("a diff").is_empty());
}

#[inline(never)]
fn diff_far(session: &Session, from: &ResolvedMoment, to: &ResolvedMoment) {
    assert!(!session.changed_claims(from, to).expect("a diff").is_empty());
}

fn main() {
    let store = Store::in_memory().expect("a store");
    let session = store.create_session(&act(0), NewSession::named("s")).expect("a session");
    first(&session);
    for step in 1..=STEPS {
        create(&session, step, changed(step));
    }
    apply(&store);
    let moments: Vec<ResolvedMoment> =
        (0..=STEPS).map(|step| session.at_time(act(step).now).expect("a moment")).collect();
    let middle = &moments[STEPS / 2];
    diff_of_neighbours(&session, &moments[STEPS / 2 - 1], middle);
    lookup(&session, middle, &Key::new(Kind::Belief, "b000042"));
    materialize_cold(&session, middle);
    materialize_warm(&session, middle);
    diff_far(&session, &moments[0], &moments[STEPS]);
    let claims: Vec<(Key, Value)> = (0..CLAIMS).map(|place| claim(place, STEPS + 1)).collect();
    capture(&session, STEPS + 1, &claims);
    capture(&session, STEPS + 2, &claims);
}
