//! Pushes a session: stores what is new as a pack, then writes the ref that names the pack.

use super::noticed::{is_secret, search_for};
use super::track::{KnownRef, SharedPart};
use super::{DepotTag, DepotWrite, Remote, RewriteReason};
use crate::engine::random::random;
use crate::engine::refs::session as session_refs;
use crate::error::{DepotError, Error, Result};
use crate::format::remote::{
    MAX_INLINE_BYTES, MAX_INLINE_PACK_BYTES, PackKey, PurgeTrack, RefPack, RefSummary, RemoteRef,
    ReplacedPacks, SealedRef, SeenRef, pack_name, ref_name, seal_pack,
};
use crate::format::{ExportMark, RecordBytes};
use crate::model::{
    CloneId, PackHash, PackId, RefNonce, SessionHandle, SessionId, SessionMetadata, Timestamp,
};
use crate::store::{
    BundleExportReport, BundleRange, JoinedWork, Session, SessionSummary, Store, WriteContext,
};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::thread;
use std::time::Duration;

/// Maximum number of attempts of a push while others push the same session.
const MAX_ATTEMPTS: u32 = 8;
/// Maximum number of attempts to store a pack, each under another name, if answers are lost.
const MAX_PACK_ATTEMPTS: u32 = 3;
/// If a push takes longer, it stores its pack again: until a ref names a pack, others may remove it
/// as garbage.
const MAX_PACK_AGE: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of packs of about the same size in a ref: if there are more, they are combined.
const MAX_PACKS_OF_A_SIZE: usize = 8;

/// What a push did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// The name of the session.
    pub session: String,
    /// The version of its ref now; 0 if it is not on the remote.
    pub version: u64,
    /// How many operations were pushed; 0 if there was nothing new.
    pub operations: u64,
    /// The size of the pack that was pushed, as stored.
    pub bytes: u64,
    /// Why the packs of the session on the remote were replaced, if they were.
    pub rewritten: Option<RewriteReason>,
    /// How many operations of others the push pulled first.
    pub pulled: u64,
    /// What changed in the work that was not pushed yet, if the push pulled first.
    pub joined: JoinedWork,
}

/// A pack that is not on the remote yet.
struct NewPack {
    pack: RefPack,
    /// How many of its operations are new.
    operations: u64,
    /// Where its part of the session begins.
    begin: ExportMark,
    /// Where its part of the session ends.
    end: ExportMark,
    /// Why it replaces all earlier packs, if it does.
    replaces: Option<RewriteReason>,
}

struct Push<'a> {
    store: &'a Store,
    remote: &'a Remote,
    session: Session,
    handle: SessionHandle,
    by: CloneId,
    now: Timestamp,
    /// The secrets in the new data that were purged elsewhere.
    brought_back: BTreeSet<String>,
    /// Whether secrets are pushed although they were purged elsewhere and cannot be purged here.
    keeps_unpurged: bool,
}

