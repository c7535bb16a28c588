//! Replaces the tips in clap's errors about wrong usage by better ones.
//!
//! clap's own tips use a loose measure of similarity, over all options. A tip must never propose an
//! option that switches redaction off.

use super::example::EXAMPLES;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, Command};
use forge_store::shell::quoted;
use std::ffi::OsString;
use std::num::ParseIntError;
use strsim::damerau_levenshtein;

/// Options that no tip proposes: they weaken redaction.
const NEVER_PROPOSED: [&str; 2] = ["no-redact", "redact-allow"];
/// Global options that take the next word as their value.
const WITH_VALUE: [&str; 5] =
    ["--store", "--session", "--color", "--lock-timeout", "--redact-allow"];
/// The maximum number of commands in a tip about a subcommand that they have. Many commands have,
/// for example, a `list`, and a tip with all of them would not help.
const MOST_GROUPS: usize = 3;

/// Returns the error with this module's tips instead of clap's. `tree` must be built.
pub fn with_tips(tree: &Command, arguments: &[OsString], mut error: Error) -> Error {
    let command = CalledCommand::find(tree, arguments);
    let own_suggestion = error.remove(ContextKind::Suggested);
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedValue);
    error.remove(ContextKind::SuggestedSubcommand);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let tips = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            command.subcommand_tips(tree, &word)
        }
        ErrorKind::UnknownArgument => {
            let usage = command.command.clone().render_usage();
            let word = text(ContextKind::InvalidArg).unwrap_or_default();
            if error.get(ContextKind::Usage).is_some() {
                error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
            }
            let tips = command.option_tips(&word);
            if tips.is_empty() && own_suggestion.is_some() && command.wants_text() {
                // clap names only the first letter of several after one hyphen.
                let whole = command.words.iter().find(|one| one.starts_with(&word));
                let whole = whole.unwrap_or(&word);
                vec![format!("to pass '{whole}' as a value, use '-- {}'", quoted(whole))]
            } else if tips.is_empty() && !word.starts_with('-') {
                command.example(&[]).into_iter().collect()
            } else {
                tips
            }
        }
        ErrorKind::InvalidValue => command.value_tips(&error),
        ErrorKind::ValueValidation if is_number_error(&error) => {
            vec!["write a whole number with digits only, such as 10".to_owned()]
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.as_slice(),
                _ => &[],
            };
            command.example(missing).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        let tips = tips.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The command that the arguments call.
struct CalledCommand<'a> {
    command: &'a Command,
    /// The words that name it, after `forge`.
    path: Vec<&'a str>,
    /// The words after `path`.
    words: Vec<String>,
    /// The words after `path`, without options directly after it.
    rest: Vec<String>,
}

