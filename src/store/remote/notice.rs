//! Purges that reach other stores: notices on the remote have hashes of the secrets.
//!
//! A purge is noted as pending for each remote before it begins. Each contact with a remote writes
//! the pending notices, reads those that are new, and purges what it finds by them here, before
//! anything is pulled or pushed. What is pulled from a ref that was written before a notice is
//! searched again.

use super::{DepotRead, Remote};
use crate::engine::random::random;
use crate::error::{DepotError, Error, Result};
use crate::format::remote::{
    MAX_NOTICE_SECRETS, MAX_NOTICE_SESSIONS, PurgeNotice, PurgeTrack, RemoteKeys, RemoteRef,
    notice_name, pack_name,
};
use crate::model::{CloneId, NoticeSalt, PackId, RemoteId};
use crate::redact::{HashedSecrets, InvalidSecret, KnownSecrets, SecretDetector, TextMasker as _};
use crate::store::{PurgeFinding, Store, WriteContext};
use std::collections::{BTreeSet, HashSet};
use std::sync::{MutexGuard, PoisonError};

/// How often a notice is written again if the answer is lost.
const MAX_ATTEMPTS: u32 = 8;
/// Maximum length of a reason in a notice, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// What contacts with a remote did because of purges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeContact {
    /// How many notices of purges made here were written.
    pub written: u64,
    /// Where secrets of purges made elsewhere were. They were replaced.
    pub replaced: Vec<PurgeFinding>,
    /// Whether other processes still use old files with these secrets.
    pub is_unfinished: bool,
    /// The packs with erased data that could not be removed from the remote.
    pub left: Vec<String>,
}

/// The notices that a purge has noted: the remotes, and the salts that name them.
pub(in crate::store) type NotedPurge = Vec<(RemoteId, NoticeSalt)>;

impl Remote {
    /// Returns what the pushes and pulls since the last call did because of purges.
    pub fn take_purge_contact(&self) -> PurgeContact {
        std::mem::take(&mut self.contact())
    }

    fn contact(&self) -> MutexGuard<'_, PurgeContact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of the notices. A clone without it neither reads nor writes any.
    pub(super) fn notices_key(&self) -> Option<&[u8; 32]> {
        self.keys.all().ok().map(RemoteKeys::notices)
    }

    /// Writes the pending notices, and reads those that are new.
    fn exchange_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            self.read_notices(key, track)?;
            while let Some(own) = track.pending.first() {
                let number = track.notices.len() as u64;
                let sealed = own.seal((self.id, number), key)?;
                match self.depot.put_new(&notice_name(number), &sealed) {
                    // Another notice may be there now, or this one.
                    Ok(_) | Err(DepotError::Unsure { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                let before = track.notices.len();
                self.read_notices(key, track)?;
                if track.notices.len() == before {
                    break;
                }
            }
            if track.pending.is_empty() {
                return Ok(());
            }
        }
        Err(Error::from(DepotError::Unavailable {
            what: "the answers to several writes were lost: try again later".to_owned(),
            source: None,
        }))
    }

    fn read_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<()> {
        loop {
            let number = track.notices.len() as u64;
            let DepotRead::Whole { bytes, .. } = self.depot.get(&notice_name(number), None)? else {
                return Ok(());
            };
            let notice = PurgeNotice::open((self.id, number), key, &bytes)?;
            let before = track.pending.len();
            let is_other =
                |own: &PurgeNotice| (own.salt, &own.secrets) != (notice.salt, &notice.secrets);
            track.pending.retain(is_other);
            self.contact().written += (before - track.pending.len()) as u64;
            track.notices.push(notice);
        }
    }

    /// Removes the packs that were replaced and that no ref names any more. Those that cannot be
    /// removed stay noted.
    pub(super) fn remove_replaced_packs(&self, store: &Store) -> Result<()> {
        let mut track = self.purge_track(store)?;
        if track.replaced.is_empty() {
            return Ok(());
        }
        let mut left = BTreeSet::new();
        for replaced in &mut track.replaced {
            let there = self.read_ref(&replaced.handle)?;
            let packs = there.map(|read| read.opened.content.packs).unwrap_or_default();
            let named: HashSet<PackId> = packs.iter().map(|pack| pack.name).collect();
            replaced.packs.retain(|pack| {
                let name = pack_name(&replaced.handle, pack);
                let stays = !named.contains(pack) && self.depot.remove(&name).is_err();
                left.extend(stays.then_some(name));
                stays
            });
        }
        track.replaced.retain(|replaced| !replaced.packs.is_empty());
        self.contact().left = left.into_iter().collect();
        self.keep_purge_track(store, &track)
    }
}

impl Store {
    /// Notes a purge as pending for each remote that this store was in contact with, but `except`.
    /// Durable on return. The notes have hashes of the secrets.
    pub(in crate::store) fn note_purge(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        reason: Option<&str>,
        except: Option<RemoteId>,
    ) -> Result<NotedPurge> {
        let mut noted = Vec::new();
        if known.is_empty() {
            return Ok(noted);
        }
        let reason = reason.map(|reason| known.masked_text(reason));
        let reason = reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect::<String>());
        for remote in self.contacted_remotes()?.into_iter().filter(|id| Some(*id) != except) {
            let mut track = self.purge_track(remote)?;
            // Secrets whose hashes have one multiplier are searched for together.
            let last = track.notices.last().or_else(|| track.pending.last());
            let multiplier = match last {
                Some(last) => last.multiplier,
                None => u64::from_le_bytes(random()?) | 1,
            };
            // The notices of one purge share a salt, so that a secret has one hash.
            let salt = NoticeSalt::from_bytes(random()?);
            let secrets = known.hashes(multiplier, &salt);
            for (part, secrets) in secrets.chunks(MAX_NOTICE_SECRETS).enumerate() {
                track.pending.push(PurgeNotice {
                    multiplier,
                    salt,
                    secrets: secrets.to_vec(),
                    sessions: Vec::new(),
                    reason: reason.clone().filter(|_| part == 0),
                    by: CloneId::from_bytes(self.engine.marker.id),
                    time: act.now,
                });
            }
            self.keep_purge_track(remote, &track)?;
            noted.push((remote, salt));
        }
        Ok(noted)
    }

