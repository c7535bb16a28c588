//! Counts the work of redaction, so that tests can show without a clock that it is linear.

#[cfg(test)]
thread_local! {
    static WORK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds to the number of examined bytes.
#[cfg(test)]
pub(super) fn add(bytes: usize) {
    WORK.with(|work| work.set(work.get() + bytes as u64));
}

/// Does nothing outside tests.
#[cfg(not(test))]
#[inline]
pub(super) const fn add(_bytes: usize) {}

/// Returns the number of bytes that `task` examined.
#[cfg(test)]
pub(super) fn of(task: impl FnOnce()) -> u64 {
    WORK.with(|work| work.set(0));
    task();
    WORK.with(std::cell::Cell::get)
}
