//! Crashes of whole stores: processes that do everything a store can do are killed, lose their disk's power, or meet calls
//! that fail. What they had said was done is kept outside of the store, and must be there afterwards; nothing else may be
//! wrong. Planted faults and a disk that lies show that a loss would be seen.
//!
//! The counts are those of a quick run; `FORGE_CRASH_KILLS`, `FORGE_CRASH_CUTS`, `FORGE_CRASH_STEP` (every so many calls) set
//! others, `FORGE_SEED` repeats a run. `make soak` runs many and notes them in `docs/reliability.md`.

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

/// Longer than anything here takes; only a fault makes anybody wait so long.
const WAIT: Duration = Duration::from_secs(60);
/// The session that all writers share.
const SHARED: &str = "shared";

fn act(second: u64) -> WriteContext {
    let micros = 1_767_261_600_000_000 + i64::try_from(second).unwrap() * 1_000_000;
    WriteContext::asked("test", Timestamp::from_micros(micros))
}

/// Where the keys of a store lie, if it has seals.
fn keyring(path: &Path) -> Option<PathBuf> {
    let keyring = path.with_file_name("keyring");
    keyring.exists().then_some(keyring)
}

fn open(path: &Path) -> Result<Store, forge_store::error::Error> {
    let options = Options::default().lock_timeout(WAIT).keyring(keyring(path));
    Store::open(path, options)
}

/// The same as [`create`], encrypted.
fn create_encrypted(path: &Path) {
    let keyring = Some(path.with_file_name("keyring"));
    let options = Options::default().keyring(keyring).encrypted(true);
    let store = Store::create(path, options).unwrap();
    store.create_session(&act(0), NewSession::named(SHARED)).unwrap();
}

/// A store with the session that all share; with seals if there is a folder for its key beside it.
fn create(path: &Path) {
    let options = Options::default().keyring(keyring(path));
    let store = Store::create(path, options).unwrap();
    store.create_session(&act(0), NewSession::named(SHARED)).unwrap();
}
