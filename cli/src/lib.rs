//! The command line of forge: arguments, context, output. A library, so that the binary is a line and tests see the
//! tree of commands.
//!
//! * [`args`] and [`commands`]: what can be said, and what it does.
//! * [`context`], [`config`], [`discovery`]: where a command runs: directory, store, settings, clock.
//! * [`workspace`]: the store and the session a command works in.
//! * [`session_reader`] and [`text`]: what is known at a moment, and the texts in it.
//! * [`transcript`]: recorded agent sessions on their way into the store.
//! * [`text_arg`]: texts given as themselves, as a file, or on standard input.
//! * [`session_writer`]: how commands write: ids, automatic checkpoints.
//! * [`compaction`]: compactions of an agent's context, and what is lost in them.
//! * [`hook`]: what happens when a coding agent calls one of its hooks.
//! * [`report`] and [`output`]: what a command found, and how it is printed: text for people or one JSON document.
//! * [`mcp`]: the same commands for coding agents, over the Model Context Protocol.
//! * [`time_zone`]: whether the zone in which times are read and shown is known.
//! * [`child_process`] and [`git`]: what is run outside.
//! * [`integration`] and [`doctor`]: what makes forge part of a coding agent, and whether that works.
//! * [`error`]: what went wrong, the exit code, and what to do next.

pub mod args;
pub mod child_process;
pub mod commands;
pub mod compaction;
pub mod config;
pub mod context;
pub mod discovery;
pub mod doctor;
pub mod error;
pub mod git;
pub mod hook;
pub mod integration;
pub mod mcp;
pub mod output;
mod panic;
pub mod private_files;
pub mod report;
pub mod session_reader;
pub mod session_writer;
pub mod text;
pub mod text_arg;
pub mod time_zone;
pub mod transcript;
pub mod workspace;

use args::{ForgeArgs, RawOutputFlags};
use clap::error::{ContextKind, ContextValue, ErrorKind as ClapKind};
use clap::{Args as _, CommandFactory, FromArgMatches};
use context::{Context, Environment};
use error::CommandError;
use std::ffi::OsString;

/// Runs `forge` with these arguments, the first of which is its own name, and says how to exit.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> u8 {
    #[cfg(target_os = "linux")]
    if let Some(code) = git::guard::run_if_guard(&arguments) {
        return code;
    }
    let environment = Environment::from_process();
    let mut form = RawOutputFlags::from_raw_args(&arguments);
    let hook = hook_arguments(&arguments);
    let outcome = panic::catch_panics(|| parse_and_run(arguments, &environment, &mut form));
    match (outcome, hook) {
        // Anything else would stop the agent that called it.
        (Ok(_), Some(_)) => error::EXIT_OK,
        (Err(error), Some(words)) => {
            hook::note_failure(&environment, &words, &error);
            error::EXIT_OK
        }
        (Ok(code), None) => code,
        (Err(error), None) => {
            output::print_error(&error, form, &environment);
            error.exit_code()
        }
    }
}

/// Ends the process with this code. What RocksDB has put down to be done at the end waits for its idle threads to wake up and end
/// themselves, half a millisecond that nothing is gained by: files were synced when they were written.
pub fn exit_process(code: u8) -> ! {
    use std::io::Write;
    // Without a reader there is nobody to tell.
    let _ = std::io::stdout().flush();
    #[cfg(unix)]
    signal_hook::low_level::exit(code.into());
    #[cfg(not(unix))]
    std::process::exit(code.into());
}

/// What follows `forge hook`, if that is what was called.
fn hook_arguments(arguments: &[OsString]) -> Option<Vec<String>> {
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    (words.next()? == "hook").then(|| words.collect())
}

fn parse_and_run(
    arguments: Vec<OsString>,
    environment: &Environment,
    form: &mut RawOutputFlags,
) -> Result<u8, CommandError> {
    let is_hook = hook_arguments(&arguments).is_some();
    if is_hook {
        hook::leave_removed_directory(environment);
    }
    let mut tree = ForgeArgs::command().color(match form.color.unwrap_or_default() {
        args::ColorMode::Auto => clap::ColorChoice::Auto,
        args::ColorMode::Always => clap::ColorChoice::Always,
        args::ColorMode::Never => clap::ColorChoice::Never,
    });
    let parsed = parse_alone(&tree, &arguments)
        .map_or_else(|| tree.try_get_matches_from_mut(arguments), Ok)
        .and_then(|matches| ForgeArgs::from_arg_matches(&matches));
    let args = match parsed {
        Ok(args) => args,
        Err(error) if is_hook && error.use_stderr() => return Err(CommandError::usage(&error)),
        Err(error) => return answer_parse_error(&with_right_command(tree, error), *form),
    };
    let mut context = Context::new(args.global, environment.clone())?;
    form.color = Some(context.color());
    if !is_hook {
        time_zone::warn_if_unknown(&context);
        if !args.command.is_about_trust() {
            context.warn_of_ignored_settings();
        }
    }
    args.command.run(&mut context)?;
    context.out.flush()?;
    // Some hundred commands with their arguments: the system frees them faster.
    std::mem::forget(tree);
    Ok(context.final_exit_code())
}

/// What the arguments say if the command they name were the only one: each further one is given a copy of every flag that all
/// know, half a megabyte that most calls have no use for. `None` where that is not enough: only the whole tree can say what is
/// wrong, or help.
fn parse_alone(tree: &clap::Command, arguments: &[OsString]) -> Option<clap::ArgMatches> {
    let named = arguments.iter().skip(1).find_map(|word| tree.find_subcommand(word))?;
    let alone = args::GlobalArgs::augment_args(clap::Command::new(tree.get_name().to_owned()));
    alone.subcommand(named.clone()).try_get_matches_from(arguments).ok()
}

/// Of a command that there is, but under another: where.
fn with_right_command(tree: clap::Command, error: clap::Error) -> clap::Error {
    // Where more have one it says nothing: each kind of entity has a list.
    const MOST: usize = 3;
    let (mut tree, mut error) = (tree, error);
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    // What stands under a command is made when it is called.
    tree.build();
    let under = tree.get_subcommands().filter(|group| group.find_subcommand(word).is_some());
    let found: Vec<_> = under.map(|group| format!("{} {word}", group.get_name())).collect();
    if (1..=MOST).contains(&found.len()) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(found));
    }
    error
}

/// Help and version are answers; the rest is wrong usage, which clap explains better than we could.
fn answer_parse_error(error: &clap::Error, form: RawOutputFlags) -> Result<u8, CommandError> {
    let asked = matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion);
    if !asked && form.json {
        return Err(CommandError::usage(error));
    }
    if !asked && output::print_hidden_usage(error) {
        return Ok(error::EXIT_INVALID);
    }
    match error.print() {
        Err(broken) if asked => Err(CommandError::io("cannot write the help", broken)),
        _ => Ok(if asked { error::EXIT_OK } else { error::EXIT_INVALID }),
    }
}
