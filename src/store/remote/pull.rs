//! Pulls a session: imports the packs that are new.

use super::join::Joined;
use super::track::{KnownRef, SharedPart};
use super::{DepotRead, ReadRef, Remote, unopened_object};
use crate::engine::checkpoint;
use crate::engine::index::find_operation_of;
use crate::engine::journal_follower::IDLE_TAIL_BYTES;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{present_session, session as session_refs};
use crate::error::{DepotError, Error, Result};
use crate::format::remote::{ForeignOperations, RefPack, open_pack, pack_name, ref_name};
use crate::format::{ExportMark, OperationEffect};
use crate::model::{
    BranchNumber, BranchStatus, CloneId, OperationId, SessionHandle, SessionId, SessionNumber,
};
use crate::store::bundle::PackTarget;
use crate::store::{JoinedWork, Session, Store, WriteContext};
use std::collections::{BTreeSet, HashMap};
use std::io::Cursor;

/// The maximum number of attempts to import the packs of a ref while others combine them.
const MAX_ATTEMPTS: u32 = 5;

/// An attempt to import a session from a version of its ref.
pub(super) struct Pull<'a> {
    pub(super) store: &'a Store,
    pub(super) act: &'a WriteContext,
    pub(super) remote: &'a Remote,
    pub(super) handle: &'a SessionHandle,
    pub(super) read: &'a ReadRef,
}

/// What was imported from packs.
#[derive(Default)]
pub(super) struct TakenPacks {
    pub(super) operations: u64,
    pub(super) secrets: Vec<String>,
    /// Where each pack of the ref begins in this store.
    pub(super) begins: Vec<ExportMark>,
    /// The number of effects of each operation in the packs.
    pub(super) effects: HashMap<OperationId, usize>,
    /// The branch that was checked out last in another store.
    checked_out_elsewhere: Option<BranchNumber>,
}

/// What the packs of a ref brought to this store.
pub(super) struct TakenRef {
    pub(super) packs: TakenPacks,
    /// The end of the part of the session that is on the remote.
    pub(super) end: ExportMark,
    /// What was written here and follows that end now, if the session was joined.
    pub(super) joined: Option<JoinedWork>,
}

/// The operations that a session had before a pull.
enum KnownOperations {
    /// The operations of a session in a snapshot.
    Seen(Box<ReadSnapshot>, SessionNumber),
    /// These operations, each with its number of effects.
    Listed(HashMap<OperationId, usize>),
}

impl KnownOperations {
    /// Returns how many effects an operation had; `None` if it was not there.
    fn effects(&self, operation: &OperationId) -> Result<Option<usize>> {
        match self {
            Self::Seen(view, session) => {
                let row = find_operation_of(&**view, *session, operation)?;
                Ok(row.map(|row| row.effects.len()))
            }
            Self::Listed(known) => Ok(known.get(operation).copied()),
        }
    }
}

/// What a pull did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullReport {
    /// The name of the session here.
    pub session: String,
    /// The version of its ref.
    pub version: u64,
    /// How many operations were new here.
    pub operations: u64,
    /// The secrets in what was pulled that this store redacts, in words. A pull does not remove
    /// them, because that would change ids: a purge replaces them everywhere.
    pub secrets: Vec<String>,
    /// What changed in the work of this store that was not pushed yet.
    pub joined: JoinedWork,
}

