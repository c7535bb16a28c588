//! Seals, keys and witnesses, as a person, a script and the hook of an agent see them.

use crate::environment::Environment;
use forge_testkit::fault::copy;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KEYRING: &str = "home/.local/state/forge/keyring";
const ELSEWHERE: &str = "elsewhere";

fn sealed_store() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "effort"]).success();
    environment.forge(["note", "add", "the cache is cold"]).success();
    environment
}

/// Runs a command with another keyring, as on a machine that has the project but not the home
/// directory.
fn without_key(environment: &Environment, args: &[&str]) -> crate::environment::Output {
    let mut command = environment.command(args);
    command.env("FORGE_KEYRING", environment.path(ELSEWHERE));
    environment.finished(&mut command)
}

#[test]
fn examples_of_the_integrity_page_work() {
    crate::page::holds("integrity.md");
}

#[test]
fn a_new_store_is_sealed_and_doctor_key_and_verify_report_it() {
    let environment = sealed_store();
    let format = environment.read("project/.forge/FORMAT");
    assert!(format.contains("optional sealed"), "{format}");
    let key = environment.forge(["key", "show", "--json"]).json();
    assert_eq!((&key["seals"], &key["adopted_at"]), (&"sealed".into(), &serde_json::Value::Null));
    assert_eq!(environment.forge(["verify", "--json"]).json()["seals"], "sealed");
    let doctor = environment.forge(["doctor", "--json"]).json();
    assert_eq!(doctor["store"]["seals"], "sealed");
    assert_eq!(doctor["store"]["witnessed"], key["witnessed"]);
    let kept: Vec<_> = fs::read_dir(environment.path(KEYRING)).unwrap().collect();
    assert_eq!(kept.len(), 2, "one store and the places");
}

#[test]
fn a_store_without_seals_can_be_sealed_later() {
    let environment = Environment::new();
    environment.forge(["init", "--unsealed", "--name", "effort"]).success();
    environment.forge(["note", "add", "the cache is cold"]).success();
    assert!(!environment.path(KEYRING).exists());
    let adopted = environment.forge(["adopt", "--json"]).json();
    assert_eq!((&adopted["before"], &adopted["whole"]), (&"unsealed".into(), &true.into()));
    assert_eq!(environment.forge(["key", "show", "--json"]).json()["seals"], "sealed");
    assert!(environment.forge(["note", "list"]).success().contains("the cache is cold"));
}

