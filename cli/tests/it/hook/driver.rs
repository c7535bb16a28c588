//! An agent works, its transcript grows, and its context is compacted. Its hooks are called in
//! time, twice, in another order, or not at all, or they are killed. Afterwards nothing is missing
//! or duplicated, and the checkpoints have the right times.

use super::player::{Player, data, imported, reference};
use crate::transcript::{line, small};
use forge_cli::compaction::CompactionPhase;
use forge_store::model::Timestamp;
use forge_testkit::skip::skipped;
use serde_json::{Value, json};

/// A step around a compaction: an event of a hook, or lines of the transcript.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `PreCompact`, 50 s before the boundary's time, while the last lines are not on disk yet.
    Pre,
    /// `PreCompact`, so late that the boundary is on disk.
    LatePre,
    /// This many calls of `PreCompact` at the same time.
    Pres(usize),
    /// `SessionStart` with source `compact`, half a second before the boundary's time.
    Start,
    Starts(usize),
    /// `PostCompact` with the summary.
    Post,
    Posts(usize),
    /// A hook of this event, killed after the test has counted to this number.
    Killed(&'static str, u64),
    /// Boundary and summary are written to disk.
    Lines,
    /// The next prompt.
    Prompt,
}
use Step::{Killed, LatePre, Lines, Post, Posts, Pre, Pres, Prompt, Start, Starts};

const ORDERS: [&[Step]; 9] = [
    &[Pre, Start, Lines, Post, Prompt],
    &[Pre, Start, Post, Lines, Prompt],
    &[Pre, Pre, Pre, Start, Start, Lines, Post, Post, Prompt, Prompt],
    &[Post, Pre, Start, Lines, Prompt],
    &[Start, Lines, Prompt],
    &[Lines, Prompt],
    &[Lines, LatePre, Post, Start, Prompt],
    &[Pres(3), Starts(3), Posts(3), Lines, Prompt],
    &[
        Killed("PreCompact", 30_000),
        Pre,
        Killed("PreCompact", 3_000_000),
        Killed("SessionStart", 2_000_000),
        Killed("PostCompact", 5_000_000),
        Start,
        Killed("SessionStart", 9_000_000),
        Lines,
        Post,
        Prompt,
    ],
];

fn field(line: &str, name: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    Some(line.get(name)?.as_str()?.to_owned())
}

fn time_of(line: &str) -> Option<Timestamp> {
    Timestamp::parse_rfc3339(&field(line, "timestamp")?)
}

