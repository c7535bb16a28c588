//! Prompts, and texts that are not prompts.

use super::script::{Script, answered, time};
use super::*;
use serde_json::{Value as Json, json};

fn prompts(piece: &TranscriptPiece) -> Vec<(String, Timestamp)> {
    let prompts = of_kind(piece, Kind::Prompt);
    prompts.iter().map(|fact| (text(&fact.value, "text").unwrap().to_owned(), fact.at)).collect()
}

fn one(text: &str, seconds: i64) -> Vec<(String, Timestamp)> {
    vec![(text.to_owned(), time(seconds))]
}

fn queue(operation: &str, content: Option<&str>) -> Json {
    json!({ "operation": operation, "content": content, "uuid": null, "cwd": null })
}

fn queued(prompt: &Json) -> Json {
    json!({ "attachment": { "type": "queued_command", "prompt": prompt, "commandMode": "prompt" } })
}

fn agent_works() -> Script {
    Script::new().call("c", "Bash", json!({ "command": "ls" }))
}

fn agent_continues(script: Script) -> Script {
    let answer = json!({ "message": answered("c", "ok", false) });
    let reply = json!({ "message": { "role": "assistant", "content": "on it" } });
    script.line("user", answer).line("assistant", reply)
}

#[test]
fn a_prompt_typed_while_the_agent_works_is_kept_at_its_own_time() {
    let text = "never touch the lexer";
    for prompt in [json!(text), json!([{ "type": "text", "text": text }])] {
        let piece = agent_works().line("attachment", queued(&prompt)).read();
        assert_eq!(prompts(&piece), one(text, 2));
    }
    let without = json!({ "attachment": { "type": "queued_command", "prompt": text } });
    assert_eq!(prompts(&agent_works().line("attachment", without).read()), one(text, 2));
    // Older clients write only that the text left the queue.
    let script = agent_works().line("queue-operation", queue("enqueue", Some(text)));
    let piece = script.clone().line("queue-operation", queue("remove", None)).read();
    assert_eq!(prompts(&piece), one(text, 2));
    assert_eq!(text_of_place(&script), text);
    // The prompt may still be in the queue when the model is called again.
    assert_eq!(prompts(&agent_continues(script).read()), one(text, 2));
}

/// Returns the text that the pointer `/content` finds in the line of the only prompt.
fn text_of_place(script: &Script) -> String {
    let piece = script.clone().line("queue-operation", queue("remove", None)).read();
    let fact = only_of_kind(&piece, Kind::Prompt);
    let line = script.text.get(fact.place as usize..).unwrap().lines().next().unwrap();
    crate::resolve(line.as_bytes(), "/content").unwrap()
}

#[test]
fn a_prompt_in_several_lines_is_recorded_once() {
    let text = "use decimal";
    let enqueued = || agent_works().line("queue-operation", queue("enqueue", Some(text)));
    let mut removed = queue("remove", Some(text));
    removed["reason"] = json!("absorbed_mid_turn");
    let script = enqueued().line("queue-operation", removed.clone());
    assert_eq!(prompts(&agent_continues(script.clone()).read()), one(text, 2));
    let script = script.line("attachment", queued(&json!(text)));
    assert_eq!(prompts(&agent_continues(script.clone()).read()), one(text, 4));
    assert_eq!(only_of_kind(&script.read(), Kind::Prompt).id, "m4");
    // The attachment says what the text was: here a notice.
    let mut notice = queued(&json!(text));
    notice["attachment"]["commandMode"] = json!("task-notification");
    let script = enqueued().line("queue-operation", removed.clone()).line("attachment", notice);
    assert_eq!(prompts(&agent_continues(script).read()), []);
    // The attachment may come first.
    let script = enqueued().line("attachment", queued(&json!(text)));
    let script = script.line("queue-operation", removed);
    assert_eq!(prompts(&agent_continues(script).read()), one(text, 3));
    // If the prompt waits until the turn ends, it begins a new turn.
    let script = enqueued().line("queue-operation", queue("dequeue", None)).user(text);
    assert_eq!(prompts(&agent_continues(script).read()), one(text, 4));
    let script =
        agent_continues(enqueued()).line("queue-operation", queue("dequeue", None)).user(text);
    assert_eq!(prompts(&script.read()), one(text, 2));
}

