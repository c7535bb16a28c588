//! Short forms, corrections, dated changes, checks, templates, completion, the status line.

use crate::environment::Environment;
use insta::assert_snapshot;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

fn confidence(environment: &Environment) -> f64 {
    let shown = environment.forge(["hypothesis", "show", "H1", "--json"]).json();
    shown["hypothesis"]["confidence"].as_f64().unwrap()
}

#[test]
fn examples_of_the_writing_page_work() {
    crate::page::holds("writing.md");
}

#[test]
fn short_names_and_flags_work_like_the_long_ones() {
    let environment = project();
    environment.forge(["h", "add", "one", "-c", "80%", "-t", "a,b"]).success();
    environment.forge(["hyp", "add", "-m", "two", "-p", "h1"]).success();
    environment.forge(["e", "add", "seen", "-H", "h1", "-s", "-.7"]).success();
    environment.forge(["n", "a note"]).success();
    environment.forge(["g", "ad", "which?"]).success();
    environment.forge(["b", "add", "so", "-c", "high", "-H", "h2"]).success();
    assert_snapshot!(environment.forge(["hyp", "li", "-t", "a", "-n", "1"]), @"
    Id  Time          Status  Confidence  Says
    H1   1 Feb 13:00  active  0.46        one
    ");
    let made =
        environment.forge(["checkpoint", "create", "-m", "here", "-t", "x", "--json"]).json();
    assert_eq!(made["checkpoint"]["message"], "here");
    assert_eq!(environment.forge(["note", "list", "--json"]).json()["notes"][0]["id"], "N1");
    let listed = environment.forge(["e", "list", "-H", "h1", "--json"]).json();
    assert_eq!(listed["evidence"][0]["strength"], -0.7);
    let long = environment.forge(["hypothesis", "add", "--help"]).success();
    assert_eq!(environment.forge(["help", "hyp", "add"]).success(), long);
    let short = environment.forge(["hypothesis", "add", "-h"]).success();
    assert!(short.lines().count() < long.lines().count() && !short.contains("--no-redact"));
}

#[test]
fn a_text_comes_from_standard_input() {
    let environment = project();
    let mut command = environment.command(["note", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("first\nsecond\n\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let added: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(added["changed"][0]["value"]["description"], "first\nsecond");
    assert_eq!(environment.forge(["note", "-"]).code, 2, "it is empty");
}

#[test]
fn evidence_is_corrected_and_retracted() {
    let environment = project();
    environment.forge(["h", "add", "one", "-c", "0.5"]).success();
    environment.forge(["e", "add", "only 33 lines", "-H", "H1", "-s", "0.8"]).success();
    environment.forge(["e", "add", "and this", "-H", "H1", "-s", "0.3"]).success();
    environment.forge(["b", "add", "so it is", "--evidence", "E1"]).success();
    let both = confidence(&environment);
    assert_snapshot!(environment.forge(["e", "update", "E1", "-m", "only 9 lines", "-s", "-0.2"]), @"
    Updated evidence E1 (session project, branch main, #5)
      hypothesis H1 is active, confidence 0.55
    ");
    let corrected = confidence(&environment);
    let odds = |share: f64| (share / (1.0 - share)).ln() / 9f64.ln();
    assert!((odds(corrected) - 0.1).abs() < 1e-9 && corrected < both, "{corrected}");
    assert_snapshot!(environment.forge(["e", "retract", "E1"]), @"
    Retracted evidence E1 (session project, branch main, #6)
      hypothesis H1 is active, confidence 0.66
      belief B1 is in doubt: evidence E1 was retracted
    ");
    assert!((odds(confidence(&environment)) - 0.3).abs() < 1e-9);
    // At the earlier moment, both pieces of evidence are there.
    let then = environment.forge(["e", "list", "--at", "#3", "--format", "{id} {says}"]);
    assert_snapshot!(then, @"
    E1 only 33 lines
    E2 and this
    ");
    environment.forge(["undo"]).success();
    assert!((confidence(&environment) - corrected).abs() < 1e-9);
}

#[test]
fn notes_and_beliefs_are_retracted() {
    let environment = project();
    for text in ["a", "b", "c"] {
        environment.forge(["b", "add", text]).success();
    }
    environment.forge(["b", "depend", "B2", "B1"]).success();
    environment.forge(["b", "contradict", "B1", "B3"]).success();
    assert_snapshot!(environment.forge(["b", "retract", "B1"]), @"
    Retracted belief B1 (session project, branch main, #7)
      belief B2 is in doubt: belief B1 was retracted
      dependency B1->B3 is gone
      dependency B2->B1 is gone
    ");
    let left = environment.forge(["b", "list", "--format", "{id} {in_doubt} {doubt_reason}"]);
    assert_snapshot!(left, @"
    B2 true belief B1 was retracted
    B3 false
    ");
    assert_eq!(
        environment.forge(["dependency", "list", "--json"]).json()["dependencies"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    environment.forge(["note", "x"]).success();
    environment.forge(["note", "update", "N1", "-m", "y"]).success();
    assert_snapshot!(environment.forge(["note", "retract", "n1"]), @"Retracted note N1 (session project, branch main, #10)");
    // Regression: these said that nothing was recorded yet.
    let removed = "the note N1 was removed: 'forge log note:N1' shows its history";
    for shown in [["show", "N1"], ["why", "note:N1"], ["blame", "n1"], ["diff", "N1"]] {
        let missing = environment.forge(shown);
        assert!(missing.code == 3 && missing.stderr.contains(removed), "{missing}");
    }
    for command in ["show", "retract"] {
        let missing = environment.forge(["note", command, "N1"]);
        assert!(missing.code == 3 && missing.stderr.contains(removed), "{missing}");
    }
    // Regression: a removed claim had a history only under its name with the kind.
    let history = environment.forge(["log", "N1", "--json"]).json();
    assert_eq!(history, environment.forge(["log", "note:N1", "--json"]).json());
    assert_eq!(history["entries"][0]["changes"][0]["change"], "removed");
    assert_eq!(environment.forge(["log", "N9"]).code, 3);
    // The id is not given to another note.
    let next = environment.forge(["note", "z", "--json"]).json();
    assert_eq!(next["id"], "N2");
}

#[test]
fn a_change_is_recorded_at_a_given_time() {
    let environment = project();
    environment.forge(["h", "add", "one", "--at", "2 hours ago"]).success();
    environment.forge(["h", "confirm", "H1", "-m", "seen", "--at", "1 hour ago"]).success();
    assert_snapshot!(environment.forge(["at", "90 minutes ago"]), @"
    project on main #1, 2026-02-01 11:30:03 +01:00 (1 h 30 min ago)
    Active            -  H1  one
    Next           test the hypothesis H1

      forge checkpoint diff '2026-02-01T10:30:03Z'               what has changed since
      forge checkpoint restore '2026-02-01T10:30:03Z' --dry-run  what a restore would change
      forge checkpoint at '2026-02-01T10:30:03Z' --full          everything known then
    ");
    let log = environment.forge(["log", "--operations", "--json"]).json();
    assert_eq!(log["operations"][0]["time"], "2026-02-01T12:00:02Z", "when it was recorded");
    assert_snapshot!(environment.forge(["note", "late", "--at", "90 minutes ago"]), @"
    [stderr]
    error: 2026-02-01 11:30:05 +01:00 is before the last change on this branch, at 2026-02-01 12:00:02 +01:00
    hint: changes are recorded in their order: name a later time, or leave '--at' out
    [exit 2]
    ");
    assert_eq!(environment.forge(["note", "early", "--at", "2026-02-01 23:00"]).code, 2);
    environment.forge(["note", "now", "--at", "now"]).success();
}

#[test]
fn a_command_and_its_check_are_recorded_together() {
    let environment = project();
    assert_snapshot!(environment.forge(["check", "it holds", "--", "false"]), @"
    [stderr]
    Recorded command c-<id1>: it holds failed (session project, branch main, checkpoint #1)
    [exit 1]
    ");
    environment.forge(["check", "it holds", "--", "true"]).stderr.clear();
    environment
        .write("project/bin/pytest", "#!/bin/sh\necho '1 failed, 2 passed in 0.1s'\nexit 1\n");
    let path = environment.path("project/bin");
    std::fs::set_permissions(
        path.join("pytest"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut command = environment.command(["command", "record", "--", "pytest", "-q"]);
    let output =
        environment.finished(command.env("PATH", format!("{}:/usr/bin:/bin", path.display())));
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains(": pytest failed ("), "{output}");
    let listed = ["verification", "list", "--format", "{status} {name} {exit_code}"];
    assert_snapshot!(environment.forge(listed), @"
    failed it holds 1
    passed it holds 0
    failed pytest 1
    ");
    environment.forge(["h", "add", "one"]).success();
    let last = ["e", "add", "it fails", "-H", "H1", "-s", "0.5", "--from", "last", "--json"];
    let added = environment.forge(last).json();
    let of = |one: &&serde_json::Value| one["id"] == "E1";
    let own = added["changed"].as_array().unwrap().iter().find(of).unwrap();
    let source = own["value"]["source"].as_str().unwrap().to_owned();
    assert!(source.starts_with("command:c-"), "{source}");
    assert_eq!(environment.forge(["check", "x", "--", "no-such-program"]).code, 127);
}

#[test]
fn the_store_completes_a_command_line() {
    let environment = project();
    environment.forge(["h", "add", "one"]).success();
    environment.forge(["checkpoint", "create", "base", "-t", "baseline"]).success();
    environment.forge(["branch", "create", "other"]).success();
    let complete = |line: &str| {
        let words = ["complete", "--", "forge"].into_iter().chain(line.split(' '));
        let output = environment.finished(&mut environment.command(words)).success();
        let first = |line: &str| line.split('\t').next().unwrap().to_owned();
        output.lines().map(first).collect::<Vec<_>>()
    };
    assert_eq!(complete("hypothesis show "), ["H1"]);
    assert_eq!(complete("hyp confirm h"), ["H1"]);
    assert_eq!(complete("e add x -H "), ["H1"]);
    assert_eq!(complete("checkpoint list --tag b"), ["baseline"]);
    assert_eq!(complete("at ba"), ["baseline"]);
    assert_eq!(complete("branch switch o"), ["other"]);
    assert_eq!(complete("branch merge o"), ["other"]);
    assert_eq!(complete("branch merge other --into m"), ["main"]);
    assert_eq!(complete("session use p"), ["project"]);
    // These take a name that no session has.
    assert_eq!(complete("session new p"), [""; 0]);
    assert_eq!(complete("session restore p"), [""; 0]);
    assert_eq!(complete("report p"), ["project"]);
    let record = ["run", "record", "--run", "r", "--item", "a", "--step", "s", "--output", "x"];
    environment.forge(record).success();
    assert_eq!(complete("run show --run "), ["r"]);
    assert_eq!(complete("thread show --thread "), [""; 0]);
    let saved = ["program", "checkpoint", "--program", "trade", "--agent", "project=HEAD"];
    environment.forge(saved).success();
    assert_eq!(complete("program show --program "), ["trade"]);
    assert_eq!(complete("config get sync."), ["sync.hooks", "sync.wait"]);
    assert_eq!(complete("--session p"), ["project"]);
    assert_eq!(complete("hypothesis add x --conf"), ["--confidence"]);
    assert_eq!(complete("gap add x --criticality c"), ["critical"]);
    assert_eq!(complete("checkpo"), ["checkpoint"]);
    assert_eq!(complete("hypothesis update H1 --status a"), ["active", "archived"]);
    assert_eq!(complete("command record -- l"), [""; 0]);
    assert_eq!(complete("import gemini "), [""; 0], "the shell completes a path");
    let nowhere = environment.forge_in("home", ["complete", "--", "forge", "h", "show", ""]);
    assert_eq!(nowhere.success(), "");
}

#[test]
fn bash_completes_with_the_small_script() {
    let environment = project();
    environment.forge(["h", "add", "one"]).success();
    let script = "bash -c 'source <(forge completions bash); COMP_WORDS=(forge h show \"\"); \
                  COMP_CWORD=3; _forge; echo \"${COMPREPLY[@]}\"'";
    let output = environment.finished(&mut environment.shell(script));
    assert_eq!(output.stdout, "H1\n", "{output}");
    for shell in ["bash", "zsh", "fish"] {
        let script = environment.forge(["completions", shell]).success();
        assert!(script.len() < 1500, "{shell}: {}", script.len());
    }
}

/// The scripts are run by the shells themselves, if they are installed.
#[test]
fn fish_and_zsh_complete_with_the_small_scripts() {
    let environment = project();
    environment.forge(["h", "add", "one: a colon"]).success();
    let fish =
        "fish --no-config -c 'forge completions fish | source; complete -C \"forge h show \"'";
    // Completion in zsh runs inside its editor: `_describe` is what would show the list there.
    let zsh = "zsh -fc 'compdef() { }; _describe() { print -l -- \"${found[@]}\" }; \
               source <(forge completions zsh); words=(forge h show \"\"); CURRENT=4; _forge'";
    for (shell, script, shown) in
        [("fish", fish, "H1\tone: a colon\n"), ("zsh", zsh, "H1:one: a colon\n")]
    {
        let found = environment.finished(&mut environment.shell(&format!("command -v {shell}")));
        if found.code != 0 {
            forge_testkit::skip::skipped(shell, format!("there is no {shell} on this machine"));
            continue;
        }
        let output = environment.finished(&mut environment.shell(script));
        assert_eq!(output.stdout, shown, "{output}");
    }
}

#[test]
fn the_status_line_and_the_prompt_show_the_state_of_the_session() {
    let environment = project();
    assert_eq!(environment.forge(["prompt-segment"]).success(), "");
    environment.forge(["h", "add", "one", "-c", "0.88"]).success();
    environment.forge(["g", "add", "which?"]).success();
    let fails = ["verification", "add", "tests", "--status", "failed"];
    environment.forge(fails).success();
    let line = "H1 0.88 · 1 gap · 1 failing\n";
    for _ in 0..2 {
        assert_eq!(environment.forge(["prompt-segment"]).success(), line);
    }
    environment.forge(["h", "update", "H1", "-c", "0.9"]).success();
    let line = line.replace("88", "90");
    assert_eq!(environment.forge(["prompt-segment"]).success(), line, "the store has changed");
    let mut command = environment.command(["statusline"]);
    command.current_dir(environment.path("home"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let folder = environment.path("project");
    let given = serde_json::json!({"session_id": "s1", "workspace": {"current_dir": folder}});
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), line);
    for command in ["statusline", "prompt-segment"] {
        assert_eq!(environment.forge_in("home", [command]).success(), "", "outside a project");
    }
}

/// Returns the line that `forge watch` shows for this command.
fn watched_line<const N: usize>(command: [&str; N]) -> String {
    let environment = project();
    environment.forge(["note", "before"]).success();
    let mut watch = environment.command(["watch", "-n", "1"]);
    let mut child = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("N1  before"));
    environment.forge(command).success();
    let line = lines.next().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    line
}

#[test]
fn a_new_note_is_watched() {
    assert!(watched_line(["note", "after"]).ends_with("N2  after"));
}

/// Regression: a write that added no revision, checkpoint or fact was shown only after the next one
/// that did.
#[test]
fn a_new_branch_is_watched() {
    assert!(watched_line(["branch", "create", "side"]).contains("branch side"));
}

#[test]
fn a_demo_is_made_beside_the_project() {
    let environment = Environment::new();
    let made = environment.finished_raw(["init", "--demo", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let demo = Path::new(made["demo"].as_str().unwrap());
    let temporary = environment.path("tmp").canonicalize().unwrap();
    assert_eq!(
        (demo.parent(), made["session"].as_str()),
        (Some(temporary.as_path()), Some("demo"))
    );
    let mut command = environment.command(["hypothesis", "list", "--format", "{id} {status}"]);
    let listed = environment.finished(command.current_dir(demo)).success();
    assert_eq!(listed.lines().count(), 6, "{listed}");
    // Regression: the story had a compaction that this list did not have.
    let mut command = environment.command(["compaction", "list", "--json"]);
    let listed = environment.finished(command.current_dir(demo)).json();
    assert_eq!(listed["compactions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["compactions"][0]["lost"], 11);
    assert!(!environment.path("project/.forge").exists());
}

#[test]
fn the_plugin_has_the_hooks_that_are_installed() {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../integrations/claude-plugin");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(plugin.join(name)).unwrap()).unwrap()
    };
    let environment = Environment::new();
    environment
        .forge(["hooks", "install", "claude", "--project", "--yes", "--json"])
        .stderr
        .clear();
    let installed: serde_json::Value =
        serde_json::from_str(&environment.read("project/.claude/settings.json")).unwrap();
    let installed = installed["hooks"].to_string().replace(env!("CARGO_BIN_EXE_forge"), "forge");
    assert_eq!(read("hooks/hooks.json")["hooks"].to_string(), installed);
    assert_eq!(read(".claude-plugin/plugin.json")["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(read(".mcp.json")["mcpServers"]["forge"]["args"][0], "mcp");
    let mut count = 0;
    for entry in std::fs::read_dir(plugin.join("commands")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let allowed = text.lines().find_map(|line| line.strip_prefix("allowed-tools: Bash(forge "));
        let verb = allowed.unwrap().split(':').next().unwrap().to_owned();
        assert!(
            forge_cli::integration::permission_rules::ALLOWED.contains(&verb.as_str()),
            "{verb}"
        );
        count += 1;
    }
    assert_eq!(count, 7);
}

#[test]
fn a_missing_text_is_written_in_an_editor() {
    use std::process::Command;
    if Command::new("script").arg("--version").output().is_err() {
        forge_testkit::skip::skipped("editor", "'script' of util-linux is missing");
        return;
    }
    let environment = project();
    let editor = "printf 'from the editor\\n# a remark\\n' >";
    let line =
        format!("NO_COLOR=1 EDITOR=\"{editor}\" script -qec 'forge note' /dev/null < /dev/null");
    let output = environment.finished(&mut environment.shell(&line));
    assert!(output.stdout.contains("Added note N1"), "{output}");
    let notes = environment.forge(["note", "list", "--format", "{says}"]).success();
    assert_eq!(notes, "from the editor\n");
    // Without an editor, and without a terminal, the error is as for any argument.
    let output = environment.finished(&mut environment.shell("script -qec 'forge note' /dev/null"));
    assert!(output.stdout.contains("<DESCRIPTION>"), "{output}");
    assert_eq!(environment.forge(["note"]).code, 2);
}

#[test]
fn confirming_a_hypothesis_against_its_evidence_gives_a_remark() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["h", "add", "one", "-c", "0.06"]).success();
    let confirmed = environment.forge(["h", "confirm", "H1"]);
    assert!(
        confirmed.code == 0
            && confirmed.stderr.contains("H1 is confirmed with a confidence of 0.06"),
        "{confirmed}"
    );
    environment.forge(["h", "add", "two", "-c", "0.9"]).success();
    let confirmed = environment.forge(["h", "confirm", "H2"]);
    assert!(confirmed.code == 0 && !confirmed.stderr.contains("confidence"), "{confirmed}");
}

#[test]
fn the_operations_of_one_claim_are_listed() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for step in [&["h", "add", "one"][..], &["n", "two"], &["h", "reject", "H1"]] {
        let output = environment.finished(&mut environment.command(step));
        assert_eq!(output.code, 0, "{step:?}: {output}");
    }
    let listed = environment.forge(["log", "H1", "--operations", "--json"]).json();
    let verbs: Vec<&str> = listed["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation["verb"].as_str().unwrap())
        .collect();
    assert_eq!(verbs, ["hypothesis reject", "hypothesis add"]);
}

#[test]
fn a_diff_begins_at_the_last_checkpoint_that_was_made_by_hand() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    // Without a checkpoint, the diff begins at the first event.
    environment.forge(["n", "first"]).success();
    environment.forge(["n", "one"]).success();
    let diff = |environment: &Environment| environment.forge(["diff", "--json"]).json();
    assert_eq!(diff(&environment)["changes"].as_array().map(Vec::len), Some(1));
    environment.forge(["checkpoint", "create", "here"]).success();
    assert_eq!(diff(&environment)["changes"].as_array().map(Vec::len), Some(0));
    environment.forge(["n", "two"]).success();
    assert_eq!(diff(&environment)["changes"][0]["id"], "N3");
}

#[test]
fn lists_of_moments_and_sessions_take_a_template() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["checkpoint", "create", "here", "-t", "a,b"]).success();
    environment.forge(["branch", "create", "try"]).success();
    for (list, format, lines) in [
        ("checkpoint", "{sequence} {message} [{tags}]", "1 here [a,b]\n"),
        ("session", "{name} {agent}|{checkpoints}", "s |1\n"),
        ("branch", "{name} {current}", "main true\ntry false\n"),
    ] {
        assert_eq!(environment.forge([list, "list", "--format", format]).success(), lines);
        let json = environment.forge([list, "list", "--format", format, "--json"]).json();
        assert!(json["schema"].is_string(), "{list}");
    }
    assert_eq!(environment.forge(["checkpoint", "list", "-t", "c", "--format", "{id}"]).stdout, "");
}
