//! Directories, pipes, links to devices and very large files in the place of files. Every command
//! reports them, and none blocks.

use crate::environment::Environment;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The kinds of replacements for a file, with the words of the message about each.
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
    "note list", "note add x", "status", "doctor", "verify", "backup copy", "repair fixed",
    "rebuild", "maintain", "key show", "config get color",
];

/// Runs the commands, none of which may panic. Returns their combined output.
fn outputs(environment: &Environment) -> String {
    let mut text = String::new();
    for command in COMMANDS {
        // With an address space of one gigabyte, no large file is read completely.
        let line = format!("ulimit -v 1048576; forge {command}");
        let output = environment.finished(&mut environment.shell(&line));
        assert!(!matches!(output.code, 70 | 101 | 134 | 139), "{command}: {output}");
        text.push_str(&output.stdout);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
            let text = outputs(&environment);
            assert!(text.contains(what), "{name} is {kind}: {text}");
        }
    }
}

#[test]
fn a_special_file_in_place_of_the_key_is_named_by_its_kind() {
    for sealing in ["--unsealed", "--encrypted", "-q"] {
        for (kind, _) in KINDS {
            let environment = Environment::new();
            assert_eq!(environment.forge(["init", "--name", "s", sealing]).code, 0);
            let keyring = environment.path("home/.local/state/forge/keyring");
            let keys = fs::read_dir(keyring).into_iter().flatten().flatten();
            for key in keys.map(|entry| entry.path().join("key")).filter(|key| key.is_file()) {
                put(&key, kind);
            }
            let text = outputs(&environment);
            let what = match kind {
                "pipe" => "it is a pipe, not a file",
                "folder" => "it is a directory, not a file",
                "link" => "it is a device, not a file",
                _ => "bytes, and at most 65536 are read",
            };
            assert_eq!(text.contains(what), sealing != "--unsealed", "{sealing} {kind}: {text}");
        }
    }
}

/// The index is empty, missing or replaced by something else, and the journal does not have the
/// applied records any more.
#[test]
fn a_backup_of_a_store_with_a_missing_or_replaced_index_is_refused() {
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
        if matches!(kind, "empty" | "gone") {
            let list = environment.forge(["note", "list"]);
            assert!(list.stderr.contains("error: files of the index are missing"), "{list}");
        }
    }
}

#[test]
fn a_source_that_is_no_file_is_refused_by_its_kind() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    put(&environment.path("project/pipe"), "pipe");
    put(&environment.path("project/folder"), "folder");
    for command in [
        "import", "import claude-code", "import codex", "import swe-agent", "import events",
        "import bundle", "redact", "purge --yes", "key import", "thread check", "tui --keys",
    ] {
        for (name, kind) in [("pipe", "a pipe"), ("folder", "a directory")] {
            let line = format!("forge {command} {name}");
            let output = environment.finished(&mut environment.shell(&line));
            assert!(output.code != 0 && output.code != 70, "{line}: {output}");
            // What is not an option of the command would be refused before the file is read.
            assert!(output.stdout.contains(kind), "{line}: {output}");
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

/// Parts of a store, and what is put in their place. `WRITE` is the name of a spooled write. `.sst`
/// and `MANIFEST` are files of the index.
const REPLACED: [(&[&str], &str); 8] = [
    (&["spool/WRITE", "spool.copy/WRITE"], "folder"),
    (&["spool/WRITE", "spool.copy/WRITE"], "pipe"),
    (&["spool/WRITE", "spool.copy/WRITE"], "large"),
    (&["spool", "spool.copy"], "large"),
    (&[".sst"], "pipe"),
    (&["MANIFEST"], "pipe"),
    (&["journal"], "large"),
    (&["journal/SYNCED"], "pipe"),
];

/// Regression: a repair refused a store with such a file, so that nothing was saved.
#[test]
fn a_repair_names_special_files_and_saves_the_rest() {
    for sealing in ["--quiet", "--unsealed"] {
        for (parts, kind) in REPLACED {
            let environment = Environment::new();
            environment.forge(["init", "--name", "s", sealing]).success();
            environment.forge(["note", "add", "kept"]).success();
            environment.forge(["maintain"]).success();
            let mut frozen = crate::fault::hold_lock_frozen(&environment, "journal/append.lock");
            let waits = environment.forge(["note", "add", "waits", "--lock-timeout", "0.05"]);
            assert_eq!(waits.code, 0, "{waits}");
            frozen.kill().unwrap();
            frozen.wait().unwrap();
            let store = environment.path("project/.forge");
            let spooled = fs::read_dir(store.join("spool")).unwrap().map(|file| file.unwrap());
            let name = spooled.map(|file| file.file_name().into_string().unwrap()).next().unwrap();
            for part in parts {
                let path = match *part {
                    ".sst" | "MANIFEST" => file_of(&store.join("index"), part),
                    part => store.join(part.replace("WRITE", &name)),
                };
                put(&path, kind);
            }
            let case = format!("{sealing}: {parts:?} is {kind}");
            let repaired = environment.forge(["repair", "../fixed"]);
            assert_eq!(repaired.code, 2, "{case}: {repaired}");
            let named =
                parts.iter().any(|part| repaired.stdout.contains(part.rsplit('/').next().unwrap()));
            assert!(named || repaired.stdout.contains("in the spool"), "{case}: {repaired}");
            let listed = environment.forge(["--store", "../fixed", "note", "list"]).success();
            assert_eq!(listed.contains("kept"), parts != [".sst"], "{case}: {listed}");
            environment.forge(["--store", "../fixed", "verify", "--read-data"]).success();
        }
    }
}

/// Returns a file of the index whose path contains this text.
fn file_of(index: &Path, part: &str) -> std::path::PathBuf {
    let folders = fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    let files =
        folders.filter(|path| path.is_dir()).flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut paths = files.map(|file| file.unwrap().path());
    paths.find(|path| path.to_string_lossy().contains(part)).unwrap()
}

/// Regression: a backup read two gigabytes of zeros and reported success.
#[test]
fn a_backup_refuses_a_list_of_files_of_an_impossible_size() {
    for sealing in ["--quiet", "--unsealed"] {
        let environment = Environment::new();
        environment.forge(["init", "--name", "s", sealing]).success();
        environment.forge(["note", "add", "kept"]).success();
        environment.forge(["maintain"]).success();
        let list = file_of(&environment.path("project/.forge/index"), "MANIFEST");
        File::options().write(true).open(list).unwrap().set_len(2 << 30).unwrap();
        let refused = environment.forge(["backup", "../copy"]);
        assert_eq!(refused.code, 5, "{refused}");
        assert!(refused.stderr.contains("a list of files has at most"), "{refused}");
    }
}
