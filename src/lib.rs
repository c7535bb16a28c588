//! forge: a temporal debugging state store with time travel.
//!
//! The layers, top to bottom; an arrow never points up (`tests/it/layering.rs` checks it):
//!
//! * [`systems`]: workflow runs, pipeline progress, agent programs, message threads: small types
//!   built on the store.
//! * [`store`]: the facade, what library users work with.
//! * `engine`: commit, index, materialize, look up, keyframes.
//! * [`error`]: all errors, grouped by what the caller should do next.
//! * [`diff`], [`mod@format`], [`backend`]: structural diff; every byte on disk; storage backends.
//! * [`redact`]: detection of secrets in texts.
//! * [`model`]: plain data that depends on none of the other layers.

pub mod backend;
pub mod diff;
mod engine;
pub mod error;
pub mod format;
pub mod model;
pub mod redact;
pub mod store;
pub mod systems;
