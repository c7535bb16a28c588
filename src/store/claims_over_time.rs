//! The claims of a session at several moments, as changes from one to the next.

use super::session::Session;
use crate::engine::compare::compare;
use crate::error::{Error, Result};
use crate::model::{EntryChange, Timestamp};

impl Session {
    /// Returns, for each of these times, the claims that changed since the time before it; for the
    /// first one, since nothing was known. At each time the branch counts that was checked out
    /// then, so claims may come back to what they were.
    ///
    /// All times are read from one snapshot.
    pub fn claims_over_time(&self, times: &[Timestamp]) -> Result<Vec<Vec<EntryChange>>> {
        let view = self.view()?;
        let mut before = None;
        let mut all = Vec::with_capacity(times.len());
        for time in times {
            let at = match self.of_time(&view, *time, None) {
                Ok(point) => point.at,
                Err(Error::NothingAt { .. } | Error::EmptySession { .. }) => None,
                Err(error) => return Err(error),
            };
            all.push(compare(&view, &view.refs, self.number, before, at)?);
            before = at;
        }
        Ok(all)
    }
}
