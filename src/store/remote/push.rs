//! Pushing a session: a pack is stored, then the ref is made to name it.

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
    BundleExportReport, BundleRange, Session, SessionSummary, SplitBranch, Store, WriteContext,
};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::thread;
use std::time::Duration;

/// How often a push is tried if others push the same session at the same time.
const MAX_ATTEMPTS: u32 = 8;
/// How often the same pack is stored under another name if the answer is lost.
const MAX_PACK_ATTEMPTS: u32 = 3;
/// A ref never names a pack that was stored longer ago: it may be removed as garbage.
const MAX_PACK_AGE: Duration = Duration::from_secs(12 * 3600);
/// Packs of about the same size are combined if there are more.
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
    /// Why the session was rewritten without what was erased here, if it was.
    pub rewritten: Option<RewriteReason>,
    /// How many operations of others were pulled before.
    pub pulled: u64,
    /// As [`PullReport::renumbered`](super::PullReport::renumbered).
    pub renumbered: Vec<(u64, u64)>,
    /// As [`PullReport::split`](super::PullReport::split).
    pub split: Vec<SplitBranch>,
    /// As [`PullReport::renamed_branches`](super::PullReport::renamed_branches).
    pub renamed_branches: Vec<(String, String)>,
    /// As [`PullReport::checked_out_elsewhere`](super::PullReport::checked_out_elsewhere).
    pub checked_out_elsewhere: Option<String>,
}

/// A pack that is not on the remote yet.
struct NewPack {
    pack: RefPack,
    /// How many of its operations are new.
    operations: u64,
    begin: ExportMark,
    end: ExportMark,
    /// Why it replaces the earlier packs, if it does: they have data that was erased here.
    replaces: Option<RewriteReason>,
}

struct Push<'a> {
    store: &'a Store,
    remote: &'a Remote,
    session: Session,
    handle: SessionHandle,
    by: CloneId,
    now: Timestamp,
    /// The secrets that were purged elsewhere and were found in what is to be pushed.
    brought_back: BTreeSet<String>,
    /// Whether secrets are pushed that were purged elsewhere and cannot be purged here.
    keeps_unpurged: bool,
}

impl Store {
    /// Pushes what was written to a session since it was last pushed or pulled. What others pushed
    /// meanwhile is pulled first, and what others purged is purged here. The session is durable
    /// here before it is on the remote.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the session was changed here and on the remote and both cannot be
    /// joined, or others push it all the time; [`Error::UnpushedSecrets`] if it has secrets by the
    /// rules of this store; [`Error::PurgedSecrets`] if it has secrets that were purged elsewhere
    /// and cannot be purged here; [`Error::NotGranted`] if the remote was opened with the grant of
    /// another session; any error of a pull or of the depot.
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
        // Whether this push has found that the session has another order here than there.
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
                if push.once(known.as_ref(), &track, &mut report)? {
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
                report.renumbered.extend(taken.renumbered);
                report.split.extend(taken.split);
                report.renamed_branches.extend(taken.renamed_branches);
                let elsewhere = taken.checked_out_elsewhere;
                report.checked_out_elsewhere = elsewhere.or(report.checked_out_elsewhere);
                // A session that was joined has replaced the one before.
                push.session = self.pulled_session(info.id)?;
            }
        }
        Err(Error::Conflict(format!(
            "the session '{}' is written to or pushed all the time: try again later",
            report.session
        )))
    }
}

impl Store {
    /// Exports a session from a mark on, which is the default one for the whole session.
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

/// What a push of a session does that has another order here than on the remote.
enum ReorderedPush {
    /// Nothing is new. The version of the ref.
    Nothing(u64),
    /// It writes the session again in the order that it has here, unless others pushed meanwhile.
    Rewrite(Box<KnownRef>),
    /// The session must be joined with this remote too.
    Join,
}

impl Push<'_> {
    /// Returns what a push of a session does which a join with another remote has given another
    /// order.
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

    /// Pushes what is new, if the ref is still the one that is known. Returns whether it was.
    fn once(
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
        let (mut info, summary) = self.described()?;
        if let Some(old) = old {
            // Here it may have another name.
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
                // With a grant no notice can be read: others search all that is pushed.
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
            let mut track = self.remote.purge_track(self.store)?;
            track.rewrites.retain(|id| *id != content.info.id);
            self.remote.keep_purge_track(self.store, &track)?;
            // Others that read the old ref find that it has changed.
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
        let mut track = self.remote.purge_track(self.store)?;
        track.replaced.push(ReplacedPacks { handle: self.handle, packs });
        self.remote.keep_purge_track(self.store, &track)
    }

    /// Makes and stores the pack of what is new; `None` if nothing is, or if it brings back what
    /// was purged. It holds the latest packs too, if there are many of their size.
    fn new_pack(
        &mut self,
        known: Option<&KnownRef>,
        version: u64,
        track: &PurgeTrack,
    ) -> Result<Option<NewPack>> {
        let whole = ExportMark::default();
        // What has another order here is sent as a whole: it has what others pushed elsewhere.
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
                    // What was written meanwhile was not checked for secrets.
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
                    // If it was written, nothing names it, and it is removed as garbage.
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

    /// Refuses to push secrets that the store redacts: others that have pulled them keep them.
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
            // It may have been pushed before it was purged elsewhere.
            let whole = self.exported(&ExportMark::default())?.1;
            let whole = &mut Cursor::new(whole);
            let found = self.store.secrets_in_bundle(whole, None, purged.as_ref())?.purged;
            self.brought_back = found.into_iter().filter(|one| is_secret(one)).collect();
            if self.brought_back.is_empty() {
                let mut track = track.clone();
                track.held.retain(|held| held != id);
                self.remote.keep_purge_track(self.store, &track)?;
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

    /// Purges what was purged elsewhere and is here again.
    ///
    /// # Errors
    /// [`Error::PurgedSecrets`] if it cannot be purged, unless secrets are allowed.
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
        self.remote.keep_purge_track(self.store, &track)
    }

    /// Exports the session from a mark on. It is durable on return: what others get must not be
    /// lost here in a power cut.
    fn exported(&self, begin: &ExportMark) -> Result<(BundleExportReport, Vec<u8>)> {
        let exported = self.store.exported(&self.session, begin)?;
        self.store.sync()?;
        Ok(exported)
    }

    fn described(&self) -> Result<(SessionMetadata, RefSummary)> {
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
    /// Writes a ref, if the one there has this tag, or if there is none. Returns the new tag and
    /// the ref as stored; `None` if another writer was faster.
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
            // An earlier attempt whose answer was lost may have written it.
            Ok(DepotWrite::Conflict) | Err(DepotError::Unsure { .. }) => {
                let there = self.read_ref(handle)?;
                let own = there.filter(|read| read.opened.content.nonce == content.nonce);
                Ok(own.map(|read| (read.tag, sealed)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the size class of a pack: sizes of a class differ by a factor of at most 4.
fn size_class(bytes: u64) -> u32 {
    bytes.max(1).ilog2() / 2
}

/// Returns the index of the first pack that the next one should hold too. Packs are combined when
/// there are many of one size, so that each byte is written about as often as the sizes have
/// classes.
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
