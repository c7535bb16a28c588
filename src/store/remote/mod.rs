//! Remotes: sessions that several stores share through a [`Depot`]. Specified in `docs/format.md`,
//! "Remotes".
//!
//! A session has one *ref* on the remote, its only object that changes, and *packs*: encrypted
//! bundles of what was written between two versions of the ref. A pack is stored before a ref names
//! it, and only a writer that has seen the newest version of a ref can replace it. So no lock is
//! needed, and nothing that was pushed is lost.
//!
//! * `access`: the key that opens a remote, or the grant that opens one session of it.
//! * `push`: stores a pack, then makes the ref name it.
//! * `pull`: imports the packs that are new; `join`: joins them with what was written here, also
//!   in a session of the same agent (`begun`).
//! * `rewrite`: sessions are rewritten without what was erased here.
//! * `track`: what this store knows of the ref of a session.
//! * `foreign`: the operations of others, and the tag of new ids in their sessions.
//! * `known`: the remotes that a store knows by name, in its keyring.
//! * `rotate`: a remote gets another key.
//! * `notice`: tells others of purges that were made here.
//! * `noticed`: purges here what others purged.
//! * `witness`: which version of each ref this machine has seen, outside of the store.
//! * `unpushed`: what is not on a remote yet; `preview`: what a push or a pull would do.

mod access;
mod begun;
mod foreign;
mod join;
mod known;
mod notice;
mod noticed;
mod other_remotes;
mod preview;
mod pull;
mod push;
mod rewrite;
mod rotate;
mod track;
mod unpushed;
mod witness;

pub(in crate::store) use self::foreign::TAG_DIGITS;
pub use crate::backend::depot::{
    DEPOT_LIST_ENTRIES, Depot, DepotEntry, DepotRead, DepotRequests, DepotTag, DepotWrite,
    FolderDepot, MAX_DEPOT_OBJECT_BYTES, MemoryDepot, check_depot, check_depot_name,
    check_depot_object, check_depot_prefix,
};
pub use crate::format::remote::{
    EarlierSecret, RefSummary, RemoteGrant, RemoteKeyFile, RotatedKey, SeenRef, SeenRefs,
};
pub use access::RemoteAccess;
pub use known::KnownRemote;
pub(super) use known::copy_remotes;
pub use notice::PurgeActivity;
pub use noticed::UnpurgedSecret;
pub use preview::{PullPreview, PushPreview};
pub use pull::PullReport;
pub use push::PushReport;
pub use rewrite::{FinishedPurges, RewriteReason};
pub use rotate::RotationReport;
pub(super) use track::Tracks;
pub use unpushed::UnpushedWork;

use self::access::AccessKeys;
use self::rotate::{EarlierKeys, open_ref};
use crate::backend::debug_by_name;
use crate::engine::random::random;
use crate::error::{DepotError, Error, RemoteFormatError, Result};
use crate::format::remote::{
    OpenedRef, PACKS_PREFIX, REFS_PREFIX, REMOTE_MARKER_NAME, RemoteKeys, RemoteMarker, RemoteRef,
    SessionPlace, handle_in, pack_in, ref_name,
};
use crate::model::{PackId, RemoteId, SessionHandle, SessionId, SessionMetadata, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// How old an object must be before it is removed as garbage, in hours of the depot's clock.
const GARBAGE_HOURS: i64 = 24;

/// A remote: a depot with the keys to what is on it.
pub struct Remote {
    depot: Arc<dyn Depot>,
    keys: AccessKeys,
    /// The keys before a rotation.
    earlier: EarlierKeys,
    id: RemoteId,
    /// The versions of refs that the machine which wrote the key file or grant had seen.
    seen: SeenRefs,
    allows_secrets: bool,
    accepts_history: bool,
    refuses_joins: bool,
    resolve: TextLookup,
    /// What was done because of purges since [`Remote::take_purge_activity`].
    activity: Mutex<PurgeActivity>,
    /// The sessions that were skipped since [`Remote::take_unopened`], and why.
    unopened: Mutex<BTreeMap<SessionHandle, Error>>,
}

/// Finds a text in a JSON document by its JSON pointer.
type TextLookup = fn(&[u8], &str) -> Option<String>;

debug_by_name!(Remote { id });

/// A session on a remote, as its ref describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSession {
    /// The name of the session on the remote, which does not reveal its id.
    pub handle: SessionHandle,
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// The version of its ref.
    pub version: u64,
    /// When its latest pack was made, by the clock of the machine that pushed it.
    pub last_push: Option<Timestamp>,
    /// Figures about the session.
    pub summary: RefSummary,
}

