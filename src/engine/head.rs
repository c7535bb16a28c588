//! What this process remembers of branches' heads, so that a change need not look up what it replaces.

use super::commit::Desk;
use super::lineage::{self, At};
use super::revise::Triple;
use super::{lookup, materialize};
use crate::backend::Position;
use crate::error::{Error, Result};
use crate::format::{
    Delta, DeltaPart, EntryBytes, Head, Header, ObjectKind, RecordChange, Side, entry_hash, open,
};
use crate::model::{BranchNumber, RevisionId, SessionNumber};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A head with more claims than this is looked up claim by claim.
const MAX_WHOLE_COUNT: u64 = 100_000;
/// What is remembered of one branch at most.
const MAX_BYTES: usize = 64 << 20;
/// A process that writes to a branch this often is worth reading its head whole.
const WHOLE_AFTER_USES: u32 = 2;

/// An entry with what it adds to digests, if somebody has reckoned that: it is most of the work of taking it out again.
#[derive(Clone)]
pub(crate) struct Counted {
    pub(crate) entry: EntryBytes,
    pub(crate) term: Option<[u8; 32]>,
}

impl Counted {
    /// What the entry of this key adds to digests.
    pub(crate) fn term(&self, key: &[u8]) -> [u8; 32] {
        self.term.unwrap_or_else(|| entry_hash(key, &self.entry))
    }
}

impl From<EntryBytes> for Counted {
    fn from(entry: EntryBytes) -> Self {
        Self { entry, term: None }
    }
}

#[derive(Default)]
struct Remembered {
    head: Option<RevisionId>,
    /// Records before this position are in it.
    position: Position,
    entries: HashMap<Vec<u8>, Option<Counted>>,
    bytes: usize,
    /// Whether what is not in `entries` is not in the state.
    whole: bool,
    /// Whether all of it was more than is remembered: then it is not tried again.
    too_large: bool,
    uses: u32,
}

/// What is remembered of the heads of branches.
#[derive(Default)]
pub(crate) struct HeadCache(Mutex<Heads>);

#[derive(Default)]
struct Heads {
    branches: HashMap<(SessionNumber, BranchNumber), Remembered>,
    /// How often a secret had been purged by then.
    purges: u64,
}

impl Heads {
    fn of(&mut self, session: SessionNumber, branch: BranchNumber) -> &mut Remembered {
        self.branches.entry((session, branch)).or_default()
    }
}

