//! kill -9 at random moments.

use super::child::Task;
use super::oracle::Oracle;
use super::work::Planted;
use super::{WAIT, create, create_encrypted};
use crate::fault::{SeededNumbers, count, run};
use forge_store::store::VerifyDepth;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

/// The number of concurrent writers.
const WRITERS: u64 = 3;
/// A new store is created after this many rounds, to keep long runs small.
const ROUNDS_A_STORE: u64 = 12;

/// How many numbers unacknowledged work may use: a restore or an undo, and what belongs to it.
pub(super) const IN_DOUBT: u64 = 4;

pub(super) fn kill(child: &mut Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

/// Kills the process with the processes that it traces, which would otherwise continue.
pub(super) fn kill_group(child: &mut Child) {
    run("sh", &["-c", &format!("kill -KILL -{}", child.id())]);
    child.wait().unwrap();
}

/// Lets writers work, and kills one after the other at random moments.
pub(super) fn round(
    path: &Path,
    (first, second): (u64, u64),
    planted: Planted,
    numbers: &mut SeededNumbers,
    oracle: &mut Oracle,
) {
    let (sender, lines) = channel();
    let mut running: Vec<Child> = (0..WRITERS)
        .map(|writer| {
            let writer = first + writer;
            let seed = numbers.next();
            Task { writer, seed, second, planted, once: false }.spawn(path, &sender)
        })
        .collect();
    drop(sender);
    while !running.is_empty() {
        assert!(listen(&lines, 1 + numbers.below(12), oracle), "a writer stopped by itself");
        // Not only directly after an acknowledgement, but anywhere.
        for n in 0..numbers.below(3_000_000) {
            std::hint::black_box(n);
        }
        let at = numbers.below(running.len() as u64) as usize;
        kill(&mut running.swap_remove(at));
    }
    // Lines printed before the kill count too.
    for line in lines {
        oracle.hear(&line);
    }
}

/// Reads this many acknowledgements. Returns whether the writers produced them.
pub(super) fn listen(lines: &Receiver<String>, wanted: u64, oracle: &mut Oracle) -> bool {
    let mut heard = 0;
    while heard < wanted {
        let Ok(line) = lines.recv_timeout(WAIT) else { return false };
        heard += u64::from(oracle.hear(&line));
    }
    true
}

#[test]
fn acknowledged_data_survives_a_kill() {
    kills("crash kill", count("FORGE_CRASH_KILLS", 500), create);
}

#[test]
fn acknowledged_data_survives_a_kill_in_an_encrypted_store() {
    kills("crash kill, encrypted", count("FORGE_CRASH_KILLS", 500).div_ceil(5), create_encrypted);
}

fn kills(test: &str, kills: u64, create: impl Fn(&Path)) {
    let mut numbers = SeededNumbers::from_environment(test);
    let mut heard = 0;
    let rounds = kills.div_ceil(WRITERS);
    for begin in (0..rounds).step_by(ROUNDS_A_STORE as usize) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".forge");
        create(&path);
        let mut oracle = Oracle::default();
        let end = (begin + ROUNDS_A_STORE).min(rounds);
        for number in begin..end {
            let second = 1000 * (number - begin) + 1;
            round(&path, (0, second), Planted::Nothing, &mut numbers, &mut oracle);
            let depth = if number + 1 == end { VerifyDepth::ReadData } else { VerifyDepth::Quick };
            let found = oracle.audit(&path, IN_DOUBT, depth);
            assert_eq!(found, Ok(()), "round {number}");
        }
        heard += oracle.heard;
    }
    eprintln!("{test}: {} kills, {heard} acknowledged, 0 lost", rounds * WRITERS);
    assert!(heard > kills);
}
