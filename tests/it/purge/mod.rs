//! Purging: a secret is removed from every place that can contain it, and everything else is
//! unchanged.

#![allow(clippy::print_stdout, reason = "a child process reports to its test")]

mod kill;
mod law;

use forge_store::backend::spool::folder_in;
use forge_store::error::Error;
use forge_store::model::{
    BranchMetadata, Fact, FactOrigin, Key, Kind, ObjectId, RetentionPolicy, TextRef, Timestamp,
    Value,
};
use forge_store::redact::{KnownSecrets, PartEnding, TextForm};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, PurgeKind, PurgeReport,
    SearchQuery, Session, SourceChunk, Store, VerifyDepth, VerifyOutcome, WriteContext,
};
use forge_testkit::files::files_below;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SECRET: &str = "s3cr3t-Zx9Kq2Lm7Pv4";
const MASK: &str = "purgedxxxxxxxxxxxxx";

fn time(minute: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000)
}

fn act(minute: i64) -> WriteContext {
    WriteContext::asked("test", time(minute))
}

fn known() -> KnownSecrets {
    KnownSecrets::new([SECRET]).unwrap()
}

/// Resolves a text in a document by its pointer.
fn resolve(document: &[u8], pointer: &str) -> Option<String> {
    let document: serde_json::Value = serde_json::from_slice(document).ok()?;
    document.pointer(pointer)?.as_str().map(str::to_owned)
}

fn purge(store: &Store, minute: i64) -> PurgeReport {
    try_purge(store, minute).unwrap()
}

fn try_purge(store: &Store, minute: i64) -> Result<PurgeReport, Error> {
    store.purge(&act(minute), &known(), Some("it leaked"), &resolve, &|_| ())
}

fn value(text: &str) -> Value {
    Value::from([("description", text.into()), ("source", "test".into())])
}

fn note(session: &Session, minute: i64, id: &str, text: &str) -> u64 {
    let change = ClaimChange::put(Key::new(Kind::Note, id), value(text));
    session.write(&act(minute)).change(change).commit().unwrap().revision.unwrap().0
}

fn fact(minute: i64, id: &str, value: Value) -> Fact {
    let (at, recorded_at) = (time(minute), time(minute));
    let (kind, origin) = (Kind::Command, FactOrigin::Recorded);
    Fact { kind, id: id.to_owned(), at, origin, place: 0, recorded_at, value }
}

/// Lines of a transcript. Some contain the secret, in JSON and in JSON inside JSON, and in a long
/// text of a fact.
fn lines(from: usize, to: usize) -> String {
    let line = |n: usize| {
        let inner = json!({ "said": format!("the key is {SECRET}"), "n": n }).to_string();
        let long = format!("{n} {SECRET} and much more ").repeat(60);
        format!("{}\n", json!({ "inner": inner, "text": long, "plain": format!("line {n}") }))
    };
    (from..to).map(line).collect()
}

/// Takes the next part of the transcript, with a fact whose text is in its first line.
fn take(store: &Store, session: &Session, minute: i64, part: &str) {
    let bookmark = session.bookmark(SOURCE).unwrap().unwrap_or_default();
    let (begin, end) = (bookmark.open_block(), bookmark.bytes);
    let open =
        if end == 0 { vec![] } else { session.source_bytes(SOURCE, begin, end - begin).unwrap() };
    let mut at = end;
    let mut facts = Vec::new();
    for line in part.split_inclusive('\n') {
        if let Some(text) = resolve(line.as_bytes(), "/text").filter(|_| facts.is_empty()) {
            let hash = *blake3::hash(text.as_bytes()).as_bytes();
            let reference = TextRef {
                preview: text[..30].to_owned(),
                bytes: text.len() as u64,
                hash: ObjectId::from_bytes(hash),
                place: Some((at, line.len() as u64)),
                pointer: "/text".to_owned(),
            };
            let fields = [("command", "make".into()), ("stdout_preview", reference.into_value())];
            facts.push(fact(minute, &format!("t{minute}"), Value::from(fields)));
        }
        at += line.len() as u64;
    }
    let taken = SourceChunk {
        bookmark,
        open: &open,
        bytes: store.redact_source(part.as_bytes(), TextForm::Json, PartEnding::End),
        lines: 1,
        carry: format!("{{\"last\":\"{SECRET}\"}}").into_bytes(),
        facts,
        keep: true,
        ..SourceChunk::default()
    };
    session.import_chunk(&act(minute), store.new_operation().unwrap(), SOURCE, taken).unwrap();
}

