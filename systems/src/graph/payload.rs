//! Splits the payload of a channel into elements, and joins elements to the payload again.

use std::ops::Range;

/// How the elements of a payload are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadForm {
    /// The items of a MessagePack array.
    List,
    /// The entries of a MessagePack map, each with its key.
    Map,
    /// The whole payload is one element.
    Whole,
}

impl PayloadForm {
    /// Returns the word by which the form is stored.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Map => "map",
            Self::Whole => "whole",
        }
    }

    /// Returns the form of a stored word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::List, Self::Map, Self::Whole].into_iter().find(|form| form.word() == word)
    }
}

/// One element of a payload: where its bytes are, and the part that identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadElement {
    /// The bytes of the element in the payload.
    pub range: Range<usize>,
    /// The bytes that identify it: the key of a map's entry, else the whole element.
    pub identity: Range<usize>,
}

/// A payload divided into elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPayload {
    /// How the elements were found.
    pub form: PayloadForm,
    /// The elements, in the order of the payload.
    pub elements: Vec<PayloadElement>,
}

/// The only encoding whose payloads are divided.
const DIVIDED_ENCODING: &str = "msgpack";

/// A smaller payload is one element: its parts would cost more than the whole.
const MIN_SPLIT_BYTES: usize = 64;

/// Up to this number of elements, they may be small.
const MAX_SMALL_ELEMENTS: usize = 256;

/// With more elements than that, they must have this many bytes on average: each costs about as
/// much again for its id and its time.
const MIN_AVERAGE_BYTES: usize = 24;

/// Divides a payload into elements. A payload that is not MessagePack, or not a container with
/// anything in it, is one element; so is one whose container begins in an unusual way, since its
/// beginning could not be computed from the number of elements.
#[must_use]
pub fn split_payload(encoding: &str, payload: &[u8]) -> SplitPayload {
    let divided =
        (encoding == DIVIDED_ENCODING && payload.len() >= MIN_SPLIT_BYTES).then(|| divide(payload));
    divided.flatten().unwrap_or_else(|| {
        let all = 0..payload.len();
        let whole = PayloadElement { range: all.clone(), identity: all };
        SplitPayload { form: PayloadForm::Whole, elements: vec![whole] }
    })
}

fn divide(payload: &[u8]) -> Option<SplitPayload> {
    let (form, count, head) = container(payload)?;
    if container_head(form, count) != payload.get(..head)? {
        return None;
    }
    let body = payload.len() - head;
    if count > MAX_SMALL_ELEMENTS && body / count < MIN_AVERAGE_BYTES {
        return None;
    }
    // Nothing is reserved for a declared count that the payload cannot hold.
    let mut elements = Vec::with_capacity(count.min(body));
    let mut start = head;
    for _ in 0..count {
        let first = value_end(payload, start)?;
        let (end, identity) = match form {
            PayloadForm::Map => (value_end(payload, first)?, start..first),
            PayloadForm::List | PayloadForm::Whole => (first, start..first),
        };
        elements.push(PayloadElement { range: start..end, identity });
        start = end;
    }
    (start == payload.len()).then_some(SplitPayload { form, elements })
}

/// Joins elements to a payload.
#[must_use]
pub fn join_payload(form: PayloadForm, elements: &[&[u8]]) -> Vec<u8> {
    let mut payload = container_head(form, elements.len());
    payload.reserve(elements.iter().map(|element| element.len()).sum());
    elements.iter().for_each(|element| payload.extend_from_slice(element));
    payload
}

/// Returns where elements are in the payload that [`join_payload`] makes of them.
#[must_use]
pub fn elements_of(form: PayloadForm, elements: &[&[u8]]) -> Vec<PayloadElement> {
    let mut start = container_head(form, elements.len()).len();
    let mut places = Vec::with_capacity(elements.len());
    for element in elements {
        let range = start..start + element.len();
        let key = (form == PayloadForm::Map).then(|| value_end(element, 0)).flatten();
        let identity = start..key.map_or(range.end, |key| start + key);
        start = range.end;
        places.push(PayloadElement { range, identity });
    }
    places
}