impl Store {
    /// Pushes what was written to a session since it was last pushed or pulled. What others pushed
    /// meanwhile is pulled first, and what others purged is purged here. The session is durable
    /// here before it is on the remote.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the session was changed here and on the remote and the changes cannot
    /// be joined, or if others push it all the time; [`Error::UnpushedSecrets`] if this store's
    /// rules find secrets in it; [`Error::PurgedSecrets`] if it has secrets that were purged
    /// elsewhere and cannot be purged here; [`Error::NotGranted`] if the remote was opened with the
    /// grant of another session; any error of a pull or of the depot.
    pub fn push(
        &self,
        act: &WriteContext,
        remote: &Remote,
        session: &Session,
    ) -> Result<PushReport> {
        let _locked = remote.lock(self)?;
        let info = session.summary()?.info;
        let handle = remote.handle(&info.id)?;
        let by = CloneId::from_bytes(self.engine.marker.id);
        let session = session.clone();
        let mut push = Push {
            store: self,
            remote,
            session,
            handle,
            by,
            now: act.now,
            brought_back: BTreeSet::new(),
            keeps_unpurged: false,
        };
        let mut report = PushReport { session: info.name.clone(), ..PushReport::default() };
        // Whether the operations of the session have another order here than on the remote.
        let mut has_other_order = false;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                thread::park_timeout(pause(attempt)?);
            }
            let track = self.exchange_purges(act, remote)?;
            let mut known = remote.current_ref(self, &handle)?;
            if let Some(last) = known.take_if(|known| known.is_reordered())
                && (!remote.accepts_history || has_other_order)
            {
                match push.reordered(last, &track)? {
                    ReorderedPush::Nothing(version) => {
                        self.preview_pull(remote, &handle)?;
                        return Ok(PushReport { version, ..report });
                    }
                    ReorderedPush::Rewrite(last) => known = Some(*last),
                    ReorderedPush::Join => {}
                }
            }
            let mut there = None;
            if remote.must_read_before_write(self, &handle, known.as_ref(), attempt == 0) {
                there = remote.read_current(self, &handle, known.as_ref())?;
                if there.is_none() {
                    known = None;
                }
            }
            if there.is_none() {
                if push.try_once(known.as_ref(), &track, &mut report)? {
                    return Ok(report);
                }
                if !push.brought_back.is_empty() {
                    push.purge_again(act, track)?;
                    continue;
                }
                there = remote.read_current(self, &handle, known.as_ref())?;
            }
            if let Some(there) = there {
                let known = known.as_ref().filter(|known| !known.is_reordered());
                let tag = there.tag.clone();
                let taken = match self.take_in(act, remote, &handle, known, there, None) {
                    Err(Error::OtherOrder { .. })
                        if remote.has_other_order(self, &handle, &tag)? =>
                    {
                        has_other_order = true;
                        continue;
                    }
                    taken => taken?,
                };
                report.pulled += taken.operations;
                report.joined.extend(taken.joined);
                // If the pull joined the session, another one has replaced it in this store.
                push.session = self.pulled_session(info.id)?;
            }
        }
        Err(Error::Conflict(format!(
            "the session '{}' was changed during each of {MAX_ATTEMPTS} attempts: try again later",
            report.session
        )))
    }
}

impl Store {
    /// Exports the part of a session after a mark; for the default mark, the whole session.
    pub(super) fn exported(
        &self,
        session: &Session,
        begin: &ExportMark,
    ) -> Result<(BundleExportReport, Vec<u8>)> {
        let mut bytes = Vec::new();
        let write = &mut |part: &[u8]| -> Result<()> {
            bytes.extend_from_slice(part);
            Ok(())
        };
        let written = if *begin == ExportMark::default() {
            let range = BundleRange { session: session.clone(), from: 0, to: None };
            self.export_bundle(&[range], write)?
        } else {
            self.export_bundle_since(session, begin, write)?
        };
        Ok((written, bytes))
    }
}

/// What a push does with a session whose operations have another order here than on the remote.
enum ReorderedPush {
    /// Nothing is new. Contains the version of the ref.
    Nothing(u64),
    /// The push writes the session again in the order that it has here, unless others pushed
    /// meanwhile. Contains the ref to replace.
    Rewrite(Box<KnownRef>),
    /// The session must be joined with this remote too.
    Join,
}

