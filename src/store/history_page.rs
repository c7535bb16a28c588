//! The history in pages, for user interfaces: no call reads all of it.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::{LogEntry, Store};
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::engine::checkpoint;
use crate::engine::fact::{self, SourcedFact};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::lookup;
use crate::engine::object;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{FactRow, ObjectKind, RevisionRow};
use crate::model::{
    BranchNumber, BranchStatus, Checkpoint, EntryChange, FactOrigin, Kind, SessionNumber, Timestamp,
};
use std::collections::BTreeSet;

/// A position in the history of a session. Positions are ordered by time; at equal times facts come
/// first, then revisions and checkpoints by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryPosition {
    /// The time; for a revision its effective time.
    pub time: Timestamp,
    /// The order among items with the same time.
    pub rank: HistoryRank,
}

/// The order of items with the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryRank {
    /// A fact.
    Fact {
        /// The code of the fact's kind.
        kind: u8,
        /// The position of the fact in its source.
        place: u64,
        /// A hash of the fact's id.
        hash: [u8; 8],
    },
    /// A revision or checkpoint of this number.
    Sequence(u64),
}

/// Which kinds of items a page contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageKinds {
    /// Whether it contains revisions.
    pub revisions: bool,
    /// Whether it contains checkpoints.
    pub checkpoints: bool,
    /// Whether it contains facts.
    pub facts: bool,
}

/// The direction in which pages continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageDirection {
    /// Towards earlier items.
    Older,
    /// Towards later items.
    Newer,
}

/// An item of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct PageItem {
    /// The position of the item.
    pub place: HistoryPosition,
    /// The branch of the item; for a fact, the branch that was checked out then.
    pub branch: String,
    /// The content of the item.
    pub content: PageItemContent,
}

/// The content of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum PageItemContent {
    /// A revision.
    Revision {
        /// The revision as shown in a log.
        entry: LogEntry,
        /// The numbers of its parents: two for a merge. For a folded first parent, the number of
        /// the last revision that is left before it.
        parents: Vec<u64>,
        /// At most its first [`SHOWN_CHANGES`] changes; empty for a revision with a reset.
        changes: Vec<EntryChange>,
    },
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
    /// A fact.
    Fact(Box<SourcedFact>),
}

/// A page of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPage {
    /// The items, in the requested order.
    pub items: Vec<PageItem>,
    /// Where the next page begins; `None` at the end of the history.
    pub next: Option<HistoryPosition>,
}

/// Maximum number of changes that a page has of one revision.
pub const SHOWN_CHANGES: usize = 16;
/// Maximum count of a period: counting stops there.
pub const ACTIVITY_LIMIT: u32 = 128;
/// Maximum number of compactions, and of results of verifications, in a histogram: the latest ones.
const MARKS: usize = 500;

/// The number of events in consecutive periods of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityHistogram {
    /// The number of revisions, checkpoints and facts in each period, at most [`ACTIVITY_LIMIT`].
    pub counts: Vec<u32>,
    /// The times of the latest compactions of an agent's context.
    pub compactions: Vec<Timestamp>,
    /// The times of the failures among the latest verifications, the latest first.
    pub failures: Vec<Timestamp>,
    /// The times of the passes among the latest verifications, the latest first.
    pub passes: Vec<Timestamp>,
}

/// A branch on a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTimeline {
    /// The name of the branch.
    pub name: String,
    /// The name of the branch from which it was forked, and the position of the base revision, if
    /// there was one.
    pub base: Option<(String, Option<HistoryPosition>)>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The position of its head.
    pub head: Option<HistoryPosition>,
    /// The status of the branch.
    pub status: BranchStatus,
}

/// A row of the history that is not decoded yet.
struct RawHistoryRow {
    place: HistoryPosition,
    stream: HistoryStream,
    row: Vec<u8>,
}

/// A part of the history whose rows are sorted by position.
#[derive(Clone, Copy)]
enum HistoryStream {
    Revisions(BranchNumber),
    Checkpoints,
    Facts(Kind),
}

impl HistoryStream {
    fn table(self) -> TableId {
        match self {
            Self::Revisions(_) => key::TIMES,
            Self::Checkpoints => key::CHECKPOINTS,
            Self::Facts(_) => key::FACTS,
        }
    }

    fn start(self, number: SessionNumber) -> KeyBuilder {
        match self {
            Self::Revisions(branch) => of(number).branch(branch),
            Self::Checkpoints => of(number),
            Self::Facts(kind) => of(number).kind(kind),
        }
    }

