//! The brief that an agent gets after a compaction.

use super::call;
use super::player::{Player, data};
use crate::environment::Environment;
use crate::transcript::{call as called, line, result, small};
use forge_store::model::Timestamp;
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    let begin = Timestamp::parse_rfc3339("2026-01-28T10:00:00Z").unwrap();
    begin.plus_micros(second * 1_000_000)
}

const SUMMARY: &str =
    "It was about a test. H1 is confirmed: stale cache entries. Changed src/other.rs.";

/// Plays a session with claims, up to the announcement of its compaction.
fn session_before_compaction() -> Player {
    let mut player = Player::new("cc-1");
    player.append(&small()[..10].concat());
    player.hook("Stop", at(413), json!({}));
    for (second, args) in [
        (420, ["hypothesis", "add", "the cache returns stale entries", "--id", "H1"].as_slice()),
        (421, &["hypothesis", "confirm", "H1", "--reason", "seen in the log"]),
        (422, &["hypothesis", "add", "the scheduler starves readers", "--id", "H2"]),
        (423, &["hypothesis", "reject", "H2", "--reason", "queue is empty"]),
        (
            424,
            &["gap", "add", "which upstream version?", "--id", "G1", "--criticality", "critical"],
        ),
        (
            425,
            &["belief", "add", "writes go through the journal", "--kind", "decision", "--id", "B1"],
        ),
    ] {
        player.run_at(at(second), args);
    }
    player.run_at(at(426), &["verification", "add", "unit suite", "--status", "failed"]);
    player.hook("PreCompact", at(499), json!({"trigger": "auto"}));
    player
}

#[test]
fn the_handover_contains_everything_that_matters() {
    let mut player = session_before_compaction();
    let text = player.hook("SessionStart", at(500), json!({"source": "compact"})).unwrap();
    for part in [
        "The context was compacted at 2026-01-28T10:08:19Z (auto)",
        "Confirmed:\n- H1",
        "the cache returns stale entries [because seen in the log]",
        "Rejected:\n- H2",
        "Decided:\n- B1: writes go through the journal",
        "Open gaps that block:\n- G1 (critical): which upstream version?",
        "Failing checks:\n- unit suite: failed at 10:07Z",
        "Last prompt (10:00Z): why does the test fail?",
        "Files changed, the latest first: /w/a.rs.",
        "git commit -m fixed: exit 0",
        "Tasks not done:\n- fix it",
        "Commits:\n- abc1234 fixed",
        "`forge checkpoint show '#",
    ] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    assert!(!text.contains("does not mention"), "no summary is known yet");
    assert!(text.encode_utf16().count() <= 4000);
    // The brief is delivered once, even if the agent is restarted.
    assert_eq!(player.hook("SessionStart", at(501), json!({"source": "compact"})), None);
    assert_eq!(player.hook("SessionStart", at(502), json!({"source": "resume"})), None);
    // The summary comes late. What it leaves out is reported once.
    let more = json!({"trigger": "auto", "compact_summary": SUMMARY});
    player.hook("PostCompact", at(503), more);
    let loss = player.hook("UserPromptSubmit", at(504), json!({"prompt": "go on"})).unwrap();
    assert!(loss.contains("- hypothesis H2 (rejected): the scheduler starves readers"), "{loss}");
    assert!(loss.contains("- gap G1 (critical)") && loss.contains("- decision B1"), "{loss}");
    assert!(loss.contains("changed files a.rs"), "{loss}");
    assert!(!loss.contains("H1"), "{loss}");
    assert_eq!(player.hook("UserPromptSubmit", at(505), json!({"prompt": "and?"})), None);
}

/// Regression: of prompts with the same time, only one was handed back.
#[test]
fn prompts_with_the_same_time_are_all_handed_back_in_their_order() {
    let mut player = Player::new("cc-1");
    for (id, text) in [("z", "first use the cache"), ("y", "then the journal"), ("x", "and test")] {
        let asked = format!("\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}");
        player.append(&line(5, "user", &asked).replace("\"u0-5\"", &format!("\"{id}\"")));
    }
    player.hook("PreCompact", at(499), json!({"trigger": "auto"}));
    let text = player.hook("SessionStart", at(500), json!({"source": "compact"})).unwrap();
    let expected = "Last prompt (10:00Z): and test\nPrompts before it, the latest first:\n- then \
                    the journal\n- first use the cache\n";
    assert!(text.contains(expected), "{text}");
}

