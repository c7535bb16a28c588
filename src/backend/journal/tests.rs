//! Tests of the journal inside one process.

mod encrypted;

use super::*;
use crate::backend::frame::{self, HEADER_BYTES};
use crate::backend::{AppendedRecord, CIPHER_BYTES};
use layout::SyncMark;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const WAIT: Duration = Duration::from_secs(5);

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("journal")
    }

    fn create(&self) -> Journal {
        Journal::create(&self.folder()).unwrap()
    }

    fn open(&self) -> Journal {
        Journal::open(&self.folder()).unwrap()
    }

    fn segments(&self) -> Vec<LogPosition> {
        segment::list(&self.folder()).unwrap()
    }

    fn segment(&self, start: LogPosition) -> PathBuf {
        self.folder().join(layout::segment_name(start))
    }

    fn next_room(&self) -> PathBuf {
        self.folder().join("next.room")
    }
}

fn add(journal: &Journal, from: LogPosition, text: &str) -> AppendedRecord {
    journal.append(from, WAIT, &mut |_| Some(text.into())).unwrap().unwrap()
}

fn rotate(journal: &Journal, from: LogPosition, text: &str) -> AppendedRecord {
    journal.rotate(from, WAIT, &mut |_| Some(text.into())).unwrap().unwrap()
}

fn texts(tail: &LogTail) -> Vec<String> {
    tail.frames.iter().map(|f| String::from_utf8(f.payload.clone()).unwrap()).collect()
}

fn all(journal: &Journal, from: LogPosition) -> Vec<String> {
    texts(&journal.read(from, u64::MAX).unwrap())
}

#[test]
fn appended_records_are_read_in_order_by_all_handles() {
    let place = Place::new();
    let journal = place.create();
    assert_eq!(journal.read(0, 10).unwrap(), LogTail::default());
    let one = add(&journal, 0, "one");
    let two = add(&journal, one.end, "two");
    assert_eq!((one.position, one.end), (0, (HEADER_BYTES + 3) as u64));
    assert_eq!(two.position, one.end);
    assert_eq!(all(&place.open(), 0), ["one", "two"]);
    assert_eq!(all(&place.open(), one.end), ["two"]);
    let tail = journal.read(0, 1).unwrap();
    assert_eq!((texts(&tail), tail.end), (vec!["one".to_owned()], one.end));
    assert_eq!(tail.frames[0].hash, one.hash);
    assert_eq!(journal.read(two.end, 10).unwrap(), LogTail { frames: vec![], end: two.end });
}

#[test]
fn the_build_function_sees_the_records_that_others_appended() {
    let place = Place::new();
    let (mine, theirs) = (place.create(), place.open());
    let one = add(&mine, 0, "one");
    add(&theirs, 0, "two");
    add(&theirs, one.end, "three");
    let mut seen = Vec::new();
    let nothing = mine.append(one.end, WAIT, &mut |tail| {
        seen = texts(tail);
        None
    });
    assert_eq!((nothing.unwrap(), seen), (None, vec!["two".to_owned(), "three".to_owned()]));
    assert_eq!(all(&mine, 0), ["one", "two", "three"]);
}

/// To append after another writer's record, only that record is read again, not its segment from
/// the beginning: it may be another one than was read before.
#[test]
fn an_append_follows_the_present_last_record_even_if_another_was_read() {
    let place = Place::new();
    let (mine, theirs) = (place.create(), place.open());
    let one = add(&theirs, 0, "one");
    let two = add(&theirs, one.end, "two");
    assert_eq!(all(&mine, 0), ["one", "two"]);
    // As if its writer had removed the record after a failed write, and another writer had appended
    // one of the same length.
    let file = fs::OpenOptions::new().write(true).open(place.segment(0)).unwrap();
    file.set_len(one.end).unwrap();
    let other = add(&place.open(), one.end, "owt");
    assert_eq!((other.end, other.hash == two.hash), (two.end, false));
    add(&mine, two.end, "three");
    assert_eq!(all(&place.open(), 0), ["one", "owt", "three"]);
}

