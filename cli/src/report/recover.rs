//! Where to go on after a crash, and what was made of it.

use super::moment::{CheckpointJson, RevisionJson};
use crate::git::restore::{RestoredFile, UnrestoredFile};
use crate::integration::agent::shell_word;
use crate::output::{Report, Screen, Tone};
use forge_store::model::{Kind, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

/// So many files are told of one by one.
const FILES_SHOWN: usize = 20;

/// Where to go on, and the steps there.
#[derive(Debug, Serialize)]
pub struct RecoverReport {
    /// The session.
    pub session: String,
    /// The branch.
    pub branch: String,
    /// Where to go on.
    pub point: RecoverPoint,
    /// What it takes, in order: code, environment, commands, instructions.
    pub steps: Vec<RecoverStep>,
    /// The moment that was named, as a word of a shell.
    #[serde(skip)]
    pub moment: Option<String>,
}

/// Where to go on.
#[derive(Debug, Serialize)]
pub struct RecoverPoint {
    /// The moment; null if nothing is recorded.
    pub at: Option<Timestamp>,
    /// Whether it is the last thing recorded.
    pub is_last: bool,
    /// The revision that holds its claims.
    pub revision: Option<RevisionJson>,
    /// The last checkpoint before it.
    pub checkpoint: Option<CheckpointJson>,
    /// From that to the moment.
    pub seconds_since: Option<f64>,
    /// How many revisions of the branch came after the checkpoint. They are kept.
    pub revisions_since: u64,
    /// How many facts came after it. They are kept.
    pub facts_since: u64,
}

/// Something to do to go on. Each has its number.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecoverStep {
    /// Make the code what it was.
    RestoreCodeState(RecoveredCode),
    /// Set variables.
    RestoreEnvironment(RecoveredVariables),
    /// Run commands again: a person does, forge never.
    ReplayCommand(RecoveredCommands),
    /// What is left to do.
    ManualInstruction(RemainingWork),
}

/// A recorded state of the code.
#[derive(Debug, Default, Serialize)]
pub struct RecoveredCode {
    /// The id of the recorded state; null if there is none.
    pub id: Option<String>,
    /// When it was recorded.
    pub at: Option<Timestamp>,
    /// The commit it stands on.
    pub commit: Option<String>,
    /// The branch of git checked out then.
    pub git_branch: Option<String>,
    /// How many edits came after it.
    pub edits: usize,
    /// The files that would differ from that commit.
    pub files: Vec<RestoredFile>,
    /// What could not be brought back.
    pub not_restored: Vec<UnrestoredFile>,
    /// Why it cannot be made here at all; null if it can.
    pub not_here: Option<String>,
}

/// Variables.
#[derive(Debug, Serialize)]
pub struct RecoveredVariables {
    /// Names and values.
    pub env_vars: BTreeMap<String, String>,
    /// The names of those whose values were not kept.
    pub withheld: Vec<String>,
}

/// Commands.
#[derive(Debug, Serialize)]
pub struct RecoveredCommands {
    /// Those of which no end is known, the earliest first.
    pub running: Vec<RecoveredCommand>,
    /// The last ones that ended, the earliest first.
    pub commands: Vec<RecoveredCommand>,
}

/// A command, or a sub-agent.
#[derive(Debug, Serialize)]
pub struct RecoveredCommand {
    /// `command` or `agent`.
    pub kind: Kind,
    /// The id of the fact.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// The command line; of a sub-agent what it was sent for.
    pub command: String,
    /// The folder it ran in.
    pub working_dir: Option<String>,
    /// The code it ended with.
    pub exit_code: Option<i64>,
    /// How it ended.
    pub outcome: Option<String>,
}

/// What is left to do.
#[derive(Debug, Serialize)]
pub struct RemainingWork {
    /// Tasks that are not done.
    pub tasks: Vec<OpenTask>,
    /// What could be done next.
    pub instructions: Vec<String>,
}

/// A task.
#[derive(Debug, Serialize)]
pub struct OpenTask {
    /// The id of the fact.
    pub id: String,
    /// What is to be done.
    pub subject: String,
    /// How far it is.
    pub status: Option<String>,
}

/// One step alone.
#[derive(Debug, Serialize)]
pub struct RecoverStepReport {
    /// The session.
    pub session: String,
    /// The step.
    #[serde(flatten)]
    pub step: RecoverStep,
}

impl Report for RecoverReport {
    const SCHEMA: &'static str = "forge.recover/1";

