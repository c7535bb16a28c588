//! Splits the payload of a channel into elements, and joins elements to the payload again.

words! {
    /// How the elements of a payload are found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PayloadForm {
        /// The items of a MessagePack array.
        List = "list",
        /// The entries of a MessagePack map, each with its key.
        Map = "map",
        /// The whole payload is one element.
        Whole = "whole",
    }
}

/// One element of a payload: how many bytes it has. The elements of a payload follow each other, up
/// to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadElement {
    /// The number of its bytes.
    pub length: usize,
    /// The number of the bytes at its beginning that identify it: the key of a map's entry, else
    /// the whole element.
    pub identity: usize,
}

impl PayloadElement {
    const fn whole(length: usize) -> Self {
        Self { length, identity: length }
    }
}

/// A payload divided into elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPayload {
    /// How the elements were found.
    pub form: PayloadForm,
    /// The elements, in the order of the payload.
    pub elements: Vec<PayloadElement>,
}

/// A payload with its elements.
#[derive(Clone, Copy, Debug)]
pub struct DividedPayload<'a> {
    /// How the elements were found.
    pub form: PayloadForm,
    /// The elements.
    pub elements: &'a [PayloadElement],
    /// The payload.
    pub bytes: &'a [u8],
}

impl<'a> DividedPayload<'a> {
    /// Returns the elements from this place on: for each, the bytes that identify it, and all of
    /// its bytes.
    pub fn parts_from(self, place: usize) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let elements = self.elements.get(place..).unwrap_or_default();
        let length: usize = elements.iter().map(|element| element.length).sum();
        let start = self.bytes.len().saturating_sub(length);
        let mut rest = self.bytes.get(start..).unwrap_or_default();
        elements.iter().map_while(move |element| {
            let part = rest.split_off(..element.length)?;
            Some((part.get(..element.identity)?, part))
        })
    }
}

/// What the beginnings of a payload and of an older one have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonBeginning<'a> {
    /// This many elements have the identity of the older one at the same place.
    pub count: usize,
    /// The places and the bytes of the ones among them whose other bytes changed.
    pub changed: Vec<(usize, &'a [u8])>,
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
    split_payload_after(None, encoding, payload).0
}

/// Divides a payload like [`split_payload`], and compares it with an older one of the same
/// encoding. What is the same is only compared and not read again.
#[must_use]
pub fn split_payload_after<'a>(
    older: Option<DividedPayload<'_>>,
    encoding: &str,
    payload: &'a [u8],
) -> (SplitPayload, CommonBeginning<'a>) {
    let divided = (encoding == DIVIDED_ENCODING && payload.len() >= MIN_SPLIT_BYTES)
        .then(|| divide(older, payload));
    divided.flatten().unwrap_or_else(|| {
        let is_same =
            older.is_some_and(|older| older.form == PayloadForm::Whole && older.bytes == payload);
        let common = CommonBeginning { count: usize::from(is_same), changed: Vec::new() };
        let elements = vec![PayloadElement::whole(payload.len())];
        (SplitPayload { form: PayloadForm::Whole, elements }, common)
    })
}

fn divide<'a>(
    older: Option<DividedPayload<'_>>,
    payload: &'a [u8],
) -> Option<(SplitPayload, CommonBeginning<'a>)> {
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
    let older = older.filter(|older| older.form == form);
    let common = older.map_or_else(Default::default, |older| {
        common_beginning(older, count, payload.get(head..).unwrap_or_default(), &mut elements)
    });
    let mut start = head + elements.iter().map(|element| element.length).sum::<usize>();
    while elements.len() < count {
        let element = element_at(form, payload, start)?;
        start += element.length;
        elements.push(element);
    }
    (start == payload.len()).then_some((SplitPayload { form, elements }, common))
}

/// Adds the elements with which `body` begins, as long as they have the identities of the older
/// ones, and returns how many these are.
fn common_beginning<'a>(
    older: DividedPayload<'_>,
    count: usize,
    body: &'a [u8],
    elements: &mut Vec<PayloadElement>,
) -> CommonBeginning<'a> {
    let old_body: usize = older.elements.iter().map(|element| element.length).sum();
    let (_, mut old) = older.bytes.split_at(older.bytes.len().saturating_sub(old_body));
    let mut new = body;
    let mut same = common_length(old, new);
    let mut changed = Vec::new();
    for known in older.elements.iter().take(count) {
        let (was, old_rest) = old.split_at(known.length.min(old.len()));
        old = old_rest;
        if known.length <= same {
            new = new.get(known.length..).unwrap_or_default();
            same -= known.length;
            elements.push(*known);
            continue;
        }
        let Some(element) = element_at(older.form, new, 0) else { break };
        let (is, new_rest) = new.split_at(element.length);
        if was.get(..known.identity) != is.get(..element.identity) {
            break;
        }
        changed.push((elements.len(), is));
        new = new_rest;
        same = common_length(old, new);
        elements.push(element);
    }
    CommonBeginning { count: elements.len(), changed }
}

