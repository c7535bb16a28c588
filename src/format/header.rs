//! Headers of revisions, which are kept permanently; the hash of a header is the revision's id.

use super::codec::{ByteReader, DecodeError};
use crate::model::{BranchNumber, ObjectId, RevisionId, SessionId, StateDigest, Timestamp};

/// A reference to the parent of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentRevision {
    /// The sequence number of the parent.
    pub sequence: u64,
    /// The id of the parent.
    pub id: RevisionId,
}

/// The source of a revision's claims, if it is not its first parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetSource {
    /// No claims.
    Empty,
    /// The claims of this revision.
    To(ParentRevision),
}

/// The part of a revision that is kept permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionHeader {
    /// The session of the revision.
    pub session: SessionId,
    /// The branch of the revision.
    pub branch: BranchNumber,
    /// The sequence number: revisions and checkpoints of a session are counted together, from 1.
    pub sequence: u64,
    /// The parents, the previous head of the branch first. There are none if the branch had no
    /// head, and two for a merge.
    pub parents: Vec<ParentRevision>,
    /// The source of its claims, if it is not the first parent.
    pub reset: Option<ResetSource>,
    /// The raw time: what the clock said when the revision was made.
    pub time: Timestamp,
    /// The hash of the body.
    pub body: ObjectId,
    /// The hash of the delta, or of the list of its parts' hashes.
    pub delta: ObjectId,
    /// The digest of its state.
    pub digest: StateDigest,
    /// The number of claims in its state.
    pub count: u64,
}

const MAGIC: &[u8; 4] = b"fRv1";

impl RevisionHeader {
    /// Returns the revision that the delta is based on; `None` if that is the empty state.
    #[must_use]
    pub fn start(&self) -> Option<&ParentRevision> {
        match &self.reset {
            Some(ResetSource::Empty) => None,
            Some(ResetSource::To(from)) => Some(from),
            None => self.parents.first(),
        }
    }

    /// Encodes this header.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(240);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(self.session.as_bytes());
        out.extend_from_slice(&self.branch.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.time.as_micros().to_le_bytes());
        out.extend_from_slice(self.body.as_bytes());
        out.extend_from_slice(self.delta.as_bytes());
        out.extend_from_slice(&self.digest.to_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        // A revision has at most two parents.
        out.push(self.parents.len() as u8);
        for parent in &self.parents {
            put_parent(&mut out, parent);
        }
        match &self.reset {
            None => out.push(0),
            Some(ResetSource::Empty) => out.push(1),
            Some(ResetSource::To(parent)) => {
                out.push(2);
                put_parent(&mut out, parent);
            }
        }
        out
    }

    /// Decodes a header.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new("revision header", bytes);
        if &reader.array::<4>()? != MAGIC {
            return Err(reader.error("unknown format"));
        }
        let session = SessionId::from_bytes(reader.array()?);
        let branch = u32::from_le_bytes(reader.array()?);
        let sequence = u64::from_le_bytes(reader.array()?);
        let time = Timestamp::from_micros(i64::from_le_bytes(reader.array()?));
        let body = ObjectId::from_bytes(reader.array()?);
        let delta = ObjectId::from_bytes(reader.array()?);
        let digest = StateDigest::from_bytes(&reader.array()?);
        let count = u64::from_le_bytes(reader.array()?);
        let parents =
            (0..reader.byte()?).map(|_| parent(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        let reset = match reader.byte()? {
            0 => None,
            1 => Some(ResetSource::Empty),
            2 => Some(ResetSource::To(parent(&mut reader)?)),
            _ => return Err(reader.error("unknown kind of reset")),
        };
        reader.end()?;
        let header =
            Self { session, branch, sequence, parents, reset, time, body, delta, digest, count };
        if header.parents.iter().any(|parent| parent.sequence >= sequence) {
            return Err(DecodeError::new("revision header", "it is older than its parent"));
        }
        Ok(header)
    }

    /// Returns the revision's id: the hash of its header.
    #[must_use]
    pub fn id(&self) -> RevisionId {
        Self::id_of(&self.encode())
    }

    /// Returns the id of the revision with this encoded header.
    #[must_use]
    pub fn id_of(encoded: &[u8]) -> RevisionId {
        RevisionId::from_bytes(*blake3::hash(encoded).as_bytes())
    }
}

fn put_parent(out: &mut Vec<u8>, parent: &ParentRevision) {
    out.extend_from_slice(&parent.sequence.to_le_bytes());
    out.extend_from_slice(parent.id.as_bytes());
}

fn parent(reader: &mut ByteReader<'_>) -> Result<ParentRevision, DecodeError> {
    Ok(ParentRevision {
        sequence: u64::from_le_bytes(reader.array()?),
        id: RevisionId::from_bytes(reader.array()?),
    })
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    fn sample() -> RevisionHeader {
        let parent = ParentRevision { sequence: 3, id: RevisionId::from_bytes([9; 32]) };
        RevisionHeader {
            session: SessionId::from_bytes([1; 16]),
            branch: 2,
            sequence: 7,
            parents: vec![parent],
            reset: Some(ResetSource::To(parent)),
            time: Timestamp::from_micros(-4),
            body: ObjectId::from_bytes([5; 32]),
            delta: ObjectId::from_bytes([6; 32]),
            digest: StateDigest::from_bytes(&[7; 32]),
            count: 8,
        }
    }

    #[test]
    fn a_header_decodes_as_it_was_encoded_with_each_reset() {
        for reset in [None, Some(ResetSource::Empty), sample().reset] {
            let header = RevisionHeader { reset, ..sample() };
            assert_eq!(RevisionHeader::decode(&header.encode()).unwrap(), header);
        }
    }

    #[test]
    fn a_header_cut_short_or_with_more_after_it_is_refused() {
        let bytes = sample().encode();
        for length in 0..bytes.len() {
            assert!(RevisionHeader::decode(&bytes[..length]).is_err());
        }
        assert!(RevisionHeader::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn a_parent_that_is_not_older_is_refused() {
        let header = RevisionHeader { sequence: 3, ..sample() };
        assert!(RevisionHeader::decode(&header.encode()).is_err());
    }
}
