//! Makes the state of a revision: from the nearest keyframe, with the deltas between replayed.

use super::lineage::{self, At, Stretch};
use super::object;
use super::state::{State, StateBuilder};
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Chunk, ChunkEntry, Delta, Header, KeyframeRow, ObjectKind, Refs, RevisionRow, Side, open,
};
use crate::model::SessionNumber;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a key's entry became; `None`: it is gone.
type Overrides = BTreeMap<Vec<u8>, Option<Side>>;

/// Below this many objects one thread is faster than two.
const PARALLEL_OBJECTS: usize = 12;

/// The state of a revision. Every object read is checked against its name, and the number of claims against the
/// revision's header.
pub(crate) fn materialize(
    view: &dyn Snapshot,
    refs: &Refs,
    session: SessionNumber,
    at: At,
) -> Result<State> {
    if at.sequence == 0 {
        return Ok(State::default());
    }
    let plan = plan(view, refs, session, at)?;
    let overrides = replay(view, &plan)?;
    let state = merge(view, plan.keyframe.as_ref(), overrides)?;
    let row = lineage::revision(view, session, at)?;
    let header = Header::decode(&row.header).map_err(Error::corrupt("a revision's header"))?;
    if header.count != state.len() as u64 {
        return Err(Error::Corrupt {
            what: format!("the state of #{}", at.sequence),
            source: format!("it has {} claims, not {}", state.len(), header.count).into(),
        });
    }
    Ok(state)
}

struct Plan {
    keyframe: Option<KeyframeRow>,
    /// Revisions to replay forwards, oldest first.
    forward: Vec<RevisionRow>,
    /// Revisions to take back, newest first.
    backward: Vec<RevisionRow>,
}

fn keyframe_near(
    view: &dyn Snapshot,
    session: SessionNumber,
    stretch: Stretch,
    direction: Direction,
) -> Result<Option<(u64, KeyframeRow)>> {
    let from = of(session).branch(stretch.branch).number(stretch.after.saturating_add(1)).build();
    let to = of(session).branch(stretch.branch).number(stretch.to.saturating_add(1)).build();
    let found = view.scan(key::KEYFRAMES, &from, &to, direction, 1)?;
    let Some((place, row)) = found.first() else { return Ok(None) };
    let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
    Ok(Some((key::last_number(place).unwrap_or(0), row)))
}

fn plan(view: &dyn Snapshot, refs: &Refs, session: SessionNumber, at: At) -> Result<Plan> {
    let mut forward = Vec::new();
    let mut keyframe = None;
    for stretch in lineage::stretches(view, refs, session, at)? {
        let found = keyframe_near(view, session, stretch, Direction::Descending)?;
        let after = found.as_ref().map_or(stretch.after, |(sequence, _)| *sequence);
        let rest = Stretch { after, ..stretch };
        forward.extend(rows(view, session, rest, Direction::Descending)?);
        if let Some((_, row)) = found {
            keyframe = Some(row);
            break;
        }
    }
    let replayed: u64 = forward.iter().map(cost).sum();
    // A later keyframe on the same branch may be nearer: deltas know both ways. Not across a reset, whose claims
    // come from elsewhere.
    let later = Stretch { branch: at.branch, after: at.sequence, to: u64::MAX - 1 };
    if let Some((sequence, row)) = keyframe_near(view, session, later, Direction::Ascending)? {
        let between = Stretch { branch: at.branch, after: at.sequence, to: sequence };
        let from = of(session).branch(at.branch).number(at.sequence + 1).build();
        let to = of(session).branch(at.branch).number(sequence + 1).build();
        let reset = view.scan(key::RESETS, &from, &to, Direction::Ascending, 1)?;
        let first = keyframe.as_ref().map_or(0, |row: &KeyframeRow| row.bytes);
        if reset.is_empty() {
            let backward = rows(view, session, between, Direction::Descending)?;
            if backward.iter().map(cost).sum::<u64>() + row.bytes < replayed + first {
                return Ok(Plan { keyframe: Some(row), forward: Vec::new(), backward });
            }
        }
    }
    forward.reverse();
    Ok(Plan { keyframe, forward, backward: Vec::new() })
}

/// What replaying a revision costs, in bytes read at memory speed.
pub(crate) const fn cost(row: &RevisionRow) -> u64 {
    const REVISION_BYTES: u64 = 4096;
    row.bytes + REVISION_BYTES
}

fn rows(
    view: &dyn Snapshot,
    session: SessionNumber,
    stretch: Stretch,
    direction: Direction,
) -> Result<Vec<RevisionRow>> {
    Ok(lineage::revisions(view, session, stretch, direction, usize::MAX)?
        .into_iter()
        .map(|(_, row)| row)
        .collect())
}

