//! A temporal debugging state store: what is known about a problem, at every moment, on disk.
//!
//! A debugging effort is a [`Session`]. It contains *claims* (hypotheses, evidence, beliefs, gaps,
//! notes), which change and can be undone, and *facts* (commands, edits, tests, messages),
//! which happened. Every write is atomic and survives a crash. Every moment can be read again,
//! compared with another, restored, or continued on a new branch.
//!
//! ```
//! use forge_store::{
//!     Evidence, Hypothesis, NewCheckpoint, NewSession, Options, Store, Strength, Timestamp,
//!     WriteContext,
//! };
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = tempfile::tempdir()?;
//!     let store = Store::open_or_create(&folder.path().join("store"), Options::default())?;
//!     let context = WriteContext::asked("find the cause", Timestamp::now());
//!     let session = store.create_session(&context, NewSession::named("broken build"))?;
//!
//!     let cause = Hypothesis::default().description("the cache is stale");
//!     let (cause, _) = session.add(&context, cause)?;
//!     let checkpoint = NewCheckpoint::manual("one suspect").tags(["suspect"]);
//!     session.write(&context).checkpoint(checkpoint).commit()?;
//!
//!     let seen = Evidence { strength: Strength::new(0.8), ..Evidence::default() };
//!     session.add(&context, seen.hypothesis(cause).description("a clean build passes"))?;
//!
//!     // What was known at the checkpoint, and what has changed since.
//!     let then = session.at("suspect", Timestamp::now())?;
//!     let state = session.state(&then)?;
//!     assert_eq!(state.all::<Hypothesis>()?.len(), 1);
//!     assert_eq!(state.all::<Evidence>()?.len(), 0);
//!     let difference = session.compare(&then, &session.head()?)?;
//!     println!("{}", difference.summary);
//!     # assert_eq!(difference.changes.len(), 2, "{:?}", difference.changes);
//!     Ok(())
//! }
//! ```
//!
//! # What it is
//!
//! * **Embedded.** A store is a folder. There is no server; any number of threads and processes may
//!   read and write one store at once.
//! * **Durable.** A write goes to a journal with one sync; an index in RocksDB follows it. A wrong
//!   byte in the files is an error that names it, never a wrong state.
//! * **Temporal.** A moment is a time, a revision, a checkpoint or a phrase such as `2 hours ago`
//!   ([`Session::at`]). Every moment can be read, not only those with a checkpoint.
//! * **Careful.** [`Options`] can remove secrets from all texts that are written, seal a store
//!   against changes from outside, and encrypt it.
//!
//! # What it is not
//!
//! * Not a general database: no queries over claims, no transactions over several sessions.
//! * Not a log collector: each write waits for the disk.
//! * Not a service: it does not use the network, and does not protect a store on a network file
//!   system. It runs on Unix.
//! * Not tied to a clock: times are arguments, and no function but [`Timestamp::now`] asks for the
//!   time of day. The library never prints and never reads the environment.
//!
//! # Where to go on
//!
//! * [`Store`] opens stores and lists sessions; [`Session`] reads and writes one; [`SessionWrite`]
//!   puts several changes into one revision; [`StateAt`] is the state at a moment.
//! * [`Error`] has a [`kind`](Error::kind) that says what to do next.
//!   Any function that reads or writes fails if the store cannot be read or written or is damaged;
//!   a section "Errors" names what else can fail.
//! * [`admin`] takes care of stores: verify, repair, back up, prune, purge, keys.
//! * [`store`] has the rest of the API: history, search, briefs, bundles, streams, imports.
//! * [`model`] has all records and their rules; [`diff`] compares states; [`redact`] finds secrets.
//! * The crate `forge-systems` builds workflow runs, pipelines and message threads on this one.
//!
//! `format` and `backend` are public only with the feature `internals`, for the tests and tools of
//! this repository. Nothing in them is stable.

#![warn(missing_debug_implementations)]

pub mod admin;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod backend;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, unreachable_pub, reason = "public only with the feature `internals`")]
mod backend;
#[doc(hidden)]
pub mod const_table;
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
pub mod shell;
pub mod store;
pub mod story;

#[doc(inline)]
pub use backend::{plain_file, store_place};
#[doc(inline)]
pub use error::{Error, ErrorKind, Result};
#[doc(inline)]
pub use model::claim::{
    Belief, CodeState, Confidence, Dependency, Evidence, ExecutedCommand, Gap, Hypothesis,
    HypothesisStatus, Measurement, Note, Strength, TypedRecord, VerificationResult,
};
#[doc(inline)]
pub use model::{Checkpoint, ClaimEntry, Fact, Key, Kind, SessionKind, Timestamp, Value};
#[doc(inline)]
pub use redact::Redactor;
#[doc(inline)]
pub use store::{
    CheckpointFilter, ClaimChange, MergeRequest, NewCheckpoint, NewSession, Options,
    ResolvedMoment, SearchQuery, Session, SessionSummary, SessionWrite, StateAt, StateComparison,
    Store, UndoReport, WriteContext, WriteReport,
};

impl Timestamp {
    /// Reads the clock of the system.
    ///
    /// The library itself never calls this function. Programs use it for the times that they pass
    /// to the library, for example in a [`WriteContext`].
    #[must_use]
    pub fn now() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that may read the clock")]
        let now = chrono::Utc::now();
        now.into()
    }
}
