//! What commands found: plain structs whose field names are the JSON, and how each is told to a person.

pub mod blame;
pub mod branch;
pub mod brief;
pub mod checkpoint;
pub mod checkpoint_made;
pub mod compaction;
pub mod config;
pub mod diff;
pub mod doctor;
pub mod entity;
pub mod hooks;
pub mod import;
pub mod log;
pub mod man;
pub mod moment;
pub mod progress;
pub mod restore;
pub mod run;
pub mod session;
pub mod state;
pub mod store;
pub mod timeline;
pub mod undo;
pub mod why;
pub mod written;
