//! Depots on object storage: on real servers that are started here, and on a server with scripted
//! answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod failure;
mod outage;
mod scripted;
mod server;
mod session;
