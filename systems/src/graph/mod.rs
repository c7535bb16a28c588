//! The threads of a graph of an agent framework: its checkpoints, the values of its channels, and
//! what its tasks wrote between checkpoints.
//!
//! Each thread is a session. A checkpoint is one record: a revision with the elements that changed,
//! and a checkpoint of the session. What tasks wrote is a fact, which belongs to no branch.
//!
//! The values come as bytes of the framework's serialiser and go back unchanged. They are divided
//! into elements only to store less.

mod channel_state;
mod delta_history;
mod element_ids;
mod forget;
mod graph_store;
mod label;
mod latest_step;
mod payload;
mod pending_write;
mod prune_plan;
mod put;
mod readable_value;
mod step_cache;
mod step_record;
mod typed_bytes;

#[cfg(test)]
mod tests;

pub use delta_history::{
    ChannelHistories, ChannelHistory, HistoryNode, HistorySource, HistoryWrite, delta_history,
};
pub use element_ids::element_ids;
pub use forget::KeepStrategy;
pub use graph_store::{GraphStore, StepAddress, StoredStep};
pub use payload::{
    CommonBeginning, DividedPayload, PayloadElement, PayloadForm, SplitPayload, elements_of,
    join_payload, split_payload, split_payload_after,
};
pub use pending_write::{PendingWrite, fold_writes};
pub use prune_plan::{PruneNode, StepName, is_call, older_checkpoints, orphans};
pub use put::{ForkPolicy, NewChannel, NewStep, NewValue, PutOutcome, StepNotes};
pub use readable_value::{
    CLASS_FIELD, PLAIN_ENCODING, readable_element, readable_title, readable_values,
};
pub use typed_bytes::{SharedBytes, TypedBytes};

use forge_store::error::Error;

/// Returns the error for stored data of a graph that is damaged.
fn damaged(what: impl Into<String>, why: &'static str) -> Error {
    Error::Corrupt { what: what.into(), source: why.into() }
}
