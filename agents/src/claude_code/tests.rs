mod lines;
mod pieces;
mod recorded;

use super::{Ending, Options, Reader};
use crate::piece::Piece;
use forge_store::model::{Fact, Kind, Timestamp, Value};
use std::path::PathBuf;

const RECORDED_AT: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// The whole file in one piece.
fn at_once(bytes: &[u8]) -> Piece {
    Reader::new(Options::default()).read(bytes, Ending::File, RECORDED_AT).unwrap()
}

/// The recorded session of this name and where each save of it ended; `None`, said loudly, where there is none.
#[expect(clippy::print_stderr, reason = "a test that could not look must say so")]
fn recorded(name: &str) -> Option<(Vec<u8>, Vec<usize>)> {
    let folder = std::env::var_os("FORGE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    );
    let file = folder.join("claude-code").join(name).with_extension("jsonl");
    let Ok(bytes) = std::fs::read(&file) else {
        eprintln!("SKIPPED: no recorded session at {}; set FORGE_DATA", file.display());
        return None;
    };
    let cuts = std::fs::read(file.with_extension("cuts.json")).unwrap();
    let cuts: serde_json::Value = serde_json::from_slice(&cuts).unwrap();
    let cuts = cuts["cuts"].as_array().unwrap().iter();
    Some((bytes, cuts.map(|cut| cut["bytes"].as_u64().unwrap() as usize).collect()))
}

fn of_kind(piece: &Piece, kind: Kind) -> Vec<&Fact> {
    piece.facts.iter().filter(|fact| fact.kind == kind).collect()
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.field(field).and_then(Value::as_text)
}
