//! Wrong bytes in every position: which are a torn tail, which are damage, and which do not matter.

use super::oracle::read_all;
use super::{WAIT, add, rotate};
use forge_store::backend::journal::Journal;
use forge_store::backend::{AppendedRecord, Error, LogPosition, WriteAheadLog};
use std::fs;
use std::path::{Path, PathBuf};

const END_FRAME_BYTES: usize = 128;

/// A journal of three segments. Everything in it is synced except the last three records, the first
/// of which records the sync.
struct Sample {
    root: tempfile::TempDir,
    records: Vec<AppendedRecord>,
    /// The starts of the segments.
    starts: Vec<LogPosition>,
    /// The number of synced records.
    synced: usize,
}

/// The result of reading a journal with wrong bytes.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The first records up to this number were read, and appending was possible.
    Whole(usize),
    /// Damage at this position; appending was refused.
    Damaged(LogPosition),
    /// The beginning no longer exists.
    Gone(LogPosition),
}

use Outcome::{Damaged, Gone, Whole};

impl Sample {
    fn new(text: &str) -> Self {
        Self::with_room(text, 0)
    }

    /// The last three records overwrite preallocated zeros, of which this many bytes remain.
    fn with_room(text: &str, left: usize) -> Self {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::create(&root.path().join("journal")).unwrap();
        let mut records = Vec::new();
        let (mut starts, mut end, mut synced) = (vec![0], 0, 0);
        for count in 0..9_usize {
            let payload = format!("{text} {count} {}", "x".repeat(count * 3));
            let record = if matches!(count, 2 | 4) {
                starts.push(end);
                rotate(&journal, end, payload.as_bytes())
            } else {
                add(&journal, end, payload.as_bytes())
            };
            end = record.end;
            records.push(record);
            if count == 5 {
                journal.sync(end).unwrap();
                synced = records.len();
            }
        }
        let sample = Self { root, records, starts, synced };
        edit(&sample.segment(2), |bytes| bytes.resize(bytes.len() + left, 0));
        sample
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("journal")
    }

    fn segment(&self, index: usize) -> PathBuf {
        self.named(self.starts[index])
    }

    fn named(&self, start: LogPosition) -> PathBuf {
        self.folder().join(format!("{start:016x}.log"))
    }

    fn mark(&self) -> PathBuf {
        self.folder().join("SYNCED")
    }

    /// The position of the frame that contains a byte of a segment: a record, or the end of the
    /// segment.
    fn frame_at(&self, segment: usize, offset: usize) -> LogPosition {
        let position = self.starts[segment] + offset as u64;
        let in_segment = |record: &&AppendedRecord| {
            self.starts.get(segment + 1).is_none_or(|next| record.position < *next)
        };
        let mut records = self.records.iter().filter(in_segment);
        let holds = records.rfind(|record| record.position <= position).unwrap();
        if position < holds.end { holds.position } else { holds.end }
    }

    /// The expected result if the first wrong byte is in the frame at a position.
    fn verdict(&self, position: LogPosition) -> Outcome {
        if position < self.records[self.synced].position {
            return Damaged(position);
        }
        Whole(self.records.iter().filter(|record| record.end <= position).count())
    }

    /// The expected result of a flipped bit in a byte of a segment.
    fn verdict_on_byte(&self, segment: usize, offset: usize) -> Outcome {
        let frame = self.frame_at(segment, offset);
        // The journal has no seals: the field for them is ignored.
        let in_seal = (68..96).contains(&(self.starts[segment] + offset as u64 - frame));
        if in_seal { Whole(self.records.len()) } else { self.verdict(frame) }
    }

