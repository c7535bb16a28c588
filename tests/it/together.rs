//! Threads and processes that share one store: no write is lost, repeated, or visible in part.

use forge_store::backend::WriteAheadLog;
use forge_store::backend::journal::Journal;
use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, Session, Store, WriteContext,
};
use forge_testkit::audit::audit;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const ROLE: &str = "FORGE_TOGETHER_ROLE";
const FOLDER: &str = "FORGE_TOGETHER_FOLDER";
const WRITER: &str = "FORGE_TOGETHER_WRITER";
const WRITES: &str = "FORGE_TOGETHER_WRITES";
/// Longer than anything here takes; only a fault makes a test wait this long.
const WAIT: Duration = Duration::from_secs(60);

fn act() -> WriteContext {
    WriteContext::asked("test", Timestamp::from_micros(1_767_261_600_000_000))
}

fn open(path: &Path) -> Store {
    Store::open(path, Options::default().lock_timeout(WAIT)).unwrap()
}

/// Writes one more claim and a checkpoint with its name, in one record.
fn write(session: &Session, name: &str) -> u64 {
    let value = Value::from([("description", name.into())]);
    let done = session
        .write(&act())
        .change(ClaimChange::add(Key::new(Kind::Note, name), value))
        .checkpoint(NewCheckpoint::manual(name))
        .commit()
        .unwrap();
    done.checkpoint.unwrap().sequence
}

struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    store.create_session(&act(), NewSession::named("s")).unwrap();
    Folder { _folder: folder, path }
}

fn spawn(role: &str, path: &Path, writer: usize, writes: usize) -> (Child, Receiver<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["together::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FOLDER, path)
        .env(WRITER, writer.to_string())
        .env(WRITES, writes.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // Lines that a kill cut, and lines of the test harness, are ignored.
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some(text) = line.strip_suffix('.').and_then(|line| line.rsplit('>').next())
                && line.contains('>')
            {
                let _ = sender.send(text.to_owned());
            }
        }
    });
    (child, lines)
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, ">{what}.").unwrap();
    out.flush().unwrap();
}

