//! Reads the notices that a session received besides its messages, and the tokens of a message.

use crate::claude_code::line_context::{PieceBuilder, fields};
use crate::lenient::{LenientInteger, LenientText, field, object, parse_object};
use crate::piece::fact_id;
use forge_store::model::{Fact, FactOrigin, Kind, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Adds a notice of this type.
pub(super) fn push_notice(work: &mut PieceBuilder<'_>, id: &str, kind: &str, text: Value) {
    let value = fields([("type", kind.into()), ("text", text)]);
    work.fact(Kind::Notice, id, value);
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct NoticeEvent<'a> {
    reason: LenientText<'a>,
    message: LenientText<'a>,
    codex_error_info: Option<&'a RawValue>,
    goal: Option<&'a RawValue>,
    num_turns: LenientInteger,
}

/// Adds a notice for an event, if its type is one that is recorded as a notice.
pub(super) fn push_event_notice(
    work: &mut PieceBuilder<'_>,
    id: &str,
    event: &str,
    raw: &RawValue,
) {
    let Ok(one) = serde_json::from_str::<NoticeEvent<'_>>(raw.get()) else { return };
    match event {
        "turn_aborted" => {
            let reason = one.reason.text().map(|reason| work.text(reason, "/reason"));
            push_notice(work, id, "interrupted", reason.into());
        }
        "error" => {
            let message = one.message.text().map(|text| work.text(text, "/message"));
            // The error's code is a word, or a map with one key.
            let limit = one.codex_error_info.is_some_and(|it| it.get().contains("usage_limit"));
            let kind = if limit { "limit" } else { "error" };
            push_notice(work, id, kind, message.into());
        }
        "thread_rolled_back" => {
            let turns = one.num_turns.0.map(|turns| format!("{turns} turns"));
            push_notice(work, id, "rolled_back", turns.into());
        }
        "thread_goal_updated" => {
            let objective: LenientText<'_> = field(one.goal, "objective");
            if let Some(text) = objective.text() {
                let text = work.text(text, "/goal/objective");
                push_notice(work, id, "goal", text);
            }
        }
        _ => {}
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexTokenUsage {
    input_tokens: LenientInteger,
    cached_input_tokens: LenientInteger,
    cache_write_input_tokens: LenientInteger,
    output_tokens: LenientInteger,
    total_tokens: LenientInteger,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CodexTokenCount<'a> {
    last_token_usage: Option<&'a RawValue>,
    total_token_usage: Option<&'a RawValue>,
}

/// Adds a version of the model's last message with the token usage of one response.
pub(super) fn push_token_usage(work: &mut PieceBuilder<'_>, raw: Option<&RawValue>) {
    let usage: Option<CodexTokenUsage> = raw.and_then(|raw| parse_object(raw.get()));
    let Some(usage) = usage else { return };
    let Some(last) = work.carry.other.codex.message_without_usage.take() else { return };
    let unsigned = |whole: LenientInteger| whole.0.and_then(|number| u64::try_from(number).ok());
    let read = unsigned(usage.cached_input_tokens);
    let written = unsigned(usage.cache_write_input_tokens);
    // The input tokens include the cached ones.
    let input = unsigned(usage.input_tokens)
        .map(|all| all.saturating_sub(read.unwrap_or(0)).saturating_sub(written.unwrap_or(0)));
    let mut value = last.value;
    value.extend(fields([
        ("input_tokens", input.into()),
        ("output_tokens", unsigned(usage.output_tokens).into()),
        ("cache_read_tokens", read.into()),
        ("cache_creation_tokens", written.into()),
    ]));
    work.facts.push(Fact {
        kind: Kind::Message,
        id: fact_id(&last.id),
        at: last.at,
        origin: FactOrigin::Imported,
        place: last.place.0,
        recorded_at: work.line.recorded_at,
        value: Value::Map(value),
    });
}

/// Adds the token usage that an event reports, unless the event repeats the last one. Codex repeats
/// it whenever a limit changes.
pub(super) fn push_reported_token_usage(work: &mut PieceBuilder<'_>, raw: Option<&RawValue>) {
    let usages: CodexTokenCount<'_> = object(raw);
    let total = object::<CodexTokenUsage>(usages.total_token_usage).total_tokens.0;
    let state = &mut work.carry.other.codex;
    if total.is_none() || state.total_tokens == total {
        return;
    }
    state.total_tokens = total;
    push_token_usage(work, usages.last_token_usage);
}
