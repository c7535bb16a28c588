//! Random bytes from the operating system.

use crate::error::{Error, Result};
use crate::model::OperationId;

/// Returns `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Connected {
        system: "random numbers of the operating system".to_owned(),
        action: "read",
        source: Box::new(error),
    })?;
    Ok(bytes)
}

/// Returns a new random operation id.
pub(crate) fn operation_id() -> Result<OperationId> {
    random().map(OperationId::from_bytes)
}
