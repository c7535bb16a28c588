//! Agents other than Claude Code: their transcripts are imported as they grow, and a compaction is
//! recorded once.

use super::player::{Player, imported, reference_of};
use forge_cli::compaction::CompactionPhase;
use forge_store::model::{Kind, Timestamp};
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    let begin = Timestamp::parse_rfc3339("2026-01-05T10:00:00Z").unwrap();
    begin.plus_micros(second * 1_000_000)
}

/// Returns the lines of a rollout, of which the fourth-last is a compaction.
fn rollout() -> Vec<String> {
    let line = |second: i64, kind: &str, payload: Value| {
        let line = json!({"timestamp": at(second).to_string(), "type": kind, "payload": payload});
        format!("{line}\n")
    };
    let message = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    vec![
        line(0, "session_meta", json!({"id": "c0de-1", "cwd": "/w", "git": {"branch": "main"}})),
        line(1, "event_msg", json!({"type": "user_message", "message": "fix the flaky test"})),
        line(
            5,
            "response_item",
            json!({"type": "function_call", "name": "shell_command", "call_id": "k1",
                "arguments": "{\"command\":\"cargo test\"}"}),
        ),
        line(
            9,
            "response_item",
            json!({"type": "function_call_output", "call_id": "k1",
                "output": "Exit code: 101\nOutput:\ntest result: FAILED. 1 failed\n"}),
        ),
        line(30, "response_item", message("assistant", "It is the clock.")),
        line(60, "compacted", json!({"message": "one test fails"})),
        line(60, "event_msg", json!({"type": "token_count"})),
        line(90, "event_msg", json!({"type": "user_message", "message": "go on"})),
        line(95, "response_item", message("assistant", "Done.")),
    ]
}

#[test]
fn a_codex_rollout_is_saved_and_its_brief_given_in_any_order_of_hooks() {
    let lines = rollout();
    let reference = reference_of("codex", &lines.concat());
    for order in [
        ["PreCompact", "lines", "PostCompact", "SessionStart", "UserPromptSubmit"],
        ["PreCompact", "PostCompact", "SessionStart", "lines", "UserPromptSubmit"],
        ["PreCompact", "lines", "UserPromptSubmit", "PostCompact", "SessionStart"],
        ["lines", "PostCompact", "PostCompact", "SessionStart", "SessionStart"],
        ["lines", "UserPromptSubmit", "UserPromptSubmit", "SessionStart", "PreCompact"],
    ] {
        let mut player = Player::of("codex", "c0de-1");
        player.append(&lines[..2].concat());
        player.hook("UserPromptSubmit", at(2), json!({"prompt": "fix the flaky test"}));
        let call = json!({"turn_id": "t", "tool_name": "Bash", "tool_use_id": "k1",
            "tool_input": {"command": "cargo test"}, "tool_response": "test result: FAILED"});
        player.hook("PostToolUse", at(9), call);
        player.append(&lines[2..5].concat());
        for step in order {
            match step {
                "lines" => player.append(&lines[5..7].concat()),
                "PreCompact" => {
                    player.hook(step, at(59), json!({"turn_id": "t", "trigger": "auto"}));
                }
                "PostCompact" => {
                    player.hook(step, at(61), json!({"turn_id": "t", "trigger": "auto"}));
                }
                "SessionStart" => {
                    player.hook(step, at(62), json!({"source": "compact"}));
                }
                step => {
                    player.hook(step, at(70), json!({"prompt": "go on"}));
                }
            }
        }
        player.append(&lines[7..].concat());
        player.hook("Stop", at(100), json!({}));
        assert_eq!(imported(&player.session()), reference, "{order:?}");
        let known = player.compactions();
        assert_eq!(known.len(), 1, "{order:?}: {known:#?}");
        assert_eq!(
            (known[0].phase(), known[0].checkpoint.time),
            (CompactionPhase::Recorded, at(60))
        );
        let whole = player.delivered.iter().filter(|text| text.contains("keeps a record")).count();
        assert_eq!(whole, 1, "{order:?}: {:#?}", player.delivered);
        assert!(player.delivered[0].contains("cargo test: exit 101"), "{:#?}", player.delivered);
        assert!(player.delivered[0].contains("Failing checks:"), "{:#?}", player.delivered);
        let session = player.session();
        assert_eq!(session.summary().unwrap().info.agent.as_deref(), Some("codex"));
    }
}

