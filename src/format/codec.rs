//! Encoding of numbers and byte strings in sequence.

use serde::Deserialize;
use std::ops::Range;

/// Bytes that cannot be decoded: damaged, or written by something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: {reason}")]
pub struct DecodeError {
    what: &'static str,
    reason: String,
}

impl DecodeError {
    /// Creates an error from what was being decoded and what was wrong with it.
    pub fn new(what: &'static str, reason: impl Into<String>) -> Self {
        Self { what, reason: reason.into() }
    }

    /// Creates the error for data that was lost before a repair.
    pub(crate) fn lost(what: &'static str) -> Self {
        Self::new(what, LOST)
    }

    /// Returns whether the data was lost before a repair.
    pub(crate) fn is_lost(&self) -> bool {
        self.reason == LOST
    }
}

/// The reason of an error for data that was lost before a repair.
const LOST: &str = "it was lost before a repair";

/// Appends an unsigned number in LEB128: seven bits per byte, low ones first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number: zigzag, then LEB128.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Appends a byte string, preceded by its length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads values from the front of a slice.
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, what }
    }

    #[cold]
    pub(crate) fn error(&self, reason: impl Into<String>) -> DecodeError {
        DecodeError::new(self.what, reason)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns the range of the `length` bytes that were just read, of `total` bytes: less than
    /// 4 GiB.
    #[inline]
    pub(crate) fn range_just_read(&self, total: usize, length: usize) -> Range<u32> {
        let end = total - self.remaining();
        (end - length) as u32..end as u32
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| self.error("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| self.error("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a byte that is the place of a value in a list.
    #[inline]
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T], other: &str) -> Result<T, DecodeError> {
        let place = usize::from(self.byte()?);
        all.get(place).copied().ok_or_else(|| self.error(other))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        match self.rest.split_first() {
            // The most frequent case.
            Some((byte, rest)) if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number is too large"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, DecodeError> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed()))
    }

    pub(crate) fn length(&mut self) -> Result<usize, DecodeError> {
        let length = self.varint()?;
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= self.rest.len())
            .ok_or_else(|| self.error("a length is larger than what is left"))
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        self.take(length)
    }

    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.error(format!("{} bytes too many", self.rest.len())))
        }
    }
}

/// Encodes one of forge's own records: MessagePack with named fields.
pub(crate) fn pack<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    pack_into(&mut out, value);
    out
}

/// Returns whether a field has its default value and is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// Returns whether a number is zero and is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(super) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Encodes like [`pack`], appending to `out`.
pub(crate) fn pack_into<T: serde::Serialize>(out: &mut Vec<u8>, value: &T) {
    rmp_serde::encode::write_named(out, value).expect("plain data encodes into memory");
}

/// Decodes one of forge's own records and rejects trailing bytes.
pub(crate) fn unpack<T: serde::de::DeserializeOwned>(
    what: &'static str,
    bytes: &[u8],
) -> Result<T, DecodeError> {
    let wrong = |error: rmp_serde::decode::Error| DecodeError::new(what, error.to_string());
    // Reading from a reference borrows strings: most of the input is field names, which are
    // compared in place.
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(MAX_DEPTH);
    let value = T::deserialize(&mut reader).map_err(wrong)?;
    // Decoding a `bool` reads just the first byte of a value, so it fails with this error only at
    // the end of the input.
    match bool::deserialize(&mut reader) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(DecodeError::new(what, "bytes after its end")),
    }
}

/// Returns content preceded by a mark, its length and the first 16 bytes of its hash.
pub(super) fn wrap_as(magic: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(24 + content.len());
    out.extend_from_slice(magic);
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(blake3::hash(content).as_bytes().first_chunk::<16>().expect("16 of 32"));
    out.extend_from_slice(content);
    out
}

/// Returns the content that was wrapped by [`wrap_as`], after checking it.
pub(super) fn unwrap_as<'a>(
    magic: &[u8; 4],
    what: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8], DecodeError> {
    let mut reader = ByteReader::new(what, bytes);
    if &reader.array::<4>()? != magic {
        return Err(reader.error("it does not begin with its mark"));
    }
    let length = u32::from_le_bytes(reader.array()?) as usize;
    let hash = reader.array::<16>()?;
    let content = reader.take(length)?;
    reader.end()?;
    if blake3::hash(content).as_bytes().first_chunk() != Some(&hash) {
        return Err(reader.error("its content does not match its hash"));
    }
    Ok(content)
}

/// Implements the encoding of a type: MessagePack with named fields, after a mark and a hash if it
/// has a `magic`. A decoded value for which `check` fails is refused.
macro_rules! packed {
    ($name:ident, $what:literal $(, magic = $magic:expr)? $(, check = $check:expr)?) => {
        impl $name {
            /// Encodes this value.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                let content = $crate::format::codec::pack(self);
                $(let content = $crate::format::codec::wrap_as($magic, &content);)?
                content
            }

            /// Decodes a value.
            ///
            /// # Errors
            /// `DecodeError` if it is damaged.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::format::DecodeError> {
                $(let bytes = $crate::format::codec::unwrap_as($magic, $what, bytes)?;)?
                let value: Self = $crate::format::codec::unpack($what, bytes)?;
                $(
                    let check: fn(&Self) -> Result<(), &'static str> = $check;
                    check(&value)
                        .map_err(|reason| $crate::format::DecodeError::new($what, reason))?;
                )?
                Ok(value)
            }
        }
    };
}
pub(super) use packed;

/// Maximum nesting of values: enough for data, too little to exhaust the stack.
pub(super) const MAX_DEPTH: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_decode_as_they_were_encoded(number: u64, signed: i64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            put_signed(&mut bytes, signed);
            let mut reader = ByteReader::new("pair", &bytes);
            prop_assert_eq!(reader.varint().unwrap(), number);
            prop_assert_eq!(reader.signed().unwrap(), signed);
            prop_assert!(reader.end().is_ok());
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let mut reader = ByteReader::new("anything", &bytes);
            while reader.varint().is_ok() && reader.bytes().is_ok() {}
            let _ = unpack::<crate::model::Value>("value", &bytes);
        }
    }

    /// Endlessly nested lists, and five bytes that declare four thousand million elements.
    #[test]
    fn endless_nesting_and_impossible_lengths_are_refused() {
        for opened in [vec![0x91], vec![0x81, 0xa1, b'a']] {
            let nested = opened.repeat(1_000_000);
            assert!(unpack::<crate::model::Value>("value", &nested).is_err());
            assert!(unpack::<crate::format::Record>("record", &nested).is_err());
        }
        // List, map, text and bytes, with a length of 32 bits.
        for mark in [0xdd, 0xdf, 0xdb, 0xc6_u8] {
            let long = [mark, 0xff, 0xff, 0xff, 0xff];
            assert!(unpack::<crate::model::Value>("value", &long).is_err());
            assert!(unpack::<Vec<crate::model::Value>>("values", &long).is_err());
        }
        let mut reader = ByteReader::new("bytes", &[0xff, 0xff, 0xff, 0xff, 0x0f, 1]);
        assert!(reader.bytes().is_err());
    }

    #[test]
    fn bytes_after_a_record_are_refused() {
        let bytes = pack(&crate::model::Value::from("x"));
        assert!(unpack::<crate::model::Value>("value", &bytes).is_ok());
        // Whatever type the extra bytes begin, and whether that value is complete or not.
        for first in 0..=u8::MAX {
            for rest in [&[][..], &[0; 20]] {
                let more = [&bytes, &[first][..], rest].concat();
                assert!(unpack::<crate::model::Value>("value", &more).is_err(), "{first:#x}");
            }
        }
    }
}
