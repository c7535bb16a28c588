//! Checks what concurrent writers have written to one session.

#![expect(clippy::unwrap_used, reason = "a check fails by panicking, as a test does")]

use forge_store::store::{CheckpointFilter, LogItem, Session};
use std::collections::BTreeSet;

/// Checks a session to which each write added a claim and a checkpoint, both named after the write.
/// Every sequence number must exist once, every acknowledged write must be there, and each state
/// must have one claim more than the state before.
///
/// # Panics
/// If something is lost, doubled or damaged.
pub fn audit(session: &Session, acknowledged: &BTreeSet<String>) {
    let items = session.records(1, usize::MAX).unwrap();
    let numbers: Vec<u64> = items.iter().map(LogItem::sequence).collect();
    assert_eq!(numbers, (1..=items.len() as u64).collect::<Vec<_>>());
    let made = session.checkpoints(&CheckpointFilter::default()).unwrap();
    let names: BTreeSet<String> = made.iter().map(|one| one.message.clone()).collect();
    assert_eq!(names.len(), made.len(), "no write counts twice");
    let lost: Vec<_> = acknowledged.difference(&names).collect();
    assert!(lost.is_empty(), "acknowledged, but lost: {lost:?}");
    let mut known = BTreeSet::new();
    for one in made.iter().rev() {
        let moment = session.at_checkpoint(one).unwrap();
        session.check_digest(&moment).unwrap();
        let state = session.state(&moment).unwrap();
        known.insert(one.message.clone());
        let ids: BTreeSet<String> =
            state.claims().entries().map(|entry| entry.unwrap().0.id).collect();
        assert_eq!(ids, known, "at #{}", one.sequence);
    }
}
