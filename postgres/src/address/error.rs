//! The errors of an address and its settings.

/// The reason why the address of a database cannot be used. No message contains a password, or a
/// part of the address that may be one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    /// The address has a password.
    #[error(
        "the address of the database has a password: leave it out, since the address is written \
         to the folder of the store and shown; put the password into PGPASSWORD, ~/.pgpass or a \
         service of ~/.pg_service.conf"
    )]
    HasPassword,
    /// The address has a wrong form.
    #[error("cannot read the address of the database: {reason}")]
    Malformed {
        /// What is wrong, and what the right form is.
        reason: String,
    },
    /// A setting of the address, a service or the environment cannot be used.
    #[error("cannot use {setting}: {reason}")]
    Setting {
        /// The setting, and where it comes from.
        setting: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A service cannot be used, or does not exist.
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

/// Makes the error for an address with a wrong form.
pub(super) fn malformed(reason: impl Into<String>) -> AddressError {
    AddressError::Malformed { reason: reason.into() }
}
