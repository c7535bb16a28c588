//! The grams of a text: all its runs of one to four bytes, with ASCII letters in lower case. A text
//! that contains a word contains all grams of the word.

use std::collections::BTreeSet;

/// The number of buckets that grams are hashed into.
pub(super) const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 20;
/// The maximum number of buckets that a query looks up. More would hardly exclude more blocks.
const QUERY_BUCKETS: usize = 64;

/// Returns the bucket of a gram: its `length` bytes are the low bytes of `gram`.
const fn bucket_of(length: u32, gram: u32) -> u32 {
    (gram ^ length.rotate_right(8)).wrapping_mul(0x9e37_79b1) >> (u32::BITS - BUCKET_BITS)
}

/// The buckets of the grams of a text, one bit each.
pub(super) struct GramSet {
    buckets: Vec<u64>,
    /// The pairs of bytes so far, one bit each. They are put into buckets at the end, since a text
    /// has far fewer different pairs than bytes.
    pairs: Vec<u64>,
}

impl GramSet {
    /// Collects the grams of a text.
    pub(super) fn of(text: &str) -> Self {
        let mut set = Self { buckets: vec![0; BUCKETS / 64], pairs: vec![0; (1 << 16) / 64] };
        let mut last = 0_u32;
        for (place, byte) in text.bytes().enumerate() {
            last = last << 8 | u32::from(byte.to_ascii_lowercase());
            if place >= 3 {
                put(&mut set.buckets, bucket_of(4, last));
            }
            if place >= 2 {
                put(&mut set.buckets, bucket_of(3, last & 0x00ff_ffff));
            }
            if place >= 1 {
                put(&mut set.pairs, last & 0xffff);
            }
        }
        for byte in text.bytes().take(1) {
            put(&mut set.buckets, bucket_of(1, u32::from(byte.to_ascii_lowercase())));
        }
        for pair in ones(&set.pairs) {
            put(&mut set.buckets, bucket_of(2, pair));
            put(&mut set.buckets, bucket_of(1, pair & 0xff));
        }
        set
    }

    /// Iterates over the buckets, ascending.
    pub(super) fn buckets(&self) -> impl Iterator<Item = u32> {
        ones(&self.buckets)
    }
}

fn put(bits: &mut [u64], place: u32) {
    if let Some(word) = bits.get_mut(place as usize / 64) {
        *word |= 1 << (place % 64);
    }
}

/// Iterates over the places of the bits that are set, ascending.
fn ones(bits: &[u64]) -> impl Iterator<Item = u32> {
    bits.iter().enumerate().flat_map(|(place, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit < 64).then_some(place as u32 * 64 + bit)
        })
    })
}

/// Returns buckets that every text with all of these words has, ascending. Of long words, only some
/// grams are taken, evenly spread.
pub(super) fn buckets_of(words: &[String]) -> Vec<u32> {
    let share = (QUERY_BUCKETS / words.len().max(1)).max(1);
    let mut buckets = BTreeSet::new();
    for word in words {
        let bytes = word.as_bytes();
        let length = bytes.len().min(4);
        let grams = bytes.windows(length.max(1));
        let step = grams.len().div_ceil(share).max(1);
        buckets.extend(grams.step_by(step).map(|gram| {
            let number = gram
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(byte.to_ascii_lowercase()));
            bucket_of(length as u32, number)
        }));
    }
    buckets.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_of_a_text_include_those_of_each_of_its_parts() {
        let text = "Pool TIMEOUT: größe=7 at /srv/app/Main.rs\n";
        let set: BTreeSet<u32> = GramSet::of(text).buckets().collect();
        for from in 0..text.len() {
            for to in from + 1..=text.len() {
                let Some(part) = text.get(from..to) else { continue };
                for word in [part.to_owned(), part.to_ascii_uppercase()] {
                    let buckets = buckets_of(&[word]);
                    assert!(!buckets.is_empty() && buckets.iter().all(|one| set.contains(one)));
                }
            }
        }
        assert!(GramSet::of("").buckets().next().is_none());
        let one: BTreeSet<u32> = GramSet::of("q").buckets().collect();
        assert_eq!(one.into_iter().collect::<Vec<_>>(), buckets_of(&["Q".to_owned()]));
    }

    #[test]
    fn a_query_has_a_limited_number_of_buckets() {
        let long = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(3000);
        assert!(buckets_of(std::slice::from_ref(&long)).len() <= QUERY_BUCKETS);
        let words: Vec<String> = (0..32).map(|number| format!("{long}{number}")).collect();
        assert!(buckets_of(&words).len() <= QUERY_BUCKETS);
    }
}