    /// Returns the key at which a page that continues from a position begins in this stream, or
    /// ends if it goes back. The row at the position is not on the page.
    fn cut(self, number: SessionNumber, place: HistoryPosition, way: PageDirection) -> Vec<u8> {
        let time = self.start(number).time(place.time);
        // The key of a row may continue after the position, so the end is after all keys with this
        // prefix.
        let exact =
            |key: KeyBuilder| if way == PageDirection::Newer { key.end() } else { key.build() };
        match (self, place.rank) {
            (Self::Facts(_), HistoryRank::Sequence(_)) => time.end(),
            (Self::Facts(kind), HistoryRank::Fact { kind: other, place, hash }) => {
                match kind.code().cmp(&other) {
                    std::cmp::Ordering::Less => time.end(),
                    std::cmp::Ordering::Equal => exact(time.number(place).bytes(&hash)),
                    std::cmp::Ordering::Greater => time.build(),
                }
            }
            (_, HistoryRank::Sequence(sequence)) => exact(time.number(sequence)),
            (_, HistoryRank::Fact { .. }) => time.build(),
        }
    }

    /// Returns the position of the row with this key.
    fn place(self, key: &[u8]) -> Option<HistoryPosition> {
        let rank = match self {
            Self::Revisions(_) | Self::Checkpoints => HistoryRank::Sequence(key::last_number(key)?),
            Self::Facts(kind) => HistoryRank::Fact {
                kind: kind.code(),
                place: key::number_at(key, 13)?,
                hash: *key.get(21..)?.first_chunk()?,
            },
        };
        let offset = match self {
            Self::Revisions(_) => 8,
            Self::Checkpoints => 4,
            Self::Facts(_) => 5,
        };
        Some(HistoryPosition { time: key::time_at(key, offset)?, rank })
    }
}

impl Store {
    /// Returns a number that every write increases, for clients that poll for changes.
    pub fn position(&self) -> Result<u64> {
        Ok(self.engine.follower.refs()?.1)
    }
}

