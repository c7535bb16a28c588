//! Counts the work of redaction, so that tests can show without a clock that it is linear.

#[cfg(test)]
thread_local! {
    static WORK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds units of work: bytes examined, or steps.
#[cfg(test)]
pub(super) fn add(units: usize) {
    WORK.with(|work| work.set(work.get() + units as u64));
}

/// Does nothing outside tests.
#[cfg(not(test))]
#[inline]
pub(super) const fn add(_units: usize) {}

/// Returns the work that `task` does on this thread.
#[cfg(test)]
pub(super) fn of(task: impl FnOnce()) -> u64 {
    WORK.with(|work| work.set(0));
    task();
    WORK.with(std::cell::Cell::get)
}
