//! The context of a write: verb, author and time.

use crate::engine::random::operation_id;
use crate::error::Result;
use crate::model::{Operation, OperationAuthor, OperationId, Timestamp};

/// The context of a write. The library reads no clock, so the caller gives the time.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// The verb and its object, as on the command line.
    pub verb: String,
    /// The author.
    pub author: OperationAuthor,
    /// The current time.
    pub now: Timestamp,
}

impl WriteContext {
    /// Makes the context of a write that a person or agent asked for.
    pub fn asked(verb: impl Into<String>, now: Timestamp) -> Self {
        Self { verb: verb.into(), author: OperationAuthor::Asked, now }
    }

    /// Makes the context of a write by a hook.
    pub fn hook(verb: impl Into<String>, now: Timestamp) -> Self {
        Self { verb: verb.into(), author: OperationAuthor::Hook, now }
    }

    /// Makes a new operation in this context.
    pub(crate) fn operation(&self) -> Result<Operation> {
        Ok(self.operation_with(operation_id()?))
    }

    pub(crate) fn operation_with(&self, id: OperationId) -> Operation {
        Operation { id, verb: self.verb.clone(), author: self.author, time: self.now }
    }
}