impl HeadCache {
    /// The entries of these keys at a branch's head.
    pub(crate) fn entries(
        &self,
        desk: &Desk<'_>,
        session: SessionNumber,
        branch: BranchNumber,
        head: Option<&Head>,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Counted>>> {
        let Some(head) = head else { return Ok(vec![None; keys.len()]) };
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A purge changes what a head holds and no id.
        if heads.purges != desk.refs.purges {
            *heads = Heads { purges: desk.refs.purges, ..Heads::default() };
        }
        let known = heads.of(session, branch);
        if known.head != Some(head.id) {
            known.follow(desk, session, branch)?;
        }
        if known.head != Some(head.id) {
            let Remembered { uses, too_large, .. } = *known;
            *known = Remembered { head: Some(head.id), uses, too_large, ..Remembered::default() };
        }
        known.position = desk.engine.live.end();
        known.uses = known.uses.saturating_add(1);
        if known.whole || keys.iter().all(|key| known.entries.contains_key(key)) {
            return Ok(keys.iter().map(|key| known.entries.get(key).cloned().flatten()).collect());
        }
        let view = desk.view()?;
        let at = At {
            branch: branch_of(desk, session, branch, head.sequence)?,
            sequence: head.sequence,
        };
        let worth_it = known.uses > WHOLE_AFTER_USES && head.count <= MAX_WHOLE_COUNT;
        if worth_it && !known.too_large {
            let state = materialize::materialize(&view, &desk.refs, session, at)?;
            known.entries.clear();
            known.bytes = 0;
            for (key, entry) in state.encoded() {
                known.bytes += key.len() + entry.len();
                known.entries.insert(key.to_vec(), Some(EntryBytes::from(entry).into()));
            }
            known.whole = known.bytes <= MAX_BYTES;
            if known.whole {
                return Ok(keys
                    .iter()
                    .map(|key| known.entries.get(key).cloned().flatten())
                    .collect());
            }
            known.too_large = true;
            known.entries.clear();
            known.bytes = 0;
        }
        let stretches = lineage::stretches(&view, &desk.refs, session, at)?;
        let unknown: Vec<_> = keys.iter().filter(|key| !known.entries.contains_key(*key)).collect();
        let found = lookup::entries_in(&view, &desk.refs, session, &stretches, &unknown)?;
        for (key, entry) in unknown.into_iter().zip(found) {
            known.remember(key, entry.map(Counted::from));
        }
        Ok(keys.iter().map(|key| known.entries.get(key).cloned().flatten()).collect())
    }

    /// Notes that a revision by this process has moved a branch's head on.
    pub(crate) fn moved(
        &self,
        position: Position,
        (session, branch): (SessionNumber, BranchNumber),
        from: Option<RevisionId>,
        to: RevisionId,
        changes: &[Triple],
    ) {
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = heads.of(session, branch);
        if known.head != from {
            return;
        }
        known.head = Some(to);
        known.position = position;
        // Before the first revision there is nothing, so nothing else is in the state.
        known.whole |= from.is_none();
        for (key, _, entry) in changes {
            known.remember(key, entry.clone());
        }
        if known.bytes > MAX_BYTES {
            known.entries.clear();
            known.bytes = 0;
            (known.whole, known.too_large) = (false, true);
        }
    }
}

impl Remembered {
    /// Moves on by what others have written since, as far as the journal's tail tells.
    fn follow(
        &mut self,
        desk: &Desk<'_>,
        session: SessionNumber,
        branch: BranchNumber,
    ) -> Result<()> {
        if self.head.is_none() {
            return Ok(());
        }
        let Some(records) = desk.engine.live.records_since(self.position) else { return Ok(()) };
        for change in records.iter().flat_map(|placed| &placed.record.changes) {
            let RecordChange::Revision { session: on, header, delta, .. } = change else {
                continue;
            };
            let header =
                Header::decode(&header.0).map_err(Error::corrupt("a revision's header"))?;
            let follows = header.parents.first().map(|parent| parent.id) == self.head;
            if *on != session || header.branch != branch || !follows {
                continue;
            }
            let inline: Option<Vec<&[u8]>> = delta
                .iter()
                .map(|part| match part {
                    DeltaPart::Inline(sealed) => Some(sealed.0.as_slice()),
                    DeltaPart::Named(_) => None,
                })
                .collect();
            let Some(parts) = inline.filter(|_| header.reset.is_none()) else { return Ok(()) };
            for part in parts {
                let content = open(ObjectKind::Delta, part).map_err(Error::corrupt("a delta"))?;
                let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
                for change in delta.changes {
                    match change.new {
                        Side::Absent => self.remember(&change.key, None),
                        Side::Inline(entry) => self.remember(&change.key, Some(entry.into())),
                        // Not worth reading before somebody asks for it.
                        Side::Blob(_) => {
                            self.entries.remove(&change.key);
                            self.whole = false;
                        }
                    }
                }
            }
            self.head = Some(header.id());
        }
        Ok(())
    }

    fn remember(&mut self, key: &[u8], entry: Option<Counted>) {
        let length = |known: &Option<Counted>| known.as_ref().map_or(0, |known| known.entry.len());
        self.bytes += length(&entry);
        if let Some(known) = self.entries.get_mut(key) {
            self.bytes = self.bytes.saturating_sub(length(known));
            *known = entry;
        } else {
            self.bytes += key.len();
            self.entries.insert(key.to_vec(), entry);
        }
    }
}

/// The branch on which the head of a branch lies: a base, before the branch has a revision of its own.
pub(crate) fn branch_of(
    desk: &Desk<'_>,
    session: SessionNumber,
    branch: BranchNumber,
    sequence: u64,
) -> Result<BranchNumber> {
    head_branch(&desk.refs, session, branch, sequence)
}

/// As [`branch_of`].
pub(crate) fn head_branch(
    refs: &crate::format::Refs,
    session: SessionNumber,
    branch: BranchNumber,
    sequence: u64,
) -> Result<BranchNumber> {
    let session = super::refs::session(refs, session)?;
    let mut branch = branch;
    while let Some((base, from)) = session.branch(branch)?.base {
        if sequence > from || base == branch {
            break;
        }
        branch = base;
    }
    Ok(branch)
}
