//! Remotes as the command line names them: those in the keyring, or the one that the environment
//! names.

pub mod address;
pub mod name;
pub mod transfer;

pub use name::{DEFAULT_NAME, remote_argument};

use crate::context::Context;
use crate::error::CommandError;
use crate::report::remote::{RemoteShowReport, UnpushedLine};
use address::{depot_url, open_depot, shown_url, with_credentials_hint};
use forge_store::error::Error;
use forge_store::plain_file;
use forge_store::store::Store;
use forge_store::store::remote::{KnownRemote, Remote, RemoteAccess, RemoteGrant, RemoteKeyFile};

/// The variable with the URL of a remote, for a store that knows none.
const URL_VARIABLE: &str = "FORGE_REMOTE";
/// The variable with the source of the remote's key, as in `--key`.
const KEY_VARIABLE: &str = "FORGE_REMOTE_KEY";
/// The variable with the grant of a session, or with the path of a file with it.
const GRANT_VARIABLE: &str = "FORGE_GRANT";
/// The prefix of a key source that names an environment variable.
const VARIABLE_SOURCE: &str = "env:";
/// The maximum size of a key file, in bytes. It has a line for each session that was seen.
const MAX_KEY_BYTES: u64 = 16 << 20;
/// The maximum size of a file with a grant, in bytes.
const MAX_GRANT_BYTES: u64 = 4 << 10;
/// The number of hexadecimal digits of the secret in a key file.
const SECRET_DIGITS: usize = 64;

pub struct Remotes {
    /// The remotes, in the order of their names.
    pub known: Vec<KnownRemote>,
    /// Whether the only remote is named by the environment, and the keyring contains none.
    pub is_environment: bool,
    /// The variable with a key or a grant, if it is set and the one with the URL is not.
    without_url: Option<&'static str>,
}

impl Remotes {
    /// Returns the remotes that a store knows, or else the one that the environment names.
    ///
    /// # Errors
    /// Unkeyed if a file in the keyring is damaged; also if the environment names a remote without
    /// a key that can be used.
    pub fn of(context: &Context, store: &Store) -> Result<Self, CommandError> {
        let mut known = store.known_remotes()?;
        let named = if known.is_empty() { environment_remote(context)? } else { None };
        let is_environment = named.is_some();
        known.extend(named);
        Ok(Self { known, is_environment, without_url: variable_without_url(context) })
    }

    /// Finds the remote with this name; [`DEFAULT_NAME`] by default.
    ///
    /// # Errors
    /// Not found; invalid if there is no remote at all, and the environment has a key or a grant
    /// without a URL.
    pub fn find(&self, name: Option<&str>) -> Result<&KnownRemote, CommandError> {
        let name = name.unwrap_or(DEFAULT_NAME);
        let found = self.known.iter().find(|remote| remote.name == name);
        found.ok_or_else(|| {
            let error = CommandError::not_found(format!("this store has no remote '{name}'"));
            match (self.known.as_slice(), self.without_url) {
                ([], Some(variable)) => missing_url(variable),
                ([], None) => error.hinted(
                    "'forge remote create URL' makes one, 'forge remote add URL --key FILE' adds \
                     one",
                ),
                _ => error.hinted("'forge remote list' names those it has"),
            }
        })
    }
}

/// Returns whether this store has the remote [`DEFAULT_NAME`], or has none and the environment
/// names one. Neither its key nor the remote itself is read.
pub fn has_default(context: &Context, store: &Store) -> bool {
    let is_named = || context.environment.value(URL_VARIABLE).is_some();
    // If the known remotes cannot be read, the one of the environment counts, so that its use
    // reports the error.
    let has_none = || store.known_remotes().map_or(true, |known| known.is_empty());
    store.has_remote(DEFAULT_NAME) || (is_named() && has_none())
}

/// Returns what is not pushed to each remote, as far as the store knows: no request is made.
pub fn unpushed_lines(context: &Context, store: &Store) -> Result<Vec<UnpushedLine>, CommandError> {
    let remotes = Remotes::of(context, store)?;
    let lines = remotes.known.iter().map(|known| {
        Ok(RemoteShowReport::load(store, known, remotes.is_environment)?.line.unpushed)
    });
    let lines = lines.collect::<Result<Vec<_>, CommandError>>()?;
    Ok(lines.into_iter().filter(|line| !line.is_empty()).collect())
}

/// Opens a known remote.
///
/// # Errors
/// Forged if the depot contains another remote, or no remote any more; any error of the depot.
pub fn open_remote(known: &KnownRemote) -> Result<Remote, CommandError> {
    let opened =
        open_depot(&known.url).and_then(|depot| Ok(Remote::open_with(depot, &known.access)?));
    let opened = opened.map(|remote| remote.resolving(forge_agents::resolve));
    opened.map_err(|error| about(known, error))
}

/// Adds to an error the name of the remote that it is about, and what to do next.
pub fn about(known: &KnownRemote, error: CommandError) -> CommandError {
    let name = remote_argument(" ", &known.name);
    let hint = match error.store_error() {
        Some(Error::OtherRemote { .. }) => Some(format!(
            "mount the disk, or bring back what was at this address: 'forge remote show{name}' says \
            which remote it was; 'forge remote remove{name}' forgets it and its key"
        )),
        Some(Error::RemoteKeySetBack) => {
            Some(format!("'forge remote key rotate{name} --yes' gives it the current key again"))
        }
        _ => None,
    };
    let url = shown_url(&known.url);
    let error = with_credentials_hint(&known.url, error)
        .with_context(format!("cannot use the remote '{}' at {url}", known.name));
    hint.into_iter().fold(error, CommandError::hinted)
}

