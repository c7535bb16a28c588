//! Commands that the person typed. Most versions of Codex report them only to the model.

use super::call::command_request;
use super::call_result;
use super::command_end::{self, CodexCommandEnd};
use super::prompt::source;
use crate::claude_code::line_context::PieceBuilder;
use crate::claude_code::open_call::OpenCall;
use crate::text_hash::text_hash;
use std::ops::Range;

/// The description of such a command.
pub(super) const DESCRIPTION: &str = "typed by the person";

/// Whether no line of another kind reported this command of the person before.
pub(super) fn is_news(work: &mut PieceBuilder<'_>, line: &str, source: u8) -> bool {
    let same = text_hash(&format!("typed\n{}", line.trim()));
    work.carry.other.codex.is_news(same, source, work.line.at)
}

/// Records the command in a user message that reports one. `pointer` leads to `text`.
pub(super) fn typed(work: &mut PieceBuilder<'_>, id: &str, text: &str, pointer: &str) {
    let Some((command, result)) = parts(text) else { return };
    let line = text.get(command.clone()).unwrap_or_default();
    let status = call_result::parse_run_status(text.get(result.clone()).unwrap_or_default());
    if status.exit_code.is_none() || !is_news(work, line, source::MESSAGE) {
        return;
    }
    let output = result.start + status.part.start..result.start + status.part.end;
    let shown = (!output.is_empty()).then(|| work.part(text, output.clone(), pointer));
    let command_pointer = format!("{pointer}#{}-{}", command.start, command.end);
    let call = OpenCall {
        called_at: work.line.at,
        cwd: work.line.cwd.clone(),
        tool: "exec_command".to_owned(),
        request: command_request(&work.line, line, &command_pointer, DESCRIPTION.into()),
    };
    let end = CodexCommandEnd {
        exit_code: status.exit_code,
        outcome: status.outcome,
        duration_ms: status.duration_ms,
        not_started: false,
        output: text.get(output).unwrap_or_default(),
        shown: shown.into(),
    };
    command_end::push_command(work, id, &call, end);
}

/// Returns the ranges of the command and of its result in a message that reports a command.
fn parts(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    const BEGIN: &str = "<user_shell_command>\n<command>\n";
    const MIDDLE: &str = "\n</command>\n<result>\n";
    const END: &str = "\n</result>\n</user_shell_command>";
    let begin = text.len() - text.trim_start().len();
    text.get(begin..)?.strip_prefix(BEGIN)?;
    let end = text.trim_end().strip_suffix(END)?.len();
    let from = begin + BEGIN.len();
    let to = from + text.get(from..end)?.find(MIDDLE)?;
    Some((from..to, to + MIDDLE.len()..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_and_its_result_are_found() {
        let text = "<user_shell_command>\n<command>\na\nb\n</command>\n<result>\nExit code: 1\nOutput:\nx\n</result>\n</user_shell_command>";
        let (command, result) = parts(text).unwrap();
        assert_eq!((&text[command], &text[result]), ("a\nb", "Exit code: 1\nOutput:\nx"));
        for other in [
            "",
            "<user_shell_command> what is it?",
            "<user_shell_command>\n<command>\n\n</result>\n</user_shell_command>",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }
}
