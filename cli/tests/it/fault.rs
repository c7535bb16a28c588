//! Faults around the store: missing, foreign, newer, locked, read-only, full. Each causes a clear
//! error and no change.

use crate::environment::Environment;
use insta::assert_snapshot;
use std::cmp::Reverse;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The id of a user and group without any rights.
pub(crate) const NOBODY: u32 = 65_534;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment
}

/// Five commands that write, and one that reads.
const COMMANDS: [&[&str]; 6] = [
    &["note", "add", "x"],
    &["hypothesis", "confirm", "H1"],
    &["verification", "add", "x", "--status", "passed"],
    &["session", "new", "x"],
    &["undo"],
    &["status"],
];

#[test]
fn without_a_store_every_command_says_how_to_make_one() {
    let environment = Environment::new();
    for args in COMMANDS {
        let output = environment.finished(&mut environment.command(args));
        assert_eq!(output.code, 3, "{args:?} {output}");
        assert!(output.stderr.contains("hint: 'forge init' makes one"), "{output}");
    }
    assert_snapshot!(environment.forge(["note", "add", "x", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"not_found","message":"no store in '$ROOT/project' or any directory above it","causes":[],"hints":["'forge init' makes one","'--store PATH' or FORGE_STORE names one elsewhere"]}}
    [exit 3]
    "#);
    assert!(!environment.path("project/.forge").exists());
}

#[test]
fn a_folder_that_is_no_store_is_left_alone() {
    let environment = Environment::new();
    environment.write("project/.forge/FORMAT", "something else\n");
    assert_snapshot!(environment.forge(["note", "add", "x"]), @r"
    [stderr]
    error: not a forge store: its FORMAT file does not begin with 'forge store'
    [exit 2]
    ");
    environment.write("project/.forge/FORMAT", "forge store\nformat = 99.0\n");
    let output = environment.forge(["note", "add", "x"]);
    assert_ne!(output.code, 0, "{output}");
    environment.make_directory("empty");
    assert_snapshot!(environment.forge(["note", "add", "x", "--store", "../empty"]), @r"
    [stderr]
    error: there is no store at $ROOT/project/../empty
    hint: 'forge init' makes one, with the same '--store' if you gave one
    [exit 3]
    ");
    environment.write("file", "x");
    assert_snapshot!(environment.forge(["note", "add", "x", "--store", "../file"]), @r"
    [stderr]
    error: the store '$ROOT/project/../file' is not a directory
    [exit 2]
    ");
}

#[test]
fn a_newer_store_is_refused_with_both_versions() {
    let environment = project();
    let text = environment.read("project/.forge/FORMAT");
    let newer = text.replace("2.0", "3.0");
    assert_ne!(text, newer);
    environment.write("project/.forge/FORMAT", &newer);
    assert_snapshot!(environment.forge(["note", "add", "x"]), @r"
    [stderr]
    error: the store has format 3.0, this version of forge reads 2.x: use a later version of forge
    [exit 5]
    ");
    assert_eq!(environment.forge(["status"]).code, 5);
}

/// The error was that the file exists.
#[test]
fn a_file_in_place_of_a_new_store_is_named() {
    let environment = Environment::new();
    environment.write("project/.forge", "mine");
    for command in [["init"], ["status"]] {
        let refused = environment.forge(command);
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains("project/.forge' is not a directory\nhint: "), "{refused}");
    }
}

/// Changes a store as if a later version of forge had written it, which this one only reads.
pub(crate) fn set_later_version(environment: &Environment, store: &str) {
    let file = format!("{store}/FORMAT");
    let text = environment.read(&file).replace("format 2.0", "format 2.1");
    let (before, _) = text.split_once("check ").unwrap();
    let check = blake3::hash(before.as_bytes()).to_hex();
    environment.write(&file, &format!("{before}check {}\n", &check[..16]));
}

/// `forge doctor` called such a store whole, although hooks save nothing in it.
#[test]
fn a_store_of_a_later_minor_version_can_only_be_read() {
    let environment = project();
    set_later_version(&environment, "project/.forge");
    assert_snapshot!(environment.forge(["note", "add", "x"]), @r"
    [stderr]
    error: the store cannot be written: a later version of forge wrote it; this one only reads it
    hint: reading still works
    [exit 4]
    ");
    environment.forge(["note", "list"]).success();
    let doctor = environment.forge(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    let problem = "problem store: a later version of forge wrote it: hooks save nothing";
    for text in [".forge: can be read only", problem, "  use the forge that wrote it"] {
        assert!(doctor.stdout.contains(text), "{doctor}");
    }
}

#[test]
fn a_pipe_or_a_directory_where_a_file_should_be_is_an_error() {
    let environment = project();
    let format = environment.path("project/.forge/FORMAT");
    std::fs::remove_file(&format).unwrap();
    std::fs::create_dir(&format).unwrap();
    let output = environment.forge(["note", "add", "x"]);
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("FORMAT"), "{output}");
    let made = Command::new("mkfifo").arg(environment.path("pipe")).status().unwrap();
    assert!(made.success());
    let output = environment.forge(["status", "--store", "../pipe"]);
    assert_eq!(output.code, 2, "{output}");
}

/// Starts a process that takes a lock of the store and then stops itself, so that it never releases
/// the lock.
pub(crate) fn hold_lock_frozen(environment: &Environment, lock: &str) -> Child {
    let mut frozen = Command::new("flock")
        .args(["--no-fork"])
        .arg(environment.path("project/.forge").join(lock))
        .args(["sh", "-c", "echo locked; kill -STOP $$"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(frozen.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    frozen
}

/// Regression: `forge rebuild` said that another process holds the index, but did not name it, and
/// had exit code 0, so that scripts assumed success. `forge adopt` did not name the process either,
/// after it had sealed the journal with a key that was not saved: the owner of the store's key then
/// got the error that the store is forged.
#[test]
fn a_process_that_holds_the_index_too_long_is_named() {
    let environment = project();
    environment.forge(["maintain"]).success();
    let mut frozen = hold_lock_frozen(&environment, "index/apply.lock");
    let rebuilt = environment.forge(["rebuild", "--lock-timeout", "0.05"]);
    let json = environment.forge(["rebuild", "--lock-timeout", "0.05", "--json"]);
    // If its key is missing, the whole store is adopted.
    let elsewhere = |args: &[&str]| {
        let mut command = environment.command(args);
        environment.finished(command.env("FORGE_KEYRING", environment.path("elsewhere")))
    };
    let adopted = elsewhere(&["adopt", "--lock-timeout", "0.05"]);
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    let pid = frozen.id().to_string();
    for output in [&rebuilt, &json, &adopted] {
        assert_eq!(output.code, 4, "{output}");
        assert!(output.stderr.contains(&pid) && output.stderr.contains("sh -c"), "{output}");
        assert!(output.stderr.contains("the lock of the index"), "{output}");
        assert!(output.stderr.contains("--lock-timeout"), "{output}");
        assert!(!output.stdout.contains("again"), "{output}");
    }
    // Later commands find everything as it was.
    environment.forge(["rebuild"]).success();
    assert_eq!(elsewhere(&["adopt"]).code, 0);
    let notes = elsewhere(&["note", "list", "--json"]).json();
    assert_eq!(notes["notes"].as_array().unwrap().len(), 1, "{notes}");
}

#[test]
fn rebuilding_waits_for_the_process_that_holds_the_index() {
    let environment = project();
    environment.forge(["maintain"]).success();
    let mut frozen = hold_lock_frozen(&environment, "index/apply.lock");
    let mut command = environment.command(["rebuild", "--lock-timeout", "600", "--json"]);
    let waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The lock is released only when the command has opened the lock file, so that it really waits.
    let waits = |pid: u32| {
        let opened = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        opened.flatten().any(|one| {
            std::fs::read_link(one.path()).is_ok_and(|path| path.ends_with("index/apply.lock"))
        })
    };
    while !waits(waiting.id()) {
        std::thread::yield_now();
    }
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("revisions"), "{done:?}");
}

#[test]
fn a_frozen_process_that_holds_the_lock_is_named() {
    let environment = project();
    let mut frozen = hold_lock_frozen(&environment, "journal/append.lock");
    let output = environment.forge(["gap", "add", "x", "--lock-timeout", "0.05"]);
    // A write that depends on nothing in the store is spooled, and is visible at once.
    let kept = environment.forge(["note", "add", "waits", "--lock-timeout", "0.05", "--json"]);
    let reading = environment.forge(["status", "--json"]).json();
    frozen.kill().unwrap();
    frozen.wait().unwrap();
    assert_eq!(output.code, 4, "{output}");
    let pid = frozen.id().to_string();
    assert!(output.stderr.contains(&pid) && output.stderr.contains("sh -c"), "{output}");
    assert!(output.stderr.contains("--lock-timeout"), "{output}");
    let kept = kept.json();
    assert!(kept["warnings"][0].as_str().unwrap().contains(&pid), "{kept}");
    assert_eq!(kept["id"], "N2");
    assert_eq!(reading["summary"]["claims"], 2, "reading waits for nobody");
    assert_eq!(environment.forge(["note", "add", "x", "--json"]).json()["id"], "N3");
}

/// Regression: one wrong bit of FORMAT gave the error "not a forge store" without any advice.
#[test]
fn a_damaged_format_file_is_reported_as_damage_with_advice() {
    let environment = project();
    let format = environment.path("project/.forge/FORMAT");
    let mut bytes = std::fs::read(&format).unwrap();
    for place in [3, 40] {
        bytes[place] ^= 1;
        std::fs::write(&format, &bytes).unwrap();
        let output = environment.forge(["note", "list"]);
        assert_eq!(output.code, 5, "{output}");
        assert!(output.stderr.contains("FORMAT"), "{output}");
        assert!(output.stderr.contains("'forge repair TO'"), "{output}");
    }
    assert_eq!(environment.forge(["repair", "../repaired"]).code, 2);
    let notes = environment.forge(["note", "list", "--store", "../repaired"]).success();
    assert!(notes.contains("one"), "{notes}");
}

/// If an acknowledged write in the spool cannot be shown, readers get an error with advice.
#[test]
fn a_spooled_write_that_cannot_be_read_is_an_error_until_the_store_is_repaired() {
    for (kind, code) in [("--unsealed", 5), ("--encrypted", 6)] {
        let environment = Environment::new();
        environment.forge(["init", kind, "--name", "s"]).success();
        environment.forge(["note", "add", "one"]).success();
        let mut frozen = hold_lock_frozen(&environment, "journal/append.lock");
        for note in ["two", "three"] {
            environment.forge(["note", "add", note, "--lock-timeout", "0.05"]).success();
        }
        frozen.kill().unwrap();
        frozen.wait().unwrap();
        let folders =
            ["spool", "spool.copy"].map(|name| environment.path("project/.forge").join(name));
        let first = std::fs::read_dir(&folders[0]).unwrap().next().unwrap().unwrap().file_name();
        let name = first.to_str().unwrap();
        std::fs::write(folders[0].join(name), "nothing").unwrap();
        assert_eq!(environment.forge(["verify"]).code, 1);
        let notes = environment.forge(["note", "list", "--json"]).json();
        assert_eq!(notes["notes"].as_array().unwrap().len(), 3);
        std::fs::write(folders[1].join(name), "nothing").unwrap();
        for args in [&["note", "list"][..], &["status"], &["note", "add", "x"], &["rebuild"]] {
            let output = environment.finished(&mut environment.command(args));
            assert_eq!(output.code, code, "{args:?} {output}");
            assert!(output.stderr.contains("the write '"), "{args:?} {output}");
            assert!(output.stderr.contains("'forge repair TO'"), "{args:?} {output}");
        }
        let verified = environment.forge(["verify"]);
        assert_eq!(verified.code, if code == 5 { 2 } else { code }, "{verified}");
        assert!(verified.stdout.contains("the write '"), "{verified}");
        let repaired = environment.forge(["repair", "../repaired"]);
        assert!(repaired.code == 2 && repaired.stdout.contains("the write '"), "{repaired}");
        let read = environment.forge(["note", "list", "--json", "--store", "../repaired"]).json();
        assert_eq!(read["notes"].as_array().unwrap().len(), 2);
        let verified = environment.forge(["verify", "--store", "../repaired"]);
        assert_eq!(verified.code, 0, "{verified}");
        assert!(verified.stdout.contains("1 loss was named by an earlier repair."), "{verified}");
        let kept = environment.path("repaired/spool").join(format!("{name}.damaged"));
        assert_eq!(std::fs::read(kept).unwrap(), b"nothing");
    }
}

#[test]
fn a_store_that_may_not_be_written_can_still_be_read() {
    let environment = project();
    let give = |path: &str, mode: &str| {
        let status = Command::new("chmod").args(["-R", mode]).arg(environment.path(path)).status();
        assert!(status.unwrap().success());
    };
    std::fs::set_permissions(
        environment.path(""),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    give("home", "a+rX");
    give("project", "a+rX,a-w");
    let run = |args: &[&str]| {
        let mut command = environment.command(args);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        environment.finished(&mut command)
    };
    let output = run(&["note", "add", "x"]);
    let reading = run(&["status", "--json"]);
    give("project", "u+w");
    assert_eq!(output.code, 4, "{output}");
    assert!(output.stderr.contains("hint: "), "{output}");
    assert_eq!(reading.json()["summary"]["claims"], 1);
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn a_full_disk_changes_nothing() {
    let environment = project();
    // Incompressible text: numbers of a simple generator.
    let numbers = std::iter::successors(Some(1_u64), |last| {
        Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    });
    let text: String = numbers.take(6000).map(|number| format!("{number:016x}")).collect();
    let mut command = environment.command(["note", "add", &text]);
    let forge = command.get_program().to_owned();
    let variables: Vec<_> =
        command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$@\"", "sh"])
        .arg(forge)
        .args(["note", "add", &text])
        .current_dir(environment.path("project"))
        .env_clear()
        .envs(variables.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let output = environment.finished(&mut limited);
    assert_eq!(output.code, 4, "{output}");
    assert_eq!(environment.forge(["status", "--json"]).json()["head"], 1);
    assert_eq!(environment.finished(&mut command).code, 0, "with room it goes on");
}

#[test]
fn a_closed_output_pipe_is_no_error_and_the_write_is_kept() {
    let environment = project();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = environment.command(["note", "add", "x", "--json"]);
    let output = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
    assert_eq!(environment.forge(["status", "--json"]).json()["head"], 2);
}

#[test]
fn a_transcript_of_bad_lines_alone_names_them_and_strict_refuses_it() {
    let environment = project();
    let nested = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    environment.write("project/nested.jsonl", &format!("{nested}\n{{\n"));
    let output = environment.forge(["import", "claude-code", "nested.jsonl"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(
        output.stderr.contains("'nested.jsonl' is not a transcript of Claude Code"),
        "{output}"
    );
    assert!(output.stderr.contains("line 1 is not a JSON object"), "{output}");
    let output = environment.forge(["import", "claude-code", "nested.jsonl", "--strict"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("'nested.jsonl', line 1: is not a JSON object"), "{output}");
    let output = environment.forge(["import", "swe-agent", "nested.jsonl"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("this is not a trajectory of SWE-agent"), "{output}");
    let sessions = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_empty_text_is_no_claim() {
    let environment = project();
    for args in [
        &["hypothesis", "add", ""][..],
        &["note", "add", " "],
        &["belief", "add", ""],
        &["checkpoint", "create", ""],
    ] {
        let output = environment.finished(&mut environment.command(args));
        assert_eq!(output.code, 2, "{args:?} {output}");
        assert!(output.stderr.contains("it may not be empty"), "{output}");
    }
}

/// Regression: after a repair, the head of a branch and all later claims could not be read, and
/// verify reported nothing.
#[test]
fn a_repair_that_lost_states_makes_a_store_that_can_be_used() {
    for sealing in ["--quiet", "--unsealed"] {
        let environment = Environment::new();
        environment.forge(["init", "--name", "s", sealing]).success();
        for number in 0..12 {
            environment.forge(["note", "add", &format!("note {number}")]).success();
            if number == 3 || number == 7 {
                environment.forge(["maintain"]).success();
            }
        }
        let index = environment.path("project/.forge/index");
        let mut removed = 0;
        for folder in [index.clone()].into_iter().chain(folders_in(&index)) {
            for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|ext| ext == "sst") {
                    std::fs::remove_file(file).unwrap();
                    removed += 1;
                }
            }
        }
        assert_ne!(removed, 0);
        let repaired = environment.forge(["repair", "../fixed"]);
        assert_eq!(repaired.code, 2, "{repaired}");
        assert!(repaired.stdout.contains("has the claims that are known"), "{repaired}");
        let fixed = |arguments: &[&str]| {
            let arguments = ["--store", "../fixed"].iter().chain(arguments);
            environment.finished(&mut environment.command(arguments)).success()
        };
        let listed = fixed(&["note", "list"]);
        assert!(listed.contains("note 11") && !listed.contains("note 3"), "{listed}");
        fixed(&["note", "add", "added later"]);
        let listed = fixed(&["note", "list"]);
        assert!(listed.contains("note 11") && listed.contains("added later"), "{listed}");
        for arguments in [&["brief"][..], &["status"], &["verify", "--read-data"], &["maintain"]] {
            fixed(arguments);
        }
        assert!(fixed(&["note", "list"]).contains("added later"));
        reads_name_what_was_lost(&environment);
    }
}

/// Checks that reads name what a repair could not save, and that `status` reports it until it is
/// acknowledged.
fn reads_name_what_was_lost(environment: &Environment) {
    let fixed = |arguments: &[&str]| {
        let arguments = ["--store", "../fixed"].iter().chain(arguments);
        environment.finished(&mut environment.command(arguments))
    };
    for arguments in [&["log", "--revisions"][..], &["log", "--all"]] {
        let log = fixed(arguments);
        assert_eq!(log.code, 0, "{log}");
        assert!(log.stdout.contains("lost before a repair"), "{log}");
        assert!(log.stdout.contains("note add"), "{log}");
        assert!(log.stderr.contains("lost before a repair and cannot be shown: #"), "{log}");
    }
    let story = fixed(&["story"]);
    assert!(story.stdout.contains("lost before a repair"), "{story}");
    let log = fixed(&["log", "--json"]);
    let entries: serde_json::Value = serde_json::from_str(&log.stdout).unwrap();
    let entries = entries["entries"].as_array().unwrap();
    let sort = |sort: &str| entries.iter().filter(|entry| entry["type"] == sort).count();
    assert!(sort("lost") >= 1 && sort("revision") >= 4, "{entries:?}");
    assert!(entries.is_sorted_by_key(|entry| Reverse(entry["sequence"].as_u64())));
    let timeline = fixed(&["checkpoint", "timeline"]);
    assert!(timeline.code == 0 && timeline.stderr.contains("lost before"), "{timeline}");
    let events = fixed(&["export", "events"]);
    assert_eq!((events.code, events.stdout.as_str()), (2, ""), "{events}");
    assert!(events.stderr.contains("a repair could not save #"), "{events}");
    let status = fixed(&["status"]);
    assert!(status.stdout.contains("'forge repair --acknowledge' ends this notice"), "{status}");
    assert!(fixed(&["status", "--json"]).json()["lost_in_repair"].as_u64() > Some(1));
    let done = fixed(&["repair", "--acknowledge"]);
    assert!(done.code == 0 && done.stdout.contains("Acknowledged: "), "{done}");
    assert!(fixed(&["status", "--json"]).json().get("lost_in_repair").is_none());
    assert!(fixed(&["repair", "--acknowledge"]).stdout.contains("no loss to acknowledge"));
    assert_eq!(fixed(&["verify"]).code, 0);
}

fn folders_in(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}
