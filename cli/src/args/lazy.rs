//! Arguments that are built only when their command is called.

use super::{moment, without_empty_variables};
use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::ops::Deref;

/// The arguments of a command, built when the command is called. A process calls one of about a
/// hundred commands: to build the arguments of all would take as long as to run a quick command.
#[derive(Clone, Debug)]
pub struct LazyArgs<T>(T);

impl<T> Deref for LazyArgs<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for LazyArgs<T> {
    fn from(args: T) -> Self {
        Self(args)
    }
}

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the arguments that `make` adds. The command keeps its description, which the list of all
/// commands shows.
fn deferred(command: Command, make: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let long = command.get_long_about().cloned();
    let command = without_empty_variables(moment::allow_hyphens(make(command))).about(about);
    // Without a long description, the help shows the short one.
    command.long_about(long.map_or(Resettable::Reset, Resettable::Value))
}

impl<T: Args> Args for LazyArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| deferred(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| deferred(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for LazyArgs<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| deferred(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| deferred(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}