/// Not a test: the body of the processes that the tests start.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let number = |name| std::env::var(name).unwrap().parse::<usize>().unwrap();
    let path = PathBuf::from(std::env::var(FOLDER).unwrap());
    let (writer, writes) = (number(WRITER), number(WRITES));
    if role == "hold" {
        let journal = Journal::open(&path.join("journal")).unwrap();
        let mut keep = |_: &forge_store::backend::LogTail| {
            say("held");
            // Waits until the test ends or kills it.
            let _ = std::io::stdin().read(&mut [0]);
            None
        };
        let end = journal.read(0, u64::MAX).unwrap().end;
        journal.append(end, WAIT, &mut keep).unwrap();
        return;
    }
    let store = open(&path);
    let threads = if role == "threads" { 2 } else { 1 };
    thread::scope(|scope| {
        for thread in 0..threads {
            let session = store.session("s").unwrap();
            scope.spawn(move || {
                for count in 0..writes {
                    let name = format!("w{writer}-{thread}-{count}");
                    write(&session, &name);
                    say(&name);
                    if count % 5 == 4 {
                        session.store().maintain(0).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn threads_and_processes_write_into_one_store_while_it_is_applied_and_read() {
    let folder = folder();
    const WRITES_EACH: usize = 20;
    let mut children: Vec<_> =
        (0..3).map(|writer| spawn("threads", &folder.path, writer, WRITES_EACH)).collect();
    let wanted = std::env::var("FORGE_TEST_VIEWS").ok().and_then(|views| views.parse().ok());
    let (mut view, mut seen) = (0, 0);
    // As many views as requested, and until all writes are visible.
    while view < wanted.unwrap_or(100) || seen < 3 * 2 * WRITES_EACH as u64 {
        view += 1;
        let options = Options::default().read_only(true);
        let store = Store::open(&folder.path, options).unwrap();
        let session = store.session("s").unwrap();
        let summary = session.summary().unwrap();
        assert_eq!(summary.last_sequence, 2 * summary.checkpoints, "view {view}");
        assert_eq!(summary.claims, summary.checkpoints, "view {view}");
        assert!(summary.checkpoints >= seen, "view {view} shows less than the one before");
        seen = summary.checkpoints;
        let head = session.head().unwrap();
        let state = session.state(&head).unwrap();
        let revision = head.revision().unwrap_or(0);
        assert_eq!(state.claims().len() as u64, revision.div_ceil(2), "view {view}");
        session.check_digest(&head).unwrap();
        let last = state.checkpoint().unwrap().map_or(0, |one| one.sequence);
        assert!(last.is_multiple_of(2) && last > revision || revision == 0, "view {view}");
    }
    let mut acknowledged = BTreeSet::new();
    for (child, lines) in &mut children {
        assert!(child.wait().unwrap().success());
        acknowledged.extend(lines.iter());
    }
    assert_eq!(acknowledged.len(), 3 * 2 * WRITES_EACH);
    let store = open(&folder.path);
    let session = store.session("s").unwrap();
    audit(&session, &acknowledged);
    assert_eq!(session.summary().unwrap().last_sequence, 2 * acknowledged.len() as u64);
}

/// Regression: a log in memory was locked while a record was planned, and planning reads the log:
/// two threads waited for each other.
#[test]
fn threads_share_one_store_in_memory_and_in_files_while_it_is_applied() {
    let folder = folder();
    let memory = Store::in_memory().unwrap();
    memory.create_session(&act(), NewSession::named("s")).unwrap();
    for store in [memory, open(&folder.path)] {
        let session = store.session("s").unwrap();
        thread::scope(|scope| {
            for writer in 0..4 {
                let session = session.clone();
                scope.spawn(move || {
                    for count in 0..25 {
                        write(&session, &format!("w{writer}-{count}"));
                    }
                });
            }
            scope.spawn(|| {
                while session.summary().unwrap().checkpoints < 100 {
                    store.maintain(0).unwrap();
                }
            });
        });
        let all = (0..4).flat_map(|writer| (0..25).map(move |count| format!("w{writer}-{count}")));
        audit(&session, &all.collect());
    }
}

#[test]
fn acknowledged_writes_of_a_killed_writer_stay_and_the_next_writer_continues() {
    let folder = folder();
    let mut acknowledged = BTreeSet::new();
    for round in 0..40 {
        let (mut child, lines) = spawn("alone", &folder.path, round, 1000);
        // At some point in or after a write, an application or a publication.
        for _ in 0..=round % 7 {
            acknowledged.insert(lines.recv_timeout(WAIT).unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines.iter());
        let store = open(&folder.path);
        let session = store.session("s").unwrap();
        let summary = session.summary().unwrap();
        assert_eq!(summary.last_sequence, 2 * summary.checkpoints);
        assert!(summary.checkpoints >= acknowledged.len() as u64, "round {round}");
        let name = format!("after {round}");
        assert_eq!(write(&session, &name), summary.last_sequence + 2);
        acknowledged.insert(name);
    }
    let store = open(&folder.path);
    audit(&store.session("s").unwrap(), &acknowledged);
    store.maintain(0).unwrap();
    audit(&open(&folder.path).session("s").unwrap(), &acknowledged);
}

#[test]
fn with_a_frozen_lock_holder_writes_name_it_and_reads_continue() {
    let folder = folder();
    let store = open(&folder.path);
    write(&store.session("s").unwrap(), "before");
    let (mut child, lines) = spawn("hold", &folder.path, 0, 0);
    assert_eq!(lines.recv_timeout(WAIT).unwrap(), "held");
    let options = Options::default().lock_timeout(Duration::from_millis(50));
    let impatient = Store::open(&folder.path, options).unwrap();
    let session = impatient.session("s").unwrap();
    let value = Value::from([("description", "x".into())]);
    let change = ClaimChange::add(Key::new(Kind::Belief, "b"), value);
    let error = session.write(&act()).change(change.clone()).commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(error.to_string().contains(&child.id().to_string()), "it names the holder: {error}");
    assert_eq!(session.state(&session.head().unwrap()).unwrap().claims().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    session.write(&act()).change(change).commit().unwrap();
    assert_eq!(session.state(&session.head().unwrap()).unwrap().claims().len(), 2);
}
