//! Connects to the databases that contain stores.

use crate::context::Context;
use crate::error::CommandError;
#[cfg(feature = "network")]
use forge_store::error::Error;
use forge_store::store::Options;
use forge_store::store::database::{Database, DatabaseConnector};
use std::sync::Arc;

/// Returns the connector to the databases that folders of stores name.
#[cfg(feature = "network")]
pub fn connector(context: &Context) -> Option<Arc<dyn DatabaseConnector>> {
    let environment = context.environment.clone();
    let postgres = own_folders::postgres(&environment);
    Some(Arc::new(own_folders::OwnFolderConnector { environment, postgres }))
}

/// Returns `None`: this program was built without connections to other machines.
#[cfg(not(feature = "network"))]
pub fn connector(_: &Context) -> Option<Arc<dyn DatabaseConnector>> {
    None
}

/// Connects to the database at an address that the user gave, for the store of this name.
///
/// # Errors
/// Invalid if the address is not one of a database.
#[cfg(feature = "network")]
pub fn open_database(
    context: &Context,
    address: &str,
    name: &str,
) -> Result<Arc<dyn Database>, CommandError> {
    if !forge_postgres::is_address(address) {
        return Err(CommandError::invalid(format!("'{address}' is not the address of a database"))
            .hinted("name one such as postgres://HOST/DATABASE"));
    }
    let connector = own_folders::postgres(&context.environment);
    let opened = connector.open(address, name).map_err(Error::from)?;
    Ok(Arc::new(opened))
}

/// Creates `count` shards of a name at an address, unless they exist. Returns whether they are new.
///
/// # Errors
/// A conflict if another number of shards exists.
#[cfg(feature = "network")]
pub fn create_shards(
    context: &Context,
    address: &str,
    name: &str,
    count: u32,
    options: Options,
) -> Result<bool, CommandError> {
    let environment = own_folders::texts(&context.environment);
    let opened = forge_postgres::Shards::open(address, name, &environment, options.clone());
    let is_new = opened.is_err();
    forge_postgres::Shards::open_or_create(address, name, count, &environment, options)?;
    Ok(is_new)
}

/// Does nothing: [`open_database`] reports later that this program connects to no other machine.
#[cfg(not(feature = "network"))]
pub fn create_shards(
    _: &Context,
    _: &str,
    _: &str,
    _: u32,
    _: Options,
) -> Result<bool, CommandError> {
    Ok(false)
}

/// Refuses: this program was built without connections to other machines.
#[cfg(not(feature = "network"))]
pub fn open_database(
    _: &Context,
    address: &str,
    _: &str,
) -> Result<Arc<dyn Database>, CommandError> {
    let said =
        format!("'{address}' cannot be opened: this forge was built without the feature 'network'");
    Err(CommandError::invalid(said))
}

#[cfg(feature = "network")]
mod own_folders {
    use crate::config::trust;
    use crate::context::Environment;
    use forge_postgres::PostgresConnector;
    use forge_store::error::BackendError;
    use forge_store::store::database::{Database, DatabaseConnector, DatabasePlace};
    use std::path::Path;
    use std::sync::Arc;

    /// Returns the connector that uses these environment variables.
    pub(super) fn postgres(environment: &Environment) -> PostgresConnector {
        PostgresConnector::new(texts(environment))
    }

    /// Returns the variables that are text.
    pub(super) fn texts(environment: &Environment) -> forge_postgres::Environment {
        let texts = environment.texts();
        texts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Connects to the databases that the user's own folders name. A folder that came with a
    /// project could name a server that collects passwords.
    #[derive(Debug)]
    pub(super) struct OwnFolderConnector {
        pub(super) environment: Environment,
        pub(super) postgres: PostgresConnector,
    }

    impl DatabaseConnector for OwnFolderConnector {
        fn connect(
            &self,
            place: &DatabasePlace,
            folder: &Path,
        ) -> Result<Arc<dyn Database>, BackendError> {
            if !trust::is_own_store(&self.environment, folder) {
                let source = format!(
                    "{} was not made by you on this machine, and could name a server that collects \
                    passwords: if you know the address, remove the directory, and join the store \
                    with 'forge init --at {} --name {}'",
                    folder.display(),
                    place.address,
                    place.name,
                );
                return Err(BackendError::Database {
                    action: "connect to",
                    place: place.to_string(),
                    unsure: false,
                    source: source.into(),
                });
            }
            self.postgres.connect(place, folder)
        }
    }
}