impl Store {
    /// Pulls what others have pushed of a session, after purging here what they purged. `name`
    /// replaces the name of a session that is new here.
    ///
    /// If the session was changed here and on the remote, both sides are joined: what was pushed
    /// keeps its ids and numbers, and what was not pushed follows it. If both sides changed the
    /// same claim, the changes of this store go to another branch ([`JoinedWork::split`]), which is
    /// merged at once if that needs no decision.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the session is not on the remote; [`Error::Conflict`] if the two
    /// sides cannot be joined, or would have to be joined against [`Remote::refusing_joins`];
    /// [`Error::OtherOrder`] if a join with another remote reordered the session here;
    /// [`Error::RemoteHistory`] if the remote has another history of it than was seen;
    /// [`Error::LostNotices`] if purge notices are missing on the remote; any error of an import or
    /// of the depot.
    pub fn pull(
        &self,
        act: &WriteContext,
        remote: &Remote,
        handle: &SessionHandle,
        name: Option<&str>,
    ) -> Result<PullReport> {
        let _locked = remote.lock(self)?;
        self.exchange_purges(act, remote)?;
        let known = remote.last_ref(self, handle)?;
        let tag = known.as_ref().map(|known| &known.read.tag);
        match (remote.depot.get(&ref_name(handle), tag)?, known) {
            (DepotRead::Whole { bytes, tag }, known) => {
                let read = remote.opened(handle, bytes, tag)?;
                let known = known.filter(|known| !known.is_reordered());
                let now = read.tag.clone();
                match self.take_in(act, remote, handle, known.as_ref(), read, name) {
                    Err(Error::OtherOrder { session }) => {
                        // If this store already has everything in this ref, nothing is new.
                        let last = remote.last_ref(self, handle)?;
                        let last = last.filter(|it| it.is_reordered() && it.read.tag == now);
                        let last = last.ok_or(Error::OtherOrder { session })?;
                        self.nothing_new(remote, handle, last)
                    }
                    taken => taken,
                }
            }
            (DepotRead::Unchanged, Some(known)) => {
                remote.check_history(self, handle, None, &known.read)?;
                self.nothing_new(remote, handle, known)
            }
            (DepotRead::Absent | DepotRead::Unchanged, known) => {
                remote.check_absent(self, handle, known.as_ref())?;
                Err(Error::not_found("session on the remote", handle.to_string()))
            }
        }
    }

    /// Returns the report of a pull that found nothing new, and notes the ref as seen.
    fn nothing_new(
        &self,
        remote: &Remote,
        handle: &SessionHandle,
        known: KnownRef,
    ) -> Result<PullReport> {
        remote.note_seen(self, handle, &known.read.opened.seen());
        let content = known.read.opened.content;
        self.remove_pull_marks(content.info.id)?;
        let session = self.shared_session(content.info.id)?;
        let summary = session.map(|session| session.summary()).transpose()?;
        let session = summary.map_or(content.info.name, |summary| summary.info.name);
        Ok(PullReport { session, version: content.version, ..PullReport::default() })
    }

