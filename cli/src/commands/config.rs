//! `forge config`.

use crate::config::key::REDACT_ALLOW;
use crate::config::{Key, Layer, edit};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::config::{Changed, Setting, Settings};
use crate::workplace::{refuse_secret, without_secrets};

/// Read and change settings.
#[derive(Debug, clap::Subcommand)]
pub enum ConfigCommand {
    /// List all settings, their values and where these come from
    List,
    /// Print the value of one setting
    Get(GetArgs),
    /// Change a setting in the project's file, or in your own
    Set(SetArgs),
}

/// Arguments of `forge config get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Name the setting
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// Arguments of `forge config set`.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// Name the setting
    #[arg(value_name = "KEY")]
    pub key: String,

    /// Give it this value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub value: String,

    /// Change your own file, which holds for all projects
    #[arg(long)]
    pub user: bool,
}

/// Does it.
pub fn run(command: &ConfigCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        ConfigCommand::List => {
            let settings = Key::all().iter().map(|key| setting(key, context)).collect();
            context.out.emit(&Settings { settings })
        }
        ConfigCommand::Get(args) => {
            let found = setting(Key::named(&args.key)?, context);
            context.out.emit(&found)
        }
        ConfigCommand::Set(args) => set(args, context),
    }
}

fn setting(key: &Key, context: &Context) -> Setting {
    let (value, layer) = context.config.value(key);
    Setting { key: key.name, value: value.map(ToString::to_string), from: layer }
}

fn set(args: &SetArgs, context: &mut Context) -> Result<(), CommandError> {
    let key = Key::named(&args.key)?;
    let value = key.parse(&args.value)?;
    if key.name != REDACT_ALLOW {
        refuse_secret(context, "value", &args.value)?;
    } else if without_secrets(context, &args.value) != args.value {
        return Err(CommandError::invalid(
            "the value holds a whole secret, and the file is read by others",
        )
        .hinted("a part of it lets it through too: its last 8 characters"));
    }
    let layer = if args.user { Layer::User } else { Layer::Project };
    if layer == Layer::Project && key.user_only {
        return Err(key.refused_in_project());
    }
    let path = if args.user {
        context.config.user_file()?.to_owned()
    } else {
        let found = context.store_directory();
        found.map_err(|error| error.hinted("'--user' changes your own file"))?.join("config.toml")
    };
    edit::set(&path, key, &value)?;
    context.config.put(layer, key, value.clone());
    let (effective, from) = context.config.value(key);
    let overridden = (from > layer && effective != Some(&value)).then_some(from);
    context.out.emit(&Changed { key: key.name, value: value.to_string(), to: layer, overridden })
}
