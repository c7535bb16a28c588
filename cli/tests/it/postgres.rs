//! Stores in a PostgreSQL database, through the command line. `FORGE_UPDATE_DOCS=1 cargo test -p
//! forge-cli postgres` updates the table of round trips in `docs/postgres.md`.

use crate::environment::Environment;
use forge_testkit::postgres::PostgresServer;
use forge_testkit::tcp_proxy::TcpProxy;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// What a command printed, and its exit code.
struct Done {
    text: String,
    code: i32,
}

fn run(environment: &Environment, command: &[&str]) -> Done {
    let output = environment.command(command).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Done { text: String::from_utf8(text).unwrap(), code: output.status.code().unwrap() }
}

fn finished(environment: &Environment, command: &[&str]) -> String {
    let done = run(environment, command);
    assert_eq!(done.code, 0, "{command:?}: {}", done.text);
    done.text
}

/// Makes a machine whose project creates or joins the store `team`.
fn machine(address: &str) -> Environment {
    let environment = Environment::new();
    finished(&environment, &["init", "--at", address, "--name", "team", "--unsealed"]);
    environment
}

#[test]
fn two_machines_write_to_one_store_and_see_each_other_at_once() {
    let Some(server) = PostgresServer::start("two machines") else { return };
    let address = server.new_database();
    let (one, other) = (machine(&address), machine(&address));
    let text = finished(&one, &["hypothesis", "add", "the cache is stale"]);
    assert!(text.contains("H1"), "{text}");
    assert!(finished(&other, &["hypothesis", "list"]).contains("the cache is stale"));
    let text = finished(&other, &["hypothesis", "add", "the clock is wrong"]);
    assert!(text.contains("H2"), "{text}");
    finished(&one, &["maintain"]);
    assert!(finished(&one, &["hypothesis", "list"]).contains("the clock is wrong"));
    assert!(finished(&other, &["verify", "--read-data"]).contains("Clean."));
    let text = finished(&other, &["doctor"]);
    assert!(text.contains("Nothing is wrong."), "{text}");
    assert!(text.contains("in a database: team in postgres://"), "{text}");
    assert!(text.contains("(PostgreSQL "), "{text}");
}

/// Regression: a text that another machine had purged stayed in the copy for searching.
#[test]
fn a_search_shows_nothing_that_another_machine_has_purged() {
    let Some(server) = PostgresServer::start("search after a purge") else { return };
    let address = server.new_database();
    let (one, other) = (machine(&address), machine(&address));
    finished(&one, &["note", "add", "word the-secret-value-1234 here"]);
    assert!(finished(&other, &["search", "word"]).contains("the-secret-value-1234"));
    one.write("project/secret", "the-secret-value-1234");
    assert_eq!(run(&one, &["purge", "secret", "--yes", "--vacuum"]).code, 0);
    let text = finished(&other, &["search", "word"]);
    assert!(text.contains("here") && !text.contains("the-secret-value-1234"), "{text}");
}

/// A restored backup lacks acknowledged writes. It is refused until it is adopted.
#[test]
fn a_database_that_was_set_back_is_refused_until_it_is_adopted() {
    for sealed in [false, true] {
        let Some(server) = PostgresServer::start("set back") else { return };
        let address = server.new_database();
        let one = Environment::new();
        let unsealed: &[&str] = if sealed { &[] } else { &["--unsealed"] };
        finished(&one, &[&["init", "--at", &address, "--name", "team"], unsealed].concat());
        finished(&one, &["note", "add", "in the backup"]);
        let tables = ["log", "frame"];
        for table in tables {
            server.run_in(&address, &format!("create table old_{table} as table forge.{table}"));
        }
        finished(&one, &["note", "add", "after the backup"]);
        for table in tables {
            let sql =
                format!("delete from forge.{table}; insert into forge.{table} table old_{table}");
            server.run_in(&address, &sql);
        }
        let done = run(&one, &["note", "list"]);
        assert_eq!(done.code, 6, "{}", done.text);
        assert!(done.text.contains("(set_back)"), "{}", done.text);
        finished(&one, &["adopt"]);
        let text = finished(&one, &["note", "list"]);
        assert!(text.contains("in the backup") && !text.contains("after the backup"), "{text}");
        finished(&one, &["note", "add", "goes on"]);
    }
}

