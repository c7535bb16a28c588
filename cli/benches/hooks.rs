//! Measures what hooks cost an agent, as whole processes: `cargo bench -p forge-cli --bench hooks`.
//! One line of JSON per figure.
//!
//! `FORGE_MEGABYTES` lists the lengths of transcripts (default `4,16,64`). `FORGE_RUNS` sets how
//! often each is measured (default 15).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench that cannot go on stops")]

use forge_store::model::Timestamp;
use forge_testkit::files::bytes_below;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How many bytes of a transcript are new at each call.
const NEW_BYTES: usize = 200 << 10;
/// The number of files in the git repository.
const FILES: usize = 500;

fn main() {
    let lengths = std::env::var("FORGE_MEGABYTES").unwrap_or_else(|_| "4,16,64".to_owned());
    let runs = std::env::var("FORGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(15);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("forge");
    install(&program);
    for megabytes in lengths.split(',').filter_map(|length| length.trim().parse().ok()) {
        for with_git in [true, false] {
            pre_compact(&program, megabytes, with_git, runs);
        }
    }
    tool_use(&program, runs * 20);
    hand_back(&program, runs);
}

/// Copies the program as `make install` does. The kernel maps a copy in larger pieces than the file
/// that the linker wrote, so it starts sooner.
fn install(program: &Path) {
    let mut install = Command::new("install");
    install.args(["-s", "-m", "755", env!("CARGO_BIN_EXE_forge")]).arg(program);
    assert!(install.status().unwrap().success());
}

/// A project with a store and optionally a git repository, and a transcript next to it.
struct Bench<'a> {
    program: &'a Path,
    root: tempfile::TempDir,
    /// The number of commands in the transcript.
    commands: u64,
    /// The length of the conversation.
    seconds: i64,
}

impl<'a> Bench<'a> {
    fn new(program: &'a Path, with_git: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let bench = Self { program, root, commands: 0, seconds: 0 };
        fs::create_dir(bench.project()).unwrap();
        fs::write(bench.transcript(), "").unwrap();
        if with_git {
            bench.make_repository();
        }
        let made = bench.forge(&["init"]).stdout(Stdio::null()).status().unwrap();
        assert!(made.success());
        bench
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn transcript(&self) -> PathBuf {
        self.root.path().join("transcript.jsonl")
    }

    /// Commits [`FILES`] files, and then changes three of them.
    fn make_repository(&self) {
        for file in 0..FILES {
            let folder = self.project().join(format!("src/part{}", file % 20));
            fs::create_dir_all(&folder).unwrap();
            let text: String =
                (0..80).map(|line| format!("line {line} of file {file}\n")).collect();
            fs::write(folder.join(format!("file{file}.rs")), text).unwrap();
        }
        for args in [
            ["init", "-q"].as_slice(),
            &["add", "."],
            &["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "first"],
        ] {
            let done = Command::new("git").args(args).current_dir(self.project()).status().unwrap();
            assert!(done.success());
        }
        for file in 0..3 {
            let path = self.project().join(format!("src/part{file}/file{file}.rs"));
            let text = fs::read_to_string(&path).unwrap().replace("line 7 ", "line seven ");
            fs::write(path, text).unwrap();
        }
    }

    fn forge(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(args).current_dir(self.project()).env("HOME", self.root.path());
        command
    }

    /// Appends at least this many bytes of conversation to the transcript.
    fn grow(&mut self, bytes: usize) {
        let mut text = String::with_capacity(bytes + 4096);
        while text.len() < bytes {
            self.add_command(&mut text);
        }
        let mut file = OpenOptions::new().append(true).open(self.transcript()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Adds a message about a command, and the command with an output of about 2 kB.
    fn add_command(&mut self, text: &mut String) {
        self.commands += 1;
        self.seconds += 2;
        let number = self.commands;
        let at = self.now();
        let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut output = String::new();
        while output.len() < 2000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let _ =
                write!(output, "test module{}::case_{:x} ... ok\\n", random % 40, random % 9973);
        }
        let common = format!("\"sessionId\":\"bench\",\"timestamp\":\"{at}\",\"cwd\":\"/w\"");
        let _ = write!(
            text,
            "{{\"type\":\"assistant\",\"uuid\":\"a{number}\",{common},\"message\":{{\"role\":\"assistant\",\"content\":\
             [{{\"type\":\"text\",\"text\":\"Running the tests of part {number}.\"}},{{\"type\":\"tool_use\",\"id\":\
             \"c{number}\",\"name\":\"Bash\",\"input\":{{\"command\":\"cargo test part{number}\"}}}}]}}}}\n\
             {{\"type\":\"user\",\"uuid\":\"r{number}\",{common},\"message\":{{\"role\":\"user\",\"content\":\
             [{{\"type\":\"tool_result\",\"tool_use_id\":\"c{number}\",\"content\":\"ok\"}}]}},\"toolUseResult\":\
             {{\"stdout\":\"{output}\",\"stderr\":\"\"}}}}\n"
        );
    }

    /// The current time in the conversation.
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_750_000_000_000_000 + self.seconds * 1_000_000)
    }

    /// Calls a hook as an agent does; returns the microseconds from its start to its end.
    fn hook(&self, event: &str, more: &Value) -> u64 {
        let mut input = json!({
            "session_id": "bench", "transcript_path": self.transcript(), "cwd": self.project(),
            "hook_event_name": event,
        });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let input = input.to_string();
        let now = self.now().plus_micros(1_000_000).to_string();
        let began = Instant::now();
        let mut child = self
            .forge(&["hook", "claude", event])
            .env("FORGE_TEST_NOW", now)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let took = began.elapsed();
        assert!(output.status.success());
        u64::try_from(took.as_micros()).unwrap()
    }

    /// Reads a field of the last line of the log.
    fn logged(&self, field: &str) -> Value {
        let log = fs::read_to_string(self.project().join(".forge/log/hooks.jsonl")).unwrap();
        let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_ne!(line["outcome"], "failed", "{line}");
        line[field].clone()
    }
}

/// Measures the hook before a compaction.
fn pre_compact(program: &Path, megabytes: usize, with_git: bool, runs: usize) {
    let mut bench = Bench::new(program, with_git);
    bench.grow((megabytes << 20).saturating_sub(NEW_BYTES));
    bench.hook("Stop", &json!({}));
    let (mut whole, mut git) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        bench.grow(NEW_BYTES);
        whole.push(bench.hook("PreCompact", &json!({"trigger": "auto"})));
        git.extend(bench.logged("git_micros").as_u64());
    }
    println!(
        "{}",
        json!({
            "figure": "pre_compact", "transcript_mb": megabytes, "new_kb": NEW_BYTES >> 10,
            "files_in_git": if with_git { FILES } else { 0 }, "runs": runs,
            "p50_ms": percentile_ms(&mut whole, 50), "p90_ms": percentile_ms(&mut whole, 90),
            "git_p50_ms": percentile_ms(&mut git, 50), "store_mb": bytes_below(&bench.project().join(".forge")) >> 20,
        })
    );
}

