//! Child processes: this test binary started again in a role.

use super::support::{ID, NAME, WAIT, add, database, log, open, options};
use forge_store::backend::{IndexWriter, RowBatch, TableId, WriteAheadLog};
use forge_store::error::{BackendError, Error};
use forge_store::store::database::Database;
use forge_store::store::{Session, Store};
use forge_testkit::fault::SeededNumbers;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

const ROLE: &str = "FORGE_POSTGRES_ROLE";
const ADDRESS: &str = "FORGE_POSTGRES_ADDRESS";
const WRITER: &str = "FORGE_POSTGRES_WRITER";
const BUNDLE: &str = "FORGE_POSTGRES_BUNDLE";
/// The size of the largest record that a writer makes, in bytes.
const LARGEST: u64 = 20_000;
/// How long a writer waits after an error.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a write that surely had no effect is tried again: for at least 100 seconds, much
/// longer than a server takes to start again.
const MAX_REFUSED: usize = 5_000;

/// The role of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Appends to one of two logs and reports each record, until it is killed.
    Append,
    /// Writes to a store and maintains it, until it is killed.
    Write,
    /// Writes rows of the index without publishing them, and waits.
    Index,
    /// Imports a bundle.
    Import,
}

/// Starts a process in a role. Its lines are sent, with its number, to a channel that several
/// processes share.
pub(crate) fn spawn(
    role: Role,
    address: &str,
    writer: u64,
    bundle: &str,
    lines: &Sender<(u64, String)>,
) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["process::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{role:?}"))
        .env(ADDRESS, address)
        .env(WRITER, writer.to_string())
        .env(BUNDLE, bundle)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let lines = lines.clone();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // A line that the kill cut is ignored, and so are the lines of the test harness.
            let line = String::from_utf8_lossy(&line).into_owned();
            let text = line.rsplit_once('>').and_then(|(_, text)| text.strip_suffix('.'));
            if let Some(text) = text {
                let _ = lines.send((writer, text.to_owned()));
            }
        }
    });
    child
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!(">{what}.\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Not a test, but the body of the processes that tests start.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let text = |name| std::env::var(name).unwrap();
    let (address, writer) = (text(ADDRESS), text(WRITER).parse().unwrap());
    match role.as_str() {
        "Append" => append(&address, writer),
        "Write" => write(&address, writer),
        "Index" => write_index(&address),
        "Import" => import(&address, &text(BUNDLE)),
        _ => panic!("no role {role:?}"),
    }
}

/// Returns the id of the log to which a writer appends.
pub(crate) const fn log_of(writer: u64) -> [u8; 16] {
    [(writer % 2) as u8; 16]
}

/// Appends `writer count filler` for count = 0, 1, ... Prints `ack count position hash` for each
/// record that was acknowledged, and `unsure count` for one whose outcome is unknown. What surely
/// was not appended is appended again: if that was wrong, the record is there twice.
fn append(address: &str, writer: u64) {
    let log = log(address, log_of(writer));
    let mut numbers = SeededNumbers(writer);
    let (mut from, mut refused) = (0, 0);
    let mut count = 0;
    loop {
        let length = numbers.below(LARGEST) * numbers.below(2) + numbers.below(200);
        let mut payload = format!("{writer} {count} ").into_bytes();
        payload.resize(payload.len() + length as usize, b'a' + (count % 26) as u8);
        let appended = if numbers.below(20) == 0 {
            log.rotate(from, WAIT, &mut |_| Some(payload.clone()))
        } else {
            log.append(from, WAIT, &mut |_| Some(payload.clone()))
        };
        match appended {
            Ok(appended) => {
                let appended = appended.unwrap();
                let hash = super::support::hex(&appended.hash);
                say(&format!("ack {count} {} {hash}", appended.position));
                from = appended.end;
            }
            Err(BackendError::Database { unsure: true, .. }) => say(&format!("unsure {count}")),
            Err(BackendError::Database { .. }) => {
                refused += 1;
                assert!(refused < MAX_REFUSED, "the database does not come back");
                thread::park_timeout(PAUSE);
                continue;
            }
            Err(error) => {
                say(&format!("wrong {error}"));
                panic!("{error}");
            }
        }
        count += 1;
    }
}

/// Writes claims with a checkpoint each, named `writer-count`. Prints `ack name` and `unsure name`
/// as [`append`] does.
fn write(address: &str, writer: u64) {
    let mut refused = 0;
    let mut again = |error: Error| {
        let is_lost = matches!(&error, Error::Backend(BackendError::Database { .. }));
        if !is_lost {
            say(&format!("wrong {}", super::support::chain(&error)));
            panic!("{error}");
        }
        refused += 1;
        assert!(refused < MAX_REFUSED, "the database does not come back");
        thread::park_timeout(PAUSE);
        matches!(&error, Error::Backend(BackendError::Database { unsure: true, .. }))
    };
    let store = loop {
        match Store::at(&database(address, NAME), options()) {
            Ok(store) => break store,
            Err(error) => drop(again(error)),
        }
    };
    let session: Session = loop {
        match store.session("s") {
            Ok(session) => break session,
            Err(error) => drop(again(error)),
        }
    };
    for count in 0_u64.. {
        let name = format!("{writer}-{count}");
        loop {
            match add(&session, &name) {
                Ok(()) => say(&format!("ack {name}")),
                Err(error) => match again(error) {
                    true => say(&format!("unsure {name}")),
                    false => continue,
                },
            }
            break;
        }
        if count % 4 == 3
            && let Err(error) = store.maintain(0)
            // A process that lost its lease finds that another one has removed the records that it
            // applies.
            && !matches!(error, Error::Backend(BackendError::Gone { .. }))
        {
            again(error);
        }
    }
}

/// Returns the rows that a process writes and does not publish.
pub(crate) fn unpublished() -> RowBatch {
    let put = |number: u8| (TableId(1), vec![b'n', number], Some(vec![number; 1000]));
    let mut rows: Vec<_> = (0..200).map(put).collect();
    rows.extend((0..5).map(|number| (TableId(1), vec![b'o', number], None)));
    rows.extend((5..9).map(|number| (TableId(1), vec![b'o', number], Some(b"new".to_vec()))));
    RowBatch { rows }
}

fn write_index(address: &str) {
    let index = open(address, "any").index(&ID);
    let mut writer: Box<dyn IndexWriter> = index.try_writer().unwrap().expect("no other writer");
    writer.write(unpublished()).unwrap();
    say("written");
    // Waits until the test kills it.
    let _ = std::io::stdin().read(&mut [0]);
}

fn import(address: &str, bundle: &str) {
    let store = Store::at(&database(address, NAME), options()).unwrap();
    let act = super::support::act(500);
    store.import_bundle(&act, &mut File::open(bundle).unwrap(), None).unwrap();
    say("imported");
}
