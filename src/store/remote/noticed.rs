//! Purges here what others purged, as far as possible: in the sessions that are shared with the
//! remote.

use super::{PurgeActivity, Remote};
use crate::engine::purge::PurgeTask;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::remote::{PurgeNotice, PurgeTrack, RemoteRef};
use crate::format::{ExportMark, SessionRemoval};
use crate::model::{NoticeSalt, RemoteId, SessionId, SessionNumber};
use crate::redact::{HashedSecrets, KnownSecrets, SecretDetector, TextMasker as _};
use crate::store::purge::check_own_words;
use crate::store::{Store, WriteContext};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Cursor;

/// What was purged elsewhere and cannot be purged here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnpurgedSecret {
    /// The names of the sessions that hold it, without secrets.
    pub sessions: Vec<String>,
    /// Why it cannot be replaced.
    pub reason: String,
}

/// A session that holds what cannot be purged.
pub(super) struct HoldingSession {
    pub(super) id: SessionId,
    /// Its name, without secrets.
    pub(super) name: String,
    /// Why it cannot be purged.
    pub(super) reason: String,
}

/// A purge of others that is done here.
struct NoticedPurge<'a> {
    store: &'a Store,
    act: &'a WriteContext,
    remote: &'a Remote,
    reason: Option<String>,
    /// The sessions that are shared with the remote.
    shared: BTreeSet<SessionNumber>,
    holding: Vec<HoldingSession>,
}

/// Returns the search for the secrets of these notices; `None` if there are no notices.
pub(super) fn search_for(notices: &[PurgeNotice]) -> Option<HashedSecrets> {
    let hashes = notices.iter().map(|one| (one.multiplier, &one.salt, one.secrets.as_slice()));
    (!notices.is_empty()).then(|| HashedSecrets::new(hashes))
}

/// Returns whether a text that was purged elsewhere is a secret. A text that is part of forge's own
/// words, or of a replacement, is in every store and is no secret.
pub(super) fn is_secret(text: &str) -> bool {
    KnownSecrets::new([text]).is_ok_and(|known| check_own_words(&known).is_ok())
}

impl Store {
    /// Purges the secrets of the notices for which this store was not searched yet: in the sessions
    /// that are shared with the remote, and in the session that is being pulled.
    pub(super) fn purge_noticed(
        &self,
        act: &WriteContext,
        remote: &Remote,
        mut track: PurgeTrack,
        pulled: Option<&SessionId>,
    ) -> Result<PurgeTrack> {
        let new = track.notices.get(track.searched as usize..).unwrap_or_default();
        let Some(hashes) = search_for(new) else { return Ok(track) };
        let reasons: BTreeSet<&str> = new.iter().filter_map(|one| one.reason.as_deref()).collect();
        let reason = reasons.into_iter().collect::<Vec<_>>().join("; ");
        // The search does not read writes in the spool.
        self.engine.drain()?;
        let found = self.secrets(act, &SecretDetector::Hashes(hashes), &|_| ())?;
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        let holding = self.purge_found(act, remote, (found, reason), pulled)?;
        track.note_held(holding.iter().map(|one| one.id));
        // The purges above note themselves only for other remotes, so this track is still current.
        track.searched = track.notices.len() as u64;
        self.keep_purge_track(remote.id, &track)?;
        Ok(track)
    }

    /// Purges secrets that others purged, in the sessions that are shared with the remote, and in
    /// `session`. Returns the sessions that still hold secrets, because those cannot be purged.
    pub(super) fn purge_found(
        &self,
        act: &WriteContext,
        remote: &Remote,
        (found, reason): (BTreeSet<String>, Option<String>),
        session: Option<&SessionId>,
    ) -> Result<Vec<HoldingSession>> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let (secrets, words): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| is_secret(one));
        remote.activity().ignored += words.len() as u64;
        let shared = self.shared_numbers(remote, session)?;
        let mut purge =
            NoticedPurge { store: self, act, remote, reason, shared, holding: Vec::new() };
        purge.all(secrets)?;
        Ok(purge.holding)
    }

    /// Returns the numbers of the sessions that are shared with a remote, and of `session`.
    /// Sessions that were replaced or are being pulled are included.
    fn shared_numbers(
        &self,
        remote: &Remote,
        session: Option<&SessionId>,
    ) -> Result<BTreeSet<SessionNumber>> {
        let handles = self.tracked_handles(remote.id)?;
        let (refs, _) = self.engine.follower.written_refs_to_read()?;
        let mut shared = BTreeSet::new();
        for one in refs.sessions.all() {
            let (number, known) = one?;
            let id = &known.info.id;
            let is_tracked = || remote.keys.handle(id).is_ok_and(|it| handles.contains(&it));
            if session == Some(id) || is_tracked() {
                shared.insert(number);
            }
        }
        Ok(shared)
    }

    /// Returns whether one of these sessions may be shared with a remote: always if the key of the
    /// remote is not here.
    fn may_share(&self, remote: RemoteId, sessions: &BTreeSet<SessionNumber>) -> Result<bool> {
        let known = self.known_remotes()?;
        let Some(known) = known.iter().find(|known| known.access.remote() == remote) else {
            return Ok(true);
        };
        let shared = self.sessions_with(&self.tracked_handles(remote)?, &known.access.keys())?;
        Ok(shared.iter().any(|session| sessions.contains(&session.number)))
    }

    /// Notes in the track if what is pulled now may have secrets of notices that its ref does not
    /// take into account. Returns whether it may.
    ///
    /// # Errors
    /// [`Error::LostNotices`] if the ref takes notices into account that are not on the remote.
    pub(super) fn note_unsearched(
        &self,
        act: &WriteContext,
        remote: &Remote,
        content: &RemoteRef,
    ) -> Result<bool> {
        if remote.notices_key().is_none() {
            return Ok(false);
        }
        let mut track = self.purge_track(remote.id)?;
        if content.purges > track.notices.len() as u64 {
            // The missing notices may have been written after the last exchange.
            track = self.exchange_purges(act, remote)?;
        }
        let mut known = content.purges;
        if known > track.notices.len() as u64 {
            if !remote.accepts_history {
                return Err(Error::LostNotices { session: content.info.name.clone() });
            }
            // The writer of the ref may have known other notices than those on the remote now.
            known = 0;
        }
        if known >= track.searched {
            return Ok(false);
        }
        track.searched = known;
        self.keep_purge_track(remote.id, &track)?;
        Ok(true)
    }
}

