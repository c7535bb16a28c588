//! Conformance suites for the backends.
//!
//! A suite takes a closure that creates a new, empty backend and returns a second closure. Each
//! call of the second one opens a handle on the backend, as another process would: two handles
//! share nothing but what is stored.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking, as a test does")]

mod depot;
mod index;
mod log;

pub use depot::{count_in_depot, depot, depot_in_byte_order};
pub use index::index;
pub use log::log;
