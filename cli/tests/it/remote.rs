//! Stores on several machines that share sessions through a remote in a folder.

mod rotate;
mod trust;
mod two_remotes;
mod words;

use crate::environment::{Environment, Output, mode};
use forge_testkit::files::files_with;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn examples_of_the_remotes_page_work() {
    crate::page::holds("remotes.md");
}

/// A machine: a home directory with its keyring, and a project.
struct Machine<'a> {
    environment: &'a Environment,
    name: &'static str,
}

impl<'a> Machine<'a> {
    /// Makes a machine with an empty project.
    fn new(environment: &'a Environment, name: &'static str) -> Self {
        for folder in ["home", "checkout"] {
            environment.make_directory(&format!("{name}/{folder}"));
        }
        Self { environment, name }
    }

    /// Makes a machine with a store that has added the remote.
    fn joined(environment: &'a Environment, name: &'static str) -> Self {
        let machine = Self::new(environment, name);
        machine.forge(["init"]).success();
        machine.forge(["remote", "add", "../../shared", "--key", "../../key"]).success();
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.environment.path(&format!("{}/{name}", self.name))
    }

    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = self.environment.command(args);
        command.env("HOME", self.path("home")).current_dir(self.path("checkout"));
        command
    }

    fn forge<const N: usize>(&self, args: [&str; N]) -> Output {
        self.environment.finished(&mut self.command(args))
    }

    fn notes(&self, session: &str) -> Vec<String> {
        let list = self.forge(["note", "list", "--json", "--session", session]).json();
        let notes = list["notes"].as_array().unwrap().iter();
        notes.map(|note| note["description"].as_str().unwrap().to_owned()).collect()
    }
}

/// Makes a machine that has created a remote in the folder `shared`, has written its key to the
/// file `key`, and has pushed the session `checkout` with one note.
fn shared(environment: &Environment) -> Machine<'_> {
    environment.make_directory("shared");
    let first = Machine::new(environment, "first");
    first.forge(["init"]).success();
    first.forge(["remote", "create", "../../shared"]).success();
    first.forge(["remote", "key", "export", "../../key"]).success();
    first.forge(["note", "add", "one"]).success();
    first.forge(["push"]).success();
    first
}

#[test]
fn two_machines_take_turns() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::new(&environment, "second");
    insta::assert_snapshot!(second.forge(["clone", "../../shared", "--key", "../../key"]), @r"
    Made the store $ROOT/second/checkout/.forge
    Added the remote origin at file://$ROOT/shared
    Pulled checkout from origin: new here, 1 operation, version 1
    Session checkout is the current one.
    ");
    assert_eq!(second.notes("checkout"), ["one"]);
    let again = second.forge(["clone", "../../shared", "--key", "../../key"]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("'forge remote add URL --key FILE'"), "{again}");
    insta::assert_snapshot!(second.forge(["pull"]), @r"Nothing to pull from origin: checkout");
    insta::assert_snapshot!(second.forge(["push"]), @r"Nothing to push to origin: checkout");
    for (machine, other, note) in
        [(&second, &first, "two"), (&first, &second, "three"), (&second, &first, "four")]
    {
        machine.forge(["note", "add", note]).success();
        let pushed = machine.forge(["push", "--json"]).json();
        assert_eq!(pushed["sessions"][0]["operations"], 1, "{pushed}");
        let pulled = other.forge(["pull", "--json"]).json();
        assert_eq!(pulled["sessions"][0]["operations"], 1, "{pulled}");
    }
    assert_eq!(first.notes("checkout"), ["one", "two", "three", "four"]);
    assert_eq!(first.notes("checkout"), second.notes("checkout"));
    let shown = [&first, &second].map(|machine| machine.forge(["verify", "--read-data"]).code);
    assert_eq!(shown, [0, 0]);
}

