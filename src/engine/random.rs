//! Random bytes from the operating system.

use crate::error::{Error, Result};
use crate::model::OperationId;

/// Returns `N` random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(no_random_bytes)?;
    Ok(bytes)
}

fn no_random_bytes(error: getrandom::Error) -> Error {
    Error::NoRandomBytes { source: Box::new(error) }
}

/// Returns a new random operation id.
pub(crate) fn operation_id() -> Result<OperationId> {
    random().map(OperationId::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// Regression: the message named a connected system.
    #[test]
    fn without_random_bytes_the_error_names_the_operating_system() {
        let error = no_random_bytes(getrandom::Error::UNSUPPORTED);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let expected = "the operating system gave no random bytes: try again later";
        assert_eq!(error.to_string(), expected);
    }
}
