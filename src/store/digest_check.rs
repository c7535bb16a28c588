//! Checks of stored states against their digests.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use crate::engine::{keyframe, materialize, timeline};
use crate::error::{Error, Result};

impl Session {
    /// Computes the claims at a moment again, and compares their digest with that in the header of
    /// the revision. Nothing is checked before the first revision.
    ///
    /// This takes as long as reading the state. Every object is checked against its hash as it is
    /// read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the number of the revision if the digests differ; also if the store
    /// cannot be read or is damaged.
    pub fn check_digest(&self, moment: &ResolvedMoment) -> Result<()> {
        let Some(at) = moment.at else { return Ok(()) };
        let view = self.view()?;
        let state = materialize::materialize(&view.merged(), &view.refs, self.number, at)?;
        let (head, _) = timeline::head_at(&view, self.number, at)?;
        if keyframe::digest(&state) == head.digest {
            return Ok(());
        }
        Err(Error::Corrupt {
            what: format!("the state of #{}", at.sequence),
            source: "its digest is not the revision's".into(),
        })
    }

    /// Returns the numbers of the revisions that have a keyframe. Keyframes are derived data; they
    /// are made where replaying changes would take too long.
    pub fn full_states(&self) -> Result<Vec<u64>> {
        keyframe::sequences(&self.view()?, self.number)
    }
}
