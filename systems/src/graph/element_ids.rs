//! Gives the elements of a payload ids that are in the order of the elements.
//!
//! An element that stays keeps its id. There are gaps between ids, so that an element can be
//! inserted between two others without changing their ids.

use std::collections::{HashMap, VecDeque};

/// The distance between the ids of two new neighbours, if there is room.
const ID_GAP: u64 = 1 << 16;

/// The first id of a channel: there is room before it and after it.
const FIRST_ID: u64 = 1 << 40;

/// All ids are smaller than this: they are stored with 12 hexadecimal digits.
const ID_LIMIT: u64 = 1 << 48;

/// An element as this module sees it: the bytes that identify it.
type Identity<'a> = &'a [u8];

/// Returns the ids of all elements of the new list, strictly increasing. Both lists begin with the
/// same elements, whose ids are `begin`. After these, the old list has `old`, each element with its
/// id, in the order of the ids, and the new list has `new`.
///
/// Elements with the same identity and the same order in both lists keep their ids. If `in_place`,
/// the elements between two of these take over the ids of the old elements there, in order: an
/// element that changed is then the same element with other bytes. If there is no room for new ids,
/// all elements get new ones, also the elements of `begin`.
#[must_use]
pub fn element_ids(
    begin: &[u64],
    old: &[(u64, Identity<'_>)],
    new: &[Identity<'_>],
    in_place: bool,
) -> Vec<u64> {
    let kept = kept_places(old, new);
    let mut ids: Vec<Option<u64>> = kept
        .iter()
        .map(|place| place.and_then(|place| old.get(place)).map(|(id, _)| *id))
        .collect();
    if in_place {
        take_over(old, &kept, &mut ids);
    }
    let count = (begin.len() + new.len()) as u64;
    fill(begin, &ids).unwrap_or_else(|| (0..count).map(|at| FIRST_ID + at * ID_GAP).collect())
}

/// Returns for each new element the place of the old element whose id it keeps.
fn kept_places(old: &[(u64, Identity<'_>)], new: &[Identity<'_>]) -> Vec<Option<usize>> {
    let common = old.len().min(new.len());
    let begin = (0..common).take_while(|at| old[*at].1 == new[*at]).count();
    let end = (1..=common - begin)
        .take_while(|back| old[old.len() - back].1 == new[new.len() - back])
        .count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let mut kept: Vec<Option<usize>> = (0..begin).map(Some).collect();
    kept.extend(middle_places(&old[begin..old_end], &new[begin..new_end], begin));
    kept.extend((old_end..old.len()).map(Some));
    kept
}

/// Matches the elements between the common beginning and the common end.
fn middle_places(
    old: &[(u64, Identity<'_>)],
    new: &[Identity<'_>],
    from: usize,
) -> Vec<Option<usize>> {
    let mut places: HashMap<Identity<'_>, VecDeque<usize>> = HashMap::new();
    for (place, (_, identity)) in old.iter().enumerate() {
        places.entry(identity).or_default().push_back(from + place);
    }
    let mut matched: Vec<Option<usize>> =
        new.iter().map(|identity| places.get_mut(identity)?.pop_front()).collect();
    let stays = longest_increasing(&matched);
    for (place, stays) in matched.iter_mut().zip(stays) {
        if !stays {
            *place = None;
        }
    }
    matched
}

/// Returns which of the numbers belong to a longest strictly increasing subsequence.
fn longest_increasing(numbers: &[Option<usize>]) -> Vec<bool> {
    // For each length, the place of the smallest last number of a subsequence of this length.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (place, number) in numbers.iter().enumerate() {
        let Some(number) = number else { continue };
        let length =
            tails.partition_point(|tail| numbers[*tail].is_some_and(|last| last < *number));
        before[place] = length.checked_sub(1).map(|shorter| tails[shorter]);
        if length == tails.len() {
            tails.push(place);
        } else {
            tails[length] = place;
        }
    }
    let mut stays = vec![false; numbers.len()];
    let mut at = tails.last().copied();
    while let Some(place) = at {
        stays[place] = true;
        at = before[place];
    }
    stays
}

/// Gives the new elements between two kept ones the ids of the old elements between these, in
/// order.
fn take_over(old: &[(u64, Identity<'_>)], kept: &[Option<usize>], ids: &mut [Option<u64>]) {
    let mut free = 0;
    let mut place = 0;
    while place < kept.len() {
        if let Some(known) = kept[place] {
            free = known + 1;
            place += 1;
            continue;
        }
        let run = kept[place..].iter().take_while(|kept| kept.is_none()).count();
        let until = kept.get(place + run).copied().flatten().unwrap_or(old.len());
        for (id, (known, _)) in ids[place..place + run].iter_mut().zip(&old[free..until]) {
            *id = Some(*known);
        }
        place += run;
    }
}

/// Returns the ids `begin` and `ids`, with the missing ones filled in; `None` if there is no room
/// for them.
fn fill(begin: &[u64], mut ids: &[Option<u64>]) -> Option<Vec<u64>> {
    let mut filled: Vec<u64> = Vec::with_capacity(begin.len() + ids.len());
    filled.extend_from_slice(begin);
    while let [id, rest @ ..] = ids {
        if let Some(id) = id {
            filled.push(*id);
            ids = rest;
            continue;
        }
        let run = ids.iter().take_while(|id| id.is_none()).count() as u64;
        ids = &ids[run as usize..];
        let next = ids.first().copied().flatten();
        let (first, gap) = match (filled.last(), next) {
            (None, None) => (FIRST_ID, ID_GAP),
            (Some(last), None) => (last.checked_add(ID_GAP)?, ID_GAP),
            (None, Some(next)) => {
                let gap = ID_GAP.min(next / (run + 1));
                (next.checked_sub(gap * run)?, gap)
            }
            (Some(last), Some(next)) => {
                let gap = next.checked_sub(*last)? / (run + 1);
                (last + gap, gap)
            }
        };
        let last = gap.checked_mul(run - 1).and_then(|more| first.checked_add(more))?;
        if gap == 0 || last >= ID_LIMIT {
            return None;
        }
        filled.extend((0..run).map(|at| first + at * gap));
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn bytes(words: &[String]) -> Vec<&[u8]> {
        words.iter().map(String::as_bytes).collect()
    }

    fn known<'a>(ids: &[u64], words: &'a [String]) -> Vec<(u64, &'a [u8])> {
        ids.iter().copied().zip(bytes(words)).collect()
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn begun(words: &[String]) -> Vec<u64> {
        element_ids(&[], &[], &bytes(words), false)
    }

    /// How many ids are new or have another element than before.
    fn changed(old: &[(u64, &[u8])], ids: &[u64], new: &[&[u8]]) -> usize {
        let old: BTreeMap<u64, &[u8]> = old.iter().copied().collect();
        ids.iter().zip(new).filter(|(id, bytes)| old.get(id) != Some(bytes)).count()
    }

    proptest! {
        #[test]
        fn ids_are_in_the_order_of_the_elements_through_any_edits(
            steps in proptest::collection::vec(
                proptest::collection::vec("[a-e]", 0..14), 1..40),
            in_place in any::<bool>(),
        ) {
            let (mut words, mut ids): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
            for next in steps {
                let new = element_ids(&[], &known(&ids, &words), &bytes(&next), in_place);
                prop_assert_eq!(new.len(), next.len());
                prop_assert!(new.windows(2).all(|pair| pair[0] < pair[1]), "{new:?}");
                prop_assert!(new.iter().all(|id| *id > 0 && *id < ID_LIMIT));
                let same = words.iter().zip(&next).take_while(|(old, new)| old == new).count();
                let (old, rest) = (known(&ids, &words), bytes(&next));
                let split = element_ids(&ids[..same], &old[same..], &rest[same..], in_place);
                prop_assert_eq!(&split, &new);
                (words, ids) = (next, new);
            }
        }

        #[test]
        fn elements_of_a_common_beginning_and_end_keep_their_ids(
            begin in proptest::collection::vec("[a-z]{3}", 0..10),
            removed in proptest::collection::vec("[0-4]{2}", 0..10),
            added in proptest::collection::vec("[5-9]{2}", 0..10),
            end in proptest::collection::vec("[a-z]{3}", 0..10),
        ) {
            let old = [begin.clone(), removed, end.clone()].concat();
            let new = [begin.clone(), added.clone(), end.clone()].concat();
            let old = known(&begun(&old), &old).into_iter().map(|(id, word)| (id, word.to_vec())).collect::<Vec<_>>();
            let old: Vec<(u64, &[u8])> = old.iter().map(|(id, word)| (*id, word.as_slice())).collect();
            for in_place in [false, true] {
                let ids = element_ids(&[], &old, &bytes(&new), in_place);
                prop_assert_eq!(changed(&old, &ids, &bytes(&new)), added.len());
                let olds: Vec<u64> = old.iter().map(|(id, _)| *id).collect();
                prop_assert_eq!(&ids[..begin.len()], &olds[..begin.len()]);
                prop_assert_eq!(&ids[ids.len() - end.len()..], &olds[olds.len() - end.len()..]);
            }
        }
    }

    #[test]
    fn a_changed_item_of_a_list_keeps_its_id() {
        let old = words("a b c d e f");
        let ids = begun(&old);
        let new = words("a X c d Y f g");
        let next = element_ids(&[], &known(&ids, &old), &bytes(&new), true);
        assert_eq!(next[..6], ids);
        assert_eq!(next[6], ids[5] + ID_GAP);
    }

    #[test]
    fn moving_an_element_changes_no_id_of_the_others() {
        let old = words("a b c d e");
        let ids = begun(&old);
        for (text, wanted) in [("b c d e a", 1), ("e a b c d", 1), ("a c d e", 0), ("c", 0)] {
            let new = words(text);
            let next = element_ids(&[], &known(&ids, &old), &bytes(&new), false);
            assert_eq!(changed(&known(&ids, &old), &next, &bytes(&new)), wanted, "{text}");
        }
    }

    #[test]
    fn elements_are_renumbered_if_there_is_no_free_id_between_two() {
        let (mut list, mut ids) = (words("a b"), begun(&words("a b")));
        let mut renumbered = 0;
        for number in 0..40 {
            let mut next = list.clone();
            next.insert(1, format!("n{number}"));
            let new = element_ids(&[], &known(&ids, &list), &bytes(&next), true);
            renumbered += usize::from(new[2] != ids[1]);
            (list, ids) = (next, new);
        }
        assert_eq!(renumbered, 2);
    }
}
