//! Pre-written objects: they are removed if the record that names them never comes, and stay as
//! long as it may.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{act, create, disk_bytes, open, revise, time};
use crate::fault::{can_inject_faults, copy, count, killed_at, run};
use forge_store::error::Error;
use forge_store::model::{Key, Kind, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    BundleRange, ClaimChange, NewSession, Options, Session, SourceChunk, Store, UNDO_MICROS,
    VerifyDepth, VerifyOutcome,
};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "FORGE_AHEAD_FOLDER";
const MINUTES_A_DAY: i64 = 24 * 60;
const DAYS: i64 = UNDO_MICROS / (MINUTES_A_DAY * 60_000_000);
/// Together larger than one record.
const NOTES: u64 = 40;

/// A text that hardly compresses.
fn text(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    text
}

fn note(number: u64) -> (Key, String) {
    (Key::new(Kind::Note, format!("large {number}")), text(number + 1, 60_000))
}

/// One revision with large values.
fn write(session: &Session) {
    let changes = (0..NOTES).map(|number| {
        let (key, text) = note(number);
        ClaimChange::put(key, Value::from([("description", text.into())]))
    });
    session.write(&act(10)).changes(changes).commit().unwrap();
}

/// Takes a source that is larger than one record.
fn take(session: &Session, store: &Store) {
    let source = text(7, 6 << 20).into_bytes();
    let bytes = store.redact_source(&source, TextForm::Plain, PartEnding::End);
    let taken = SourceChunk {
        bookmark: Default::default(),
        bytes,
        lines: 1,
        keep: true,
        ..SourceChunk::default()
    };
    let operation = store.new_operation().unwrap();
    session.import_chunk(&act(10), operation, "log", taken).unwrap();
    store.sync().unwrap();
}

fn import(store: &Store, path: &Path) {
    let bundle = std::fs::read(path.with_extension("bundle")).unwrap();
    store.import_bundle(&act(10), &mut Cursor::new(&bundle), None).unwrap();
}

/// Does the work of a role, in the child process.
fn work(role: &str, path: &Path) {
    let store = open(path);
    let session = store.session("s").unwrap();
    match role {
        "write" => write(&session),
        "take" => take(&session, &store),
        "import" => import(&store, path),
        other => panic!("{other}"),
    }
}

/// Whether the work is done.
fn is_done(role: &str, path: &Path) -> bool {
    let store = open(path);
    let holds = |name: &str| {
        let Ok(session) = store.session(name) else { return false };
        let head = session.head().unwrap();
        let held = (0..NOTES).filter(|number| {
            let (key, text) = note(*number);
            let found = session.claim(&head, &key).unwrap();
            found
                .inspect(|one| {
                    assert_eq!(
                        one.value.field("description").and_then(Value::as_text),
                        Some(&*text)
                    );
                })
                .is_some()
        });
        let held = held.count() as u64;
        assert!(held == 0 || held == NOTES, "a part of a revision: {held}");
        held > 0
    };
    match role {
        "write" => holds("s"),
        "import" => holds("other"),
        _ => {
            let mut found = Vec::new();
            let mut write = |part: &[u8]| {
                found.extend_from_slice(part);
                Ok::<_, Error>(())
            };
            let session = store.session("s").unwrap();
            let there = session.write_source("log", &mut write).is_ok();
            assert!(!there || found == text(7, 6 << 20).into_bytes());
            there
        }
    }
}

/// A store with some history, and a bundle of another store next to it.
fn prepared(folder: &Path) -> PathBuf {
    let path = folder.join("first");
    let store = create(&path);
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    // One value that the work of the roles does not write, and one that it writes too.
    revise(&session, 1, &[("own", Some(text(99, 9000))), ("same", Some(note(3).1))]);
    store.maintain(0).unwrap();
    let elsewhere = Store::in_memory().unwrap();
    let other = elsewhere.create_session(&act(0), NewSession::named("other")).unwrap();
    write(&other);
    let mut bundle = Vec::new();
    let mut out = |bytes: &[u8]| {
        bundle.extend_from_slice(bytes);
        Ok::<_, Error>(())
    };
    let range = BundleRange { session: other, from: 0, to: None };
    elsewhere.export_bundle(&[range], &mut out).unwrap();
    std::fs::write(path.with_extension("bundle"), bundle).unwrap();
    path
}

