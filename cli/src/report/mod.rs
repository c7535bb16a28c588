//! What commands found: plain structs whose field names are the JSON, and how each is told to a person.

pub mod branch;
pub mod checkpoint_made;
pub mod config;
pub mod import;
pub mod man;
pub mod session;
pub mod store;
pub mod undo;
pub mod written;
