//! Counts how often each command reads the journal and the index. `FORGE_UPDATE_DOCS=1 cargo test
//! -p forge-cli reads` updates the table in `docs/reads.md`.

use crate::environment::Environment;
use std::fmt::Write as _;
use std::path::Path;

/// Commands that read a session.
const COMMANDS: [&[&str]; 33] = [
    &["status"],
    &["session", "list"],
    &["session", "show"],
    &["branch", "list"],
    &["checkpoint", "list"],
    &["checkpoint", "list", "--tag", "tenth"],
    &["checkpoint", "list", "--all"],
    &["checkpoint", "timeline"],
    &["checkpoint", "show", "#7"],
    &["checkpoint", "at", "HEAD"],
    &["checkpoint", "at", "HEAD", "--full"],
    &["checkpoint", "at", "1 hour ago"],
    &["checkpoint", "diff", "HEAD~3", "HEAD"],
    &["story"],
    &["log"],
    &["log", "--revisions"],
    &["log", "--limit", "20"],
    &["hypothesis", "list"],
    &["hypothesis", "show", "H1"],
    &["evidence", "list"],
    &["belief", "list"],
    &["gap", "list"],
    &["note", "list"],
    &["note", "show", "N5"],
    &["measurement", "list"],
    &["command", "list"],
    &["command", "show", "c5"],
    &["code", "list"],
    &["verification", "list"],
    &["message", "list"],
    &["compaction", "list"],
    &["why", "H1"],
    &["brief"],
];

/// The reads of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reads {
    journal: usize,
    index: usize,
}

impl Reads {
    /// Runs a command and counts the reads in its trace.
    fn of(environment: &Environment, command: &[&str]) -> Self {
        let output = environment
            .command(command)
            .env("FORGE_LOG", "forge_store::calls=trace")
            .output()
            .unwrap();
        let trace = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command:?}: {trace}");
        let calls = |name: &str| trace.lines().filter(|line| line.contains(name)).count();
        let index = ["call=\"get\"", "call=\"get_many\"", "call=\"scan\""].map(calls);
        Self { journal: calls("call=\"read\""), index: index.iter().sum() }
    }
}

/// Makes a store with the recorded example, and in addition with this many checkpoints, revisions
/// and commands.
fn store(moments: usize) -> Environment {
    let environment = Environment::new();
    environment.finished_raw(["init"]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/example/session.jsonl");
    let example = example.to_str().unwrap();
    environment.finished_raw(["import", "events", example]);
    let mut lines = String::new();
    for number in 0..moments {
        let at = format!("2026-01-10T{:02}:{:02}:00Z", number / 60, number % 60);
        let tags = if number % 10 == 0 { "[\"tenth\"]" } else { "[]" };
        for event in [
            format!(r#""put":{{"kind":"note","id":"N{number}","value":{{"description":"n"}}}}"#),
            format!(r#""put":{{"kind":"command","id":"c{number}","value":{{"command":"make"}}}}"#),
            format!(r#""checkpoint":{{"message":"c {number}","tags":{tags}}}"#),
        ] {
            writeln!(lines, r#"{{"at":"{at}","session":"session",{event}}}"#).unwrap();
        }
    }
    environment.write("more.jsonl", &lines);
    let more = environment.path("more.jsonl");
    environment.finished_raw(["import", "events", more.to_str().unwrap()]);
    environment
}

#[test]
fn a_command_reads_the_journal_once_and_the_index_in_batches() {
    let (short, long) = (store(100), store(400));
    let mut table = String::from("| command | journal | index |\n|---|---|---|\n");
    for command in COMMANDS {
        let (few, many) = (Reads::of(&short, command), Reads::of(&long, command));
        assert!(many.journal <= 1, "{command:?}: {many:?}");
        // The long store has 300 more of each kind, which are read in batches.
        assert!(many.index <= few.index + 30, "{command:?}: {few:?}, then {many:?}");
        let command = command.join(" ");
        writeln!(table, "| `forge {command}` | {} | {} |", many.journal, many.index).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reads.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- reads:begin -->\n", "<!-- reads:end -->");
    let (before, rest) = page.split_once(begin).expect("the page has the table");
    let (_, after) = rest.split_once(end).expect("the table ends");
    let wanted = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    assert_eq!(page, wanted, "FORGE_UPDATE_DOCS=1 writes docs/reads.md");
}