#[test]
fn an_encrypted_store_is_joined_once_its_key_is_there() {
    let Some(server) = PostgresServer::start("encrypted") else { return };
    let address = server.new_database();
    let (one, other) = (Environment::new(), Environment::new());
    let init = ["init", "--at", &address, "--name", "team"];
    finished(&one, &[&init[..], &["--encrypted"]].concat());
    finished(&one, &["note", "add", "hidden words"]);
    assert_eq!(run(&other, &init).code, 7);
    assert!(!other.path("project/.forge").exists(), "nothing is left of a failed join");
    let key = one.path("key");
    finished(&one, &["key", "export", key.to_str().unwrap()]);
    finished(&other, &["key", "import", key.to_str().unwrap()]);
    finished(&other, &init);
    assert!(finished(&other, &["note", "list"]).contains("hidden words"));
}

#[test]
fn shards_are_made_once_and_their_number_stays() {
    let Some(server) = PostgresServer::start("shards") else { return };
    let address = server.new_database();
    let init = ["init", "--at", &address, "--name", "agents", "--unsealed", "--shards"];
    let (one, other, third) = (Environment::new(), Environment::new(), Environment::new());
    let text = finished(&one, &[&init[..], &["3"]].concat());
    assert!(text.contains("Made the store agents/0-of-3"), "{text}");
    let text = finished(&other, &[&init[..], &["3"]].concat());
    assert!(text.contains("Joined the store agents/0-of-3"), "{text}");
    let done = run(&third, &[&init[..], &["4"]].concat());
    assert_ne!(done.code, 0);
    assert!(done.text.contains("has 3 shards"), "{}", done.text);
}

#[test]
fn commands_only_for_stores_in_files_name_an_alternative() {
    let Some(server) = PostgresServer::start("for files") else { return };
    let one = machine(&server.new_database());
    for (command, instead) in [
        (&["repair", "to"][..], "restore a backup of the database"),
        (&["backup", "to"][..], "export a bundle of all sessions"),
    ] {
        let done = run(&one, command);
        assert_ne!(done.code, 0, "{command:?}");
        assert!(done.text.contains("is for stores in files"), "{}", done.text);
        assert!(done.text.contains(instead), "{}", done.text);
    }
    let other = Environment::new();
    finished(&other, &["init"]);
    other.write("project/secret", "the-secret-value-1234");
    let done = run(&other, &["purge", "secret", "--yes", "--vacuum"]);
    assert!(done.text.contains("is for a store in a database"), "{}", done.text);
}

/// A folder from elsewhere could name a server that collects passwords.
#[test]
fn the_folder_of_a_store_made_elsewhere_does_not_connect_to_its_database() {
    let Some(server) = PostgresServer::start("folder of somebody else") else { return };
    let (one, other) = (machine(&server.new_database()), Environment::new());
    let marker = one.read("project/.forge/FORMAT");
    other.write("project/.forge/FORMAT", &marker);
    let done = run(&other, &["status"]);
    assert_ne!(done.code, 0);
    assert!(done.text.contains("was not made by you on this machine"), "{}", done.text);
    assert!(done.text.contains("forge init --at"), "{}", done.text);
}

#[test]
fn a_purge_is_not_done_before_the_tables_are_rewritten() {
    let Some(server) = PostgresServer::start("purge") else { return };
    let one = machine(&server.new_database());
    one.write("project/secret", "the-secret-value-1234");
    finished(&one, &["note", "add", "it was the-secret-value-1234"]);
    finished(&one, &["maintain"]);
    let done = run(&one, &["purge", "secret", "--yes"]);
    assert_eq!(done.code, 8, "{}", done.text);
    assert!(done.text.contains("'--vacuum' rewrites them"), "{}", done.text);
    assert_eq!(run(&one, &["purge", "secret", "--yes"]).code, 8);
    assert!(finished(&one, &["doctor"]).contains("rows that a purge has replaced"));
    assert_eq!(run(&one, &["purge", "secret", "--yes", "--vacuum"]).code, 0);
    assert_eq!(run(&one, &["purge", "secret", "--yes"]).code, 0);
    assert!(finished(&one, &["note", "list"]).contains("it was purged"));
}

