//! Attacks on the journal: on the latest writes.

use super::frame::{Frame, frames, write};
use super::{Place, add, copy};
use forge_store::backend::IntegrityBreach;
use forge_store::error::ErrorKind;
use forge_store::store::Store;
use proptest::prelude::*;
use std::fs;

/// Changes the frames of a store's journal, and corrects everything that needs no key.
fn attack(place: &Place, change: impl FnOnce(&mut Vec<Frame>)) -> IntegrityBreach {
    let segment = place.segment();
    let mut all = frames(&segment);
    change(&mut all);
    write(&segment, &all);
    place.refusal()
}

fn saying(frames: &[Frame], text: &str) -> usize {
    frames.iter().position(|frame| frame.holds(text)).unwrap()
}

#[test]
fn rewriting_the_same_frames_changes_nothing() {
    let place = Place::new();
    let segment = place.segment();
    let before = fs::read(&segment).unwrap();
    write(&segment, &frames(&segment));
    assert_eq!(fs::read(&segment).unwrap(), before);
    assert_eq!(place.read().unwrap().len(), 20);
}

#[test]
fn a_record_whose_content_was_changed_is_refused() {
    let refusal = attack(&Place::new(), |frames| {
        let at = saying(frames, "first-3");
        frames[at].replace("first-3", "FORGED!");
    });
    assert_eq!(refusal, IntegrityBreach::Altered);
}

#[test]
fn a_record_whose_metadata_was_changed_is_refused() {
    let refusal = attack(&Place::new(), |frames| {
        let at = saying(frames, "first-3");
        frames[at].replace("manual", "MANUAL");
    });
    assert_eq!(refusal, IntegrityBreach::Altered);
    // The header of the frame is sealed too.
    let refusal = attack(&Place::new(), |frames| frames[3].header[24..32].fill(0));
    assert_eq!(refusal, IntegrityBreach::Altered);
}

#[test]
fn a_truncated_journal_is_refused() {
    let refusal = attack(&Place::new(), |frames| frames.truncate(frames.len() - 2));
    assert_eq!(refusal, IntegrityBreach::RolledBack);
    let refusal = attack(&Place::new(), |frames| frames.clear());
    assert_eq!(refusal, IntegrityBreach::RolledBack);
}

#[test]
fn a_record_removed_from_the_middle_is_detected() {
    let refusal = attack(&Place::new(), |frames| {
        let at = saying(frames, "first-3");
        frames.remove(at);
    });
    assert_eq!(refusal, IntegrityBreach::Altered);
}

#[test]
fn swapped_records_are_refused() {
    let refusal = attack(&Place::new(), |frames| {
        let at = saying(frames, "first-3");
        frames.swap(at, at + 1);
    });
    assert_eq!(refusal, IntegrityBreach::Altered);
}

#[test]
fn a_forged_record_is_refused() {
    for blank in [false, true] {
        let refusal = attack(&Place::new(), |frames| {
            let mut forged = frames.last().unwrap().clone();
            forged.replace("other-5", "FORGED!");
            if blank {
                forged.header[68..].fill(0);
            }
            frames.push(forged);
        });
        assert_eq!(
            refusal,
            if blank { IntegrityBreach::Unsealed } else { IntegrityBreach::Altered }
        );
    }
}

#[test]
fn a_record_of_another_session_or_time_in_place_of_one_is_refused() {
    for text in ["other-5", "first-1"] {
        let refusal = attack(&Place::new(), |frames| {
            let donor = frames[saying(frames, text)].clone();
            let at = saying(frames, "first-5");
            frames[at] = donor;
        });
        assert_eq!(refusal, IntegrityBreach::Altered);
    }
}

#[test]
fn a_record_of_another_store_is_refused() {
    let (place, other) = (Place::new(), Place::new());
    let donor = frames(&other.segment());
    let refusal = attack(&place, |frames| *frames = donor);
    assert_eq!(refusal, IntegrityBreach::Altered);
}

#[test]
fn an_older_copy_of_the_whole_store_is_refused() {
    let place = Place::new();
    let aside = place.root.path().join("aside");
    copy(&place.store(), &aside);
    add(&place.open().session("first").unwrap(), 60, "newest");
    fs::remove_dir_all(place.store()).unwrap();
    copy(&aside, &place.store());
    assert_eq!(place.refusal(), IntegrityBreach::RolledBack);
}

