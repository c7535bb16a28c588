//! Reads the facts of a session up to a time.

use super::parallel;
use super::refs::{StoreRefs, session};
use super::{object, table_rows};
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{FactPage, FactRow, ObjectKind};
use crate::model::{Fact, FactOrigin, Kind, SessionNumber, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A fact, with the source file that its texts refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcedFact {
    /// The fact.
    pub fact: Fact,
    /// The source file that its texts refer to, if any.
    pub source: Option<Arc<str>>,
}

/// The clock by which facts are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactClock {
    /// The own time: selects what had happened by then.
    Happened,
    /// The recorded time: selects what had happened, and was recorded, by then.
    Recorded,
}

/// Returns the facts of one kind up to a time, one per id: the latest version, by own time, then
/// place in its source, then recorded time. Sorted by own time, then id.
pub(crate) fn facts_at(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    time: Timestamp,
    clock: FactClock,
) -> Result<Vec<SourcedFact>> {
    facts_of_kind(view, refs, number, kind, (time, clock), &mut FactReader::default())
}

/// Returns the same as [`facts_at`] for all kinds, in the order of their codes. Each page is read
/// once.
pub(crate) fn all_facts_at(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    time: Timestamp,
    clock: FactClock,
) -> Result<Vec<SourcedFact>> {
    let mut reader = FactReader::default();
    let mut facts = Vec::new();
    for kind in Kind::facts() {
        facts.extend(facts_of_kind(view, refs, number, kind, (time, clock), &mut reader)?);
    }
    Ok(facts)
}

fn facts_of_kind(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    (time, clock): (Timestamp, FactClock),
    reader: &mut FactReader,
) -> Result<Vec<SourcedFact>> {
    let upto = match clock {
        FactClock::Happened => of(number).kind(kind).time(time).end(),
        FactClock::Recorded => of(number).kind(kind).end(),
    };
    let mut all = read(view, refs, number, &of(number).kind(kind).build(), &upto, reader)?;
    remove_replaced(view, refs, number, kind, &mut all)?;
    if clock == FactClock::Recorded {
        all.retain(|known| known.fact.recorded_at <= time && known.fact.at <= time);
    }
    all.sort_by_key(|known| order(&known.fact));
    let mut seen = HashSet::new();
    let mut is_last: Vec<bool> =
        all.iter().rev().map(|known| seen.insert(known.fact.id.as_str())).collect();
    all.retain(|_| is_last.pop().unwrap_or_default());
    all.sort_by(|a, b| (a.fact.at, &a.fact.id).cmp(&(b.fact.at, &b.fact.id)));
    Ok(all)
}

/// Returns all versions of the facts of one kind that no other origin replaced, earliest first.
pub(crate) fn all_versions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
) -> Result<Vec<SourcedFact>> {
    let place = of(number).kind(kind);
    let reader = &mut FactReader::default();
    let mut all = read(view, refs, number, &place.clone().build(), &place.end(), reader)?;
    remove_replaced(view, refs, number, kind, &mut all)?;
    all.sort_by_key(|known| order(&known.fact));
    Ok(all)
}

fn order(fact: &Fact) -> (Timestamp, u64, Timestamp) {
    (fact.at, fact.place, fact.recorded_at)
}

/// Removes the hook's versions of facts that have a version with another origin. That version
/// replaces all of the hook's versions, even later ones.
fn remove_replaced(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    facts: &mut Vec<SourcedFact>,
) -> Result<()> {
    let mut replaced = BTreeMap::new();
    for known in facts.iter().filter(|known| known.fact.origin == FactOrigin::Hook) {
        let id = &known.fact.id;
        if !replaced.contains_key(id) {
            let is_replaced = is_known_beyond_hooks(view, refs, number, kind, id)?;
            replaced.insert(id.clone(), is_replaced);
        }
    }
    facts.retain(|known| {
        known.fact.origin != FactOrigin::Hook || replaced.get(&known.fact.id) == Some(&false)
    });
    Ok(())
}

/// Returns whether a fact has a version with an origin other than `hook`.
pub(crate) fn is_known_beyond_hooks(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    id: &str,
) -> Result<bool> {
    let versions = versions(view, refs, number, kind, id)?;
    Ok(versions.iter().any(|known| known.fact.origin != FactOrigin::Hook))
}

/// Returns the versions of one fact, earliest first, including those that another origin replaced.
pub(crate) fn versions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    id: &str,
) -> Result<Vec<SourcedFact>> {
    let rows = table_rows::rows(view, key::FACT_IDS, of(number).kind(kind).text(id))?;
    let mut known = resolve(view, refs, number, &rows, &mut FactReader::default())?;
    known.retain(|known| known.fact.id == id);
    Ok(known)
}

/// Reads the facts between two keys of the table by time.
fn read(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    from: &[u8],
    to: &[u8],
    reader: &mut FactReader,
) -> Result<Vec<SourcedFact>> {
    // For a state, this is called for every kind: a session without facts should read no rows.
    if session(refs, number)?.pages == 0 {
        return Ok(Vec::new());
    }
    let rows = table_rows::rows_between(view, key::FACTS, from, to)?;
    resolve(view, refs, number, &rows, reader)
}

