//! Puts writes into the spool, and moves them to the journal.

use super::commit::{CommitDurability, Engine};
use super::delta_parts::check_size;
use super::spool::{NameClashPolicy, in_order, is_written, plan, read};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Record, SpoolEntry};

impl Engine {
    /// Puts a write into the spool. Returns the record that the write would append now, if the
    /// store can be read. If the write would change nothing, the record is empty and nothing is
    /// spooled.
    pub(crate) fn spool(&self, waiting: &SpoolEntry) -> Result<Option<Record>> {
        use ErrorKind::{Corrupt, Forged, Unavailable};
        self.check_permitted()?;
        let Some(spool) = &self.follower.spool else {
            return Err(Error::Internal("a store in memory has no spool".to_owned()));
        };
        let planned =
            self.follower.view().and_then(|view| plan(&view, waiting, NameClashPolicy::Refuse));
        let planned = match planned {
            Ok(Some(record)) => Some(record),
            Ok(None) => {
                let operation = waiting.operation.clone();
                return Ok(Some(Record { operation, changes: Vec::new() }));
            }
            // The store cannot be read, or its database cannot be reached.
            Err(error) if matches!(error.kind(), Corrupt | Forged | Unavailable) => None,
            Err(error) => return Err(error),
        };
        let bytes = waiting.encode();
        // The journal might never take it, and then it could not leave the spool.
        check_size(bytes.len())?;
        spool.put(&waiting.operation.id.to_string(), &bytes)?;
        Ok(planned)
    }

    /// Moves the spooled writes to the journal. An unreadable write stays in the spool, and readers
    /// get its error until a repair.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] if another process holds the append lock, or the error of the last
    /// write that could not be moved. Such writes stay in the spool.
    pub(crate) fn drain(&self) -> Result<()> {
        let Some(spool) = &self.follower.spool else { return Ok(()) };
        spool.sweep()?;
        let names = spool.names()?;
        if names.is_empty() {
            return Ok(());
        }
        let (mut found, mut appended) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            match read(&**spool, &name)? {
                Some(Ok(waiting)) => found.push(waiting),
                Some(Err(error)) => {
                    if is_written(&self.follower.written_view()?, &name)? {
                        appended.push(name);
                    } else {
                        tracing::warn!(name, %error, "a write in the spool stays there");
                    }
                }
                None => {}
            }
        }
        in_order(&mut found);
        let mut outcome = Ok(());
        for waiting in &found {
            let done = self.commit_written(CommitDurability::Later, &mut |context| {
                Ok((plan(&context.view()?, waiting, NameClashPolicy::Rename)?, ()))
            });
            match done {
                Ok(()) => appended.push(waiting.operation.id.to_string()),
                Err(error) => {
                    let locked = error.kind() == ErrorKind::Locked;
                    outcome = Err(error);
                    if locked {
                        break;
                    }
                }
            }
        }
        if !appended.is_empty() {
            // Other processes may have appended some of these writes and been killed before their
            // sync. This sync covers their records too.
            self.sync()?;
            spool.record_appended(&appended)?;
        }
        outcome
    }

    /// Checks that no acknowledged write in the spool is unreadable.
    pub(crate) fn check_spool(&self) -> Result<()> {
        self.follower.view().map(drop)
    }
}