const SOURCE: &str = "/home/me/s3cr3t-Zx9Kq2Lm7Pv4/log.jsonl";

/// A store with the secret in every place that a verb can write to.
fn planted(path: &Path, options: Options) -> Store {
    let store = Store::create(path, options).unwrap();
    let new = NewSession {
        agent: Some(format!("agent {SECRET}")),
        ..NewSession::named(format!("s {SECRET}"))
    };
    let session = store.create_session(&act(0), new).unwrap();
    // Claims: small, large, a field's name, an id that another claim refers to; then replaced by
    // other values.
    note(&session, 1, "small", &format!("the key is {SECRET}, and so on"));
    note(&session, 2, "large", &format!("{SECRET} ").repeat(900));
    note(&session, 3, "small", "no secret any more");
    let odd = Value::Map(
        [("description".to_owned(), "d".into()), (SECRET.to_owned(), 1_i64.into())].into(),
    );
    session
        .write(&act(4))
        .change(ClaimChange::put(Key::new(Kind::Note, "field"), odd))
        .commit()
        .unwrap();
    let id = format!("h-{SECRET}");
    session
        .write(&act(5))
        .change(ClaimChange::add(Key::new(Kind::Hypothesis, &id), value("an id")))
        .change(ClaimChange::add(
            Key::new(Kind::Evidence, "e"),
            Value::from([
                ("description", "for it".into()),
                ("hypothesis_id", id.as_str().into()),
                ("supports", true.into()),
            ]),
        ))
        .commit()
        .unwrap();
    // A preview that was cut within the secret.
    note(&session, 6, "cut", &format!("and the key is {}", &SECRET[..12]));
    note(&session, 7, "cut off", &format!("and the key is {}...", &SECRET[..12]));
    // Facts: in a field and in a long text, which is a separate object; and the verb that recorded
    // them.
    let context = WriteContext::asked(format!("note {SECRET}"), time(8));
    let mut write = session.write(&context);
    let text = write.text(&format!("{SECRET} was printed ").repeat(300));
    let message = Value::from([
        ("command", format!("login {SECRET}").as_str().into()),
        ("stdout_preview", text),
    ]);
    write
        .fact(fact(8, &format!("f {SECRET}"), message))
        .change(ClaimChange::put(Key::new(Kind::Note, "verb"), value("by a verb")))
        .commit()
        .unwrap();
    // Checkpoints: message, body, tag, key; then changed, so that the old content is kept for undo.
    let wanted = NewCheckpoint {
        body: Value::from([("said", SECRET.into())]),
        key: Some(format!("event {SECRET}")),
        ..NewCheckpoint::manual(format!("with {SECRET}"))
    };
    let made = session.write(&act(9)).checkpoint(wanted).commit().unwrap().checkpoint.unwrap();
    session.tag(&act(10), &made.id, &[SECRET.to_owned()], &[]).unwrap();
    session.tag(&act(11), &made.id, &[], &[SECRET.to_owned()]).unwrap();
    // A branch: its name and its description, which are then changed.
    let metadata =
        BranchMetadata { approach: Some(format!("try {SECRET}")), ..BranchMetadata::default() };
    session.create_branch(&act(12), &format!("b-{SECRET}"), None, metadata).unwrap();
    session
        .update_branch(&act(13), &format!("b-{SECRET}"), |_, new| {
            new.approach = Some("another".to_owned());
        })
        .unwrap();
    // A transcript that grew: the secret also crosses the end of the first part.
    let whole = lines(0, 40);
    let middle = whole.find(SECRET).unwrap() + 9;
    let cut = whole[..middle].len();
    take(&store, &session, 14, &whole[..cut]);
    take(&store, &session, 15, &whole[cut..]);
    take(&store, &session, 16, &lines(40, 90));
    // Folded revisions, which undo can restore.
    for minute in 20..26 {
        note(&session, minute, "folded", &format!("{minute} {SECRET}"));
    }
    let bare = RetentionPolicy {
        manual: false,
        significant: false,
        revisions: 0,
        ..RetentionPolicy::none()
    };
    session.prune(&act(27), &bare).unwrap();
    note(&session, 28, "head", "the head has none");
    // A search index.
    store.maintain(0).unwrap();
    let query = SearchQuery::parse("secret").unwrap();
    store.search(std::slice::from_ref(&session), &query, &resolve).unwrap();
    note(&session, 29, "tail", &format!("in the tail: {SECRET}"));
    store
}

