//! The threads of a graph of an agent framework: its checkpoints, the values of its channels, and
//! what its tasks wrote between checkpoints.
//!
//! The values come as bytes of the framework's serialiser and go back unchanged. They are divided
//! into elements only to store less.

mod delta_history;
mod element_ids;
mod label;
mod payload;
mod pending_write;
mod prune_plan;
mod readable_value;
mod typed_bytes;

pub use delta_history::{
    ChannelHistories, ChannelHistory, HistoryNode, HistorySource, HistoryWrite, delta_history,
};
pub use element_ids::element_ids;
pub use payload::{PayloadElement, PayloadForm, SplitPayload, join_payload, split_payload};
pub use pending_write::{PendingWrite, fold_writes};
pub use prune_plan::{PruneNode, StepName, is_call, older_checkpoints, orphans};
pub use readable_value::{CLASS_FIELD, readable_values};
pub use typed_bytes::TypedBytes;
