//! `forge thread`.

mod call;
mod history;

use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::text_arg::{self, TextArg};
use crate::workspace;
use forge_store::error::Error;
use forge_store::store::{Store, WriteContext};
use forge_systems::thread::{HistoryDocument, KNOWN_FORMS, SanitizeError, Thread};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Keep message threads of LLM agents valid for their provider.
#[derive(Debug, clap::Subcommand)]
pub enum ThreadCommand {
    /// Save messages at the end of a thread
    Append(history::ThreadAppendArgs),
    /// Show the messages of a thread
    Show(history::ThreadShowArgs),
    /// Find what a provider would refuse (exit code 1 if there is something)
    Check(history::ThreadCheckArgs),
    /// List calls without a result, or record the state of one
    Pending(call::ThreadPendingArgs),
    /// Run a call without a result again, and insert its result
    Rerun(call::ThreadRerunArgs),
    /// Repair a thread or a file so that its provider accepts it
    Sanitize(history::ThreadSanitizeArgs),
}

/// The writer of a thread, and how long it excludes others.
#[derive(Debug, clap::Args)]
pub struct ThreadWriterArgs {
    /// Name of the writer
    #[arg(long, value_name = "NAME")]
    pub writer: Option<NameArg>,

    /// How long to keep other writers out
    #[arg(long = "for", value_name = "DURATION", requires = "writer", value_parser = value::parse_duration)]
    pub hold: Option<Duration>,
}

impl ThreadWriterArgs {
    fn name(&self) -> Option<&str> {
        self.writer.as_ref().map(NameArg::as_str)
    }
}

crate::verb::commands!(ThreadCommand: Append, Show, Check, Pending, Rerun, Sanitize);

/// The pause between two checks whether a writer has finished.
const CHECK_PAUSE: Duration = Duration::from_millis(20);

/// Opens a thread that exists.
fn open_thread(store: &Store, name: &NameArg) -> Result<Thread, CommandError> {
    Thread::open(store, name.as_str()).map_err(|error| match error {
        Error::NotFound { .. } => {
            CommandError::from(error).hinted("'forge session list --kind thread' lists the threads")
        }
        other => other.into(),
    })
}

/// Runs a function. While another writer holds the thread, repeats that for at most the lock
/// timeout.
fn retry_while_held<T>(
    context: &Context,
    verb: &str,
    work: impl Fn(&WriteContext) -> Result<T, Error>,
) -> Result<T, CommandError> {
    let since = Instant::now();
    let mut act = workspace::write_context(context, verb);
    loop {
        match work(&act) {
            Err(Error::Held { .. }) if since.elapsed() < context.lock_timeout() => {
                std::thread::park_timeout(CHECK_PAUSE);
                act.now = context.now.plus_micros(value::to_micros(since.elapsed()));
            }
            done => return Ok(done?),
        }
    }
}

/// Reads the text of a file, or of standard input for `-`.
fn read_input(context: &Context, file: &Path) -> Result<String, CommandError> {
    if file == Path::new("-") {
        TextArg::Stdin.read(context)
    } else {
        text_arg::read_file(&context.cwd.join(file))
    }
}

/// The error for refused messages: exit code 1, like for faults that were found.
fn refused_messages(what: &str, refused: SanitizeError) -> CommandError {
    let error = CommandError::new(CommandErrorKind::UnknownForm, format!("{what} is refused"))
        .caused_by(refused);
    error.hinted(format!("known are {KNOWN_FORMS}"))
}

/// Returns the name of a command's input, for error messages.
fn input_name(file: &Path) -> String {
    if file == Path::new("-") { "the input".to_owned() } else { format!("'{}'", file.display()) }
}

/// Reads the history in a file.
fn read_history(context: &Context, file: &Path) -> Result<HistoryDocument, CommandError> {
    let text = read_input(context, file)?;
    HistoryDocument::parse(&text).map_err(|error| {
        CommandError::invalid(format!("'{}' holds no messages", file.display())).caused_by(error)
    })
}

/// A thread or a file, but one of them.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct ThreadSourceArgs {
    /// Thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<NameArg>,

    /// File to read instead of a thread of the store; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl ThreadSourceArgs {
    /// Returns the name of the source, for error messages.
    fn title(&self) -> String {
        match &self.thread {
            Some(name) => format!("the thread '{name}'"),
            None => input_name(self.file()),
        }
    }

    /// Returns the file; it is there if no thread is.
    fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or_else(|| Path::new("-"))
    }
}
