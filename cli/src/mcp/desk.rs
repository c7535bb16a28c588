//! The thread that does the work: one request after another, in the order of their arrival. So a
//! write is done before the requests after it, although requests are received concurrently, and a
//! slow disk never blocks the receiving.

use crate::error::CommandError;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// The queue of the thread. The thread ends when the last handle is dropped and all work is done.
#[derive(Clone, Debug)]
pub struct Desk {
    work: Sender<Work>,
}

impl Desk {
    /// Starts the thread with an empty queue.
    #[must_use]
    pub fn open() -> Self {
        let (work, queue) = channel::<Work>();
        thread::spawn(move || queue.into_iter().for_each(|work| work()));
        Self { work }
    }

    /// Appends work to the queue. Its result is received later; work whose receiver has been
    /// dropped by then is skipped.
    ///
    /// This call itself determines the order, so call it before the first await.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
    ) -> Asked<T> {
        let (answer, asked) = oneshot::channel();
        let work = move || {
            if !answer.is_closed() {
                // If the receiver is gone, nothing can be reported.
                let _ = answer.send(crate::panic::guarded(work));
            }
        };
        // If the thread is gone, the work is dropped, and the receiver notices.
        let _ = self.work.send(Box::new(work));
        Asked(asked)
    }
}

/// Work in the queue.
#[derive(Debug)]
#[must_use = "dropping it takes the work back if it has not begun"]
pub struct Asked<T>(oneshot::Receiver<Result<T, CommandError>>);

impl<T> Asked<T> {
    /// Waits for its result.
    ///
    /// # Errors
    ///
    /// The error of the work; internal if it panicked.
    pub async fn done(self) -> Result<T, CommandError> {
        self.0.await.unwrap_or_else(|_| Err(CommandError::internal("the work was dropped")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn work_is_done_in_the_order_of_asking_whatever_is_awaited_first() {
        let desk = Desk::open();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let asked: Vec<Asked<usize>> = (0..100)
            .map(|number| {
                let seen = Arc::clone(&seen);
                desk.ask(move || {
                    seen.lock().unwrap().push(number);
                    Ok(number)
                })
            })
            .collect();
        let runtime = crate::mcp::runtime().unwrap();
        for (number, asked) in asked.into_iter().enumerate().rev() {
            assert_eq!(runtime.block_on(asked.done()).unwrap(), number);
        }
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_is_an_error_and_the_desk_goes_on() {
        let desk = Desk::open();
        let runtime = crate::mcp::runtime().unwrap();
        let broken = desk.ask::<()>(|| panic!("a broken invariant"));
        let next = desk.ask(|| Ok(7));
        let error = runtime.block_on(broken.done()).unwrap_err();
        assert!(error.message().starts_with("a broken invariant"), "{error}");
        assert_eq!(runtime.block_on(next.done()).unwrap(), 7);
    }

    #[test]
    fn work_that_was_taken_back_is_not_done() {
        let desk = Desk::open();
        let (go, wait) = channel::<()>();
        let first = desk.ask(move || Ok(wait.recv().is_ok()));
        let done = Arc::new(Mutex::new(false));
        let mark = Arc::clone(&done);
        drop(desk.ask(move || {
            *mark.lock().unwrap() = true;
            Ok(())
        }));
        let last = desk.ask(|| Ok(()));
        go.send(()).unwrap();
        let runtime = crate::mcp::runtime().unwrap();
        assert!(runtime.block_on(first.done()).unwrap());
        runtime.block_on(last.done()).unwrap();
        assert!(!*done.lock().unwrap());
    }
}