impl RemoteSession {
    fn of(handle: SessionHandle, content: RemoteRef) -> Self {
        let RemoteRef { info, version, packs, summary, .. } = content;
        let last_push = packs.last().map(|pack| pack.time);
        Self { handle, info, version, last_push, summary }
    }
}

/// A ref as it was read from the depot.
struct ReadRef {
    tag: DepotTag,
    stored: Vec<u8>,
    opened: OpenedRef,
}

impl RemoteKeyFile {
    /// Makes the key of a new remote, which is not created yet.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn generate() -> Result<Self> {
        let (remote, secret) = (RemoteId::from_bytes(random()?), random()?);
        Ok(Self { remote, secret, url: None, seen: SeenRefs::new(), rotated: None })
    }
}

impl Remote {
    /// Makes a depot a remote with this secret, which opens everything on it.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the depot is a remote already; any error of the depot.
    pub fn create(depot: Arc<dyn Depot>, secret: &[u8; 32]) -> Result<Self> {
        Self::create_with(depot, &RemoteKeyFile { secret: *secret, ..RemoteKeyFile::generate()? })
    }

    /// Makes a depot a remote with a key that the caller has already kept, so that there is never a
    /// remote whose key is lost.
    ///
    /// # Errors
    /// See [`Remote::create`].
    pub fn create_with(depot: Arc<dyn Depot>, key: &RemoteKeyFile) -> Result<Self> {
        let (id, secret) = (key.remote, &key.secret);
        let keys = RemoteKeys::new(secret);
        let marker = RemoteMarker::new(id, &keys).encode();
        match depot.put_new(REMOTE_MARKER_NAME, marker.as_bytes()) {
            Ok(DepotWrite::Done(_)) => {}
            Ok(DepotWrite::Conflict) | Err(DepotError::Unsure { .. }) => {
                let remote = Self::open(Arc::clone(&depot), secret);
                if !remote.is_ok_and(|remote| remote.id == id) {
                    return Err(Error::Conflict(
                        "there is a remote already: join it with its key".to_owned(),
                    ));
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Self::with(depot, AccessKeys::All(keys), id))
    }

    /// Opens a remote with its secret.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the depot is no remote; [`Error::RemoteFormat`] if the secret is not
    /// that of the remote, or if the remote needs a later version; any error of the depot.
    pub fn open(depot: Arc<dyn Depot>, secret: &[u8; 32]) -> Result<Self> {
        let keys = RemoteKeys::new(secret);
        let missing = || Error::not_found("remote there", REMOTE_MARKER_NAME);
        let marker = read_marker(&*depot)?.ok_or_else(missing)?;
        marker.check_key(&keys)?;
        Ok(Self::with(depot, AccessKeys::All(keys), marker.id))
    }

    /// Opens a remote that was made elsewhere, with its key file. Pushes and pulls check that no
    /// ref is older than the version that the file names as seen.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the depot is no remote; [`Error::RemoteKeyChanged`] if the remote has
    /// another key now; [`Error::RemoteKeySetBack`] if it has the key from before a rotation again;
    /// [`Error::RemoteFormat`] if the depot is another remote, or needs a later version; any error
    /// of the depot.
    pub fn open_file(depot: Arc<dyn Depot>, key: &RemoteKeyFile) -> Result<Self> {
        let missing = || Error::not_found("remote there", REMOTE_MARKER_NAME);
        let marker = read_marker(&*depot)?.ok_or_else(missing)?;
        if marker.id != key.remote {
            return Err(RemoteFormatError::WrongKey.into());
        }
        Ok(Self::opened_by(depot, key, &marker)?.having_seen(&key.clone().into()))
    }

    /// Opens a remote that was used before, with its key or with the grant of a session. Pushes and
    /// pulls check that no ref is older than the version that the key or grant names as seen.
    ///
    /// # Errors
    /// [`Error::OtherRemote`] if the depot is another remote, or none any more;
    /// [`Error::RemoteKeyChanged`] if the remote has another key now; [`Error::RemoteKeySetBack`]
    /// if it has the key from before a rotation again; [`Error::RemoteFormat`] if it needs a later
    /// version; [`Error::WrongGrant`] if the grant is for another remote; any error of the depot.
    pub fn open_with(depot: Arc<dyn Depot>, access: &RemoteAccess) -> Result<Self> {
        let marker = read_marker(&*depot)?.ok_or(Error::OtherRemote { what: "is gone" })?;
        if marker.id != access.remote() {
            return Err(match access {
                RemoteAccess::Key(_) => Error::OtherRemote { what: "is another one now" },
                RemoteAccess::Grant(_) => Error::WrongGrant { what: "is one of another remote" },
            });
        }
        let opened = match access {
            RemoteAccess::Key(key) => Self::opened_by(depot, key, &marker)?,
            // Only the id can be checked here. The key is checked when it opens the session's ref.
            RemoteAccess::Grant(_) => Self::with(depot, access.keys(), marker.id),
        };
        Ok(opened.having_seen(access))
    }

    fn with(depot: Arc<dyn Depot>, keys: AccessKeys, id: RemoteId) -> Self {
        Self {
            depot,
            keys,
            earlier: EarlierKeys::default(),
            id,
            seen: SeenRefs::new(),
            allows_secrets: false,
            accepts_history: false,
            refuses_joins: false,
            resolve: |_, _| None,
            activity: Mutex::default(),
            unopened: Mutex::default(),
        }
    }

    /// Sets the function with which purges that were made elsewhere read long texts of imported
    /// sources, as in [`Store::purge`](crate::store::Store::purge).
    #[must_use]
    pub fn resolving(mut self, resolve: TextLookup) -> Self {
        self.resolve = resolve;
        self
    }

    /// Makes pushes to this remote send what the redaction rules of a store find, instead of
    /// refusing it.
    #[must_use]
    pub fn allowing_secrets(mut self) -> Self {
        self.allows_secrets = true;
        self
    }

    /// Makes pulls from this remote refuse a session that would have to be joined, instead of
    /// joining it.
    #[must_use]
    pub fn refusing_joins(mut self) -> Self {
        self.refuses_joins = true;
        self
    }

    /// Returns the permanent id of the remote.
    #[must_use]
    pub const fn id(&self) -> RemoteId {
        self.id
    }

    /// Returns the handle of a session on the remote.
    ///
    /// # Errors
    /// [`Error::NotGranted`] if the remote was opened with the grant of another session.
    pub fn handle(&self, session: &SessionId) -> Result<SessionHandle> {
        self.keys.handle(session)
    }

    /// Returns a session on the remote; `None` if it is not there. No pack is read.
    ///
    /// # Errors
    /// [`DepotError::Damaged`] or, after a rotation of the key, [`Error::UnopenedSession`] if its
    /// ref does not open; any error of the depot.
    pub fn session(&self, handle: &SessionHandle) -> Result<Option<RemoteSession>> {
        let read = self.read_ref(handle)?;
        Ok(read.map(|read| RemoteSession::of(*handle, read.opened.content)))
    }

    /// Returns the sessions on the remote, sorted by name; with a grant, only its session. No pack
    /// is read. Sessions whose refs do not open are skipped, because they are damaged, were pushed
    /// by a later version of forge, or were not pushed with the rotated key of the remote:
    /// [`Remote::take_unopened`] names them.
    ///
    /// # Errors
    /// Any error of the depot; with a grant, also if the ref does not open.
    pub fn sessions(&self) -> Result<Vec<RemoteSession>> {
        if let Some(only) = self.keys.only() {
            return Ok(self.session(only)?.into_iter().collect());
        }
        let mut found = Vec::new();
        self.each(REFS_PREFIX, &mut |entry| {
            if let Some(handle) = handle_in(&entry.name) {
                match self.session(&handle) {
                    Err(error) if is_of_ref(&error) => self.note_unopened(handle, error),
                    session => found.extend(session?),
                }
            }
            Ok(())
        })?;
        found.sort_by(|a, b| (&a.info.name, a.handle).cmp(&(&b.info.name, b.handle)));
        Ok(found)
    }

    /// Returns the session whose ref was written last, among those that `accepts` accepts. Only the
    /// `limit` refs that were written last are considered; refs that cannot be opened are skipped.
    /// No pack is read. With a grant, only its session is considered.
    ///
    /// # Errors
    /// Any error of the depot.
    pub fn latest_session(
        &self,
        limit: usize,
        accepts: impl Fn(&RemoteSession) -> bool,
    ) -> Result<Option<RemoteSession>> {
        if let Some(only) = self.keys.only() {
            return Ok(self.session(only)?.filter(accepts));
        }
        let mut refs = Vec::new();
        self.each(REFS_PREFIX, &mut |entry| {
            refs.extend(handle_in(&entry.name).map(|handle| (entry.changed, handle)));
            Ok(())
        })?;
        refs.sort_unstable_by(|a, b| b.cmp(a));
        for (_, handle) in refs.into_iter().take(limit) {
            match self.session(&handle) {
                Ok(Some(session)) if accepts(&session) => return Ok(Some(session)),
                Err(error) if !is_of_ref(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Removes the packs that no ref names and that are at least a day old by the depot's clock:
    /// they are from pushes that were killed, or were combined or replaced. Returns how many. Packs
    /// of a session whose ref does not open with a rotated key stay.
    ///
    /// # Errors
    /// [`Error::NotGranted`] if the remote was opened with a grant; [`DepotError::Damaged`] if a
    /// ref is damaged; any error of the depot.
    pub fn tidy(&self) -> Result<u64> {
        self.keys.all()?;
        let now = self.depot.now()?;
        let mut removed = 0;
        let mut known: Option<(SessionHandle, BTreeSet<PackId>)> = None;
        self.each(PACKS_PREFIX, &mut |entry| {
            let age = now.as_micros().saturating_sub(entry.changed.as_micros());
            let Some((handle, pack)) = pack_in(&entry.name) else { return Ok(()) };
            if age < GARBAGE_HOURS * 3_600_000_000 {
                return Ok(());
            }
            if known.as_ref().is_none_or(|(of, _)| *of != handle) {
                let read = match self.read_ref(&handle) {
                    // The ref may name any pack.
                    Err(Error::UnopenedSession { .. }) => return Ok(()),
                    read => read?,
                };
                let packs = read.map(|read| read.opened.content.packs).unwrap_or_default();
                known = Some((handle, packs.iter().map(|pack| pack.name).collect()));
            }
            if known.as_ref().is_some_and(|(_, packs)| !packs.contains(&pack)) {
                self.depot.remove(&entry.name)?;
                removed += 1;
            }
            Ok(())
        })?;
        Ok(removed)
    }

    const fn place(&self, handle: SessionHandle) -> SessionPlace {
        SessionPlace { remote: self.id, handle }
    }

    /// Calls a function for each object in a folder of the depot, in the order of the names.
    fn each(&self, prefix: &str, visit: &mut dyn FnMut(&DepotEntry) -> Result<()>) -> Result<()> {
        let mut after = String::new();
        loop {
            let entries = self.depot.list(prefix, &after)?;
            entries.iter().try_for_each(&mut *visit)?;
            match entries.last() {
                Some(last) if entries.len() >= DEPOT_LIST_ENTRIES => after.clone_from(&last.name),
                _ => return Ok(()),
            }
        }
    }

    /// Reads the ref of a session; `None` if there is none.
    fn read_ref(&self, handle: &SessionHandle) -> Result<Option<ReadRef>> {
        match self.depot.get(&ref_name(handle), None)? {
            DepotRead::Whole { bytes, tag } => self.opened(handle, bytes, tag).map(Some),
            DepotRead::Absent | DepotRead::Unchanged => Ok(None),
        }
    }

    fn opened(&self, handle: &SessionHandle, stored: Vec<u8>, tag: DepotTag) -> Result<ReadRef> {
        let key = self.keys.session(handle)?;
        let accepts_earlier = self.earlier.is_leaving() || self.accepts_history;
        let earlier = self.earlier.session(handle).filter(|_| accepts_earlier);
        match open_ref(&self.place(*handle), (&key, earlier.as_ref()), &stored) {
            Ok((opened, _)) => Ok(ReadRef { tag, stored, opened }),
            Err(error) => Err(self.why_unopened(error, handle)),
        }
    }
}

/// Returns whether an error is about one ref, so that the other refs of the remote may open.
const fn is_of_ref(error: &Error) -> bool {
    matches!(
        error,
        Error::RemoteFormat(_)
            | Error::Depot(DepotError::Damaged { .. })
            | Error::UnopenedSession { .. }
    )
}

/// Returns the error for an object of a remote that does not open. If the object is damaged, the
/// error names it.
fn unopened_object(name: String, error: RemoteFormatError) -> Error {
    match error {
        RemoteFormatError::Damaged { reason, .. } => DepotError::Damaged { name, reason }.into(),
        other => other.into(),
    }
}

/// Reads the marker of a remote; `None` if the depot is no remote.
fn read_marker(depot: &dyn Depot) -> Result<Option<RemoteMarker>> {
    match depot.get(REMOTE_MARKER_NAME, None)? {
        DepotRead::Whole { bytes, .. } => Ok(Some(RemoteMarker::decode(&bytes)?)),
        DepotRead::Absent | DepotRead::Unchanged => Ok(None),
    }
}
