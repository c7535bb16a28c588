//! A history that keeps a full copy of everything: slow, and too simple to be wrong.

use forge_store::diff::{AncestorState, ClaimMap};
use forge_store::model::{ClaimEntry, Fact, FactOrigin, Key, Kind, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + micros)
}

#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) branch: usize,
    pub(super) effective: i64,
    pub(super) state: ClaimMap,
    parent: Option<u64>,
    claims: Claims,
}

/// Where the claims of a revision come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claims {
    /// From its parent.
    Parent,
    /// From another revision, or from nothing.
    Reset(Option<u64>),
    /// From its parent and the revision that this operation merged.
    Merged(u64, usize),
}

/// An operation, as needed to undo it.
#[derive(Clone, Debug)]
struct Done {
    /// What was visible before it (for an undo: after it).
    other: Visible,
    /// The branch whose claims changed, and the revision that changed them.
    touched: Option<(usize, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) name: String,
    pub(super) base: Option<(usize, u64)>,
    pub(super) head: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) time: i64,
    pub(super) revision: Option<u64>,
    pub(super) message: String,
    pub(super) tags: BTreeSet<String>,
}

/// What an undo restores.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) current: usize,
    pub(super) checkpoints: BTreeMap<u64, Named>,
    /// The last checkpoint that was made with the key.
    pub(super) keyed: Option<u64>,
    /// The operations whose facts are visible.
    in_force: BTreeSet<usize>,
    pub(super) schedule: Option<i64>,
    /// The branches, each with the claims of its head.
    heads: BTreeMap<usize, ClaimMap>,
    /// The revisions that are folded into others.
    folded_away: BTreeSet<u64>,
}

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    pub(super) next: u64,
    pub(super) revisions: BTreeMap<u64, Revision>,
    /// The revisions that are not visible.
    pub(super) folded: BTreeMap<u64, Revision>,
    pub(super) branches: Vec<Branch>,
    /// The branches that were checked out, each with its effective time.
    pub(super) switches: Vec<(i64, usize)>,
    pub(super) facts: Vec<(usize, Fact)>,
    pub(super) events: BTreeSet<i64>,
    pub(super) now: Visible,
    operations: usize,
    undo: Vec<Done>,
    redo: Vec<Done>,
    /// Merges: the new revision and the merged one.
    merges: Vec<(u64, u64)>,
    started: i64,
}

impl Naive {
    pub(super) fn new(started: i64) -> Self {
        Self {
            next: 1,
            revisions: BTreeMap::new(),
            folded: BTreeMap::new(),
            branches: vec![Branch { name: "main".to_owned(), base: None, head: None }],
            switches: Vec::new(),
            facts: Vec::new(),
            events: BTreeSet::new(),
            now: Visible {
                current: 0,
                checkpoints: BTreeMap::new(),
                keyed: None,
                in_force: BTreeSet::new(),
                schedule: None,
                heads: BTreeMap::from([(0, ClaimMap::new())]),
                folded_away: BTreeSet::new(),
            },
            operations: 0,
            undo: Vec::new(),
            redo: Vec::new(),
            merges: Vec::new(),
            started,
        }
    }

    pub(super) fn head(&self, branch: usize) -> &ClaimMap {
        &self.now.heads[&branch]
    }

    pub(super) fn visible_branches(&self) -> impl Iterator<Item = (usize, &Branch)> {
        self.branches.iter().enumerate().filter(|(number, _)| self.now.heads.contains_key(number))
    }

    /// Executes an operation that can be undone as a whole. `touched` is the branch whose claims it
    /// changes.
    pub(super) fn operate(&mut self, touched: Option<usize>, what: impl FnOnce(&mut Self)) {
        let other = self.now.clone();
        self.operations += 1;
        self.now.in_force.insert(self.operations);
        what(self);
        let touched = touched.map(|branch| (branch, self.next_head(branch)));
        self.undo.push(Done { other, touched });
        self.redo.clear();
    }

    fn next_head(&self, branch: usize) -> u64 {
        self.branches[branch].head.expect("it was just made")
    }

    pub(super) fn revise(&mut self, at: i64, branch: usize, state: ClaimMap, claims: Claims) {
        let parent = self.branches[branch].head;
        let head = parent.map(|head| self.revisions[&head].effective);
        let effective = head.map_or(at, |head| head.max(at));
        let revision = Revision { branch, effective, state: state.clone(), parent, claims };
        self.revisions.insert(self.next, revision);
        self.branches[branch].head = Some(self.next);
        self.now.heads.insert(branch, state);
        self.events.insert(at);
        self.next += 1;
    }

    pub(super) fn checkpoint(
        &mut self,
        at: i64,
        revision: Option<u64>,
        message: &str,
        tags: &[String],
    ) {
        let named = Named {
            time: at,
            revision,
            message: message.to_owned(),
            tags: tags.iter().cloned().collect(),
        };
        self.now.checkpoints.insert(self.next, named);
        self.events.insert(at);
        self.next += 1;
    }

