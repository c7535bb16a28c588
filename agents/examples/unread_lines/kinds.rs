//! Counts the kinds of lines in a transcript that the readers do not use, to notice changes of a
//! client.
//!
//! There is no list of the kinds that are used. Each line is passed to the reader of its agent. A
//! kind counts as used if one of its lines made a fact or a checkpoint, or changed the state for
//! later lines.

use forge_agents::claude_code::{
    InputEnding, TranscriptDialect, TranscriptOptions, TranscriptReader, TranscriptState,
};
use forge_agents::readable_json;
use forge_store::model::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of lines that are ignored on purpose: they repeat other lines, or serve only the client.
/// `docs/transcripts.md` gives the reasons.
const IGNORED_KINDS: [&str; 72] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "api-request",
    "api-request-blob",
    "api-request-resumed",
    "api-request-shape",
    "attribution-snapshot",
    "bridge-session",
    "content-replacement",
    "continued-in",
    "cost-state",
    "derived-from",
    "environment",
    "file-history-delta",
    "file-history-snapshot",
    "fork-context-ref",
    "instructions",
    "last-prompt",
    "mode",
    "permission-mode",
    "relocated",
    "resume-head-vouch",
    "session_context",
    "summary",
    "tag",
    "tools-used",
    "worktree-state",
    "attachment/agent_listing_delta",
    "attachment/async_hook_response",
    "attachment/auto_mode",
    "attachment/command_permissions",
    "attachment/compact_file_reference",
    "attachment/date_change",
    "attachment/deferred_tools_delta",
    "attachment/directory",
    "attachment/environment",
    "attachment/file",
    "attachment/hook_additional_context",
    "attachment/hook_blocking_error",
    "attachment/hook_cancelled",
    "attachment/hook_non_blocking_error",
    "attachment/hook_success",
    "attachment/hook_system_message",
    "attachment/instructions",
    "attachment/invoked_skills",
    "attachment/mcp_instructions_delta",
    "attachment/nested_memory",
    "attachment/opened_file_in_ide",
    "attachment/output_style",
    "attachment/plan_file_reference",
    "attachment/plan_mode",
    "attachment/prompt_snapshot",
    "attachment/session_context",
    "attachment/skill_listing",
    "progress/bash_progress",
    "progress/hook_progress",
    "progress/mcp_progress",
    "progress/query_update",
    "progress/search_results_received",
    // Kinds of Codex.
    "event_msg/agent_message",
    "event_msg/agent_reasoning",
    "event_msg/context_compacted",
    "event_msg/item_completed/AgentMessage",
    "event_msg/item_completed/ContextCompaction",
    "event_msg/item_completed/Reasoning",
    "event_msg/item_started",
    "event_msg/task_complete",
    "event_msg/task_started",
    "event_msg/thread_settings_applied",
    "event_msg/token_count",
    "world_state",
];

/// Counts the lines of each kind in a transcript that no reader uses, without the kinds that are
/// ignored on purpose.
pub(crate) fn count_unread_kinds(transcript: &[u8]) -> BTreeMap<String, u64> {
    let dialect = dialect(transcript);
    let mut reader =
        TranscriptReader::new(TranscriptOptions { dialect, ..TranscriptOptions::default() });
    let (mut counts, mut used) = (BTreeMap::new(), BTreeSet::new());
    let mut before = known(reader.carry(), dialect);
    for line in transcript.split_inclusive(|byte| *byte == b'\n') {
        let piece = reader.read(line, InputEnding::File, Timestamp::default()).unwrap_or_default();
        let after = known(reader.carry(), dialect);
        let kind = kind(line, dialect).unwrap_or_else(|| "(no record)".to_owned());
        if !piece.facts.is_empty() || !piece.checkpoints.is_empty() || after != before {
            used.insert(kind.clone());
        }
        if !line.trim_ascii().is_empty() {
            *counts.entry(kind).or_insert(0) += 1;
        }
        before = after;
    }
    // An ignored kind includes all kinds below it.
    let is_part =
        |below: Option<&str>| below.is_some_and(|it| it.is_empty() || it.starts_with('/'));
    let left_out = |kind: &str| IGNORED_KINDS.iter().any(|name| is_part(kind.strip_prefix(name)));
    counts.retain(|kind, _| !used.contains(kind) && !left_out(kind));
    counts
}

