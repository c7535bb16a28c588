//! Maintenance beside the work, for processes that live long.

use super::Store;
use crate::engine::commit::Engine;
use crate::engine::maintain::APPLY_BYTES;
use crate::engine::parallel::{self, CpuCore};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two generations: both ends of making one are dear for who writes meanwhile, and where one followed the other at once a
/// hundred checkpoints in a row met them.
const REST: Duration = Duration::from_millis(20);

/// Publishes new generations of the index in a thread of its own whenever the journal's tail has grown long, until it
/// is dropped. Writers are held up only for the moment in which a new segment begins. For a process that writes much it
/// also keeps room in the journal (see `docs/format.md`), which makes their syncs shorter.
///
/// A failure is no error of any write: the tail stays as it is, and its next growth tries again.
#[must_use = "maintenance ends when this is dropped"]
pub struct MaintenanceThread {
    engine: Arc<Engine>,
    /// Dropped when there is nothing more to come.
    working: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Begins maintenance beside the work of this process.
    pub fn maintainer(&self) -> MaintenanceThread {
        // One place: a bell that rang while work was going on is answered once.
        let (bell, rung) = sync_channel::<CpuCore>(1);
        let (working, ended) = channel();
        let engine = Arc::clone(&self.engine);
        let thread = thread::spawn(move || {
            parallel::lower_thread_priority();
            while let Ok(core) = rung.recv() {
                core.avoid();
                match engine.apply_if_long(APPLY_BYTES) {
                    // The segment that was begun has room.
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
    /// Waits for a generation that is being written.
    fn drop(&mut self) {
        self.engine.set_maintainer(None);
        self.working = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.engine.give_back_room();
    }
}
