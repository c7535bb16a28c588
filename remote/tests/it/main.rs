//! Depots on object storage: on real servers that are started here, and on a server that answers
//! what a test tells it.

#![expect(clippy::unwrap_used, reason = "what a test cannot be made with fails it")]

mod conformance;
mod failure;
mod outage;
mod scripted;
mod server;
mod session;
