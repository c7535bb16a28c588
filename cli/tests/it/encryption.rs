//! An encrypted store end to end: its folder shows nothing of what a person or an agent's hook
//! recorded.

use crate::environment::{Environment, Output};
use crate::hook::call;
use forge_testkit::files::files_below;
use std::fs;
use std::path::{Path, PathBuf};

const KEYRING: &str = "home/.local/state/forge/keyring";

#[test]
fn examples_of_the_encryption_page_work() {
    crate::page::holds("encryption.md");
}

/// Returns the files below a folder whose path or content contains this text.
fn files_showing(folder: &Path, text: &str) -> Vec<PathBuf> {
    let shows = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let mut found = files_below(folder);
    found
        .retain(|file| shows(&fs::read(file).unwrap()) || shows(file.to_string_lossy().as_bytes()));
    found
}

/// Makes a project in which a person and hooks have recorded texts with `zebra`.
fn recorded_project<const N: usize>(init: [&str; N]) -> Environment {
    let environment = Environment::new();
    environment.forge(init).success();
    environment.forge(["hypothesis", "add", "zebra-idea", "--id", "zebra-h"]).success();
    environment
        .forge(["checkpoint", "create", "zebra-checkpoint", "--tags", "zebra-tag"])
        .success();
    let event = serde_json::json!({
        "session_id": "zebra-agent-session",
        "hook_event_name": "PostToolUse",
        "cwd": environment.path("project"),
        "tool_name": "Bash",
        "tool_use_id": "zebra-call",
        "tool_input": {"command": "echo zebra-command"},
        "tool_response": {"stdout": "zebra-output", "stderr": "", "interrupted": false},
    });
    call(&environment, "claude-code", "PostToolUse", &event.to_string());
    let event = serde_json::json!({
        "session_id": "zebra-agent-session",
        "hook_event_name": "PreCompact",
        "trigger": "auto",
        "cwd": environment.path("project"),
    });
    call(&environment, "claude-code", "PreCompact", &event.to_string());
    // Each command reports that it uses the agent's session.
    let succeeded = |output: Output| {
        assert_eq!(output.code, 0, "{output}");
        output.stdout
    };
    assert!(succeeded(environment.forge(["search", "zebra"])).contains("zebra-command"));
    succeeded(environment.forge(["maintain"]));
    succeeded(environment.forge(["note", "add", "zebra-late"]));
    environment
}

#[test]
fn nothing_that_was_recorded_is_seen_in_the_folder_of_an_encrypted_store() {
    let environment = recorded_project(["init", "--encrypted", "--name", "zebra-effort"]);
    let store = environment.path("project/.forge");
    assert_eq!(files_showing(&store, "zebra"), Vec::<PathBuf>::new());
    assert!(environment.forge(["doctor", "--json"]).json()["store"]["encrypted"] == true);
    assert!(environment.forge(["verify", "--read-data", "--json"]).json()["encrypted"] == true);
    assert!(environment.forge(["key", "show", "--json"]).json()["encrypted"] == true);
    // The log of the hooks is next to the key.
    assert!(!files_showing(&environment.path(KEYRING), "zebra-agent-session").is_empty());
    assert!(!store.join("log").exists() && !store.join("agents").exists());
}

/// Shows that the search of the test above finds a text that is there.
#[test]
fn recorded_text_is_seen_in_the_folder_of_an_unencrypted_store() {
    let environment = recorded_project(["init", "--name", "zebra-effort"]);
    let store = environment.path("project/.forge");
    for text in ["zebra-late", "zebra-agent-session", "zebra-tag", "zebra-effort"] {
        assert!(!files_showing(&store, text).is_empty(), "{text}");
    }
    assert!(store.join("log/hooks.jsonl").exists());
    assert!(environment.forge(["doctor", "--json"]).json()["store"]["encrypted"] == false);
}

fn without_key(environment: &Environment, args: &[&str]) -> Output {
    let mut command = environment.command(args);
    command.env("FORGE_KEYRING", environment.path("elsewhere"));
    environment.finished(&mut command)
}