    /// Returns the session with this id, if it is here and was not removed.
    pub(super) fn shared_session(&self, id: SessionId) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.written_refs()?;
        Ok(present_session(&refs, id)?.map(|number| self.session_at(number)))
    }

    /// Imports the packs of a ref that are new, and notes the ref as known.
    pub(super) fn take_in(
        &self,
        act: &WriteContext,
        remote: &Remote,
        handle: &SessionHandle,
        known: Option<&KnownRef>,
        mut read: ReadRef,
        name: Option<&str>,
    ) -> Result<PullReport> {
        for _ in 0..MAX_ATTEMPTS {
            let pull = Pull { store: self, act, remote, handle, read: &read };
            match pull.take_in_once(known, name) {
                Err(Error::Depot(DepotError::Damaged { name: lost, reason })) => {
                    // Packs may have been combined since the ref was read.
                    match remote.read_ref(handle)? {
                        Some(now) if now.tag != read.tag => read = now,
                        _ => return Err(DepotError::Damaged { name: lost, reason }.into()),
                    }
                }
                other => return other,
            }
        }
        Err(Error::Conflict("the session is pushed all the time: try again later".to_owned()))
    }

    /// Returns the operations that a session has. They are listed if what is pulled may be purged:
    /// a purge would have to wait for an open snapshot.
    fn known_operations(
        &self,
        session: Option<SessionNumber>,
        may_purge: bool,
    ) -> Result<KnownOperations> {
        Ok(match session {
            None => KnownOperations::Listed(HashMap::new()),
            Some(session) if may_purge => KnownOperations::Listed(self.operation_effects(session)?),
            Some(session) => {
                KnownOperations::Seen(Box::new(self.engine.follower.written_view()?), session)
            }
        })
    }

    /// Returns how many of the checkpoints up to the number `last` these operations have removed.
    fn removed_checkpoints(
        &self,
        session: SessionNumber,
        operations: &[OperationId],
        last: u64,
    ) -> Result<u64> {
        let view = self.engine.follower.written_view()?;
        let mut hidden = BTreeSet::new();
        for operation in operations {
            let row = find_operation_of(&view, session, operation)?;
            let Some(row) = row.filter(|row| row.taken_back_by.is_none()) else { continue };
            for effect in &row.effects {
                match effect {
                    OperationEffect::CheckpointHidden { old } if old.sequence <= last => {
                        hidden.insert(old.id);
                    }
                    OperationEffect::Swept { checkpoints, .. } => {
                        let known = checkpoints.iter().filter(|(sequence, _)| *sequence <= last);
                        hidden.extend(known.map(|(_, id)| *id));
                    }
                    _ => {}
                }
            }
        }
        // A checkpoint that was replaced, or brought back later, is still here.
        let mut removed = 0;
        for id in &hidden {
            removed += u64::from(checkpoint::by_id(&view, session, id)?.is_none());
        }
        Ok(removed)
    }

    pub(super) fn pulled_session(&self, id: SessionId) -> Result<Session> {
        let missing = || Error::Internal("a pulled session is missing".to_owned());
        self.shared_session(id)?.ok_or_else(missing)
    }

    /// Returns the mark of the end of a session; the default one if it is not here.
    fn mark_of(&self, id: SessionId) -> Result<ExportMark> {
        match self.shared_session(id)? {
            Some(session) => self.export_mark(session.number),
            None => Ok(ExportMark::default()),
        }
    }
}

