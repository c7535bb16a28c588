//! Counts the work of redaction in tests, so that they can show that it is linear without looking at a clock.

#[cfg(test)]
thread_local! {
    static WORK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds bytes that were looked at.
#[cfg(test)]
pub(super) fn add(bytes: usize) {
    WORK.with(|work| work.set(work.get() + bytes as u64));
}

/// Nothing, outside tests.
#[cfg(not(test))]
#[inline]
pub(super) const fn add(_bytes: usize) {}

/// How many bytes `task` looked at.
#[cfg(test)]
pub(super) fn of(task: impl FnOnce()) -> u64 {
    WORK.with(|work| work.set(0));
    task();
    WORK.with(std::cell::Cell::get)
}
