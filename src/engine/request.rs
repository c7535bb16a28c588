//! Requests: several reads by one thread, for which the journal is looked at once.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// The address of the follower that this thread's request reads from, and whether the request
    /// has looked at the journal.
    static CURRENT: Cell<Option<(usize, bool)>> = const { Cell::new(None) };
}

/// A request of this thread to one store, until it is dropped. During a request the journal is
/// looked at once; a write still notices what others wrote meanwhile.
#[must_use = "the request ends when it is dropped"]
#[derive(Debug)]
pub struct StoreRequest {
    /// Whether this value began the request, and not one in a caller.
    is_outermost: bool,
    /// A request belongs to the thread that began it, so the type must not be `Send`.
    thread: PhantomData<*const ()>,
}

impl StoreRequest {
    /// Begins a request to the follower with this address, unless the thread is in a request.
    /// With `has_looked` it uses what the follower knows, without a look at the journal.
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

/// Returns whether this thread is in a request to this follower that has looked at the journal.
pub(super) fn has_looked(follower: usize) -> bool {
    CURRENT.get() == Some((follower, true))
}

/// Records that this thread's request to this follower, if there is one, has looked at the journal.
pub(super) fn note_look(follower: usize) {
    if CURRENT.get().is_some_and(|(current, _)| current == follower) {
        CURRENT.set(Some((follower, true)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_for_one_follower_and_ends_with_its_outermost_guard() {
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
