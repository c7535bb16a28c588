//! The messages of a thread: append, show, check, sanitize.

use super::{Of, Writer, document, given_name, refused, when_free};
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::thread::{AppendedJson, Checked, SanitizedJson, Shown, messages_of};
use crate::workplace::{self, Access};
use forge_store::error::Error;
use forge_systems::thread::{
    AppendGuard, AppendOptions, OrphanPolicy, SanitizeOptions, Thread, form_of, sanitize_history,
};
use std::path::PathBuf;

/// What is done about calls without results.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum GuardWord {
    /// Save them and mark the thread
    Mark,
    /// Refuse them
    Refuse,
    /// Hold calls back until all their results are there
    Hold,
}

impl From<GuardWord> for AppendGuard {
    fn from(word: GuardWord) -> Self {
        match word {
            GuardWord::Mark => Self::Mark,
            GuardWord::Refuse => Self::Refuse,
            GuardWord::Hold => Self::Hold,
        }
    }
}

/// Arguments of `forge thread append`.
#[derive(Debug, clap::Args)]
pub struct AppendArgs {
    /// Name the thread; it is begun if there is none
    #[arg(long, value_name = "THREAD")]
    pub thread: Name,

    /// Read messages from this file, or standard input for '-': JSON Lines or a JSON list
    #[arg(value_name = "FILE", required_unless_present = "writer")]
    pub file: Option<PathBuf>,

    /// Say what is done about calls without results
    #[arg(long, value_name = "GUARD", value_enum, default_value = "mark")]
    pub guard: GuardWord,

    /// Name tools that may be run twice
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    pub idempotent: Vec<String>,

    /// Who writes.
    #[command(flatten)]
    pub writer: Writer,
}

/// Arguments of `forge thread show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name the thread
    #[arg(long, value_name = "THREAD")]
    pub thread: Name,

    /// Show it as it was at this moment
    #[arg(long, value_name = "MOMENT")]
    pub at: Option<Moment>,

    /// Show messages that are held back too
    #[arg(long, conflicts_with = "sanitized")]
    pub held: bool,

    /// Show it as 'sanitize' would leave it
    #[arg(long)]
    pub sanitized: bool,
}

/// Arguments of `forge thread check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// What to check.
    #[command(flatten)]
    pub of: Of,
}

/// Arguments of `forge thread sanitize`.
#[derive(Debug, clap::Args)]
pub struct SanitizeArgs {
    /// What to sanitize.
    #[command(flatten)]
    pub of: Of,

    /// Cut calls without a result instead of answering them
    #[arg(long)]
    pub remove: bool,

    /// Say who writes
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub writer: Option<Name>,
}

pub(super) fn append(args: &AppendArgs, context: &mut Context) -> Result<(), CommandError> {
    let given = args
        .file
        .as_deref()
        .map(|file| document(context, file)?.reject_broken_lines().map_err(CommandError::from));
    let messages = given.transpose()?.map(|document| document.messages).unwrap_or_default();
    if let Some(file) = &args.file {
        form_of(&messages).map_err(|error| refused(&given_name(file), error))?;
    }
    let store = workplace::open(context, Access::Write)?;
    let name = args.thread.as_str();
    let hold = args.writer.hold.map(value::micros);
    let done = when_free(context, "thread append", |act| {
        let how = AppendOptions {
            guard: args.guard.into(),
            writer: args.writer.name().map(str::to_owned),
            until: hold.map(|micros| act.now.plus_micros(micros)),
            idempotent: args.idempotent.clone(),
        };
        Thread::open_or_create(&store, act, name)?.append(act, &messages, &how)
    })?;
    context.out.emit(&AppendedJson::new(name, done))?;
    workplace::finish(&store);
    Ok(())
}

fn open(context: &Context, name: &Name) -> Result<Thread, CommandError> {
    let store = workplace::open(context, Access::Read)?;
    Thread::open(&store, name.as_str()).map_err(|error| match error {
        Error::NotFound { .. } => {
            CommandError::from(error).hinted("'forge thread append --thread NAME FILE' begins one")
        }
        other => other.into(),
    })
}

pub(super) fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let thread = open(context, &args.thread)?;
    let point = workplace::point_or_head(context, thread.session(), args.at.as_ref())?;
    let status = thread.status(&point)?;
    let messages = if args.sanitized {
        thread.sanitized(&point, &SanitizeOptions::default())?.messages
    } else {
        messages_of(thread.messages(&point)?, args.held)
    };
    context.out.emit(&Shown::new(args.thread.as_str(), status, messages))
}

/// The messages of a thread or a file, and its name.
fn messages(of: &Of, context: &Context) -> Result<Vec<String>, CommandError> {
    match (&of.thread, &of.file) {
        (Some(name), _) => {
            let thread = open(context, name)?;
            Ok(messages_of(thread.messages(&thread.session().head()?)?, true))
        }
        (None, Some(file)) => Ok(document(context, file)?.messages),
        (None, None) => Err(CommandError::invalid("name a thread or a file")),
    }
}

pub(super) fn check(args: &CheckArgs, context: &mut Context) -> Result<(), CommandError> {
    let messages = messages(&args.of, context)?;
    let found = sanitize_history(&messages, &SanitizeOptions::default());
    let found = found.map_err(|error| refused(&args.of.what(), error))?;
    if !found.is_clean() {
        context.exit_code = EXIT_NO;
    }
    let thread = args.of.thread.as_ref().map(Name::as_str);
    context.out.emit(&Checked::new(thread, messages.len(), found))
}

pub(super) fn sanitize(args: &SanitizeArgs, context: &mut Context) -> Result<(), CommandError> {
    let orphans = if args.remove { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
    let options = SanitizeOptions { orphans, ..SanitizeOptions::default() };
    if let Some(name) = &args.of.thread {
        let store = workplace::open(context, Access::Write)?;
        let writer = args.writer.as_ref().map(Name::as_str);
        let done = when_free(context, "thread sanitize", |act| {
            Thread::open(&store, name.as_str())?.sanitize(act, &options, writer)
        })?;
        let revision = done.committed.revision.map(|(number, _)| number);
        context.out.emit(&SanitizedJson::new(Some(name.as_str()), revision, done.sanitized))?;
        workplace::finish(&store);
        return Ok(());
    }
    let file = args.of.file.as_deref().unwrap_or_else(|| std::path::Path::new("-"));
    let document = document(context, file)?;
    let done = sanitize_history(&document.messages, &options);
    let done = done.map_err(|error| refused(&given_name(file), error))?;
    let written = document.write(&done.messages);
    let report = SanitizedJson::new(None, None, done);
    if context.global.json {
        return context.out.emit(&report);
    }
    if !report.faults.is_empty() {
        context.out.say(&report.told());
    }
    context.out.raw(written.as_bytes())
}
