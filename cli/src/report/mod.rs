//! What commands found: plain structs whose field names are the JSON, and how each is told to a person.

pub mod blame;
pub mod branch;
pub mod brief;
pub mod checkpoint;
pub mod checkpoint_made;
pub mod config;
pub mod diff;
pub mod entity;
pub mod import;
pub mod log;
pub mod man;
pub mod moment;
pub mod redact;
pub mod restore;
pub mod search;
pub mod session;
pub mod state;
pub mod store;
pub mod timeline;
pub mod undo;
pub mod why;
pub mod written;
