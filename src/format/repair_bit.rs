//! Correcting a single wrong bit, where a hash proves the result.

/// Maximum number of bytes hashed before giving up: about a second.
const MAX_HASHED_BYTES: usize = 1 << 30;

/// Flips one bit at a time until `is_whole` accepts the bytes. Returns whether it did; otherwise
/// the bytes are unchanged. A check by a hash of 64 bits or more proves the original content: in a
/// hundred million attempts, none passes by chance.
pub fn repair_bit(bytes: &mut [u8], is_whole: &dyn Fn(&[u8]) -> bool) -> bool {
    let tries = bytes.len().saturating_mul(8);
    if tries.saturating_mul(bytes.len()) > MAX_HASHED_BYTES {
        return false;
    }
    for place in 0..tries {
        let turn = |bytes: &mut [u8]| {
            if let Some(byte) = bytes.get_mut(place / 8) {
                *byte ^= 1 << (place % 8);
            }
        };
        turn(bytes);
        if is_whole(bytes) {
            return true;
        }
        turn(bytes);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_single_bit_is_put_right_and_two_are_left_alone() {
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
