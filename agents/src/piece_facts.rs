//! The facts of a piece, for tests.

use crate::TranscriptPiece;
use forge_store::model::{Fact, Kind};

/// Returns the facts of this kind.
pub(crate) fn of_kind(piece: &TranscriptPiece, kind: Kind) -> Vec<&Fact> {
    piece.facts.iter().filter(|fact| fact.kind == kind).collect()
}
