//! A separate environment for each test: its own variables and home directory, and a fixed width,
//! time zone and clock.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The time of a test's first command: 2026-02-01T12:00:00Z. Each later command is one second
/// later.
const FIRST_SECOND: u32 = 12 * 3600;
/// Europe/Berlin as a POSIX rule, so that the machine needs no zone files.
const ZONE: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
/// The possible lengths of ids in hexadecimal digits: short, of 8 bytes, of 16 bytes, of 32 bytes.
const ID_DIGITS: [usize; 4] = [10, 16, 32, 64];

/// The environment of a test.
pub(crate) struct Environment {
    root: tempfile::TempDir,
    path: PathBuf,
    commands: Cell<u32>,
    ids: RefCell<Vec<String>>,
    variables: Vec<(String, String)>,
}

impl Environment {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        for directory in ["home", "config", "tmp", "project"] {
            std::fs::create_dir(path.join(directory)).unwrap();
        }
        std::fs::create_dir(path.join("bin")).unwrap();
        let binary = env!("CARGO_BIN_EXE_forge");
        std::os::unix::fs::symlink(binary, path.join("bin/forge")).unwrap();
        let (commands, ids) = (Cell::new(0), RefCell::default());
        Self { root, path, commands, ids, variables: Vec::new() }
    }

    /// Sets an environment variable for all commands.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Returns a path in this environment.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file, and creates the directories above it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn make_directory(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).unwrap();
    }

    /// Returns a command to be run in the project; the clock advances by one second.
    pub(crate) fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_forge"));
        command.args(args);
        command
    }

    /// Returns a shell line in which `forge` is the command under test. No other program of the
    /// build is on its `PATH`: a fuzz target has the name of an agent.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let folder = self.path.join("bin");
        let mut command = self.program("sh");
        command
            .args(["-c", &format!("{{ {line}\n}} 2>&1")])
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        command
    }

    fn program(&self, program: &str) -> Command {
        let second = FIRST_SECOND + self.commands.replace(self.commands.get() + 1);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let mut command = Command::new(program);
        command
            .current_dir(self.path.join("project"))
            .stdin(Stdio::null())
            .env_clear()
            .env("HOME", self.path.join("home"))
            .env("XDG_CONFIG_HOME", self.path.join("config"))
            .env("TMPDIR", self.path.join("tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("COLUMNS", "100")
            .env("TZ", ZONE)
            .env("FORGE_TEST_NOW", format!("2026-02-01T{hour:02}:{minute:02}:{second:02}Z"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `forge` in the project.
    pub(crate) fn forge<const N: usize>(&self, args: [&str; N]) -> Output {
        self.finished(&mut self.command(args))
    }

    /// Runs `forge` in another directory of this environment.
    pub(crate) fn forge_in<const N: usize>(&self, directory: &str, args: [&str; N]) -> Output {
        self.finished(self.command(args).current_dir(self.path.join(directory)))
    }

    /// Runs a command that must succeed, and returns its unchanged output, with real ids.
    pub(crate) fn finished_raw<const N: usize>(&self, args: [&str; N]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn finished(&self, command: &mut Command) -> Output {
        let output = command.output().unwrap();
        let text = |bytes| self.normal(&String::from_utf8(bytes).expect("output is UTF-8"));
        Output {
            code: output.status.code().expect("it ended by itself"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Replaces the environment's path by `$ROOT`, each id, short or full, by `<id1>`, `<id2>`, ...,
    /// and the tag of a store by `<tag>`.
    fn normal(&self, text: &str) -> String {
        let text = text.replace(self.path.to_str().unwrap(), "$ROOT");
        let mut normal = String::new();
        let mut word = String::new();
        for character in text.chars() {
            if character.is_ascii_alphanumeric() {
                word.push(character);
            } else {
                self.push_normal(&mut normal, &word);
                word.clear();
                normal.push(character);
            }
        }
        self.push_normal(&mut normal, &word);
        normal
    }

    fn push_normal(&self, text: &mut String, word: &str) {
        // Digits after a decimal point are not an id, however many there are.
        let is_fraction = text.ends_with('.') && word.bytes().all(|byte| byte.is_ascii_digit());
        let normal = if is_tag(text, word) {
            "<tag>".to_owned()
        } else if is_fraction {
            word.to_owned()
        } else {
            self.normal_word(word)
        };
        text.push_str(&normal);
    }

    fn normal_word(&self, word: &str) -> String {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if !ID_DIGITS.contains(&word.len()) || !word.bytes().all(is_digit) {
            return word.to_owned();
        }
        let mut ids = self.ids.borrow_mut();
        let beginning = &word[..ID_DIGITS[0]];
        let place = ids.iter().position(|id| id == beginning).unwrap_or_else(|| {
            ids.push(beginning.to_owned());
            ids.len() - 1
        });
        format!("<id{}>", place + 1)
    }
}

/// Returns whether a word is the tag of a store, after the id of a claim or after `main.`.
fn is_tag(before: &str, word: &str) -> bool {
    let is_id = |text: &str| {
        let kind = text.trim_end_matches(|digit: char| digit.is_ascii_digit());
        kind.len() < text.len() && kind.ends_with(['H', 'E', 'B', 'G', 'N'])
    };
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    word.len() == 4
        && word.bytes().all(is_digit)
        && (before.ends_with("main.") || before.strip_suffix('-').is_some_and(is_id))
}

/// The output and the exit code of a command.
#[must_use = "compare it with a snapshot, or ask for success"]
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Returns the standard output of a command that must have succeeded, without any error output.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self}");
        self.stdout
    }

    /// Returns the one JSON document in the output.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        let text = self.success();
        assert_eq!(text.lines().count(), 1, "one document on one line: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(out, "[stderr]\n{}", self.stderr)?;
        }
        if self.code != 0 {
            write!(out, "[exit {}]", self.code)?;
        }
        Ok(())
    }
}

/// Returns the folder of recorded sessions of agents. It may not exist: tests that need it then
/// report a skip.
pub(crate) fn recorded_sessions() -> PathBuf {
    std::env::var_os("FORGE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    )
}

/// Returns the permission bits of a file or directory.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn ids_and_paths_in_test_output_are_replaced_by_stable_names() {
    let environment = Environment::new();
    let long = "0123456789abcdef0123456789abcdef";
    let text =
        format!("{}/x {long} abc 0123456789, aaaaaaaaaa 0.1234567890", environment.path.display());
    assert_eq!(environment.normal(&text), "$ROOT/x <id1> abc <id1>, <id2> 0.1234567890");
}

/// One store in seven has a tag of decimal digits alone.
#[test]
fn a_tag_of_decimal_digits_is_not_taken_for_a_fraction() {
    let environment = Environment::new();
    let text = "main.1502 main.a5d2 N1-1502 N1-a5d2 0.1502 version 1502";
    let normal = "main.<tag> main.<tag> N1-<tag> N1-<tag> 0.1502 version 1502";
    assert_eq!(environment.normal(text), normal);
}
