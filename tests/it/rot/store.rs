//! The store that is damaged, and what must be read from it.

use super::{TIME, act};
use crate::remote::SECRET;
use forge_store::error::Error;
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Key, Kind, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, SourceChunk, Store,
    WriteContext,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of revisions in the index; half as many are in the tail.
const APPLIED: i64 = 36;

fn later(seconds: i64) -> WriteContext {
    WriteContext::asked("test", TIME.plus_micros(seconds * 1_000_000))
}

/// Words that do not compress to almost nothing.
fn words(seed: i64, count: usize) -> String {
    let hash = blake3::hash(&seed.to_le_bytes());
    let mut reader = blake3::Hasher::new().update(hash.as_bytes()).finalize_xof();
    let mut bytes = vec![0; count * 4];
    reader.fill(&mut bytes);
    bytes.chunks(4).fold(String::new(), |mut text, four| {
        for byte in four {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push(' ');
        text
    })
}

fn change(seconds: i64, id: i64) -> ClaimChange {
    let value = Value::from([("description", words(seconds, 6).into()), ("source", "test".into())]);
    ClaimChange::put(Key::new(Kind::Note, format!("N{id}")), value)
}

fn fact(seconds: i64, text: Value) -> Fact {
    let at = TIME.plus_micros(seconds * 1_000_000);
    Fact {
        kind: Kind::Command,
        id: format!("c{seconds}"),
        at,
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: at,
        value: Value::from([("command", "make".into()), ("stdout_preview", text)]),
    }
}

/// Creates the store: two sessions, branches, facts, checkpoints, an import, an undo, a spooled
/// write. About two thirds of it are in the index.
pub(crate) fn make(path: &Path, options: &Options) {
    let store = Store::create(path, options.clone()).unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    for n in 0..APPLIED * 3 / 2 {
        let act = later(n);
        if n == 10 {
            session.create_branch(&act, "try", None, BranchMetadata::default()).unwrap();
            session.switch_branch(&act, "try", false).unwrap();
        }
        if n == 20 {
            session.switch_branch(&act, "main", false).unwrap();
        }
        let mut write = session.write(&act).change(change(n, n % 11));
        if n % 4 == 1 {
            let text = write.text(&words(n, 600));
            write = write.fact(fact(n, text));
        }
        if n % 5 == 2 {
            let tags = [format!("tag{}", n % 3)];
            write = write.checkpoint(NewCheckpoint::manual(format!("at {n}")).tags(tags));
        }
        write.commit().unwrap();
        if n == 15 {
            let other = store.create_session(&act, NewSession::imported("other")).unwrap();
            let operation = store.new_operation().unwrap();
            let lines = words(99, 5000);
            let taken = SourceChunk {
                bytes: store.redact_source(lines.as_bytes(), TextForm::Plain, PartEnding::End),
                lines: 1,
                keep: true,
                facts: vec![fact(1000, "imported".into())],
                ..SourceChunk::default()
            };
            other.import_chunk(&act, operation, "transcript", taken).unwrap();
            store.sync().unwrap();
            session.write(&later(n)).change(change(500, 5)).commit().unwrap();
            session.undo(&later(n), None).unwrap();
        }
        if n == APPLIED / 2 || n == APPLIED {
            store.maintain(0).unwrap();
        }
    }
    let act = act("keep");
    let new = NewSession { agent_session: Some("a".to_owned()), ..NewSession::imported("kept") };
    let aside = store.spooled_write(&act, new).unwrap().fact(fact(2000, "spooled".into()));
    aside.checkpoint(NewCheckpoint::manual("spooled")).save().unwrap();
}

/// Pulls a session into the store, and joins it twice with what another store pushed.
pub(super) fn join(path: &Path) {
    let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let open = || Remote::open(Arc::clone(&depot), &SECRET).unwrap();
    let (here, there) = (open(), open());
    let store = Store::open(path, Options::default()).unwrap();
    let other = Store::in_memory().unwrap();
    let theirs = other.create_session(&later(60), NewSession::named("joined")).unwrap();
    theirs.write(&later(60)).change(change(60, 0)).commit().unwrap();
    other.push(&later(60), &there, &theirs).unwrap();
    let handle = here.sessions().unwrap()[0].handle;
    store.pull(&later(60), &here, &handle, None).unwrap();
    for round in [61, 63] {
        theirs.write(&later(round)).change(change(round, round)).commit().unwrap();
        other.push(&later(round), &there, &theirs).unwrap();
        let (act, ours) = (later(round + 1), store.session("joined").unwrap());
        let write = ours.write(&act).change(change(round + 1, round + 1));
        let write = write.fact(fact(round + 1, "here".into()));
        let checkpoint = NewCheckpoint::manual(format!("at {round}"));
        write.checkpoint(checkpoint.tags(["tag0".to_owned()])).commit().unwrap();
        let pulled = store.pull(&act, &here, &handle, None).unwrap();
        assert!(!pulled.joined.renumbered.is_empty(), "{pulled:?}");
    }
}

/// The value of each item, or its error.
pub(crate) type Read = BTreeMap<String, Result<blake3::Hash, String>>;

fn error_text(error: &Error) -> String {
    format!("{:?}: {error}", error.kind())
}

/// Reads everything, each item separately: states by number, lists, facts, texts.
pub(crate) fn read(path: &Path, options: &Options, numbers: u64) -> Read {
    let mut read = Read::new();
    let options = options.clone().read_only(true);
    let store = match Store::open(path, options) {
        Ok(store) => store,
        Err(error) => {
            read.insert("open".to_owned(), Err(error_text(&error)));
            return read;
        }
    };
    for name in ["s", "other", "kept", "joined"] {
        let session = match store.session(name) {
            Ok(session) => session,
            Err(error) => {
                read.insert(name.to_owned(), Err(error_text(&error)));
                continue;
            }
        };
        let mut note = |what: String, result: Result<String, Error>| {
            let result =
                result.map(|text| blake3::hash(text.as_bytes())).map_err(|e| error_text(&e));
            read.insert(format!("{name}: {what}"), result);
        };
        for number in 1..=numbers {
            let state = || {
                let moment = session.at_sequence(number)?;
                let state = session.state(&moment)?;
                session.check_digest(&moment)?;
                let mut text = String::new();
                for entry in state.claims().entries() {
                    writeln!(text, "{:?}", entry?).unwrap();
                }
                Ok(text)
            };
            note(format!("#{number}"), state());
        }
        let checkpoints = session.checkpoints(&CheckpointFilter::default());
        note("checkpoints".to_owned(), checkpoints.map(|all| format!("{all:?}")));
        for tag in ["tag0", "tag1", "tag2"] {
            let filter =
                CheckpointFilter { tag: Some(tag.to_owned()), ..CheckpointFilter::default() };
            note(tag.to_owned(), session.checkpoints(&filter).map(|all| format!("{all:?}")));
        }
        let facts = || {
            let state = session.state(&session.head()?)?;
            Ok(format!("{:?}", state.facts_of(Kind::Command)?))
        };
        note("facts".to_owned(), facts());
        let branches = || Ok(format!("{:?}", session.branches(&session.head()?)?));
        note("branches".to_owned(), branches());
    }
    read
}

/// The files of a store, sorted, relative to it.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                found.push(entry.strip_prefix(path).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Copies a store so that one file may be changed: the others are hard links.
pub(super) fn copy(from: &Path, to: &Path, changed: &Path) {
    for file in files(from) {
        let place = to.join(&file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        // Leases and locks are locked in place, so they must not be shared.
        let empty = from.join(&file).metadata().unwrap().len() == 0;
        if file == changed || empty || fs::hard_link(from.join(&file), &place).is_err() {
            fs::copy(from.join(&file), &place).unwrap();
        }
    }
}
