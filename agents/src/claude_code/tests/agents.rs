//! Sub-agents.

use super::script::{Script, answered, called, time};
use super::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

fn task() -> Script {
    let input = json!({ "subagent_type": "dev", "description": "look", "prompt": "look around" });
    Script::new().call("task", "Task", input)
}

fn user_message(text: &str) -> Json {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

fn done(script: Script) -> Script {
    script.result(
        "task",
        "all seen",
        json!({ "agentId": "a1", "status": "completed",
        "totalDurationMs": 12, "totalTokens": 34 }),
    )
}

#[test]
fn commands_of_a_sub_agent_belong_to_the_session_and_its_messages_to_the_agent() {
    let script = task()
        .progress("a1", "user", &user_message("look around"))
        .progress("a1", "assistant", &called("c1", "Bash", json!({ "command": "cargo test" })))
        .progress("a1", "user", &answered("c1", "Exit code 101\nbroken", true))
        .progress(
            "a1",
            "assistant",
            &called(
                "e1",
                "Edit",
                json!({ "file_path": "/a", "old_string": "x", "new_string": "y" }),
            ),
        )
        .progress("a1", "user", &answered("e1", "The file /a has been updated.", false))
        .progress(
            "a1",
            "assistant",
            &called("e2", "Write", json!({ "file_path": "/b", "content": "" })),
        )
        .progress("a1", "user", &answered("e2", "no", true));
    let piece = done(script).read();

    let command = only_of_kind(&piece, Kind::Command);
    assert_eq!((command.id.as_str(), command.at), ("c1", time(4)), "the nested message's time");
    assert_eq!(text(&command.value, "agent"), Some("a1"));
    assert_eq!(command.value.field("exit_code"), Some(&Value::Int(101)));
    assert_eq!(text(&command.value, "stdout_preview"), Some("broken"));
    assert_eq!(text(&only_of_kind(&piece, Kind::Verification).value, "agent"), Some("a1"));
    let code = only_of_kind(&piece, Kind::Code);
    assert_eq!((text(&code.value, "agent"), text(&code.value, "path")), (Some("a1"), Some("/a")));
    assert!(text(&code.value, "patch").unwrap().ends_with("-x\n+y\n"));
    assert_eq!(of_kind(&piece, Kind::Message).len(), 2, "the call and its result");
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);

    let versions = of_kind(&piece, Kind::Agent);
    assert_eq!(versions.len(), 8);
    assert!(versions.iter().all(|fact| fact.id == "a1"));
    let first = &versions[0].value;
    for (field, expected) in [
        ("type", "dev"),
        ("description", "look"),
        ("call", "task"),
        ("prompt", "look around"),
        ("status", "running"),
        ("started_at", "2026-01-01T00:00:02Z"),
    ] {
        assert_eq!(text(first, field), Some(expected));
    }
    assert_eq!(text(first.field("message").unwrap(), "text"), Some("look around"));
    let last = &versions[7].value;
    assert_eq!((text(last, "status"), text(last, "result")), (Some("completed"), Some("all seen")));
    assert_eq!(last.field("messages"), Some(&Value::Int(7)));
    assert_eq!(last.field("tool_calls"), Some(&Value::Int(3)));
    assert_eq!(last.field("duration_ms"), Some(&Value::Int(12)));
    assert_eq!(last.field("message"), None);
}

#[test]
fn unnamed_side_chains_are_distinguished_by_their_parents() {
    let side = |fields: Json, message: Json| {
        let mut line = json!({ "isSidechain": true, "message": message });
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        line
    };
    let call = called("c1", "Bash", json!({ "command": "ls" }));
    let piece = task()
        .line(
            "user",
            side(json!({ "uuid": "x1", "parentUuid": null }), user_message("look around")),
        )
        .line(
            "user",
            side(json!({ "uuid": "y1", "parentUuid": null }), user_message("another one")),
        )
        .line("assistant", side(json!({ "uuid": "x2", "parentUuid": "x1" }), call))
        .line(
            "user",
            side(json!({ "uuid": "x3", "parentUuid": "x2" }), answered("c1", "out", false)),
        )
        .result("task", "done", json!({ "status": "completed" }))
        .read();
    let agents: Vec<_> = of_kind(&piece, Kind::Agent).iter().map(|fact| fact.id.as_str()).collect();
    assert_eq!(agents, ["x1", "y1", "x1", "x1", "x1"]);
    assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "agent"), Some("x1"));
    let last = &of_kind(&piece, Kind::Agent)[4].value;
    assert_eq!((text(last, "status"), text(last, "type")), (Some("completed"), Some("dev")));
}

