//! `forge key` and `forge adopt`.

use crate::config::trust;
use crate::context::Context;
use crate::error::CommandError;
use crate::private_files;
use crate::report::key::{KeyShowReport, KeyTransferReport, StoreAdoptReport};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::{self, StoreAccess};
use forge_store::plain_file;
use forge_store::store::Store;
use std::path::{Path, PathBuf};

/// The key of a store's seals, which lies outside the store.
#[derive(Debug, clap::Subcommand)]
pub enum KeyCommand {
    /// Show whether the store's key and witness are here
    Show(KeyShowArgs),
    /// Write the store's key and what its witness saw to a file, to move the store to another
    /// machine
    Export(KeyExportArgs),
    /// Import a key that was exported elsewhere
    Import(KeyImportArgs),
}

commands!(KeyCommand: Show, Export, Import);

#[derive(Debug, clap::Args)]
pub struct KeyShowArgs {}

impl Verb for KeyShowArgs {
    const NAME: &'static str = "key show";
    type Opened = ();
    type Report = KeyShowReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let options = workspace::store_options(context, StoreAccess::Read);
        let path = context.store_directory()?;
        let state = Store::key_state(&path, &options)?;
        Ok(KeyShowReport::new(&path, options.keyring.as_deref(), state))
    }
}

#[derive(Debug, clap::Args)]
pub struct KeyExportArgs {
    /// File of the key; anyone who has it can forge the store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

impl Verb for KeyExportArgs {
    const NAME: &'static str = "key export";
    type Opened = ();
    type Report = KeyTransferReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let options = workspace::store_options(context, StoreAccess::Read);
        let path = context.store_directory()?;
        let file = context.cwd.join(&self.file);
        let text = Store::export_key(&path, &options)?;
        if file.exists() {
            return Err(CommandError::invalid(format!("there is a file {}", file.display()))
                .hinted("name another one"));
        }
        let id = Store::key_state(&path, &options)?.id;
        private_files::replace_file(&file, text.as_bytes())
            .map_err(|error| file_error(&file, error))?;
        Ok(KeyTransferReport::new(id, &file, "exported"))
    }
}

#[derive(Debug, clap::Args)]
pub struct KeyImportArgs {
    /// File of the key; anyone who has it can forge the store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

impl Verb for KeyImportArgs {
    const NAME: &'static str = "key import";
    type Opened = ();
    type Report = KeyTransferReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let options = workspace::store_options(context, StoreAccess::Read);
        let file = context.cwd.join(&self.file);
        let text = plain_file::read_text(&file, MAX_KEY_BYTES)
            .map_err(|error| file_error(&file, error))?;
        let id = Store::import_key(&text, &options)?;
        Ok(KeyTransferReport::new(id, &file, "imported"))
    }
}

/// The maximum size of a key file.
const MAX_KEY_BYTES: u64 = 64 << 10;

fn file_error(file: &Path, error: std::io::Error) -> CommandError {
    CommandError::io(&format!("cannot use the file {}", file.display()), error)
}

#[derive(Debug, clap::Args)]
pub struct AdoptArgs {}

impl Verb for AdoptArgs {
    const NAME: &'static str = "adopt";
    type Opened = ();
    type Report = StoreAdoptReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let path = context.store_directory()?;
        let options = workspace::store_options(context, StoreAccess::Write);
        // The store gets another id, so the note that it is the user's own is written again.
        let is_own = trust::is_own_store(&context.environment, &path);
        let done = Store::adopt(&path, &options, context.now)?;
        if is_own {
            trust::note_own_store(&context.environment, &path)?;
        }
        Ok(StoreAdoptReport::new(&path, &done))
    }

    /// Appends the spooled writes if the lock is free; otherwise the next writer appends them.
    fn after_report(&self, _: Self::Report, context: &mut Context) -> Result<(), CommandError> {
        let options = workspace::store_options(context, StoreAccess::Write);
        let store = Store::open(&context.store_directory()?, options)?;
        if let Err(error) = store.drain() {
            tracing::info!(%error, "the spooled writes stay in the spool");
        }
        Ok(())
    }
}
