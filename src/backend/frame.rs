//! The byte layout of a frame, which contains a record of the log in a journal or in a database. No
//! I/O. Specified in `docs/format.md`; both must change together.

use crate::backend::{CIPHER_BYTES, Cipher, EncryptionContext, LogPosition, RecordHash, SealMode};
use std::fmt;
use std::ops::Range;

/// Bytes of a frame before its payload.
pub(crate) const HEADER_BYTES: usize = 96;
/// The largest payload of a frame, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// The magic number of a frame; its last byte is the version of the layout.
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"FRJ\x01";
const MAGIC: Range<usize> = 0..4;
const LENGTH: Range<usize> = 4..8;
const CHECKSUM: Range<usize> = 8..16;
const POSITION: Range<usize> = 16..24;
const SYNCED: Range<usize> = 24..32;
const PREVIOUS: Range<usize> = 32..64;
const KIND: Range<usize> = 64..68;
/// A keyed seal over the record's hash; zeros in a store without seals.
const SEAL: Range<usize> = 68..96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A record; its bytes count as positions.
    Record,
    /// The end of a segment; its payload is the hash of the next segment's first record. It
    /// occupies no positions.
    End,
}

/// A flaw in the bytes where a frame is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFlaw {
    /// There are no bytes.
    Missing,
    /// The file ends within the frame.
    Short,
    /// The magic number is wrong.
    Magic,
    /// The kind is unknown, or an end frame has the wrong size.
    Kind,
    /// The payload length exceeds the maximum.
    TooLong,
    /// The frame belongs to another position.
    Position,
    /// The frame claims that a later position was synced.
    Mark,
    /// The checksum does not match.
    Checksum,
    /// The frame does not follow the record before it.
    Link,
    /// The seal is missing, in a store that has seals.
    Unsealed,
    /// The seal was not made from these bytes with the store's key.
    Seal,
    /// Exactly one bit of the seal is wrong. That is damage: a forger without the key could not
    /// come so close.
    SealBit,
}

impl fmt::Display for FrameFlaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "the journal ends here, but more was known to be synced",
            Self::Short => "the record is cut short",
            Self::Magic => "no record begins here",
            Self::Kind => "the record is of an unknown kind",
            Self::TooLong => "the record claims to be larger than a record may be",
            Self::Position => "the record belongs to another position",
            Self::Mark => "the record claims that later ones were synced",
            Self::Checksum => "the record's bytes are not those that were written",
            Self::Link => "the record does not follow the one before it",
            Self::Unsealed => "the record has no seal",
            Self::Seal => "the record does not have the store's seal",
            Self::SealBit => "the record's seal has a wrong bit",
        })
    }
}

/// The decoded header of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Bytes of payload, at most [`MAX_PAYLOAD_BYTES`].
    pub(crate) length: usize,
    /// The position of the frame.
    pub(crate) position: LogPosition,
    /// The position up to which everything was known to be synced when the frame was written.
    pub(crate) synced: LogPosition,
    /// The hash of the record before it.
    pub(crate) previous: RecordHash,
}

impl FrameHeader {
    /// Decodes the header of the frame expected at `position`. The checksum is left to [`verify`],
    /// which needs the payload.
    pub(crate) fn decode(
        bytes: &[u8; HEADER_BYTES],
        position: LogPosition,
    ) -> Result<Self, FrameFlaw> {
        if bytes[MAGIC] != FRAME_MAGIC {
            return Err(FrameFlaw::Magic);
        }
        let length = u32::from_le_bytes(array(bytes, LENGTH)) as usize;
        if length > MAX_PAYLOAD_BYTES {
            return Err(FrameFlaw::TooLong);
        }
        let kind = match u32::from_le_bytes(array(bytes, KIND)) {
            1 => FrameKind::Record,
            2 if length == size_of::<RecordHash>() => FrameKind::End,
            _ => return Err(FrameFlaw::Kind),
        };
        if u64::from_le_bytes(array(bytes, POSITION)) != position {
            return Err(FrameFlaw::Position);
        }
        let synced = u64::from_le_bytes(array(bytes, SYNCED));
        if synced > position {
            return Err(FrameFlaw::Mark);
        }
        Ok(Self { kind, length, position, synced, previous: array(bytes, PREVIOUS) })
    }

    /// Returns the size of the whole frame in bytes.
    pub(crate) fn frame_bytes(&self) -> u64 {
        (HEADER_BYTES + self.length) as u64
    }
}

