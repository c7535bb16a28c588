//! The messages of a thread: append, show, check, sanitize.

use super::{
    ThreadSourceArgs, ThreadWriterArgs, input_name, open_thread, read_history, refused_messages,
    retry_while_held,
};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::thread::{
    ThreadAppendReport, ThreadCheckReport, ThreadSanitizeReport, ThreadShowReport, messages_of,
};
use crate::verb::{Opened, OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::model::SessionKind;
use forge_store::store::WriteContext;
use forge_systems::thread::{
    AppendGuard, AppendOptions, HistoryDocument, OrphanPolicy, SanitizeOptions, Thread, form_of,
    sanitize_history,
};
use forge_systems::write_or_begin;
use std::path::PathBuf;

/// What is done about calls without results.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum AppendGuardArg {
    /// Save them and mark the thread
    Mark,
    /// Refuse them
    Refuse,
    /// Hold calls back until all their results are there
    Hold,
}

impl From<AppendGuardArg> for AppendGuard {
    fn from(word: AppendGuardArg) -> Self {
        match word {
            AppendGuardArg::Mark => Self::Mark,
            AppendGuardArg::Refuse => Self::Refuse,
            AppendGuardArg::Hold => Self::Hold,
        }
    }
}

/// Arguments of `forge thread append`.
#[derive(Debug, clap::Args)]
pub struct ThreadAppendArgs {
    /// Thread; created if it does not exist
    #[arg(long, value_name = "THREAD")]
    pub thread: NameArg,

    /// File of messages, JSON Lines or a JSON list; '-' is standard input
    #[arg(value_name = "FILE", required_unless_present = "writer")]
    pub file: Option<PathBuf>,

    /// Replace all messages of the thread, such as by a summary of them
    #[arg(long, requires = "file")]
    pub replace: bool,

    /// What to do about calls without results
    #[arg(long, value_name = "GUARD", value_enum, default_value = "mark")]
    pub guard: AppendGuardArg,

    /// Tools that can be run twice
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    pub idempotent: Vec<String>,

    #[command(flatten)]
    pub writer: ThreadWriterArgs,
}

/// Arguments of `forge thread show`.
#[derive(Debug, clap::Args)]
pub struct ThreadShowArgs {
    /// Thread
    #[arg(long, value_name = "THREAD")]
    pub thread: NameArg,

    /// Moment at which to show it
    #[arg(long, value_name = "MOMENT")]
    pub at: Option<MomentArg>,

    /// Also show messages that are held back
    #[arg(long, conflicts_with = "sanitized")]
    pub held: bool,

    /// Show it as 'sanitize' would make it
    #[arg(long)]
    pub sanitized: bool,
}

/// Arguments of `forge thread check`.
#[derive(Debug, clap::Args)]
pub struct ThreadCheckArgs {
    #[command(flatten)]
    pub of: ThreadSourceArgs,
}

/// Arguments of `forge thread sanitize`.
#[derive(Debug, clap::Args)]
pub struct ThreadSanitizeArgs {
    #[command(flatten)]
    pub of: ThreadSourceArgs,

    /// Remove calls without a result instead of inserting one
    #[arg(long)]
    pub remove: bool,

    /// Name of the writer
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub writer: Option<NameArg>,
}

impl Verb for ThreadAppendArgs {
    const NAME: &'static str = "thread append";
    type Opened = OpenedStore;
    type Report = ThreadAppendReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let given = self.file.as_deref().map(|file| {
            read_history(context, file)?.reject_broken_lines().map_err(CommandError::from)
        });
        let messages = given.transpose()?.map(|document| document.messages).unwrap_or_default();
        if let Some(file) = &self.file {
            form_of(&messages).map_err(|error| refused_messages(&input_name(file), error))?;
        }
        let name = self.thread.as_str();
        let hold = self.writer.hold.map(value::to_micros);
        let append = |act: &WriteContext| {
            let how = AppendOptions {
                guard: self.guard.into(),
                writer: self.writer.name().map(str::to_owned),
                until: hold.map(|micros| act.now.plus_micros(micros)),
                idempotent: self.idempotent.clone(),
                form: None,
                replace: self.replace,
            };
            write_or_begin(store, SessionKind::Thread, name, |store| {
                Thread::open_or_create(store, act, name)?.append(act, &messages, &how)
            })
        };
        let done = retry_while_held(context, Self::NAME, append)?;
        Ok(ThreadAppendReport::new(name, done))
    }
}