/// Regression: what a person answered to a question of the agent was only in the story.
#[test]
fn answers_to_questions_of_the_agent_are_handed_back() {
    let mut player = Player::new("cc-1");
    player.append(&small()[..10].concat());
    let asked = r#"{"questions":[{"question":"Keep the old name?"}]}"#;
    let answered = r#"{"answers":{"Keep the old name?":"no, but alias it"}}"#;
    player.append(&called(420, "q1", "AskUserQuestion", asked));
    player.append(&result(421, "q1", "The user answered.", answered));
    player.hook("PreCompact", at(499), json!({"trigger": "auto"}));
    let text = player.hook("SessionStart", at(500), json!({"source": "compact"})).unwrap();
    let expected = "Last prompt (10:00Z): why does the test fail?\nAnswers after it, the latest \
                    first:\n- no, but alias it (to: Keep the old name?)\n";
    assert!(text.contains(expected), "{text}");
    let brief = player.json(&["brief"]);
    let texts: Vec<&Value> =
        brief["prompts"].as_array().unwrap().iter().map(|line| &line["text"]).collect();
    assert_eq!(texts, ["no, but alias it", "why does the test fail?"]);
}

/// Regression: five answers took the places of all prompts in the brief.
#[test]
fn answers_to_questions_do_not_replace_prompts() {
    let mut player = Player::new("cc-1");
    player.append(&small()[..10].concat());
    for n in 0..6 {
        let (id, question) = (format!("q{n}"), format!("Which name for part {n}?"));
        let asked = json!({"questions": [{"question": question}]}).to_string();
        let answered = json!({"answers": {question: format!("name {n}")}}).to_string();
        player.append(&called(420 + 2 * n, &id, "AskUserQuestion", &asked));
        player.append(&result(421 + 2 * n, &id, "The user answered.", &answered));
    }
    player.hook("Stop", at(500), json!({}));
    let brief = player.json(&["brief"]);
    let texts: Vec<&Value> =
        brief["prompts"].as_array().unwrap().iter().map(|line| &line["text"]).collect();
    let expected = ["name 5", "name 4", "name 3", "name 2", "name 1", "why does the test fail?"];
    assert_eq!(texts, expected);
}