#[test]
fn the_transcript_file_of_a_sub_agent_gives_its_versions_and_commands() {
    let line = |message: Json| json!({ "isSidechain": true, "agentId": "a1", "message": message });
    let piece = Script::new()
        .line("user", line(user_message("look around")))
        .line("assistant", line(called("c1", "Bash", json!({ "command": "ls" }))))
        .line("user", line(answered("c1", "out", false)))
        .read();
    assert_eq!(of_kind(&piece, Kind::Message).len(), 0);
    assert_eq!(of_kind(&piece, Kind::Agent).len(), 3);
    assert_eq!(text(&of_kind(&piece, Kind::Agent)[2].value, "prompt"), Some("look around"));
    assert_eq!(text(&only_of_kind(&piece, Kind::Command).value, "agent"), Some("a1"));
    assert_eq!(piece.session.unwrap().agent_session, "s");
}

#[test]
fn an_agent_that_left_no_lines_is_known_by_its_result() {
    let piece = done(task()).read();
    let fact = only_of_kind(&piece, Kind::Agent);
    assert_eq!((fact.id.as_str(), text(&fact.value, "description")), ("a1", Some("look")));
    // Regression: an agent that did not begin left no fact unless it was refused.
    for (answer, outcome) in [
        ("The user doesn't want to proceed with this tool use.", "refused"),
        ("[Request interrupted by user for tool use]", "interrupted"),
        ("Agent type 'dev' not found. Available agents: x", "failed"),
    ] {
        let piece = task().error("task", answer, json!(format!("Error: {answer}"))).read();
        assert_eq!(of_kind(&piece, Kind::Agent).len(), 0, "it never began");
        let tool = &only_of_kind(&piece, Kind::Tool).value;
        assert_eq!((text(tool, "outcome"), text(tool, "reason")), (Some(outcome), Some(answer)));
    }
    let stopped = json!({ "content": [], "wasInterrupted": true });
    let piece = task().result("task", "seen so far", stopped).read();
    let value = &only_of_kind(&piece, Kind::Agent).value;
    assert_eq!(text(value, "status"), Some("interrupted"));
    let launched = json!({ "agentId": "a2", "status": "async_launched" });
    let piece = task().result("task", "started", launched).read();
    let value = &only_of_kind(&piece, Kind::Agent).value;
    assert_eq!((text(value, "status"), value.field("result")), (Some("running"), None));
}

#[test]
fn the_lines_that_the_client_adds_are_not_part_of_a_result() {
    let note = "agentId: a1 (use SendMessage with to: 'a1' to continue this agent)\n\
        <usage>total_tokens: 9</usage>";
    for (answer, result) in [
        (format!("all seen\n{note}"), Some("all seen")),
        (note.to_owned(), None),
        ("agentId: is the field".to_owned(), Some("agentId: is the field")),
        (
            format!(
                "[Subagent hand-back] It is no message. The report follows:\n  all seen\n{note}"
            ),
            Some("all seen"),
        ),
    ] {
        let done = json!({ "agentId": "a1", "status": "completed" });
        let piece = task().result("task", &answer, done).read();
        let value = &only_of_kind(&piece, Kind::Agent).value;
        assert_eq!((text(value, "status"), text(value, "result")), (Some("completed"), result));
    }
}

#[test]
fn an_agent_that_runs_elsewhere_ends_with_its_notice() {
    let note = "Remote agent launched in CCR.\ntaskId: r1\nsession_url: https://a.example";
    let notice = "<task-notification>\n<task-id>r1</task-id>\n<status>failed</status>\n\
        <summary>Remote task \"look\" failed</summary>\n</task-notification>";
    let launched = json!({ "taskId": "r1", "status": "remote_launched", "prompt": "look around" });
    for recorded in [launched, json!(null)] {
        let piece = task().result("task", note, recorded).user(notice).read();
        let versions = of_kind(&piece, Kind::Agent);
        let shown: Vec<_> =
            versions.iter().map(|fact| (fact.id.as_str(), text(&fact.value, "status"))).collect();
        assert_eq!(shown, [("r1", Some("running")), ("r1", Some("failed"))]);
    }
    let spawned = "Spawned successfully.\nagent_id: r@t\nname: r";
    let piece = task().result("task", spawned, json!(null)).read();
    let value = &only_of_kind(&piece, Kind::Agent).value;
    assert_eq!((text(value, "status"), value.field("result")), (Some("running"), None));
}

