//! The commands of forge that an agent may run without asking: those that read, and those that
//! record. Commands that restore, discard, change settings, push or pull, or run other commands are
//! not among them.

/// The groups that contain only such commands: one rule allows a whole group.
pub const GROUPS: [&str; 15] = [
    "hypothesis", "evidence", "belief", "dependency", "gap", "verification", "note", "measurement",
    "task", "message", "prompt", "agent", "tool", "notice", "compaction",
];

/// Returns the rules in their short form, by the words after `forge`: whole groups, then single
/// commands.
pub fn short_rules() -> Vec<&'static str> {
    let alone = |command: &&str| {
        let group = command.split(' ').next().unwrap_or_default();
        !GROUPS.contains(&group)
    };
    GROUPS.into_iter().chain(ALLOWED.into_iter().filter(alone)).collect()
}

/// Each allowed command, by the words after `forge`.
pub const ALLOWED: [&str; 79] = [
    "status", "brief", "story", "timeline", "log", "show", "at", "diff", "blame", "why", "search",
    "doctor", "session list", "session show", "hypothesis add", "hypothesis update",
    "hypothesis confirm", "hypothesis reject", "hypothesis list", "hypothesis show",
    "evidence add", "evidence update", "evidence retract", "evidence list", "evidence show",
    "belief add", "belief update", "belief retract", "belief depend", "belief contradict",
    "belief why", "belief list", "belief show", "dependency list", "dependency show", "gap add",
    "gap fill", "gap update", "gap list", "gap show", "verification add", "verification list",
    "verification show", "note add", "note update", "note retract", "note list", "note show",
    "measurement record", "measurement list", "measurement show", "command list", "command show",
    "code list", "code show", "task list", "task show", "message list", "message show",
    "prompt list", "prompt show", "agent list", "agent show", "tool list", "tool show",
    "notice list", "notice show", "inference list", "inference show", "branch list", "branch show",
    "checkpoint create", "checkpoint list", "checkpoint show", "checkpoint at", "checkpoint diff",
    "checkpoint timeline", "compaction list", "compaction show",
];

/// The allowed tools of forge's MCP server.
pub const ALLOWED_TOOLS: [&str; 12] = [
    "brief", "story", "state", "diff", "timeline", "why", "search", "checkpoint",
    "record_hypothesis", "record_finding", "record_verification", "record_gap",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ForgeArgs;
    use clap::CommandFactory;

    #[test]
    fn each_permission_rule_is_one_existing_command() {
        for rule in ALLOWED {
            let mut command = ForgeArgs::command();
            command.build();
            for word in rule.split(' ') {
                let found = command.find_subcommand(word).cloned();
                command = found.unwrap_or_else(|| panic!("there is no 'forge {rule}'"));
            }
            assert!(!command.has_subcommands(), "'forge {rule}' is a group");
        }
    }

    /// A command that is added to such a group later must be reviewed first.
    #[test]
    fn every_command_of_an_allowed_group_is_allowed() {
        let mut command = ForgeArgs::command();
        command.build();
        for group in GROUPS {
            let found = command.find_subcommand(group).unwrap();
            for inside in found.get_subcommands().filter(|it| it.get_name() != "help") {
                let whole = format!("{group} {}", inside.get_name());
                assert!(ALLOWED.contains(&whole.as_str()), "'forge {whole}'");
            }
        }
    }

    #[test]
    fn each_allowed_command_is_covered_by_one_short_rule() {
        let short = short_rules();
        assert!(short.len() < 45, "{}", short.len());
        for command in ALLOWED {
            let allows = |rule: &&&str| {
                command
                    .strip_prefix(**rule)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            assert_eq!(short.iter().filter(allows).count(), 1, "{command}");
        }
    }

    #[test]
    fn exactly_the_nondestructive_tools_of_the_server_are_allowed() {
        let known = crate::mcp::tool::all().iter().map(|entry| &entry.tool);
        for tool in known {
            let replaces = tool.annotations.as_ref().is_none_or(|hints| hints.is_destructive());
            assert_eq!(ALLOWED_TOOLS.contains(&tool.name.as_ref()), !replaces, "{}", tool.name);
        }
    }

    #[test]
    fn no_allowed_command_restores_deletes_runs_or_configures_anything() {
        let never = [
            "restore", "prune", "purge", "undo", "redo", "run", "config", "import", "export",
            "hooks", "maintain", "init", "switch", "abandon", "tui", "mcp", "capture", "use",
        ];
        for rule in ALLOWED {
            assert!(rule.split(' ').all(|word| !never.contains(&word)), "{rule}");
        }
        // It runs the command that it is given.
        assert!(!ALLOWED.contains(&"command record"));
    }
}
