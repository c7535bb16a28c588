//! Connections to a database, shared by the threads of a process.

use crate::address::DatabaseAddress;
use crate::connection::Connection;
use crate::schema::{milliseconds, wait_for_commit};
use forge_store::error::BackendError;
use postgres::Row;
use postgres::error::{Severity, SqlState};
use postgres::types::Type;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a read is repeated after its connection broke. In this time, another server can become
/// the primary.
pub(crate) const READ_AGAIN_FOR: Duration = Duration::from_secs(10);
/// How long to wait before a repetition.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The maximum number of attempts of a statement that writes, if serialization fails.
const WRITE_ATTEMPTS: usize = 100;
/// The maximum number of idle connections that are kept.
const MAX_IDLE: usize = 8;

/// Changes nothing, but commits durably after everything that the store has committed.
const SETTLE: &str = concat!(
    "
with settings as materialized (
  select set_config('lock_timeout', $2, true), ",
    wait_for_commit!(),
    "
)
update forge.log l set stop = stop from settings where l.store = $1"
);

/// A parameter of a statement, with its type. Statements are not prepared under a name, so that a
/// pooler may send each one to another connection.
pub(crate) type Parameter<'a> = (&'a (dyn postgres::types::ToSql + Sync), Type);

/// Connections to one database.
pub(crate) struct ConnectionPool {
    address: DatabaseAddress,
    /// The address for messages.
    place: String,
    idle: Mutex<Vec<Connection>>,
    /// Whether a read was answered. Only then is a failure to connect temporary, and a read
    /// repeated.
    has_answered: AtomicBool,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConnectionPool").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The failure of a statement, by what is known about its effect.
pub(crate) enum Failure {
    /// It had no effect.
    Refused(postgres::Error),
    /// The connection broke before the answer: it may have had its effect or not.
    Unsure(postgres::Error),
    /// It is committed, and an administrator has ended its wait for a standby.
    LacksStandby,
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        // After an error, the server has rolled the statement back. A fatal error can follow a
        // commit. Some servers send the severity only as text, in their language.
        match error.as_db_error().map(|error| (error.parsed_severity(), error.severity())) {
            Some((Some(Severity::Error), _) | (None, "ERROR")) => Self::Refused(error),
            _ => Self::Unsure(error),
        }
    }
}

