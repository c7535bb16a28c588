//! Reading in pieces gives the same result as reading at once, wherever the pieces are cut.

use super::*;
use crate::piece::{CheckpointDraft, SkippedLine};
use proptest::prelude::*;

#[derive(Debug, Default, PartialEq)]
struct Sum {
    facts: Vec<Fact>,
    checkpoints: Vec<CheckpointDraft>,
    skipped: Vec<SkippedLine>,
    taken: u64,
}

impl Sum {
    /// Adds a piece; a later draft of a checkpoint replaces the earlier one.
    fn add(&mut self, piece: TranscriptPiece) {
        self.facts.extend(piece.facts);
        for draft in piece.checkpoints {
            match self.checkpoints.iter_mut().find(|made| made.key == draft.key) {
                Some(made) => *made = draft,
                None => self.checkpoints.push(draft),
            }
        }
        self.skipped.extend(piece.skipped);
        self.taken += piece.taken;
    }

    fn read_whole(bytes: &[u8]) -> Self {
        let mut sum = Self::default();
        sum.add(read_whole(bytes));
        sum
    }
}

/// Imports the file in several saves, each up to one cut; the carry is serialised in between.
fn in_saves(bytes: &[u8], cuts: &[usize]) -> Sum {
    let mut sum = Sum::default();
    let mut carry = Vec::new();
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let before = kept::read(&carry);
        let mut reader = TranscriptReader::resume(TranscriptOptions::default(), before);
        let from = reader.carry().offset() as usize;
        sum.add(reader.read(&bytes[from..cut.max(from)], InputEnding::File, RECORDED_AT).unwrap());
        carry = kept::write(reader.carry());
    }
    sum
}

/// Saves a carry between two pieces, as a caller does. Any serde format works.
mod kept {
    use crate::claude_code::TranscriptState;

    pub(super) fn read(bytes: &[u8]) -> TranscriptState {
        if bytes.is_empty() {
            TranscriptState::default()
        } else {
            serde_json::from_slice(bytes).unwrap()
        }
    }

    pub(super) fn write(carry: &TranscriptState) -> Vec<u8> {
        serde_json::to_vec(carry).unwrap()
    }
}

/// Reads the file in blocks of this size. A block from which nothing was taken is read again with
/// twice the length.
fn in_blocks(bytes: &[u8], block: usize) -> Sum {
    let mut sum = Sum::default();
    let mut reader = TranscriptReader::new(TranscriptOptions::default());
    let mut length = block;
    loop {
        let from = reader.carry().offset() as usize;
        let to = (from + length).min(bytes.len());
        let ending = if to == bytes.len() { InputEnding::File } else { InputEnding::More };
        let piece = reader.read(&bytes[from..to], ending, RECORDED_AT).unwrap();
        length = if piece.taken == 0 { length * 2 } else { block };
        sum.add(piece);
        if ending == InputEnding::File {
            return sum;
        }
    }
}

#[test]
fn the_saves_of_the_recorded_sessions_give_the_same_as_the_whole() {
    for name in ["review-e2e", "long", "small"] {
        let Some((bytes, cuts)) = recorded(name) else { return };
        assert!(cuts.len() > 3);
        assert_eq!(in_saves(&bytes, &cuts), Sum::read_whole(&bytes), "{name}");
        assert_eq!(in_blocks(&bytes, 10_000), Sum::read_whole(&bytes), "{name}");
    }
}

#[test]
fn a_cut_at_any_line_of_a_recorded_session_changes_nothing() {
    let Some((bytes, _)) = recorded("small") else { return };
    let whole = Sum::read_whole(&bytes);
    let mut ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for &end in &ends {
        assert_eq!(in_saves(&bytes, &[end]), whole, "cut at {end}");
    }
    // Also cuts between an object and its line break.
    ends = ends.iter().flat_map(|end| [end - 1, *end]).collect();
    assert_eq!(in_saves(&bytes, &ends), whole);
}

#[test]
fn blanks_after_an_object_without_a_line_break_are_taken_too() {
    let bytes = b"{\"type\":\"summary\",\"summary\":\"x\"}\r";
    let whole = Sum::read_whole(bytes);
    assert_eq!(whole.taken, bytes.len() as u64);
    assert_eq!(in_saves(bytes, &[bytes.len() - 1]), whole, "cut between the object and its \\r");
}

