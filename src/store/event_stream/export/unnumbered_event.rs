//! Events without a sequence number: facts, and changes of branches. Their place in the stream
//! depends on their time and on the branches that they name.

use super::{EventStreamWriter, branch_event};
use crate::engine::{fact, timeline};
use crate::error::Result;
use crate::format::{BranchEvent, BranchReference, PutEvent, StreamEvent};
use crate::model::{BranchNumber, Fact, Kind, Timestamp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An event that has a time and no sequence number.
pub(super) enum UnnumberedEvent {
    Fact(Box<Fact>),
    Make(BranchNumber),
    Change(BranchNumber, usize),
    Switch(BranchNumber),
    Hide(BranchNumber),
}

impl EventStreamWriter<'_> {
    /// Collects all events without a number, in the order in which they are written.
    pub(super) fn collect(&self) -> Result<Vec<(Timestamp, UnnumberedEvent)>> {
        let number = self.session.number;
        let mut facts = Vec::new();
        for kind in Kind::facts() {
            let mut before: BTreeMap<String, (Timestamp, Value)> = BTreeMap::new();
            for known in fact::all_versions(self.view, &self.view.refs, number, kind)? {
                let mut fact = known.fact;
                fact.value = self.expand_fact(fact.value, known.source.as_deref())?;
                let version = (fact.at, fact.value.clone());
                // A version equal to the one before is omitted.
                if before.insert(fact.id.clone(), version.clone()) != Some(version) {
                    facts.push(fact);
                }
            }
        }
        // Versions of the same time keep their order: the sort is stable.
        facts.sort_by(|a, b| (a.at, a.kind, &a.id).cmp(&(b.at, b.kind, &b.id)));
        let with_time = |fact: Fact| (fact.at, UnnumberedEvent::Fact(Box::new(fact)));
        let mut unnumbered: Vec<_> = facts.into_iter().map(with_time).collect();
        let switches = timeline::switches(self.view, number)?;
        let mut current = 0;
        let mut named: BTreeSet<BranchNumber> = BTreeSet::new();
        for (time, branch) in switches {
            if branch != current {
                current = branch;
                named.insert(branch);
                unnumbered.push((time, UnnumberedEvent::Switch(branch)));
            }
        }
        named.extend(self.used()?);
        for (place, branch) in (0..).zip(&self.refs.branches) {
            // An undone branch is omitted, unless a revision or checkpoint is on it.
            if branch.hidden && !named.contains(&place) {
                continue;
            }
            for (count, change) in
                self.changes.get(place as usize).into_iter().flatten().enumerate()
            {
                if count > 0 {
                    // A change is never written before the creation of its branch, whatever the
                    // clock said.
                    let made = branch.changes.first().map_or(change.time, |first| first.time);
                    unnumbered.push((change.time.max(made), UnnumberedEvent::Change(place, count)));
                } else if place > 0 {
                    unnumbered.push((change.time, UnnumberedEvent::Make(place)));
                }
            }
            if branch.hidden {
                unnumbered.push((Timestamp::from_micros(i64::MAX), UnnumberedEvent::Hide(place)));
            }
        }
        unnumbered.sort_by(|a, b| (a.0, self.rank(&a.1)).cmp(&(b.0, self.rank(&b.1))));
        Ok(unnumbered)
    }

    /// Returns the order among events with the same time.
    fn rank(&self, unnumbered: &UnnumberedEvent) -> (u8, &str, usize) {
        let name = |branch: BranchNumber| self.name(branch);
        match unnumbered {
            UnnumberedEvent::Make(branch) => (0, name(*branch), 0),
            UnnumberedEvent::Change(branch, count) => (1, name(*branch), *count),
            // Switches of the same time keep their order.
            UnnumberedEvent::Switch(_) => (2, "", 0),
            UnnumberedEvent::Fact(_) => (3, "", 0),
            UnnumberedEvent::Hide(branch) => (4, name(*branch), 0),
        }
    }

    /// Writes the events without a number up to a time. An event waits until the branch and the
    /// revision on which it depends are written. Event `next` follows.
    pub(super) fn release(&mut self, next: u64, time: Timestamp) -> Result<()> {
        if self.unnumbered.first().is_none_or(|(first, _)| *first > time) {
            return Ok(());
        }
        let end = self.unnumbered.partition_point(|(at, _)| *at <= time);
        let mut due: Vec<_> = self.unnumbered.drain(..end).collect();
        loop {
            let mut held = Vec::new();
            let count = due.len();
            // Switches keep their order: the last one determines the current branch.
            let mut switch_waits = false;
            for (at, unnumbered) in due {
                let is_switch = matches!(unnumbered, UnnumberedEvent::Switch(_));
                if self.is_ready(&unnumbered, next) && !(is_switch && switch_waits) {
                    self.loose_line(at, &unnumbered, next)?;
                } else {
                    switch_waits |= is_switch;
                    held.push((at, unnumbered));
                }
            }
            let stuck = held.len() == count || held.is_empty();
            due = held;
            if stuck {
                break;
            }
        }
        due.append(&mut self.unnumbered);
        self.unnumbered = due;
        Ok(())
    }

    fn is_ready(&self, unnumbered: &UnnumberedEvent, next: u64) -> bool {
        match unnumbered {
            UnnumberedEvent::Fact(_) => true,
            UnnumberedEvent::Make(branch) => self
                .base(*branch)
                .is_none_or(|(base, sequence)| self.made.contains(&base) && sequence < next),
            UnnumberedEvent::Change(branch, _)
            | UnnumberedEvent::Switch(branch)
            | UnnumberedEvent::Hide(branch) => self.made.contains(branch),
        }
    }

    fn loose_line(&mut self, at: Timestamp, unnumbered: &UnnumberedEvent, next: u64) -> Result<()> {
        match unnumbered {
            UnnumberedEvent::Fact(fact) => {
                let put = PutEvent {
                    kind: fact.kind,
                    id: fact.id.clone(),
                    value: fact.value.clone(),
                    created_at: None,
                };
                // A `put` with another time, or on `main` after one on another branch, ends a
                // revision.
                if self.open.is_some_and(|open| open != (at, 0)) {
                    self.open = None;
                }
                self.line(at, 0, StreamEvent::Put(put))
            }
            UnnumberedEvent::Make(branch) => self.make(*branch, next),
            UnnumberedEvent::Change(branch, count) => {
                let changes = self.changes.get(*branch as usize);
                let pair = changes.and_then(|changes| {
                    Some((changes.get(count.checked_sub(1)?)?, changes.get(*count)?))
                });
                let Some((old, new)) = pair else { return Ok(()) };
                let (event, time) = (branch_event(self.name(*branch), Some(old), new), new.time);
                self.open = None;
                self.line(time, 0, StreamEvent::Branch(event))
            }
            UnnumberedEvent::Switch(branch) => {
                let branch = self.name(*branch).to_owned();
                self.open = None;
                self.line(at, 0, StreamEvent::Switch(BranchReference { branch }))
            }
            UnnumberedEvent::Hide(branch) => {
                let name = self.name(*branch).to_owned();
                let event = BranchEvent { name, taken_back: Some(true), ..BranchEvent::default() };
                let at = self
                    .refs
                    .branches
                    .get(*branch as usize)
                    .map(|branch| branch.latest_change().time);
                self.open = None;
                self.line(at.unwrap_or_default(), 0, StreamEvent::Branch(event))
            }
        }
    }
}
