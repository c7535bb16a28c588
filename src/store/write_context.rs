//! Who does what, when.

use crate::engine::commit::operation_id;
use crate::error::Result;
use crate::model::{Operation, OperationAuthor, Timestamp};

/// Who does what, when. Time comes in here: the library reads no clock.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// The verb with its object, as the command line says it.
    pub verb: String,
    /// Who.
    pub author: OperationAuthor,
    /// Now.
    pub now: Timestamp,
}

impl WriteContext {
    /// Somebody asked for it.
    pub fn asked(verb: impl Into<String>, now: Timestamp) -> Self {
        Self { verb: verb.into(), author: OperationAuthor::Asked, now }
    }

    /// A hook does it by itself.
    pub fn hook(verb: impl Into<String>, now: Timestamp) -> Self {
        Self { verb: verb.into(), author: OperationAuthor::Hook, now }
    }

    /// A new operation for this act.
    pub(crate) fn operation(&self) -> Result<Operation> {
        Ok(Operation {
            id: operation_id()?,
            verb: self.verb.clone(),
            author: self.author,
            time: self.now,
        })
    }
}
