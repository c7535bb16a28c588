//! Hostile text, files and stores from others: every command shows them safely or refuses them.

use crate::environment::Environment;
use forge_testkit::skip::skipped;
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;

/// A text that clears the screen, sets the title, fills the clipboard, makes a link, and reverses
/// and hides letters.
const PAYLOAD: &str = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}]52;c;eA==\u{7}\u{1b}]8;;file:///\u{1b}\\b\u{9b}31m\u{202e}c\u{200b}d\re\u{8}f";

/// Returns the first character that output for people may contain only in escaped form, if there is
/// one.
fn unescaped(text: &str) -> Option<char> {
    let hides = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    text.chars().find(|c| (c.is_control() && *c != '\n' && *c != '\t') || hides(*c))
}

fn hostile_store() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["hypothesis", "add", PAYLOAD, "--id", "H1"]).success();
    environment
        .forge([
            "evidence", "add", PAYLOAD, "--hypothesis", "H1", "--source", PAYLOAD, "--strength",
            "0.5",
        ])
        .success();
    environment.forge(["note", "add", PAYLOAD]).success();
    environment.forge(["checkpoint", "create", PAYLOAD]).success();
    environment.forge(["note", "add", &format!("again {PAYLOAD}")]).success();
    environment.forge(["measurement", "record", "loss", "1"]).success();
    let line = |number: u64, content: serde_json::Value| {
        let line = json!({
            "type": "assistant",
            "uuid": format!("u{number}"),
            "sessionId": "theirs",
            "cwd": PAYLOAD,
            "gitBranch": PAYLOAD,
            "timestamp": format!("2026-01-01T00:00:0{number}Z"),
            "message": { "role": "assistant", "content": content },
        });
        format!("{line}\n")
    };
    let lines = line(1, json!([{ "type": "text", "text": PAYLOAD }]))
        + &line(
            2,
            json!([{ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": PAYLOAD } }]),
        );
    environment.write("project/theirs.jsonl", &lines);
    environment.forge(["import", "claude-code", "theirs.jsonl"]).success();
    environment.forge(["session", "use", "s"]).success();
    environment
}

#[test]
fn no_command_prints_control_sequences_of_a_hostile_store() {
    let environment = hostile_store();
    let runs: [&[&str]; 26] = [
        &["status"],
        &["brief"],
        &["log"],
        &["log", "--operations"],
        &["hypothesis", "list"],
        &["hypothesis", "show", "H1"],
        &["evidence", "list"],
        &["note", "list"],
        &["session", "list"],
        &["branch", "list"],
        &["checkpoint", "list"],
        &["checkpoint", "at", "HEAD"],
        &["checkpoint", "timeline", "--all"],
        &["checkpoint", "diff", "#1", "HEAD"],
        &["checkpoint", "restore", "#1", "--dry-run"],
        &["checkpoint", "prune", "--drop-manual", "--dry-run"],
        &["checkpoint", "at", PAYLOAD],
        &["note", "show", PAYLOAD],
        &["search", "again"],
        &["search", PAYLOAD],
        &["doctor"],
        &["verify"],
        &["undo"],
        &[PAYLOAD],
        &["--session", "theirs", "log"],
        &["--session", "theirs", "status"],
    ];
    let mut shown = 0;
    for run in runs {
        let output = environment.finished(&mut environment.command(run));
        assert_ne!(output.code, 70, "{run:?}: {output}");
        for text in [&output.stdout, &output.stderr] {
            assert_eq!(unescaped(text), None, "{run:?}: {text:?}");
            shown += usize::from(text.contains("x1b[2J"));
        }
    }
    assert!(shown > 10, "the text was shown by {shown} commands");
}

/// The names of files are bytes, not always UTF-8.
#[test]
fn a_project_whose_path_is_no_text_has_a_store_like_any_other() {
    let environment = Environment::new();
    let folder = environment.path("project").join(OsStr::from_bytes(b"caf\xe9 \xff"));
    std::fs::create_dir_all(&folder).unwrap();
    for args in
        [vec!["init"], vec!["note", "add", "x"], vec!["note", "list"], vec!["status", "--json"]]
    {
        let mut command = environment.command(&args);
        environment.finished(command.current_dir(&folder)).success();
    }
    // An argument that must be text is refused if it is not.
    let mut command = environment.command(["note", "add"]);
    let output = environment.finished(command.arg(OsStr::from_bytes(b"\xff")));
    assert_eq!(output.code, 2, "{output}");
}

/// Regression: a hook's log was written through a link in a downloaded project, although the store
/// itself was refused.
#[test]
fn hook_notes_do_not_follow_links() {
    use std::fs;
    use std::os::unix::fs::symlink;
    for (link, format) in
        [("log", true), ("log", false), ("log/hooks.jsonl", true), ("agents", true)]
    {
        let environment = Environment::new();
        environment.forge(["init"]).success();
        let (store, own) = (environment.path("project/.forge"), environment.path("own"));
        let is_file = link.contains('.');
        if is_file {
            fs::create_dir_all(store.join("log")).unwrap();
            fs::write(&own, "mine").unwrap();
        } else {
            fs::create_dir(&own).unwrap();
        }
        symlink(&own, store.join(link)).unwrap();
        if !format {
            fs::remove_file(store.join("FORMAT")).unwrap();
        }
        for event in ["SessionStart", "UserPromptSubmit", "PostToolUse"] {
            let input = json!({
                "session_id": "5e55", "cwd": environment.path("project"), "hook_event_name": event,
                "source": "startup", "prompt": "go on", "tool_name": "Bash",
                "tool_input": { "command": "ls" }, "tool_response": { "stdout": "" },
            });
            environment.write("project/input", &input.to_string());
            let line = format!("forge hook claude-code {event} < input");
            environment.finished(&mut environment.shell(&line)).success();
        }
        if is_file {
            assert_eq!(fs::read(&own).unwrap(), b"mine", "{link}");
        } else {
            assert_eq!(fs::read_dir(&own).unwrap().count(), 0, "{link}, FORMAT {format}");
        }
        let noted = environment.read("home/.local/state/forge/hooks.jsonl");
        assert_eq!(noted.lines().count(), 3, "the user's own log tells of it: {noted}");
    }
}

/// Anyone who can write to a store can change its content, even while it is read.
#[test]
fn a_store_that_others_may_write_to_is_refused() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "mine"]).success();
    let store = environment.path("project/.forge");
    for mode in [0o720, 0o702, 0o1777] {
        set_permissions(&store, Permissions::from_mode(mode)).unwrap();
        for args in
            [vec!["note", "list"], vec!["note", "add", "x"], vec!["verify"], vec!["repair", "to"]]
        {
            let output = environment.finished(&mut environment.command(&args));
            assert_ne!(output.code, 0, "{args:?}: {output}");
            assert!(output.stderr.contains("chmod go-w"), "{args:?}: {output}");
        }
    }
    set_permissions(&store, Permissions::from_mode(0o755)).unwrap();
    let output = environment.finished(&mut environment.command(["note", "list"]));
    assert!(output.code == 0 && output.stdout.contains("mine"), "{output}");
}

