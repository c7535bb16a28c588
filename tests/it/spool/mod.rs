//! The spool: writes next to a frozen process or a damaged journal are visible at once, and are
//! drained once.

#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

mod child;
mod kill;

use child::Process;
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Fact, FactOrigin, Key, Kind, Timestamp, Value};
use forge_store::store::{
    CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, Session, Store,
    WriteContext, WriteReport,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than anything here takes; only a fault makes a test wait this long.
const WAIT: Duration = Duration::from_secs(60);
/// How long a write waits for a lock that it will not get.
const PATIENCE: Duration = Duration::from_millis(20);
const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);

fn act(verb: &str) -> WriteContext {
    WriteContext::hook(verb, TIME)
}

fn open(path: &Path, lock_timeout: Duration) -> Store {
    Store::open(path, Options::default().lock_timeout(lock_timeout)).unwrap()
}

fn reader(path: &Path) -> Store {
    Store::open(path, Options::default().read_only(true)).unwrap()
}

fn fact(id: &str) -> Fact {
    let value = Value::from([("text", id.into())]);
    let (kind, origin) = (Kind::Prompt, FactOrigin::Hook);
    Fact { kind, id: id.to_owned(), at: TIME, origin, place: 0, recorded_at: TIME, value }
}

fn note(id: &str) -> ClaimChange {
    ClaimChange::add(Key::new(Kind::Note, id), Value::from([("description", id.into())]))
}

/// Saves a fact and a checkpoint with this name, as a hook does.
fn save(session: &Session, name: &str) -> Result<WriteReport, Error> {
    let act = act("save");
    session.write(&act).fact(fact(name)).checkpoint(NewCheckpoint::manual(name)).commit()
}

struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let new = NewSession { agent_session: Some("a".to_owned()), ..NewSession::named("s") };
    let session = store.create_session(&act("begin"), new).unwrap();
    session.write(&act("before")).change(note("before")).commit().unwrap();
    Folder { _folder: folder, path }
}

/// The names of facts, checkpoints and notes in the store. Checks that every number exists once.
fn held(store: &Store) -> [BTreeSet<String>; 3] {
    let session = store.session("s").unwrap();
    let records = session.records(1, usize::MAX).unwrap();
    let numbers: Vec<u64> = records.iter().map(forge_store::store::LogItem::sequence).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let head = session.head().unwrap();
    session.check_digest(&head).unwrap();
    let state = session.state(&head).unwrap();
    let facts = state.facts_of(Kind::Prompt).unwrap().into_iter().map(|known| known.fact.id);
    let facts: Vec<String> = facts.collect();
    assert_eq!(session.summary().unwrap().facts, facts.len() as u64, "facts count once");
    let made = session.checkpoints(&CheckpointFilter::default()).unwrap();
    let messages: BTreeSet<String> = made.iter().map(|one| one.message.clone()).collect();
    assert_eq!(messages.len(), made.len(), "checkpoints count once");
    assert_eq!(session.summary().unwrap().checkpoints, made.len() as u64);
    let claims = state.claims().entries().map(|entry| entry.unwrap().0.id).collect();
    [facts.into_iter().collect(), messages, claims]
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path.join("spool")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

const FOLDERS: [&str; 2] = ["spool", "spool.copy"];

/// Hides the spooled writes.
fn hide(path: &Path) {
    for folder in FOLDERS {
        fs::rename(path.join(folder), path.join(format!("{folder}.hidden"))).unwrap();
    }
}

fn show(path: &Path) {
    for folder in FOLDERS {
        fs::rename(path.join(format!("{folder}.hidden")), path.join(folder)).unwrap();
    }
}

#[test]
fn a_save_beside_a_stopped_writer_is_spooled_visible_at_once_and_drained_once() {
    let folder = folder();
    let store = open(&folder.path, PATIENCE);
    let session = store.session("s").unwrap();
    let holder = Process::stopped_in_write(&folder.path);

    let done = save(&session, "one").unwrap();
    assert!(done.spooled);
    assert_eq!(done.checkpoint.as_ref().unwrap().sequence, 2);
    let warning = done.warnings.join(" ");
    assert!(warning.contains(&holder.child.id().to_string()), "it names the holder: {warning}");
    // Also in another process, which opens the store again.
    let done = save(&open(&folder.path, PATIENCE).session("s").unwrap(), "two").unwrap();
    assert_eq!((done.spooled, done.checkpoint.unwrap().sequence), (true, 3));
    let noted = session.write(&act("note")).change(note("three")).commit().unwrap();
    assert_eq!((noted.spooled, noted.revision.unwrap().0), (true, 4));

    let wanted = [names(["one", "two"]), names(["one", "two"]), names(["before", "three"])];
    assert_eq!(held(&store), wanted);
    assert_eq!(held(&reader(&folder.path)), wanted);
    assert_eq!(store.spool_status().unwrap().writes, 3);

    // A write that needs an expected head is not spooled.
    let change = ClaimChange::remove(Key::new(Kind::Note, "before"));
    let refused = session.write(&act("remove")).change(change).commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked);
    assert!(refused.to_string().contains(&holder.child.id().to_string()), "{refused}");
    assert_eq!(session.schedule(&act("s"), Some(9_000_000)).unwrap_err().kind(), ErrorKind::Locked);

    holder.kill();
    let drains: Vec<_> = (0..4).map(|_| Process::spawn("drain", &folder.path)).collect();
    for mut drain in drains {
        assert!(drain.child.wait().unwrap().success());
    }
    assert_eq!(files(&folder.path), Vec::<PathBuf>::new());
    assert_eq!(held(&reader(&folder.path)), wanted);
    // The old handle continues, and so do all others.
    save(&session, "four").unwrap();
    let wanted =
        [names(["one", "two", "four"]), names(["one", "two", "four"]), names(["before", "three"])];
    assert_eq!(held(&store), wanted);
    store.maintain(0).unwrap();
    assert_eq!(held(&reader(&folder.path)), wanted);
}

