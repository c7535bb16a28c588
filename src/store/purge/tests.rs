//! The files of an encrypted store show no text, with or without a secret, so these tests decrypt
//! them.

use super::*;
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::format::{
    DeltaPart, Record, RecordChange, RevisionBody, RevisionRow, decode_object, key, object_kind,
    rewrite_row,
};
use crate::model::{Fact, FactOrigin, Key, Kind, RetentionPolicy, Timestamp, Value};
use crate::redact::{PartEnding, TextForm};
use crate::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, SearchQuery, Session, SourceChunk,
    VerifyDepth, VerifyOutcome,
};
use std::collections::BTreeMap;

const SECRET: &str = "s3cr3t-Zx9Kq2Lm7Pv4";

fn act(minute: i64) -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000))
}

fn known() -> KnownSecrets {
    KnownSecrets::new([SECRET]).unwrap()
}

fn purge(store: &Store, minute: i64) -> PurgeReport {
    store.purge(&act(minute), &known(), Some("it leaked"), &|_, _| None, &|_| ()).unwrap()
}

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(".forge")
    }

    fn options(&self) -> Options {
        let keyring = Some(self.root.path().join("keyring"));
        Options { keyring, encrypted: true, ..Options::default() }
    }

    fn open(&self) -> Store {
        Store::open(&self.path(), self.options()).unwrap()
    }

    /// Returns the names in a folder of the store.
    fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn note(session: &Session, minute: i64, id: &str, text: &str) {
    let value = Value::from([("description", text.into()), ("source", "t".into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, id), value);
    session.write(&act(minute)).change(change).commit().unwrap();
}

/// Puts the secret in small and large claims, a fact with its text, a source, a checkpoint, names,
/// folded revisions, and the spool.
fn planted(place: &Place) -> Store {
    let store = Store::create(&place.path(), place.options()).unwrap();
    let new = NewSession {
        agent: Some(format!("agent {SECRET}")),
        ..NewSession::named(format!("s {SECRET}"))
    };
    let session = store.create_session(&act(0), new).unwrap();
    note(&session, 1, "small", &format!("the key is {SECRET}"));
    note(&session, 2, "large", &format!("{SECRET} ").repeat(900));
    for minute in 3..6 {
        note(&session, minute, "folded", &format!("{minute} {SECRET}"));
    }
    let bare = RetentionPolicy {
        manual: false,
        significant: false,
        revisions: 0,
        ..RetentionPolicy::none()
    };
    session.prune(&act(6), &bare).unwrap();
    let printed = act(7);
    let mut write = session.write(&printed);
    let text = write.text(&format!("{SECRET} was printed ").repeat(300));
    let value = Value::from([("command", "login".into()), ("stdout_preview", text)]);
    let (at, origin) = (printed.now, FactOrigin::Recorded);
    let fact = Fact {
        kind: Kind::Command,
        id: "c".to_owned(),
        at,
        origin,
        place: 0,
        recorded_at: at,
        value,
    };
    write.fact(fact).commit().unwrap();
    let wanted = NewCheckpoint::manual(format!("with {SECRET}")).tags([format!("t-{SECRET}")]);
    session.write(&act(8)).checkpoint(wanted).commit().unwrap();
    let lines = format!("a line with {SECRET}\n").repeat(100);
    let taken = SourceChunk {
        bytes: store.redact_source(lines.as_bytes(), TextForm::Plain, PartEnding::End),
        lines: 100,
        keep: true,
        ..SourceChunk::default()
    };
    session.import_chunk(&act(9), store.new_operation().unwrap(), SOURCE, taken).unwrap();
    store.maintain(0).unwrap();
    let query = SearchQuery::parse("printed").unwrap();
    store.search(std::slice::from_ref(&session), &query, &|_, _| None).unwrap();
    note(&session, 10, "tail", &format!("in the tail: {SECRET}"));
    let lock = fs::File::open(place.path().join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let busy = Options { lock_timeout: std::time::Duration::ZERO, ..place.options() };
    let other = Store::open(&place.path(), busy).unwrap();
    let waits = other.session(&format!("s {SECRET}")).unwrap();
    let value = Value::from([("description", SECRET.into()), ("source", "t".into())]);
    let change = ClaimChange::add(Key::new(Kind::Note, "waits"), value);
    assert!(waits.write(&act(11)).change(change).commit().unwrap().spooled);
    store
}

const SOURCE: &str = "log-s3cr3t-Zx9Kq2Lm7Pv4";

/// The decrypted contents of a store, by place.
#[derive(Default)]
struct Opened(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Opened {
    fn of(store: &Store) -> Self {
        let mut opened = Self::default();
        let live = &store.engine.follower;
        let tail = live.log.read(live.log.start().unwrap(), u64::MAX).unwrap();
        for frame in tail.frames {
            opened.record(&frame.payload);
        }
        let view = live.index.snapshot().unwrap();
        opened.rows(&*view);
        let spool = live.spool.as_ref().unwrap();
        for name in spool.names().unwrap() {
            opened.put("spool", &spool.read(&name, &|_| true).unwrap().unwrap());
        }
        for session in store.every_session().unwrap() {
            for (source, _) in session.summary().unwrap().sources {
                let read = session.write_source::<Error>(&source, &mut |part| {
                    opened.put("source", part);
                    Ok(())
                });
                read.unwrap();
            }
        }
        opened
    }

    fn put(&mut self, whence: &'static str, bytes: &[u8]) {
        self.0.entry(whence).or_default().push(bytes.to_vec());
    }

    fn object(&mut self, whence: &'static str, encoded: &[u8]) {
        // An object that needs preceding bytes is read as part of its source.
        if let Ok(content) = decode_object(object_kind(encoded).unwrap(), encoded) {
            self.put(whence, &content);
        }
    }

    fn record(&mut self, payload: &[u8]) {
        self.put("record", payload);
        for change in Record::decode(payload).unwrap().changes {
            let parts = match change {
                RecordChange::Object { object } | RecordChange::Segment { object, .. } => {
                    vec![DeltaPart::Inline(object)]
                }
                RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. } => delta,
                RecordChange::Facts { page, .. } => vec![page],
                _ => Vec::new(),
            };
            for part in parts {
                if let DeltaPart::Inline(encoded) = part {
                    self.object("object of a record", &encoded.0);
                }
            }
        }
    }

    fn rows(&mut self, view: &dyn Snapshot) {
        for number in 0..=key::MERGES.0 {
            let table = TableId(number);
            let rows = view.scan(table, &[], &[], ScanDirection::Ascending, usize::MAX).unwrap();
            for (place, row) in rows {
                self.put("key", &place);
                match table {
                    key::OBJECTS => self.object("object", &row),
                    key::CHECKPOINTS | key::OPERATIONS | key::BOOKMARKS => {
                        rewrite_row(&row, |content| {
                            self.put("packed row", content);
                            None
                        })
                        .unwrap();
                    }
                    key::REVISIONS | key::FOLDED => {
                        let row = RevisionRow::decode(&row).unwrap();
                        RevisionBody::decode(&row.body).unwrap();
                        self.put("body", &row.body);
                    }
                    _ => self.put("row", &row),
                }
            }
        }
    }

    /// Returns how many contents have the secret, by place.
    fn with_secret(&self) -> BTreeMap<&'static str, usize> {
        let holds = |bytes: &&Vec<u8>| known().holds(bytes);
        let count = |(whence, all): (&&'static str, &Vec<Vec<u8>>)| {
            (*whence, all.iter().filter(holds).count())
        };
        self.0.iter().map(count).filter(|(_, count)| *count > 0).collect()
    }
}

#[test]
fn a_purge_removes_a_secret_from_every_record_row_and_object_of_an_encrypted_store() {
    let place = Place::new();
    let store = planted(&place);
    let before = Opened::of(&store).with_secret();
    let wanted = ["object", "object of a record", "packed row", "record", "source", "spool"];
    let seen = wanted.map(|whence| before.contains_key(whence));
    assert_eq!(seen, [true; 6], "{before:?}");
    let raw =
        |folders: &[PathBuf]| file_scan::search(folders, &known(), &[], &|_| ()).unwrap().found;
    assert_eq!(raw(&[place.path()]), [], "what is encrypted shows nothing");
    let preview = store.purge_preview(&act(29), &known(), &|_, _| None, &|_| ()).unwrap();
    let (segments, generations) = (place.names("journal"), place.names("index"));

    let purged = purge(&store, 30);
    assert!(purged.is_done(), "{purged:#?}");
    assert_eq!(purged.places, preview.places);
    let after = Opened::of(&store);
    assert_eq!(after.with_secret(), BTreeMap::new());
    assert!(after.0.values().map(Vec::len).sum::<usize>() > 40, "something was opened");
    // No old files are left: neither segments nor generations, search copies or spooled writes.
    let is_old = |name: &&String| {
        !["SYNCED", "append.lock", "apply.lock", "published"].contains(&name.as_str())
    };
    let left: Vec<_> =
        segments.intersection(&place.names("journal")).filter(is_old).cloned().collect();
    assert_eq!(left, Vec::<String>::new());
    let left: Vec<_> =
        generations.intersection(&place.names("index")).filter(is_old).cloned().collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(!place.path().join("search").exists());
    assert_eq!(place.names("spool"), Default::default());
    assert_eq!(purged.removed.len(), 1, "the copy for searching: {purged:#?}");
    drop(store);
    let (keyring, path) = (place.options().keyring, place.path());
    let verified =
        Store::verify(&path, VerifyDepth::ReadData, act(99).now, keyring.as_deref()).unwrap();
    assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, vec![]));
    assert_eq!(Opened::of(&place.open()).with_secret(), BTreeMap::new());
}

