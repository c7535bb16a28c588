//! A store in a PostgreSQL database.

use crate::address::{DatabaseAddress, Environment};
use crate::frames::PostgresFrames;
use crate::generation::FoundGeneration;
use crate::index::PostgresIndex;
use crate::pool::{ConnectionPool, Failure, READ_AGAIN_FOR};
use crate::schema::{self, wait_for_commit};
use crate::shards::{KnownShards, parse_shard_name};
use forge_store::error::BackendError;
use forge_store::store::database::{
    Database, DatabaseConnector, DatabasePlace, FrameRow, FrameTable, Index,
};
use postgres::types::Type;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The maximum number of attempts to create the tables while other processes create them too.
const CREATE_ATTEMPTS: usize = 5;

const EXISTS: &str = "select to_regclass('forge.row') is not null";
const MARKER: &str = "select marker from forge.store where name = $1";

/// Whether one of the tables still has the file in which a purge replaced rows. A full vacuum gives
/// a table a new file.
const KEEPS_PURGED: &str = "
select exists (
  select from forge.index i where i.store = $1
    and (i.purged_rows = pg_relation_filenode('forge.row')
      or i.purged_frames = pg_relation_filenode('forge.frame'))
)";

const SET_KEEPS_PURGED: &str = "
update forge.index
set purged_rows = case when $2 then pg_relation_filenode('forge.row') end,
  purged_frames = case when $2 then pg_relation_filenode('forge.frame') end
where store = $1";

/// For each store whose name begins with a text: the rest of the name, and whether the store was
/// written to, so that it has more than its first frame.
const NAMES: &str = "
select substr(name, length($1) + 1),
  exists (select from forge.frame f where f.store = s.id and f.position > 0)
from forge.store s where starts_with(name, $1)";

/// Creates a store with its first frame, durably, unless a store with this name exists or its name
/// has another first shard.
const CREATE: &str = concat!(
    "
with settings as materialized (
  select ",
    wait_for_commit!(),
    "
), made as (
  insert into forge.store (id, name, version, marker) select $1, $2, $3, $4 from settings
  on conflict do nothing returning id
), log as (
  insert into forge.log (store, start, stop, hash) select id, 0, $5, $6 from made
), frame as (
  insert into forge.frame (store, position, stop, hash, begins_segment, bytes)
  select made.id, 0, $5, $6, true, $7 from made where $5 > 0
), index as (
  insert into forge.index (store) select id from made
), generation as (
  insert into forge.generation (store, number, epoch, published)
  select id, 0, 0, now() from made
)
select 1 from made"
);

/// A store in a PostgreSQL database. Threads may share it; its calls block.
pub struct PostgresDatabase {
    pool: Arc<ConnectionPool>,
    place: DatabasePlace,
    /// The generation that the index of the store opens next.
    found: Arc<FoundGeneration>,
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PostgresDatabase").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PostgresDatabase {
    /// Opens the store of this name at an address, such as `postgres://db.example/forge`. The
    /// password, and settings that are not in the address, are found as `libpq` finds them. No
    /// connection is made yet.
    ///
    /// # Errors
    /// [`BackendError::DatabaseAddress`] if the address cannot be used.
    pub fn open(
        address: &str,
        name: &str,
        environment: &Environment,
    ) -> Result<Self, BackendError> {
        let parsed = DatabaseAddress::parse(address, environment)
            .map_err(|error| BackendError::DatabaseAddress { source: Box::new(error) })?;
        let place = DatabasePlace { address: parsed.shown().to_owned(), name: name.to_owned() };
        let pool = Arc::new(ConnectionPool::new(parsed, place.address.clone()));
        Ok(Self { pool, place, found: Arc::default() })
    }

