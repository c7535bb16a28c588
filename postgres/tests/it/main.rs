//! Tests with real servers. Without one they report that they are skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