#[test]
fn notes_without_an_id_get_different_ids_in_the_spool_and_after_it() {
    let folder = folder();
    let session = open(&folder.path, PATIENCE).session("s").unwrap();
    let add = |session: &Session| {
        let act = act("note");
        session.write(&act).add_next(Kind::Note, "N", note_value()).commit().unwrap()
    };
    assert_eq!(add(&session).new_id.as_deref(), Some("N1"));
    let holder = Process::stopped_in_write(&folder.path);
    for id in ["N2", "N3"] {
        let done = add(&open(&folder.path, PATIENCE).session("s").unwrap());
        assert_eq!((done.spooled, done.new_id.as_deref()), (true, Some(id)));
        assert_eq!(done.changed, [(Key::new(Kind::Note, id), Some(note_value()))]);
    }
    holder.kill();
    let store = open(&folder.path, WAIT);
    let done = add(&store.session("s").unwrap());
    assert_eq!((done.spooled, done.new_id.as_deref()), (false, Some("N4")));
    assert_eq!(held(&store)[2], names(["before", "N1", "N2", "N3", "N4"]));
}

#[test]
fn the_next_write_drains_the_spool_first() {
    let folder = folder();
    let store = open(&folder.path, PATIENCE);
    let session = store.session("s").unwrap();
    let holder = Process::stopped_in_write(&folder.path);
    save(&session, "waits").unwrap();
    holder.kill();
    let done = save(&open(&folder.path, WAIT).session("s").unwrap(), "next").unwrap();
    assert_eq!((done.spooled, done.checkpoint.unwrap().sequence), (false, 3));
    assert_eq!(files(&folder.path), Vec::<PathBuf>::new());
    assert_eq!(held(&store)[1], names(["waits", "next"]));
}

