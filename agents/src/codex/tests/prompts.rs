//! Authors of user messages: prompts, and what Codex writes in the person's name.

use super::*;

fn prompts(piece: &TranscriptPiece) -> Vec<String> {
    of_kind(piece, Kind::Prompt).iter().map(|fact| text(fact, "text").unwrap()).collect()
}

fn title(piece: &TranscriptPiece) -> Option<String> {
    piece.session.clone().unwrap().title
}

fn message_line(second: u32, texts: &[&str], kinds: &[&str]) -> String {
    let content: Vec<Json> =
        texts.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
    let mut payload = json!({"type": "message", "role": "user", "content": content});
    if !kinds.is_empty() {
        payload["internal_chat_message_metadata_passthrough"] =
            json!({"turn_id": "t1", "content_item_kinds": kinds});
    }
    item(second, &payload)
}

fn event_line(second: u32, message: &str) -> String {
    at(second, "event_msg", &json!({"type": "user_message", "message": message, "images": []}))
}

fn item_line(second: u32, texts: &[&str]) -> String {
    let content: Vec<Json> =
        texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    let item = json!({"type": "UserMessage", "id": format!("i{second}"), "content": content});
    at(second, "event_msg", &json!({"type": "item_completed", "item": item}))
}

#[test]
fn the_author_of_a_prompt_is_read_from_the_labels_of_its_record() {
    let script = [
        meta(),
        message_line(
            1,
            &["# AGENTS.md instructions\n\nbe kind", "<x>"],
            &["agents_md.instructions", "environments.environment_context"],
        ),
        message_line(2, &["<div> does not render"], &["user.text"]),
        item_line(2, &["<div> does not render"]),
        message_line(3, &["go on, says the hook"], &["hooks.additional_context"]),
        message_line(
            4,
            &["use this", "<skill>\n<name>a</name>\n</skill>"],
            &["user.text", "skills.selected_skill_instructions"],
        ),
    ];
    let piece = read(&script.concat());
    assert_eq!(prompts(&piece), ["<div> does not render", "use this"]);
    assert_eq!(title(&piece).as_deref(), Some("<div> does not render"));
    let meta: Vec<bool> =
        of_kind(&piece, Kind::Message).iter().map(|fact| field(fact, "meta").is_some()).collect();
    assert_eq!(meta, [true, false, true, false]);
}

#[test]
fn a_prompt_is_recorded_once_whichever_lines_report_it() {
    let script = [
        meta(),
        // All three kinds of lines, only one kind, and two prompts at once.
        message_line(1, &["one"], &["user.text"]),
        event_line(1, "one"),
        item_line(1, &["one"]),
        event_line(10, "two"),
        item_line(20, &["three"]),
        event_line(30, "four"),
        event_line(30, "five"),
        message_line(31, &["four"], &[]),
        message_line(31, &["five"], &[]),
        // The text of an earlier prompt again, and one prompt in two parts.
        message_line(40, &["one"], &["user.text"]),
        event_line(40, "one"),
        message_line(50, &["a", "b"], &["user.text", "user.text"]),
        item_line(50, &["a", "b"]),
        event_line(50, "ab"),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(prompts(&piece), ["one", "two", "three", "four", "five", "one", "a\nb"]);
    check_same_in_pieces(&script);
}

#[test]
fn texts_of_codex_in_the_persons_name_are_not_prompts() {
    let own = [
        "<user_instructions>\nx\n</user_instructions>",
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>",
        "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
        "<subagent_notification>\n{\"agent_id\":\"a1\",\"status\":\"running\"}\n</subagent_notification>",
    ];
    let lines: String = own.iter().map(|text| message_line(1, &[text], &[])).collect();
    let piece = read(&(meta() + &lines));
    assert_eq!(prompts(&piece), [] as [&str; 0]);
    assert_eq!(title(&piece), None);
    assert_eq!(of_kind(&piece, Kind::Message).len(), own.len());
}

#[test]
fn a_text_that_an_event_reports_is_a_prompt_whatever_it_looks_like() {
    let typed = [
        "<theme_context>wrap the app in it</theme_context>",
        "# AGENTS.md instructions\nwhat does <INSTRUCTIONS> mean?",
        "<skill>why is this shown?</skill>",
    ];
    let old: String =
        typed.iter().map(|text| message_line(1, &[text], &[]) + &event_line(1, text)).collect();
    assert_eq!(prompts(&read(&(meta() + &old))), typed);
    let new: String = typed.iter().map(|text| item_line(1, &[text])).collect();
    assert_eq!(prompts(&read(&(meta() + &new))), typed);
    // Early versions reported their own texts in such events too, with their kind.
    let event = |kind: &str| {
        let payload =
            json!({"type": "user_message", "message": "<x_context>a</x_context>", "kind": kind});
        prompts(&read(&(meta() + &at(1, "event_msg", &payload)))).len()
    };
    assert_eq!((event("environment_context"), event("plain")), (0, 1));
}

#[test]
fn the_editors_context_and_attachments_are_left_out() {
    let wrapped = "# Context from my IDE setup:\n\n## Active file: src/a.rs\n\n## My request for Codex:\nfix the lexer\n";
    let image = json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "what is this?"}]});
    let script = [
        meta(),
        message_line(1, &[wrapped], &[]),
        event_line(1, wrapped),
        item(2, &image),
        event_line(2, "what is this?"),
        // A prompt that is only an image.
        at(3, "event_msg", &json!({"type": "user_message", "message": "", "images": ["x"]})),
    ];
    let script = script.concat();
    let piece = read(&script);
    assert_eq!(prompts(&piece), ["fix the lexer", "what is this?"]);
    assert_eq!(title(&piece).as_deref(), Some("fix the lexer"));
}