fn open(context: &Context, name: &NameArg) -> Result<Thread, CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    open_thread(&store, name)
}

impl Verb for ThreadShowArgs {
    const NAME: &'static str = "thread show";
    type Opened = ();
    type Report = ThreadShowReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let thread = open(context, &self.thread)?;
        let moment = workspace::moment_or_head(context, thread.session(), self.at.as_ref())?;
        let status = thread.status(&moment)?;
        let messages = if self.sanitized {
            thread.sanitized(&moment, &SanitizeOptions::default())?.messages
        } else {
            messages_of(thread.messages(&moment)?, self.held)
        };
        Ok(ThreadShowReport::new(self.thread.as_str(), status, messages))
    }
}

/// Returns the messages of a thread, also those that are held back, or of a file; and the options
/// that their request shows.
fn messages(
    of: &ThreadSourceArgs,
    context: &Context,
) -> Result<(Vec<String>, SanitizeOptions), CommandError> {
    let Some(name) = &of.thread else {
        let document = read_history(context, of.file())?;
        let options = options_of(&document, SanitizeOptions::default());
        return Ok((document.messages, options));
    };
    let thread = open(context, name)?;
    let messages = messages_of(thread.messages(&thread.session().head()?)?, true);
    Ok((messages, SanitizeOptions::default()))
}

/// Returns these options with what the request around a history shows.
fn options_of(document: &HistoryDocument, options: SanitizeOptions) -> SanitizeOptions {
    let (continues, marks) = (document.continues(), document.cache_marks());
    SanitizeOptions { continues, marks, ..options }
}

impl Verb for ThreadCheckArgs {
    const NAME: &'static str = "thread check";
    type Opened = ();
    type Report = ThreadCheckReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let (messages, options) = messages(&self.of, context)?;
        let found = sanitize_history(&messages, &options);
        let found = found.map_err(|error| refused_messages(&self.of.title(), error))?;
        if !found.is_clean() {
            context.exit_code = EXIT_NO;
        }
        let thread = self.of.thread.as_ref().map(NameArg::as_str);
        Ok(ThreadCheckReport::new(thread, messages.len(), found))
    }
}

impl Verb for ThreadSanitizeArgs {
    const NAME: &'static str = "thread sanitize";
    type Opened = ();
    type Report = ThreadSanitizeReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let orphans = if self.remove { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
        let options = SanitizeOptions { orphans, ..SanitizeOptions::default() };
        if let Some(name) = &self.of.thread {
            let opened = OpenedStore::open(self, context)?;
            let writer = self.writer.as_ref().map(NameArg::as_str);
            let thread = open_thread(&opened.store, name)?;
            let done = retry_while_held(context, Self::NAME, |act| {
                thread.sanitize(act, &options, writer)
            })?;
            let revision = done.committed.revision.map(|(number, _)| number);
            opened.finish(context);
            return Ok(ThreadSanitizeReport::new(Some(name.as_str()), revision, done.sanitized));
        }
        let file = self.of.file();
        let document = read_history(context, file)?;
        let options = options_of(&document, options);
        let done = sanitize_history(&document.messages, &options);
        let done = done.map_err(|error| refused_messages(&input_name(file), error))?;
        let written = document.write(&done.messages);
        let report = ThreadSanitizeReport::new(None, None, done).with_document(written);
        if !report.faults.is_empty() {
            context.out.print_status(&report.lines());
        }
        Ok(report)
    }
}
