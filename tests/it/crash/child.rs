//! Child processes: this test binary started again to do work.

use super::open;
use super::work::{Planted, Worker};
use forge_store::store::Store;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

const FOLDER: &str = "FORGE_CRASH_FOLDER";
const TASK: &str = "FORGE_CRASH_TASK";

/// The work of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) writer: u64,
    pub(super) seed: u64,
    /// The second its clock starts at.
    pub(super) second: u64,
    pub(super) planted: Planted,
    /// Whether to do everything once and ignore errors; otherwise it works step by step until it is
    /// killed.
    pub(super) once: bool,
}

impl Task {
    pub(super) fn spawn(self, path: &Path, lines: &Sender<String>) -> Child {
        self.spawn_by(Command::new(std::env::current_exe().unwrap()), path, lines)
    }

    /// Starts it under `strace` with these arguments.
    pub(super) fn traced(self, arguments: &[&str], path: &Path, lines: &Sender<String>) -> Child {
        let mut program = Command::new("strace");
        program.args(arguments).arg(std::env::current_exe().unwrap());
        self.spawn_by(program, path, lines)
    }

    fn spawn_by(self, mut program: Command, path: &Path, lines: &Sender<String>) -> Child {
        let Self { writer, seed, second, planted, once } = self;
        let planted = Planted::ALL.iter().position(|one| *one == planted).unwrap();
        let mut child = program
            .args([
                "crash::child::child", "--exact", "--ignored", "--nocapture", "--test-threads=1",
            ])
            .env(FOLDER, path)
            .env(TASK, format!("{writer} {seed} {second} {planted} {}", u64::from(once)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let lines = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // Lines that a kill cut, and lines of the test harness, are ignored.
                let line = String::from_utf8_lossy(&line);
                if let Some(text) = line.strip_suffix(" .") {
                    let _ = lines.send(text.to_owned());
                }
            }
        });
        child
    }
}

fn say(line: &str) {
    let line = format!("\n{line} .\n");
    // A fault may be injected into this call too, and a line that is not read is not audited.
    for _ in 0..3 {
        let mut out = std::io::stdout().lock();
        match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => return,
            // The test was killed, so it does not end this process.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => panic!("{error}"),
            Err(_) => {}
        }
    }
}

/// Not a test: the body of the processes that the tests start.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let folder = std::env::var_os(FOLDER).unwrap();
    let task: Vec<u64> = task.split(' ').map(|word| word.parse().unwrap()).collect();
    let [writer, seed, second, planted, once] = task[..] else { panic!("{task:?}") };
    let planted = Planted::ALL[planted as usize];
    let store = open(Path::new(&folder));
    // Every second process maintains the store next to its work and preallocates in the journal,
    // like a long-lived process.
    let long_lived = store.as_ref().ok().filter(|_| once == 0 && seed.is_multiple_of(2));
    let _maintainer = long_lived.map(Store::maintainer);
    let mut out = |line: &str| say(line);
    let worker =
        store.and_then(|store| Worker::new(store, (writer, seed, second), planted, &mut out));
    if once == 1 {
        if let Ok(mut worker) = worker {
            worker.all();
        }
        return say("end");
    }
    let fails = |error| {
        say(&format!("failed {error}"));
        panic!("{error}")
    };
    let mut worker = worker.unwrap_or_else(fails);
    loop {
        if let Err(error) = worker.step() {
            say(&format!("failed {error}"));
            panic!("{error}");
        }
    }
}
