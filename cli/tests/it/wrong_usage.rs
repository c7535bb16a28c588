//! Wrong usages, each with texts that the answer must contain.

use crate::environment::{Environment, mode};
use crate::story::example_session;
use std::os::unix::fs::PermissionsExt;

/// A wrong usage: the arguments, the exit code, and texts that the error output must contain.
struct WrongUsage(&'static str, i32, &'static [&'static str]);

/// In the arguments, a space separates words, and `_` is a space inside a word.
const USAGES: &[WrongUsage] = &[
    WrongUsage("hypothesis add", 2, &["<DESCRIPTION>", "for example: forge hypothesis add '"]),
    WrongUsage("h the_pool_is_small", 2, &["for example: forge hypothesis add 'the pool"]),
    WrongUsage("checkpoint the_bug_is_here", 2, &["for example: forge checkpoint create '"]),
    WrongUsage("hypothesis add x --confidence 1.5", 2, &["from 0 to 1, a percentage such as 70%"]),
    WrongUsage("hypothesis add x --status confirmed", 2, &["'forge hypothesis confirm'"]),
    WrongUsage("gap update G1 --status filled", 2, &["'forge gap fill'"]),
    WrongUsage("hypothesis confirm H9", 3, &["the nearest is H1"]),
    WrongUsage("evidence add seen", 2, &["--hypothesis <ID>", "--strength <STRENGTH>"]),
    WrongUsage("evidence add x -H H1 -s much", 2, &["-70%, or one of weak, moderate, strong"]),
    WrongUsage("checkpoint at", 2, &["for example: forge checkpoint at '2 hours ago'", "42"]),
    WrongUsage("checkpoint at nosuchtag", 3, &["there is no tag, branch or id 'nosuchtag'"]),
    WrongUsage("checkpoint at baselin", 3, &["the nearest is baseline"]),
    WrongUsage("at #9999", 3, &["the last is #13"]),
    WrongUsage("show 9999", 3, &["9999"]),
    WrongUsage("restore", 2, &["<X>", "for example: forge restore '#5'"]),
    WrongUsage("export bundle -o x", 2, &["the file is an argument: 'forge export bundle FILE'"]),
    WrongUsage("session list --format {x}", 2, &["no field 'x'", "last_event"]),
    WrongUsage("at last_compaction", 3, &["no compaction has been recorded in this session"]),
    WrongUsage("command record ls -la", 2, &["put '--' before the command", "-- ls -la"]),
    WrongUsage("check name true", 2, &["'forge check name -- true'"]),
    WrongUsage("why nothing", 3, &["there is no entity 'nothing'", "'forge search'"]),
    WrongUsage("import claude-code nosuchfile", 3, &["cannot read 'nosuchfile'", "hint: "]),
    WrongUsage("import events wrong.txt", 2, &["line 1: it is not JSON", "hint: correct the line"]),
    WrongUsage("import bundle wrong.txt", 2, &["header of a bundle", "'forge export bundle FILE'"]),
    WrongUsage("checkpoint prune --keep-last -1", 2, &["invalid value '-1'", "a whole number"]),
    WrongUsage("log -n 99999999999999999999", 2, &["too large", "a whole number"]),
    WrongUsage("checkpoint prune --keep-within 1500ms", 2, &["whole seconds, such as 2s"]),
    WrongUsage("hooks install vscode", 2, &["possible values: claude, codex"]),
    WrongUsage("hypotesis add x", 2, &["'forge hypothesis'"]),
    WrongUsage("confirm H1", 2, &["there is 'forge hypothesis confirm'"]),
    WrongUsage("gap close G1", 2, &["the commands of 'forge gap' are add, fill, update, list"]),
    WrongUsage("note the pool is small", 2, &["for example: forge note 'raised the pool"]),
    WrongUsage("diff H1", 3, &["'H1' is of the kind hypothesis: 'forge log H1' shows"]),
    WrongUsage("at 2 hours ago", 2, &["for example: forge at '"]),
    WrongUsage("checkpoint tag #5 x", 2, &["for example: forge checkpoint tag '#5' --add"]),
    WrongUsage("note shwo", 2, &["'forge note show' is", "'forge note add shwo'"]),
    WrongUsage("note one list", 2, &["a command of 'forge note' comes first"]),
    WrongUsage("hypothesis list --fromat x", 2, &["a similar option exists: '--format'"]),
    WrongUsage("log -5", 2, &["'-n 5'"]),
    WrongUsage("search --kind nonsense x", 2, &["the kinds are", "hypothesis", "command"]),
    WrongUsage("note x --at tomorrow", 2, &["tomorrow"]),
    WrongUsage("log --since 10m --until 1h", 2, &["'10m' is after '1h'", "exchange the two"]),
    WrongUsage("story --since 1s --at #3", 2, &["'1s' is after '#3'", "hint: "]),
    WrongUsage("command list --since 10m --until 1h", 2, &["'10m' is after '1h'"]),
    WrongUsage("checkpoint list --since 10m --until 1h", 2, &["'10m' is after '1h'"]),
    WrongUsage("checkpoint list --tag a,b", 2, &["'a,b'", "a list takes one tag"]),
    WrongUsage("hypothesis update H1 --reason=", 2, &["'--reason <TEXT>'", "may not be empty"]),
    WrongUsage("gap update G1 --resolution=", 2, &["it may not be empty"]),
    WrongUsage("hypothesis list -t a,b", 2, &["'a,b'", "a list takes one tag"]),
    WrongUsage("search x -n 0", 2, &["at least one hit", "hint: "]),
    WrongUsage("search x --since 10m --until 1h", 2, &["'10m' is after '1h'"]),
    WrongUsage("hypothesis list --format {x}", 2, &["no field 'x'", "description"]),
    WrongUsage("hypothesis list --format {id", 2, &["is not a field"]),
    WrongUsage("hypothesis list --format json", 2, &["names no field", "'--json' prints JSON"]),
    WrongUsage("evidence add x -H H1 -s 1 --from last", 3, &["no command is recorded"]),
    WrongUsage("help nosuch", 2, &["unrecognized subcommand 'nosuch'"]),
    WrongUsage("watch --json", 2, &["'forge story --json'"]),
];

#[test]
fn each_wrong_usage_says_what_to_do() {
    let environment = example_session();
    environment.write("project/wrong.txt", "root:x:0:0:root:/root:/bin/bash, and further lines\n");
    let mut faults = Vec::new();
    for WrongUsage(words, code, parts) in USAGES {
        let words: Vec<String> = words.split(' ').map(|word| word.replace('_', " ")).collect();
        let output = environment.finished(&mut environment.command(&words));
        let message = output.stderr.as_str();
        // A person who only mistyped might follow a tip to switch redaction off.
        let weakens = message.contains("no-redact") || message.contains("redact-allow");
        if output.code != *code || weakens || !parts.iter().all(|part| message.contains(part)) {
            faults.push(format!("{words:?}: {output}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn no_tip_is_given_for_an_unrelated_word() {
    let environment = example_session();
    for words in ["hooks install vscode", "xyzzy", "log -m", "note add x --quite-other"] {
        let words: Vec<&str> = words.split(' ').collect();
        let output = environment.finished(&mut environment.command(&words));
        assert!(output.code == 2 && !output.stderr.contains("tip:"), "{words:?}: {output}");
    }
}

#[test]
fn a_refused_undo_names_the_later_operation() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let added = environment.forge(["note", "one", "--json"]).json();
    let raw = environment.finished_raw(["log", "--operations", "--json"]);
    let operations: serde_json::Value = serde_json::from_str(&raw).unwrap();
    let first = operations["operations"][0]["id"].as_str().unwrap().to_owned();
    environment.forge(["note", "update", "N1", "-m", "two"]).success();
    let refused = environment.finished(&mut environment.command(["undo", first.as_str()]));
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("changed again since, by 'note update' ("), "{refused}");
    assert_eq!(added["id"], "N1");
}

#[test]
fn a_bundle_of_a_diverged_session_needs_another_store() {
    let environment = Environment::new();
    for directory in ["here", "there"] {
        environment.make_directory(directory);
        environment.forge_in(directory, ["init"]).success();
    }
    environment.forge_in("here", ["note", "add", "one"]).success();
    environment.forge_in("here", ["export", "bundle", "../first"]).success();
    environment.forge_in("there", ["import", "bundle", "../first"]).success();
    for directory in ["here", "there"] {
        environment.forge_in(directory, ["note", "add", directory]).success();
    }
    environment.forge_in("here", ["export", "bundle", "../second"]).success();
    let refused = environment.forge_in("there", ["import", "bundle", "../second"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("went another way here"), "{refused}");
    assert!(refused.stderr.contains("hint: '--store PATH' imports it into another"), "{refused}");
    environment.make_directory("beside");
    environment.forge_in("beside", ["init"]).success();
    environment
        .forge_in("there", ["--store", "../beside", "import", "bundle", "../second"])
        .success();
}

#[test]
fn one_record_of_a_bundle_is_counted_in_the_singular() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["export", "bundle", "../s.bundle"]).success();
    let again = environment.forge(["import", "bundle", "../s.bundle"]).success();
    assert_eq!(again, "Imported 0 records of s, 1 was here already\n");
}

/// Regression: the export was first written to `FILE.new`, and replaced a file of this name.
#[test]
fn an_export_of_a_bundle_leaves_the_files_beside_it() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.write("out/all.new", "mine");
    environment.forge(["export", "bundle", "../out/all", "--all"]).success();
    assert_eq!(environment.read("out/all.new"), "mine");
    assert_eq!(std::fs::read_dir(environment.path("out")).unwrap().count(), 2);
    assert_eq!(mode(&environment.path("out/all")), 0o600);
    assert_ne!(environment.forge(["export", "bundle", "../none/all"]).code, 0);
    environment.make_directory("out/folder");
    assert_ne!(environment.forge(["export", "bundle", "../out/folder"]).code, 0);
    assert_eq!(std::fs::read_dir(environment.path("out")).unwrap().count(), 3);
}

/// Regression: nothing was where the names of sessions are.
#[test]
fn a_bundle_of_a_store_without_sessions_has_no_session() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let exported = environment.forge(["export", "bundle", "../all", "--all"]).success();
    assert_eq!(exported, "Wrote no session to $ROOT/project/../all: 0 records, 0 objects\n");
    let imported = environment.forge(["import", "bundle", "../all"]).success();
    assert_eq!(imported, "Imported 0 records of no session\n");
}

/// The report named a session that is not here, and a session that was named twice was in the bundle
/// twice.
#[test]
fn an_import_names_the_session_here_and_an_export_has_each_session_once() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["note", "add", "two"]).success();
    let exported = environment.forge(["export", "bundle", "../s.bundle", "s", "s"]).success();
    assert!(exported.starts_with("Wrote s to ") && exported.contains(": 2 records"), "{exported}");
    let again = environment.forge(["import", "bundle", "../s.bundle", "--as", "t"]).success();
    assert_eq!(again, "Imported 0 records of s, 2 were here already\n");
    environment.forge(["export", "bundle", "../rest.bundle", "--from", "1"]).success();
    environment.forge(["init", "../other"]).success();
    let refused = environment.forge(["import", "bundle", "../rest.bundle", "--store", "../other"]);
    insta::assert_snapshot!(refused, @r"
    [stderr]
    error: there is no session here with the part that the bundle continues: 's up to #1'
    hint: import the bundle that has that part before this one
    [exit 3]
    ");
}

