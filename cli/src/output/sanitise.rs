//! The library's sanitiser for all texts that are shown.

pub use forge_store::model::text::{NewlineMode, has_hidden, sanitise};
