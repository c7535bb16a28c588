//! Recovery in a git repository.

use crate::environment::{Environment, Output};
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn examples_of_the_page_work() {
    crate::page::holds("recover.md");
}

fn git(environment: &Environment, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(environment.path("project"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", environment.path("home"))
        .envs([("GIT_AUTHOR_NAME", "me"), ("GIT_AUTHOR_EMAIL", "me@localhost")])
        .envs([("GIT_COMMITTER_NAME", "me"), ("GIT_COMMITTER_EMAIL", "me@localhost")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn run(environment: &Environment, args: &[&str]) -> Output {
    environment.finished(&mut environment.command(args))
}

/// Makes a project in git with a commit, and a store.
fn project() -> Environment {
    let environment = Environment::new();
    git(&environment, &["init", "--quiet", "--initial-branch", "trunk"]);
    environment.write("project/a.rs", "one\ntwo\nthree\n");
    environment.write("project/b.rs", "b\n");
    git(&environment, &["add", "."]);
    git(&environment, &["commit", "--quiet", "-m", "first"]);
    environment.forge(["init"]).success();
    environment
}

/// Returns everything that a recovery must not change: the state of the checkout, the index, the
/// stashes, and the local configuration of git.
fn untouched(environment: &Environment) -> Vec<String> {
    [
        "status --porcelain=v2 --branch",
        "diff HEAD",
        "stash list",
        "ls-files --stage",
        "config --list --local",
    ]
    .iter()
    .map(|args| git(environment, &args.split(' ').collect::<Vec<_>>()))
    .collect()
}

/// Imports facts of code with a stream of events.
fn import(environment: &Environment, facts: &[Value]) {
    let mut text = String::new();
    for (number, fact) in facts.iter().enumerate() {
        let line = json!({
            "at": format!("2026-02-01T11:00:{number:02}Z"),
            "put": {"kind": "code", "id": format!("c{number}"), "value": fact},
        });
        text.push_str(&format!("{line}\n"));
    }
    let name = format!(".git/events-{}.jsonl", text.len());
    environment.write(&format!("project/{name}"), &text);
    run(environment, &["import", "events", &name, "--session", "project"]).success();
}

#[test]
fn uncommitted_changes_are_restored_beside_the_checkout() {
    let environment = project();
    environment.write("project/a.rs", "one\nTWO\nthree\n");
    environment.write("project/new dir/ü.txt", "new\n");
    std::fs::remove_file(environment.path("project/b.rs")).unwrap();
    environment.forge(["code", "capture", "--json"]).success();
    git(&environment, &["checkout", "--quiet", "."]);
    std::fs::remove_dir_all(environment.path("project/new dir")).unwrap();
    environment.write("project/a.rs", "something else, half done\n");
    let before = untouched(&environment);
    let shown = environment.forge(["recover", "--json"]).json();
    assert_eq!(untouched(&environment), before, "showing changes nothing");
    let files = json!([
        {"change": "modified", "path": "a.rs"},
        {"change": "deleted", "path": "b.rs"},
        {"change": "added", "path": "new dir/ü.txt"},
    ]);
    assert_eq!(shown["steps"][0]["files"], files);
    assert_eq!(shown["point"]["is_last"], true);
    // Without consent, the step is refused.
    assert_eq!(environment.forge(["recover", "--step", "1"]).code, 2);
    let made = ["recover", "--step", "1", "--yes", "--worktree", "../again", "--json"];
    let made = environment.forge(made).json();
    assert_eq!((&made["recovery_complete"], &made["files"]), (&json!(true), &files));
    assert_eq!(environment.read("again/a.rs"), "one\nTWO\nthree\n");
    assert_eq!(environment.read("again/new dir/ü.txt"), "new\n");
    assert!(!environment.path("again/b.rs").exists());
    assert_eq!(untouched(&environment), before);
    let leftover = std::fs::read_dir(environment.path("")).unwrap();
    let hidden =
        leftover.filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0);
    // The same step again gives the same commit, and its printed commands remove it.
    let branch_only = environment.forge(["recover", "--step", "1", "--yes", "--json"]).json();
    assert_eq!(branch_only["git_branch"], made["git_branch"]);
    for command in made["undo"].as_array().unwrap() {
        let command = command
            .as_str()
            .unwrap()
            .replace("$ROOT", environment.path("project").parent().unwrap().to_str().unwrap());
        let words: Vec<&str> = command.strip_prefix("git ").unwrap().split(' ').collect();
        if words[0] == "worktree" {
            git(&environment, &words);
        }
    }
    assert!(!environment.path("again").exists());
    assert_eq!(git(&environment, &["branch", "--list", "forge/*"]).lines().count(), 1);
}

/// Returns everything that a recovery may add to: refs, worktrees, and the files next to the
/// checkout.
fn around(environment: &Environment) -> Vec<String> {
    let entries = std::fs::read_dir(environment.path("")).unwrap().map(Result::unwrap);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names.push(git(environment, &["for-each-ref"]));
    names.push(git(environment, &["worktree", "list", "--porcelain"]));
    names
}

/// A `git` that fails at one call, or kills forge before or after that call.
const SHIM: &str = r#"#!/bin/sh
count=$(($(cat "$SHIM_COUNT" 2>/dev/null || echo 0) + 1))
echo "$count" > "$SHIM_COUNT"
# Between forge and this is a guard, where there is one.
forge=$(cut -d' ' -f4 "/proc/$PPID/stat" 2>/dev/null || echo "$PPID")
if [ "$count" = "$SHIM_AT" ]; then
    case "$SHIM_HOW" in
        fails) exit 1 ;;
        killed-before) kill -9 "$forge"; exit 1 ;;
        killed-after) /usr/bin/git "$@" > /dev/null 2>&1; kill -9 "$forge"; exit 1 ;;
    esac
fi
exec /usr/bin/git "$@"
"#;

/// Regression: after a kill between the creation of the worktree and its move, every retry was
/// refused: git had the branch checked out at the temporary place.
#[test]
fn an_interrupted_recovery_changes_nothing_or_is_finished_by_the_next_one() {
    use std::os::unix::fs::PermissionsExt;
    let environment = project();
    environment.write("project/a.rs", "one\nTWO\nthree\n");
    environment.write("project/new.txt", "new\n");
    environment.forge(["code", "capture"]).success();
    environment.write("project/a.rs", "something else, half done\n");
    environment.write("home/shim/git", SHIM);
    let shim = environment.path("home/shim");
    std::fs::set_permissions(shim.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", shim.display());
    let recover = ["recover", "--step", "1", "--yes", "--worktree", "../again", "--json"];
    let (before, beside) = (untouched(&environment), around(&environment));
    let count = shim.join("count");
    // A successful run shows how many calls there are.
    let calls = |at: u32, how: &str| {
        let _ = std::fs::remove_file(&count);
        let mut command = environment.command(recover);
        command.env("PATH", &path).env("SHIM_COUNT", &count);
        let output = command.env("SHIM_AT", at.to_string()).env("SHIM_HOW", how).output().unwrap();
        let calls = std::fs::read_to_string(&count).unwrap().trim().parse::<u32>().unwrap();
        (output, calls)
    };
    let done = |output: std::process::Output| {
        assert!(output.status.success(), "{output:?}");
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(made["recovery_complete"], true);
        assert_eq!(environment.read("again/a.rs"), "one\nTWO\nthree\n");
        assert_eq!(environment.read("again/new.txt"), "new\n");
        assert_eq!(untouched(&environment), before);
        let branch = made["git_branch"].as_str().unwrap();
        let checked_out = git(&environment, &["-C", "../again", "symbolic-ref", "--short", "HEAD"]);
        assert_eq!(checked_out.trim(), branch);
        // The printed commands remove everything again, including all names.
        let undo = made["undo"].as_array().unwrap();
        assert_eq!(undo.len(), 2, "{undo:?}");
        for command in undo {
            let mut shell = environment.shell(command.as_str().unwrap());
            environment.finished(shell.env("LC_ALL", "C")).success();
        }
        assert_eq!(around(&environment), beside);
        assert_eq!(untouched(&environment), before);
    };
    let (output, all) = calls(0, "never");
    done(output);
    assert!(all > 8, "{all} calls of git");
    for how in ["fails", "killed-before", "killed-after"] {
        for at in 1..=all {
            let (output, _) = calls(at, how);
            assert_eq!(untouched(&environment), before, "{how} {at}");
            match how {
                "fails" if !output.status.success() => {
                    assert!(output.status.code().is_some(), "{how} {at}: {output:?}");
                    assert_eq!(around(&environment), beside, "{how} {at}: {output:?}");
                }
                // The failed call was not necessary: the recovery is complete.
                "fails" => {
                    done(output);
                    continue;
                }
                _ => assert_eq!(output.status.code(), None, "{how} {at}: {output:?}"),
            }
            if environment.path("again").exists() {
                // Only the report was missing when it was killed: the worktree is complete, and the
                // test removes it.
                assert_eq!(environment.read("again/a.rs"), "one\nTWO\nthree\n", "{how} {at}");
                git(&environment, &["worktree", "remove", "--force", "../again"]);
            }
            done(calls(0, "never").0);
        }
    }
}

#[test]
fn edits_after_the_last_capture_are_restored_or_named() {
    let environment = project();
    let commit = git(&environment, &["rev-parse", "HEAD"]).trim().to_owned();
    let top = environment.path("project").canonicalize().unwrap();
    let edit = |path: &str, patch: &str| json!({"path": path, "patch": patch});
    let a = top.join("a.rs").display().to_string();
    let hunk = "--- /x\n+++ /x\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    import(
        &environment,
        &[
            json!({"path": a, "patch": "@@ -1,1 +1,1 @@\n-one\n+never: it is in the capture\n"}),
            json!({"commit": commit, "branch": "trunk", "patches": [], "left_out": ["big.bin"]}),
            edit(&a, hunk),
            edit(
                &top.join("c.rs").display().to_string(),
                "--- /dev/null\n+++ /c\n@@ -0,0 +1,1 @@\n+c\n",
            ),
            edit("/elsewhere/d.rs", hunk),
            edit(&top.join(".git/config").display().to_string(), hunk),
            edit(&a, "@@ -1,1 +1,1 @@\n-not there\n+x\n"),
            edit(&top.join("e.rs").display().to_string(), "*** Update File: e.rs\n"),
            json!({"path": a, "patch": "@@ -3,1 +3,1 @@\n-three\n+refused\n", "applied": false}),
            edit(&a, "@@ -3,1 +3,1 @@\n-three\n+3 [redacted:token]\n"),
        ],
    );
    let done = environment.forge(["recover", "--step", "1", "--yes", "--branch", "back", "--json"]);
    assert_eq!(done.code, 1, "{done}");
    let made = serde_json::from_str::<Value>(done.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(git(&environment, &["show", "back:a.rs"]), "one\n2\n3 [redacted:token]\n");
    assert_eq!(git(&environment, &["show", "back:c.rs"]), "c\n");
    assert_eq!((&made["recovery_complete"], &made["redacted"]), (&json!(false), &json!(1)));
    let left: Vec<&str> = made["not_restored"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect();
    assert_eq!(left, ["big.bin", "/elsewhere/d.rs", ".git/config", "e.rs", "a.rs"]);
    // A branch with that name and other content is not changed.
    git(&environment, &["branch", "--force", "taken", "HEAD"]);
    let taken = ["recover", "--step", "1", "--yes", "--branch", "taken"];
    assert_eq!(environment.forge(taken).code, 4);
    for name in ["-x", "a..b", "HEAD", "@", "a b", "x.lock"] {
        assert_eq!(
            run(&environment, &["recover", "--step", "1", "--yes", &format!("--branch={name}")])
                .code,
            2,
            "{name}"
        );
    }
    for place in ["inside", "../project", "../home", "/"] {
        let before = git(&environment, &["for-each-ref"]);
        let args = ["recover", "--step", "1", "--yes", "--branch", "new", "--worktree", place];
        assert_eq!(environment.forge(args).code, 2, "{place}");
        assert_eq!(git(&environment, &["for-each-ref"]), before, "{place}");
    }
}

#[test]
fn a_redacted_value_counts_in_a_line_that_looks_like_the_name_of_a_file() {
    let environment = project();
    let commit = git(&environment, &["rev-parse", "HEAD"]).trim().to_owned();
    let a = environment.path("project").canonicalize().unwrap().join("a.rs").display().to_string();
    import(
        &environment,
        &[
            json!({"commit": commit, "branch": "trunk", "patches": []}),
            json!({"path": a, "patch": "@@ -3,1 +3,1 @@\n-three\n+++ [redacted:token]\n"}),
        ],
    );
    let done = environment.forge(["recover", "--step", "1", "--yes", "--branch", "back", "--json"]);
    let made = serde_json::from_str::<Value>(done.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(git(&environment, &["show", "back:a.rs"]), "one\ntwo\n++ [redacted:token]\n");
    assert_eq!(made["redacted"], json!(1), "{done}");
    // Regression: the sentence had no verb.
    let report = environment.forge(["recover", "--step", "1", "--yes", "--branch", "again"]).stdout;
    let expected = "  1 value is redacted: replace '[redacted:...]' by hand\n";
    assert!(report.contains(expected), "{report}");
}

/// No path or link in a recorded patch leads to a write outside of the worktree or into git's own
/// files.
#[test]
fn hostile_patches_write_nowhere() {
    let environment = project();
    let commit = git(&environment, &["rev-parse", "HEAD"]).trim().to_owned();
    let new = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    let link = |path: &str, target: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
        )
    };
    let mut patches: Vec<String> = [
        "../out", "../../out", "a/../../out", "/tmp/out", "//out", ".git/config",
        ".GIT/hooks/post-checkout", "sub/.git/config", "git~1/x", ".git /x", ".git./x",
        ".git::$INDEX_ALLOCATION/x", "C:/out", "C:\\out", "a\\..\\out", "con", "nul.txt", "a//b",
        "./out", "a/./b", "\u{feff}.git/x", ".g\u{200c}it/x", "x\u{202e}y",
    ]
    .iter()
    .map(|path| new(path))
    .collect();
    patches.extend([
        link("l1", "/etc/passwd"),
        link("l2", "../out"),
        link("l3", ".git/config"),
        link("fine", "a.rs"),
        // A header whose name differs from the name below it.
        "diff --git a/ok b/ok\nnew file mode 100644\n--- /dev/null\n+++ b/../../out\n@@ -0,0 +1 @@\n+x\n".to_owned(),
        "diff --git a/ok b/ok\nnew file mode 100644\n--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n".to_owned(),
        format!("diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..{commit}\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {commit}\n"),
        "diff --git a/b.rs b/../moved\nsimilarity index 100%\nrename from b.rs\nrename to ../moved\n".to_owned(),
        // A path through a link that another patch creates.
        link("way", "home"),
        new("way/in"),
        "no patch at all".to_owned(),
        String::new(),
    ]);
    import(&environment, &[json!({"commit": commit, "patches": patches})]);
    let shown = environment.forge(["recover", "--json"]).json();
    let args =
        ["recover", "--step", "1", "--yes", "--worktree", "../again", "--branch", "back", "--json"];
    let done = environment.forge(args);
    assert_eq!(done.code, 1);
    let made = serde_json::from_str::<Value>(done.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(made["files"], shown["steps"][0]["files"], "what is shown is what is made");
    let paths: Vec<&str> =
        made["files"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["fine", "way"]);
    assert_eq!(made["not_restored"].as_array().unwrap().len(), patches.len() - 2, "{made}");
    let mut names: Vec<String> = std::fs::read_dir(environment.path("again"))
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".git", "a.rs", "b.rs", "fine", "way"]);
    for name in ["out", "moved", "tmp/out", "home/in", "project/.git/hooks/x"] {
        assert!(!environment.path(name).exists(), "{name}");
    }
}

#[test]
fn a_missing_commit_is_reported() {
    let environment = project();
    for commit in ["0123456789012345678901234567890123456789", "--output=x", "HEAD", "trunk", ""] {
        import(&environment, &[json!({"commit": commit, "patches": []})]);
        let done = environment.forge(["recover", "--step", "1", "--yes"]);
        assert_eq!(done.code, 3, "{commit}: {done}");
        let shown = environment.forge(["recover", "--json"]).json();
        assert!(shown["steps"][0]["not_here"].is_string(), "{commit}");
        environment.forge(["undo"]).success();
    }
    let nothing = environment.forge(["recover", "--step", "1", "--yes"]);
    assert_eq!(nothing.code, 3);
}

#[test]
fn variables_commands_and_tasks_are_printed_and_nothing_is_run() {
    let environment = project().with("RUST_LOG", "debug; touch ran").with("MY_TOKEN", "s3cret");
    environment.forge(["code", "capture", "--env"]).success();
    let failed = run(&environment, &["command", "record", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.code, 3);
    let exports = environment.forge(["recover", "--step", "2"]);
    assert!(exports.stdout.contains("export RUST_LOG='debug; touch ran'\n"), "{exports}");
    assert!(!exports.stdout.contains("MY_TOKEN"), "{exports}");
    let commands = environment.forge(["recover", "--step", "3", "--json"]).json();
    assert_eq!(commands["commands"][0]["exit_code"], 3);
    assert_eq!(commands["type"], "replay_command");
    let tasks = environment.forge(["recover", "--step", "4"]);
    assert!(tasks.stdout.contains("forge brief"), "{tasks}");
    assert_eq!(environment.forge(["recover", "--step", "5"]).code, 2);
    assert_eq!(environment.forge(["recover", "--step", "2", "--branch", "x"]).code, 2);
    assert!(!environment.path("project/ran").exists());
}

/// Regression: of a variable whose name a shell does not accept, the step said that its value was
/// not kept, although it was.
#[test]
fn a_variable_with_a_name_that_shells_refuse_is_reported() {
    let environment = project().with("MY-FLAG", "fast");
    environment.forge(["config", "set", "--user", "redact.variables", "MY-*"]).success();
    environment.forge(["code", "capture", "--env"]).success();
    let exports = environment.forge(["recover", "--step", "2"]);
    assert!(exports.stdout.contains("# MY-FLAG: a shell does not accept this name\n"), "{exports}");
}
