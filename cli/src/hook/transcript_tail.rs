//! The end of a transcript: its last message identifies the moment at which a hook is called.

use crate::compaction::{is_compaction, is_conversation};
use crate::error::CommandError;
use crate::transcript::{open_plain, read_at};
use forge_agents::claude_code::{
    InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader,
};
use forge_store::model::Timestamp;
use std::path::Path;

/// How many bytes at the end are read first.
const FIRST_BYTES: u64 = 256 << 10;
/// The maximum number of bytes that are read from the end.
const MOST_BYTES: u64 = 16 << 20;

/// The last message in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptTail {
    /// A keyed hash of the session and the line: equal for equal ends of one session.
    pub name: String,
    /// Its time, if the line has one.
    pub at: Option<Timestamp>,
    /// Whether it is a compaction's boundary or summary.
    pub is_compaction: bool,
}

/// Returns the last message in a transcript; `None` if there is none in its last `MOST_BYTES`. In
/// a transcript of an unknown form, the last line counts.
pub fn read_tail(
    path: &Path,
    dialect: Option<TranscriptDialect>,
    key: &[u8; 32],
    session: &str,
) -> Result<Option<TranscriptTail>, CommandError> {
    let (file, bytes) = open_plain(path)?;
    let mut length = FIRST_BYTES;
    loop {
        let start = bytes.saturating_sub(length);
        let part = read_at(&file, start, bytes - start)
            .map_err(|error| CommandError::io("cannot read the end of the transcript", error))?;
        // The first line of a part may be incomplete.
        let whole = match part.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => 0,
            Some(place) => place + 1,
            None => part.len(),
        };
        let lines = part.get(whole..).unwrap_or_default();
        let mut lines =
            lines.rsplit(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let found = match dialect {
            Some(dialect) => lines.find_map(|line| {
                let (at, is_compaction) = line_time(line, dialect)?;
                Some((line, Some(at), is_compaction))
            }),
            None => lines.next().map(|line| (line, None, false)),
        };
        let found = found.map(|(line, at, is_compaction)| TranscriptTail {
            name: name(line, key, session),
            at,
            is_compaction,
        });
        if found.is_some() || start == 0 || length >= MOST_BYTES {
            return Ok(found);
        }
        length *= 4;
    }
}

fn name(line: &[u8], key: &[u8; 32], session: &str) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(session.as_bytes()).update(b"\0").update(line.trim_ascii());
    hasher.finalize().to_hex().get(..32).unwrap_or_default().to_owned()
}