/// The number of objects in a store, which must be sound.
fn objects(path: &Path) -> u64 {
    let store = open(path);
    store.maintain(0).unwrap();
    store.compact().unwrap();
    drop(store);
    let verified = Store::verify(path, VerifyDepth::ReadData, time(9), None).unwrap();
    assert_eq!(verified.outcome, VerifyOutcome::Clean, "{:?}", verified.findings);
    verified.checked.objects
}

/// Runs what `forge maintain` does, this many days later.
fn swept(path: &Path, days: i64) {
    let now = time(10 + days * MINUTES_A_DAY);
    open(path).sweep(now, now.plus_micros(-UNDO_MICROS)).unwrap();
}

fn of_child(role: &str) {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    work(role, Path::new(&folder));
}

/// Not tests: the bodies of the processes that are killed or stopped.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child_write() {
    of_child("write");
}

#[test]
#[ignore = "the body of a process that a test starts"]
fn child_take() {
    of_child("take");
}

#[test]
#[ignore = "the body of a process that a test starts"]
fn child_import() {
    of_child("import");
}

#[test]
#[ignore = "the body of a process that a test starts"]
fn child_sweep() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let path = Path::new(&folder);
    swept(path, DAYS + 1);
    open(path).maintain(0).unwrap();
}

fn copied(folder: &Path, first: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let _ = std::fs::remove_dir_all(&path);
    copy(first, &path);
    std::fs::copy(first.with_extension("bundle"), path.with_extension("bundle")).unwrap();
    path
}

/// Leaves a store in which a killed process had pre-written objects, and returns their number.
fn debris(folder: &Path, first: &Path, role: &str, nth: usize) -> Option<(PathBuf, u64)> {
    let before = objects(first);
    let path = copied(folder, first, role);
    let child = format!("prune::ahead::child_{role}");
    if !killed_at(&child, (FOLDER, &path), "pwrite64", nth) || is_done(role, &path) {
        return None;
    }
    let left = objects(&path) - before;
    Some((path, left))
}

