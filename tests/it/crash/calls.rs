//! A kill or an error at the first, second, third, ... system call of every kind that changes a
//! file, until a run completes without reaching it.

use super::child::Task;
use super::create;
use super::kill::IN_DOUBT;
use super::oracle::Oracle;
use super::work::Planted;
use crate::fault::{can_inject_faults, copy, count};
use forge_store::store::VerifyDepth;
use std::sync::mpsc::channel;

/// What happens at a call.
struct Fault {
    call: &'static str,
    what: &'static str,
}

fn strike(test: &str, faults: &[Fault], usual: u64) {
    if !can_inject_faults(test) {
        return;
    }
    // Every call at first, then every `step`-th one: most are RocksDB's.
    let step = count("FORGE_CRASH_STEP", usual).max(1) as usize;
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    create(&first);
    let mut struck = 0;
    for Fault { call, what } in faults {
        for nth in (1..6).chain((6..).step_by(step)) {
            let path = folder.path().join("store");
            let _ = std::fs::remove_dir_all(&path);
            copy(&first, &path);
            let trace = folder.path().join("trace");
            let inject = format!("inject={call}:{what}:when={nth}");
            let only = format!("trace={call}");
            let arguments =
                ["-f", "-qq", "-o", trace.to_str().unwrap(), "-e", &only, "-e", &inject];
            let task =
                Task { writer: 0, seed: 7, second: 1, planted: Planted::Nothing, once: true };
            let (sender, lines) = channel();
            let mut child = task.traced(&arguments, &path, &sender);
            drop(sender);
            let mut oracle = Oracle::default();
            for line in lines {
                oracle.hear(&line);
            }
            child.wait().unwrap();
            let found = oracle.audit(&path, 4 * IN_DOUBT, VerifyDepth::Quick);
            assert_eq!(found, Ok(()), "{inject}");
            let trace = std::fs::read_to_string(&trace).unwrap();
            if !trace.contains("INJECTED") && !trace.contains("killed by SIGKILL") {
                assert!(oracle.heard > 8, "{inject}: hardly anything was done");
                break;
            }
            struck += 1;
        }
    }
    eprintln!("{test}: {struck} faults, 0 lost");
    assert!(struck > faults.len(), "the faults hardly struck");
}

#[test]
fn a_process_killed_at_any_call_leaves_its_acknowledged_data() {
    let calls =
        ["pwrite64", "fdatasync", "fsync", "rename", "unlink", "link", "ftruncate", "mkdir"];
    let faults = calls.map(|call| Fault { call, what: "signal=KILL" });
    strike("crash killed calls", &faults, 11);
}

#[test]
fn a_failing_call_leaves_all_acknowledged_data() {
    let faults = [
        Fault { call: "pwrite64", what: "error=ENOSPC" },
        Fault { call: "write", what: "error=ENOSPC" },
        Fault { call: "fdatasync", what: "error=EIO" },
        Fault { call: "fsync", what: "error=EIO" },
        Fault { call: "rename", what: "error=EDQUOT" },
        Fault { call: "unlink", what: "error=EIO" },
        Fault { call: "link", what: "error=EMLINK" },
        Fault { call: "openat", what: "error=EMFILE" },
        Fault { call: "mkdir", what: "error=EACCES" },
        Fault { call: "pread64", what: "error=EIO" },
    ];
    strike("crash failing calls", &faults, 23);
}
