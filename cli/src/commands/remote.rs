//! `forge remote`.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::private_files;
use crate::remote::address::{depot_url, is_address, open_depot, shown_url, with_credentials_hint};
use crate::remote::transfer::Transfer;
use crate::remote::{DEFAULT_NAME, Remotes, about, open_remote, read_key, remote_argument};
use crate::report::remote::{
    RemoteCheckReport, RemoteGrantReport, RemoteKeptReport, RemoteKeyExportReport,
    RemoteKeyRotateReport, RemoteLine, RemoteListReport, RemoteRemoveReport, RemoteShowReport,
    RemoteTidyReport, SharedSessionLine, UnpushedLine,
};
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::{self, SessionNeed};
use forge_store::Error;
use forge_store::store::Store;
use forge_store::store::remote::{KnownRemote, Remote, RemoteKeyFile, RewriteReason, check_depot};
use std::path::PathBuf;

/// Make, join and check places through which stores share sessions.
#[derive(Debug, clap::Subcommand)]
pub enum RemoteCommand {
    /// Make a remote and its key
    Create(RemoteCreateArgs),
    /// Add a remote that was made elsewhere, with its key
    Add(RemoteAddArgs),
    /// List the remotes of this store
    List(RemoteListArgs),
    /// Show a remote and what is not pushed to it, without connecting to it
    Show(RemoteShowArgs),
    /// Forget a remote and its key; the remote stays as it is
    Remove(RemoteRemoveArgs),
    /// Check whether a remote, or a place for one, does what forge needs
    Check(RemoteCheckArgs),
    /// Export or replace the key of a remote
    #[command(subcommand)]
    Key(RemoteKeyCommand),
    /// Print a grant, which opens one session of a remote and nothing else of it
    Grant(RemoteGrantArgs),
    /// Remove packs from a remote that no session needs and that are a day old
    Tidy(RemoteTidyArgs),
}

commands!(RemoteCommand: Create, Add, List, Show, Remove, Check, Key, Grant, Tidy);

/// The key of a remote.
#[derive(Debug, clap::Subcommand)]
pub enum RemoteKeyCommand {
    /// Write the key of a remote to a file, to add it on another machine
    Export(RemoteKeyExportArgs),
    /// Replace the key of a remote: the old key and all grants open nothing that is pushed later
    Rotate(RemoteKeyRotateArgs),
}

commands!(RemoteKeyCommand: Export, Rotate);

#[derive(Debug, clap::Args)]
pub struct RemoteCreateArgs {
    /// URL (file://, s3://, gs:// or az://), or path of a shared folder, with a slash
    #[arg(value_name = "URL")]
    pub url: String,