    /// Removes the notes of a purge that changed nothing.
    pub(in crate::store) fn forget_purge(&self, noted: &NotedPurge) -> Result<()> {
        for (remote, salt) in noted {
            let mut track = self.purge_track(*remote)?;
            track.pending.retain(|notice| notice.salt != *salt);
            self.keep_purge_track(*remote, &track)?;
        }
        Ok(())
    }

    /// Begins a contact with a remote: tells others of the purges made here, and does here what
    /// they purged.
    pub(super) fn exchange_purges(&self, act: &WriteContext, remote: &Remote) -> Result<()> {
        let Some(key) = remote.notices_key() else { return Ok(()) };
        let before = remote.purge_track(self)?;
        let mut track = before.clone();
        if !track.pending.is_empty() {
            let sessions = self.sessions_to_rewrite(remote)?;
            let handles = sessions.iter().map(|one| one.handle).take(MAX_NOTICE_SESSIONS);
            let handles: Vec<_> = handles.collect();
            track.pending.iter_mut().for_each(|one| one.sessions.clone_from(&handles));
        }
        let exchanged = remote.exchange_notices(key, &mut track);
        if track != before {
            remote.keep_purge_track(self, &track)?;
        }
        exchanged?;
        self.purge_noticed(act, remote)?;
        remote.remove_replaced_packs(self)
    }

    /// Purges what others purged, as far as this store was not searched for it yet.
    pub(super) fn purge_noticed(&self, act: &WriteContext, remote: &Remote) -> Result<()> {
        let track = remote.purge_track(self)?;
        let new: Vec<&PurgeNotice> = track.notices.iter().skip(track.searched as usize).collect();
        if new.is_empty() {
            return Ok(());
        }
        let hashes = new.iter().map(|one| (one.multiplier, &one.salt, one.secrets.as_slice()));
        let seek = SecretDetector::Hashes(HashedSecrets::new(hashes));
        // The search does not read writes that wait.
        self.engine.drain()?;
        let found = self.secrets(act, &seek, &|_| ())?;
        if !found.is_empty() {
            let known = KnownSecrets::new(&found).map_err(|wrong| {
                let reason = match wrong {
                    InvalidSecret::Short => "it is too short",
                    InvalidSecret::Mark => "it is a replacement itself",
                };
                Error::invalid(format!("what was purged elsewhere cannot be purged here: {reason}"))
            })?;
            let reasons: BTreeSet<&str> =
                new.iter().filter_map(|one| one.reason.as_deref()).collect();
            let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
            let reason = Some(reasons.as_str()).filter(|reasons| !reasons.is_empty());
            self.note_purge(act, &known, reason, Some(remote.id))?;
            let purged = self.purge_unnoted(act, &known, reason, &remote.resolve, &|_| ())?;
            let mut contact = remote.contact();
            contact.is_unfinished |= !purged.is_done();
            contact.replaced.extend(purged.places);
        }
        // A purge for another remote does not change this track.
        let searched = track.notices.len() as u64;
        remote.keep_purge_track(self, &PurgeTrack { searched, ..track })
    }

    /// Notes that what is pulled now may have secrets of notices that its ref does not take into
    /// account. Returns whether it may.
    ///
    /// # Errors
    /// [`Error::RemoteHistory`] if the ref takes notices into account that are not on the remote.
    pub(super) fn note_unsearched(
        &self,
        act: &WriteContext,
        remote: &Remote,
        content: &RemoteRef,
    ) -> Result<bool> {
        if remote.notices_key().is_none() {
            return Ok(false);
        }
        let mut track = remote.purge_track(self)?;
        if content.purges > track.notices.len() as u64 {
            // They may have been written since they were read.
            self.exchange_purges(act, remote)?;
            track = remote.purge_track(self)?;
        }
        if content.purges > track.notices.len() as u64 {
            let (session, what) = (content.info.name.clone(), "lacks notices of purges");
            return Err(Error::RemoteHistory { session, what });
        }
        if content.purges >= track.searched {
            return Ok(false);
        }
        track.searched = content.purges;
        remote.keep_purge_track(self, &track)?;
        Ok(true)
    }
}