impl<'a> CalledCommand<'a> {
    fn find(tree: &'a Command, arguments: &[OsString]) -> Self {
        let (words, rest) = (Vec::new(), Vec::new());
        let mut found = Self { command: tree, path: Vec::new(), words, rest };
        let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            if found.rest.is_empty() && WITH_VALUE.contains(&word.as_str()) {
                found.words.push(word);
                found.words.extend(words.next());
                continue;
            }
            match subcommand(found.command, &word).filter(|_| found.rest.is_empty()) {
                Some(sub) => {
                    found.command = sub;
                    found.path.push(sub.get_name());
                    found.words.clear();
                }
                None => {
                    let is_option = word.starts_with('-') && word != "--";
                    if !is_option || !found.rest.is_empty() {
                        found.rest.push(word.clone());
                    }
                    found.words.push(word);
                }
            }
        }
        found
    }

    fn name(&self) -> String {
        ["forge"].into_iter().chain(self.path.iter().copied()).collect::<Vec<_>>().join(" ")
    }

    /// Whether the command takes a text that may begin with a hyphen: one that was not given, or
    /// any number of words.
    fn wants_text(&self) -> bool {
        let takes = |names: &[&str]| {
            self.command.get_positionals().any(|arg| {
                let own = arg.get_value_names().unwrap_or_default();
                own.iter().any(|name| names.contains(&name.as_str()))
            })
        };
        self.rest.is_empty() && takes(&TEXT_ARGUMENTS) || takes(&["WORD"])
    }

    /// Returns a tip with the subcommands that begin with this word, or else tips with the commands
    /// that have a subcommand of this name, or else an example of how to add a text, or else tips
    /// with the subcommands of a similar name, or else all subcommands of a group.
    fn subcommand_tips(&self, tree: &Command, word: &str) -> Vec<String> {
        let shown = self.command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let shown: Vec<&str> = shown.map(Command::get_name).collect();
        let begun = shown.iter().filter(|name| name.starts_with(word));
        let begun: Vec<String> = begun.map(|name| format!("'{} {name}'", self.name())).collect();
        if begun.len() > 1 && !word.is_empty() {
            return vec![format!("'{word}' can be {}", begun.join(" or "))];
        }
        let groups = tree.get_subcommands().filter(|group| group.find_subcommand(word).is_some());
        let groups: Vec<&str> = groups.map(Command::get_name).collect();
        if self.path.is_empty() && (1..=MOST_GROUPS).contains(&groups.len()) {
            return groups.iter().map(|group| format!("there is 'forge {group} {word}'")).collect();
        }
        // 'forge note TEXT' adds a note, so the same is tried with other kinds.
        if word.contains(char::is_whitespace) {
            let adding = ["add", "create"].map(|verb| format!("{} {verb} ", self.name()));
            let is_adding = |line: &&str| adding.iter().any(|begin| line.starts_with(begin));
            let example = EXAMPLES.lines().find(is_adding);
            return example.map(|line| format!("for example: {line}")).into_iter().collect();
        }
        let similar = similar(word, self.command.get_subcommands().map(Command::get_name));
        if similar.is_empty() && self.command.get_positionals().next().is_some() {
            // The words of a text without quotes.
            return self.example(&[]).into_iter().collect();
        }
        if similar.is_empty() && !self.path.is_empty() {
            return vec![format!("the commands of '{}' are {}", self.name(), shown.join(", "))];
        }
        similar
            .into_iter()
            .map(|name| format!("a similar command exists: '{} {name}'", self.name()))
            .collect()
    }

    /// Returns a tip with another way to write what was meant, or else tips with similar options.
    fn option_tips(&self, word: &str) -> Vec<String> {
        let takes_command = self.command.get_positionals().any(Arg::is_last_set);
        // Other arguments can be before the command.
        let before = self.command.get_positionals().filter(|arg| !arg.is_last_set()).count();
        let mut places = self.rest.iter().enumerate().skip(before);
        if takes_command
            && !self.rest.iter().any(|word| word == "--")
            && let Some((place, _)) = places.find(|(_, one)| *one == word)
        {
            let mut words = self.words.clone();
            let options = words.len() - self.rest.len();
            words.insert(options + place, "--".to_owned());
            let words = words.join(" ");
            return vec![format!("put '--' before the command: '{} {words}'", self.name())];
        }
        let has_limit = self.command.get_arguments().any(|arg| arg.get_short() == Some('n'));
        if let Some(number) = word.strip_prefix('-').filter(|number| is_number(number)) {
            let tip = format!("'-n {number}' limits the number");
            return if has_limit { vec![tip] } else { Vec::new() };
        }
        let mut positionals = self.command.get_positionals();
        if ["-o", "--output", "--file"].contains(&word)
            && positionals.any(|arg| arg.get_value_names().is_some_and(|n| n == ["FILE"]))
        {
            return vec![format!("the file is an argument: '{} FILE'", self.name())];
        }
        let Some(name) = word.strip_prefix("--") else { return Vec::new() };
        let options = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let names = options.filter_map(Arg::get_long).filter(|name| !NEVER_PROPOSED.contains(name));
        similar(name, names)
            .into_iter()
            .map(|name| format!("a similar option exists: '--{name}'"))
            .collect()
    }

    /// Returns a tip with the command that sets this value, or else tips with similar values.
    fn value_tips(&self, error: &Error) -> Vec<String> {
        let (Some(ContextValue::String(value)), Some(ContextValue::String(option))) =
            (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg))
        else {
            return Vec::new();
        };
        let group = self.path.first().copied().unwrap_or_default();
        let verb = match (group, value.as_str()) {
            ("hypothesis", "confirmed") => Some("confirm"),
            ("hypothesis", "rejected") => Some("reject"),
            ("gap", "filled") => Some("fill"),
            _ => None,
        };
        if let Some(verb) = verb.filter(|_| option.starts_with("--status")) {
            return vec![format!("'forge {group} {verb}' does that, with its consequences")];
        }
        let Some(ContextValue::Strings(values)) = error.get(ContextKind::ValidValue) else {
            return Vec::new();
        };
        similar(value, values.iter().map(String::as_str))
            .into_iter()
            .map(|name| format!("a similar value exists: '{name}'"))
            .collect()
    }

    /// Returns an example of the command that has all options that are missing.
    fn example(&self, missing: &[String]) -> Option<String> {
        let name = self.name();
        let options = missing.iter().filter_map(|argument| argument.split(' ').next());
        let options: Vec<&str> = options.filter(|option| option.starts_with("--")).collect();
        let example = EXAMPLES.lines().find(|line| {
            line.strip_prefix(&name).is_some_and(|rest| rest.starts_with(' '))
                && options.iter().all(|option| line.split(' ').any(|word| word == *option))
        })?;
        // If an option is missing, the tip is about the option, and not about the moment.
        let number = if options.is_empty() && (example.contains("'#") || self.takes_moment()) {
            " ('#42' in quotes, or 42: to a shell '#' begins a comment)"
        } else {
            ""
        };
        Some(format!("for example: {example}{number}"))
    }

    /// Whether the first argument of the command is a moment.
    fn takes_moment(&self) -> bool {
        let first = self.command.get_positionals().next();
        first.is_some_and(super::moment::is_moment)
    }
}

