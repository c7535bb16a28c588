//! Many processes at the same time.

use super::WAIT;
use super::child::{Process, Role};
use super::oracle::{Oracle, check_dense, read_all};
use forge_store::backend::WriteAheadLog;
use forge_store::backend::journal::Journal;

const PROCESSES: u64 = 8;
const RECORDS: u64 = 50;

#[test]
fn eight_concurrent_processes_write_every_record_once_and_in_order() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    let mut processes: Vec<Process> =
        (0..PROCESSES).map(|n| Process::spawn(Role::Write, &folder, n, RECORDS)).collect();
    let mut oracle = Oracle::default();
    for (writer, process) in (0..).zip(&mut processes) {
        let mut acknowledged = 0;
        while acknowledged < RECORDS {
            let line =
                process.lines.recv_timeout(WAIT).expect("the writer acknowledges its records");
            acknowledged += u64::from(oracle.hear(writer, &line));
        }
        assert!(process.child.wait().unwrap().success());
        // A concurrent reader sees only complete records.
        check_dense(0, &read_all(&journal).unwrap());
    }
    oracle.check(&journal);
    let frames = read_all(&Journal::open_read_only(&folder).unwrap()).unwrap();
    assert_eq!(frames.len() as u64, PROCESSES * RECORDS);
    assert_eq!(journal.start().unwrap(), 0);
}