/// How often a text occurs literally in the files of a folder.
fn in_files(folder: &Path, text: &str) -> usize {
    let search = aho_corasick::AhoCorasick::new([text]).unwrap();
    let count = |file: PathBuf| search.find_iter(&std::fs::read(file).unwrap()).count();
    files_below(folder).into_iter().map(count).sum()
}

/// Returns everything that the store returns about all sessions.
fn store_contents(store: &Store) -> String {
    let mut all = String::new();
    for session in store.every_session().unwrap() {
        let summary = session.summary().unwrap();
        all.push_str(&format!("{summary:?}\n"));
        for number in 1..=summary.last_sequence {
            if let Ok(moment) = session.at_sequence(number) {
                let state = session.state(&moment).unwrap();
                let entries: Vec<_> = state.claims().entries().map(Result::unwrap).collect();
                all.push_str(&format!("{moment:?} {entries:?}\n"));
            }
        }
        let head = session.head().unwrap();
        all.push_str(&format!("{:?}\n", session.branches(&head).unwrap()));
        all.push_str(&format!(
            "{:?}\n",
            session.checkpoints(&CheckpointFilter::default()).unwrap()
        ));
        all.push_str(&format!("{:?}\n", session.records(1, usize::MAX).unwrap()));
        all.push_str(&format!("{:?}\n", session.operations(usize::MAX).unwrap()));
        session
            .export_events::<Error>(&resolve, &mut |line| {
                all.push_str(&String::from_utf8_lossy(line));
                Ok(())
            })
            .unwrap();
        for (source, _) in summary.sources {
            session
                .write_source::<Error>(&source, &mut |part| {
                    all.push_str(&String::from_utf8_lossy(part));
                    Ok(())
                })
                .unwrap();
        }
    }
    all
}

fn assert_whole(path: &Path) {
    let verified = Store::verify(path, VerifyDepth::ReadData, time(99), None).unwrap();
    assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, vec![]));
}

/// Replaces hashes of texts, which change with the texts, and data about the purge itself.
fn comparable(content: &str) -> String {
    let hash = regex::Regex::new("[0-9a-f]{64}").unwrap();
    let purge =
        regex::Regex::new(r"OperationSummary \{[^{}]*purged \d+ occurrences?[^{}]*\}, ").unwrap();
    purge.replace_all(&hash.replace_all(content, "HASH"), "").into_owned()
}

#[test]
fn a_secret_is_removed_everywhere_and_the_rest_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = planted(&path, Options::default());
    let before = store_contents(&store);
    assert!(in_files(&path, SECRET) > 20, "it is there before");
    let preview = store.purge_preview(&act(30), &known(), &resolve, &|_| ()).unwrap();
    let kinds: BTreeSet<_> = preview.places.iter().map(|place| place.kind).collect();
    let all = [
        PurgeKind::Session,
        PurgeKind::Branch,
        PurgeKind::Source,
        PurgeKind::Revision,
        PurgeKind::Body,
        PurgeKind::Checkpoint,
        PurgeKind::Operation,
        PurgeKind::Facts,
        PurgeKind::Text,
        PurgeKind::Bytes,
    ];
    assert_eq!(kinds, all.into(), "{:#?}", preview.places);
    assert!(!format!("{preview:?}").contains(SECRET), "the secret is not shown");
    assert_eq!(preview.removed.len(), 1, "the copy of texts: {:?}", preview.removed);
    assert_eq!(store_contents(&store), before, "a look changes nothing");

    let purged = purge(&store, 31);
    assert!(purged.is_done(), "{purged:#?}");
    assert_eq!(purged.places, preview.places);
    assert_eq!(in_files(&path, SECRET), 0);
    assert_eq!(in_files(&path, &SECRET[..12]), 0, "nor its beginning");
    let after = store_contents(&store);
    assert!(!after.contains(SECRET) && !after.contains(&SECRET[..12]));
    let cut = format!("purged{}", "x".repeat(6));
    let wanted = before.replace(SECRET, MASK).replace(&SECRET[..12], &cut);
    crate::bundle::law::same(&comparable(&after), &comparable(&wanted), "all else");
    assert_whole(&path);
    // Another process sees the same, and purging again finds nothing.
    drop(store);
    let again = Store::open(&path, Options::default()).unwrap();
    assert_eq!(store_contents(&again), after);
    let nothing = purge(&again, 32);
    assert!(nothing.places.is_empty() && nothing.is_done(), "{nothing:#?}");
    assert_whole(&path);
}

