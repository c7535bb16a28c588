//! For any history before and after it: a purged store equals one in which the replacement text was
//! written from the start.

use super::{assert_whole, in_files, resolve, time};
use crate::bundle::law::{same, step};
use crate::fault::law;
use forge_store::model::{Key, Kind};
use forge_store::redact::KnownSecrets;
use forge_store::store::{CheckpointFilter, NewSession, Options, Store, WriteContext};
use proptest::prelude::*;
use std::fmt::Write as _;

/// The secret in all texts: with a character that JSON escapes, and characters that it does not.
const SECRET: &str = "Zx9Kq2/Lm7-Pv4";

/// The beginning of a text, and its length.
fn short(what: &impl std::fmt::Debug) -> String {
    let text = format!("{what:?}");
    format!("{} ... {}", text.chars().take(200).collect::<String>(), text.len())
}

/// What can be read from a session and does not depend on random data.
fn content_of(store: &Store) -> String {
    let session = store.session("s").unwrap();
    let mut text = String::new();
    let named = regex::Regex::new("[0-9a-f]{8,}").unwrap();
    for number in 1..=session.summary().unwrap().last_sequence {
        match session.at_sequence(number) {
            Ok(moment) => {
                session.check_digest(&moment).unwrap();
                let state = session.state(&moment).unwrap();
                let entries: Vec<_> = state.claims().entries().map(Result::unwrap).collect();
                writeln!(text, "#{number}: {entries:?}").unwrap();
                if let Ok(changes) = session.changes_of(number) {
                    writeln!(text, "#{number} changed {}", short(&changes)).unwrap();
                }
            }
            Err(error) => writeln!(text, "#{number}: {error}").unwrap(),
        }
    }
    for one in session.checkpoints(&CheckpointFilter::default()).unwrap() {
        writeln!(text, "{} {} {:?} {:?}", one.sequence, one.message, one.tags, one.revision)
            .unwrap();
    }
    let head = session.head().unwrap();
    let state = session.state(&head).unwrap();
    for known in state.facts_of(Kind::Command).unwrap() {
        writeln!(text, "{known:?}").unwrap();
    }
    for id in 0..10 {
        let history = session.history(&head, &Key::new(Kind::Note, format!("N{id}")));
        for one in history.unwrap_or_default() {
            writeln!(text, "N{id} #{} {}", one.revision.sequence, short(&one.change)).unwrap();
        }
    }
    for branch in session.branches(&head).unwrap() {
        let row = (branch.name, branch.base, branch.status, branch.revision, branch.current);
        writeln!(text, "{row:?}").unwrap();
    }
    // The purge itself is visible.
    for one in session.operations(usize::MAX).unwrap().iter().filter(|one| one.verb != "purge") {
        let mut effects: Vec<_> =
            one.effects.iter().map(|effect| named.replace_all(effect, "ID")).collect();
        // Checkpoints that are dropped together are ordered by their ids.
        effects.sort();
        let took_back = (one.takes_back.is_some(), one.taken_back);
        writeln!(text, "{} {} {effects:?} {took_back:?}", one.time, one.verb).unwrap();
    }
    let bytes = session.bookmark("log").unwrap().map_or(0, |bookmark| bookmark.bytes);
    let kept = session.source_bytes("log", 0, bytes).unwrap_or_default();
    writeln!(text, "{}", String::from_utf8_lossy(&kept)).unwrap();
    text
}

/// A text that was cut within the first bytes of the secret is not a secret, and stays.
fn cut(content: String, mask: &str) -> String {
    (1..8).rev().fold(content, |content, length| {
        let [begin, end] = [SECRET, mask]
            .map(|text| (format!("of a {}", &text[..length]), format!("{}\")", &text[..length])));
        content.replace(&begin.0, &end.0).replace(&begin.1, &end.1)
    })
}

fn begin(store: &Store) {
    let act = WriteContext::asked("begin", crate::bundle::law::time(0));
    store.create_session(&act, NewSession::named("s")).unwrap();
}

/// Random histories: the variable sets their number, and the printed seed repeats them.
fn config() -> ProptestConfig {
    let config = law("a purged store is as if it had been written so", "FORGE_PURGE_CASES", 24);
    ProptestConfig { max_shrink_iters: 200, ..config }
}

fn holds(steps: &[(u8, u8)], later: &[(u8, u8)]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let known = KnownSecrets::new([SECRET]).unwrap();
    let mask = String::from_utf8(known.mask(SECRET.as_bytes()).unwrap().0).unwrap();
    let (store, model) =
        (Store::create(&path, Options::default()).unwrap(), Store::in_memory().unwrap());
    let mut minute = 0;
    for (store, word) in [(&store, SECRET), (&model, mask.as_str())] {
        begin(store);
        let session = store.session("s").unwrap();
        for (at, one) in (1..).zip(steps) {
            minute = at;
            step(store, &session, at, *one, word);
        }
    }
    let act = WriteContext::asked("purge", time(1000));
    let purged = store.purge(&act, &known, None, &resolve, &|_| ()).unwrap();
    assert!(purged.is_done(), "{purged:#?}");
    assert_eq!(in_files(&path, SECRET), 0);
    assert!(store.purge_preview(&act, &known, &resolve, &|_| ()).unwrap().places.is_empty());
    assert_whole(&path);
    same(&cut(content_of(&store), &mask), &content_of(&model), "after the purge");
    let session = store.session("s").unwrap();
    let modelled = model.session("s").unwrap();
    for (at, one) in (minute + 1..).zip(later) {
        step(&store, &session, at, *one, "and ");
        step(&model, &modelled, at, *one, "and ");
    }
    assert_eq!(in_files(&path, SECRET), 0);
    assert_whole(&path);
    same(&cut(content_of(&store), &mask), &content_of(&model), "after what came later");
    let reopened = Store::open(&path, Options::default()).unwrap();
    same(&cut(content_of(&reopened), &mask), &content_of(&model), "opened again");
    // As a bundle it is equal in another store.
    let other = Store::in_memory().unwrap();
    let bytes = crate::bundle::whole(&store);
    other.import_bundle(&act, &mut std::io::Cursor::new(bytes), None).unwrap();
    same(&cut(content_of(&other), &mask), &content_of(&model), "from a bundle");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_purged_store_equals_one_with_the_replacement_text(
        steps in prop::collection::vec((0_u8..24, any::<u8>()), 1..40),
        later in prop::collection::vec((0_u8..24, any::<u8>()), 1..25),
    ) {
        holds(&steps, &later);
    }
}

/// Regression: a part was taken and undone, and another part was taken in its place, but readers
/// still got the first one.
#[test]
fn a_part_of_a_source_that_replaces_an_undone_part_is_read() {
    holds(&[(16, 0), (0, 0), (16, 20), (9, 0)], &[(0, 0), (16, 1), (11, 0)]);
}

#[test]
fn pruning_after_a_purge_gives_the_same_result_as_without_the_purge() {
    let mut steps = vec![(0, 0); 14];
    steps.extend([(0, 221), (4, 151), (3, 46)]);
    let later = [
        (9, 164),
        (18, 155),
        (9, 84),
        (8, 77),
        (17, 252),
        (9, 97),
        (8, 32),
        (18, 200),
        (9, 207),
        (4, 15),
        (6, 138),
        (11, 231),
        (10, 202),
        (13, 2),
        (8, 88),
        (6, 246),
        (7, 127),
        (3, 227),
        (4, 92),
        (10, 88),
        (1, 12),
    ];
    holds(&steps, &later);
}
