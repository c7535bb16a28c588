use super::catalogue::{
    BlockPlace, Catalogue, CatalogueChange, ExaminedJournal, GroupPlace, SessionProgress,
};
use super::copy_seal::CopySeal;
use super::text_block::{BlockContent, TextEntry, TextSource};
use super::*;
use crate::backend::Snapshot as _;
use crate::model::{Fact, FactOrigin, Key, OperationId, RetentionPolicy, Value};
use crate::store::{ClaimChange, NewCheckpoint, NewSession, Options, WriteContext};
use proptest::prelude::*;
use std::collections::BTreeMap;

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
fn a_search_result_has_the_revision_that_first_contained_the_words() {
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
    assert!(search(&store, "folder").is_empty(), "the working directory is not searched");
}

/// Regression: a word was found only in the case in which its letters outside ASCII were written.
#[test]
fn a_word_is_found_in_lower_and_upper_case_in_every_alphabet() {
    let place = StoredCopy::new();
    let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
    let texts =
        ["Überlauf im Puffer", "überlauf", "ÜBERLAUF", "Кеш не сбрасывается", "КЕШ", "kein"];
    for (number, text) in (0..).zip(texts) {
        let made = fact(number, &format!("m{number}"), text);
        session.write(&act(number)).fact(made).commit().unwrap();
    }
    // The first search makes the copy, the second one reads it.
    for _ in 0..2 {
        assert_eq!(place.all("überlauf"), ["m2", "m1", "m0"]);
        assert_eq!(place.all("ÜBERLAUF"), ["m2", "m1", "m0"]);
        assert_eq!(place.all("кеш"), ["m4", "m3"]);
        assert_eq!(place.all("сбрас Кеш"), ["m3"]);
        assert_eq!(place.all("überlauf кеш"), [""; 0]);
    }
}

/// Regression: a phrase with a line break was found over the end of a field and the beginning of the
/// next one.
#[test]
fn a_phrase_is_found_in_one_field() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let value = Value::from([("first", "the end".into()), ("second", "begins\nhere".into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, "a"), value);
    session.write(&act(1)).change(change).commit().unwrap();
    let named = NewCheckpoint::manual("all of it").tags(["done"]);
    session.write(&act(2)).checkpoint(named).commit().unwrap();
    assert_eq!(search(&store, "end begins").len(), 1);
    assert_eq!(search(&store, "\"begins\nhere\"").len(), 1);
    assert!(search(&store, "\"end\nbegins\"").is_empty());
    assert_eq!(search(&store, "it done").len(), 1);
    assert!(search(&store, "\"it\ndone\"").is_empty());
}

/// Claims are read in steps of 500 numbers. Regression: if a pruning had folded all numbers of a
/// step, reading ended there, and later claims were not found.
#[test]
fn a_search_finds_claims_after_a_long_fold() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for second in 1..=1100 {
        session.write(&act(second)).change(note("a", &format!("word{second}"))).commit().unwrap();
    }
    let rules = RetentionPolicy { manual: false, revisions: 0, ..RetentionPolicy::none() };
    assert_eq!(session.prune(&act(1200), &rules).unwrap().folded_revisions(), 1099);
    assert_eq!(search(&store, "word1100"), [("a".into(), Some(1100), 1)]);
}

#[test]
fn a_search_can_be_limited_to_kinds_and_times_and_read_in_pages() {
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
        assert_eq!(page.total, Some(5));
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

/// A store in a folder, and the files of its copy of texts.
struct StoredCopy {
    folder: tempfile::TempDir,
    store: Store,
}

impl StoredCopy {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
        Self { folder, store }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("store").join("search")
    }

    /// Opens the store again, as another process would.
    fn reopen(&mut self) {
        let path = self.folder.path().join("store");
        self.store = Store::open(&path, Options::default()).unwrap();
    }

    /// Returns the content of every file but the lock, by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(self.path()).into_iter().flatten().map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        });
        files.filter(|(name, _)| name != "lock").collect()
    }

    fn copy(&self) -> TextCopy {
        TextCopy::open(&self.store).unwrap().unwrap()
    }

    fn all(&self, text: &str) -> Vec<String> {
        ids(&self.store, &SearchQuery::parse(text).unwrap())
    }
}

/// Returns the ids of all hits in all sessions, read page by page.
fn ids(store: &Store, query: &SearchQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut found = Vec::new();
    loop {
        let page = store.search_all(&query, &|_, _| None).unwrap();
        found.extend(page.hits.into_iter().map(|hit| hit.id));
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            return found;
        }
    }
}

