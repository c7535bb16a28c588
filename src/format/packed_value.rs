//! Comparing a value with its encoded form (MessagePack, each element in its shortest form) without
//! encoding it.

use crate::model::Value;

/// How the length of a text, bytes, a list or a map is encoded: in the first byte if it is short,
/// otherwise after a marker.
struct LengthMarkers {
    /// The first byte of an empty value.
    short: u8,
    /// Lengths below this are added to `short`.
    below: usize,
    /// The marker of a length of 8 bits; lists and maps have no such form.
    of_8: Option<u8>,
    of_16: u8,
    of_32: u8,
}

const TEXT: LengthMarkers =
    LengthMarkers { short: 0xa0, below: 32, of_8: Some(0xd9), of_16: 0xda, of_32: 0xdb };
/// Bytes have no short form.
const BYTES: LengthMarkers =
    LengthMarkers { short: 0, below: 0, of_8: Some(0xc4), of_16: 0xc5, of_32: 0xc6 };
const LIST: LengthMarkers =
    LengthMarkers { short: 0x90, below: 16, of_8: None, of_16: 0xdc, of_32: 0xdd };
const MAP: LengthMarkers =
    LengthMarkers { short: 0x80, below: 16, of_8: None, of_16: 0xde, of_32: 0xdf };

const NULL: u8 = 0xc0;
const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;
const FLOAT_64: u8 = 0xcb;
/// The markers of numbers of 8, 16, 32 and 64 bits, unsigned and signed.
const UNSIGNED: [u8; 4] = [0xcc, 0xcd, 0xce, 0xcf];
const SIGNED: [u8; 4] = [0xd0, 0xd1, 0xd2, 0xd3];

/// Returns whether these bytes are exactly the encoding of the value.
pub(super) fn is_packed(bytes: &[u8], value: &Value) -> bool {
    after_value(bytes, value).is_some_and(<[u8]>::is_empty)
}

/// Returns the bytes after the value; `None` if they do not begin with it.
fn after_value<'a>(bytes: &'a [u8], value: &Value) -> Option<&'a [u8]> {
    match value {
        Value::Null => after_bytes(bytes, [NULL]),
        Value::Bool(value) => after_bytes(bytes, [if *value { TRUE } else { FALSE }]),
        Value::Int(number) => match u64::try_from(*number) {
            Ok(number) => unsigned(bytes, number),
            Err(_) => negative(bytes, *number),
        },
        Value::UInt(number) => unsigned(bytes, *number),
        Value::Float(number) => after_bytes(after_bytes(bytes, [FLOAT_64])?, number.to_be_bytes()),
        Value::Text(text) => after_text(bytes, text),
        Value::Bytes(content) => length(bytes, &BYTES, content.len())?.strip_prefix(&content[..]),
        Value::List(items) => {
            let rest = length(bytes, &LIST, items.len())?;
            items.iter().try_fold(rest, after_value)
        }
        Value::Map(fields) => {
            let rest = length(bytes, &MAP, fields.len())?;
            fields
                .iter()
                .try_fold(rest, |rest, (name, value)| after_value(after_text(rest, name)?, value))
        }
    }
}

fn after_bytes<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> Option<&[u8]> {
    let (found, rest) = bytes.split_first_chunk::<N>()?;
    (*found == wanted).then_some(rest)
}

/// Returns the bytes after a marker and the `wanted` bytes.
fn marked<const N: usize>(bytes: &[u8], mark: u8, wanted: [u8; N]) -> Option<&[u8]> {
    after_bytes(after_bytes(bytes, [mark])?, wanted)
}

fn after_text<'a>(bytes: &'a [u8], text: &str) -> Option<&'a [u8]> {
    length(bytes, &TEXT, text.len())?.strip_prefix(text.as_bytes())
}

fn length<'a>(bytes: &'a [u8], marks: &LengthMarkers, length: usize) -> Option<&'a [u8]> {
    if length < marks.below {
        return after_bytes(bytes, [marks.short | length as u8]);
    }
    match (marks.of_8, u8::try_from(length), u16::try_from(length)) {
        (Some(mark), Ok(length), _) => marked(bytes, mark, [length]),
        (_, _, Ok(length)) => marked(bytes, marks.of_16, length.to_be_bytes()),
        // The format has no longer values.
        _ => marked(bytes, marks.of_32, u32::try_from(length).ok()?.to_be_bytes()),
    }
}