/// Regression: the agent of a fork got what was known at the last compaction of the other session.
/// Its conversation contains that text already, and has gone on since.
#[test]
fn the_agent_of_a_fork_does_not_get_the_brief_of_the_other_session() {
    let mut player = session_before_compaction();
    player.append(&small()[10..].concat());
    player.hook("SessionStart", at(505), json!({"source": "compact"})).unwrap();
    let copied = "\"sessionId\":\"cc-2\",\"forkedFrom\":{\"sessionId\":\"cc-1\"}";
    let lines = small().concat().replace("\"sessionId\":\"cc-1\"", copied);
    player.session = "cc-2".to_owned();
    player.transcript = player.environment.path("home/fork.jsonl");
    std::fs::write(&player.transcript, lines).unwrap();
    let text = player.hook("SessionStart", at(520), json!({"source": "fork"})).unwrap();
    assert!(text.contains("forge session join") && !text.contains("compacted"), "{text}");
    assert_eq!(player.hook("UserPromptSubmit", at(521), json!({"prompt": "use integers"})), None);
    player.hook("Stop", at(530), json!({}));
    assert_eq!(player.hook("UserPromptSubmit", at(531), json!({"prompt": "and?"})), None);
    assert_eq!(player.session().summary().unwrap().info.name, "use integers");
    assert_eq!(player.compactions().len(), 1);
    // No hook announced the compaction to the fork.
    let doctor = player.environment.command(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(doctor["agents"][0]["compactions_missed"], 0, "{doctor}");
}

#[test]
fn a_brief_begins_with_what_a_known_summary_leaves_out() {
    let mut player = session_before_compaction();
    player.hook("PostCompact", at(500), json!({"compact_summary": SUMMARY}));
    let text = player.hook("SessionStart", at(501), json!({"source": "compact"})).unwrap();
    let second = text.lines().nth(1).unwrap();
    assert!(
        second.starts_with("The agent's own summary does not mention: hypothesis H2; "),
        "{text}"
    );
    assert_eq!(player.hook("UserPromptSubmit", at(505), json!({"prompt": "and?"})), None);
}

#[test]
fn a_manual_checkpoint_with_the_tag_compaction_hides_no_compaction() {
    let mut player = session_before_compaction();
    player.hook("PostCompact", at(500), json!({"compact_summary": SUMMARY}));
    player.run_at(at(501), &["checkpoint", "create", "after it", "--tags", "compaction"]);
    let list = player.json(&["compaction", "list", "--limit", "1"]);
    assert_eq!(list["compactions"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["compactions"][0]["phase"], "done", "{list}");
}

#[test]
fn a_person_sees_compactions_and_what_was_lost() {
    let mut player = session_before_compaction();
    player.hook("PostCompact", at(500), json!({"compact_summary": SUMMARY}));
    let list = player.json(&["compaction", "list"]);
    let one = &list["compactions"][0];
    assert_eq!((&one["phase"], &one["trigger"]), (&"done".into(), &"auto".into()));
    assert_eq!((&one["lost"], &one["handed_at"]), (&json!(6), &Value::Null), "{one}");
    let shown = player.json(&["compaction", "show"]);
    assert_eq!(shown["schema"], "forge.compaction.show/1");
    assert_eq!(shown["summary"], SUMMARY);
    let lost: Vec<(&str, &str)> = shown["lost"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["kind"].as_str().unwrap(), one["id"].as_str().unwrap()))
        .collect();
    let failing =
        shown["lost"].as_array().unwrap().iter().find(|one| one["kind"] == "failing check");
    assert!(failing.is_some_and(|one| one["text"] == "unit suite"), "{lost:?}");
    assert_eq!(lost[..3], [("hypothesis", "H2"), ("decision", "B1"), ("gap", "G1")]);
    let number = one["sequence"].as_u64().unwrap().to_string();
    let mut command = player.environment.command(["compaction", "show", &format!("#{number}")]);
    let text = player.environment.finished(command.env("FORGE_SESSION", "cc-1")).success();
    assert!(text.contains("leaves out 6 of "), "{text}");
    let output = player.environment.forge(["compaction", "show", "#9999"]);
    assert_eq!(output.code, 3, "{output}");
}

/// A summary repeats few prompts, so the brief has the instructions and refusals that the summary
/// leaves out.
#[test]
fn the_brief_has_instructions_and_refusals_that_the_summary_left_out() {
    let mut player = Player::new("cc-1");
    let prompt = |second, text: &str| {
        line(second, "user", &format!("\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}"))
    };
    player.append(&prompt(0, "never touch the generated parser tables"));
    player.append(&prompt(1, "please look into the flaky upload test"));
    player.append(&called(2, "c1", "Bash", "{\"command\":\"git push --force\"}"));
    let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. \
                   if it was a file edit, the new_string was NOT written to the file). To tell you how to \
                   proceed, the user said:\nmain is protected";
    player.append(&format!(
        "{}\n",
        json!({
            "type": "user", "uuid": "u3", "sessionId": "cc-1", "timestamp": "2026-01-28T10:00:03Z",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": refused}
            ]}
        })
    ));
    player.append(&prompt(4, "go on with the upload test"));
    let before = player.hook("PreCompact", at(5), json!({"trigger": "auto"})).unwrap();
    for part in [
        "Keep these in the summary",
        "- instruction: never touch the generated parser tables\n",
        "- refused: git push --force\n",
        "- prompt: please look into the flaky upload test\n",
    ] {
        assert!(before.contains(part), "{part:?} in:\n{before}");
    }
    assert!(before.find("instruction") < before.find("refused"), "{before}");
    let summary = "We looked into the upload test, which is flaky.";
    player.hook("PostCompact", at(6), json!({"compact_summary": summary}));
    let text = player.hook("SessionStart", at(7), json!({"source": "compact"})).unwrap();
    assert!(text.contains("does not mention: refused 'git push --force'."), "{text}");
    assert!(
        text.contains(
            "Refused, not to be tried again:\n- git push --force [because main is protected]"
        ),
        "{text}"
    );
    let shown = player.json(&["compaction", "show"]);
    let lost: Vec<&str> =
        shown["lost"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(lost, ["never touch the generated parser tables", "git push --force"], "{shown}");
    let brief = player.json(&["brief"]);
    assert_eq!(brief["refused"][0]["reason"], "main is protected", "{brief}");
}

