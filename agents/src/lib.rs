//! Readers for the formats of coding agents: their transcripts, hooks and statements.
//!
//! * [`claude_code`]: the JSON lines that Claude Code writes as it works, read in pieces as the
//!   file grows;
//! * the same reader reads Codex's rollouts and Gemini CLI's recordings
//!   ([`claude_code::TranscriptDialect`]);
//! * [`trajectory`]: the records of ended runs of SWE-agent, mini-swe-agent and OpenHands, read
//!   whole;
//! * [`hook`]: what agents send to their hooks, and the replies;
//! * [`inference`]: what their sentences state, found by rules.
//!
//! A reader stores nothing: it turns bytes into a [`TranscriptPiece`] of facts and checkpoints. A
//! [`TranscriptMirror`] stores lines together with their facts and checkpoints. The caller keeps
//! the state that a later piece needs. `docs/transcripts.md` says what each line becomes. Long
//! texts are not copied: a fact holds a reference to them ([`forge_store::model::TextRef`]), and
//! [`resolve`] reads the text again from its line.

pub mod claude_code;
mod codex;
mod command_words;
mod file_format;
mod file_url;
mod gemini;
pub mod hook;
mod imported_session;
pub mod inference;
mod lenient;
mod locate;
mod long_text;
mod mirror;
mod patch;
mod piece;
#[cfg(test)]
mod piece_facts;
#[cfg(test)]
mod recorded;
mod text_hash;
mod tool_use;
pub mod trajectory;
mod verification;

pub use codex::begun_codex_session;
pub use file_format::{FileFormat, is_document};
pub use gemini::begun_gemini_session;
pub use imported_session::{agent_name, session_name, session_of_agent};
pub use locate::{codex_rollouts, codex_session_name, gemini_recordings};
pub use long_text::{INLINE_BYTES, readable_json, resolve, resolve_each};
pub use mirror::{MirrorKey, MirrorState, MirroredSession, TranscriptMirror};
pub use piece::{CheckpointDraft, SessionDraft, SkippedLine, TranscriptPiece};
pub use verification::{FinishedLine, checks_of};

/// What some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
