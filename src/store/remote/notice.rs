//! Notices of purges, by which a purge in one store reaches the other stores of a remote. A notice
//! contains hashes of the purged secrets.
//!
//! A store notes a purge as pending for each of its remotes before the purge begins. Each contact
//! with a remote first writes the pending notices, reads the new ones, and purges their secrets
//! from this store. Only then is anything pulled or pushed. If a pulled ref was written before a
//! notice, what was pulled is searched for the secrets of that notice. Notices that are missing on
//! the remote are written again.

use super::{DepotRead, DepotWrite, Remote, UnpurgedSecret};
use crate::backend::locked;
use crate::engine::random::random;
use crate::error::{DepotError, Error, Result};
use crate::format::remote::{
    MAX_NOTICE_SESSIONS, PurgeNotice, PurgeTrack, RemoteKeys, notice_name, notice_parts, pack_name,
};
use crate::model::{CloneId, NoticeSalt, PackId, RemoteId, SessionId};
use crate::redact::{KnownSecrets, TextMasker as _};
use crate::store::{PurgeFinding, Store, WriteContext};
use std::collections::{BTreeSet, HashSet};
use std::sync::MutexGuard;

/// The maximum number of attempts to exchange notices. An attempt is repeated if a notice was not
/// written, or if the answer was lost.
const MAX_ATTEMPTS: u32 = 8;
/// Maximum length of a reason in a notice, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// What contacts with a remote did because of purges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeActivity {
    /// The number of purges made here whose notices were written to the remote for the first time.
    pub written: u64,
    /// The places in which secrets of purges made elsewhere were found and replaced.
    pub replaced: Vec<PurgeFinding>,
    /// Whether other processes still use old files with these secrets.
    pub is_unfinished: bool,
    /// What was purged elsewhere and cannot be purged here. Sessions that hold it are not pushed.
    pub unpurged: Vec<UnpurgedSecret>,
    /// The number of texts that were purged elsewhere but are no secrets, such as words of forge's
    /// own records. They were not replaced.
    pub ignored: u64,
    /// The packs with erased data that could not be removed from the remote.
    pub left: Vec<String>,
}

/// The notices that a purge has noted as pending: for each remote, the salt that they share.
pub(in crate::store) type NotedPurge = Vec<(RemoteId, NoticeSalt)>;

impl Remote {
    /// Returns what pushes and pulls did because of purges since the last call.
    pub fn take_purge_activity(&self) -> PurgeActivity {
        std::mem::take(&mut self.activity())
    }