#[test]
fn work_continues_after_a_purge() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = planted(&path, Options::default());
    assert!(purge(&store, 31).is_done());
    let session = store.every_session().unwrap().remove(0);
    // Writing the same value again changes nothing, another value does; undo restores the replaced
    // text.
    let state = |id: &str| {
        let head = session.head().unwrap();
        session.claim(&head, &Key::new(Kind::Note, id)).unwrap().map(|entry| entry.value)
    };
    let same = ClaimChange::put(Key::new(Kind::Note, "tail"), state("tail").unwrap());
    assert!(session.write(&act(40)).change(same).commit().unwrap().is_unchanged());
    note(&session, 41, "tail", "something else");
    session.undo(&act(42), None).unwrap();
    assert_eq!(state("tail"), Some(value(&format!("in the tail: {MASK}"))));
    // A restore still works (to the head, if the first revision is folded), and so does an undo.
    session
        .restore(&act(43), &session.at_sequence(1).unwrap_or_else(|_| session.head().unwrap()))
        .unwrap();
    session.undo(&act(44), None).unwrap();
    // The source continues to grow after the replaced part.
    let source = SOURCE.replace(SECRET, MASK);
    let bookmark = session.bookmark(&source).unwrap().unwrap();
    let (begin, end) = (bookmark.open_block(), bookmark.bytes);
    let open = session.source_bytes(&source, begin, end - begin).unwrap();
    let taken = SourceChunk {
        bookmark,
        open: &open,
        bytes: store.redact_source(b"{\"more\":1}\n", TextForm::Json, PartEnding::End),
        keep: true,
        ..SourceChunk::default()
    };
    session.import_chunk(&act(45), store.new_operation().unwrap(), &source, taken).unwrap();
    let kept = session.source_bytes(&source, 0, end + 11).unwrap();
    for line in String::from_utf8(kept).unwrap().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    // The purge itself is in the operation log and cannot be undone.
    let operations = session.operations(99).unwrap();
    let purge =
        operations.iter().find(|one| one.effects.iter().any(|effect| effect.contains("it leaked")));
    let refused = session.undo(&act(46), Some(&purge.unwrap().id.to_string())).unwrap_err();
    assert!(refused.to_string().contains("cannot be undone"), "{refused}");
    store.maintain(0).unwrap();
    assert_whole(&path);
    store.rebuild().unwrap();
    assert_whole(&path);
    let repaired = folder.path().join("repaired");
    let done = Store::repair(&path, &repaired, time(50), None).unwrap();
    assert_eq!(done.lost, Vec::<String>::new());
    assert_whole(&repaired);
}

#[test]
fn spooled_writes_are_purged_even_if_they_are_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    note(&session, 1, "n", "nothing here");
    let lock = std::fs::File::open(path.join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let busy = Options::default().lock_timeout(std::time::Duration::ZERO);
    let other = Store::open(&path, busy).unwrap();
    let waits = other.session("s").unwrap();
    let change = ClaimChange::add(Key::new(Kind::Note, "waits"), value(SECRET));
    assert!(waits.write(&act(2)).change(change).commit().unwrap().spooled);
    drop(lock);
    let damaged = folder_in(&path).join(format!("{}.damaged", "0".repeat(32)));
    std::fs::write(&damaged, SECRET).unwrap();
    let preview = store.purge_preview(&act(3), &known(), &resolve, &|_| ()).unwrap();
    assert_eq!((preview.places.len(), preview.removed.len()), (1, 1), "{preview:#?}");
    let purged = purge(&store, 4);
    assert!(purged.is_done() && !damaged.exists(), "{purged:#?}");
    assert_eq!(purged.removed, [damaged]);
    assert_eq!(in_files(&path, SECRET), 0);
    assert!(store_contents(&store).contains(MASK));
    assert_whole(&path);
}