    fn human(&self, screen: &mut Screen) {
        let Self { session, branch, point, .. } = self;
        let Some(at) = point.at else {
            screen.line(Tone::Plain, &format!("Nothing is recorded in {session} yet."));
            return;
        };
        screen.put(Tone::Plain, &format!("{session} on {branch}"));
        if let Some(revision) = &point.revision {
            screen.put(Tone::Id, &format!(" #{}", revision.sequence));
        }
        let time = screen.time(at);
        screen.line(Tone::Plain, &format!(", {time}"));
        let since = format!(
            "{} and {}",
            super::count_text(point.revisions_since, "revision"),
            super::count_text(point.facts_since, "fact")
        );
        let why = match (&point.checkpoint, point.is_last) {
            (Some(one), true) => format!(
                "The last checkpoint is #{} \"{}\"; {since} came after it. All of that is kept, so go on from the last of it.",
                one.sequence, one.message
            ),
            (Some(one), false) => format!(
                "It stands on the checkpoint #{} \"{}\", with {since} after that.",
                one.sequence, one.message
            ),
            (None, _) => {
                format!("No checkpoint was made; {since} are kept, so go on from the last of it.")
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
    const SCHEMA: &'static str = "forge.recover.step/1";

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
                    let text = format!("  forge recover {moment}--step 1 --worktree ../recovered");
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
    /// Tells what would be made.
    pub fn print(&self, screen: &mut Screen) {
        let (Some(_), Some(at)) = (&self.id, self.at) else {
            screen.line(Tone::Dim, "  no state of the code was recorded");
            return;
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
        screen.line(Tone::Plain, &format!("  {base}, as recorded {time}{edits}"));
        if let Some(why) = &self.not_here {
            screen.line(Tone::Bad, &format!("  it cannot be made here: {why}"));
            return;
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
        screen.line(
            Tone::Dim,
            &format!("  and {} more ('--json' has all)", files.len() - FILES_SHOWN),
        );
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
            screen.line(Tone::Dim, &format!("{indent}# no variables were recorded"));
        }
        for (name, value) in &self.env_vars {
            screen.line(Tone::Plain, &format!("{indent}export {name}={}", shell_word(value)));
        }
        for name in &self.withheld {
            let name: String = name.chars().filter(|c| !c.is_control()).collect();
            screen.line(Tone::Dim, &format!("{indent}# {name}: its value was not kept"));
        }
    }
}

impl RecoveredCommands {
    fn print(&self, indent: usize, screen: &mut Screen) {
        let indent = " ".repeat(indent);
        if self.running.is_empty() && self.commands.is_empty() {
            screen.line(Tone::Dim, &format!("{indent}# none were recorded"));
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

/// The code was made again.
#[derive(Debug, Serialize)]
pub struct CodeRecoverReport {
    /// The checkpoint it stands on; null without one.
    pub restored_to: Option<String>,
    /// The moment gone back to.
    pub timestamp: Option<Timestamp>,
    /// What the checkpoint says.
    pub message: String,
    /// Whether all of it could be brought back.
    pub recovery_complete: bool,
    /// The session.
    pub session: String,
    /// The id of the recorded state.
    pub state: String,
    /// The commit it stands on; null if it stood on none.
    pub commit: Option<String>,
    /// The commit that was made.
    pub git_commit: String,
    /// The branch of git that has it.
    pub git_branch: String,
    /// The worktree it is checked out in; null if it is in none.
    pub worktree: Option<String>,
    /// How many values in it were taken out before they were recorded: they are not what they were.
    pub redacted: usize,
    /// The files that differ from the commit it stands on.
    pub files: Vec<RestoredFile>,
    /// What could not be brought back.
    pub not_restored: Vec<UnrestoredFile>,
    /// What else the reader must know: filters of the repository that were not applied.
    pub warnings: Vec<String>,
    /// The commands that take it away again.
    pub undo: Vec<String>,
}

impl Report for CodeRecoverReport {
    const SCHEMA: &'static str = "forge.recover.code/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Made the code again on branch ");
        screen.put(Tone::Id, &self.git_branch);
        screen.line(Tone::Dim, &format!(" ({})", short_commit(&self.git_commit)));
        if let Some(worktree) = &self.worktree {
            screen.line(Tone::Plain, &format!("  checked out in {worktree}"));
        }
        print_files(&self.files, &self.not_restored, screen);
        if self.redacted > 0 {
            let text =
                format!("  {} values read [redacted:...]: put them in by hand", self.redacted);
            screen.line(Tone::Warning, &text);
        }
        self.warnings
            .iter()
            .for_each(|warning| screen.line(Tone::Warning, &format!("  {warning}")));
        screen
            .line(Tone::Plain, "Nothing that was checked out has changed. To take it away again:");
        self.undo.iter().for_each(|command| screen.line(Tone::Id, &format!("  {command}")));
    }
}
