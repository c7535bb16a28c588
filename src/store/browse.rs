//! The history in pieces, for whoever shows it: a page at a time, so that nothing ever reads all of it.

use super::resolve::Point;
use super::session::Session;
use super::{LogEntry, Store};
use crate::backend::{Direction, Snapshot, Table};
use crate::engine::checkpoint;
use crate::engine::fact::{self, KnownFact};
use crate::engine::lineage::{self, At};
use crate::engine::live::View;
use crate::engine::lookup;
use crate::engine::object;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{Delta, FactRow, Header, ObjectKind, RevisionRow, decode_entry, decode_key};
use crate::model::{
    BranchNumber, BranchStatus, Change, Checkpoint, Entry, Kind, Origin, SessionNumber, Timestamp,
};
use std::collections::BTreeSet;

/// Where something stands in a session's history: by time; at one time facts come first, then revisions and
/// checkpoints by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its time; of a revision its effective time.
    pub time: Timestamp,
    /// Its order among what has the same time.
    pub rank: Rank,
}

/// The order of what has the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
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
pub enum Way {
    /// To what was before.
    Older,
    /// To what came after.
    Newer,
}

/// One thing in a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct PageItem {
    /// Where it stands.
    pub place: Place,
    /// The branch it lies on; of a fact the one checked out then.
    pub branch: String,
    /// What it is.
    pub what: Recorded,
}

/// What a thing in a session's history is.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// A revision.
    Revision {
        /// The revision.
        entry: LogEntry,
        /// The numbers of the revisions it came from: two of a merge.
        parents: Vec<u64>,
        /// What it changed, the first [`SHOWN_CHANGES`] of it; nothing of a revision that starts from elsewhere.
        changes: Vec<Change>,
    },
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
    /// A fact.
    Fact(Box<KnownFact>),
}

/// A part of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPage {
    /// What was found, in the order it was asked for.
    pub items: Vec<PageItem>,
    /// Where to go on; `None` where the history ends.
    pub next: Option<Place>,
}

/// How many changes of one revision a page shows.
pub const SHOWN_CHANGES: usize = 16;
/// A count of activity goes no further than this.
pub const ACTIVITY_LIMIT: u32 = 128;
/// How many of each sort of mark an activity names, the latest.
const MARKS: usize = 500;

/// How much happened, by stretches of time of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
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
pub struct BranchLine {
    /// Its name.
    pub name: String,
    /// The branch it began on, and the revision it began with if there was one.
    pub base: Option<(String, Option<Place>)>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its last revision.
    pub head: Option<Place>,
    /// What has become of it.
    pub status: BranchStatus,
}

