//! Verifies a whole bundle before anything of it is written.

use super::blob_parts::{BlobKey, BlobPart, BundleBlobs, StoredBlobReader};
use super::secret_counter::SecretCounter;
use super::{BundleReader, BundleSource, damaged};
use crate::engine::delta_parts::list_id;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{StoreRefs, advance_by, present_session, session as session_refs};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{
    BranchHead, BundleContents, BundleEnd, BundleItemKind, Delta, DeltaPart, DeltaSide, EntryBytes,
    FactPage, ObjectKind, Record, RecordBytes, RecordChange, ResetSource, RevisionBody,
    RevisionHeader, SequenceRow, decode_entry, decode_key, decode_object, entry_hash, object_id,
    object_kind,
};
use crate::model::{BranchNumber, ObjectId, OperationId, RevisionId, SessionNumber, StateDigest};
use crate::store::Store;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The digest and the number of claims of a state.
type DigestAndCount = (StateDigest, u64);

/// A verified revision: the state from which it starts, if that is known, and the state to which it
/// leads.
#[derive(Clone, Copy)]
struct CheckedRevision {
    id: RevisionId,
    branch: BranchNumber,
    from: Option<DigestAndCount>,
    to: DigestAndCount,
}

type BundleRevisionKey = (SessionNumber, BranchNumber, u64);

/// A fold that was not undone.
#[derive(Clone, Copy)]
struct ActiveFold {
    /// The first folded revision.
    first: u64,
    /// The operation that made the fold.
    pruning: OperationId,
    /// The state from which the last revision started before the fold.
    from: Option<DigestAndCount>,
}

struct BundleVerifier<'a> {
    items: BundleReader<'a>,
    contents: BundleContents,
    /// The position and length of the item with each object.
    objects: HashMap<ObjectId, (u64, usize)>,
    /// The verified revisions of each session, by number.
    known: Vec<HashMap<u64, CheckedRevision>>,
    /// The revisions whose own delta is missing, each with the pruning that folded it, if one did.
    missing_deltas: BTreeMap<BundleRevisionKey, Option<OperationId>>,
    /// The folds whose combined delta is missing, by last and first revision, each with the pruning
    /// of a later fold that covers it, if there is one.
    folds_missing_deltas: BTreeMap<(BundleRevisionKey, u64), Option<OperationId>>,
    /// The folds into each revision, the latest one last.
    folds: HashMap<BundleRevisionKey, Vec<ActiveFold>>,
    swept: HashSet<OperationId>,
    sources: BundleBlobs,
    /// The refs after the records so far, if the bundle needs no data from the store.
    refs: Option<StoreRefs>,
    secrets: SecretCounter<'a>,
    /// The importing store.
    store: &'a Store,
    view: &'a ReadSnapshot,
    /// The number of the session in the store that each range continues.
    local_numbers: Vec<Option<SessionNumber>>,
}

/// Reads a whole bundle and verifies every checksum, hash, digest and number in it. Returns its
/// contents, and the secrets found. A range continues the session `into`, or else the present one
/// with its id.
pub(super) fn verify_bundle<'a>(
    source: &'a mut dyn BundleSource,
    mut secrets: SecretCounter<'a>,
    store: &'a Store,
    (view, into): (&'a ReadSnapshot, Option<SessionNumber>),
) -> Result<(BundleContents, SecretCounter<'a>)> {
    let mut items = BundleReader::begin(source)?;
    let first = items.next()?;
    if first.kind != BundleItemKind::Contents {
        return Err(damaged(first.at, "it does not begin with its contents"));
    }
    let contents =
        BundleContents::decode(&first.content).map_err(|error| damaged(first.at, error))?;
    let mut refs = Some(StoreRefs::default());
    let mut ids = HashSet::new();
    for session in &contents.sessions {
        secrets.info(&session.info);
        if !ids.insert(session.info.id) {
            return Err(damaged(first.at, "it contains a session twice"));
        }
        let change = RecordChange::Session { info: Box::new(session.info.clone()) };
        match &mut refs {
            Some(refs) if !session.needs_earlier() => advance_by(refs, &change)?,
            _ => refs = None,
        }
    }
    let here = contents.sessions.iter().map(|session| {
        // Only a range may need data from the store.
        if !session.needs_earlier() {
            return Ok(None);
        }
        match into {
            Some(number) => Ok(Some(number)),
            None => present_session(&view.refs, session.info.id),
        }
    });
    let mut verifier = BundleVerifier {
        items,
        local_numbers: here.collect::<Result<_>>()?,
        known: vec![HashMap::new(); contents.sessions.len()],
        contents,
        objects: HashMap::new(),
        missing_deltas: BTreeMap::new(),
        folds_missing_deltas: BTreeMap::new(),
        folds: HashMap::new(),
        swept: HashSet::new(),
        sources: BundleBlobs::default(),
        refs,
        secrets,
        store,
        view,
    };
    verifier.all()?;
    verifier.items.finish()?;
    Ok((verifier.contents, verifier.secrets))
}

