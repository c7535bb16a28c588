//! What a join with one remote means for the other remotes that have the session.

use super::RewriteReason;
use super::track::{SharedPart, read_track, write_track};
use crate::backend::files;
use crate::error::Result;
use crate::format::remote::RefTrack;
use crate::model::{OperationId, RemoteId, SessionNumber};
use crate::store::{Session, Store};
use std::collections::HashMap;
use std::path::PathBuf;

/// What a remote has of a session, before a join with another one.
pub(super) struct TrackElsewhere {
    remote: RemoteId,
    path: PathBuf,
    track: RefTrack,
    /// How many effects of each operation are on the remote.
    shared: HashMap<OperationId, usize>,
    /// Whether data was purged here that the remote still has.
    was_purged: bool,
}

impl Store {
    /// Returns what all remotes but one have of a session.
    pub(super) fn tracks_elsewhere(
        &self,
        joined: RemoteId,
        session: &Session,
    ) -> Result<Vec<TrackElsewhere>> {
        let mut tracks = Vec::new();
        for remote in self.contacted_remotes()?.into_iter().filter(|remote| *remote != joined) {
            let Some(folder) = self.track_folder(remote) else { continue };
            // Only the key of the remote tells which session a track is of.
            for handle in self.tracked_handles(remote)? {
                let path = folder.join(handle.to_string());
                let Some(track) = read_track(&path)? else { continue };
                if track.session != session.number || !self.has_export_mark(&track.end)? {
                    continue;
                }
                let mut shared = self.effects_before(session.number, &track.end)?;
                let part = SharedPart { end: track.end, last: track.last, unshared: None };
                for id in track.unshared.iter().flatten() {
                    shared.remove(id);
                }
                let reason = self.rewrite_reason(session, &part, &self.purge_track(remote)?)?;
                let was_purged = reason == Some(RewriteReason::Purged);
                tracks.push(TrackElsewhere { remote, path, track, shared, was_purged });
            }
        }
        Ok(tracks)
    }

    /// Notes for each of these remotes what it does not have of a session that is about to replace
    /// the one before, with another order. Durable on return: until the session is replaced, the
    /// notes count as lost.
    pub(super) fn note_reordered(
        &self,
        tracks: &[TrackElsewhere],
        session: SessionNumber,
    ) -> Result<()> {
        if tracks.is_empty() {
            return Ok(());
        }
        let end = self.export_mark(session)?;
        let id = self.session_at(session).summary()?.info.id;
        for TrackElsewhere { remote, path, track, shared, was_purged } in tracks {
            let unshared = Some(self.unshared_operations(session, shared)?);
            // The remote has other numbers.
            let last = u64::MAX;
            write_track(path, &RefTrack { session, end, last, unshared, ..track.clone() })?;
            files::sync_folder(files::folder_of(path))?;
            let mut purges = self.purge_track(*remote)?;
            if *was_purged && !purges.rewrites.contains(&id) {
                purges.rewrites.push(id);
                self.keep_purge_track(*remote, &purges)?;
            }
        }
        Ok(())
    }
}