struct Raw {
    place: Place,
    stream: Stream,
    row: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Stream {
    Revisions(BranchNumber),
    Checkpoints,
    Facts(Kind),
}

impl Stream {
    fn table(self) -> Table {
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
    fn cut(self, number: SessionNumber, place: Place, way: Way) -> Vec<u8> {
        let time = self.start(number).time(place.time);
        // A key may go on behind what names the place: the next one is behind all that begin so.
        let exact = |key: KeyBuilder| if way == Way::Newer { key.end() } else { key.build() };
        match (self, place.rank) {
            (Self::Facts(_), Rank::Sequence(_)) => time.end(),
            (Self::Facts(kind), Rank::Fact { kind: other, place, hash }) => {
                match kind.code().cmp(&other) {
                    std::cmp::Ordering::Less => time.end(),
                    std::cmp::Ordering::Equal => exact(time.number(place).bytes(&hash)),
                    std::cmp::Ordering::Greater => time.build(),
                }
            }
            (_, Rank::Sequence(sequence)) => exact(time.number(sequence)),
            (_, Rank::Fact { .. }) => time.build(),
        }
    }

    fn place(self, key: &[u8]) -> Option<Place> {
        let rank = match self {
            Self::Revisions(_) | Self::Checkpoints => Rank::Sequence(key::last_number(key)?),
            Self::Facts(kind) => Rank::Fact {
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
        Some(Place { time: key::time_at(key, offset)?, rank })
    }
}

impl Store {
    /// A number that grows with everything that is written: whoever watches a store compares it.
    ///
    /// # Errors
    /// As every read.
    pub fn position(&self) -> Result<u64> {
        Ok(self.engine.live.refs()?.1)
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
    pub fn page(
        &self,
        kinds: PageKinds,
        branch: Option<&str>,
        from: Option<Place>,
        way: Way,
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
            streams.extend(shown.map(|(number, _)| Stream::Revisions(number)));
        }
        if kinds.checkpoints {
            streams.push(Stream::Checkpoints);
        }
        if kinds.facts {
            streams.extend(Kind::facts().map(Stream::Facts));
        }
        let hidden: BTreeSet<_> = session.hidden.iter().copied().collect();
        let (mut rows, mut horizon): (Vec<Raw>, Option<Place>) = (Vec::new(), None);
        let ahead = |a: Place, b: Place| if way == Way::Older { a > b } else { a < b };
        for stream in streams {
            let (begin, end) = (stream.start(self.number).build(), stream.start(self.number).end());
            let (low, high, direction) = match (way, from) {
                (Way::Older, None) => (begin, end, Direction::Descending),
                (Way::Older, Some(place)) => {
                    (begin, stream.cut(self.number, place, way), Direction::Descending)
                }
                (Way::Newer, None) => (begin, end, Direction::Ascending),
                (Way::Newer, Some(place)) => {
                    (stream.cut(self.number, place, way), end, Direction::Ascending)
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
                rows.push(Raw { place, stream, row });
            }
        }
        rows.sort_by(
            |a, b| if way == Way::Older { b.place.cmp(&a.place) } else { a.place.cmp(&b.place) },
        );
        // Behind the horizon a stream may hold more than was read of it.
        rows.retain(|row| horizon.is_none_or(|horizon| !ahead(horizon, row.place)));
        let more = horizon.is_some() || rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|row| row.place).or(horizon).filter(|_| more);
        let mut items = Vec::with_capacity(rows.len());
        let mut facts = fact::Reader::default();
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
        view: &View,
        raw: &Raw,
        hidden: &BTreeSet<crate::model::OperationId>,
        facts: &mut fact::Reader,
    ) -> Result<Option<PageItem>> {
        let session = session_refs(&view.refs, self.number)?;
        let place = raw.place;
        let (branch, what) = match (raw.stream, place.rank) {
            (Stream::Revisions(branch), Rank::Sequence(sequence)) => {
                let at = At { branch, sequence };
                let entry = self.log_entry(view, at)?;
                let row = lineage::revision(view, self.number, at)?;
                let header =
                    Header::decode(&row.header).map_err(Error::corrupt("a revision's header"))?;
                // The first parent may be folded: what is left before this one stands for it.
                let before = timeline::before(view, &view.refs, self.number, at)?;
                let merged = header.parents.iter().skip(1).map(|parent| parent.sequence);
                let parents = before.map(|at| at.sequence).into_iter().chain(merged).collect();
                let changes =
                    if header.reset.is_some() { Vec::new() } else { first_changes(view, &row)? };
                (branch, Recorded::Revision { entry, parents, changes })
            }
            (Stream::Checkpoints, _) => {
                let row = crate::format::CheckpointRow::decode(&raw.row)
                    .map_err(Error::corrupt("a checkpoint"))?;
                (row.checkpoint.branch, Recorded::Checkpoint(Box::new(row.checkpoint)))
            }
            (Stream::Facts(_), _) | (Stream::Revisions(_), Rank::Fact { .. }) => {
                let row = FactRow::decode(&raw.row).map_err(Error::corrupt("a fact's place"))?;
                if hidden.contains(&row.operation) {
                    return Ok(None);
                }
                let known = facts.read(view, &row)?;
                let (kind, id) = (known.fact.kind, &known.fact.id);
                if known.fact.origin == Origin::Hook
                    && fact::known_elsewhere(view, &view.refs, self.number, kind, id)?
                {
                    return Ok(None);
                }
                let branch = timeline::branch_at(view, self.number, place.time)?;
                (branch, Recorded::Fact(Box::new(known)))
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
    pub fn place_of(&self, point: &Point) -> Result<Option<Place>> {
        if let Some(checkpoint) = point.named_checkpoint() {
            let rank = Rank::Sequence(checkpoint.sequence);
            return Ok(Some(Place { time: checkpoint.time, rank }));
        }
        if let Some(time) = point.time {
            let exact = point.at.map(|at| timeline::head_at(&self.view()?, self.number, at));
            let revision = exact.transpose()?.filter(|(head, _)| head.effective == time);
            let rank = Rank::Sequence(revision.map_or(u64::MAX, |(head, _)| head.sequence));
            return Ok(Some(Place { time, rank }));
        }
        let last = self.summary()?.last_event;
        Ok(last.map(|time| Place { time, rank: Rank::Sequence(u64::MAX) }))
    }

    /// The facts of a kind up to a point, the newest first, one for each id, of the newest `limit` that were recorded.
    ///
    /// # Errors
    /// As every read.
    pub fn recent_facts(&self, point: &Point, kind: Kind, limit: usize) -> Result<Vec<KnownFact>> {
        let view = self.view()?;
        let upto = point.time.unwrap_or(Timestamp::from_micros(i64::MAX));
        fact::newest(&view, &view.refs, self.number, kind, upto, limit)
    }

    /// The versions of a fact, earliest first.
    ///
    /// # Errors
    /// As every read.
    pub fn fact_versions(&self, kind: Kind, id: &str) -> Result<Vec<KnownFact>> {
        let view = self.view()?;
        fact::versions(&view, &view.refs, self.number, kind, id)
    }

    /// How much happened from one time to another, in so many stretches of time.
    ///
    /// Costs a bounded read for each stretch, however much happened.
    ///
    /// # Errors
    /// As every read.
    pub fn activity(&self, from: Timestamp, to: Timestamp, stretches: usize) -> Result<Activity> {
        let view = self.view()?;
        let session = session_refs(&view.refs, self.number)?;
        let span = i128::from(to.micros_since(from)).max(1);
        let edge = |place: usize| {
            let offset = span * place as i128 / stretches.max(1) as i128;
            from.plus_micros(i64::try_from(offset).unwrap_or(i64::MAX))
        };
        let shown = (0..).zip(&session.branches).filter(|(_, branch)| !branch.hidden);
        let mut streams: Vec<Stream> = shown.map(|(number, _)| Stream::Revisions(number)).collect();
        streams.push(Stream::Checkpoints);
        streams.extend(Kind::facts().map(Stream::Facts));
        let mut activity = Activity::default();
        // A stream that is empty over the whole range costs one read, not one for each stretch.
        let range = |stream: Stream, from: Timestamp, to: Timestamp, last: bool| {
            let to = stream.start(self.number).time(to);
            let to = if last { to.end() } else { to.build() };
            (stream.start(self.number).time(from).build(), to)
        };
        let mut used = Vec::new();
        for stream in streams {
            let (low, high) = range(stream, from, to, true);
            if !view.scan(stream.table(), &low, &high, Direction::Ascending, 1)?.is_empty() {
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
                let rows = view.scan(stream.table(), &low, &high, Direction::Ascending, room)?;
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
    pub fn branch_lines(&self) -> Result<Vec<BranchLine>> {
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
                        let at = At { branch: base, sequence };
                        let time = lineage::revision(&view, self.number, at)?.effective;
                        Some(Place { time, rank: Rank::Sequence(sequence) })
                    };
                    Some((session.branch(base)?.name.clone(), place))
                }
            };
            lines.push(BranchLine {
                name: branch.name.clone(),
                base,
                created_at: branch.changes.first().map(|change| change.time).unwrap_or_default(),
                head: branch.head.map(|head| Place {
                    time: head.effective,
                    rank: Rank::Sequence(head.sequence),
                }),
                status: branch.now().status,
            });
        }
        Ok(lines)
    }
}

/// Puts an item behind the others. Of two versions of a fact with one time and place the one recorded last counts.
fn put(items: &mut Vec<PageItem>, item: PageItem) {
    let recorded = |item: &PageItem| match &item.what {
        Recorded::Fact(known) => Some(known.fact.recorded_at),
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
fn first_changes(view: &dyn Snapshot, row: &RevisionRow) -> Result<Vec<Change>> {
    let Some(part) = row.parts.first() else { return Ok(Vec::new()) };
    let content = object::content(view, ObjectKind::Delta, *part)?;
    let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
    delta
        .changes
        .iter()
        .take(SHOWN_CHANGES)
        .map(|change| {
            let key = decode_key(&change.key).map_err(Error::corrupt("a delta"))?;
            let entry = |side| -> Result<Option<Entry>> {
                lookup::bytes(view, side)?
                    .map(|bytes| {
                        decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))
                    })
                    .transpose()
            };
            Ok(Change { old: entry(&change.old)?, new: entry(&change.new)?, key: key.clone() })
        })
        .collect()
}
