//! Encrypted stores: their files show nothing of what was recorded, everything works as in any
//! other store, and nothing works without the key. See `docs/encryption.md`.

mod keys;
mod rot;
mod seen;

use crate::store::{act, note, time};
use forge_store::model::{
    AutoTrigger, BranchMetadata, BranchStatus, Fact, FactOrigin, Key, Kind, SessionKind, Value,
};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, SearchQuery, Session, SourceBookmark,
    SourceChunk, Store,
};
use forge_systems::run::{StepRecord, WorkflowRun};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The prefix of every planted text.
const MARK: &str = "zebra";

/// A store and its key, which is outside of it.
struct Place {
    root: tempfile::TempDir,
    encrypted: bool,
}

impl Place {
    fn new(encrypted: bool) -> Self {
        let place = Self { root: tempfile::tempdir().unwrap(), encrypted };
        Store::create(&place.path(), place.options()).unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(".forge")
    }

    fn keyring(&self) -> PathBuf {
        self.root.path().join("keyring")
    }

    fn options(&self) -> Options {
        let keyring = Some(self.keyring());
        Options::default().keyring(keyring).encrypted(self.encrypted)
    }

    fn open(&self) -> Store {
        Store::open(&self.path(), self.options()).unwrap()
    }
}

fn fact(kind: Kind, id: &str, minute: i64, value: Value) -> Fact {
    let (at, origin) = (time(minute), FactOrigin::Imported);
    Fact { kind, id: id.to_owned(), at, origin, place: 7, recorded_at: at, value }
}

/// Writes everything that a store can hold, with the mark in each text and name; all in the
/// journal.
fn plant(store: &Store) -> Session {
    let new = NewSession {
        agent: Some("zebra-agent".to_owned()),
        agent_session: Some("zebra-agent-session".to_owned()),
        ..NewSession::named("zebra-session")
    };
    let session = store.create_session(&act(0), new).unwrap();
    let long = "0123456789abcdef zebra-blob ".repeat(300);
    session.write(&act(1)).change(note("zebra-claim", "zebra-said")).commit().unwrap();
    session.write(&act(2)).change(note("zebra-large", &long)).commit().unwrap();
    let third = act(3);
    let mut write = session.write(&third);
    let text = write.text(&"a line of zebra-output\n".repeat(1000));
    let output = Value::from([("command", "zebra-command".into()), ("stdout_preview", text)]);
    write.fact(fact(Kind::Command, "zebra-fact", 3, output)).commit().unwrap();
    let text_value = |text: &str| Value::from([("text", text.into())]);
    session
        .write(&act(4))
        .fact(fact(Kind::Message, "zebra-m", 4, text_value("zebra-message")))
        .commit()
        .unwrap();
    let named = NewCheckpoint::manual("zebra-checkpoint").tags(["zebra-tag"]);
    session
        .write(&act(5))
        .change(note("zebra-claim", "zebra-other"))
        .checkpoint(named)
        .commit()
        .unwrap();
    session.write(&act(6)).event(AutoTrigger::GapFilled).commit().unwrap();
    let metadata =
        BranchMetadata { hypothesis: Some("zebra-hypothesis".to_owned()), ..Default::default() };
    session.create_branch(&act(7), "zebra-branch", None, metadata).unwrap();
    session.switch_branch(&act(8), "zebra-branch", false).unwrap();
    session.write(&act(9)).change(note("zebra-aside", "zebra-aside")).commit().unwrap();
    session.switch_branch(&act(10), "main", true).unwrap();
    session
        .update_branch(&act(11), "zebra-branch", |status, metadata| {
            *status = BranchStatus::Abandoned;
            metadata.results.push("zebra-result".to_owned());
        })
        .unwrap();
    session.write(&act(12)).change(note("zebra-taken", "zebra-taken")).commit().unwrap();
    session.undo(&act(13), None).unwrap();
    let lines = "a zebra-line of a transcript\n".repeat(400);
    let taken = SourceChunk {
        bookmark: SourceBookmark::default(),
        bytes: store.redact_source(lines.as_bytes(), TextForm::Plain, PartEnding::End),
        lines: 400,
        keep: true,
        facts: vec![fact(Kind::Prompt, "zebra-prompt", 14, text_value("zebra-asked"))],
        ..SourceChunk::default()
    };
    session.import_chunk(&act(14), store.new_operation().unwrap(), "zebra-source", taken).unwrap();
    store.sync().unwrap();
    for minute in 20..28 {
        // Enough changes that a keyframe is stored.
        let notes =
            (0..60).map(|id| note(&format!("zebra-{id}"), &format!("zebra {minute} ").repeat(400)));
        session.write(&act(minute)).changes(notes).commit().unwrap();
    }
    session
}

/// Writes a run, a thread, and a spooled write.
fn plant_more(place: &Place, store: &Store) {
    let run = WorkflowRun::open_or_create(store, &act(30), "zebra-run").unwrap();
    run.start(&act(30), Some(&Value::from([("input", "zebra-input".into())]))).unwrap();
    let step = StepRecord {
        item: "zebra-item".to_owned(),
        step: "zebra-step".to_owned(),
        output: "zebra-step-output".to_owned(),
        ..StepRecord::default()
    };
    run.record(&act(31), &step).unwrap();
    let kept = NewSession { kind: SessionKind::Thread, ..NewSession::imported("zebra-thread") };
    let thread = store.create_session(&act(32), kept).unwrap();
    let value = Value::from([("text", "zebra-kept".into())]);
    thread
        .write(&act(33))
        .change(ClaimChange::put(Key::new(Kind::ThreadMessage, "zebra-1"), value))
        .commit()
        .unwrap();
    let lock = fs::File::open(place.path().join("journal/append.lock")).unwrap();
    lock.lock().unwrap();
    let options = place.options().lock_timeout(Duration::from_millis(20));
    let session = Store::open(&place.path(), options).unwrap().session("zebra-session").unwrap();
    let waits = ClaimChange::add(
        Key::new(Kind::Note, "zebra-waits"),
        Value::from([("text", "zebra-waiting".into())]),
    );
    assert!(session.write(&act(40)).change(waits).commit().unwrap().spooled);
}

/// Searches for the mark, which also builds the search index. Returns the number of hits.
fn search(store: &Store) -> usize {
    let sessions = [store.session("zebra-session").unwrap()];
    let hits = store.search(&sessions, &SearchQuery::parse(MARK).unwrap(), &|_, _| None).unwrap();
    hits.total.unwrap() as usize
}