impl Session {
    /// Returns at most `limit` items before or after a position, of all branches or of one. Without
    /// a position, it begins with the newest item going back, and with the oldest going forward. A
    /// page may have fewer items although others follow: see [`HistoryPage::next`].
    ///
    /// This takes a few reads for each item, however long the history is.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a branch that does not exist; also if the store cannot be read or is
    /// damaged.
    pub fn history_page(
        &self,
        kinds: PageKinds,
        branch: Option<&str>,
        from: Option<HistoryPosition>,
        way: PageDirection,
        limit: usize,
    ) -> Result<HistoryPage> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let only = branch.map(|name| session.branch_by_name(name)).transpose()?;
        let mut streams = Vec::new();
        if kinds.revisions {
            let shown = (0..)
                .zip(&session.branches)
                .filter(|(number, branch)| only.map_or(!branch.hidden, |only| only == *number));
            streams.extend(shown.map(|(number, _)| HistoryStream::Revisions(number)));
        }
        if kinds.checkpoints {
            streams.push(HistoryStream::Checkpoints);
        }
        if kinds.facts {
            streams.extend(Kind::facts().map(HistoryStream::Facts));
        }
        let hidden: BTreeSet<_> = session.hidden.iter().copied().collect();
        let (mut rows, mut horizon): (Vec<RawHistoryRow>, Option<HistoryPosition>) =
            (Vec::new(), None);
        let ahead = |a: HistoryPosition, b: HistoryPosition| {
            if way == PageDirection::Older { a > b } else { a < b }
        };
        for stream in streams {
            let (begin, end) = (stream.start(self.number).build(), stream.start(self.number).end());
            let cut = from.map(|place| stream.cut(self.number, place, way));
            let (low, high, direction) = match way {
                PageDirection::Older => (begin, cut.unwrap_or(end), ScanDirection::Descending),
                PageDirection::Newer => (cut.unwrap_or(begin), end, ScanDirection::Ascending),
            };
            let found = view.scan(stream.table(), &low, &high, direction, limit)?;
            let last = found.last().and_then(|(key, _)| stream.place(key));
            if found.len() >= limit
                && let Some(last) = last
                && horizon.is_none_or(|horizon| ahead(last, horizon))
            {
                horizon = Some(last);
            }
            for (key, row) in found {
                let Some(place) = stream.place(&key) else { continue };
                rows.push(RawHistoryRow { place, stream, row });
            }
        }
        rows.sort_by(|a, b| {
            if way == PageDirection::Older { b.place.cmp(&a.place) } else { a.place.cmp(&b.place) }
        });
        // Beyond the horizon, a stream may have rows that were not read.
        rows.retain(|row| horizon.is_none_or(|horizon| !ahead(horizon, row.place)));
        let more = horizon.is_some() || rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.place).or(horizon).filter(|_| more);
        let mut items = Vec::with_capacity(rows.len());
        let mut facts = fact::FactReader::default();
        let pages = rows.iter().filter(|raw| matches!(raw.stream, HistoryStream::Facts(_)));
        let pages = pages.filter_map(|raw| FactRow::decode(&raw.row).ok());
        let pages = pages.filter(|row| !hidden.contains(&row.operation));
        facts.open_pages(&view, pages.map(|row| row.page))?;
        for row in rows {
            if let Some(item) = self.page_item(&view, &row, &hidden, &mut facts)? {
                put(&mut items, item);
            }
        }
        if let Some(branch) = branch {
            items.retain(|item| item.branch == branch);
        }
        Ok(HistoryPage { items, next })
    }

    fn page_item(
        &self,
        view: &ReadSnapshot,
        raw: &RawHistoryRow,
        hidden: &BTreeSet<crate::model::OperationId>,
        facts: &mut fact::FactReader,
    ) -> Result<Option<PageItem>> {
        let session = session_refs(&view.refs, self.number)?;
        let place = raw.place;
        let (branch, content) = match (raw.stream, place.rank) {
            (HistoryStream::Revisions(branch), HistoryRank::Sequence(sequence)) => {
                let at = RevisionRef { branch, sequence };
                let row = lineage::revision(view, self.number, at)?;
                let entry = self.entry_of_row(view, at, &row)?;
                let header = lineage::header(&row.header)?;
                // The first parent may be folded. Then the last revision that is left before it is
                // used.
                let before = timeline::parent_of(view, &view.refs, self.number, at)?;
                let merged = header.parents.iter().skip(1).map(|parent| parent.sequence);
                let parents = before.map(|at| at.sequence).into_iter().chain(merged).collect();
                let changes =
                    if header.reset.is_some() { Vec::new() } else { first_changes(view, &row)? };
                (branch, PageItemContent::Revision { entry, parents, changes })
            }
            (HistoryStream::Checkpoints, _) => {
                let row = crate::format::CheckpointRow::decode(&raw.row)
                    .map_err(Error::corrupt("a checkpoint"))?;
                (row.checkpoint.branch, PageItemContent::Checkpoint(Box::new(row.checkpoint)))
            }
            (HistoryStream::Facts(_), _)
            | (HistoryStream::Revisions(_), HistoryRank::Fact { .. }) => {
                let row = FactRow::decode(&raw.row).map_err(Error::corrupt("a fact's place"))?;
                if hidden.contains(&row.operation) {
                    return Ok(None);
                }
                let known = facts.read(view, &row)?;
                let (kind, id) = (known.fact.kind, &known.fact.id);
                if known.fact.origin == FactOrigin::Hook
                    && fact::is_known_beyond_hooks(view, &view.refs, self.number, kind, id)?
                {
                    return Ok(None);
                }
                let branch = timeline::branch_at(view, self.number, place.time)?;
                (branch, PageItemContent::Fact(Box::new(known)))
            }
        };
        let branch = session.branch(branch)?.name.clone();
        Ok(Some(PageItem { place, branch, content }))
    }

    /// Returns the position of a moment in the history: that of the checkpoint or revision that it
    /// names, or else the last one at its time. For a moment without a time, it is the last one of
    /// the session; `None` if the session has no events.
    pub fn position_of(&self, moment: &ResolvedMoment) -> Result<Option<HistoryPosition>> {
        if let Some(checkpoint) = moment.named_checkpoint() {
            let rank = HistoryRank::Sequence(checkpoint.sequence);
            return Ok(Some(HistoryPosition { time: checkpoint.time, rank }));
        }
        if let Some(time) = moment.time {
            let exact = moment.at.map(|at| timeline::head_at(&self.view()?, self.number, at));
            let revision = exact.transpose()?.filter(|(head, _)| head.effective == time);
            let rank = HistoryRank::Sequence(revision.map_or(u64::MAX, |(head, _)| head.sequence));
            return Ok(Some(HistoryPosition { time, rank }));
        }
        let last = self.summary()?.last_event;
        Ok(last.map(|time| HistoryPosition { time, rank: HistoryRank::Sequence(u64::MAX) }))
    }

    /// Returns the newest facts of a kind up to a moment, newest first, each id once. At most
    /// `limit` versions are read, so fewer facts may be returned although there are others.
    pub fn recent_facts(
        &self,
        moment: &ResolvedMoment,
        kind: Kind,
        limit: usize,
    ) -> Result<Vec<SourcedFact>> {
        let view = self.view()?;
        fact::newest(&view, &view.refs, self.number, kind, moment.until(), limit)
    }

    /// Returns the versions of a fact, earliest first.
    pub fn fact_versions(&self, kind: Kind, id: &str) -> Result<Vec<SourcedFact>> {
        let view = self.view()?;
        fact::versions(&view, &view.refs, self.number, kind, id)
    }

    /// Returns how many events there were in each of `period_count` periods of equal length between
    /// two times.
    ///
    /// This takes bounded reads for each period, however many events there are.
    pub fn activity(
        &self,
        from: Timestamp,
        to: Timestamp,
        period_count: usize,
    ) -> Result<ActivityHistogram> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let span = i128::from(to.micros_since(from)).max(1);
        let edge = |place: usize| {
            let offset = span * place as i128 / period_count.max(1) as i128;
            from.plus_micros(i64::try_from(offset).unwrap_or(i64::MAX))
        };
        let shown = (0..).zip(&session.branches).filter(|(_, branch)| !branch.hidden);
        let mut streams: Vec<HistoryStream> =
            shown.map(|(number, _)| HistoryStream::Revisions(number)).collect();
        streams.push(HistoryStream::Checkpoints);
        streams.extend(Kind::facts().map(HistoryStream::Facts));
        let mut activity = ActivityHistogram::default();
        // A stream that is empty over the whole range takes one read, not one for each period.
        let range = |stream: HistoryStream, from: Timestamp, to: Timestamp, last: bool| {
            let to = stream.start(self.number).time(to);
            let to = if last { to.end() } else { to.build() };
            (stream.start(self.number).time(from).build(), to)
        };
        let mut used = Vec::new();
        for stream in streams {
            let (low, high) = range(stream, from, to, true);
            if !view.scan(stream.table(), &low, &high, ScanDirection::Ascending, 1)?.is_empty() {
                used.push(stream);
            }
        }
        for place in 0..period_count {
            let mut count = 0;
            for stream in &used {
                let room = (ACTIVITY_LIMIT - count) as usize;
                if room == 0 {
                    break;
                }
                let last = place + 1 == period_count;
                let (low, high) = range(*stream, edge(place), edge(place + 1), last);
                let rows =
                    view.scan(stream.table(), &low, &high, ScanDirection::Ascending, room)?;
                count += rows.len() as u32;
            }
            activity.counts.push(count);
        }
        let compactions = checkpoint::CheckpointFilter {
            tag: Some("compaction".to_owned()),
            since: Some(from),
            until: Some(to),
            limit: Some(MARKS),
            ..Default::default()
        };
        let compactions = checkpoint::list(&view, self.number, &compactions)?;
        let compactions = compactions.iter().filter(|checkpoint| checkpoint.is_compaction());
        activity.compactions = compactions.map(|checkpoint| checkpoint.time).collect();
        let checks = fact::newest(&view, &view.refs, self.number, Kind::Verification, to, MARKS)?;
        for known in checks.iter().filter(|known| known.fact.at >= from) {
            match known.fact.value.field("status").and_then(crate::model::Value::as_text) {
                Some("failed" | "error" | "timed_out") => activity.failures.push(known.fact.at),
                Some("passed") => activity.passes.push(known.fact.at),
                _ => {}
            }
        }
        Ok(activity)
    }

    /// Returns the visible branches on a time line, in the order in which they were created.
    pub fn branch_lines(&self) -> Result<Vec<BranchTimeline>> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let mut lines = Vec::new();
        for branch in session.branches.iter().filter(|branch| !branch.hidden) {
            let base = match branch.base {
                None => None,
                Some((base, sequence)) => {
                    let place = if sequence == 0 {
                        None
                    } else {
                        let at = RevisionRef { branch: base, sequence };
                        let time = lineage::revision(&view, self.number, at)?.effective;
                        Some(HistoryPosition { time, rank: HistoryRank::Sequence(sequence) })
                    };
                    Some((session.branch(base)?.name.clone(), place))
                }
            };
            lines.push(BranchTimeline {
                name: branch.name.clone(),
                base,
                created_at: branch.changes.first().map(|change| change.time).unwrap_or_default(),
                head: branch.head.map(|head| HistoryPosition {
                    time: head.effective,
                    rank: HistoryRank::Sequence(head.sequence),
                }),
                status: branch.latest_change().status,
            });
        }
        Ok(lines)
    }
}

/// Appends an item. Of two versions of a fact with the same position, only the one that was
/// recorded last is kept.
fn put(items: &mut Vec<PageItem>, item: PageItem) {
    let recorded = |item: &PageItem| match &item.content {
        PageItemContent::Fact(known) => Some(known.fact.recorded_at),
        _ => None,
    };
    match items.last_mut() {
        Some(last) if last.place == item.place => {
            if recorded(last) <= recorded(&item) {
                *last = item;
            }
        }
        _ => items.push(item),
    }
}

/// Returns the first changes in the first part of the delta of a revision.
fn first_changes(view: &dyn Snapshot, row: &RevisionRow) -> Result<Vec<EntryChange>> {
    let Some(part) = row.parts.first() else { return Ok(Vec::new()) };
    let content = object::content(view, ObjectKind::Delta, *part)?;
    lookup::delta_changes(view, &content, SHOWN_CHANGES)
}
