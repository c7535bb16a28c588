//! Finding the texts in MessagePack data.

use super::codec::{ByteReader, DecodeError};
use std::ops::Range;

/// Returns the ranges of the strings and byte strings in one encoded value, including field names,
/// in order. Anything but one complete value is an error.
pub fn text_ranges(bytes: &[u8]) -> Result<Vec<Range<usize>>, DecodeError> {
    let mut reader = ByteReader::new("MessagePack", bytes);
    let mut found = Vec::new();
    let mut values_left: u64 = 1;
    while values_left > 0 {
        values_left -= 1;
        let mark = reader.byte()?;
        let length = |reader: &mut ByteReader<'_>, width: u32| -> Result<u64, DecodeError> {
            Ok(match width {
                1 => u64::from(reader.byte()?),
                2 => u64::from(u16::from_be_bytes(reader.array()?)),
                _ => u64::from(u32::from_be_bytes(reader.array()?)),
            })
        };
        // The length of a text; of other values, the bytes to skip and the number of inner values.
        let (text, skipped, values) = match mark {
            0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => (None, 0, 0),
            0x80..=0x8f => (None, 0, u64::from(mark & 0x0f) * 2),
            0x90..=0x9f => (None, 0, u64::from(mark & 0x0f)),
            0xa0..=0xbf => (Some(u64::from(mark & 0x1f)), 0, 0),
            0xc4 | 0xd9 => (Some(length(&mut reader, 1)?), 0, 0),
            0xc5 | 0xda => (Some(length(&mut reader, 2)?), 0, 0),
            0xc6 | 0xdb => (Some(length(&mut reader, 4)?), 0, 0),
            0xc7 => (None, length(&mut reader, 1)? + 1, 0),
            0xc8 => (None, length(&mut reader, 2)? + 1, 0),
            0xc9 => (None, length(&mut reader, 4)? + 1, 0),
            0xcc | 0xd0 => (None, 1, 0),
            0xcd | 0xd1 => (None, 2, 0),
            0xca | 0xce | 0xd2 => (None, 4, 0),
            0xcb | 0xcf | 0xd3 => (None, 8, 0),
            0xd4..=0xd8 => (None, (1 << (mark - 0xd4)) + 1, 0),
            0xdc => (None, 0, length(&mut reader, 2)?),
            0xdd => (None, 0, length(&mut reader, 4)?),
            0xde => (None, 0, length(&mut reader, 2)? * 2),
            0xdf => (None, 0, length(&mut reader, 4)? * 2),
        };
        values_left += values;
        let length = usize::try_from(text.unwrap_or(skipped))
            .map_err(|_| reader.error("a length is too large"))?;
        reader.take(length)?;
        if text.is_some() {
            let end = bytes.len() - reader.remaining();
            found.push(end - length..end);
        }
    }
    reader.end()?;
    Ok(found)
}

/// Returns an encoded value with the texts that `rewrite` returns in place of old ones. `None` if
/// nothing is replaced, a new text differs in length, or the bytes are not one value.
#[must_use]
pub fn rewrite_texts(
    bytes: &[u8],
    mut rewrite: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut changed: Option<Vec<u8>> = None;
    for range in text_ranges(bytes).ok()? {
        if let Some(new) = rewrite(bytes.get(range.clone())?) {
            let all = changed.get_or_insert_with(|| bytes.to_vec());
            all.get_mut(range).filter(|old| old.len() == new.len())?.copy_from_slice(&new);
        }
    }
    changed
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::super::codec::pack;
    use super::*;
    use crate::model::Value;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_in_a_value_is_found(
            pairs in prop::collection::vec(("[a-z]{0,40}", any::<i64>(), ".{0,300}"), 0..40)
        ) {
            let list = pairs.iter().map(|(name, number, text)| {
                Value::from([
                    (name.as_str(), Value::from(*number)),
                    ("zz", Value::List(vec![text.as_str().into(), Value::Null, 0.5.into()])),
                ])
            });
            let packed = pack(&Value::List(list.collect()));
            let found: Vec<&[u8]> =
                text_ranges(&packed).unwrap().into_iter().map(|range| &packed[range]).collect();
            for (name, _, text) in &pairs {
                prop_assert!(found.contains(&name.as_bytes()));
                prop_assert!(found.contains(&text.as_bytes()));
            }
        }

        #[test]
        fn any_bytes_are_accepted_or_refused(bytes: Vec<u8>) {
            let _ = text_ranges(&bytes);
        }
    }

    #[test]
    fn texts_are_rewritten_in_place() {
        let packed = pack(&Value::from([("text", "hunter22".into()), ("n", 0.5.into())]));
        let new =
            rewrite_texts(&packed, |text| (text == b"hunter22").then(|| b"purgedxx".to_vec()));
        assert_eq!(
            new.unwrap(),
            pack(&Value::from([("text", "purgedxx".into()), ("n", 0.5.into())]))
        );
        assert_eq!(rewrite_texts(&packed, |_| None), None);
        assert_eq!(rewrite_texts(&packed[1..packed.len() - 1], |text| Some(text.to_vec())), None);
    }
}
