//! Keeps what the store knows of other remotes correct when a join with one remote reorders a
//! session.

use super::rotate::open_ref;
use super::track::SharedPart;
use super::{ReadRef, Remote, RewriteReason};
use crate::backend::files;
use crate::error::{Error, Result};
use crate::format::remote::{RefTrack, RemoteKeyFile, RemoteRef, SessionPlace};
use crate::model::{CloneId, OperationId, RemoteId, SessionHandle, SessionNumber};
use crate::store::{Session, Store};
use std::collections::HashMap;

/// What a remote has of a session, before the session is joined with another remote.
pub(super) struct TrackElsewhere {
    remote: RemoteId,
    handle: SessionHandle,
    track: RefTrack,
    /// How many effects of each operation are on the remote.
    shared: HashMap<OperationId, usize>,
    /// Whether data was purged here that the remote still has.
    was_purged: bool,
    /// The name of the remote, if this store knows it and others push the session there.
    pushed_by_others: Option<String>,
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
            // The session of a handle is not known without the key of the remote: read every track.
            for handle in self.tracked_handles(remote)? {
                let Some(track) = self.ref_track(remote, &handle)? else { continue };
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
                let pushed_by_others = self.pushed_by_others(remote, handle, &track)?;
                tracks.push(TrackElsewhere {
                    remote,
                    handle,
                    track,
                    shared,
                    was_purged,
                    pushed_by_others,
                });
            }
        }
        Ok(tracks)
    }

    /// Returns the name of a remote if others push a session there, as far as this store knows.
    /// Also `None` if the store has no key of the remote, or if its order of the session differs
    /// from that of the remote already.
    fn pushed_by_others(
        &self,
        remote: RemoteId,
        handle: SessionHandle,
        track: &RefTrack,
    ) -> Result<Option<String>> {
        let mut known = self.known_remotes()?.into_iter();
        let known = known.find(|known| known.access.remote() == remote);
        let Some(known) = known.filter(|_| track.unshared.is_none()) else { return Ok(None) };
        let place = SessionPlace { remote, handle };
        let key = known.access.keys().session(&handle)?;
        let earlier = known.access.key().and_then(RemoteKeyFile::earlier_keys);
        let earlier = earlier.map(|keys| keys.session(&handle));
        // A damaged ref counts as one that no other store pushed to.
        let opened = open_ref(&place, (&key, earlier.as_ref()), &track.stored.0).ok();
        let is_shared = opened.is_some_and(|(opened, _)| !self.is_only_pusher(&opened.content));
        Ok(is_shared.then_some(known.name))
    }

    /// Returns whether this store pushed all packs that a ref names.
    pub(super) fn is_only_pusher(&self, content: &RemoteRef) -> bool {
        let by = CloneId::from_bytes(self.engine.marker.id);
        content.packs.iter().all(|pack| pack.by == by)
    }

    /// Checks that a session may be replaced by a joined one.
    ///
    /// # Errors
    /// [`Error::SharedElsewhere`] if another remote, to which others push the session, already has
    /// some of its content under other numbers.
    pub(super) fn check_elsewhere(
        &self,
        tracks: &[TrackElsewhere],
        (old, new): (SessionNumber, SessionNumber),
    ) -> Result<()> {
        for TrackElsewhere { shared, pushed_by_others, .. } in tracks {
            let Some(remote) = pushed_by_others else { continue };
            if self.has_other_numbers(old, new, shared)? {
                let session = self.session_at(old).summary()?.info.name;
                return Err(Error::SharedElsewhere { session, remote: remote.clone() });
            }
        }
        Ok(())
    }

    /// Notes that a session has another order here than on a remote, because it was joined with
    /// another remote. Does so only if this store has everything that is on the remote and pushed
    /// all of it: then the store can write the session there again. `effects` has the number of
    /// effects that the remote has of each operation.
    pub(super) fn note_other_order(
        &self,
        remote: &Remote,
        (handle, read): (&SessionHandle, &ReadRef),
        session: SessionNumber,
        effects: &HashMap<OperationId, usize>,
    ) -> Result<()> {
        let here = self.operation_effects(session)?;
        let has_all = effects.iter().all(|(id, there)| here.get(id) >= Some(there));
        if !has_all || !self.is_only_pusher(&read.opened.content) {
            return Ok(());
        }
        let unshared = Some(self.unshared_operations(session, effects)?);
        let shared = SharedPart { end: self.export_mark(session)?, last: u64::MAX, unshared };
        let stored = (&read.tag, read.stored.clone());
        remote.keep_ref(self, (handle, session), stored, (Vec::new(), shared))
    }

    /// Notes for each of these remotes what it does not have of a reordered session that is about
    /// to replace the old one. The notes are durable on return. Until the session is replaced, the
    /// tracks of these remotes count as missing.
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
        for TrackElsewhere { remote, handle, track, shared, was_purged, .. } in tracks {
            let unshared = Some(self.unshared_operations(session, shared)?);
            // The sequence numbers on the remote are others, so the last one there says nothing.
            let last = u64::MAX;
            let track = RefTrack { session, end, last, unshared, ..track.clone() };
            self.keep_ref_track(*remote, handle, track)?;
            if let Some(folder) = self.track_folder(*remote) {
                files::sync_folder(&folder)?;
            }
            let mut purges = self.purge_track(*remote)?;
            if *was_purged && !purges.rewrites.contains(&id) {
                purges.rewrites.push(id);
                self.keep_purge_track(*remote, &purges)?;
            }
        }
        Ok(())
    }
}
