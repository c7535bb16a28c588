//! The end of a transcript: what was said last, as the name of the moment a hook is called at.

use crate::error::CommandError;
use crate::transcript::{open_plain, read_at};
use forge_store::model::Timestamp;
use serde_json::Value;
use std::path::Path;

/// So many bytes at the end are looked at first.
const FIRST_BYTES: u64 = 256 << 10;
/// Further back than this nobody looks.
const MOST_BYTES: u64 = 16 << 20;

/// The last thing said in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// A keyed hash of it: equal for equal ends of one session.
    pub name: String,
    /// When it was said, if the line says.
    pub at: Option<Timestamp>,
    /// Whether it is a compaction's boundary or summary.
    pub is_compaction: bool,
}

/// The last thing said in a transcript; `None` if nothing is.
///
/// # Errors
///
/// If the file cannot be read.
pub fn tail(path: &Path, key: &[u8; 32], session: &str) -> Result<Option<Tail>, CommandError> {
    let (mut file, bytes) = open_plain(path)?;
    let mut length = FIRST_BYTES;
    loop {
        let start = bytes.saturating_sub(length);
        let part = read_at(&mut file, start, bytes - start)
            .map_err(|error| CommandError::io("cannot read the end of the transcript", error))?;
        // The first line of a part may lack its beginning.
        let whole = match part.iter().position(|byte| *byte == b'\n') {
            _ if start == 0 => 0,
            Some(place) => place + 1,
            None => part.len(),
        };
        let lines = part.get(whole..).unwrap_or_default();
        let mut last = None;
        for line in lines.rsplit(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
        {
            match said(line) {
                Said::Spoken { at, is_compaction } => {
                    return Ok(Some(of(line, key, session, at, is_compaction)));
                }
                Said::Foreign => last = last.or(Some(line)),
                Said::Aside => {}
            }
        }
        if start == 0 || length >= MOST_BYTES {
            // Another agent's lines: the last of them will do.
            return Ok(last.map(|line| of(line, key, session, None, false)));
        }
        length *= 4;
    }
}

fn of(
    line: &[u8],
    key: &[u8; 32],
    session: &str,
    at: Option<Timestamp>,
    is_compaction: bool,
) -> Tail {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(session.as_bytes()).update(b"\0").update(line.trim_ascii());
    let name = hasher.finalize().to_hex().get(..32).unwrap_or_default().to_owned();
    Tail { name, at, is_compaction }
}

enum Said {
    /// Somebody says something.
    Spoken { at: Option<Timestamp>, is_compaction: bool },
    /// A note of the program, a line that is not whole.
    Aside,
    /// No line of Claude Code.
    Foreign,
}

fn said(line: &[u8]) -> Said {
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return Said::Aside };
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let flag = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (Some(kind), Some(_)) = (text("type"), text("sessionId")) else {
        let ours =
            text("type").is_some() && line.get("leafUuid").or(line.get("messageId")).is_some();
        return if ours { Said::Aside } else { Said::Foreign };
    };
    let at = text("timestamp").and_then(Timestamp::parse_rfc3339);
    let boundary = text("subtype") == Some("compact_boundary");
    if boundary || flag("isCompactSummary") {
        return Said::Spoken { at, is_compaction: true };
    }
    let command = line
        .pointer("/message/content")
        .and_then(Value::as_str)
        .is_some_and(|text| text.starts_with("<local-command-") || text.starts_with("<command-"));
    if !matches!(kind, "user" | "assistant") || flag("isMeta") || flag("isSidechain") || command {
        return Said::Aside;
    }
    Said::Spoken { at, is_compaction: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn of_text(text: &str) -> Option<Tail> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, text).unwrap();
        tail(&path, &KEY, "s").unwrap()
    }

    fn line(kind: &str, second: u32, more: &str) -> String {
        format!(
            "{{\"type\":\"{kind}\",\"sessionId\":\"s\",\"timestamp\":\"2026-01-01T00:00:{second:02}Z\"{more}}}\n"
        )
    }

    #[test]
    fn notes_of_the_program_do_not_move_the_end() {
        let said = line("assistant", 5, "");
        let first = of_text(&said).unwrap();
        assert_eq!(first.at, Timestamp::parse_rfc3339("2026-01-01T00:00:05Z"));
        let notes = [
            line("progress", 6, ""),
            line("user", 7, ",\"isMeta\":true"),
            line("user", 8, ",\"message\":{\"content\":\"<command-name>/compact</command-name>\"}"),
            line("system", 9, ",\"subtype\":\"turn_duration\""),
            "{\"type\":\"file-history-snapshot\",\"messageId\":\"m\"}\n".to_owned(),
            "{\"type\":\"user\",\"sess".to_owned(),
        ];
        assert_eq!(of_text(&format!("{said}{}", notes.concat())).unwrap(), first);
        let next = of_text(&format!("{said}{}", line("user", 6, ""))).unwrap();
        assert_ne!(next.name, first.name);
    }

    #[test]
    fn a_compaction_is_an_end_of_its_own() {
        let said = line("assistant", 5, "");
        let boundary = line("system", 6, ",\"subtype\":\"compact_boundary\"");
        let summary = line("user", 6, ",\"isCompactSummary\":true");
        assert!(of_text(&format!("{said}{boundary}")).unwrap().is_compaction);
        assert!(of_text(&format!("{said}{boundary}{summary}")).unwrap().is_compaction);
        assert!(!of_text(&said).unwrap().is_compaction);
    }

    #[test]
    fn an_end_behind_much_else_is_found_and_nothing_is_no_error() {
        let filler = line("progress", 6, &format!(",\"x\":\"{}\"", "y".repeat(1 << 20)));
        let said = line("assistant", 5, "");
        assert_eq!(of_text(&format!("{said}{filler}")), of_text(&said));
        assert_eq!(of_text(""), None);
        assert_eq!(of_text("junk\n"), None);
        // Of another agent's transcript the last line is the end.
        let foreign = "{\"timestamp\":\"x\",\"type\":\"response_item\"}\n";
        assert_ne!(of_text(foreign), of_text(&format!("{foreign}{{\"type\":\"event_msg\"}}\n")));
        assert!(of_text(foreign).is_some());
    }
}
