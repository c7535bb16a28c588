//! Reads a history from text: a list, JSON Lines, or a field of a request.

use super::raw_json::{RawObject, compact, is_json, list, written_list};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The marks of the cache that a request of Anthropic has outside of its messages: in its tools and
/// its instructions, which come before them, and for all of it. They count together with those in
/// its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheMarks {
    /// The number of marks.
    pub count: usize,
    /// Whether one before the messages is for less than an hour.
    pub has_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HistoryLayout {
    List,
    /// JSON Lines, with the number of the line of each message, from 1; without numbers if all of
    /// the text is JSON.
    Lines(Vec<usize>),
    /// An object, and the name of the field with the history.
    Field(String, &'static str),
}

/// A history that was read, with the layout in which to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryDocument {
    shape: HistoryLayout,
    /// The text of each message, on one line. In JSON Lines, a text need not be JSON.
    pub messages: Vec<String>,
}

/// The error for a text that is not a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidHistory(String);

/// The fields of a request or a state that may hold the history.
const FIELDS: [&str; 3] = ["messages", "input", "contents"];

impl HistoryDocument {
    /// Reads a history: a JSON list of messages, JSON Lines, or an object whose `messages`, `input`
    /// or `contents` is a list of messages. An empty text is a history without messages.
    ///
    /// A crash can leave NUL bytes and incomplete lines. NUL bytes, and marks of files and records,
    /// are ignored at the ends of the text and of lines. In JSON Lines, a line can have several
    /// messages, with or without commas between them, and a message can have several lines if all
    /// of the text is JSON. What is not JSON is kept:
    /// [`sanitize_history`](super::sanitize_history) removes it.
    ///
    /// # Errors
    /// [`InvalidHistory`] if the text is none of these.
    pub fn parse(whole: &str) -> Result<Self, InvalidHistory> {
        let text = trimmed(whole);
        if text.is_empty() {
            return Ok(Self { shape: HistoryLayout::Lines(Vec::new()), messages: Vec::new() });
        }
        if text.starts_with('[') {
            let Some(items) = list(text) else {
                let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err();
                let error = error.map(|error| error.to_string()).unwrap_or_default();
                return Err(InvalidHistory(format!("the list of messages is not JSON: {error}")));
            };
            let messages = items.into_iter().map(|item| compact(item).into_owned()).collect();
            return Ok(Self { shape: HistoryLayout::List, messages });
        }
        if let Some(object) = RawObject::parse(text) {
            let found = FIELDS.iter().find_map(|field| Some((*field, object.list(field)?)));
            // An object with a role or type is a message itself.
            let is_message = object.has("role") || object.has("type");
            if let Some((field, items)) = found.filter(|_| !is_message) {
                let messages = items.into_iter().map(|item| compact(item).into_owned()).collect();
                return Ok(Self { shape: HistoryLayout::Field(text.to_owned(), field), messages });
            }
            let messages = vec![compact(text).into_owned()];
            return Ok(Self { shape: HistoryLayout::Lines(Vec::new()), messages });
        }
        let lines = (1..).zip(whole.lines().map(trimmed)).flat_map(|(number, line)| {
            values_in(line).into_iter().map(move |json| (number, json.to_owned()))
        });
        let (numbers, messages): (Vec<usize>, Vec<String>) = match whole_values(text) {
            Some(messages) => (Vec::new(), messages),
            None => lines.unzip(),
        };
        if !messages.iter().any(|line| RawObject::parse(line).is_some()) {
            return Err(InvalidHistory(
                "no line of it is a message: give a JSON list of messages, or one message a line"
                    .to_owned(),
            ));
        }
        Ok(Self { shape: HistoryLayout::Lines(numbers), messages })
    }

    /// Writes these messages in the layout of this history.
    #[must_use]
    pub fn write(&self, messages: &[String]) -> String {
        match &self.shape {
            HistoryLayout::List => format!("{}\n", written_list(messages)),
            HistoryLayout::Lines(_) => {
                messages.iter().flat_map(|message| [message, "\n"]).collect()
            }
            HistoryLayout::Field(whole, field) => {
                let mut whole = RawObject::parse(whole).expect("it was one when it was read");
                whole.set(field, written_list(messages));
                format!("{}\n", compact(&whole.write()))
            }
        }
    }

    /// Returns whether this is a request that continues items that the provider stored.
    #[must_use]
    pub fn continues(&self) -> bool {
        const NAMES: [&str; 2] = ["previous_response_id", "conversation"];
        let HistoryLayout::Field(whole, _) = &self.shape else { return false };
        RawObject::parse(whole)
            .is_some_and(|whole| NAMES.iter().any(|name| whole.get(name).is_some()))
    }

