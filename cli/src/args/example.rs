//! Examples of every command, at the end of its help.

use super::command_groups::with_groups;
use clap::Command;
use std::fmt::Write;

/// The examples, one on each line. The words after `forge` say which command a line belongs to.
pub const EXAMPLES: &str = include_str!("examples.txt");

/// Returns the built command tree with the examples after each command's help.
///
/// Only help and documentation need the examples, so parsing does without them.
pub fn with_examples(mut tree: Command) -> Command {
    tree.build();
    let lines: Vec<_> = EXAMPLES.lines().map(|line| (path(&tree, line), line)).collect();
    with_groups(add(tree, "", &lines))
}

/// Returns the names of the subcommands at the beginning of a line.
fn path(tree: &Command, line: &str) -> String {
    let mut command = tree;
    let mut path = String::new();
    for word in line.split(' ').skip(1) {
        let Some(sub) = command.find_subcommand(word) else { break };
        path = join(&path, word);
        command = sub;
    }
    path
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above} {name}") }
}

fn add(command: Command, own: &str, lines: &[(String, &str)]) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let below = join(own, &name);
        command.mut_subcommand(name, |sub| add(sub, &below, lines))
    });
    let mut text = String::new();
    for (_, line) in lines.iter().filter(|(path, _)| !own.is_empty() && path == own) {
        let title = if text.is_empty() { "Examples:" } else { "" };
        let _ = write!(text, "{title}\n  {line}");
    }
    if text.is_empty() { command } else { command.after_help(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ForgeArgs;
    use clap::CommandFactory;

    /// Splits a line as a shell does, without escapes and variables.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for character in line.chars() {
            match character {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        assert!(!quoted, "{line}");
        words
    }

    #[test]
    fn every_example_parses() {
        for line in EXAMPLES.lines() {
            if let Err(error) = ForgeArgs::command().try_get_matches_from(words(line)) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn every_command_has_an_example_in_its_help() {
        fn check(command: &Command, path: &str) {
            if command.has_subcommands() {
                for sub in command.get_subcommands() {
                    check(sub, &join(path, sub.get_name()));
                }
                return;
            }
            let shown = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(shown.contains(&format!("\n  forge {path}")), "{path}: {shown}");
        }
        check(&with_examples(ForgeArgs::command()), "");
    }
}
