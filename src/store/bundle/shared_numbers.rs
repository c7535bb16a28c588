//! Whether two sessions have what they share under the same numbers.

use super::export_mark::is_left_out;
use super::replay::increment::operations_since;
use crate::engine::checkpoint;
use crate::engine::index::find_operation_of;
use crate::error::Result;
use crate::format::OperationEffect;
use crate::model::{OperationId, SessionNumber};
use crate::store::Store;
use std::collections::HashMap;

impl Store {
    /// Returns whether a revision, checkpoint or branch that two sessions of one id share has
    /// different numbers in them. With `only`, it looks at this many effects of each of these
    /// operations.
    pub(in crate::store) fn has_other_numbers(
        &self,
        one: SessionNumber,
        other: SessionNumber,
        only: Option<&HashMap<OperationId, usize>>,
    ) -> Result<bool> {
        let view = self.engine.follower.written_view()?;
        for row in operations_since(&view, one, 0)? {
            let count = match only {
                Some(only) => only.get(&row.operation.id).copied().unwrap_or(0),
                None => usize::MAX,
            };
            if count == 0 {
                continue;
            }
            let Some(there) = find_operation_of(&view, other, &row.operation.id)? else { continue };
            if row.is_swept() || there.is_swept() {
                continue;
            }
            let both = row.effects.iter().zip(&there.effects);
            for (here, there) in both.filter(|(here, _)| !is_left_out(here)).take(count) {
                let is_same = match (here, there) {
                    (OperationEffect::Revision { .. }, OperationEffect::Revision { .. })
                    | (OperationEffect::BranchMade { .. }, OperationEffect::BranchMade { .. }) => {
                        here == there
                    }
                    (OperationEffect::CheckpointMade { id }, _) => {
                        let here = checkpoint::by_id(&view, one, id)?;
                        let there = checkpoint::by_id(&view, other, id)?;
                        let both = here.zip(there);
                        both.is_none_or(|(here, there)| here.sequence == there.sequence)
                    }
                    _ => true,
                };
                if !is_same {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
