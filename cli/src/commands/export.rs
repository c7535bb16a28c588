//! `forge export`.

use super::bundle;
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::verb::{PrintedReport, Verb, VerbResult, commands};
use crate::workspace::{self, StoreAccess};
use forge_store::store::Session;
use std::fs::{OpenOptions, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

/// Export what is recorded.
#[derive(Debug, clap::Subcommand)]
pub enum ExportCommand {
    /// Write a session's imported transcript, byte for byte except for removed secrets
    Transcript(TranscriptExportArgs),
    /// Write a session as a stream of events that 'forge import events' reads
    Events(EventsExportArgs),
    /// Write sessions as one file, with every id and hash, that 'forge import bundle' reads
    Bundle(bundle::BundleExportArgs),
}

/// Which session to export, and where to.
#[derive(Debug, clap::Args)]
pub struct SessionExportArgs {
    /// Name or id of the session; the current one by default
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,

    /// File to write; standard output by default
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

commands!(ExportCommand: Transcript, Events, Bundle);

fn session(args: &SessionExportArgs, context: &Context) -> Result<Session, CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let found = workspace::named_or_chosen_session(context, &store, args.session.as_deref());
    found.map_err(|error| match (error.kind(), &args.session) {
        (CommandErrorKind::NotFound, Some(_)) => error.hinted("'-o FILE' names a file to write"),
        _ => error,
    })
}

#[derive(Debug, clap::Args)]
pub struct TranscriptExportArgs {
    #[command(flatten)]
    pub of: SessionExportArgs,
}

impl Verb for TranscriptExportArgs {
    const NAME: &'static str = "export transcript";
    type Opened = ();
    type Report = PrintedReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let session = session(&self.of, context)?;
        let summary = session.summary()?;
        let name = &summary.info.name;
        // The transcripts of sub-agents are sources too. The session's own transcript is preferred.
        let own = summary.info.agent_session.as_deref();
        let is_own = |source: &str| {
            own.is_some_and(|own| source.split_once(':').is_some_and(|(_, id)| id == own))
        };
        let sources = || summary.sources.iter().filter(|(_, bytes)| *bytes > 0);
        let source = sources()
            .find(|(source, _)| is_own(source))
            .or_else(|| sources().find(|(source, _)| !source.starts_with("events:")));
        let Some((source, _)) = source else {
            return Err(CommandError::not_found(format!("the session '{name}' has no transcript"))
                .hinted("'forge export events' writes what it holds"));
        };
        write_parts(&self.of, context, |to| session.write_source(source, &mut |part| to(part)))?;
        let removed = session.bookmark(source)?.map_or(0, |bookmark| bookmark.removed());
        if removed > 0 {
            let secrets = crate::text::count_text(removed, "secret");
            let were = if removed == 1 { "was" } else { "were" };
            let text = format!("{secrets} {were} removed before this transcript was stored");
            context.out.warn(&text);
        }
        Ok(PrintedReport)
    }
}

#[derive(Debug, clap::Args)]
pub struct EventsExportArgs {
    #[command(flatten)]
    pub of: SessionExportArgs,
}

impl Verb for EventsExportArgs {
    const NAME: &'static str = "export events";
    type Opened = ();
    type Report = PrintedReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        const PART_BYTES: usize = 64 << 10;
        let session = session(&self.of, context)?;
        write_parts(&self.of, context, |to| {
            let mut part = Vec::with_capacity(PART_BYTES);
            session.export_events(&forge_agents::resolve, &mut |line| {
                part.extend_from_slice(line);
                if part.len() < PART_BYTES {
                    return Ok(());
                }
                to(&std::mem::take(&mut part))
            })?;
            to(&part)
        })?;
        Ok(PrintedReport)
    }
}

/// Writes the parts to the requested output.
fn write_parts(
    args: &SessionExportArgs,
    context: &mut Context,
    produce: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), CommandError>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let Some(path) = &args.output else {
        return produce(&mut |part| context.out.raw(part));
    };
    let failed = |error| CommandError::io_at("cannot write", path, error);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(failed)?;
    // A pipe or a terminal has no length and cannot be synced.
    let is_file = file.metadata().map_err(failed)?.is_file();
    if is_file {
        // The content of a store is private, so an export is too, even in an existing file.
        let private = file.set_permissions(Permissions::from_mode(0o600));
        private.and_then(|()| file.set_len(0)).map_err(failed)?;
    }
    let mut file = BufWriter::new(file);
    produce(&mut |part| file.write_all(part).map_err(failed))?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    if is_file { file.sync_all().map_err(failed) } else { Ok(()) }
}
