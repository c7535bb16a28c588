//! The latest step of a namespace, as it is remembered.

use super::step_record::{StepRecord, steps_of};
use forge_store::error::Result;
use forge_store::model::Checkpoint;
use forge_store::store::{CheckpointFilter, Session};

/// The most new checkpoints that are read to find the latest; with more, all are read.
const MAX_NEW_STEPS: u64 = 256;

/// The greatest id of a namespace, and the counts of its session when it was read.
#[derive(Clone, Debug)]
pub(super) struct LatestStep {
    /// The number of the session's last revision or checkpoint.
    pub(super) number: u64,
    /// How many checkpoints the session had.
    pub(super) count: u64,
    pub(super) id: Option<String>,
}

impl LatestStep {
    /// Returns the greatest id now, if there is one; `None` if the checkpoints since do not say it,
    /// because others were dropped or came back.
    pub(super) fn next(
        &self,
        session: &Session,
        namespace: &str,
        number: u64,
        count: u64,
    ) -> Result<Option<Option<String>>> {
        let (Some(numbers), Some(added)) =
            (number.checked_sub(self.number), count.checked_sub(self.count))
        else {
            return Ok(None);
        };
        let limit = Some(numbers.min(MAX_NEW_STEPS) as usize);
        let filter = CheckpointFilter { limit, ..CheckpointFilter::default() };
        let mut new = session.written_checkpoints(&filter)?;
        new.retain(|checkpoint| checkpoint.sequence > self.number);
        if new.len() as u64 != added {
            return Ok(None);
        }
        let step = greatest_step(steps_of(new)?, namespace);
        Ok(Some(step.map(|(_, record)| record.id).max(self.id.clone())))
    }
}

/// Returns the one of these steps that has the greatest id in a namespace.
pub(super) fn greatest_step(
    steps: Vec<(Checkpoint, StepRecord)>,
    namespace: &str,
) -> Option<(Checkpoint, StepRecord)> {
    let own = steps.into_iter().filter(|(_, record)| record.namespace == namespace);
    own.max_by(|(_, one), (_, other)| one.id.cmp(&other.id))
}
