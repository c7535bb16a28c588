//! Purges that reach other stores: notices on the remote have hashes of the secrets.
//!
//! A purge is noted as pending for each remote before it begins. Each contact with a remote writes
//! the pending notices, reads those that are new, and purges what it finds by them here, before
//! anything is pulled or pushed. What is pulled from a ref that was written before a notice is
//! searched again. Notices that are gone from the remote are written again.

use super::{DepotRead, DepotWrite, Remote, UnpurgedSecret};
use crate::engine::random::random;
use crate::error::{DepotError, Error, Result};
use crate::format::remote::{
    MAX_NOTICE_SESSIONS, PurgeNotice, PurgeTrack, RemoteKeys, notice_name, notice_parts, pack_name,
};
use crate::model::{CloneId, NoticeSalt, PackId, RemoteId, SessionId};
use crate::redact::{KnownSecrets, TextMasker as _};
use crate::store::{PurgeFinding, Store, WriteContext};
use std::collections::{BTreeSet, HashSet};
use std::sync::{MutexGuard, PoisonError};

/// How often a notice is written again if the answer is lost.
const MAX_ATTEMPTS: u32 = 8;
/// Maximum length of a reason in a notice, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// What contacts with a remote did because of purges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeActivity {
    /// How many purges made here the remote has notices of now, and had not before.
    pub written: u64,
    /// Where secrets of purges made elsewhere were. They were replaced.
    pub replaced: Vec<PurgeFinding>,
    /// Whether other processes still use old files with these secrets.
    pub is_unfinished: bool,
    /// What was purged elsewhere and cannot be purged here. Sessions that hold it are not pushed.
    pub unpurged: Vec<UnpurgedSecret>,
    /// How many texts were found that were purged elsewhere and are no secrets, such as words of
    /// forge's own records. They stay.
    pub ignored: u64,
    /// The packs with erased data that could not be removed from the remote.
    pub left: Vec<String>,
}

/// The notices that a purge has noted: the remotes, and the salts that name them.
pub(in crate::store) type NotedPurge = Vec<(RemoteId, NoticeSalt)>;

impl Remote {
    /// Returns what the pushes and pulls since the last call did because of purges.
    pub fn take_purge_activity(&self) -> PurgeActivity {
        std::mem::take(&mut self.activity())
    }

    pub(super) fn activity(&self) -> MutexGuard<'_, PurgeActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key of the notices. A clone without it neither reads nor writes any.
    pub(super) fn notices_key(&self) -> Option<&[u8; 32]> {
        self.keys.all().ok().map(RemoteKeys::notices)
    }

