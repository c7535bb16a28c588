//! Runs a command transparently: its output is passed through as it comes, and recorded.

use forge_store::model::claim::CommandOutcome;
use forge_store::redact::{MAX_SECRET_BYTES, Redactor, TextForm, mark};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The number of bytes that are kept of each end of an output.
const KEPT_BYTES: usize = 4096;
/// The number of bytes of each end that are held until secrets are redacted: more than are kept, so
/// that a secret across the cut is seen in full.
const HELD_BYTES: usize = KEPT_BYTES + MAX_SECRET_BYTES;
/// The exit codes that shells use for a missing command, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;
/// What shells add to the number of the signal that ended a command.
const SIGNAL_CODE_BASE: i32 = 128;

/// How a command ended.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Its exit code; `None` if it was stopped or never ran.
    pub exit_code: Option<i32>,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// The outcome, as the fact records it.
    pub outcome: CommandOutcome,
    /// Why it did not run.
    pub reason: Option<String>,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    pub took: Duration,
    start_failure_code: Option<u8>,
}

impl FinishedCommand {
    /// Returns the exit code for forge: the command's own, 128 plus the signal's number, or the
    /// code that shells use for a command that cannot be run.
    pub fn shell_code(&self) -> u8 {
        let code = self.exit_code.or(self.signal.map(|signal| SIGNAL_CODE_BASE + signal));
        self.start_failure_code
            .unwrap_or_else(|| code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}

/// The beginning and the end of an output.
#[derive(Debug, Default)]
pub struct CapturedOutput {
    start: Vec<u8>,
    end: VecDeque<u8>,
    all: u64,
}

impl CapturedOutput {
    fn add(&mut self, bytes: &[u8]) {
        self.all += bytes.len() as u64;
        let (start, rest) = bytes.split_at(bytes.len().min(HELD_BYTES - self.start.len()));
        self.start.extend_from_slice(start);
        self.end.extend(&rest[rest.len().saturating_sub(HELD_BYTES)..]);
        self.end.drain(..self.end.len().saturating_sub(HELD_BYTES));
    }

    /// Returns the redacted output; `None` if there was none. A long output is returned as its
    /// beginning and its end, with a line between them that says how many bytes were left out. A
    /// secret at the cut is redacted as a whole.
    pub fn text(&self, redactor: Option<&Redactor>) -> Option<String> {
        if self.all == 0 {
            return None;
        }
        let (front, back) = self.end.as_slices();
        let end = [front, back].concat();
        let held = (self.start.len() + end.len()) as u64;
        if self.all > held {
            let from = end.len().saturating_sub(KEPT_BYTES);
            let (start, end) = (
                RedactedExcerpt::find_secrets(&self.start, redactor),
                RedactedExcerpt::find_secrets(&end, redactor).end_from(from),
            );
            let (start, taken) = start.start_to(KEPT_BYTES);
            return Some(join_with_gap(&start, self.all - (taken + end.1) as u64, &end.0));
        }
        let whole = [self.start.as_slice(), &end].concat();
        let excerpt = RedactedExcerpt::find_secrets(&whole, redactor);
        if whole.len() <= 2 * KEPT_BYTES {
            return Some(excerpt.start_to(whole.len()).0);
        }
        let (start, taken) = excerpt.start_to(KEPT_BYTES);
        let (end, rest) = excerpt.end_from((whole.len() - KEPT_BYTES).max(taken));
        Some(join_with_gap(&start, (whole.len() - taken - rest) as u64, &end))
    }
}

fn join_with_gap(start: &str, left_out: u64, end: &str) -> String {
    format!("{start}\n[{left_out} bytes left out]\n{end}")
}

/// A text with known secrets; only a part of it is kept.
struct RedactedExcerpt<'t> {
    text: &'t [u8],
    secrets: Vec<(std::ops::Range<usize>, &'static str)>,
}

impl<'t> RedactedExcerpt<'t> {
    fn find_secrets(text: &'t [u8], redactor: Option<&Redactor>) -> Self {
        let found =
            redactor.map(|redactor| redactor.find(text, TextForm::Plain)).unwrap_or_default();
        Self { text, secrets: found.into_iter().map(|one| (one.range, one.kind)).collect() }
    }

    /// Returns the redacted text up to `place`, or up to the end of a secret that contains `place`;
    /// and the number of original bytes that it covers.
    fn start_to(&self, place: usize) -> (String, usize) {
        let over = self.secrets.iter().find(|(at, _)| at.start < place && place < at.end);
        let to = over.map_or(place, |(at, _)| at.end).min(self.text.len());
        (self.redacted(0, to), to)
    }

    /// Returns the redacted text from `place` on, or from the beginning of a secret that contains
    /// `place`; and the number of original bytes that it covers.
    fn end_from(&self, place: usize) -> (String, usize) {
        let over = self.secrets.iter().find(|(at, _)| at.start < place && place < at.end);
        let from = over.map_or(place, |(at, _)| at.start);
        (self.redacted(from, self.text.len()), self.text.len() - from)
    }

    fn redacted(&self, mut from: usize, to: usize) -> String {
        let mut clean = Vec::new();
        let inside = self.secrets.iter().filter(|(at, _)| from <= at.start && at.end <= to);
        for (at, kind) in inside.collect::<Vec<_>>() {
            clean.extend_from_slice(self.text.get(from..at.start).unwrap_or_default());
            clean.extend_from_slice(mark(kind).as_bytes());
            from = at.end;
        }
        clean.extend_from_slice(self.text.get(from..to).unwrap_or_default());
        String::from_utf8_lossy(&clean).into_owned()
    }
}

/// Returns the command as a person would type it.
pub fn command_line(command: &[OsString]) -> String {
    let words: Vec<String> =
        command.iter().map(|word| quote_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs a command to its end. With `to_stderr`, its standard output goes to forge's standard error.
///
/// Interrupts reach the command and forge alike, because both are in one process group. forge
/// continues until the command has ended.
pub fn run_child(command: &[OsString], directory: &Path, to_stderr: bool) -> FinishedCommand {
    // The flags are never read: a handler is enough for forge to survive the signals. Unlike
    // ignored signals, handlers are not inherited by the command.
    let seen = Arc::new(AtomicBool::new(false));
    let handlers: Vec<_> = [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT]
        .into_iter()
        .filter_map(|signal| signal_hook::flag::register(signal, Arc::clone(&seen)).ok())
        .collect();
    let begin = Instant::now();
    let mut ran = spawn_and_wait(command, directory, to_stderr);
    ran.took = begin.elapsed();
    handlers.into_iter().for_each(|handler| {
        signal_hook::low_level::unregister(handler);
    });
    ran
}

fn spawn_and_wait(command: &[OsString], directory: &Path, to_stderr: bool) -> FinishedCommand {
    let Some((program, arguments)) = command.split_first() else {
        return failed_start("no command was given".to_owned(), NOT_RUN);
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
            return failed_start(format!("cannot run '{program}': {error}"), code);
        }
    };
    let (stdout, stderr, status) = forward_output(&mut child, to_stderr);
    match status {
        Ok(status) => FinishedCommand {
            exit_code: status.code(),
            signal: status.signal(),
            outcome: match status.signal() {
                Some(_) => CommandOutcome::Interrupted,
                None => CommandOutcome::Finished,
            },
            reason: None,
            stdout,
            stderr,
            took: Duration::ZERO,
            start_failure_code: None,
        },
        Err(error) => failed_start(format!("cannot wait for the command: {error}"), NOT_RUN),
    }
}

fn failed_start(reason: String, code: u8) -> FinishedCommand {
    FinishedCommand {
        exit_code: None,
        signal: None,
        outcome: CommandOutcome::Failed,
        reason: Some(reason),
        stdout: CapturedOutput::default(),
        stderr: CapturedOutput::default(),
        took: Duration::ZERO,
        start_failure_code: Some(code),
    }
}

fn forward_output(
    child: &mut Child,
    to_stderr: bool,
) -> (CapturedOutput, CapturedOutput, io::Result<ExitStatus>) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let errors = scope.spawn(move || stderr.map(|from| copy_and_capture(from, io::stderr())));
        let output = match (stdout, to_stderr) {
            (None, _) => None,
            (Some(from), false) => Some(copy_and_capture(from, io::stdout())),
            (Some(from), true) => Some(copy_and_capture(from, io::stderr())),
        };
        let status = child.wait();
        let errors = errors.join().ok().flatten().unwrap_or_default();
        (output.unwrap_or_default(), errors, status)
    })
}

