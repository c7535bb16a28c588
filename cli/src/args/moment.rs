//! Arguments that name a moment. Their values may begin with a hyphen, such as `-2h`.

use clap::builder::{StringValueParser, TypedValueParser, ValueParserFactory};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, Command};
use std::any::TypeId;
use std::ffi::OsStr;
use std::str::FromStr;

/// A moment as typed: an id prefix, `#42`, a tag, a branch, `HEAD~3`, `branch@{T}` or a time.
///
/// The moment depends on the store and on the current time, so the text is resolved later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentArg(String);

impl MomentArg {
    /// Returns the text as it was typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads two moments `A..B`; without A, the first is `start`, and without B, the second is
    /// `HEAD`. Returns `None` if the text has no two dots.
    pub fn range(text: &str) -> Option<(Self, Self)> {
        let (from, to) = text.split_once("..")?;
        let moment = |text: &str, otherwise: &str| match text.trim() {
            "" => Self(otherwise.to_owned()),
            text => Self(text.to_owned()),
        };
        Some((moment(from, "start"), moment(to, "HEAD")))
    }
}

impl FromStr for MomentArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("name a moment: an id, '#42', a tag, a branch, 'HEAD~3' or a time".into());
        }
        Ok(Self(text.trim().to_owned()))
    }
}

impl ValueParserFactory for MomentArg {
    type Parser = MomentParser;

    fn value_parser() -> MomentParser {
        MomentParser
    }
}

/// Parses a [`MomentArg`]. An option in place of the moment is an error, as it is for the values
/// that clap does not allow to begin with a hyphen.
#[derive(Clone, Copy, Debug)]
pub struct MomentParser;

impl TypedValueParser for MomentParser {
    type Value = MomentArg;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<MomentArg, Error> {
        match value.to_str().filter(|text| is_option(text)) {
            Some(option) => Err(option_in_place(command, arg, option)),
            None => {
                StringValueParser::new().try_map(|text| text.parse()).parse_ref(command, arg, value)
            }
        }
    }
}

/// Whether a text is an option instead of a moment. A time that begins with a hyphen has a digit
/// after it, or several words.
fn is_option(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| {
        rest.starts_with('-')
            || rest.starts_with(char::is_alphabetic) && !rest.contains(char::is_whitespace)
    })
}

/// Returns the error for an option in place of a moment. For the value of another option, the error
/// is that the value is missing; for a positional argument, that there is no such option.
fn option_in_place(command: &Command, arg: Option<&Arg>, option: &str) -> Error {
    if let Some(arg) = arg.filter(|arg| !arg.is_positional()) {
        let mut error = Error::new(ErrorKind::InvalidValue).with_cmd(command);
        error.insert(ContextKind::InvalidArg, ContextValue::String(arg.to_string()));
        error.insert(ContextKind::InvalidValue, ContextValue::String(String::new()));
        return error;
    }
    let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(command);
    let name = option.split('=').next().unwrap_or(option);
    error.insert(ContextKind::InvalidArg, ContextValue::String(name.to_owned()));
    let usage = command.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    error
}

/// Whether the value of an argument is a moment.
pub fn is_moment(arg: &Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<MomentArg>()
}

