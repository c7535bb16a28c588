//! Settings and their layers, in the order of priority: a flag, the environment, the project's
//! file, the user's own file, the default. Unknown keys and invalid values are refused, so that a
//! typing error is noticed.

pub mod edit;
pub mod key;
pub mod trust;

pub use key::{ProjectPermission, SettingKey, SettingValue};
pub use trust::IgnoredSetting;

use crate::args::{ColorMode, GlobalArgs};
use crate::context::Environment;
use crate::error::CommandError;
use forge_store::plain_file;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use trust::ProjectTrust;

/// The maximum size of a settings file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The origin of a setting; later variants have priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigLayer {
    /// Built into forge.
    Default,
    /// `forge/config.toml` in the user's directory of settings.
    User,
    /// `.forge/config.toml`.
    Project,
    Environment,
    /// A flag on the command line.
    Flag,
}

impl fmt::Display for ConfigLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

type LayerValues = BTreeMap<&'static str, SettingValue>;

/// All settings with their values.
#[derive(Debug)]
pub struct Config {
    layers: BTreeMap<ConfigLayer, LayerValues>,
    user_file: Option<PathBuf>,
    ignored: Vec<IgnoredSetting>,
}

impl Config {
    /// Reads the settings that apply to this store, or those that apply without one.
    pub fn read(
        global: &GlobalArgs,
        environment: &Environment,
        store: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let user_file = environment.config_directory().map(|path| path.join("forge/config.toml"));
        let mut layers = BTreeMap::from([
            (ConfigLayer::Default, defaults()),
            (ConfigLayer::Environment, from_environment(environment)?),
            (ConfigLayer::Flag, from_flags(global)),
        ]);
        if let Some(path) = &user_file {
            layers.insert(ConfigLayer::User, read_file(path, ConfigLayer::User)?);
        }
        if let Some(store) = store {
            layers.insert(
                ConfigLayer::Project,
                read_file(&store.join("config.toml"), ConfigLayer::Project)?,
            );
        }
        let mut config = Self { layers, user_file, ignored: Vec::new() };
        if let Some(store) = store {
            for (key, value) in ProjectTrust::not_allowed(environment, store, config.weakening()) {
                config.layers.entry(ConfigLayer::Project).or_default().remove(key.name);
                config.ignored.push(IgnoredSetting { key: key.name, value: value.to_string() });
            }
        }
        Ok(config)
    }

    /// Returns the settings of the project that weaken the user's protection and differ from the
    /// user's own.
    fn weakening(&self) -> Vec<(&'static SettingKey, SettingValue)> {
        let own = |key: &SettingKey| {
            let layers = [ConfigLayer::User, ConfigLayer::Default].iter();
            layers.filter_map(|layer| self.layers.get(layer)?.get(key.name)).next()
        };
        let project = self.layers.get(&ConfigLayer::Project).into_iter().flatten();
        project
            .filter_map(|(name, value)| Some((SettingKey::find(name).ok()?, value)))
            .filter(|(key, value)| key.weakens(value) && own(key) != Some(value))
            .map(|(key, value)| (key, value.clone()))
            .collect()
    }

    /// Returns the settings of the project that are ignored, because they were not allowed.
    pub fn ignored(&self) -> &[IgnoredSetting] {
        &self.ignored
    }

    /// Returns the value of this key, if it has one, and its layer.
    pub fn value(&self, key: &SettingKey) -> (Option<&SettingValue>, ConfigLayer) {
        let set =
            self.layers.iter().rev().find_map(|(layer, values)| {
                values.get(key.name).map(|value| (Some(value), *layer))
            });
        set.unwrap_or((None, ConfigLayer::Default))
    }

    /// Updates the settings after a file was changed: a key was set, or removed if there is no
    /// value.
    pub(crate) fn note_change(
        &mut self,
        layer: ConfigLayer,
        key: &SettingKey,
        value: Option<SettingValue>,
    ) {
        let values = self.layers.entry(layer).or_default();
        match value {
            Some(value) => values.insert(key.name, value),
            None => values.remove(key.name),
        };
        self.ignored.retain(|ignored| layer != ConfigLayer::Project || ignored.key != key.name);
    }

    fn setting(&self, name: &str) -> Option<&SettingValue> {
        self.layers.values().rev().find_map(|values| values.get(name))
    }