/// Codex keeps no rollout of an ephemeral thread, so there is nothing to import. No hook may fail
/// then.
#[test]
fn a_thread_without_a_rollout_is_saved_from_its_hooks() {
    let mut player = Player::of("codex", "c0de-1");
    let call = json!({"transcript_path": null, "tool_name": "Bash", "tool_use_id": "k1",
        "tool_input": {"command": "make"}, "tool_response": "ok"});
    player.hook("PostToolUse", at(9), call);
    player.hook("Stop", at(10), json!({"transcript_path": null}));
    let session = player.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    assert_eq!(state.facts_of(Kind::Command).unwrap().len(), 1);
    let log = super::log(&player.environment, super::LOG);
    assert!(log.iter().all(|line| line["outcome"] != "failed"), "{log:?}");
}

/// Regression: Codex writes the first line of a rollout before it calls the hook of the start, so
/// its sessions were named by the beginning of their ids.
#[test]
fn a_session_of_codex_is_named_by_its_first_prompt() {
    let lines = rollout();
    let mut player = Player::of("codex", "c0de-1");
    player.append(&lines[0]);
    player.hook("SessionStart", at(0), json!({"source": "startup"}));
    assert!(player.store().agent_session("c0de-1").unwrap().is_none());
    player.hook("UserPromptSubmit", at(1), json!({"prompt": "fix the flaky test\nplease"}));
    assert_eq!(player.session().summary().unwrap().info.name, "fix the flaky test");
    player.append(&lines[1..].concat());
    player.hook("Stop", at(100), json!({}));
    assert_eq!(imported(&player.session()), reference_of("codex", &lines.concat()));
}

fn recording() -> Vec<String> {
    let message = |second: i64, id: &str, kind: &str, more: Value| {
        let mut line = json!({"id": id, "timestamp": at(second).to_string(), "type": kind});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let call = |id: &str, command: &str, second: i64| {
        json!({"id": id, "name": "run_shell_command", "args": {"command": command},
            "status": "success", "timestamp": at(second).to_string(),
            "result": [{"functionResponse": {"response": {"output": "Output: ok\nExit Code: 0"}}}]})
    };
    vec![
        format!("{}\n", json!({"sessionId": "9e31", "startTime": at(0).to_string()})),
        message(1, "m1", "user", json!({"content": [{"text": "why is it slow?"}]})),
        message(
            2,
            "m2",
            "gemini",
            json!({"content": "Let me look.", "toolCalls": [call("t1", "cargo test", 9)]}),
        ),
        format!(
            "{}\n",
            json!({"$set": {"lastUpdated": at(60).to_string(), "messages": [
                {"id": "s1", "timestamp": at(60).to_string(), "type": "user",
                    "content": [{"text": "<state_snapshot>it is the index</state_snapshot>"}]}]}})
        ),
        message(90, "m3", "user", json!({"content": [{"text": "go on"}]})),
    ]
}

/// Gemini CLI calls `PreCompress` before each request, and has no event after a compaction: only
/// the recording shows it.
#[test]
fn a_gemini_recording_is_saved_and_its_brief_given_once_it_shows_a_compaction() {
    let lines = recording();
    let mut player = Player::of("gemini", "9e31");
    player.append(&lines[..2].concat());
    player.hook("BeforeAgent", at(1), json!({"prompt": "why is it slow?"}));
    player.hook("PreCompress", at(1), json!({"trigger": "auto"}));
    // The call has no id here, and is also in the recording: it must not be recorded twice.
    player.append(&lines[2]);
    let call = json!({"tool_name": "run_shell_command", "tool_input": {"command": "cargo test"},
        "tool_response": {"llmContent": "Output: ok\nExit Code: 0"}});
    assert_eq!(player.hook("AfterTool", at(9), call), None);
    player.hook("PreCompress", at(50), json!({"trigger": "auto"}));
    let commands = |player: &Player| {
        let session = player.session();
        let state = session.state(&session.head().unwrap()).unwrap();
        let facts = state.facts_of(Kind::Command).unwrap().into_iter();
        facts.map(|known| known.fact.id).collect::<Vec<_>>()
    };
    assert_eq!(commands(&player), ["t1"]);
    let points = player.session().checkpoints(&Default::default()).unwrap();
    assert_eq!(points[0].message, "a verification finished");
    assert_eq!(player.compactions(), []);
    // Then the agent compacts, and continues with a tool that is not a command.
    player.append(&lines[3]);
    let call = json!({"tool_name": "read_file", "tool_input": {"file_path": "a.rs"},
        "tool_response": {"llmContent": "text"}});
    let handed = player.hook("AfterTool", at(70), call.clone()).unwrap();
    assert!(handed.contains("keeps a record"), "{handed}");
    assert!(handed.contains("The agent's own summary mentions all of it."), "{handed}");
    assert_eq!(player.hook("AfterTool", at(71), call), None);
    player.append(&lines[4]);
    player.hook("PreCompress", at(95), json!({"trigger": "auto"}));
    player.hook("AfterAgent", at(100), json!({}));
    assert_eq!(player.hook("BeforeAgent", at(110), json!({"prompt": "and?"})), None);
    let known = player.compactions();
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].phase(), known[0].checkpoint.time), (CompactionPhase::Recorded, at(60)));
    assert_eq!(imported(&player.session()), reference_of("gemini", &lines.concat()));
}

