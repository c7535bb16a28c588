//! Transcripts of Claude Code: one JSON object per line, appended while the agent works.
//!
//! A [`TranscriptReader`] takes the file's bytes in blocks of any size and returns the facts and
//! checkpoints of the complete lines. Its [`TranscriptState`] holds what later lines need from
//! earlier ones. Saved with the number of bytes read, it lets the next import continue where this
//! one stopped. Reading in pieces, wherever they are cut, gives the same facts and checkpoints as
//! reading at once.
//!
//! There is no official schema. Fields of an unexpected type read as absent; unknown lines and
//! fields are skipped. A line that is not a JSON object, or a message without a time, is reported.
//!
//! ```
//! use forge_agents::claude_code::{InputEnding, TranscriptOptions, TranscriptReader};
//! use forge_store::model::{Kind, Timestamp};
//!
//! let line = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-28T02:46:49Z",
//!     "message":{"role":"user","content":"why does the test fail?"}}"#.replace('\n', "");
//! let mut reader = TranscriptReader::new(TranscriptOptions::default());
//! let piece = reader.read(line.as_bytes(), InputEnding::File, Timestamp::from_micros(0))?;
//! assert_eq!(piece.session.unwrap().agent_session, "s1");
//! assert!(piece.facts.iter().any(|fact| fact.kind == Kind::Prompt));
//! # Ok::<(), forge_agents::claude_code::UnreadableLine>(())
//! ```

mod agent;
mod attachment;
mod background_end;
pub(crate) mod call;
pub(crate) mod call_failure;
mod call_result;
mod checkpoint;
mod checkpoint_name;
pub(crate) mod command;
mod line;
pub(crate) mod line_context;
mod locate;
mod message;
pub(crate) mod open_call;
mod prompt;
mod prompt_queue;
mod queue;
mod reader;
mod record_links;
mod record_split;
mod task;
#[cfg(test)]
mod tests;
pub(crate) mod tool;
mod tool_result;
pub(crate) mod transcript_state;
pub(crate) mod typed_text;

pub use locate::{TranscriptFile, locate, transcript_elsewhere};
pub(crate) use locate::{folder_entries, oldest_first, transcript_at};
pub use reader::{
    InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader, UnreadableLine, is_whole,
};
pub use record_links::{RecordLinks, record_links};
pub use record_split::session_of;
pub use transcript_state::TranscriptState;
