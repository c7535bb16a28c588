//! The conformance suite of a write-ahead log.

use forge_store::backend::{AppendedRecord, Error, LogFrame, LogPosition, LogTail, WriteAheadLog};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the suite, with a new log for each case.
pub fn log<F, O>(fresh: F)
where
    F: Fn() -> O,
    O: Fn() -> Box<dyn WriteAheadLog> + Sync,
{
    a_new_log_is_empty(&fresh());
    what_is_appended_reads_back(&fresh());
    an_append_sees_what_came_since(&fresh());
    building_nothing_appends_nothing(&fresh());
    records_appended_at_once_are_all_there_or_none_is(&fresh());
    records_are_kept_byte_for_byte(&fresh());
    a_read_keeps_its_limit(&fresh());
    eight_threads_append_without_a_gap(&fresh());
    a_new_segment_begins_where_the_last_one_ended(&fresh());
    removed_segments_are_gone(&fresh());
    the_last_segment_stays(&fresh());
}

fn append(log: &dyn WriteAheadLog, from: LogPosition, payload: &[u8]) -> AppendedRecord {
    let appended = log.append(from, PATIENCE, &mut |_| Some(payload.to_vec()));
    let appended = appended.expect("the lock is free").expect("a payload was built");
    log.sync(appended.end).expect("what was appended can be synced");
    appended
}

fn payloads(frames: &[LogFrame]) -> Vec<&[u8]> {
    frames.iter().map(|frame| frame.payload.as_slice()).collect()
}

/// Reads the whole log and checks that its frames are consecutive.
fn all(log: &dyn WriteAheadLog) -> Vec<LogFrame> {
    let start = log.start().expect("a log has a start");
    let tail = log.read(start, u64::MAX).expect("a log reads from its start");
    let mut next = start;
    for frame in &tail.frames {
        assert_eq!(frame.position, next, "a frame begins where the last one ended");
        assert!(frame.end > frame.position, "a frame moves the position on");
        next = frame.end;
    }
    assert_eq!(tail.end, next, "the tail ends with its last frame");
    tail.frames
}

fn a_new_log_is_empty<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    assert_eq!(log.start().unwrap(), 0);
    assert_eq!(log.read(0, u64::MAX).unwrap(), LogTail { frames: Vec::new(), end: 0 });
}

fn what_is_appended_reads_back<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let first = append(&*log, 0, b"one");
    let second = append(&*log, first.end, b"two");
    assert_eq!(first.position, 0);
    assert_eq!(second.position, first.end);
    assert_ne!(first.hash, second.hash);
    for reader in [&log, &open()] {
        let frames = all(&**reader);
        assert_eq!(frames.len(), 2);
        for (frame, appended) in frames.iter().zip([first, second]) {
            assert_eq!((frame.position, frame.end), (appended.position, appended.end));
            assert_eq!(frame.hash, appended.hash);
        }
        let tail = reader.read(first.end, u64::MAX).unwrap();
        assert_eq!(payloads(&tail.frames), [b"two"]);
        let end = reader.read(second.end, u64::MAX).unwrap();
        assert_eq!(end, LogTail { frames: Vec::new(), end: second.end });
    }
}

fn an_append_sees_what_came_since<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let (ours, theirs) = (open(), open());
    let known = append(&*ours, 0, b"known");
    append(&*theirs, known.end, b"a");
    append(&*theirs, known.end, b"b");
    let mut seen = Vec::new();
    let appended = ours
        .append(known.end, PATIENCE, &mut |tail| {
            seen = tail.frames.iter().map(|frame| frame.payload.clone()).collect();
            assert_eq!(tail.frames.last().map_or(known.end, |frame| frame.end), tail.end);
            Some(b"ours".to_vec())
        })
        .unwrap()
        .unwrap();
    assert_eq!(seen, [b"a", b"b"]);
    assert_eq!(theirs.read(appended.position, u64::MAX).unwrap().frames[0].payload, b"ours");
}

fn building_nothing_appends_nothing<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let first = append(&*log, 0, b"one");
    assert_eq!(log.append(0, PATIENCE, &mut |_| None).unwrap(), None);
    assert_eq!(log.rotate(0, PATIENCE, &mut |_| None).unwrap(), None);
    assert_eq!(log.read(0, u64::MAX).unwrap().end, first.end);
    assert_eq!(append(&*open(), first.end, b"two").position, first.end);
}

fn records_appended_at_once_are_all_there_or_none_is<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let (ours, theirs) = (open(), open());
    let first = append(&*ours, 0, b"one");
    let many: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![number; 1000]).collect();
    for log in [&ours, &theirs] {
        let from = log.read(0, u64::MAX).unwrap().end;
        let appended = log.append_all(from, PATIENCE, &many).unwrap().expect("no other writes");
        log.sync(appended.last().unwrap().end).unwrap();
        let frames = log.read(from, u64::MAX).unwrap().frames;
        assert!(frames.iter().map(|frame| &frame.payload).eq(&many));
        let places = frames.iter().map(|frame| (frame.position, frame.end, frame.hash));
        assert!(places.eq(appended.iter().map(|one| (one.position, one.end, one.hash))));
    }
    let end = ours.read(0, u64::MAX).unwrap().end;
    assert_eq!(
        ours.append_all(first.end, PATIENCE, &many).unwrap(),
        None,
        "another writer has appended since"
    );
    assert_eq!(ours.append_all(end, PATIENCE, &[]).unwrap(), Some(Vec::new()));
    assert_eq!(ours.read(0, u64::MAX).unwrap().end, end);
    append(&*ours, end, b"last");
    assert_eq!(all(&*open()).len(), 82);
}