#[test]
fn a_file_that_reappears_after_the_drain_changes_nothing() {
    let folder = folder();
    let store = open(&folder.path, WAIT);
    let new = NewSession { agent_session: Some("a".to_owned()), ..NewSession::named("other") };
    let keep = act("keep");
    let aside = store.spooled_write(&keep, new).unwrap().fact(fact("one")).note("N", note_value());
    assert!(aside.checkpoint(NewCheckpoint::manual("one")).save().unwrap().spooled);
    let file = files(&folder.path).pop().unwrap();
    let bytes = fs::read(&file).unwrap();
    let wanted = [names(["one"]), names(["one"]), names(["before", "N"])];
    for round in 0..3 {
        assert_eq!(held(&store), wanted, "round {round}");
        if round == 2 {
            store.maintain(0).unwrap();
        }
        store.drain().unwrap();
        assert_eq!(files(&folder.path), Vec::<PathBuf>::new());
        assert_eq!(held(&store), wanted, "round {round}");
        fs::write(&file, &bytes).unwrap();
    }
    // An undone write stays undone, even if it is drained again.
    store.drain().unwrap();
    let session = store.session("s").unwrap();
    let done = session.operations(10).unwrap();
    let kept = done.iter().find(|one| one.verb == "keep").unwrap();
    session.undo(&WriteContext::asked("undo", TIME), Some(&kept.id.to_string())).unwrap();
    fs::write(&file, &bytes).unwrap();
    store.drain().unwrap();
    assert_eq!(session.checkpoints(&CheckpointFilter::default()).unwrap(), []);
}

fn note_value() -> Value {
    Value::from([("description", "a note".into())])
}

