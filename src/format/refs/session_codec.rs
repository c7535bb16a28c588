//! Encodes, decodes and validates a session in the refs.

use super::{
    BookmarkRef, BranchChange, BranchHead, BranchRefs, DroppedText, SessionRefs, SessionRemoval,
};
use crate::format::codec::{
    ByteReader, DecodeError, pack, put_bytes, put_signed, put_varint, unpack,
};
use crate::model::{
    BranchMetadata, BranchStatus, OperationId, RevisionId, SessionId, SessionKind, SessionMetadata,
    StateDigest, Timestamp,
};

/// Typical size of a session with one branch and no sources, in bytes.
pub(super) const SESSION_BYTES: usize = 256;

/// Encodes a session for [`decode`].
pub(super) fn encode(session: &SessionRefs) -> Vec<u8> {
    let SessionRefs {
        info,
        next_sequence,
        branches,
        current_branch,
        first_event,
        last_event,
        checkpoints,
        last_checkpoint,
        pages,
        facts,
        hidden,
        bookmarks,
        schedule,
        dropped,
        removal,
    } = session;
    let mut out = Vec::with_capacity(SESSION_BYTES);
    put_info(&mut out, info);
    put_varint(&mut out, *next_sequence);
    put_list(&mut out, branches, put_branch);
    put_varint(&mut out, u64::from(*current_branch));
    put_option(&mut out, first_event.as_ref(), put_time);
    put_option(&mut out, last_event.as_ref(), put_time);
    put_varint(&mut out, *checkpoints);
    put_option(&mut out, last_checkpoint.as_ref(), put_time);
    put_varint(&mut out, *pages);
    put_varint(&mut out, *facts);
    put_list(&mut out, hidden, put_operation);
    put_list(&mut out, bookmarks, |out, bookmark| {
        put_bytes(out, bookmark.source.as_bytes());
        put_varint(out, bookmark.bytes);
    });
    put_option(&mut out, schedule.as_ref(), |out, micros| put_signed(out, *micros));
    put_list(&mut out, dropped, |out, text| {
        put_bytes(out, text.blob.as_bytes());
        put_varint(out, text.bytes);
        put_option(out, text.pruning.as_ref(), put_operation);
    });
    match removal {
        None => out.push(0),
        Some(SessionRemoval::Pruned(operation)) => {
            out.push(1);
            put_operation(&mut out, operation);
        }
        Some(SessionRemoval::Swept) => out.push(2),
        Some(SessionRemoval::Incomplete) => out.push(3),
    }
    out
}

/// Checks that the bytes are a valid session.
pub(super) fn check_session(bytes: &[u8]) -> Result<(), DecodeError> {
    decode::<false>(bytes).map(drop)
}

/// Decodes a session. With `KEPT` false, the bytes are only validated, by the same steps: texts and
/// lists are not allocated, and are empty in the result.
#[inline]
pub(super) fn decode<const KEPT: bool>(bytes: &[u8]) -> Result<SessionRefs, DecodeError> {
    let mut reader = ByteReader::new("session", bytes);
    let from = &mut reader;
    let info = info::<KEPT>(from)?;
    let next_sequence = from.varint()?;
    let (branches, count) = branches::<KEPT>(from, next_sequence)?;
    let session = SessionRefs {
        info,
        next_sequence,
        branches,
        current_branch: number(from)?,
        first_event: option(from, time)?,
        last_event: option(from, time)?,
        checkpoints: from.varint()?,
        last_checkpoint: option(from, time)?,
        pages: from.varint()?,
        facts: from.varint()?,
        hidden: list::<KEPT, _>(from, operation)?.0,
        bookmarks: list::<KEPT, _>(from, |from| {
            Ok(BookmarkRef { source: text::<KEPT>(from)?, bytes: from.varint()? })
        })?
        .0,
        schedule: option(from, ByteReader::signed)?,
        dropped: list::<KEPT, _>(from, |from| {
            let (blob, bytes) = (text::<KEPT>(from)?, from.varint()?);
            Ok(DroppedText { blob, bytes, pruning: option(from, operation)? })
        })?
        .0,
        removal: match from.byte()? {
            0 => None,
            1 => Some(SessionRemoval::Pruned(operation(from)?)),
            2 => Some(SessionRemoval::Swept),
            3 => Some(SessionRemoval::Incomplete),
            _ => return Err(from.error("it was removed in an unknown way")),
        },
    };
    from.end()?;
    let counts = [session.checkpoints, session.pages, session.facts];
    if !(1..=MAX_COUNT).contains(&next_sequence) || counts.iter().any(|n| *n > MAX_COUNT) {
        return Err(from.error("a count is out of range"));
    }
    if u64::from(session.current_branch) >= count {
        return Err(from.error("it names a branch that does not exist"));
    }
    Ok(session)
}

