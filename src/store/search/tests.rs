use super::*;
use crate::model::{Fact, FactOrigin, Key, Value};
use crate::store::{ClaimChange, NewCheckpoint, NewSession, Options, WriteContext};

fn act(second: i64) -> WriteContext {
    WriteContext::asked("test", at(second))
}

fn at(second: i64) -> Timestamp {
    Timestamp::parse_rfc3339("2026-01-01T10:00:00Z").unwrap().plus_micros(second * 1_000_000)
}

fn fact(second: i64, id: &str, text: &str) -> Fact {
    Fact {
        kind: Kind::Message,
        id: id.to_owned(),
        at: at(second),
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: at(second),
        value: Value::from([("text", text.into()), ("cwd", "/needle/in/a/folder".into())]),
    }
}

fn note(id: &str, text: &str) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), Value::from([("description", text.into())]))
}

fn search(store: &Store, text: &str) -> Vec<(String, Option<u64>, u64)> {
    let sessions: Vec<Session> = (0..store.sessions().unwrap().len())
        .map(|number| store.session_at(number as SessionNumber))
        .collect();
    let hits = store.search(&sessions, &SearchQuery::parse(text).unwrap(), &|_, _| None).unwrap();
    hits.hits.into_iter().map(|hit| (hit.id, hit.revision, hit.versions)).collect()
}

#[test]
fn words_are_found_with_the_revision_that_first_said_them() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.write(&act(1)).change(note("a", "nothing yet")).commit().unwrap();
    session.write(&act(2)).change(note("a", "the Needle is here")).commit().unwrap();
    session.write(&act(3)).change(note("a", "the needle is still here")).commit().unwrap();
    session.write(&act(4)).fact(fact(2, "m", "a message with a NEEDLE in it")).commit().unwrap();
    let named = NewCheckpoint::manual("found the needle").tags(["done"]);
    let made = session.write(&act(5)).checkpoint(named).commit().unwrap().checkpoint.unwrap();
    let id = made.id.to_string();
    assert_eq!(
        search(&store, "needle"),
        [(id.clone(), Some(made.sequence), 1), ("m".into(), Some(2), 1), ("a".into(), Some(2), 2)]
    );
    assert_eq!(search(&store, "\"needle is\" still"), [("a".into(), Some(3), 1)]);
    assert_eq!(search(&store, "needle done"), [(id, Some(made.sequence), 1)]);
    assert!(search(&store, "folder").is_empty(), "where it was said is not what was said");
}

#[test]
fn kinds_and_times_narrow_a_search_and_pages_follow_each_other() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for number in 0..7 {
        let text = format!("word {number}");
        session
            .write(&act(number))
            .fact(fact(number, &format!("m{number}"), &text))
            .commit()
            .unwrap();
    }
    session.write(&act(9)).change(note("n", "word")).commit().unwrap();
    let sessions = [session];
    let mut query = SearchQuery::parse("word").unwrap();
    query.kinds = [Kind::Message].into();
    (query.since, query.until, query.limit) = (Some(at(1)), Some(at(5)), 2);
    let mut seen = Vec::new();
    loop {
        let page = store.search(&sessions, &query, &|_, _| None).unwrap();
        assert_eq!(page.total, 5);
        seen.extend(page.hits.into_iter().map(|hit| hit.id));
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["m5", "m4", "m3", "m2", "m1"]);
    query.cursor = Some("nonsense".to_owned());
    assert!(store.search(&sessions, &query, &|_, _| None).is_err());
    assert!(SearchQuery::parse("  \"\" ").is_err());
}

#[test]
fn the_copy_is_private_follows_what_is_new_and_is_made_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.write(&act(1)).change(note("a", "first word")).commit().unwrap();
    assert_eq!(search(&store, "word").len(), 1);
    let file = std::fs::read_dir(path.join("search")).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path.join("search")), mode(&file)), (0o700, 0o600));
    let before = std::fs::read(&file).unwrap();
    session.write(&act(2)).fact(fact(2, "m", "second word")).commit().unwrap();
    store.maintain(0).unwrap();
    assert_eq!(search(&store, "word").len(), 2);
    let after = std::fs::read(&file).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    // A damaged, truncated or missing copy does not change the result.
    for spoiled in [after[..after.len() - 3].to_vec(), [&before[..20], b"xx"].concat(), Vec::new()]
    {
        std::fs::write(&file, spoiled).unwrap();
        assert_eq!(search(&store, "word").len(), 2);
    }
    std::fs::remove_dir_all(path.join("search")).unwrap();
    assert_eq!(search(&store, "word").len(), 2);
    // Undone facts are not found.
    session.undo(&act(3), None).unwrap();
    assert_eq!(search(&store, "second").len(), 0);
}

#[test]
fn a_snippet_shows_the_words_in_one_line() {
    let text = format!("{}the  \n Needle {}", "x ".repeat(100), "y ".repeat(100));
    let search = AhoCorasick::builder().ascii_case_insensitive(true).build(["needle"]).unwrap();
    let places = all_words(&search, 1, &text).unwrap();
    let (shown, found) = snippet(&text, &places);
    assert!(shown.contains("the Needle y") && shown.starts_with('…') && shown.ends_with('…'));
    assert_eq!(&shown[found[0].clone()], "Needle");
}

/// A DFA of a long word takes quadratic time to build: 43 s for 100,000 letters.
#[test]
fn a_long_word_is_searched_for_without_a_table_of_its_states() {
    let word = |letters: usize| vec!["ab".repeat(letters / 2)];
    assert_eq!(searching(&word(8)).unwrap().kind(), AhoCorasickKind::DFA);
    let (long, longer) = (searching(&word(10_000)).unwrap(), searching(&word(100_000)).unwrap());
    assert_eq!(longer.kind(), AhoCorasickKind::ContiguousNFA);
    assert!(longer.memory_usage() <= 12 * long.memory_usage());
    let text = "AB".repeat(50_010);
    let places = all_words(&longer, 1, &text).unwrap();
    assert_eq!(places.first(), Some(&(0..100_000)));
    assert!(all_words(&longer, 1, &text[..99_999]).is_none());
}
