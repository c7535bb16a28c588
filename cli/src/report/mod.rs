//! What commands found: plain structs whose field names are the JSON, and how each is told to a person.

pub mod config;
pub mod import;
pub mod man;
