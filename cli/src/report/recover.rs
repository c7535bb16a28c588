//! Reports of recovery points, and of restored code.

use super::moment::CheckpointJson;
use crate::error::{EXIT_NO, EXIT_OK};
use crate::git::restore::{RestoredFile, UnrestoredFile};
use crate::output::{Report, Screen, Tone};
use forge_store::model::{Kind, Timestamp};
use forge_store::shell::quoted;
use forge_store::store::RevisionSummary;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of files that are listed.
const FILES_SHOWN: usize = 20;

/// A recovery point with its steps.
#[derive(Debug, Serialize)]
pub struct RecoverReport {
    pub session: String,
    pub branch: String,
    /// Where to continue from.
    pub point: RecoverPoint,
    /// The steps, in order: code, environment, commands, instructions.
    pub steps: Vec<RecoverStep>,
    /// The moment that was given, quoted for a shell.
    #[serde(skip)]
    pub moment: Option<String>,
}

/// A moment to continue from, and what was recorded before it since the last checkpoint.
#[derive(Debug, Serialize)]
pub struct RecoverPoint {
    /// The moment; null if nothing is recorded.
    pub at: Option<Timestamp>,
    /// Whether no moment was named, so that this is the time of the last thing recorded.
    pub is_last: bool,
    /// The revision with the claims at that moment; null if there is none.
    pub revision: Option<RevisionSummary>,
    /// The last checkpoint at or before it.
    pub checkpoint: Option<CheckpointJson>,
    /// The seconds from that checkpoint to the moment.
    pub seconds_since: Option<f64>,
    /// The number of revisions of the branch from the checkpoint to the moment.
    pub revisions_since: u64,
    /// The number of facts from the checkpoint to the moment.
    pub facts_since: u64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecoverStep {
    RestoreCodeState(RecoveredCode),
    RestoreEnvironment(RecoveredVariables),
    /// Commands that a person may run again: forge never does.
    ReplayCommand(RecoveredCommands),
    /// Tasks that are left to do.
    ManualInstruction(RemainingWork),
}

/// A recorded state of the code.
#[derive(Debug, Default, Serialize)]
pub struct RecoveredCode {
    /// The id of the recorded state; null if there is none.
    pub id: Option<String>,
    /// When it was recorded.
    pub at: Option<Timestamp>,
    /// The base commit.
    pub commit: Option<String>,
    /// The git branch at that time.
    pub git_branch: Option<String>,
    /// The number of edits after it.
    pub edits: usize,
    /// The files that would differ from the base commit.
    pub files: Vec<RestoredFile>,
    /// What could not be restored.
    pub not_restored: Vec<UnrestoredFile>,
    /// Why it cannot be restored here at all; null if it can.
    pub not_here: Option<String>,
}

/// The recorded environment variables.
#[derive(Debug, Serialize)]
pub struct RecoveredVariables {
    /// Their names and values.
    pub env_vars: BTreeMap<String, String>,
    /// The names of the other variables: their values are redacted, or a shell does not accept
    /// their names.
    pub withheld: Vec<String>,
    /// The names in `withheld` whose values are not redacted; only for people.
    #[serde(skip)]
    pub unnamable: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
pub struct RecoveredCommands {
    /// The last commands and sub-agents whose end is not known, earliest first.
    pub running: Vec<RecoveredCommand>,
    /// The last commands that ended, earliest first.
    pub commands: Vec<RecoveredCommand>,
}

/// A command, or a sub-agent.
#[derive(Debug, Serialize)]
pub struct RecoveredCommand {
    /// `command` or `agent`.
    pub kind: Kind,
    /// The id of the fact.
    pub id: String,
    /// The time of the fact.
    pub at: Timestamp,
    /// The command line; for a sub-agent, its task.
    pub command: String,
    pub working_dir: Option<String>,
    pub exit_code: Option<i64>,
    pub outcome: Option<String>,
}

/// What is left to do.
#[derive(Debug, Serialize)]
pub struct RemainingWork {
    pub tasks: Vec<OpenTask>,
    /// Suggested next steps.
    pub instructions: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct OpenTask {
    /// The id of the fact.
    pub id: String,
    pub subject: String,
    pub status: Option<String>,
}

/// One step of a recovery point.
#[derive(Debug, Serialize)]
pub struct RecoverStepReport {
    pub session: String,
    #[serde(flatten)]
    pub step: RecoverStep,
}

impl Report for RecoverReport {
    fn human(&self, screen: &mut Screen) {
        let Self { session, branch, point, .. } = self;
        let Some(at) = point.at else {
            let text = format!("Nothing is recorded in the session '{session}' yet.");
            return screen.plain(&text);
        };
        screen.put(Tone::Plain, &format!("{session} on {branch}"));
        if let Some(revision) = &point.revision {
            screen.put(Tone::Id, &format!(" #{}", revision.sequence));
        }
        let time = screen.time(at);
        screen.plain(&format!(", {time}"));
        let since = format!(
            "{} and {}",
            crate::text::count_text(point.revisions_since, "revision"),
            crate::text::count_text(point.facts_since, "fact")
        );
        let why = match (&point.checkpoint, point.is_last) {
            (Some(one), true) => format!(
                "The last checkpoint is #{} \"{}\"; {since} came after it. All of it is stored: \
                continue from there.",
                one.sequence, one.message
            ),
            (Some(one), false) => format!(
                "The last checkpoint before it is #{} \"{}\", {since} earlier.",
                one.sequence, one.message
            ),
            (None, _) => {
                format!("No checkpoint was made; {since} are stored: continue from there.")
            }
        };
        screen.paragraph(Tone::Plain, 0, &why);
        for step in &self.steps {
            screen.gap();
            step.print(self.moment.as_deref(), screen);
        }
    }
}

impl Report for RecoverStepReport {
    const SCHEMA: Option<&'static str> = Some("forge.recover.step/1");

