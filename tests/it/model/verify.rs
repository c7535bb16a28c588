//! Compares a session with the naive history, query by query.

use super::naive::{Naive, Named, time};
use forge_store::diff::{self, ClaimMap};
use forge_store::error::Error;
use forge_store::model::{Key, Kind, Timestamp};
use forge_store::store::{CheckpointFilter, HistoryEntry, LogItem, ResolvedMoment, Session};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn verify(session: &Session, naive: &Naive) {
    summary(session, naive);
    revisions(session, naive);
    checkpoints(session, naive);
    moments(session, naive);
    pairs(session, naive);
    histories(session, naive);
    branches(session, naive);
}

pub(super) fn claims(session: &Session, moment: &ResolvedMoment) -> ClaimMap {
    session.state(moment).unwrap().claims().entries().map(Result::unwrap).collect()
}

fn micros(time: Timestamp) -> i64 {
    time.micros_since(super::naive::time(0))
}

fn summary(session: &Session, naive: &Naive) {
    let summary = session.summary().unwrap();
    assert_eq!(summary.last_sequence, naive.next - 1, "numbers are dense");
    assert_eq!(summary.checkpoints, naive.now.checkpoints.len() as u64);
    assert_eq!(summary.branch, naive.branches[naive.now.current].name);
    assert_eq!(summary.claims, naive.head(naive.now.current).len() as u64);
    assert_eq!(summary.schedule_micros, naive.now.schedule);
    assert_eq!(summary.facts, naive.facts_in_force() as u64);
    let last = naive.now.checkpoints.values().map(|one| one.time).max();
    assert_eq!(summary.last_checkpoint, last.map(time));
    assert_eq!(summary.first_event, naive.events.first().map(|at| time(*at)));
    assert_eq!(summary.last_event, naive.events.last().map(|at| time(*at)));
}

fn revisions(session: &Session, naive: &Naive) {
    let ids: BTreeSet<&Key> =
        naive.revisions.values().flat_map(|revision| revision.state.keys()).collect();
    for (number, revision) in &naive.revisions {
        let moment = session.at_sequence(*number).unwrap();
        assert_eq!(moment.revision(), Some(*number));
        assert_eq!(moment.time().map(micros), Some(revision.effective), "time of #{number}");
        assert_eq!(claims(session, &moment), revision.state, "state of #{number}");
        session.check_digest(&moment).unwrap();
        for key in &ids {
            let found = session.claim(&moment, key).unwrap();
            assert_eq!(found.as_ref(), revision.state.get(*key), "{key} at #{number}");
        }
    }
    let head = session.head().unwrap();
    assert_eq!(claims(session, &head), *naive.head(naive.now.current));
    session.check_digest(&head).unwrap();
}

fn checkpoints(session: &Session, naive: &Naive) {
    let named = |filter: &CheckpointFilter| -> Vec<(u64, Named)> {
        let listed = session.checkpoints(filter).unwrap();
        let order: Vec<_> = listed.iter().map(|one| (one.time, one.sequence)).collect();
        assert!(order.is_sorted_by(|a, b| a > b), "newest first: {order:?}");
        let mut named: Vec<_> = listed
            .into_iter()
            .map(|one| {
                let tags = one.tags.iter().cloned().collect();
                let (time, revision) = (micros(one.time), one.revision);
                (one.sequence, Named { time, revision, message: one.message, tags })
            })
            .collect();
        named.sort_by_key(|(sequence, _)| *sequence);
        named
    };
    let expected = |wanted: &dyn Fn(&Named) -> bool| -> Vec<(u64, Named)> {
        let all = naive.now.checkpoints.iter().filter(|(_, one)| wanted(one));
        all.map(|(sequence, one)| (*sequence, one.clone())).collect()
    };
    assert_eq!(named(&CheckpointFilter::default()), expected(&|_| true));
    for tag in ["red", "green", "blue", "auto"] {
        let filter = CheckpointFilter { tag: Some(tag.to_owned()), ..Default::default() };
        assert_eq!(named(&filter), expected(&|one| one.tags.contains(tag)), "tag {tag}");
    }
    for sequence in 1..naive.next {
        if naive.revisions.contains_key(&sequence) {
            continue;
        }
        match (session.at_sequence(sequence), naive.now.checkpoints.get(&sequence)) {
            (Ok(moment), Some(one)) => {
                assert_eq!(moment.revision(), one.revision);
                assert_eq!(moment.time().map(micros), Some(one.time));
            }
            (Err(Error::NotFound { .. }), None) => {}
            (Err(Error::Folded { sequence: which, into }), None) => {
                let own = &naive.folded[&which];
                let mut later = naive.revisions.range(which..);
                let next = later.find(|(_, one)| one.branch == own.branch);
                assert_eq!((which, Some(into)), (sequence, next.map(|(number, _)| *number)));
            }
            (found, expected) => panic!("#{sequence}: {found:?}, not {expected:?}"),
        }
    }
}

