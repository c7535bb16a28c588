//! Operations: what one verb did.

use super::{OperationId, Timestamp};
use serde::{Deserialize, Serialize};

/// Who did something.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationAuthor {
    /// A person or an agent that asked for it: `undo` finds it.
    #[default]
    Asked,
    /// A hook, by itself: `undo` passes over it.
    Hook,
}

/// One verb and everything it did: the records that carry its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Names it for ever.
    pub id: OperationId,
    /// The verb with its object, as the command line says it (`hypothesis add`).
    pub verb: String,
    /// Who asked.
    pub author: OperationAuthor,
    /// When.
    pub time: Timestamp,
}
