//! Messages, prompts and the data of the session.

use super::script::{Script, called, time};
use super::*;
use serde_json::json;

#[test]
fn a_message_has_the_model_tokens_and_thinking_of_its_line() {
    let mut message = called("c", "Grep", json!({}));
    message["usage"] = json!({ "input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7,
                               "cache_creation_input_tokens": null });
    let blocks = message["content"].as_array_mut().unwrap();
    blocks.insert(0, json!({ "type": "thinking", "thinking": "where?", "signature": "x" }));
    blocks.insert(1, json!({ "type": "text", "text": "I look" }));
    let piece =
        Script::new().line("assistant", json!({ "message": message, "parentUuid": "p" })).read();
    let fact = only_of_kind(&piece, Kind::Message);
    let expected = Value::from([
        ("role", "assistant".into()),
        ("parent", "p".into()),
        ("message_id", "msg".into()),
        ("model", "a-model".into()),
        ("git_branch", "main".into()),
        ("cwd", "/work".into()),
        ("thinking", "where?".into()),
        ("input_tokens", Value::Int(3)),
        ("output_tokens", Value::Int(5)),
        ("cache_read_tokens", Value::Int(7)),
        ("text", "I look".into()),
        ("tool_calls", vec![Value::from([("id", "c".into()), ("name", "Grep".into())])].into()),
    ]);
    assert_eq!((fact.id.as_str(), fact.at, &fact.value), ("m1", time(1), &expected));
    assert_eq!((fact.place, fact.recorded_at), (0, RECORDED_AT));
}

/// Regression: nothing of a transcript was stored if a count of tokens was below zero.
#[test]
fn a_count_below_zero_is_left_out() {
    let mut message = called("c", "Grep", json!({}));
    message["usage"] =
        json!({ "input_tokens": -3, "output_tokens": 5, "cache_read_input_tokens": 0 });
    let piece = Script::new().line("assistant", json!({ "message": message })).read();
    let value = &only_of_kind(&piece, Kind::Message).value;
    let counts = ["input_tokens", "output_tokens", "cache_read_tokens"];
    let found = counts.map(|name| value.field(name).cloned());
    assert_eq!(found, [None, Some(Value::Int(5)), Some(Value::Int(0))]);
}

#[test]
fn several_text_blocks_of_a_message_become_one_text() {
    let long = "x".repeat(300);
    let block = |text: &str| json!({ "type": "text", "text": text });
    let content = json!([block("a"), { "type": "image" }, block(&long)]);
    let script = Script::new().line("user", json!({ "message": { "content": content } }));
    let text = only_of_kind(&script.read(), Kind::Prompt).value.field("text").cloned().unwrap();
    let text = forge_store::model::TextRef::from_value(&text).unwrap();
    assert_eq!(text.pointer, "/message/content");
    let whole = crate::resolve(script.text.trim().as_bytes(), &text.pointer);
    assert_eq!(whole, Some(format!("a\n{long}")));
}

#[test]
fn flags_are_present_only_if_true() {
    let message = json!({ "content": "x" });
    let piece = Script::new()
        .line("user", json!({ "message": message, "isMeta": true }))
        .line("user", json!({ "message": message, "isCompactSummary": true }))
        .line("assistant", json!({ "message": message, "isApiErrorMessage": true }))
        .user("[Request interrupted by user]")
        .line("system", json!({ "subtype": "turn_duration", "durationMs": 7, "isMeta": false }))
        .read();
    let flags: Vec<_> = of_kind(&piece, Kind::Message)
        .iter()
        .map(|fact| {
            let set = ["meta", "compact_summary", "api_error", "interrupted", "duration_ms"];
            set.into_iter().filter(|flag| fact.value.field(flag).is_some()).collect::<Vec<_>>()
        })
        .collect();
    let expected = [["meta"], ["compact_summary"], ["api_error"], ["interrupted"], ["duration_ms"]];
    assert_eq!(flags, expected);
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);
}