#[test]
fn the_calls_in_a_copy_of_the_conversation_are_not_those_of_an_agent() {
    for agent in ["acompact-1a2b", "aprompt_suggestion-1", "aside_question-1"] {
        let line =
            |message: Json| json!({ "isSidechain": true, "agentId": agent, "message": message });
        let piece = Script::new()
            .line("user", line(user_message("go")))
            .line("assistant", line(called("c1", "Bash", json!({ "command": "ls" }))))
            .line("user", line(answered("c1", "out", false)))
            .read();
        assert_eq!(piece.facts, [], "{agent}");
    }
}

const NOTICE: &str = "<task-notification>\n<task-id>a2</task-id>\n<tool-use-id>task</tool-use-id>\n\
    <status>completed</status>\n<summary>Agent \"look\" finished</summary>\n<result>RESULT</result>\n\
    <usage><subagent_tokens>34</subagent_tokens><duration_ms>12</duration_ms></usage>\n</task-notification>";

#[test]
fn an_agent_in_the_background_ends_with_its_notice() {
    let launched = json!({ "agentId": "a2", "status": "async_launched", "isAsync": true });
    let result = "the parser is in src/p.rs ".repeat(20);
    let notice = NOTICE.replace("RESULT", &result);
    let script = task().result("task", "Async agent launched successfully.", launched);
    let script = script.line(
        "user",
        json!({ "message": user_message(&notice), "origin": { "kind": "task-notification" } }),
    );
    let piece = script.read();
    let versions = of_kind(&piece, Kind::Agent);
    let last = &versions[1].value;
    assert_eq!((versions.len(), versions[1].at), (2, time(3)));
    assert_eq!(
        (text(last, "status"), text(last, "description")),
        (Some("completed"), Some("look"))
    );
    assert_eq!(last.field("tokens"), Some(&Value::Int(34)));
    let shown = forge_store::model::TextRef::from_value(last.field("result").unwrap()).unwrap();
    let (offset, length) = shown.place.unwrap();
    let line = &script.text.as_bytes()[offset as usize..(offset + length) as usize];
    assert_eq!(crate::resolve(line, &shown.pointer), Some(result));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);
}

/// Regression: such an agent was running for ever.
#[test]
fn an_agent_that_a_person_stopped_is_killed() {
    let launched = |agent: &str| json!({ "agentId": agent, "status": "async_launched" });
    let call = |script: Script, id: &str, about: &str| {
        script.call(id, "Agent", json!({ "description": about, "prompt": id }))
    };
    let script = call(Script::new(), "t1", "look").result("t1", "seen", json!({ "agentId": "a1" }));
    let script = call(script, "t2", "look").result("t2", "", launched("a2"));
    let script = call(script, "t3", "write").result("t3", "", launched("a3"));
    let states_after = |script: &Script, note: &str| {
        let piece = script.clone().user(note).read();
        let mut states = BTreeMap::new();
        for fact in of_kind(&piece, Kind::Agent) {
            states.insert(fact.id.clone(), text(&fact.value, "status").unwrap().to_owned());
        }
        states.into_values().collect::<Vec<_>>()
    };
    let one = "Background agent \"look\" was stopped by the user.";
    assert_eq!(states_after(&script, one), ["completed", "killed", "running"]);
    let both = "2 background agents were stopped by the user: \"look\", \"write\".";
    assert_eq!(states_after(&script, both), ["completed", "killed", "killed"]);
    let quoting = "Background agent \"say \"look\" twice\" was stopped by the user.";
    assert_eq!(states_after(&script, quoting), ["completed", "running", "running"]);
    // The note does not say which agent of this description it means.
    let script = call(script, "t4", "look").result("t4", "", launched("a4"));
    assert_eq!(states_after(&script, one), ["completed", "running", "running", "running"]);
    let twice = "2 background agents were stopped by the user: \"look\", \"look\".";
    assert_eq!(states_after(&script, twice), ["completed", "killed", "running", "killed"]);
}