/// Reads the beginning of a container: its form, the number of its elements, and how many bytes
/// this takes.
fn container(payload: &[u8]) -> Option<(PayloadForm, usize, usize)> {
    let marker = *payload.first()?;
    let (form, count, head) = match marker {
        0x80..=0x8f => (PayloadForm::Map, usize::from(marker & 15), 1),
        0x90..=0x9f => (PayloadForm::List, usize::from(marker & 15), 1),
        0xdc => (PayloadForm::List, number(payload, 1, 2)?, 3),
        0xdd => (PayloadForm::List, number(payload, 1, 4)?, 5),
        0xde => (PayloadForm::Map, number(payload, 1, 2)?, 3),
        0xdf => (PayloadForm::Map, number(payload, 1, 4)?, 5),
        _ => return None,
    };
    (count > 0).then_some((form, count, head))
}

/// Returns the shortest beginning of a container with this number of elements.
fn container_head(form: PayloadForm, count: usize) -> Vec<u8> {
    let (short, medium, long) = match form {
        PayloadForm::List => (0x90, 0xdc, 0xdd),
        PayloadForm::Map => (0x80, 0xde, 0xdf),
        PayloadForm::Whole => return Vec::new(),
    };
    let bytes = (count as u32).to_be_bytes();
    match count {
        0..=15 => vec![short | bytes[3]],
        16..=0xffff => vec![medium, bytes[2], bytes[3]],
        _ => vec![long, bytes[0], bytes[1], bytes[2], bytes[3]],
    }
}

/// Reads a big-endian number.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let digits = bytes.get(at..at + length)?;
    Some(digits.iter().fold(0, |number, digit| number << 8 | usize::from(*digit)))
}

/// Returns where the MessagePack value that begins at `at` ends; `None` if it is malformed. Values
/// inside it are counted instead of nested calls, so depth costs nothing.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    let mut left: usize = 1;
    while left > 0 {
        left -= 1;
        let marker = *bytes.get(at)?;
        at += 1;
        let sized = |width: usize| number(bytes, at, width).map(|size| (width, size));
        let (skipped, inner) = match marker {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => (0, 0),
            0x80..=0x8f => (0, 2 * usize::from(marker & 15)),
            0x90..=0x9f => (0, usize::from(marker & 15)),
            0xa0..=0xbf => (usize::from(marker & 31), 0),
            0xc1 => return None,
            // Text and bytes, then extensions, whose type is one more byte.
            0xc4 | 0xd9 => after_length(sized(1)?, 0),
            0xc5 | 0xda => after_length(sized(2)?, 0),
            0xc6 | 0xdb => after_length(sized(4)?, 0),
            0xc7 => after_length(sized(1)?, 1),
            0xc8 => after_length(sized(2)?, 1),
            0xc9 => after_length(sized(4)?, 1),
            0xcc | 0xd0 => (1, 0),
            0xcd | 0xd1 | 0xd4 => (2, 0),
            0xd5 => (3, 0),
            0xca | 0xce | 0xd2 => (4, 0),
            0xd6 => (5, 0),
            0xcb | 0xcf | 0xd3 => (8, 0),
            0xd7 => (9, 0),
            0xd8 => (17, 0),
            0xdc => (2, number(bytes, at, 2)?),
            0xdd => (4, number(bytes, at, 4)?),
            0xde => (2, 2 * number(bytes, at, 2)?),
            0xdf => (4, 2 * number(bytes, at, 4)?),
        };
        at += skipped;
        left += inner;
        // Each value takes a byte at least.
        if at > bytes.len() || left > bytes.len() - at {
            return None;
        }
    }
    Some(at)
}

