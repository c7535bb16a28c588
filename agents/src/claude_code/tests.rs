mod agents;
mod bad;
mod calls;
mod ends;
mod messages;
mod moments;
mod pieces;
mod prompts;
mod recorded;
mod script;
mod tasks;

use super::{InputEnding, TranscriptOptions, TranscriptReader};
use crate::piece::TranscriptPiece;
use crate::piece_facts::of_kind;
use forge_store::model::{Fact, Kind, Timestamp, Value};

const RECORDED_AT: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// Reads a whole file in one piece.
fn read_whole(bytes: &[u8]) -> TranscriptPiece {
    TranscriptReader::new(TranscriptOptions::default())
        .read(bytes, InputEnding::File, RECORDED_AT)
        .unwrap()
}

/// Returns the recorded session with this name, and the offset at which each save of it ended.
/// `None` if there are no recorded sessions on this machine.
fn recorded(name: &str) -> Option<(Vec<u8>, Vec<usize>)> {
    let bytes = crate::recorded::read("claude-code", &format!("{name}.jsonl"))?;
    let cuts = crate::recorded::read("claude-code", &format!("{name}.cuts.json"))?;
    let cuts: serde_json::Value = serde_json::from_slice(&cuts).unwrap();
    let cuts = cuts["cuts"].as_array().unwrap().iter();
    Some((bytes, cuts.map(|cut| cut["bytes"].as_u64().unwrap() as usize).collect()))
}

/// Returns the only fact of this kind.
fn only_of_kind(piece: &TranscriptPiece, kind: Kind) -> &Fact {
    let found = of_kind(piece, kind);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.field(field).and_then(Value::as_text)
}