/// Returns how many bytes both begin with.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    // Long blocks are compared fastest, and short ones find the place in the block that differs.
    let mut length = 0;
    for block in [4096, 256, 16, 1] {
        let blocks = one[length..].chunks_exact(block).zip(other[length..].chunks_exact(block));
        length += block * blocks.take_while(|(one, other)| one == other).count();
    }
    length
}

/// Reads the element that begins at `start`.
fn element_at(form: PayloadForm, payload: &[u8], start: usize) -> Option<PayloadElement> {
    let identity = value_end(payload, start)? - start;
    let length = match form {
        PayloadForm::Map => value_end(payload, start + identity)? - start,
        PayloadForm::List | PayloadForm::Whole => identity,
    };
    Some(PayloadElement { length, identity })
}

/// Joins elements to a payload.
#[must_use]
pub fn join_payload(form: PayloadForm, elements: &[&[u8]]) -> Vec<u8> {
    let mut payload = container_head(form, elements.len());
    payload.reserve(elements.iter().map(|element| element.len()).sum());
    elements.iter().for_each(|element| payload.extend_from_slice(element));
    payload
}

/// Returns the elements of the payload that [`join_payload`] makes of these bytes.
#[must_use]
pub fn elements_of(form: PayloadForm, elements: &[&[u8]]) -> Vec<PayloadElement> {
    let element = |bytes: &&[u8]| {
        let key = (form == PayloadForm::Map).then(|| value_end(bytes, 0)).flatten();
        PayloadElement { length: bytes.len(), identity: key.unwrap_or(bytes.len()) }
    };
    elements.iter().map(element).collect()
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

    fn divided<'a>(split: &'a SplitPayload, bytes: &'a [u8]) -> DividedPayload<'a> {
        DividedPayload { form: split.form, elements: &split.elements, bytes }
    }

    fn rejoined(payload: &[u8]) -> Vec<u8> {
        let split = split_payload("msgpack", payload);
        let parts = divided(&split, payload).parts_from(0);
        let elements: Vec<&[u8]> = parts.map(|(_, bytes)| bytes).collect();
        assert_eq!(elements_of(split.form, &elements), split.elements);
        join_payload(split.form, &elements)
    }

    proptest! {
        #[test]
        fn a_split_payload_of_any_bytes_is_rejoined(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(rejoined(&payload) == payload);
        }

        #[test]
        fn containers_are_split_into_their_elements_and_rejoined(
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
        fn a_payload_is_split_the_same_way_whatever_the_older_payload_was(
            is_map in any::<bool>(),
            items in proptest::collection::vec(value(), 8..60),
            edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..3, value()), 0..6),
            flip in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let old = container_of(is_map, &items);
            let mut items = items;
            for (place, edit, value) in edits {
                let place = place.index(items.len());
                match edit {
                    0 => items[place] = value,
                    1 => items.insert(place, value),
                    _ => drop(items.remove(place)),
                }
            }
            let mut new = container_of(is_map, &items);
            if let Some((place, byte)) = flip {
                let place = place.index(new.len());
                new[place] = byte;
            }
            let known = split_payload("msgpack", &old);
            let older = divided(&known, &old);
            let (split, common) = split_payload_after(Some(older), "msgpack", &new);
            prop_assert_eq!(&split, &split_payload("msgpack", &new));
            let parts = older.parts_from(0).zip(divided(&split, &new).parts_from(0));
            let mut parts: Vec<_> = parts.take_while(|((was, _), (is, _))| was == is).collect();
            if known.form != split.form {
                parts.clear();
            }
            let count = parts.len();
            let changed = parts.into_iter().map(|((_, was), (_, is))| (was, is)).enumerate();
            let changed = changed.filter(|(_, (was, is))| was != is);
            let changed = changed.map(|(place, (_, is))| (place, is)).collect();
            prop_assert_eq!(common, CommonBeginning { count, changed });
        }

        #[test]
        fn damaged_containers_are_rejoined_unchanged(
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
            assert_eq!(split.elements[0], PayloadElement::whole(payload.len()));
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
    fn each_payload_form_is_read_back_from_its_word() {
        for form in [PayloadForm::List, PayloadForm::Map, PayloadForm::Whole] {
            assert_eq!(PayloadForm::from_word(form.word()), Some(form));
        }
        assert_eq!(PayloadForm::from_word("heap"), None);
    }
}
