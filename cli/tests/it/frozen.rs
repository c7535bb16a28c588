//! A process that is frozen at any point. Wherever a writing `forge` is stopped, hooks and people
//! can save and read in the meantime, and once it continues, no write is lost.

#![allow(clippy::print_stderr, reason = "a seed must be seen")]

use crate::environment::Environment;
use crate::hook::{run_hook, traced};
use crate::transcript::small;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{CheckpointFilter, ClaimChange, Options, Session, Store, WriteContext};
use forge_testkit::fault::{SeededNumbers, can_inject_faults, copy, count};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Command;

/// The system calls after which a process is stopped: those that change files, or lock them.
const CALLS: [&str; 11] = [
    "write", "pwrite64", "fdatasync", "fsync", "rename", "link", "unlink", "ftruncate", "mkdir",
    "flock", "fcntl",
];

/// The commands that are stopped, with their input.
const STOPPED: [(&str, &[&str]); 4] = [
    // The tail is long, so the index is updated afterwards.
    ("create", &["checkpoint", "create", "stopped"]),
    ("import", &["import", "claude-code", "small.jsonl"]),
    (
        "prune",
        &[
            "checkpoint", "prune", "--keep-last", "1", "--drop-manual", "--keep-revisions", "0s",
            "--now", "--yes",
        ],
    ),
    ("hook", &["hook", "claude-code", "PostToolUse"]),
];

const NOTES: usize = 300;
const STORE: &str = "project/.forge";
const FOLDERS: [&str; 2] = ["project", "home"];

/// Returns the event of a hook after a command.
fn tool_event(environment: &Environment, session: &str) -> String {
    json!({
        "session_id": session,
        "hook_event_name": "PostToolUse",
        "cwd": environment.path("project"),
        "tool_name": "Bash",
        "tool_use_id": format!("call of {session}"),
        "tool_input": {"command": "make"},
        "tool_response": {"stdout": "ok", "stderr": ""},
    })
    .to_string()
}

/// Creates a store with an index, and a tail that is long enough for the next writer to apply it.
fn prepare(environment: &Environment) {
    environment.forge(["init", "--name", "s"]).success();
    // The maximum wait for the lock.
    environment.write("project/.forge/config.toml", "lock_timeout = 0.05\n");
    environment.write("project/small.jsonl", &small().concat());
    for name in ["one", "two", "three"] {
        environment.forge(["checkpoint", "create", name]).success();
    }
    environment.forge(["maintain"]).success();
    let keyring = Some(environment.path("home/.local/state/forge/keyring"));
    let options = Options::default().keyring(keyring);
    let store = Store::open(&environment.path(STORE), options).unwrap();
    let session = store.session("s").unwrap();
    for number in 0..NOTES {
        let time = Timestamp::from_micros(1_767_261_600_000_000 + number as i64);
        let value = Value::from([("description", format!("note {number}").into())]);
        let key = Key::new(Kind::Note, format!("n{number}"));
        let act = WriteContext::asked("test", time);
        session.write(&act).change(ClaimChange::add(key, value)).commit().unwrap();
    }
}

/// Restores the store, its key and its witness as they were before any command was stopped.
fn restore_start(environment: &Environment) {
    for folder in FOLDERS {
        let place = environment.path(folder);
        let _ = fs::remove_dir_all(&place);
        copy(&environment.path(&format!("first/{folder}")), &place);
    }
}

fn opened(environment: &Environment) -> Store {
    let options = Options::default().read_only(true);
    Store::open(&environment.path(STORE), options).unwrap()
}

fn facts(session: &Session, kind: Kind) -> usize {
    session.state(&session.head().unwrap()).unwrap().facts_of(kind).unwrap().len()
}

/// Returns how many facts of each kind the imported session has.
fn imported(store: &Store) -> Vec<usize> {
    let session = store.agent_session("cc-1").unwrap();
    let count = |session: Session| Kind::facts().map(|kind| facts(&session, kind)).collect();
    session.map_or_else(Vec::new, count)
}

