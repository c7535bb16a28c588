//! Writers at the same time: processes and threads, in one session and in one each. Bare appends of
//! the same number of bytes show what the disk allows.

use super::{TURNS, act, create, note, summary};
use forge_store::store::{NewSession, Options, Store};
use serde_json::{Value as Json, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The environment variables with the arguments of a child: its kind, the folder of its store, and
/// its session.
const CHILD: &str = "FORGE_BENCH_CHILD";
const FOLDER: &str = "FORGE_BENCH_FOLDER";
const SESSION: &str = "FORGE_BENCH_SESSION";
/// Checkpoints or appends of each process or thread.
const CREATES: usize = 300;
/// Bytes of a bare append: as many as the record of a checkpoint with a note of 300 bytes has.
const APPEND_BYTES: usize = 1100;

/// The kinds of writers.
const CHECKPOINTS: &str = "checkpoints";
const APPENDS: &str = "appends";

/// Returns the kind of writer that this process is, if it is a child.
pub(super) fn child_kind() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Writes as a child, and prints how long each write took in milliseconds.
pub(super) fn child(kind: &str) {
    let path = std::env::var(FOLDER).expect("a folder");
    let path = Path::new(&path);
    let mut times = if kind == APPENDS {
        let file = open_to_append(path);
        wait_for_start();
        (0..CREATES).map(|_| append(&file)).collect::<Vec<_>>()
    } else {
        let store = Store::open(path, Options::default()).expect("the store");
        let session = store.session(&std::env::var(SESSION).expect("a name")).expect("the session");
        let number = std::process::id() as usize;
        wait_for_start();
        (0..CREATES).map(|step| create(&session, step, [note(number, step, 300)])).collect()
    };
    let times: Vec<String> = times.drain(..).map(|time| time.to_string()).collect();
    println!("{}", times.join(" "));
}

/// Waits for a line from the parent, which starts all its children at the same time.
fn wait_for_start() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
}

fn open_to_append(folder: &Path) -> File {
    let path = folder.join("appended");
    OpenOptions::new().create(true).append(true).open(path).expect("a file")
}

/// Does what an append to any journal needs: a lock, a write, and a sync after the lock is
/// released. Returns the milliseconds.
fn append(file: &File) -> f64 {
    let start = Instant::now();
    file.lock().expect("the lock");
    (&*file).write_all(&[7; APPEND_BYTES]).expect("an append");
    file.unlock().expect("the lock");
    file.sync_data().expect("a sync");
    start.elapsed().as_secs_f64() * 1e3
}

/// Runs this many processes in these sessions, in turn. Returns the writes per second and the time
/// of each write in milliseconds.
fn run_children(kind: &str, path: &Path, sessions: &[String], count: usize) -> (f64, Vec<f64>) {
    let program = std::env::current_exe().expect("this program");
    let start_child = |place: usize| -> Child {
        Command::new(&program)
            .env(CHILD, kind)
            .env(FOLDER, path)
            .env(SESSION, &sessions[place % sessions.len()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child")
    };
    let mut children: Vec<Child> = (0..count).map(start_child).collect();
    std::thread::park_timeout(Duration::from_millis(300));
    let start = Instant::now();
    for child in &mut children {
        child.stdin.take().expect("a pipe").write_all(b"go\n").expect("a word");
    }
    let mut times = Vec::new();
    for mut child in children {
        let mut text = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
        child.wait().expect("an end");
        times.extend(text.split_whitespace().map(|word| word.parse::<f64>().expect("a time")));
    }
    ((count * CREATES) as f64 / start.elapsed().as_secs_f64(), times)
}

/// Runs this many threads of this process. Each calls `begin` with its number and waits for the
/// others, and then writes by calls of the returned function with the number of the write, which
/// returns milliseconds. Returns the same as [`run_children`].
fn run_threads<W: FnMut(usize) -> f64>(
    count: usize,
    begin: impl Fn(usize) -> W + Sync,
) -> (f64, Vec<f64>) {
    let gate = Barrier::new(count + 1);
    let one = |place: usize| {
        let write = begin(place);
        gate.wait();
        (0..CREATES).map(write).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..count).map(|place| scope.spawn(move || one(place))).collect();
        gate.wait();
        let start = Instant::now();
        let mut times = Vec::new();
        for thread in running {
            times.extend(thread.join().expect("a thread"));
        }
        ((count * CREATES) as f64 / start.elapsed().as_secs_f64(), times)
    })
}

fn store_with_sessions(path: &Path, count: usize) -> (Store, Vec<String>) {
    let store = Store::create(path, Options::default()).expect("a store");
    let names: Vec<String> = (0..count).map(|place| format!("s{place}")).collect();
    for name in &names {
        store.create_session(&act(0), NewSession::named(name.as_str())).expect("a session");
    }
    (store, names)
}

/// Measures all kinds of writers by turns, and prints the figures.
pub(super) fn writers() {
    let turn = || {
        let folder = tempfile::tempdir().expect("a folder");
        let mut turn = json!({});
        let mut add = |name: &str, (rate, times): (f64, Vec<f64>)| {
            turn[name] = json!({ "per_second": rate.round(), "create": summary(times) });
        };
        for (name, count, sessions) in [("one", 1, 1), ("eight", 8, 1), ("eight_sessions", 8, 8)] {
            let path = folder.path().join(name);
            let (_, names) = store_with_sessions(&path, sessions);
            add(name, run_children(CHECKPOINTS, &path, &names, count));
        }
        for (name, count) in [("one_append", 1), ("eight_appends", 8)] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).expect("a folder");
            add(name, run_children(APPENDS, &path, &[String::new()], count));
        }
        for (name, count) in [("one_thread", 1), ("threads", 64)] {
            let (store, _) = store_with_sessions(&folder.path().join(name), count);
            let maintainer = store.maintainer();
            let begin = |place: usize| {
                let session = store.session(&format!("s{place}")).expect("the session");
                move |step| create(&session, step, [note(place, step, 300)])
            };
            add(name, run_threads(count, begin));
            drop(maintainer);
        }
        let path = folder.path().join("thread_appends");
        std::fs::create_dir(&path).expect("a folder");
        let begin = |_| {
            let file = open_to_append(&path);
            move |_| append(&file)
        };
        add("thread_appends", run_threads(64, begin));
        turn
    };
    let turns: Vec<Json> = (0..TURNS).map(|_| turn()).collect();
    println!("{}", json!({ "part": "writers", "turns": turns }));
}
