//! Crashes of whole stores: processes that use every feature of a store are killed, lose their
//! disk's power, or get errors from system calls. Their acknowledgements are kept outside of the
//! store, and the data must be there afterwards, without any other fault. Planted faults and a disk
//! that ignores syncs show that a loss would be detected.
//!
//! The counts are for a quick run. `FORGE_CRASH_KILLS`, `FORGE_CRASH_CUTS` and `FORGE_CRASH_STEP`
//! (every how many calls) set others; `FORGE_SEED` repeats a run. `make soak` runs many and records
//! them in `docs/reliability.md`.

#![allow(clippy::print_stderr, reason = "a skipped test, a seed and the counts must be seen")]

mod calls;
mod child;
mod full;
mod kill;
mod many;
mod oracle;
mod planted;
mod power;
mod sound;
mod verbs;
mod work;

use forge_store::model::Timestamp;
use forge_store::store::{NewSession, Options, Store, WriteContext};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than anything here takes; only a fault makes a test wait this long.
const WAIT: Duration = Duration::from_secs(60);
/// The session that all writers share.
const SHARED: &str = "shared";

fn act(second: u64) -> WriteContext {
    let micros = 1_767_261_600_000_000 + i64::try_from(second).unwrap() * 1_000_000;
    WriteContext::asked("test", Timestamp::from_micros(micros))
}

/// The folder of a store's keys, if the store has seals.
fn keyring(path: &Path) -> Option<PathBuf> {
    let keyring = path.with_file_name("keyring");
    keyring.exists().then_some(keyring)
}

fn open(path: &Path) -> Result<Store, forge_store::error::Error> {
    let options = Options::default().lock_timeout(WAIT).keyring(keyring(path));
    Store::open(path, options)
}

/// Like [`create`], with encryption.
fn create_encrypted(path: &Path) {
    let keyring = Some(path.with_file_name("keyring"));
    let options = Options::default().keyring(keyring).encrypted(true);
    let store = Store::create(path, options).unwrap();
    store.create_session(&act(0), NewSession::named(SHARED)).unwrap();
}

/// Creates a store with the shared session; with seals if there is a folder for its key next to it.
fn create(path: &Path) {
    let options = Options::default().keyring(keyring(path));
    let store = Store::create(path, options).unwrap();
    store.create_session(&act(0), NewSession::named(SHARED)).unwrap();
}