#[test]
fn without_its_key_a_sealed_store_is_read_with_exit_code_7_and_notes_are_spooled() {
    let environment = sealed_store();
    let read = without_key(&environment, &["note", "list"]);
    assert_eq!(read.code, 7, "{read}");
    assert!(read.stdout.contains("the cache is cold"));
    assert!(read.stderr.contains("'forge adopt'"), "{read}");
    let kept = without_key(&environment, &["note", "add", "the disk is full"]);
    assert_eq!(kept.code, 7, "{kept}");
    let refused = without_key(&environment, &["hypothesis", "add", "it is the disk"]);
    assert_eq!(refused.code, 7, "{refused}");
    assert!(refused.stderr.contains("its key is not on this machine"), "{refused}");
    assert_eq!(without_key(&environment, &["verify"]).code, 7);
    let doctor = without_key(&environment, &["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("its key is missing"), "{doctor}");

    without_key(&environment, &["adopt"]).success();
    let notes = without_key(&environment, &["note", "list"]).success();
    assert!(notes.contains("the cache is cold") && notes.contains("the disk is full"), "{notes}");
    without_key(&environment, &["hypothesis", "add", "it is the disk"]).success();
    let key = without_key(&environment, &["key", "show"]).success();
    assert!(key.contains("adopted"), "{key}");
}

#[test]
fn a_damaged_key_is_reported_and_the_store_can_be_read_and_adopted_without_it() {
    let environment = sealed_store();
    let folders = fs::read_dir(environment.path(KEYRING)).unwrap();
    let mut keys = folders.map(|folder| folder.unwrap().path().join("key"));
    let key = keys.find(|key| key.exists()).unwrap();
    fs::write(&key, "torn").unwrap();
    let read = environment.forge(["note", "list"]);
    assert_eq!(read.code, 7, "{read}");
    assert!(read.stdout.contains("the cache is cold"));
    // Where the lines end depends on the length of the path.
    let words: Vec<&str> = read.stderr.split_whitespace().collect();
    assert!(words.join(" ").contains("/key, is damaged: "), "{read}");
    let exported = environment.forge(["key", "export", "key.txt"]);
    assert_eq!(exported.code, 7, "{exported}");
    assert!(exported.stderr.contains("restore it from a copy"), "{exported}");
    environment.forge(["adopt"]).success();
    environment.forge(["hypothesis", "add", "it is the disk"]).success();
    assert!(environment.forge(["note", "list"]).success().contains("the cache is cold"));
}

/// `forge doctor` called the store whole, and named 'forge maintain', which does not apply them.
#[test]
fn doctor_reports_writes_in_the_spool_without_a_seal() {
    let environment = sealed_store();
    let spooled = without_key(&environment, &["note", "add", "the disk is full"]);
    assert_eq!(spooled.code, 7, "{spooled}");
    let doctor = environment.forge(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    let problem = "problem store: left out of what is read: 1 write in the spool without the";
    assert!(doctor.stdout.contains(problem), "{doctor}");
    assert!(!doctor.stdout.contains("'forge maintain'"), "{doctor}");
}

#[test]
fn a_key_is_moved_to_another_machine_in_a_file() {
    let environment = sealed_store();
    let file = environment.path("carried");
    let name = file.to_str().unwrap();
    environment.forge(["key", "export", name]).success();
    assert_eq!(environment.forge(["key", "export", name]).code, 2, "nothing is overwritten");
    without_key(&environment, &["key", "import", name]).success();
    without_key(&environment, &["note", "add", "the disk is full"]).success();
    assert_eq!(without_key(&environment, &["key", "import", name]).code, 4);
    environment.write("nonsense", "no key");
    let nonsense = environment.path("nonsense");
    assert_eq!(without_key(&environment, &["key", "import", nonsense.to_str().unwrap()]).code, 2);
}

#[test]
fn every_reading_command_refuses_an_older_copy_in_place_of_a_sealed_store() {
    let environment = sealed_store();
    let (store, aside) = (environment.path("project/.forge"), environment.path("aside"));
    copy(&store, &aside);
    environment.forge(["note", "add", "the disk is full"]).success();
    fs::remove_dir_all(&store).unwrap();
    copy(&aside, &store);
    for args in [["note", "list"], ["checkpoint", "list"], ["log", "--json"], ["brief", "--json"]] {
        let refused = environment.forge(args);
        assert_eq!(refused.code, 6, "{args:?} {refused}");
        assert!(refused.stderr.contains("its witness saw it reach"), "{refused}");
        assert_eq!(refused.stdout, "");
    }
    assert_eq!(environment.forge(["verify"]).code, 6);
    environment.forge(["adopt"]).success();
    environment.forge(["note", "list"]).success();
}

fn hook(environment: &Environment, keyring: &Path) -> std::process::Output {
    let input = serde_json::json!({
        "session_id": "5e55", "transcript_path": "/nowhere", "cwd": environment.path("project"),
        "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": {"stdout": "ok", "stderr": ""},
    });
    let mut command: Command = environment.command(["hook", "claude-code", "PostToolUse"]);
    command.env("FORGE_KEYRING", keyring).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let written = child
        .stdin
        .take()
        .map(|mut stdin| std::io::Write::write_all(&mut stdin, input.to_string().as_bytes()));
    written.unwrap().unwrap();
    child.wait_with_output().unwrap()
}

fn spooled_files(environment: &Environment) -> Vec<PathBuf> {
    let spool = environment.path("project/.forge/spool");
    let files = fs::read_dir(spool).into_iter().flatten().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_none()).collect()
}

#[test]
fn without_the_key_a_hook_spools_its_writes_and_adopt_applies_them() {
    let environment = sealed_store();
    let elsewhere = environment.path(ELSEWHERE);
    assert!(hook(&environment, &elsewhere).status.success());
    assert_eq!(spooled_files(&environment).len(), 1);
    // A user with the key gets a warning, and sees only what was written with it.
    let read = environment.forge(["--session", "5e55", "command", "list"]);
    assert_eq!(read.code, 3, "{read}");
    let read = environment.forge(["note", "list"]);
    assert!(read.code == 7 && read.stderr.contains("1 write in the spool"), "{read}");
    environment.forge(["adopt"]).success();
    assert_eq!(spooled_files(&environment).len(), 0);
    let read = environment.forge(["--session", "5e55", "command", "list"]).success();
    assert!(read.contains("cargo test"), "{read}");
}

/// Runs a public suite that tampers with stores. Its program `agmi-check` is searched on the path,
/// and `FORGE_AGMI` can name it.
#[test]
fn every_attack_of_the_suite_agent_memory_integrity_is_refused() {
    let named = std::env::var_os("FORGE_AGMI").map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || std::env::split_paths(&folders).map(|folder| folder.join("agmi-check"));
    let Some(check) = named.into_iter().chain(on_path()).find(|path| path.is_file()) else {
        let why = "no agmi-check; 'pip install agent-memory-integrity', or set FORGE_AGMI";
        forge_testkit::skip::skipped("agent-memory-integrity", why);
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/agmi");
    let done = Command::new(check)
        .args(["--adapter", "forge_adapter:ForgeAdapter", "--json"])
        .arg(&report)
        .env("PYTHONPATH", adapter)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FORGE_BIN", env!("CARGO_BIN_EXE_forge"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let edits = report["edits"].as_array().unwrap();
    assert_eq!(edits.len(), 9);
    for edit in edits {
        assert_eq!(edit["verdict"], "REJECTED", "{edit}");
        assert!(edit["detail"].as_str().unwrap().contains("exit 6"), "{edit}");
    }
}

/// Regression: a copy treated the frames of a sealed journal as damaged.
#[test]
fn a_backup_of_a_sealed_store_is_valid_until_later_writes_and_then_needs_an_adoption() {
    let environment = sealed_store();
    environment.forge(["maintain"]).success();
    environment.forge(["note", "add", "the cache is warm"]).success();
    environment.forge(["backup", "../copy"]).success();
    let claims = |store: &str| {
        let output = environment.forge(["status", "--json", "--store", store]);
        (output.code, output.code == 0 && output.json()["summary"]["claims"] == 2)
    };
    assert_eq!(environment.forge(["verify", "--store", "../copy"]).code, 0);
    assert_eq!(claims("../copy"), (0, true));
    environment.forge(["note", "add", "the cache is hot"]).success();
    assert_eq!(claims("../copy"), (6, false), "the store has gone on since");
    environment.forge(["adopt", "--store", "../copy"]).success();
    assert_eq!(claims("../copy"), (0, true));
    assert_eq!(environment.forge(["verify", "--store", "../copy"]).code, 0);
    assert_eq!(environment.forge(["verify"]).code, 0, "the store itself is as it was");
}

/// Regression: every command refused the new store, as if another user had replaced the sealed one
/// by it.
#[test]
fn an_unsealed_store_that_the_user_creates_may_replace_a_sealed_one() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    fs::remove_dir_all(environment.path("project/.forge")).unwrap();
    let made = environment.forge(["init", "--unsealed", "--name", "t"]);
    assert_eq!(made.code, 0, "{made}");
    assert!(made.stderr.contains("a sealed store was here before"), "{made}");
    environment.forge(["note", "add", "kept"]).success();
    assert!(environment.forge(["note", "list"]).success().contains("kept"));
    // Another store, which the user did not make, is still refused.
    environment.forge_in("", ["--store", "other", "init", "--unsealed"]).success();
    fs::remove_dir_all(environment.path("project/.forge")).unwrap();
    fs::rename(environment.path("other"), environment.path("project/.forge")).unwrap();
    let refused = environment.forge(["note", "list"]);
    assert_eq!(refused.code, 6, "{refused}");
}