impl Push<'_> {
    /// Returns what the push does, given that a join with another remote has changed the order of
    /// the session here. `last` is the last known ref.
    fn reordered(&self, last: KnownRef, track: &PurgeTrack) -> Result<ReorderedPush> {
        let reason = self.store.rewrite_reason(&self.session, &last.shared, track)?;
        let content = &last.read.opened.content;
        if reason.is_none() && self.store.unshared(&self.session, Some(&last.shared))?.0 == 0 {
            return Ok(ReorderedPush::Nothing(content.version));
        }
        let is_own = self.store.is_only_pusher(content);
        Ok(match is_own || reason == Some(RewriteReason::Purged) {
            true => ReorderedPush::Rewrite(Box::new(last)),
            false => ReorderedPush::Join,
        })
    }

    /// Tries to push what is new. Returns `false` if nothing was pushed: the ref is not the known
    /// one any more, storing took too long, or the new data has secrets that were purged elsewhere.
    fn try_once(
        &mut self,
        known: Option<&KnownRef>,
        track: &PurgeTrack,
        report: &mut PushReport,
    ) -> Result<bool> {
        let since = self.remote.depot.uptime();
        let old = known.map(|known| &known.read.opened.content);
        let version = old.map_or(0, |old| old.version) + 1;
        let Some(new) = self.new_pack(known, version, track)? else {
            if !self.brought_back.is_empty() {
                return Ok(false);
            }
            // The remote may have lost the session or been set back since.
            self.store.preview_pull(self.remote, &self.handle)?;
            report.version = version - 1;
            return Ok(true);
        };
        let kept = match known {
            Some(known) if new.replaces.is_none() => {
                let packs = known.read.opened.content.packs.iter().cloned();
                let pairs = packs.zip(known.begins.iter().copied());
                pairs.filter(|(pack, _)| pack.last < new.pack.first).collect()
            }
            _ => Vec::new(),
        };
        let (mut packs, mut begins): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        let (operations, size) = (new.operations, new.pack.bytes);
        packs.push(new.pack);
        begins.push(new.begin);
        let (mut info, summary) = self.ref_summary()?;
        if let Some(old) = old {
            // The session may have another name here.
            info.name.clone_from(&old.info.name);
        }
        let content = RemoteRef {
            version,
            links: known.map(|known| known.read.opened.next_links()).unwrap_or_default(),
            by: self.by,
            nonce: RefNonce::from_bytes(random()?),
            info,
            home: old.map_or(self.by, |old| old.home),
            purges: match self.remote.notices_key() {
                Some(_) if !self.keeps_unpurged => track.searched,
                // This push searched for none, for example since a grant cannot read notices. Zero
                // makes others search for all of them.
                _ => 0,
            },
            packs,
            summary,
        };
        if self.remote.depot.uptime().saturating_sub(since) > MAX_PACK_AGE {
            return Ok(false);
        }
        if new.replaces.is_some() {
            self.note_replaced(old.map_or(&[], |old| &old.packs))?;
        }
        let tag = known.map(|known| &known.read.tag);
        let Some((tag, SealedRef { bytes, link })) =
            self.remote.write_ref(&self.handle, tag, &content)?
        else {
            return Ok(false);
        };
        (report.version, report.operations, report.bytes) = (version, operations, size);
        report.rewritten = new.replaces;
        let (end, last) = (new.end, content.summary.last_sequence);
        let shared = SharedPart { end, last, unshared: None };
        let kept = (&self.handle, self.session.number);
        self.remote.keep_ref(self.store, kept, (&tag, bytes), (begins, shared))?;
        self.remote.note_seen(self.store, &self.handle, &SeenRef { version, link });
        if new.replaces.is_some() {
            let mut track = self.store.purge_track(self.remote.id)?;
            track.rewrites.retain(|id| *id != content.info.id);
            self.store.keep_purge_track(self.remote.id, &track)?;
            // A clone that reads packs by the old ref finds that the ref has changed.
            self.remote.remove_replaced_packs(self.store, &mut track)?;
        }
        Ok(true)
    }

    /// Notes packs that must be removed once no ref names them.
    fn note_replaced(&self, packs: &[RefPack]) -> Result<()> {
        let stored = packs.iter().filter(|pack| pack.inline.is_none());
        let packs: Vec<PackId> = stored.map(|pack| pack.name).collect();
        if packs.is_empty() {
            return Ok(());
        }
        let mut track = self.store.purge_track(self.remote.id)?;
        track.replaced.push(ReplacedPacks { handle: self.handle, packs });
        self.store.keep_purge_track(self.remote.id, &track)
    }

    /// Builds and stores the pack of what is new. Returns `None` if nothing is new, or if the new
    /// data has secrets that were purged elsewhere. If there are many packs of about the same size,
    /// the new pack replaces the latest of them.
    fn new_pack(
        &mut self,
        known: Option<&KnownRef>,
        version: u64,
        track: &PurgeTrack,
    ) -> Result<Option<NewPack>> {
        let whole = ExportMark::default();
        // A session in another order is sent as a whole, since its new part cannot be separated.
        let reordered = known.filter(|known| known.is_reordered());
        let searched = KnownRef::end_of(known.filter(|_| reordered.is_none()));
        let mut begin = searched;
        let (mut written, mut bytes) = self.exported(&begin)?;
        let id = self.session.summary()?.info.id;
        let replaces = match known {
            Some(known) => {
                let reason = self.store.rewrite_reason(&self.session, &known.shared, track)?;
                reason.or(reordered.map(|_| RewriteReason::Reordered))
            }
            None => None,
        };
        if known.is_some() && written.records == 0 && replaces.is_none() {
            return Ok(None);
        }
        self.check_secrets(&bytes, &id, track)?;
        if !self.brought_back.is_empty() {
            return Ok(None);
        }
        let operations = match reordered {
            Some(known) => self.store.unshared(&self.session, Some(&known.shared))?.0,
            None => written.operations,
        };
        let mut earlier = 0;
        let mut first = version;
        let (mut inline, mut by) = (0, self.by);
        if let Some(known) = known {
            let packs = &known.read.opened.content.packs;
            let combined =
                if replaces.is_some() { 0 } else { first_combined(packs, bytes.len() as u64) };
            if let (Some(pack), Some(mark)) = (packs.get(combined), known.begins.get(combined)) {
                (first, begin) = if replaces.is_some() { (1, whole) } else { (pack.first, *mark) };
            }
            if begin != searched {
                let end = written.marks.first().copied().unwrap_or_default();
                (written, bytes) = self.exported(&begin)?;
                let view = self.store.engine.follower.written_view()?;
                if Store::was_written_since(&view, self.session.number, end.position)? {
                    // The second export has writes that were not checked for secrets.
                    return self.new_pack(Some(known), version, track);
                }
            }
            let again = packs.get(combined..).unwrap_or_default();
            earlier = again.iter().map(|pack| pack.operations).sum();
            if again.iter().any(|pack| pack.by != self.by) {
                by = CloneId::SEVERAL;
            }
            let kept = packs.iter().take(combined).filter_map(|pack| pack.inline.as_ref());
            inline = kept.map(|bytes| bytes.0.len()).sum();
        }
        for _ in 0..MAX_PACK_ATTEMPTS {
            let (name, key) = (PackId::from_bytes(random()?), PackKey::from_bytes(random()?));
            let sealed = seal_pack(&self.remote.place(self.handle), &name, &key, &bytes)?;
            let is_small =
                sealed.len() <= MAX_INLINE_PACK_BYTES && inline + sealed.len() <= MAX_INLINE_BYTES;
            if !is_small {
                match self.remote.depot.put_new(&pack_name(&self.handle, &name), &sealed) {
                    Ok(DepotWrite::Done(_)) => {}
                    // If the pack was written all the same, no ref names it: it is garbage.
                    Ok(DepotWrite::Conflict) | Err(DepotError::Unsure { .. }) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            let pack = RefPack {
                name,
                first,
                last: version,
                bytes: sealed.len() as u64,
                hash: PackHash::from_bytes(*blake3::hash(&sealed).as_bytes()),
                key,
                operations: earlier + operations,
                by,
                time: self.now,
                inline: is_small.then_some(RecordBytes(sealed)),
            };
            let end = written.marks.first().copied().unwrap_or_default();
            return Ok(Some(NewPack { pack, operations, begin, end, replaces }));
        }
        Err(Error::from(DepotError::Unavailable {
            what: "the answers to several writes were lost: try again later".to_owned(),
            source: None,
        }))
    }

    /// Refuses to push secrets that the store redacts, because a clone that pulls them keeps them.
    /// Notes the secrets that were purged elsewhere and are here again.
    fn check_secrets(&mut self, new: &[u8], id: &SessionId, track: &PurgeTrack) -> Result<()> {
        let redactor = self.store.engine.options.redaction.as_deref();
        let redactor = redactor.filter(|_| !self.remote.allows_secrets);
        let purged = match self.remote.notices_key() {
            Some(_) if !self.keeps_unpurged => search_for(&track.notices),
            _ => None,
        };
        let found =
            self.store.secrets_in_bundle(&mut Cursor::new(new), redactor, purged.as_ref())?;
        self.brought_back = found.purged.into_iter().filter(|one| is_secret(one)).collect();
        if track.held.contains(id) && purged.is_some() && self.brought_back.is_empty() {
            // The secret may be in data that was pushed before the purge elsewhere.
            let whole = self.exported(&ExportMark::default())?.1;
            let whole = &mut Cursor::new(whole);
            let found = self.store.secrets_in_bundle(whole, None, purged.as_ref())?.purged;
            self.brought_back = found.into_iter().filter(|one| is_secret(one)).collect();
            if self.brought_back.is_empty() {
                let mut track = track.clone();
                track.held.retain(|held| held != id);
                self.store.keep_purge_track(self.remote.id, &track)?;
            }
        }
        match found.redacted {
            Some(found) if self.brought_back.is_empty() => {
                let session = self.session.summary()?.info.name;
                Err(Error::UnpushedSecrets { session, found })
            }
            _ => Ok(()),
        }
    }

    /// Purges the secrets that were purged elsewhere and are here again.
    ///
    /// # Errors
    /// [`Error::PurgedSecrets`] if they cannot be purged, unless secrets are allowed.
    fn purge_again(&mut self, act: &WriteContext, mut track: PurgeTrack) -> Result<()> {
        let found = std::mem::take(&mut self.brought_back);
        let id = self.session.summary()?.info.id;
        let holding = self.store.purge_found(act, self.remote, (found, None), Some(&id))?;
        let Some(held) = holding.into_iter().find(|one| one.id == id) else { return Ok(()) };
        if !self.remote.allows_secrets {
            let (session, reason) = (held.name, held.reason);
            return Err(Error::PurgedSecrets { session, reason });
        }
        self.keeps_unpurged = true;
        track.note_held([id].into_iter());
        self.store.keep_purge_track(self.remote.id, &track)
    }

    /// Exports the part of the session after a mark, and makes it durable here: a power cut must
    /// not remove from this store what others can get.
    fn exported(&self, begin: &ExportMark) -> Result<(BundleExportReport, Vec<u8>)> {
        let exported = self.store.exported(&self.session, begin)?;
        self.store.sync()?;
        Ok(exported)
    }

    /// Returns the metadata and the summary of the session for its ref.
    fn ref_summary(&self) -> Result<(SessionMetadata, RefSummary)> {
        let view = self.store.engine.follower.written_view()?;
        let refs = session_refs(&view.refs, self.session.number)?;
        let summary = SessionSummary::of(self.session.number, refs, false);
        let head = refs.branch(refs.current_branch)?.head;
        let described = RefSummary {
            head: head.map(|head| head.id),
            branch: summary.branch,
            branches: summary.branches,
            last_sequence: summary.last_sequence,
            checkpoints: summary.checkpoints,
            claims: summary.claims,
            facts: summary.facts,
            last_event: summary.last_event,
        };
        Ok((summary.info, described))
    }
}

impl Remote {
    /// Writes a ref if the stored one has this tag; without a tag, if none is stored. Returns the
    /// new tag and the ref as stored; `None` if another writer was faster.
    pub(super) fn write_ref(
        &self,
        handle: &SessionHandle,
        tag: Option<&DepotTag>,
        content: &RemoteRef,
    ) -> Result<Option<(DepotTag, SealedRef)>> {
        let sealed = content.seal(&self.place(*handle), &self.keys.session(handle)?)?;
        let name = ref_name(handle);
        let written = match tag {
            Some(tag) => self.depot.swap(&name, tag, &sealed.bytes),
            None => self.depot.put_new(&name, &sealed.bytes),
        };
        match written {
            Ok(DepotWrite::Done(tag)) => Ok(Some((tag, sealed))),
            // An attempt whose answer was lost may have written the ref.
            Ok(DepotWrite::Conflict) | Err(DepotError::Unsure { .. }) => {
                let there = self.read_ref(handle)?;
                let own = there.filter(|read| read.opened.content.nonce == content.nonce);
                Ok(own.map(|read| (read.tag, sealed)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the size class of a pack: sizes of one class differ by a factor of less than 4.
fn size_class(bytes: u64) -> u32 {
    bytes.max(1).ilog2() / 2
}

/// Returns the index of the first pack that the next pack should replace, together with all after
/// it. Packs are combined only if many have about the same size, so that each byte is written at
/// most about once per size class.
fn first_combined(packs: &[RefPack], bytes: u64) -> usize {
    let mut first = packs.len();
    let mut class = size_class(bytes);
    loop {
        let same =
            packs.iter().take(first).rev().take_while(|pack| size_class(pack.bytes) <= class);
        let same = same.count();
        if same < MAX_PACKS_OF_A_SIZE {
            return first;
        }
        first -= same;
        let combined = packs.iter().skip(first).map(|pack| pack.bytes).sum::<u64>() + bytes;
        class = size_class(combined);
    }
}

/// Returns a random time to wait before another attempt: up to 50 ms before the second one, and
/// twice as long before each later one.
fn pause(attempt: u32) -> Result<Duration> {
    let most = 50_u64 << attempt.min(6);
    Ok(Duration::from_millis(u64::from_le_bytes(random()?) % most))
}
