//! The expected content of a journal, kept outside of it.

use forge_store::backend::journal::Journal;
use forge_store::backend::{Error, LogFrame, LogPosition, WriteAheadLog};
use std::collections::BTreeMap;

/// The acknowledgements that were read.
#[derive(Default)]
pub(super) struct Oracle {
    acknowledged: BTreeMap<LogPosition, String>,
    /// The number of acknowledged records, by writer.
    counts: BTreeMap<u64, u64>,
    /// The number of all acknowledgements.
    pub(super) heard: u64,
}

impl Oracle {
    /// Reads a writer's line. Returns whether it was an acknowledgement.
    pub(super) fn hear(&mut self, writer: u64, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["ack", count, position, hash, "."] = words[..] else { return false };
        let twice = self.acknowledged.insert(position.parse().unwrap(), hash.to_owned());
        assert_eq!(twice, None, "two records were acknowledged at {position}");
        let count: u64 = count.parse().unwrap();
        assert_eq!(self.counts.insert(writer, count + 1).unwrap_or(0), count);
        self.heard += 1;
        true
    }

    /// The number of acknowledged records that the journal does not have.
    pub(super) fn lost(&self, frames: &[LogFrame]) -> usize {
        let found: BTreeMap<LogPosition, String> = frames
            .iter()
            .map(|f| (f.position, f.hash.iter().map(|byte| format!("{byte:02x}")).collect()))
            .collect();
        self.acknowledged.iter().filter(|(at, hash)| found.get(at) != Some(hash)).count()
    }

    /// Drops what was before a position, because it was removed.
    pub(super) fn forget_before(&mut self, start: LogPosition) {
        self.acknowledged = self.acknowledged.split_off(&start);
    }

    /// Checks that the journal has everything that was acknowledged, without gaps, and each
    /// writer's records once and in order.
    pub(super) fn check(&self, journal: &Journal) {
        let frames = read_all(journal).unwrap();
        check_dense(journal.start().unwrap(), &frames);
        assert_eq!(self.lost(&frames), 0, "acknowledged records are missing");
    }
}

/// All records, read in pieces.
pub(super) fn read_all(journal: &Journal) -> Result<Vec<LogFrame>, Error> {
    let mut frames = Vec::new();
    let mut from = journal.start()?;
    loop {
        let mut tail = journal.read(from, 100_000)?;
        if tail.frames.is_empty() {
            return Ok(frames);
        }
        from = tail.end;
        frames.append(&mut tail.frames);
    }
}

/// Checks that there are no gaps between the records, and that each writer's records are in order.
pub(super) fn check_dense(start: LogPosition, frames: &[LogFrame]) {
    let mut at = start;
    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
    for frame in frames {
        assert_eq!(frame.position, at);
        at = frame.end;
        let text = String::from_utf8_lossy(&frame.payload);
        let mut words = text.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let (Some(writer), Some(count)) = (words.next(), words.next()) else { continue };
        if let Some(expected) = next.insert(writer, count + 1) {
            assert_eq!(count, expected, "writer {writer} has a record twice or not at all");
        }
    }
}