    pub(super) fn is_scheduled_due(&self, now: i64) -> bool {
        let last = self.now.checkpoints.values().map(|one| one.time).max();
        self.now.schedule.is_some_and(|every| now - last.unwrap_or(self.started) >= every)
    }

    pub(super) fn fork(&mut self, name: &str, base: (usize, u64), state: ClaimMap) {
        let head = (base.1 > 0).then_some(base.1);
        self.now.heads.insert(self.branches.len(), state);
        self.branches.push(Branch { name: name.to_owned(), base: Some(base), head });
    }

    pub(super) fn switch(&mut self, at: i64, branch: usize) {
        self.now.current = branch;
        // Its time is never before that of the previous switch.
        let last = self.switches.last().map_or(at, |(last, _)| *last);
        self.switches.push((at.max(last), branch));
    }

    pub(super) fn fact(&mut self, fact: Fact, at: i64) {
        self.facts.push((self.operations, fact));
        self.events.insert(at);
    }

    pub(super) fn can_undo(&self) -> bool {
        !self.undo.is_empty()
    }

    pub(super) fn can_redo(&self) -> bool {
        !self.redo.is_empty()
    }

    pub(super) fn undo(&mut self, at: i64) {
        let done = self.undo.pop().expect("asked before");
        let other = self.now.clone();
        let touched = self.bring_back(at, done);
        self.redo.push(Done { other, touched });
    }

    pub(super) fn redo(&mut self, at: i64) {
        let done = self.redo.pop().expect("asked before");
        let other = self.now.clone();
        let touched = self.bring_back(at, done);
        self.undo.push(Done { other, touched });
    }

    fn bring_back(&mut self, at: i64, done: Done) -> Option<(usize, u64)> {
        if done.other.current != self.now.current {
            self.switch(at, done.other.current);
        }
        let before = std::mem::replace(&mut self.now, done.other);
        self.part();
        let (branch, made) = done.touched?;
        // The branch may have begun with the operation that is undone.
        let begun = |base: Option<(usize, u64)>| match base {
            Some((_, from)) if from > 0 => self.revision(from).state.clone(),
            _ => ClaimMap::new(),
        };
        let known = self.now.heads.get(&branch).cloned();
        let is_visible = known.is_some();
        let state = known.unwrap_or_else(|| begun(self.branches[branch].base));
        // The opposite of an operation without effect, such as a merge of undone changes, is no
        // change.
        if self.branches[branch].head != Some(made) && before.heads.get(&branch) == Some(&state) {
            return None;
        }
        // Directly after the undone operation it resets to where that began; otherwise it is the
        // opposite change.
        let claims = if self.branches[branch].head == Some(made) {
            let mut before = self.revisions[&made].parent;
            while let Some(number) = before.filter(|number| self.folded.contains_key(number)) {
                before = self.folded[&number].parent;
            }
            Claims::Reset(before)
        } else {
            Claims::Parent
        };
        self.revise(at, branch, state, claims);
        if !is_visible {
            self.now.heads.remove(&branch);
        }
        Some((branch, self.next_head(branch)))
    }

    // -- merges

    fn revision(&self, number: u64) -> &Revision {
        self.revisions.get(&number).unwrap_or_else(|| &self.folded[&number])
    }

