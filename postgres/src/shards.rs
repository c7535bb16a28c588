//! Several stores under one name.

use crate::address::Environment;
use crate::database::PostgresDatabase;
use forge_store::error::{Error, Result};
use forge_store::store::database::{Database, shard_name, shard_of};
use forge_store::{Options, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of shards of one name.
pub const MAX_SHARDS: u32 = 1024;
/// The maximum number of missing shards that a message names.
const MAX_SHOWN: usize = 5;

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
    /// all of them were created, or if some were removed; [`Error::Backend`].
    pub fn open(
        address: &str,
        name: &str,
        environment: &Environment,
        options: Options,
    ) -> Result<Self> {
        let database = PostgresDatabase::open(address, name, environment)?;
        let known = database.shards()?.ok_or_else(|| Error::not_found("set of shards", name))?;
        let count = known.count;
        if let Some(refusal) = known.refusal(name, count, None) {
            return Err(Error::Conflict(refusal));
        }
        if !known.is_complete() {
            return Err(Error::Conflict(unfinished(name, count)));
        }
        Ok(Self::of_database(database, count, options))
    }

    /// Opens the shards of a name at an address, or creates this many.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is another number of shards of this name, or if some were
    /// removed; [`Error::Invalid`] if `count` is 0 or more than [`MAX_SHARDS`]; [`Error::Backend`].
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
            // The name of the first shard contains the number of shards. The database refuses a
            // second first shard, even one with another number of shards.
            let first = shard_database(&database, 0, count);
            let created = Store::open_or_create_at(&first, options.clone());
            known = database.shards()?;
            if known.is_none() {
                created?;
            }
        }
        let known = known.ok_or_else(|| Error::not_found("set of shards", name))?;
        if let Some(refusal) = known.refusal(name, count, None) {
            return Err(Error::Conflict(refusal));
        }
        if !known.is_complete() {
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

/// What is known of the shards of a name.
pub(crate) struct KnownShards {
    /// The number of shards. The name of each shard contains it.
    count: u32,
    /// The numbers of those that are in the database.
    present: BTreeSet<u32>,
    /// Whether one of them was written to.
    is_written: bool,
}

impl KnownShards {
    /// Reads the ends of names, such as `5-of-8`, each with whether its store was written to.
    /// Returns the set that contains the shard with the smallest number; `None` if there are none.
    pub(crate) fn of(names: impl Iterator<Item = (String, bool)>) -> Option<Self> {
        let found: BTreeMap<(u32, u32), bool> =
            names.filter_map(|(end, is_written)| Some((parse_shard(&end)?, is_written))).collect();
        // The smallest number comes first.
        let (_, count) = *found.first_key_value()?.0;
        let of_set = found.iter().filter(|((_, of), _)| *of == count);
        let present = of_set.clone().map(|((shard, _), _)| *shard).collect();
        let is_written = of_set.clone().any(|(_, is_written)| *is_written);
        Some(Self { count, present, is_written })
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing().next().is_none()
    }

    fn missing(&self) -> impl Iterator<Item = u32> {
        (0..self.count).filter(|shard| !self.present.contains(shard))
    }

    /// Returns why these shards cannot be used as `count` shards, or why the shard `new` cannot be
    /// created; `None` if they are complete or their creation can continue.
    pub(crate) fn refusal(&self, name: &str, count: u32, new: Option<u32>) -> Option<String> {
        let known_count = self.count;
        if known_count != count {
            return Some(format!(
                "'{name}' has {known_count} shards, '{}' to '{}', and their number cannot be \
                changed: use this number, or choose another name",
                shard_name(name, 0, known_count),
                shard_name(name, known_count - 1, known_count)
            ));
        }
        let first = self.missing().next()?;
        // Shards are created in their order, and none is written to before all of them are there.
        let is_unfinished =
            !self.is_written && self.present.last().is_none_or(|last| *last < first);
        if !is_unfinished {
            let missing: Vec<String> = self
                .missing()
                .map(|shard| format!("'{}'", shard_name(name, shard, known_count)))
                .collect();
            let (shown, others) = missing.split_at(missing.len().min(MAX_SHOWN));
            let others = match others.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Some(format!(
                "the database no longer has {}{others} of the {known_count} shards of '{name}': \
                restore a backup of it, or choose another name",
                shown.join(", ")
            ));
        }
        new.filter(|new| *new > first).map(|_| unfinished(name, known_count))
    }
}

/// Returns the message for shards that are not all created yet.
fn unfinished(name: &str, count: u32) -> String {
    format!(
        "the shards '{name}' are being created, or their creation was interrupted: create all \
        {count} again"
    )
}

/// Returns the name that a shard shares with others, its number, and their number; `None` if it is
/// not the name of a shard.
pub(crate) fn parse_shard_name(name: &str) -> Option<(&str, u32, u32)> {
    let (shared, end) = name.rsplit_once('/')?;
    let (shard, count) = parse_shard(end)?;
    Some((shared, shard, count))
}

/// Reads the end of the name of a shard, such as `5-of-8`.
fn parse_shard(end: &str) -> Option<(u32, u32)> {
    let (shard, count) = end.split_once("-of-")?;
    let (shard, count) = (shard.parse().ok()?, count.parse().ok()?);
    let is_shard = (1..=MAX_SHARDS).contains(&count) && shard < count;
    // A name is written in one way only.
    (is_shard && format!("{shard}-of-{count}") == end).then_some((shard, count))
}

/// Returns the database of a shard, with the same connections.
fn shard_database(database: &PostgresDatabase, shard: u32, count: u32) -> Arc<dyn Database> {
    Arc::new(database.named(&shard_name(&database.place().name, shard, count)))
}