fn moments(session: &Session, naive: &Naive) {
    let Some(first) = naive.events.first().copied() else { return };
    assert!(matches!(session.at_time(time(first - 1)), Err(Error::NothingAt { .. })));
    let times: BTreeSet<i64> = naive
        .events
        .iter()
        .flat_map(|at| [*at, at + 1, at - 1, at + 40_000_000])
        .chain(naive.switches.iter().map(|(at, _)| *at))
        .filter(|at| *at >= first)
        .collect();
    for at in times {
        let moment = session.at_time(time(at)).unwrap();
        let branch = naive.branch_at(at);
        let revision = naive.revision_at(branch, at);
        assert_eq!(moment.revision(), revision, "revision at {at}");
        let hidden = naive.folded.values().filter(|one| {
            let edge = revision.map(|number| &naive.revisions[&number]);
            one.branch == branch
                && one.effective <= at
                && edge.is_none_or(|edge| edge.branch != branch || edge.effective <= one.effective)
        });
        let hidden = hidden.count() as u64;
        match session.folded_at(&moment).unwrap() {
            // Revisions with the same time may be on both sides of the edge.
            Some(found) => {
                assert!(naive.revisions.contains_key(&found.into), "into #{}", found.into);
                assert!(hidden == 0 || found.count <= hidden, "{found:?} at {at}");
            }
            None => {
                let later = |number: &u64| revision.is_none_or(|edge| *number > edge);
                let missed = naive.folded.iter().find(|(number, one)| {
                    one.branch == branch && one.effective <= at && later(number)
                });
                assert!(missed.is_none(), "{missed:?} at {at} is not reported");
            }
        }
        let state = session.state(&moment).unwrap();
        assert_eq!(state.current_branch().unwrap(), naive.branches[branch].name);
        let last = naive.now.checkpoints.iter().filter(|(_, one)| one.time <= at);
        let last = last.max_by_key(|(sequence, one)| (one.time, **sequence));
        let found = state.checkpoint().unwrap().map(|one| one.sequence);
        assert_eq!(found, last.map(|(sequence, _)| *sequence), "checkpoint at {at}");
        for kind in [Kind::Prompt, Kind::Command] {
            let facts = state.facts_of(kind).unwrap();
            let facts: Vec<_> = facts.into_iter().map(|known| known.fact).collect();
            assert_eq!(facts, naive.facts_at(kind, Some(at)), "{kind} facts at {at}");
        }
    }
    let head = session.state(&session.head().unwrap()).unwrap();
    for kind in [Kind::Prompt, Kind::Command] {
        let facts = head.facts_of(kind).unwrap().into_iter().map(|known| known.fact);
        assert_eq!(facts.collect::<Vec<_>>(), naive.facts_at(kind, None));
    }
}

/// Compares every revision with about a third of all revisions.
fn pairs(session: &Session, naive: &Naive) {
    let numbers: Vec<u64> = naive.revisions.keys().copied().collect();
    for (place, from) in numbers.iter().enumerate() {
        for to in numbers.iter().skip(place % 3).step_by(3) {
            let moments = [from, to].map(|number| session.at_sequence(*number).unwrap());
            let changes = session.compare(&moments[0], &moments[1]).unwrap().claims;
            let (old, new) = (&naive.revisions[from].state, &naive.revisions[to].state);
            let expected = diff::compare(old, new);
            assert_eq!(changes, expected, "#{from} to #{to}");
            assert!(changes.iter().all(|change| old.get(&change.key) == change.old.as_ref()));
            let mut made = old.clone();
            diff::apply(&mut made, &changes);
            assert_eq!(&made, new);
        }
    }
}

/// Checks that the history of a claim equals what a scan of every revision on the way finds.
fn histories(session: &Session, naive: &Naive) {
    let items = session.records(1, usize::MAX).unwrap();
    let mut log = BTreeMap::new();
    for item in items {
        if let LogItem::Revision(entry) = item {
            log.insert(entry.sequence, entry);
        }
    }
    assert!(log.keys().eq(naive.revisions.keys()), "every revision is in the log");
    let Some(head) = naive.branches[naive.now.current].head else { return };
    // From the newest back: a revision that resets to another one's claims is not a change by
    // itself.
    let mut way = Vec::new();
    let mut next = Some(head);
    while let Some(number) = next {
        let branch = naive.revisions[&number].branch;
        let own = naive.revisions.range(..number).rfind(|(_, other)| other.branch == branch);
        let base = naive.branches[branch].base.map(|(_, from)| from).filter(|from| *from > 0);
        let parent = own.map(|(number, _)| *number).or(base);
        next = match log[&number].reset_to {
            Some(0) => None,
            Some(target) => Some(target),
            None => {
                way.push((number, parent));
                parent
            }
        };
    }
    for id in 0..8 {
        let key = Key::new(Kind::Note, format!("n{id}"));
        let entry = |number: Option<u64>| {
            number.and_then(|number| naive.revisions[&number].state.get(&key).cloned())
        };
        let expected: Vec<_> = way
            .iter()
            .map(|(number, parent)| (*number, entry(*parent), entry(Some(*number))))
            .filter(|(_, old, new)| old != new)
            .collect();
        let found = match session.history(&session.head().unwrap(), &key) {
            Err(Error::NotFound { .. }) => Vec::new(),
            found => found.unwrap(),
        };
        let flat = |one: HistoryEntry| (one.revision.sequence, one.change.old, one.change.new);
        assert_eq!(found.into_iter().map(flat).collect::<Vec<_>>(), expected, "history of {key}");
    }
}

fn branches(session: &Session, naive: &Naive) {
    let found: Vec<_> = session
        .branches(&session.head().unwrap())
        .unwrap()
        .into_iter()
        .map(|branch| (branch.name, branch.revision, branch.current))
        .collect();
    let expected: Vec<_> = naive
        .visible_branches()
        .map(|(number, branch)| (branch.name.clone(), branch.head, number == naive.now.current))
        .collect();
    assert_eq!(found, expected);
}