fn unsigned(bytes: &[u8], number: u64) -> Option<&[u8]> {
    let [of_8, of_16, of_32, of_64] = UNSIGNED;
    if let Ok(number) = u8::try_from(number) {
        return if number < 0x80 {
            after_bytes(bytes, [number])
        } else {
            marked(bytes, of_8, [number])
        };
    }
    match (u16::try_from(number), u32::try_from(number)) {
        (Ok(number), _) => marked(bytes, of_16, number.to_be_bytes()),
        (_, Ok(number)) => marked(bytes, of_32, number.to_be_bytes()),
        _ => marked(bytes, of_64, number.to_be_bytes()),
    }
}

fn negative(bytes: &[u8], number: i64) -> Option<&[u8]> {
    let [of_8, of_16, of_32, of_64] = SIGNED;
    if let Ok(number) = i8::try_from(number) {
        return if number >= -32 {
            after_bytes(bytes, number.to_be_bytes())
        } else {
            marked(bytes, of_8, number.to_be_bytes())
        };
    }
    match (i16::try_from(number), i32::try_from(number)) {
        (Ok(number), _) => marked(bytes, of_16, number.to_be_bytes()),
        (_, Ok(number)) => marked(bytes, of_32, number.to_be_bytes()),
        _ => marked(bytes, of_64, number.to_be_bytes()),
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::super::codec::pack;
    use super::*;
    use proptest::prelude::*;

    /// Numbers near the limits of the encodings, and arbitrary ones.
    fn number() -> impl Strategy<Value = i64> {
        let near = (0_u32..64, -2_i64..3).prop_map(|(bit, by)| (1_i64 << bit).wrapping_add(by));
        prop_oneof![any::<i64>(), near.clone(), near.prop_map(i64::wrapping_neg)]
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![".{0,40}", "[a-z]{0,4}", ".{200,300}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number().prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            (0_u64..300).prop_map(Value::UInt),
            any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
            text.prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
        ];
        leaf.prop_recursive(4, 60, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
                prop::collection::btree_map("[a-z]{1,3}|.{30,34}", inner, 0..20)
                    .prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        /// Tries the bytes of the value, of another value, truncated, with a suffix, and with one
        /// changed byte: the result must be the same as encoding and comparing.
        #[test]
        fn comparing_with_packed_bytes_gives_the_same_result_as_packing_and_comparing(
            mine in value(), other in value(), place: prop::sample::Index, byte: u8,
        ) {
            let packed = pack(&mine);
            prop_assert!(is_packed(&packed, &mine));
            prop_assert_eq!(is_packed(&packed, &other), pack(&other) == packed);
            let place = place.index(packed.len());
            let mut changed = packed.clone();
            changed[place] = byte;
            prop_assert_eq!(is_packed(&changed, &mine), changed == packed);
            prop_assert!(!is_packed(&packed[..place], &mine));
            prop_assert!(!is_packed(&[&packed[..], &[byte]].concat(), &mine));
        }

        #[test]
        fn any_bytes_are_compared_correctly_with_a_value(bytes: Vec<u8>, mine in value()) {
            prop_assert_eq!(is_packed(&bytes, &mine), pack(&mine) == bytes);
        }
    }

    /// Every length and number at which another encoding begins, with both neighbours.
    #[test]
    fn values_at_the_limits_of_each_encoding_are_compared_correctly() {
        let mut all = Vec::new();
        for length in [0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 65_535, 65_536, 65_537] {
            all.push(Value::Text("x".repeat(length)));
            all.push(Value::Bytes(vec![7; length]));
            all.push(Value::List(vec![Value::Null; length]));
            let name = |number: usize| (format!("{number:06}"), Value::Bool(true));
            all.push(Value::Map((0..length).map(name).collect()));
        }
        for bit in [5, 7, 8, 15, 16, 31, 32, 63] {
            for by in [-1, 0, 1_i128] {
                for number in [(1_i128 << bit) + by, -(1_i128 << bit) + by] {
                    all.extend(i64::try_from(number).map(Value::Int));
                    all.extend(u64::try_from(number).map(Value::UInt));
                }
            }
        }
        all.extend([f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY].map(Value::Float));
        for value in &all {
            assert!(is_packed(&pack(value), value));
        }
        for pair in all.windows(2) {
            let [one, other] = pair else { unreachable!("two") };
            assert_eq!(is_packed(&pack(one), other), pack(one) == pack(other), "{other:?}");
        }
    }
}