/// A failed sync, a killed writer and a killed applier leave copies of their files under other
/// names.
#[test]
fn a_purge_removes_files_that_crashes_left_in_a_store() {
    let place = Place::new();
    let store = planted(&place);
    let path = place.path();
    let journal = place.names("journal");
    let segment = journal.iter().rfind(|name| name.ends_with(".log")).unwrap();
    let copied = path.join("journal").join(segment).with_extension("new");
    fs::copy(path.join("journal").join(segment), &copied).unwrap();
    let waits = place.names("spool").into_iter().next().unwrap();
    let unfinished = path.join("spool").join(format!("{waits}.0.new"));
    fs::copy(path.join("spool").join(&waits), &unfinished).unwrap();
    let generations = place.names("index");
    let generation =
        generations.iter().find(|name| path.join("index").join(name).is_dir()).unwrap();
    let work = path.join("index/work");
    fs::create_dir(&work).unwrap();
    for entry in fs::read_dir(path.join("index").join(generation)).unwrap() {
        let entry = entry.unwrap();
        fs::hard_link(entry.path(), work.join(entry.file_name())).unwrap();
    }
    assert!(purge(&store, 30).is_done());
    assert!(!copied.exists() && !unfinished.exists() && !work.exists());
    let journal = place.names("journal");
    assert!(journal.iter().all(|name| !name.ends_with(".new")), "{journal:?}");
    assert_eq!(Opened::of(&store).with_secret(), BTreeMap::new());
}