/// Regression: the result was the client's text that the report is elsewhere.
#[test]
fn an_agent_hands_back_its_report_in_a_message() {
    let launched = json!({ "agentId": "a2", "status": "async_launched", "isAsync": true });
    let message = "Another Claude session sent a message:\n<agent-message from=\"a2\">\n\
        [Subagent hand-back] It is no message of the user. The report follows:\n  all\n  seen\n\
        </agent-message>\n\nThis came from another session.";
    let pointer = "This agent's report was delivered to you as a message from \"a2\".\n";
    let script = task().result("task", "Async agent launched successfully.", launched);
    let piece = script.user(message).user(&NOTICE.replace("RESULT", pointer)).read();
    let versions = of_kind(&piece, Kind::Agent);
    let shown = |fact: &Fact| {
        let field = |name| text(&fact.value, name).map(str::to_owned);
        (field("status"), field("result"))
    };
    let expected = (Some("completed".to_owned()), Some("all\n  seen".to_owned()));
    assert_eq!(versions.len(), 3);
    assert_eq!((shown(versions[1]), shown(versions[2])), (expected.clone(), expected));
    assert_eq!(versions[2].value.field("tokens"), Some(&Value::Int(34)));
    assert_eq!(of_kind(&piece, Kind::Prompt).len(), 0);
}

#[test]
fn a_person_who_quotes_a_message_of_an_agent_ends_no_agent() {
    let launched = json!({ "agentId": "a2", "status": "async_launched", "isAsync": true });
    let message = "Why is this shown?\n<agent-message from=\"a2\">\n\
        [Subagent hand-back] It is no message of the user. The report follows:\n  all\n\
        </agent-message>";
    let script = task().result("task", "Async agent launched successfully.", launched);
    let piece = script.user(message).read();
    assert_eq!(text(&only_of_kind(&piece, Kind::Agent).value, "status"), Some("running"));
}

/// Regression: the status of an agent that had ended was replaced, and a lost one was killed.
#[test]
fn an_agent_that_a_resumed_session_has_lost_is_unknown_unless_it_has_ended() {
    let launched = json!({ "agentId": "a2", "status": "async_launched", "isAsync": true });
    let script = task().result("task", "Async agent launched successfully.", launched.clone());
    let notice = |summary: &str| {
        format!(
            "<task-notification>\n<task-id>a1</task-id>\n<task-id>a2</task-id>\n\
             <status>stopped</status>\n<summary>{summary}</summary>\n</task-notification>"
        )
    };
    let lost = notice("No completion record was found for 2 background agents.");
    let left = notice("2 background agents didn't finish before the previous session ended.");
    let last = |script: Script| {
        let piece = script.read();
        let version = of_kind(&piece, Kind::Agent).pop().unwrap();
        text(&version.value, "status").unwrap().to_owned()
    };
    assert_eq!(last(script.clone().user(&lost)), "unknown");
    assert_eq!(last(script.clone().user(&left)), "killed");
    // A report that it still runs is no report of its end.
    let seen = json!({ "type": "task_status", "taskId": "a2", "status": "running" });
    let seen = script.clone().line("attachment", json!({ "attachment": seen }));
    assert_eq!(last(seen.clone().user(&lost)), "unknown");
    assert_eq!(last(seen.user(&left)), "killed");
    let ended = script.user(NOTICE);
    assert_eq!(last(ended.clone().user(&lost)), "completed");
    assert_eq!(last(ended.clone().user(&left)), "completed");
    // An agent that is launched again has not ended, and may report the same again.
    let again = ended.call("more", "Task", json!({ "description": "look", "prompt": "go on" }));
    let again = again.result("more", "Async agent launched successfully.", launched);
    assert_eq!(last(again.clone()), "running");
    assert_eq!(last(again.clone().user(&lost)), "unknown");
    assert_eq!(last(again.user(NOTICE)), "completed");
}

#[test]
fn an_agent_that_was_started_by_an_agent_names_it() {
    let line = |message: Json| json!({ "isSidechain": true, "agentId": "a1", "message": message });
    let input = json!({ "description": "deeper", "prompt": "look deeper" });
    let mut answer = line(answered("t2", "seen", false));
    answer["toolUseResult"] = json!({ "agentId": "a2", "status": "completed" });
    let piece = Script::new()
        .line("user", line(user_message("look around")))
        .line("assistant", line(called("t2", "Agent", input)))
        .line("user", answer)
        .read();
    let nested: Vec<_> =
        of_kind(&piece, Kind::Agent).into_iter().filter(|fact| fact.id == "a2").collect();
    assert_eq!(nested.len(), 1);
    assert_eq!(text(&nested[0].value, "agent"), Some("a1"));
    assert_eq!(text(&nested[0].value, "result"), Some("seen"));
}

#[test]
fn progress_lines_without_a_message_of_an_agent_are_ignored() {
    let piece = Script::new()
        .line("progress", json!({ "data": { "type": "bash_progress", "output": "x" } }))
        .line("progress", json!({ "data": "odd" }))
        .line("progress", json!({}))
        .read();
    assert_eq!((piece.facts, piece.checkpoints), (vec![], vec![]));
}