/// Records texts of about 700 bytes in new sessions, and returns the sessions. Text `n` has the
/// words `common`, `ofN` and `blockN/`, where N is `n`, and `seventh` if `n` is divisible by 7.
fn record_texts(store: &Store, sessions: usize, texts: i64) -> Vec<Session> {
    let sessions: Vec<Session> = (0..sessions)
        .map(|number| {
            store.create_session(&act(0), NewSession::named(format!("s{number}"))).unwrap()
        })
        .collect();
    for number in 0..texts {
        let noise = blake3::hash(&number.to_le_bytes()).to_hex().repeat(10);
        let seventh = if number % 7 == 0 { "seventh" } else { "" };
        let text = format!("common of{number} block{number}/ {seventh} {noise}");
        let session = &sessions[number as usize * sessions.len() / texts as usize];
        let made = fact(number, &format!("m{number}"), &text);
        session.write(&act(number)).fact(made).commit().unwrap();
    }
    sessions
}

#[test]
fn the_stored_search_copy_is_private_and_follows_new_writes() {
    use std::os::unix::fs::PermissionsExt;
    let mut place = StoredCopy::new();
    let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.write(&act(1)).change(note("a", "first word")).commit().unwrap();
    assert_eq!(place.all("word"), ["a"]);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.path()), 0o700);
    for entry in std::fs::read_dir(place.path()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    let before = place.files();
    assert_eq!(place.all("first"), ["a"]);
    assert!(place.files() == before, "nothing was new");
    session.write(&act(2)).fact(fact(2, "m", "second word")).commit().unwrap();
    place.store.maintain(0).unwrap();
    place.reopen();
    assert_eq!(place.all("word"), ["m", "a"]);
    let session = place.store.session("s").unwrap();
    // Undone facts are not found. After a redo they are found again.
    session.undo(&act(3), None).unwrap();
    assert_eq!(place.all("word"), ["a"]);
    session.redo(&act(4)).unwrap();
    assert_eq!(place.all("word"), ["m", "a"]);
    // Many small additions leave few blocks.
    for number in 0..40 {
        session.write(&act(5)).change(note(&format!("n{number}"), "a word")).commit().unwrap();
        assert_eq!(place.all("word").len(), 3 + number);
    }
    assert!(place.copy().catalogue.blocks.len() <= 13);
    let texts: u64 = place.copy().catalogue.blocks.values().map(|one| one.parts[0].texts).sum();
    assert_eq!(texts, 42, "each text is there once");
}

#[test]
fn a_search_finds_a_checkpoint_only_by_its_present_message() {
    let place = StoredCopy::new();
    let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
    let keyed = |message: &str| NewCheckpoint {
        key: Some("k".to_owned()),
        ..NewCheckpoint::manual(message)
    };
    session.write(&act(1)).checkpoint(keyed("before it")).commit().unwrap();
    assert_eq!(place.all("before").len(), 1);
    session.write(&act(1)).checkpoint(keyed("after it")).commit().unwrap();
    let say = session.checkpoints(&Default::default()).unwrap();
    let now: Vec<_> = say.iter().map(|one| one.message.as_str()).collect();
    for word in ["before", "after"] {
        let expected = now.iter().filter(|message| message.contains(word)).count();
        assert_eq!(place.all(word).len(), expected, "{word}: {now:?}");
    }
    session.undo(&act(3), None).unwrap();
    let left = session.checkpoints(&Default::default()).unwrap().len();
    assert_eq!(place.all("it").len(), left);
}

#[test]
fn many_blocks_are_grouped_and_only_those_with_the_words_are_read() {
    let place = StoredCopy::new();
    record_texts(&place.store, 9, 120);
    assert_eq!(place.all("of77 block77"), ["m77"]);
    let copy = place.copy();
    let sizes: Vec<usize> = copy.catalogue.groups.values().map(|one| one.blocks.len()).collect();
    assert!(
        copy.catalogue.blocks.len() > 24 && sizes.contains(&8) && sizes.contains(&16),
        "{sizes:?}"
    );
    let candidates = |word: &str| {
        let mut damaged = DamagedParts::default();
        let found = copy.candidates(&grams::buckets_of(&[word.to_owned()]), &mut damaged);
        assert!(damaged.is_empty());
        found.len()
    };
    let ungrouped = copy.ungrouped().len();
    assert!(ungrouped < 20 && candidates("block55/") <= 1 + ungrouped);
    assert_eq!(candidates("common"), copy.catalogue.blocks.len());
    // Pages follow each other, whether or not all hits are counted.
    let mut query = SearchQuery::parse("common").unwrap();
    query.limit = 7;
    let first = place.store.search_all(&query, &|_, _| None).unwrap();
    assert_eq!((first.total, first.hits.len(), first.texts), (None, 7, 120));
    let all: Vec<String> = (0..120).rev().map(|number| format!("m{number}")).collect();
    assert_eq!(ids(&place.store, &query), all);
    assert_eq!(place.all("seventh").len(), 18);
    query.kinds = [Kind::Note].into();
    assert!(ids(&place.store, &query).is_empty());
    query.kinds.clear();
    (query.since, query.until) = (Some(at(50)), Some(at(60)));
    assert_eq!(ids(&place.store, &query).len(), 11);
}