#[test]
fn a_name_taken_by_another_writer_is_changed_and_nothing_is_lost() {
    let folder = folder();
    let store = open(&folder.path, PATIENCE);
    let session = store.session("s").unwrap();
    let holder = Process::stopped_in_write(&folder.path);
    let done = session.write(&act("note")).change(note("N1")).commit().unwrap();
    assert!(done.spooled);
    // A second one is refused as long as its caller can still be informed.
    let again = session.write(&act("note")).change(note("N1")).commit().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid, "{again}");
    let begun = store.create_session(&act("begin"), NewSession::named("new")).unwrap();
    assert!(save(&begun, "in the new one").unwrap().spooled);
    assert_eq!(begun.summary().unwrap().checkpoints, 1);
    holder.kill();

    // Before the drain, others take both names. This hides the spool, because every ordinary write
    // drains it first.
    hide(&folder.path);
    let other = open(&folder.path, WAIT);
    other.session("s").unwrap().write(&act("n")).change(note("N1")).commit().unwrap();
    other.create_session(&act("begin"), NewSession::named("new")).unwrap();
    show(&folder.path);
    other.drain().unwrap();

    let operation = done.operation.to_string();
    assert_eq!(held(&other)[2], names(["before", "N1", &format!("N1-{}", &operation[..8])]));
    assert_eq!(other.session("new-2").unwrap().summary().unwrap().checkpoints, 1);
    // A caller that got a number for the session must not continue with it: the number belongs to
    // another session now.
    let refused = begun.summary().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(save(&begun, "lost?").unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_spooled_checkpoint_has_the_revision_at_the_time_of_its_save() {
    let folder = folder();
    let store = open(&folder.path, PATIENCE);
    let holder = Process::stopped_in_write(&folder.path);
    save(&store.session("s").unwrap(), "early").unwrap();
    holder.kill();
    hide(&folder.path);
    let other = open(&folder.path, WAIT);
    let later = WriteContext::asked("later", TIME.plus_micros(1_000_000));
    let session = other.session("s").unwrap();
    session.write(&later).change(note("later")).commit().unwrap();
    show(&folder.path);
    other.drain().unwrap();
    let made = session.checkpoints(&CheckpointFilter::default()).unwrap().pop().unwrap();
    assert_eq!((made.sequence, made.revision), (3, Some(1)));
    let state = session.state(&session.at_checkpoint(&made).unwrap()).unwrap();
    assert_eq!(state.claims().len(), 1);
}

/// Two hooks at the same time, or one twice: none of their notes about one event replaces
/// another's.
#[test]
fn completions_of_a_checkpoint_in_the_spool_are_merged_in_any_order() {
    let folder = folder();
    let process = Process::stopped_in_write(&folder.path);
    let store = open(&folder.path, PATIENCE);
    let session = store.session("s").unwrap();
    let note = |micros: i64, at: Option<Timestamp>, field: &str| {
        let body = Value::from([(field, true.into())]);
        let key = Some("event".to_owned());
        let new = NewCheckpoint { at, body, key, ..NewCheckpoint::manual("it") };
        let act = WriteContext::hook("note", TIME.plus_micros(micros));
        session.write(&act).checkpoint(new).commit().unwrap()
    };
    note(0, None, "announced");
    // Both have the same time, so either may come first.
    note(1, Some(TIME), "done");
    note(1, Some(TIME), "handed");
    // An event that is announced twice is recorded once, and nothing more is kept in the spool.
    let again = note(2, None, "again");
    assert!(again.is_unchanged() && !again.spooled);
    assert_eq!(again.warnings, Vec::<String>::new());
    assert_eq!(store.spool_status().unwrap().writes, 3);
    let known = |store: &Store| {
        let found = store.session("s").unwrap().checkpoints(&CheckpointFilter::default()).unwrap();
        let fields = found.iter().filter_map(|one| one.body.as_map()).flat_map(|it| it.keys());
        (found.len(), fields.cloned().collect::<BTreeSet<_>>())
    };
    let wanted = (1, names(["announced", "done", "handed"]));
    assert_eq!(known(&reader(&folder.path)), wanted);
    process.kill();
    open(&folder.path, WAIT).drain().unwrap();
    assert_eq!(known(&reader(&folder.path)), wanted);
    assert!(files(&folder.path).is_empty());
}

/// Regression: a process whose store was replaced put its writes into the spool of the other store.
#[test]
fn a_write_is_not_spooled_in_a_store_that_took_the_place_of_its_own() {
    let [folder, other] = [folder(), folder()];
    save(&open(&folder.path, WAIT).session("s").unwrap(), "one").unwrap();
    // A process that has not written yet finds the journal by its path.
    let session = open(&folder.path, WAIT).session("s").unwrap();
    fs::rename(&folder.path, folder.path.with_extension("old")).unwrap();
    fs::rename(&other.path, &folder.path).unwrap();
    assert_eq!(save(&session, "two").unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(files(&folder.path).is_empty());
    let wanted = [BTreeSet::new(), BTreeSet::new(), names(["before"])];
    assert_eq!(held(&reader(&folder.path)), wanted);
}

#[test]
fn with_a_damaged_journal_hooks_spool_and_a_repair_drains() {
    let folder = folder();
    let store = open(&folder.path, WAIT);
    let session = store.session("s").unwrap();
    let segment = folder.path.join("journal/0000000000000000.log");
    let seen = fs::read(&segment).unwrap().len();
    save(&open(&folder.path, WAIT).session("s").unwrap(), "before").unwrap();
    let whole = fs::read(&segment).unwrap();
    let mut bytes = whole.clone();
    bytes[seen + 100] ^= 1;
    fs::write(&segment, &bytes).unwrap();

    let other = open(&folder.path, WAIT);
    assert_eq!(other.session("s").map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
    // One writer knew the session before, and one knows only the agent's own id.
    save(&session, "known").unwrap();
    let new = NewSession { agent_session: Some("a".to_owned()), ..NewSession::named("x") };
    let keep = act("keep");
    let aside = other.spooled_write(&keep, new).unwrap().fact(fact("unknown"));
    let done = aside.checkpoint(NewCheckpoint::manual("unknown")).save().unwrap();
    assert!(done.spooled);
    assert_eq!(other.sessions().unwrap_err().kind(), ErrorKind::Corrupt);
    // Nothing else may be written.
    assert_eq!(other.pin_session(&act("pin"), None).unwrap_err().kind(), ErrorKind::Corrupt);

    fs::write(&segment, whole).unwrap();
    let all = names(["before", "known", "unknown"]);
    assert_eq!(held(&reader(&folder.path))[1], all);
    open(&folder.path, WAIT).drain().unwrap();
    assert_eq!(files(&folder.path), Vec::<PathBuf>::new());
    assert_eq!(held(&reader(&folder.path))[..2], [all.clone(), all]);
}
