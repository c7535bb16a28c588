//! Facts at a time.

use super::object;
use super::refs::session;
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{FactRow, ObjectKind, Page, Refs};
use crate::model::{Fact, Kind, SessionNumber, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A fact with where its texts point into.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownFact {
    /// The fact.
    pub fact: Fact,
    /// The source file that its texts point into, if they do.
    pub source: Option<Arc<str>>,
}

/// By which clock facts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// What had happened by then.
    Happened,
    /// What forge had been told by then.
    Recorded,
}

/// The facts of one kind up to a time, one for each id: the version with the greatest (time, place). Sorted by time,
/// then id.
pub(crate) fn at(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    kind: Kind,
    time: Timestamp,
    clock: Clock,
) -> Result<Vec<KnownFact>> {
    let upto = match clock {
        Clock::Happened => of(number).kind(kind).time(time).end(),
        Clock::Recorded => of(number).kind(kind).end(),
    };
    let all = read(view, refs, number, &of(number).kind(kind).build(), &upto)?;
    let replaced = replaced(view, refs, number, kind, &all)?;
    let mut newest: BTreeMap<String, KnownFact> = BTreeMap::new();
    for known in all {
        let fact = &known.fact;
        if (clock == Clock::Recorded && (fact.recorded_at > time || fact.at > time))
            || replaced.get(&fact.id).is_some_and(|origin| *origin > fact.origin)
        {
            continue;
        }
        let later = newest.get(&fact.id).is_none_or(|other| order(&other.fact) <= order(fact));
        if later {
            newest.insert(fact.id.clone(), known);
        }
    }
    let mut facts: Vec<_> = newest.into_values().collect();
    facts.sort_by(|a, b| (a.fact.at, &a.fact.id).cmp(&(b.fact.at, &b.fact.id)));
    Ok(facts)
}

fn order(fact: &Fact) -> (Timestamp, u64, Timestamp) {
    (fact.at, fact.place, fact.recorded_at)
}

/// The highest origin of each id that several origins know: its versions replace the others' altogether, also
/// where they come later.
fn replaced(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    kind: Kind,
    facts: &[KnownFact],
) -> Result<BTreeMap<String, crate::model::Origin>> {
    let mut highest = BTreeMap::new();
    for known in facts.iter().filter(|known| known.fact.origin == crate::model::Origin::Hook) {
        let id = &known.fact.id;
        if !highest.contains_key(id) {
            let versions = versions(view, refs, number, kind, id)?;
            let origin = versions.iter().map(|known| known.fact.origin).max();
            highest.insert(id.clone(), origin.unwrap_or(crate::model::Origin::Hook));
        }
    }
    Ok(highest)
}

/// The versions of one fact, earliest first; versions of an origin that another one replaced are left in.
pub(crate) fn versions(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    kind: Kind,
    id: &str,
) -> Result<Vec<KnownFact>> {
    let place = of(number).kind(kind).text(id);
    let hidden: BTreeSet<_> = session(refs, number)?.hidden.iter().copied().collect();
    let rows = view.scan(
        key::FACT_IDS,
        &place.clone().build(),
        &place.end(),
        Direction::Ascending,
        usize::MAX,
    )?;
    let mut known = resolve(view, rows.iter().map(|(_, row)| row.as_slice()), &hidden)?;
    known.retain(|known| known.fact.id == id);
    Ok(known)
}

/// The facts between two keys of the table by time.
fn read(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    from: &[u8],
    to: &[u8],
) -> Result<Vec<KnownFact>> {
    let hidden: BTreeSet<_> = session(refs, number)?.hidden.iter().copied().collect();
    let rows = view.scan(key::FACTS, from, to, Direction::Ascending, usize::MAX)?;
    resolve(view, rows.iter().map(|(_, row)| row.as_slice()), &hidden)
}

fn resolve<'a>(
    view: &dyn Snapshot,
    rows: impl Iterator<Item = &'a [u8]>,
    hidden: &BTreeSet<crate::model::OperationId>,
) -> Result<Vec<KnownFact>> {
    let mut reader = Reader::default();
    let mut found = Vec::new();
    for row in rows {
        let row = FactRow::decode(row).map_err(Error::corrupt("a fact's place"))?;
        if !hidden.contains(&row.operation) {
            found.push(reader.read(view, &row)?);
        }
    }
    Ok(found)
}

/// Reads facts from their pages, each page once.
#[derive(Default)]
pub(crate) struct Reader {
    pages: BTreeMap<u64, (Vec<Option<Fact>>, Option<Arc<str>>)>,
}

impl Reader {
    /// The fact of this row, which may be asked for once.
    pub(crate) fn read(&mut self, view: &dyn Snapshot, row: &FactRow) -> Result<KnownFact> {
        if !self.pages.contains_key(&row.page) {
            let content = object::content(view, ObjectKind::Page, row.page)?;
            let page = Page::decode(&content).map_err(Error::corrupt("a page of facts"))?;
            let source = page.source.map(Arc::from);
            self.pages.insert(row.page, (page.facts.into_iter().map(Some).collect(), source));
        }
        let (facts, source) = self.pages.get_mut(&row.page).expect("read above");
        let fact = facts
            .get_mut(row.ordinal as usize)
            .and_then(Option::take)
            .ok_or_else(|| Error::missing("a fact on its page"))?;
        Ok(KnownFact { fact, source: source.clone() })
    }
}

/// The facts of one kind up to a time, the newest first, one for each id, of the newest `limit` rows.
pub(crate) fn newest(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    kind: Kind,
    upto: Timestamp,
    limit: usize,
) -> Result<Vec<KnownFact>> {
    let hidden: BTreeSet<_> = session(refs, number)?.hidden.iter().copied().collect();
    let from = of(number).kind(kind).build();
    let to = of(number).kind(kind).time(upto).end();
    let rows = view.scan(key::FACTS, &from, &to, Direction::Descending, limit)?;
    let mut facts = resolve(view, rows.iter().map(|(_, row)| row.as_slice()), &hidden)?;
    let replaced = replaced(view, refs, number, kind, &facts)?;
    let mut seen = BTreeSet::new();
    facts.retain(|known| {
        let outdone = replaced.get(&known.fact.id).is_some_and(|best| *best > known.fact.origin);
        !outdone && seen.insert(known.fact.id.clone())
    });
    Ok(facts)
}

/// The time of the last fact of any kind at or before a time.
pub(crate) fn last_at(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    time: Timestamp,
) -> Result<Option<Timestamp>> {
    let hidden: BTreeSet<_> = session(refs, number)?.hidden.iter().copied().collect();
    let mut last = None;
    for kind in Kind::facts() {
        let from = of(number).kind(kind).build();
        let mut to = of(number).kind(kind).time(time).end();
        // Usually the first row decides; more are read only where an import was undone.
        'rows: loop {
            let limit = if hidden.is_empty() { 1 } else { 64 };
            let rows = view.scan(key::FACTS, &from, &to, Direction::Descending, limit)?;
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