#[test]
fn a_diverged_copy_is_refused() {
    let place = Place::new();
    let (aside, keys) = (place.root.path().join("aside"), place.root.path().join("keys"));
    copy(&place.store(), &aside);
    copy(&place.keyring(), &keys);
    add(&place.open().session("first").unwrap(), 60, "mine");
    // The same key, on another machine: every seal is correct.
    let options = place.options().keyring(keys);
    let other = Store::open(&aside, options).unwrap();
    (0..3).for_each(|minute| add(&other.session("first").unwrap(), 70 + minute, "theirs"));
    drop(other);
    fs::remove_dir_all(place.store()).unwrap();
    copy(&aside, &place.store());
    assert_eq!(place.refusal(), IntegrityBreach::Replaced);
}

#[test]
fn an_unacknowledged_torn_tail_is_not_an_attack() {
    let place = Place::new();
    let segment = place.segment();
    let mut bytes = fs::read(&segment).unwrap();
    bytes.extend(b"FRJ\x01 half of a frame");
    fs::write(&segment, bytes).unwrap();
    assert_eq!(place.read().unwrap().len(), 20);
    add(&place.open().session("first").unwrap(), 60, "after");
    assert_eq!(place.read().unwrap().len(), 22);
}

#[test]
fn a_lagging_witness_allows_reading_later_records_and_is_updated() {
    let place = Place::new();
    let witness = witness_of(&place);
    let old = fs::read(&witness).unwrap();
    add(&place.open().session("first").unwrap(), 60, "newest");
    fs::write(&witness, &old).unwrap();
    assert_eq!(place.read().unwrap().len(), 22);
    add(&place.open().session("first").unwrap(), 61, "more");
    assert_ne!(fs::read(&witness).unwrap(), old);
    assert_eq!(place.read().unwrap().len(), 24);
}

#[test]
fn a_witness_is_never_ahead_of_durable_data() {
    let place = Place::new();
    let witness = witness_of(&place);
    let position = || u64::from_le_bytes(fs::read(&witness).unwrap()[24..32].try_into().unwrap());
    let store = place.open();
    let before = position();
    let session = store.session("first").unwrap();
    session.write(&super::act(60)).change(super::note("n", "n")).imported().commit().unwrap();
    assert_eq!(position(), before);
    store.sync().unwrap();
    assert_eq!(position(), fs::metadata(place.segment()).unwrap().len());
}

/// The witness's file.
fn witness_of(place: &Place) -> std::path::PathBuf {
    let folders = fs::read_dir(place.keyring()).unwrap().map(|entry| entry.unwrap().path());
    folders.map(|folder| folder.join("witness")).find(|path| path.exists()).unwrap()
}

/// An edit that an attacker can make to a frame.
#[derive(Clone, Debug)]
enum Edit {
    Flip(usize, u8),
    Header(usize, u8),
    Remove,
    Repeat,
    Swap(usize),
    Replace(usize),
    Cut,
}

fn edits() -> impl Strategy<Value = (usize, Edit)> {
    let edit = prop_oneof![
        (any::<usize>(), 1..=255_u8).prop_map(|(at, by)| Edit::Flip(at, by)),
        (24..96_usize, 1..=255_u8).prop_map(|(at, by)| Edit::Header(at, by)),
        Just(Edit::Remove),
        Just(Edit::Repeat),
        any::<usize>().prop_map(Edit::Swap),
        any::<usize>().prop_map(Edit::Replace),
        Just(Edit::Cut),
    ];
    (any::<usize>(), edit)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// For every edit of the frames, a read returns everything that was written, or nothing.
    #[test]
    fn a_randomly_edited_journal_returns_what_was_written_or_nothing(
        all in proptest::collection::vec(edits(), 1..4),
    ) {
        let place = Place::new();
        let written = place.read().unwrap();
        let segment = place.segment();
        let before = fs::read(&segment).unwrap();
        let mut edited = frames(&segment);
        for (at, edit) in all {
            if edited.is_empty() {
                break;
            }
            let count = edited.len();
            let at = at % count;
            match edit {
                Edit::Flip(byte, by) => {
                    let length = edited[at].payload.len();
                    edited[at].payload[byte % length] ^= by;
                }
                Edit::Header(byte, by) => edited[at].header[byte] ^= by,
                Edit::Remove => drop(edited.remove(at)),
                Edit::Repeat => edited.insert(at, edited[at].clone()),
                Edit::Swap(other) => edited.swap(at, other % count),
                Edit::Replace(other) => edited[at] = edited[other % count].clone(),
                Edit::Cut => edited.truncate(at),
            }
        }
        write(&segment, &edited);
        match place.read() {
            Ok(read) => {
                // Some edits cancel each other, or are corrected when the frames are written.
                prop_assert_eq!(&fs::read(&segment).unwrap(), &before);
                prop_assert_eq!(read, written);
            }
            Err(error) => {
                let kind = error.kind();
                prop_assert!(matches!(kind, ErrorKind::Forged | ErrorKind::Corrupt), "{error:?}");
            }
        }
    }
}
