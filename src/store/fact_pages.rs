//! Puts facts into the pages in which they are stored.

use crate::engine::delta_parts::check_size;
use crate::error::Result;
use crate::format::{DeltaPart, FactPage, ObjectKind, RecordBytes, RecordChange, encode_object};
use crate::model::{Fact, SessionNumber};

/// Maximum number of facts in a page.
pub(crate) const PAGE_FACTS: usize = 1000;

/// Returns the changes of a record that store these facts, one for each page. `source` is the
/// source to which their long texts refer, if any.
///
/// # Errors
/// [`Error::Invalid`](crate::error::Error::Invalid) if the values are too large.
pub(crate) fn fact_pages(
    session: SessionNumber,
    source: Option<&String>,
    mut facts: Vec<Fact>,
) -> Result<Vec<RecordChange>> {
    let mut changes = Vec::new();
    while !facts.is_empty() {
        let rest = facts.split_off(facts.len().min(PAGE_FACTS));
        let times = || facts.iter().map(|fact| fact.at);
        let (first, last) = times().min().zip(times().max()).expect("a page has facts");
        let count = facts.len() as u64;
        let page = FactPage::new(source.cloned(), facts).encode();
        check_size(page.len())?;
        let (_, encoded) = encode_object(ObjectKind::Page, &page);
        let page = DeltaPart::Inline(RecordBytes(encoded));
        changes.push(RecordChange::Facts { session, count, first, last, page });
        facts = rest;
    }
    Ok(changes)
}