/// Encodes a frame and returns its bytes and its hash.
///
/// The payload must not be larger than [`MAX_PAYLOAD_BYTES`].
pub(crate) fn encode(
    kind: FrameKind,
    position: LogPosition,
    synced: LogPosition,
    previous: &RecordHash,
    payload: &[u8],
    seals: &SealMode,
) -> (Vec<u8>, RecordHash) {
    let length = u32::try_from(payload.len()).expect("a payload is at most 64 MiB");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.resize(HEADER_BYTES, 0);
    bytes[MAGIC].copy_from_slice(&FRAME_MAGIC);
    bytes[LENGTH].copy_from_slice(&length.to_le_bytes());
    bytes[POSITION].copy_from_slice(&position.to_le_bytes());
    bytes[SYNCED].copy_from_slice(&synced.min(position).to_le_bytes());
    bytes[PREVIOUS].copy_from_slice(previous);
    let kind: u32 = match kind {
        FrameKind::Record => 1,
        FrameKind::End => 2,
    };
    bytes[KIND].copy_from_slice(&kind.to_le_bytes());
    debug_assert_eq!(SEAL.end, HEADER_BYTES);
    bytes.extend_from_slice(payload);
    let hash = hash(&bytes);
    bytes[CHECKSUM].copy_from_slice(&hash[..8]);
    if let Some(key) = seals.key() {
        bytes[SEAL].copy_from_slice(&key.record(&hash));
    }
    (bytes, hash)
}

/// Encodes the frame of a record, with an encrypted payload if there is a cipher, and returns its
/// bytes and its hash. The payload must fit; see [`fits`].
pub(crate) fn encode_record(
    position: LogPosition,
    synced: LogPosition,
    previous: &RecordHash,
    payload: &[u8],
    (seals, cipher): (&SealMode, Option<&Cipher>),
) -> (Vec<u8>, RecordHash) {
    let hidden = cipher.map(|cipher| cipher.seal(EncryptionContext::Record(position), payload));
    let payload = hidden.as_deref().unwrap_or(payload);
    encode(FrameKind::Record, position, synced, previous, payload, seals)
}

/// Returns whether the payload of a record fits into a frame.
pub(crate) fn fits(payload: &[u8], cipher: Option<&Cipher>) -> bool {
    payload.len() + cipher.map_or(0, |_| CIPHER_BYTES) <= MAX_PAYLOAD_BYTES
}

/// Checks the checksum and seal of a whole frame and returns its hash.
pub(crate) fn verify(frame: &[u8], seals: &SealMode) -> Result<RecordHash, FrameFlaw> {
    let hash = hash(frame);
    if frame[CHECKSUM] != hash[..8] {
        return Err(FrameFlaw::Checksum);
    }
    let blank = frame[SEAL].iter().all(|byte| *byte == 0);
    match seals {
        // Adding seals to an unsealed store may have been interrupted, so seals mean nothing until
        // the store is marked as sealed.
        SealMode::Absent | SealMode::Unknown => Ok(hash),
        SealMode::Keyed(key) => {
            let right = key.record(&hash);
            let wrong_bits = || {
                let bytes = frame[SEAL].iter().zip(&right);
                bytes.map(|(byte, right)| (byte ^ right).count_ones()).sum::<u32>()
            };
            match frame[SEAL] == right {
                true => Ok(hash),
                false if blank => Err(FrameFlaw::Unsealed),
                false if wrong_bits() == 1 => Err(FrameFlaw::SealBit),
                false => Err(FrameFlaw::Seal),
            }
        }
    }
}

/// Replaces the seal of a whole frame, or clears it. The hash does not change.
pub(crate) fn reseal(frame: &mut [u8], seals: &SealMode) {
    let hash = hash(frame);
    match seals.key() {
        Some(key) => frame[SEAL].copy_from_slice(&key.record(&hash)),
        None => frame[SEAL].fill(0),
    }
}

/// Returns the BLAKE3 hash of header and payload, without the checksum and with zeros in place of
/// the seal, so that the hash does not depend on the seal.
fn hash(frame: &[u8]) -> RecordHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&frame[..CHECKSUM.start]);
    hasher.update(&frame[CHECKSUM.end..SEAL.start]);
    hasher.update(&[0; SEAL.end - SEAL.start]);
    hasher.update(&frame[SEAL.end..]);
    hasher.finalize().into()
}

