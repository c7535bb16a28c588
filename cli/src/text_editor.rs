//! Asks for a missing text in the user's editor, as git does.

use crate::args::wrong_usage::TEXT_ARGUMENTS;
use crate::context::Environment;
use crate::error::CommandError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, ExitStatus};

/// The line below the text in the editor.
const REMARK: &str = "# Write the text above. Lines that begin with '#' are left out; an empty text \
                      changes nothing.";

/// Returns the arguments with the text that the user writes in an editor; `None` if anything else
/// than one text is missing, or without a terminal or an editor.
pub fn with_missing_text(
    arguments: &[OsString],
    error: &clap::Error,
    environment: &Environment,
) -> Result<Option<Vec<OsString>>, CommandError> {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.as_slice(),
        _ => &[],
    };
    let [name] = missing else { return Ok(None) };
    let name = name.trim_matches(['<', '>']);
    let is_text = TEXT_ARGUMENTS.contains(&name);
    let is_terminal = || io::stdin().is_terminal() && io::stdout().is_terminal();
    if error.kind() != ErrorKind::MissingRequiredArgument || !is_text || !is_terminal() {
        return Ok(None);
    }
    let Some(editor) = editor(environment) else { return Ok(None) };
    let text = edit(editor, environment)?;
    let mut arguments = arguments.to_vec();
    // The text may begin with a hyphen.
    arguments.extend(["--".into(), text.into()]);
    Ok(Some(arguments))
}

/// Returns the user's editor: the value of `VISUAL`, else of `EDITOR`.
pub fn editor(environment: &Environment) -> Option<&str> {
    environment.text("VISUAL").or_else(|| environment.text("EDITOR"))
}

/// Returns the text that the user writes in the editor.
fn edit(editor: &str, environment: &Environment) -> Result<String, CommandError> {
    let failed = |error| CommandError::io("cannot ask for the text in an editor", error);
    let (text, status) = edit_text(editor, environment, "").map_err(failed)?;
    if !status.success() {
        return Err(CommandError::invalid(format!("the editor '{editor}' ended with an error"))
            .hinted("nothing was changed; 'VISUAL' or 'EDITOR' names the editor"));
    }
    if text.is_empty() {
        return Err(CommandError::invalid("the text is empty").hinted("nothing was changed"));
    }
    Ok(text)
}

/// Runs the editor on a text. Returns the changed text without remarks, and how the editor ended.
///
/// # Errors
///
/// If the file cannot be written or read, or a shell cannot be started.
pub fn edit_text(
    editor: &str,
    environment: &Environment,
    begin: &str,
) -> io::Result<(String, ExitStatus)> {
    let folder = environment.path("TMPDIR").unwrap_or_else(std::env::temp_dir);
    let mut file = tempfile::Builder::new().suffix(".md").tempfile_in(folder)?;
    writeln!(file, "{begin}\n{REMARK}")?;
    // The variable may contain arguments.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file.path());
    let status = command.status()?;
    // The editor may have replaced the file.
    let written = std::fs::read_to_string(file.path())?;
    Ok((without_remarks(&written), status))
}

fn without_remarks(written: &str) -> String {
    let lines: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_gives_the_text_without_remarks() {
        let environment = Environment::default();
        let text = edit("sh -c 'echo \"-first\n# x\n second\" > \"$0\"'", &environment).unwrap();
        assert_eq!(text, "-first\n second");
        let error = edit("true", &environment).unwrap_err();
        assert_eq!(error.message(), "the text is empty");
        assert!(edit("false", &environment).unwrap_err().message().contains("'false'"));
    }
}