/// Plays a whole transcript with its compactions in this order of steps.
fn play(lines: &[&str], order: &[Step]) -> Player {
    let session = lines.iter().rev().find_map(|line| field(line, "sessionId")).unwrap();
    let mut player = Player::new(&session);
    let boundaries: Vec<usize> = (0..lines.len())
        .filter(|place| field(lines[*place], "subtype").as_deref() == Some("compact_boundary"))
        .collect();
    let mut at = 0;
    for boundary in boundaries {
        // The conversation up to here, with a `Stop` event in the middle of it.
        let middle = at + (boundary - at) / 2;
        player.append(&lines[at..middle].concat());
        let now = lines[at..middle].iter().rev().find_map(|line| time_of(line));
        if let Some(now) = now {
            player.hook("Stop", now.plus_micros(500_000), json!({}));
        }
        // The last lines are written to disk late.
        let late = boundary.saturating_sub(2).max(middle);
        player.append(&lines[middle..late].concat());
        let time = time_of(lines[boundary]).unwrap();
        let last = lines[..boundary].iter().filter_map(|line| time_of(line)).max();
        let announced = last.map_or(time.plus_micros(-50_000_000), |last| last.plus_micros(1));
        let announced = announced.min(time.plus_micros(-1_000_000));
        let summary: Value = serde_json::from_str(lines[boundary + 1]).unwrap();
        let summary = summary["message"]["content"].as_str().unwrap();
        // A hook gets the summary without the sentence that the transcript puts before it.
        let summary = summary.split_once("\n\n").map_or(summary, |(_, rest)| rest);
        let compacted = json!({"trigger": "auto", "compact_summary": summary});
        let auto = json!({"trigger": "auto", "custom_instructions": ""});
        let compact = json!({"source": "compact"});
        let started = time.plus_micros(-500_000);
        let mut late_lines = Some(lines[late..boundary].concat());
        for step in order {
            match step {
                Pre => {
                    player.hook("PreCompact", announced, auto.clone());
                    player.append(&late_lines.take().unwrap_or_default());
                }
                LatePre => {
                    player.hook("PreCompact", time.plus_micros(2_000_000), auto.clone());
                }
                Pres(times) => player.at_once(*times, "PreCompact", announced, &auto),
                Start => {
                    player.hook("SessionStart", started, compact.clone());
                }
                Starts(times) => player.at_once(*times, "SessionStart", started, &compact),
                Post => {
                    player.hook("PostCompact", time.plus_micros(100_000), compacted.clone());
                }
                Posts(times) => {
                    player.at_once(*times, "PostCompact", time.plus_micros(100_000), &compacted);
                }
                Killed(event, steps) => {
                    let (at, more) = match *event {
                        "PreCompact" => (announced, &auto),
                        "SessionStart" => (started, &compact),
                        _ => (time.plus_micros(100_000), &compacted),
                    };
                    player.killed(event, at, more, *steps);
                }
                Lines => {
                    player.append(&late_lines.take().unwrap_or_default());
                    player.append(&lines[boundary..boundary + 2].concat());
                }
                Prompt => {
                    let prompt = json!({"prompt": "go on"});
                    player.hook("UserPromptSubmit", time.plus_micros(3_000_000), prompt);
                }
            }
        }
        at = boundary + 2;
    }
    player.append(&lines[at..].concat());
    let end = lines.iter().filter_map(|line| time_of(line)).max().unwrap();
    player.hook("Stop", end.plus_micros(1_000_000), json!({}));
    player.hook("SessionEnd", end.plus_micros(2_000_000), json!({"reason": "other"}));
    player
}

/// Checks that everything was recorded once, that each compaction has the boundary's time, and that
/// each brief was delivered once.
#[track_caller]
fn check(player: &Player, lines: &[&str], order: &[Step], reference: &[String]) {
    let known = imported(&player.session());
    let missing: Vec<_> = reference.iter().filter(|line| !known.contains(line)).collect();
    let more: Vec<_> = known.iter().filter(|line| !reference.contains(line)).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "{order:?}: missing {missing:#?}\nmore {more:#?}"
    );
    let times: Vec<Timestamp> = lines
        .iter()
        .filter(|line| field(line, "subtype").as_deref() == Some("compact_boundary"))
        .filter_map(|line| time_of(line))
        .collect();
    let compactions = player.compactions();
    let found: Vec<Timestamp> = compactions.iter().map(|one| one.checkpoint.time).collect();
    assert_eq!(found, times, "{order:?}");
    let hooks = order.iter().any(|step| !matches!(step, Lines | Prompt));
    for one in &compactions {
        assert_eq!(one.phase(), CompactionPhase::Recorded, "{order:?}");
        assert!(one.handed_at().is_some() && one.is_loss_settled(), "{order:?}: {one:?}");
        let announced = order.iter().any(|step| matches!(step, Pre | Pres(_)));
        let late = matches!(order.first(), Some(Post));
        assert_eq!(one.announced_at().is_some(), announced && !late, "{order:?}");
        assert_eq!(one.done_at().is_some(), hooks, "{order:?}");
    }
    let whole = player.delivered.iter().filter(|text| text.contains("keeps a record")).count();
    assert_eq!(whole, times.len(), "{order:?}: {:#?}", player.delivered);
    let losses = player.delivered.iter().filter(|text| text.contains("does not mention")).count();
    assert!(losses <= times.len(), "{order:?}: {:#?}", player.delivered);
}

fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[test]
fn a_small_session_is_saved_and_its_brief_given_in_any_order_of_hooks() {
    let text = small().concat();
    let lines = lines_of(&text);
    let reference = reference(&text);
    for order in ORDERS {
        let player = play(&lines, order);
        check(&player, &lines, order, &reference);
    }
}

