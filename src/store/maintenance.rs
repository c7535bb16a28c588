//! Background maintenance for long-lived processes.

use super::Store;
use crate::backend::debug_by_name;
use crate::engine::commit::Engine;
use crate::engine::journal_follower::APPLY_BYTES;
use crate::engine::parallel::{self, CpuCore};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Minimum pause between two generations. The start and the end of building one slow down
/// concurrent writers.
const REST: Duration = Duration::from_millis(20);

/// Publishes a new generation of the index in a background thread whenever the tail of the journal
/// is long, until it is dropped. Writers only wait while a new segment begins. If the process
/// writes much, the thread also preallocates room in the journal (see `docs/format.md`), which
/// makes syncs faster.
///
/// A failure does not affect writes: the tail stays as it is, and the thread tries again when it
/// grows.
#[must_use = "maintenance ends when this is dropped"]
pub struct MaintenanceThread {
    engine: Arc<Engine>,
    /// Is dropped to end a pause of the thread.
    working: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

debug_by_name!(MaintenanceThread { thread });

impl Store {
    /// Starts background maintenance for this process.
    pub fn maintainer(&self) -> MaintenanceThread {
        // With a capacity of 1, several requests during one run lead to only one more run.
        let (bell, rung) = sync_channel::<CpuCore>(1);
        let (working, ended) = channel();
        let engine = Arc::clone(&self.engine);
        let thread = thread::spawn(move || {
            parallel::lower_thread_priority();
            while let Ok(core) = rung.recv() {
                core.avoid();
                match engine.apply_if_long(APPLY_BYTES) {
                    // The new segment has preallocated room already.
                    Ok(true) => drop(ended.recv_timeout(REST)),
                    Ok(false) => engine.make_room(),
                    Err(error) => tracing::warn!(%error, "the index was not brought up to date"),
                }
            }
        });
        self.engine.set_maintainer(Some(bell));
        MaintenanceThread {
            engine: Arc::clone(&self.engine),
            working: Some(working),
            thread: Some(thread),
        }
    }
}

impl Drop for MaintenanceThread {
    /// Waits until the generation that is being built, if there is one, is finished.
    fn drop(&mut self) {
        self.engine.set_maintainer(None);
        self.working = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.engine.give_back_room();
    }
}
