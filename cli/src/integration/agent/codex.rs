//! Codex CLI: `hooks.json`, `config.toml`, `rules/`, `AGENTS.md`.

use super::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
    hook_groups, path,
};
use crate::integration::toml::WantedTable;
use crate::integration::{OWN_MARK, permission_rules};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The events, each with its matcher and its timeout in seconds. Codex waits at most 3 seconds at
/// the end of a session.
const EVENTS: [(&str, Option<&str>, u32); 10] = [
    ("SessionStart", None, 10),
    ("UserPromptSubmit", None, 10),
    ("PreCompact", None, 20),
    ("PostCompact", None, 20),
    ("PostToolUse", None, 10),
    ("SubagentStart", None, 10),
    ("SubagentStop", None, 10),
    ("Stop", None, 10),
    ("Interrupt", None, 10),
    ("SessionEnd", None, 3),
];

pub(super) fn wanted_changes(scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
    let (folder, page) = match scope {
        InstallScope::User => {
            let codex_home = target.codex.clone().unwrap_or_else(|| target.home.join(".codex"));
            let page = codex_home.join("AGENTS.md");
            (codex_home, page)
        }
        _ => (target.project.join(".codex"), target.project.join("AGENTS.md")),
    };
    let server = WantedContent::Toml(WantedTable {
        path: path(&["mcp_servers", "forge"]),
        values: vec![
            ("command", target.forge.as_str().into()),
            ("args", toml_edit::Array::from_iter(["mcp"]).into()),
        ],
    });
    let hooks = hook_groups(CodingAgent::Codex, target, &EVENTS, |_| Vec::new());
    let rules = WantedContent::Whole(rules(target));
    vec![
        WantedChange::new(folder.join("hooks.json"), IntegrationPart::Hooks, hooks),
        WantedChange::new(folder.join("config.toml"), IntegrationPart::Server, server),
        WantedChange::section(page, target),
        WantedChange::new(folder.join("rules/forge.rules"), IntegrationPart::Permissions, rules),
    ]
}

/// Returns the permission rules in Codex's language: one for the commands and groups that are
/// allowed as a whole, and one for each other group, with its allowed commands.
fn rules(target: &InstallTarget) -> String {
    let mut whole = Vec::new();
    let mut partial: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for command in permission_rules::short_rules() {
        match command.split_once(' ') {
            Some((group, inside)) => partial.entry(group).or_default().push(inside),
            None => whole.push(command),
        }
    }
    // The rules are compared with words without quotes.
    let word = if target.word == "forge" { &target.word } else { &target.forge };
    let word = serde_json::Value::from(word.as_str());
    let list = |words: &[&str]| serde_json::Value::from(words.to_vec()).to_string();
    let mut text = format!("# {OWN_MARK}: commands that read and record\n");
    let mut rule = |rest: String| {
        let _ = writeln!(text, "prefix_rule(pattern=[{word}, {rest}], decision=\"allow\")");
    };
    rule(list(&whole));
    for (group, inside) in partial {
        rule(format!("\"{group}\", {}", list(&inside)));
    }
    text
}
