//! The groups in which `forge --help` lists the commands.

use clap::Command;
use clap::builder::StyledStr;
use std::fmt::Write;

/// Each group with its commands, in the order of the help.
const GROUPS: &[(&str, &str)] = &[
    (
        "Record",
        "note hypothesis evidence belief gap check command verification measurement code \
         checkpoint branch session undo redo restore",
    ),
    (
        "Look",
        "brief story log show at diff why blame search report serve timeline tui watch status \
         recover dependency message prompt task agent tool notice inference compaction",
    ),
    ("Agents", "hooks hook mcp import export statusline prompt-segment doctor"),
    ("Share", "remote push pull sync clone"),
    ("Systems", "run progress program thread"),
    (
        "Upkeep",
        "init config verify repair rebuild maintain backup redact purge key adopt completions man",
    ),
];

/// Makes the help of the root command list its subcommands in these groups.
pub(super) fn with_groups(root: Command) -> Command {
    let header = *root.get_styles().get_header();
    let literal = *root.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| names.split_whitespace());
    let width = names.map(str::len).max().unwrap_or_default();
    let mut list = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(list, "{header}{title}:{header:#}");
        for name in names.split_whitespace() {
            let Some(command) = root.find_subcommand(name) else { continue };
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let aliases = match aliases.as_slice() {
                [] => String::new(),
                aliases => format!(" [{}]", aliases.join(", ")),
            };
            let _ = writeln!(list, "  {literal}{name:width$}{literal:#}  {about}{aliases}");
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{{options}}{{after-help}}"
    );
    root.help_template(StyledStr::from(template))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ForgeArgs;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let root = ForgeArgs::command();
        let shown = root.get_subcommands().filter(|command| !command.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(known, listed);
    }
}