/// OpenCode builds its system prompt for each request: the brief is in each of them, in the same
/// words, until the next compaction.
#[test]
fn each_request_after_a_compaction_gets_the_same_brief() {
    let mut player = Player::of("opencode", "ses_1");
    let prompt = json!({"messageID": "m1", "prompt": "never touch the lexer"});
    player.hook("chat.message", at(0), prompt.clone());
    player.hook("chat.message", at(0), prompt);
    let request = |player: &mut Player, second: i64| {
        player.hook("chat.system.transform", at(second), json!({}))
    };
    assert_eq!(request(&mut player, 1), None);
    let call = json!({"tool": "bash", "callID": "k1", "args": {"command": "cargo test"},
        "output": {"output": "test result: FAILED. 1 failed", "metadata": {"exit": 101}}});
    player.hook("tool.execute.after", at(5), call);
    player.hook("session.compacting", at(10), json!({}));
    assert_eq!(request(&mut player, 12), None, "the request for the summary");
    player.hook("session.compacted", at(15), json!({}));
    let first = request(&mut player, 16).unwrap();
    assert!(first.contains("Last prompt (10:00Z): never touch the lexer"), "{first}");
    assert!(first.contains("cargo test: exit 101"), "{first}");
    player.hook("chat.message", at(17), json!({"messageID": "m2", "prompt": "go on"}));
    player.hook("session.compacted", at(17), json!({}));
    assert_eq!(request(&mut player, 18).as_ref(), Some(&first));
    // Another compaction follows soon.
    player.hook("session.compacting", at(19), json!({}));
    player.hook("session.compacting", at(19), json!({}));
    player.hook("session.compacted", at(19), json!({}));
    let second = request(&mut player, 20).unwrap();
    assert!(second.contains("): go on"), "{second}");
    assert_eq!(request(&mut player, 200_000).as_ref(), Some(&second), "days later, too");
    assert_eq!(player.compactions().len(), 2);
    let session = player.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    let prompts = state.facts_of(Kind::Prompt).unwrap();
    let prompts: Vec<_> = prompts.iter().map(|known| known.fact.at).collect();
    assert_eq!(prompts, [at(0), at(17)], "each at its own time, and once");
}
