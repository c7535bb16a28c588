//! The browser in a real terminal: tmux sends the keys and returns the screen.

use crate::environment::{Environment, recorded_sessions};
use forge_testkit::skip::skipped;
use std::process::Command;
use std::time::{Duration, Instant};

/// A terminal for one test.
struct Terminal {
    server: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

impl Terminal {
    /// Starts a shell in a window of this size. Reports a skip and returns `None` without tmux.
    fn new(place: &Environment, name: &str, (width, height): (&str, &str)) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped(name, "tmux is missing, 'scripts/setup --tests' installs it");
            return None;
        }
        let server = format!("forge-test-{name}-{}", std::process::id());
        let terminal = Self { server };
        let home = place.path("home");
        let mut start = Command::new("tmux");
        start
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .current_dir(place.path("project"))
            .args(["-L", &terminal.server, "-f", "/dev/null", "new-session", "-d"])
            .args(["-x", width, "-y", height, "sh -i"]);
        assert!(start.status().unwrap().success());
        // In two parts, so that the typed text is not taken for the prompt.
        terminal.run("PS1='rea''dy> '");
        terminal.sees("ready>");
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").args(["-L", &self.server]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen contains this text.
    fn sees(&self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(Instant::now() < until, "'{text}' never came:\n{screen}");
        }
    }

    /// Waits until the screen does not contain this text any more.
    fn loses(&self, text: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.screen().contains(text) {
            assert!(Instant::now() < until, "'{text}' stays:\n{}", self.screen());
        }
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a command into the shell.
    fn run(&self, command: &str) {
        self.tmux(&["send-keys", "-l", command]);
        self.press(&["Enter"]);
    }
}

/// Makes a store with the recorded example.
fn example() -> Environment {
    let place = Environment::new();
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/example/session.jsonl");
    for words in [&["init"][..], &["import", "events", events]] {
        let output = place.finished(&mut place.command(words));
        assert_eq!(output.code, 0, "{words:?}: {output}");
    }
    place
}

const FORGE: &str = env!("CARGO_BIN_EXE_forge");

#[test]
fn the_example_is_browsed_compared_and_left_in_a_real_terminal() {
    let place = example();
    let Some(terminal) = Terminal::new(&place, "browse", ("120", "40")) else { return };
    terminal.run(&format!("{FORGE} tui; echo left=$?"));
    terminal.sees("Fixed on monotonic-lease");
    terminal.press(&["K", "Enter"]);
    terminal.sees("<space> fold");
    terminal.press(&["q"]);
    terminal.sees("<tab> pane");
    terminal.press(&["t"]);
    terminal.sees("go to:");
    terminal.tmux(&["send-keys", "-l", "when H1 was rejected"]);
    terminal.press(&["Enter"]);
    terminal.sees("at when H1 was rejected");
    terminal.sees("H1 ✗ rejected");
    terminal.press(&["m", "G", "d"]);
    terminal.sees("2 Changed between");
    terminal.press(&["d"]);
    terminal.loses("2 Changed between");

    // The story follows what other processes write.
    terminal.sees("● live");
    let note = ["note", "add", "written by somebody else", "--id", "N99"];
    let output = place.finished(&mut place.command(&note));
    assert_eq!(output.code, 0, "{output}");
    terminal.sees("✎  N99  written by somebody else");

    // A note that is written in the browser is shown, too.
    terminal.press(&["n"]);
    terminal.sees("note:");
    terminal.tmux(&["send-keys", "-l", "written in the browser"]);
    terminal.press(&["Enter"]);
    terminal.sees("$ forge note add 'written in the browser'");

    // Any window size works.
    terminal.tmux(&["resize-window", "-x", "20", "-y", "5"]);
    let until = Instant::now() + Duration::from_secs(60);
    while terminal.screen().lines().next().is_none_or(|line| line.contains("monotonic")) {
        assert!(Instant::now() < until, "{}", terminal.screen());
    }
    terminal.tmux(&["resize-window", "-x", "100", "-y", "40"]);
    terminal.sees("longest pause");

    terminal.press(&["q"]);
    let screen = terminal.sees("left=0");
    assert!(!screen.contains("● live"), "the screen was not given back:\n{screen}");
}

