//! Operations: everything that one verb did.

use super::{OperationId, Timestamp};
use serde::{Deserialize, Serialize};

/// The author of an operation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationAuthor {
    /// A person or an agent asked for it. `undo` without an id undoes the last one.
    #[default]
    Asked,
    /// A hook made it. `undo` without an id skips it.
    Hook,
}

/// Everything that one verb did: the changes recorded under one operation id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The permanent id.
    pub id: OperationId,
    /// The verb with its object, as on the command line (`hypothesis add`).
    pub verb: String,
    /// The author.
    pub author: OperationAuthor,
    /// When the operation was made.
    pub time: Timestamp,
}
