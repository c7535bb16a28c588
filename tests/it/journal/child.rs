//! Child processes: this test binary started again in a role.

use super::{SeededNumbers, WAIT};
use forge_store::backend::journal::Journal;
use forge_store::backend::{AppendedRecord, LogPosition, WriteAheadLog};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const ROLE: &str = "FORGE_TEST_ROLE";
const FOLDER: &str = "FORGE_TEST_FOLDER";
const WRITER: &str = "FORGE_TEST_WRITER";
const RECORDS: &str = "FORGE_TEST_RECORDS";

/// The size of the largest record that a writer makes, in bytes.
const LARGEST: u64 = 20_000;
/// A writer starts a new segment about every this many records.
const ROTATION: u64 = 40;

/// The role of a process.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// Append, sync and acknowledge in a loop.
    Write,
    /// The same without syncs.
    WriteUnsynced,
    /// Take the append lock and keep it.
    Hold,
    /// Do each operation of a journal a few times, and ignore errors.
    Exercise,
}

/// A process and its output.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) lines: Receiver<String>,
}

impl Process {
    pub(super) fn spawn(role: Role, folder: &Path, writer: u64, records: u64) -> Self {
        let program = Command::new(std::env::current_exe().unwrap());
        Self::begin(role, folder, writer, records, program)
    }

    /// Starts it under `strace` with these arguments.
    pub(super) fn traced(role: Role, folder: &Path, arguments: &[&str]) -> Self {
        let mut program = Command::new("strace");
        program.args(arguments).arg(std::env::current_exe().unwrap());
        Self::begin(role, folder, 0, 0, program)
    }

    fn begin(role: Role, folder: &Path, writer: u64, records: u64, program: Command) -> Self {
        let (sender, lines) = channel();
        let hear = move |line| drop(sender.send(line));
        Self { child: spawn(role, folder, writer, records, program, hear), lines }
    }

    /// Kills it with SIGKILL, and waits until it has ended.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// Starts a writer whose lines go, with its number, to a channel that several writers share.
pub(super) fn spawn_writer(
    role: Role,
    folder: &Path,
    writer: u64,
    lines: &Sender<(u64, String)>,
) -> Child {
    let lines = lines.clone();
    let program = Command::new(std::env::current_exe().unwrap());
    let hear = move |line| drop(lines.send((writer, line)));
    spawn(role, folder, writer, u64::MAX, program, hear)
}

fn spawn(
    role: Role,
    folder: &Path,
    writer: u64,
    records: u64,
    mut program: Command,
    hear: impl Fn(String) + Send + 'static,
) -> Child {
    let role = match role {
        Role::Write => "write",
        Role::WriteUnsynced => "write unsynced",
        Role::Hold => "hold",
        Role::Exercise => "exercise",
    };
    let mut child = program
        .args(["journal::child::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(WRITER, writer.to_string())
        .env(RECORDS, records.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    thread::spawn(move || {
        // A line that the kill cut is ignored.
        BufReader::new(output).split(b'\n').map_while(Result::ok).for_each(|line| {
            if let Ok(line) = String::from_utf8(line)
                && line.ends_with('.')
            {
                hear(line);
            }
        });
    });
    child
}

/// Not a test: the body of the processes that other tests start.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var_os(FOLDER).unwrap();
    let folder = Path::new(&folder);
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    match role.as_str() {
        "write" => write(&Journal::open(folder).unwrap(), number(WRITER), number(RECORDS)),
        "write unsynced" => {
            let journal = Journal::without_sync_for_canary(folder).unwrap();
            write(&journal, number(WRITER), number(RECORDS));
        }
        "exercise" => exercise(&Journal::open(folder).unwrap()),
        "hold" => hold(&Journal::open(folder).unwrap()),
        _ => panic!("no role {role:?}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line} .\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Appends `writer count filler` for count = 0, 1, ...; prints `ack count position hash` for each
/// record once it is durable.
fn write(journal: &Journal, writer: u64, records: u64) {
    let mut numbers = SeededNumbers(writer);
    let mut from: LogPosition = journal.start().unwrap();
    for count in 0..records {
        let length = numbers.below(LARGEST) * numbers.below(2) + numbers.below(200);
        let mut payload = format!("{writer} {count} ").into_bytes();
        payload.resize(payload.len() + length as usize, b'a' + (count % 26) as u8);
        let appended = if numbers.below(ROTATION) == 0 {
            // Half of the time without preallocated room. Another process may also have made some
            // by then.
            if numbers.below(2) == 0 {
                journal.make_room_in_next(200_000).unwrap();
            }
            journal.rotate(from, WAIT, &mut |_| Some(payload.clone()))
        } else {
            journal.append(from, WAIT, &mut |_| Some(payload.clone()))
        };
        let appended = appended.unwrap().unwrap();
        journal.sync(appended.end).unwrap();
        acknowledge(count, &appended);
        from = appended.end;
        // Records overwrite preallocated zeros as often as they extend the file.
        match numbers.below(ROTATION) {
            0 => journal.make_room(from, 200_000).unwrap(),
            1 => journal.give_back_room(from).unwrap(),
            _ => {}
        }
    }
}

fn acknowledge(count: u64, appended: &AppendedRecord) {
    let hash: String = appended.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    say(&format!("ack {count} {} {hash}", appended.position));
}

/// Appends, syncs, rotates and removes; after an error it starts again, as a caller would.
fn exercise(journal: &Journal) {
    let mut count = 0;
    for step in 0..8 {
        let from = journal.start().unwrap();
        let payload = || Some(format!("0 {count} of step {step}").into_bytes());
        let appended = if step % 3 == 2 {
            journal.rotate(from, WAIT, &mut |_| payload())
        } else {
            journal.append(from, WAIT, &mut |_| payload())
        };
        let Ok(Some(appended)) = appended else { continue };
        if journal.sync(appended.end).is_ok() {
            acknowledge(count, &appended);
        }
        // The record may exist even if it was not acknowledged.
        count += 1;
        if step == 1 || step == 4 {
            let _ = journal.make_room(appended.end, 1000);
            // Too little: the second next record must preallocate more.
            let _ = journal.make_room_in_next(100);
        }
        if step == 6 {
            let _ = journal.give_back_room(appended.end);
        }
        if step == 5 {
            say(&format!("removing {}", appended.position));
            // Errors are ignored; the parent checks the result.
            let _ = journal.remove_before(appended.position);
        }
    }
}

fn hold(journal: &Journal) {
    let from = journal.start().unwrap();
    let kept = journal.append(from, WAIT, &mut |_| {
        say("holding");
        // Waits until the parent ends.
        let _ = std::io::stdin().read(&mut [0]);
        None
    });
    assert_eq!(kept.unwrap(), None);
}
