//! What protects a machine and a remote: the witness of refs, and grants of single sessions.

use super::{Machine, shared};
use crate::environment::{Environment, Output};
use forge_testkit::files::{files_below, files_with};
use std::fs;
use std::path::{Path, PathBuf};

/// Replaces a folder by a copy of the folder of a remote.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn a_remote_that_was_set_back_is_refused_until_its_history_is_accepted() {
    let environment = Environment::new();
    let first = shared(&environment);
    let (there, backup) = (environment.path("shared"), environment.path("backup"));
    copy(&there, &backup);
    first.forge(["note", "add", "two"]).success();
    first.forge(["push"]).success();
    first.forge(["remote", "key", "export", "../../witness"]).success();
    let key = environment.read("witness");
    assert!(key.starts_with("forge remote key 2\n") && key.contains("\nseen "), "{key}");
    copy(&backup, &there);
    insta::assert_snapshot!(first.forge(["pull"]), @r"
    [stderr]
    error: the remote does not match what was seen of the session 'checkout': it has an earlier version; find the cause before pushing or pulling the session
    hint: if that was done on purpose, 'forge push checkout --accept-history' accepts it and pushes what is missing there, and 'forge pull checkout --accept-history' only accepts it
    [exit 6]
    ");
    // Another store of this machine, and another machine with what this one has seen.
    let anew = first.forge(["clone", "../../shared", "../anew", "--key", "../../key"]);
    assert_eq!(anew.code, 6, "{anew}");
    let second = Machine::new(&environment, "second");
    let clone = ["clone", "../../shared", ".", "--key", "../../witness"];
    insta::assert_snapshot!(second.forge(clone), @r"
    [stderr]
    error: the remote does not match what was seen of the session 'checkout': it has an earlier version; find the cause before pushing or pulling the session
    hint: if that was done on purpose, 'forge push checkout --accept-history' accepts it and pushes what is missing there, and 'forge pull checkout --accept-history' only accepts it
    hint: the store $ROOT/second/checkout/.forge is made and knows the remote: 'forge pull --all' there goes on
    [exit 6]
    ");
    let third = Machine::joined(&environment, "third");
    third.forge(["pull", "checkout"]).success();
    assert_eq!(third.notes("checkout"), ["one"]);
    // The store of the first machine has what is missing on the remote.
    insta::assert_snapshot!(first.forge(["push", "--accept-history"]), @r"Pushed checkout to origin: 1 operation, version 2");
    third.forge(["pull"]).success();
    assert_eq!(third.notes("checkout"), ["one", "two"]);
    // The second machine has seen another version 2.
    assert_eq!(second.forge(["pull", "checkout"]).code, 6);
    insta::assert_snapshot!(second.forge(["pull", "checkout", "--accept-history"]), @r"Pulled checkout from origin: new here, 2 operations, version 2");
    assert_eq!(second.notes("checkout"), ["one", "two"]);
    assert_eq!(second.forge(["pull"]).code, 0);
}

/// Runs a command in a container: a machine whose environment names the remote and a grant.
pub(super) fn run(container: &Machine<'_>, grant: &str, args: &[&str]) -> Output {
    let mut command = container.environment.command(args);
    command
        .env("HOME", container.path("home"))
        .env("FORGE_REMOTE", container.environment.path("shared"))
        .env("FORGE_GRANT", grant)
        .current_dir(container.path("checkout"));
    container.environment.finished(&mut command)
}

/// Returns the grant of the session `checkout` on a remote. Ids in it are not replaced, as they are
/// in other output.
pub(super) fn grant_of(machine: &Machine<'_>, remote: &str) -> String {
    let mut command = machine.command(["remote", "grant", remote, "--session", "checkout"]);
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    printed.trim_end().to_owned()
}

/// Makes a remote with the sessions `checkout` and `other`. Returns its machine and the grant of
/// `checkout`.
fn granted(environment: &Environment) -> (Machine<'_>, String) {
    let first = shared(environment);
    first.forge(["session", "new", "other"]).success();
    first.forge(["note", "add", "not shown", "--session", "other"]).success();
    first.forge(["push", "other"]).success();
    let grant = grant_of(&first, "origin");
    (first, grant)
}

#[test]
fn a_container_with_a_grant_has_its_session_and_no_other() {
    let environment = Environment::new();
    let (first, grant) = granted(&environment);
    assert!(grant.starts_with("forge-grant-1-") && !grant.contains(char::is_whitespace), "{grant}");
    let container = Machine::new(&environment, "container");
    let run = |args: &[&str]| run(&container, &grant, args);
    run(&["init"]).success();
    insta::assert_snapshot!(run(&["session", "list", "--remote", "--format", "{name}"]), @r"checkout");
    insta::assert_snapshot!(run(&["pull", "other"]), @r"
    [stderr]
    error: cannot look for the session 'other' on origin
    Caused by: the grant opens one session of the remote and nothing else of it
    hint: 'forge remote grant --session SESSION' prints the grant of a session where the key of the remote is
    hint: 'forge session list --remote' names the one that it opens
    [exit 7]
    ");
    insta::assert_snapshot!(run(&["pull"]), @r"Pulled checkout from origin: new here, 1 operation, version 1");
    run(&["note", "add", "two"]).success();
    run(&["push"]).success();
    run(&["note", "add", "three"]).success();
    insta::assert_snapshot!(run(&["sync"]), @r"checkout: pulled 0 operations, pushed 1, version 3");
    first.forge(["pull"]).success();
    assert_eq!(first.notes("checkout"), ["one", "two", "three"]);
    // A session that the container creates is not pushed.
    run(&["session", "new", "own"]).success();
    run(&["note", "add", "mine", "--session", "own"]).success();
    insta::assert_snapshot!(run(&["push", "own"]), @r"
    [stderr]
    error: the grant opens one session of the remote and nothing else of it
    hint: 'forge remote grant --session SESSION' prints the grant of a session where the key of the remote is
    [exit 7]
    ");
    let all = run(&["push", "--all"]);
    assert_eq!(all.code, 7, "{all}");
    assert_eq!(run(&["push", "own", "--dry-run"]).code, 7);
    let listed = run(&["remote", "show", "--json"]).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    // These commands need the key.
    insta::assert_snapshot!(run(&["remote", "key", "export", "k"]), @r"
    [stderr]
    error: the remote 'origin' is opened with a grant, without its key
    Caused by: the grant opens one session of the remote and nothing else of it
    hint: 'forge remote grant --session SESSION' prints the grant of a session where the key of the remote is
    [exit 7]
    ");
    for args in [&["remote", "grant"][..], &["remote", "tidy"]] {
        let refused = run(args);
        assert_eq!(refused.code, 7, "{refused}");
    }
    // The container keeps no remote.
    assert_eq!(container.forge(["push"]).code, 3);
}

/// Damages the ref of the only session on the remote, and returns its file.
fn damaged_ref(environment: &Environment) -> PathBuf {
    let file = files_below(&environment.path("shared/refs")).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[60] ^= 1;
    fs::write(&file, bytes).unwrap();
    file
}

/// The error named neither the object nor what to do.
#[test]
fn a_damaged_ref_is_named_and_the_session_can_be_pushed_again() {
    let environment = Environment::new();
    let first = shared(&environment);
    let file = damaged_ref(&environment);
    let refused = first.forge(["pull"]);
    assert_eq!(refused.code, 5, "{refused}");
    let what = "on the remote is damaged: it does not open with the key of its session";
    for text in ["error: 'refs/", what, "remove refs/", "'forge push SESSION --accept-history'"] {
        assert!(refused.stderr.contains(text), "{refused}");
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(first.forge(["push", "checkout", "--accept-history"]).code, 0);
    assert_eq!(first.forge(["pull"]).code, 0);
    assert_eq!(first.notes("checkout"), ["one"]);
}

/// The hint was to push again, which was refused as long as the damaged ref was there.
#[test]
fn a_damaged_ref_under_a_new_key_is_removed_before_the_push() {
    let environment = Environment::new();
    let first = shared(&environment);
    let file = damaged_ref(&environment);
    assert_eq!(first.forge(["remote", "key", "rotate", "--yes"]).code, 0);
    let refused = first.forge(["pull"]);
    assert_eq!(refused.code, 7, "{refused}");
    assert!(refused.stderr.contains("if the ref is damaged, remove refs/"), "{refused}");
    fs::remove_file(&file).unwrap();
    assert_eq!(first.forge(["push", "checkout", "--accept-history"]).code, 0);
    assert_eq!(first.forge(["pull"]).code, 0);
}

/// A damaged ref kept machines from all other sessions, and `forge remote check` called the remote
/// good.
#[test]
fn a_damaged_ref_does_not_stop_the_other_sessions() {
    let environment = Environment::new();
    let first = shared(&environment);
    damaged_ref(&environment);
    first.forge(["session", "new", "other"]).success();
    first.forge(["note", "add", "two"]).success();
    first.forge(["push"]).success();
    let second = Machine::joined(&environment, "second");
    let found = |args: &[&str], text: &str| {
        let mut command = second.command([]);
        let done = environment.finished(command.args(args));
        assert_eq!(done.code, 5, "{args:?}: {done}");
        assert_eq!(done.stderr.matches("is damaged").count(), 1, "{args:?}: {done}");
        assert!(done.stdout.contains(text), "{args:?}: {done}");
    };
    found(&["session", "list", "--remote"], "other");
    found(&["pull", "--all"], "Pulled other from origin");
    found(&["sync", "--all"], "Nothing to exchange with origin: other");
    found(&["remote", "check"], "");
    let unknown = second.forge(["pull", "checkout"]);
    assert_eq!(unknown.code, 3, "{unknown}");
    assert!(unknown.stderr.contains("it may be one that does not open: 'refs/"), "{unknown}");
    let third = Machine::joined(&environment, "third");
    third.forge(["pull", "other"]).success();
    assert_eq!(third.notes("other"), ["two"]);
}

/// `forge doctor` said that a push sends the purge, which needs the key.
#[test]
fn a_purge_with_a_grant_says_to_purge_where_the_key_is() {
    let environment = Environment::new();
    let (_, grant) = granted(&environment);
    let container = Machine::new(&environment, "container");
    let run = |args: &[&str]| run(&container, &grant, args);
    run(&["clone", "../../shared"]).success();
    run(&["note", "add", "the door opens with station-alpha"]).success();
    run(&["push"]).success();
    environment.write("secret", "station-alpha");
    let purged = run(&["purge", "../../secret", "--yes"]).success();
    let remedy = "'forge push' removes there what was purged; purge where the key of the remote is";
    assert!(purged.contains(remedy), "{purged}");
    run(&["push"]).success();
    let doctor = run(&["doctor"]).stdout;
    // The push has removed it there.
    let rest =
        "1 purge not sent to origin yet\n  purge where the key of the remote is too: a grant";
    assert!(doctor.contains(rest), "{doctor}");
}

#[test]
fn a_container_clones_with_a_grant() {
    let environment = Environment::new();
    let (_, grant) = granted(&environment);
    environment.write("grant", &format!("{grant}\n"));
    let container = Machine::new(&environment, "container");
    let run = |args: &[&str]| run(&container, "../../grant", args);
    let clone = container.forge(["clone", "../../shared"]);
    assert_eq!(clone.code, 2, "{clone}");
    assert!(clone.stderr.contains("FORGE_REMOTE_KEY or FORGE_GRANT"), "{clone}");
    assert_eq!(run(&["clone", "../../other"]).code, 2);
    insta::assert_snapshot!(run(&["clone", "../../shared"]), @r"
    Made the store $ROOT/container/checkout/.forge
    Added the remote origin at file://$ROOT/shared
    Pulled checkout from origin: new here, 1 operation, version 1
    Session checkout is the current one.
    ");
    run(&["note", "add", "two"]).success();
    insta::assert_snapshot!(run(&["push"]), @r"Pushed checkout to origin: 1 operation, version 2");
    let key = grant.split('-').nth(3).unwrap();
    assert!(files_with(&container.path(""), key).is_empty());
    // The environment may name the key in the same way.
    let other = Machine::new(&environment, "other");
    let mut command = other.command(["clone", "../../shared", ".", "other"]);
    command
        .env("FORGE_REMOTE", environment.path("shared"))
        .env("FORGE_REMOTE_KEY", environment.path("key"));
    environment.finished(&mut command).success();
    assert_eq!(other.notes("other"), ["not shown"]);
}

#[test]
fn a_wrong_grant_says_what_to_do() {
    let environment = Environment::new();
    let (first, grant) = granted(&environment);
    let container = Machine::new(&environment, "container");
    container.forge(["init"]).success();
    let pull = |grant: &str| run(&container, grant, &["pull"]);
    insta::assert_snapshot!(pull(&grant[..200]), @r"
    [stderr]
    error: what FORGE_GRANT names is not a grant of a session
    Caused by: the grant of the remote is damaged: it was cut or altered
    hint: copy all of what 'forge remote grant' printed, or let it print another
    [exit 5]
    ");
    insta::assert_snapshot!(pull("nothing"), @r"
    [stderr]
    error: cannot read the file that FORGE_GRANT names
    Caused by: No such file or directory (os error 2)
    hint: it is what 'forge remote grant' printed, or the path of a file with it
    [exit 3]
    ");
    insta::assert_snapshot!(pull(&grant.replacen("-1-", "-2-", 1)), @r"
    [stderr]
    error: what FORGE_GRANT names is not a grant of a session
    Caused by: the grant of the remote needs version 2: use a later version of forge
    [exit 5]
    ");
    let mut both = container.command(["pull"]);
    both.env("FORGE_REMOTE", environment.path("shared"))
        .env("FORGE_REMOTE_KEY", environment.path("key"))
        .env("FORGE_GRANT", &grant);
    insta::assert_snapshot!(environment.finished(&mut both), @r"
    [stderr]
    error: FORGE_REMOTE_KEY and FORGE_GRANT are both set
    hint: unset one: the key opens all of the remote, the grant one session
    [exit 2]
    ");
    let mut neither = container.command(["pull"]);
    neither.env("FORGE_REMOTE", environment.path("shared"));
    insta::assert_snapshot!(environment.finished(&mut neither), @r"
    [stderr]
    error: FORGE_REMOTE is set, and neither FORGE_REMOTE_KEY nor FORGE_GRANT is
    hint: FORGE_REMOTE_KEY is the path of the key file, or 'env:NAME'; FORGE_GRANT is what 'forge remote grant' printed, or the path of a file with it
    [exit 2]
    ");
    let mut as_key = container.command(["remote", "add", "../../shared", "--key", &grant]);
    let refused = environment.finished(&mut as_key);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(!refused.stderr.contains(&grant), "{refused}");
    // The grant of another remote.
    environment.make_directory("elsewhere");
    first.forge(["remote", "create", "../../elsewhere", "second"]).success();
    first.forge(["push", "checkout", "--to", "second"]).success();
    insta::assert_snapshot!(pull(&grant_of(&first, "second")), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by: the grant is one of another remote
    hint: 'forge remote grant --session SESSION' prints the grant of a session where the key of the remote is
    [exit 7]
    ");
    first.forge(["session", "new", "third"]).success();
    insta::assert_snapshot!(first.forge(["remote", "grant", "--session", "third"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by: there is no session on the remote '<id1>'
    hint: push the session before it is granted
    [exit 3]
    ");
    let granted = first.forge(["remote", "grant", "--session", "checkout", "--json"]).json();
    assert_eq!(granted["schema"], "forge.remote.grant/1");
    assert!(granted["grant"].as_str().unwrap().starts_with("forge-grant-1-"), "{granted}");
}
