//! Extracts what a person typed from a message of type `user`.
//!
//! The client writes in the user's name too: the environment at the beginning of a session, the
//! editor's state, the text of hooks, the files that an `@path` names, the summary of a compressed
//! conversation, the results of calls. Each is a separate part or has a known form. A `<` at the
//! beginning proves nothing.

use crate::lenient::{LenientId, LenientText, field, objects};
use crate::long_text::{self, SourceSpan};
use forge_store::model::Value;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// The beginning of the summary of a compressed conversation.
const SNAPSHOT: &str = "<state_snapshot>";
const SNAPSHOT_END: &str = "</state_snapshot>";

/// Beginnings of texts that the client itself wrote in the user's name.
const MACHINE: &[&str] = &[
    "<session_context>\n",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "Here is the user's editor context as a JSON object.",
    "Here is a summary of changes in the user's editor context",
    "System: Potential loop detected.",
    "System: Please continue.",
    "I ran the following shell command:\n```sh\n",
    AGENTS,
];
/// The beginning of the note after a prompt that names sub-agents with `@`, and its end.
const AGENTS: &str = "<system_note>\nThe user has explicitly selected the following agent(s): ";
const AGENTS_END: &str = "</system_note>";
/// The element in which the client writes the context of a hook, also before a prompt.
const HOOK: &str = "<hook_context>";
const HOOK_END: &str = "</hook_context>";
/// The text around a message that was typed while the agent worked.
const STEERING: &[&str] = &["User steering update:\n<user_input>\n", "User hints:\n<user_input>\n"];
const STEERING_END: &str = "\n</user_input>";
/// The beginning of the inner text if it reports the end of a background command.
const BACKGROUND: &str = "[Background command completed ";
/// The parts before the files that the person named.
const FILES: [&str; 2] =
    ["--- Content from referenced files ---", "--- Content from referenced context ---"];
const FILES_END: &str = "--- End of content ---";

/// The text that a person typed.
#[derive(Debug)]
pub(super) struct TypedPrompt {
    pub(super) text: String,
    /// The same text as a value of the fact.
    pub(super) value: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct PromptPart<'a> {
    text: LenientText<'a>,
    function_response: Option<&'a RawValue>,
}

/// Returns the calls whose results a message of type `user` gives to the model.
pub(super) fn results(content: Option<&RawValue>) -> Vec<Value> {
    let parts = objects::<PromptPart<'_>>(content).into_iter();
    let results = parts.filter_map(|(_, part)| field::<LenientId>(part.function_response, "id").0);
    results.map(|id| Value::from([("id", id.into())])).collect()
}

