//! Requests: several reads of one thread that look at the log once.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// The follower that this thread's request is about, and whether it has looked at the log.
    static CURRENT: Cell<Option<(usize, bool)>> = const { Cell::new(None) };
}

/// A request of this thread to one store, until it is dropped. Within it the log is looked at once;
/// a write still notices what others wrote meanwhile.
#[must_use = "the request ends when it is dropped"]
#[derive(Debug)]
pub struct StoreRequest {
    /// Whether the request began here, and not in a caller.
    is_outermost: bool,
    /// It belongs to the thread that began it.
    thread: PhantomData<*const ()>,
}

impl StoreRequest {
    /// Begins a request to the follower with this address, unless the thread is in a request.
    /// `has_looked`: whether it begins with what is known, without a look at the log.
    pub(super) fn begin(follower: usize, has_looked: bool) -> Self {
        let is_outermost = CURRENT.get().is_none();
        if is_outermost {
            CURRENT.set(Some((follower, has_looked)));
        }
        Self { is_outermost, thread: PhantomData }
    }
}

impl Drop for StoreRequest {
    fn drop(&mut self) {
        if self.is_outermost {
            CURRENT.set(None);
        }
    }
}

/// Returns whether this thread's request to a follower has looked at the log.
pub(super) fn has_looked(follower: usize) -> bool {
    CURRENT.get() == Some((follower, true))
}

/// Records that the log was looked at.
pub(super) fn note_look(follower: usize) {
    if CURRENT.get().is_some_and(|(current, _)| current == follower) {
        CURRENT.set(Some((follower, true)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_about_one_follower_and_ends_with_its_outermost_guard() {
        note_look(1);
        assert!(!has_looked(1), "there is no request");
        let request = StoreRequest::begin(1, false);
        assert!(!has_looked(1));
        note_look(2);
        assert!(!has_looked(1) && !has_looked(2));
        note_look(1);
        drop(StoreRequest::begin(1, false));
        assert!(has_looked(1), "an inner request ends nothing");
        drop(request);
        assert!(!has_looked(1));
    }
}