/// Copies the input and captures it, until it ends or the reader of the output is gone. In the
/// second case the command gets the same error as without forge.
fn copy_and_capture(mut from: impl Read, mut to: impl Write) -> CapturedOutput {
    let mut kept = CapturedOutput::default();
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
        for parts in [5, 50] {
            let mut kept = CapturedOutput::default();
            assert_eq!(kept.text(None), None);
            kept.add(b"begin ");
            assert_eq!(kept.text(None).as_deref(), Some("begin "));
            for _ in 0..parts {
                kept.add(&[b'x'; 3000]);
            }
            kept.add(b" end");
            let text = kept.text(None).unwrap();
            assert!(text.starts_with("begin x") && text.ends_with("x end"), "{text}");
            let left_out = 6 + 3_000 * parts + 4 - 2 * KEPT_BYTES;
            assert!(text.contains(&format!("\n[{left_out} bytes left out]\n")), "{text}");
        }
    }

    /// Wherever the cut is in a secret, no part of the secret is kept and its mark is never cut.
    #[test]
    fn a_secret_at_the_cut_is_taken_out_whole() {
        let secret = format!("gh{}_{}", "p", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
        let redactor = Redactor::new();
        for total in [KEPT_BYTES * 3, HELD_BYTES * 3] {
            for edge in [KEPT_BYTES, total - KEPT_BYTES] {
                for place in edge - secret.len() - 1..=edge + 1 {
                    let mut kept = CapturedOutput::default();
                    let before = "z".repeat(place - 1);
                    let after = "y".repeat(total - place - secret.len() - 1);
                    kept.add(format!("{before} {secret} {after}").as_bytes());
                    let text = kept.text(Some(&redactor)).unwrap();
                    assert!(!text.contains("gh") && !text.contains("6q7R"), "{place}: {text}");
                    let marks = text.matches("[redacted:").count();
                    assert_eq!(marks, text.matches("[redacted:github-token]").count(), "{place}");
                    let whole = kept.text(None).unwrap();
                    assert!(!whole.contains("redacted"));
                }
            }
        }
    }

    #[test]
    fn output_that_just_fits_is_whole() {
        let mut kept = CapturedOutput::default();
        let all: Vec<u8> = (0..2 * KEPT_BYTES).map(|place| b'a' + (place % 26) as u8).collect();
        all.chunks(1000).for_each(|part| kept.add(part));
        assert_eq!(kept.text(None).unwrap().into_bytes(), all);
    }

    #[test]
    fn command_lines_can_be_typed_again() {
        let words = ["cargo", "test", "a b", "it's", ""].map(OsString::from);
        assert_eq!(command_line(&words), r"cargo test 'a b' 'it'\''s' ''");
    }
}