/// An answer such as `1` says nothing without its question, and what is wanted is often at the end
/// of a long prompt.
#[test]
fn the_last_prompt_has_its_question_and_its_whole_text() {
    let said = |second, role: &str, text: &str| {
        let content = json!({"role": role, "content": [{"type": "text", "text": text}]});
        line(second, role, &format!("\"message\":{content}"))
    };
    let handed = |prompt: &str| {
        let mut player = Player::new("cc-1");
        player.append(&said(0, "user", "write a plan for the lease"));
        player.append(&said(1, "assistant", "The plan is saved. Which approach do you want?"));
        player.append(&said(2, "user", prompt));
        player.hook("PreCompact", at(5), json!({"trigger": "auto"}));
        player.hook("SessionStart", at(6), json!({"source": "compact"})).unwrap()
    };
    let text = handed("1");
    let expected = "Last prompt (10:00Z): 1 (to: Which approach do you want?)\n";
    assert!(text.contains(expected), "{text}");
    let long = format!("{}now fix the lease", "a line of the log ".repeat(20));
    let text = handed(&long);
    assert!(text.contains(&format!("Last prompt (10:00Z): {long}")), "{text}");
    let text = handed(&format!("{}now fix the lease", "a line of the log ".repeat(60)));
    assert!(text.contains("Last prompt (10:00Z): a line of the log"), "{text}");
    assert!(text.contains("now fix the lease\n"), "{text}");
}

/// Only the last commit of a command has a checkpoint, and a quiet one has neither hash nor subject.
#[test]
fn the_brief_has_each_commit_of_a_command() {
    let mut player = Player::new("cc-1");
    let command = json!({"command": "git commit -m one && git add b && git commit -m two"});
    let printed = "[main 1111111] one\n 1 file changed\n[main 2222222] two\n 1 file changed";
    let quiet = json!({"command": "git commit -q --amend --no-edit"});
    for (second, id, input, stdout) in [(0, "c1", command, printed), (2, "c2", quiet, "")] {
        player.append(&called(second, id, "Bash", &input.to_string()));
        let noted = json!({"stdout": stdout, "stderr": ""}).to_string();
        player.append(&result(second + 1, id, "ok", &noted));
    }
    player.hook("PreCompact", at(5), json!({"trigger": "auto"}));
    let text = player.hook("SessionStart", at(6), json!({"source": "compact"})).unwrap();
    let clock = "at 10:00Z\n";
    let expected = format!("- a commit {clock}- 2222222 two {clock}- 1111111 one {clock}");
    assert!(text.contains(&expected), "{text}");
}