/// Returns what a person typed, if anything. `display` is what the screen showed instead of the
/// content. `base` leads to the message.
pub(super) fn typed(
    content: Option<&RawValue>,
    display: Option<&RawValue>,
    place: SourceSpan,
    base: &str,
) -> Option<TypedPrompt> {
    if let Some((text, pointer)) = long_text::content_text(display, "/displayContent") {
        let range = by_person(&text, false)?;
        return one(&text, range, place, &format!("{base}{pointer}"));
    }
    let (texts, answers) = parts(content?);
    let mut in_files = false;
    let mut found: Vec<(Cow<'_, str>, Range<usize>, String)> = Vec::new();
    for (text, pointer) in texts {
        match text.trim() {
            part if FILES.contains(&part) => in_files = true,
            FILES_END => in_files = false,
            _ if in_files => {}
            _ => {
                if let Some(range) = by_person(&text, answers) {
                    found.push((text, range, pointer));
                }
            }
        }
    }
    if let [(text, range, pointer)] = found.as_slice() {
        return one(text, range.clone(), place, &format!("{base}/content{pointer}"));
    }
    let texts = found.iter().filter_map(|(text, range, _)| text.get(range.clone()));
    let text = long_text::join(texts);
    // No pointer can refer to a text that is joined from several parts.
    let value = long_text::beginning(&text, long_text::INLINE_BYTES).into();
    (!text.trim().is_empty()).then_some(TypedPrompt { text, value })
}

fn one(text: &str, range: Range<usize>, place: SourceSpan, pointer: &str) -> Option<TypedPrompt> {
    let typed_text = text.get(range.clone())?;
    let value = long_text::part(text, range, place, || pointer.to_owned());
    (!typed_text.trim().is_empty()).then(|| TypedPrompt { text: typed_text.to_owned(), value })
}

/// Returns the texts of a content with their pointers, and whether it holds the result of a call.
fn parts(content: &RawValue) -> (Vec<(Cow<'_, str>, String)>, bool) {
    let json = content.get();
    let items: Vec<&RawValue> = match json.as_bytes().first() {
        Some(b'[') => serde_json::from_str(json).unwrap_or_default(),
        _ => vec![content],
    };
    let mut texts = Vec::new();
    let mut answers = false;
    for (index, item) in items.into_iter().enumerate() {
        let at = if json.starts_with('[') { format!("/{index}") } else { String::new() };
        match item.get().as_bytes().first() {
            Some(b'"') => {
                let word: LenientText<'_> = serde_json::from_str(item.get()).unwrap_or_default();
                texts.extend(word.0.map(|text| (text, at)));
            }
            Some(b'{') => {
                let part: PromptPart<'_> = serde_json::from_str(item.get()).unwrap_or_default();
                answers |= part.function_response.is_some();
                texts.extend(part.text.0.map(|text| (text, format!("{at}/text"))));
            }
            _ => {}
        }
    }
    (texts, answers)
}

/// Returns the part of a text that a person typed. Next to the result of a call, only a text with
/// the marks of a message that was typed while the agent worked is a person's.
fn by_person(text: &str, beside_result: bool) -> Option<Range<usize>> {
    if let Some(begin) = STEERING.iter().find(|begin| text.starts_with(**begin)) {
        let rest = text.get(begin.len()..)?;
        let end = rest.find(STEERING_END).unwrap_or(rest.len());
        let body = rest.get(..end)?;
        return (!body.starts_with(BACKGROUND)).then_some(begin.len()..begin.len() + end);
    }
    let begin = text.trim_start();
    let after_hook = begin.strip_prefix(HOOK).and_then(|rest| rest.split_once(HOOK_END));
    let begin = after_hook.map_or(begin, |(_, after)| after.trim_start());
    let start = if after_hook.is_some() { text.len() - begin.len() } else { 0 };
    let machine = begin.is_empty()
        || MACHINE.iter().any(|it| begin.starts_with(it))
        || (begin.starts_with(HOOK) && begin.contains(HOOK_END))
        || is_snapshot(begin);
    let added = FILES.iter().filter_map(|files| begin.find(&format!("\n{files}\n")));
    let added = added.chain(begin.find(&format!("\n{AGENTS}"))).min();
    let added =
        added.filter(|_| [FILES_END, AGENTS_END].iter().any(|end| begin.trim_end().ends_with(end)));
    let end = added.map_or(text.len(), |at| text.len() - begin.len() + at);
    (!machine && !beside_result).then_some(start..end)
}

/// Returns the part of a text that a person typed, if nothing says who wrote the text.
pub(crate) fn typed_part(text: &str) -> Option<&str> {
    text.get(by_person(text, false)?).filter(|typed| !typed.trim().is_empty())
}

/// Returns the background process whose end a message reports, and whether it ended with an error.
pub(super) fn background_end(content: Option<&RawValue>) -> Option<(String, bool)> {
    let (texts, _) = parts(content?);
    texts.iter().find_map(|(text, _)| {
        let begin = STEERING.iter().find(|begin| text.starts_with(**begin))?;
        let body = text.get(begin.len()..)?.strip_prefix(BACKGROUND)?;
        let (head, _) = body.split_once(']')?;
        let (_, log) = head.rsplit_once("background-")?;
        Some((log.strip_suffix(".log")?.to_owned(), !head.starts_with("successfully")))
    })
}

/// Whether a message is the summary of a compressed conversation.
pub(super) fn is_snapshot(text: &str) -> bool {
    text.trim_start().starts_with(SNAPSHOT) && text.contains(SNAPSHOT_END)
}

/// Whether a message of a replaced history is the summary of the omitted messages. The model may
/// write its reasoning before it; the experimental context manager writes JSON.
pub(super) fn is_summary(text: &str) -> bool {
    let begin = text.trim_start();
    begin.starts_with(SNAPSHOT)
        || (begin.starts_with("<scratchpad>")
            && text.contains(SNAPSHOT)
            && text.contains(SNAPSHOT_END))
        || (begin.starts_with('{')
            && ["active_tasks", "discovered_facts", "constraints_and_preferences", "recent_arc"]
                .iter()
                .all(|name| text.contains(&format!("\"{name}\""))))
}

/// Whether a history may contain a summary: a quick test before its messages are read.
pub(super) fn may_hold_summary(json: &str) -> bool {
    json.contains(SNAPSHOT) || json.contains("discovered_facts")
}

#[cfg(test)]
mod tests {
    use super::{AGENTS, AGENTS_END, background_end, typed};
    use serde_json::value::to_raw_value;
    use serde_json::{Value as Json, json};

    fn prompt(content: &Json, display: Option<&Json>) -> Option<String> {
        let content = to_raw_value(content).unwrap();
        let display = display.map(|it| to_raw_value(it).unwrap());
        typed(Some(&content), display.as_deref(), (0, 1), "").map(|typed| typed.text)
    }

    #[test]
    fn a_prompt_that_begins_with_a_tag_is_distinguished_from_texts_of_the_client() {
        let text = |text: &str| json!([{"text": text}]);
        for (content, expected) in [
            (text("<div> does not render, why?"), Some("<div> does not render, why?")),
            (json!("plain"), Some("plain")),
            (json!(["plain"]), Some("plain")),
            (text("<state_snapshot> is empty, why?"), Some("<state_snapshot> is empty, why?")),
            (text("<session_context> is in my log"), Some("<session_context> is in my log")),
            (text("<hook_context> is in my log"), Some("<hook_context> is in my log")),
            (
                text(
                    "read @a\n--- Content from referenced files ---\nContent from @a:\nx\n--- End of content ---",
                ),
                Some("read @a"),
            ),
            // Regression: the client's note about agents was a part of the prompt.
            (
                json!([{"text": "@finder look"}, {"text": format!("\n{AGENTS}finder. Please\n{AGENTS_END}\n")}]),
                Some("@finder look"),
            ),
            (
                json!(format!("@finder look\n{AGENTS}finder. Please\n{AGENTS_END}\n")),
                Some("@finder look"),
            ),
            (text("<system_note> is in my log"), Some("<system_note> is in my log")),
            (text("<state_snapshot>\nx\n</state_snapshot>"), None),
            (text("<session_context>\nThis is the Gemini CLI."), None),
            (
                text(
                    "Here is the user's editor context as a JSON object. This is for your information only.\n```json",
                ),
                None,
            ),
            (
                json!([{"text": "fix it"}, {"text": "<hook_context>be kind</hook_context>"}]),
                Some("fix it"),
            ),
            (
                json!([{"text": "read @a.md"}, {"text": "\n--- Content from referenced files ---"},
                    {"text": "\nContent from @a.md:\n"}, {"text": "hello"}, {"text": "\n--- End of content ---"}]),
                Some("read @a.md"),
            ),
            // Regression: the prompt after the context of a hook was lost.
            (text("<hook_context>be kind</hook_context>\n\nfix it"), Some("fix it")),
            (text("<hook_context>be kind</hook_context>\n"), None),
            (text("I ran the following shell command:\n```sh\nls\n```\n\nThis produced"), None),
            (
                json!([{"text": "read @a.md"}, {"text": "\n--- Content from referenced context ---"},
                    {"text": "\nContent from @file:///a.md:\n"}, {"text": "hello"}]),
                Some("read @a.md"),
            ),
            (json!([{"functionResponse": {"id": "c"}}, {"text": "binary content"}]), None),
            (
                json!([{"functionResponse": {"id": "c"}},
                    {"text": "User steering update:\n<user_input>\nnever touch b.py\n</user_input>\nInternal instruction"}]),
                Some("never touch b.py"),
            ),
            (
                text(
                    "User steering update:\n<user_input>\n[Background command completed successfully. Output saved to /t/background-7.log]\n</user_input>",
                ),
                None,
            ),
            (json!([{"inlineData": {}}]), None),
            (text(" \n"), None),
        ] {
            assert_eq!(prompt(&content, None).as_deref(), expected, "{content}");
        }
        let shown = prompt(&text("expanded by a command"), Some(&text("/review now")));
        assert_eq!(shown.as_deref(), Some("/review now"));
    }

    #[test]
    fn the_end_of_a_background_command_names_its_process() {
        let end_in = |head: &str| {
            let text = format!(
                "User steering update:\n<user_input>\n[Background command completed {head}. Output saved to /t/background-7.log] x\n</user_input>"
            );
            background_end(Some(&to_raw_value(&json!([{"text": text}])).unwrap()))
        };
        assert_eq!(end_in("successfully"), Some(("7".to_owned(), false)));
        assert_eq!(end_in("with error: gone"), Some(("7".to_owned(), true)));
    }
}
