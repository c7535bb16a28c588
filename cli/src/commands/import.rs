//! `forge import`.

use super::bundle;
use crate::args::value::Moment;
use crate::config::key;
use crate::context::Context;
use crate::discovery;
use crate::error::{CommandError, ErrorKind};
use crate::output::progress::Progress;
use crate::report::import::{FoundTranscript, Transcripts, table};
use crate::transcript::{How, Importer, form_of, mistaken, no_text};
use crate::workplace::{self, Access};
use forge_agents::claude_code::{TranscriptDialect, TranscriptFile, locate};
use forge_agents::trajectory::TrajectoryAuthor;
use forge_agents::{FileFormat, codex_rollouts, gemini_recordings};
use forge_store::backend::plain_file;
use forge_store::store::Store;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

mod events;
mod trajectory;

/// How many bad lines of a file, or bad files of a list, are shown; the JSON has all lines.
const SHOWN: usize = 20;

/// Take in what others have recorded.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct ImportArgs {
    #[command(subcommand)]
    command: Option<ImportCommand>,

    /// Import these files as what they seem to be
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Refuse a file with a bad line and change nothing
    #[arg(long)]
    strict: bool,

    /// Say what would be imported, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Whose records there are.
#[derive(Debug, clap::Subcommand)]
pub enum ImportCommand {
    /// Import transcripts of Claude Code; without a file, show this directory's and ask
    ClaudeCode(ClaudeCodeArgs),
    /// Import rollouts of Codex; without a file, show this directory's and ask
    Codex(ClaudeCodeArgs),
    /// Import recordings of Gemini CLI; without a file, show this directory's and ask
    Gemini(ClaudeCodeArgs),
    /// Import a trajectory of SWE-agent
    SweAgent(TrajectoryArgs),
    /// Import a trajectory of mini-swe-agent
    MiniSweAgent(TrajectoryArgs),
    /// Import a trajectory of OpenHands
    #[command(name = "openhands", visible_alias = "open-hands")]
    OpenHands(TrajectoryArgs),
    /// Import a stream of events, one JSON object a line
    Events(EventsArgs),
    /// Import the sessions of a bundle, with every id and hash
    Bundle(bundle::ImportBundleArgs),
}

/// Arguments of `forge import claude-code`, `codex` and `gemini`.
#[derive(Debug, clap::Args)]
pub struct ClaudeCodeArgs {
    /// Import these transcripts
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Refuse a file with a bad line and change nothing
    #[arg(long)]
    pub strict: bool,

    /// Import what is found without asking
    #[arg(long)]
    pub yes: bool,

