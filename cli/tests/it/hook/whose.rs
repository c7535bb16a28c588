//! The session of a command that an agent runs, and how an agent's session joins another session.

use super::player::Player;
use super::{call, log, run_hook};
use crate::transcript::{line, small};
use forge_store::model::{Kind, Timestamp};
use serde_json::json;

fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-01-28T10:09:00Z").unwrap()
}

fn claims(player: &Player, session: &str) -> usize {
    let session = player.store().session(session).unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    state.claims_of(Kind::Hypothesis).unwrap().len()
}

#[test]
fn commands_run_by_an_agent_are_recorded_in_its_session_and_the_answer_says_so() {
    let mut player = Player::new("cc-1");
    player.environment.forge(["session", "new", "mine"]).success();
    player.append(&small().concat());
    // The process of this test plays the agent, which runs the hook and the command.
    player.hook("UserPromptSubmit", now(), json!({"prompt": "go"}));
    player.environment.forge(["session", "use", "mine"]).success();
    let output = player.environment.forge(["hypothesis", "add", "by the agent", "--id", "H1"]);
    assert_eq!(output.code, 0, "{output}");
    let notice =
        "In session 'why does the test fail?' of the agent (claude) that ran this command.";
    assert!(output.stderr.contains(notice), "{output}");
    assert!(output.stdout.contains("why does the test fail?"), "{output}");
    assert_eq!(claims(&player, "cc-1"), 1);
    assert_eq!(claims(&player, "mine"), 0);
    // The JSON also shows it, however the session was chosen.
    for args in [["note", "add", "x", "--json"].as_slice(), &["hypothesis", "list", "--json"]] {
        let found = player.environment.finished(&mut player.environment.command(args)).json();
        assert_eq!(found["session_of_agent"], "claude", "{found}");
        assert_eq!(found["session"], "why does the test fail?");
    }
    // A session that is given explicitly has priority.
    let mut command = player.environment.command(["hypothesis", "add", "by a person"]);
    let output = player.environment.finished(command.env("FORGE_SESSION", "mine"));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(claims(&player, "mine"), 1);
    let mut command = player.environment.command(["hypothesis", "list", "--json"]);
    let found = player.environment.finished(command.env("FORGE_SESSION", "mine")).json();
    assert!(found.get("session_of_agent").is_none(), "{found}");
}

/// Regression: they were about the current session of the store, and other commands about that of
/// the agent.
#[test]
fn the_status_and_the_completions_in_an_agent_are_about_its_session() {
    let mut player = Player::new("cc-1");
    player.environment.forge(["session", "new", "mine"]).success();
    player.append(&small().concat());
    player.hook("UserPromptSubmit", now(), json!({"prompt": "go"}));
    let add = ["hypothesis", "add", "by the agent", "--id", "H1", "--confidence", "0.88"];
    assert_eq!(player.environment.forge(add).code, 0);
    player.environment.forge(["session", "use", "mine"]).success();
    let found = player.environment.forge(["status", "--json"]).json();
    assert_eq!(found["session"], "why does the test fail?", "{found}");
    assert_eq!(found["session_of_agent"], "claude", "{found}");
    let words = ["complete", "--", "forge", "hypothesis", "show", ""];
    assert!(player.environment.forge(words).success().starts_with("H1\t"));
    for line in ["statusline", "prompt-segment"] {
        assert!(player.environment.forge([line]).success().starts_with("H1 0.88"), "{line}");
        let mut command = player.environment.command([line]);
        let named = player.environment.finished(command.env("FORGE_SESSION", "mine"));
        assert_eq!(named.success(), "", "{line}");
    }
}

#[test]
fn the_session_is_exported_to_an_agents_shell_once() {
    let player = Player::new("cc-1");
    player.environment.write("home/env", "export A=1\n");
    let file = player.environment.path("home/env");
    for source in ["startup", "compact"] {
        let (mut command, input) =
            player.prepared("SessionStart", now(), json!({"source": source}));
        run_hook(command.env("CLAUDE_ENV_FILE", &file), &input);
    }
    let text = player.environment.read("home/env");
    assert_eq!(text, "export A=1\nexport FORGE_SESSION='cc-1'\n");
    // An id with shell metacharacters is not written.
    let wild = json!({"source": "startup", "session_id": "a'; rm -r x"});
    let (mut command, input) = player.prepared("SessionStart", now(), wild);
    run_hook(command.env("CLAUDE_ENV_FILE", &file), &input);
    assert_eq!(player.environment.read("home/env"), text);
    // The first record creates the session, although no hook has saved anything of it.
    let mut command = player.environment.command(["note", "add", "first"]);
    let output = player.environment.finished(command.env("FORGE_SESSION", "cc-1"));
    assert_eq!(output.code, 0, "{output}");
}

