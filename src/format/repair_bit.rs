//! Puts a single wrong bit right, where a hash proves it.

/// So many bytes are hashed at most before it is given up: about a second.
const MAX_HASHED_BYTES: usize = 1 << 30;

/// Turns every bit in turn until `is_whole` holds. Bytes that cannot be mended are left as they were. What is whole by a
/// hash of 64 bits or more is what was written: of a hundred million tries none passes by chance.
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
