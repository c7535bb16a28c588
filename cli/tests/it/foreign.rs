//! Settings and links of a store that came with a project.

use crate::environment::{Environment, Output};
use crate::hook;
use forge_testkit::files::files_with;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

const WEAK: &str = "redact.enabled = false\nredact.allow = \"ghp_\"\nkeep.sessions = \"0s\"\nkeep.undo = \"0s\"\n\
                    prune.automatic = true\nredact.variables = \"MY_*\"\nlock_timeout = 3\n";

fn secret() -> String {
    format!("gh{}_{}", "p", "1xBvQm8Zk3LsYt5RcWnD2HfJp7Ga9Ue4ViOq")
}

/// Makes a project with a store that another user made, with these settings.
fn foreign_store(settings: &str) -> Environment {
    let environment = Environment::new();
    let mut init = environment.command(["init", "--unsealed", "--name", "s"]);
    environment.finished(init.env("HOME", environment.path("theirs"))).success();
    environment.write("project/.forge/config.toml", settings);
    environment
}

fn is_stored(environment: &Environment, text: &str) -> bool {
    let listed = environment.finished(&mut environment.command(["note", "list", "--json"]));
    listed.stdout.contains(text)
        || !files_with(&environment.path("project/.forge"), text).is_empty()
}

/// Joins the lines of a wrapped text.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn note(environment: &Environment) -> Output {
    environment.finished(&mut environment.command(["note", "add", &format!("my {}", secret())]))
}

#[test]
fn settings_of_others_that_weaken_the_store_are_ignored_and_named_until_trusted() {
    let environment = foreign_store(WEAK);
    let output = note(&environment);
    let ignored = "warning: this project's settings are not yours and are ignored: keep.sessions = 0s, \
                   keep.undo = 0s, prune.automatic = true, redact.allow = ghp_, redact.enabled = false, \
                   redact.variables = MY_* ('forge config trust' allows them)";
    assert!(output.code == 0 && words(&output.stderr).starts_with(ignored), "{output}");
    assert!(!is_stored(&environment, &secret()));
    let get = |key: &str| environment.forge(["config", "get", key]).stdout;
    assert_eq!(get("keep.undo"), "14d\n");
    // A setting that weakens nothing applies.
    assert_eq!(get("lock_timeout"), "3\n");
    let listed = environment.forge(["config", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["ignored"].as_array().unwrap().len(), 6, "{listed}");
    for command in [["status", "-q"], ["doctor", "-q"]] {
        let output = environment.forge(command);
        assert!(
            words(&output.to_string()).contains("'forge config trust'"),
            "{command:?}: {output}"
        );
    }
    let allowed = environment.forge(["config", "trust"]);
    assert!(allowed.stdout.contains("Allowed redact.enabled = false in $ROOT/project/.forge"));
    assert_eq!(get("keep.undo"), "0s\n");
    assert_eq!(note(&environment).stderr, "");
    assert!(is_stored(&environment, &secret()));
    // Only the values that were there are allowed, not another one.
    let changed = WEAK.replace("keep.undo = \"0s\"", "keep.undo = \"1s\"");
    environment.write("project/.forge/config.toml", &changed);
    let output = environment.forge(["config", "get", "keep.undo"]);
    assert_eq!(output.stdout, "14d\n");
    assert!(words(&output.stderr).contains("ignored: keep.undo = 1s ("), "{output}");
    environment.forge(["config", "trust", "--forget"]).success();
    assert_eq!(get("redact.enabled"), "true\n");
}

/// Only the agent reads a hook's output, so the ignored settings are named in the hook's log.
#[test]
fn a_hook_stores_no_secret_by_settings_of_others_and_its_log_says_why() {
    let environment = foreign_store(WEAK);
    let input = json!({
        "session_id": "mine", "cwd": environment.path("project"), "hook_event_name": "UserPromptSubmit",
        "prompt": format!("use {}", secret()),
    });
    environment.write("project/input", &input.to_string());
    let line = "forge hook claude-code UserPromptSubmit < input";
    let output = environment.finished(&mut environment.shell(line));
    assert!(output.code == 0 && !output.stdout.contains("trust"), "{output}");
    assert!(!is_stored(&environment, &secret()));
    let log = environment.read("project/.forge/log/hooks.jsonl");
    assert!(log.contains("'forge config trust' allows them"), "{log}");
}

#[test]
fn settings_that_the_user_makes_in_a_store_apply() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.write("project/.forge/config.toml", "keep.undo = \"1d\"\n");
    assert_eq!(environment.forge(["config", "get", "keep.undo"]).success(), "1d\n");
    // The store gets another id, and is still the user's own.
    environment.forge(["adopt"]).success();
    assert_eq!(environment.forge(["config", "get", "keep.undo"]).success(), "1d\n");
    // In a store of someone else, only settings that the user makes there apply.
    let environment = foreign_store("keep.last = 1\n");
    let set = environment.forge(["config", "set", "keep.undo", "1d"]);
    assert_eq!(set.code, 0, "{set}");
    let get = |key: &str| environment.forge(["config", "get", key]).stdout;
    assert_eq!((get("keep.undo").as_str(), get("keep.last").as_str()), ("1d\n", ""));
    // The store cannot weaken the user's own settings either, but can strengthen them.
    let environment =
        foreign_store("redact.enabled = true\nprune.automatic = false\nkeep.last = 7\n");
    environment.write(
        "config/forge/config.toml",
        "redact.enabled = false\nprune.automatic = true\nkeep.last = 7\n",
    );
    for (key, value) in
        [("redact.enabled", "true\n"), ("prune.automatic", "false\n"), ("keep.last", "7\n")]
    {
        assert_eq!(environment.forge(["config", "get", key]).success(), value);
    }
}