    /// Name of the remote in this store
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteAddArgs {
    /// URL (file://, s3://, gs:// or az://), or path of a shared folder, with a slash
    #[arg(value_name = "URL")]
    pub url: String,

    /// Name of the remote in this store
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,

    /// File with the key of the remote, or 'env:VARIABLE'
    #[arg(long, value_name = "FILE")]
    pub key: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteListArgs {}

#[derive(Debug, clap::Args)]
pub struct RemoteShowArgs {
    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteRemoveArgs {
    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,

    /// Confirm that the key may be lost
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub struct RemoteCheckArgs {
    /// Name of the remote, or URL of a place
    #[arg(value_name = "NAME|URL", default_value = DEFAULT_NAME)]
    pub which: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteKeyExportArgs {
    /// File of the key; anyone who has it can read and write all of the remote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteKeyRotateArgs {
    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,

    /// Confirm that all other machines and containers need the new key or new grants
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub struct RemoteGrantArgs {
    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,
}

#[derive(Debug, clap::Args)]
pub struct RemoteTidyArgs {
    /// Name of the remote
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub name: String,
}

impl Verb for RemoteCreateArgs {
    const NAME: &'static str = "remote create";
    type Opened = OpenedStore;
    type Report = RemoteKeptReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let (name, url) = (self.name.clone(), depot_url(&self.url, &context.cwd)?);
        let depot = open_depot(&url)?;
        // The key is kept first, so that no remote is left without a key.
        let key = RemoteKeyFile::generate()?;
        let known = KnownRemote { name, url, access: key.clone().into() };
        keep(&opened.store, &known)?;
        let checked = check_depot(&*depot).map_err(Error::from);
        if let Err(error) = checked.and_then(|()| Remote::create_with(depot, &key)) {
            opened.store.forget_remote(&known.name)?;
            let is_there = matches!(error, Error::Conflict(_));
            let error = about(&known, error.into());
            return Err(match is_there {
                true => error.hinted(format!(
                    "'forge remote add URL{} --key FILE' joins it",
                    remote_argument(" ", &known.name)
                )),
                false => error,
            });
        }
        Ok(RemoteKeptReport::new(&known, "created"))
    }
}

impl Verb for RemoteAddArgs {
    const NAME: &'static str = "remote add";
    type Opened = OpenedStore;
    type Report = RemoteKeptReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let key = read_key(context, &self.key)?;
        let (known, _) = join(context, &self.url, &self.name, key)?;
        let is_replaced = keep(&opened.store, &known)?;
        Ok(RemoteKeptReport::new(&known, if is_replaced { "rekeyed" } else { "joined" }))
    }
}

/// Opens a remote that was made elsewhere, with its key. Stores neither the remote nor the key.
pub fn join(
    context: &Context,
    url: &str,
    name: &str,
    key: RemoteKeyFile,
) -> Result<(KnownRemote, Remote), CommandError> {
    let url = depot_url(url, &context.cwd)?;
    let opened = open_depot(&url).map(|depot| Remote::open_file(depot, &key))?;
    let known = KnownRemote { name: name.to_owned(), url, access: key.into() };
    let remote = opened.map_err(|error| {
        let is_missing = matches!(error, Error::NotFound { .. });
        let error = about(&known, error.into());
        if is_missing { error.hinted("'forge remote create URL' makes one there") } else { error }
    })?;
    Ok((known, remote.resolving(forge_agents::resolve)))
}

/// Stores a remote and its key in the keyring. Returns whether they replaced another key of this
/// remote.
pub fn keep(store: &Store, known: &KnownRemote) -> Result<bool, CommandError> {
    store.keep_remote(known).map_err(|error| match error {
        Error::Duplicate { .. } => {
            CommandError::invalid(format!("this store has a remote '{}' already", known.name))
                .hinted(format!(
                    "give this one another name, or see 'forge remote show{}'",
                    remote_argument(" ", &known.name)
                ))
        }
        error => error.into(),
    })
}

impl Verb for RemoteListArgs {
    const NAME: &'static str = "remote list";
    type Opened = OpenedStore;
    type Report = RemoteListReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let lines = remotes.known.iter().map(|known| {
            Ok(RemoteShowReport::load(&opened.store, known, remotes.is_environment)?.line)
        });
        let remotes = lines.collect::<Result<_, CommandError>>()?;
        Ok(RemoteListReport { remotes })
    }
}

impl Verb for RemoteShowArgs {
    const NAME: &'static str = "remote show";
    type Opened = OpenedStore;
    type Report = RemoteShowReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let known = remotes.find(Some(&self.name))?;
        RemoteShowReport::load(&opened.store, known, remotes.is_environment)
    }
}

impl RemoteShowReport {
    /// Reads what the store knows of a remote. `environment` says whether the remote comes from
    /// `FORGE_REMOTE`.
    pub fn load(
        store: &Store,
        known: &KnownRemote,
        environment: bool,
    ) -> Result<Self, CommandError> {
        let mut sessions = Vec::new();
        let (remote, is_granted) = (known.name.clone(), known.access.key().is_none());
        let mut unpushed = UnpushedLine { remote, is_granted, ..UnpushedLine::default() };
        for session in store.shared_sessions(&known.access)? {
            let info = session.summary()?.info;
            let work = store.unpushed(&known.access, &session)?;
            unpushed.purged_sessions += u64::from(work.rewrite == Some(RewriteReason::Purged));
            if work.operations > 0 {
                unpushed.operations += work.operations;
                unpushed.sessions += 1;
                unpushed.since = unpushed.since.into_iter().chain(work.since).min();
            }
            sessions.push(SharedSessionLine {
                session: info.name,
                handle: known.access.handle(&info.id)?.to_string(),
                unpushed: work.operations,
                since: work.since,
                rewrite: work.rewrite,
            });
        }
        unpushed.purges = store.pending_purges(&known.access)?;
        let line = RemoteLine {
            name: known.name.clone(),
            url: shown_url(&known.url),
            id: known.access.remote().to_string(),
            environment,
            shared: sessions.len() as u64,
            unpushed,
        };
        Ok(Self { line, sessions })
    }
}

impl Verb for RemoteRemoveArgs {
    const NAME: &'static str = "remote remove";
    type Opened = OpenedStore;
    type Report = RemoteRemoveReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let known = remotes.find(Some(&self.name))?;
        let name = &known.name;
        if remotes.is_environment {
            return Err(not_in_keyring(name).hinted("unset FORGE_REMOTE to do without it"));
        }
        if !self.yes && !opened.store.keeps_key_elsewhere(known)? {
            return Err(CommandError::invalid(format!(
                "the key of '{name}' is kept nowhere else on this machine: without it the \
                 remote cannot be read"
            ))
            .hinted(format!(
                "'forge remote key export FILE {name}' writes it to a file; '--yes' forgets it"
            )));
        }
        opened.store.forget_remote(name)?;
        Ok(RemoteRemoveReport { name: name.clone(), url: shown_url(&known.url) })
    }
}

impl Verb for RemoteCheckArgs {
    const NAME: &'static str = "remote check";
    type Opened = OpenedStore;
    type Report = RemoteCheckReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let (url, transfer) = if is_address(&self.which) {
            (depot_url(&self.which, &context.cwd)?, None)
        } else {
            let remotes = Remotes::of(context, &opened.store)?;
            let known = remotes.find(Some(&self.which))?.clone();
            (known.url.clone(), Some(Transfer::open(opened, known)?))
        };
        check_depot(&*open_depot(&url)?)
            .map_err(|error| with_credentials_hint(&url, Error::from(error).into()))?;
        let mut name = None;
        if let Some(transfer) = transfer {
            let sessions = transfer.remote.sessions();
            sessions.map_err(|error| about(&transfer.known, error.into()))?;
            transfer.skipped(context, None).map_or(Ok(()), Err)?;
            name = Some(transfer.known.name);
        }
        Ok(RemoteCheckReport { url: shown_url(&url), name })
    }
}