#[test]
fn a_prompt_moved_back_to_the_input_is_not_recorded() {
    let text = "use decimal";
    for operation in
        [queue("popAll", Some(text)), queue("popOne", Some(text)), queue("popAll", None)]
    {
        let script = agent_works().line("queue-operation", queue("enqueue", Some(text)));
        let script = agent_continues(script.line("queue-operation", operation));
        assert_eq!(prompts(&script.read()), []);
        // The same text typed again afterwards is another prompt.
        assert_eq!(prompts(&script.user(text).read()), one(text, 6));
    }
    let shown = "<ide_selection>x</ide_selection>\nuse decimal";
    let script = agent_works().line("queue-operation", queue("enqueue", Some(shown)));
    let kept = script.clone().line("queue-operation", queue("remove", Some(shown)));
    assert_eq!(prompts(&kept.read()), one(text, 2));
    let script = script.line("queue-operation", queue("popAll", Some(shown)));
    assert_eq!(prompts(&agent_continues(script).read()), []);
    let mut cleared = queue("remove", Some(text));
    cleared["reason"] = json!("cleared_on_cancel");
    let script = agent_works().line("queue-operation", queue("enqueue", Some(text)));
    assert_eq!(prompts(&agent_continues(script.line("queue-operation", cleared)).read()), []);
}

#[test]
fn the_same_words_typed_again_are_another_prompt() {
    let script = agent_works().line("queue-operation", queue("enqueue", Some("go on")));
    let script = agent_continues(script.line("queue-operation", queue("remove", None)));
    let piece = script.user("go on").read();
    let times: Vec<_> = prompts(&piece).into_iter().map(|(_, at)| at).collect();
    assert_eq!(times, [time(2), time(6)]);
}

/// Regression: the second removal was taken for one of the first text again, so that one of the two
/// prompts was lost.
#[test]
fn the_same_words_queued_twice_are_two_prompts() {
    let enqueue = || queue("enqueue", Some("go on"));
    let remove = |reason: Option<&str>| {
        let mut removed = queue("remove", Some("go on"));
        removed["reason"] = json!(reason);
        removed
    };
    let times = |script: Script| -> Vec<Timestamp> {
        prompts(&agent_continues(script).read()).into_iter().map(|(_, at)| at).collect()
    };
    for reason in [None, Some("absorbed_mid_turn")] {
        let script = agent_works()
            .line("queue-operation", enqueue())
            .line("queue-operation", enqueue())
            .line("queue-operation", remove(reason))
            .line("queue-operation", remove(reason));
        assert_eq!(times(script.clone()), [time(2), time(3)]);
        if reason.is_some() {
            let line = queued(&json!("go on"));
            let script = script.line("attachment", line.clone()).line("attachment", line);
            assert_eq!(times(script), [time(6), time(7)]);
        }
    }
}

#[test]
fn text_next_to_the_result_of_a_tool_is_a_prompt() {
    let mut message = answered("c", "ok", false);
    let content = message["content"].as_array_mut().unwrap();
    content.push(json!({ "type": "text", "text": "<system-reminder>x</system-reminder>" }));
    content.push(json!({ "type": "text", "text": "and the docs too" }));
    let piece = agent_works().line("user", json!({ "message": message })).read();
    assert_eq!(prompts(&piece), one("and the docs too", 2));
    assert_eq!(of_kind(&piece, Kind::Command).len(), 1);
}

