//! Frames as an attacker sees them: parsed and rebuilt according to `docs/format.md`, without the
//! key.

use std::fs;
use std::path::Path;

const HEADER: usize = 96;

/// A frame of a segment.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) header: [u8; HEADER],
    pub(super) payload: Vec<u8>,
}

impl Frame {
    pub(super) fn holds(&self, text: &str) -> bool {
        self.payload.windows(text.len()).any(|part| part == text.as_bytes())
    }

    /// Replaces a text by another of the same length.
    pub(super) fn replace(&mut self, text: &str, other: &str) {
        assert_eq!(text.len(), other.len());
        let place = |bytes: &[u8]| bytes.windows(text.len()).position(|it| it == text.as_bytes());
        let mut found = false;
        while let Some(at) = place(&self.payload) {
            self.payload[at..at + text.len()].copy_from_slice(other.as_bytes());
            found = true;
        }
        assert!(found, "the frame does not say {text}");
    }
}

/// The frames of a segment that begins at position 0.
pub(super) fn frames(segment: &Path) -> Vec<Frame> {
    let bytes = fs::read(segment).unwrap();
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(header) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) {
        if header[..4] != *b"FRJ\x01" {
            break;
        }
        let length = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize;
        let payload = bytes[at + HEADER..at + HEADER + length].to_vec();
        frames.push(Frame { header: *header, payload });
        at += HEADER + length;
    }
    frames
}

fn hash(frame: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&frame[..8]).update(&frame[16..68]).update(&[0; 28]).update(&frame[HEADER..]);
    hasher.finalize().into()
}

/// Writes frames with everything correct that needs no key: lengths, positions, links, checksums,
/// and the mark.
pub(super) fn write(segment: &Path, frames: &[Frame]) {
    let (mut out, mut previous) = (Vec::new(), [0; 32]);
    for frame in frames {
        let at = out.len();
        let position = at as u64;
        out.extend(frame.header);
        out.extend(&frame.payload);
        let bytes = &mut out[at..];
        bytes[4..8].copy_from_slice(&(frame.payload.len() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&position.to_le_bytes());
        let synced = u64::from_le_bytes(bytes[24..32].try_into().unwrap()).min(position);
        bytes[24..32].copy_from_slice(&synced.to_le_bytes());
        bytes[32..64].copy_from_slice(&previous);
        previous = hash(bytes);
        bytes[8..16].copy_from_slice(&previous[..8]);
    }
    fs::write(segment, &out).unwrap();
    mark(&segment.with_file_name("SYNCED"), out.len() as u64, &previous);
}

fn mark(path: &Path, position: u64, hash: &[u8; 32]) {
    let mut mark = b"FRJSYNC\x01".to_vec();
    mark.extend(position.to_le_bytes());
    mark.extend(hash);
    mark.extend([0; 8]);
    let checksum = blake3::hash(&mark);
    mark.extend(&checksum.as_bytes()[..8]);
    fs::write(path, mark).unwrap();
}