impl Failure {
    /// Returns whether the statement failed because it waited too long for a lock.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns whether another process created the same thing at the same time.
    pub(crate) fn is_race(&self) -> bool {
        let codes = [
            &SqlState::UNIQUE_VIOLATION,
            &SqlState::DUPLICATE_TABLE,
            &SqlState::DUPLICATE_SCHEMA,
            &SqlState::DUPLICATE_OBJECT,
        ];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Returns whether the transaction had no effect because of concurrent ones, and should be
    /// repeated.
    pub(crate) fn is_serialization(&self) -> bool {
        let codes = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Returns whether the connection is to a server that cannot be written: a standby.
    pub(crate) fn is_standby(&self) -> bool {
        self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Refused(error) | Self::Unsure(error) => error.code(),
            Self::LacksStandby => None,
        }
    }
}

/// Fails if the last commit on a connection did not wait for its standby.
pub(crate) fn check_standby(client: &Connection) -> Result<(), Failure> {
    if client.take_lacks_standby() { Err(Failure::LacksStandby) } else { Ok(()) }
}

impl ConnectionPool {
    pub(crate) fn new(address: DatabaseAddress, place: String) -> Self {
        Self { address, place, idle: Mutex::default(), has_answered: AtomicBool::new(false) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection, or a new one.
    pub(crate) fn take(&self, action: &'static str) -> Result<Connection, BackendError> {
        loop {
            let idle = self.idle().pop();
            match idle {
                Some(client) if client.is_closed() => {}
                Some(client) => {
                    // A note about an earlier statement says nothing about the next one.
                    client.take_lacks_standby();
                    return Ok(client);
                }
                None => break,
            }
        }
        self.address.connect().map_err(|error| self.not_connected(action, error))
    }

    /// Makes the error of a failed connection attempt.
    fn not_connected(&self, action: &'static str, error: postgres::Error) -> BackendError {
        match self.address.passfile_ignored() {
            Some(file) => {
                let source = format!(
                    "{error} (the file of passwords {} was ignored, because others may read it: \
                    prevent this with 'chmod 600')",
                    file.display()
                );
                self.error(action, false, source)
            }
            None => self.error(action, false, error),
        }
    }

    /// Keeps a connection for the next statement.
    pub(crate) fn give_back(&self, client: Connection) {
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE && !client.is_closed() {
            idle.push(client);
        }
    }

    /// Makes the error of a failed operation.
    pub(crate) fn error(
        &self,
        action: &'static str,
        unsure: bool,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> BackendError {
        BackendError::Database { action, place: self.place.clone(), unsure, source: source.into() }
    }

    /// Makes the error of a failed statement.
    pub(crate) fn failed(&self, action: &'static str, failure: Failure) -> BackendError {
        match failure {
            Failure::Refused(error) => self.error(action, false, error),
            Failure::Unsure(error) => self.error(action, true, error),
            Failure::LacksStandby => {
                let source = "it was committed, and its wait for the standby was cancelled";
                self.error(action, true, source)
            }
        }
    }

    /// Waits until everything that a store has committed is durable, also on the standbys that the
    /// database waits for.
    pub(crate) fn settle(
        &self,
        action: &'static str,
        store: &[u8],
        timeout: Duration,
    ) -> Result<Result<(), Failure>, BackendError> {
        let parameters = [(&store as _, Type::BYTEA), (&milliseconds(timeout) as _, Type::TEXT)];
        Ok(self.write_durably(action, SETTLE, &parameters)?.map(drop))
    }

    /// Finds out whether a durable change of a store was made although its statement failed, and
    /// waits until the change is durable: if `is_done` finds it, its commit may not have waited for
    /// the standby. Tries again for `timeout`.
    ///
    /// # Errors
    /// The failure, if it excludes the change or `is_done` does not find it; an unknown outcome
    /// after the timeout.
    pub(crate) fn confirm(
        &self,
        action: &'static str,
        store: &[u8],
        timeout: Duration,
        failure: Failure,
        is_done: impl Fn() -> Result<bool, BackendError>,
    ) -> Result<(), BackendError> {
        if matches!(failure, Failure::Refused(_)) {
            return Err(self.failed(action, failure));
        }
        let since = Instant::now();
        loop {
            let settled = match is_done() {
                Ok(true) => self.settle(action, store, timeout),
                Ok(false) => return Err(self.failed(action, failure)),
                Err(error) => Err(error),
            };
            match settled.and_then(|done| done.map_err(|failure| self.failed(action, failure))) {
                Ok(()) => return Ok(()),
                Err(error) if since.elapsed() >= timeout => {
                    return Err(match error {
                        BackendError::Database { place, source, .. } => {
                            BackendError::Database { action, place, unsure: true, source }
                        }
                        other => other,
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "the standby is waited for again");
                    thread::park_timeout(READ_AGAIN_AFTER);
                }
            }
        }
    }

    /// Runs a statement that only reads. It is sent again if the connection breaks: an idle one may
    /// have been closed long ago, and another server may be about to become the primary.
    pub(crate) fn read(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        let since = Instant::now();
        loop {
            match self.try_read(action, statement, parameters) {
                Ok(rows) => return Ok(rows),
                Err((error, true)) if since.elapsed() < READ_AGAIN_FOR => {
                    tracing::debug!(%error, "a read is sent again");
                    thread::park_timeout(READ_AGAIN_AFTER);
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Runs a statement that only reads, once. An error comes with whether to send it again.
    fn try_read(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, (BackendError, bool)> {
        // If the server was never reached, the error is reported at once.
        let has_answered = self.has_answered.load(Ordering::Relaxed);
        let mut client = self.take(action).map_err(|error| (error, has_answered))?;
        match client.query_typed(statement, parameters) {
            Ok(rows) => {
                self.give_back(client);
                self.has_answered.store(true, Ordering::Relaxed);
                Ok(rows)
            }
            Err(error) => match Failure::from(error) {
                Failure::Unsure(error) => Err((self.error(action, false, error), true)),
                failure => {
                    self.give_back(client);
                    let is_sent_again = failure.is_serialization();
                    Err((self.failed(action, failure), is_sent_again))
                }
            },
        }
    }

    /// Runs a statement whose writes may be lost if the server crashes, as one transaction. It is
    /// sent again only if serialization failed: then it had no effect.
    pub(crate) fn write(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Result<Vec<Row>, Failure>, BackendError> {
        self.write_with(action, statement, parameters, |_| Ok(()))
    }

    /// Runs a statement like [`write`](Self::write), but one that sets [`wait_for_commit`].
    pub(crate) fn write_durably(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Result<Vec<Row>, Failure>, BackendError> {
        self.write_with(action, statement, parameters, check_standby)
    }

    /// Runs a statement that writes, and checks its connection after the commit.
    fn write_with(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
        check: impl Fn(&Connection) -> Result<(), Failure>,
    ) -> Result<Result<Vec<Row>, Failure>, BackendError> {
        let mut client = self.take(action)?;
        let mut attempts = 1;
        loop {
            let answer = client.query_typed(statement, parameters).map_err(Failure::from);
            match answer.and_then(|rows| check(&client).map(|()| rows)) {
                // A pooled connection to a server that has become a standby is of no use.
                Err(failure) if failure.is_standby() => return Ok(Err(failure)),
                Err(failure) if failure.is_serialization() && attempts < WRITE_ATTEMPTS => {
                    attempts += 1;
                }
                result => {
                    self.give_back(client);
                    return Ok(result);
                }
            }
        }
    }
}
