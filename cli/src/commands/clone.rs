//! `forge clone`.

use super::remote::{join, keep};
use crate::args::moment::MomentArg;
use crate::config::trust;
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use crate::remote::address::{depot_url, shown_url};
use crate::remote::transfer::{Transfer, find_on_remote, remote_sessions, time_of};
use crate::remote::{DEFAULT_NAME, needed_environment_remote, open_remote, read_key};
use crate::report::remote::CloneReport;
use crate::report::transfer::warn_of_pulled_secrets;
use crate::text::name_list;
use crate::verb::{Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::Error;
use forge_store::shell::quoted;
use forge_store::store::Store;
use forge_store::store::remote::{KnownRemote, Remote, RemoteSession};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct CloneArgs {
    /// URL of the remote (file://, s3://, gs:// or az://), or path of its folder, with a slash
    #[arg(value_name = "URL")]
    pub url: String,

    /// Directory of the project; the working directory by default
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Name of a session on the remote, or the beginning of its handle; the only one by default
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<String>,

    /// File with the key of the remote, or 'env:VARIABLE'; what the environment names by default
    #[arg(long, value_name = "FILE")]
    pub key: Option<String>,

    /// Pull all sessions on the remote
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// Earliest time, such as -7d, of the last write or push of the sessions to pull
    #[arg(long, value_name = "T", conflicts_with = "sessions")]
    pub since: Option<MomentArg>,

    /// Encrypt the store
    #[arg(long)]
    pub encrypted: bool,
}

impl Verb for CloneArgs {
    const NAME: &'static str = "clone";
    type Opened = ();
    type Report = CloneReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let (known, remote) = self.opened(context)?;
        let wanted = self.chosen(context, &known, &remote)?;
        let path = context.new_store_directory(self.directory.as_deref());
        discovery::check_new_store(&path, &context.environment)?;
        context.use_settings_of(&path)?;
        let mut options = workspace::store_options(context, StoreAccess::Write);
        options.encrypted = self.encrypted;
        let store = Store::create(&path, options).map_err(|error| match error {
            Error::StoreExists { .. } => CommandError::from(error)
                .hinted("'forge remote add URL --key FILE' adds the remote from there"),
            error => error.into(),
        })?;
        if let Err(error) = trust::note_own_store(&context.environment, &path) {
            tracing::info!(error = error.message(), "the store was not noted as the user's own");
        }
        if self.key.is_some() {
            keep(&store, &known)?;
        }
        let write_context = workspace::write_context(context, Self::NAME);
        let transfer = Transfer::new(&store, &write_context, known, remote);
        let which = match (self.sessions.as_slice(), &self.since) {
            ([], Some(since)) => format!("--since {}", quoted(since.as_str())),
            ([], None) => "--all".to_owned(),
            (names, _) => names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" "),
        };
        let pulled = wanted.into_iter().map(|one| transfer.pull(&transfer.located(one)?));
        let hinted = |error: CommandError| {
            error.hinted(format!(
                "the store {} is made and knows the remote: 'forge pull {which}' there goes on",
                path.display()
            ))
        };
        let sessions = pulled.collect::<Result<Vec<_>, _>>().map_err(hinted)?;
        let (purges, failure) = transfer.finish_purges(context, None);
        failure.map_or(Ok(()), |error| Err(hinted(error)))?;
        warn_of_pulled_secrets(&sessions, &context.out);
        let current = match store.current_session()? {
            Some(session) => Some(session.summary()?.info.name),
            None => None,
        };
        let KnownRemote { name, url, .. } = transfer.known;
        let path = path.display().to_string();
        let url = shown_url(&url);
        Ok(CloneReport { path, remote: name, url, sessions, purges, current })
    }

    /// Brings the index up to date, as after an import.
    fn after_report(&self, made: CloneReport, context: &mut Context) -> Result<(), CommandError> {
        let options = workspace::store_options(context, StoreAccess::Write);
        workspace::index_import(&Store::open(Path::new(&made.path), options)?);
        Ok(())
    }
}

impl CloneArgs {
    /// Opens the remote with the key of `--key`, or else with the key that the environment names.
    fn opened(&self, context: &Context) -> Result<(KnownRemote, Remote), CommandError> {
        if let Some(key) = &self.key {
            return join(context, &self.url, DEFAULT_NAME, read_key(context, key)?);
        }
        let known = needed_environment_remote(context)?;
        let url = depot_url(&self.url, &context.cwd)?;
        if url != known.url {
            return Err(CommandError::invalid(format!(
                "FORGE_REMOTE names another place: {}",
                shown_url(&known.url)
            ))
            .hinted("clone that one, or name the key of this one with '--key FILE'"));
        }
        let remote = open_remote(&known)?;
        Ok((known, remote))
    }

    /// Returns the sessions to pull.
    fn chosen(
        &self,
        context: &Context,
        known: &KnownRemote,
        remote: &Remote,
    ) -> Result<Vec<RemoteSession>, CommandError> {
        if !self.sessions.is_empty() {
            let names: BTreeSet<&String> = self.sessions.iter().collect();
            return names.into_iter().map(|name| find_on_remote(known, remote, name)).collect();
        }
        if let Some(moment) = &self.since {
            let found = remote_sessions(remote, Some(time_of(context, moment)?))?;
            return match found.is_empty() {
                true => Err(CommandError::not_found(
                    "no session on the remote was written to or pushed since then",
                )
                .hinted("name an earlier time, or '--all'")),
                false => Ok(found),
            };
        }
        let found = remote_sessions(remote, None)?;
        if found.len() > 1 && !self.all {
            let names: Vec<String> = found.into_iter().map(|one| one.info.name).collect();
            let message =
                format!("there are {} sessions on it: {}", names.len(), name_list(&names));
            return Err(CommandError::invalid(message)
                .hinted("name those to pull after the directory, or '--all', or '--since T'"));
        }
        Ok(found)
    }
}
