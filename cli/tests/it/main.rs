//! Tests of the command as a whole: arguments in, text, JSON and exit code out. They prove the wiring; what the
//! library means is tested there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod branch;
mod checkpoint;
mod claims;
mod config;
mod environment;
mod error;
mod fact;
mod fault;
mod hook;
mod inference;
mod known;
mod manual;
mod moment;
mod output;
mod redact;
mod reference;
mod search;
mod store;
mod story;
mod transcript;
mod tui;
