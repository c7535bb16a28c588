//! A fault at the first, second, third, ... system call of every kind that changes a file, until a
//! run completes without reaching it.

use super::add;
use super::child::{Process, Role};
use super::oracle::read_all;
use crate::fault::can_inject_faults;
use forge_store::backend::WriteAheadLog;
use forge_store::backend::journal::Journal;
use std::fs;

/// Injects each fault at each call of one kind; returns how often one was injected.
fn strike(call: &str, fault: &str) -> usize {
    for nth in 1.. {
        let root = tempfile::tempdir().unwrap();
        let (folder, trace) = (root.path().join("journal"), root.path().join("trace"));
        let journal = Journal::create(&folder).unwrap();
        let first = add(&journal, 0, b"first");
        journal.sync(first.end).unwrap();
        drop(journal);
        let inject = format!("inject={call}:{fault}:when={nth}");
        let only = format!("trace={call}");
        let trace_text = trace.to_str().unwrap();
        let arguments = ["-f", "-qq", "-o", trace_text, "-e", &only, "-e", &inject];
        let mut process = Process::traced(Role::Exercise, &folder, &arguments);
        let lines: Vec<String> = process.lines.iter().collect();
        process.child.wait().unwrap();

        let context = format!("{inject}: {lines:?}");
        let mut acknowledged = Vec::new();
        let mut start = 0;
        for line in &lines {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["ack", _, position, hash, "."] => {
                    acknowledged.push((position.parse::<u64>().unwrap(), hash.to_owned()));
                }
                ["removing", position, "."] => start = position.parse().unwrap(),
                _ => {}
            }
        }
        for opened in [Journal::open_read_only(&folder), Journal::open(&folder)] {
            let journal = opened.unwrap();
            let frames = read_all(&journal).unwrap_or_else(|error| panic!("{context}: {error}"));
            for (position, hash) in &acknowledged {
                let held = frames.iter().any(|frame| {
                    let found: String = frame.hash.iter().map(|b| format!("{b:02x}")).collect();
                    frame.position == *position && found == *hash
                });
                // The removal may have been interrupted halfway.
                assert!(held || *position < start, "{context}: lost {position}");
            }
        }
        let journal = Journal::open(&folder).unwrap();
        let next = add(&journal, journal.start().unwrap(), b"next");
        journal.sync(next.end).unwrap();
        assert!(!read_all(&journal).unwrap().is_empty());

        let trace = fs::read_to_string(&trace).unwrap();
        if !trace.contains("INJECTED") && !trace.contains("killed by SIGKILL") {
            assert!(!acknowledged.is_empty(), "{context}: nothing was acknowledged");
            return nth - 1;
        }
    }
    unreachable!("the run ends before the numbers do")
}

fn strike_all(test: &str, faults: &[(&str, &str)]) {
    if !can_inject_faults(test) {
        return;
    }
    let mut struck = 0;
    for (call, fault) in faults {
        let times = strike(call, fault);
        eprintln!("{test}: {fault} at {times} calls of {call}");
        struck += times;
    }
    assert!(struck > faults.len(), "the faults hardly struck");
}

#[test]
fn a_process_killed_at_any_call_leaves_a_sound_journal() {
    let killed = ["pwrite64", "fdatasync", "fsync", "unlink"].map(|call| (call, "signal=KILL"));
    strike_all("killed calls", &killed);
}

#[test]
fn a_failing_call_leaves_a_sound_journal() {
    let failed = [
        ("pwrite64", "error=ENOSPC"),
        ("fdatasync", "error=EIO"),
        ("fsync", "error=EIO"),
        ("unlink", "error=EIO"),
    ];
    strike_all("failing calls", &failed);
}