impl Verb for RemoteKeyExportArgs {
    const NAME: &'static str = "remote key export";
    type Opened = OpenedStore;
    type Report = RemoteKeyExportReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let known = remotes.find(Some(&self.name))?;
        let file = context.absolute(&self.file);
        if file.exists() {
            return Err(CommandError::invalid(format!("there is a file {}", file.display()))
                .hinted("name another one"));
        }
        let key = opened.store.export_remote_key(key_of(known)?)?;
        private_files::replace_file(&file, key.encode().as_bytes()).map_err(|error| {
            CommandError::io(&format!("cannot write the file {}", file.display()), error)
        })?;
        Ok(RemoteKeyExportReport::new(known, &file))
    }
}

impl Verb for RemoteKeyRotateArgs {
    const NAME: &'static str = "remote key rotate";
    type Opened = OpenedStore;
    type Report = RemoteKeyRotateReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let known = remotes.find(Some(&self.name))?;
        key_of(known)?;
        let name = &known.name;
        if remotes.is_environment {
            return Err(not_in_keyring(name).hinted(
                "'forge remote add URL --key FILE' keeps it where it can be rotated: the new key \
                 must not be lost",
            ));
        }
        if !self.yes {
            return Err(CommandError::invalid(format!(
                "nothing is changed without '--yes': all other machines that use '{name}' need the \
                 new key then, and all containers new grants"
            ))
            .hinted(format!(
                "'forge remote key rotate{} --yes' does it",
                remote_argument(" ", name)
            )));
        }
        let depot = open_depot(&known.url).map_err(|error| about(known, error))?;
        let rotated = opened.store.rotate_key(depot, name);
        Ok(RemoteKeyRotateReport::new(known, rotated.map_err(|error| about(known, error.into()))?))
    }
}

/// Returns the error of a verb that needs a remote of the keyring but found one of `FORGE_REMOTE`.
fn not_in_keyring(name: &str) -> CommandError {
    CommandError::invalid(format!(
        "the remote '{name}' is named by FORGE_REMOTE, not by the keyring"
    ))
}

/// Returns the key of a remote; an error if the remote is opened with a grant.
fn key_of(known: &KnownRemote) -> Result<&RemoteKeyFile, CommandError> {
    known.access.key().ok_or_else(|| {
        CommandError::from(Error::NotGranted).with_context(format!(
            "the remote '{}' is opened with a grant, without its key",
            known.name
        ))
    })
}

impl Verb for RemoteGrantArgs {
    const NAME: &'static str = "remote grant";
    type Opened = OpenedStore;
    type Report = RemoteGrantReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let known = Remotes::of(context, &opened.store)?.find(Some(&self.name))?.clone();
        key_of(&known)?;
        let transfer = Transfer::open(opened, known)?;
        let session = match workspace::choose_session(context, &opened.store, SessionNeed::Existing)
        {
            Ok(session) => transfer.own(session)?,
            // A session that is only on the remote can be granted too.
            Err(error) if error.kind() == CommandErrorKind::NotFound => match context.session() {
                Some(name) => transfer.find(name)?,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let grant = opened.store.grant(&transfer.remote, &session.handle);
        let name = session.name()?;
        let grant = grant.map_err(|error| {
            let is_missing = matches!(error, Error::NotFound { .. });
            let error = about(&transfer.known, transfer.hinted(error, &name));
            if is_missing { error.hinted("push the session before it is granted") } else { error }
        })?;
        Ok(RemoteGrantReport::new(&grant))
    }
}

impl Verb for RemoteTidyArgs {
    const NAME: &'static str = "remote tidy";
    type Opened = OpenedStore;
    type Report = RemoteTidyReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let remotes = Remotes::of(context, &opened.store)?;
        let known = remotes.find(Some(&self.name))?;
        let removed = open_remote(known)?.tidy().map_err(|error| about(known, error.into()))?;
        Ok(RemoteTidyReport { remote: known.name.clone(), removed })
    }
}
