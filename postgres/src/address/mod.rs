//! The address of a database: reads it, adds the settings that libpq would add, and connects.

mod build;
mod error;
mod settings;
mod url;

pub(crate) use error::AddressError;
pub(crate) use settings::text_of;
pub use url::is_address;

use crate::connection::Connection;
use postgres::Error as PostgresError;
use settings::ConnectSettings;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The environment variables with which a connection is configured.
pub type Environment = BTreeMap<String, String>;

/// The address of a database, with everything that is needed to connect to it.
///
/// Settings that are not in the address are found as libpq finds them: in a service of
/// `~/.pg_service.conf`, then in the variables that begin with `PG`, then in the defaults. Each
/// host may have a different password in `~/.pgpass`.
#[derive(Clone)]
pub(crate) struct DatabaseAddress {
    shown: String,
    /// The hosts to try, in this order; at least one.
    hosts: Vec<HostConfig>,
    tls: MakeRustlsConnect,
    /// How long a connection attempt to one host may take; `None` if there is no limit.
    limit: Option<Duration>,
    /// The file of passwords that was ignored, because others than its owner may read it.
    passfile_ignored: Option<PathBuf>,
}

/// How to connect to one host.
#[derive(Clone)]
struct HostConfig {
    config: postgres::Config,
    /// Whether to try again without TLS if TLS fails.
    may_lack_tls: bool,
}

impl DatabaseAddress {
    /// Reads `postgres://[USER@]HOST[:PORT][,HOST2[:PORT2]]/DATABASE[?SETTING=VALUE&..]`, where
    /// each part may be left out. The files of passwords, services and certificates are read now.
    ///
    /// # Errors
    /// [`AddressError`].
    pub(crate) fn parse(address: &str, environment: &Environment) -> Result<Self, AddressError> {
        let url = url::parse(address)?;
        let shown = url::shown(&url);
        let settings = ConnectSettings::gather(url, environment)?;
        build::build(shown, &settings, environment)
    }

    /// Returns the address in the form in which it may be stored and shown: without a password, and
    /// without settings from the environment.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the file of passwords that was ignored, because others than its owner may read it.
    /// The error of a failed authentication should mention it.
    pub(crate) fn passfile_ignored(&self) -> Option<&Path> {
        self.passfile_ignored.as_deref()
    }

    /// Connects to the first host that can be used. Each attempt takes at most the limit, and half
    /// of it for each address of a host. With `sslmode=prefer`, a host may need a second attempt,
    /// without TLS.
    ///
    /// # Errors
    /// The error of the last host, or of one that refused the user.
    pub(crate) fn connect(&self) -> Result<Connection, PostgresError> {
        let mut last = None;
        for host in &self.hosts {
            match self.connect_to(host) {
                Err(error) if !refuses_user(&error) => last = Some(error),
                // The other hosts have the same users; libpq does not ask them either.
                result => return result,
            }
        }
        Err(last.unwrap_or_else(PostgresError::__private_api_timeout))
    }

    fn connect_to(&self, host: &HostConfig) -> Result<Connection, PostgresError> {
        match self.connect_within(host.config.clone()) {
            Err(error) if host.may_lack_tls && is_about_tls(&error) => {
                let mut config = host.config.clone();
                config.ssl_mode(postgres::config::SslMode::Disable);
                self.connect_within(config)
            }
            result => result,
        }
    }

    /// Connects within the limit. The limit of `postgres` only covers opening the socket: a server
    /// that then does not answer would be waited for without end.
    fn connect_within(&self, config: postgres::Config) -> Result<Connection, PostgresError> {
        let tls = self.tls.clone();
        let Some(limit) = self.limit else { return Connection::open(config, tls) };
        let (sender, receiver) = mpsc::sync_channel(1);
        // After a timeout, the thread ends when the server answers, and closes its connection.
        let connecting = move || drop(sender.send(Connection::open(config, tls)));
        let started = thread::Builder::new().name("forge-connect".to_owned()).spawn(connecting);
        let answer = started.ok().and_then(|_| receiver.recv_timeout(limit).ok());
        // There is no other way to make a timeout error of `postgres`.
        answer.unwrap_or_else(|| Err(PostgresError::__private_api_timeout()))
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DatabaseAddress").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// Returns whether the server rejected the user (class 28 of the SQL states).
fn refuses_user(error: &PostgresError) -> bool {
    error.code().is_some_and(|state| state.code().starts_with("28"))
}

/// Returns whether a connection may succeed without TLS: TLS failed, or the server rejected the
/// connection, perhaps because it has no rule for connections with TLS.
fn is_about_tls(error: &PostgresError) -> bool {
    if error.code() == Some(&postgres::error::SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
        return true;
    }
    let source = std::error::Error::source(error);
    let failed = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let cause = failed.and_then(std::io::Error::get_ref);
    cause.is_some_and(|cause| cause.is::<rustls::Error>())
}

/// Returns the path of a file in the home folder of the user.
pub(crate) fn home_file(environment: &Environment, file: &str) -> Option<PathBuf> {
    text_of(environment, "HOME").map(|home| Path::new(home).join(file))
}

#[cfg(test)]
mod tests;
