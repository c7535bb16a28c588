//! Watches whether the processes of a group work, or only wait.

use std::process::Child;
use std::time::{Duration, Instant};

/// The maximum time between two looks at the processes.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// A watch over the process group of a child. Without `/proc`, every group counts as working.
pub(super) struct IdleWatch {
    group: u32,
    patience: Duration,
    /// The processor time of the group, in ticks.
    ticks: Option<u64>,
    /// When the group was last seen working.
    worked: Instant,
}

impl IdleWatch {
    /// Begins to watch. The group is idle once it has done nothing for `patience`.
    #[must_use]
    pub(super) fn new(child: &Child, patience: Duration) -> Self {
        Self { group: child.id(), patience, ticks: None, worked: Instant::now() }
    }

    /// How long the group may do nothing.
    #[must_use]
    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    /// The time after which to look again.
    #[must_use]
    pub(super) fn interval(&self) -> Duration {
        MAX_INTERVAL.min(self.patience / 4)
    }

    /// Looks at the processes. Returns whether all of them have only waited for the whole patience.
    pub(super) fn is_idle(&mut self) -> bool {
        let (ticks, is_busy) = activity(self.group);
        if is_busy || ticks != self.ticks {
            self.ticks = ticks;
            self.worked = Instant::now();
        }
        self.worked.elapsed() >= self.patience
    }
}

/// Returns the processor time of a process group in ticks, and whether one of its processes runs
/// or waits for a disk.
#[cfg(target_os = "linux")]
fn activity(group: u32) -> (Option<u64>, bool) {
    let Ok(processes) = std::fs::read_dir("/proc") else { return (None, true) };
    let (mut ticks, mut is_busy, mut count) = (0_u64, false, 0);
    for process in processes.flatten() {
        let Ok(line) = std::fs::read_to_string(process.path().join("stat")) else { continue };
        // The name, in parentheses, may contain anything.
        let Some((_, fields)) = line.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = fields.split(' ').collect();
        if fields.get(2).and_then(|one| one.parse().ok()) != Some(group) {
            continue;
        }
        count += 1;
        is_busy |= matches!(fields.first(), Some(&("R" | "D")));
        // The time of the process and of its ended children, in user mode and in the kernel.
        let times = fields.get(11..15).unwrap_or_default();
        ticks += times.iter().filter_map(|one| one.parse::<u64>().ok()).sum::<u64>();
    }
    // If no process of the group is visible, `/proc` hides them: the group counts as busy.
    (Some(ticks), is_busy || count == 0)
}

#[cfg(not(target_os = "linux"))]
fn activity(_: u32) -> (Option<u64>, bool) {
    (None, true)
}