#[test]
fn a_sealed_store_stays_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let keyring = folder.path().join("keys");
    let options = Options::default().keyring(keyring.clone());
    let store = planted(&path, options);
    assert!(purge(&store, 31).is_done());
    assert_eq!(in_files(&path, SECRET) + in_files(&keyring, SECRET), 0);
    let verified = Store::verify(&path, VerifyDepth::ReadData, time(99), Some(&keyring)).unwrap();
    assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, vec![]));
}

/// Regression: ids that were changed by different revisions became equal, and one of the claims was
/// lost.
#[test]
fn claims_and_sessions_that_would_get_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for (minute, id) in [(1, "n-first-secret"), (2, "n-other-secret")] {
        note(&session, minute, id, "x");
        store.create_session(&act(minute), NewSession::named(&id[2..])).unwrap();
    }
    let purge = |secrets: &[&str]| {
        let known = KnownSecrets::new(secrets).unwrap();
        store.purge(&act(4), &known, None, &resolve, &|_| ())
    };
    let before = store_contents(&store);
    let refused = |found: Result<_, Error>| {
        assert!(matches!(found, Err(Error::Invalid { .. })), "{found:?}");
    };
    refused(purge(&["first-secret", "other-secret"]));
    assert_eq!(store_contents(&store), before);
    assert!(purge(&["first-secret"]).unwrap().is_done());
    // The second one would get the name that the first one has now.
    let before = store_contents(&store);
    refused(purge(&["other-secret"]));
    assert_eq!(store_contents(&store), before);
    assert_whole(&path);
}

/// Regression: the index of sessions that a process makes after many lookups kept an old name, so a
/// purge did not see that it gave two sessions the same name.
#[test]
fn sessions_that_would_get_one_name_are_refused_after_many_lookups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    for (minute, name) in [(1, "first-secret"), (2, "other-secret")] {
        store.create_session(&act(minute), NewSession::named(name)).unwrap();
    }
    for _ in 0..40 {
        store.session("first-secret").unwrap();
    }
    let before = store_contents(&store);
    let known = KnownSecrets::new(["first-secret", "other-secret"]).unwrap();
    let refused = store.purge(&act(4), &known, None, &resolve, &|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
    assert_eq!(store_contents(&store), before);
    assert_whole(&path);
}

/// Regression: two claims with the same time and the same large value share its stored entry. If
/// the id of one of them had the secret, the purge removed that entry, and the other claim lost its
/// value.
#[test]
fn a_large_value_that_a_renamed_claim_shared_stays_with_the_other_claim() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let large = value(&"what both say ".repeat(900));
    let add = |id: &str| ClaimChange::add(Key::new(Kind::Note, id), large.clone());
    let (act, secret) = (act(1), format!("n-{SECRET}"));
    session.write(&act).change(add(&secret)).change(add("other")).commit().unwrap();
    store.maintain(0).unwrap();
    assert!(purge(&store, 2).is_done());
    for id in [format!("n-{MASK}").as_str(), "other"] {
        let head = session.head().unwrap();
        let claim = session.claim(&head, &Key::new(Kind::Note, id)).unwrap();
        assert_eq!(claim.map(|entry| entry.value).as_ref(), Some(&large), "{id}");
    }
    assert_eq!(in_files(&path, SECRET), 0);
    assert_whole(&path);
}

#[test]
fn names_that_would_become_equal_and_words_of_the_format_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for (minute, id) in [(1, "first-secret"), (2, "other-secret")] {
        note(&session, minute, id, "x");
    }
    let change = |id: &str| ClaimChange::put(Key::new(Kind::Note, id), value("y"));
    session
        .write(&act(3))
        .change(change("first-secret"))
        .change(change("other-secret"))
        .commit()
        .unwrap();
    let before = store_contents(&store);
    for secrets in [vec!["first-secret", "other-secret"], vec!["operation"]] {
        let known = KnownSecrets::new(&secrets).unwrap();
        let refused = store.purge(&act(4), &known, None, &resolve, &|_| ()).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
        assert_eq!(store_contents(&store), before);
    }
    assert_whole(&path);
}

const READER: &str = "FORGE_PURGE_READER";

/// Not a test: a process that reads a generation until its input ends.
#[test]
#[ignore = "the body of a process that a test starts"]
fn reader() {
    let Ok(folder) = std::env::var(READER) else { return };
    let store = Store::open(&PathBuf::from(folder), Options::default()).unwrap();
    let session = store.every_session().unwrap().remove(0);
    let state = session.state(&session.head().unwrap()).unwrap();
    println!("reading {}", state.claims().len());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(state);
}