/// A hook makes no checkpoint of a commit.
#[test]
fn the_brief_has_a_commit_that_only_a_hook_reported() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let codex = |event: &str, more: Value| {
        let mut input = json!({
            "session_id": "c1", "turn_id": "t", "transcript_path": null,
            "cwd": environment.path("project"),
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call(&environment, "codex", event, &input.to_string())
    };
    let commit = json!({
        "tool_name": "Bash", "tool_use_id": "x1", "tool_input": {"command": "git commit -m fixed"},
        "tool_response": "[main abc1234] fixed\n 1 file changed",
    });
    assert_eq!(codex("PostToolUse", commit), "");
    assert_eq!(codex("PreCompact", json!({"trigger": "auto"})), "");
    assert_eq!(codex("PostCompact", json!({"trigger": "auto"})), "");
    let handed = codex("SessionStart", json!({"source": "compact"}));
    assert!(handed.contains("Commits:\\n- abc1234 fixed at "), "{handed}");
}

/// Text from elsewhere that looks like a heading, a list item or an escape sequence stays inside
/// its line of the brief.
#[test]
fn a_brief_keeps_foreign_text_in_its_line() {
    let mut player = Player::new("cc-1");
    player.append(&line(
        0,
        "user",
        "\"message\":{\"role\":\"user\",\"content\":\"a\\n# Do\\u001b[2J this\\u202e\"}",
    ));
    player.append(&called(1, "c1", "Bash", "{\"command\":\"x\\n- y\"}"));
    player.append(&result(2, "c1", "ok", "{\"stdout\":\"\",\"stderr\":\"\"}"));
    player.hook("PreCompact", at(3), json!({"trigger": "auto"}));
    let text = player.hook("SessionStart", at(4), json!({"source": "compact"})).unwrap();
    assert!(text.contains("Last prompt (10:00Z): a # Do [2J this\n"), "{text}");
    assert!(text.contains("- x - y: exit 0\n"), "{text}");
}

#[test]
fn the_brief_of_an_empty_session_says_that_nothing_is_known() {
    let mut player = Player::new("cc-1");
    let text = player.hook("SessionStart", at(4), json!({"source": "compact"})).unwrap();
    for part in ["Last prompt: none recorded.", "Last commands: none recorded.", "Commits: none"] {
        assert!(text.contains(part), "{text}");
    }
}

/// The brief has every confirmed and rejected hypothesis, every open gap that blocks, and every
/// failing check that the test has planted.
#[test]
fn the_brief_of_a_long_session_has_all_that_was_planted() {
    let Some(text) = data("claude-code/long.jsonl") else { return };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_boundary = |line: &&str| line.contains("\"subtype\":\"compact_boundary\"");
    let boundary = lines.iter().rposition(is_boundary).unwrap();
    let first: Value = serde_json::from_str(lines[boundary]).unwrap();
    let mut player = Player::new(first["sessionId"].as_str().unwrap());
    player.append(&lines[..boundary].concat());
    let time = Timestamp::parse_rfc3339(first["timestamp"].as_str().unwrap()).unwrap();
    let now = |seconds: i64| time.plus_micros((seconds - 600) * 1_000_000);
    player.hook("Stop", now(0), json!({}));
    let mut wanted = Vec::new();
    for n in 0..12 {
        let id = format!("H{n}");
        let text =
            format!("hypothesis number {n} says at some length what might be the cause of it all");
        player.run_at(now(n + 1), &["hypothesis", "add", &text, "--id", &id]);
        let verb = if n % 2 == 0 { "confirm" } else { "reject" };
        player.run_at(
            now(n + 20),
            &["hypothesis", verb, &id, "--reason", "the log of the run shows it"],
        );
        wanted.push(format!("- {id}: hypothesis number {n} "));
    }
    for n in 0..8 {
        let id = format!("G{n}");
        let text = format!("what nobody knows yet, number {n}");
        player
            .run_at(now(n + 60), &["gap", "add", &text, "--id", &id, "--criticality", "critical"]);
        wanted.push(format!("- {id} (critical)"));
    }
    for n in 0..6 {
        let name = format!("suite {n}");
        player.run_at(now(n + 80), &["verification", "add", &name, "--status", "failed"]);
        wanted.push(format!("- {name}: failed"));
    }
    player.hook("PreCompact", now(599), json!({"trigger": "manual"}));
    let text = player.hook("SessionStart", time, json!({"source": "compact"})).unwrap();
    let missing: Vec<_> = wanted.iter().filter(|part| !text.contains(*part)).collect();
    assert!(missing.is_empty(), "{missing:?} in:\n{text}");
    assert!(text.encode_utf16().count() <= 4000, "{}", text.encode_utf16().count());
}

/// Plays a session with many hypotheses, and returns what its summary should keep.
fn session_with_hypotheses(count: u32) -> (Player, String) {
    let mut player = Player::new("cc-1");
    player.append(&small()[..2].concat());
    player.hook("Stop", at(10), json!({}));
    let idea = |n: u32| {
        let text = format!("the worker {n} loses its lease, and what follows is a long reason");
        let value = json!({"description": text, "status": "active"});
        let put = json!({"kind": "hypothesis", "id": format!("H{n}"), "value": value});
        format!("{}\n", json!({"at": at(20).to_string(), "put": put}))
    };
    player.environment.write("home/ideas.jsonl", &(0..count).map(idea).collect::<String>());
    let path = player.environment.path("home/ideas.jsonl");
    player.run_at(
        at(30),
        &["--session", "why does the test fail?", "import", "events", path.to_str().unwrap()],
    );
    let keep = player.hook("PreCompact", at(40), json!({"trigger": "auto"})).unwrap();
    (player, keep)
}

/// Regression: to keep to 4,000 characters, hypotheses were handed back without their texts.
#[test]
fn a_brief_with_many_hypotheses_takes_the_room_that_it_needs_for_their_texts() {
    let (mut player, _) = session_with_hypotheses(100);
    let text = player.hook("SessionStart", at(41), json!({"source": "compact"})).unwrap();
    for n in 0..100 {
        let line = format!("- H{n}: the worker {n} loses its lease");
        assert!(text.contains(&line), "{line} in:\n{text}");
    }
    assert!(text.encode_utf16().count() > 4000);
}

/// Regression: what is after many hypotheses in the list was only counted.
#[test]
fn the_texts_of_what_a_summary_should_keep_are_shortened_before_any_is_left_out() {
    let (_, keep) = session_with_hypotheses(50);
    assert!(keep.encode_utf16().count() <= 4000);
    assert!(keep.contains("- hypothesis H49 (active): the worker 49 loses its lease"), "{keep}");
    assert!(keep.contains("- prompt: why does the test fail?\n"), "{keep}");
    let (_, keep) = session_with_hypotheses(100);
    assert!(keep.encode_utf16().count() <= 4000);
    assert!(keep.contains(" more\n`forge brief` shows all of it.\n"), "{keep}");
}

#[test]
fn agents_without_a_start_after_a_compaction_get_the_brief_before_the_next_turn() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let project = environment.path("project");
    let project = project.to_str().unwrap();
    let cursor = |event: &str, more: &str| {
        let input = format!("{{\"conversation_id\":\"g1\",\"cwd\":\"{project}\"{more}}}");
        call(&environment, "cursor", event, &input)
    };
    assert_eq!(cursor("beforeSubmitPrompt", ",\"prompt\":\"find it\""), "{}\n");
    assert_eq!(cursor("preCompact", ",\"trigger\":\"auto\""), "{}\n");
    let answer = cursor("sessionStart", "");
    assert!(answer.contains("A compaction of the context was announced at"), "{answer}");
    assert_eq!(cursor("sessionStart", ""), "{}\n");
    let opencode = |event: &str| {
        let input = format!("{{\"sessionID\":\"o1\",\"directory\":\"{project}\"}}");
        call(&environment, "opencode", event, &input)
    };
    // The brief goes into the prompt for the summary, and into each later request to the model.
    assert!(opencode("session.compacting").contains("{\"context\":[\"forge keeps a record"));
    assert_eq!(opencode("session.compacted"), "{}\n");
    let handed = opencode("chat.system.transform");
    assert!(handed.contains("{\"context\":[\"forge keeps a record"));
    assert_eq!(opencode("chat.system.transform"), handed);
    let codex = |event: &str, more: &str| {
        let input = format!(
            "{{\"session_id\":\"c1\",\"turn_id\":\"t\",\"transcript_path\":null,\"cwd\":\"{project}\"{more}}}"
        );
        call(&environment, "codex", event, &input)
    };
    assert_eq!(codex("PreCompact", ",\"trigger\":\"auto\""), "");
    assert_eq!(codex("PreCompact", ",\"trigger\":\"auto\""), "");
    assert_eq!(codex("PostCompact", ",\"trigger\":\"auto\""), "");
    assert!(codex("SessionStart", ",\"source\":\"compact\"").contains("keeps a record"));
    assert_eq!(codex("SessionStart", ",\"source\":\"compact\""), "");
    let list = environment.forge(["--session", "c1", "compaction", "list", "--json"]).json();
    assert_eq!(list["compactions"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn commands_of_the_hooks_page_work() {
    let mut player = session_before_compaction();
    player.hook("PostCompact", at(500), json!({"compact_summary": SUMMARY}));
    let number = player.compactions()[0].checkpoint.sequence;
    let page = include_str!("../../../../docs/hooks.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ forge ")).collect();
    assert!(commands.len() >= 3);
    for command in commands {
        let command = command.replace("'#12'", &format!("#{number}"));
        let words: Vec<&str> = command.split_whitespace().collect();
        let output = player.environment.finished(&mut player.environment.command(words));
        assert_eq!(output.code, 0, "{command}: {output}");
        assert!(!output.stdout.is_empty(), "{command}");
    }
}