/// The store is the user's own, but its settings file is tracked by git, as after a pull.
#[test]
fn settings_that_git_brings_into_a_store_of_the_users_own_are_ignored() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.write("project/.forge/config.toml", "redact.enabled = false\n");
    let git = "git init -q . && git add -f .forge/config.toml";
    assert_eq!(environment.finished(&mut environment.shell(git)).code, 0);
    assert!(words(&note(&environment).stderr).contains("'forge config trust' allows them"));
    assert!(!is_stored(&environment, &secret()));
    // In the same checkout, a file that git does not track is the user's own.
    let git = "git rm -q --cached .forge/config.toml";
    assert_eq!(environment.finished(&mut environment.shell(git)).code, 0);
    assert_eq!(environment.forge(["config", "get", "redact.enabled"]).success(), "false\n");
}

#[test]
fn a_store_that_replaces_the_users_own_is_not_trusted() {
    let environment = Environment::new();
    environment.forge(["init", "--unsealed"]).success();
    fs::remove_dir_all(environment.path("project/.forge")).unwrap();
    let mut init = environment.command(["init", "--unsealed"]);
    environment.finished(init.env("HOME", environment.path("theirs"))).success();
    environment.write("project/.forge/config.toml", "keep.undo = \"0s\"\n");
    assert_eq!(environment.forge(["config", "get", "keep.undo"]).stdout, "14d\n");
}

#[test]
fn every_command_refuses_a_link_to_another_projects_store_until_it_is_trusted() {
    let environment = Environment::new();
    environment.make_directory("other");
    environment.forge_in("other", ["init", "--name", "private"]).success();
    symlink("../other/.forge", environment.path("project/.forge")).unwrap();
    for args in [
        vec!["note", "add", "from the clone"],
        vec!["note", "list"],
        vec!["init"],
        vec!["backup", "copy"],
        vec!["--store", ".", "note", "add", "from the clone"],
    ] {
        let output = environment.finished(&mut environment.command(&args));
        assert_eq!(output.code, 2, "{args:?}: {output}");
        let both = ["'$ROOT/project/.forge'", "'$ROOT/other/.forge'"];
        let is_named = args[0] == "--store" || both.iter().all(|one| output.stderr.contains(one));
        assert!(is_named, "{args:?}: {output}");
    }
    let input =
        json!({"session_id": "c", "cwd": environment.path("project"), "prompt": "from the clone"});
    hook::call(&environment, "claude-code", "UserPromptSubmit", &input.to_string());
    let listed = environment.forge_in("other", ["session", "list", "--json"]).success();
    assert!(!listed.contains("from the clone") && !listed.contains("\"c\""), "{listed}");
    let allowed = environment.forge(["config", "trust"]).success();
    assert_eq!(allowed, "Allowed $ROOT/project/.forge to lead to $ROOT/other/.forge\n");
    environment.forge(["note", "add", "from the project"]).success();
    // Only the first target of the link was allowed.
    environment.make_directory("third");
    environment.forge_in("third", ["init"]).success();
    fs::remove_file(environment.path("project/.forge")).unwrap();
    symlink("../third/.forge", environment.path("project/.forge")).unwrap();
    assert_eq!(environment.forge(["note", "list"]).code, 2);
}

/// A write through the link would change a file outside of the store.
#[test]
fn settings_that_are_a_link_are_refused() {
    let environment = foreign_store("");
    environment.write("other.toml", "keep.last = 1\n");
    fs::remove_file(environment.path("project/.forge/config.toml")).unwrap();
    symlink("../../other.toml", environment.path("project/.forge/config.toml")).unwrap();
    let output = environment.forge(["config", "set", "color", "never"]);
    assert!(output.code == 2 && output.stderr.contains("it is a link, not a file"), "{output}");
    assert_eq!(environment.read("other.toml"), "keep.last = 1\n");
}