#[test]
fn a_process_that_reads_old_data_is_named_and_the_next_purge_finishes() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = planted(&path, Options::default());
    store.maintain(0).unwrap();
    let mut reader = Command::new(std::env::current_exe().unwrap())
        .args(["purge::reader", "--exact", "--ignored", "--nocapture"])
        .env(READER, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("reading")));
    let purged = purge(&store, 31);
    assert!(!purged.is_done());
    assert_eq!(purged.held.len(), 1, "{purged:#?}");
    let pids: Vec<_> = purged.holders.iter().map(|holder| holder.pid).collect();
    assert_eq!(pids, [reader.id()], "{purged:#?}");
    assert!(!store_contents(&store).contains(SECRET), "here it is gone already");
    drop(reader.stdin.take());
    reader.wait().unwrap();
    let purged = purge(&store, 32);
    assert!(purged.is_done() && purged.places.is_empty(), "{purged:#?}");
    assert_eq!(in_files(&path, SECRET), 0);
}

#[test]
fn a_process_with_old_data_in_memory_does_not_write_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for minute in 1..5 {
        note(&session, minute, "n", &format!("{minute} {SECRET}"));
    }
    store.maintain(0).unwrap();
    note(&session, 5, "n", &format!("5 {SECRET}"));
    let other = Store::open(&path, Options::default()).unwrap();
    assert!(purge(&other, 6).is_done());
    drop(other);
    // This process refers to the head by its id, which has not changed.
    note(&session, 7, "n", "something else");
    assert_eq!(in_files(&path, SECRET), 0);
    assert!(!store_contents(&store).contains(SECRET));
    assert!(store_contents(&store).contains(&format!("5 {MASK}")));
    store.maintain(0).unwrap();
    assert_whole(&path);
}

/// Regression: writing a purged claim again as it reads must be no change, and restoring it gives
/// the same state. A secret in a field's name was replaced by a name that sorts differently, so the
/// bytes differed from those of the same value.
#[test]
fn writing_a_purged_claim_with_its_present_value_is_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let key = || Key::new(Kind::Note, "n");
    let fields = |name: &str| {
        let inner = Value::from([("q", 1_i64.into()), (name, true.into()), ("z", 0.5.into())]);
        Value::from([
            ("description", "said".into()),
            ("rest", name.into()),
            (name, inner),
            ("source", "test".into()),
        ])
    };
    let put = |minute: i64, value: Value| {
        let change = ClaimChange::put(key(), value);
        session.write(&act(minute)).change(change).commit().unwrap().revision
    };
    put(1, fields(SECRET)).unwrap();
    let (other, _) = put(2, value("something else")).unwrap();
    put(3, fields(SECRET)).unwrap();
    assert!(purge(&store, 4).is_done());
    assert_whole(&path);
    let read = || {
        let state = session.state(&session.head().unwrap()).unwrap();
        state.claims().entry(&key()).unwrap().unwrap().value
    };
    let purged = read();
    assert!(purged.field(MASK).is_some(), "{purged:?}");
    assert_eq!(put(5, purged.clone()), None, "it is what is there");
    // What was changed and changed back has no difference.
    let before = session.head().unwrap();
    put(6, value("meanwhile")).unwrap();
    put(7, purged.clone()).unwrap();
    let after = session.head().unwrap();
    let compared = session.compare(&before, &after).unwrap();
    assert_eq!(compared.claims.len(), 0, "{:?}", compared.claims);
    assert_eq!(read(), purged);
    assert!(session.at_sequence(other).is_ok());
    store.maintain(0).unwrap();
    assert_whole(&path);

    // Two names would become equal: nothing is changed.
    put(
        8,
        Value::from([
            ("description", "x".into()),
            ("k-12345678", true.into()),
            ("k-87654321", false.into()),
        ]),
    );
    let both = KnownSecrets::new(["12345678", "87654321"]).unwrap();
    let refused = store.purge(&act(9), &both, None, &resolve, &|_| ());
    assert!(matches!(&refused, Err(Error::Invalid(why)) if why.contains("fields")), "{refused:?}");
    assert!(read().field("k-12345678").is_some() && read().field("k-87654321").is_some());
}