#[test]
fn a_damaged_search_copy_changes_no_result_and_is_restored() {
    let mut place = StoredCopy::new();
    record_texts(&place.store, 5, 80);
    let expected = place.all("seventh");
    assert_eq!(expected.len(), 12);
    place.store.maintain(0).unwrap();
    for name in place.files().into_keys() {
        for damage in ["removed", "cut", "wrong"] {
            let path = place.path().join(&name);
            let Ok(mut bytes) = std::fs::read(&path) else { continue };
            match damage {
                "removed" => std::fs::remove_file(&path).unwrap(),
                "cut" => std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
                _ => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x20;
                    std::fs::write(&path, bytes).unwrap();
                }
            }
            place.reopen();
            for word in ["seventh", "SEVEN", "common seventh"] {
                assert_eq!(place.all(word), expected, "{name} {damage}");
            }
            assert_eq!(place.all("common").len(), 80, "{name} {damage}");
            let copy = place.copy();
            assert!((0..5).all(|number| !copy.catalogue.lacks(number)), "{name} {damage}");
            let texts = copy.catalogue.blocks.values().flat_map(|one| &one.parts);
            assert_eq!(texts.map(|part| part.texts).sum::<u64>(), 80, "{name} {damage}");
        }
    }
    // A read-only store gives the same results, and writes nothing.
    std::fs::remove_file(place.path().join("catalogue")).unwrap();
    let path = place.folder.path().join("store");
    let options = Options { read_only: true, ..Options::default() };
    place.store = Store::open(&path, options).unwrap();
    assert_eq!(place.all("seventh"), expected);
    assert!(!place.path().join("catalogue").exists());
    place.reopen();
    std::fs::remove_dir_all(place.path()).unwrap();
    assert_eq!(place.all("seventh"), expected);
}

#[test]
fn a_copy_of_another_history_is_not_used() {
    let place = StoredCopy::new();
    record_texts(&place.store, 2, 20);
    assert_eq!(place.all("seventh").len(), 3);
    let other = StoredCopy::new();
    let session = other.store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.write(&act(1)).change(note("a", "the only word")).commit().unwrap();
    std::fs::create_dir(other.path()).unwrap();
    for (name, bytes) in place.files() {
        std::fs::write(other.path().join(name), bytes).unwrap();
    }
    assert!(other.all("seventh").is_empty());
    assert_eq!(other.all("only"), ["a"]);
    let texts = other.copy().catalogue.blocks.values().flat_map(|one| &one.parts).count();
    assert_eq!(texts, 1);
}

/// Regression: the first writer removed the number of purges, so every search removed the copy and
/// copied all texts again.
#[test]
fn a_copy_that_was_begun_after_a_purge_is_kept() {
    let place = StoredCopy::new();
    record_texts(&place.store, 2, 20);
    // A search in a database does this first.
    text_copy::forget_purged(&place.path(), 1).unwrap();
    assert_eq!(place.all("seventh").len(), 3);
    let before = place.files();
    text_copy::forget_purged(&place.path(), 1).unwrap();
    assert_eq!(place.all("seventh").len(), 3);
    assert!(place.files() == before, "the texts were copied again");
    text_copy::forget_purged(&place.path(), 2).unwrap();
    assert_eq!(place.files().into_keys().collect::<Vec<_>>(), ["purges"]);
}