#[test]
fn a_new_session_gets_a_line_about_open_work_and_can_join_it() {
    let mut player = Player::new("cc-1");
    assert_eq!(player.hook("SessionStart", now(), json!({"source": "startup"})), None);
    player.append(&small().concat());
    player.hook("Stop", now(), json!({}));
    player.run_at(now(), &["--session", "cc-1", "hypothesis", "add", "stale", "--id", "H1"]);
    let later = now().plus_micros(3 * 3600 * 1_000_000);
    player.session = "cc-2".to_owned();
    player.transcript = player.environment.path("home/second.jsonl");
    let text = player.hook("SessionStart", later, json!({"source": "startup"})).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(
        text.contains("'why does the test fail?', ended 3 h ago and left open: 1 hypothesis"),
        "{text}"
    );
    let id = text.split("forge session join ").nth(1).unwrap().split('`').next().unwrap();
    // A resumed session is not a new one.
    assert_eq!(player.hook("SessionStart", later, json!({"source": "resume"})), None);
    let output = player.environment.forge(["session", "join", id, "--json"]).json();
    assert_eq!(output["agent_session"], "cc-2");
    assert_eq!(output["session"], "why does the test fail?");
    let second = small().concat().replace("cc-1", "cc-2").replace("\"uuid\":\"u", "\"uuid\":\"v");
    std::fs::write(&player.transcript, second).unwrap();
    player.hook("Stop", later, json!({}));
    assert_eq!(player.json(&["session", "list"])["sessions"].as_array().unwrap().len(), 1);
    let joined = player.session().summary().unwrap();
    assert_eq!(joined.sources.len(), 2, "{joined:?}");
    assert_eq!(joined.joined, ["cc-2"]);
    let log = log(&player.environment, "project/.forge/log/hooks.jsonl");
    assert!(log.iter().all(|line| line["outcome"] != "failed"), "{log:?}");
}

/// Regression: the events went to a new session that had the agent's id as its name.
#[test]
fn events_are_imported_into_the_session_of_an_agent_that_is_named_by_its_id() {
    let mut player = Player::new("cc-1");
    player.append(&small().concat());
    player.hook("Stop", now(), json!({}));
    let put = json!({"kind": "hypothesis", "id": "H1", "value": {"description": "one"}});
    let event = json!({"at": now().to_string(), "put": put});
    player.environment.write("project/idea.jsonl", &format!("{event}\n"));
    player.environment.forge(["--session", "cc-1", "import", "events", "idea.jsonl"]).success();
    assert_eq!(claims(&player, "why does the test fail?"), 1);
    assert_eq!(player.store().sessions().unwrap().len(), 1);
}

/// Regression: a short session that left nothing open hid the session before it.
#[test]
fn a_new_session_gets_a_line_about_the_last_session_that_left_something_open() {
    let mut player = Player::new("cc-1");
    player.append(&small().concat());
    player.hook("Stop", now(), json!({}));
    player.session = "cc-2".to_owned();
    player.transcript = player.environment.path("home/second.jsonl");
    let asked = line(600, "user", "\"message\":{\"role\":\"user\",\"content\":\"a question\"}");
    std::fs::write(&player.transcript, asked.replace("cc-1", "cc-2")).unwrap();
    let later = now().plus_micros(3600 * 1_000_000);
    player.hook("Stop", later, json!({}));
    assert_eq!(player.session().summary().unwrap().info.name, "a question");
    player.session = "cc-3".to_owned();
    player.transcript = player.environment.path("home/third.jsonl");
    let text = player.hook("SessionStart", later, json!({"source": "clear"})).unwrap();
    assert!(text.starts_with("forge: the last unfinished effort here, 'why does the"), "{text}");
}

