//! Puts facts into the pages in which they are stored.

use crate::engine::delta_parts::check_size;
use crate::error::Result;
use crate::format::{
    DeltaPart, FactPage, MAX_OBJECT_BYTES, ObjectKind, RecordBytes, RecordChange, encode_object,
};
use crate::model::{Fact, SessionNumber};

/// Maximum number of facts in a page.
pub(crate) const PAGE_FACTS: usize = 1000;

/// Returns the changes of a record that store these facts, one for each page. A page has fewer
/// facts if they are large. `source` is the source to which their long texts refer, if any.
///
/// # Errors
/// [`Error::Invalid`](crate::error::Error::Invalid) if a fact is too large for a page.
pub(crate) fn fact_pages(
    session: SessionNumber,
    source: Option<&String>,
    mut facts: Vec<Fact>,
) -> Result<Vec<RecordChange>> {
    let mut changes = Vec::new();
    while !facts.is_empty() {
        let mut rest = facts.split_off(facts.len().min(PAGE_FACTS));
        let mut page = FactPage::new(source.cloned(), facts);
        let mut bytes = page.encode();
        while bytes.len() > MAX_OBJECT_BYTES && page.facts.len() > 1 {
            let later = page.facts.split_off(page.facts.len() / 2);
            rest.splice(0..0, later);
            bytes = page.encode();
        }
        check_size(bytes.len())?;
        let times = || page.facts.iter().map(|fact| fact.at);
        let (first, last) = times().min().zip(times().max()).expect("a page has facts");
        let count = page.facts.len() as u64;
        let (_, encoded) = encode_object(ObjectKind::Page, &bytes);
        let page = DeltaPart::Inline(RecordBytes(encoded));
        changes.push(RecordChange::Facts { session, count, first, last, page });
        facts = rest;
    }
    Ok(changes)
}
