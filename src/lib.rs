//! forge: a temporal debugging state store with time travel.
//!
//! The layers, top to bottom; an arrow never points up (`tests/it/layering.rs` checks it):
//!
//! * [`systems`]: workflow runs, progress of pipelines, programs of agents, message threads: each small, on the store.
//! * [`store`]: the facade, what library users work with.
//! * `engine`: commit, index, materialize, look up, keyframes.
//! * [`error`]: what can go wrong, grouped by what to do next.
//! * [`diff`], [`mod@format`], [`backend`]: structural diff; every byte on disk; where bytes are kept.
//! * [`redact`]: what looks like a secret in a text.
//! * [`model`]: plain data that knows nothing of the rest.

pub mod backend;
pub mod diff;
mod engine;
pub mod error;
pub mod format;
pub mod model;
pub mod redact;
pub mod store;
pub mod systems;
