//! `forge key` and `forge adopt`.

use crate::config::trust;
use crate::context::Context;
use crate::error::CommandError;
use crate::private;
use crate::report::key::{Adopted, KeyCarried, KeyShown};
use crate::workplace::{self, Access};
use forge_store::plain_file;
use forge_store::store::Store;
use std::path::{Path, PathBuf};

/// The key of a store's seals, which lies outside the store.
#[derive(Debug, clap::Subcommand)]
pub enum KeyCommand {
    /// Say whether the store's key and witness are here
    Show,
    /// Write the store's key and what its witness saw to a file, to move the store to another machine
    Export(FileArgs),
    /// Take in a key that was exported elsewhere
    Import(FileArgs),
}

/// Arguments of `forge key export` and `forge key import`.
#[derive(Debug, clap::Args)]
pub struct FileArgs {
    /// Write it to, or read it from, this file; whoever has it can forge the store
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Does it.
pub fn run(command: &KeyCommand, context: &mut Context) -> Result<(), CommandError> {
    let options = workplace::options(context, Access::Read);
    match command {
        KeyCommand::Show => {
            let path = context.store_directory()?;
            let state = Store::key_state(&path, &options)?;
            let keyring = options.keyring.as_deref();
            context.out.emit(&KeyShown::new(&path, keyring, state))
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
            private::replace_file(&file, text.as_bytes()).map_err(|error| failed(&file, error))?;
            context.out.emit(&KeyCarried::exported(id, &file))
        }
        KeyCommand::Import(args) => {
            let file = context.cwd.join(&args.file);
            let text = plain_file::read_text(&file, MAX_KEY_BYTES)
                .map_err(|error| failed(&file, error))?;
            let id = Store::import_key(&text, &options)?;
            context.out.emit(&KeyCarried::imported(id, &file))
        }
    }
}

/// The largest file of a key that is read.
const MAX_KEY_BYTES: u64 = 64 << 10;

fn failed(file: &Path, error: std::io::Error) -> CommandError {
    CommandError::io(&format!("cannot use the file {}", file.display()), error)
}

/// Takes the store over as it is.
pub fn adopt(context: &mut Context) -> Result<(), CommandError> {
    let path = context.store_directory()?;
    let options = workplace::options(context, Access::Write);
    // The store gets another id, and stays the user's own.
    let is_own = trust::is_own(&context.environment, &path);
    let done = Store::adopt(&path, &options, context.now)?;
    if is_own {
        trust::note_own(&context.environment, &path)?;
    }
    context.out.emit(&Adopted::new(&path, &done))?;
    // What waited comes in now, if nobody holds the lock; else the next writer brings it.
    let store = Store::open(&path, options)?;
    if let Err(error) = store.drain() {
        tracing::info!(%error, "what waits goes on waiting");
    }
    Ok(())
}
