//! Settings and their layers: a flag beats the environment, that the project's file, that the user's own, that the
//! default. A key or value nobody knows is refused, so that a slip of the pen does not pass for a setting.

pub mod edit;
pub mod key;
pub mod trust;

pub use key::{InProject, Key, Value};
pub use trust::IgnoredSetting;

use crate::args::{Color, Global};
use crate::context::Environment;
use crate::error::CommandError;
use forge_store::plain_file;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use trust::Allowed;

/// The largest file of settings that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where a setting comes from; the later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// forge itself.
    Default,
    /// `forge/config.toml` in the user's directory of settings.
    User,
    /// `.forge/config.toml`.
    Project,
    /// An environment variable.
    Environment,
    /// A flag on the command line.
    Flag,
}

impl fmt::Display for Layer {
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

type Values = BTreeMap<&'static str, Value>;

/// All settings.
#[derive(Debug)]
pub struct Config {
    layers: BTreeMap<Layer, Values>,
    user_file: Option<PathBuf>,
    ignored: Vec<IgnoredSetting>,
}

impl Config {
    /// Reads the settings that hold for this store, or for none.
    pub fn read(
        global: &Global,
        environment: &Environment,
        store: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let user_file = environment.config_directory().map(|path| path.join("forge/config.toml"));
        let mut layers = BTreeMap::from([
            (Layer::Default, defaults()),
            (Layer::Environment, from_environment(environment)?),
            (Layer::Flag, from_flags(global)),
        ]);
        if let Some(path) = &user_file {
            layers.insert(Layer::User, read_file(path, Layer::User)?);
        }
        if let Some(store) = store {
            layers.insert(Layer::Project, read_file(&store.join("config.toml"), Layer::Project)?);
        }
        let mut config = Self { layers, user_file, ignored: Vec::new() };
        if let Some(store) = store {
            for (key, value) in Allowed::not_allowed(environment, store, config.weakening()) {
                config.layers.entry(Layer::Project).or_default().remove(key.name);
                config.ignored.push(IgnoredSetting { key: key.name, value: value.to_string() });
            }
        }
        Ok(config)
    }

    /// The settings of the project that weaken what holds without it.
    fn weakening(&self) -> Vec<(&'static Key, Value)> {
        let own = |key: &Key| {
            let layers = [Layer::User, Layer::Default].iter();
            layers.filter_map(|layer| self.layers.get(layer)?.get(key.name)).next()
        };
        let project = self.layers.get(&Layer::Project).into_iter().flatten();
        project
            .filter_map(|(name, value)| Some((Key::named(name).ok()?, value)))
            .filter(|(key, value)| key.weakens(value) && own(key) != Some(value))
            .map(|(key, value)| (key, value.clone()))
            .collect()
    }

    /// The settings of the project that are ignored, since nobody allowed them.
    #[must_use]
    pub fn ignored(&self) -> &[IgnoredSetting] {
        &self.ignored
    }

    /// The value of this key, if it has one, and where that comes from.
    #[must_use]
    pub fn value(&self, key: &Key) -> (Option<&Value>, Layer) {
        let set =
            self.layers.iter().rev().find_map(|(layer, values)| {
                values.get(key.name).map(|value| (Some(value), *layer))
            });
        set.unwrap_or((None, Layer::Default))
    }

    /// Notes that a file was changed.
    pub(crate) fn put(&mut self, layer: Layer, key: &Key, value: Value) {
        self.layers.entry(layer).or_default().insert(key.name, value);
        self.ignored.retain(|ignored| layer != Layer::Project || ignored.key != key.name);
    }

    fn of(&self, name: &str) -> Option<&Value> {
        self.layers.values().rev().find_map(|values| values.get(name))
    }

    /// The duration this key is set to.
    #[must_use]
    pub fn duration(&self, name: &str) -> Option<Duration> {
        match self.of(name)? {
            Value::Seconds(duration) | Value::Duration(duration) => Some(*duration),
            _ => None,
        }
    }

