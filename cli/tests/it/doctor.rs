//! `forge doctor`: its findings about agents and the store, and its exit code.

use crate::environment::Environment;
use crate::hook::call;
use serde_json::Value;
use std::os::unix::process::CommandExt;

fn findings(found: &Value) -> Vec<(String, String)> {
    let list = found["findings"].as_array().unwrap().iter();
    list.map(|it| (it["severity"].as_str().unwrap().into(), it["what"].as_str().unwrap().into()))
        .collect()
}

#[test]
fn a_new_store_is_whole_and_nothing_is_installed() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "first"]).success();
    let found = environment.forge(["doctor", "--json"]).json();
    assert_eq!(found["schema"], "forge.doctor/1");
    assert_eq!((&found["healthy"], &found["store"]["opens"]), (&true.into(), &true.into()));
    assert_eq!(found["store"]["sessions"], 1);
    assert_eq!(found["agents"].as_array().unwrap().len(), 5);
    assert!(found["agents"].as_array().unwrap().iter().all(|it| it["last_fired"].is_null()));
    assert_eq!(findings(&found), []);
    let report = environment.forge(["doctor"]).success();
    assert!(report.contains("Nothing is wrong."), "{report}");
}

#[test]
fn calls_are_reported_with_their_times() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["hooks", "install", "claude", "--yes"]).success();
    let found = environment.forge(["doctor", "--json"]).json();
    let never = "its hooks have never been called here".to_owned();
    assert_eq!(findings(&found), [("advice".to_owned(), never)]);
    let input = r#"{"session_id":"s1","hook_event_name":"Stop"}"#;
    call(&environment, "claude", "Stop", input);
    call(&environment, "claude", "PreCompact", input);
    let found = environment.forge(["doctor", "--json"]).json();
    let claude = &found["agents"][0];
    assert_eq!(claude["agent"], "claude");
    assert_eq!(claude["installed"], serde_json::json!(["local"]));
    assert_eq!(
        (&claude["calls"]["calls"], &claude["last_event"]),
        (&2.into(), &"PreCompact".into())
    );
    assert_eq!(claude["compactions_seen"], 1);
    assert!(claude["calls"]["p99_micros"].as_u64().unwrap() > 0);
    assert_eq!(claude["events"].as_array().unwrap().len(), 2);
    let report = environment.forge(["doctor"]);
    assert!(report.stdout.contains("Claude Code"), "{report}");
}

#[test]
fn a_problem_exits_with_1_and_says_what_to_do() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    call(&environment, "codex", "Stop", "junk");
    environment.write(
        "home/.cursor/hooks.json",
        r#"{"version":1,"hooks":{"stop":[{"command":"/gone/forge hook cursor stop"}]}}"#,
    );
    let report = environment.forge(["doctor"]);
    assert_eq!(report.code, 1);
    assert!(
        report.stdout.contains("codex: 1 of 1 calls failed, the last one 'Stop': "),
        "{report}"
    );
    // The words after the name fit several hooks and one server.
    let calls = "hooks in ~/.cursor/hooks.json: calls '/gone/forge', which is not there";
    assert!(report.stdout.contains(calls), "{report}");
    assert!(report.stdout.contains("MCP server in ~/.cursor/mcp.json: missing"), "{report}");
    assert!(report.stdout.contains("'forge hooks install cursor --user' repairs it"), "{report}");
}

/// An earlier forge made Gemini CLI refuse every shell command that was not on its list, and
/// reported no problem.
#[test]
fn an_outdated_installation_is_reported_until_it_is_installed_again() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let forge = env!("CARGO_BIN_EXE_forge");
    environment.write(
        "home/.gemini/settings.json",
        &format!(
            r#"{{"tools":{{"allowed":["run_shell_command(forge status)"]}},"hooks":{{"PreCompress":[{{"hooks":[
                {{"type":"command","command":"{forge} hook gemini PreCompress","timeout":20000}}]}}]}}}}"#
        ),
    );
    let report = environment.forge(["doctor"]);
    assert_eq!(report.code, 1, "{report}");
    let words = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "make Gemini CLI refuse every other shell command",
        "these events call forge for nothing: PreCompress",
        "'forge hooks install gemini --user' repairs it",
    ] {
        assert!(words.contains(part), "{part}: {report}");
    }
    environment.forge(["hooks", "install", "gemini", "--yes"]).success();
    let found = environment.forge(["doctor", "--json"]).json();
    let never = "its hooks have never been called here".to_owned();
    assert_eq!(findings(&found), [("advice".to_owned(), never)]);
}

