//! Comparing a value with its encoded form, without memory for another encoded form.

use crate::model::Value;
use std::io;

/// The bytes that are to be written next. Writing any others is an error.
struct ExpectedBytes<'a>(&'a [u8]);

impl io::Write for ExpectedBytes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether these bytes are exactly the encoding of the value.
pub(super) fn is_packed(bytes: &[u8], value: &Value) -> bool {
    let mut expected = ExpectedBytes(bytes);
    // `codec::pack_into` encodes in the same way.
    rmp_serde::encode::write_named(&mut expected, value).is_ok() && expected.0.is_empty()
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
                    .prop_map(|fields| Value::Map(fields.into_iter().collect())),
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