#[test]
fn reading_the_same_file_again_takes_nothing() {
    let Some((bytes, _)) = recorded("small") else { return };
    let mut reader = TranscriptReader::new(TranscriptOptions::default());
    reader.read(&bytes, InputEnding::File, RECORDED_AT).unwrap();
    let carry = reader.carry().clone();
    let piece = reader.read(&[], InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!((piece.taken, piece.facts, piece.checkpoints), (0, vec![], vec![]));
    assert_eq!(reader.into_carry(), carry);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_cuts_of_a_recorded_session_change_nothing(
        mut cuts in proptest::collection::vec(0_usize..3_862_528, 1..12),
    ) {
        let Some((bytes, _)) = recorded("long") else { return Ok(()) };
        cuts.sort_unstable();
        prop_assert!(in_saves(&bytes, &cuts) == Sum::read_whole(&bytes), "{cuts:?}");
    }

    #[test]
    fn reading_valid_and_invalid_lines_in_random_parts_gives_the_same_facts(
        picks in proptest::collection::vec(0_usize..LINES.len(), 0..20),
        mut cuts in proptest::collection::vec(0.0..1.0, 0..8),
        ended: bool,
    ) {
        let mut bytes = Vec::new();
        for (index, pick) in picks.iter().enumerate() {
            let line = String::from_utf8_lossy(LINES[*pick]).replace("<n>", &format!("{index:02}"));
            bytes.extend(if line.contains('\u{fffd}') { LINES[*pick].to_vec() } else { line.into() });
            bytes.push(b'\n');
        }
        // A last line with text after complete records waits for its end; a save in between has
        // taken the records.
        if !ended && picks.last() != Some(&GOES_ON) {
            bytes.pop();
        }
        cuts.sort_unstable_by(f64::total_cmp);
        let cuts: Vec<usize> = cuts.iter().map(|cut| (cut * bytes.len() as f64) as usize).collect();
        prop_assert_eq!(in_saves(&bytes, &cuts), Sum::read_whole(&bytes));
        prop_assert_eq!(in_blocks(&bytes, 64), Sum::read_whole(&bytes));
    }
}

/// The index in [`LINES`] of a line with text after its complete records.
const GOES_ON: usize = 12;
/// Lines that depend on each other, and lines that cannot be read.
const LINES: &[&[u8]] = &[
    br#"{"type":"user","uuid":"p<n>","sessionId":"s<n>","timestamp":"2026-01-01T01:<n>:00Z","message":{"content":"go on"}}"#,
    br#"{"type":"assistant","uuid":"a<n>","timestamp":"2026-01-01T00:<n>:00Z","message":{"content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"git commit -m x"}}]}}"#,
    br#"{"type":"user","uuid":"r<n>","timestamp":"2026-01-01T02:<n>:01Z","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"[main 1234567] x"}]}}"#,
    br#"{"type":"system","uuid":"b<n>","subtype":"compact_boundary","timestamp":"2026-01-01T01:<n>:02Z","compactMetadata":{"trigger":"auto","preTokens":9}}"#,
    br#"{"type":"user","uuid":"s<n>","isCompactSummary":true,"timestamp":"2026-01-01T01:<n>:02Z","message":{"content":"so far"}}"#,
    br#"{"type":"assistant","uuid":"t<n>","timestamp":"2026-01-01T01:<n>:03Z","message":{"content":[{"type":"tool_use","id":"u","name":"TaskUpdate","input":{"taskId":"1","status":"s<n>"}}]}}"#,
    br#"{"type":"user","uuid":"v<n>","timestamp":"2026-01-01T01:<n>:04Z","message":{"content":[{"type":"tool_result","tool_use_id":"u","content":"ok"}]}}"#,
    br#"{"type":"user","uuid":"x<n>","isSidechain":true,"parentUuid":"x00","timestamp":"2026-01-01T01:<n>:05Z","message":{"content":"look"}}"#,
    br#"{"type":"user","uuid":"no time","message":{"content":"?"}}"#,
    b"{\"type\":\"summary\",\"summary\":\"x\"}\r",
    br#"{"type":"user","uuid":"d<n>","sessionId":"s","timestamp":"2026-01-01T01:<n>:06Z","message":{"content":"one"}}{"type":"user","uuid":"e<n>","sessionId":"s","timestamp":"2026-01-01T01:<n>:07Z","message":{"content":"two"}}"#,
    br#"{"type":"user","uuid":"f<n>","sess{"type":"user","uuid":"g<n>","sessionId":"s","timestamp":"2026-01-01T01:<n>:08Z","message":{"content":"three"}}"#,
    b"\0\0{\"type\":\"summary\"}\0\0{\"type\":\"summary\"} junk",
    b"\xef\xbb\xbf{\"type\":\"summary\"}",
    br#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-01T01:<n>:09Z","content":"hold on"}"#,
    br#"{"type":"queue-operation","operation":"remove","timestamp":"2026-01-01T01:<n>:10Z"}"#,
    br#"{"type":"queue-operation","operation":"popAll","timestamp":"2026-01-01T01:<n>:11Z","content":"hold on"}"#,
    br#"{"type":"attachment","uuid":"q<n>","timestamp":"2026-01-01T01:<n>:09Z","attachment":{"type":"queued_command","prompt":"hold on"}}"#,
    br#"{"type":"assistant","uuid":"h<n>","timestamp":"2026-01-01T00:<n>:00Z","message":{"content":[{"type":"tool_use","id":"bg","name":"Bash","input":{"command":"cargo test","run_in_background":true}}]}}"#,
    br#"{"type":"user","uuid":"i<n>","timestamp":"2026-01-01T02:<n>:01Z","toolUseResult":{"backgroundTaskId":"b1"},"message":{"content":[{"type":"tool_result","tool_use_id":"bg","content":"running"}]}}"#,
    br#"{"type":"user","uuid":"j<n>","timestamp":"2026-01-01T02:<n>:02Z","message":{"content":"<task-notification>\n<task-id>b1</task-id>\n<status>failed</status>\n<summary>Background command \"x\" failed with exit code 1</summary>\n</task-notification>"}}"#,
    b"not json at all",
    b"{\"cut\":",
    b"\xff\xfe",
    b"\0\0\0",
    b"",
    b"  ",
];
