//! A thread that executes requests one after another, in the order of their arrival. So a write is
//! finished before later requests begin, although requests are received concurrently. And a slow
//! disk does not delay the receiving of requests.

use crate::error::CommandError;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use tokio::sync::oneshot;

type QueuedWork = Box<dyn FnOnce() + Send>;

/// The queue of the thread. The thread ends when all clones of the queue are dropped and all work
/// is done.
#[derive(Clone, Debug)]
pub struct WorkQueue {
    work: Sender<QueuedWork>,
}

impl WorkQueue {
    /// Starts the thread with an empty queue.
    pub fn start() -> Self {
        let (work, queue) = channel::<QueuedWork>();
        thread::spawn(move || queue.into_iter().for_each(|work| work()));
        Self { work }
    }

    /// Appends work to the queue, and returns a handle that receives the result. If the handle is
    /// dropped before the work begins, the work is skipped.
    ///
    /// The order of these calls is the order of the work, so call this before the first await.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
    ) -> PendingResult<T> {
        let (answer, receiver) = oneshot::channel();
        let work = move || {
            if !answer.is_closed() {
                // If the receiver was dropped in the meantime, the result is not needed.
                let _ = answer.send(crate::panic::catch_panics(work));
            }
        };
        // If the thread has ended, the work is dropped, and the receiver notices.
        let _ = self.work.send(Box::new(work));
        PendingResult(receiver)
    }
}

/// The result of work in the queue.
#[derive(Debug)]
#[must_use = "dropping it cancels the work if it has not begun"]
pub struct PendingResult<T>(oneshot::Receiver<Result<T, CommandError>>);

impl<T> PendingResult<T> {
    /// Waits for the result.
    ///
    /// # Errors
    ///
    /// The error of the work; an internal error if the work panicked, or was dropped because the
    /// thread has ended.
    pub async fn wait(self) -> Result<T, CommandError> {
        self.0.await.unwrap_or_else(|_| Err(CommandError::internal("the work was dropped")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn work_is_done_in_the_order_it_was_queued() {
        let queue = WorkQueue::start();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let pending: Vec<PendingResult<usize>> = (0..100)
            .map(|number| {
                let seen = Arc::clone(&seen);
                queue.run(move || {
                    seen.lock().unwrap().push(number);
                    Ok(number)
                })
            })
            .collect();
        let runtime = crate::mcp::runtime().unwrap();
        for (number, pending) in pending.into_iter().enumerate().rev() {
            assert_eq!(runtime.block_on(pending.wait()).unwrap(), number);
        }
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_becomes_an_error_and_the_queue_continues() {
        let queue = WorkQueue::start();
        let runtime = crate::mcp::runtime().unwrap();
        let broken = queue.run::<()>(|| panic!("a broken invariant"));
        let next = queue.run(|| Ok(7));
        let error = runtime.block_on(broken.wait()).unwrap_err();
        assert!(error.message().starts_with("a broken invariant"), "{error}");
        assert_eq!(runtime.block_on(next.wait()).unwrap(), 7);
    }

    #[test]
    fn cancelled_work_is_not_done() {
        let queue = WorkQueue::start();
        let (go, wait) = channel::<()>();
        let first = queue.run(move || Ok(wait.recv().is_ok()));
        let done = Arc::new(Mutex::new(false));
        let mark = Arc::clone(&done);
        drop(queue.run(move || {
            *mark.lock().unwrap() = true;
            Ok(())
        }));
        let last = queue.run(|| Ok(()));
        go.send(()).unwrap();
        let runtime = crate::mcp::runtime().unwrap();
        assert!(runtime.block_on(first.wait()).unwrap());
        runtime.block_on(last.wait()).unwrap();
        assert!(!*done.lock().unwrap());
    }
}