#[test]
fn without_its_key_every_command_reports_the_missing_key_and_changes_nothing() {
    let environment = recorded_project(["init", "--encrypted"]);
    let store = environment.path("project/.forge");
    let contents =
        || files_below(&store).iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>();
    let before = contents();
    let commands: [&[&str]; 9] = [
        &["note", "list"],
        &["note", "add", "more"],
        &["checkpoint", "create", "more"],
        &["search", "zebra"],
        &["verify"],
        &["rebuild"],
        &["repair", "to"],
        &["backup", "to"],
        &["adopt"],
    ];
    for command in commands {
        let refused = without_key(&environment, command);
        assert_eq!(refused.code, 7, "{command:?}: {refused}");
        assert!(refused.stderr.contains("the store is encrypted, and its key is not"), "{refused}");
        assert!(refused.stderr.contains("'forge key import'"), "{refused}");
    }
    let doctor = without_key(&environment, &["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    assert!(doctor.stdout.contains("restore the key with 'forge key import'"), "{doctor}");
    assert!(contents() == before);
    environment.forge(["key", "export", "store.key"]).success();
    assert_eq!(without_key(&environment, &["key", "import", "store.key"]).code, 0);
    assert!(without_key(&environment, &["note", "list"]).stdout.contains("zebra-late"));
}

/// Regression: the folder was reported as not a store, with the advice to run `forge init`, and by
/// `verify` and `repair` as a store of an unknown version, after all of it had been read.
#[test]
fn without_format_file_and_key_every_command_names_the_problem_and_the_remedy() {
    for is_indexed in [false, true] {
        let environment = Environment::new();
        environment.forge(["init", "--encrypted"]).success();
        environment.forge(["note", "add", "zebra"]).success();
        if is_indexed {
            environment.forge(["maintain"]).success();
        }
        environment.forge(["key", "export", "store.key"]).success();
        let store = environment.path("project/.forge");
        fs::remove_file(store.join("FORMAT")).unwrap();
        for command in [&["note", "list"][..], &["note", "add", "x"], &["backup", "to"]] {
            let refused = without_key(&environment, command);
            assert_eq!(refused.code, 5, "{command:?}: {refused}");
            assert!(refused.stderr.contains("its file FORMAT"), "{refused}");
            assert!(refused.stderr.contains("'forge repair TO'"), "{refused}");
        }
        // No log is written, because it could reveal data of an encrypted store.
        let event = serde_json::json!({"session_id": "s", "hook_event_name": "UserPromptSubmit",
            "cwd": environment.path("project"), "prompt": "zebra"});
        call(&environment, "claude-code", "UserPromptSubmit", &event.to_string());
        assert!(!store.join("log").exists());
        for damaged in ["nothing", "the journal", "the index"] {
            match damaged {
                "the journal" => {
                    for file in files_below(&store.join("journal")) {
                        if file.extension() == Some("log".as_ref()) {
                            fs::write(file, "").unwrap();
                        }
                    }
                }
                "the index" => fs::remove_dir_all(store.join("index")).unwrap_or_default(),
                _ => {}
            }
            let readable = damaged == "nothing" || (is_indexed && damaged == "the journal");
            for command in [&["verify"][..], &["repair", "to"]] {
                let refused = without_key(&environment, command);
                let message = format!("{refused}");
                if readable {
                    assert_eq!(refused.code, 7, "{damaged}, {command:?}: {refused}");
                    let reason = "the store is encrypted, and its key is not on this machine";
                    assert!(message.contains(reason), "{damaged}: {refused}");
                } else {
                    // Nothing is left that shows which store it was.
                    assert_ne!(refused.code, 0, "{damaged}, {command:?}: {refused}");
                }
                assert!(!message.contains("version"), "{damaged}: {refused}");
            }
            if damaged == "nothing" {
                assert_eq!(without_key(&environment, &["key", "import", "store.key"]).code, 0);
                let repaired = without_key(&environment, &["repair", "../repaired"]);
                assert!(repaired.code <= 5, "{repaired}");
                let list = ["note", "list", "--store", "../repaired"];
                assert!(without_key(&environment, &list).stdout.contains("zebra"), "{repaired}");
                fs::remove_dir_all(environment.path("elsewhere")).unwrap();
            }
        }
    }
}

#[test]
fn a_store_cannot_be_encrypted_and_unsealed() {
    let environment = Environment::new();
    let refused = environment.forge(["init", "--encrypted", "--unsealed"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(!environment.path("project/.forge").exists());
}