#[test]
fn the_words_of_a_prompt_are_found_after_the_context_of_the_editor() {
    let context =
        "<ide_opened_file>The user opened the file /w/a.toml in the IDE.</ide_opened_file>";
    let long = "add a code owners file ".repeat(20).trim().to_owned();
    let block = |text: &str| json!({ "type": "text", "text": text });
    for content in [
        json!(format!("{context}\n{long}")),
        json!([block(context), block(&long)]),
        json!([block(&format!("{context}{context}")), block("first"), block(&long)]),
    ] {
        let script = Script::new().line("user", json!({ "message": { "content": content } }));
        let piece = script.read();
        let prompt = only_of_kind(&piece, Kind::Prompt).value.field("text").unwrap();
        let shown = forge_store::model::TextRef::from_value(prompt).unwrap();
        let whole = crate::resolve(script.text.trim().as_bytes(), &shown.pointer).unwrap();
        assert!(whole.ends_with(&long) && !whole.contains('<'), "{content}: {whole}");
        assert_eq!(blake3::hash(whole.as_bytes()).as_bytes(), shown.hash.as_bytes());
        assert!(!piece.session.unwrap().title.unwrap().contains('<'));
    }
}

/// Regression: the client's text between two texts that a person typed was a part of the prompt.
#[test]
fn the_text_of_the_client_between_two_texts_is_left_out() {
    let block = |text: &str| json!({ "type": "text", "text": text });
    let long = "x".repeat(300);
    for (content, expected) in [
        (json!([block("fix"), block("<ide_selection>x</ide_selection>"), block("it")]), "fix\nit"),
        (
            json!([
                block("fix"),
                block("\n<context ref=\"file:///w/a.xml\">\n<context>x</context>\n</context>")
            ]),
            "fix",
        ),
        (json!([block("fix\n<system-reminder>x</system-reminder>"), block("it")]), "fix\nit"),
        (json!([block("fix"), block("<ide_diagnostics>x</ide_diagnostics>it")]), "fix\nit"),
        (
            json!([block("fix"), block("[Image: source: /tmp/1.png]"), block(&long)]),
            &*format!("fix\n{long}"),
        ),
    ] {
        let script = Script::new().line("user", json!({ "message": { "content": content } }));
        assert_eq!(prompts(&script.read()), one(expected, 1));
    }
}

#[test]
fn the_arguments_of_a_slash_command_can_quote_the_tag() {
    let text = "<command-name>/ask</command-name>\n<command-message>ask</command-message>\n\
                <command-args>what is <command-args>x</command-args>?</command-args>";
    let expected = "/ask what is <command-args>x</command-args>?";
    assert_eq!(prompts(&Script::new().user(text).read()), one(expected, 1));
    // The text of the command, which follows in a text of its own, may name the tags too.
    let block = |text: &str| json!({ "type": "text", "text": text });
    let command = "<command-name>/ask</command-name>\n<command-args>why</command-args>";
    let content = json!([block(command), block("<command-args> and </command-args> are tags")]);
    let script = Script::new().line("user", json!({ "message": { "content": content } }));
    assert_eq!(prompts(&script.read()), one("/ask why", 1));
}

#[test]
fn the_origin_names_the_author() {
    let line = |text: &str, origin: &str| {
        let message = json!({ "message": { "content": text }, "origin": { "kind": origin } });
        Script::new().line("user", message).read()
    };
    assert_eq!(prompts(&line("go on", "task-notification")), []);
    assert_eq!(prompts(&line("go on", "auto-continuation")), []);
    assert_eq!(prompts(&line("<div> is wrong", "human")), one("<div> is wrong", 1));
    // A line whose origin is unknown is not a prompt.
    let unknown = line("go on", "something-new");
    assert_eq!((prompts(&unknown), unknown.session.unwrap().title), (vec![], None));
    // Of some lines only the origin of the turn is known.
    for (origin, expected) in
        [("human", one("go on", 1)), ("sdk", one("go on", 1)), ("task_notification", vec![])]
    {
        let line = json!({ "message": { "content": "go on" }, "turnOrigin": origin });
        assert_eq!(prompts(&Script::new().line("user", line).read()), expected, "{origin}");
    }
    let skill = json!({ "message": { "content": "Base directory" }, "sourceToolUseID": "t" });
    assert_eq!(prompts(&Script::new().line("user", skill).read()), []);
}