/// Measures the hook after a tool call.
fn tool_use(program: &Path, runs: usize) {
    let mut bench = Bench::new(program, true);
    bench.grow(4 << 20);
    bench.hook("Stop", &json!({}));
    let mut whole = Vec::new();
    for run in 0..runs {
        let call = json!({
            "tool_name": "Bash", "tool_use_id": format!("t{run}"),
            "tool_input": {"command": "cargo test"},
            "tool_response": {"stdout": "test result: ok. 12 passed", "stderr": ""},
        });
        whole.push(bench.hook("PostToolUse", &call));
    }
    assert_eq!(bench.logged("outcome"), "saved");
    println!(
        "{}",
        json!({
            "figure": "tool_use", "runs": runs,
            "p50_ms": percentile_ms(&mut whole, 50), "p99_ms": percentile_ms(&mut whole, 99),
        })
    );
}

/// Measures the hook that hands back what was known before a compaction.
fn hand_back(program: &Path, runs: usize) {
    let mut bench = Bench::new(program, false);
    bench.grow(4 << 20);
    bench.hook("Stop", &json!({}));
    let mut whole = Vec::new();
    for _ in 0..runs {
        bench.grow(NEW_BYTES);
        bench.hook("PreCompact", &json!({"trigger": "auto"}));
        whole.push(bench.hook("SessionStart", &json!({"source": "compact"})));
    }
    println!(
        "{}",
        json!({
            "figure": "hand_back", "transcript_mb": 4, "runs": runs,
            "p50_ms": percentile_ms(&mut whole, 50), "p90_ms": percentile_ms(&mut whole, 90),
        })
    );
}

/// Returns a percentile of these microseconds, in milliseconds. It is null if there are no values.
#[expect(clippy::cast_precision_loss, reason = "no call takes hours")]
fn percentile_ms(micros: &mut [u64], percent: usize) -> Value {
    micros.sort_unstable();
    let place = (micros.len() * percent / 100).min(micros.len().saturating_sub(1));
    micros.get(place).map_or(Value::Null, |micros| (*micros as f64 / 1e3).into())
}