/// Regression: the event became a second prompt.
#[test]
fn a_prompt_with_an_image_between_its_texts_is_recorded_once() {
    let texts = ["see ", "<image name=[Image #1]>", "</image>", " here"];
    let script = meta() + &message_line(1, &texts, &[]) + &event_line(1, "see  here");
    assert_eq!(prompts(&read(&script)), ["see \n<image name=[Image #1]>\n</image>\n here"]);
}

#[test]
fn a_long_prompt_of_several_parts_is_resolved() {
    let long = "x".repeat(300);
    let script = meta()
        + &message_line(1, &["<environment_context></environment_context>", &long, "and"], &[]);
    let piece = read(&script);
    let prompt = of_kind(&piece, Kind::Prompt)[0];
    let found = TextRef::from_value(field(prompt, "text").unwrap()).unwrap();
    let (offset, length) = found.place.unwrap();
    let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
    let whole = resolve(&script.as_bytes()[from..to], &found.pointer);
    assert_eq!(whole, Some(format!("{long}\nand")));
}

fn meta_line(id: &str, more: &Json) -> String {
    let mut payload = json!({"id": id, "cwd": "/w", "timestamp": "2026-05-01T10:00:00.000Z"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    at(0, "session_meta", &payload)
}

#[test]
fn lines_copied_by_a_fork_are_not_its_prompts() {
    // The ids of a turn before the fork and of one after it: an id contains the time of its
    // creation.
    let old = "019de2ec-0000-7000-8000-000000000000";
    let new = "019e6000-0000-7000-8000-000000000000";
    let turn =
        |second, id: &str| at(second, "event_msg", &json!({"type": "task_started", "turn_id": id}));
    let script = [
        meta_line("f2", &json!({"forked_from_id": "f1"})),
        meta_line("f1", &json!({})),
        turn(0, old),
        message_line(0, &["asked before"], &[]),
        event_line(0, "asked before"),
        turn(1, new),
        message_line(1, &["asked here"], &[]),
        event_line(1, "asked here"),
    ]
    .concat();
    let piece = read(&script);
    assert_eq!(prompts(&piece), ["asked here"]);
    assert_eq!(title(&piece).as_deref(), Some("asked here"));
    assert_eq!(piece.session.unwrap().agent_session, "f2");
    check_same_in_pieces(&script);
    // Without ids of turns, copied lines are those that follow without a pause, or have times
    // before the fork.
    let script = [
        meta_line("f2", &json!({"forked_from_id": "f1"})),
        meta_line("f1", &json!({})),
        message_line(0, &["asked before"], &[]),
        message_line(20, &["asked here"], &[]),
    ];
    assert_eq!(prompts(&read(&script.concat())), ["asked here"]);
    let before = json!({"timestamp": "2026-05-01T09:00:00.000Z", "type": "event_msg",
        "payload": {"type": "user_message", "message": "asked before"}});
    let script = [
        meta_line("f2", &json!({"forked_from_id": "f1"})),
        format!("{before}\n"),
        event_line(1, "asked here"),
    ];
    assert_eq!(prompts(&read(&script.concat())), ["asked here"]);
}

#[test]
fn inherited_lines_are_known_by_their_number_or_their_mark() {
    let numbered = |ordinal: u32, text: &str| {
        let line = json!({"timestamp": "2026-05-01T10:00:01.000Z", "ordinal": ordinal, "type": "event_msg",
            "payload": {"type": "user_message", "message": text}});
        format!("{line}\n")
    };
    let marked = json!({"timestamp": "2026-05-01T10:00:02.000Z", "ordinal": 9, "type": "response_item",
        "metadata": {"inherited_user_message": true}, "payload": {"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "marked"}]}});
    let script = [
        meta_line("f2", &json!({"forked_from_ordinal_exclusive": 4})),
        numbered(3, "before"),
        numbered(5, "here"),
        format!("{marked}\n"),
    ];
    assert_eq!(prompts(&read(&script.concat())), ["here"]);
}

#[test]
fn the_task_of_a_sub_agent_is_not_a_prompt() {
    for source in [
        json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}}),
        json!({"source": {"subagent": "review"}}),
        // Regression: what Codex writes to itself in an internal session became a prompt.
        json!({"source": {"internal": "memory_consolidation"}}),
        json!({"source": "exec", "thread_source": "memory_consolidation"}),
        json!({"thread_source": "subagent", "agent_nickname": "Ada", "agent_role": "explorer"}),
    ] {
        let script = [
            meta_line("a1", &source),
            message_line(1, &["look at it"], &[]),
            event_line(1, "look at it"),
        ];
        let piece = read(&script.concat());
        assert_eq!(prompts(&piece), [] as [&str; 0], "{source}");
        let named = source.get("agent_nickname").map(|_| "Ada, explorer");
        assert_eq!(title(&piece).as_deref(), named);
    }
}

#[test]
fn another_program_that_uses_codex_passes_on_what_a_person_wrote() {
    for source in [json!("vscode"), json!({"custom": "subagent"})] {
        let script =
            [meta_line("a1", &json!({ "source": source })), message_line(1, &["look at it"], &[])];
        assert_eq!(prompts(&read(&script.concat())), ["look at it"], "{source}");
    }
}

/// Regression: the text that Codex writes in place of an image became part of the prompt.
#[test]
fn the_text_in_place_of_an_image_is_no_prompt() {
    for unread in [
        "Codex could not read the local image at `/a.png`: No such file",
        "Image located at `/a.png` is invalid: bad header",
        "Codex cannot attach image at `/a.bmp`: unsupported image format `image/bmp`.",
    ] {
        let script =
            [meta(), message_line(1, &[unread, "what is it?"], &[]), event_line(1, "what is it?")];
        assert_eq!(prompts(&read(&script.concat())), ["what is it?"], "{unread}");
    }
}

/// Regression: each of these prompts was lost.
#[test]
fn a_question_about_a_text_of_codex_is_a_prompt() {
    for typed in [
        "Codex could not read the local image at `a.png`: No such file. Why?",
        "Image located at `a.png`: describe it",
        "The following is the Codex agent history of yesterday. Why did it fail?",
    ] {
        let script = [meta(), message_line(1, &[typed], &[])];
        assert_eq!(prompts(&read(&script.concat())), [typed]);
    }
    let script = [meta(), message_line(1, &["Image located at `a.png`: describe it", "now"], &[])];
    assert_eq!(prompts(&read(&script.concat())), ["Image located at `a.png`: describe it\nnow"]);
}