/// The file replaced a pipe, a link and, for a user who may write there, `/dev/null`.
#[test]
fn an_export_of_a_bundle_replaces_neither_a_pipe_nor_a_link() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["export", "bundle", "../whole"]).success();
    let whole = std::fs::read(environment.path("whole")).unwrap();
    std::os::unix::fs::symlink("target", environment.path("link")).unwrap();
    environment.write("target", "before");
    environment.forge(["export", "bundle", "../link"]).success();
    assert!(environment.path("link").is_symlink());
    assert_eq!(std::fs::read(environment.path("target")).unwrap(), whole);
    let mut compared = environment.shell("forge export bundle /dev/stdout | cmp - ../whole");
    assert_eq!(environment.finished(&mut compared).success(), "");
}

/// `forge import events` takes a file, and so does `forge export bundle`.
#[test]
fn a_file_in_place_of_the_session_to_export_names_the_option() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for what in ["events", "transcript"] {
        let refused = environment.forge(["export", what, "out.jsonl"]);
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains("'-o FILE' names a file to write"), "{refused}");
    }
}

/// Regression: an export over an existing file kept its permissions, and an export to `/dev/stdout`
/// failed at the end.
#[test]
fn an_export_to_a_file_that_others_could_read_is_private() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.write("out/events", &"mine".repeat(100_000));
    let file = environment.path("out/events");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    environment.forge(["export", "events", "-o", "../out/events"]).success();
    assert_eq!(mode(&file), 0o600);
    let events = environment.read("out/events");
    assert!(events.contains("one") && !events.contains("mine"), "{events}");
    let printed = environment.forge(["export", "events"]).success();
    assert_eq!(environment.forge(["export", "events", "-o", "/dev/stdout"]).success(), printed);
}