impl Pull<'_> {
    fn take_in_once(&self, known: Option<&KnownRef>, name: Option<&str>) -> Result<PullReport> {
        let &Self { store, act, remote, handle, read } = self;
        let content = &read.opened.content;
        let known = remote.check_history(store, handle, known, read)?;
        let mut report = PullReport { version: content.version, ..PullReport::default() };
        let old = store.shared_session(content.info.id)?.map(|session| session.number);
        let since = KnownRef::end_of(known);
        let last = content.summary.last_sequence;
        let is_unsearched = store.note_unsearched(act, remote, content)?;
        let was_purged = old.map_or(Ok(false), |old| store.was_purged_since(old, &since, last))?;
        let here = store.known_operations(old, is_unsearched)?;
        let taken = match old {
            Some(old) => self.take_or_join(old, known)?,
            None => self.take_new(name)?,
        };
        let TakenRef { packs, end, joined } = taken;
        let is_joined = joined.is_some();
        report.joined = joined.unwrap_or_default();
        let begun_by_others = content.home != CloneId::from_bytes(store.engine.marker.id);
        let mut foreign = ForeignOperations { begun_by_others, operations: Vec::new() };
        let mut new = 0;
        for (operation, effects) in &packs.effects {
            let known = here.effects(operation)?;
            foreign.operations.extend(known.is_none().then_some(*operation));
            new += u64::from(known.is_none_or(|known| known < *effects));
        }
        store.note_foreign(content.info.id, &foreign)?;
        let session = store.pulled_session(content.info.id)?;
        if old.is_some() {
            let new = &foreign.operations;
            let removed = store.removed_checkpoints(session.number, new, since.sequence)?;
            report.joined.removed_checkpoints = (removed > 0).then_some(removed);
        }
        let since = if old == Some(session.number) { since } else { ExportMark::default() };
        if was_purged || store.was_purged_since(session.number, &since, last)? {
            self.note_rewrite()?;
        }
        let now = session.summary()?;
        let elsewhere = packs.checked_out_elsewhere.filter(|_| !is_joined);
        if let (Some(branch), Some(old)) = (elsewhere, old) {
            let refs = store.engine.follower.written_refs()?.0;
            let branch = session_refs(&refs, old)?.branch(branch)?;
            let is_active = branch.latest_change().status == BranchStatus::Active;
            let is_elsewhere = is_active && !branch.hidden && branch.name != now.branch;
            report.joined.checked_out_elsewhere = is_elsewhere.then(|| branch.name.clone());
        }
        report.session = now.info.name;
        // A join imports all operations again, so only those that were not here count.
        report.operations = if is_joined { new } else { packs.operations };
        report.secrets = packs.secrets;
        let stored = (&read.tag, read.stored.clone());
        let shared = SharedPart { end, last, unshared: None };
        remote.keep_ref(store, (handle, session.number), stored, (packs.begins, shared))?;
        remote.note_seen(store, handle, &read.opened.seen());
        store.remove_pull_marks(content.info.id)?;
        store.maintain(IDLE_TAIL_BYTES).ok();
        Ok(report)
    }

    /// Imports the packs of a ref that are new.
    pub(super) fn take_packs(
        &self,
        known: Option<&KnownRef>,
        target: PackTarget<'_>,
    ) -> Result<TakenPacks> {
        let &Self { store, act, remote, handle, read } = self;
        let content = &read.opened.content;
        let seen = known.map_or(0, |known| known.read.opened.content.version);
        let mut taken = TakenPacks::default();
        for pack in &content.packs {
            let begin = known.and_then(|known| known.begin_of(pack));
            if pack.last <= seen {
                taken.begins.push(begin.unwrap_or_default());
                continue;
            }
            let before = match target.into {
                Some(into) => store.export_mark(into)?,
                None => store.mark_of(content.info.id)?,
            };
            let mut bytes = Cursor::new(remote.pack(handle, pack)?);
            let import = store.import_pack(act, &mut bytes, target)?;
            let is_new = import.operations == import.effects.len() as u64;
            taken.begins.push(match begin {
                Some(begin) => begin,
                // An export from there must contain the beginning of the session.
                None if taken.begins.is_empty() => ExportMark::default(),
                None if is_new => before,
                // The pack has operations that were here already, after the end of the known part.
                None => KnownRef::end_of(known),
            });
            let elsewhere = import.checked_out_elsewhere;
            taken.checked_out_elsewhere = elsewhere.or(taken.checked_out_elsewhere);
            taken.operations += import.operations;
            taken.secrets.extend(import.secrets);
            for (operation, effects) in import.effects {
                let known = taken.effects.entry(operation).or_default();
                *known = effects.max(*known);
            }
        }
        let track = store.purge_track(remote.id)?;
        store.purge_noticed(act, remote, track, Some(&content.info.id))?;
        Ok(taken)
    }

    /// Notes that the session must be rewritten, unless its ref takes all purges into account.
    fn note_rewrite(&self) -> Result<()> {
        let (store, remote, content) = (self.store, self.remote, &self.read.opened.content);
        let mut track = store.purge_track(remote.id)?;
        let is_current = remote.notices_key().is_some() && content.purges >= track.searched;
        if is_current || track.rewrites.contains(&content.info.id) {
            return Ok(());
        }
        track.rewrites.push(content.info.id);
        store.keep_purge_track(remote.id, &track)
    }

    /// Imports the packs that are new into the session `old`, or joins it with them.
    pub(super) fn take_or_join(
        &self,
        old: SessionNumber,
        known: Option<&KnownRef>,
    ) -> Result<TakenRef> {
        let since = KnownRef::end_of(known);
        let follows = self.can_follow(known, old)?;
        let refused = || refused_join(self.read, known.is_some());
        // Without a track, only reading all packs would show whether they can follow.
        if self.remote.refuses_joins && (!follows || known.is_none()) {
            return Err(refused());
        }
        let keeps_checkout = known.is_some();
        let target = PackTarget { keeps_checkout, ..PackTarget::default() };
        let taken = follows.then(|| self.take_in_order(known, target));
        let must_join = match &taken {
            None | Some(Err(Error::Conflict(_))) => true,
            // A pack cannot continue a session that has another order here.
            Some(Err(Error::Invalid(_))) if known.is_none() => true,
            // Others may have undone a pruning that was swept here.
            Some(Err(_)) => {
                let last = KnownRef::last_of(known);
                self.store.was_erased_since(old, &since, last)?
            }
            Some(Ok(_)) => false,
        };
        match taken {
            Some(taken) if !must_join => taken,
            _ if self.remote.refuses_joins => Err(refused()),
            _ => {
                // The session may have another name here.
                let info = self.store.session_at(old).summary()?.info;
                Ok(self.join(old, known, &info)?.into())
            }
        }
    }

    /// Imports the packs that are new; they follow what is here.
    pub(super) fn take_in_order(
        &self,
        known: Option<&KnownRef>,
        target: PackTarget<'_>,
    ) -> Result<TakenRef> {
        let packs = self.take_packs(known, target)?;
        let since = KnownRef::end_of(known);
        let session = self.store.pulled_session(self.read.opened.content.info.id)?;
        let end = self.store.first_unshared(session.number, &since, &packs.effects)?;
        Ok(TakenRef { packs, end, joined: None })
    }

    /// Returns whether what others pushed can follow what is here: if only facts were written here
    /// since the last exchange, if nothing new was pushed, or if it is not known what was written.
    fn can_follow(&self, known: Option<&KnownRef>, session: SessionNumber) -> Result<bool> {
        let Some(known) = known else { return Ok(true) };
        // A ref without new packs was only written again, such as by a rotation of the key.
        let version = known.read.opened.content.version;
        let mut packs = self.read.opened.content.packs.iter();
        let has_nothing_new = packs.all(|pack| pack.last <= version);
        Ok(has_nothing_new || self.store.wrote_only_facts_since(session, &known.shared.end)?)
    }
}