impl BundleVerifier<'_> {
    fn all(&mut self) -> Result<()> {
        let mut found = BundleEnd::default();
        loop {
            let item = self.items.next()?;
            let wrong = |error: Error| damaged(item.at, crate::engine::verify::chain(&error));
            match item.kind {
                BundleItemKind::Contents => {
                    return Err(damaged(item.at, "it lists its contents twice"));
                }
                BundleItemKind::Object => {
                    found.objects += 1;
                    self.object(&item.content, item.at).map_err(wrong)?;
                }
                BundleItemKind::Record => {
                    found.records += 1;
                    let record =
                        Record::decode(&item.content).map_err(|error| damaged(item.at, error))?;
                    self.secrets.operation(&record.operation);
                    let place = (item.at, item.content.len());
                    for (index, change) in record.changes.into_iter().enumerate() {
                        let place = (place.0, place.1, index);
                        self.change(record.operation.id, change, place).map_err(wrong)?;
                    }
                }
                BundleItemKind::End => {
                    let end = BundleEnd::decode(&item.content)
                        .map_err(|error| damaged(item.at, error))?;
                    if end != found {
                        return Err(damaged(item.at, "the counts at its end are wrong"));
                    }
                    return self.check_missing_deltas().map_err(wrong);
                }
            }
        }
    }

    /// Checks that every revision with missing changes was folded by a pruning that was swept.
    fn check_missing_deltas(&self) -> Result<()> {
        let folds = self.folds_missing_deltas.iter().map(|((place, _), pruning)| (place, pruning));
        for ((_, _, sequence), pruning) in self.missing_deltas.iter().chain(folds) {
            if pruning.is_none_or(|pruning| !self.swept.contains(&pruning)) {
                return Err(Error::invalid(format!("the changes of #{sequence} are not in it")));
            }
        }
        Ok(())
    }

    fn object(&mut self, encoded: &[u8], at: u64) -> Result<()> {
        let kind = object_kind(encoded).map_err(Error::corrupt("an object"))?;
        if kind == ObjectKind::Chunk {
            return Err(Error::invalid("full states are not exchanged"));
        }
        let content = decode_object(kind, encoded).map_err(Error::corrupt("an object"))?;
        let id = object_id(encoded).map_err(Error::corrupt("an object"))?;
        self.secrets.object(kind, &content);
        self.objects.insert(id, (at, encoded.len()));
        Ok(())
    }

    fn change(
        &mut self,
        operation: OperationId,
        mut change: RecordChange,
        place: (u64, usize, usize),
    ) -> Result<()> {
        let number = match change.session_mut() {
            Some(number) if (*number as usize) < self.known.len() => *number,
            _ => return Err(Error::invalid("a record that belongs to no session of it")),
        };
        self.secrets.change(&change);
        match &change {
            RecordChange::Revision { header, body, delta, .. } => {
                self.revision(number, &header.0, &body.0, delta)?;
            }
            RecordChange::Facts { page, count, first, last, .. } => {
                self.facts(page, *count, (*first, *last))?;
            }
            RecordChange::Segment { blob, offset, prefix, object, .. } => {
                let part = BlobPart { offset: *offset, prefix: *prefix, object };
                self.segment((number, blob.clone()), &part, place)?;
            }
            RecordChange::TextMissing { blob, bytes, .. } => {
                self.sources.missing((number, blob.clone()), *bytes)?;
            }
            RecordChange::TextDropped { .. }
            | RecordChange::TextShown { .. }
            | RecordChange::SessionReplaced { .. }
            | RecordChange::SessionAbandoned { .. }
            | RecordChange::SessionDropped { .. }
            | RecordChange::SessionShown { .. } => {
                return Err(Error::invalid("it drops or replaces a session, or drops texts"));
            }
            RecordChange::Branch { head: Some(head), .. } => self.head(number, head)?,
            RecordChange::Folded { branch, first, last, pruning, delta, .. } => {
                self.fold((number, *branch, *last), (*first, *pruning), delta)?;
            }
            RecordChange::Unfolded { branch, last, .. } => {
                self.unfold((number, *branch, *last));
            }
            RecordChange::Swept { operation: pruning, blobs, sessions, .. } => {
                if *pruning != operation || !blobs.is_empty() || !sessions.is_empty() {
                    return Err(Error::invalid("it sweeps what another operation pruned"));
                }
                self.swept.insert(operation);
            }
            _ => {}
        }
        let Some(refs) = &mut self.refs else { return Ok(()) };
        let session = session_refs(refs, number)?;
        match &change {
            RecordChange::Switched { branch, .. } => drop(session.branch(*branch)?),
            RecordChange::Branch { base, .. } => drop(session.branch(*base)?),
            RecordChange::Checkpoint { checkpoint, .. } => {
                session.branch(checkpoint.branch)?;
                if checkpoint.sequence > session.next_sequence
                    || checkpoint.revision.is_some_and(|one| one >= session.next_sequence)
                {
                    return Err(Error::invalid("a number is left out"));
                }
            }
            _ => {}
        }
        advance_by(refs, &change)
    }

    /// Reads the object of a page or of a part of a delta. Returns its id and content.
    fn part(&mut self, kind: ObjectKind, part: &DeltaPart) -> Result<(ObjectId, Vec<u8>)> {
        let named;
        let encoded = match part {
            DeltaPart::Inline(RecordBytes(encoded)) => encoded,
            DeltaPart::Named(id) => {
                named = self.stored(id)?.ok_or_else(|| missing(id))?;
                &named
            }
        };
        let id = object_id(encoded).map_err(Error::corrupt("an object"))?;
        let content = decode_object(kind, encoded).map_err(Error::corrupt("an object"))?;
        if matches!(part, DeltaPart::Inline(_)) {
            self.secrets.object(kind, &content);
        }
        Ok((id, content))
    }

    fn stored(&mut self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let place = self.objects.get(id).copied();
        place.map(|(at, length)| self.items.read_again(at, length)).transpose()
    }

    /// Finds a revision by number, in the bundle or in the session that a range continues.
    fn find(&self, number: SessionNumber, sequence: u64) -> Result<Option<CheckedRevision>> {
        let known = self.known.get(number as usize).and_then(|known| known.get(&sequence));
        if let Some(known) = known {
            return Ok(Some(*known));
        }
        let Some(here) = self.local_numbers.get(number as usize).copied().flatten() else {
            return Ok(None);
        };
        let row = match lineage::sequence_row(self.view, here, sequence)? {
            Some(SequenceRow::Revision(branch)) => RevisionRef { branch, sequence },
            _ => return Ok(None),
        };
        let (head, header) = timeline::head_at(self.view, here, row)?;
        let to = (head.digest, head.count);
        Ok(Some(CheckedRevision { id: head.id, branch: header.branch, from: None, to }))
    }

    /// Checks that the first head of a branch is a known revision.
    fn head(&self, number: SessionNumber, head: &BranchHead) -> Result<()> {
        match self.find(number, head.sequence)? {
            Some(known) if (known.id, known.to) == (head.id, (head.digest, head.count)) => Ok(()),
            None if self.refs.is_none() => Ok(()),
            _ => Err(Error::invalid("the base revision of a branch is not in it")),
        }
    }

    fn revision(
        &mut self,
        number: SessionNumber,
        encoded: &[u8],
        body: &[u8],
        delta: &[DeltaPart],
    ) -> Result<()> {
        let header = RevisionHeader::decode(encoded).map_err(Error::corrupt("a revision"))?;
        let what = format!("revision #{}", header.sequence);
        let wrong =
            |reason: &'static str| Error::Corrupt { what: what.clone(), source: reason.into() };
        let session = self.contents.sessions.get(number as usize);
        if session.is_none_or(|session| session.info.id != header.session) {
            return Err(wrong("it is of another session"));
        }
        let resets = match &header.reset {
            Some(ResetSource::To(parent)) => Some(parent),
            _ => None,
        };
        for parent in header.parents.iter().chain(resets) {
            if self.find(number, parent.sequence)?.is_some_and(|known| known.id != parent.id) {
                return Err(wrong("its parent is another revision"));
            }
        }
        let from = match header.start() {
            None => Some((StateDigest::EMPTY, 0)),
            Some(from) => self.find(number, from.sequence)?.map(|known| known.to),
        };
        if from.is_none() && self.refs.is_some() {
            return Err(wrong("its parent is missing"));
        }
        let to = (header.digest, header.count);
        let (names, sum) = self.changes(delta, from)?;
        let own_body = RevisionBody::name(body) == header.body;
        if list_id(&names) == header.delta && own_body {
            if sum.is_some_and(|sum| sum != to) {
                return Err(wrong("its delta does not lead to its digest"));
            }
        } else if delta.is_empty() && (own_body || body.is_empty()) {
            // The changes may have been swept. Then the revision must be folded, and the fold
            // swept.
            self.missing_deltas.insert((number, header.branch, header.sequence), None);
        } else if own_body {
            return Err(wrong("its delta is that of another revision"));
        } else {
            return Err(wrong("its body is that of another revision"));
        }
        let known =
            CheckedRevision { id: RevisionHeader::id_of(encoded), branch: header.branch, from, to };
        if let Some(all) = self.known.get_mut(number as usize) {
            all.insert(header.sequence, known);
        }
        Ok(())
    }

    /// Returns the names of the parts of a delta, and the state to which they lead from `from`.
    fn changes(
        &mut self,
        delta: &[DeltaPart],
        from: Option<DigestAndCount>,
    ) -> Result<(Vec<ObjectId>, Option<DigestAndCount>)> {
        let (mut names, mut sum) = (Vec::new(), from);
        for part in delta {
            let (_, content) = self.part(ObjectKind::Delta, part)?;
            names.push(Delta::name(&content));
            let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
            for change in &delta.changes {
                decode_key(&change.key).map_err(Error::corrupt("a claim"))?;
                let (old, new) = (self.side(&change.old)?, self.side(&change.new)?);
                if let Some((digest, count)) = &mut sum {
                    if let Some(old) = &old {
                        *digest = digest.minus(&entry_hash(&change.key, old));
                        *count = count.wrapping_sub(1);
                    }
                    if let Some(new) = &new {
                        *digest = digest.plus(&entry_hash(&change.key, new));
                        *count = count.wrapping_add(1);
                    }
                }
                for entry in [&old, &new].into_iter().flatten() {
                    decode_entry(entry).map_err(Error::corrupt("a claim"))?;
                }
            }
        }
        Ok((names, sum))
    }

    fn side(&mut self, side: &DeltaSide) -> Result<Option<EntryBytes>> {
        Ok(match side {
            DeltaSide::Absent => None,
            DeltaSide::Inline(entry) => Some(EntryBytes::clone(entry)),
            DeltaSide::Blob(id) => {
                let encoded = self.stored(id)?.ok_or_else(|| missing(id))?;
                let content = decode_object(ObjectKind::Blob, &encoded);
                Some(content.map_err(Error::corrupt("a large value"))?.into())
            }
        })
    }

    /// Checks that the combined changes of a fold lead to the state of its last revision.
    fn fold(
        &mut self,
        (number, branch, last): BundleRevisionKey,
        (first, pruning): (u64, OperationId),
        delta: &[DeltaPart],
    ) -> Result<()> {
        let start = self.find(number, first)?;
        let end = self.find(number, last)?;
        let from = start.and_then(|start| start.from);
        let (_, sum) = self.changes(delta, from)?;
        let leads = match (sum, end) {
            (Some(sum), Some(end)) => sum == end.to,
            // The first state is in the store, and the import checks it there.
            _ => self.refs.is_none(),
        };
        if !leads && !delta.is_empty() {
            return Err(Error::invalid(format!(
                "the changes that were folded into #{last} do not lead to its state"
            )));
        }
        let before = self.folds.get(&(number, branch, last)).and_then(|folds| folds.last());
        let again = before.is_some_and(|before| before.first <= first);
        if again || first >= last || start.is_some_and(|start| start.branch != branch) {
            return Err(Error::invalid(format!(
                "nothing can be folded into #{last} from #{first}"
            )));
        }
        let known = self.known.get_mut(number as usize);
        if let Some(known) = known.and_then(|known| known.get_mut(&last)) {
            if known.branch != branch {
                return Err(Error::invalid(format!("#{last} is on another branch")));
            }
            known.from = from;
        }
        let span = (number, branch, first)..=(number, branch, last);
        for (_, folded) in self.missing_deltas.range_mut(span) {
            *folded = folded.or(Some(pruning));
        }
        let (start, end_of) = (((number, branch, first), 0), ((number, branch, last), u64::MAX));
        for (_, folded) in self.folds_missing_deltas.range_mut(start..=end_of) {
            *folded = folded.or(Some(pruning));
        }
        // The last revision stays visible, so it must be folded again if its changes are missing.
        if !leads {
            self.folds_missing_deltas.insert(((number, branch, last), first), None);
        }
        let before = ActiveFold { first, pruning, from: end.and_then(|end| end.from) };
        self.folds.entry((number, branch, last)).or_default().push(before);
        Ok(())
    }

    fn unfold(&mut self, place: BundleRevisionKey) {
        let folds = self.folds.get_mut(&place);
        let Some(ActiveFold { first, pruning, from }) = folds.and_then(Vec::pop) else { return };
        let known = self.known.get_mut(place.0 as usize);
        if let Some(known) = known.and_then(|known| known.get_mut(&place.2)) {
            known.from = from;
        }
        self.folds_missing_deltas.remove(&(place, first));
        let begin = (place.0, place.1, first);
        let revisions = self.missing_deltas.range_mut(begin..=place).map(|(_, folded)| folded);
        let folds = self
            .folds_missing_deltas
            .range_mut((begin, 0)..=(place, u64::MAX))
            .map(|(_, folded)| folded);
        for folded in revisions.chain(folds) {
            if *folded == Some(pruning) {
                *folded = None;
            }
        }
    }

    fn facts(
        &mut self,
        page: &DeltaPart,
        count: u64,
        (first, last): (crate::model::Timestamp, crate::model::Timestamp),
    ) -> Result<()> {
        let (_, content) = self.part(ObjectKind::Page, page)?;
        let page = FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))?;
        let times = || page.facts.iter().map(|fact| fact.at);
        if page.facts.len() as u64 != count
            || times().min().is_some_and(|found| found != first)
            || times().max().is_some_and(|found| found != last)
        {
            return Err(Error::invalid("a page of facts has another count or other times"));
        }
        Ok(())
    }

    fn segment(
        &mut self,
        name: BlobKey,
        part: &BlobPart<'_>,
        place: (u64, usize, usize),
    ) -> Result<()> {
        let here = self.local_numbers.get(name.0 as usize).copied().flatten();
        let (store, view) = (self.store, self.view);
        let read = move |name: &BlobKey, from: u64, to: u64| -> Result<Vec<u8>> {
            let Some(here) = here else { return Ok(Vec::new()) };
            let dropped = session_refs(&view.refs, here)?.dropped(&name.1);
            let from = from.max(dropped);
            let length = to.saturating_sub(from);
            let (start, bytes) = store.engine.blobs.read(view, here, &name.1, from, length)?;
            let begin = usize::try_from(from - start).unwrap_or(usize::MAX);
            let end = usize::try_from(to - start).unwrap_or(usize::MAX).min(bytes.len());
            Ok(bytes.get(begin..end).unwrap_or_default().to_vec())
        };
        let before: Option<StoredBlobReader<'_>> = if here.is_some() { Some(&read) } else { None };
        self.sources.take((&mut self.items, before), &mut self.secrets, name, part, place)
    }
}

fn missing(id: &ObjectId) -> Error {
    Error::invalid(format!("the object {id} is not in it"))
}
