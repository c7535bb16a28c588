//! The sanitiser for all texts on a screen, also used by other code that draws.

pub use forge_store::model::text::{NewlineMode, has_hidden, sanitise};
