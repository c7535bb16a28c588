//! Turns panics into errors for the user: a short report and exit code 70.

use crate::error::CommandError;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};

/// The message of the first panic that was not reported yet, and where it happened.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs `work`; a panic in it becomes an internal error.
pub(crate) fn catch_panics<T>(
    work: impl FnOnce() -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let previous_hook = take_hook();
    set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(|at| format!(" ({}:{})", at.file(), at.line()));
        let report = format!("{message}{}", place.unwrap_or_default());
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(report);
    }));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    set_hook(previous_hook);
    // Also if `work` returned: another thread may have panicked meanwhile.
    let report = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
    outcome.unwrap_or_else(|_| Err(CommandError::internal(report.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_panic_becomes_an_internal_error_that_names_its_place() {
        let error = catch_panics::<()>(|| panic!("the tail is shorter than itself")).unwrap_err();
        assert_eq!(error.exit_code(), 70);
        let message = error.message();
        assert!(
            message.starts_with("the tail is shorter than itself (cli/src/panic.rs:"),
            "{message}"
        );
    }

    /// Regression: the error named the panic of the other thread.
    #[test]
    fn an_error_does_not_name_a_panic_during_earlier_work() {
        let work = || {
            assert!(thread::spawn::<_, ()>(|| panic!("another thread")).join().is_err());
            Ok(())
        };
        catch_panics(work).unwrap();
        let error = catch_panics::<()>(|| panic!("the work itself")).unwrap_err();
        assert!(error.message().starts_with("the work itself ("), "{}", error.message());
    }
}