    /// Writes the pending notices, and reads those that are new.
    fn exchange_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<()> {
        let again = self.check_notices(key, track)?;
        for _ in 0..MAX_ATTEMPTS {
            self.read_notices(key, track, &again)?;
            while let Some(own) = track.pending.first() {
                let number = track.notices.len() as u64;
                let sealed = own.seal((self.id, number), key)?;
                match self.put_notice(key, number, &sealed) {
                    // Another notice may be there now, or this one.
                    Ok(_) | Err(Error::Depot(DepotError::Unsure { .. })) => {}
                    Err(error) => return Err(error),
                }
                let before = track.notices.len();
                self.read_notices(key, track, &again)?;
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

    /// Writes a notice, if there is none of this number that opens with the key.
    fn put_notice(&self, key: &[u8; 32], number: u64, sealed: &[u8]) -> Result<DepotWrite> {
        let name = notice_name(number);
        let written = self.depot.put_new(&name, sealed)?;
        if matches!(written, DepotWrite::Conflict)
            && let DepotRead::Whole { bytes, tag } = self.depot.get(&name, None)?
            && self.opened_notice(key, number, &bytes)?.is_none()
        {
            self.check_last_notice(key, number)?;
            return Ok(self.depot.swap(&name, &tag, sealed)?);
        }
        Ok(written)
    }

    /// Checks that the last notice that is known is still on the remote. If it is not, the remote
    /// was set back: those that are gone are to be written again. Returns their salts.
    fn check_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<Vec<NoticeSalt>> {
        let Some(last) = track.notices.len().checked_sub(1) else { return Ok(Vec::new()) };
        if self.has_notice(key, track, last)? {
            return Ok(Vec::new());
        }
        let (mut there, mut gone) = (0, last);
        while there < gone {
            let middle = usize::midpoint(there, gone);
            if self.has_notice(key, track, middle)? {
                there = middle + 1;
            } else {
                gone = middle;
            }
        }
        let mut lost = track.notices.split_off(there);
        let again = lost.iter().map(|notice| notice.salt).collect();
        lost.append(&mut track.pending);
        track.pending = lost;
        track.searched = track.searched.min(there as u64);
        Ok(again)
    }

    /// Returns whether a notice that is known is on the remote at its place.
    fn has_notice(&self, key: &[u8; 32], track: &PurgeTrack, number: usize) -> Result<bool> {
        let place = number as u64;
        let DepotRead::Whole { bytes, .. } = self.depot.get(&notice_name(place), None)? else {
            return Ok(false);
        };
        let there = self.opened_notice(key, place, &bytes)?;
        Ok(there.is_some() && track.notices.get(number) == there.as_ref())
    }

    /// Reads the notices that are new. Of those that were pending, the ones with the salts in
    /// `again` were written before.
    fn read_notices(
        &self,
        key: &[u8; 32],
        track: &mut PurgeTrack,
        again: &[NoticeSalt],
    ) -> Result<()> {
        loop {
            let number = track.notices.len() as u64;
            let DepotRead::Whole { bytes, .. } = self.depot.get(&notice_name(number), None)? else {
                return Ok(());
            };
            // One that was written with an earlier key is written again by its clone.
            let Some(notice) = self.opened_notice(key, number, &bytes)? else {
                return self.check_last_notice(key, number);
            };
            let before = track.pending.len();
            let is_other =
                |own: &PurgeNotice| (own.salt, &own.secrets) != (notice.salt, &notice.secrets);
            track.pending.retain(is_other);
            let is_written = track.pending.len() < before;
            // A purge with many secrets has several notices: its last one says that it was written.
            let has_more = track.pending.iter().any(|own| own.salt == notice.salt);
            let is_again = again.contains(&notice.salt);
            self.activity().written += u64::from(is_written && !has_more && !is_again);
            track.notices.push(notice);
        }
    }

    /// Removes the packs that were replaced and that no ref names any more. Those that cannot be
    /// removed stay noted.
    pub(super) fn remove_replaced_packs(
        &self,
        store: &Store,
        track: &mut PurgeTrack,
    ) -> Result<()> {
        if track.replaced.is_empty() {
            return Ok(());
        }
        let mut left = BTreeSet::new();
        for replaced in &mut track.replaced {
            // A ref that cannot be read does not stop what else is to be done.
            let Ok(there) = self.read_ref(&replaced.handle) else { continue };
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
        self.activity().left = left.into_iter().collect();
        self.keep_purge_track(store, track)
    }
}

impl PurgeTrack {
    /// Notes sessions that hold what cannot be purged.
    pub(super) fn note_held(&mut self, sessions: impl Iterator<Item = SessionId>) {
        for id in sessions {
            if !self.held.contains(&id) {
                self.held.push(id);
            }
        }
    }
}

impl Store {
    /// Notes a purge as pending for each remote that this store was in contact with and that a
    /// function accepts. Durable on return. The notes have hashes of the secrets.
    pub(in crate::store) fn note_purge(
        &self,
        act: &WriteContext,
        (known, reason): (&KnownSecrets, Option<&str>),
        to: &dyn Fn(RemoteId) -> Result<bool>,
        noted: &mut NotedPurge,
    ) -> Result<()> {
        if known.is_empty() {
            return Ok(());
        }
        let reason = reason.map(|reason| known.masked_text(reason));
        let reason = reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect::<String>());
        for remote in self.contacted_remotes()? {
            if !to(remote)? {
                continue;
            }
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
            for (part, secrets) in notice_parts(secrets).into_iter().enumerate() {
                track.pending.push(PurgeNotice {
                    multiplier,
                    salt,
                    secrets,
                    sessions: Vec::new(),
                    reason: reason.clone().filter(|_| part == 0),
                    by: CloneId::from_bytes(self.engine.marker.id),
                    time: act.now,
                });
            }
            noted.push((remote, salt));
            self.keep_purge_track(remote, &track)?;
        }
        Ok(())
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
    /// they purged. Returns what this store knows of the notices then.
    pub(super) fn exchange_purges(
        &self,
        act: &WriteContext,
        remote: &Remote,
    ) -> Result<PurgeTrack> {
        let before = remote.purge_track(self)?;
        let Some(key) = remote.notices_key() else { return Ok(before) };
        let mut track = before.clone();
        if !track.pending.is_empty() {
            let sessions = self.sessions_to_rewrite(remote)?;
            let handles = sessions.iter().map(|one| one.handle).take(MAX_NOTICE_SESSIONS);
            let handles: Vec<_> = handles.collect();
            let new = track.pending.iter_mut().filter(|one| one.sessions.is_empty());
            new.for_each(|one| one.sessions.clone_from(&handles));
        }
        let exchanged = remote.exchange_notices(key, &mut track);
        if track != before {
            remote.keep_purge_track(self, &track)?;
        }
        exchanged?;
        let mut track = self.purge_noticed(act, remote, track, None)?;
        remote.remove_replaced_packs(self, &mut track)?;
        Ok(track)
    }
}