/// A session of two days, recorded from an agent: idle nights, two compactions, failures, 750
/// messages.
#[test]
fn a_recorded_session_is_browsed_in_a_real_terminal() {
    let recorded = recorded_sessions().join("claude-code/long.jsonl");
    if !recorded.exists() {
        skipped("recorded", format_args!("no {}; set FORGE_DATA", recorded.display()));
        return;
    }
    let place = Environment::new().with("FORGE_TEST_NOW", "2026-06-01T00:00:00Z");
    let recorded = recorded.to_str().unwrap();
    for words in [&["init"][..], &["import", "claude-code", recorded]] {
        let output = place.finished(&mut place.command(words));
        assert_eq!(output.code, 0, "{words:?}: {output}");
    }
    let Some(terminal) = Terminal::new(&place, "recorded", ("140", "40")) else { return };
    terminal.run(&format!("{FORGE} tui; echo left=$?"));
    // The story, the findings at its end, and the nights on the axis of time.
    terminal.sees("38 prompts, 8 commits");
    terminal.sees("! 6 files uncommitted");
    terminal.sees("Not committed");
    terminal.sees("longest pause 18 h 13 min");
    terminal.sees("|18h|");

    // The later compaction is opened in full.
    terminal.press(&["<"]);
    terminal.sees("▌       ┄  context compacted  manual, 149025 tokens before");
    terminal.press(&["Enter"]);
    // The agent's own summary, read from the transcript.
    terminal.sees("This session is being continued from a previous conversation");
    terminal.sees("<space> fold");
    terminal.press(&["q"]);
    terminal.sees("<tab> pane");
    terminal.press(&["m"]);
    terminal.sees("marked");
    terminal.press(&["G", "d"]);
    terminal.sees("forge checkpoint diff");
    terminal.press(&["d"]);
    terminal.loses("forge checkpoint diff");

    // The list of everything is filtered while typing, and a failure is opened with its output.
    terminal.press(&["f"]);
    terminal.tmux(&["send-keys", "-l", "kind:verification go test"]);
    terminal.sees("✗ go test");
    terminal.press(&["Enter"]);
    terminal.sees("<tab> pane");
    terminal.press(&["X"]);
    terminal.sees("2 Detail ─ verification");
    terminal.sees("failed (exit");
    terminal.press(&["Escape"]);
    terminal.loses("filter:");

    // A time during the night selects the last entry before it.
    terminal.press(&["t"]);
    terminal.tmux(&["send-keys", "-l", "2026-02-01 12:00"]);
    terminal.press(&["Enter"]);
    terminal.sees("Sun 1 Feb 04:");
    terminal.press(&["c"]);
    terminal.sees("there are no hypotheses to draw");
    terminal.press(&["q"]);
    terminal.sees("left=0");
}

#[test]
fn a_long_text_is_written_in_the_editor_and_the_screen_comes_back() {
    let place = example();
    let Some(terminal) = Terminal::new(&place, "editor", ("120", "30")) else { return };
    let script = place.path("home").join("editor");
    // The script waits for a line of the terminal, as an editor reads keys.
    let text = "printf 'ed''iting: ' && cat \"$1\" && read line && printf '%s\\nsecond line\\n' \"$line\" >>\"$1\"\n";
    std::fs::write(&script, text).unwrap();
    terminal.run(&format!("export EDITOR='sh {}'", script.display()));
    terminal.run(&format!("{FORGE} tui; echo left=$?"));
    terminal.sees("● live");
    terminal.press(&["n"]);
    terminal.sees("note:");
    terminal.tmux(&["send-keys", "-l", "typed first"]);
    terminal.press(&["C-e"]);
    terminal.sees("editing: typed first");
    terminal.loses("● live");
    // The keys are the editor's: none of them is read by the browser.
    terminal.run("qqq added");
    terminal.sees("$ forge note add 'typed first");
    terminal.sees("1 Story");
    terminal.press(&["2"]);
    terminal.sees("second line");
    let title = terminal.tmux(&["display-message", "-p", "#{pane_title}"]);
    assert!(title.contains("forge · "), "{title}");

    // An editor that fails loses nothing.
    terminal.press(&["q"]);
    terminal.sees("left=0");
    terminal.run("export EDITOR='false'");
    terminal.run(&format!("clear; {FORGE} tui --strip; echo left=$?"));
    terminal.sees("⤷");
    terminal.press(&["n"]);
    terminal.sees("note:");
    terminal.tmux(&["send-keys", "-l", "kept"]);
    terminal.press(&["C-e"]);
    terminal.sees("the editor 'false' failed");
    terminal.sees("note: kept");
    terminal.press(&["Enter"]);
    terminal.sees("$ forge note add kept");

    // Regression: a report that could not be written had no reason.
    terminal.press(&["S", "C-u"]);
    terminal.tmux(&["send-keys", "-l", "none/here.md"]);
    terminal.sees("write this view to: none/here.md");
    terminal.press(&["Enter"]);
    terminal.sees("cannot write 'none/here.md': No such file or directory");
    // The refused path is still in the input.
    terminal.press(&["Escape"]);
    terminal.loses("write this view to:");
    terminal.press(&["q"]);
    terminal.sees("left=0");
}

#[test]
fn suspend_and_sigterm_give_the_terminal_back() {
    let place = example();
    let Some(terminal) = Terminal::new(&place, "signals", ("100", "24")) else { return };
    terminal.run(&format!("{FORGE} tui; echo left=$?"));
    terminal.sees("● live");
    terminal.press(&["C-z"]);
    terminal.sees("Stopped");
    terminal.run("echo st''ill here; fg");
    terminal.sees("● live");
    let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let children = format!("/proc/{0}/task/{0}/children", shell.trim());
    let child = std::fs::read_to_string(children).unwrap();
    let killed = Command::new("kill").args(["-TERM", child.trim()]).status().unwrap();
    assert!(killed.success());
    // Until the browser has ended, it reads the keys.
    let process = std::path::PathBuf::from(format!("/proc/{}", child.trim()));
    let until = Instant::now() + Duration::from_secs(60);
    while process.exists() {
        assert!(Instant::now() < until, "it goes on after SIGTERM");
    }
    terminal.run("stty -a | grep -o ' icanon' && echo in''put is whole");
    let screen = terminal.sees("input is whole");
    assert!(screen.contains("still here"), "{screen}");
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let place = example();
    let output = place.finished(&mut place.command(&["tui"]));
    assert_eq!(output.code, 4, "{output}");
    assert!(output.to_string().contains("forge checkpoint timeline --no-tui"), "{output}");
    let output = place.finished(&mut place.command(&["checkpoint", "timeline"]));
    assert_eq!(output.code, 0, "{output}");
}