/// Returns the time of a line, and whether it belongs to a compaction; `None` for a note of the
/// program or an incomplete line.
fn line_time(line: &[u8], dialect: TranscriptDialect) -> Option<(Timestamp, bool)> {
    let options = TranscriptOptions { dialect, ..TranscriptOptions::default() };
    let piece =
        TranscriptReader::new(options).read(line, InputEnding::File, Timestamp::default()).ok()?;
    let compaction = piece.checkpoints.iter().find(|draft| is_compaction(&draft.key));
    let message = || piece.facts.iter().rev().find(|fact| is_conversation(fact));
    compaction.map(|draft| (draft.time, true)).or_else(|| Some((message()?.at, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn of_text(dialect: Option<TranscriptDialect>, text: &str) -> Option<TranscriptTail> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, text).unwrap();
        read_tail(&path, dialect, &KEY, "s").unwrap()
    }

    fn of_claude(text: &str) -> Option<TranscriptTail> {
        of_text(Some(TranscriptDialect::ClaudeCode), text)
    }

    fn line(kind: &str, second: u32, more: &str) -> String {
        format!(
            "{{\"type\":\"{kind}\",\"sessionId\":\"s\",\"uuid\":\"u{second}\",\
             \"timestamp\":\"2026-01-01T00:00:{second:02}Z\"{more}}}\n"
        )
    }

    fn spoken(role: &str, second: u32, text: &str) -> String {
        let more = format!(",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}");
        line(role, second, &more)
    }

    #[test]
    fn lines_that_are_no_conversation_do_not_move_the_end_of_a_transcript() {
        let message = spoken("assistant", 5, "found it");
        let first = of_claude(&message).unwrap();
        assert_eq!(first.at, Timestamp::parse_rfc3339("2026-01-01T00:00:05Z"));
        let notes = [
            line("progress", 6, ""),
            spoken("user", 7, "x").replace("\"type\"", "\"isMeta\":true,\"type\""),
            spoken("user", 8, "<command-name>/compact</command-name>"),
            line("system", 9, ",\"subtype\":\"turn_duration\""),
            "{\"type\":\"file-history-snapshot\",\"messageId\":\"m\"}\n".to_owned(),
            "{\"type\":\"user\",\"sess".to_owned(),
        ];
        assert_eq!(of_claude(&format!("{message}{}", notes.concat())).unwrap(), first);
        let next = of_claude(&format!("{message}{}", spoken("user", 6, "go on"))).unwrap();
        assert_ne!(next.name, first.name);
    }

    #[test]
    fn the_end_of_a_transcript_is_marked_if_it_is_a_compaction() {
        let message = spoken("assistant", 5, "found it");
        let boundary = line("system", 6, ",\"subtype\":\"compact_boundary\"");
        let summary =
            spoken("user", 6, "so far").replace("\"type\"", "\"isCompactSummary\":true,\"type\"");
        assert!(of_claude(&format!("{message}{boundary}")).unwrap().is_compaction);
        assert!(of_claude(&format!("{message}{boundary}{summary}")).unwrap().is_compaction);
        assert!(!of_claude(&message).unwrap().is_compaction);
    }

    #[test]
    fn the_end_is_found_before_a_megabyte_of_other_lines_and_an_empty_transcript_has_none() {
        let filler = line("progress", 6, &format!(",\"x\":\"{}\"", "y".repeat(1 << 20)));
        let message = spoken("assistant", 5, "found it");
        assert_eq!(of_claude(&format!("{message}{filler}")), of_claude(&message));
        assert_eq!(of_claude(""), None);
        assert_eq!(of_claude("junk\n"), None);
        // In a transcript of an unknown form, the last line is the end.
        let foreign = "{\"of\":\"another\"}\n";
        let longer = format!("{foreign}{{\"and\":\"more\"}}\n");
        assert_ne!(of_text(None, foreign), of_text(None, &longer));
        assert!(of_text(None, foreign).is_some());
    }

    #[test]
    fn the_end_is_found_in_transcripts_of_codex_and_gemini() {
        let item = |second: u32, kind: &str, payload: &str| {
            format!(
                "{{\"timestamp\":\"2026-01-01T00:00:{second:02}Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
            )
        };
        let codex = |text: &str| of_text(Some(TranscriptDialect::Codex), text);
        let message = item(
            5,
            "response_item",
            "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"found\"}]}",
        );
        let count = item(6, "event_msg", "{\"type\":\"token_count\"}");
        let compacted = item(7, "compacted", "{\"message\":\"so far\"}");
        assert!(!codex(&message).unwrap().is_compaction);
        assert_eq!(codex(&format!("{message}{count}")), codex(&message));
        assert!(codex(&format!("{message}{compacted}{count}")).unwrap().is_compaction);
        let gemini = |text: &str| of_text(Some(TranscriptDialect::Gemini), text);
        let message = "{\"id\":\"m\",\"timestamp\":\"2026-01-01T00:00:05Z\",\"type\":\"gemini\",\"content\":\"found\"}\n";
        let rewritten = "{\"$set\":{\"lastUpdated\":\"2026-01-01T00:00:06Z\",\"messages\":[{\"id\":\"s\",\
             \"type\":\"user\",\"content\":[{\"text\":\"<state_snapshot>all</state_snapshot>\"}]}]}}\n";
        assert!(!gemini(message).unwrap().is_compaction);
        assert!(gemini(&format!("{message}{rewritten}")).unwrap().is_compaction);
    }
}