#[test]
fn a_remote_is_made_listed_shown_and_removed() {
    let environment = Environment::new();
    environment.make_directory("shared");
    let first = Machine::new(&environment, "first");
    first.forge(["init"]).success();
    insta::assert_snapshot!(first.forge(["remote", "list"]), @r"
    This store has no remotes.
    'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds one.
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "../../shared"]), @r"
    Made the remote origin at file://$ROOT/shared
      Its key is in the keyring of this machine and nowhere else: 'forge remote key export FILE' writes it for other machines
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "../../shared"]), @r"
    [stderr]
    error: this store has a remote 'origin' already
    hint: give this one another name, or see 'forge remote show'
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "../../shared", "second"]), @r"
    [stderr]
    error: cannot use the remote 'second' at file://$ROOT/shared
    Caused by: there is a remote already: join it with its key
    hint: 'forge remote add URL second --key FILE' joins it
    [exit 4]
    ");
    insta::assert_snapshot!(first.forge(["remote", "show"]), @r"
    origin at file://$ROOT/shared (<id1>)
      No session here was pushed to it or pulled from it.
    ");
    first.forge(["note", "add", "one"]).success();
    insta::assert_snapshot!(first.forge(["push", "--dry-run"]), @r"Would push checkout to origin: 1 operation");
    insta::assert_snapshot!(first.forge(["push"]), @r"Pushed checkout to origin: 1 operation, version 1");
    first.forge(["note", "add", "two"]).success();
    // The width of the table depends on the path.
    let listed = first.forge(["remote", "list"]).success();
    let words: Vec<&str> = listed.split_ascii_whitespace().collect();
    let expected =
        ["Remote", "URL", "Sessions", "Unpushed", "origin", "file://$ROOT/shared", "1", "1"];
    assert_eq!(words, expected);
    insta::assert_snapshot!(first.forge(["remote", "show"]), @r"
    origin at file://$ROOT/shared (<id1>)
    Session   Unpushed  Since
    checkout         1  2 s ago
    ");
    insta::assert_snapshot!(first.forge(["remote", "check"]), @r"
    file://$ROOT/shared does what remotes need.
      It is the remote that this store knows, and the key opens it.
    ");
    insta::assert_snapshot!(first.forge(["remote", "tidy"]), @r"There is nothing to remove on origin.");
    insta::assert_snapshot!(first.forge(["remote", "remove"]), @r"
    [stderr]
    error: the key of 'origin' is kept nowhere else on this machine: without it the remote cannot be read
    hint: 'forge remote key export FILE origin' writes it to a file; '--yes' forgets it
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "remove", "--yes"]), @r"Forgot the remote origin; what is at file://$ROOT/shared stays there");
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: this store has no remote 'origin'
    hint: 'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds one
    [exit 3]
    ");
    assert!(environment.path("shared/forge").exists());
}

#[test]
fn a_key_is_private_and_is_not_in_the_project() {
    let environment = Environment::new();
    let first = shared(&environment);
    let key = environment.path("key");
    assert_eq!(mode(&key), 0o600);
    let text = fs::read_to_string(&key).unwrap();
    assert!(text.starts_with("forge remote key 1\nremote ") && text.lines().count() == 4, "{text}");
    let again = first.forge(["remote", "key", "export", "../../key"]);
    assert_eq!(again.code, 2, "{again}");
    let secret = text.lines().find_map(|line| line.strip_prefix("secret ")).unwrap();
    let holders = files_with(&environment.path(""), secret);
    let keyring = first.path("home/.local/state/forge/keyring");
    let [file, kept] = holders.as_slice() else { panic!("{holders:?}") };
    assert!(kept.starts_with(&keyring) || file.starts_with(&keyring), "{holders:?}");
    assert!(holders.iter().all(|path| mode(path) == 0o600));
    // Regression: the printed path was `$ROOT/first/checkout/./.own.key`.
    let message = first.forge(["remote", "key", "export", "./.own.key"]).success();
    assert!(message.contains("/checkout/.own.key\n"), "{message}");
}