#[test]
fn hooks_that_the_agent_does_not_call_are_a_problem() {
    for (agent, file, setting, name) in [
        ("claude", ".claude/settings.json", r#"{"disableAllHooks":true}"#, "disableAllHooks"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks"),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"hooksConfig":{"enabled":false}}"#,
            "hooksConfig.enabled",
        ),
    ] {
        let environment = Environment::new();
        environment.forge(["init"]).success();
        environment.write(&format!("home/{file}"), setting);
        environment.forge(["hooks", "install", agent, "--yes"]).success();
        let report = environment.forge(["doctor"]);
        assert_eq!(report.code, 1, "{report}");
        let words = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!("calls no hook: '{name}' in ~/{file} says so")),
            "{report}"
        );
        assert!(words.contains(&format!("remove '{name}' from ~/{file}")), "{report}");
        let status = environment.forge(["hooks", "status"]).success();
        assert!(status.contains("calls no hook") && !status.contains("earlier forge"), "{status}");
        // The settings of the project come before those of the user.
        if agent == "claude" {
            environment.write("project/.claude/settings.json", r#"{"disableAllHooks":false}"#);
            environment.forge(["doctor"]).success();
        }
    }
}

#[test]
fn an_unusable_store_is_reported_with_the_reason() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "first"]).success();
    let format = environment.read("project/.forge/FORMAT");
    environment.write("project/.forge/FORMAT", "nonsense");
    let report = environment.forge(["doctor", "--json"]);
    assert_eq!(report.code, 1);
    let found: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(found["store"]["opens"], false);
    assert_eq!(found["findings"][0]["about"], "store");
    assert!(!found["findings"][0]["remedy"].as_str().unwrap().is_empty());
    environment.write("project/.forge/FORMAT", &format);
    environment.forge(["doctor"]).success();
}

/// Regression: nothing was wrong, and every other command ended with an error.
#[test]
fn a_named_store_or_session_that_is_missing_is_a_problem() {
    let environment = Environment::new();
    environment.forge(["doctor"]).success();
    environment.forge(["init"]).success();
    environment.forge(["doctor"]).success();
    for (option, name, about, what) in [
        ("--store", "/nowhere", "store", "there is no store '/nowhere'"),
        ("--session", "none", "session", "there is no session 'none'"),
    ] {
        let report = environment.forge(["doctor", "--json", option, name]);
        assert_eq!(report.code, 1, "{report}");
        let found: Value = serde_json::from_str(&report.stdout).unwrap();
        let finding = &found["findings"][0];
        assert_eq!((&finding["about"], &finding["what"]), (&about.into(), &what.into()));
        assert!(finding["remedy"].as_str().unwrap().contains("'forge "), "{report}");
    }
}

/// `forge doctor` works in read-only folders too, and reports that hooks cannot save anything.
#[test]
fn a_read_only_store_is_reported() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "first"]).success();
    environment.forge(["note", "add", "x"]).success();
    let give_in = |folder: &str, mode: &str| {
        let mut command = std::process::Command::new("chmod");
        let status = command.args(["-R", mode]).arg(environment.path(folder)).status();
        assert!(status.unwrap().success());
    };
    let give = |mode: &str| give_in("project", mode);
    give_in("home", "a+rX");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    for path in ["", "home"] {
        std::fs::set_permissions(environment.path(path), std::fs::Permissions::clone(&open))
            .unwrap();
    }
    give("a+rX,a-w");
    let mut command = environment.command(["doctor", "--json"]);
    if crate::fault::is_root() {
        command.uid(crate::fault::NOBODY).gid(crate::fault::NOBODY);
    }
    let report = environment.finished(&mut command);
    give("u+w");
    assert_eq!(report.code, 1, "{report}");
    let found: Value = serde_json::from_str(&report.stdout).unwrap();
    let store = &found["store"];
    assert_eq!((&store["opens"], &store["writable"]), (&true.into(), &false.into()), "{found}");
    assert_eq!(store["sessions"], 1);
    let nothing = "it cannot be written: hooks save nothing, reading still works".to_owned();
    assert_eq!(findings(&found), [("problem".to_owned(), nothing)]);
}

#[test]
fn the_lock_holder_is_named() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "first"]).success();
    let lock = environment.path("project/.forge/journal/append.lock");
    let held = std::fs::File::open(lock).unwrap();
    held.lock().unwrap();
    let report = environment.forge(["doctor"]);
    assert_eq!(report.code, 1);
    let me = format!("process {} holds the lock for writing", std::process::id());
    assert!(report.stdout.contains(&me), "{report}");
    drop(held);
    environment.forge(["doctor"]).success();
}

#[test]
fn without_a_store_hooks_of_the_user_do_nothing_and_the_report_says_so() {
    let environment = Environment::new();
    environment.forge(["hooks", "install", "gemini", "--yes"]).success();
    let found = environment.forge(["doctor", "--json"]).json();
    assert!(found["store"].is_null());
    let nothing = "its hooks do nothing in this project, which has no store".to_owned();
    assert_eq!(findings(&found), [("advice".to_owned(), nothing)]);
}