fn replay(view: &dyn Snapshot, plan: &Plan) -> Result<Overrides> {
    let mut overrides = Overrides::new();
    let forward: Vec<u64> = plan.forward.iter().flat_map(|row| row.parts.iter().copied()).collect();
    let backward: Vec<u64> =
        plan.backward.iter().flat_map(|row| row.parts.iter().copied()).collect();
    for delta in deltas(view, &forward)? {
        for change in delta.changes {
            overrides.insert(change.key, present(change.new));
        }
    }
    for delta in deltas(view, &backward)? {
        for change in delta.changes {
            overrides.insert(change.key, present(change.old));
        }
    }
    Ok(overrides)
}

fn present(side: Side) -> Option<Side> {
    (side != Side::Absent).then_some(side)
}

/// Several deltas, decoded on all cores.
pub(crate) fn deltas(view: &dyn Snapshot, numbers: &[u64]) -> Result<Vec<Delta>> {
    opened(view, numbers, ObjectKind::Delta, |content| {
        Delta::decode(&content).map_err(Error::corrupt("a delta"))
    })
}

/// Several objects, opened and decoded on all cores; in the order asked for.
fn opened<T: Send>(
    view: &dyn Snapshot,
    numbers: &[u64],
    kind: ObjectKind,
    decode: impl Fn(Vec<u8>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let sealed = object::sealed_many(view, numbers)?;
    let one = |(bytes, number): (&Vec<u8>, &u64)| {
        let content =
            open(kind, bytes).map_err(Error::corrupt(format!("the object number {number}")))?;
        decode(content)
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if sealed.len() < PARALLEL_OBJECTS || cores == 1 {
        return sealed.iter().zip(numbers).map(one).collect();
    }
    let share = sealed.len().div_ceil(cores);
    std::thread::scope(|scope| {
        let workers: Vec<_> = sealed
            .chunks(share)
            .zip(numbers.chunks(share))
            .map(|(bytes, numbers)| {
                scope.spawn(move || bytes.iter().zip(numbers).map(one).collect::<Result<Vec<_>>>())
            })
            .collect();
        let mut all = Vec::with_capacity(numbers.len());
        for worker in workers {
            all.extend(worker.join().expect("a worker only decodes")?);
        }
        Ok(all)
    })
}

fn merge(
    view: &dyn Snapshot,
    keyframe: Option<&KeyframeRow>,
    overrides: Overrides,
) -> Result<State> {
    let count = keyframe.map_or(0, |row| row.count as usize);
    let mut builder = StateBuilder::with_capacity(count.min(1 << 24) + overrides.len());
    let mut overrides = overrides.into_iter().peekable();
    if let Some(keyframe) = keyframe {
        let numbers: Vec<u64> = keyframe.chunks.iter().map(|chunk| chunk.object).collect();
        let chunks: Vec<(Arc<[u8]>, Vec<ChunkEntry>)> =
            opened(view, &numbers, ObjectKind::Chunk, |content| {
                let entries = Chunk::decode(&content).map_err(Error::corrupt("a chunk"))?;
                Ok((content.into(), entries))
            })?;
        for (bytes, entries) in chunks {
            let buffer = builder.buffer(Arc::clone(&bytes));
            for entry in &entries {
                let key = bytes.get(entry.key.start as usize..entry.key.end as usize);
                let key = key.expect("a decoded chunk's ranges lie inside it");
                while let Some((other, side)) =
                    overrides.next_if(|(other, _)| other.as_slice() < key)
                {
                    push(view, &mut builder, &other, side.as_ref())?;
                }
                if let Some((other, side)) = overrides.next_if(|(other, _)| other.as_slice() == key)
                {
                    push(view, &mut builder, &other, side.as_ref())?;
                } else {
                    builder.push(buffer, entry);
                }
            }
        }
    }
    for (key, side) in overrides {
        push(view, &mut builder, &key, side.as_ref())?;
    }
    Ok(builder.finish())
}

fn push(
    view: &dyn Snapshot,
    builder: &mut StateBuilder,
    key: &[u8],
    side: Option<&Side>,
) -> Result<()> {
    match side {
        None | Some(Side::Absent) => {}
        Some(Side::Inline(entry)) => builder.push_bytes(key, entry),
        Some(Side::Blob(id)) => {
            let entry = object::content_of(view, ObjectKind::Blob, id)?;
            builder.push_bytes(key, &entry);
        }
    }
    Ok(())
}