#[test]
fn a_position_after_the_end_is_damage() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    let beyond = one.end + 1;
    let read = journal.read(beyond, 1);
    let found = matches!(read, Err(Error::Damaged { position, .. }) if position == beyond);
    assert!(found, "{read:?}");
    let refused = journal.append(beyond, WAIT, &mut |_| Some(vec![]));
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

#[test]
fn an_append_to_a_position_inside_a_record_cuts_nothing() {
    let place = Place::new();
    let one = add(&place.create(), 0, "one");
    for journal in [place.open(), place.open()] {
        let refused = journal.append(one.end - 2, WAIT, &mut |_| Some(vec![]));
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    }
    assert_eq!(all(&place.open(), 0), ["one"]);
}

#[test]
fn a_record_when_too_large_is_refused_and_nothing_changes() {
    let place = Place::new();
    let journal = place.create();
    let large = vec![0; frame::MAX_PAYLOAD_BYTES + 1];
    let refused = journal.append(0, WAIT, &mut |_| Some(large.clone()));
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    add(&journal, 0, "one");
    assert_eq!(all(&journal, 0), ["one"]);
}

#[test]
fn a_sync_of_records_that_another_process_synced_does_nothing() {
    let place = Place::new();
    let (mine, theirs) = (place.create(), place.open());
    let one = add(&mine, 0, "one");
    let two = add(&theirs, one.end, "two");
    theirs.sync(two.end).unwrap();
    mine.sync(one.end).unwrap();
    assert_eq!((mine.syncs(), theirs.syncs()), (0, 1));
    let mark = mine.mark.read().unwrap().unwrap();
    assert_eq!(mark, SyncMark { position: two.end, hash: two.hash });
}

#[test]
fn a_sync_covers_the_records_of_others() {
    let place = Place::new();
    let (mine, theirs) = (place.create(), place.open());
    let one = add(&mine, 0, "one");
    theirs.sync(one.end).unwrap();
    assert_eq!(theirs.mark.position().unwrap(), one.end);
    assert!(matches!(mine.sync(one.end + 1), Err(Error::Damaged { .. })));
}

#[test]
fn a_mark_never_moves_back() {
    let place = Place::new();
    let journal = place.create();
    let ahead = SyncMark { position: 900, hash: [1; 32] };
    journal.mark.note(&ahead);
    journal.mark.note(&SyncMark { position: 800, hash: [2; 32] });
    assert_eq!(journal.mark.read().unwrap(), Some(ahead));
}

#[test]
fn a_rotation_keeps_every_record_and_position() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    all(&other, 0);
    let refs = rotate(&journal, one.end, "refs");
    assert_eq!(refs.position, one.end);
    assert_eq!(place.segments(), [0, one.end]);
    let two = add(&other, one.end, "two");
    assert_eq!(two.position, refs.end);
    let three = add(&journal, two.end, "three");
    for reader in [&journal, &other, &place.open()] {
        assert_eq!(all(reader, 0), ["one", "refs", "two", "three"]);
        assert_eq!(all(reader, one.end), ["refs", "two", "three"]);
        assert_eq!(all(reader, three.position), ["three"]);
        assert_eq!(all(reader, refs.end), ["two", "three"]);
    }
    assert_eq!(journal.mark.position().unwrap(), refs.end);
}

#[test]
fn a_rotation_of_an_empty_journal_uses_the_existing_segment() {
    let place = Place::new();
    let journal = place.create();
    let refs = rotate(&journal, 0, "refs");
    assert_eq!((refs.position, place.segments()), (0, vec![0]));
    assert_eq!(journal.mark.position().unwrap(), refs.end);
}

#[test]
fn after_the_removal_of_segments_the_rest_is_read() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    all(&other, 0);
    let refs = rotate(&journal, one.end, "refs");
    let more = rotate(&journal, refs.end, "more");
    journal.remove_before(refs.position).unwrap();
    assert_eq!((journal.start().unwrap(), place.segments().len()), (refs.position, 2));
    journal.remove_before(more.position + 1).unwrap();
    assert_eq!(place.segments(), [more.position]);
    for reader in [&journal, &other, &place.open()] {
        let removed = reader.read(0, 10);
        assert!(
            matches!(removed, Err(Error::Gone { position: 0, start }) if start == more.position),
            "{removed:?}"
        );
        assert!(matches!(reader.append(0, WAIT, &mut |_| None), Err(Error::Gone { .. })));
        assert_eq!(all(reader, more.position), ["more"]);
    }
    add(&other, more.end, "two");
    assert_eq!(all(&journal, more.position), ["more", "two"]);
}