#[test]
fn forgotten_sessions_leave_the_files_and_others_are_found() {
    let place = StoredCopy::new();
    let sessions = record_texts(&place.store, 6, 60);
    assert_eq!(place.all("common").len(), 60);
    let plain = |number: SessionNumber| {
        let copy = place.copy();
        let blocks = copy.catalogue.blocks.values();
        let content = blocks.filter_map(|block| copy.content_of(block));
        content.filter(|content| content.parts.contains_key(&number)).count()
    };
    assert!(plain(2) > 0);
    place.store.forget_text_copies([sessions[2].number]).unwrap();
    assert_eq!(plain(2), 0);
    let read =
        |copy: &TextCopy| copy.catalogue.blocks.values().all(|one| copy.content_of(one).is_some());
    assert!(read(&place.copy()));
    assert_eq!(place.all("common").len(), 60, "the texts are copied again");
    // The same while another search holds the lock.
    let lock = std::fs::File::open(place.path().join("lock")).unwrap();
    lock.lock().unwrap();
    place.copy().wipe(&[3].into()).unwrap();
    assert_eq!(plain(3), 0);
    assert_eq!(place.all("common").len(), 60);
    drop(lock);
    assert_eq!(place.all("common").len(), 60);
    assert!(read(&place.copy()) && plain(3) > 0);
}

#[test]
fn a_search_after_one_write_reads_the_changed_session_only() {
    let place = StoredCopy::new();
    let sessions = record_texts(&place.store, 8, 16);
    assert_eq!(place.all("common").len(), 16);
    place.store.maintain(0).unwrap();
    sessions[5].write(&act(90)).change(note("new", "common")).commit().unwrap();
    let view = place.store.engine.follower.view().unwrap();
    let scope =
        SearchScope { store: &place.store, view: &view, sessions: None, resolve: &|_, _| None };
    let current = scope.current_copy(&DamagedParts::default(), false).unwrap();
    assert_eq!(current.lacking, [5].into());
    // A search of another session notes that session 5 has changed, and does not copy it.
    let other = SearchQuery::parse("common").unwrap();
    sessions[1].write(&act(91)).change(note("too", "common")).commit().unwrap();
    place.store.search(&sessions[1..2], &other, &|_, _| None).unwrap();
    let catalogue = place.copy().catalogue;
    assert_eq!(
        catalogue.examined.unwrap().position,
        place.store.engine.follower.view().unwrap().position()
    );
    assert!(catalogue.lacks(5) && !catalogue.lacks(1));
    assert_eq!(place.all("common").len(), 18);
    assert!(!place.copy().catalogue.lacks(5));
}

#[test]
fn a_query_that_is_too_long_says_how_long_it_may_be() {
    let many: String = (0..40).map(|number| format!("w{number} ")).collect();
    let message = SearchQuery::parse(&many).unwrap_err().to_string();
    assert!(message.contains("at most 32 words") && message.contains("40"), "{message}");
    let long = "x".repeat(MAX_QUERY_BYTES + 1);
    let message = SearchQuery::parse(&long).unwrap_err().to_string();
    assert!(message.contains("131072 bytes") && message.contains("131073"), "{message}");
    assert!(SearchQuery::parse(&long[1..]).is_ok());
}

