//! What every backend must do.
//!
//! A suite takes a closure that makes a new, empty backend and returns a second closure, which opens handles on it:
//! each call as another process would, so that nothing but the shared bytes is common to two handles.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking, as a test does")]

mod index;
mod log;

pub use index::index;
pub use log::log;