#[test]
fn wrong_usage_says_what_to_do() {
    let environment = Environment::new();
    environment.make_directory("shared");
    let first = Machine::new(&environment, "first");
    first.forge(["init"]).success();
    first.forge(["note", "add", "one"]).success();
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: this store has no remote 'origin'
    hint: 'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds one
    [exit 3]
    ");
    insta::assert_snapshot!(first.forge(["pull", "--from", "other"]), @r"
    [stderr]
    error: this store has no remote 'other'
    hint: 'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds one
    [exit 3]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "shared"]), @r"
    [stderr]
    error: 'shared' is neither a URL nor a path with a slash
    hint: a folder here is ./shared
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "ftp://host/x"]), @r"
    [stderr]
    error: 'ftp:' is not a kind of remote that this forge can open: it knows file:, s3:, gs: and az:
    hint: name a folder that the machines share, such as file:///mnt/team/forge
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "file://host/x"]), @r"
    [stderr]
    error: 'file://host/x' is not the URL of a folder
    hint: write file:///path/of/the/folder, or the path alone
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "../../missing"]), @r"
    [stderr]
    error: the remote cannot be used: there is no folder $ROOT/first/checkout/../../missing: create or mount it, or name another
    Caused by: No such file or directory (os error 2)
    [exit 4]
    ");
    insta::assert_snapshot!(first.forge(["remote", "create", "../../shared", ".hidden"]), @r"
    [stderr]
    error: '.hidden' cannot be the name of a remote: it has 1 to 64 ASCII letters, digits, '-', '_' and '.', does not begin with '.' and does not end with '.new'
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["remote", "add", "../../shared", "--key", "none"]), @r"
    [stderr]
    error: cannot read the key file 'none'
    Caused by: No such file or directory (os error 2)
    hint: 'forge remote key export FILE' writes it where the remote is known
    [exit 3]
    ");
    // A secret that was given instead of the file with it is not repeated.
    let secret = "0123456789abcdef".repeat(4);
    insta::assert_snapshot!(first.forge(["remote", "add", "../../shared", "--key", &secret]), @r"
    [stderr]
    error: this is the text of a key, not a file with it
    hint: write it to a file and name that, or 'env:NAME' for a variable with it
    [exit 2]
    ");
    environment.write("first/checkout/text", "not a key");
    insta::assert_snapshot!(first.forge(["remote", "add", "../../shared", "--key", "text"]), @r"
    [stderr]
    error: 'text' is not a key of a remote
    Caused by: the key file of the remote is damaged: it does not begin with 'forge remote key'
    hint: 'forge remote key export FILE' writes it where the remote is known
    [exit 5]
    ");
    insta::assert_snapshot!(first.forge(["remote", "add", "../../shared", "--key", "env:NO"]), @r"
    [stderr]
    error: the environment variable 'NO' is not set, or is not text
    [exit 3]
    ");
    assert!(!environment.path("shared/forge").exists());
    assert_eq!(first.forge(["remote", "list", "--json"]).json()["remotes"], Value::Array(vec![]));
}

#[test]
fn a_wrong_or_damaged_key_joins_nothing() {
    let environment = Environment::new();
    let first = shared(&environment);
    environment.make_directory("elsewhere");
    first.forge(["remote", "create", "../../elsewhere", "other"]).success();
    first.forge(["remote", "key", "export", "../../other", "other"]).success();
    let second = Machine::new(&environment, "second");
    second.forge(["init"]).success();
    insta::assert_snapshot!(second.forge(["remote", "add", "../../shared", "--key", "../../other"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by: the key is not the key of this remote: ask for a key file from a place that uses it
    [exit 7]
    ");
    let damaged = environment.read("key").replacen("secret ", "secret 0", 1);
    environment.write("damaged", &damaged);
    insta::assert_snapshot!(second.forge(["remote", "add", "../../shared", "--key", "../../damaged"]), @r"
    [stderr]
    error: '../../damaged' is not a key of a remote
    Caused by: the key file of the remote is damaged: it has no valid secret
    hint: 'forge remote key export FILE' writes it where the remote is known
    [exit 5]
    ");
    let refused = second.forge(["clone", "../../shared", "../new", "--key", "../../other"]);
    assert_eq!(refused.code, 7, "{refused}");
    assert!(!second.path("new").exists());
    let mut by_variable = second.command(["remote", "add", "../../shared", "--key", "env:KEY"]);
    by_variable.env("KEY", environment.read("key").replace('\n', " "));
    assert_eq!(environment.finished(&mut by_variable).code, 0);
    assert_eq!(second.forge(["pull", "checkout"]).code, 0);
}

#[test]
fn an_empty_or_another_or_a_missing_remote_is_refused() {
    let environment = Environment::new();
    let first = shared(&environment);
    first.forge(["note", "add", "two"]).success();
    // The folder of the remote is empty.
    fs::rename(environment.path("shared"), environment.path("moved")).unwrap();
    environment.make_directory("shared");
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by: the remote is gone: nothing was pulled or pushed
    hint: mount the disk, or bring back what was at this address: 'forge remote show' says which remote it was; 'forge remote remove' forgets it and its key
    [exit 6]
    ");
    // Another remote is in the folder.
    let other = Machine::new(&environment, "other");
    other.forge(["init"]).success();
    other.forge(["remote", "create", "../../shared"]).success();
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by: the remote is another one now: nothing was pulled or pushed
    hint: mount the disk, or bring back what was at this address: 'forge remote show' says which remote it was; 'forge remote remove' forgets it and its key
    [exit 6]
    ");
    assert!(!environment.path("shared/refs").exists());
    // The folder is missing, as if it were not mounted.
    fs::remove_dir_all(environment.path("shared")).unwrap();
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: cannot use the remote 'origin' at file://$ROOT/shared
    Caused by:
      1: the remote cannot be used: there is no folder $ROOT/shared: create or mount it, or name another
      2: No such file or directory (os error 2)
    [exit 4]
    ");
    // The remote is back.
    fs::rename(environment.path("moved"), environment.path("shared")).unwrap();
    assert_eq!(first.forge(["push"]).code, 0);
}

#[test]
fn a_remote_that_cannot_be_written_is_read() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    if crate::fault::is_root() {
        // No permission stops root: a file in the place of a folder does.
        let refs = environment.path("shared/.unfinished");
        fs::remove_dir_all(&refs).unwrap();
        fs::write(&refs, "").unwrap();
    } else {
        for folder in ["shared", "shared/.unfinished", "shared/refs"] {
            fs::set_permissions(environment.path(folder), Permissions::from_mode(0o555)).unwrap();
        }
    }
    assert_eq!(second.forge(["pull", "checkout"]).code, 0);
    first.forge(["note", "add", "two"]).success();
    let refused = first.forge(["push"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("the remote 'origin'"), "{refused}");
    assert_eq!(first.notes("checkout"), ["one", "two"]);
    for folder in ["shared", "shared/refs"] {
        fs::set_permissions(environment.path(folder), Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_pulled_session_whose_name_is_taken_gets_a_suffix() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["note", "add", "mine"]).success();
    let pulled = second.forge(["pull", "checkout", "--json"]).json();
    let name = pulled["sessions"][0]["session"].as_str().unwrap().to_owned();
    assert!(name.starts_with("checkout.") && name.len() == 13, "{pulled}");
    assert_eq!(second.notes(&name), ["one"]);
    assert_eq!(second.notes("checkout"), ["mine"]);
    second.forge(["note", "add", "two", "--session", &name]).success();
    second.forge(["push", &name]).success();
    assert_eq!(first.forge(["pull"]).code, 0);
    assert_eq!(first.notes("checkout"), ["one", "two"]);
    // The own session of that name becomes another session on the remote.
    assert_eq!(second.forge(["push", "checkout"]).code, 0);
    let listed = first.forge(["session", "list", "--remote", "--json"]).json();
    let names: Vec<_> = listed["sessions"].as_array().unwrap().iter().collect();
    assert!(names.iter().all(|one| one["name"] == "checkout") && names.len() == 2, "{listed}");
    let third = Machine::new(&environment, "third");
    let refused = third.forge(["clone", "../../shared", "--key", "../../key", ".", "checkout"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("2 sessions on origin are named 'checkout'"), "{refused}");
    let mut raw = first.command(["session", "list", "--remote", "--format", "{handle}"]);
    let handles = String::from_utf8(raw.output().unwrap().stdout).unwrap();
    let beginning = &handles[..8];
    let clone = ["clone", "../../shared", ".", beginning, "--key", "../../key", "--json"];
    let cloned = third.forge(clone);
    assert_eq!(cloned.json()["current"], "checkout");
}

#[test]
fn changes_of_both_sides_are_joined() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    first.forge(["note", "add", "there"]).success();
    first.forge(["push"]).success();
    // Another machine began the session, so ids end with the tag of this one.
    let added = second.forge(["note", "add", "here", "--json"]).json();
    assert_eq!(added["id"], "N2-<tag>");
    let pulled = second.forge(["pull"]);
    assert!(
        pulled.stdout.contains("your changes follow what others pushed: #2 is #3 now"),
        "{pulled}"
    );
    assert_eq!(second.notes("checkout"), ["one", "there", "here"]);
    second.forge(["sync"]).success();
    first.forge(["sync"]).success();
    assert_eq!(first.notes("checkout"), ["one", "there", "here"]);
    // Both machines change one claim.
    first.forge(["note", "update", "N1", "-m", "changed there"]).success();
    first.forge(["push"]).success();
    second.forge(["note", "update", "N1", "-m", "changed here"]).success();
    let pushed = second.forge(["push"]);
    assert_eq!(pushed.code, 0, "{pushed}");
    assert!(pushed.stdout.contains("both sides changed the note N1"), "{pushed}");
    let shown = second.command(["branch", "list", "--format", "{name}"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let branch = shown.lines().find(|name| name.starts_with("main.")).unwrap();
    second.forge(["branch", "switch", "main"]).success();
    let merged = second.forge(["branch", "merge", branch]);
    assert!(merged.to_string().contains("N1"), "{merged}");
}

#[test]
fn a_sync_brings_both_sides_to_the_same() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    insta::assert_snapshot!(second.forge(["sync", "checkout"]), @r"checkout: new here, pulled 1 operation, pushed 0, version 1");
    second.forge(["note", "add", "two"]).success();
    insta::assert_snapshot!(second.forge(["sync"]), @r"checkout: pulled 0 operations, pushed 1, version 2");
    first.forge(["session", "new", "later"]).success();
    first.forge(["note", "add", "a"]).success();
    insta::assert_snapshot!(first.forge(["sync"]), @r"
    checkout: pulled 1 operation, pushed 0, version 2
    later: pulled 0 operations, pushed 1, version 1
    ");
    insta::assert_snapshot!(first.forge(["sync"]), @r"Nothing to exchange with origin: 2 sessions");
    // Regression: a session that does not exist was ignored.
    assert_eq!(first.forge(["sync", "--session", "nothing"]).code, 3);
    assert_eq!(first.forge(["pull", "--session", "nothing"]).code, 3);
    assert_eq!(first.forge(["pull", "--session", "later"]).code, 0);
    let all = second.forge(["sync", "--all", "--json"]).json();
    assert_eq!(all["sessions"].as_array().unwrap().len(), 2, "{all}");
    assert_eq!(second.notes("later"), ["a"]);
}

/// The pull only said "1 operation", although checkpoints that were made here had disappeared.
#[test]
fn a_pull_says_how_many_checkpoints_others_have_pruned() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    for message in ["a", "b", "c"] {
        second.forge(["checkpoint", "create", message]).success();
    }
    second.forge(["push"]).success();
    let third = Machine::joined(&environment, "third");
    third.forge(["pull", "checkout"]).success();
    first.forge(["pull"]).success();
    first.forge(["checkpoint", "prune", "--keep-last", "1", "--drop-manual"]).success();
    first.forge(["push"]).success();
    insta::assert_snapshot!(second.forge(["pull"]), @r"
    Pulled checkout from origin: 1 operation, version 3
      others pruned or undid 2 checkpoints that this store had
      forge log --operations
    ");
    // What was not pushed is joined.
    third.forge(["note", "add", "two"]).success();
    let pulled = third.forge(["pull", "--json"]).json();
    assert_eq!(pulled["sessions"][0]["removed_checkpoints"], 2, "{pulled}");
}

/// The error did not name the operation to undo, which only the log of another session lists. Later
/// it named that operation for a dropped session too, which 'forge undo' does not find.
#[test]
fn a_pull_of_a_session_that_was_removed_here_names_the_commands_that_bring_it_back() {
    let environment = Environment::new();
    let first = shared(&environment);
    first.forge(["session", "new", "later"]).success();
    first.forge(["note", "add", "a"]).success();
    first.forge(["checkpoint", "prune", "--sessions", "0s"]).success();
    let refused = first.forge(["pull", "checkout"]);
    assert_eq!(refused.code, 4, "{refused}");
    let named = "the session 'checkout' was pruned here: 'forge undo ";
    assert!(refused.stderr.contains(named), "{refused}");
    assert!(refused.stderr.contains(" --session later' brings it back"), "{refused}");
    // Regression: all sessions could not be pulled without an error any more.
    let left_out = "Left out the session 'checkout': it was dropped or pruned here.\n";
    let all = first.forge(["pull", "--all"]);
    assert_eq!((all.code, all.stderr.as_str()), (0, left_out), "{all}");
    first.forge(["undo"]).success();
    insta::assert_snapshot!(first.forge(["pull", "--all"]), @"Nothing to pull from origin: checkout");
    first.forge(["session", "drop", "checkout"]).success();
    let all = first.forge(["pull", "--all"]);
    assert_eq!((all.code, all.stderr.as_str()), (0, left_out), "{all}");
    let refused = first.forge(["pull", "checkout"]);
    assert_eq!(refused.code, 4, "{refused}");
    let named = "the session 'checkout' was dropped here: 'forge session restore ";
    assert!(refused.stderr.contains(named), "{refused}");
    first.forge(["session", "restore", "checkout"]).success();
    insta::assert_snapshot!(first.forge(["pull", "--all"]), @"Nothing to pull from origin: checkout");
}

/// The first push of an empty session said that there was nothing to push.
#[test]
fn the_first_push_of_an_empty_session_is_reported() {
    let environment = Environment::new();
    let first = shared(&environment);
    first.forge(["session", "new", "empty"]).success();
    insta::assert_snapshot!(first.forge(["push", "--dry-run"]), @"Would push empty to origin: 0 operations");
    insta::assert_snapshot!(first.forge(["push"]), @"Pushed empty to origin: 0 operations, version 1");
    insta::assert_snapshot!(first.forge(["push"]), @"Nothing to push to origin: empty");
    first.forge(["session", "new", "other"]).success();
    insta::assert_snapshot!(first.forge(["sync", "other"]), @"other: pulled 0 operations, pushed 0, version 1");
}

#[test]
fn sessions_on_a_remote_are_listed_without_pulling_them() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    insta::assert_snapshot!(second.forge(["session", "list", "--remote"]), @r"
    Session   Here  Branch  Claims  Facts  Checkpoints  Last
    checkout  -     main         1      0            0  4 s ago
    ");
    insta::assert_snapshot!(first.forge(["session", "list", "--remote=origin", "--format", "{name} {here} {claims}"]), @r"checkout checkout 1");
    insta::assert_snapshot!(second.forge(["pull"]), @r"
    No session here was pushed or pulled before.
    'forge session list --remote' shows what is there, 'forge pull SESSION' pulls one, 'forge pull --all' pulls all.
    ");
    insta::assert_snapshot!(second.forge(["pull", "checkout", "--dry-run"]), @r"Would pull checkout from origin: new here, at most 1 operation, version 1");
    insta::assert_snapshot!(second.forge(["pull", "nothing"]), @r"
    [stderr]
    error: there is no session 'nothing' on origin
    hint: 'forge session list --remote' names those that are there
    [exit 3]
    ");
    second.forge(["pull", "checkout"]).success();
    let listed = second.forge(["session", "list", "--remote", "--json"]).json();
    assert_eq!(listed["sessions"][0]["here"], "checkout");
}

/// The error said that the remote cannot be used.
#[test]
fn a_pull_into_a_store_that_cannot_be_written_does_not_blame_the_remote() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    second.forge(["note", "add", "two"]).success();
    second.forge(["push"]).success();
    crate::fault::set_later_version(&environment, "first/checkout/.forge");
    insta::assert_snapshot!(first.forge(["pull"]), @r"
    [stderr]
    error: the store cannot be written: a later version of forge wrote it; this one only reads it
    hint: reading still works
    [exit 4]
    ");
}

/// The sync put what was written here on another branch, and then named only the secret.
#[test]
fn a_sync_whose_push_is_refused_names_the_branch_that_it_made() {
    let environment = Environment::new();
    let first = shared(&environment);
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    second.forge(["note", "update", "N1", "-m", "uno"]).success();
    second.forge(["push"]).success();
    first.forge(["note", "update", "N1", "-m", "eins"]).success();
    let text = format!("the token is ghp_{}", "a1B2c3D4e5F6".repeat(3));
    first.forge(["note", "add", "--no-redact", &text]).success();
    let refused = first.forge(["sync"]);
    assert_eq!(refused.code, 2, "{refused}");
    let why = "hint: in the session checkout, both sides changed the note N1: your changes are on";
    let next = "(next: 'forge branch switch main && forge branch merge main.";
    assert!(refused.stderr.contains(why) && refused.stderr.contains(next), "{refused}");
}

#[test]
fn a_secret_is_not_pushed() {
    let environment = Environment::new();
    let first = shared(&environment);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let text = format!("the token is {token}");
    first.forge(["note", "add", "--no-redact", &text]).success();
    insta::assert_snapshot!(first.forge(["push"]), @r"
    [stderr]
    error: the session 'checkout' holds 1 secret (github-token) that the remote does not have yet: nothing was pushed
    hint: 'forge purge --rules --dry-run' shows where, 'forge purge --rules --yes' removes them; '--redact-allow TEXT' is for what is not a secret, '--allow-secrets' pushes all
    [exit 2]
    ");
    insta::assert_snapshot!(first.forge(["push", "--dry-run"]), @r"
    Would push checkout to origin: 1 operation
      it contains 1 secret (github-token): the push would be refused
    ");
    assert_eq!(first.forge(["remote", "show", "--json"]).json()["unpushed"]["operations"], 1);
    assert_eq!(first.forge(["push", "--allow-secrets"]).code, 0);
    let second = Machine::joined(&environment, "second");
    let pulled = second.forge(["pull", "checkout"]);
    assert!(pulled.stderr.contains("checkout holds 1 secret"), "{pulled}");
    assert!(pulled.stderr.contains("'forge purge --rules --yes' purges them"), "{pulled}");
    second.forge(["purge", "--rules", "--yes"]).success();
    assert_eq!(second.forge(["push"]).code, 0);
    let third = Machine::joined(&environment, "third");
    assert_eq!(third.forge(["pull", "checkout"]).stderr, "");
    assert!(!third.notes("checkout").concat().contains(&token));
}

#[test]
fn a_purge_reaches_the_remote_and_the_other_machines() {
    let environment = Environment::new();
    let first = shared(&environment);
    let word = "s3cr3t-Zx9Kq2Lm";
    first.forge(["note", "add", &format!("the door opens with {word}")]).success();
    first.forge(["push"]).success();
    let second = Machine::joined(&environment, "second");
    second.forge(["pull", "checkout"]).success();
    second.forge(["note", "add", &format!("{word} again")]).success();
    second.forge(["session", "new", "other"]).success();
    second.forge(["note", "add", &format!("also {word}")]).success();
    second.forge(["push"]).success();
    second.forge(["note", "add", "not pushed"]).success();

    environment.write("secret", word);
    let purged = first.forge(["purge", "../../secret", "--yes"]).success();
    let status = first.forge(["status"]).success();
    let notice = "1 purge not sent to origin yet: 1 session there still has what was purged";
    assert!(purged.contains(notice) && purged.contains("'forge push' sends"), "{purged}");
    assert!(status.contains(notice), "{status}");
    assert!(first.forge(["remote", "show"]).stdout.contains(notice));
    assert!(first.forge(["doctor"]).stdout.contains(notice));
    let unpushed = &first.forge(["remote", "show", "--json"]).json()["unpushed"];
    let unpushed = (&unpushed["purges"], &unpushed["purged_sessions"], &unpushed["operations"]);
    assert_eq!(unpushed, (&1.into(), &1.into(), &0.into()));
    insta::assert_snapshot!(first.forge(["push", "--dry-run"]), @"Would rewrite checkout on origin without what was purged");
    insta::assert_snapshot!(first.forge(["push"]), @r"
    Rewrote checkout on origin without what was purged, version 3
    Sent 1 purge to origin
    ");
    assert!(!first.forge(["status"]).stdout.contains("purge"));
    insta::assert_snapshot!(first.forge(["push"]), @"Nothing to push to origin: checkout");

    // The unpushed work of the second machine has the secret too, and so has a session that the
    // first one does not know.
    let pulled = second.forge(["pull", "checkout", "--json"]);
    assert_eq!(pulled.code, 8, "{pulled}");
    assert!(pulled.stderr.contains("as a purge elsewhere did"), "{pulled}");
    assert!(pulled.stderr.contains("'forge push other' rewrites it"), "{pulled}");
    let json: Value = serde_json::from_str(&pulled.stdout).unwrap();
    assert!(!json["purges"]["replaced"].as_array().unwrap().is_empty(), "{json}");
    assert_eq!(json["purges"]["unpushed"], serde_json::json!(["other"]), "{json}");
    let pushed = second.forge(["push", "other", "--json"]).json();
    assert_eq!(pushed["sessions"][0]["rewritten"], "purged", "{pushed}");
    second.forge(["push", "checkout"]).success();
    let third = Machine::joined(&environment, "third");
    assert_eq!(third.forge(["pull", "--all"]).code, 0);
    let notes = [third.notes("checkout"), third.notes("other")].concat().join(", ");
    let masked = "purgedxxxxxxxxx";
    let expected =
        format!("one, the door opens with {masked}, {masked} again, also {masked}, not pushed");
    assert_eq!(notes, expected);
}

#[test]
fn a_container_needs_only_two_environment_variables() {
    let environment = Environment::new();
    let first = shared(&environment);
    let container = Machine::new(&environment, "container");
    let run = |args: &[&str]| {
        let mut command = environment.command(args);
        command
            .env("HOME", container.path("home"))
            .env("FORGE_REMOTE", environment.path("shared"))
            .env("FORGE_REMOTE_KEY", environment.path("key"))
            .current_dir(container.path("checkout"));
        environment.finished(&mut command)
    };
    run(&["init"]).success();
    run(&["pull", "checkout"]).success();
    run(&["note", "add", "two"]).success();
    run(&["push"]).success();
    assert_eq!(run(&["remote", "list", "--json"]).json()["remotes"][0]["environment"], true);
    assert_eq!(run(&["remote", "remove", "--yes"]).code, 2);
    first.forge(["pull"]).success();
    assert_eq!(first.notes("checkout"), ["one", "two"]);
    // The container keeps nothing of the key.
    let secret = environment.read("key").lines().nth(2).unwrap().to_owned();
    assert!(files_with(&container.path(""), secret.trim_start_matches("secret ")).is_empty());
    let without = container.forge(["push"]);
    assert_eq!(without.code, 3, "{without}");
    let mut no_key = container.command(["push"]);
    let refused = environment.finished(no_key.env("FORGE_REMOTE", environment.path("shared")));
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("neither FORGE_REMOTE_KEY nor FORGE_GRANT is"), "{refused}");
}

#[test]
fn unpushed_operations_are_reported_without_the_remote() {
    let environment = Environment::new();
    let first = shared(&environment);
    fs::remove_dir_all(environment.path("shared")).unwrap();
    assert!(!first.forge(["status"]).success().contains("not pushed"));
    first.forge(["note", "add", "two"]).success();
    first.forge(["note", "add", "three"]).success();
    let status = first.forge(["status"]).success();
    assert!(status.contains("2 operations of 1 session not pushed to origin"), "{status}");
    let status = first.forge(["status", "--json"]).json();
    assert_eq!(status["unpushed"][0]["operations"], 2, "{status}");
    let doctor = first.forge(["doctor"]);
    assert!(doctor.stdout.contains("2 operations of 1 session not pushed to origin"), "{doctor}");
}

#[test]
fn every_command_of_remotes_prints_json() {
    let environment = Environment::new();
    let first = shared(&environment);
    first.forge(["note", "add", "two"]).success();
    let schema = |output: Output, schema: &str| {
        let json = output.json();
        assert_eq!(json["schema"], schema, "{json}");
        json
    };
    let would = schema(first.forge(["push", "--dry-run", "--json"]), "forge.push/1");
    assert_eq!(would["dry_run"], true);
    assert!(would["sessions"][0]["bytes"].as_u64().unwrap() > 100, "{would}");
    assert_eq!(would["sessions"][0]["version"], Value::Null);
    let pushed = schema(first.forge(["push", "--json"]), "forge.push/1");
    assert_eq!((&pushed["remote"], &pushed["dry_run"]), (&"origin".into(), &false.into()));
    let one = &pushed["sessions"][0];
    assert_eq!((&one["session"], &one["version"]), (&"checkout".into(), &2.into()));
    let second = Machine::new(&environment, "second");
    let clone = ["clone", "../../shared", "--key", "../../key", "--json"];
    let cloned = schema(second.forge(clone), "forge.clone/1");
    let one = &cloned["sessions"][0];
    assert_eq!((&one["new"], &one["operations"]), (&true.into(), &2.into()), "{cloned}");
    // A clone that only reads follows what others push.
    for note in ["three", "four"] {
        first.forge(["note", "add", note]).success();
        first.forge(["push"]).success();
        let would = schema(second.forge(["pull", "--dry-run", "--json"]), "forge.pull/1");
        assert_eq!(would["sessions"][0]["operations"], 1, "{would}");
        let pulled = schema(second.forge(["pull", "--json"]), "forge.pull/1");
        assert_eq!(
            (&pulled["sessions"][0]["operations"], &pulled["sessions"][0]["new"]),
            (&1.into(), &false.into())
        );
    }
    assert_eq!(second.notes("checkout"), ["one", "two", "three", "four"]);
    let synced = schema(second.forge(["sync", "--json"]), "forge.sync/1");
    assert_eq!(
        (&synced["sessions"][0]["pulled"], &synced["sessions"][0]["pushed"]),
        (&0.into(), &0.into())
    );
    let listed = schema(second.forge(["remote", "list", "--json"]), "forge.remote.list/1");
    assert_eq!(
        (&listed["remotes"][0]["shared"], &listed["remotes"][0]["environment"]),
        (&1.into(), &false.into())
    );
    let shown = schema(second.forge(["remote", "show", "--json"]), "forge.remote.show/1");
    assert_eq!(shown["sessions"][0]["unpushed"], 0, "{shown}");
    let sessions = ["session", "list", "--remote", "--json"];
    let there = schema(second.forge(sessions), "forge.session.list.remote/1");
    assert_eq!(
        (&there["sessions"][0]["version"], &there["sessions"][0]["claims"]),
        (&4.into(), &4.into())
    );
    schema(second.forge(["remote", "check", "--json"]), "forge.remote.check/1");
    schema(second.forge(["remote", "tidy", "--json"]), "forge.remote.tidy/1");
    schema(second.forge(["remote", "key", "export", "k", "--json"]), "forge.remote.key.export/1");
    let removed = ["remote", "remove", "--yes", "--json"];
    schema(second.forge(removed), "forge.remote.remove/1");
    let added = ["remote", "add", "../../shared", "--key", "k", "--json"];
    assert_eq!(schema(second.forge(added), "forge.remote.kept/1")["done"], "joined");
}
