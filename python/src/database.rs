//! Stores in PostgreSQL databases.

use crate::error::{exception, invalid, of_kind};
use forge_postgres::{Environment, PostgresConnector, PostgresDatabase};
use forge_store::error::{Error, ErrorKind};
use forge_store::store::database::{Database, DatabaseConnector};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{env, process};

/// The advice in an error about a path that is not the address of a database.
pub(crate) const NAME_A_DATABASE: &str = "name a database as postgres://HOST/DATABASE";

/// Opens stores of the database at an address, all with the same connections. A forked process
/// makes new connections, because it must not touch its parent's.
///
/// Only a thread that holds the interpreter locks the mutex, as for a `StoreHandle`.
pub(crate) struct DatabaseConnections {
    pub(crate) address: String,
    pub(crate) environment: Environment,
    /// A store that shares the connections, and the id of the process that opened it.
    opened: Mutex<(u32, Weak<PostgresDatabase>)>,
}

impl DatabaseConnections {
    /// Keeps the address and a copy of the environment variables. No connection is made yet.
    pub(crate) fn new(address: &str) -> Self {
        let (address, environment) = (address.to_owned(), environment());
        Self { address, environment, opened: Mutex::default() }
    }

    /// Returns the database with the store of this name, which need not exist.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn named(&self, py: Python<'_>, name: &str) -> PyResult<Arc<dyn Database>> {
        let (owner, known) = self.opened().clone();
        if owner == process::id()
            && let Some(known) = known.upgrade()
        {
            return Ok(Arc::new(known.named(name)));
        }
        let opened = py
            .detach(|| PostgresDatabase::open(&self.address, name, &self.environment))
            .map_err(|error| exception(py, &Error::from(error)))?;
        let opened = Arc::new(opened);
        *self.opened() = (process::id(), Arc::downgrade(&opened));
        Ok(opened)
    }

    fn opened(&self) -> MutexGuard<'_, (u32, Weak<PostgresDatabase>)> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the connector for databases that the folder of a store names.
pub(crate) fn connector() -> Arc<dyn DatabaseConnector> {
    Arc::new(PostgresConnector::new(environment()))
}

fn environment() -> Environment {
    let texts = env::vars_os()
        .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    texts.collect()
}

/// Returns the address and the name of a store in a database; `None` for a folder.
///
/// # Errors
/// If an address has no name, or a folder has one; or if the path is an address of another kind.
/// Such a path is not used as a folder, whose name would contain the password.
pub(crate) fn place_in_database(
    py: Python<'_>,
    path: Option<&Path>,
    name: Option<String>,
) -> PyResult<Option<(DatabaseConnections, String)>> {
    let text = path.and_then(Path::to_str).unwrap_or_default();
    match (forge_postgres::is_address(text), name) {
        (true, Some(name)) if !name.is_empty() => Ok(Some((DatabaseConnections::new(text), name))),
        (true, _) => {
            let what = "a database can hold many stores";
            Err(invalid(py, what, "say which one you mean, as with name='team'"))
        }
        (false, _) if text.contains("://") => {
            let what = "the path is an address that forge does not know";
            Err(invalid(py, what, &format!("name a folder, or {NAME_A_DATABASE}")))
        }
        (false, Some(_)) => {
            let what = "only a store in a database has a name";
            Err(invalid(py, what, &format!("leave out 'name', or {NAME_A_DATABASE}")))
        }
        (false, None) => Ok(None),
    }
}

/// Turns the error of opening a store into an exception, with advice if the store does not exist.
pub(crate) fn open_exception(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::NotFound { .. } => {
            let next = "name another store, or create this one with create=True";
            of_kind(py, ErrorKind::NotFound, &error.to_string(), next)
        }
        other => exception(py, other),
    }
}