pub(super) fn array<const N: usize>(bytes: &[u8], range: Range<usize>) -> [u8; N] {
    bytes[range].try_into().expect("the range has the width of the field")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SealKey;
    use crate::model::hex;
    use proptest::prelude::*;

    fn decode(frame: &[u8], position: LogPosition) -> Result<(FrameHeader, RecordHash), FrameFlaw> {
        let head: &[u8; HEADER_BYTES] = frame.first_chunk().ok_or(FrameFlaw::Short)?;
        let header = FrameHeader::decode(head, position)?;
        let whole = frame.get(..HEADER_BYTES + header.length).ok_or(FrameFlaw::Short)?;
        Ok((header, verify(whole, &SealMode::Absent)?))
    }

    #[test]
    fn a_frame_when_encoded_has_the_golden_bytes() {
        let (frame, hash) =
            encode(FrameKind::Record, 0x1122, 0x11, &[7; 32], b"forge", &SealMode::Absent);
        assert_eq!(
            hex(&frame) + &hex(&hash),
            "46524a01050000002ce6c74798babf5222110000000000001100000000000000\
             0707070707070707070707070707070707070707070707070707070707070707\
             0100000000000000000000000000000000000000000000000000000000000000\
             666f7267652ce6c74798babf52eed96ae1c1851011722d91ec63b8c5bea6e9d4\
             865360fa05"
        );
        let (end, hash) =
            encode(FrameKind::End, 0x1122, 0x1122, &[7; 32], &[9; 32], &SealMode::Absent);
        assert_eq!(
            hex(&end) + &hex(&hash),
            "46524a012000000000f957c1d1344f6122110000000000002211000000000000\
             0707070707070707070707070707070707070707070707070707070707070707\
             0200000000000000000000000000000000000000000000000000000000000000\
             0909090909090909090909090909090909090909090909090909090909090909\
             00f957c1d1344f6115a12b1be4c04c30f85b17edd28f59f14d183591be09818f"
        );
    }

    #[test]
    fn a_length_above_the_limit_is_refused_before_anything_is_read() {
        let (mut frame, _) = encode(FrameKind::Record, 0, 0, &[0; 32], b"", &SealMode::Absent);
        frame[LENGTH].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32 + 1).to_le_bytes());
        assert_eq!(decode(&frame, 0), Err(FrameFlaw::TooLong));
    }

    #[test]
    fn a_seal_is_valid_for_one_frame_and_key_and_does_not_change_the_hash() {
        let keyed = |secret| SealMode::Keyed(SealKey::new(&[secret; 32], &[2; 16], &[3; 32]));
        let (plain, hash) = encode(FrameKind::Record, 9, 3, &[7; 32], b"forge", &SealMode::Absent);
        let (sealed, same) = encode(FrameKind::Record, 9, 3, &[7; 32], b"forge", &keyed(1));
        assert_eq!(hash, same);
        assert_eq!(verify(&sealed, &keyed(1)), Ok(hash));
        assert_eq!(verify(&sealed, &SealMode::Unknown), Ok(hash));
        assert_eq!(verify(&sealed, &keyed(2)), Err(FrameFlaw::Seal));
        assert_eq!(verify(&plain, &keyed(1)), Err(FrameFlaw::Unsealed));
        assert_eq!(verify(&sealed, &SealMode::Absent), Ok(hash));
        for bit in 0..8 * (SEAL.end - SEAL.start) {
            let mut wrong = sealed.clone();
            wrong[SEAL.start + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verify(&wrong, &keyed(1)), Err(FrameFlaw::SealBit));
            wrong[SEAL.start + (bit / 8 + 1) % (SEAL.end - SEAL.start)] ^= 1;
            assert_eq!(verify(&wrong, &keyed(1)), Err(FrameFlaw::Seal));
        }
        let (mut other, _) = encode(FrameKind::Record, 9, 3, &[7; 32], b"FORGE", &SealMode::Absent);
        other[SEAL].copy_from_slice(&sealed[SEAL]);
        assert_eq!(verify(&other, &keyed(1)), Err(FrameFlaw::Seal));
        reseal(&mut other, &keyed(2));
        assert!(verify(&other, &keyed(2)).is_ok());
    }

    proptest! {
        #[test]
        fn a_frame_decodes_to_the_encoded_content(
            position: u64, synced: u64, previous: [u8; 32], payload: Vec<u8>,
        ) {
            let (frame, hash) = encode(FrameKind::Record, position, synced, &previous, &payload, &SealMode::Absent);
            let (header, found) = decode(&frame, position).unwrap();
            prop_assert_eq!(found, hash);
            prop_assert_eq!(header.kind, FrameKind::Record);
            prop_assert_eq!(header.previous, previous);
            prop_assert_eq!(header.synced, synced.min(position));
            prop_assert_eq!(&frame[HEADER_BYTES..], &payload[..]);
        }

        #[test]
        fn a_frame_with_one_flipped_bit_is_refused(
            payload in proptest::collection::vec(any::<u8>(), 0..200), bit: proptest::sample::Index,
        ) {
            let (mut frame, _) = encode(FrameKind::Record, 96, 0, &[1; 32], &payload, &SealMode::Absent);
            let bit = bit.index(frame.len() * 8);
            // Without a key, seals cannot be checked.
            prop_assume!(!SEAL.contains(&(bit / 8)));
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&frame, 96).is_err());
        }
    }
}
