//! forge: a temporal debugging state store with time travel.
//!
//! The layers, top to bottom; an arrow never points up (`tests/it/layering.rs` checks it):
//!
//! * [`admin`]: care of stores: verify, repair, back up, prune, purge, keys.
//! * [`store`]: the facade, what library users work with.
//! * `engine`: commit, index, materialize, look up, keyframes.
//! * [`error`]: all errors, grouped by what the caller should do next.
//! * [`diff`], `format`, `backend`: structural diff; every byte on disk; storage backends.
//! * [`redact`]: detection of secrets in texts.
//! * [`model`]: plain data that depends on none of the other layers.

pub mod admin;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod backend;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub, reason = "public only with the feature `internals`")]
mod backend;
pub mod diff;
mod engine;
pub mod error;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod format;
#[cfg(not(feature = "internals"))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "public only with the feature `internals`"
)]
mod format;
pub mod model;
pub mod redact;
pub mod store;

pub use backend::plain_file;