    /// Returns the marks of the cache that this request has outside of its messages; none if it is
    /// no request.
    #[must_use]
    pub fn cache_marks(&self) -> CacheMarks {
        let mut marks = CacheMarks::default();
        let HistoryLayout::Field(whole, _) = &self.shape else { return marks };
        let Some(whole) = RawObject::parse(whole) else { return marks };
        for json in ["tools", "system"].iter().filter_map(|field| whole.list(field)).flatten() {
            let block = RawObject::parse(json);
            let mark = block.as_ref().and_then(|block| block.object("cache_control"));
            let Some(mark) = mark else { continue };
            marks.count += 1;
            marks.has_short |= mark.text("ttl").as_deref() != Some("1h");
        }
        // With the mark of the request, the API marks the last block itself.
        marks.count += usize::from(whole.object("cache_control").is_some());
        marks
    }

    /// Returns the number of the first line that is not JSON, counted from 1, if there is one. If
    /// the history is not JSON Lines, this is the number of the message.
    #[must_use]
    pub fn broken_line(&self) -> Option<usize> {
        let place = self.messages.iter().position(|text| !is_json(text))?;
        let number = match &self.shape {
            HistoryLayout::Lines(numbers) => numbers.get(place).copied(),
            HistoryLayout::List | HistoryLayout::Field(..) => None,
        };
        Some(number.unwrap_or(place + 1))
    }
}

/// Returns the JSON values of this text, each on one line; `None` if it has anything else. Other
/// programs write one value after another, each on several lines.
fn whole_values(text: &str) -> Option<Vec<String>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    values.map(|value| Some(compact(value.ok()?.get()).into_owned())).collect()
}

/// How many times the length of a line may be read in search of its messages, where the line is
/// broken.
const MAX_PASSES: usize = 16;

/// Returns the JSON values in a line: several if line breaks between messages were lost, or if an
/// incomplete message is before a whole one. What is not JSON is a part of its own.
fn values_in(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut effort = MAX_PASSES * line.len();
    let mut rest = line;
    while !rest.is_empty() {
        let end = value_end(rest).unwrap_or_else(|read| {
            effort = effort.saturating_sub(read);
            next_message(rest, read, &mut effort).unwrap_or(rest.len())
        });
        let (value, after) = rest.split_at(end);
        found.push(value);
        rest = after.trim_start_matches(|next: char| next == ',' || is_filler(next));
    }
    found
}

/// Returns the length of the JSON value at the beginning of this line, or how many bytes were read
/// to find that there is none: one more than the bytes of the line if it only ends too early.
fn value_end(line: &str) -> Result<usize, usize> {
    let mut values = serde_json::Deserializer::from_str(line).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        Some(Err(error)) if error.is_eof() => Err(line.len() + 1),
        Some(Err(error)) => Err(error.column().max(1)),
        None => Ok(line.len()),
    }
}

/// Returns where the first whole message begins in this line, which begins with an incomplete one
/// and is no JSON from the byte `broken` on. `effort` is the number of bytes that may be read in
/// vain.
fn next_message(line: &str, broken: usize, effort: &mut usize) -> Option<usize> {
    let mut from = 1;
    for (at, _) in line.match_indices('{') {
        if at < from {
            continue;
        }
        if *effort == 0 {
            break;
        }
        match value_end(&line[at..]) {
            Ok(length) => {
                from = at + length;
                let (whole, after) = (&line[at..from], line[from..].trim_start_matches(is_filler));
                // An object that ends before the line is broken is a part of the first message, and
                // so is one with a comma, a bracket or a quote after it.
                let is_alone = after.is_empty() || after.starts_with('{');
                let is_after = line.starts_with('{') && from > broken && is_alone;
                let is_message = || {
                    let object = RawObject::parse(whole);
                    object.is_some_and(|object| object.has("role") || object.has("type"))
                };
                if whole.starts_with("{\"role\"") || is_after && is_message() {
                    return Some(at);
                }
            }
            Err(read) => *effort = effort.saturating_sub(read),
        }
    }
    None
}

/// Returns whether a character can be between two messages and is no part of them: white space, a
/// NUL byte of a crash, the mark at the beginning of a file that was joined to another one, or the
/// mark at the beginning of a record.
fn is_filler(next: char) -> bool {
    matches!(next, '\0' | '\u{1e}' | '\u{feff}') || next.is_whitespace()
}

/// Returns the text without white space, NUL bytes and marks at its ends.
fn trimmed(text: &str) -> &str {
    text.trim_matches(is_filler)
}