/// Regression: objects that a killed process had pre-written were kept for ever.
#[test]
fn objects_that_a_killed_process_pre_wrote_are_swept_after_their_time() {
    let test = "killed while pre-writing";
    if !can_inject_faults(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = prepared(folder.path());
    let (before, bytes) = (objects(&first), disk_bytes(&first));
    let step = count("FORGE_CRASH_STEP", 7).max(1) as usize;
    for role in ["write", "take", "import"] {
        let mut struck = 0;
        for nth in (1..200).step_by(if role == "write" { step } else { 1 }) {
            let Some((path, left)) = debris(folder.path(), &first, role, nth) else {
                if struck > 0 { break } else { continue }
            };
            if left == 0 {
                continue;
            }
            let what = format!("{role}, killed at {nth}");
            struck += 1;
            // Other processes must assume that it may still be named.
            swept(&path, 0);
            assert_eq!(objects(&path), before + left, "{what}");
            swept(&path, DAYS + 1);
            assert_eq!(objects(&path), before, "{what}: {left} objects were pre-written");
            let now = disk_bytes(&path);
            assert!(now < bytes + bytes / 4, "{what}: {now} bytes, {bytes} before");
            // The work of the killed process can be repeated.
            work(role, &path);
            assert!(is_done(role, &path), "{what}");
            objects(&path);
        }
        eprintln!("{test}, {role}: {struck} kills left objects behind, all of them went");
        assert!(struck > 0, "no kill of {role} left anything behind");
    }
}

/// Repeating the work within the grace period uses the objects that exist.
#[test]
fn pre_written_objects_that_are_named_later_stay() {
    let test = "named later";
    if !can_inject_faults(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = prepared(folder.path());
    for role in ["write", "take", "import"] {
        let mut struck = 0;
        for nth in 1..200 {
            let Some((path, 1..)) = debris(folder.path(), &first, role, nth) else { continue };
            struck += 1;
            work(role, &path);
            swept(&path, DAYS + 1);
            assert!(is_done(role, &path), "{role}, killed at {nth}");
            let done = objects(&path);
            let whole = copied(folder.path(), &first, "whole");
            work(role, &whole);
            assert!(is_done(role, &whole), "{role}");
            assert_eq!(done, objects(&whole), "{role}: nothing is left of the first time");
            if struck > 2 {
                break;
            }
        }
        assert!(struck > 0, "no kill of {role} left anything behind");
    }
}

#[test]
fn a_killed_sweep_of_pre_written_objects_is_finished_by_the_next_one() {
    let test = "killed while sweeping what was pre-written";
    if !can_inject_faults(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = prepared(folder.path());
    let before = objects(&first);
    let left = |nth| debris(folder.path(), &first, "write", nth).filter(|(_, left)| *left > 3);
    let (with, _) = (1..200).find_map(left).expect("some kill leaves objects behind");
    let mut struck = 0;
    let step = count("FORGE_CRASH_STEP", 7).max(1) as usize;
    for call in ["pwrite64", "write", "fdatasync", "fsync", "rename", "unlink"] {
        for nth in (1..6).chain((6..).step_by(step)) {
            let path = copied(folder.path(), &with, "killed");
            let killed = killed_at("prune::ahead::child_sweep", (FOLDER, &path), call, nth);
            swept(&path, DAYS + 1);
            assert_eq!(objects(&path), before, "{call}, {nth}");
            work("write", &path);
            assert!(is_done("write", &path), "{call}, {nth}");
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("{test}: {struck} kills");
    assert!(struck > 5, "the kills hardly struck");
}

/// Stops a process at its n-th call of this kind, calls `beside`, and continues the process.
/// Returns whether it was stopped, and whether it succeeded.
fn stopped(
    role: &str,
    path: &Path,
    (call, nth): (&str, usize),
    beside: &mut dyn FnMut(),
) -> (bool, bool) {
    let fifo = path.with_extension("fifo");
    let _ = std::fs::remove_file(&fifo);
    assert!(run("mkfifo", &[fifo.to_str().unwrap()]));
    let mut child = Command::new("strace")
        .args(["-f", "-o", fifo.to_str().unwrap()])
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:signal=STOP:when={nth}")])
        .arg(std::env::current_exe().unwrap())
        .args([
            &format!("prune::ahead::child_{role}"),
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, path)
        .stdout(Stdio::null())
        .stderr(File::create(path.with_extension("stderr")).unwrap())
        .spawn()
        .unwrap();
    let mut stood = false;
    for line in BufReader::new(File::open(&fifo).unwrap()).lines().map(Result::unwrap) {
        if !line.contains("--- stopped by SIGSTOP ---") {
            continue;
        }
        if !stood {
            beside();
            stood = true;
        }
        let thread = line.split_whitespace().next().unwrap();
        let _ = run("sh", &["-c", &format!("kill -CONT {thread}")]);
    }
    (stood, child.wait().unwrap().success())
}

/// A clock that is weeks ahead, by which all other processes seem dead, costs them only a retry.
#[test]
fn a_sweep_loses_nothing_of_a_process_stopped_while_it_pre_writes() {
    let test = "stopped while pre-writing";
    if !can_inject_faults(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = prepared(folder.path());
    let step = count("FORGE_CRASH_STEP", 7).max(1) as usize;
    let quick = Options::default().lock_timeout(Duration::from_millis(20));
    for role in ["write", "take", "import"] {
        let (mut beside, mut swept) = (0, 0);
        for call in ["flock", "fcntl", "pwrite64"] {
            // A revision has many objects.
            for nth in (1..150).step_by(if role == "write" { step } else { 1 }) {
                let path = copied(folder.path(), &first, role);
                let mut went = 0;
                let (stood, done) = stopped(role, &path, (call, nth), &mut || {
                    let store = Store::open(&path, quick.clone()).unwrap();
                    let now = time(10 + 99 * MINUTES_A_DAY);
                    let Ok(found) = store.sweep(now, now) else { return };
                    let _ = store.maintain(0);
                    (beside, went) = (beside + 1, found.prewritten);
                });
                let report = std::fs::read_to_string(path.with_extension("stderr")).unwrap();
                let what = format!("{role} stopped at {call} {nth}: {report}");
                swept += went;
                // A process that reports a failed write has written nothing, and can retry.
                assert!(done || went > 0 && role != "write", "{what}");
                if !done {
                    assert!(!is_done(role, &path), "{what}");
                    work(role, &path);
                }
                assert!(is_done(role, &path), "{what}");
                objects(&path);
                if !stood {
                    break;
                }
            }
        }
        eprintln!("{test}, {role}: {beside} sweeps beside it, of {swept} objects");
        assert!(beside > 0 && swept > 0, "{role}: {beside} sweeps beside it, of {swept} objects");
    }
}
