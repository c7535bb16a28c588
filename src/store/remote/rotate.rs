//! Rotates the key of a remote: gives it a new secret, so that what is pushed from then on opens
//! neither with the old key nor with a grant.
//!
//! The keyring gets the new secret in addition to the old one. Then the marker of the remote is
//! replaced: from there on the old key is refused. Then each ref and notice is written again with
//! the new key, by comparing and swapping, so that what others push meanwhile is not lost. The
//! handles of sessions stay, and so do the packs, whose keys are in the refs. Until the end, the
//! keyring says that the rotation has not ended; the next call finishes a rotation that was killed.

use super::track::KnownRef;
use super::{
    Depot, DepotRead, DepotTag, DepotWrite, EarlierSecret, Remote, RemoteKeyFile, RotatedKey,
    read_marker, unopened_object,
};
use crate::backend::locked;
use crate::engine::random::random;
use crate::error::{DepotError, Error, RemoteFormatError, Result};
use crate::format::remote::{
    OpenedRef, PurgeNotice, REFS_PREFIX, REMOTE_MARKER_NAME, RemoteKeys, RemoteMarker, RemoteRef,
    SealedRef, SeenRef, SessionKey, SessionPlace, handle_in, notice_name, ref_name,
};
use crate::model::{CloneId, RefNonce, SessionHandle};
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum number of passes over all refs, and of attempts to write one object, while others
/// write too.
const MAX_ATTEMPTS: u32 = 8;

/// What a rotation of a key did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationReport {
    /// Whether it continued a rotation that had not ended.
    pub continued: bool,
    /// The number of refs that were written with the new key.
    pub sessions: u64,
    /// The number of purge notices that were written with the new key.
    pub notices: u64,
    /// The sessions whose refs opened with neither key. These refs are unchanged.
    pub unopened: Vec<SessionHandle>,
}

/// The keys of a remote before a rotation.
#[derive(Default)]
pub(super) struct EarlierKeys {
    keys: Option<RemoteKeys>,
    /// Whether the rotation has not ended.
    is_leaving: bool,
}

impl EarlierKeys {
    /// Returns whether the remote may still have refs and notices under these keys.
    pub(super) const fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Returns the earlier key of the session with this handle.
    pub(super) fn session(&self, handle: &SessionHandle) -> Option<SessionKey> {
        self.keys.as_ref().map(|keys| keys.session(handle))
    }
}

impl Store {
    /// Gives the remote of this name a new key and writes all refs and notices with it, or finishes
    /// a rotation that was killed. All stores of the keyring that have the key get the new one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the keyring has no remote of this name; [`Error::RemoteKeyChanged`]
    /// if the remote has another key than the keyring; [`Error::Conflict`] if another process or
    /// machine rotates it at the same time, or others push all the time; [`Error::OtherRemote`] if
    /// the depot is another remote or none; any error of the keyring or of the depot. If others
    /// push all the time, or if the depot or the keyring failed, another call continues the
    /// rotation.
    pub fn rotate_key(&self, depot: Arc<dyn Depot>, name: &str) -> Result<RotationReport> {
        let key_of = || -> Result<RemoteKeyFile> {
            let known = self.known_remotes()?.into_iter().find(|known| known.name == name);
            let key = known.and_then(|known| known.access.key().cloned());
            key.ok_or_else(|| Error::not_found("remote", name))
        };
        let _locked = self.lock_key(key_of()?.remote)?;
        let key = key_of()?;
        let was_set_back = has_key(&*depot, key.earlier_keys())?;
        let continued = key.is_rotating() || was_set_back;
        let mut report = RotationReport { continued, ..Default::default() };
        let next = match (report.continued, key.rotated) {
            (true, Some(rotated)) => {
                RemoteKeyFile { rotated: Some(rotated.leaving()), ..key.clone() }
            }
            _ => {
                let earlier = Some(EarlierSecret::Leaving(key.secret));
                let rotated = Some(RotatedKey { names: *key.keys().names(), earlier });
                RemoteKeyFile { secret: random()?, rotated, ..key.clone() }
            }
        };
        if !report.continued {
            // Nothing is changed if the key does not open the remote.
            Remote::open_with(Arc::clone(&depot), &key.clone().into())?;
        }
        if let Some(EarlierSecret::Leaving(secret)) = next.earlier() {
            // A rotation that was killed may not have reached the entries of other stores.
            self.replace_key(&RemoteKeyFile { secret, ..key.clone() }, &next)?;
            self.replace_key(&key, &next)?;
        }
        if let Err(error) = replace_marker(&*depot, &next) {
            let is_late = matches!(error, Error::RemoteKeyChanged);
            let may_be_replaced = matches!(error, Error::Depot(DepotError::Unsure { .. }));
            let has_old = || has_key(&*depot, Some(key.keys())).unwrap_or(false);
            if !report.continued && (is_late || (!may_be_replaced && has_old())) {
                self.replace_key(&next, &key)?;
            }
            return Err(match is_late && !report.continued {
                true => Error::Conflict(
                    "another machine has just changed the key of the remote: get the new key from there"
                        .to_owned(),
                ),
                false => error,
            });
        }
        let remote = Remote::open_with(depot, &next.clone().into())?;
        remote.rewrite_all(CloneId::from_bytes(self.engine.marker.id), &mut report)?;
        remote.check_marker()?;
        let rotated = next.rotated.map(RotatedKey::left);
        self.replace_key(&next, &RemoteKeyFile { rotated, ..next.clone() })?;
        Ok(report)
    }
}