    /// Say what would be imported, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `forge import swe-agent`, `mini-swe-agent` and `openhands`.
#[derive(Debug, clap::Args)]
pub struct TrajectoryArgs {
    /// Import this trajectory
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Say when the run began, if the file does not
    #[arg(long, value_name = "T")]
    pub started_at: Option<Moment>,
}

/// Arguments of `forge import events`.
#[derive(Debug, clap::Args)]
pub struct EventsArgs {
    /// Import this file; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs `forge import`.
pub fn run(args: &ImportArgs, context: &mut Context) -> Result<(), CommandError> {
    let Some(command) = &args.command else { return guessed(args, context) };
    match command {
        ImportCommand::ClaudeCode(args) => {
            transcripts(TranscriptDialect::ClaudeCode, args, context)
        }
        ImportCommand::Codex(args) => transcripts(TranscriptDialect::Codex, args, context),
        ImportCommand::Gemini(args) => transcripts(TranscriptDialect::Gemini, args, context),
        ImportCommand::SweAgent(args) => trajectory::run(TrajectoryAuthor::SweAgent, args, context),
        ImportCommand::MiniSweAgent(args) => {
            trajectory::run(TrajectoryAuthor::MiniSweAgent, args, context)
        }
        ImportCommand::OpenHands(args) => {
            trajectory::run(TrajectoryAuthor::OpenHands, args, context)
        }
        ImportCommand::Events(args) => events::run(args, context),
        ImportCommand::Bundle(args) => bundle::import(args, context),
    }
}

/// Imports files in the detected format of the first one: all files of a call belong to one agent.
fn guessed(args: &ImportArgs, context: &mut Context) -> Result<(), CommandError> {
    let Some(first) = args.files.first() else { return Ok(()) };
    let form = match form_of(first) {
        Ok(form) => form,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(
                error.hinted("it is no agent's name either: 'forge import --help' lists them")
            );
        }
        Err(error) => return Err(error),
    };
    if let Some(FileFormat::Transcript(dialect)) = form {
        let args = ClaudeCodeArgs {
            files: args.files.clone(),
            strict: args.strict,
            yes: false,
            dry_run: args.dry_run,
        };
        return transcripts(dialect, &args, context);
    }
    if args.strict || args.dry_run {
        return Err(CommandError::invalid(format!(
            "'--strict' and '--dry-run' are for transcripts; '{}' is none",
            first.display()
        )));
    }
    for file in &args.files {
        let form = form_of(file)?;
        match form {
            Some(FileFormat::Trajectory(author)) => {
                let args = TrajectoryArgs { file: file.clone(), started_at: None };
                trajectory::run(author, &args, context)?;
            }
            Some(FileFormat::Events) => events::run(&EventsArgs { file: file.clone() }, context)?,
            None => return Err(no_text(file)),
            Some(found) => {
                return Err(mistaken(
                    file,
                    FileFormat::Transcript(TranscriptDialect::ClaudeCode),
                    found,
                ));
            }
        }
    }
    Ok(())
}

fn transcripts(
    dialect: TranscriptDialect,
    args: &ClaudeCodeArgs,
    context: &mut Context,
) -> Result<(), CommandError> {
    let infer = context.config.is_on(key::INFERENCE_ENABLED);
    let how = How { strict: args.strict, dry_run: args.dry_run, infer, ..How::default() };
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let store = workplace::open(context, access)?;
    let mut report = Transcripts { dialect, dry_run: args.dry_run, ..Transcripts::default() };
    let mut files = args.files.clone();
    if files.is_empty() {
        let found = found_of(dialect, context, &store)?;
        if !found.is_empty() && (args.yes || args.dry_run || agreed(context, &found)?) {
            files = found.into_iter().map(|one| one.file.into()).collect();
        } else {
            report.found = found;
        }
    }
    let outcome = take(context, &store, &files, how, &mut report);
    // What was imported before another file failed is reported too.
    if outcome.is_ok() || report.files.iter().any(|file| !file.unchanged) {
        context.out.emit(&report)?;
    }
    outcome
}

/// Offers after `forge init` to import what agents have recorded about this directory, and imports
/// it if `wanted`. Prints to stderr, because the result of the command was already printed.
pub fn offer(context: &mut Context, store: &Store, wanted: bool) -> Result<(), CommandError> {
    let found = found_transcripts(context, store)?;
    if found.is_empty() {
        return Ok(());
    }
    if !wanted && !agreed(context, &found)? {
        context.out.say(&format!(
            "The agent has recorded work here before ({}): 'forge import claude-code' takes it in.",
            crate::report::import::count(found.len() as u64, "transcript")
        ));
        return Ok(());
    }
    let files: Vec<PathBuf> = found.into_iter().map(|one| one.file.into()).collect();
    let mut report = Transcripts::default();
    let infer = context.config.is_on(key::INFERENCE_ENABLED);
    take(context, store, &files, How { infer, ..How::default() }, &mut report)?;
    let facts: u64 = report.files.iter().flat_map(|file| file.facts.values()).sum();
    context.out.say(&format!(
        "Imported {} with {facts} facts; 'forge session list' names the sessions.",
        crate::report::import::count(report.files.len() as u64, "transcript")
    ));
    Ok(())
}

/// Imports these files into the store, durably, and prints progress and bad lines to stderr.
///
/// # Errors
///
/// Returns the error of the file that fails; if several fail, one error that names them. What was
/// imported from the others stays.
pub fn take(
    context: &Context,
    store: &Store,
    files: &[PathBuf],
    how: How,
    report: &mut Transcripts,
) -> Result<(), CommandError> {
    let verb = match report.dialect {
        TranscriptDialect::ClaudeCode => "import claude-code",
        TranscriptDialect::Codex => "import codex",
        TranscriptDialect::Gemini => "import gemini",
    };
    let act = workplace::act(context, verb);
    let total = files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    let progress = Progress::new(&context.out, "importing", Some(total));
    let done = std::cell::Cell::new(0);
    let reached = |bytes: u64| progress.reach(done.get() + bytes);
    let mut importer = Importer::new(store, &act, how, &reached).of(report.dialect);
    let mut outcome = Ok(());
    let mut failed = Vec::new();
    for path in files {
        match importer.file(path) {
            Ok(one) => {
                if let (Some(other), Some(own)) = (&one.other_session, &one.agent_session) {
                    context.out.warn(&format!(
                        "{} begins with the session '{other}' and ends with '{own}': only what the \
                         last one says is taken as its own, prompts of others are taken for copies",
                        one.file
                    ));
                }
                for skipped in one.skipped.iter().take(SHOWN) {
                    context
                        .out
                        .warn(&format!("{}, line {}: {}", one.file, skipped.line, skipped.reason));
                }
                if one.skipped.len() > SHOWN {
                    let more = one.skipped.len() - SHOWN;
                    context.out.warn(&format!("{}: {more} more lines like these", one.file));
                }
                report.files.push(one);
            }
            // The other files may be good.
            Err(error) if is_of_file(&error, path) => failed.push(error),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
        done.set(done.get() + path.metadata().map_or(0, |about| about.len()));
    }
    drop(importer);
    drop(progress);
    if !how.dry_run {
        store.sync()?;
    }
    outcome.and_then(|()| all_of(failed, files.len()))
}

/// Whether an import failed because of the file itself, and not of the store.
fn is_of_file(error: &CommandError, path: &Path) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound)
        || plain_file::open(path).is_err()
}