#[test]
fn a_notification_in_a_prompt_ends_its_command_and_the_rest_is_the_prompt() {
    let text = "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>bg</tool-use-id>\n\
                <status>failed</status>\n<summary>Background command \"run\" failed with exit code 2\
                </summary>\n</task-notification>\n\nplease also fix the docs";
    let input = json!({ "command": "make", "run_in_background": true });
    let noted = json!({ "stdout": "", "stderr": "", "backgroundTaskId": "b1" });
    let script = Script::new().call("bg", "Bash", input).result("bg", "running", noted);
    let piece = script.user(text).read();
    assert_eq!(prompts(&piece), one("please also fix the docs", 3));
    let ended = &of_kind(&piece, Kind::Command)[1].value;
    assert_eq!(ended.field("exit_code"), Some(&Value::Int(2)));
}

#[test]
fn a_copied_line_of_another_session_is_a_message_and_not_a_prompt() {
    let copied = json!({ "sessionId": "first", "message": { "content": "of the first" } });
    let forked = json!({ "message": { "content": "forked" },
                         "forkedFrom": { "sessionId": "first", "messageUuid": "m1" } });
    let script = Script::new().line("user", copied).line("user", forked).user("my own");
    let reader = TranscriptReader::new(TranscriptOptions::default());
    let piece = reader
        .of_session("s")
        .read(script.text.as_bytes(), InputEnding::File, RECORDED_AT)
        .unwrap();
    assert_eq!(prompts(&piece), one("my own", 3));
    assert_eq!(of_kind(&piece, Kind::Message).len(), 3);
    assert_eq!(piece.session.unwrap().title.as_deref(), Some("my own"));
}

#[test]
fn events_outside_the_conversation_are_notices_or_external_edits() {
    let attachment = |attachment: Json| json!({ "attachment": attachment });
    let found = json!([{ "uri": "file:///w/my%20app/a.rs", "diagnostics": [
        { "message": "unused", "severity": "Warning", "range": { "start": { "line": 4 } } }, null] },
        { "uri": "file:///w/clean.rs", "diagnostics": [] }]);
    let answer = |model: &str| json!({ "message": { "model": model, "content": "x" } });
    let piece = Script::new()
        .line(
            "attachment",
            attachment(
                json!({ "type": "edited_text_file", "filename": "/w/a.rs", "snippet": "3: x" }),
            ),
        )
        .line("attachment", attachment(json!({ "type": "diagnostics", "files": found })))
        .line(
            "attachment",
            attachment(
                json!({ "type": "goal_status", "condition": "all tests pass", "met": false }),
            ),
        )
        .line("attachment", attachment(json!({ "type": "something_new" })))
        .line("pr-link", json!({ "prUrl": "https://h.example/pull/7", "prNumber": 7 }))
        .line("assistant", answer("model-a"))
        .line("assistant", answer("<synthetic>"))
        .line("assistant", answer("model-b"))
        .read();
    let code = &only_of_kind(&piece, Kind::Code).value;
    assert_eq!((text(code, "tool"), text(code, "path")), (Some("outside"), Some("/w/a.rs")));
    assert_eq!((text(code, "snippet"), code.field("patch")), (Some("3: x"), None));
    let notices = of_kind(&piece, Kind::Notice);
    let shown: Vec<_> = notices
        .iter()
        .map(|fact| (text(&fact.value, "type").unwrap(), text(&fact.value, "text").unwrap_or("-")))
        .collect();
    let expected = [
        ("diagnostics", "line 5: Warning: unused"),
        ("goal", "all tests pass"),
        ("link", "-"),
        ("model", "model-b (before: model-a)"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(text(&notices[0].value, "path"), Some("/w/my app/a.rs"));
    assert_eq!(text(&notices[2].value, "address"), Some("https://h.example/pull/7"));
}