#[test]
fn recorded_sessions_are_saved_and_their_briefs_given_in_any_order_of_hooks() {
    for name in ["review-e2e", "long"] {
        let Some(text) = data(&format!("claude-code/{name}.jsonl")) else { return };
        let lines = lines_of(&text);
        let reference = reference(&text);
        for order in ORDERS.iter().skip(1).step_by(2).chain(ORDERS.last()) {
            let player = play(&lines, order);
            check(&player, &lines, order, &reference);
        }
    }
}

#[test]
fn a_recorded_session_is_saved_at_each_of_its_saved_moments() {
    for name in ["small", "long"] {
        let Some(text) = data(&format!("claude-code/{name}.jsonl")) else { return };
        let cuts = data(&format!("claude-code/{name}.cuts.json")).unwrap();
        let cuts: Value = serde_json::from_str(&cuts).unwrap();
        let session = lines_of(&text).iter().rev().find_map(|line| field(line, "sessionId"));
        let mut player = Player::new(&session.unwrap());
        let mut at = 0;
        for cut in cuts["cuts"].as_array().unwrap() {
            let end = usize::try_from(cut["bytes"].as_u64().unwrap()).unwrap();
            player.append(&text[at..end.max(at)]);
            at = end.max(at);
            let now = Timestamp::parse_rfc3339(cut["saved_at"].as_str().unwrap()).unwrap();
            player.hook("Stop", now, json!({}));
        }
        player.append(&text[at..]);
        let end = lines_of(&text).iter().filter_map(|line| time_of(line)).max().unwrap();
        player.hook("SessionEnd", end.plus_micros(1), json!({"reason": "other"}));
        assert_eq!(imported(&player.session()), reference(&text), "{name}");
    }
}

#[test]
fn an_announced_compaction_that_does_not_follow_is_kept_and_marked() {
    let text = small();
    let mut player = Player::new("cc-1");
    player.append(&text[..10].concat());
    let announced = Timestamp::parse_rfc3339("2026-01-28T10:06:55Z").unwrap();
    player.hook("PreCompact", announced, json!({"trigger": "auto"}));
    assert_eq!(player.compactions()[0].phase(), CompactionPhase::Announced);
    // The conversation continues.
    let message = "\"message\":{\"role\":\"user\",\"content\":\"never mind\"}";
    player.append(&line(450, "user", message));
    let prompt = Timestamp::parse_rfc3339("2026-01-28T10:07:31Z").unwrap();
    assert_eq!(player.hook("UserPromptSubmit", prompt, json!({"prompt": "x"})), None);
    let known = player.compactions();
    assert_eq!((known.len(), known[0].phase()), (1, CompactionPhase::NotFollowed));
    assert_eq!(known[0].checkpoint.message, "context compaction announced (auto), none followed");
    assert_eq!(known[0].checkpoint.time, announced);
    assert_eq!(player.json(&["story"])["findings"]["compactions"], 0);
    assert_eq!(player.environment.forge(["at", "last compaction"]).code, 3);
    let mut command = player.environment.command(["compaction", "show"]);
    let shown = player.environment.finished(command.env("FORGE_SESSION", "cc-1")).success();
    assert!(shown.contains("the agent was handed none of it"), "{shown}");
    assert!(!shown.contains("What the agent is handed"), "{shown}");
    // A later compaction is another one, even if its hooks were never called.
    player.append(&text[10..].concat());
    player.hook("Stop", prompt.plus_micros(90_000_000), json!({}));
    let phases: Vec<CompactionPhase> = player.compactions().iter().map(|one| one.phase()).collect();
    assert_eq!(phases, [CompactionPhase::NotFollowed, CompactionPhase::Recorded]);
}