/// Upper limit of all counters; it leaves room for additions.
const MAX_COUNT: u64 = 1 << 48;

fn put_info(out: &mut Vec<u8>, info: &SessionMetadata) {
    let SessionMetadata { id, name, kind, agent, agent_session, started_at } = info;
    out.extend_from_slice(id.as_bytes());
    put_bytes(out, name.as_bytes());
    out.push(*kind as u8);
    put_option(out, agent.as_ref(), put_text);
    put_option(out, agent_session.as_ref(), put_text);
    put_time(out, started_at);
}

#[inline]
fn info<const KEPT: bool>(from: &mut ByteReader<'_>) -> Result<SessionMetadata, DecodeError> {
    Ok(SessionMetadata {
        id: SessionId::from_bytes(from.array()?),
        name: text::<KEPT>(from)?,
        kind: from.one_of(&SessionKind::ALL, "it is of an unknown kind")?,
        agent: option(from, text::<KEPT>)?,
        agent_session: option(from, text::<KEPT>)?,
        started_at: time(from)?,
    })
}

fn put_branch(out: &mut Vec<u8>, branch: &BranchRefs) {
    let BranchRefs { name, base, head, changes, hidden } = branch;
    put_text(out, name);
    put_option(out, base.as_ref(), |out, (branch, sequence)| {
        put_varint(out, u64::from(*branch));
        put_varint(out, *sequence);
    });
    put_option(out, head.as_ref(), |out, head| {
        put_varint(out, head.sequence);
        out.extend_from_slice(head.id.as_bytes());
        put_time(out, &head.effective);
        out.extend_from_slice(&head.digest.to_bytes());
        put_varint(out, head.count);
    });
    put_list(out, changes, put_change);
    out.push(u8::from(*hidden));
}

/// Decodes the branches of a session with this next sequence number, and returns them with their
/// count.
#[inline]
fn branches<const KEPT: bool>(
    from: &mut ByteReader<'_>,
    next_sequence: u64,
) -> Result<(Vec<BranchRefs>, u64), DecodeError> {
    let mut count = 0;
    list::<KEPT, _>(from, |from| {
        let branch = branch::<KEPT>(from)?;
        if branch.base.is_some_and(|(base, _)| u64::from(base) >= count) {
            return Err(from.error("the base of a branch is not an earlier branch"));
        }
        if branch.head.is_some_and(|head| head.sequence >= next_sequence) {
            return Err(from.error("the head of a branch does not exist"));
        }
        count += 1;
        Ok(branch)
    })
}

#[inline]
fn branch<const KEPT: bool>(from: &mut ByteReader<'_>) -> Result<BranchRefs, DecodeError> {
    Ok(BranchRefs {
        name: text::<KEPT>(from)?,
        base: option(from, |from| Ok((number(from)?, from.varint()?)))?,
        head: option(from, |from| {
            Ok(BranchHead {
                sequence: from.varint()?,
                id: RevisionId::from_bytes(from.array()?),
                effective: time(from)?,
                digest: StateDigest::from_bytes(&from.array()?),
                count: from.varint()?,
            })
        })?,
        changes: match list::<KEPT, _>(from, change)? {
            (_, 0) => return Err(from.error("a branch has no first status")),
            (changes, _) => changes,
        },
        hidden: flag(from)?,
    })
}