/// A page of facts, from which facts are taken one by one.
struct OpenFactPage {
    facts: Vec<Option<Fact>>,
    source: Option<Arc<str>>,
}

impl OpenFactPage {
    fn open(number: u64, encoded: &[u8]) -> Result<Self> {
        let content = object::decoded(ObjectKind::Page, number, encoded)?;
        let page = FactPage::decode(&content).map_err(Error::corrupt("a page of facts"))?;
        Ok(Self {
            facts: page.facts.into_iter().map(Some).collect(),
            source: page.source.map(Arc::from),
        })
    }
}

fn resolve(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    rows: &[(Vec<u8>, Vec<u8>)],
    reader: &mut FactReader,
) -> Result<Vec<SourcedFact>> {
    let hidden: BTreeSet<_> = session(refs, number)?.hidden.iter().copied().collect();
    let rows = rows.iter();
    let rows = rows.map(|(_, row)| FactRow::decode(row).map_err(Error::corrupt("a fact's place")));
    let rows = rows.filter(|row| row.as_ref().map_or(true, |row| !hidden.contains(&row.operation)));
    let rows: Vec<FactRow> = rows.collect::<Result<_>>()?;
    reader.open_pages(view, rows.iter().map(|row| row.page))?;
    rows.iter().map(|row| reader.read(view, row)).collect()
}

/// Reads facts from their pages, each page once.
#[derive(Default)]
pub(crate) struct FactReader {
    pages: BTreeMap<u64, OpenFactPage>,
}

impl FactReader {
    /// Opens pages that are not open yet: many in one read, and on all cores if they are large.
    pub(crate) fn open_pages(
        &mut self,
        view: &dyn Snapshot,
        pages: impl Iterator<Item = u64>,
    ) -> Result<()> {
        const PAGES_PER_READ: usize = 256;
        /// Number of compressed bytes from which another thread saves more time than it costs.
        const MANY_BYTES: usize = 32 << 10;
        let pages: BTreeSet<u64> = pages.filter(|page| !self.pages.contains_key(page)).collect();
        let pages: Vec<u64> = pages.into_iter().collect();
        for some in pages.chunks(PAGES_PER_READ) {
            let encoded: Vec<_> = some.iter().zip(object::encoded_many(view, some)?).collect();
            let bytes: usize = encoded.iter().map(|(_, encoded)| encoded.len()).sum();
            let most = if bytes < MANY_BYTES { 1 } else { usize::MAX };
            let (opened, ()) = parallel::map_while(
                &encoded,
                most,
                |(number, encoded)| OpenFactPage::open(**number, encoded),
                || (),
            );
            for (number, page) in some.iter().zip(opened) {
                self.pages.insert(*number, page?);
            }
        }
        Ok(())
    }

    /// Takes the fact of this row from its page. A second call for the same row is an error.
    pub(crate) fn read(&mut self, view: &dyn Snapshot, row: &FactRow) -> Result<SourcedFact> {
        self.open_pages(view, std::iter::once(row.page))?;
        let missing = || Error::missing("a fact on its page");
        let page = self.pages.get_mut(&row.page).ok_or_else(missing)?;
        let fact = page.facts.get_mut(row.ordinal as usize).and_then(Option::take);
        let fact = fact.ok_or_else(missing)?;
        Ok(SourcedFact { fact, source: page.source.clone() })
    }
}

/// Returns the newest facts of one kind up to a time, one per id, from the newest `limit` rows.
pub(crate) fn newest(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    kind: Kind,
    upto: Timestamp,
    limit: usize,
) -> Result<Vec<SourcedFact>> {
    let from = of(number).kind(kind).build();
    let to = of(number).kind(kind).time(upto).end();
    let rows = view.scan(key::FACTS, &from, &to, ScanDirection::Descending, limit)?;
    let mut facts = resolve(view, refs, number, &rows, &mut FactReader::default())?;
    remove_replaced(view, refs, number, kind, &mut facts)?;
    let mut seen = BTreeSet::new();
    facts.retain(|known| seen.insert(known.fact.id.clone()));
    Ok(facts)
}

/// Returns the time of the last fact of any kind at or before a time.
pub(crate) fn last_at(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    time: Timestamp,
) -> Result<Option<Timestamp>> {
    let session = session(refs, number)?;
    if session.pages == 0 {
        return Ok(None);
    }
    let hidden: BTreeSet<_> = session.hidden.iter().copied().collect();
    let mut last = None;
    for kind in Kind::facts() {
        let from = of(number).kind(kind).build();
        let mut to = of(number).kind(kind).time(time).end();
        // Usually the first row has the time. More are read only if an operation was undone.
        'rows: loop {
            let limit = if hidden.is_empty() { 1 } else { 64 };
            let rows = view.scan(key::FACTS, &from, &to, ScanDirection::Descending, limit)?;
            let Some((oldest, _)) = rows.last() else { break };
            for (place, row) in &rows {
                let row = FactRow::decode(row).map_err(Error::corrupt("a fact's place"))?;
                if !hidden.contains(&row.operation) {
                    last = last.max(key::time_at(place, 5));
                    break 'rows;
                }
            }
            to.clone_from(oldest);
        }
    }
    Ok(last)
}
