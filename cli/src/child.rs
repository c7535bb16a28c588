//! Running a command so that nobody notices: its output passes through as it comes, and is kept.

use forge_store::model::claim::CommandOutcome;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How many bytes of the beginning, and of the end, of an output are kept.
const KEPT_BYTES: usize = 4096;
/// What shells answer for a command that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
/// What shells add to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// The code it ended with; nothing if it was stopped or never ran.
    pub exit_code: Option<i32>,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// How it ended.
    pub outcome: CommandOutcome,
    /// Why it did not run.
    pub reason: Option<String>,
    /// What it printed.
    pub stdout: Kept,
    /// What it printed on its error output.
    pub stderr: Kept,
    /// How long it took.
    pub took: Duration,
    not_run: Option<u8>,
}

impl Ran {
    /// The code to end with in its place: its own, 128 and the signal's number, or what shells say.
    #[must_use]
    pub fn shell_code(&self) -> u8 {
        let code = self.exit_code.or(self.signal.map(|signal| SIGNALLED + signal));
        self.not_run.unwrap_or_else(|| code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}

/// The beginning and the end of a text.
#[derive(Debug, Default)]
pub struct Kept {
    start: Vec<u8>,
    end: VecDeque<u8>,
    all: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        self.all += bytes.len() as u64;
        let (start, rest) = bytes.split_at(bytes.len().min(KEPT_BYTES - self.start.len()));
        self.start.extend_from_slice(start);
        self.end.extend(&rest[rest.len().saturating_sub(KEPT_BYTES)..]);
        self.end.drain(..self.end.len().saturating_sub(KEPT_BYTES));
    }

    /// What was kept, with a line that says how much was left out; nothing if there was nothing.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let left_out = self.all - (self.start.len() + self.end.len()) as u64;
        let (front, back) = self.end.as_slices();
        let end = [front, back].concat();
        match (self.all, left_out) {
            (0, _) => None,
            (_, 0) => {
                let whole = [self.start.as_slice(), end.as_slice()].concat();
                Some(String::from_utf8_lossy(&whole).into_owned())
            }
            _ => {
                let start = String::from_utf8_lossy(&self.start);
                let end = String::from_utf8_lossy(&end);
                Some(format!("{start}\n[{left_out} bytes left out]\n{end}"))
            }
        }
    }
}

/// The command as a person would type it.
#[must_use]
pub fn command_line(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs a command to its end. With `aside` its standard output goes to our standard error.
///
/// Interrupts reach it as they reach us, since both are in one group; we go on until it has ended.
#[must_use]
pub fn run_child(command: &[OsString], directory: &Path, aside: bool) -> Ran {
    // The flags are never read: that somebody handles the signals is enough for us to outlive them. What is handled,
    // unlike what is ignored, is not inherited by the command.
    let seen = Arc::new(AtomicBool::new(false));
    let handlers: Vec<_> = [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT]
        .into_iter()
        .filter_map(|signal| signal_hook::flag::register(signal, Arc::clone(&seen)).ok())
        .collect();
    let begin = Instant::now();
    let mut ran = spawn_and_wait(command, directory, aside);
    ran.took = begin.elapsed();
    handlers.into_iter().for_each(|handler| {
        signal_hook::low_level::unregister(handler);
    });
    ran
}

fn spawn_and_wait(command: &[OsString], directory: &Path, aside: bool) -> Ran {
    let Some((program, arguments)) = command.split_first() else {
        return never_ran("no command was given".to_owned(), NOT_RUN);
    };
    let spawned = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
            let program = program.to_string_lossy();
            return never_ran(format!("cannot run '{program}': {error}"), code);
        }
    };
    let (stdout, stderr, status) = pass_on(&mut child, aside);
    match status {
        Ok(status) => {
            let outcome = match status.signal() {
                Some(_) => CommandOutcome::Interrupted,
                None => CommandOutcome::Finished,
            };
            let (exit_code, signal) = (status.code(), status.signal());
            let reason = None;
            let (took, not_run) = (Duration::ZERO, None);
            Ran { exit_code, signal, outcome, reason, stdout, stderr, took, not_run }
        }
        Err(error) => never_ran(format!("cannot wait for the command: {error}"), NOT_RUN),
    }
}

fn never_ran(reason: String, code: u8) -> Ran {
    Ran {
        exit_code: None,
        signal: None,
        outcome: CommandOutcome::Failed,
        reason: Some(reason),
        stdout: Kept::default(),
        stderr: Kept::default(),
        took: Duration::ZERO,
        not_run: Some(code),
    }
}

fn pass_on(child: &mut Child, aside: bool) -> (Kept, Kept, io::Result<ExitStatus>) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let errors = scope.spawn(move || stderr.map(|from| copy(from, io::stderr())));
        let output = match (stdout, aside) {
            (None, _) => None,
            (Some(from), false) => Some(copy(from, io::stdout())),
            (Some(from), true) => Some(copy(from, io::stderr())),
        };
        let status = child.wait();
        let errors = errors.join().ok().flatten().unwrap_or_default();
        (output.unwrap_or_default(), errors, status)
    })
}

/// Copies until there is no more, or nobody reads on: then the command learns so as it would without us.
fn copy(mut from: impl Read, mut to: impl Write) -> Kept {
    let mut kept = Kept::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return kept,
            Ok(count) => {
                kept.add(&buffer[..count]);
                if to.write_all(&buffer[..count]).and_then(|()| to.flush()).is_err() {
                    return kept;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_of_long_output_are_kept() {
        let mut kept = Kept::default();
        assert_eq!(kept.text(), None);
        kept.add(b"begin ");
        assert_eq!(kept.text().as_deref(), Some("begin "));
        for _ in 0..5 {
            kept.add(&[b'x'; 3000]);
        }
        kept.add(b" end");
        let text = kept.text().unwrap();
        assert!(text.starts_with("begin x") && text.ends_with("x end"), "{text}");
        let left_out = 6 + 15_000 + 4 - 2 * KEPT_BYTES;
        assert!(text.contains(&format!("\n[{left_out} bytes left out]\n")), "{text}");
    }

    #[test]
    fn output_that_just_fits_is_whole() {
        let mut kept = Kept::default();
        let all: Vec<u8> = (0..2 * KEPT_BYTES).map(|place| b'a' + (place % 26) as u8).collect();
        all.chunks(1000).for_each(|part| kept.add(part));
        assert_eq!(kept.text().unwrap().into_bytes(), all);
    }

    #[test]
    fn command_lines_can_be_typed_again() {
        let words = ["cargo", "test", "a b", "it's", ""].map(OsString::from);
        assert_eq!(command_line(&words), r"cargo test 'a b' 'it'\''s' ''");
    }
}
