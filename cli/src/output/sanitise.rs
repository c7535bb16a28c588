//! The one gate for texts on their way to a screen, shared with whoever else draws.

pub use forge_store::model::text::{NewlineMode, has_hidden, sanitise};