    fn human(&self, screen: &mut Screen) {
        match &self.step {
            RecoverStep::RestoreCodeState(code) => code.print(screen),
            RecoverStep::RestoreEnvironment(environment) => environment.print(0, screen),
            RecoverStep::ReplayCommand(commands) => commands.print(0, screen),
            RecoverStep::ManualInstruction(tasks) => tasks.print(0, screen),
        }
    }
}

impl RecoverStep {
    fn print(&self, moment: Option<&str>, screen: &mut Screen) {
        let moment = moment.map(|moment| format!("{moment} ")).unwrap_or_default();
        match self {
            Self::RestoreCodeState(code) => {
                screen.line(Tone::Heading, "1 Code");
                code.print(screen);
                if code.id.is_some() && code.not_here.is_none() {
                    let text = format!(
                        "  {} recover {moment}--step 1 --worktree ../recovered",
                        screen.forge()
                    );
                    screen.line(Tone::Id, &text);
                }
            }
            Self::RestoreEnvironment(environment) => {
                screen.line(Tone::Heading, "2 Environment");
                environment.print(2, screen);
            }
            Self::ReplayCommand(commands) => {
                screen.line(Tone::Heading, "3 Commands (forge runs none)");
                commands.print(2, screen);
            }
            Self::ManualInstruction(tasks) => {
                screen.line(Tone::Heading, "4 What is left to do");
                tasks.print(2, screen);
            }
        }
    }
}

impl RecoveredCode {
    /// Writes what would be restored.
    pub fn print(&self, screen: &mut Screen) {
        let (Some(_), Some(at)) = (&self.id, self.at) else {
            return screen.dim("  no state of the code was recorded");
        };
        let time = screen.time(at);
        let base = match (&self.commit, &self.git_branch) {
            (Some(commit), Some(branch)) => format!("commit {} of {branch}", short_commit(commit)),
            (Some(commit), None) => format!("commit {}", short_commit(commit)),
            (None, _) => "no commit yet".to_owned(),
        };
        let edits = match self.edits {
            0 => String::new(),
            1 => ", and an edit after that".to_owned(),
            more => format!(", and {more} edits after that"),
        };
        screen.plain(&format!("  {base}, as recorded {time}{edits}"));
        if let Some(why) = &self.not_here {
            return screen.line(Tone::Bad, &format!("  it cannot be restored here: {why}"));
        }
        print_files(&self.files, &self.not_restored, screen);
    }
}

fn short_commit(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

fn print_files(files: &[RestoredFile], left: &[UnrestoredFile], screen: &mut Screen) {
    for file in files.iter().take(FILES_SHOWN) {
        let (sign, tone) = match file.change {
            "added" => ("+", Tone::Added),
            "deleted" => ("-", Tone::Removed),
            _ => ("~", Tone::Id),
        };
        screen.short_line(&[(tone, &format!("  {sign} ")), (Tone::Plain, &file.path)]);
    }
    if files.len() > FILES_SHOWN {
        screen.dim(&format!("  and {} more ('--json' has all)", files.len() - FILES_SHOWN));
    }
    for one in left {
        let text = format!("  ! {} not brought back: {}", one.path, one.why);
        screen.short_line(&[(Tone::Warning, &text)]);
    }
}

impl RecoveredVariables {
    fn print(&self, indent: usize, screen: &mut Screen) {
        let indent = " ".repeat(indent);
        if self.env_vars.is_empty() && self.withheld.is_empty() {
            screen.dim(&format!("{indent}# no variables were recorded"));
        }
        for (name, value) in &self.env_vars {
            screen.plain(&format!("{indent}export {name}={}", quoted(value)));
        }
        for name in &self.withheld {
            let why = match self.unnamable.contains(name) {
                true => "a shell does not accept this name",
                false => "its value was not kept",
            };
            let name: String = name.chars().filter(|c| !c.is_control()).collect();
            screen.dim(&format!("{indent}# {name}: {why}"));
        }
    }
}

impl RecoveredCommands {
    fn print(&self, indent: usize, screen: &mut Screen) {
        let indent = " ".repeat(indent);
        if self.running.is_empty() && self.commands.is_empty() {
            screen.dim(&format!("{indent}# none were recorded"));
        }
        for command in &self.running {
            let what =
                if command.kind == Kind::Agent { "sub-agent at work" } else { "no end known" };
            let text = command.at_place();
            screen.short_line(&[
                (Tone::Warning, &format!("{indent}# {what}: ")),
                (Tone::Plain, &text),
            ]);
        }
        for command in &self.commands {
            let ended = match (command.exit_code, &command.outcome) {
                (Some(code), _) => format!("ended with {code}"),
                (None, Some(outcome)) => outcome.clone(),
                (None, None) => "ended".to_owned(),
            };
            let text = command.at_place();
            screen
                .short_line(&[(Tone::Dim, &format!("{indent}# {ended}: ")), (Tone::Plain, &text)]);
        }
    }
}

impl RecoveredCommand {
    fn at_place(&self) -> String {
        match &self.working_dir {
            Some(folder) => format!("{} (in {folder})", self.command),
            None => self.command.clone(),
        }
    }
}

impl RemainingWork {
    fn print(&self, indent: usize, screen: &mut Screen) {
        let indent = " ".repeat(indent);
        for task in &self.tasks {
            let status = task.status.as_deref().unwrap_or("pending").replace('_', " ");
            let text = format!("{indent}[{status}] ");
            screen.short_line(&[(Tone::Warning, &text), (Tone::Plain, &task.subject)]);
        }
        for instruction in &self.instructions {
            screen.short_line(&[(Tone::Plain, &format!("{indent}{instruction}"))]);
        }
    }
}

/// The result of restoring the code.
#[derive(Debug, Serialize)]
pub struct CodeRecoverReport {
    /// The id of the last checkpoint at or before the moment; null if there is none.
    pub restored_to: Option<String>,
    /// The restored moment.
    pub timestamp: Option<Timestamp>,
    /// The message of that checkpoint; empty if there is none.
    pub message: String,
    /// Whether everything could be restored.
    pub recovery_complete: bool,
    pub session: String,
    /// The id of the recorded state.
    pub state: String,
    /// The base commit; null if there is none.
    pub commit: Option<String>,
    /// The new commit.
    pub git_commit: String,
    /// The git branch with this commit.
    pub git_branch: String,
    /// The worktree in which it is checked out; null if there is none.
    pub worktree: Option<String>,
    /// The number of redacted values in the lines that the patches add. There, the code differs
    /// from the original.
    pub redacted: usize,
    /// The files that differ from the base commit.
    pub files: Vec<RestoredFile>,
    /// What could not be restored.
    pub not_restored: Vec<UnrestoredFile>,
    /// Warnings, such as about filters of the repository that were not applied.
    pub warnings: Vec<String>,
    /// The commands that remove it again.
    pub undo: Vec<String>,
}

impl Report for CodeRecoverReport {
    const SCHEMA: Option<&'static str> = Some("forge.recover.code/1");

    fn exit_code(&self) -> u8 {
        if self.recovery_complete { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Restored the code on branch ");
        screen.put(Tone::Id, &self.git_branch);
        screen.dim(&format!(" ({})", short_commit(&self.git_commit)));
        if let Some(worktree) = &self.worktree {
            screen.plain(&format!("  checked out in {worktree}"));
        }
        print_files(&self.files, &self.not_restored, screen);
        if self.redacted > 0 {
            let values = crate::text::count_text(self.redacted as u64, "value");
            let verb = if self.redacted == 1 { "is" } else { "are" };
            let text = format!("  {values} {verb} redacted: replace '[redacted:...]' by hand");
            screen.warning(&text);
        }
        self.warnings.iter().for_each(|warning| screen.warning(&format!("  {warning}")));
        screen.plain("Nothing that was checked out has changed. To undo this restore:");
        self.undo.iter().for_each(|command| screen.line(Tone::Id, &format!("  {command}")));
    }
}
