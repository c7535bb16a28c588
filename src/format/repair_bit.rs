//! Correcting a single wrong bit, where a hash proves the result.

/// Maximum number of bytes to hash in all attempts, which takes about a second.
const MAX_HASHED_BYTES: usize = 1 << 30;

/// Flips one bit at a time until `is_whole` accepts the bytes. Returns whether it did; otherwise
/// the bytes are unchanged. More than 11,585 bytes are not tried.
///
/// If `is_whole` compares a hash of 64 bits or more, accepted bytes are the original ones: in a
/// hundred million attempts, none passes by chance.
pub fn repair_bit(bytes: &mut [u8], is_whole: &dyn Fn(&[u8]) -> bool) -> bool {
    let bits = bytes.len().saturating_mul(8);
    if bits.saturating_mul(bytes.len()) > MAX_HASHED_BYTES {
        return false;
    }
    for bit in 0..bits {
        let flip = |bytes: &mut [u8]| {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        };
        flip(bytes);
        if is_whole(bytes) {
            return true;
        }
        flip(bytes);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_single_wrong_bit_is_corrected_and_several_leave_the_bytes_unchanged() {
        let whole = b"what was written".to_vec();
        let hash = blake3::hash(&whole);
        let is_whole = |bytes: &[u8]| blake3::hash(bytes) == hash;
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes.get_mut(bit / 8).map(|byte| *byte ^= 1 << (bit % 8)).unwrap();
            assert!(repair_bit(&mut bytes, &is_whole) && bytes == whole);
        }
        let mut bytes = whole;
        bytes.iter_mut().step_by(4).for_each(|byte| *byte ^= 1);
        let before = bytes.clone();
        assert!(!repair_bit(&mut bytes, &is_whole) && bytes == before);
    }
}