    pub fn duration(&self, name: &str) -> Option<Duration> {
        match self.setting(name)? {
            SettingValue::Seconds(duration) | SettingValue::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        if let SettingValue::Text(text) = self.setting(name)? { Some(text) } else { None }
    }

    pub fn words(&self, name: &str) -> &[String] {
        if let Some(SettingValue::Words(words)) = self.setting(name) { words } else { &[] }
    }

    /// Returns the number that this key is set to.
    pub fn count(&self, name: &str) -> Option<u64> {
        if let SettingValue::Count(count) = self.setting(name)? { Some(*count) } else { None }
    }

    /// Whether this key is set to true.
    pub fn is_on(&self, name: &str) -> bool {
        self.setting(name) == Some(&SettingValue::Bool(true))
    }

    /// Returns when to use colour.
    pub fn color(&self) -> ColorMode {
        if let Some(SettingValue::Color(color)) = self.setting(key::COLOR) {
            *color
        } else {
            ColorMode::Auto
        }
    }

    /// Returns the user's own settings file, which need not exist.
    pub fn user_file(&self) -> Result<&Path, CommandError> {
        self.user_file.as_deref().ok_or_else(|| {
            CommandError::not_found("there is no directory for your own settings")
                .hinted("set HOME or XDG_CONFIG_HOME")
        })
    }
}

fn defaults() -> LayerValues {
    let parsed = SettingKey::all().iter().filter_map(|key| {
        Some((key.name, key.parse(key.default?).expect("defaults are valid: see the test")))
    });
    parsed.collect()
}

fn from_environment(environment: &Environment) -> Result<LayerValues, CommandError> {
    let mut values = LayerValues::new();
    for key in SettingKey::all() {
        let Some(variable) = key.variable else { continue };
        let Some(text) = environment.text(variable) else { continue };
        let value = key.parse(text).map_err(|error| {
            error.with_context(format!("the variable {variable} cannot be used"))
        })?;
        values.insert(key.name, value);
    }
    Ok(values)
}

fn from_flags(global: &GlobalArgs) -> LayerValues {
    let mut values = LayerValues::new();
    if let Some(timeout) = global.lock_timeout {
        values.insert(key::LOCK_TIMEOUT, SettingValue::Seconds(timeout));
    }
    if let Some(color) = global.color {
        values.insert(key::COLOR, SettingValue::Color(color));
    }
    if global.no_redact {
        values.insert(key::REDACT_ENABLED, SettingValue::Bool(false));
    }
    if global.no_pager {
        values.insert(key::PAGER, SettingValue::Text(String::new()));
    }
    values
}

fn read_file(path: &Path, layer: ConfigLayer) -> Result<LayerValues, CommandError> {
    let about = |error: CommandError| {
        error
            .with_context(format!("'{}' cannot be used", path.display()))
            .hinted("correct the file, or move it away")
    };
    match read_settings_file(path, layer) {
        Ok(text) => read_text(&text, layer).map_err(about),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LayerValues::new()),
        Err(error) => Err(CommandError::io_at("cannot read", path, error)
            .hinted("correct the file, or move it away")),
    }
}

/// Reads a settings file. A project's file must not be a link: it could lead to the settings of
/// another project.
fn read_settings_file(path: &Path, layer: ConfigLayer) -> io::Result<String> {
    if layer == ConfigLayer::Project && fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link, not a file"));
    }
    plain_file::read_text(path, MAX_FILE_BYTES)
}

/// Parses a settings file of this layer.
pub(crate) fn read_text(text: &str, layer: ConfigLayer) -> Result<LayerValues, CommandError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let line = line.map(|line| format!(" in line {line}")).unwrap_or_default();
        CommandError::invalid(format!("it is not TOML{line}: {}", error.message()))
    })?;
    let mut values = LayerValues::new();
    read_table("", &table, layer, &mut values)?;
    Ok(values)
}

fn read_table(
    above: &str,
    table: &toml::Table,
    layer: ConfigLayer,
    values: &mut LayerValues,
) -> Result<(), CommandError> {
    for (name, value) in table {
        let name = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let text = match value {
            toml::Value::Table(table) => {
                read_table(&name, table, layer, values)?;
                continue;
            }
            toml::Value::String(text) => text.clone(),
            toml::Value::Array(_) => {
                let write = match SettingKey::find(&name)?.shape {
                    key::SettingType::Words | key::SettingType::SessionKinds => {
                        ": write one text, with spaces between the words"
                    }
                    _ => "",
                };
                return Err(CommandError::invalid(format!("'{name}' is not a list{write}")));
            }
            other => other.to_string(),
        };
        let key = SettingKey::find(&name)?;
        if key.in_project == ProjectPermission::Never && layer == ConfigLayer::Project {
            return Err(key.refused_in_project());
        }
        values.insert(key.name, key.parse(&text)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
