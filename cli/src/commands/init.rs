//! `forge init`.

use crate::args::value::NameArg;
use crate::config::trust;
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use crate::report::store::InitReport;
use crate::workspace::{self, StoreAccess};
use forge_store::store::{NewSession, Store};
use std::path::PathBuf;

/// Arguments of `forge init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Directory of the project; the working directory by default
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Name of a session to begin at once
    #[arg(long, value_name = "NAME")]
    pub name: Option<NameArg>,

    /// Make a store without seals: anyone who can write to it can change it unnoticed
    #[arg(long)]
    pub unsealed: bool,

    /// Encrypt everything that is recorded; it cannot be read without the key, which is outside the store
    #[arg(long, conflicts_with = "unsealed")]
    pub encrypted: bool,

    /// Import what the agent has recorded here so far, without asking
    #[arg(long)]
    pub import: bool,
}

/// Creates the store.
pub fn run(args: &InitArgs, context: &mut Context) -> Result<(), CommandError> {
    let path = context.new_store_directory(args.directory.as_deref());
    discovery::check_link(&path, &context.environment)?;
    let mut options = workspace::store_options(context, StoreAccess::Write);
    if args.unsealed {
        options.keyring = None;
    }
    options.encrypted = args.encrypted;
    let store = Store::create(&path, options)?;
    if let Err(error) = trust::note_own_store(&context.environment, &path) {
        tracing::info!(error = error.message(), "that this store is the user's own was not noted");
    }
    let act = workspace::write_context(context, "init");
    let session = args.name.as_ref().map(|name| name.as_str().to_owned());
    if let Some(name) = &session {
        workspace::begin_session(context, &store, &act, NewSession::named(name.clone()))?;
    }
    let (path, encrypted) = (path.display().to_string(), store.is_encrypted());
    context.out.emit(&InitReport { path, session, encrypted })?;
    super::import::offer_import(context, &store, args.import)
}
