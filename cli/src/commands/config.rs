//! `forge config`.

use crate::args::value::SECRET_KINDS_HINT;
use crate::config::key::REDACT_ALLOW;
use crate::config::{Config, ConfigLayer, ProjectPermission, SettingKey, edit, trust};
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use crate::report::config::{
    ConfigListReport, ConfigSetReport, ConfigTrustReport, ConfigUnsetReport, SettingReport,
};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::{redact, refuse_secret};
use forge_store::redact::unknown_kind;
use std::path::PathBuf;

/// Read and change settings.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// List all settings, their values and where these come from
    List(ConfigListArgs),
    /// Print the value of one setting
    Get(ConfigGetArgs),
    /// Change a setting in the project's file, or in your own
    Set(ConfigSetArgs),
    /// Remove a setting from the project's file, or from your own
    Unset(ConfigUnsetArgs),
    /// Allow what the project's file sets now, and a store outside the project
    Trust(ConfigTrustArgs),
}

#[derive(Debug, clap::Args)]
pub struct ConfigGetArgs {
    /// Setting
    #[arg(value_name = "KEY")]
    pub key: String,
}

#[derive(Debug, clap::Args)]
pub struct ConfigSetArgs {
    /// Setting
    #[arg(value_name = "KEY")]
    pub key: String,

    /// Value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub value: String,

    /// Change your own file, which applies to all projects
    #[arg(long)]
    pub user: bool,
}

#[derive(Debug, clap::Args)]
pub struct ConfigUnsetArgs {
    /// Setting
    #[arg(value_name = "KEY")]
    pub key: String,

    /// Change your own file, which applies to all projects
    #[arg(long)]
    pub user: bool,
}

#[derive(Debug, clap::Args)]
pub struct ConfigTrustArgs {
    /// Withdraw everything that was allowed for this project
    #[arg(long)]
    pub forget: bool,
}

commands!(ConfigCommand: List, Get, Set, Unset, Trust);

#[derive(Debug, clap::Args)]
pub struct ConfigListArgs {}

impl Verb for ConfigListArgs {
    const NAME: &'static str = "config list";
    type Opened = ();
    type Report = ConfigListReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let settings = SettingKey::all().iter().map(|key| setting(key, context)).collect();
        Ok(ConfigListReport { settings, ignored: context.config.ignored().to_vec() })
    }
}

impl Verb for ConfigGetArgs {
    const NAME: &'static str = "config get";
    type Opened = ();
    type Report = SettingReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let setting = setting(SettingKey::find(&self.key)?, context);
        if setting.value.is_none() {
            context.out.print_status(&format!("'{}' is not set.", setting.key));
        }
        Ok(setting)
    }
}

fn setting(key: &SettingKey, context: &Context) -> SettingReport {
    let (value, layer) = context.config.value(key);
    SettingReport { key: key.name, value: value.map(ToString::to_string), from: layer }
}

impl Verb for ConfigSetArgs {
    const NAME: &'static str = "config set";
    type Opened = ();
    type Report = ConfigSetReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let key = SettingKey::find(&self.key)?;
        let value = key.parse(&self.value)?;
        if key.name != REDACT_ALLOW {
            refuse_secret(context, "value", &self.value)?;
        } else if redact(context, &self.value) != self.value {
            return Err(CommandError::invalid(
                "the value holds a whole secret, and the file is read by others",
            )
            .hinted("a part of it lets it through too: its last 8 characters"));
        } else if let Some(kind) = self.value.split_whitespace().find_map(unknown_kind) {
            return Err(CommandError::invalid(format!("there is no kind of secrets '{kind}'"))
                .hinted(SECRET_KINDS_HINT));
        }
        let layer = layer_to_change(self.user);
        if layer == ConfigLayer::Project && key.in_project == ProjectPermission::Never {
            return Err(key.refused_in_project());
        }
        let path = settings_file(layer, context)?;
        edit::set(&path, layer, key, &value)?;
        if let Some(store) =
            path.parent().filter(|_| layer == ConfigLayer::Project && key.weakens(&value))
        {
            trust::allow_settings(&context.environment, store, &[(key, value.clone())])?;
        }
        context.config.note_change(layer, key, Some(value.clone()));
        let (effective, from) = context.config.value(key);
        let overridden = (from > layer && effective != Some(&value)).then_some(from);
        Ok(ConfigSetReport { key: key.name, value: value.to_string(), to: layer, overridden })
    }
}

/// Returns the layer whose file a command changes.
const fn layer_to_change(user: bool) -> ConfigLayer {
    if user { ConfigLayer::User } else { ConfigLayer::Project }
}

/// Returns the settings file of the project, or the user's own, which need not exist.
fn settings_file(layer: ConfigLayer, context: &Context) -> Result<PathBuf, CommandError> {
    if layer == ConfigLayer::User {
        return Ok(context.config.user_file()?.to_owned());
    }
    let found = context.store_directory();
    let store = found.map_err(|error| error.hinted("'--user' changes your own file"))?;
    Ok(store.join("config.toml"))
}

impl Verb for ConfigUnsetArgs {
    const NAME: &'static str = "config unset";
    type Opened = ();
    type Report = ConfigUnsetReport;

    fn run(&self, (): &(), context: &mut Context) -> VerbResult<Self> {
        let key = SettingKey::find(&self.key)?;
        let layer = layer_to_change(self.user);
        let path = settings_file(layer, context)?;
        if !edit::unset(&path, layer, key)? {
            let message = format!("'{}' is not set in '{}'", key.name, path.display());
            return Err(CommandError::not_found(message)
                .hinted(format!("'forge config list' says where '{}' comes from", key.name)));
        }
        context.config.note_change(layer, key, None);
        Ok(ConfigUnsetReport { unset_in: layer, now: setting(key, context) })
    }
}

impl Verb for ConfigTrustArgs {
    const NAME: &'static str = "config trust";
    type Opened = ();
    type Report = ConfigTrustReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let link = match &context.global.store {
            Some(_) => None,
            None => discovery::outward_link(&context.cwd),
        };
        if self.forget {
            let store = link.map_or_else(|| context.store_directory(), |(link, _)| Ok(link))?;
            trust::forget(&context.environment, &trust::noted_paths(&store))?;
            let store = store.display().to_string();
            return Ok(ConfigTrustReport {
                store,
                link: None,
                settings: Vec::new(),
                forgotten: true,
            });
        }
        if let Some((link, target)) = &link {
            trust::allow_link(&context.environment, link, target)?;
        }
        let store = context.store_directory()?;
        if link.is_some() {
            context.config = Config::read(&context.global, &context.environment, Some(&store))?;
        }
        let settings = context.config.ignored().to_vec();
        let mut values = Vec::new();
        for setting in &settings {
            let key = SettingKey::find(setting.key)?;
            values.push((key, key.parse(&setting.value)?));
        }
        trust::allow_settings(&context.environment, &store, &values)?;
        let link = link.map(|(_, target)| target.display().to_string());
        let store = store.display().to_string();
        Ok(ConfigTrustReport { store, link, settings, forgotten: false })
    }
}
