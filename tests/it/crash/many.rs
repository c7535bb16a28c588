//! Eight processes of four threads each, all saving at the same time.

use super::{act, create, open};
use crate::fault::count;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, LogItem, NewCheckpoint};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

const FOLDER: &str = "FORGE_MANY_FOLDER";
const PROCESS: &str = "FORGE_MANY_PROCESS";
const PROCESSES: u64 = 8;
const THREADS: u64 = 4;

fn saves() -> u64 {
    count("FORGE_CRASH_SAVES", 200)
}

/// Not a test: the body of the processes.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(process) = std::env::var(PROCESS) else { return };
    let store = open(Path::new(&std::env::var_os(FOLDER).unwrap())).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let session = store.session(super::SHARED).unwrap();
            let process = &process;
            scope.spawn(move || {
                let mut last = 0;
                for save in 0..saves() {
                    // Few ids, so that the state stays small and the threads change the same
                    // claims.
                    let key = Key::new(Kind::Note, format!("n{}", save % 20));
                    let name = format!("{process}-{thread}-{save}");
                    let value = Value::from([("description", name.as_str().into())]);
                    let act = act(save + 1);
                    let write = session.write(&act).change(ClaimChange::put(key, value));
                    let done = write.checkpoint(NewCheckpoint::manual(name)).commit().unwrap();
                    let number = done.checkpoint.unwrap().sequence;
                    assert!(number > last, "#{number} after #{last}");
                    last = number;
                }
            });
        }
    });
}

#[test]
fn eight_processes_of_four_threads_lose_no_save_and_give_no_number_twice() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(".forge");
    create(&path);
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            Command::new(std::env::current_exe().unwrap())
                .args(["crash::many::child", "--exact", "--ignored", "--test-threads=1"])
                .env(FOLDER, &path)
                .env(PROCESS, process.to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let all = PROCESSES * THREADS * saves();
    let session = open(&path).unwrap().session(super::SHARED).unwrap();
    let items = session.records(1, usize::MAX).unwrap();
    let numbers: Vec<u64> = items.iter().map(LogItem::sequence).collect();
    assert_eq!(numbers, (1..=2 * all).collect::<Vec<_>>());
    let made = session.checkpoints(&forge_store::store::CheckpointFilter::default()).unwrap();
    let names: BTreeSet<&str> = made.iter().map(|one| one.message.as_str()).collect();
    assert_eq!((made.len() as u64, names.len() as u64), (all, all));
    eprintln!("crash many: {PROCESSES} processes x {THREADS} threads, {all} saves, 0 lost");
}