/// Returns how much to skip for a length and the bytes it announces: they have no values in them.
const fn after_length((width, size): (usize, usize), more: usize) -> (usize, usize) {
    (width + size + more, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A MessagePack value, as bytes.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let leaf = prop_oneof![
            Just(vec![0xc0]),
            (0_u8..128).prop_map(|number| vec![number]),
            proptest::collection::vec(97_u8..123, 0..40).prop_map(|text| [
                vec![0xd9, text.len() as u8],
                text
            ]
            .concat()),
            any::<[u8; 8]>().prop_map(|number| [vec![0xcb], number.to_vec()].concat()),
            proptest::collection::vec(any::<u8>(), 0..30).prop_map(|bytes| [
                vec![0xc7, bytes.len() as u8, 5],
                bytes
            ]
            .concat()),
        ];
        leaf.prop_recursive(3, 40, 6, |inner| {
            proptest::collection::vec(inner, 0..6).prop_map(|items| container_of(false, &items))
        })
    }

    fn container_of(is_map: bool, items: &[Vec<u8>]) -> Vec<u8> {
        let form = if is_map { PayloadForm::Map } else { PayloadForm::List };
        let count = if is_map { items.len() / 2 } else { items.len() };
        let items = items.get(..if is_map { count * 2 } else { count }).unwrap_or_default();
        [container_head(form, count), items.concat()].concat()
    }

    fn rejoined(payload: &[u8]) -> Vec<u8> {
        let split = split_payload("msgpack", payload);
        let elements: Vec<&[u8]> =
            split.elements.iter().map(|element| &payload[element.range.clone()]).collect();
        assert_eq!(elements_of(split.form, &elements), split.elements);
        join_payload(split.form, &elements)
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(rejoined(&payload) == payload);
        }

        #[test]
        fn containers_come_back_element_by_element(
            is_map in any::<bool>(),
            items in proptest::collection::vec(value(), 2..40),
        ) {
            let payload = container_of(is_map, &items);
            let split = split_payload("msgpack", &payload);
            prop_assert!(rejoined(&payload) == payload);
            if payload.len() >= MIN_SPLIT_BYTES {
                let count = if is_map { items.len() / 2 } else { items.len() };
                prop_assert_eq!(split.elements.len(), count);
                prop_assert_eq!(split.form == PayloadForm::Map, is_map);
            }
        }

        #[test]
        fn damaged_containers_come_back(
            items in proptest::collection::vec(value(), 8..40),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut payload = container_of(false, &items);
            let place = place.index(payload.len());
            payload[place] = byte;
            prop_assert!(rejoined(&payload) == payload);
            payload.truncate(cut.index(payload.len()));
            prop_assert!(rejoined(&payload) == payload);
        }
    }

    #[test]
    fn only_plain_containers_of_some_size_are_divided() {
        let items: Vec<Vec<u8>> =
            (0..40).map(|_| [vec![0xd9, 30], vec![b'x'; 30]].concat()).collect();
        let list = container_of(false, &items);
        assert_eq!(split_payload("msgpack", &list).elements.len(), 40);
        let whole = |encoding: &str, payload: &[u8]| {
            let split = split_payload(encoding, payload);
            assert_eq!((split.form, split.elements.len()), (PayloadForm::Whole, 1));
            assert_eq!(split.elements[0].range, 0..payload.len());
        };
        whole("msgpack+aes", &list);
        whole("msgpack", &[]);
        whole("msgpack", &[0x93, 1, 2, 3]);
        // The same list, whose beginning is longer than it need be.
        let long = [&[0xdd, 0, 0, 0, 40], &list[3..]].concat();
        whole("msgpack", &long);
        whole("msgpack", &[list.clone(), vec![0]].concat());
        // A declared count that the bytes cannot hold.
        whole("msgpack", &[&[0xdd, 0xff, 0xff, 0xff, 0xff], &list[3..]].concat());
        // Many small numbers.
        let numbers = [vec![0xdc, 0x03, 0xe8], vec![7; 1000]].concat();
        whole("msgpack", &numbers);
    }

    #[test]
    fn forms_have_words() {
        for form in [PayloadForm::List, PayloadForm::Map, PayloadForm::Whole] {
            assert_eq!(PayloadForm::of_word(form.word()), Some(form));
        }
        assert_eq!(PayloadForm::of_word("heap"), None);
    }
}
