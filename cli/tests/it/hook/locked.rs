//! Hooks next to a process that never releases the lock, and on a damaged store.

use super::log;
use super::player::Player;
use crate::fault::hold_lock_frozen;
use crate::transcript::small;
use forge_cli::compaction::CompactionPhase;
use forge_store::model::{Kind, Timestamp};
use serde_json::json;
use std::path::PathBuf;

fn at(second: i64) -> Timestamp {
    let begin = Timestamp::parse_rfc3339("2026-01-28T10:00:00Z").unwrap();
    begin.plus_micros(second * 1_000_000)
}

/// The data is spooled, and the brief is delivered once.
#[test]
fn beside_a_frozen_process_a_hook_spools_and_the_agent_gets_its_brief() {
    let mut player = Player::new("cc-1");
    player.append(&small()[..10].concat());
    player.hook("Stop", at(413), json!({}));
    player.run_at(at(420), &["hypothesis", "add", "the cache is stale", "--id", "H1"]);
    player.run_at(at(421), &["hypothesis", "confirm", "H1", "--reason", "seen in the log"]);
    player.environment.write("project/.forge/config.toml", "lock_timeout = 0.05\n");
    let mut process = hold_lock_frozen(&player.environment, "journal/append.lock");
    player.hook("PreCompact", at(499), json!({"trigger": "auto"}));
    let summary = json!({"trigger": "auto", "compact_summary": "it was about something else"});
    player.append(&small()[10]);
    player.hook("PostCompact", at(500), summary);
    let text = player.hook("SessionStart", at(501), json!({"source": "compact"}));
    let again = player.hook("UserPromptSubmit", at(502), json!({"prompt": "go on"}));
    let known = player.compactions();
    process.kill().unwrap();
    process.wait().unwrap();
    let text = text.expect("reading needs no lock");
    for part in ["Confirmed:\n- H1", "does not mention: hypothesis H1", "(auto)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(again, None, "once is enough");
    assert_eq!((known.len(), known[0].phase()), (1, CompactionPhase::Done));
    assert!(known[0].handed_at().is_some() && known[0].is_loss_settled());
    // Once the lock is free, the spooled data is appended, and the transcript is imported.
    player.append(&small()[11..].concat());
    player.hook("Stop", at(600), json!({}));
    let known = player.compactions();
    assert_eq!((known.len(), known[0].phase()), (1, CompactionPhase::Recorded), "{known:#?}");
    assert!(known[0].handed_at().is_some() && known[0].announced_at() == Some(at(499)));
    assert_eq!(player.environment.path("project/.forge/spool").read_dir().unwrap().count(), 0);
    let log = log(&player.environment, super::LOG);
    assert!(log.iter().any(|line| line["error"].as_str().is_some_and(|it| it.contains("lock"))));
}

/// Damages the middle of the journal. Returns the path of the file and what was in it.
fn damage_journal(player: &Player) -> (PathBuf, Vec<u8>) {
    let journal = player.environment.path("project/.forge/journal/0000000000000000.log");
    let whole = std::fs::read(&journal).unwrap();
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    for byte in &mut damaged[middle..middle + 8] {
        *byte ^= 0x55;
    }
    std::fs::write(&journal, &damaged).unwrap();
    (journal, whole)
}

/// Regression: a session whose first prompt was spooled was named by the beginning of its id.
#[test]
fn a_session_that_begins_on_a_damaged_store_is_named_by_its_first_prompt() {
    let mut player = Player::of("cursor", "first");
    let prompt = |text: &str| json!({"prompt": text, "generation_id": text.len().to_string()});
    player.hook("beforeSubmitPrompt", at(1), prompt("look at the log"));
    player.hook("beforeSubmitPrompt", at(2), prompt("go on"));
    let (journal, whole) = damage_journal(&player);
    player.session = "second".to_owned();
    player.hook("beforeSubmitPrompt", at(3), prompt("\nfix  the parser:\nnow"));
    std::fs::write(&journal, &whole).unwrap();
    player.hook("stop", at(4), json!({}));
    assert_eq!(player.session().summary().unwrap().info.name, "fix the parser");
}

/// Events from before a repair are not lost.
#[test]
fn on_a_damaged_store_hook_events_are_spooled() {
    let mut player = Player::new("cc-1");
    let call = |id: &str| {
        json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "make"},
            "tool_response": {"stdout": "ok", "stderr": ""}})
    };
    player.hook("PostToolUse", at(1), call("c1"));
    player.hook("PostToolUse", at(2), call("c2"));
    let (journal, whole) = damage_journal(&player);
    player.hook("PostToolUse", at(3), call("c3"));
    assert_eq!(player.hook("PreCompact", at(4), json!({"trigger": "auto"})), None);
    // Nothing of this event is spooled, so its hook fails.
    player.hook("UserPromptSubmit", at(5), json!({"prompt": "go on"}));
    let outcomes: Vec<(String, bool)> = log(&player.environment, super::LOG)
        .iter()
        .skip(2)
        .map(|line| (line["outcome"].as_str().unwrap().to_owned(), line["error"].is_string()))
        .collect();
    let expected = |outcome: &str| (outcome.to_owned(), true);
    assert_eq!(outcomes, [expected("saved"), expected("saved"), expected("failed")]);
    std::fs::write(&journal, &whole).unwrap();
    player.hook("PostToolUse", at(6), call("c4"));
    let session = player.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    let commands = state.facts_of(Kind::Command).unwrap();
    let ids: Vec<&str> = commands.iter().map(|known| known.fact.id.as_str()).collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4"]);
    let known = player.compactions();
    assert_eq!((known.len(), known[0].announced_at()), (1, Some(at(4))));
}