/// Allows, in this command and its subcommands, values that begin with a hyphen for arguments that
/// name moments, and negative numbers for all other options. A number that is out of range is then
/// an invalid value instead of an unknown option.
pub(super) fn allow_hyphens(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        if is_moment(&arg) {
            arg.allow_hyphen_values(true)
        } else if arg.get_action().takes_values() && !arg.is_positional() {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    });
    command.mut_subcommands(allow_hyphens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ForgeArgs;
    use crate::args::wrong_usage::TEXT_ARGUMENTS;
    use clap::CommandFactory;

    /// Collects the commands that have arguments for moments, with the words that call them.
    fn with_moments(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        let is_moment = |arg: &&Arg| arg.get_value_parser().type_id() == TypeId::of::<MomentArg>();
        if command.get_arguments().any(|arg| is_moment(&arg)) {
            found.push((words.to_vec(), command.clone()));
        }
        for below in command.get_subcommands() {
            let words = [words, &[below.get_name().to_owned()]].concat();
            with_moments(below, &words, found);
        }
    }

    /// Returns a call of the command with only this argument and the required ones.
    fn call(words: &[String], command: &Command, moment: &Arg, given: &[&str]) -> Vec<String> {
        let mut call = [&["forge".to_owned()], words].concat();
        let given = given.iter().map(|word| (*word).to_owned());
        if let Some(long) = moment.get_long() {
            call.push(format!("--{long}"));
            call.extend(given.clone());
        }
        for arg in command.get_arguments() {
            let is_this = arg.get_id() == moment.get_id();
            match arg.get_long() {
                None if is_this => call.extend(given.clone()),
                // Before a later positional argument, each earlier one needs a value.
                None if arg.is_required_set()
                    || moment.is_positional() && arg.get_index() < moment.get_index() =>
                {
                    call.push(filler(arg));
                }
                Some(long) if arg.is_required_set() && !is_this => {
                    call.extend([format!("--{long}"), filler(arg)]);
                }
                _ => {}
            }
        }
        call
    }

    /// Parses the call, and adds the options that clap reports as missing.
    fn parsed(mut call: Vec<String>) -> Result<clap::ArgMatches, Error> {
        loop {
            let error = match ForgeArgs::command().try_get_matches_from(&call) {
                Ok(matches) => return Ok(matches),
                Err(error) => error,
            };
            let Some(ContextValue::Strings(missing)) = error
                .get(ContextKind::InvalidArg)
                .filter(|_| error.kind() == ErrorKind::MissingRequiredArgument)
            else {
                return Err(error);
            };
            let options = missing.iter().filter_map(|option| option.split(' ').next());
            let is_text = |name: &str| TEXT_ARGUMENTS.contains(&name.trim_matches(['<', '>']));
            let added: Vec<String> = options
                .filter(|option| option.starts_with("--") || is_text(option))
                .map(|option| if is_text(option) { "1".into() } else { format!("{option}=1") })
                .collect();
            if added.is_empty() {
                return Err(error);
            }
            call.extend(added);
        }
    }

    /// Returns a valid value of an argument.
    fn filler(arg: &Arg) -> String {
        let words = arg.get_possible_values();
        words.first().map_or_else(|| "1".to_owned(), |word| word.get_name().to_owned())
    }

    #[test]
    fn every_argument_for_a_moment_takes_a_time_that_begins_with_a_hyphen() {
        let mut tree = ForgeArgs::command();
        tree.build();
        let mut found = Vec::new();
        with_moments(&tree, &[], &mut found);
        let mut count = 0;
        for (words, command) in &found {
            for arg in command.get_arguments() {
                if arg.get_value_parser().type_id() != TypeId::of::<MomentArg>() {
                    continue;
                }
                count += 1;
                for time in ["-2h", "-1 day", "-90 minutes", "- 1h 5m", "-half an hour"] {
                    let mut call = call(words, command, arg, &[time]);
                    call.push("--json".to_owned());
                    let matches = parsed(call.clone());
                    let matches = matches.unwrap_or_else(|error| panic!("{call:?}: {error}"));
                    assert!(matches.get_flag("json"), "{call:?}");
                    let mut inner = &matches;
                    while let Some((_, below)) = inner.subcommand() {
                        inner = below;
                    }
                    let moment = inner.get_one::<MomentArg>(arg.get_id().as_str());
                    assert_eq!(moment.map(MomentArg::as_str), Some(time), "{call:?}");
                }
                for option in ["--json", "-q", "--no-such"] {
                    let call = call(words, command, arg, &[option]);
                    let outcome = parsed(call.clone());
                    let must_fail =
                        arg.is_required_set() || !arg.is_positional() || option == "--no-such";
                    assert_eq!(outcome.is_err(), must_fail, "{call:?}");
                }
            }
        }
        assert!(count > 60, "{count}");
    }

    fn refusal(words: &[&str]) -> String {
        ForgeArgs::command().try_get_matches_from(words).unwrap_err().to_string()
    }

    #[test]
    fn an_option_in_place_of_a_moment_is_refused_as_clap_does() {
        let message = refusal(&["forge", "checkpoint", "at", "--josn"]);
        assert!(message.contains("unexpected argument '--josn' found"), "{message}");
        assert!(message.contains("Usage: forge checkpoint at [OPTIONS] <T>"), "{message}");
        let message = refusal(&["forge", "checkpoint", "at", "-x"]);
        assert!(message.contains("unexpected argument '-x' found"), "{message}");
        let message = refusal(&["forge", "log", "--since", "--until", "2h"]);
        assert!(message.contains("a value is required for '--since <T>'"), "{message}");
        let message = refusal(&["forge", "log", "--since", "-q"]);
        assert!(message.contains("a value is required for '--since <T>'"), "{message}");
    }

    #[test]
    fn options_next_to_a_negative_moment_are_read_as_options() {
        for words in [
            &["forge", "checkpoint", "at", "-2h", "-q", "--json"][..],
            &["forge", "-q", "--json", "checkpoint", "at", "-2h"],
            &["forge", "checkpoint", "at", "-q", "--json", "-2h"],
            &["forge", "checkpoint", "diff", "-2h", "-q", "-1h", "--json"],
            &["forge", "checkpoint", "at", "-q", "--json", "--", "-2h"],
        ] {
            let matches = ForgeArgs::command().try_get_matches_from(words).unwrap();
            assert!(matches.get_flag("json") && matches.get_flag("quiet"), "{words:?}");
        }
    }
}
