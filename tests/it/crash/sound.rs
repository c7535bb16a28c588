//! The random work of the crash tests, without a crash. Its seed reproduces it byte for byte.

use super::oracle::Oracle;
use super::work::{Planted, Worker};
use super::{create, open};
use crate::fault::{SeededNumbers, count};
use forge_store::store::VerifyDepth;

/// The number of steps of one history.
const STEPS: u64 = 60;

#[test]
fn after_random_work_without_a_crash_a_store_is_sound() {
    let mut numbers = SeededNumbers::from_environment("crash sound");
    let histories = count("FORGE_CRASH_HISTORIES", 40);
    for history in 0..histories {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".forge");
        create(&path);
        let seed = numbers.next();
        let mut oracle = Oracle::default();
        let mut log = Vec::new();
        let mut say = |line: &str| log.push(line.to_owned());
        let store = open(&path).unwrap();
        let mut worker = Worker::new(store, (0, seed, 1), Planted::Nothing, &mut say).unwrap();
        for step in 0..STEPS {
            worker.step().unwrap_or_else(|error| panic!("history {history}, step {step}: {error}"));
        }
        drop(worker);
        for line in &log {
            oracle.hear(line);
        }
        let found = oracle.audit(&path, 4, VerifyDepth::ReadData);
        assert_eq!(found, Ok(()), "history {history} of seed {seed}: {log:#?}");
    }
    eprintln!("crash sound: {histories} histories of {STEPS} steps, all sound");
}