#[test]
fn an_announcement_after_newer_lines_is_another_compaction() {
    let text = small();
    let mut player = Player::new("cc-1");
    player.append(&text[..2].concat());
    let now = Timestamp::parse_rfc3339("2026-01-28T10:00:10Z").unwrap();
    let manual = json!({"trigger": "manual"});
    player.hook("PreCompact", now, manual.clone());
    player.hook("PreCompact", now.plus_micros(1), manual.clone());
    assert_eq!(player.compactions().len(), 1);
    // This line has the time 10:00:09, but is on disk only now.
    player.append(&text[2]);
    player.hook("PreCompact", now.plus_micros(2), manual.clone());
    assert_eq!(player.compactions().len(), 1);
    // This line has the time 10:00:12.
    player.append(&text[3]);
    player.hook("PreCompact", now.plus_micros(2_100_000), manual);
    assert_eq!(player.compactions().len(), 2);
}

#[test]
fn sessions_of_two_agents_in_one_project_stay_separate() {
    let mine = small().concat();
    let other = mine.replace("cc-1", "cc-2").replace("\"uuid\":\"u", "\"uuid\":\"v");
    let mut player = Player::new("cc-1");
    let theirs = player.environment.path("home/other.jsonl");
    std::fs::write(&theirs, &other).unwrap();
    player.append(&mine);
    let now = Timestamp::parse_rfc3339("2026-01-28T10:09:00Z").unwrap();
    player.hook("Stop", now, json!({}));
    player.hook("Stop", now, json!({"session_id": "cc-2", "transcript_path": theirs}));
    player.hook("Stop", now, json!({}));
    let one = imported(&player.session());
    assert_eq!(one, reference(&mine));
    player.session = "cc-2".to_owned();
    assert_eq!(imported(&player.session()), reference(&other));
}

/// A hook is killed at each of its writes, syncs and renames in turn. The next hook must finish its
/// work.
#[test]
fn a_hook_killed_at_any_of_its_writes_loses_and_repeats_nothing() {
    const CALLS: &str = "write,pwrite64,fdatasync,fsync,rename,renameat,renameat2,unlink";
    let text = small().concat();
    let lines = lines_of(&text);
    let reference = reference(&lines[..10].concat());
    let announced = Timestamp::parse_rfc3339("2026-01-28T10:06:55Z").unwrap();
    let auto = json!({"trigger": "auto"});
    let compact = json!({"source": "compact"});
    for (event, more) in [("PreCompact", &auto), ("SessionStart", &compact)] {
        let mut kills = 0;
        for n in 1..200 {
            let mut player = Player::new("cc-1");
            player.append(&lines[..10].concat());
            if event == "SessionStart" {
                player.hook("PreCompact", announced, auto.clone());
            }
            let (hook, input) = player.prepared(event, announced.plus_micros(1), more.clone());
            let Some(output) = killed_at(&hook, &input, CALLS, n) else { return };
            let ended = output.status.success();
            if ended {
                player.take_answer(event, &String::from_utf8(output.stdout).unwrap());
            } else {
                kills += 1;
                player.hook(event, announced.plus_micros(2), more.clone());
            }
            assert_eq!(imported(&player.session()).len(), reference.len() + 1, "{event} {n}");
            let known = player.compactions();
            assert_eq!(known.len(), 1, "{event} {n}");
            if event == "SessionStart" {
                let whole = player.delivered.len();
                // The hook was killed after it had recorded that its answer was complete.
                let late = !ended && known[0].handed_at() == Some(announced.plus_micros(1));
                assert_eq!(whole, usize::from(!late), "{n}: {:#?}", player.delivered);
            }
            if ended {
                break;
            }
        }
        assert!(kills > 3, "{event}: {kills} kills");
    }
}

/// Runs a hook and kills it at the n-th of these calls; reports a skip and returns `None` if that
/// is not possible.
fn killed_at(
    hook: &std::process::Command,
    input: &str,
    calls: &str,
    n: u32,
) -> Option<std::process::Output> {
    use std::io::Write;
    let trace = format!("trace={calls}");
    let kill = format!("inject={calls}:signal=KILL:when={n}");
    let args = ["-f", "-q", "-o", "/dev/null", "-e", &trace, "-e", &kill];
    let mut command = super::traced(hook, args);
    let Ok(mut child) = command.spawn() else {
        skipped("killed hooks", "no strace, so they were not killed at each of their writes");
        return None;
    };
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("PTRACE") {
        skipped("killed hooks", "strace may not trace here");
        return None;
    }
    Some(output)
}