    /// The result for a copy of this journal after a change.
    fn after(&self, change: impl FnOnce(&Self)) -> Outcome {
        let copy = tempfile::tempdir().unwrap();
        let folder = copy.path().join("journal");
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(self.folder()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
        let copy = Self {
            root: copy,
            records: self.records.clone(),
            starts: self.starts.clone(),
            synced: self.synced,
        };
        change(&copy);
        copy.outcome()
    }

    fn outcome(&self) -> Outcome {
        let folder = self.folder();
        let read = Journal::open_read_only(&folder).unwrap().read(0, u64::MAX);
        let journal = Journal::open(&folder).unwrap();
        let appended = journal.append(0, WAIT, &mut |_| Some(b"next".to_vec()));
        match read {
            Ok(tail) => {
                for (frame, record) in tail.frames.iter().zip(&self.records) {
                    assert_eq!((frame.position, frame.hash), (record.position, record.hash));
                }
                let appended = appended.unwrap().unwrap();
                assert_eq!(appended.position, tail.end);
                let again = read_all(&Journal::open(&folder).unwrap()).unwrap();
                assert_eq!(again.len(), tail.frames.len() + 1);
                Whole(tail.frames.len())
            }
            Err(Error::Damaged { position, .. }) => {
                let refused =
                    matches!(appended, Err(Error::Damaged { position: at, .. }) if at == position);
                assert!(refused, "{appended:?}");
                Damaged(position)
            }
            Err(Error::Gone { start, .. }) => {
                assert!(matches!(appended, Err(Error::Gone { .. })), "{appended:?}");
                Gone(start)
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    // A new file, because overwriting a file makes the file system flush it at once.
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn length(path: &Path) -> usize {
    fs::metadata(path).unwrap().len() as usize
}

#[test]
fn the_unchanged_sample_is_sound() {
    let sample = Sample::new("sample");
    assert_eq!(sample.after(|_| ()), Whole(9));
    assert_eq!((sample.starts.len(), sample.synced), (3, 6));
    assert_eq!(length(&sample.segment(0)), sample.starts[1] as usize + END_FRAME_BYTES);
}

#[test]
fn a_flipped_bit_in_any_byte_is_damage_below_the_mark_and_a_torn_tail_above() {
    let sample = Sample::new("sample");
    for segment in 0..3 {
        for offset in 0..length(&sample.segment(segment)) {
            let outcome = sample
                .after(|copy| edit(&copy.segment(segment), |b| b[offset] ^= 1 << (offset % 8)));
            let expected = sample.verdict_on_byte(segment, offset);
            assert_eq!(outcome, expected, "segment {segment}, byte {offset}");
        }
    }
}

/// Without `SYNCED`, the later frames must show what was synced.
#[test]
fn a_flipped_bit_without_the_mark_is_damage_if_a_later_frame_records_a_sync() {
    let sample = Sample::new("sample");
    for segment in 0..3 {
        for offset in (0..length(&sample.segment(segment))).step_by(5) {
            let outcome = sample.after(|copy| {
                fs::remove_file(copy.mark()).unwrap();
                edit(&copy.segment(segment), |bytes| bytes[offset] ^= 0x10);
            });
            let expected = sample.verdict_on_byte(segment, offset);
            assert_eq!(outcome, expected, "segment {segment}, byte {offset}");
        }
    }
}

#[test]
fn a_segment_cut_anywhere_is_damage_below_the_mark_and_a_torn_tail_above() {
    let sample = Sample::new("sample");
    for segment in 0..3 {
        for kept in 0..length(&sample.segment(segment)) {
            let outcome = sample.after(|copy| edit(&copy.segment(segment), |b| b.truncate(kept)));
            let expected = sample.verdict(sample.frame_at(segment, kept));
            assert_eq!(outcome, expected, "segment {segment} cut to {kept} bytes");
        }
    }
}

#[test]
fn a_zeroed_block_is_damage_below_the_mark_and_a_torn_tail_above() {
    let sample = Sample::new("sample");
    for segment in 0..3 {
        let bytes = fs::read(sample.segment(segment)).unwrap();
        for begin in (0..bytes.len()).step_by(16) {
            let block = begin..bytes.len().min(begin + 64);
            let first = block.clone().find(|at| bytes[*at] != 0);
            let outcome = sample.after(|copy| edit(&copy.segment(segment), |b| b[block].fill(0)));
            let expected =
                first.map_or(Whole(9), |first| sample.verdict(sample.frame_at(segment, first)));
            assert_eq!(outcome, expected, "segment {segment}, block at {begin}");
        }
    }
}

/// In the preallocated space after the end: zeros are ignored, anything else is a torn tail that
/// the next writer cuts.
#[test]
fn a_wrong_byte_in_or_before_preallocated_space_has_the_same_result_as_without_it() {
    let sample = Sample::with_room("sample", 300);
    assert_eq!(sample.after(|_| ()), Whole(9));
    let records = sample.records[8].end - sample.starts[2];
    for offset in 0..length(&sample.segment(2)) {
        let outcome =
            sample.after(|copy| edit(&copy.segment(2), |b| b[offset] ^= 1 << (offset % 8)));
        let expected =
            if (offset as u64) < records { sample.verdict_on_byte(2, offset) } else { Whole(9) };
        assert_eq!(outcome, expected, "byte {offset}");
    }
    for begin in (0..records as usize).step_by(16) {
        let block = begin..begin + 64;
        let bytes = fs::read(sample.segment(2)).unwrap();
        let first = block.clone().find(|at| bytes[*at] != 0);
        let outcome = sample.after(|copy| edit(&copy.segment(2), |b| b[block].fill(0)));
        let expected = first.map_or(Whole(9), |first| sample.verdict(sample.frame_at(2, first)));
        assert_eq!(outcome, expected, "block at {begin}");
    }
    // The state after a crash that lost all of the last records.
    for record in &sample.records[sample.synced - 1..] {
        let kept = (record.position - sample.starts[2]) as usize;
        let outcome = sample.after(|copy| edit(&copy.segment(2), |b| b[kept..].fill(0)));
        assert_eq!(outcome, sample.verdict(record.position), "zeros from {kept} on");
    }
}

#[test]
fn a_wrong_or_missing_mark_loses_nothing() {
    let sample = Sample::new("sample");
    for offset in 0..length(&sample.mark()) {
        let outcome = sample.after(|copy| edit(&copy.mark(), |bytes| bytes[offset] ^= 1));
        assert_eq!(outcome, Whole(9), "byte {offset}");
    }
    assert_eq!(sample.after(|copy| fs::remove_file(copy.mark()).unwrap()), Whole(9));
    assert_eq!(sample.after(|copy| edit(&copy.mark(), |bytes| bytes.truncate(10))), Whole(9));
}

#[test]
fn a_missing_segment_is_detected() {
    let sample = Sample::new("sample");
    let without = |segment| sample.after(|copy| fs::remove_file(copy.segment(segment)).unwrap());
    assert_eq!(without(0), Gone(sample.starts[1]));
    assert_eq!(without(1), Damaged(sample.starts[1]));
    assert_eq!(without(2), Damaged(sample.starts[2]));
    let none = sample.after(|copy| {
        (0..3).for_each(|segment| fs::remove_file(copy.segment(segment)).unwrap());
    });
    assert_eq!(none, Damaged(0));
}

/// The rest of a removed beginning must still start with a complete record.
#[test]
fn an_empty_first_segment_after_a_removal_is_damage() {
    let sample = Sample::new("sample");
    fs::remove_file(sample.segment(0)).unwrap();
    fs::remove_file(sample.segment(1)).unwrap();
    fs::remove_file(sample.mark()).unwrap();
    edit(&sample.segment(2), Vec::clear);
    let read = Journal::open(&sample.folder()).unwrap().read(sample.starts[2], 1);
    assert!(matches!(read, Err(Error::Damaged { position, .. }) if position == sample.starts[2]));
}

#[test]
fn swapped_segments_and_segments_of_another_journal_are_detected() {
    let sample = Sample::new("sample");
    let swapped = sample.after(|copy| {
        fs::rename(copy.segment(0), copy.folder().join("aside")).unwrap();
        fs::rename(copy.segment(1), copy.segment(0)).unwrap();
        fs::rename(copy.folder().join("aside"), copy.segment(1)).unwrap();
    });
    assert_eq!(swapped, Damaged(0));
    // The same lengths with other words: every frame of it is valid.
    let other = Sample::new("memory");
    assert_eq!(other.starts, sample.starts);
    let strange = |segment: usize| {
        let replace = |copy: &Sample| fs::copy(other.segment(segment), copy.segment(segment));
        sample.after(|copy| assert!(replace(copy).unwrap() > 0))
    };
    assert_eq!(strange(0), Damaged(sample.starts[1]));
    assert_eq!(strange(1), Damaged(sample.starts[1]));
    assert_eq!(strange(2), Damaged(sample.starts[2]));
}

#[test]
fn an_older_copy_of_a_segment_is_detected() {
    let sample = Sample::new("sample");
    let last = sample.records[sample.synced - 1].position - sample.starts[2];
    let older = sample.after(|copy| edit(&copy.segment(2), |b| b.truncate(last as usize)));
    assert_eq!(older, Damaged(sample.records[sample.synced - 1].position));
}

#[test]
fn duplicate_frames_and_segments_change_nothing() {
    let sample = Sample::new("sample");
    for first in 6..9 {
        let begin = (sample.records[first].position - sample.starts[2]) as usize;
        let twice = sample.after(|copy| edit(&copy.segment(2), |b| b.extend_from_within(begin..)));
        assert_eq!(twice, Whole(9), "the frames from {first} on");
    }
    // A copy under the name of a position in the middle, at the end, and after it.
    for start in [sample.starts[2] + 1, sample.records[8].end, sample.records[8].end + 96] {
        let twice = sample.after(|copy| {
            fs::copy(copy.segment(1), copy.named(start)).unwrap();
        });
        assert_eq!(twice, Whole(9), "a copy at {start}");
    }
    let strays = sample.after(|copy| {
        for name in ["core", "0.log", "zzzzzzzzzzzzzzzz.log", "0000000000000000.new"] {
            fs::write(copy.folder().join(name), b"stray").unwrap();
        }
    });
    assert_eq!(strays, Whole(9));
}

/// Only the hash in the mark distinguishes these two journals.
#[test]
fn another_journal_with_the_same_lengths_is_detected_by_the_mark() {
    let make = |words: [&str; 2]| {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::create(&root.path().join("journal")).unwrap();
        let one = add(&journal, 0, words[0].as_bytes());
        let two = add(&journal, one.end, words[1].as_bytes());
        journal.sync(two.end).unwrap();
        (root, one)
    };
    let ((ours, one), (theirs, _)) = (make(["one", "two"]), make(["six", "ten"]));
    let name = Path::new("journal").join("0000000000000000.log");
    fs::copy(theirs.path().join(&name), ours.path().join(&name)).unwrap();
    let read = Journal::open(&ours.path().join("journal")).unwrap().read(0, u64::MAX);
    assert!(
        matches!(read, Err(Error::Damaged { position, .. }) if position == one.end),
        "{read:?}"
    );
}

/// Only the link to it shows that the first record was durable.
#[test]
fn a_linked_segment_without_its_first_record_is_damage_without_any_mark() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    let one = add(&journal, 0, b"one");
    rotate(&journal, one.end, b"refs");
    fs::remove_file(folder.join("SYNCED")).unwrap();
    edit(&folder.join(format!("{:016x}.log", one.end)), |bytes| bytes.truncate(50));
    for from in [0, one.end] {
        let read = Journal::open_read_only(&folder).unwrap().read(from, u64::MAX);
        let found = matches!(read, Err(Error::Damaged { position, .. }) if position == one.end);
        assert!(found, "from {from}: {read:?}");
    }
}

/// If a frame after the bad one records a sync, it is damage, even if everything else looks torn.
#[test]
fn a_bad_frame_before_a_valid_one_is_torn_only_without_a_recorded_sync() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("journal");
    let journal = Journal::create(&folder).unwrap();
    let one = add(&journal, 0, b"one");
    let two = add(&journal, one.end, b"two");
    let path = folder.join("0000000000000000.log");
    let flipped = |journal: &Journal| {
        let whole = fs::read(&path).unwrap();
        edit(&path, |bytes| bytes[10] ^= 1);
        let read = journal.read(0, u64::MAX).map(|tail| tail.frames.len());
        fs::write(&path, whole).unwrap();
        read
    };
    assert_eq!(flipped(&Journal::open(&folder).unwrap()).unwrap(), 0);
    journal.sync(two.end).unwrap();
    add(&journal, two.end, b"three");
    fs::remove_file(folder.join("SYNCED")).unwrap();
    let read = flipped(&Journal::open_read_only(&folder).unwrap());
    assert!(matches!(read, Err(Error::Damaged { position: 0, .. })), "{read:?}");
}
