//! The messages of the commands about remotes, and the sessions that they choose.

use super::trust::{grant_of, run};
use super::{Machine, shared};
use crate::environment::Environment;
use std::fs;

fn branch_off(machine: &Machine<'_>, name: &str) {
    machine.forge(["branch", "create", name]).success();
    machine.forge(["branch", "switch", name]).success();
}

#[test]
fn a_branch_that_a_sync_renames_is_reported() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    for machine in [&first, &second] {
        branch_off(machine, "try");
        machine.forge(["note", "add", machine.name]).success();
    }
    first.forge(["push"]).success();
    let pulled = second.forge(["pull"]).success();
    let notice = "your branch try is try.";
    assert!(
        pulled.contains(notice) && pulled.contains("others pushed one of that name"),
        "{pulled}"
    );
    let other = Machine::joined(&environment, "third");
    other.forge(["pull", "checkout"]).success();
    branch_off(&other, "next");
    second.forge(["sync"]).success();
    branch_off(&second, "next");
    second.forge(["sync"]).success();
    let pushed = other.forge(["push", "--json"]).json();
    let renamed = &pushed["sessions"][0]["renamed_branches"];
    assert_eq!(renamed[0][0], "next", "{pushed}");
}

#[test]
fn with_a_grant_commands_are_about_its_session() {
    let environment = Environment::new();
    let first = shared(&environment);
    let grant = grant_of(&first, "origin");
    let container = Machine::new(&environment, "container");
    let run = |args: &[&str]| run(&container, &grant, args);
    run(&["init"]).success();
    run(&["session", "new", "own"]).success();
    run(&["note", "add", "mine"]).success();
    insta::assert_snapshot!(run(&["push"]), @r"
    [stderr]
    error: the session that the grant opens is not here yet
    hint: 'forge pull' brings it
    [exit 3]
    ");
    insta::assert_snapshot!(run(&["sync"]), @r"checkout: new here, pulled 1 operation, pushed 0, version 1");
    run(&["note", "add", "two", "--session", "checkout"]).success();
    assert_eq!(run(&["session", "list", "--json"]).json()["sessions"].as_array().unwrap().len(), 2);
    insta::assert_snapshot!(run(&["push", "--dry-run"]), @r"Would push checkout to origin: 1 operation");
    insta::assert_snapshot!(run(&["push"]), @r"Pushed checkout to origin: 1 operation, version 2");
    insta::assert_snapshot!(run(&["sync"]), @r"Nothing to exchange with origin: checkout");
    assert_eq!(run(&["push", "--session", "own"]).code, 7);
    first.forge(["pull"]).success();
    assert_eq!(first.notes("checkout"), ["one", "two"]);
}

#[test]
fn a_key_or_grant_in_the_environment_without_an_address_is_refused() {
    let environment = Environment::new();
    let first = shared(&environment);
    let grant = grant_of(&first, "origin");
    let container = Machine::new(&environment, "container");
    container.forge(["init"]).success();
    let run = |variable: &str, value: &str, args: &[&str]| {
        let mut command = environment.command(args);
        command.env("HOME", container.path("home")).env(variable, value);
        environment.finished(command.current_dir(container.path("checkout")))
    };
    insta::assert_snapshot!(run("FORGE_GRANT", &grant, &["pull"]), @r"
    [stderr]
    error: FORGE_GRANT is set, and FORGE_REMOTE is not
    hint: set FORGE_REMOTE to the URL of the remote
    [exit 2]
    ");
    insta::assert_snapshot!(run("FORGE_REMOTE_KEY", "../../key", &["push"]), @r"
    [stderr]
    error: FORGE_REMOTE_KEY is set, and FORGE_REMOTE is not
    hint: set FORGE_REMOTE to the URL of the remote
    [exit 2]
    ");
    insta::assert_snapshot!(run("FORGE_GRANT", &grant, &["clone", "../../shared", "../x"]), @r"
    [stderr]
    error: FORGE_GRANT is set, and FORGE_REMOTE is not
    hint: set FORGE_REMOTE to the URL of the remote
    [exit 2]
    ");
    // Other commands ignore the variable, and so does a store that knows its remote.
    run("FORGE_GRANT", &grant, &["status"]).success();
    let known = environment.finished(first.command(["push"]).env("FORGE_GRANT", &grant));
    assert_eq!(known.code, 0, "{known}");
}

#[test]
fn hints_name_the_remote_that_was_named() {
    let environment = Environment::new();
    let first = shared(&environment);
    environment.make_directory("again");
    first.forge(["remote", "create", "../../again", "again"]).success();
    insta::assert_snapshot!(first.forge(["pull", "--from", "again"]), @r"
    No session here was pushed or pulled before.
    'forge session list --remote=again' shows what is there, 'forge pull SESSION --from again' pulls one, 'forge pull --all --from again' pulls all.
    ");
    insta::assert_snapshot!(first.forge(["pull", "--from", "again", "--all"]), @r"No session to pull from again.");
    insta::assert_snapshot!(first.forge(["pull", "--from", "again", "--accept-history"]), @r"
    [stderr]
    error: no session here was pushed or pulled before: there is no history to accept
    hint: 'forge pull SESSION --from again --accept-history' accepts that of one session, '--all' that of all; 'forge session list --remote=again' names them
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["pull", "other", "--from", "again"]), @r"
    [stderr]
    error: there is no session 'other' on again
    hint: 'forge session list --remote=again' names those that are there
    [exit 3]
    ");
    first.forge(["push", "--to", "again"]).success();
    super::trust::copy(&environment.path("again"), &environment.path("backup"));
    first.forge(["note", "add", "two"]).success();
    let doctor = first.forge(["doctor"]).stdout;
    assert!(doctor.contains("'forge sync --with again' exchanges them"), "{doctor}");
    first.forge(["push", "--to", "again"]).success();
    super::trust::copy(&environment.path("backup"), &environment.path("again"));
    insta::assert_snapshot!(first.forge(["pull", "--from", "again"]), @r"
    [stderr]
    error: the remote does not match what was seen of the session 'checkout': it has an earlier version; find the cause before pushing or pulling the session
    hint: if that was done on purpose, 'forge push checkout --to again --accept-history' accepts it and pushes what is missing there, and 'forge pull checkout --from again --accept-history' only accepts it
    [exit 6]
    ");
    assert_eq!(first.forge(["push", "checkout", "--to", "again", "--accept-history"]).code, 0);
    fs::remove_file(environment.path("again/forge")).unwrap();
    insta::assert_snapshot!(first.forge(["pull", "--from", "again"]), @r"
    [stderr]
    error: cannot use the remote 'again' at file://$ROOT/again
    Caused by: the remote is gone: nothing was pulled or pushed
    hint: mount the disk, or bring back what was at this address: 'forge remote show again' says which remote it was; 'forge remote remove again' forgets it and its key
    [exit 6]
    ");
}

#[test]
fn credentials_in_an_address_are_not_shown() {
    let environment = Environment::new();
    let first = shared(&environment);
    let container = Machine::new(&environment, "container");
    container.forge(["init"]).success();
    let address = "s3://name:hidden@team/forge";
    let run = |args: &[&str]| {
        let mut command = environment.command(args);
        command
            .env("HOME", container.path("home"))
            .env("FORGE_REMOTE", address)
            .env("FORGE_REMOTE_KEY", environment.path("key"));
        environment.finished(command.current_dir(container.path("checkout")))
    };
    insta::assert_snapshot!(run(&["push", "--all"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at s3://***@team/forge
    Caused by: the address cannot be used as a remote: it has credentials: leave them out, they are read from the environment
    [exit 2]
    ");
    for args in [
        &["remote", "list"][..],
        &["remote", "list", "--json"],
        &["remote", "show"],
        &["remote", "check"],
        &["remote", "check", address],
        &["pull"],
        &["clone", "../../shared", "../x"],
    ] {
        let message = run(args).to_string();
        assert!(!message.contains("hidden"), "{args:?}: {message}");
    }
    for args in [["remote", "create", address], ["remote", "create", "file://name:hidden@host/x"]] {
        let message = first.forge(args);
        assert!(message.code != 0 && !message.to_string().contains("hidden"), "{message}");
    }
}

#[test]
fn missing_credentials_say_where_they_are_looked_for() {
    let environment = Environment::new();
    let first = shared(&environment);
    environment.make_directory("first/home/.aws");
    let config = "[default]\nsso_session = acme\n";
    environment.write("first/home/.aws/config", config);
    for args in [["remote", "check", "s3://team/forge"], ["remote", "create", "s3://team/forge"]] {
        let refused = first.forge(args);
        assert_eq!(refused.code, 4, "{refused}");
        assert!(refused.stderr.contains("credentials are looked for in AWS_"), "{refused}");
    }
}

#[test]
fn sessions_since_a_time_are_pulled_without_reading_others() {
    let environment = Environment::new();
    let first = shared(&environment);
    let january = |machine: &Machine<'_>, args: &[&str]| {
        let mut command = environment.command(args);
        command.env("HOME", machine.path("home")).current_dir(machine.path("checkout"));
        environment.finished(command.env("FORGE_TEST_NOW", "2026-01-02T03:04:05Z")).success();
    };
    // The pack of this session is too large to be in the ref.
    let mut text = vec![0; 40_000];
    blake3::Hasher::new().finalize_xof().fill(&mut text);
    let text: String = text.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    january(&first, &["session", "new", "old"]);
    january(&first, &["note", "add", "--no-redact", &text, "--session", "old"]);
    january(&first, &["push", "old", "--allow-secrets"]);
    fs::remove_dir_all(environment.path("shared/packs")).unwrap();
    let second = Machine::joined(&environment, "second");
    insta::assert_snapshot!(second.forge(["pull", "--all", "--since", "-7d"]), @r"Pulled checkout from origin: new here, 1 operation, version 1");
    assert!(second.forge(["pull", "old"]).code != 0);
    let third = Machine::joined(&environment, "third");
    insta::assert_snapshot!(third.forge(["pull", "--since", "7d", "--dry-run"]), @r"Would pull checkout from origin: new here, at most 1 operation, version 1");
    insta::assert_snapshot!(third.forge(["pull", "--since", "now"]), @r"No session on origin was written to or pushed since then.");
    insta::assert_snapshot!(third.forge(["pull", "--since", "HEAD"]), @r"
    [stderr]
    error: 'HEAD' is not a time
    hint: write one such as -7d, 'yesterday 14:30' or 2026-02-01
    [exit 2]
    ");
    assert_eq!(third.forge(["pull", "old", "--since", "7d"]).code, 2);
    let fourth = Machine::new(&environment, "fourth");
    let clone = |since: &'static str| {
        fourth.forge(["clone", "../../shared", "--key", "../../key", "--since", since])
    };
    insta::assert_snapshot!(clone("now"), @r"
    [stderr]
    error: no session on the remote was written to or pushed since then
    hint: name an earlier time, or '--all'
    [exit 3]
    ");
    assert!(!fourth.path("checkout/.forge").exists());
    insta::assert_snapshot!(clone("-7d"), @r"
    Made the store $ROOT/fourth/checkout/.forge
    Added the remote origin at file://$ROOT/shared
    Pulled checkout from origin: new here, 1 operation, version 1
    Session checkout is the current one.
    ");
}

#[test]
fn a_pull_may_refuse_to_join() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout", "--ff-only"]).success();
    first.forge(["note", "add", "two"]).success();
    first.forge(["push"]).success();
    insta::assert_snapshot!(second.forge(["pull", "--ff-only"]), @r"Pulled checkout from origin: 1 operation, version 2");
    first.forge(["note", "add", "three"]).success();
    first.forge(["push"]).success();
    second.forge(["note", "add", "mine"]).success();
    insta::assert_snapshot!(second.forge(["pull", "--ff-only"]), @r"
    [stderr]
    error: the session 'checkout' was changed here and on the remote: both would have to be joined, and nothing was pulled
    hint: nothing is lost: what is here stays here, and what is there stays there
    [exit 4]
    ");
    assert_eq!(second.notes("checkout"), ["one", "two", "mine"]);
    second.forge(["pull"]).success();
    assert_eq!(second.notes("checkout"), ["one", "two", "three", "mine"]);
}

#[test]
fn a_setting_says_which_kinds_of_sessions_are_pushed() {
    let environment = Environment::new();
    let first = shared(&environment);
    environment.write("first/checkout/talk.jsonl", "{\"role\":\"user\",\"content\":\"hello\"}\n");
    first.forge(["thread", "append", "--thread", "talk", "talk.jsonl"]).success();
    insta::assert_snapshot!(first.forge(["push", "--all"]), @r"Nothing to push to origin: checkout");
    insta::assert_snapshot!(first.forge(["config", "set", "push.kinds", "thread"]), @r"
    [stderr]
    error: a project may not set 'push.kinds', as it says what is sent to a remote
    hint: 'forge config set --user push.kinds VALUE' sets it for you
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["config", "set", "--user", "push.kinds", "debugging"]), @r"
    [stderr]
    error: 'push.kinds' must be kinds of sessions out of debug, run, progress, program, thread, graph, memory, not 'debugging'
    [exit 2]
    ");
    first.forge(["config", "set", "--user", "push.kinds", "debug thread"]).success();
    insta::assert_snapshot!(first.forge(["push", "--all"]), @r"
    Pushed talk to origin: 1 operation, version 1
    Nothing to push to origin: checkout
    ");
    let second = Machine::joined(&environment, "second");
    assert_eq!(second.forge(["pull", "--all"]).code, 0);
    let listed = second.forge(["session", "list", "--kind", "thread", "--json"]).json();
    assert_eq!(listed["sessions"][0]["name"], "talk", "{listed}");
}