    /// Returns the store of another name in this database, with the same connections.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let place = DatabasePlace { name: name.to_owned(), ..self.place.clone() };
        Self { pool: Arc::clone(&self.pool), place, found: Arc::default() }
    }

    /// Returns the shards of this name; `None` if their creation has not begun.
    ///
    /// # Errors
    /// [`BackendError::Database`].
    pub(crate) fn shards(&self) -> Result<Option<KnownShards>, BackendError> {
        if !self.has_tables()? {
            return Ok(None);
        }
        let prefix = format!("{}/", self.place.name);
        let rows = self.pool.read("look at", NAMES, &[(&prefix, Type::TEXT)])?;
        Ok(KnownShards::of(rows.iter().map(|row| (row.get(0), row.get(1)))))
    }

    /// Refuses to create a shard that does not fit the existing shards of its name.
    fn check_new_shard(&self, action: &'static str) -> Result<(), BackendError> {
        let Some((name, shard, count)) = parse_shard_name(&self.place.name) else { return Ok(()) };
        let Some(known) = self.named(name).shards()? else { return Ok(()) };
        match known.refusal(name, count, Some(shard)) {
            Some(refusal) => Err(self.pool.error(action, false, refusal)),
            None => Ok(()),
        }
    }

    /// Makes the error for a first shard that was not created because its name has another one.
    fn has_other_first_shard(&self, action: &'static str) -> BackendError {
        let other = self.check_new_shard(action).err();
        other.unwrap_or_else(|| {
            let source = "another store has this name with another number after '/0-of-': choose \
                          another name";
            self.pool.error(action, false, source)
        })
    }

    fn has_tables(&self) -> Result<bool, BackendError> {
        let rows = self.pool.read("look at", EXISTS, &[])?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Creates the tables if they are missing.
    fn create_tables(&self) -> Result<(), BackendError> {
        if self.has_tables()? {
            return Ok(());
        }
        for attempt in 1.. {
            let mut client = self.pool.take("create tables in")?;
            match client.batch_execute(schema::CREATE).map_err(Failure::from) {
                Ok(()) => {
                    self.pool.give_back(client);
                    break;
                }
                // The connection is closed, which rolls back.
                Err(failure) if failure.is_race() && attempt < CREATE_ATTEMPTS => {}
                Err(failure) => return Err(self.pool.failed("create tables in", failure)),
            }
        }
        Ok(())
    }
}

impl Database for PostgresDatabase {
    fn place(&self) -> &DatabasePlace {
        &self.place
    }

