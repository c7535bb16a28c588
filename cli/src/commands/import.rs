//! `forge import`.

use super::bundle;
use crate::args::value::MomentArg;
use crate::config::key;
use crate::context::Context;
use crate::discovery;
use crate::error::{CommandError, CommandErrorKind};
use crate::output::progress::ProgressIndicator;
use crate::report::import::{
    DetectedImportReport, DetectedImportsReport, FoundTranscript, TrajectoryImportReport,
    TranscriptFileReport, TranscriptImportReport, brief_command, print_found,
};
use crate::transcript::{
    TranscriptImportOptions, TranscriptImporter, detect_format, no_text, wrong_format,
};
use crate::verb::{Command, EitherReport, Verb, VerbResult, commands, find_report};
use crate::workspace::{self, StoreAccess};
use forge_agents::claude_code::{TranscriptDialect, TranscriptFile, locate};
use forge_agents::trajectory::TrajectoryAuthor;
use forge_agents::{FileFormat, codex_rollouts, gemini_recordings};
use forge_store::store::Store;
use forge_store::{plain_file, store_place};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trajectory::import_trajectory;

mod events;
mod langgraph;
mod trajectory;

/// The maximum number of bad lines of a file, or of bad files, that are shown. JSON has all lines.
const MAX_SHOWN: usize = 20;

/// Import transcripts, events and bundles.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub struct ImportArgs {
    #[command(subcommand)]
    command: Option<ImportCommand>,

    /// Files to import; their type is recognised
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Refuse a file with a bad line, without changing anything
    #[arg(long)]
    strict: bool,

    /// Show what would be imported, without changing anything
    #[arg(long)]
    dry_run: bool,
}

/// The formats of files to import.
#[derive(Debug, clap::Subcommand)]
pub enum ImportCommand {
    /// Import transcripts of Claude Code; without a file, show this directory's and ask
    ClaudeCode(ClaudeCodeImport),
    /// Import rollouts of Codex; without a file, show this directory's and ask
    Codex(CodexImport),
    /// Import recordings of Gemini CLI; without a file, show this directory's and ask
    Gemini(GeminiImport),
    /// Import a trajectory of SWE-agent
    SweAgent(SweAgentImport),
    /// Import a trajectory of mini-swe-agent
    MiniSweAgent(MiniSweAgentImport),
    /// Import a trajectory of OpenHands
    #[command(name = "openhands", visible_alias = "open-hands")]
    OpenHands(OpenHandsImport),
    /// Import the threads of LangGraph's SqliteSaver or PostgresSaver
    #[command(name = "langgraph")]
    LangGraph(langgraph::LangGraphImport),
    /// Import a stream of events, one JSON object on each line
    Events(EventsImportArgs),
    /// Import the sessions of a bundle, with every id and hash
    Bundle(bundle::BundleImportArgs),
}

/// Arguments of `forge import claude-code`, `codex` and `gemini`.
#[derive(Debug, clap::Args)]
pub struct TranscriptImportArgs {
    /// Transcripts to import
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Refuse a file with a bad line, without changing anything
    #[arg(long)]
    pub strict: bool,

    /// Import what is found, without asking
    #[arg(long)]
    pub yes: bool,

    /// Show what would be imported, without changing anything
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `forge import swe-agent`, `mini-swe-agent` and `openhands`.
#[derive(Debug, clap::Args)]
pub struct TrajectoryImportArgs {
    /// Trajectory to import
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// When the run began, if the file does not say it
    #[arg(long, value_name = "T")]
    pub started_at: Option<MomentArg>,
}

/// Arguments of `forge import events`.
#[derive(Debug, clap::Args)]
pub struct EventsImportArgs {
    /// File to import; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

impl Command for ImportArgs {
    fn execute(&self, context: &mut Context) -> Result<(), CommandError> {
        match &self.command {
            Some(command) => command.execute(context),
            None => import_guessed(self, context),
        }
    }