#[test]
fn an_unreachable_database_server_is_reported_and_nothing_is_lost() {
    let Some(mut server) = PostgresServer::start("no server") else { return };
    let one = machine(&server.new_database());
    finished(&one, &["note", "add", "before"]);
    server.kill();
    let done = run(&one, &["note", "list"]);
    assert_eq!(done.code, 4, "{}", done.text);
    assert!(done.text.contains("the database postgres://"), "{}", done.text);
    assert!(done.text.contains("nothing was written"), "{}", done.text);
    // It was called lost, with the advice to repair it, which is only for stores in files.
    let done = run(&one, &["verify"]);
    assert_eq!(done.code, 4, "{}", done.text);
    assert!(!done.text.contains("lost"), "{}", done.text);
    server.restart();
    assert!(finished(&one, &["note", "list"]).contains("before"));
}

/// Regression: events of hooks were lost, because writes were spooled only if the lock was held or
/// the store was damaged.
#[test]
fn hook_events_are_spooled_while_the_database_server_is_down() {
    let Some(mut server) = PostgresServer::start("hooks without a server") else { return };
    let one = machine(&server.new_database());
    let hook = |event: &str, input: Value| {
        one.write("input", &input.to_string());
        let mut command = one.command(["hook", "claude-code", event]);
        let done = command.stdin(std::fs::File::open(one.path("input")).unwrap()).output();
        assert!(done.unwrap().status.success());
    };
    let call = |id: &str, command: &str| {
        json!({"session_id": "cc-1", "tool_name": "Bash", "tool_use_id": id,
            "tool_input": {"command": command}, "tool_response": {"stdout": "ok", "stderr": ""}})
    };
    hook("PostToolUse", call("c1", "make before"));
    server.kill();
    hook("PostToolUse", call("c2", "make meanwhile"));
    hook("PreCompact", json!({"session_id": "cc-1", "trigger": "auto"}));
    let log = std::fs::read_to_string(one.path("project/.forge/log/hooks.jsonl")).unwrap();
    let outcomes = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let outcomes: Vec<Value> = outcomes.map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["saved", "saved", "saved"], "{log}");
    assert!(log.contains("cannot read the database"), "{log}");
    server.restart();
    hook("PostToolUse", call("c3", "make afterwards"));
    let commands = finished(&one, &["command", "list"]);
    for wanted in ["make before", "make meanwhile", "make afterwards"] {
        assert_eq!(commands.matches(wanted).count(), 1, "{commands}");
    }
    assert!(finished(&one, &["checkpoint", "list"]).contains("compaction"));
    assert!(finished(&one, &["verify"]).contains("Clean."));
}