#[test]
fn a_reader_of_the_old_generation_is_named_and_the_next_purge_finishes() {
    let place = Place::new();
    let store = planted(&place);
    let reader = place.open();
    let view = reader.engine.follower.index.snapshot().unwrap();
    let purged = purge(&store, 30);
    assert!(!purged.is_done());
    assert_eq!(purged.held.len(), 1, "{purged:#?}");
    let pids: Vec<_> = purged.holders.iter().map(|holder| holder.pid).collect();
    assert_eq!(pids, [std::process::id()]);
    drop((view, reader));
    let purged = purge(&store, 31);
    assert!(purged.is_done() && purged.places.is_empty(), "{purged:#?}");
    assert_eq!(Opened::of(&store).with_secret(), BTreeMap::new());
}

/// Notes of hooks about an encrypted store are next to its key.
#[test]
fn notes_of_hooks_are_overwritten_wherever_they_are() {
    let place = Place::new();
    let store = planted(&place);
    let notes = store.notes().unwrap();
    assert!(!notes.starts_with(place.path()));
    let [log, agents] = ["log/hooks.jsonl", "agents/7"].map(|name| notes.join(name));
    for file in [&log, &agents] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{{\"session\":\"{SECRET}\"}}\n")).unwrap();
    }
    assert_eq!(
        store
            .purge_preview(&act(29), &known(), &|_, _| None, &|_| ())
            .unwrap()
            .searched
            .found
            .len(),
        2
    );
    let purged = purge(&store, 30);
    assert!(purged.is_done(), "{purged:#?}");
    let overwritten: BTreeSet<_> = purged.overwritten.iter().collect();
    assert_eq!(overwritten, [&log, &agents].into());
    let masked = "{\"session\":\"purgedxxxxxxxxxxxxx\"}\n";
    assert_eq!([log, agents].map(|file| fs::read_to_string(file).unwrap()), [masked, masked]);
}

#[test]
fn foreign_files_are_named_and_a_purge_is_not_done_while_they_hold_the_secret() {
    let place = Place::new();
    let store = planted(&place);
    let path = place.path();
    fs::write(path.join("config.toml"), format!("[redact]\nallow = \"{SECRET}\"\n")).unwrap();
    fs::create_dir(path.join("journal.bak")).unwrap();
    fs::write(path.join("journal.bak/1.log"), SECRET).unwrap();
    fs::write(path.join("index/notes.txt"), "nothing").unwrap();
    let purged = purge(&store, 30);
    assert_eq!(purged.foreign, ["index/notes.txt", "journal.bak"].map(|name| path.join(name)));
    let found: Vec<_> = purged.searched.found.iter().map(|(file, _)| file.clone()).collect();
    assert_eq!(found, ["config.toml", "journal.bak/1.log"].map(|name| path.join(name)));
    assert!(!purged.is_done());
    fs::remove_dir_all(path.join("journal.bak")).unwrap();
    fs::remove_file(path.join("config.toml")).unwrap();
    assert!(purge(&store, 31).is_done());
}

/// Writes that hooks save into a refused store stay in the spool, unsealed and encrypted, until the
/// store is adopted.
#[test]
fn a_write_that_waits_without_the_stores_seal_is_named() {
    let place = Place::new();
    let store = planted(&place);
    assert!(purge(&store, 30).is_done());
    let lock = fs::File::open(place.path().join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let busy = Options { lock_timeout: std::time::Duration::ZERO, ..place.options() };
    let other = Store::open_unverified(&place.path(), busy).unwrap();
    let value = Value::from([("description", SECRET.into()), ("source", "t".into())]);
    let change = ClaimChange::add(Key::new(Kind::Note, "unsealed"), value);
    let session = other.every_session().unwrap().remove(0);
    assert!(session.write(&act(31)).change(change).commit().unwrap().spooled);
    drop(lock);
    let name = place.names("spool").into_iter().next().unwrap();
    let purged = purge(&store, 32);
    let files = ["spool", "spool.copy"].map(|folder| place.path().join(folder).join(&name));
    assert_eq!(purged.unsealed, files);
    assert!(!purged.is_done());
}
