//! The command line of forge: arguments, context, output. It is a library, so that the binary is
//! one line and tests can inspect the command tree.
//!
//! * [`args`] and [`commands`]: the arguments and functions of all commands.
//! * [`verb`]: the trait of commands, and the one place that runs them.
//! * [`context`], [`config`], [`discovery`]: the context of a command: directory, store, settings,
//!   clock.
//! * [`workspace`] and [`id_match`]: the store and the session of a command, and the ids that it
//!   names.
//! * [`session_reader`] and [`text`]: read the state at a moment, and the texts in it.
//! * [`session_page`]: reads the content of the page of a session.
//! * [`serve`]: the pages of all sessions over HTTP, for a browser of this machine.
//! * [`transcript`]: imports recorded agent sessions into the store.
//! * [`prompt_cache`]: the last answer for the prompt of a shell.
//! * [`text_arg`] and [`text_editor`]: texts that are given directly, as a file, on standard input,
//!   or in an editor.
//! * [`session_writer`]: how commands write: ids, automatic checkpoints.
//! * [`compaction`]: compactions of an agent's context, and what is lost in them.
//! * [`hook`]: handles the hooks of coding agents.
//! * [`report`] and [`output`]: the results of commands, and how they are printed: as text for
//!   people or as one JSON document.
//! * [`mcp`]: the same commands for coding agents, over the Model Context Protocol.
//! * [`time_zone`]: whether the time zone for input and output is known.
//! * [`child_process`] and [`git`]: external programs.
//! * [`integration`] and [`doctor`]: install forge in a coding agent, and check that it works.
//! * [`error`]: errors with exit codes and hints.

#![allow(missing_docs, reason = "an application: a clear name needs no sentence")]

pub mod args;
pub mod child_process;
pub mod commands;
pub mod compaction;
pub mod config;
pub mod context;
pub mod database;
pub mod discovery;
pub mod doctor;
pub mod error;
pub mod git;
pub mod hook;
pub mod id_match;
pub mod integration;
pub mod mcp;
pub mod output;
mod panic;
pub mod private_files;
pub mod prompt_cache;
pub mod remote;
pub mod report;
pub mod serve;
pub mod session_page;
pub mod session_reader;
pub mod session_writer;
pub mod text;
pub mod text_arg;
pub mod text_editor;
pub mod time_zone;
pub mod transcript;
pub mod verb;
pub mod workspace;

use args::{ForgeArgs, RawOutputFlags};
use clap::error::ErrorKind as ClapKind;
use clap::{Args as _, CommandFactory, FromArgMatches};
use context::{Context, Environment};
use error::CommandError;
use std::ffi::OsString;

/// Runs `forge` with these arguments, which begin with its own name, and returns the exit code.
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
        // Another exit code could stop the agent that called the hook.
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

/// Ends the process with this exit code, without RocksDB's exit handlers. These wait half a
/// millisecond for idle threads to end, without any benefit: files were synced when they were
/// written.
pub fn exit_process(code: u8) -> ! {
    use std::io::Write;
    // Without a reader, a failure cannot be reported.
    let _ = std::io::stdout().flush();
    #[cfg(unix)]
    signal_hook::low_level::exit(code.into());
    #[cfg(not(unix))]
    std::process::exit(code.into());
}

/// Adds `brief` to a bare `forge` if FORGE_STORE is set or the project has a store. Otherwise it
/// shows the help.
fn with_default_verb(mut arguments: Vec<OsString>, environment: &Environment) -> Vec<OsString> {
    let has_store = || {
        environment.value("FORGE_STORE").is_some()
            || std::env::current_dir()
                .is_ok_and(|start| discovery::find_store(&start, environment).is_ok())
    };
    if arguments.len() == 1 && has_store() {
        arguments.push("brief".into());
    }
    arguments
}

/// Turns `forge help X Y` into `forge X Y --help`.
fn with_help_flag(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// Returns the words after `forge hook`, if that is the called command.
fn hook_arguments(arguments: &[OsString]) -> Option<Vec<String>> {
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    (words.next()? == "hook").then(|| words.collect())
}

fn parse_and_run(
    arguments: Vec<OsString>,
    environment: &Environment,
    form: &mut RawOutputFlags,
) -> Result<u8, CommandError> {
    let arguments = with_help_flag(with_default_verb(arguments, environment));
    let is_hook = hook_arguments(&arguments).is_some();
    if is_hook {
        hook::leave_removed_directory(environment);
    }
    let tree = args::without_empty_variables(ForgeArgs::command());
    let mut tree = tree.color(match form.color.unwrap_or_default() {
        args::ColorMode::Auto => clap::ColorChoice::Auto,
        args::ColorMode::Always => clap::ColorChoice::Always,
        args::ColorMode::Never => clap::ColorChoice::Never,
    });
    let mut parse = |arguments: &[OsString]| {
        parse_alone(&tree, arguments)
            .map_or_else(|| tree.try_get_matches_from_mut(arguments), Ok)
            .and_then(|matches| ForgeArgs::from_arg_matches(&matches))
    };
    let mut parsed = parse(&arguments);
    if let Err(error) = &parsed
        && !is_hook
        && let Some(with_text) = text_editor::with_missing_text(&arguments, error, environment)?
    {
        parsed = parse(&with_text);
    }
    let args = match parsed {
        Ok(args) => args,
        Err(error) if is_hook && error.use_stderr() => return Err(CommandError::usage(&error)),
        Err(error) if error.kind() == ClapKind::DisplayHelp || arguments.len() == 1 => {
            let tree = args::example::with_examples(tree);
            let shown = tree.try_get_matches_from(arguments).err().unwrap_or(error);
            return answer_parse_error(&shown, *form);
        }
        Err(error) if error.kind() == ClapKind::DisplayVersion => {
            return answer_parse_error(&error, *form);
        }
        Err(error) => {
            // The subcommands of a command are built when it is called.
            tree.build();
            let error = args::wrong_usage::with_tips(&tree, &arguments, error);
            return answer_parse_error(&error, *form);
        }
    };
    let mut context = Context::new(args.global, environment.clone())?;
    form.color = Some(context.config.color());
    if !is_hook && !args.command.is_silent() {
        time_zone::warn_if_unknown(&context);
        if !args.command.is_about_trust() {
            context.warn_of_ignored_settings();
        }
    }
    verb::Command::execute(&args.command, &mut context)?;
    context.out.flush()?;
    // About a hundred commands with their arguments: the system frees them faster.
    std::mem::forget(tree);
    Ok(context.final_exit_code())
}

/// Parses the arguments with a tree that contains only the command that they name: each further
/// command would get a copy of every global flag, half a megabyte that most calls do not need.
/// `None` if that is not enough: only the whole tree can report errors or print help.
fn parse_alone(tree: &clap::Command, arguments: &[OsString]) -> Option<clap::ArgMatches> {
    let named = arguments.iter().skip(1).find_map(|word| tree.find_subcommand(word))?;
    let alone = args::GlobalArgs::augment_args(clap::Command::new(tree.get_name().to_owned()));
    let alone = args::without_empty_variables(alone);
    alone.subcommand(named.clone().infer_subcommands(true)).try_get_matches_from(arguments).ok()
}

/// Handles help and version, which are results; anything else is wrong usage, which clap explains
/// best.
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