/// Regression: `forge watch` ended if the server was away for longer than reads are retried.
#[test]
fn watching_continues_when_the_server_is_back() {
    let Some(mut server) = PostgresServer::start("watching") else { return };
    let one = machine(&server.new_database());
    finished(&one, &["note", "add", "before"]);
    let mut watching = one.command(["watch", "--limit", "1"]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().contains("before"));
    server.kill();
    let warned = BufReader::new(watching.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(warned.contains("trying again until"), "{warned}");
    server.restart();
    finished(&one, &["note", "add", "afterwards"]);
    assert!(lines.any(|line| line.contains("afterwards")));
    assert!(watching.wait().unwrap().success());
}

#[test]
fn sessions_move_into_a_database_and_back() {
    let Some(server) = PostgresServer::start("moving") else { return };
    let (files, database, back) =
        (Environment::new(), machine(&server.new_database()), Environment::new());
    finished(&files, &["init", "--unsealed"]);
    finished(&back, &["init", "--unsealed"]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/example/session.jsonl");
    finished(&files, &["import", "events", example.to_str().unwrap()]);
    let log = finished(&files, &["log", "--json"]);
    for (from, to) in [(&files, &database), (&database, &back)] {
        let bundle = from.path("all.bundle");
        let bundle = bundle.to_str().unwrap();
        finished(from, &["export", "bundle", bundle, "--all"]);
        finished(to, &["import", "bundle", bundle]);
        assert_eq!(finished(to, &["log", "--json"]), log);
        assert!(finished(to, &["verify", "--read-data"]).contains("Clean."));
    }
}

#[test]
fn sessions_are_pushed_and_pulled_between_stores_of_both_kinds() {
    let Some(server) = PostgresServer::start("remotes") else { return };
    let (files, database) = (Environment::new(), machine(&server.new_database()));
    finished(&files, &["init"]);
    finished(&files, &["note", "add", "written in files"]);
    let shared = files.path("shared");
    std::fs::create_dir(&shared).unwrap();
    let shared = shared.to_str().unwrap();
    finished(&files, &["remote", "create", shared]);
    let key = files.path("key");
    finished(&files, &["remote", "key", "export", key.to_str().unwrap()]);
    finished(&files, &["push"]);
    finished(&database, &["remote", "add", shared, "--key", key.to_str().unwrap()]);
    finished(&database, &["pull", "--all"]);
    assert!(finished(&database, &["note", "list"]).contains("written in files"));
    finished(&database, &["note", "add", "written in a database"]);
    finished(&database, &["push"]);
    finished(&files, &["pull"]);
    assert!(finished(&files, &["note", "list"]).contains("written in a database"));
}

/// The commands in the table of round trips, on a store with 1,000 checkpoints.
const COMMANDS: [&[&str]; 12] = [
    &["status"],
    &["note", "add", "a note"],
    &["hypothesis", "add", "an idea"],
    &["checkpoint", "create", "a checkpoint"],
    &["checkpoint", "list"],
    &["checkpoint", "at", "HEAD"],
    &["checkpoint", "at", "2026-01-10T10:00:00Z"],
    &["checkpoint", "diff", "HEAD~3", "HEAD"],
    &["log", "--limit", "20"],
    &["note", "list"],
    &["brief"],
    &["thread", "append", "--thread", "talk", "message.json"],
];

#[test]
fn a_command_makes_few_round_trips_to_the_database() {
    let Some(server) = PostgresServer::start("round trips") else { return };
    let address = server.new_database();
    let proxy = TcpProxy::start(server.port(), Duration::from_millis(1));
    let address = address.replace(&server.port().to_string(), &proxy.port().to_string());
    let one = machine(&format!("{address}?sslmode=disable"));
    let mut lines = String::new();
    for number in 0..1_000 {
        let at = format!("2026-01-10T{:02}:{:02}:00Z", number / 60, number % 60);
        for event in [
            format!(r#""put":{{"kind":"note","id":"N{number}","value":{{"description":"n"}}}}"#),
            format!(r#""checkpoint":{{"message":"c {number}"}}"#),
        ] {
            writeln!(lines, r#"{{"at":"{at}","session":"session",{event}}}"#).unwrap();
        }
    }
    one.write("more.jsonl", &lines);
    finished(&one, &["import", "events", one.path("more.jsonl").to_str().unwrap()]);
    finished(&one, &["maintain"]);
    one.write("project/message.json", r#"{"role":"user","content":"hello"}"#);
    let mut table = String::from("| command | round trips |\n|---|---|\n");
    let mut counted = std::collections::BTreeMap::new();
    for command in COMMANDS {
        let before = (proxy.round_trips(), proxy.connections());
        finished(&one, command);
        // The first round trip of a connection establishes it, and is not counted.
        let count = proxy.round_trips() - before.0 - (proxy.connections() - before.1);
        let shown = command.join(" ");
        writeln!(table, "| `forge {shown}` | {count} |").unwrap();
        counted.insert(shown, count);
    }
    assert!(counted["checkpoint at HEAD"] <= 12, "{table}");
    assert!(counted["checkpoint list"] <= 5, "{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/postgres.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- round-trips:begin -->\n", "<!-- round-trips:end -->");
    let (head, rest) = page.split_once(begin).expect("the page has the table");
    let (_, tail) = rest.split_once(end).expect("the table ends");
    let wanted = format!("{head}{begin}{table}{end}{tail}");
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    assert_eq!(page, wanted, "FORGE_UPDATE_DOCS=1 writes docs/postgres.md");
}
