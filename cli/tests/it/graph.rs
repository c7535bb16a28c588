//! Threads of a graph of an agent framework, on the command line.

use crate::environment::Environment;
use forge_store::Timestamp;
use forge_store::store::{Options, Store};
use forge_systems::graph::{GraphStore, NewChannel, NewStep, NewValue, StepNotes, TypedBytes};

/// Returns the MessagePack of a list of at most 15 texts, each of at most 31 bytes.
fn list(texts: &[&str]) -> TypedBytes {
    let mut bytes = vec![0x90 | texts.len() as u8];
    for text in texts {
        bytes.push(0xa0 | text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    }
    TypedBytes { encoding: "msgpack".to_owned(), bytes: bytes.into() }
}

fn step(id: &str, parent: Option<&str>, version: &str, texts: &[&str]) -> NewStep {
    NewStep {
        thread: "support-7".to_owned(),
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        head: list(&[]),
        metadata: list(&[]),
        channels: vec![NewChannel {
            name: "messages".to_owned(),
            version: version.to_owned(),
            is_new: true,
            value: NewValue::Given(list(texts)),
        }],
        notes: StepNotes { message: format!("step {version}"), ..StepNotes::default() },
        ..NewStep::default()
    }
}

const ASKED: &str = "why is the cache stale today?";
const ANSWERED: &str = "it is not dropped at the start";
const AGREED: &str = "we drop it there from now on";
const THANKED: &str = "thank you, that was all of it";

fn graph(environment: &Environment) -> GraphStore {
    let options = Options::default().keyring(environment.path("home/.local/state/forge/keyring"));
    GraphStore::new(Store::open(&environment.path("project/.forge"), options).unwrap())
}

fn environment() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let graph = graph(&environment);
    let at = |second: i64| Timestamp::from_micros(1_785_000_000_000_000 + second * 1_000_000);
    graph.put(at(0), &step("c1", None, "1", &[ASKED, ANSWERED, AGREED])).unwrap();
    graph.put(at(1), &step("c2", Some("c1"), "2", &[ASKED, ANSWERED, AGREED, THANKED])).unwrap();
    environment
}

#[test]
fn a_deleted_graph_thread_can_be_restored() {
    let environment = environment();
    let later = Timestamp::from_micros(1_785_000_100_000_000);
    graph(&environment).delete_thread(later, "support-7").unwrap();
    assert_eq!(environment.forge(["--session", "support-7", "checkpoint", "list"]).code, 3);
    let wrong = environment.forge(["session", "restore", "support-7", "--kind", "memory"]);
    assert!(wrong.code == 3 && wrong.stderr.contains("no session 'support-7'"), "{wrong}");
    let restored = environment.forge(["session", "restore", "support-7"]).success();
    assert!(!restored.contains("current"), "a thread is never the current session: {restored}");
    let listed = environment.forge(["--session", "support-7", "checkpoint", "list"]).success();
    assert!(listed.contains("step 2"), "{listed}");
    assert_eq!(environment.forge(["session", "restore", "support-7"]).code, 3);
}

#[test]
fn a_thread_of_a_graph_is_listed_compared_and_searched_by_what_it_says() {
    let environment = environment();
    let listed = environment.forge(["session", "list", "--kind", "graph"]).success();
    assert!(listed.contains("support-7"), "{listed}");
    let diff = environment.forge(["--session", "support-7", "diff", "HEAD~1", "HEAD"]).success();
    assert!(diff.contains(THANKED) && !diff.contains(ASKED), "{diff}");
    let found =
        environment.forge(["--session", "support-7", "search", "dropped at the start"]).success();
    assert!(found.contains(ANSWERED), "{found}");
    let state = environment
        .forge(["--session", "support-7", "at", "HEAD", "--kind", "channel_element"])
        .success();
    assert!(state.contains(ANSWERED), "{state}");
}

/// Writes a program in place of Python, with this shell script. Returns its path.
fn interpreter(environment: &Environment, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = environment.path("python");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn an_import_of_threads_is_done_by_the_python_package() {
    let environment = environment();
    let counts = r#"{"threads": 1, "checkpoints": 2, "writes": 3, "known": 4, "bytes_there": 5000, "bytes_here": 60}"#;
    let python = interpreter(&environment, &format!("echo \"$@\" >called; echo '{counts}'"));
    let environment = environment.with("FORGE_PYTHON", &python);
    let report = environment.forge(["import", "langgraph", "--from", "sqlite", "a.db"]).success();
    assert!(report.contains("imported 1 new thread, 2 checkpoints, 3 pending writes"), "{report}");
    assert!(report.contains("imported before: 4 checkpoints"), "{report}");
    let store = environment.path("project/.forge");
    let called = format!(
        "-m forge_store.langgraph import --json --store {} --from sqlite a.db\n",
        store.display()
    );
    assert_eq!(environment.read("project/called"), called);
}

#[test]
fn an_import_without_the_python_package_says_how_to_install_it() {
    let environment = environment();
    let script = "echo 'python: No module named forge_store' >&2; exit 1";
    let python = interpreter(&environment, script);
    let environment = environment.with("FORGE_PYTHON", &python);
    let failed = environment.forge(["import", "langgraph", "--from", "sqlite", "a.db"]);
    assert_ne!(failed.code, 0);
    assert!(failed.stderr.contains("pip install ./python langgraph"), "{failed}");
    // The package is there, and LangGraph is not.
    let extra = "ImportError: this needs the extra 'langgraph' (No module named 'langgraph'); \
                 install it with: pip install 'forge-store[langgraph]'";
    interpreter(&environment, &format!("echo \"{extra}\" >&2; exit 1"));
    let failed = environment.forge(["import", "langgraph", "--from", "sqlite", "a.db"]);
    assert!(failed.stderr.contains("the import needs: no module 'langgraph'\n"), "{failed}");
    assert!(!failed.stderr.contains("forge-store["), "{failed}");
    let environment = environment.with("FORGE_PYTHON", "/nowhere/python");
    let failed = environment.forge(["import", "langgraph", "--from", "sqlite", "a.db"]);
    assert!(failed.stderr.contains("there is no interpreter '/nowhere/python'"), "{failed}");
}

/// Regression: a missing driver was answered with how to install forge's own package.
#[test]
fn an_error_of_the_python_package_keeps_its_own_advice() {
    let environment = environment();
    let advice = "No module named 'psycopg'; run: pip install 'psycopg[binary]'";
    let script = format!("echo \"error: no driver: {advice}\" >&2; exit 1");
    let python = interpreter(&environment, &script);
    let environment = environment.with("FORGE_PYTHON", &python);
    let failed = environment.forge(["import", "langgraph", "--from", "postgres", "a"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (2, ""), "{failed}");
    assert!(failed.stderr.contains(advice), "{failed}");
    assert!(!failed.stderr.contains("./python"), "{failed}");
}

/// Regression: if the interpreter was killed, the error had no message.
#[test]
fn an_import_whose_interpreter_is_killed_says_how_it_ended() {
    let environment = environment();
    let python = interpreter(&environment, "kill -KILL $$");
    let environment = environment.with("FORGE_PYTHON", &python);
    let failed = environment.forge(["import", "langgraph", "--from", "sqlite", "a.db"]);
    assert_eq!(failed.code, 4, "{failed}");
    assert!(failed.stderr.contains("ended without a message (signal: 9"), "{failed}");
}
