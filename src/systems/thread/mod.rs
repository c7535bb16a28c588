//! Message threads of LLM agents: what no provider would take is found and mended, and never saved unnoticed.
//!
//! The lower half is pure: [`sanitise`] takes messages as JSON in any of the [`Form`]s and gives them back in it.

mod action;
mod fault;
mod form;
mod json;
mod pair;
mod sanitise;

pub use action::{Action, ActionKind, apply};
pub use fault::{Fault, FaultKind};
pub use form::{CallResult, Form, NO_RESULT};
pub use sanitise::{MixedForms, Options, Orphans, Sanitised, form_of, sanitise};
