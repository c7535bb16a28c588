//! Finds resolutions of open gaps: a resolution goes with a status that it explains.

use super::session::Session;
use crate::error::Result;
use crate::model::claim::{FieldValue, GapStatus};
use crate::model::{FieldMap, Key, Kind, Value};

impl Session {
    /// Returns whether these changes of the gap `id`, on the current branch, give it a resolution
    /// and leave it open: their author would take the gap for filled.
    pub fn is_resolved_while_open(&self, id: &str, changed: &FieldMap) -> Result<bool> {
        if changed.get("resolution").is_none_or(|text| *text == Value::Null) {
            return Ok(false);
        }
        let Some(gap) = self.claim(&self.head()?, &Key::new(Kind::Gap, id))? else {
            return Ok(false);
        };
        let status = changed.get("status").or_else(|| gap.value.field("status"));
        Ok(status.and_then(GapStatus::read).is_none_or(GapStatus::is_open))
    }
}
