//! Work on all cores, and background work that yields to foreground threads.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope, yield_now};

thread_local! {
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread a background thread: its work uses one core, with lower priority.
pub(crate) fn lower_thread_priority() {
    IS_BACKGROUND.set(true);
    lower_priority();
}

/// Lowers the priority of this thread and of the threads that it starts; does nothing except on
/// Linux. Without this, a writer can wait for up to 4 ms to get its core back. If the system
/// refuses, the thread keeps its priority.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        const NICE: i32 = 10;
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// The core that a thread ran on, if the system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuCore(Option<usize>);

impl CpuCore {
    /// Returns the core of the current thread.
    pub(crate) fn current() -> Self {
        #[cfg(target_os = "linux")]
        let number = Some(rustix::thread::sched_getcpu());
        #[cfg(not(target_os = "linux"))]
        let number = None;
        Self(number)
    }

    /// Keeps this background thread, and the threads that it starts, off this core, unless the
    /// process may use no other. Linux wakes a thread on the core of its waker, and does not look
    /// for an idle core if the cores share no cache: a writer could wait for up to 3 ms although
    /// another core is idle.
    pub(crate) fn avoid(self) {
        #[cfg(target_os = "linux")]
        if let Self(Some(number)) = self
            && let Ok(mut allowed) =
                rustix::thread::sched_getaffinity(Some(rustix::process::getpid()))
        {
            allowed.unset(number);
            if allowed.count() > 0 {
                let _ = rustix::thread::sched_setaffinity(None, &allowed);
            }
        }
    }
}

/// Yields the core if this is a background thread. Long work calls this regularly: otherwise a
/// foreground thread that wakes up would wait for the end of the time slice, despite its higher
/// priority.
pub(crate) fn yield_to_foreground() {
    if IS_BACKGROUND.get() {
        yield_now();
    }
}

/// Returns how many threads may work for this one, including itself: 1 for a background thread,
/// otherwise the number of cores. That number is cached, because the system reads several files to
/// find it, which takes longer than decoding a delta.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    if IS_BACKGROUND.get() {
        return 1;
    }
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get))
}

/// Divides the numbers below `count` into ranges, at most one for each core, and at most one if
/// there are fewer than 256 numbers. A range `(first, end)` does not contain `end`.
pub(crate) fn shares(count: u32) -> Vec<(u32, u32)> {
    const MANY: u32 = 256;
    divide(count, if count < MANY { 1 } else { cores() as u32 })
}

/// Divides the numbers below `count` into at most `parts` ranges; into one range if `parts` is 0.
fn divide(count: u32, parts: u32) -> Vec<(u32, u32)> {
    let each = count.div_ceil(parts.max(1)).max(1);
    let firsts = (0..count).step_by(each as usize);
    firsts.map(|first| (first, count.min(first.saturating_add(each)))).collect()
}

/// Maps items in parallel. The results are in the order of the items. If there are fewer than
/// `min_parallel` items, the calling thread maps them, because starting another one would take
/// longer.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    min_parallel: usize,
    one: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if items.len() < min_parallel || cores() == 1 {
        return items.iter().map(one).collect();
    }
    let one = &one;
    scope(|scope| {
        let mut shares = items.chunks(items.len().div_ceil(cores()).max(1));
        let mine = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(one).collect::<Vec<_>>()))
            .collect();
        let mut all = Vec::with_capacity(items.len());
        all.extend(mine.iter().map(one));
        for other in others {
            // Propagates a panic as if this thread had done the work.
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

/// Maps items on at most `most` threads, including this one. This thread first runs `work`, and
/// then maps remaining items too. Returns the results in the order of the items, and the result of
/// `work`.
pub(crate) fn map_while<T: Sync, R: Send, W>(
    items: &[T],
    most: usize,
    one: impl Fn(&T) -> R + Sync,
    work: impl FnOnce() -> W,
) -> (Vec<R>, W) {
    if items.is_empty() || cores() == 1 {
        let done = work();
        return (items.iter().map(one).collect(), done);
    }
    let next = AtomicUsize::new(0);
    let share = || {
        let mut made = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return made };
            made.push((place, one(item)));
        }
    };
    scope(|scope| {
        let others: Vec<_> =
            (1..cores().min(most).min(items.len() + 1)).map(|_| scope.spawn(share)).collect();
        let done = work();
        let mut all = share();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        (all.into_iter().map(|(_, made)| made).collect(), done)
    })
}

/// Runs two functions and returns both results. They run in parallel if `is_worth_it` is true and
/// there is more than one core.
pub(crate) fn both<A, B: Send>(
    is_worth_it: bool,
    one: impl FnOnce() -> A,
    other: impl Fn() -> B + Sync,
) -> (A, B) {
    let most = if is_worth_it { 2 } else { 1 };
    let (mut others, one) = map_while(&[()], most, |()| other(), one);
    (one, others.pop().expect("one item has one result"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_thread_uses_one_core_and_the_others_use_all() {
        let one = std::thread::spawn(|| {
            lower_thread_priority();
            cores()
        });
        assert_eq!(one.join().unwrap(), 1);
        assert_eq!(cores(), available_parallelism().unwrap().get());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_avoids_a_core_may_run_on_all_others() {
        let core = CpuCore::current();
        let allowed = || rustix::thread::sched_getaffinity(None).unwrap();
        let one = std::thread::spawn(move || {
            let before = allowed();
            core.avoid();
            (before.count(), allowed().count(), allowed().is_set(core.0.unwrap()))
        });
        // The only core of a machine is not avoided.
        let (before, after, is_set) = one.join().unwrap();
        assert_eq!((after, is_set), if before > 1 { (before - 1, false) } else { (1, true) });
        assert_eq!(cores(), available_parallelism().unwrap().get());
    }

    /// Regression: with many cores, the last ranges began after the last number, and ended before
    /// their beginning.
    #[test]
    fn every_number_is_in_one_range_and_no_range_is_empty() {
        for (count, parts) in [(0, 4), (1, 4), (255, 1), (256, 48), (300, 2), (7, 7), (5, 0)] {
            let ranges = divide(count, parts);
            assert!(ranges.len() <= parts.max(1) as usize, "{ranges:?}");
            assert!(ranges.iter().all(|(first, end)| first < end), "{ranges:?}");
            let numbers: Vec<u32> = ranges.iter().flat_map(|(first, end)| *first..*end).collect();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parallel_map_handles_each_item_once_and_keeps_the_order() {
        for count in [0, 1, 2, 3, 100] {
            let items: Vec<usize> = (0..count).collect();
            for min_parallel in [0, 50, 1000] {
                let doubled = map(&items, min_parallel, |item| item * 2);
                assert_eq!(doubled, (0..count).map(|item| item * 2).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn both_functions_of_a_pair_run_once() {
        for is_worth_it in [false, true] {
            assert_eq!(both(is_worth_it, || 1, || "two"), (1, "two"));
        }
    }

    #[test]
    fn items_are_mapped_once_and_in_order_while_work_runs() {
        for count in [0, 1, 2, 3, 100] {
            let items: Vec<usize> = (0..count).collect();
            for most in [1, usize::MAX] {
                let (doubled, done) = map_while(&items, most, |item| item * 2, || "done");
                assert_eq!(doubled, (0..count).map(|item| item * 2).collect::<Vec<_>>());
                assert_eq!(done, "done");
            }
        }
    }
}