/// Returns the variable with a key or a grant, if it is set and the one with the URL is not.
fn variable_without_url(context: &Context) -> Option<&'static str> {
    let is_set = |variable: &&str| context.environment.text(variable).is_some();
    let found = [GRANT_VARIABLE, KEY_VARIABLE].into_iter().find(is_set);
    found.filter(|_| context.environment.value(URL_VARIABLE).is_none())
}

/// Returns the error for a variable with a key or a grant without the one with the URL.
fn missing_url(variable: &str) -> CommandError {
    CommandError::invalid(format!("{variable} is set, and {URL_VARIABLE} is not"))
        .hinted(format!("set {URL_VARIABLE} to the URL of the remote"))
}

/// Returns the remote that the environment must name. It is not added to the keyring.
///
/// # Errors
/// Invalid if it names none; see [`environment_remote`].
pub fn needed_environment_remote(context: &Context) -> Result<KnownRemote, CommandError> {
    environment_remote(context)?.ok_or_else(|| match variable_without_url(context) {
        Some(variable) => missing_url(variable),
        None => CommandError::invalid("the remote needs its key").hinted(format!(
            "'--key FILE' names it; or set {URL_VARIABLE}, and {KEY_VARIABLE} or {GRANT_VARIABLE}"
        )),
    })
}

/// Returns the remote that the environment names. It is not added to the keyring.
///
/// # Errors
/// Invalid if it has no key and no grant, or both; any error of reading it.
pub fn environment_remote(context: &Context) -> Result<Option<KnownRemote>, CommandError> {
    let Some(url) = context.environment.text(URL_VARIABLE) else { return Ok(None) };
    let (key, grant) =
        (context.environment.text(KEY_VARIABLE), context.environment.text(GRANT_VARIABLE));
    let access = match (key, grant) {
        (Some(source), None) => read_key(context, source)?.into(),
        (None, Some(grant)) => RemoteAccess::Grant(read_grant(context, grant)?),
        (Some(_), Some(_)) => {
            return Err(CommandError::invalid(format!(
                "{KEY_VARIABLE} and {GRANT_VARIABLE} are both set"
            ))
            .hinted("unset one: the key opens all of the remote, the grant one session"));
        }
        (None, None) => {
            return Err(CommandError::invalid(format!(
                "{URL_VARIABLE} is set, and neither {KEY_VARIABLE} nor {GRANT_VARIABLE} is"
            ))
            .hinted(format!(
                "{KEY_VARIABLE} is the path of the key file, or 'env:NAME'; {GRANT_VARIABLE} is \
                 what 'forge remote grant' printed, or the path of a file with it"
            )));
        }
    };
    let (name, url) = (DEFAULT_NAME.to_owned(), depot_url(url, &context.cwd)?);
    Ok(Some(KnownRemote { name, url, access }))
}

/// Reads a grant: the text itself, or a file with it.
fn read_grant(context: &Context, source: &str) -> Result<RemoteGrant, CommandError> {
    let text = if RemoteGrant::is_grant(source) {
        source.to_owned()
    } else {
        plain_file::read_text(&context.cwd.join(source), MAX_GRANT_BYTES).map_err(|error| {
            // The text may be a part of a grant, which is secret, so the error does not repeat it.
            CommandError::io(&format!("cannot read the file that {GRANT_VARIABLE} names"), error)
                .hinted("it is what 'forge remote grant' printed, or the path of a file with it")
        })?
    };
    let grant = RemoteGrant::decode(&text).map_err(Error::from);
    grant.map_err(|error| {
        CommandError::from(error)
            .with_context(format!("what {GRANT_VARIABLE} names is not a grant of a session"))
    })
}

/// Returns whether this is the text of a key file, or the secret of one alone.
fn is_key_text(source: &str) -> bool {
    let is_secret = |word: &str| {
        word.len() >= SECRET_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    source.trim_start().starts_with("forge remote") || source.split_whitespace().any(is_secret)
}

/// Reads a key: from a file, or from the environment variable NAME for `env:NAME`.
///
/// # Errors
/// Not found, invalid or damaged; the error names the file or the variable.
pub fn read_key(context: &Context, source: &str) -> Result<RemoteKeyFile, CommandError> {
    let text = match source.strip_prefix(VARIABLE_SOURCE) {
        Some(name) => context.environment.text(name).map(str::to_owned).ok_or_else(|| {
            CommandError::not_found(format!(
                "the environment variable '{name}' is not set, or is not text"
            ))
        })?,
        // The text is secret, so these errors do not repeat it.
        None if RemoteGrant::is_grant(source) => {
            return Err(CommandError::invalid("this is a grant, not a file with a key")
                .hinted(format!("set {GRANT_VARIABLE} to it, and {URL_VARIABLE} to the URL")));
        }
        None if is_key_text(source) && !context.cwd.join(source).is_file() => {
            return Err(CommandError::invalid("this is the text of a key, not a file with it")
                .hinted("write it to a file and name that, or 'env:NAME' for a variable with it"));
        }
        None => {
            let path = context.cwd.join(source);
            plain_file::read_text(&path, MAX_KEY_BYTES).map_err(|error| {
                CommandError::io(&format!("cannot read the key file '{source}'"), error)
                    .hinted("'forge remote key export FILE' writes it where the remote is known")
            })?
        }
    };
    let key = RemoteKeyFile::decode(&text).map_err(Error::from);
    let key = key.map_err(|error| {
        CommandError::from(error).with_context(format!("'{source}' is not a key of a remote"))
    })?;
    Ok(key.for_others())
}
