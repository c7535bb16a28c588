//! Message threads of LLM agents. Messages that a provider would not accept are refused, held back,
//! or saved with a mark on the thread. Sanitising repairs them.
//!
//! [`sanitize_history`] works without a store: it takes messages as JSON in any [`MessageForm`]
//! and returns them in the same form.

mod action;
mod action_builder;
mod append;
mod call_pairs;
mod document;
mod fault;
mod header;
mod message_form;
mod raw_json;
mod removal;
mod repair_ids;
mod result_placement;
mod sanitize;
mod sanitize_plan;
mod sanitize_thread;
mod stored_thread;
mod turn_order;

pub use action::{SanitizeAction, SanitizeActionKind, apply};
pub use append::{AppendGuard, AppendOptions, AppendReport};
pub use document::{CacheMarks, HistoryDocument, InvalidHistory, preview};
pub use fault::{FaultKind, Remedy, ThreadFault};
pub use header::{CallState, PendingCall, ThreadLease, ThreadReset};
pub use message_form::{CallResult, MessageForm, NO_RESULT};
pub use sanitize::{
    KNOWN_FORMS, OrphanPolicy, SanitizeError, SanitizeOptions, SanitizedHistory, form_of,
    sanitize_history,
};
pub use sanitize_thread::SanitizedThread;
pub use stored_thread::{StoredMessage, Thread, ThreadStatus};