    fn marker(&self) -> Result<Option<String>, BackendError> {
        if !self.has_tables()? {
            return Ok(None);
        }
        let rows = self.pool.read("read", MARKER, &[(&self.place.name, Type::TEXT)])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn create(
        &self,
        id: &[u8; 16],
        marker: &str,
        first: Option<&FrameRow>,
    ) -> Result<bool, BackendError> {
        let action = "create a store in";
        self.create_tables()?;
        self.check_new_shard(action)?;
        let stop = first.map_or(0, |frame| schema::number(frame.end));
        let hash = first.map_or([0; 32], |frame| frame.hash);
        let bytes = first.map_or(&[][..], |frame| &frame.bytes);
        let parameters = [
            (&&id[..] as _, Type::BYTEA),
            (&self.place.name as _, Type::TEXT),
            (&schema::VERSION as _, Type::INT4),
            (&marker as _, Type::TEXT),
            (&stop as _, Type::INT8),
            (&&hash[..] as _, Type::BYTEA),
            (&bytes as _, Type::BYTEA),
        ];
        match self.pool.write_durably(action, CREATE, &parameters)? {
            Ok(rows) if rows.is_empty() && self.marker()?.is_none() => {
                Err(self.has_other_first_shard(action))
            }
            Ok(rows) => Ok(!rows.is_empty()),
            Err(failure) => {
                // The marker contains a new id, so only this call can have written it.
                let is_created = || Ok(self.marker()?.as_deref() == Some(marker));
                self.pool.confirm(action, id, READ_AGAIN_FOR, failure, is_created)?;
                Ok(true)
            }
        }
    }

    fn frames(&self, store: &[u8; 16]) -> Box<dyn FrameTable> {
        let (pool, found) = (Arc::clone(&self.pool), Arc::clone(&self.found));
        Box::new(PostgresFrames { pool, store: *store, found })
    }

    fn index(&self, store: &[u8; 16]) -> Box<dyn Index> {
        Box::new(PostgresIndex::new(Arc::clone(&self.pool), *store, Arc::clone(&self.found)))
    }

    fn version(&self) -> Result<String, BackendError> {
        let rows = self.pool.read("look at", "select version()", &[])?;
        Ok(rows.first().map(|row| row.get(0)).unwrap_or_default())
    }

    fn risks(&self) -> Result<Vec<String>, BackendError> {
        let rows = self.pool.read(
            "look at",
            "select current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off',
               current_setting('synchronous_commit') in ('off', 'local'),
               (select count(*) from pg_stat_replication),
               current_setting('synchronous_standby_names') = '', pg_is_in_recovery()",
            &[],
        )?;
        let Some(row) = rows.first() else { return Ok(Vec::new()) };
        let mut risks = Vec::new();
        let mut add = |is_so: bool, risk: &str| {
            if is_so {
                risks.push(risk.to_owned());
            }
        };
        add(
            row.get(0),
            "fsync is off: a power failure of the server can lose or damage what was acknowledged",
        );
        add(
            row.get(1),
            "full_page_writes is off: a power failure of the server can damage the database",
        );
        add(
            row.get(2),
            "synchronous_commit is off or local: forge turns it on for what it acknowledges, but \
             other programs can lose data",
        );
        add(
            row.get::<_, i64>(3) > 0 && row.get(4),
            "no standby is synchronous: if one takes over, it can lack what was acknowledged (name \
             it in synchronous_standby_names)",
        );
        add(row.get(5), "this server is a standby: it can be read, not written");
        Ok(risks)
    }

    fn keeps_purged(&self, store: &[u8; 16]) -> Result<bool, BackendError> {
        let rows = self.pool.read("look at", KEEPS_PURGED, &[(&&store[..], Type::BYTEA)])?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    fn set_keeps_purged(&self, store: &[u8; 16], keeps: bool) -> Result<(), BackendError> {
        let parameters = [(&&store[..] as _, Type::BYTEA), (&keeps as _, Type::BOOL)];
        let set = self.pool.write("write to", SET_KEEPS_PURGED, &parameters)?;
        set.map(drop).map_err(|failure| self.pool.failed("write to", failure))
    }

    fn vacuum(&self) -> Result<(), BackendError> {
        let mut client = self.pool.take("vacuum")?;
        for table in ["forge.frame", "forge.row"] {
            let vacuumed = client.batch_execute(&format!("vacuum (full, analyze) {table}"));
            vacuumed.map_err(|error| self.pool.failed("vacuum", Failure::from(error)))?;
        }
        self.pool.give_back(client);
        Ok(())
    }
}

/// Connects to PostgreSQL databases, configured by these environment variables.
#[derive(Clone)]
pub struct PostgresConnector {
    environment: Environment,
}

impl fmt::Debug for PostgresConnector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may have a password.
        out.debug_struct("PostgresConnector").finish_non_exhaustive()
    }
}

impl PostgresConnector {
    /// Creates a connector with these environment variables.
    #[must_use]
    pub const fn new(environment: Environment) -> Self {
        Self { environment }
    }

    /// Opens the store of this name at an address; see [`PostgresDatabase::open`].
    ///
    /// # Errors
    /// [`BackendError::DatabaseAddress`] if the address cannot be used.
    pub fn open(&self, address: &str, name: &str) -> Result<PostgresDatabase, BackendError> {
        PostgresDatabase::open(address, name, &self.environment)
    }
}

impl DatabaseConnector for PostgresConnector {
    fn connect(
        &self,
        place: &DatabasePlace,
        _folder: &Path,
    ) -> Result<Arc<dyn Database>, BackendError> {
        Ok(Arc::new(self.open(&place.address, &place.name)?))
    }
}