impl NoticedPurge<'_> {
    /// Purges all secrets that can be purged: if a purge is refused because of one secret, the
    /// others are purged without it.
    fn all(&mut self, secrets: Vec<String>) -> Result<()> {
        let mut parts = vec![secrets];
        while let Some(part) = parts.pop() {
            let Ok(known) = KnownSecrets::new(&part) else { continue };
            let refused = match self.part(&known, part.len() == 1) {
                Ok(true) => continue,
                Ok(false) => None,
                Err(Error::Invalid(reason)) => Some(reason),
                Err(error) => return Err(error),
            };
            match refused {
                Some(reason) if part.len() == 1 => self.hold(&known, reason)?,
                _ => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second.to_vec(), first.to_vec()]);
                }
            }
        }
        Ok(())
    }

    /// Purges these secrets in the whole store if shared sessions hold some. Returns false, and
    /// purges nothing, if other sessions hold some too and there are several secrets: then each
    /// secret is decided alone.
    fn part(&self, known: &KnownSecrets, is_one: bool) -> Result<bool> {
        if known.is_empty() {
            return Ok(true);
        }
        let Self { store, act, remote, .. } = self;
        let (mask, resolve) = (known, &remote.resolve);
        let operation = act.operation()?;
        let task = PurgeTask { mask, resolve, operation, reason: None, progress: &|_| () };
        let places = store.engine.find_secrets(&task)?.places;
        // A place without a session may belong to a shared one.
        let (inside, outside): (Vec<_>, Vec<_>) = places
            .iter()
            .partition(|one| one.session.is_none_or(|number| self.shared.contains(&number)));
        if inside.is_empty() {
            return Ok(true);
        }
        if !outside.is_empty() && !is_one {
            return Ok(false);
        }
        let sessions: BTreeSet<SessionNumber> =
            places.iter().filter_map(|one| one.session).collect();
        let is_unknown = places.iter().any(|one| one.session.is_none());
        let to = |other: RemoteId| {
            Ok(other != remote.id && (is_unknown || store.may_share(other, &sessions)?))
        };
        let reason = self.reason.as_deref();
        let purged =
            store.purge_with_notices(act, known, reason, (&remote.resolve, &|_| ()), &to)?;
        let mut activity = remote.activity();
        activity.is_unfinished |= !purged.is_done();
        activity.replaced.extend(purged.places);
        Ok(true)
    }

    /// Notes the shared sessions that hold a secret which cannot be purged.
    fn hold(&mut self, known_secrets: &KnownSecrets, reason: String) -> Result<()> {
        let salt = NoticeSalt::from_bytes([0; 32]);
        let hashes = known_secrets.hashes(1, &salt);
        let seek = HashedSecrets::new([(1, &salt, hashes.as_slice())]);
        let mut names = BTreeSet::new();
        let (refs, _) = self.store.engine.follower.written_refs_to_read()?;
        for number in &self.shared {
            let known = session_refs(&refs, *number)?;
            let (id, name) = (known.info.id, known_secrets.masked_text(&known.info.name));
            if known.removal == Some(SessionRemoval::Incomplete) {
                // It is being pulled. A later push finds out whether it holds the secret.
                self.holding.push(HoldingSession { id, name, reason: reason.clone() });
                continue;
            }
            if known.removal.is_some() {
                continue;
            }
            let session = self.store.session_at(*number);
            let bundle = &mut Cursor::new(self.store.exported(&session, &ExportMark::default())?.1);
            if self.store.secrets_in_bundle(bundle, None, Some(&seek))?.purged.is_empty() {
                continue;
            }
            names.insert(name.clone());
            self.holding.push(HoldingSession { id, name, reason: reason.clone() });
        }
        if !names.is_empty() {
            let sessions = names.into_iter().collect();
            self.remote.activity().note_unpurged(UnpurgedSecret { sessions, reason });
        }
        Ok(())
    }
}

impl PurgeActivity {
    fn note_unpurged(&mut self, unpurged: UnpurgedSecret) {
        if !self.unpurged.contains(&unpurged) {
            self.unpurged.push(unpurged);
        }
    }
}
