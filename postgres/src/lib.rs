//! Stores of forge in a PostgreSQL database, or in another database with its protocol.
//!
//! [`PostgresDatabase`] is the [`Database`](forge_store::store::database::Database) of one store:
//! pass it to [`Store::open_or_create_at`](forge_store::Store::open_or_create_at). A store whose
//! folder names a database is opened with the [`PostgresConnector`] in its
//! [`Options`](forge_store::Options). [`Shards`] are several stores under one name: only one writer
//! at a time can append to a log, so writers in parallel need several logs.
//!
//! Credentials are found as `libpq` finds them. Nothing depends on the state of a connection, so a
//! pooler in transaction mode may be in front of the database.

#![warn(missing_debug_implementations)]

mod address;
mod connection;
mod database;
mod frames;
mod generation;
mod index;
mod known_rows;
mod passfile;
mod pool;
mod row_view;
mod schema;
mod service;
mod shards;
mod tls;

pub use address::{Environment, is_address};
pub use database::{PostgresConnector, PostgresDatabase};
pub use shards::{MAX_SHARDS, Shards};
