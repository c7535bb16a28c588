//! The command line: global flags, and one subcommand.

mod command_groups;
pub mod example;
pub mod field_option;
mod kind_table;
pub mod lazy;
pub mod list_format;
pub mod moment;
mod root;
pub mod select;
pub mod stdin_text;
pub mod value;
pub mod wrong_usage;

pub use root::ForgeArgs;

use std::path::PathBuf;
use std::time::Duration;

/// Flags every command knows.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Directory of the store; the nearest '.forge' above by default
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "PATH",
        env = "FORGE_STORE",
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,

    /// Session to work in; the current one by default
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "NAME|ID",
        env = "FORGE_SESSION",
        hide_env_values = true
    )]
    pub session: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long, global = true, hide_short_help = true)]
    pub json: bool,

    /// When to use colour
    #[arg(long, global = true, hide_short_help = true, value_name = "WHEN", value_enum)]
    pub color: Option<ColorMode>,

    /// Print long output at once instead of through a pager
    #[arg(long, global = true, hide_short_help = true)]
    pub no_pager: bool,

    /// Seconds to wait for a lock that another process holds (default 5)
    #[arg(long, global = true, hide_short_help = true, value_name = "SECONDS", value_parser = value::parse_seconds)]
    pub lock_timeout: Option<Duration>,

    /// Store secrets instead of removing them
    #[arg(long, global = true, hide_short_help = true)]
    pub no_redact: bool,

    /// Text: secrets that contain it are stored; 'kind:NAME' for all of a kind
    #[arg(long, global = true, hide_short_help = true, value_name = "TEXT", value_parser = value::allowed_secret)]
    pub redact_allow: Vec<String>,

    /// Print results, warnings and errors only
    #[arg(short, long, global = true, hide_short_help = true)]
    pub quiet: bool,

    /// Report on stderr what is done; twice for more
    #[arg(short, long, global = true, hide_short_help = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Ignores the empty variables of a command's options. clap would refuse them, as it refuses an
/// empty value of the option.
pub fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        let is_empty = value.is_some_and(|value| value.is_empty());
        if is_empty { arg.env(None::<&'static str>) } else { arg }
    })
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorMode {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The output flags among the arguments, read even if the arguments cannot be parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawOutputFlags {
    /// Whether `--json` is among them.
    pub json: bool,
    /// The last valid value of `--color`.
    pub color: Option<ColorMode>,
}

impl RawOutputFlags {
    /// Reads the flags from arguments that may otherwise be invalid; stops at `--`.
    pub fn from_raw_args(args: &[std::ffi::OsString]) -> Self {
        let mut flags = Self::default();
        let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy());
        while let Some(word) = words.next() {
            let color = match word.as_ref() {
                "--" => break,
                "--json" => {
                    flags.json = true;
                    continue;
                }
                "--color" => words.next().map(std::borrow::Cow::into_owned),
                other => other.strip_prefix("--color=").map(str::to_owned),
            };
            if let Some(color) = color {
                flags.color = clap::ValueEnum::from_str(&color, false).ok().or(flags.color);
            }
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_definition_of_all_commands() {
        ForgeArgs::command().debug_assert();
    }

    #[test]
    fn help_texts_are_lines_without_full_stop() {
        fn check(command: &clap::Command) {
            let about = command.get_about().expect("every command says what it does").to_string();
            assert!(!about.ends_with('.'), "{}: {about}", command.get_name());
            for arg in command.get_arguments() {
                let help = arg.get_help().expect("every argument is explained").to_string();
                assert!(!help.ends_with('.'), "{} {}: {help}", command.get_name(), arg.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        let mut tree = ForgeArgs::command();
        tree.build();
        check(&tree);
    }

    #[test]
    fn output_flags_are_read_from_arguments_that_do_not_parse() {
        let args = ["forge", "nonsense", "--color", "never", "--json", "--", "--color=always"];
        let flags = RawOutputFlags::from_raw_args(&args.map(Into::into));
        assert_eq!(flags, RawOutputFlags { json: true, color: Some(ColorMode::Never) });
        let args = ["forge", "command", "record", "--", "x", "--json"];
        assert_eq!(RawOutputFlags::from_raw_args(&args.map(Into::into)), RawOutputFlags::default());
    }
}
