//! kill -9 at random moments.

use super::child::{Process, Role, spawn_writer};
use super::oracle::Oracle;
use super::{SeededNumbers, WAIT, add, count, signal};
use forge_store::backend::journal::Journal;
use forge_store::backend::{Error, WriteAheadLog};
use std::sync::mpsc::channel;
use std::time::Duration;

/// The number of concurrent writers.
const WRITERS: u64 = 4;

#[test]
fn acknowledged_records_survive_writers_killed_at_any_moment() {
    let mut numbers = SeededNumbers::from_environment("kill");
    let kills = count("FORGE_KILLS", 40);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    add(&journal, 0, b"begin");
    let mut oracle = Oracle::default();
    for round in 0..kills.div_ceil(WRITERS) {
        let (sender, lines) = channel();
        let writer = |n| spawn_writer(Role::Write, &folder, round * WRITERS + n, &sender);
        let mut writers: Vec<_> = (0..WRITERS).map(writer).collect();
        drop(sender);
        while !writers.is_empty() {
            for _ in 0..=numbers.below(100) {
                let (writer, line) = lines.recv_timeout(WAIT).expect("the writers go on");
                oracle.hear(writer, &line);
            }
            // Not only directly after an acknowledgement, but anywhere.
            for n in 0..numbers.below(300_000) {
                std::hint::black_box(n);
            }
            let mut killed = writers.swap_remove(numbers.below(writers.len() as u64) as usize);
            killed.kill().unwrap();
            killed.wait().unwrap();
        }
        // Lines printed before the kill count too.
        for (writer, line) in lines {
            oracle.hear(writer, &line);
        }
        oracle.check(&Journal::open_read_only(&folder).unwrap());
        let end = end_of(&journal);
        add(&journal, end, b"goes on");
        oracle.check(&journal);
        // Starts a segment and removes the ones before it, to keep long runs small.
        let end = end_of(&journal);
        let begun = super::rotate(&journal, end, b"begin");
        journal.remove_before(begun.position).unwrap();
        assert_eq!(journal.start().unwrap(), begun.position);
        oracle.forget_before(begun.position);
    }
    eprintln!("kill: {kills} kills, {} acknowledged, 0 lost", oracle.heard);
    assert!(oracle.heard > kills);
}

pub(super) fn end_of(journal: &Journal) -> u64 {
    journal.read(journal.start().unwrap(), u64::MAX).unwrap().end
}

#[test]
fn a_lock_held_by_a_stopped_process_is_busy_and_names_it_until_it_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    let one = add(&journal, 0, b"one");
    let mut holder = Process::spawn(Role::Hold, &folder, 0, 0);
    while holder.lines.recv_timeout(WAIT).expect("it takes the lock") != "holding ." {}
    signal("STOP", holder.child.id());

    let refused = journal.append(one.end, Duration::from_millis(30), &mut |_| Some(vec![]));
    let Err(Error::Busy { lock: "append lock", holder: named, waited }) = refused else {
        panic!("not busy: {refused:?}");
    };
    assert!(waited >= Duration::from_millis(30));
    if cfg!(target_os = "linux") {
        let named = named.expect("the system says which process holds a lock");
        assert_eq!(named.pid, holder.child.id());
        assert!(named.command.contains('/'), "{}", named.command);
    }
    // Readers and syncs do not wait for the lock.
    assert_eq!(journal.read(0, u64::MAX).unwrap().frames.len(), 1);
    journal.sync(one.end).unwrap();

    holder.kill();
    add(&journal, one.end, b"two");
}