    /// The text this key is set to.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Value::Text(text) = self.of(name)? { Some(text) } else { None }
    }

    /// The words this key is set to.
    #[must_use]
    pub fn words(&self, name: &str) -> &[String] {
        if let Some(Value::Words(words)) = self.of(name) { words } else { &[] }
    }

    /// The number this key is set to.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        if let Value::Count(count) = self.of(name)? { Some(*count) } else { None }
    }

    /// Whether this key is set to true.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.of(name) == Some(&Value::Bool(true))
    }

    /// When to use colour.
    #[must_use]
    pub fn color(&self) -> Color {
        if let Some(Value::Color(color)) = self.of(key::COLOR) { *color } else { Color::Auto }
    }

    /// The user's own file of settings, which need not exist.
    pub fn user_file(&self) -> Result<&Path, CommandError> {
        self.user_file.as_deref().ok_or_else(|| {
            CommandError::not_found("there is no place for settings of your own")
                .hinted("set HOME or XDG_CONFIG_HOME")
        })
    }
}

fn defaults() -> Values {
    let parsed = Key::all().iter().filter_map(|key| {
        Some((key.name, key.parse(key.default?).expect("defaults are valid: see the test")))
    });
    parsed.collect()
}

fn from_environment(environment: &Environment) -> Result<Values, CommandError> {
    let mut values = Values::new();
    for key in Key::all() {
        let Some(variable) = key.variable else { continue };
        let Some(text) = environment.text(variable) else { continue };
        let value = key
            .parse(text)
            .map_err(|error| error.within(format!("the variable {variable} cannot be used")))?;
        values.insert(key.name, value);
    }
    Ok(values)
}

fn from_flags(global: &Global) -> Values {
    let mut values = Values::new();
    if let Some(timeout) = global.lock_timeout {
        values.insert(key::LOCK_TIMEOUT, Value::Seconds(timeout));
    }
    if let Some(color) = global.color {
        values.insert(key::COLOR, Value::Color(color));
    }
    if global.no_redact {
        values.insert(key::REDACT_ENABLED, Value::Bool(false));
    }
    if global.no_pager {
        values.insert(key::PAGER, Value::Text(String::new()));
    }
    values
}

fn read_file(path: &Path, layer: Layer) -> Result<Values, CommandError> {
    let about = |error: CommandError| {
        error
            .within(format!("'{}' cannot be used", path.display()))
            .hinted("correct the file, or move it away")
    };
    match text_of(path, layer) {
        Ok(text) => read_text(&text, layer).map_err(about),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Values::new()),
        Err(error) => Err(CommandError::io(&format!("cannot read '{}'", path.display()), error)
            .hinted("correct the file, or move it away")),
    }
}

/// The text of a file of settings. A project's is no link: it could lead to settings of another project.
fn text_of(path: &Path, layer: Layer) -> io::Result<String> {
    if layer == Layer::Project && fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link, not a file"));
    }
    plain_file::read_text(path, MAX_FILE_BYTES)
}

/// The settings in the text of a file of this layer.
pub(crate) fn read_text(text: &str, layer: Layer) -> Result<Values, CommandError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let line = line.map(|line| format!(" in line {line}")).unwrap_or_default();
        CommandError::invalid(format!("it is not TOML{line}: {}", error.message()))
    })?;
    let mut values = Values::new();
    read_table("", &table, layer, &mut values)?;
    Ok(values)
}

fn read_table(
    above: &str,
    table: &toml::Table,
    layer: Layer,
    values: &mut Values,
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
                Key::named(&name)?;
                return Err(CommandError::invalid(format!("'{name}' is not a list")));
            }
            other => other.to_string(),
        };
        let key = Key::named(&name)?;
        if key.in_project == InProject::Never && layer == Layer::Project {
            return Err(key.refused_in_project());
        }
        values.insert(key.name, key.parse(&text)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