fn put_change(out: &mut Vec<u8>, change: &BranchChange) {
    let BranchChange { time, status, metadata } = change;
    put_time(out, time);
    out.push(*status as u8);
    // Most branches have no metadata.
    let present = Some(metadata).filter(|metadata| **metadata != BranchMetadata::default());
    put_option(out, present, |out, metadata| put_bytes(out, &pack(metadata)));
}

#[inline]
fn change(from: &mut ByteReader<'_>) -> Result<BranchChange, DecodeError> {
    Ok(BranchChange {
        time: time(from)?,
        status: from.one_of(&BranchStatus::ALL, "a branch has an unknown status")?,
        metadata: option(from, |from| unpack("branch", from.bytes()?))?.unwrap_or_default(),
    })
}

fn put_text(out: &mut Vec<u8>, text: &String) {
    put_bytes(out, text.as_bytes());
}

#[inline]
fn text<const KEPT: bool>(from: &mut ByteReader<'_>) -> Result<String, DecodeError> {
    let bytes = from.bytes()?;
    // Most names are short ASCII, which is checked several times faster than general UTF-8.
    if !KEPT && bytes.is_ascii() {
        return Ok(String::new());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| from.error("a name is not UTF-8"))?;
    Ok(if KEPT { text.to_owned() } else { String::new() })
}

fn put_time(out: &mut Vec<u8>, time: &Timestamp) {
    out.extend_from_slice(&time.as_micros().to_le_bytes());
}

#[inline]
fn time(from: &mut ByteReader<'_>) -> Result<Timestamp, DecodeError> {
    from.array().map(i64::from_le_bytes).map(Timestamp::from_micros)
}

fn put_operation(out: &mut Vec<u8>, operation: &OperationId) {
    out.extend_from_slice(operation.as_bytes());
}

#[inline]
fn operation(from: &mut ByteReader<'_>) -> Result<OperationId, DecodeError> {
    from.array().map(OperationId::from_bytes)
}

#[inline]
fn number(from: &mut ByteReader<'_>) -> Result<u32, DecodeError> {
    u32::try_from(from.varint()?).map_err(|_| from.error("a number is too large"))
}

