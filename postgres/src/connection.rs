//! A connection that notices if a commit did not wait for a standby.

use postgres::error::DbError;
use postgres::{Client, Config, Error};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The function of PostgreSQL in which a commit waits for a standby. A notice from it means that
/// the wait was ended. The text of a notice cannot be compared: it is in the language of the
/// server.
const STANDBY_WAIT: &str = "SyncRepWaitForLSN";

/// A connection to a database.
pub(crate) struct Connection {
    client: Client,
    /// Whether a commit was acknowledged without the standby that it should have waited for.
    lacks_standby: Arc<AtomicBool>,
}

impl Connection {
    /// Connects to a host.
    ///
    /// # Errors
    /// The error of the host.
    pub(crate) fn open(mut config: Config, tls: MakeRustlsConnect) -> Result<Self, Error> {
        let lacks_standby = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&lacks_standby);
        config.notice_callback(move |notice: DbError| {
            if notice.routine() == Some(STANDBY_WAIT) {
                noted.store(true, Ordering::Relaxed);
            }
        });
        Ok(Self { client: config.connect(tls)?, lacks_standby })
    }

    /// Returns whether, since the last call, a commit was acknowledged although an administrator
    /// had ended its wait for a standby.
    pub(crate) fn take_lacks_standby(&self) -> bool {
        self.lacks_standby.swap(false, Ordering::Relaxed)
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