/// Regression: a segment is truncated from its end before it is removed. A reader in the middle of
/// it took that for a journal that was set back.
#[test]
fn a_segment_that_is_removed_while_it_is_read_is_not_reported_as_forged() {
    let place = Place::new();
    let journal = place.create();
    let texts = ["one", "two", "three"].map(|word| word.repeat(50_000));
    let ends = texts.iter().fold(vec![0], |mut ends, text| {
        ends.push(add(&journal, ends[ends.len() - 1], text).end);
        ends
    });
    let refs = rotate(&journal, ends[3], "refs");
    let seen = SyncMark { position: refs.end, hash: refs.hash };
    let witness = place.root.path().join("witness");
    JournalWitness::create(&witness, &[7; 16], &seen).unwrap();
    let witness = JournalWitness::open(&witness, &[7; 16]).unwrap();
    let reader = place.open().with_seals(SealMode::Absent, witness);
    assert_eq!(reader.read(0, 1).unwrap().end, ends[1]);
    journal.remove_before(refs.position).unwrap();
    let read = reader.read(ends[1], u64::MAX);
    assert!(matches!(read, Err(Error::Gone { start, .. }) if start == refs.position), "{read:?}");
    assert_eq!(all(&reader, refs.position), ["refs"]);
}

#[test]
fn a_segment_left_by_an_interrupted_rotation_does_not_count() {
    let place = Place::new();
    let (one, refs) = {
        let journal = place.create();
        let one = add(&journal, 0, "one");
        journal.sync(one.end).unwrap();
        (one, rotate(&journal, one.end, "refs"))
    };
    // As if the process had been killed before it wrote the link and the mark.
    let old = File::options().write(true).open(place.segment(0)).unwrap();
    old.set_len(one.end).unwrap();
    let mark = SyncMark { position: one.end, hash: one.hash };
    fs::write(place.folder().join("SYNCED"), mark.encode()).unwrap();

    assert_eq!(all(&place.open(), 0), ["one"]);
    assert_eq!(all(&place.open(), one.end), [""; 0]);
    let journal = place.open();
    let two = add(&journal, one.end, "a longer record than refs");
    assert_eq!(place.segments(), [0]);
    assert!(two.end > refs.end);
    assert_eq!(all(&place.open(), one.end), ["a longer record than refs"]);
    rotate(&journal, two.end, "refs");
    assert_eq!(all(&place.open(), 0).len(), 3);
}

#[test]
fn a_record_in_a_segment_whose_link_is_not_synced_syncs_the_link_too() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    journal.sync(one.end).unwrap();
    let refs = rotate(&journal, one.end, "refs");
    // As if the rotating process had been killed before it synced the link.
    let mark = SyncMark { position: one.end, hash: one.hash };
    fs::write(place.folder().join("SYNCED"), mark.encode()).unwrap();
    let other = place.open();
    let two = add(&other, refs.end, "two");
    other.sync(two.end).unwrap();
    assert_eq!(other.syncs(), 2);
}

#[test]
fn a_sync_that_fails_writes_the_records_again_into_new_files() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    all(&other, 0);
    add(&other, one.end, "two");
    let before = place.open().walk(0, None).unwrap().cursor().segment.clone();
    journal.progress.failures.store(1, Ordering::Relaxed);
    journal.sync(one.end).unwrap();
    assert_eq!(journal.syncs(), 2);
    assert!(!before.extent().unwrap().named, "the old file is still there");
    let three = add(&other, one.end, "three");
    add(&journal, three.end, "four");
    for reader in [&journal, &other, &place.open()] {
        assert_eq!(all(reader, 0), ["one", "two", "three", "four"]);
    }
    assert!(journal.mark.position().unwrap() > one.end);
}