/// Builds texts of few different letters, so that words occur in parts, across words and not at all.
fn words() -> impl Strategy<Value = String> {
    let letters =
        prop::sample::select(vec!["a", "B", "b", "ß", "é", "É", "/", "1", ".rs", "漢", " ", "\n"]);
    prop::collection::vec(letters, 1..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A search finds the same texts as a scan of all texts.
    #[test]
    fn a_search_finds_what_a_scan_finds(
        texts in prop::collection::vec(words(), 1..50),
        queries in prop::collection::vec(prop::collection::vec(words(), 1..4), 1..12),
        cuts in prop::collection::vec((0_usize..50, 0_usize..60, 1_usize..6), 6),
    ) {
        let place = StoredCopy::new();
        let noise = "0".repeat(400);
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        let mut queries: Vec<String> = queries
            .iter()
            .map(|words| words.iter().map(|word| format!("\"{word}\" ")).collect())
            .collect();
        // Parts of the texts themselves, of one to five characters.
        queries.extend(cuts.iter().map(|(text, from, length)| {
            let text = &texts[text % texts.len()];
            format!("\"{}\"", text.chars().skip(*from).take(*length).collect::<String>())
        }));
        for (number, text) in texts.iter().enumerate() {
            let made = fact(number as i64, &format!("m{number}"), &format!("{text}{noise}"));
            session.write(&act(number as i64)).fact(made).commit().unwrap();
            if number == texts.len() / 2 {
                place.all("0");
            }
        }
        for text in &queries {
            let Ok(mut query) = SearchQuery::parse(text) else { continue };
            query.limit = 5;
            let has = |text: &str| {
                let text = text.to_ascii_lowercase();
                query.words.iter().all(|word| {
                    let spelled = text_matcher::spellings(word);
                    spelled.iter().any(|one| text.contains(&one.to_ascii_lowercase()))
                })
            };
            let expected: Vec<String> = (0..texts.len())
                .rev()
                .filter(|number| has(&format!("{}{noise}", texts[*number])))
                .map(|number| format!("m{number}"))
                .collect();
            prop_assert_eq!(ids(&place.store, &query), expected, "{}", text);
        }
    }
}

/// Returns golden bytes. With `FORGE_WRITE_GOLDEN=1` a missing file is created from `now`.
fn golden(name: &str, now: &[u8]) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    if !std::path::Path::new(&path).exists() && std::env::var_os("FORGE_WRITE_GOLDEN").is_some() {
        let lines = now.chunks(32).map(|line| format!("{}\n", crate::model::hex(line)));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// How well zstd compresses is not part of the format, so the golden bytes are only read.
#[test]
fn the_files_of_the_copy_have_the_golden_format() {
    let seal = CopySeal::new(None, None);
    let mut content = BlockContent::default();
    let operation = OperationId::from_bytes([7; 16]);
    let entry = |kind, id: &str, source| TextEntry {
        kind,
        id: id.to_owned(),
        at: at(3),
        sequence: Some(9),
        source,
        length: 0,
    };
    let mut add = |session, entry: TextEntry, text: &str| {
        content.parts.entry(session).or_default().add(entry, text);
    };
    let fact = TextSource::Fact { row: 5, operation };
    add(2, TextEntry { sequence: None, ..entry(Some(Kind::Message), "m", fact) }, "a Message");
    add(2, entry(None, "c0ffee", TextSource::Checkpoint { state: 6 }), "a checkpoint");
    add(70_000, entry(Some(Kind::Note), "N1", TextSource::Claim), "größe");
    let bytes = golden("search-block", &content.encode(11, &seal).unwrap());
    assert_eq!(BlockContent::decode(11, &bytes, &seal).unwrap(), content);
    assert!(BlockContent::decode(12, &bytes, &seal).is_none());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue");
    let mut catalogue = Catalogue::default();
    catalogue.last_number = 13;
    let file = std::fs::File::create(&path).unwrap();
    let (length, parts) = (bytes.len() as u64, content.summary());
    let block = BlockPlace { number: 11, file: 10, offset: 0, length, bytes: 27, parts };
    let progress =
        SessionProgress { session: 2, facts: 1, pages: 1, sequence: 10, checkpoints: vec![6] };
    let change = CatalogueChange {
        examined: Some(ExaminedJournal::new(4096, Some([3; 32]))),
        blocks: vec![block.clone()],
        groups: vec![GroupPlace { number: 12, blocks: vec![11] }],
        sessions: vec![progress.clone(), SessionProgress { session: 70_000, ..progress.clone() }],
        ..CatalogueChange::default()
    };
    catalogue.append(&file, change, &seal).unwrap();
    let change = CatalogueChange {
        removed: vec![99],
        incomplete: vec![70_000],
        stale: vec![2],
        ..CatalogueChange::default()
    };
    catalogue.append(&file, change, &seal).unwrap();
    let bytes = golden("search-catalogue", &std::fs::read(&path).unwrap());
    std::fs::write(&path, &bytes).unwrap();
    let read = Catalogue::read(&path, &seal).unwrap();
    assert_eq!((read.last_number, read.examined.unwrap().position), (13, 4096));
    assert_eq!(read.blocks.values().collect::<Vec<_>>(), [&block]);
    assert_eq!(read.groups[&12].blocks, [11]);
    assert_eq!(read.sessions.values().collect::<Vec<_>>(), [&progress]);
    assert!(read.lacks(2) && read.lacks(70_000));

    let words = ["a", "größe", "zz"].map(str::to_owned);
    let buckets = grams::buckets_of(&words);
    assert_eq!(buckets, golden_buckets());
}

fn golden_buckets() -> Vec<u32> {
    let grams = [
        (1_u32, 0x61),
        (2, 0x7a7a),
        (4, 0x6772_c3b6),
        (4, 0x72c3_b6c3),
        (4, 0xc3b6_c39f),
        (4, 0xb6c3_9f65),
    ];
    let bucket = |(length, gram): (u32, u32)| (gram ^ length << 24).wrapping_mul(0x9e37_79b1) >> 12;
    let buckets: BTreeSet<u32> = grams.into_iter().map(bucket).collect();
    buckets.into_iter().collect()
}