/// Regression: a second agent read that the work of the first one had ended.
#[test]
fn a_new_session_is_given_the_name_of_the_session_in_which_another_agent_works() {
    let mut player = Player::new("cc-1");
    player.append(&small().concat());
    player.hook("Stop", now(), json!({}));
    player.run_at(now(), &["--session", "cc-1", "hypothesis", "add", "stale", "--id", "H1"]);
    player.session = "cc-2".to_owned();
    player.transcript = player.environment.path("home/second.jsonl");
    let start = |player: &mut Player| {
        player.hook("SessionStart", now(), json!({"source": "startup"})).unwrap()
    };
    assert!(start(&mut player).contains("ended "));
    // The process that started this test plays the first agent, which still runs.
    let pid = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let began: u64 =
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let noted = json!({"pid": pid, "began": began, "agent": "claude", "session": "cc-1"});
    player.environment.write(&format!("project/.forge/agents/{pid}.json"), &noted.to_string());
    let text = start(&mut player);
    let expected =
        "forge: another agent works here now, on 'why does the test fail?'. Open in it: ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn joining_needs_an_agent_session() {
    let player = Player::new("cc-1");
    player.environment.forge(["session", "new", "mine"]).success();
    let output = player.environment.forge(["session", "join", "mine"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("not called from an agent"), "{output}");
    assert!(output.stderr.contains("'forge session use NAME' chooses"), "{output}");
}

#[test]
fn an_event_without_a_session_is_ignored() {
    let player = Player::new("cc-1");
    assert_eq!(call(&player.environment, "claude", "Stop", "{}"), "");
    let log = log(&player.environment, "project/.forge/log/hooks.jsonl");
    assert_eq!(log[0]["outcome"], "ignored");
}

/// A worktree may be removed while the agent in it still runs.
#[test]
fn a_hook_in_a_removed_directory_writes_to_the_store_of_the_project() {
    let player = Player::new("cc-1");
    player.append(&small().concat());
    let project = player.environment.path("project");
    let calls = [
        ("PreCompact", project.join("gone"), Some(project.clone())),
        // Without `CLAUDE_PROJECT_DIR`, the store is found above the removed directory.
        ("Stop", project.join("gone/deeper"), None),
    ];
    for (event, cwd, named) in calls {
        let forge = env!("CARGO_BIN_EXE_forge");
        let line =
            format!("mkdir gone && cd gone && rmdir ../gone && exec '{forge}' hook claude {event}");
        let mut command = player.environment.shell(&line);
        if let Some(named) = named {
            command.env("CLAUDE_PROJECT_DIR", named);
        }
        let input = json!({"session_id": "cc-1", "transcript_path": player.transcript, "cwd": cwd,
            "hook_event_name": event, "trigger": "auto"});
        run_hook(&mut command, &input.to_string());
    }
    let known = player.compactions();
    assert!(known.iter().any(|one| one.announced_at().is_some()), "{known:#?}");
    let log = log(&player.environment, super::LOG);
    let outcomes: Vec<&str> = log.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes.len(), 2, "{log:?}");
    assert!(!outcomes.contains(&"failed"), "{log:?}");
}

/// Regression: in a worktree, Claude Code reported a transcript in the folder of the worktree and
/// wrote to the folder of the repository, so nothing was imported (anthropics/claude-code#44450).
#[test]
fn a_transcript_in_the_folder_of_another_project_is_found() {
    let mut player = Player::new("cc-1");
    player.environment.write("home/.claude/projects/-w/cc-1.jsonl", &small().concat());
    player.environment.write("home/.claude/projects/-w/cc-2.jsonl", "");
    let worktree = player.environment.path("home/.claude/projects/-w--claude-worktrees-x");
    player.transcript = worktree.join("cc-2-of-another.jsonl");
    player.hook("Stop", now(), json!({}));
    assert_eq!(commands(&player), 0);
    player.transcript = worktree.join("cc-1.jsonl");
    player.hook("Stop", now(), json!({}));
    assert!(commands(&player) > 0);
    // A path in the home directory.
    let mut player = Player::new("cc-1");
    player.environment.write("home/transcripts/cc-1.jsonl", &small().concat());
    player.transcript = "~/transcripts/cc-1.jsonl".into();
    player.hook("Stop", now(), json!({}));
    assert!(commands(&player) > 0);
}

fn commands(player: &Player) -> usize {
    let Ok(session) = player.store().session("cc-1") else { return 0 };
    // A session without records has no head.
    let Ok(head) = session.head() else { return 0 };
    let state = session.state(&head).unwrap();
    state.facts_of(Kind::Command).unwrap().len()
}
