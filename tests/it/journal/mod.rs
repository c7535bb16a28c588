//! Fault tests of the journal: kill -9, power cuts, full disks, frozen neighbour processes and
//! wrong bytes. The counts are for a quick run; `FORGE_KILLS` and `FORGE_CUTS` set others,
//! `FORGE_SEED` repeats a run.

#![allow(clippy::print_stderr, reason = "a skipped test and a seed must be seen")]

mod calls;
mod child;
mod damage;
mod disk;
mod kill;
mod many;
mod oracle;
mod power;

use crate::fault::{Mount, SeededNumbers, count, run, signal};
use forge_store::backend::journal::Journal;
use forge_store::backend::{AppendedRecord, LogPosition, WriteAheadLog};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);

fn add(journal: &Journal, from: LogPosition, payload: &[u8]) -> AppendedRecord {
    journal.append(from, WAIT, &mut |_| Some(payload.to_vec())).unwrap().unwrap()
}

fn rotate(journal: &Journal, from: LogPosition, payload: &[u8]) -> AppendedRecord {
    journal.rotate(from, WAIT, &mut |_| Some(payload.to_vec())).unwrap().unwrap()
}
