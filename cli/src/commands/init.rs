//! `forge init`.

use crate::args::value::NameArg;
use crate::config::trust;
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use crate::report::store::InitReport;
use crate::verb::{Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::{NewSession, Store};
use std::path::PathBuf;

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

impl Verb for InitArgs {
    const NAME: &'static str = "init";
    type Opened = ();
    type Report = InitReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let path = context.new_store_directory(self.directory.as_deref());
        discovery::check_link(&path, &context.environment)?;
        let mut options = workspace::store_options(context, StoreAccess::Write);
        if self.unsealed {
            options.keyring = None;
        }
        options.encrypted = self.encrypted;
        let store = Store::create(&path, options)?;
        if self.unsealed
            && let Some(keyring) = context.keyring()
            && store.take_place(&keyring)
        {
            context
                .out
                .warn("a sealed store was here before: this one, without seals, takes its place");
        }
        if let Err(error) = trust::note_own_store(&context.environment, &path) {
            tracing::info!(
                error = error.message(),
                "that this store is the user's own was not noted"
            );
        }
        let act = workspace::write_context(context, "init");
        let session = self.name.as_ref().map(|name| name.as_str().to_owned());
        if let Some(name) = &session {
            workspace::begin_session(context, &store, &act, NewSession::named(name.clone()))?;
        }
        let (path, encrypted) = (path.display().to_string(), store.is_encrypted());
        Ok(InitReport { path, session, encrypted })
    }

    /// Offers to import what an agent has recorded here.
    fn after_report(&self, _: InitReport, context: &mut Context) -> Result<(), CommandError> {
        let mut options = workspace::store_options(context, StoreAccess::Write);
        if self.unsealed {
            options.keyring = None;
        }
        let path = context.new_store_directory(self.directory.as_deref());
        let store = Store::open(&path, options)?;
        super::import::offer_import(context, &store, self.import)
    }
}