    pub(super) fn activity(&self) -> MutexGuard<'_, PurgeActivity> {
        locked(&self.activity)
    }

    /// Returns the key of the notices; `None` if the remote was opened with a grant. A clone
    /// without this key neither reads nor writes notices.
    pub(super) fn notices_key(&self) -> Option<&[u8; 32]> {
        self.keys.all().ok().map(RemoteKeys::notices)
    }

    /// Writes the pending notices, and reads the new ones into `track`.
    fn exchange_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<()> {
        let written_before = self.check_notices(key, track)?;
        for _ in 0..MAX_ATTEMPTS {
            self.read_notices(key, track, &written_before)?;
            while let Some(own) = track.pending.first() {
                let number = track.notices.len() as u64;
                let sealed = own.seal((self.id, number), key)?;
                match self.put_notice(key, number, &sealed) {
                    // The read below finds which notice has this number now: ours or another one.
                    Ok(_) | Err(Error::Depot(DepotError::Unsure { .. })) => {}
                    Err(error) => return Err(error),
                }
                let before = track.notices.len();
                self.read_notices(key, track, &written_before)?;
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

    /// Writes a notice, unless the remote has one with this number that opens with the key.
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

    /// Checks that the last known notice is still on the remote. If it is not, the remote was set
    /// back: the missing notices become pending again. Returns the salts of the missing notices.
    fn check_notices(&self, key: &[u8; 32], track: &mut PurgeTrack) -> Result<Vec<NoticeSalt>> {
        let Some(last) = track.notices.len().checked_sub(1) else { return Ok(Vec::new()) };
        if self.has_notice(key, track, last)? {
            return Ok(Vec::new());
        }
        // A binary search for the first missing notice.
        let (mut present, mut missing) = (0, last);
        while present < missing {
            let middle = usize::midpoint(present, missing);
            if self.has_notice(key, track, middle)? {
                present = middle + 1;
            } else {
                missing = middle;
            }
        }
        let mut lost = track.notices.split_off(present);
        let written_before = lost.iter().map(|notice| notice.salt).collect();
        lost.append(&mut track.pending);
        track.pending = lost;
        track.searched = track.searched.min(present as u64);
        Ok(written_before)
    }

    /// Returns whether the remote still has a known notice under its number.
    fn has_notice(&self, key: &[u8; 32], track: &PurgeTrack, number: usize) -> Result<bool> {
        let place = number as u64;
        let DepotRead::Whole { bytes, .. } = self.depot.get(&notice_name(place), None)? else {
            return Ok(false);
        };
        let there = self.opened_notice(key, place, &bytes)?;
        Ok(there.is_some() && track.notices.get(number) == there.as_ref())
    }

    /// Reads the new notices. A pending notice that is among them is not pending any more. It is
    /// not counted as written if its salt is in `written_before`: the remote had it before.
    fn read_notices(
        &self,
        key: &[u8; 32],
        track: &mut PurgeTrack,
        written_before: &[NoticeSalt],
    ) -> Result<()> {
        loop {
            let number = track.notices.len() as u64;
            let DepotRead::Whole { bytes, .. } = self.depot.get(&notice_name(number), None)? else {
                return Ok(());
            };
            // If it was written with an earlier key, its clone writes it again.
            let Some(notice) = self.opened_notice(key, number, &bytes)? else {
                return self.check_last_notice(key, number);
            };
            let before = track.pending.len();
            let is_other =
                |own: &PurgeNotice| (own.salt, &own.secrets) != (notice.salt, &notice.secrets);
            track.pending.retain(is_other);
            let is_written = track.pending.len() < before;
            // A purge with many secrets has several notices. It counts when the last is written.
            let has_more = track.pending.iter().any(|own| own.salt == notice.salt);
            let was_there = written_before.contains(&notice.salt);
            self.activity().written += u64::from(is_written && !has_more && !was_there);
            track.notices.push(notice);
        }
    }

    /// Removes the replaced packs that no ref names any more. The packs that cannot be removed stay
    /// noted.
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
            // A ref that cannot be read does not stop the removal of other packs.
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
        store.keep_purge_track(self.id, track)
    }
}

impl PurgeTrack {
    /// Notes sessions that hold secrets which cannot be purged.
    pub(super) fn note_held(&mut self, sessions: impl Iterator<Item = SessionId>) {
        for id in sessions {
            if !self.held.contains(&id) {
                self.held.push(id);
            }
        }
    }
}

impl Store {
    /// Notes a purge as pending for each remote that this store was in contact with and that `to`
    /// accepts. Durable on return. The notices have hashes of the secrets.
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
            // Secrets whose hashes have the same multiplier are searched for in one pass.
            let last = track.notices.last().or_else(|| track.pending.last());
            let multiplier = match last {
                Some(last) => last.multiplier,
                None => u64::from_le_bytes(random()?) | 1,
            };
            // The notices of one purge share a salt, by which they are recognised.
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

    /// Removes the pending notices of a purge that changed nothing.
    pub(in crate::store) fn forget_purge(&self, noted: &NotedPurge) -> Result<()> {
        for (remote, salt) in noted {
            let mut track = self.purge_track(*remote)?;
            track.pending.retain(|notice| notice.salt != *salt);
            self.keep_purge_track(*remote, &track)?;
        }
        Ok(())
    }

    /// Begins a contact with a remote: writes the notices of the purges made here, and purges what
    /// was purged elsewhere. Returns what this store knows of the notices after that.
    pub(super) fn exchange_purges(
        &self,
        act: &WriteContext,
        remote: &Remote,
    ) -> Result<PurgeTrack> {
        let before = self.purge_track(remote.id)?;
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
            self.keep_purge_track(remote.id, &track)?;
        }
        exchanged?;
        let mut track = self.purge_noticed(act, remote, track, None)?;
        remote.remove_replaced_packs(self, &mut track)?;
        Ok(track)
    }
}