#[test]
fn a_sync_that_keeps_failing_acknowledges_nothing_until_it_works() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    journal.progress.failures.store(4, Ordering::Relaxed);
    for _ in 0..3 {
        let refused = journal.sync(one.end);
        assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        assert_eq!(journal.mark.position().unwrap(), 0);
    }
    let two = add(&journal, one.end, "two");
    journal.sync(one.end).unwrap();
    assert_eq!(journal.mark.position().unwrap(), two.end);
    assert_eq!(all(&place.open(), 0), ["one", "two"]);
}

#[test]
fn a_rotation_whose_first_syncs_fail_leaves_a_whole_journal() {
    for failing in 1..=4 {
        let place = Place::new();
        let journal = place.create();
        let one = add(&journal, 0, "one");
        // This sync succeeds. Of the later ones, the first `failing` fail.
        journal.sync(one.end).unwrap();
        let two = add(&journal, one.end, "two");
        journal.progress.failures.store(failing, Ordering::Relaxed);
        let rotated = journal.rotate(two.end, WAIT, &mut |_| Some(b"refs".to_vec()));
        journal.progress.failures.store(0, Ordering::Relaxed);
        let end = rotated.ok().flatten().map_or(two.end, |refs| refs.end);
        let three = add(&journal, end, "three");
        journal.sync(three.end).unwrap();
        let read = all(&place.open(), 0);
        let expected: &[&str] = if end == two.end {
            &["one", "two", "three"]
        } else {
            &["one", "two", "refs", "three"]
        };
        assert_eq!(read, expected, "{failing} failures");
    }
}

#[test]
fn preallocated_room_is_not_read_and_is_overwritten() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    journal.make_room(one.end, 300_000).unwrap();
    let length = || fs::metadata(place.segment(0)).unwrap().len();
    let roomy = length();
    assert!(roomy >= one.end + 300_000);
    journal.make_room(one.end, 300_000).unwrap();
    assert_eq!(length(), roomy, "there is enough");
    for reader in [&journal, &other, &place.open()] {
        assert_eq!(all(reader, 0), ["one"]);
        assert_eq!(all(reader, one.end), [""; 0]);
    }
    let two = add(&other, one.end, "two");
    let three = add(&journal, one.end, "three");
    assert_eq!((two.position, three.position, length()), (one.end, two.end, roomy));
    journal.sync(three.end).unwrap();
    let refs = rotate(&other, three.end, "refs");
    add(&journal, three.end, "four");
    for reader in [&journal, &other, &place.open()] {
        assert_eq!(all(reader, 0), ["one", "two", "three", "refs", "four"]);
    }
    place.open().make_room(refs.end, 300_000).unwrap();
    journal.give_back_room(refs.end).unwrap();
    let last = fs::metadata(place.segment(refs.position)).unwrap().len();
    assert_eq!(
        last,
        all(&journal, refs.position)
            .iter()
            .fold(0, |sum, text| { sum + (HEADER_BYTES + text.len()) as u64 })
    );
}

#[test]
fn a_writer_extends_its_preallocated_room_until_it_gives_it_back() {
    const MORE: u64 = 64 << 10;
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let length = || fs::metadata(place.segment(0)).unwrap().len();
    let mut end = add(&journal, 0, "one").end;
    assert_eq!(length(), end, "not before");
    journal.make_room(end, 1000).unwrap();
    let long = "two".repeat(1000);
    end = add(&journal, end, &long).end;
    assert_eq!(length(), end + MORE);
    let roomy = length();
    while end + 3100 < roomy {
        end = add(&journal, end, &long).end;
        assert_eq!(length(), roomy);
        assert_eq!(all(&other, end), [""; 0], "a reader goes on from there");
    }
    let before = end;
    end = add(&other, end, &long).end;
    assert_eq!(length(), end.max(roomy), "nobody told this one");
    end = add(&journal, end, &long).end;
    end = add(&journal, end, &long).end;
    assert!(length() > roomy && length() <= end + MORE);
    let large = "large".repeat(20_000);
    end = add(&journal, end, &large).end;
    assert_eq!(length(), end, "the next one would be as large, and all would be written twice");
    end = add(&journal, end, &long).end;
    assert_eq!(length(), end + MORE);
    journal.give_back_room(end).unwrap();
    end = add(&journal, before, &long).end;
    assert_eq!(length(), end);
    for reader in [&journal, &other, &place.open()] {
        let expected = [&long, &long, &long, &large, &long, &long];
        assert_eq!(all(reader, before), expected.map(String::as_str));
    }
}