    fn add_names(names: &mut Vec<&'static str>) {
        ImportCommand::add_names(names);
    }
}

commands!(
    ImportCommand: ClaudeCode, Codex, Gemini, SweAgent, MiniSweAgent, OpenHands, LangGraph, Events,
    Bundle
);

macro_rules! import_verbs {
    ($($name:ident($args:ty): $verb:literal, $import:ident($of:expr) -> $report:ty;)+) => {
        $(
            #[doc = concat!("Arguments of `forge ", $verb, "`.")]
            #[derive(Debug, clap::Args)]
            pub struct $name {
                #[command(flatten)]
                pub args: $args,
            }

            impl Verb for $name {
                const NAME: &'static str = $verb;
                type Opened = ();
                type Report = $report;

                fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
                    $import($of, &self.args, context)
                }
            }
        )+
    };
}

import_verbs! {
    ClaudeCodeImport(TranscriptImportArgs): "import claude-code",
        import_transcripts(TranscriptDialect::ClaudeCode) -> TranscriptImportReport;
    CodexImport(TranscriptImportArgs): "import codex",
        import_transcripts(TranscriptDialect::Codex) -> TranscriptImportReport;
    GeminiImport(TranscriptImportArgs): "import gemini",
        import_transcripts(TranscriptDialect::Gemini) -> TranscriptImportReport;
    SweAgentImport(TrajectoryImportArgs): "import swe-agent",
        import_trajectory(TrajectoryAuthor::SweAgent) -> TrajectoryImportReport;
    MiniSweAgentImport(TrajectoryImportArgs): "import mini-swe-agent",
        import_trajectory(TrajectoryAuthor::MiniSweAgent) -> TrajectoryImportReport;
    OpenHandsImport(TrajectoryImportArgs): "import openhands",
        import_trajectory(TrajectoryAuthor::OpenHands) -> TrajectoryImportReport;
}

/// Imports files whose formats are detected. If the first one is a transcript, all must be
/// transcripts of the same agent.
fn import_guessed(args: &ImportArgs, context: &mut Context) -> Result<(), CommandError> {
    let Some(first) = args.files.first() else { return Ok(()) };
    let form = detect_format(first).map_err(|error| match error.kind() {
        CommandErrorKind::NotFound => {
            error.hinted("it is not an agent's name either: 'forge import --help' lists them")
        }
        _ => error,
    })?;
    if let Some(FileFormat::Transcript(dialect)) = form {
        let args = TranscriptImportArgs {
            files: args.files.clone(),
            strict: args.strict,
            yes: false,
            dry_run: args.dry_run,
        };
        return match dialect {
            TranscriptDialect::ClaudeCode => ClaudeCodeImport { args }.execute(context),
            TranscriptDialect::Codex => CodexImport { args }.execute(context),
            TranscriptDialect::Gemini => GeminiImport { args }.execute(context),
        };
    }
    if args.strict || args.dry_run {
        return Err(CommandError::invalid(format!(
            "'--strict' and '--dry-run' are for transcripts; '{}' is none",
            first.display()
        )));
    }
    if let [file] = args.files.as_slice() {
        let (verb, report) = import_detected(file, context)?;
        return context.out.emit(verb, &report);
    }
    let mut files = Vec::new();
    let mut outcome = Ok(());
    for file in &args.files {
        match import_detected(file, context) {
            Ok((_, report)) => files.push(report),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    // The files that were imported before an error are reported too.
    if !files.is_empty() {
        context.out.emit("import", &DetectedImportsReport { files })?;
    }
    outcome
}

/// Imports a file that is no transcript. Returns the name of the verb for such files, and its
/// report.
fn import_detected(
    file: &Path,
    context: &mut Context,
) -> Result<(&'static str, DetectedImportReport), CommandError> {
    match detect_format(file)? {
        Some(FileFormat::Trajectory(author)) => {
            let args = TrajectoryImportArgs { file: file.to_owned(), started_at: None };
            let report = import_trajectory(author, &args, context)?;
            Ok((trajectory::verb(author), EitherReport::First(report)))
        }
        Some(FileFormat::Events) => {
            let verb = EventsImportArgs { file: file.to_owned() };
            let report = find_report(&verb, context)?;
            Ok((EventsImportArgs::NAME, EitherReport::Second(report)))
        }
        None => Err(no_text(file)),
        Some(found) => {
            let wanted = FileFormat::Transcript(TranscriptDialect::ClaudeCode);
            Err(wrong_format(file, wanted, found))
        }
    }
}

fn import_transcripts(
    dialect: TranscriptDialect,
    args: &TranscriptImportArgs,
    context: &mut Context,
) -> Result<TranscriptImportReport, CommandError> {
    let infer = context.config.is_on(key::INFERENCE_ENABLED);
    let options = TranscriptImportOptions {
        strict: args.strict,
        dry_run: args.dry_run,
        infer,
        ..TranscriptImportOptions::default()
    };
    let access = if args.dry_run { StoreAccess::Read } else { StoreAccess::Write };
    let store = workspace::open_store(context, access)?;
    let mut report = TranscriptImportReport {
        dialect,
        dry_run: args.dry_run,
        ..TranscriptImportReport::default()
    };
    let mut files = args.files.clone();
    if files.is_empty() {
        let found = found_transcripts(dialect, context, &store)?;
        if !found.is_empty() && (args.yes || args.dry_run || confirm_import(context, &found)?) {
            files = found.into_iter().map(|one| one.file.into()).collect();
        } else {
            report.found = found;
        }
    }
    if let Err(error) = import_files(context, &store, &files, options, &mut report) {
        if report.files.iter().all(|file| file.unchanged) {
            return Err(error);
        }
        // The files that were imported before the error are reported too.
        report.failure = Some(error);
    }
    Ok(report)
}

/// Imports the transcripts that `forge init` found, if `wanted` or if the person agrees. Prints to
/// stderr, because the result of the command was already printed.
pub fn offer_import(
    context: &mut Context,
    store: &Store,
    found: Vec<FoundTranscript>,
    wanted: bool,
) -> Result<(), CommandError> {
    if found.is_empty() {
        return Ok(());
    }
    if !wanted && !confirm_import(context, &found)? {
        context.out.print_status(&format!(
            "The agent has recorded work here before ({}): import it with 'forge import \
            claude-code'.",
            crate::text::count_text(found.len() as u64, "transcript")
        ));
        return Ok(());
    }
    let files: Vec<PathBuf> = found.into_iter().map(|one| one.file.into()).collect();
    let mut report = TranscriptImportReport::default();
    let infer = context.config.is_on(key::INFERENCE_ENABLED);
    import_files(
        context,
        store,
        &files,
        TranscriptImportOptions { infer, ..TranscriptImportOptions::default() },
        &mut report,
    )?;
    let facts: u64 = report.files.iter().flat_map(|file| file.facts.values()).sum();
    context.out.print_status(&format!(
        "Imported {} with {facts} facts; 'forge session list' names the sessions.\n\
         Next: forge brief",
        crate::text::count_text(report.files.len() as u64, "transcript")
    ));
    Ok(())
}

/// Returns how to read an imported session, unless it is the current one.
fn next_command(store: &Store, session: Option<&String>) -> Result<Option<String>, CommandError> {
    let current = store.current_session()?.map(|current| current.summary()).transpose()?;
    let current = current.map(|current| current.info.name);
    let other = session.filter(|name| current.as_ref() != Some(*name));
    Ok(other.map(|name| brief_command(name)))
}

/// Imports files into the store, durably, and prints progress and bad lines to stderr.
///
/// # Errors
///
/// The error of the only file; with several files, one error that names those that failed; or the
/// first error of the store. What was imported stays.
pub fn import_files(
    context: &Context,
    store: &Store,
    files: &[PathBuf],
    options: TranscriptImportOptions,
    report: &mut TranscriptImportReport,
) -> Result<(), CommandError> {
    let verb = match report.dialect {
        TranscriptDialect::ClaudeCode => ClaudeCodeImport::NAME,
        TranscriptDialect::Codex => CodexImport::NAME,
        TranscriptDialect::Gemini => GeminiImport::NAME,
    };
    let act = workspace::write_context(context, verb);
    let total = files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    let progress = ProgressIndicator::new(&context.out, "importing", Some(total));
    let done = std::cell::Cell::new(0);
    let reached = |bytes: u64| progress.set_finished(done.get() + bytes);
    let importer = TranscriptImporter::new(store, &act, options, &reached);
    let importer = importer.with_dialect(report.dialect);
    let mut importer = importer.with_codex_home(codex_home(context));
    let mut outcome = Ok(());
    let mut failed = Vec::new();
    for path in files {
        match importer.import_sessions(path) {
            Ok(sessions) => {
                if sessions.len() > 1 {
                    context.out.warn(&format!(
                        "{} holds {} sessions: each is imported by itself",
                        path.display(),
                        sessions.len()
                    ));
                }
                for one in sessions {
                    print_warnings(context, &one);
                    report.files.push(one);
                }
            }
            // The other files can still be imported.
            Err(error) if is_file_error(&error, path) => failed.push(error),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
        done.set(done.get() + path.metadata().map_or(0, |about| about.len()));
    }
    drop(importer);
    drop(progress);
    if !options.dry_run {
        store.sync()?;
        workspace::index_import(store);
    }
    outcome.and_then(|()| joined_errors(failed, files.len()))
}

/// Returns Codex's own directory, which need not exist.
fn codex_home(context: &Context) -> Option<PathBuf> {
    let own = context.environment.directory("CODEX_HOME");
    own.or_else(|| Some(context.environment.directory("HOME")?.join(".codex")))
}

/// Warns of a file that changes from one session to another, and of bad lines.
fn print_warnings(context: &Context, report: &TranscriptFileReport) {
    if let (Some(other), Some(own)) = (&report.other_session, &report.agent_session) {
        context.out.warn(&format!(
            "{} begins with the session '{other}' and ends with '{own}': only what the last one \
             says is taken as its own, prompts of others are taken for copies",
            report.file
        ));
    }
    for skipped in report.skipped.iter().take(MAX_SHOWN) {
        context.out.warn(&format!("{}, line {}: {}", report.file, skipped.line, skipped.reason));
    }
    if report.skipped.len() > MAX_SHOWN {
        let more = report.skipped.len() - MAX_SHOWN;
        context.out.warn(&format!("{}: {more} more lines like these", report.file));
    }
}

/// Whether an import failed because of the file, not because of the store.
fn is_file_error(error: &CommandError, path: &Path) -> bool {
    matches!(error.kind(), CommandErrorKind::Invalid | CommandErrorKind::NotFound)
        || plain_file::open(path).is_err()
}

/// Combines the errors of several files into one.
fn joined_errors(mut failed: Vec<CommandError>, files: usize) -> Result<(), CommandError> {
    match failed.len() {
        0 => Ok(()),
        1 if files == 1 => failed.pop().map_or(Ok(()), Err),
        count => {
            let kind = failed.first().map_or(CommandErrorKind::Invalid, CommandError::kind);
            let message = format!("{count} of {files} files were not imported");
            let mut all = CommandError::new(kind, message);
            for error in failed.iter().take(MAX_SHOWN) {
                let next = error.hints().first().map(|hint| format!(": {hint}"));
                all = all.hinted(format!("{}{}", error.message(), next.unwrap_or_default()));
            }
            if count > MAX_SHOWN {
                all = all.hinted(format!("and {} more", count - MAX_SHOWN));
            }
            Err(all)
        }
    }
}

/// Finds the transcripts of an agent about this directory and the project's directory.
pub fn found_transcripts(
    dialect: TranscriptDialect,
    context: &Context,
    store: &Store,
) -> Result<Vec<FoundTranscript>, CommandError> {
    let Some(home) = context.environment.directory("HOME") else { return Ok(Vec::new()) };
    let project = store.path().and_then(Path::parent).map(Path::to_owned);
    let folders: BTreeSet<PathBuf> = project.into_iter().chain([context.cwd.clone()]).collect();
    let transcripts = match dialect {
        TranscriptDialect::ClaudeCode => {
            let own = context.environment.directory("CLAUDE_CONFIG_DIR");
            claude_transcripts(
                &own.unwrap_or_else(|| home.join(".claude")),
                folders,
                context,
                store,
            )
        }
        TranscriptDialect::Codex => {
            let own = codex_home(context).unwrap_or_else(|| home.join(".codex"));
            codex_rollouts(&own, &with_worktrees(folders))
        }
        TranscriptDialect::Gemini => {
            gemini_recordings(&home.join(".gemini"), &with_worktrees(folders))
        }
    };
    let transcripts =
        transcripts.map_err(|error| CommandError::io("cannot look for transcripts", error))?;
    let found = transcripts.into_iter().map(|one| FoundTranscript {
        file: one.path.to_string_lossy().into_owned(),
        bytes: one.bytes,
        modified: one.modified.map(|time| chrono::DateTime::<chrono::Utc>::from(time).into()),
        sub_agent: one.sub_agent,
    });
    Ok(found.collect())
}

/// Adds the worktrees of the repositories whose tops are among these folders.
fn with_worktrees(folders: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let tops = folders.iter().filter(|folder| store_place::is_checkout_top(folder));
    let checkouts: Vec<PathBuf> = tops.flat_map(|top| store_place::checkouts(top)).collect();
    folders.into_iter().chain(checkouts).collect()
}

/// Finds Claude Code's transcripts of these folders and of all checkouts of their repositories,
/// except transcripts of directories that belong to another store.
fn claude_transcripts(
    config: &Path,
    folders: BTreeSet<PathBuf>,
    context: &Context,
    store: &Store,
) -> std::io::Result<Vec<TranscriptFile>> {
    let checkouts = folders.iter().flat_map(|folder| store_place::checkouts(folder));
    let checkouts: Vec<PathBuf> = checkouts.collect();
    let all: Vec<PathBuf> =
        folders.into_iter().chain(checkouts).collect::<BTreeSet<_>>().into_iter().collect();
    // A store that was given explicitly may be anywhere: then no directory is left out.
    let found_here = discovery::find_store(&context.cwd, &context.environment)
        .ok()
        .filter(|found| store.path() == Some(found));
    locate(config, &all, |directory| {
        let within = all.iter().any(|folder| directory.starts_with(folder));
        let elsewhere = found_here.as_ref().is_some_and(|here| {
            discovery::find_store(directory, &context.environment)
                .is_ok_and(|nearest| nearest != *here)
        });
        within && !elsewhere
    })
}

/// Asks on the terminal whether to import. Without a terminal the answer is no.
pub fn confirm_import(context: &Context, found: &[FoundTranscript]) -> Result<bool, CommandError> {
    context
        .out
        .ask(&format!("Import {}?", file_count(found.len())), |screen| print_found(found, screen))
}

fn file_count(count: usize) -> String {
    if count == 1 { "this transcript".to_owned() } else { format!("these {count} transcripts") }
}