impl From<Joined> for TakenRef {
    fn from(joined: Joined) -> Self {
        let Joined { packs, reapplied, end } = joined;
        Self { packs, end, joined: Some(reapplied) }
    }
}

/// Returns the error of a pull that would have to join a session, or might have to if the ref is
/// not known.
pub(super) fn refused_join(read: &ReadRef, is_known: bool) -> Error {
    let session = &read.opened.content.info.name;
    Error::Conflict(match is_known {
        true => format!(
            "the session '{session}' was changed here and on the remote: both would have to be \
             joined, and nothing was pulled"
        ),
        false => format!(
            "it is not known what of the session '{session}' is on the remote: it may have to be \
             joined, and nothing was pulled"
        ),
    })
}

impl KnownRef {
    /// Returns where a pack begins in this store, if one that began with the same version is known.
    fn begin_of(&self, pack: &RefPack) -> Option<ExportMark> {
        let mut known = self.read.opened.content.packs.iter().zip(&self.begins);
        known.find(|(other, _)| other.first == pack.first).map(|(_, begin)| *begin)
    }
}

impl Remote {
    /// Reads a pack and decrypts it.
    fn pack(&self, handle: &SessionHandle, pack: &RefPack) -> Result<Vec<u8>> {
        let (object, sealed) = match &pack.inline {
            Some(bytes) => (ref_name(handle), bytes.0.clone()),
            None => {
                let object = pack_name(handle, &pack.name);
                match self.depot.get(&object, None)? {
                    DepotRead::Whole { bytes, .. } => (object, bytes),
                    DepotRead::Absent | DepotRead::Unchanged => {
                        return Err(Error::from(DepotError::Damaged {
                            name: object,
                            reason: "it is not there, though the session needs it".to_owned(),
                        }));
                    }
                }
            }
        };
        let opened = pack
            .check_stored(&sealed)
            .and_then(|()| open_pack(&self.place(*handle), &pack.name, &pack.key, &sealed));
        opened.map_err(|error| unopened_object(object, error))
    }
}
