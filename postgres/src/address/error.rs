//! Why an address, or what belongs to it, cannot be used.

/// Why the address of a database cannot be used. No message has a password, or a part of the
/// address that may be one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    /// The address has a password.
    #[error(
        "the address of the database has a password: leave it out, since the address is written \
         to the folder of the store and shown; put the password into PGPASSWORD, ~/.pgpass or a \
         service of ~/.pg_service.conf"
    )]
    HasPassword,
    /// The address is not written as it should be, for this reason.
    #[error("cannot read the address of the database: {reason}")]
    Malformed {
        /// What is wrong, and how it is written.
        reason: String,
    },
    /// A setting cannot be used, wherever it comes from.
    #[error("cannot use {setting}: {reason}")]
    Setting {
        /// The setting, and where it comes from.
        setting: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A service cannot be used, or is not there.
    #[error("cannot use the service '{name}' of PostgreSQL: {reason}")]
    Service {
        /// The name of the service.
        name: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// TLS cannot be configured.
    #[error("cannot use TLS for the database: {reason}")]
    Tls {
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// Makes the error of an address that is not written as it should be.
pub(super) fn malformed(reason: impl Into<String>) -> AddressError {
    AddressError::Malformed { reason: reason.into() }
}