/// Checks that no rotation is unfinished.
pub(super) fn check_ended(is_rotating: bool) -> Result<()> {
    match is_rotating {
        false => Ok(()),
        true => Err(Error::Conflict(
            "the rotation of the key has not ended: 'forge remote key rotate NAME --yes' finishes \
             it"
            .to_owned(),
        )),
    }
}

/// Decrypts a ref with the key of its session, or else with the earlier key. Also returns whether
/// it was the earlier key.
pub(super) fn open_ref(
    place: &SessionPlace,
    (key, earlier): (&SessionKey, Option<&SessionKey>),
    stored: &[u8],
) -> Result<(OpenedRef, bool), RemoteFormatError> {
    match (RemoteRef::open(place, key, stored), earlier) {
        (Err(error @ RemoteFormatError::Damaged { .. }), Some(earlier)) => {
            let opened = RemoteRef::open(place, earlier, stored);
            opened.map(|opened| (opened, true)).map_err(|_| error)
        }
        (opened, _) => opened.map(|opened| (opened, false)),
    }
}

/// Returns whether the marker of a remote is for this key; false if there is no key.
fn has_key(depot: &dyn Depot, keys: Option<RemoteKeys>) -> Result<bool> {
    let Some(keys) = keys else { return Ok(false) };
    Ok(read_marker(depot)?.is_some_and(|marker| marker.check_key(&keys).is_ok()))
}