/// The names of arguments that are texts.
pub const TEXT_ARGUMENTS: [&str; 4] = ["DESCRIPTION", "RESOLUTION", "MESSAGE", "TEXT"];

/// Returns the subcommand that a word names: by its name, an alias or a unique prefix.
pub fn subcommand<'a>(command: &'a Command, word: &str) -> Option<&'a Command> {
    command.find_subcommand(word).or_else(|| {
        let begins = |sub: &&Command| {
            !word.is_empty()
                && sub.get_name_and_visible_aliases().iter().any(|n| n.starts_with(word))
        };
        let mut found = command.get_subcommands().filter(begins);
        found.next().filter(|_| found.next().is_none())
    })
}

/// Returns the names with the smallest Damerau-Levenshtein distance to a word, in alphabetical
/// order. The distance is at most a third of the length of the name, or 1 if the name has fewer
/// than 3 characters.
pub fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let distance = |name: &str| damerau_levenshtein(&word, &name.to_lowercase());
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| distance * 3 <= name.chars().count().max(3))
        .collect();
    near.sort_unstable();
    near.dedup();
    let least = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter().filter(|(distance, _)| *distance == least).map(|(_, name)| name).collect()
}

/// Whether a value was refused because it is not a whole number, or too large. Rust's own messages
/// about that, such as "invalid digit found in string", do not say what to write.
fn is_number_error(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<ParseIntError>())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ForgeArgs;
    use clap::CommandFactory;

    /// The error of these words, with tips.
    fn error(words: &str) -> String {
        error_of(words.split(' '))
    }

    /// The error of these arguments, with tips. They can contain spaces.
    fn error_of<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        let mut tree = ForgeArgs::command();
        let error = tree.try_get_matches_from_mut(&arguments).unwrap_err();
        tree.build();
        with_tips(&tree, &arguments, error).to_string()
    }

    /// No tip about a mistyped option proposes an option that weakens redaction.
    #[test]
    fn no_tip_proposes_an_option_that_weakens_redaction() {
        let mut tree = ForgeArgs::command();
        tree.build();
        for option in ["no-redac", "noredact", "redact", "redact-alow", "formatt", "no", "x"] {
            for command in ["note add x", "hypothesis list", "log", "status", "checkpoint at 1"] {
                let error = error(&format!("forge {command} --{option}=1"));
                for weakens in NEVER_PROPOSED {
                    let proposed = error.replace(&format!("'--{option}'"), "");
                    assert!(!proposed.contains(weakens), "{command} {option}: {error}");
                }
            }
        }
    }

    #[test]
    fn only_similar_names_are_proposed() {
        let names = || ["progress", "hypothesis", "show", "story"].into_iter();
        assert_eq!(similar("hypotesis", names()), ["hypothesis"]);
        assert_eq!(similar("vscode", ["codex", "claude"].into_iter()), [""; 0]);
        assert_eq!(similar("shwo", names()), ["show"]);
        assert_eq!(similar("", names()), [""; 0]);
    }

    /// Regression: if an option was missing, the tip also said how to write the number of a
    /// checkpoint, or showed an example without that option.
    #[test]
    fn a_tip_about_a_missing_option_is_an_example_with_it() {
        for option in ["--yes", "--branch x"] {
            let error = error(&format!("forge recover {option}"));
            let example = "for example: forge recover --step 1 --worktree ../recovered\n";
            assert!(error.contains(example), "{error}");
        }
        let error = error("forge checkpoint prune --now");
        assert!(error.contains("--yes") && !error.contains("--dry-run"), "{error}");
    }

    #[test]
    fn a_tip_says_what_was_probably_meant() {
        // Regression: the shell would have made three words of it.
        let with_tip = error_of(["forge", "note", "- a list"]);
        assert!(with_tip.contains("use '-- '- a list''"), "{with_tip}");
        for (words, tip) in [
            ("forge hypotesis add", "'forge hypothesis'"),
            ("forge ver list", "'ver' can be 'forge verification' or 'forge verify'"),
            ("forge hypothesis add x --confidnece 1", "'--confidence'"),
            ("forge hypothesis add x --status confirmed", "'forge hypothesis confirm'"),
            ("forge log -5", "'-n 5'"),
            ("forge prune", "'forge checkpoint prune'"),
            ("forge checkpoint tag 5 x", "forge checkpoint tag '#5' --add baseline"),
            ("forge run start nightly", "forge run start --run nightly"),
            ("forge h reopen H1", "are add, update, confirm, reject, list, show"),
            ("forge command record ls -la", "'forge command record -- ls -la'"),
            ("forge check build make -j2", "'forge check build -- make -j2'"),
            // Regression: the tip left out the options.
            ("forge thread rerun --thread x c1 true", "'forge thread rerun --thread x c1 -- true'"),
            ("forge log -n x", "write a whole number"),
            ("forge checkpoint at", "forge checkpoint at '2 hours ago'"),
            ("forge search pool -fPIC", "use '-- -fPIC'"),
        ] {
            let error = error(words);
            assert!(error.contains("tip: ") && error.contains(tip), "{words}: {error}");
        }
        for words in [
            "forge xyzzy",
            "forge log -m",
            "forge command record -l ls",
            "forge hooks install vscode",
            "forge belief add x -k invariant",
            "forge belief add x --depends-on H4",
        ] {
            let error = error(words);
            assert!(!error.contains("tip: "), "{words}: {error}");
        }
    }
}
