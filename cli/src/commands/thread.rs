//! `forge thread`.

mod call;
mod history;

use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::given::{self, Given};
use crate::workplace;
use forge_store::error::Error;
use forge_store::store::WriteContext;
use forge_systems::thread::{HistoryDocument, KNOWN_FORMS, SanitizeError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Keep message threads of LLM agents such that their provider takes them.
#[derive(Debug, clap::Subcommand)]
pub enum ThreadCommand {
    /// Save messages at the end of a thread
    Append(history::AppendArgs),
    /// Show the messages of a thread
    Show(history::ShowArgs),
    /// Find what no provider would take: exit code 1 if there is something
    Check(history::CheckArgs),
    /// List the calls without a result, or record what is known of one
    Pending(call::PendingArgs),
    /// Run a call again that has no result, and put in what comes of it
    Rerun(call::RerunArgs),
    /// Make a thread or a file such that its provider takes it
    Sanitize(history::SanitizeArgs),
}

/// Who writes, and how long nobody else may.
#[derive(Debug, clap::Args)]
pub struct Writer {
    /// Say who writes
    #[arg(long, value_name = "NAME")]
    pub writer: Option<Name>,

    /// Let nobody else write for so long
    #[arg(long = "for", value_name = "DURATION", requires = "writer", value_parser = value::duration)]
    pub hold: Option<Duration>,
}

impl Writer {
    fn name(&self) -> Option<&str> {
        self.writer.as_ref().map(Name::as_str)
    }
}

/// Does it.
pub fn run(command: &ThreadCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        ThreadCommand::Append(args) => history::append(args, context),
        ThreadCommand::Show(args) => history::show(args, context),
        ThreadCommand::Check(args) => history::check(args, context),
        ThreadCommand::Pending(args) => call::pending(args, context),
        ThreadCommand::Rerun(args) => call::rerun(args, context),
        ThreadCommand::Sanitize(args) => history::sanitize(args, context),
    }
}

/// How long to wait before looking whether a writer is done.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Does something as soon as the writer who holds the thread lets go, waiting no longer than for a lock.
fn when_free<T>(
    context: &Context,
    verb: &str,
    work: impl Fn(&WriteContext) -> Result<T, Error>,
) -> Result<T, CommandError> {
    let since = Instant::now();
    let mut act = workplace::act(context, verb);
    loop {
        match work(&act) {
            Err(Error::Held { .. }) if since.elapsed() < context.lock_timeout() => {
                std::thread::park_timeout(LOOK_AGAIN);
                act.now = context.now.plus_micros(value::micros(since.elapsed()));
            }
            done => return Ok(done?),
        }
    }
}

/// The text of a file, or of standard input for `-`.
fn text(context: &Context, file: &Path) -> Result<String, CommandError> {
    if file == Path::new("-") {
        Given::Stdin.read(context)
    } else {
        given::file(&context.cwd.join(file))
    }
}

/// Messages that are refused: exit code 1, as for a fault that is found.
fn refused(what: &str, refused: SanitizeError) -> CommandError {
    let error =
        CommandError::new(ErrorKind::UnknownForm, format!("{what} is refused")).caused_by(refused);
    error.hinted(format!("known are {KNOWN_FORMS}"))
}

/// What a person calls the input of a command.
fn given_name(file: &Path) -> String {
    if file == Path::new("-") { "the input".to_owned() } else { format!("'{}'", file.display()) }
}

/// The history in a file.
fn document(context: &Context, file: &Path) -> Result<HistoryDocument, CommandError> {
    let text = text(context, file)?;
    HistoryDocument::parse(&text).map_err(|error| {
        CommandError::invalid(format!("'{}' holds no messages", file.display())).caused_by(error)
    })
}

/// A thread or a file, but one of them.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Of {
    /// Name the thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<Name>,

    /// Read a file instead of a thread of the store, or standard input for '-'
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl Of {
    /// What a person calls it.
    fn what(&self) -> String {
        match (&self.thread, &self.file) {
            (Some(name), _) => format!("the thread '{name}'"),
            (None, file) => given_name(file.as_deref().unwrap_or_else(|| Path::new("-"))),
        }
    }
}
