//! Directories, pipes, devices and very large files in the place of files: every command reports
//! them, and none blocks.

use crate::environment::Environment;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The kinds of replacements for a file, and the message for each.
const KINDS: [(&str, &str); 4] =
    [("pipe", "a pipe"), ("folder", "a directory"), ("link", "a link"), ("large", "bytes")];

fn put(path: &Path, kind: &str) {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => fs::create_dir_all(path.parent().unwrap()).unwrap(),
    }
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "folder" => fs::create_dir(path).unwrap(),
        "link" => symlink("/dev/zero", path).unwrap(),
        _ => File::create(path).unwrap().set_len(1 << 30).unwrap(),
    }
    if kind == "pipe" || kind == "large" {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

const COMMANDS: [&str; 11] = [
    "note list",
    "note add x",
    "status",
    "doctor",
    "verify",
    "backup copy",
    "repair fixed",
    "rebuild",
    "maintain",
    "key show",
    "config get color",
];

/// Runs the commands; returns their combined output.
fn said(environment: &Environment) -> String {
    let mut said = String::new();
    for command in COMMANDS {
        // With an address space of one gigabyte, no large file is read completely.
        let line = format!("ulimit -v 1048576; forge {command}");
        let output = environment.finished(&mut environment.shell(&line));
        assert!(!matches!(output.code, 70 | 101 | 134 | 139), "{command}: {output}");
        said.push_str(&output.stdout);
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_special_file_in_a_store_is_named_by_every_command() {
    for name in
        ["FORMAT", "config.toml", "spool/0123456789abcdef0123456789abcdef", "journal/append.lock"]
    {
        for (kind, what) in KINDS {
            // The size of a lock file does not matter, and a folder in a spool is skipped.
            if name != "FORMAT" && name != "config.toml" && (kind == "large" || kind == "folder") {
                continue;
            }
            let environment = Environment::new();
            environment.forge(["init", "--name", "s"]).success();
            put(&environment.path("project/.forge").join(name), kind);
            let said = said(&environment);
            assert!(said.contains(what), "{name} is {kind}: {said}");
        }
    }
}

#[test]
fn an_odd_key_is_named_by_what_it_is() {
    for sealing in ["--unsealed", "--encrypted", "-q"] {
        for (kind, _) in KINDS {
            let environment = Environment::new();
            assert_eq!(environment.forge(["init", "--name", "s", sealing]).code, 0);
            let keyring = environment.path("home/.local/state/forge/keyring");
            let keys = fs::read_dir(keyring).into_iter().flatten().flatten();
            for key in keys.map(|entry| entry.path().join("key")).filter(|key| key.is_file()) {
                put(&key, kind);
            }
            let said = said(&environment);
            let what = match kind {
                "pipe" => "it is a pipe, not a file",
                "folder" => "it is a directory, not a file",
                "link" => "it is a device, not a file",
                _ => "bytes, and at most 65536 are read",
            };
            assert_eq!(said.contains(what), sealing != "--unsealed", "{sealing} {kind}: {said}");
        }
    }
}

/// An index without generations, with a journal whose beginning was removed.
#[test]
fn a_backup_of_a_store_whose_index_is_gone_says_so() {
    for kind in ["empty", "gone", "pipe", "folder", "link", "large"] {
        let environment = Environment::new();
        environment.forge(["init", "--name", "s"]).success();
        environment.forge(["note", "add", "kept"]).success();
        environment.forge(["maintain"]).success();
        let index = environment.path("project/.forge/index");
        fs::remove_dir_all(&index).unwrap();
        match kind {
            "gone" => {}
            "empty" => fs::create_dir(&index).unwrap(),
            kind => put(&index, kind),
        }
        let output = environment.forge(["backup", "copy"]);
        assert!(matches!(output.code, 2..=5), "{kind}: {output}");
        assert!(!output.stderr.contains("internal"), "{kind}: {output}");
    }
}

#[test]
fn a_source_that_is_no_file_is_refused_by_its_kind() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    put(&environment.path("project/pipe"), "pipe");
    put(&environment.path("project/folder"), "folder");
    for command in [
        "import",
        "import claude-code",
        "import codex",
        "import swe-agent",
        "import events",
        "import bundle",
        "redact",
        "purge --yes --secret-file",
        "key import",
        "thread check",
        "tui --keys",
    ] {
        for (name, kind) in [("pipe", "a pipe"), ("folder", "a directory")] {
            let line = format!("forge {command} {name}");
            let output = environment.finished(&mut environment.shell(&line));
            assert!(output.code != 0 && output.code != 70, "{line}: {output}");
            // An unknown command is refused by its name.
            let is_usage =
                output.stdout.contains("unexpected argument") || output.stdout.contains("terminal");
            assert!(is_usage || output.stdout.contains(kind), "{line}: {output}");
        }
    }
}

/// No part of a compressed transcript is written where other users can read it: the system's
/// temporary folder is not used.
#[test]
fn a_compressed_transcript_is_unpacked_in_the_stores_folder() {
    let environment = Environment::new();
    environment.forge(["init", "--encrypted", "--name", "s"]).success();
    let line = r#"{"type":"user","uuid":"u","sessionId":"c","cwd":"/x","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello"}}"#;
    let packed = zstd::encode_all(format!("{line}\n").as_bytes(), 3).unwrap();
    fs::write(environment.path("project/t.jsonl.zst"), packed).unwrap();
    for verb in ["import", "import claude-code"] {
        let mut import = environment.shell(&format!("forge {verb} t.jsonl.zst"));
        let output = environment.finished(import.env("TMPDIR", environment.path("none")));
        assert_eq!(output.code, 0, "{verb}: {output}");
    }
}
