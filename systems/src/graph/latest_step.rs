//! Remembers the latest step of a namespace.

use super::step_record::{StepRecord, steps_of};
use forge_store::error::Result;
use forge_store::model::Checkpoint;
use forge_store::store::{CheckpointFilter, Session};

/// The maximum number of new checkpoints that are read to find the latest step. If there are more,
/// all checkpoints of the namespace are read.
const MAX_NEW_STEPS: u64 = 256;

/// The greatest id of a namespace, and the counts of its session when it was read.
#[derive(Clone, Debug)]
pub(super) struct LatestStep {
    /// The number of the session's last revision or checkpoint.
    pub(super) number: u64,
    /// How many checkpoints the session had.
    pub(super) count: u64,
    /// The greatest id; `None` if the namespace had no step.
    pub(super) id: Option<String>,
}

impl LatestStep {
    /// Returns the greatest id now: `Some(None)` if the namespace has no step. `None` if the new
    /// checkpoints do not show it, because they are too many, or others were dropped or brought
    /// back.
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

/// Returns the step with the greatest id in a namespace.
pub(super) fn greatest_step(
    steps: Vec<(Checkpoint, StepRecord)>,
    namespace: &str,
) -> Option<(Checkpoint, StepRecord)> {
    let own = steps.into_iter().filter(|(_, record)| record.namespace == namespace);
    own.max_by(|(_, one), (_, other)| one.id.cmp(&other.id))
}
