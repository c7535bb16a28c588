//! Checks of what is stored against what it says of itself.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use crate::engine::{keyframe, materialize, timeline};
use crate::error::{Error, Result};

impl Session {
    /// Makes the claims of a point anew and checks their number and digest against its revision's header.
    ///
    /// Costs the time of reading the state. Every object on the way is checked against its name as it is read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] that names the revision if they do not agree; as every read.
    pub fn check_digest(&self, point: &ResolvedMoment) -> Result<()> {
        let Some(at) = point.at else { return Ok(()) };
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

    /// The revisions of which a full state is kept (derived data, made where replaying changes would take too long).
    ///
    /// # Errors
    /// As every read.
    pub fn full_states(&self) -> Result<Vec<u64>> {
        keyframe::sequences(&self.view()?, self.number)
    }
}