/// Returns the state for later lines, without the parts that any line changes.
fn known(carry: &TranscriptState, dialect: TranscriptDialect) -> Value {
    let mut known = serde_json::to_value(carry).unwrap_or_default();
    for name in ["offset", "lines", "tail"] {
        known[name] = Value::Null;
    }
    if dialect == TranscriptDialect::ClaudeCode {
        // Any line may set these.
        for name in ["id", "cwd", "git_branch"] {
            known["session"][name] = Value::Null;
        }
    }
    known
}

/// Returns the kind of a line: its type, and the type of its content if that has one. Without a
/// type, the names of its fields. `None` if it is not a JSON object.
fn kind(line: &[u8], dialect: TranscriptDialect) -> Option<String> {
    let line: Value = serde_json::from_str(&readable_json(&String::from_utf8_lossy(line))).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let Some(kind) = text(&line["type"]) else {
        let fields = line.as_object()?.keys().map(String::as_str);
        return Some(fields.collect::<Vec<_>>().join("+"));
    };
    let below = match dialect {
        TranscriptDialect::ClaudeCode => match kind.as_str() {
            "system" => text(&line["subtype"]),
            "attachment" => text(&line["attachment"]["type"]),
            "progress" => text(&line["data"]["type"]),
            "queue-operation" => text(&line["operation"]),
            _ => None,
        },
        TranscriptDialect::Codex => text(&line["payload"]["type"]).map(|below| {
            let item = text(&line["payload"]["item"]["type"]);
            item.map_or(below.clone(), |item| format!("{below}/{item}"))
        }),
        TranscriptDialect::Gemini => None,
    };
    Some(below.map_or(kind.clone(), |below| format!("{kind}/{below}")))
}

/// Returns the dialect of a transcript, by the form of its first records.
fn dialect(transcript: &[u8]) -> TranscriptDialect {
    for line in transcript.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
        if line.get("payload").is_some() {
            return TranscriptDialect::Codex;
        }
        if line.get("projectHash").is_some() || line.get("$set").is_some() {
            return TranscriptDialect::Gemini;
        }
        if line.get("type").is_some() && line.get("sessionId").is_some() {
            return TranscriptDialect::ClaudeCode;
        }
    }
    TranscriptDialect::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_of_line_is_counted() {
        let claude = r#"{"type":"new-kind","sessionId":"s","cwd":"/w"}
{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"content":"go"}}
{"type":"attachment","uuid":"a","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","attachment":{"type":"new_attachment"}}
{"type":"attachment","uuid":"b","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","attachment":{"type":"queued_command","prompt":"x"}}
{"type":"file-history-snapshot"}
{"type":"new-kind","sessionId":"s"}
torn
"#;
        let expected = [("(no record)", 1), ("attachment/new_attachment", 1), ("new-kind", 2)];
        let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
        assert_eq!(count_unread_kinds(claude.as_bytes()), BTreeMap::from(expected));
        let codex = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"c","cwd":"/w"}}
{"timestamp":"2026-01-01T00:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"go"}}
{"timestamp":"2026-01-01T00:00:02Z","type":"event_msg","payload":{"type":"new_event"}}
"#;
        let expected = [("event_msg/new_event".to_owned(), 1)];
        assert_eq!(count_unread_kinds(codex.as_bytes()), BTreeMap::from(expected));
    }

    #[test]
    fn the_recorded_sessions_have_no_unread_kind() {
        for name in ["review-e2e", "long", "small"] {
            let file = format!("{name}.jsonl");
            let Some(bytes) = crate::recorded::read("claude-code", &file) else { return };
            assert_eq!(count_unread_kinds(&bytes), BTreeMap::new(), "{name}");
        }
    }
}
