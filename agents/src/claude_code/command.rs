//! Commands that ran, whichever agent ran them: the facts of one, and the commit it may have made.

use super::line_context::{LineContext, PieceBuilder, fields};
use crate::verification::{CheckCommandLine, RecordedCommandEnd};
use forge_store::model::{FieldMap, Kind, Value};
use std::ops::Range;

/// What the outcome of a command is called that was not let run.
pub(crate) const REFUSED: &str = "refused";

/// A command that ran, or was refused.
#[derive(Debug)]
pub(crate) struct CommandRun<'a> {
    pub(crate) command: Value,
    pub(crate) description: Value,
    pub(crate) exit_code: Option<i64>,
    pub(crate) outcome: &'static str,
    /// What its fact says besides.
    pub(crate) more: FieldMap,
    /// What it printed, as far as that is known.
    pub(crate) output: &'a str,
    /// The checks in it, if there are any.
    pub(crate) verification: Option<&'a CheckCommandLine>,
    /// Whether its output may tell of a commit.
    pub(crate) commits: bool,
}

impl PieceBuilder<'_> {
    /// Tells of a command, of each check in it, and of the commit it made.
    ///
    /// The first check has the id of the call, the others have their number after it: `CALL/2`.
    pub(crate) fn push_command_run(
        &mut self,
        scene: &LineContext<'_>,
        id: &str,
        ran: CommandRun<'_>,
    ) {
        let common = fields([
            ("command", ran.command),
            ("description", ran.description),
            ("exit_code", ran.exit_code.into()),
            ("agent", scene.agent.clone().into()),
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
        self.facts.push(scene.fact(Kind::Command, id, value));
        for check in checks.unwrap_or_default() {
            let mut value = common.clone();
            value.extend(fields(check.fields(directory.as_deref())));
            let id = match check.number {
                0 => id.to_owned(),
                number => format!("{id}/{}", number + 1),
            };
            self.facts.push(scene.fact(Kind::Verification, &id, value));
        }
        if ran.commits {
            self.commit(scene, id, ran.output);
        }
    }
}

/// The fields for a part of a text in which both streams of a command stand together; of a command that was refused it
/// says why.
pub(crate) fn merged(
    scene: &LineContext<'_>,
    outcome: &str,
    text: &str,
    part: Range<usize>,
    pointer: &str,
) -> FieldMap {
    let shown = (!part.is_empty()).then(|| scene.part(text, part, pointer));
    match outcome {
        REFUSED => fields([("reason", shown.into())]),
        _ => fields([("stdout_preview", shown.into()), ("streams", "merged".into())]),
    }
}
