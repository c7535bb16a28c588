//! Claude Code: `settings.json` and related files, `.mcp.json`, `CLAUDE.md`.

use super::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
    hook_groups, object, path, texts,
};
use crate::integration::json::JsonEdit;
use crate::integration::permission_rules;

/// The events, each with its matcher and the time limit of its hook in seconds. At the end of a
/// session, Claude Code waits that long too, but at most 60 seconds.
const EVENTS: [(&str, Option<&str>, u32); 13] = [
    ("SessionStart", None, 10),
    ("UserPromptSubmit", None, 10),
    ("PreCompact", None, 20),
    ("PostCompact", None, 20),
    ("PostToolUse", Some("Edit|MultiEdit|Write|NotebookEdit|Bash"), 10),
    ("PostToolUseFailure", Some("Bash"), 10),
    ("PermissionDenied", None, 10),
    ("SubagentStart", None, 10),
    ("SubagentStop", None, 10),
    ("TaskCompleted", None, 10),
    ("Stop", None, 10),
    ("StopFailure", None, 10),
    ("SessionEnd", None, 20),
];

/// The first version that skips an unknown event. Earlier versions skip the whole file, so they do
/// not get the events in `YOUNG`.
const LENIENT: [u32; 3] = [2, 1, 101];
const YOUNG: [&str; 4] = ["PostCompact", "PermissionDenied", "TaskCompleted", "StopFailure"];

/// Returns the events that the installed version accepts; all events if the version is not known.
fn events(version: Option<[u32; 3]>) -> Vec<(&'static str, Option<&'static str>, u32)> {
    let strict = version.is_some_and(|version| version < LENIENT);
    EVENTS.into_iter().filter(|(event, ..)| !(strict && YOUNG.contains(event))).collect()
}

pub(super) fn wanted_changes(scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
    let usual = target.home.join(".claude");
    let own = target.claude.as_ref().unwrap_or(&usual);
    // If the user's settings are in another directory, the agent's own notes are there too.
    let notes = target.claude.as_ref().unwrap_or(&target.home).join(".claude.json");
    let project = target.project.to_string_lossy().into_owned();
    let (settings, servers, entry, page) = match scope {
        InstallScope::Local => (
            target.project.join(".claude/settings.local.json"),
            notes,
            path(&["projects", &project, "mcpServers", "forge"]),
            target.project.join("CLAUDE.local.md"),
        ),
        InstallScope::Project => (
            target.project.join(".claude/settings.json"),
            target.project.join(".mcp.json"),
            path(&["mcpServers", "forge"]),
            target.project.join("CLAUDE.md"),
        ),
        InstallScope::User => (
            own.join("settings.json"),
            notes,
            path(&["mcpServers", "forge"]),
            own.join("CLAUDE.md"),
        ),
    };
    let server = WantedContent::Json(vec![JsonEdit::Member {
        path: entry,
        value: object([
            ("type", "stdio".into()),
            ("command", target.forge.as_str().into()),
            ("args", texts(["mcp"])),
            ("env", object([])),
        ]),
        keep: false,
    }]);
    // With `async`, the agent does not wait for the hook. These hooks only record.
    let hooks =
        hook_groups(
            CodingAgent::Claude,
            target,
            &events(target.claude_version),
            |event| match event {
                "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" | "TaskCompleted" => {
                    vec![("async", true.into())]
                }
                _ => Vec::new(),
            },
        );
    let commands: Vec<String> = permission_rules::short_rules()
        .iter()
        .map(|command| format!("Bash({} {command} *)", target.word))
        .collect();
    let tools = permission_rules::ALLOWED_TOOLS.map(|tool| format!("mcp__forge__{tool}"));
    let allow = |rule: &String| JsonEdit::Element {
        path: path(&["permissions", "allow"]),
        value: rule.as_str().into(),
    };
    let rules = WantedContent::Json(commands.iter().chain(&tools).map(allow).collect());
    vec![
        WantedChange::new(settings.clone(), IntegrationPart::Hooks, hooks),
        WantedChange::new(servers, IntegrationPart::Server, server),
        WantedChange::section(page, target),
        WantedChange::new(settings, IntegrationPart::Permissions, rules),
    ]
}
