//! Gemini CLI: `settings.json`, `policies/forge.toml` and `GEMINI.md`.

use super::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
    hook_groups, mcp_server,
};
use crate::integration::{OWN_MARK, permission_rules};

/// The events, each with its matcher and the time limit of its hook in milliseconds. `PreCompress`
/// is missing because it comes before every request to the model, compacted or not. After a
/// compaction, the first event that takes a text is the result of any tool, or the next prompt.
const EVENTS: [(&str, Option<&str>, u32); 5] = [
    ("SessionStart", None, 10_000),
    ("BeforeAgent", None, 10_000),
    ("AfterTool", None, 10_000),
    ("AfterAgent", None, 10_000),
    ("SessionEnd", None, 20_000),
];

pub(super) fn wanted_changes(scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
    let own = target.home.join(".gemini");
    let (settings, page) = match scope {
        InstallScope::User => (own.join("settings.json"), own.join("GEMINI.md")),
        _ => (target.project.join(".gemini/settings.json"), target.project.join("GEMINI.md")),
    };
    let hooks = hook_groups(CodingAgent::Gemini, target, &EVENTS, |event| {
        vec![("name", format!("forge-{event}").into())]
    });
    let mut wanted = vec![
        WantedChange::new(settings.clone(), IntegrationPart::Hooks, hooks),
        WantedChange::new(settings, IntegrationPart::Server, mcp_server(target)),
        WantedChange::section(page, target),
    ];
    // Gemini CLI reads only the user's policies.
    if scope == InstallScope::User {
        let policy = WantedContent::Whole(policy(&target.word));
        let file = own.join("policies/forge.toml");
        wanted.push(WantedChange::new(file, IntegrationPart::Permissions, policy));
    }
    wanted
}

/// Returns rules that allow commands and forbid nothing: an entry of `tools.allowed` in the
/// settings would forbid all other commands. They have the lowest priority, so every rule of the
/// user comes first.
fn policy(word: &str) -> String {
    let list = |items: &mut dyn Iterator<Item = String>| {
        let lines = items.map(|item| format!("  {},\n", toml_edit::Value::from(item)));
        lines.collect::<String>()
    };
    let commands = list(
        &mut permission_rules::short_rules().iter().map(|command| format!("{word} {command}")),
    );
    let tools = list(&mut permission_rules::ALLOWED_TOOLS.iter().map(|tool| (*tool).to_owned()));
    format!(
        "# {OWN_MARK}: commands and tools that read and record\n\
         [[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n{commands}]\n\
         decision = \"allow\"\npriority = 1\n\n\
         [[rule]]\nmcpName = \"forge\"\ntoolName = [\n{tools}]\n\
         decision = \"allow\"\npriority = 1\n"
    )
}