/// Returns at most 200 characters of a message's content, for display.
#[must_use]
pub fn preview(message: &str) -> String {
    const CHARACTERS: usize = 200;
    let Some(object) = RawObject::parse(message) else {
        return message.chars().take(CHARACTERS).collect();
    };
    let nested = ["data", "kwargs"].iter().find_map(|field| object.object(field));
    let body = nested.as_ref().unwrap_or(&object);
    let mut texts = Vec::new();
    for field in ["content", "parts", "output", "arguments", "summary"] {
        if let Some(text) = body.text(field) {
            texts.push(text.into_owned());
        }
        for block in body.list(field).unwrap_or_default() {
            let block = RawObject::parse(block);
            texts.extend(block.and_then(|block| block_preview(&block, MAX_PREVIEW_DEPTH)));
        }
    }
    for call in body.list("tool_calls").unwrap_or_default() {
        let Some(call) = RawObject::parse(call) else { continue };
        let tool = call.object("function");
        let name = tool.as_ref().unwrap_or(&call).text("name").map(Cow::into_owned);
        texts.extend(name.map(|name| format!("{name}()")));
    }
    texts.retain(|text| !text.trim().is_empty());
    texts.join(" ").chars().take(CHARACTERS).collect()
}

/// The maximum depth of blocks in a block that are read for its preview. Without a maximum, they
/// could overflow the stack.
const MAX_PREVIEW_DEPTH: u8 = 8;

