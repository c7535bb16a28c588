//! The history in pieces, for whoever shows it: a page at a time, so that nothing ever reads all of it.

use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::{LogEntry, Store};
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::engine::checkpoint;
use crate::engine::fact::{self, SourcedFact};
use crate::engine::journal_follower::ReadSnapshot;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::lookup;
use crate::engine::object;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    Delta, FactRow, ObjectKind, RevisionHeader, RevisionRow, decode_entry, decode_key,
};
use crate::model::{
    BranchNumber, BranchStatus, Checkpoint, ClaimEntry, EntryChange, FactOrigin, Kind,
    SessionNumber, Timestamp,
};
use std::collections::BTreeSet;

/// Where something stands in a session's history: by time; at one time facts come first, then revisions and
/// checkpoints by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryPosition {
    /// Its time; of a revision its effective time.
    pub time: Timestamp,
    /// Its order among what has the same time.
    pub rank: HistoryRank,
}

/// The order of what has the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryRank {
    /// A fact.
    Fact {
        /// The code of its kind.
        kind: u8,
        /// Its place in its source.
        place: u64,
        /// A hash of its id.
        hash: [u8; 8],
    },
    /// A revision or checkpoint of this number.
    Sequence(u64),
}

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageKinds {
    /// Whether revisions.
    pub revisions: bool,
    /// Whether checkpoints.
    pub checkpoints: bool,
    /// Whether facts.
    pub facts: bool,
}

/// Which way a page goes on from where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageDirection {
    /// To what was before.
    Older,
    /// To what came after.
    Newer,
}

/// One thing in a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct PageItem {
    /// Where it stands.
    pub place: HistoryPosition,
    /// The branch it lies on; of a fact the one checked out then.
    pub branch: String,
    /// What it is.
    pub what: PageItemContent,
}

/// What a thing in a session's history is.
#[derive(Clone, Debug, PartialEq)]
pub enum PageItemContent {
    /// A revision.
    Revision {
        /// The revision.
        entry: LogEntry,
        /// The numbers of the revisions it came from: two of a merge.
        parents: Vec<u64>,
        /// What it changed, the first [`SHOWN_CHANGES`] of it; nothing of a revision that starts from elsewhere.
        changes: Vec<EntryChange>,
    },
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
    /// A fact.
    Fact(Box<SourcedFact>),
}

/// A part of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPage {
    /// What was found, in the order it was asked for.
    pub items: Vec<PageItem>,
    /// Where to go on; `None` where the history ends.
    pub next: Option<HistoryPosition>,
}

/// How many changes of one revision a page shows.
pub const SHOWN_CHANGES: usize = 16;
/// A count of activity goes no further than this.
pub const ACTIVITY_LIMIT: u32 = 128;
/// How many of each sort of mark an activity names, the latest.
const MARKS: usize = 500;

/// How much happened, by stretches of time of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityHistogram {
    /// Revisions, checkpoints and facts in each stretch, counted up to [`ACTIVITY_LIMIT`].
    pub counts: Vec<u32>,
    /// When an agent's context was compacted.
    pub compactions: Vec<Timestamp>,
    /// When a verification failed, the latest ones.
    pub failures: Vec<Timestamp>,
    /// When a verification passed, the latest ones.
    pub passes: Vec<Timestamp>,
}

/// A branch as a line in time.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTimeline {
    /// Its name.
    pub name: String,
    /// The branch it began on, and the revision it began with if there was one.
    pub base: Option<(String, Option<HistoryPosition>)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its last revision.
    pub head: Option<HistoryPosition>,
    /// What has become of it.
    pub status: BranchStatus,
}

struct RawHistoryRow {
    place: HistoryPosition,
    stream: HistoryStream,
    row: Vec<u8>,
}

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

    /// Whether this stream's rows of a place's time come before, at or after it; the key of the place itself.
    fn cut(self, number: SessionNumber, place: HistoryPosition, way: PageDirection) -> Vec<u8> {
        let time = self.start(number).time(place.time);
        // A key may go on behind what names the place: the next one is behind all that begin so.
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
    /// A number that grows with everything that is written: whoever watches a store compares it.
    ///
    /// # Errors
    /// As every read.
    pub fn position(&self) -> Result<u64> {
        Ok(self.engine.follower.refs()?.1)
    }
}

