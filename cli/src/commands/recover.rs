//! `forge recover`.

mod code;

use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::moment::{CheckpointJson, seconds};
use crate::report::recover::{
    CodeRecoverReport, OpenTask, RecoverPoint, RecoverReport, RecoverStep, RecoverStepReport,
    RecoveredCommand, RecoveredCommands, RecoveredVariables, RemainingWork,
};
use crate::session_reader::SessionReader;
use crate::text::{TextLength, TextReader};
use crate::verb::{EitherReport, Verb, VerbResult};
use forge_store::model::{Kind, Value};
use forge_store::shell::quoted;
use forge_store::store::{RecoverySummary, SourcedFact};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    /// Moment to recover; the last thing recorded by default
    #[arg(value_name = "MOMENT")]
    pub moment: Option<MomentArg>,

    /// Only this step: 1 restores the code in git, 2 prints variables, 3 commands, 4 what is left
    /// to do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub step: Option<u8>,

    /// Restore the code without asking
    #[arg(long, requires = "step")]
    pub yes: bool,

    /// Name of the new git branch; forge/recovered-ID by default
    #[arg(long, value_name = "NAME", requires = "step")]
    pub branch: Option<String>,

    /// Directory for a new worktree of that branch
    #[arg(long, value_name = "PATH", requires = "step")]
    pub worktree: Option<PathBuf>,
}

/// The report of the restored code, of one step, or of all steps.
type RecoveryReport =
    EitherReport<CodeRecoverReport, EitherReport<RecoverStepReport, RecoverReport>>;

impl Verb for RecoverArgs {
    const NAME: &'static str = "recover";
    type Opened = SessionReader;
    type Report = RecoveryReport;

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        let only_code = self.branch.is_some() || self.worktree.is_some();
        if only_code && self.step != Some(1) {
            return Err(CommandError::invalid("'--branch' and '--worktree' are for the code")
                .hinted("write '--step 1'"));
        }
        Ok(())
    }

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let resolved = reading.moment(context, self.moment.as_ref())?;
        let found = reading.session.recovery(&resolved)?;
        if self.step == Some(1) {
            return code::restore(self, reading, &found, context).map(EitherReport::First);
        }
        let mut steps = vec![
            RecoverStep::RestoreCodeState(code::step(reading, &found, context)?),
            RecoverStep::RestoreEnvironment(environment(&found)),
            RecoverStep::ReplayCommand(commands(reading, &found)?),
            RecoverStep::ManualInstruction(tasks(reading, &found, self, context)?),
        ];
        if let Some(number) = self.step {
            let step = steps.swap_remove(usize::from(number - 1));
            let report = RecoverStepReport { session: found.brief.session, step };
            return Ok(EitherReport::Second(EitherReport::First(report)));
        }
        let checkpoint = found.checkpoint.as_ref();
        let since = found.time.zip(checkpoint).map(|(time, one)| time.micros_since(one.time));
        let point = RecoverPoint {
            at: found.time,
            revision: found.revision.clone(),
            checkpoint: checkpoint
                .map(|one| CheckpointJson::new(&reading.session, one))
                .transpose()?,
            seconds_since: since.map(seconds),
            revisions_since: found.revisions_since,
            facts_since: found.facts_since,
            is_last: self.moment.is_none(),
        };
        let (session, branch) = (found.brief.session, found.brief.branch);
        let moment = self.moment.as_ref().map(|moment| quoted(moment.as_str()));
        let report = RecoverReport { session, branch, point, steps, moment };
        Ok(EitherReport::Second(EitherReport::Second(report)))
    }
}

/// Returns the recorded variables. A variable is withheld if its value was redacted, or if a shell
/// does not accept its name.
fn environment(found: &RecoverySummary) -> RecoveredVariables {
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    let is_redacted = |value: &str| value.contains("[redacted:");
    let is_kept = |name: &str, value: &str| is_name(name) && !is_redacted(value);
    let (kept, withheld): (Vec<_>, Vec<_>) =
        found.env_vars.clone().into_iter().partition(|(name, value)| is_kept(name, value));
    let unredacted = withheld.iter().filter(|(_, value)| !is_redacted(value));
    RecoveredVariables {
        env_vars: kept.into_iter().collect(),
        unnamable: unredacted.map(|(name, _)| name.clone()).collect(),
        withheld: withheld.into_iter().map(|(name, _)| name).collect(),
    }
}

fn commands(
    reading: &SessionReader,
    found: &RecoverySummary,
) -> Result<RecoveredCommands, CommandError> {
    let mut texts = reading.texts(TextLength::Cut);
    let mut described = |list: &[SourcedFact]| -> Result<Vec<RecoveredCommand>, CommandError> {
        list.iter().map(|known| command(known, &mut texts)).collect()
    };
    Ok(RecoveredCommands {
        running: described(&found.running)?,
        commands: described(&found.commands)?,
    })
}

fn command(
    known: &SourcedFact,
    texts: &mut TextReader<'_>,
) -> Result<RecoveredCommand, CommandError> {
    let value = texts.resolve(known.source.as_deref(), known.fact.value.clone())?;
    let text = |name: &str| value.field(name).and_then(text_or_preview);
    let is_agent = known.fact.kind == Kind::Agent;
    Ok(RecoveredCommand {
        kind: known.fact.kind,
        id: known.fact.id.clone(),
        at: known.fact.at,
        command: text(if is_agent { "description" } else { "command" }).unwrap_or_default(),
        working_dir: text("working_dir"),
        exit_code: value.field("exit_code").and_then(Value::as_i64),
        outcome: text("outcome"),
    })
}

/// Returns a text, or the beginning that a reference to the text has.
fn text_or_preview(value: &Value) -> Option<String> {
    value.as_text().or_else(|| value.field("text").and_then(Value::as_text)).map(str::to_owned)
}

fn tasks(
    reading: &SessionReader,
    found: &RecoverySummary,
    args: &RecoverArgs,
    context: &Context,
) -> Result<RemainingWork, CommandError> {
    let mut texts = reading.texts(TextLength::Cut);
    let mut tasks = Vec::new();
    for known in &found.tasks {
        let value = texts.resolve(known.source.as_deref(), known.fact.value.clone())?;
        let text = |name: &str| value.field(name).and_then(text_or_preview);
        let subject = text("subject").or_else(|| text("description")).unwrap_or_default();
        tasks.push(OpenTask { id: known.fact.id.clone(), subject, status: text("status") });
    }
    let mut instructions = Vec::new();
    let forge = context.forge();
    if let Some(moment) = &args.moment {
        let moment = quoted(moment.as_str());
        instructions.push(format!(
            "{forge} checkpoint restore {moment} --dry-run: what a restore would change in the \
            claims"
        ));
        instructions.push(format!("{forge} checkpoint at {moment}: what was known then"));
    } else {
        instructions.push(format!("{forge} brief: what is known, believed and open"));
    }
    instructions.extend(found.brief.next.iter().cloned());
    Ok(RemainingWork { tasks, instructions })
}