/// Replaces the marker of a remote by one for the new key, if it is for the earlier key. Does
/// nothing if it is for the new key already.
fn replace_marker(depot: &dyn Depot, key: &RemoteKeyFile) -> Result<()> {
    let keys = key.keys();
    let mut unsure = None;
    for _ in 0..MAX_ATTEMPTS {
        let DepotRead::Whole { bytes, tag } = depot.get(REMOTE_MARKER_NAME, None)? else {
            return Err(Error::OtherRemote { what: "is gone" });
        };
        let marker = RemoteMarker::decode(&bytes)?;
        if marker.id != key.remote {
            return Err(Error::OtherRemote { what: "is another one now" });
        }
        if marker.check_key(&keys).is_ok() {
            return Ok(());
        }
        if key.earlier_keys().is_none_or(|earlier| marker.check_key(&earlier).is_err()) {
            return Err(Error::RemoteKeyChanged);
        }
        if !marker.is_writable() {
            let needs = "a later version to be written".to_owned();
            return Err(RemoteFormatError::LaterVersion { what: "marker", needs }.into());
        }
        let new = RemoteMarker::new(marker.id, &keys).encode();
        match depot.swap(REMOTE_MARKER_NAME, &tag, new.as_bytes()) {
            Ok(_) => {}
            Err(error @ DepotError::Unsure { .. }) => unsure = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    let all_the_time =
        || Error::Conflict("the marker of the remote changes all the time: try again".to_owned());
    Err(unsure.map_or_else(all_the_time, Error::from))
}

impl Remote {
    /// Opens a remote with a key. The caller has checked that the marker has the remote's id.
    pub(super) fn opened_by(
        depot: Arc<dyn Depot>,
        key: &RemoteKeyFile,
        marker: &RemoteMarker,
    ) -> Result<Self> {
        let (keys, earlier) = (key.keys(), key.earlier_keys());
        if marker.check_key(&keys).is_ok() {
            let earlier = EarlierKeys { keys: earlier, is_leaving: key.is_rotating() };
            let opened = Self::with(depot, super::AccessKeys::All(keys), marker.id);
            return Ok(Self { earlier, ..opened });
        }
        match earlier.filter(|earlier| marker.check_key(earlier).is_ok()) {
            // The rotation was killed before it changed the remote.
            Some(earlier) if key.is_rotating() => {
                let opened = Self::with(depot, super::AccessKeys::All(earlier), marker.id);
                Ok(Self { earlier: EarlierKeys { keys: None, is_leaving: true }, ..opened })
            }
            Some(_) => Err(Error::RemoteKeySetBack),
            None => Err(Error::RemoteKeyChanged),
        }
    }

    /// Returns what the store knows of the ref of a session. If the known ref is under an earlier
    /// key and the remote still has it, it is first written with the present key.
    pub(super) fn current_ref(
        &self,
        store: &Store,
        handle: &SessionHandle,
    ) -> Result<Option<KnownRef>> {
        let known = self.last_ref(store, handle)?;
        let old = match known {
            Some(old) if old.is_earlier && !old.is_reordered() => old,
            known => return Ok(known),
        };
        if !matches!(self.depot.get(&ref_name(handle), Some(&old.read.tag))?, DepotRead::Unchanged)
        {
            return Ok(Some(old));
        }
        // An old version that was put back must not get the new key.
        self.check_history(store, handle, None, &old.read)?;
        let by = CloneId::from_bytes(store.engine.marker.id);
        let content = old.read.opened.rewritten(by, RefNonce::from_bytes(random()?));
        let Some((tag, SealedRef { bytes, link })) =
            self.write_ref(handle, Some(&old.read.tag), &content)?
        else {
            return Ok(Some(old));
        };
        let number = store.pulled_session(content.info.id)?.number;
        let kept = (old.begins, old.shared);
        self.keep_ref(store, (handle, number), (&tag, bytes), kept)?;
        self.note_seen(store, handle, &SeenRef { version: content.version, link });
        self.last_ref(store, handle)
    }

    /// Returns why sessions were skipped since the last call, because their refs do not open:
    /// [`Error::UnopenedSession`] with a rotated key, otherwise an error that names the damage.
    pub fn take_unopened(&self) -> Vec<Error> {
        std::mem::take(&mut *locked(&self.unopened)).into_values().collect()
    }

    pub(super) fn note_unopened(&self, handle: SessionHandle, error: Error) {
        locked(&self.unopened).insert(handle, error);
    }

    /// Checks that no rotation of the key is unfinished.
    pub(super) fn check_rotated(&self) -> Result<()> {
        check_ended(self.earlier.is_leaving())
    }

    /// Returns why a ref does not open: the key of the remote may have been changed.
    pub(super) fn why_unopened(&self, error: RemoteFormatError, handle: &SessionHandle) -> Error {
        if !matches!(error, RemoteFormatError::Damaged { .. }) {
            return error.into();
        }
        match self.keys.all() {
            Err(_) => Error::WrongGrant { what: "does not open its session on the remote" },
            Ok(keys) => match self.check_marker() {
                Err(changed) => changed,
                Ok(()) if keys.is_rotated() => Error::UnopenedSession { handle: *handle },
                Ok(()) => unopened_object(ref_name(handle), error),
            },
        }
    }

    /// Decrypts a notice of a purge, during a rotation also with the earlier key. `None` if it does
    /// not open with a rotated key: it was written with an earlier key, or is damaged.
    pub(super) fn opened_notice(
        &self,
        key: &[u8; 32],
        number: u64,
        bytes: &[u8],
    ) -> Result<Option<PurgeNotice>> {
        let place = (self.id, number);
        let earlier = self.earlier.keys.as_ref().filter(|_| self.earlier.is_leaving);
        match (PurgeNotice::open(place, key, bytes), earlier) {
            (Err(RemoteFormatError::Damaged { .. }), Some(earlier)) => {
                Ok(PurgeNotice::open(place, earlier.notices(), bytes).ok())
            }
            (Err(error @ RemoteFormatError::Damaged { .. }), None) => {
                self.check_marker()?;
                if self.keys.all().is_ok_and(RemoteKeys::is_rotated) {
                    Ok(None)
                } else {
                    Err(error.into())
                }
            }
            (opened, _) => Ok(Some(opened?)),
        }
    }

    /// Fails if a notice that opens follows one that does not. If none follows, the clone that
    /// wrote the unreadable notice writes it again.
    pub(super) fn check_last_notice(&self, key: &[u8; 32], number: u64) -> Result<()> {
        let next = number + 1;
        match self.depot.get(&notice_name(next), None)? {
            DepotRead::Whole { bytes, .. }
                if PurgeNotice::open((self.id, next), key, &bytes).is_ok() =>
            {
                let reason = format!("number {number} does not open");
                Err(RemoteFormatError::Damaged { what: "purge notice", reason }.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the remote still has the key that opened it.
    fn check_marker(&self) -> Result<()> {
        let marker = read_marker(&*self.depot)?.ok_or(Error::OtherRemote { what: "is gone" })?;
        match marker.check_key(self.keys.all()?) {
            Err(_) if marker.id == self.id => Err(Error::RemoteKeyChanged),
            Err(_) => Err(Error::OtherRemote { what: "is another one now" }),
            Ok(()) => Ok(()),
        }
    }

    /// Writes all refs and notices with the new key, until a pass over all of them finds none under
    /// the earlier key.
    fn rewrite_all(&self, by: CloneId, report: &mut RotationReport) -> Result<()> {
        let mut known: BTreeMap<SessionHandle, DepotTag> = BTreeMap::new();
        for _ in 0..MAX_ATTEMPTS {
            let (mut rewritten, mut unopened) = (0, BTreeSet::new());
            self.each(REFS_PREFIX, &mut |entry| {
                if let Some(handle) = handle_in(&entry.name) {
                    match self.rewrite_ref(&handle, by, &mut known) {
                        Ok(is_rewritten) => rewritten += u64::from(is_rewritten),
                        Err(Error::UnopenedSession { handle }) => {
                            unopened.insert(handle);
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            })?;
            let notices = self.rewrite_notices()?;
            report.sessions += rewritten;
            report.notices += notices;
            report.unopened = unopened.into_iter().collect();
            if rewritten + notices == 0 {
                return Ok(());
            }
        }
        Err(Error::Conflict(
            "others push all the time: 'forge remote key rotate NAME --yes' finishes the rotation"
                .to_owned(),
        ))
    }

    /// Writes the ref of a session with the new key, if it is under the earlier key. Returns
    /// whether it was written.
    fn rewrite_ref(
        &self,
        handle: &SessionHandle,
        by: CloneId,
        known: &mut BTreeMap<SessionHandle, DepotTag>,
    ) -> Result<bool> {
        let key = self.keys.session(handle)?;
        for _ in 0..MAX_ATTEMPTS {
            let read = self.depot.get(&ref_name(handle), known.get(handle))?;
            let DepotRead::Whole { bytes, tag } = read else { return Ok(false) };
            if RemoteRef::open(&self.place(*handle), &key, &bytes).is_ok() {
                known.insert(*handle, tag);
                return Ok(false);
            }
            let old = self.opened(handle, bytes, tag)?;
            let content = old.opened.rewritten(by, RefNonce::from_bytes(random()?));
            if let Some((tag, _)) = self.write_ref(handle, Some(&old.tag), &content)? {
                known.insert(*handle, tag);
                return Ok(true);
            }
        }
        Err(Error::Conflict(
            "a session is pushed all the time: 'forge remote key rotate NAME --yes' finishes the \
             rotation"
                .to_owned(),
        ))
    }

    /// Writes the notices that are under the earlier key with the new key. Returns how many.
    fn rewrite_notices(&self) -> Result<u64> {
        let key = self.keys.all()?.notices();
        let mut rewritten = 0;
        for number in 0.. {
            let name = notice_name(number);
            let DepotRead::Whole { bytes, tag } = self.depot.get(&name, None)? else { break };
            if PurgeNotice::open((self.id, number), key, &bytes).is_ok() {
                continue;
            }
            let Some(notice) = self.opened_notice(key, number, &bytes)? else { continue };
            let sealed = notice.seal((self.id, number), key)?;
            if let DepotWrite::Done(_) = self.depot.swap(&name, &tag, &sealed)? {
                rewritten += 1;
            }
        }
        Ok(rewritten)
    }
}