/// Returns how often one thread of a command makes each of the calls, at most.
fn count_calls(environment: &Environment, args: &[&str]) -> BTreeMap<&'static str, usize> {
    let trace = environment.path("trace");
    let only = format!("trace={}", CALLS.join(","));
    let mut command =
        traced(&environment.command(args), ["-f", "-o", trace.to_str().unwrap(), "-e", &only]);
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(tool_event(environment, "stopped").as_bytes());
    assert!(child.wait_with_output().unwrap().status.success(), "{args:?}");
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for line in fs::read_to_string(&trace).unwrap().lines() {
        let (thread, call_text) = line.split_once(' ').unwrap_or_default();
        let call_text = call_text.trim_start();
        if let Some(call) = CALLS
            .into_iter()
            .find(|call| call_text.strip_prefix(*call).is_some_and(|rest| rest.starts_with('(')))
        {
            *counts.entry((call, thread.to_owned())).or_default() += 1;
        }
    }
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for ((call, _), count) in counts {
        let known = most.entry(call).or_default();
        *known = (*known).max(count);
    }
    most
}

/// Runs other commands while a process is frozen. None may wait longer than for a lock: a process
/// that hangs is killed, which its exit code shows.
fn run_others(environment: &Environment, what: &str) {
    let bounded = |args: &[&str]| {
        let command = environment.command(args);
        let mut bounded = Command::new("timeout");
        bounded
            .arg("300")
            .arg(command.get_program())
            .args(args)
            .current_dir(environment.path("project"))
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        bounded
    };
    run_hook(
        &mut bounded(&["hook", "claude-code", "PostToolUse"]),
        &tool_event(environment, "beside"),
    );
    let compaction = json!({
        "session_id": "beside",
        "hook_event_name": "PreCompact",
        "trigger": "auto",
        "cwd": environment.path("project"),
    });
    run_hook(&mut bounded(&["hook", "claude-code", "PreCompact"]), &compaction.to_string());
    for args in [&["note", "add", "beside", "--session", "s"][..], &["status"]] {
        let output = environment.finished(&mut bounded(args));
        assert_eq!(output.code, 0, "{what}: {args:?} {output}");
    }
    check_others(environment, what);
}

/// Checks that everything that [`run_others`] saved is there.
fn check_others(environment: &Environment, what: &str) {
    let store = opened(environment);
    let session = store.agent_session("beside").unwrap();
    let session = session.unwrap_or_else(|| panic!("{what}: no session of the hooks"));
    assert_eq!(facts(&session, Kind::Command), 1, "{what}");
    let made = session.checkpoints(&CheckpointFilter::default()).unwrap();
    assert_eq!(made.len(), 1, "{what}: {made:?}");
    let state = store.session("s").and_then(|s| s.state(&s.head()?)).unwrap();
    let notes = state.claims().entries().map(Result::unwrap).filter(|(key, entry)| {
        key.kind == Kind::Note
            && entry.value.field("description").and_then(Value::as_text) == Some("beside")
    });
    assert_eq!(notes.count(), 1, "{what}");
}

