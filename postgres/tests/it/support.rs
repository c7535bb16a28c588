//! Helpers that several tests share.

use forge_postgres::{Environment, PostgresDatabase};
use forge_store::backend::framed_log::FramedLog;
use forge_store::backend::{LogFrame, WriteAheadLog};
use forge_store::error::{BackendError, Error, ErrorKind};
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::database::Database;
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, Session, Store, VerifyDepth, VerifyOutcome,
    WriteContext,
};
use postgres::{Client, NoTls};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A time limit that is longer than anything here takes: only a fault makes a test wait this long.
pub(crate) const WAIT: Duration = Duration::from_secs(120);
pub(crate) const ID: [u8; 16] = [7; 16];
/// The name of the store in the database.
pub(crate) const NAME: &str = "team";

/// Opens a database as another process would, with new connections.
pub(crate) fn open(address: &str, name: &str) -> PostgresDatabase {
    PostgresDatabase::open(address, name, &Environment::new()).unwrap()
}

pub(crate) fn database(address: &str, name: &str) -> Arc<dyn Database> {
    Arc::new(open(address, name))
}

/// Creates the frames and the index of a store with [`ID`], without any frame.
pub(crate) fn create_bare(address: &str) {
    assert!(open(address, "bare").create(&ID, "a marker", None).unwrap());
}

/// Opens the log with this id as another process would.
pub(crate) fn log(address: &str, id: [u8; 16]) -> FramedLog {
    FramedLog::new(open(address, "any").frames(&id))
}

/// Connects for SQL, as an administrator would.
pub(crate) fn client(address: &str) -> Client {
    Client::connect(address, NoTls).unwrap()
}

/// Returns the first column of the first row, which is a number.
pub(crate) fn count(client: &mut Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// Returns an address with two servers, of which the writable one is used.
pub(crate) fn either(address: &str, other_port: u16) -> String {
    let (server, database) = address.rsplit_once('/').unwrap();
    format!("{server},127.0.0.1:{other_port}/{database}?target_session_attrs=read-write")
}

pub(crate) fn options() -> Options {
    Options::default().lock_timeout(WAIT)
}

pub(crate) fn with_keyring(folder: &Path) -> Options {
    options().keyring(folder.join("keyring"))
}

/// Opens the store, or creates it, as another process would.
pub(crate) fn store(address: &str, options: &Options) -> Store {
    Store::open_or_create_at(&database(address, NAME), options.clone()).unwrap()
}

pub(crate) fn time(minute: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minute * 60_000_000)
}

pub(crate) fn act(minute: i64) -> WriteContext {
    WriteContext::asked("test", time(minute))
}

pub(crate) fn session(store: &Store, name: &str) -> Session {
    store.create_session(&act(0), NewSession::named(name)).unwrap()
}

fn value(text: &str) -> Value {
    Value::from([("description", text.into()), ("source", "test".into())])
}

pub(crate) fn note(id: &str, text: &str) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), value(text))
}

/// Writes a note of this id, or changes it.
pub(crate) fn put(session: &Session, minute: i64, id: &str, text: &str) {
    try_put(session, minute, id, text).unwrap();
}

pub(crate) fn try_put(session: &Session, minute: i64, id: &str, text: &str) -> Result<(), Error> {
    session.write(&act(minute)).change(note(id, text)).commit().map(drop)
}

/// Adds a claim and a checkpoint with this name, in one record. It is an error if there is a claim
/// of this name.
pub(crate) fn add(session: &Session, name: &str) -> Result<(), Error> {
    let added = ClaimChange::add(Key::new(Kind::Note, name), value(name));
    let act = act(1);
    let write = session.write(&act).change(added);
    write.checkpoint(NewCheckpoint::manual(name)).commit().map(drop)
}

/// Returns the ids of the notes at the head of a session.
pub(crate) fn notes(session: &Session) -> Result<Vec<String>, Error> {
    let state = session.state(&session.head()?)?;
    state.claims().entries().map(|entry| Ok(entry?.0.id)).collect()
}

/// Checks every record, row and digest of a store.
pub(crate) fn assert_whole(store: &Store) {
    let verified = store.verify_in_database(VerifyDepth::ReadData).unwrap();
    assert_eq!((verified.outcome, verified.findings), (VerifyOutcome::Clean, vec![]));
}

/// Returns the breach that an error reports, or `None` for another error.
pub(crate) fn breach(error: &Error) -> Option<&'static str> {
    match error {
        Error::Backend(BackendError::Breach { breach, .. }) => {
            assert_eq!(error.kind(), ErrorKind::Forged);
            Some(breach.name())
        }
        _ => None,
    }
}

/// Returns an error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Returns whether it is unknown after this error if something was written.
pub(crate) fn is_unsure(error: &BackendError) -> bool {
    matches!(error, BackendError::Database { unsure: true, .. })
}

/// Reads all records of a log as another process would.
pub(crate) fn frames(address: &str, id: [u8; 16]) -> Vec<LogFrame> {
    let log = log(address, id);
    log.read(log.start().unwrap(), u64::MAX).unwrap().frames
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the number of rows in the tables of forge that contain a text, in names, markers or
/// bytes.
pub(crate) fn in_tables(client: &mut Client, text: &str) -> i64 {
    let tables = ["store", "log", "frame", "index", "generation", "row"];
    // Bytes are hex digits in the text of a row.
    let rows = tables.map(|table| {
        format!("select count(*) from forge.{table} t where position($1 in t::text) > 0")
    });
    let mut found = |text: &str| {
        let counts = rows.iter().map(|sql| client.query_one(sql, &[&text]).unwrap());
        counts.map(|row| row.get::<_, i64>(0)).sum::<i64>()
    };
    found(text) + found(&hex(text.as_bytes()))
}
