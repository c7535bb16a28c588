//! Child processes: this test binary started again in a role.

use super::{WAIT, act, fact, open};
use forge_store::backend::WriteAheadLog;
use forge_store::backend::journal::Journal;
use forge_store::store::{NewCheckpoint, NewSession};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

const ROLE: &str = "FORGE_SPOOL_ROLE";
const FOLDER: &str = "FORGE_SPOOL_FOLDER";

/// A process and its output.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) lines: Receiver<String>,
}

impl Process {
    pub(super) fn spawn(role: &str, path: &Path) -> Self {
        Self::begin(role, path, Command::new(std::env::current_exe().unwrap()))
    }

    /// Starts it under `strace` with these arguments.
    pub(super) fn traced(role: &str, path: &Path, arguments: &[&str]) -> Self {
        let mut program = Command::new("strace");
        program.args(arguments).arg(std::env::current_exe().unwrap());
        Self::begin(role, path, program)
    }

    fn begin(role: &str, path: &Path, mut program: Command) -> Self {
        let mut child = program
            .args([
                "spool::child::child", "--exact", "--ignored", "--nocapture", "--test-threads=1",
            ])
            .env(ROLE, role)
            .env(FOLDER, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // Lines that a kill cut, and lines of the test harness, are ignored.
                let line = String::from_utf8_lossy(&line).into_owned();
                if let Some(text) = line.strip_prefix('>').and_then(|line| line.strip_suffix('.')) {
                    let _ = sender.send(text.to_owned());
                }
            }
        });
        Self { child, lines }
    }

    /// Starts a process that is stopped during its write to the journal: half of a frame is
    /// written, and the process has the lock.
    pub(super) fn stopped_in_write(path: &Path) -> Self {
        let process = Self::spawn("hold", path);
        assert_eq!(process.lines.recv_timeout(WAIT).unwrap(), "held");
        let pid = process.child.id();
        let sent = Command::new("kill").args(["-STOP", &pid.to_string()]).status();
        assert!(sent.unwrap().success());
        process
    }

    pub(super) fn kill(mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n>{what}.\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Not a test: the body of the processes that the tests start.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let path = PathBuf::from(std::env::var(FOLDER).unwrap());
    match role.as_str() {
        "hold" => hold(&path),
        "keep" => {
            let store = open(&path, WAIT);
            let new = NewSession { agent_session: Some("a".to_owned()), ..NewSession::named("s") };
            let act = act("keep");
            let aside = store.spooled_write(&act, new).unwrap().fact(fact("kept"));
            if aside.checkpoint(NewCheckpoint::manual("kept")).save().is_ok() {
                say("kept");
            }
        }
        // Errors are ignored: another process will drain.
        "drain" => drop(open(&path, WAIT).drain()),
        _ => panic!("no role {role:?}"),
    }
}

fn hold(path: &Path) {
    let journal = Journal::open(&path.join("journal")).unwrap();
    let end = journal.read(0, u64::MAX).unwrap().end;
    let mut keep = |_: &forge_store::backend::LogTail| {
        let segment = path.join("journal/0000000000000000.log");
        // The state of a write that was interrupted here.
        let mut segment = OpenOptions::new().append(true).open(segment).unwrap();
        segment.write_all(b"FRJ\x01half of a frame").unwrap();
        say("held");
        // Waits until the parent ends.
        let _ = std::io::stdin().read(&mut [0]);
        None
    };
    journal.append(end, WAIT, &mut keep).unwrap();
}
