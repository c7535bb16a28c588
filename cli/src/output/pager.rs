//! Shows long output in the user's pager.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Shows a text in this pager, a command line for the shell, and waits until the pager ends.
///
/// # Errors
///
/// If the pager cannot be run: then nothing was shown. If the text cannot be written to it, unless
/// the user closed it early.
pub(super) fn show(command: &str, text: &str) -> io::Result<()> {
    let mut child = Command::new("sh").arg("-c").arg(command).stdin(Stdio::piped()).spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = child.wait()?;
    match status.code() {
        // The shell's exit codes for a program that does not exist or cannot be run.
        Some(126 | 127) => Err(io::ErrorKind::NotFound.into()),
        _ => match written {
            // The user closed the pager early.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_that_is_missing_is_an_error_and_one_left_early_is_not() {
        assert!(show("/no/such/pager", "text").is_err());
        assert!(show("exit 0", &"long\n".repeat(100_000)).is_ok());
    }

    #[test]
    fn the_pager_gets_the_whole_text() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("shown");
        show(&format!("cat > '{}'", file.display()), "a\nb\n").unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "a\nb\n");
    }
}