impl Session {
    /// The part of the history before or after a place (of all branches, or of one), at most `limit` things. `None`
    /// begins at the newest going back, and at the oldest going on.
    ///
    /// Costs a few reads for each thing shown, however long the history.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a branch that is not there; as every read.
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
        let mut streams = Vec::new();
        if kinds.revisions {
            let only = branch
                .map(|name| {
                    session.branch_named(name).ok_or_else(|| Error::not_found("branch", name))
                })
                .transpose()?;
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
            let (low, high, direction) = match (way, from) {
                (PageDirection::Older, None) => (begin, end, ScanDirection::Descending),
                (PageDirection::Older, Some(place)) => {
                    (begin, stream.cut(self.number, place, way), ScanDirection::Descending)
                }
                (PageDirection::Newer, None) => (begin, end, ScanDirection::Ascending),
                (PageDirection::Newer, Some(place)) => {
                    (stream.cut(self.number, place, way), end, ScanDirection::Ascending)
                }
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
        // Behind the horizon a stream may hold more than was read of it.
        rows.retain(|row| horizon.is_none_or(|horizon| !ahead(horizon, row.place)));
        let more = horizon.is_some() || rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.place).or(horizon).filter(|_| more);
        let mut items = Vec::with_capacity(rows.len());
        let mut facts = fact::FactReader::default();
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
        let (branch, what) = match (raw.stream, place.rank) {
            (HistoryStream::Revisions(branch), HistoryRank::Sequence(sequence)) => {
                let at = RevisionRef { branch, sequence };
                let entry = self.log_entry(view, at)?;
                let row = lineage::revision(view, self.number, at)?;
                let header = RevisionHeader::decode(&row.header)
                    .map_err(Error::corrupt("a revision's header"))?;
                // The first parent may be folded: what is left before this one stands for it.
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
        Ok(Some(PageItem { place, branch, what }))
    }

    /// The place of a point in the history: that of the checkpoint or revision it names, else of its time; `None`
    /// before the first event.
    ///
    /// # Errors
    /// As every read.
    pub fn position_of(&self, point: &ResolvedMoment) -> Result<Option<HistoryPosition>> {
        if let Some(checkpoint) = point.named_checkpoint() {
            let rank = HistoryRank::Sequence(checkpoint.sequence);
            return Ok(Some(HistoryPosition { time: checkpoint.time, rank }));
        }
        if let Some(time) = point.time {
            let exact = point.at.map(|at| timeline::head_at(&self.view()?, self.number, at));
            let revision = exact.transpose()?.filter(|(head, _)| head.effective == time);
            let rank = HistoryRank::Sequence(revision.map_or(u64::MAX, |(head, _)| head.sequence));
            return Ok(Some(HistoryPosition { time, rank }));
        }
        let last = self.summary()?.last_event;
        Ok(last.map(|time| HistoryPosition { time, rank: HistoryRank::Sequence(u64::MAX) }))
    }

    /// The facts of a kind up to a point, the newest first, one for each id, of the newest `limit` that were recorded.
    ///
    /// # Errors
    /// As every read.
    pub fn recent_facts(
        &self,
        point: &ResolvedMoment,
        kind: Kind,
        limit: usize,
    ) -> Result<Vec<SourcedFact>> {
        let view = self.view()?;
        let upto = point.time.unwrap_or(Timestamp::from_micros(i64::MAX));
        fact::newest(&view, &view.refs, self.number, kind, upto, limit)
    }

    /// The versions of a fact, earliest first.
    ///
    /// # Errors
    /// As every read.
    pub fn fact_versions(&self, kind: Kind, id: &str) -> Result<Vec<SourcedFact>> {
        let view = self.view()?;
        fact::versions(&view, &view.refs, self.number, kind, id)
    }

    /// How much happened from one time to another, in so many stretches of time.
    ///
    /// Costs a bounded read for each stretch, however much happened.
    ///
    /// # Errors
    /// As every read.
    pub fn activity(
        &self,
        from: Timestamp,
        to: Timestamp,
        stretches: usize,
    ) -> Result<ActivityHistogram> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let span = i128::from(to.micros_since(from)).max(1);
        let edge = |place: usize| {
            let offset = span * place as i128 / stretches.max(1) as i128;
            from.plus_micros(i64::try_from(offset).unwrap_or(i64::MAX))
        };
        let shown = (0..).zip(&session.branches).filter(|(_, branch)| !branch.hidden);
        let mut streams: Vec<HistoryStream> =
            shown.map(|(number, _)| HistoryStream::Revisions(number)).collect();
        streams.push(HistoryStream::Checkpoints);
        streams.extend(Kind::facts().map(HistoryStream::Facts));
        let mut activity = ActivityHistogram::default();
        // A stream that is empty over the whole range costs one read, not one for each stretch.
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
        for place in 0..stretches {
            let mut count = 0;
            for stream in &used {
                let room = (ACTIVITY_LIMIT - count) as usize;
                if room == 0 {
                    break;
                }
                let last = place + 1 == stretches;
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
        };
        let compactions = checkpoint::list(&view, self.number, &compactions)?;
        activity.compactions = compactions.iter().map(|checkpoint| checkpoint.time).collect();
        for known in fact::newest(&view, &view.refs, self.number, Kind::Verification, to, MARKS)? {
            match known.fact.value.field("status").and_then(crate::model::Value::as_text) {
                Some("failed" | "error" | "timed_out") => activity.failures.push(known.fact.at),
                Some("passed") => activity.passes.push(known.fact.at),
                _ => {}
            }
        }
        Ok(activity)
    }

    /// The branches as lines in time, in the order they were made.
    ///
    /// # Errors
    /// As every read.
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

/// Puts an item behind the others. Of two versions of a fact with one time and place the one recorded last counts.
fn put(items: &mut Vec<PageItem>, item: PageItem) {
    let recorded = |item: &PageItem| match &item.what {
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

/// The first changes of a revision, from the first part of its delta.
fn first_changes(view: &dyn Snapshot, row: &RevisionRow) -> Result<Vec<EntryChange>> {
    let Some(part) = row.parts.first() else { return Ok(Vec::new()) };
    let content = object::content(view, ObjectKind::Delta, *part)?;
    let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
    delta
        .changes
        .iter()
        .take(SHOWN_CHANGES)
        .map(|change| {
            let key = decode_key(&change.key).map_err(Error::corrupt("a delta"))?;
            let entry = |side| -> Result<Option<ClaimEntry>> {
                lookup::delta_side_bytes(view, side)?
                    .map(|bytes| {
                        decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))
                    })
                    .transpose()
            };
            Ok(EntryChange { old: entry(&change.old)?, new: entry(&change.new)?, key: key.clone() })
        })
        .collect()
}
