//! The class `Shards`: several stores under one name.

#![expect(clippy::needless_pass_by_value, reason = "arguments from Python arrive as values")]

use crate::database::{DatabaseConnections, NAME_A_DATABASE, open_exception, place_in_database};
use crate::error::invalid;
use crate::handle::StorePlace;
use crate::store::{OpenArguments, Store};
use forge_postgres::Shards as DatabaseShards;
use forge_store::error::Error;
use forge_store::store::database::{shard_name, shard_of};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Stores in a database that share a name and their connections.
#[pyclass(frozen, module = "forge_store._forge")]
pub(crate) struct Shards {
    connections: Arc<DatabaseConnections>,
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    count: u32,
    arguments: OpenArguments,
}

#[pymethods]
impl Shards {
    /// Finds the shards of a name. With `count`, those that are missing are created, if `arguments`
    /// allow it. Each shard is opened when `shard` is called.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        address: PathBuf,
        name: String,
        count: Option<u32>,
        arguments: OpenArguments,
    ) -> PyResult<Self> {
        let Some((connections, name)) = place_in_database(py, Some(&address), Some(name))? else {
            return Err(invalid(py, "shards are in a database", NAME_A_DATABASE));
        };
        let options = arguments.options(py)?.keyring(arguments.new_keyring());
        let DatabaseConnections { address, environment, .. } = &connections;
        let opened = py.detach(|| match count {
            Some(count) => {
                let options = options.read_only(arguments.read_only || !arguments.create);
                DatabaseShards::open_or_create(address, &name, count, environment, options)
            }
            None if arguments.create => {
                Err(Error::invalid("a number of shards is needed to create them: add shards=8"))
            }
            None => DatabaseShards::open(address, &name, environment, options),
        });
        let opened = opened.map_err(|error| open_exception(py, &error))?;
        let count = opened.count();
        Ok(Self { connections: Arc::new(connections), name, count, arguments })
    }

    /// Returns the number of the shard of the session with this name.
    fn number_of(&self, session: &str) -> u32 {
        shard_of(session, self.count)
    }

    /// Opens the shard with this number.
    fn shard(&self, py: Python<'_>, number: u32) -> PyResult<Store> {
        let name = shard_name(&self.name, number, self.count);
        let place = StorePlace::Database(Arc::clone(&self.connections), name);
        Store::open_in_database(py, place, &self.arguments)
    }
}
