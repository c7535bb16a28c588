//! Tests with real servers. Without one they report that they are skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod conformance;
mod failover;
mod index;
mod isolation;
mod killed;
mod moved;
mod pooler;
mod process;
mod proxy;
mod seen;
mod set_back;
mod shards;
mod stores;
mod support;
