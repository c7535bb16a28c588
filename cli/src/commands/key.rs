//! `forge key` and `forge adopt`.

use crate::config::trust;
use crate::context::Context;
use crate::error::CommandError;
use crate::private_files;
use crate::report::key::{KeyShowReport, KeyTransferReport, StoreAdoptReport};
use crate::workspace::{self, StoreAccess};
use forge_store::plain_file;
use forge_store::store::Store;
use std::path::{Path, PathBuf};

/// The key of a store's seals, which lies outside the store.
#[derive(Debug, clap::Subcommand)]
pub enum KeyCommand {
    /// Show whether the store's key and witness are here
    Show,
    /// Write the store's key and what its witness saw to a file, to move the store to another machine
    Export(KeyFileArgs),
    /// Import a key that was exported elsewhere
    Import(KeyFileArgs),
}

/// Arguments of `forge key export` and `forge key import`.
#[derive(Debug, clap::Args)]
pub struct KeyFileArgs {
    /// File of the key; anyone who has it can forge the store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs `forge key`.
pub fn run(command: &KeyCommand, context: &mut Context) -> Result<(), CommandError> {
    let options = workspace::store_options(context, StoreAccess::Read);
    match command {
        KeyCommand::Show => {
            let path = context.store_directory()?;
            let state = Store::key_state(&path, &options)?;
            let keyring = options.keyring.as_deref();
            context.out.emit(&KeyShowReport::new(&path, keyring, state))
        }
        KeyCommand::Export(args) => {
            let path = context.store_directory()?;
            let file = context.cwd.join(&args.file);
            let text = Store::export_key(&path, &options)?;
            if file.exists() {
                return Err(CommandError::invalid(format!("there is a file {}", file.display()))
                    .hinted("name another one"));
            }
            let id = Store::key_state(&path, &options)?.id;
            private_files::replace_file(&file, text.as_bytes())
                .map_err(|error| file_error(&file, error))?;
            context.out.emit(&KeyTransferReport::exported(id, &file))
        }
        KeyCommand::Import(args) => {
            let file = context.cwd.join(&args.file);
            let text = plain_file::read_text(&file, MAX_KEY_BYTES)
                .map_err(|error| file_error(&file, error))?;
            let id = Store::import_key(&text, &options)?;
            context.out.emit(&KeyTransferReport::imported(id, &file))
        }
    }
}

/// The maximum size of a key file.
const MAX_KEY_BYTES: u64 = 64 << 10;

fn file_error(file: &Path, error: std::io::Error) -> CommandError {
    CommandError::io(&format!("cannot use the file {}", file.display()), error)
}

/// Adopts the store as it is.
pub fn adopt(context: &mut Context) -> Result<(), CommandError> {
    let path = context.store_directory()?;
    let options = workspace::store_options(context, StoreAccess::Write);
    // The store gets another id, but is still the user's own.
    let is_own = trust::is_own_store(&context.environment, &path);
    let done = Store::adopt(&path, &options, context.now)?;
    if is_own {
        trust::note_own_store(&context.environment, &path)?;
    }
    context.out.emit(&StoreAdoptReport::new(&path, &done))?;
    // Drains the spool now if the lock is free; otherwise the next writer does.
    let store = Store::open(&path, options)?;
    if let Err(error) = store.drain() {
        tracing::info!(%error, "what waits goes on waiting");
    }
    Ok(())
}