/// Returns a preview of a content block: its text, the tool that it calls, or the result of a call.
fn block_preview(block: &RawObject<'_>, depth: u8) -> Option<String> {
    const TEXTS: [&str; 8] =
        ["text", "thinking", "name", "toolName", "content", "value", "output", "error"];
    // These come before `TEXTS`: a result names its tool too, but its content is more informative.
    const INNER: [&str; 8] = [
        "output", "toolUse", "toolResult", "functionCall", "function_call", "functionResponse",
        "function_response", "response",
    ];
    if let Some(inner) = INNER.iter().find_map(|field| block.object(field)) {
        let shown = depth.checked_sub(1).and_then(|depth| block_preview(&inner, depth));
        return shown.or_else(|| Some(inner.write()));
    }
    if let Some(text) = TEXTS.iter().find_map(|name| block.text(name)) {
        return Some(text.into_owned());
    }
    let depth = depth.checked_sub(1)?;
    let mut blocks = block.list("content")?.into_iter().filter_map(RawObject::parse);
    blocks.find_map(|inner| block_preview(&inner, depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_written_as_it_was_given() {
        for (text, messages, written) in [
            ("", 0, ""),
            ("[ ]", 0, "[]\n"),
            ("[{\"a\": 1},\n {\"b\":\n 2}]", 2, "[{\"a\": 1},{\"b\":2}]\n"),
            ("{\"a\": 1}\n\n  {\"b\":2}\n{\"torn", 3, "{\"a\": 1}\n{\"b\":2}\n{\"torn\n"),
            ("{\"a\":1}\0\0\n\0\0\n\0{\"b\":2}\n\0\0", 2, "{\"a\":1}\n{\"b\":2}\n"),
            ("\u{feff}[{\"a\":1}]\n\0", 1, "[{\"a\":1}]\n"),
            ("\0\0", 0, ""),
            ("{\n \"a\":\n 1}", 1, "{\"a\":1}\n"),
            ("{\n \"a\": 1\n}\n{\n \"b\":\n 2}", 2, "{\"a\":1}\n{\"b\":2}\n"),
            (
                "{\"a\":1}\n\u{feff}{\"b\":2}\n\u{1e}{\"c\":3}",
                3,
                "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n",
            ),
            ("{\"a\":1}{\"b\":2}\n{\"c\":3},\n", 3, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"),
            ("{\"a\":1}\n{\"torn{\"role\":2}", 3, "{\"a\":1}\n{\"torn\n{\"role\":2}\n"),
            (
                "{\"model\":\"m\",\"messages\":[{\"a\":1}],\"n\":1.50}",
                1,
                "{\"model\":\"m\",\"messages\":[{\"a\":1}],\"n\":1.50}\n",
            ),
            ("{\"input\":[1]}", 1, "{\"input\":[1]}\n"),
            ("{\"type\":\"a_call\",\"input\":[]}", 1, "{\"type\":\"a_call\",\"input\":[]}\n"),
        ] {
            let document = HistoryDocument::parse(text).unwrap();
            assert_eq!(document.messages.len(), messages, "{text}");
            assert_eq!(document.write(&document.messages), written, "{text}");
        }
    }

    /// Each incomplete message cost a pass over the rest of the line.
    #[test]
    fn a_line_of_many_incomplete_messages_is_read_in_linear_time() {
        for part in ["{\"role\":", "{\"a\":[{\"role\":1},", "{\"a\":{},\"b\":["] {
            let line = part.repeat(20_000);
            let found = values_in(&line);
            assert!(found.len() < 3 * MAX_PASSES, "{part}");
            assert_eq!(found.concat().replace(',', ""), line.replace(',', ""), "{part}");
        }
    }

    /// Regression: only a message that begins with its role was found, and any other was lost.
    #[test]
    fn a_whole_message_after_an_incomplete_one_is_kept_whatever_its_first_field_is() {
        for (torn, message) in [
            (r#"{"role":"assistant","con"#, r#"{"role":"user","content":"x"}"#),
            (r#"{"type":"ai","content":"hal"#, r#"{"type":"tool","tool_call_id":"a"}"#),
            (r#"{"content":"hal"#, r#"{"content":"if (x) {","role":"user"}"#),
            (r#"{ "id" : "1", "#, r#"{ "id" : "2", "role" : "user", "content" : "x" }"#),
            (r#"{"content":[{"text":"a"},{"text":"b"},{"te"#, r#"{"type":"f","input":{}}"#),
            (r#"{"tool_calls":[{"type":"tool_call","args":{}}],"#, r#"{"type":"tool"}"#),
            ("INFO ", r#"{"role":"user","content":"{}"}"#),
        ] {
            let line = format!("{torn}{message}");
            assert_eq!(values_in(&line), [torn, message]);
            let line = format!("{torn}{message}\0\0{message}");
            assert_eq!(values_in(&line), [torn, message, message]);
        }
        // What is in an incomplete or invalid message, or in a line of another kind, is no message.
        for line in [
            r#"{"type":"ai","content":[{"type":"text","text":"a"}"#,
            r#"{"type":"ai","tool_calls":[{"name":"f","args":{"a":{}}"#,
            r#"{"type":"ai","tool_calls":[{"name":"f","args":{"content":"x","role":"user"}"#,
            r#"{"role":"user","score":NaN,"content":[{"type":"text","text":"a"},{"type":"b"}]}"#,
            r#"{'role': 'user', 'content': [{"type": "text"}, 'ü'], 'meta': {}}"#,
            r#"{worker-1} sent {"text":"hello"}"#,
            r#"INFO {"event":"e","message":"m"}"#,
        ] {
            assert_eq!(values_in(line), [line]);
        }
    }

    #[test]
    fn a_text_that_is_no_history_is_refused_with_the_reason() {
        let fault = |text: &str| HistoryDocument::parse(text).unwrap_err().to_string();
        assert!(fault("[{\"a\":1}").starts_with("the list of messages is not JSON: EOF"));
        assert!(fault("hello\nworld").starts_with("no line of it is a message"));
        let torn = HistoryDocument::parse("{\"a\":1}\n{\"b").unwrap();
        assert_eq!(torn.broken_line(), Some(2));
    }

    /// Empty lines were left out before the lines were counted, so the error about a torn line
    /// named another line than an editor shows.
    #[test]
    fn the_number_of_a_broken_line_counts_empty_lines() {
        for (text, line) in [
            ("\n\n{\"a\":1}\n\n\0\n{\"b", Some(6)),
            ("\u{feff}\r\n{\"a\":1}\r\n{\"b", Some(3)),
            ("\n{\"a\":1}\n\n{\"b\":2}\n", None),
            ("\n\n[{\"a\":1}]", None),
        ] {
            assert_eq!(HistoryDocument::parse(text).unwrap().broken_line(), line, "{text:?}");
        }
    }

    #[test]
    fn a_preview_shows_the_text_and_calls_of_a_message() {
        for (message, texts) in [
            (r#"{"role":"user","content":"hi"}"#, "hi"),
            (
                r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_use","name":"f"}]}"#,
                "a f",
            ),
            (r#"{"type":"ai","data":{"content":"","tool_calls":[{"name":"f","args":{}}]}}"#, "f()"),
            (r#"{"role":"assistant","tool_calls":[{"function":{"name":"g"}}]}"#, "g()"),
            (r#"{"type":"function_call_output","output":"done"}"#, "done"),
            (
                r#"{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{}}}]}"#,
                "a f",
            ),
            (
                r#"{"role":"user","parts":[{"function_response":{"name":"f","response":{"output":"rain"}}}]}"#,
                "rain",
            ),
            (r#"{"role":"assistant","content":[{"toolUse":{"name":"f","input":{}}}]}"#, "f"),
            (
                r#"{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"rain"}]}}]}"#,
                "rain",
            ),
            (
                r#"{"role":"tool","content":[{"type":"tool-result","toolName":"f","output":{"type":"text","value":"rain"}}]}"#,
                "rain",
            ),
        ] {
            assert_eq!(preview(message), texts);
        }
    }

    /// Blocks within blocks overflowed the stack.
    #[test]
    fn a_preview_reads_nested_blocks_to_a_limit() {
        for (open, close) in [("{\"output\":", "}"), ("{\"content\":[", "]}")] {
            let block = open.repeat(50_000) + "{}" + &close.repeat(50_000);
            let shown = preview(&format!("{{\"role\":\"tool\",\"content\":[{block}]}}"));
            assert!(shown.chars().count() <= 200, "{shown}");
        }
    }
}
