//! Tests of the whole command: arguments in; text, JSON and exit code out. The library's behaviour
//! is tested in the library.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod branch;
mod brief;
mod checkout;
mod checkpoint;
mod claims;
mod client;
mod config;
mod discover;
mod doctor;
mod encryption;
mod environment;
mod error;
mod fact;
mod fault;
mod foreign;
mod form;
mod frozen;
mod full;
mod guard;
mod hook;
mod hooks;
mod hostile;
mod inference;
mod integrity;
mod known;
mod lost;
mod manual;
mod mcp;
mod merge;
mod moment;
mod odd;
mod output;
mod page;
mod program;
mod progress;
mod prune;
mod purge;
mod reads;
mod recover;
mod redact;
mod reference;
mod rollout;
mod run;
mod search;
mod several_sessions;
mod store;
mod story;
mod story_lines;
mod thread;
mod time;
mod together;
mod transcript;
mod tui;
