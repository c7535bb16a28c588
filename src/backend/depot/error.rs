//! Errors of depots.

use std::time::Duration;

/// An error of a depot, grouped by what the caller can do. Only [`DepotError::Unsure`] leaves open
/// whether a write happened; after any other error it did not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DepotError {
    /// The answer to a write was lost. The caller reads the object to learn whether it was written.
    #[error(
        "the answer of the remote was lost, and '{name}' may have been written or not: run the command again, which checks this first"
    )]
    Unsure {
        /// The object.
        name: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The depot did not accept the caller's credentials or permissions. Trying again is useless
    /// until they are changed.
    #[error("the remote does not permit forge to {action}: check its credentials and permissions")]
    Refused {
        /// The refused action, as a verb with its object.
        action: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The depot has too many requests, or its lock is held. The caller waits and tries again.
    #[error("the remote is busy: try again {}", after.map_or_else(|| "later".to_owned(), |time| format!("in {:.0} s", time.as_secs_f32().ceil())))]
    Busy {
        /// How long the depot asks to wait, if it says so.
        after: Option<Duration>,
    },
    /// The depot cannot be reached or does not work. The caller goes on without it, and tries again
    /// later.
    #[error("the remote cannot be used: {what}")]
    Unavailable {
        /// What is wrong, and what to do next.
        what: String,
        /// The cause, if it is an error of the system or the network.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The depot cannot do what forge needs. Another depot must be used.
    #[error("the remote cannot {what}: use another one")]
    Unsupported {
        /// What it cannot do.
        what: String,
    },
    /// An object cannot be what was written. Reading it again gives the same result.
    #[error("'{name}' on the remote is damaged: {reason}")]
    Damaged {
        /// The object.
        name: String,
        /// How the damage was detected.
        reason: String,
    },
    /// The address or the configuration of a depot is wrong.
    #[error("{address} cannot be used as a remote: {reason}")]
    InvalidAddress {
        /// The address.
        address: String,
        /// What is wrong, and what to do next.
        reason: String,
    },
    /// The name is not permitted in a depot.
    #[error("'{name}' cannot be a name on a remote: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_depot_says_when_to_try_again() {
        let message = |after| DepotError::Busy { after }.to_string();
        assert_eq!(message(None), "the remote is busy: try again later");
        let wait = Some(Duration::from_millis(1_200));
        assert_eq!(message(wait), "the remote is busy: try again in 2 s");
    }
}
