//! Puts facts into the pages in which they are stored.

use crate::format::{DeltaPart, FactPage, ObjectKind, RecordBytes, RecordChange, seal};
use crate::model::{Fact, SessionNumber};

/// The most facts in a page.
pub(crate) const PAGE_FACTS: usize = 1000;

/// Puts facts into pages, as they are stored in a record.
pub(crate) fn fact_pages(
    session: SessionNumber,
    source: Option<&String>,
    mut facts: Vec<Fact>,
) -> Vec<RecordChange> {
    let mut changes = Vec::new();
    while !facts.is_empty() {
        let rest = facts.split_off(facts.len().min(PAGE_FACTS));
        let times = || facts.iter().map(|fact| fact.at);
        let (first, last) = times().min().zip(times().max()).expect("there is one");
        let count = facts.len() as u64;
        let page = FactPage::new(source.cloned(), facts).encode();
        let (_, sealed) = seal(ObjectKind::Page, &page);
        let page = DeltaPart::Inline(RecordBytes(sealed));
        changes.push(RecordChange::Facts { session, count, first, last, page });
        facts = rest;
    }
    changes
}