    /// The ancestors of a revision, with itself: along first parents, and along the resets of its
    /// claims.
    pub(super) fn ancestors(&self, of: Option<u64>) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<u64> = of.into_iter().collect();
        while let Some(number) = open.pop() {
            if !seen.insert(number) {
                continue;
            }
            let mut next = Some(number);
            while let Some(number) = next {
                found.insert(number);
                next = self.revision(number).parent;
            }
            let own = self.revision(number);
            match own.claims {
                Claims::Reset(to) => open.extend(to),
                Claims::Parent => open.extend(own.parent),
                Claims::Merged(other, operation) => {
                    open.extend(own.parent);
                    open.extend(Some(other).filter(|_| self.now.in_force.contains(&operation)));
                }
            }
        }
        found
    }

    /// The common ancestors, newest first, without the ancestors of one that was already taken.
    pub(super) fn bases(&self, ours: &BTreeSet<u64>, theirs: &BTreeSet<u64>) -> Vec<u64> {
        let common: BTreeSet<u64> = ours.intersection(theirs).copied().collect();
        let (mut bases, mut behind) = (Vec::new(), BTreeSet::new());
        for number in common.into_iter().rev() {
            if !behind.contains(&number) {
                behind.extend(self.ancestors(Some(number)));
                bases.push(number);
            }
        }
        bases
    }

    /// The combined state of several common ancestors.
    pub(super) fn ancestor(&self, bases: &[u64]) -> AncestorState {
        let Some((first, rest)) = bases.split_first() else { return AncestorState::default() };
        let mut found = AncestorState::from(self.revision(*first).state.clone());
        let mut reach = self.ancestors(Some(*first));
        for number in rest {
            let other = self.ancestors(Some(*number));
            let base = self.ancestor(&self.bases(&reach, &other));
            found = found.with(Some(&base), &self.revision(*number).state);
            reach.extend(other);
        }
        found
    }

    /// Makes a merge the newest revision of a branch; with `reset` it takes over the other branch's
    /// claims.
    pub(super) fn merge(
        &mut self,
        at: i64,
        branch: usize,
        state: ClaimMap,
        source: u64,
        reset: bool,
    ) {
        let has_own = self.branches[branch].head.is_some();
        let claims = if reset {
            Claims::Reset(Some(source))
        } else {
            Claims::Merged(source, self.operations)
        };
        if has_own {
            self.merges.push((self.next, source));
        }
        self.revise(at, branch, state, claims);
    }

    pub(super) fn prune(&mut self, checkpoints: &[u64], revisions: &[u64]) {
        for sequence in checkpoints {
            self.now.checkpoints.remove(sequence);
        }
        self.now.folded_away.extend(revisions);
        self.part();
    }

    /// Separates the visible revisions from the others.
    fn part(&mut self) {
        self.revisions.append(&mut self.folded);
        self.folded = self
            .revisions
            .extract_if(.., |number, _| self.now.folded_away.contains(number))
            .collect();
    }

    /// Whether the next redo would fold a revision that something refers to since.
    pub(super) fn redo_folds_what_is_named(&self) -> bool {
        let Some(done) = self.redo.last() else { return false };
        let mut named = self.named_with(&done.other);
        for (number, one) in self.revisions.iter().chain(&self.folded) {
            if let Claims::Reset(to) = one.claims {
                named.insert(*number);
                named.extend(to);
            }
        }
        done.other
            .folded_away
            .difference(&self.now.folded_away)
            .any(|number| named.contains(number))
    }

    /// The revisions that heads, forks, merges and checkpoints refer to.
    pub(super) fn named(&self) -> BTreeSet<u64> {
        self.named_with(&self.now)
    }

    fn named_with(&self, visible: &Visible) -> BTreeSet<u64> {
        let branches = self.branches.iter();
        let ends = branches.flat_map(|one| [one.head, one.base.map(|(_, from)| from)]).flatten();
        let checkpoints = visible.checkpoints.values().filter_map(|one| one.revision);
        let merges = self.merges.iter().flat_map(|(made, source)| [*made, *source]);
        ends.chain(checkpoints).chain(merges).collect()
    }

    pub(super) fn branch_at(&self, at: i64) -> usize {
        self.switches.iter().rfind(|(when, _)| *when <= at).map_or(0, |(_, branch)| *branch)
    }

    /// The last revision of a branch, or of its base, at or before a time.
    pub(super) fn revision_at(&self, branch: usize, at: i64) -> Option<u64> {
        let (mut branch, mut upto) = (branch, u64::MAX);
        loop {
            let mut own = self.revisions.iter().filter(|(number, revision)| {
                revision.branch == branch && revision.effective <= at && **number <= upto
            });
            if let Some((number, _)) = own.next_back() {
                return Some(*number);
            }
            let (base, from) = self.branches[branch].base?;
            (branch, upto) = (base, upto.min(from));
        }
    }

    /// The number of visible facts.
    pub(super) fn facts_in_force(&self) -> usize {
        self.facts.iter().filter(|(operation, _)| self.now.in_force.contains(operation)).count()
    }

    pub(super) fn facts_at(&self, kind: Kind, at: Option<i64>) -> Vec<Fact> {
        let until = at.map_or(Timestamp::from_micros(i64::MAX), time);
        let seen: Vec<_> = self
            .facts
            .iter()
            .filter(|(operation, fact)| fact.kind == kind && self.now.in_force.contains(operation))
            .map(|(_, fact)| fact)
            .collect();
        let mut newest: BTreeMap<&str, &Fact> = BTreeMap::new();
        for fact in seen.iter().filter(|fact| fact.at <= until) {
            let better = |other: &Fact| other.id == fact.id && other.origin != FactOrigin::Hook;
            if fact.origin == FactOrigin::Hook && seen.iter().any(|other| better(other)) {
                continue;
            }
            let order = |fact: &Fact| (fact.at, fact.place, fact.recorded_at);
            if newest.get(fact.id.as_str()).is_none_or(|known| order(known) <= order(fact)) {
                newest.insert(&fact.id, fact);
            }
        }
        let mut found: Vec<_> = newest.into_values().cloned().collect();
        found.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        found
    }

    /// Applies one change to a state.
    pub(super) fn changed(state: &mut ClaimMap, id: &str, text: Option<&str>, at: i64) {
        let key = Key::new(Kind::Note, id);
        match text {
            None => {
                state.remove(&key);
            }
            Some(text) => {
                let value = Value::from([("description", text.into())]);
                let added_at = state.get(&key).map_or(time(at), |entry| entry.added_at);
                state.insert(key, ClaimEntry { added_at, value });
            }
        }
    }
}
