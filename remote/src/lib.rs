//! Depots on object storage: Amazon S3 and servers with its protocol, Google Cloud Storage, Azure
//! Blob Storage.
//!
//! [`open`] makes a [`Depot`] from an address. Its calls block, and threads may share it.
//! Credentials are found as the tools of each provider find them: in the environment, in an AWS
//! profile, or from the role of the machine. They are never written to disk.
//!
//! Of the crates of forge, only this one and `forge-postgres` connect to other machines.

mod address;
mod configure;
mod failure;
mod object_depot;
mod observe;
mod profile;

use forge_store::error::DepotError;
use forge_store::store::remote::Depot;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use object_depot::ObjectDepot;

/// How long a request may take by default, without the time for its contents.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(10);

/// The environment variables with which a depot is configured.
pub type Environment = BTreeMap<String, String>;

/// Returns whether this begins like an address for [`open`], such as `s3://bucket/folder`. The rest
/// is not checked.
#[must_use]
pub fn is_address(address: &str) -> bool {
    address::StorageKind::of(address).is_some()
}

/// Opens the depot at an address: `s3://BUCKET/FOLDER`, `gs://BUCKET/FOLDER` or
/// `az://CONTAINER/FOLDER`; the folder may be left out. It is configured by the environment of this
/// process, and a request may take [`DEFAULT_LIMIT`]. No request is sent yet.
///
/// # Errors
/// [`DepotError::InvalidAddress`] if the address or the configuration is wrong;
/// [`DepotError::Refused`] if the AWS profile does not exist or its credentials cannot be used;
/// [`DepotError::Unavailable`] if its file cannot be read, or the system has no resources for a
/// connection. Missing credentials are reported by the first request.
pub fn open(address: &str) -> Result<Arc<dyn Depot>, DepotError> {
    open_within(address, DEFAULT_LIMIT)
}

/// Opens a depot like [`open`], with another limit: the time that a request may take, without the
/// time for its contents. An unreachable machine is reported within this time.
///
/// # Errors
/// See [`open`].
pub fn open_within(address: &str, limit: Duration) -> Result<Arc<dyn Depot>, DepotError> {
    let variables = std::env::vars_os();
    let text =
        variables.filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    Ok(Arc::new(ObjectDepot::open(address, &text.collect(), limit)?))
}
