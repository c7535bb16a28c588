//! The results of commands: plain structs with the field names of the JSON, and their text for
//! people.

pub mod blame;
pub mod branch;
pub mod brief;
pub mod bundle;
pub mod checkpoint;
pub mod checkpoint_change;
pub mod compaction;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod entity;
pub mod entity_write;
pub mod execution;
pub mod hooks;
pub mod import;
pub mod key;
pub mod log;
pub mod man;
pub mod merge;
pub mod moment;
pub mod program;
pub mod progress;
pub mod prune;
pub mod purge;
pub mod recover;
pub mod redact;
pub mod restore;
pub mod run;
pub mod search;
pub mod session;
pub mod state;
pub mod store;
pub mod story;
pub mod thread;
pub mod timeline;
pub mod undo;
pub mod verify;
pub mod why;

/// Formats a count in words: `1 session`, `2 sessions`.
fn count_text(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}