/// Stops a command at its n-th call of this name, and runs [`run_others`] meanwhile. Returns whether a
/// thread of the command made n of these calls.
fn run_stopped(environment: &Environment, args: &[&str], (call, nth): (&str, usize)) -> bool {
    restore_start(environment);
    let what = format!("{args:?} stopped at {call} {nth}");
    let trace = environment.path("fifo");
    let _ = fs::remove_file(&trace);
    assert!(Command::new("mkfifo").arg(&trace).status().unwrap().success());
    let only = format!("trace={call}");
    let inject = format!("inject={call}:signal=STOP:when={nth}");
    let arguments = ["-f", "-o", trace.to_str().unwrap(), "-e", &only, "-e", &inject];
    let mut child = traced(&environment.command(args), arguments).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(tool_event(environment, "stopped").as_bytes());
    let mut was_stopped = false;
    // Each of its threads may reach its n-th call.
    for line in BufReader::new(File::open(&trace).unwrap()).lines().map(Result::unwrap) {
        if !line.contains("--- stopped by SIGSTOP ---") {
            continue;
        }
        if !was_stopped {
            run_others(environment, &what);
            was_stopped = true;
        }
        let thread = line.split_whitespace().next().unwrap();
        // The thread may have ended by now, because each thread of the process reports the stop.
        let _ = Command::new("sh").args(["-c", &format!("kill -CONT {thread}")]).output();
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{what}: {stderr}");
    was_stopped
}

/// Checks that the command did its work, that no write was lost, and that the store is undamaged.
fn check_result(
    environment: &Environment,
    name: &str,
    what: &str,
    was_stopped: bool,
    reference: &[usize],
) {
    let added = environment.forge(["note", "add", "last", "--session", "s"]);
    assert_eq!(added.code, 0, "{what}: {added}");
    if was_stopped {
        check_others(environment, what);
    }
    let store = opened(environment);
    let session = store.session("s").unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    assert_eq!(state.claims().len(), NOTES + 1 + usize::from(was_stopped), "{what}");
    let messages: BTreeSet<String> = session
        .checkpoints(&CheckpointFilter::default())
        .unwrap()
        .into_iter()
        .map(|one| one.message)
        .collect();
    let has = |message: &str| messages.contains(message);
    match name {
        "create" => assert!(has("stopped") && has("one"), "{what}: {messages:?}"),
        // A checkpoint from the meantime may be the newest, and so the only one that is kept.
        "prune" => {
            assert!(!has("one") && !has("two") && !messages.is_empty(), "{what}: {messages:?}");
        }
        "import" => assert_eq!(imported(&store), reference, "{what}"),
        _ => {
            let own = store.agent_session("stopped").unwrap().expect("its hook was heard");
            assert_eq!(facts(&own, Kind::Command), 1, "{what}");
        }
    }
    let spool = environment.path(STORE).join("spool");
    let waiting = fs::read_dir(spool).map_or(0, Iterator::count);
    assert_eq!(waiting, 0, "{what}: nothing waits any more");
    let verified = environment.forge(["verify", "--read-data"]);
    assert_eq!(verified.code, 0, "{what}: {verified}");
}

/// Each command is stopped at `FORGE_FROZEN` of its calls (default 6), which `FORGE_SEED` chooses,
/// or at all of them if there are fewer.
#[test]
fn hooks_beside_a_process_stopped_at_any_call_save_and_lose_nothing() {
    let test = "stopped at calls";
    if !can_inject_faults(test) {
        return;
    }
    let wanted = count("FORGE_FROZEN", 6) as usize;
    let mut numbers = SeededNumbers::from_environment(test);
    let environment = Environment::new();
    prepare(&environment);
    for folder in FOLDERS {
        copy(&environment.path(folder), &environment.path(&format!("first/{folder}")));
    }
    let mut stops = BTreeMap::new();
    for (name, args) in STOPPED {
        restore_start(&environment);
        let counts = count_calls(&environment, args);
        let reference = imported(&opened(&environment));
        assert_eq!(reference.iter().sum::<usize>() > 5, name == "import", "{reference:?}");
        let mut places: Vec<_> =
            counts.iter().flat_map(|(call, count)| (1..=*count).map(|nth| (*call, nth))).collect();
        assert!(places.len() > 20, "{name}: {counts:?}");
        while places.len() > wanted {
            let out = numbers.below(places.len() as u64);
            places.swap_remove(out as usize);
        }
        for place in places {
            let was_stopped = run_stopped(&environment, args, place);
            let what = format!("{name} stopped at {place:?}");
            check_result(&environment, name, &what, was_stopped, &reference);
            *stops.entry(name).or_insert(0) += usize::from(was_stopped);
        }
    }
    let all: usize = stops.values().sum();
    let each: Vec<_> = stops.iter().map(|(name, count)| format!("{count} of {name}")).collect();
    eprintln!("{test}: {all} stops ({}), all saved beside them is there", each.join(", "));
    assert!(all > 2 * STOPPED.len(), "{stops:?}");
}