#[test]
fn the_next_segment_begins_with_the_room_preallocated_for_it() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    journal.make_room_in_next(300_000).unwrap();
    assert!(place.next_room().exists());
    assert_eq!(all(&place.open(), 0), ["one"], "nobody reads it before");
    let refs = rotate(&journal, one.end, "refs");
    let roomy = fs::metadata(place.segment(refs.position)).unwrap().len();
    assert!(roomy >= 300_000);
    assert!(!place.next_room().exists());
    let two = add(&other, one.end, "two");
    journal.sync(two.end).unwrap();
    assert_eq!(fs::metadata(place.segment(refs.position)).unwrap().len(), roomy);
    for reader in [&journal, &other, &place.open()] {
        assert_eq!(all(reader, 0), ["one", "refs", "two"]);
    }
}

#[test]
fn space_preallocated_for_the_next_segment_is_used_by_its_maker_or_removed() {
    let place = Place::new();
    let (journal, other) = (place.create(), place.open());
    let one = add(&journal, 0, "one");
    journal.make_room_in_next(1000).unwrap();
    other.make_room_in_next(1000).unwrap();
    let mine = rotate(&journal, one.end, "mine");
    assert_eq!(fs::metadata(place.segment(mine.position)).unwrap().len(), mine.end - mine.position);
    assert!(!place.next_room().exists());
    let theirs = rotate(&other, mine.end, "theirs");
    other.make_room_in_next(1000).unwrap();
    other.give_back_room(theirs.end).unwrap();
    assert!(!place.next_room().exists());
    // A file that a crash left.
    place.open().make_room_in_next(1000).unwrap();
    rotate(&journal, theirs.end, "last");
    assert!(!place.next_room().exists());
    assert_eq!(all(&place.open(), 0), ["one", "mine", "theirs", "last"]);
}

/// Regression: if the zeros could not be written, as on a full disk, those that had been written
/// took up space until the next rotation.
#[test]
fn a_failed_preallocation_for_the_next_segment_takes_up_no_space() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    journal.progress.failures.store(1, Ordering::Relaxed);
    let refused = journal.make_room_in_next(300_000);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    assert_eq!(fs::metadata(place.next_room()).map_or(0, |left| left.len()), 0);
    let two = rotate(&journal, one.end, "two");
    assert_eq!(fs::metadata(place.segment(two.position)).unwrap().len(), two.end - two.position);
    assert_eq!(all(&place.open(), 0), ["one", "two"]);
}

/// A power cut may keep the end of a record and lose its beginning. These bytes must not become
/// part of the journal after the next record.
#[test]
fn bytes_without_a_record_before_them_are_cut_by_the_next_writer() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    journal.make_room(one.end, 200_000).unwrap();
    let two = add(&journal, one.end, "two");
    let three = add(&journal, two.end, "three");
    drop(journal);
    let mut bytes = fs::read(place.segment(0)).unwrap();
    bytes[one.end as usize..two.end as usize].fill(0);
    fs::write(place.segment(0), &bytes).unwrap();
    assert_eq!(all(&place.open(), 0), ["one"]);
    let other = add(&place.open(), 0, "owt");
    assert_eq!((other.position, other.end), (one.end, two.end));
    assert_eq!(fs::metadata(place.segment(0)).unwrap().len(), two.end);
    assert_eq!(all(&place.open(), two.end), [""; 0], "{three:?} came back");
}

#[test]
fn files_when_made_are_private() {
    let place = Place::new();
    let journal = place.create();
    let one = add(&journal, 0, "one");
    rotate(&journal, one.end, "two");
    journal.progress.failures.store(1, Ordering::Relaxed);
    journal.sync(add(&journal, one.end, "three").end).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.folder()), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(place.folder()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    let second = layout::segment_name(one.end);
    assert_eq!(names, ["0000000000000000.log", &second, "SYNCED", "append.lock"]);
}

