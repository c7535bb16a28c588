//! Changes checkpoints after they were made, and sets their schedule.

use super::session::Session;
use super::validate::check_tag;
use super::write_context::WriteContext;
use crate::engine::commit::CommitDurability;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange};
use crate::model::{Checkpoint, CheckpointId};

impl Session {
    /// Removes tags from a checkpoint and adds others. Returns the changed checkpoint.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such checkpoint, [`Error::Invalid`] for a tag that is not
    /// valid.
    pub fn tag(
        &self,
        act: &WriteContext,
        id: &CheckpointId,
        add: &[String],
        remove: &[String],
    ) -> Result<Checkpoint> {
        add.iter().try_for_each(|tag| check_tag(tag))?;
        let (checkpoint, _) = self.amend_checkpoint(act, id, |checkpoint| {
            checkpoint.tags.retain(|tag| !remove.contains(tag));
            checkpoint.tags.extend(add.iter().cloned());
            checkpoint.tags.sort();
            checkpoint.tags.dedup();
        })?;
        Ok(checkpoint)
    }

    /// Changes a checkpoint's message, tags and body. `amend` is called under the writer's lock, so
    /// concurrent changes do not overwrite each other. It may be called more than once. Returns the
    /// checkpoint, and whether this changed it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such checkpoint, [`Error::Invalid`] for a tag that is not
    /// valid; also if the store cannot be written.
    pub fn amend_checkpoint(
        &self,
        act: &WriteContext,
        id: &CheckpointId,
        amend: impl Fn(&mut Checkpoint),
    ) -> Result<(Checkpoint, bool)> {
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let old = self.known_checkpoint(&context.view()?, id)?;
            let Some(new) = self.amended(&old, &amend)? else {
                return Ok((None, (old, false)));
            };
            let changes = vec![RecordChange::checkpoint(self.number, new.clone())];
            let record = Record { operation: operation.clone(), changes };
            Ok((Some(record), (new, true)))
        })
    }

    /// Sets the interval of scheduled checkpoints, in microseconds; `None` ends them. A checkpoint
    /// that is due is made by the next write.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an interval of less than a second; also if the store cannot be
    /// written.
    pub fn schedule(&self, act: &WriteContext, every_micros: Option<i64>) -> Result<()> {
        if every_micros.is_some_and(|micros| micros < 1_000_000) {
            return Err(Error::invalid("a schedule needs at least a second between checkpoints"));
        }
        let operation = act.operation()?;
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let known = session_refs(&context.refs, self.number)?.schedule;
            let changes = vec![RecordChange::Schedule { session: self.number, every_micros }];
            let record = Record { operation: operation.clone(), changes };
            Ok(((known != every_micros).then_some(record), ()))
        })
    }
}
