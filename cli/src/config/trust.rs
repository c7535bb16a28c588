//! What the user allows to a project: settings that weaken the user's protection, and a store
//! outside of the project. It is recorded in the user's state folder, in one file per path, where
//! nothing in a project can change it.

use super::{SettingKey, SettingValue};
use crate::context::Environment;
use crate::error::CommandError;
use crate::git;
use crate::private_files;
use crate::text::{hex, shorten};
use forge_store::plain_file;
use forge_store::store::Store;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The maximum size of a trust file, in bytes.
const MAX_NOTE_BYTES: u64 = 4 << 20;
/// The length, in characters with the ellipsis, at which a setting's value is cut for display.
const SHOWN_CHARACTERS: usize = 61;

/// A setting of a project that is ignored, because it was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IgnoredSetting {
    /// Its name.
    pub key: &'static str,
    /// The project's value.
    pub value: String,
}

impl IgnoredSetting {
    /// Describes these settings, with how to allow them.
    pub fn describe(ignored: &[Self]) -> String {
        let mut text = String::from("this project's settings are not yours and are ignored: ");
        for (number, setting) in ignored.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            let value = shorten(&setting.value, SHOWN_CHARACTERS);
            let _ = write!(text, "{comma}{} = {value}", setting.key);
        }
        text.push_str(" ('forge config trust' allows them)");
        text
    }
}

/// What the user allowed at a path. A name in the path may be secret, so the file does not contain
/// the path: its name is the hash of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectTrust {
    /// The id of the store that the user created there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    /// The allowed settings, each as a line `KEY = VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    settings: Vec<String>,
    /// The hash of the path that the link at this path may lead to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl ProjectTrust {
    /// Reads what was allowed at this path; nothing if that cannot be read.
    pub fn read(environment: &Environment, path: &Path) -> Self {
        let file = note_file(environment, path);
        let bytes = file.and_then(|file| plain_file::read(&file, MAX_NOTE_BYTES).ok());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(self, environment: &Environment, path: &Path) -> Result<(), CommandError> {
        let Some(file) = note_file(environment, path) else {
            return Err(CommandError::not_found("there is no directory to record what you allow")
                .hinted("set HOME or XDG_STATE_HOME"));
        };
        let text = serde_json::to_vec(&self)
            .map_err(|error| CommandError::internal("a note is not JSON").caused_by(error))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        private_files::create_directories(folder)
            .and_then(|()| private_files::replace_file(&file, &text))
            .map_err(|error| CommandError::io_at("cannot write", &file, error))
    }

    /// Whether the user created the store at this path, and git did not bring its settings.
    fn is_own(&self, store: &Path) -> bool {
        self.store.is_some() && self.store == store_id(store) && !is_from_git(store)
    }

    /// Returns the settings among these that are not allowed for the store at this path.
    pub(super) fn not_allowed(
        environment: &Environment,
        store: &Path,
        settings: Vec<(&'static SettingKey, SettingValue)>,
    ) -> Vec<(&'static SettingKey, SettingValue)> {
        if settings.is_empty() {
            return settings;
        }
        let store = canonical(store);
        let allowed = Self::read(environment, &store);
        let is_allowed = |(key, value): &(&SettingKey, SettingValue)| {
            allowed.settings.contains(&line(key, value))
        };
        let rest: Vec<_> = settings.into_iter().filter(|one| !is_allowed(one)).collect();
        if rest.is_empty() || allowed.is_own(&store) { Vec::new() } else { rest }
    }
}

/// Records that the user created the store at this path.
///
/// # Errors
///
/// If it cannot be recorded: then its settings have to be allowed one by one.
pub fn note_own_store(environment: &Environment, store: &Path) -> Result<(), CommandError> {
    let store = canonical(store);
    let id = store_id(&store);
    ProjectTrust { store: id, ..ProjectTrust::read(environment, &store) }.write(environment, &store)
}

/// Whether the user created the store at this path.
pub fn is_own_store(environment: &Environment, store: &Path) -> bool {
    let store = canonical(store);
    let id = store_id(&store);
    id.is_some() && ProjectTrust::read(environment, &store).store == id
}

/// Allows these settings for the store at this path.
pub fn allow_settings(
    environment: &Environment,
    store: &Path,
    settings: &[(&SettingKey, SettingValue)],
) -> Result<(), CommandError> {
    let store = canonical(store);
    let mut allowed = ProjectTrust::read(environment, &store);
    for (key, value) in settings {
        // Only one value of a setting is allowed.
        let begin = format!("{} = ", key.name);
        allowed.settings.retain(|known| !known.starts_with(&begin));
        allowed.settings.push(line(key, value));
    }
    allowed.write(environment, &store)
}

/// Allows the link at this path to lead to this store outside its project.
pub fn allow_link(
    environment: &Environment,
    link: &Path,
    target: &Path,
) -> Result<(), CommandError> {
    let link = link_path(link);
    ProjectTrust { link: Some(path_hash(target)), ..ProjectTrust::read(environment, &link) }
        .write(environment, &link)
}

/// Whether the link at this path may lead to this store.
pub fn allows_link(environment: &Environment, link: &Path, target: &Path) -> bool {
    ProjectTrust::read(environment, &link_path(link)).link == Some(path_hash(target))
}

/// Revokes everything that was allowed at these paths.
pub fn forget(environment: &Environment, paths: &[PathBuf]) -> Result<(), CommandError> {
    for file in paths.iter().filter_map(|path| note_file(environment, path)) {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = format!("cannot remove '{}'", file.display());
                return Err(CommandError::io(&what, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the paths under which something may be recorded about a store that was found here.
pub fn noted_paths(store: &Path) -> Vec<PathBuf> {
    vec![canonical(store), link_path(store)]
}

fn line(key: &SettingKey, value: &SettingValue) -> String {
    format!("{} = {value}", key.name)
}

fn note_file(environment: &Environment, path: &Path) -> Option<PathBuf> {
    let folder = environment.state_directory()?.join("forge/trust");
    Some(folder.join(format!("{}.json", path_hash(path))))
}

fn path_hash(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_bytes()).to_hex().chars().take(32).collect()
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the path of a link, without following the link itself.
fn link_path(link: &Path) -> PathBuf {
    match (link.parent(), link.file_name()) {
        (Some(folder), Some(name)) => canonical(folder).join(name),
        _ => link.to_owned(),
    }
}

fn store_id(store: &Path) -> Option<String> {
    Store::id_in(store).ok().map(|id| hex(&id))
}

/// Whether git brought the settings of this store, or may have done so.
fn is_from_git(store: &Path) -> bool {
    let Some(project) = store.parent() else { return true };
    git::is_tracked(project, &store.join("config.toml")).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_settings_are_described_with_how_to_allow_them() {
        let ignored = [
            IgnoredSetting { key: "redact.enabled", value: "false".to_owned() },
            IgnoredSetting { key: "redact.allow", value: "x".repeat(100) },
        ];
        let text = IgnoredSetting::describe(&ignored);
        assert_eq!(
            text,
            format!(
                "this project's settings are not yours and are ignored: redact.enabled = false, \
                 redact.allow = {}… ('forge config trust' allows them)",
                "x".repeat(60)
            )
        );
    }
}
