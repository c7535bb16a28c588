//! What an installation changed, kept in the user's own directory, so that it is taken back to the byte.

use super::agent::{Agent, Scope};
use super::splice::Splice;
use crate::context::Environment;
use crate::error::CommandError;
use crate::private;
use forge_store::plain_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the form of a receipt.
const VERSION: u32 = 1;

/// What one installation changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of this form.
    pub version: u32,
    /// Of which agent.
    pub agent: Agent,
    /// For whom.
    pub scope: Scope,
    /// In which project; an installation for all projects has none.
    pub project: Option<PathBuf>,
    /// The binary that is called.
    pub forge: String,
    /// What was changed in which file.
    pub files: Vec<Changed>,
}

/// What was changed in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The file, links followed.
    pub path: PathBuf,
    /// Whether there was none before.
    pub created: bool,
    /// The directories that were made for it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// The hash of the whole file after the changes.
    pub after: String,
    /// The changes, in the order they were made.
    pub splices: Vec<Splice>,
    /// The places of objects and arrays in settings in JSON that were empty before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<Vec<String>>,
    /// The places of members that were added to settings in JSON and that do not tell by themselves whose they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Vec<String>>,
}

impl Changed {
    /// The text before the changes: nothing if that cannot be told from what stands there now.
    #[must_use]
    pub fn taken_back(&self, text: &str) -> Option<String> {
        let exactly = hash(text) == self.after;
        self.splices.iter().rev().try_fold(text.to_owned(), |text, splice| match exactly {
            true => splice.taken_back(&text),
            false => splice.found_and_taken_back(&text),
        })
    }
}

/// The hash that tells whether a file is as it was left.
#[must_use]
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The receipts of a user.
#[derive(Clone, Debug)]
pub struct Receipts {
    folder: PathBuf,
}

impl Receipts {
    /// Those of this user: in `$XDG_STATE_HOME/forge/installed`, by default below `~/.local/state`.
    ///
    /// # Errors
    ///
    /// If there is no directory of the user's.
    pub fn of(environment: &Environment) -> Result<Self, CommandError> {
        let state = environment.state_directory().ok_or_else(|| {
            CommandError::not_found("there is no place to note what is installed")
                .hinted("set HOME or XDG_STATE_HOME")
        })?;
        Ok(Self { folder: state.join("forge/installed") })
    }

    fn path(&self, agent: Agent, scope: Scope, project: Option<&Path>) -> PathBuf {
        let mut name = format!("{}-{}", agent.name(), scope.name());
        if let Some(project) = project {
            let hash = blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex();
            name.push('-');
            name.push_str(&hash[..16]);
        }
        self.folder.join(name + ".json")
    }

    /// The receipt of an installation, if there is one.
    ///
    /// # Errors
    ///
    /// If there is one that cannot be read.
    pub fn find(
        &self,
        agent: Agent,
        scope: Scope,
        project: Option<&Path>,
    ) -> Result<Option<Receipt>, CommandError> {
        read(&self.path(agent, scope, project))
    }

    /// All receipts. One that cannot be read is passed over: its installation is still told from the files.
    #[must_use]
    pub fn all(&self) -> Vec<Receipt> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().filter_map(|path| read(path).ok().flatten()).collect()
    }

    /// Keeps a receipt in place of the one there was; takes it away if it says of nothing.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep(&self, receipt: &Receipt) -> Result<(), CommandError> {
        let path = self.path(receipt.agent, receipt.scope, receipt.project.as_deref());
        let failed = |error| {
            CommandError::io(
                &format!("cannot note what is installed in '{}'", path.display()),
                error,
            )
        };
        if receipt.files.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_vec(receipt)
            .map_err(|error| CommandError::internal("a receipt is not JSON").caused_by(error))?;
        private::create_directories(&self.folder).map_err(failed)?;
        private::replace_file(&path, &text).map_err(failed)
    }
}

impl Receipt {
    /// One that says of nothing yet.
    #[must_use]
    pub fn new(agent: Agent, scope: Scope, project: Option<&Path>, forge: &str) -> Self {
        let project = project.map(Path::to_owned);
        let forge = forge.to_owned();
        Self { version: VERSION, agent, scope, project, forge, files: Vec::new() }
    }

    /// What was changed in this file.
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<&Changed> {
        self.files.iter().find(|changed| changed.path == path)
    }
}

/// The largest receipt that is read.
const MOST_BYTES: u64 = 64 << 20;

fn read(path: &Path) -> Result<Option<Receipt>, CommandError> {
    let bytes = match plain_file::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let what = format!("cannot read '{}'", path.display());
            return Err(CommandError::io(&what, error));
        }
    };
    match serde_json::from_slice::<Receipt>(&bytes) {
        Ok(receipt) if receipt.version == VERSION => Ok(Some(receipt)),
        // What another version noted is of no use; the files themselves say what is forge's.
        Ok(_) | Err(_) => Ok(None),
    }
}
