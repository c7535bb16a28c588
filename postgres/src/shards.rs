//! Several stores under one name.

use crate::address::Environment;
use crate::database::{KnownShards, PostgresDatabase};
use forge_store::error::{Error, Result};
use forge_store::store::database::{Database, shard_name, shard_of};
use forge_store::{Options, Store};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The most shards of one name.
pub const MAX_SHARDS: u32 = 1024;

/// Stores in one database that share a name. Each session is in one of them, which its name
/// chooses, so that writers of different sessions seldom wait for each other. The number of shards
/// is fixed when they are created. Shards are opened when they are first used, and share their
/// connections.
pub struct Shards {
    database: PostgresDatabase,
    count: u32,
    options: Options,
    opened: Mutex<Vec<Option<Store>>>,
}

impl fmt::Debug for Shards {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shards")
            .field("database", &self.database)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl Shards {
    /// Opens the shards of a name at an address.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the database has no shards of this name; [`Error::Conflict`] if not
    /// all of them were created; [`Error::Backend`].
    pub fn open(
        address: &str,
        name: &str,
        environment: &Environment,
        options: Options,
    ) -> Result<Self> {
        let database = PostgresDatabase::open(address, name, environment)?;
        let known = database.shards()?;
        let KnownShards { count, is_complete } =
            known.ok_or_else(|| Error::not_found("set of shards", name))?;
        if !is_complete {
            return Err(Error::Conflict(format!(
                "the shards '{name}' are being created, or that was interrupted: create {count} \
                of them again"
            )));
        }
        Ok(Self::of_database(database, count, options))
    }

    /// Opens the shards of a name at an address, or creates this many.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is another number of shards of this name; [`Error::Invalid`] if
    /// `count` is 0 or more than [`MAX_SHARDS`]; [`Error::Backend`].
    pub fn open_or_create(
        address: &str,
        name: &str,
        count: u32,
        environment: &Environment,
        options: Options,
    ) -> Result<Self> {
        if !(1..=MAX_SHARDS).contains(&count) {
            return Err(Error::invalid(format!("the number of shards is 1 to {MAX_SHARDS}")));
        }
        let database = PostgresDatabase::open(address, name, environment)?;
        let mut known = database.shards()?;
        if known.is_none() {
            if options.read_only {
                return Err(Error::not_found("set of shards", name));
            }
            // The first shard says how many there are. It is not created if there is a first one of
            // another number.
            let first = shard_database(&database, 0, count);
            match Store::open_or_create_at(&first, options.clone()) {
                Ok(_) | Err(Error::NotFound { .. }) => known = database.shards()?,
                Err(error) => return Err(error),
            }
        }
        let KnownShards { count: there, is_complete } =
            known.ok_or_else(|| Error::not_found("set of shards", name))?;
        if there != count {
            return Err(Error::Conflict(format!(
                "'{name}' has {there} shards, and their number cannot be changed"
            )));
        }
        if !is_complete {
            for shard in 1..count {
                let database = shard_database(&database, shard, count);
                Store::open_or_create_at(&database, options.clone())?;
            }
        }
        Ok(Self::of_database(database, count, options))
    }

    fn of_database(database: PostgresDatabase, count: u32, options: Options) -> Self {
        let opened = Mutex::new(vec![None; count as usize]);
        Self { database, count, options, opened }
    }

    /// Returns the number of shards.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the store of the session with this name.
    ///
    /// # Errors
    /// See [`Store::at`].
    pub fn of(&self, session: &str) -> Result<Store> {
        self.shard(shard_of(session, self.count))
    }

    /// Returns all stores, in the order of their numbers.
    ///
    /// # Errors
    /// See [`Store::at`].
    pub fn all(&self) -> Result<Vec<Store>> {
        (0..self.count).map(|shard| self.shard(shard)).collect()
    }

    fn shard(&self, shard: u32) -> Result<Store> {
        // Every change is one assignment, so the list is right also after a panic.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let place = opened.get_mut(shard as usize).expect("the shard is less than the count");
        if let Some(store) = place {
            return Ok(store.clone());
        }
        let database = shard_database(&self.database, shard, self.count);
        let store = Store::at(&database, self.options.clone())?;
        Ok(place.insert(store).clone())
    }
}

/// Returns the database of a shard, with the same connections.
fn shard_database(database: &PostgresDatabase, shard: u32, count: u32) -> Arc<dyn Database> {
    Arc::new(database.named(&shard_name(&database.place().name, shard, count)))
}