/// As git refuses a repository of another user. Root may read all stores, because files in a
/// container rarely belong to it.
#[test]
fn only_root_may_use_a_store_of_another_user() {
    use std::fs::{Permissions, copy, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    const THEIRS: u32 = 12_345;
    let environment = Environment::new();
    environment.forge(["init", "--unsealed"]).success();
    environment.forge(["note", "add", "theirs"]).success();
    let project = environment.path("project");
    let store = project.join(".forge");
    if chown(&store, Some(THEIRS), None).is_err() {
        skipped("only_root_may_use_a_store_of_another_user", "cannot chown (needs root)");
        return;
    }
    environment.forge(["note", "list"]).success();
    // A third user needs access to the parent folders and to the program.
    for folder in project
        .ancestors()
        .take_while(|folder| folder.starts_with(std::env::temp_dir()))
        .chain([store.as_path()])
    {
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_forge");
    copy(program, project.join("forge")).unwrap();
    let mut somebody = environment.shell("./forge note list");
    let output = environment.finished(somebody.uid(THEIRS + 1).gid(THEIRS + 1));
    assert!(output.code != 0 && output.stdout.contains("belongs to another user"), "{output}");
}

/// Writes a file from its parts, without all of it in memory.
fn write_parts(environment: &Environment, name: &str, parts: impl IntoIterator<Item = String>) {
    let file = File::create(environment.path("project").join(name)).unwrap();
    let mut file = BufWriter::new(file);
    parts.into_iter().for_each(|part| file.write_all(part.as_bytes()).unwrap());
    file.flush().unwrap();
}

/// With an address space of one gigabyte, including the threads' stacks, each file is imported, and
/// a line that is too long or nested too deeply is reported.
#[cfg(target_os = "linux")]
#[test]
fn a_foreign_file_cannot_exhaust_memory() {
    const LIMIT: &str = "ulimit -v 1048576 || exit 99";
    const LINE: &str = r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"#;
    const AT: &str = r#"{"at":"2026-01-01T00:00:00Z","#;
    let environment = Environment::new();
    let mut more =
        environment.shell(&format!("{LIMIT}; dd if=/dev/zero of=/dev/null bs=1100M count=1"));
    assert_ne!(environment.finished(&mut more).code, 0, "the limit holds");
    environment.forge(["init", "--name", "s"]).success();
    let long = (0..100).map(|_| "x".repeat(1 << 20));
    write_parts(&environment, "endless.jsonl", [format!("{LINE}\"")].into_iter().chain(long));
    let nested = "[".repeat(3_000_000);
    write_parts(&environment, "nested.jsonl", [LINE.to_owned(), nested, "\n".to_owned()]);
    let breaks = (0..50).map(|_| r"x\n".repeat(350_000));
    let breaks = [format!("{LINE}\"")].into_iter().chain(breaks).chain(["\"}}\n".to_owned()]);
    write_parts(&environment, "breaks.jsonl", breaks);
    let parts = (0..1_000_000)
        .map(|n| format!(r#"{}{{"type":"text","text":"x"}}"#, if n > 0 { "," } else { "" }));
    let parts = [format!("{LINE}[")].into_iter().chain(parts).chain(["]}}\n".to_owned()]);
    write_parts(&environment, "parts.jsonl", parts);
    let tags = (0..1_000_000).map(|n| format!(",\"t{n}\""));
    let tags = [format!(r#"{AT}"checkpoint":{{"message":"m","tags":["t""#)].into_iter().chain(tags);
    write_parts(&environment, "tags.jsonl", tags.chain(["]}}\n".to_owned()]));
    let fields = (0..1_000_000).map(|n| format!(",\"f{n}\":{n}"));
    let put = r#""put":{"kind":"note","id":"n","value":{"description":"x""#;
    let fields = [format!("{AT}{put}")].into_iter().chain(fields).chain(["}}}\n".to_owned()]);
    write_parts(&environment, "fields.jsonl", fields);
    for (name, verb, expected) in [
        ("endless", "claude-code", "longer than 67108864 bytes"),
        ("nested", "claude-code", "nested deeper than"),
        ("breaks", "claude-code", "imported 1 line"),
        ("parts", "claude-code", "imported 1 line"),
        ("tags", "events", "1 checkpoint"),
        ("fields", "events", "1 revision"),
    ] {
        let mut import = environment.shell(&format!("{LIMIT}; forge import {verb} {name}.jsonl"));
        let output = environment.finished(&mut import);
        assert!(output.code == 0 && output.stdout.contains(expected), "{name}: {output}");
    }
    // The imported data can be read within the same limit.
    for command in ["checkpoint list --session tags", "note list --session fields"] {
        let mut read = environment.shell(&format!("{LIMIT}; forge {command} | head -c 1000000"));
        let output = environment.finished(&mut read);
        assert!(output.code == 0 && !output.stdout.contains("error"), "{command}: {output}");
    }
}