fn records_are_kept_byte_for_byte<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let zeros = vec![0; 70_000];
    let mut next = 0;
    for payload in [&[][..], &[0], &every_byte, &large, &zeros, &[]] {
        next = append(&*log, next, payload).end;
    }
    let frames = all(&*open());
    let kept = payloads(&frames);
    assert!(kept == [&[][..], &[0], &every_byte, &large, &zeros, &[]], "payloads differ");
}

fn a_read_keeps_its_limit<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let mut next = 0;
    for number in 0..256_u32 {
        let mut payload = vec![7; 4096];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        next = append(&*log, next, &payload).end;
    }
    for limit in [0, 1, 10_000, 100_000] {
        let (mut from, mut number) = (0, 0_u32);
        while from < next {
            let tail = log.read(from, limit).unwrap();
            assert!(!tail.frames.is_empty(), "at least one record, whatever the limit");
            let bytes = tail.frames.iter().map(|frame| frame.payload.len() as u64).sum::<u64>();
            assert!(bytes <= limit + 300_000, "{bytes} bytes for a limit of {limit}");
            for frame in &tail.frames {
                assert_eq!(frame.payload[..4], number.to_be_bytes());
                number += 1;
            }
            from = tail.end;
        }
        assert_eq!(number, 256);
    }
}

/// Each thread counts the records that it has seen and appends the count, which is right only if no
/// append missed another one.
fn eight_threads_append_without_a_gap<O: Fn() -> Box<dyn WriteAheadLog> + Sync>(open: &O) {
    const THREADS: u64 = 8;
    const APPENDS: u64 = 40;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let log = open();
                let (mut position, mut count) = (0, 0_u64);
                for _ in 0..APPENDS {
                    let appended = log
                        .append(position, PATIENCE, &mut |tail| {
                            for frame in &tail.frames {
                                assert_eq!(frame.payload, count.to_be_bytes());
                                count += 1;
                            }
                            Some(count.to_be_bytes().to_vec())
                        })
                        .unwrap()
                        .unwrap();
                    log.sync(appended.end).unwrap();
                    position = appended.end;
                    count += 1;
                }
            });
        }
    });
    let frames = all(&*open());
    assert_eq!(frames.len() as u64, THREADS * APPENDS);
    for (count, frame) in (0_u64..).zip(&frames) {
        assert_eq!(frame.payload, count.to_be_bytes());
    }
    let mut hashes: Vec<_> = frames.iter().map(|frame| frame.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), frames.len(), "no two records have the same hash");
}

/// Appends records in three segments: {a, b}, {c, d}, {e}. Returns the positions of the records.
fn three_segments(log: &dyn WriteAheadLog) -> [LogPosition; 5] {
    let mut positions = [0; 5];
    let mut next = 0;
    for (position, (payload, rotate)) in positions.iter_mut().zip([
        ("a", false),
        ("b", false),
        ("c", true),
        ("d", false),
        ("e", true),
    ]) {
        let appended = if rotate {
            let first = log.rotate(next, PATIENCE, &mut |tail| {
                assert!(tail.frames.is_empty());
                Some(payload.as_bytes().to_vec())
            });
            first.unwrap().unwrap()
        } else {
            append(log, next, payload.as_bytes())
        };
        (*position, next) = (appended.position, appended.end);
    }
    log.sync(next).unwrap();
    positions
}

fn a_new_segment_begins_where_the_last_one_ended<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let before = open();
    three_segments(&*log);
    for log in [&log, &before, &open()] {
        assert_eq!(payloads(&all(&**log)), [b"a", b"b", b"c", b"d", b"e"]);
    }
    let mut seen = 0;
    let first = log.rotate(0, PATIENCE, &mut |tail| {
        seen = tail.frames.len();
        Some(b"f".to_vec())
    });
    assert_eq!(seen, 5, "the first record of a segment sees what came since");
    append(&*before, first.unwrap().unwrap().end, b"g");
    assert_eq!(all(&*open()).len(), 7);
}

fn removed_segments_are_gone<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let [_, b, c, d, e] = three_segments(&*log);
    log.remove_before(b).unwrap();
    assert_eq!(open().start().unwrap(), 0, "the segment of b ends after b");
    log.remove_before(d).unwrap();
    let reader = open();
    assert_eq!(reader.start().unwrap(), c);
    for position in [0, b] {
        match reader.read(position, u64::MAX) {
            Err(Error::Gone { start, .. }) => assert_eq!(start, c),
            other => panic!("position {position} is removed, but: {other:?}"),
        }
        match reader.append(position, PATIENCE, &mut |_| panic!("nothing can be built on it")) {
            Err(Error::Gone { start, .. }) => assert_eq!(start, c),
            other => panic!("position {position} is removed, but: {other:?}"),
        }
    }
    assert_eq!(payloads(&reader.read(c, u64::MAX).unwrap().frames), [b"c", b"d", b"e"]);
    assert_eq!(payloads(&log.read(e, u64::MAX).unwrap().frames), [b"e"]);
}

fn the_last_segment_stays<O: Fn() -> Box<dyn WriteAheadLog>>(open: &O) {
    let log = open();
    let [.., e] = three_segments(&*log);
    let end = log.read(e, u64::MAX).unwrap().end;
    log.remove_before(end).unwrap();
    let reader = open();
    assert_eq!(reader.start().unwrap(), e);
    assert_eq!(payloads(&reader.read(e, u64::MAX).unwrap().frames), [b"e"]);
    assert_eq!(append(&*reader, end, b"f").position, end);
}
