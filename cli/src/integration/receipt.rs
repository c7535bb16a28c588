//! Records in the user's state directory what an installation changed in which files, so that the
//! changes can be undone byte for byte.

use super::agent::{CodingAgent, InstallScope};
use super::splice::TextSplice;
use crate::context::Environment;
use crate::error::CommandError;
use crate::private_files;
use forge_store::plain_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the receipt format.
const VERSION: u32 = 1;

/// What one installation changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallReceipt {
    pub version: u32,
    pub agent: CodingAgent,
    pub scope: InstallScope,
    /// The folder of the project; `None` for an installation for all projects.
    pub project: Option<PathBuf>,
    /// The path of the forge binary that the agent calls.
    pub forge: String,
    /// The changes of each file.
    pub files: Vec<FileReceipt>,
}

/// The changes of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReceipt {
    /// The path of the file, with symbolic links resolved.
    pub path: PathBuf,
    /// Whether the installation created the file.
    pub created: bool,
    /// The directories that were created for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// The hash of the whole file after the changes: see [`hash`].
    pub after: String,
    /// The changes, in the order in which they were made.
    pub splices: Vec<TextSplice>,
    /// The paths of the objects and arrays in JSON settings that were empty before the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<Vec<String>>,
    /// The paths of the members that were added to JSON settings, and whose content does not show
    /// that forge added them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Vec<String>>,
}

impl FileReceipt {
    /// Returns the text before the changes; `None` if it cannot be derived from the current text.
    pub fn original(&self, text: &str) -> Option<String> {
        let exactly = hash(text) == self.after;
        self.splices.iter().rev().try_fold(text.to_owned(), |text, splice| match exactly {
            true => splice.undo(&text),
            false => splice.find_and_undo(&text),
        })
    }
}

/// Returns the blake3 hash of a file's text in hex digits. It shows whether the file has changed.
pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The folder of a user's receipts, with one file for each installation.
#[derive(Clone, Debug)]
pub struct ReceiptFolder {
    folder: PathBuf,
}

impl ReceiptFolder {
    /// Returns the folder of this user: `$XDG_STATE_HOME/forge/installed`, by default
    /// `~/.local/state/forge/installed`.
    pub fn for_user(environment: &Environment) -> Result<Self, CommandError> {
        let state = environment.state_directory().ok_or_else(|| {
            CommandError::not_found("there is no directory to record what is installed")
                .hinted("set HOME or XDG_STATE_HOME")
        })?;
        Ok(Self { folder: state.join("forge/installed") })
    }

    fn path(&self, agent: CodingAgent, scope: InstallScope, project: Option<&Path>) -> PathBuf {
        let mut name = format!("{}-{}", agent.name(), scope.name());
        if let Some(project) = project {
            let hash = blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex();
            name.push('-');
            name.push_str(&hash[..16]);
        }
        self.folder.join(name + ".json")
    }

    /// Returns the receipt of an installation, if there is one.
    pub fn find(
        &self,
        agent: CodingAgent,
        scope: InstallScope,
        project: Option<&Path>,
    ) -> Result<Option<InstallReceipt>, CommandError> {
        read(&self.path(agent, scope, project))
    }

    /// Returns all receipts. An unreadable receipt is skipped, because the installed files also
    /// show the installation.
    pub fn all(&self) -> Vec<InstallReceipt> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().filter_map(|path| read(path).ok().flatten()).collect()
    }

    /// Saves a receipt in place of the old one. If the receipt has no changes, removes the old one.
    pub fn keep(&self, receipt: &InstallReceipt) -> Result<(), CommandError> {
        let path = self.path(receipt.agent, receipt.scope, receipt.project.as_deref());
        let failed = |error| CommandError::io_at("cannot note what is installed in", &path, error);
        if receipt.files.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = serde_json::to_vec(receipt)
            .map_err(|error| CommandError::internal("a receipt is not JSON").caused_by(error))?;
        private_files::create_directories(&self.folder).map_err(failed)?;
        private_files::replace_file(&path, &text).map_err(failed)
    }
}

impl InstallReceipt {
    /// Creates a receipt without changes.
    pub fn new(
        agent: CodingAgent,
        scope: InstallScope,
        project: Option<&Path>,
        forge: &str,
    ) -> Self {
        let project = project.map(Path::to_owned);
        let forge = forge.to_owned();
        Self { version: VERSION, agent, scope, project, forge, files: Vec::new() }
    }

    /// Returns the changes of this file.
    pub fn for_file(&self, path: &Path) -> Option<&FileReceipt> {
        self.files.iter().find(|changed| changed.path == path)
    }
}

/// The maximum size of a receipt, in bytes.
const MOST_BYTES: u64 = 64 << 20;

fn read(path: &Path) -> Result<Option<InstallReceipt>, CommandError> {
    let bytes = match plain_file::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CommandError::io_at("cannot read", path, error)),
    };
    match serde_json::from_slice::<InstallReceipt>(&bytes) {
        Ok(receipt) if receipt.version == VERSION => Ok(Some(receipt)),
        // A receipt of another version is ignored, because the installed files also show forge's
        // entries.
        Ok(_) | Err(_) => Ok(None),
    }
}
