//! Arguments that are built only when their command is called.

use super::moment;
use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::ops::Deref;

/// The arguments of a command, built late. There are about a hundred commands, and a process calls
/// one of them: building the arguments of all of them took as long as running many a command.
#[derive(Clone, Debug)]
pub struct LazyArgs<T>(T);

impl<T> Deref for LazyArgs<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for LazyArgs<T> {
    fn from(told: T) -> Self {
        Self(told)
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

/// Adds the arguments that `make` adds. The description of the command stays, because it is needed
/// where all commands are listed.
fn deferred(command: Command, make: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let long = command.get_long_about().cloned();
    let command = moment::allow_hyphens(make(command)).about(about);
    // Without a longer text, the help shows the short one.
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