#[inline]
fn flag(from: &mut ByteReader<'_>) -> Result<bool, DecodeError> {
    from.one_of(&[false, true], "a flag is neither 0 nor 1")
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<&T>, put: impl FnOnce(&mut Vec<u8>, &T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

#[inline]
fn option<'a, T>(
    from: &mut ByteReader<'a>,
    read: impl FnOnce(&mut ByteReader<'a>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if flag(from)? { read(from).map(Some) } else { Ok(None) }
}

fn put_list<T>(out: &mut Vec<u8>, values: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(out, values.len() as u64);
    values.iter().for_each(|value| put(out, value));
}

/// Decodes a list. Returns its values (none if `KEPT` is false) and their count.
#[inline]
fn list<const KEPT: bool, T>(
    from: &mut ByteReader<'_>,
    mut read: impl FnMut(&mut ByteReader<'_>) -> Result<T, DecodeError>,
) -> Result<(Vec<T>, u64), DecodeError> {
    let mut values = Vec::new();
    let count = from.varint()?;
    for _ in 0..count {
        let value = read(from)?;
        if KEPT {
            values.push(value);
        }
    }
    Ok((values, count))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::format::refs) fn session() -> impl Strategy<Value = SessionRefs> {
        let id = any::<[u8; 16]>();
        let text = "[a-zß ]{0,9}";
        let when = any::<i64>().prop_map(Timestamp::from_micros);
        let head = (0..9_u64, any::<[u8; 32]>(), when.clone(), 0..1000_u64).prop_map(
            |(sequence, id, effective, count)| BranchHead {
                sequence,
                id: RevisionId::from_bytes(id),
                effective,
                digest: StateDigest::from_bytes(&id),
                count,
            },
        );
        let change =
            (when.clone(), 0..4_usize, prop::option::of(text)).prop_map(|(time, status, text)| {
                let status = BranchStatus::ALL.into_iter().nth(status).unwrap();
                let metadata = BranchMetadata { approach: text, ..BranchMetadata::default() };
                BranchChange { time, status, metadata }
            });
        let changes = prop::collection::vec(change, 1..3);
        let branch = (text, prop::option::of(head), changes, any::<bool>()).prop_map(
            |(name, head, changes, hidden)| BranchRefs { name, base: None, head, changes, hidden },
        );
        let info = (id, text, prop::option::of(text), when.clone()).prop_map(
            |(id, name, agent_session, started_at)| SessionMetadata {
                id: SessionId::from_bytes(id),
                name,
                kind: SessionKind::Thread,
                agent: None,
                agent_session,
                started_at,
            },
        );
        let bookmark =
            (text, any::<u64>()).prop_map(|(source, bytes)| BookmarkRef { source, bytes });
        let dropped = (text, any::<u64>(), prop::option::of(id)).prop_map(|(blob, bytes, id)| {
            DroppedText { blob, bytes, pruning: id.map(OperationId::from_bytes) }
        });
        let removal = prop_oneof![
            Just(None),
            Just(Some(SessionRemoval::Swept)),
            Just(Some(SessionRemoval::Incomplete)),
            id.prop_map(|id| Some(SessionRemoval::Pruned(OperationId::from_bytes(id)))),
        ];
        let lists = (
            prop::collection::vec(branch, 1..4),
            prop::collection::vec(id.prop_map(OperationId::from_bytes), 0..3),
            prop::collection::vec(bookmark, 0..3),
            prop::collection::vec(dropped, 0..3),
        );
        let numbers = (10..1000_u64, 0..1000_u64, prop::option::of(any::<i64>()));
        (info, lists, numbers, prop::option::of(when), removal).prop_map(
            |(info, lists, (next_sequence, facts, schedule), time, removal)| {
                let (mut branches, hidden, bookmarks, dropped) = lists;
                for (number, branch) in (0..).zip(&mut branches) {
                    branch.base = (number > 0).then_some((number / 2, 3));
                }
                SessionRefs {
                    info,
                    next_sequence,
                    current_branch: branches.len() as u32 - 1,
                    branches,
                    first_event: time,
                    last_event: None,
                    checkpoints: facts / 2,
                    last_checkpoint: time,
                    pages: 0,
                    facts,
                    hidden,
                    bookmarks,
                    schedule,
                    dropped,
                    removal,
                }
            },
        )
    }

    proptest! {
        /// A session that was validated must not fail to decode when it is needed.
        #[test]
        fn validation_accepts_exactly_the_sessions_that_can_be_decoded(
            session in session(),
            changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            end: prop::sample::Index,
            cut: bool,
        ) {
            let mut bytes = encode(&session);
            for (place, byte) in changed {
                *place.get_mut(&mut bytes) = byte;
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            let validated = decode::<false>(&bytes);
            let decoded = decode::<true>(&bytes);
            prop_assert_eq!(validated.as_ref().err(), decoded.as_ref().err());
            if let (Ok(validated), Ok(decoded)) = (validated, decoded) {
                let allocated = [
                    validated.branches.capacity(),
                    validated.bookmarks.capacity(),
                    validated.info.name.capacity(),
                ];
                prop_assert_eq!(allocated, [0; 3]);
                prop_assert_eq!(decode::<true>(&encode(&decoded)), Ok(decoded));
            }
        }
    }
}