/// Combines the errors of several files into one.
fn all_of(mut failed: Vec<CommandError>, files: usize) -> Result<(), CommandError> {
    match failed.len() {
        0 => Ok(()),
        1 if files == 1 => failed.pop().map_or(Ok(()), Err),
        count => {
            let kind = failed.first().map_or(ErrorKind::Invalid, CommandError::kind);
            let message = format!("{count} of {files} files were not imported");
            let mut all = CommandError::new(kind, message);
            for error in failed.iter().take(SHOWN) {
                let next = error.hints().first().map(|hint| format!(": {hint}"));
                all = all.hinted(format!("{}{}", error.message(), next.unwrap_or_default()));
            }
            if count > SHOWN {
                all = all.hinted(format!("and {} more", count - SHOWN));
            }
            Err(all)
        }
    }
}

/// Finds the transcripts that the agent keeps of this directory and of the project's directory.
///
/// # Errors
///
/// If the agent's folder cannot be read.
pub fn found_transcripts(
    context: &Context,
    store: &Store,
) -> Result<Vec<FoundTranscript>, CommandError> {
    found_of(TranscriptDialect::ClaudeCode, context, store)
}

fn found_of(
    dialect: TranscriptDialect,
    context: &Context,
    store: &Store,
) -> Result<Vec<FoundTranscript>, CommandError> {
    let Some(home) = context.environment.directory("HOME") else { return Ok(Vec::new()) };
    let project = store.path().and_then(Path::parent).map(Path::to_owned);
    let folders: BTreeSet<PathBuf> = project.into_iter().chain([context.cwd.clone()]).collect();
    let there = match dialect {
        TranscriptDialect::ClaudeCode => {
            let own = context.environment.directory("CLAUDE_CONFIG_DIR");
            of_claude(&own.unwrap_or_else(|| home.join(".claude")), folders, context, store)
        }
        TranscriptDialect::Codex => {
            let own = context.environment.directory("CODEX_HOME");
            let own = own.unwrap_or_else(|| home.join(".codex"));
            let tops = folders.iter().filter(|folder| discovery::is_top(folder));
            let checkouts = tops.flat_map(|top| discovery::checkouts(top));
            codex_rollouts(&own, &folders.iter().cloned().chain(checkouts).collect::<Vec<_>>())
        }
        TranscriptDialect::Gemini => {
            let folders: Vec<PathBuf> = folders.into_iter().collect();
            gemini_recordings(&home.join(".gemini"), &folders)
        }
    };
    let there = there.map_err(|error| CommandError::io("cannot look for transcripts", error))?;
    let found = there.into_iter().map(|one| FoundTranscript {
        file: one.path.to_string_lossy().into_owned(),
        bytes: one.bytes,
        modified: one.modified.map(|time| chrono::DateTime::<chrono::Utc>::from(time).into()),
        sub_agent: one.sub_agent,
    });
    Ok(found.collect())
}

/// Finds Claude Code's transcripts of these folders and of all checkouts of their repositories,
/// without the sessions of a directory that has a store of its own.
fn of_claude(
    config: &Path,
    folders: BTreeSet<PathBuf>,
    context: &Context,
    store: &Store,
) -> std::io::Result<Vec<TranscriptFile>> {
    let checkouts = folders.iter().flat_map(|folder| discovery::checkouts(folder));
    let checkouts: Vec<PathBuf> = checkouts.collect();
    let all: Vec<PathBuf> =
        folders.into_iter().chain(checkouts).collect::<BTreeSet<_>>().into_iter().collect();
    // A store that was given explicitly may be anywhere.
    let found_here = discovery::find(&context.cwd, &context.environment)
        .ok()
        .filter(|found| store.path() == Some(found));
    locate(config, &all, |directory| {
        let within = all.iter().any(|folder| directory.starts_with(folder));
        let elsewhere = found_here.as_ref().is_some_and(|here| {
            discovery::find(directory, &context.environment).is_ok_and(|nearest| nearest != *here)
        });
        within && !elsewhere
    })
}

/// Asks for consent on the terminal; without a terminal the answer is no.
///
/// # Errors
///
/// If the terminal is closed.
pub fn agreed(context: &Context, found: &[FoundTranscript]) -> Result<bool, CommandError> {
    context.out.ask(&format!("Import {}?", names(found.len())), |screen| table(found, screen))
}

fn names(count: usize) -> String {
    if count == 1 { "this transcript".to_owned() } else { format!("these {count} transcripts") }
}
