//! Message threads of LLM agents: what no provider would take is found and mended, and never saved unnoticed.
//!
//! The lower half is pure: [`sanitise`] takes messages as JSON in any of the [`Form`]s and gives them back in it.

mod action;
mod append;
mod document;
mod ends;
mod fault;
mod form;
mod header;
mod ids;
mod json;
mod kept;
mod mend;
mod pair;
mod place;
mod plan;
mod sanitise;
mod steps;

pub use action::{Action, ActionKind, apply};
pub use append::{Appended, Appending, Guard};
pub use document::{Document, NoHistory, preview};
pub use fault::{Fault, FaultKind, Remedy};
pub use form::{CallResult, Form, NO_RESULT};
pub use header::{CallState, PendingCall, Reset, Writer};
pub use kept::{KeptMessage, Thread, ThreadStatus};
pub use mend::Mended;
pub use sanitise::{KNOWN_FORMS, Options, Orphans, Refused, Sanitised, form_of, sanitise};