#[test]
fn only_text_that_a_person_typed_is_a_prompt() {
    let local = |content: &str| json!({ "subtype": "local_command", "content": content });
    let piece = Script::new()
        .user("fix the test")
        .user("<local-command-stdout>Bye!</local-command-stdout>")
        .user("<bash-input>git pull</bash-input>")
        .user("<bash-stdout>ok</bash-stdout>")
        .user("<command-name>/exit</command-name>\n  <command-args></command-args>")
        .user(
            "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
               <command-args>pr 7</command-args>",
        )
        .line("user", json!({ "message": { "content": [{ "type": "image" }] } }))
        // Regression: newer clients write a slash command in a system line, which was no prompt.
        .line(
            "system",
            local("<command-name>/context</command-name>\n<command-args></command-args>"),
        )
        .line("system", local("<local-command-stdout>ok</local-command-stdout>"))
        .line(
            "system",
            json!({ "subtype": "local_command", "isMeta": true, "content": "<command-name>/x</command-name>" }),
        )
        .read();
    let prompts: Vec<_> = of_kind(&piece, Kind::Prompt)
        .into_iter()
        .map(|fact| {
            (fact.id.as_str(), text(&fact.value, "text").unwrap(), fact.value.field("tags"))
        })
        .collect();
    let slash = Value::from(vec!["slash"]);
    let expected = [
        ("m1", "fix the test", None),
        ("m5", "/exit", Some(&slash)),
        ("m6", "/review pr 7", Some(&slash)),
        ("m8", "/context", Some(&slash)),
    ];
    assert_eq!(prompts, expected);
    assert_eq!(of_kind(&piece, Kind::Message).len(), 10);
    assert_eq!(of_kind(&piece, Kind::Command).len(), 0);
}

#[test]
fn lines_of_other_types_give_no_facts() {
    let piece = Script::new()
        .line("file-history-snapshot", json!({ "snapshot": {} }))
        .line("queue-operation", json!({ "operation": "enqueue" }))
        .line("summary", json!({ "summary": "of another session" }))
        .line("something-new", json!({ "message": 7 }))
        .line("user", json!({ "uuid": null, "message": { "content": "no id" } }))
        .read();
    assert_eq!((piece.facts, piece.checkpoints), (vec![], vec![]));
}

#[test]
fn the_last_session_id_counts_and_a_transcript_without_one_has_no_session() {
    let script =
        Script::new().user("first\nmore").line("user", json!({ "sessionId": "t", "cwd": "/b" }));
    let session = script.read().session.unwrap();
    assert_eq!((session.agent_session.as_str(), session.cwd.as_deref()), ("t", Some("/b")));
    assert_eq!(session.git_branch.as_deref(), Some("main"));
    assert_eq!(session.started_at, Some(time(1)));
    assert_eq!(session.title.as_deref(), Some("first"));
    let ai_title = |title: &str| json!({ "aiTitle": title });
    let titled = script.line("ai-title", ai_title("First")).line("ai-title", ai_title("A title"));
    assert_eq!(titled.read().session.unwrap().title.as_deref(), Some("A title"));
    let titled = titled
        .line("custom-title", json!({ "customTitle": "Mine" }))
        .line("ai-title", ai_title("Last"));
    assert_eq!(titled.read().session.unwrap().title.as_deref(), Some("Mine"));
    let slash = |name: &str, arguments: &str| {
        let name = format!("<command-name>/{name}</command-name>");
        format!("{name}\n<command-args>{arguments}</command-args>")
    };
    let asked = Script::new().user(&slash("clear", "")).user(&slash("review", "src"));
    assert_eq!(asked.read().session.unwrap().title.as_deref(), Some("/review src"));
    let asked = asked.user("fix it");
    assert_eq!(asked.read().session.unwrap().title.as_deref(), Some("fix it"));
    assert_eq!(read_whole(b"").session, None);
    assert_eq!(read_whole(b"{\"type\":\"summary\"}\n").session, None);
}

#[test]
fn the_order_of_lines_with_decreasing_times_is_kept_in_the_place() {
    let piece = Script::new().user("a").after(-30).user("b").read();
    let found: Vec<_> = of_kind(&piece, Kind::Message).iter().map(|it| (it.at, it.place)).collect();
    assert_eq!((found[0].0, found[1].0), (time(1), time(-28)));
    assert!(found[0].1 < found[1].1);
}

#[test]
fn a_repeated_line_gives_the_same_fact() {
    let script = Script::new().bash("ls", "x", json!({ "stdout": "x" }));
    let twice = read_whole(script.text.repeat(2).as_bytes());
    let once = script.read();
    let ids = |piece: &TranscriptPiece| {
        let of = piece.facts.iter().map(|fact| (fact.kind, fact.id.clone(), fact.at));
        of.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids(&twice), ids(&once));
}
