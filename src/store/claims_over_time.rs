//! The claims of a session at several times, as changes from one time to the next.

use super::session::Session;
use crate::engine::compare::compare;
use crate::error::{Error, Result};
use crate::model::{EntryChange, Timestamp};

impl Session {
    /// Returns, for each of these times, the changes of claims since the time before it; for the
    /// first time, since the empty state. The claims at a time are those on the branch that was
    /// checked out then, so a switch to another branch may also undo changes.
    ///
    /// All times are read from one snapshot.
    pub fn claims_over_time(&self, times: &[Timestamp]) -> Result<Vec<Vec<EntryChange>>> {
        let view = self.view()?;
        let mut before = None;
        let mut all = Vec::with_capacity(times.len());
        for time in times {
            let at = match self.of_time(&view, *time, None) {
                Ok(moment) => moment.at,
                Err(Error::NothingAt { .. } | Error::EmptySession { .. }) => None,
                Err(error) => return Err(error),
            };
            all.push(compare(&view, &view.refs, self.number, before, at)?);
            before = at;
        }
        Ok(all)
    }
}
