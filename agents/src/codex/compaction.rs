//! Compactions: the summary, and the messages that were kept word for word.

use super::{CodexPayload, speak};
use crate::claude_code::line_context::{LineContext, PieceBuilder, fields, flag};
use crate::lenient::{LenientText, object};
use crate::long_text;
use forge_store::model::{FieldMap, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The maximum number of kept messages in a checkpoint. The oldest ones are left out.
const MAX_RETAINED_MESSAGES: usize = 128;

/// An item of the history after a compaction. An entry of `replacement_history_entries` contains it
/// as `item`, or names a message by `item_id`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct RetainedItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: LenientText<'a>,
    role: LenientText<'a>,
    content: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    item_id: LenientText<'a>,
}

/// Adds a compaction: a message, and a checkpoint with the summary and the messages that were kept.
/// `copied`: whether the line was copied from the session that this one was forked from.
pub(super) fn compacted(
    work: &mut PieceBuilder<'_>,
    id: &str,
    payload: &CodexPayload<'_>,
    copied: bool,
) {
    let summary = payload.message.text().map(|text| work.text(text, "/message"));
    let value = fields([
        ("role", "system".into()),
        ("subtype", "compacted".into()),
        ("text", summary.clone().into()),
        ("compact_summary", flag(summary.is_some())),
    ]);
    speak(work, id, value);
    work.single_line_compaction(id, summary);
    let retained = retained_fields(&work.line, payload);
    if let Some(checkpoint) = work.checkpoints.last_mut()
        && let Value::Map(body) = &mut checkpoint.body
    {
        body.extend(retained);
        body.extend(fields([("copied", flag(copied))]));
    }
}

/// Returns the fields of the checkpoint about the messages that were kept.
fn retained_fields(context: &LineContext, payload: &CodexPayload<'_>) -> FieldMap {
    let (list, base) = match (payload.replacement_history_entries, payload.replacement_history) {
        (Some(entries), _) => (entries, "/replacement_history_entries"),
        (None, Some(history)) => (history, "/replacement_history"),
        (None, None) => return FieldMap::new(),
    };
    let items: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    let mut messages = Vec::new();
    let mut encrypted = false;
    for (index, raw) in items.into_iter().enumerate() {
        let mut at = format!("{base}/{index}");
        let mut item: RetainedItem<'_> = object(Some(raw));
        if let Some(inner) = item.item {
            at.push_str("/item");
            item = object(Some(inner));
        }
        if let Some(message) = item.item_id.text() {
            messages.push(Value::from([("message", message.into())]));
            continue;
        }
        match item.kind.text() {
            // The summary, encrypted.
            Some("compaction" | "compaction_summary" | "context_compaction") => encrypted = true,
            Some("message") => {
                let content = long_text::content_text(item.content, &format!("{at}/content"));
                let Some((text, pointer)) = content else { continue };
                let role = item.role.text().unwrap_or("assistant");
                let text = context.text(&text, pointer);
                messages.push(Value::from([("role", role.into()), ("text", text)]));
            }
            _ => {}
        }
    }
    let left_out = messages.len().saturating_sub(MAX_RETAINED_MESSAGES);
    messages.drain(..left_out);
    fields([
        ("kept", if messages.is_empty() { Value::Null } else { Value::List(messages) }),
        ("kept_left_out", if left_out == 0 { Value::Null } else { (left_out as u64).into() }),
        ("summary_encrypted", flag(encrypted)),
    ])
}
