//! Makes the facts of a command that ran, and the checkpoint of a commit that it made. Used for all
//! agents.

use super::line_context::{LineContext, PieceBuilder, fields};
use crate::verification::{CheckCommandLine, RecordedCommandEnd};
use forge_store::model::{FieldMap, Kind, Value};
use std::ops::Range;

/// The outcome of a command that was not allowed to run.
pub(crate) const REFUSED: &str = "refused";

/// A command that ran, or was refused.
#[derive(Debug)]
pub(crate) struct CommandRun<'a> {
    pub(crate) command: Value,
    pub(crate) description: Value,
    pub(crate) exit_code: Option<i64>,
    pub(crate) outcome: &'static str,
    /// Additional fields of the command's fact.
    pub(crate) more: FieldMap,
    /// What it printed, as far as that is known.
    pub(crate) output: &'a str,
    /// The checks in it, if there are any.
    pub(crate) verification: Option<&'a CheckCommandLine>,
    /// Whether its output is searched for a commit.
    pub(crate) commits: bool,
}

impl PieceBuilder<'_> {
    /// Adds the facts of a command and of each check in it, and the checkpoint of its commit.
    ///
    /// The first check of the command line has the id of the call. The others have their number
    /// after that id: `CALL/2`.
    pub(crate) fn push_command_run(&mut self, id: &str, ran: CommandRun<'_>) {
        let common = fields([
            ("command", ran.command),
            ("description", ran.description),
            ("exit_code", ran.exit_code.into()),
            ("agent", self.line.agent.clone().into()),
        ]);
        let ended = RecordedCommandEnd {
            outcome: ran.outcome,
            exit_code: ran.exit_code,
            output: ran.output,
        };
        let checks = ran.verification.map(|verification| verification.outcomes(&ended));
        let directory = ran.more.get("working_dir").and_then(Value::as_text).map(str::to_owned);
        let mut value = ran.more;
        value.extend(common.clone());
        value.insert("outcome".to_owned(), ran.outcome.into());
        self.fact(Kind::Command, id, value);
        for check in checks.unwrap_or_default() {
            let mut value = common.clone();
            value.extend(fields(check.fields(directory.as_deref())));
            let id = match check.number {
                0 => id.to_owned(),
                number => format!("{id}/{}", number + 1),
            };
            self.fact(Kind::Verification, &id, value);
        }
        if ran.commits {
            self.commit(id, ran.output);
        }
    }
}

/// Returns the fields for `part` of a text that contains both output streams of a command. For a
/// command that was refused, the part is the reason.
pub(crate) fn merged(
    context: &LineContext,
    outcome: &str,
    text: &str,
    part: Range<usize>,
    pointer: &str,
) -> FieldMap {
    let shown = (!part.is_empty()).then(|| context.part(text, part, pointer));
    match outcome {
        REFUSED => fields([("reason", shown.into())]),
        _ => fields([("stdout_preview", shown.into()), ("streams", "merged".into())]),
    }
}
