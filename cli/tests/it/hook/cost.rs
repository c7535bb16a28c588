//! The cost of hooks. Calls and bytes are counted, because times depend on the machine.

use super::player::Player;
use super::trace_of_hook;
use crate::transcript::{line, small};
use forge_store::model::{Kind, Timestamp};
use serde_json::json;

fn at(second: i64) -> Timestamp {
    let begin = Timestamp::parse_rfc3339("2026-01-28T10:00:00Z").unwrap();
    begin.plus_micros(second * 1_000_000)
}

#[test]
fn a_tool_call_opens_no_index_runs_no_git_and_is_durable() {
    let mut player = Player::new("cc-1");
    player.append(&small().concat());
    player.hook("Stop", at(600), json!({}));
    player.environment.forge(["maintain"]).success();
    assert!(player.environment.path("project/.forge/index").read_dir().unwrap().count() > 1);
    let call = json!({"tool_name": "Bash", "tool_use_id": "c9", "tool_input": {"command": "cargo test"},
        "tool_response": {"stdout": "ok", "stderr": ""}});
    let (hook, input) = player.prepared("PostToolUse", at(610), call);
    let trace = player.environment.path("home/trace");
    let calls = ["-e", "trace=execve,openat,fdatasync,fsync"];
    let Some(trace) = trace_of_hook(&hook, &input, &calls, &trace) else { return };
    let lines = |what: &str| trace.lines().filter(|line| line.contains(what)).count();
    assert_eq!(lines("execve("), 1, "{trace}");
    // The list of generations may be read, but no generation may be opened.
    for file in ["MANIFEST", "CURRENT", ".sst", "/LOCK"] {
        assert_eq!(lines(file), 0, "{file}: {trace}");
    }
    // Without a remote, nothing about remotes is read.
    assert_eq!(lines("remotes"), 0, "{trace}");
    assert!(lines("journal/") > 0 && lines("fdatasync(") + lines("fsync(") > 0, "{trace}");
    let commands = player.session();
    let state = commands.state(&commands.head().unwrap()).unwrap();
    assert!(state.facts_of(Kind::Command).unwrap().iter().any(|known| known.fact.id == "c9"));
}

/// Of a transcript of any length, a hook reads the new bytes and a part of its end. The number of
/// syncs does not depend on the length either.
#[test]
fn before_a_compaction_only_the_new_part_of_a_transcript_is_read() {
    const NEW: usize = 200 << 10;
    let text = |from: usize, bytes: usize| {
        let mut text = String::new();
        let mut number = from;
        while text.len() < bytes {
            let message = format!("{number} ").repeat(2000);
            let message =
                format!("\"message\":{{\"role\":\"assistant\",\"content\":\"{message}\"}}");
            text += &line(u32::try_from(number).unwrap(), "assistant", &message);
            number += 1;
        }
        (text, number)
    };
    let cost = |length: usize| {
        let mut player = Player::new("cc-1");
        let (old, number) = text(0, length);
        player.append(&old);
        player.hook("Stop", at(10_000), json!({}));
        player.environment.forge(["maintain"]).success();
        player.append(&text(number, NEW).0);
        let (hook, input) = player.prepared("PreCompact", at(20_000), json!({"trigger": "auto"}));
        let trace = player.environment.path("home/trace");
        let calls = ["-y", "-e", "trace=read,pread64,readv,fdatasync,fsync"];
        let trace = trace_of_hook(&hook, &input, &calls, &trace)?;
        let read = |line: &str| line.rsplit(" = ").next()?.trim().parse::<usize>().ok();
        let of_transcript = trace.lines().filter(|line| line.contains("transcript.jsonl>"));
        let bytes: usize = of_transcript.filter_map(read).sum();
        let syncs = trace.lines().filter(|line| line.contains("sync(")).count();
        assert_eq!(player.compactions().len(), 1);
        Some((bytes, syncs))
    };
    let (Some(short), Some(long)) = (cost(1 << 20), cost(4 << 20)) else { return };
    // The new bytes, the end of the file for the last message and for the session, and twice the
    // block that was incomplete.
    let most = NEW + (256 << 10) + (64 << 10) + 2 * (64 << 10) + (64 << 10);
    assert!(short.0 <= most && long.0 <= most, "{short:?} {long:?}, at most {most}");
    assert_eq!(short.1, long.1, "syncs: {short:?} {long:?}");
    assert!(long.1 <= 3, "{long:?}");
}
