//! Runs work in the store without the GIL, and long work with a progress callback.

use crate::error::exception;
use forge_store::Error;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two calls of the callback.
const TICK: Duration = Duration::from_millis(100);

/// Runs work in the store without the GIL.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| exception(py, &error))
}

/// Runs work in the store on a new thread. Meanwhile, ten times a second, handles signals and calls
/// `progress` with the seconds since the beginning. An exception from the callback or from Ctrl-C
/// ends the wait, but not the work. Without `progress`, the work runs on this thread like in
/// [`detached`].
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let Some(progress) = progress else { return detached(py, work) };
    let begun = Instant::now();
    let (done, wait) = channel();
    // `detach` needs values that threads can share, so an uncontended mutex holds the receiver.
    let wait = Mutex::new(wait);
    thread::spawn(move || {
        // After an exception, nothing receives the result.
        let _ = done.send(work());
    });
    loop {
        match py.detach(|| wait.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK)) {
            Ok(result) => return result.map_err(|error| exception(py, &error)),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                progress.call1((begun.elapsed().as_secs_f64(),))?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let error = Error::Internal("the work ended without a result".to_owned());
                return Err(exception(py, &error));
            }
        }
    }
}