#[test]
fn creating_an_existing_journal_opens_it() {
    let place = Place::new();
    add(&place.create(), 0, "one");
    assert_eq!(all(&place.create(), 0), ["one"]);
}

#[test]
fn a_read_only_journal_reads_and_refuses_to_write() {
    let place = Place::new();
    let one = add(&place.create(), 0, "one");
    fs::remove_file(place.folder().join("SYNCED")).unwrap();
    let journal = Journal::open_read_only(&place.folder()).unwrap();
    assert_eq!(all(&journal, 0), ["one"]);
    assert!(matches!(journal.append(0, WAIT, &mut |_| None), Err(Error::Io { .. })));
    assert!(matches!(journal.rotate(0, WAIT, &mut |_| None), Err(Error::Io { .. })));
    assert!(matches!(journal.sync(one.end), Err(Error::Io { .. })));
    assert!(matches!(journal.remove_before(0), Err(Error::Io { .. })));
    assert!(!place.folder().join("SYNCED").exists());
}

#[test]
fn threads_of_one_journal_append_each_record_once() {
    let place = Place::new();
    let journal = place.create();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                let mut from = 0;
                for count in 0..50 {
                    let done = add(journal, from, &format!("{thread}-{count}"));
                    journal.sync(done.end).unwrap();
                    from = done.end;
                }
            });
        }
    });
    let mut read = all(&place.open(), 0);
    read.sort();
    let mut expected: Vec<String> =
        (0..4).flat_map(|t| (0..50).map(move |c| format!("{t}-{c}"))).collect();
    expected.sort();
    assert_eq!(read, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Reading any bytes gives records or an error.
    #[test]
    fn reading_arbitrary_bytes_never_panics(
        garbage in proptest::collection::vec(any::<u8>(), 0..400),
        whole in 0_usize..3,
        at: proptest::sample::Index,
        length: u32,
    ) {
        let place = Place::new();
        let journal = place.create();
        let mut end = 0;
        for _ in 0..whole {
            end = add(&journal, end, "whole").end;
        }
        let mut bytes = fs::read(place.segment(0)).unwrap();
        bytes.extend(&garbage);
        // The beginning of a frame with any length, somewhere after the records.
        if let Some(room) = garbage.len().checked_sub(8) {
            let place = end as usize + at.index(room + 1);
            bytes[place..place + 4].copy_from_slice(&frame::FRAME_MAGIC);
            bytes[place + 4..place + 8].copy_from_slice(&length.to_le_bytes());
        }
        fs::write(place.segment(0), &bytes).unwrap();
        let read = place.open().read(0, u64::MAX).unwrap();
        prop_assert_eq!((read.frames.len(), read.end), (whole, end));
        let appended = add(&place.open(), 0, "next");
        prop_assert_eq!(appended.position, end);
        prop_assert_eq!(place.open().read(0, u64::MAX).unwrap().frames.len(), whole + 1);
    }
}

/// A crash during one write of several records leaves whole records from the beginning of the
/// write.
#[test]
fn the_whole_records_of_a_write_that_was_cut_off_are_kept() {
    let payloads: Vec<Vec<u8>> = (1..4).map(|number| vec![number; 300]).collect();
    let place = Place::new();
    let first = add(&place.create(), 0, "first");
    let journal = place.open();
    let appended = journal.append_all(first.end, WAIT, &payloads).unwrap().unwrap();
    let bytes = fs::read(place.segment(0)).unwrap();
    let ends = appended.iter().map(|one| one.end);
    for cut in (first.end..appended[2].end).step_by(13).chain(ends) {
        let file = fs::OpenOptions::new().write(true).open(place.segment(0)).unwrap();
        file.set_len(cut).unwrap();
        let journal = place.open();
        let left = appended.iter().filter(|one| one.end <= cut).count();
        let frames = journal.read(first.end, u64::MAX).unwrap().frames;
        assert!(frames.iter().map(|frame| &frame.payload).eq(&payloads[..left]), "{cut}");
        // The next writer cuts off the torn record.
        let end = frames.last().map_or(first.end, |frame| frame.end);
        assert_eq!(add(&journal, end, "next").position, end);
        fs::write(place.segment(0), &bytes).unwrap();
    }
}
