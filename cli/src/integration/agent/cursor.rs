//! Cursor: `hooks.json`, `mcp.json`, and `AGENTS.md` in a project.

use super::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
    mcp_server, object, path,
};
use crate::integration::json::JsonEdit;
use jsonc_parser::cst::CstInputValue;

const EVENTS: [&str; 7] = [
    "sessionStart", "beforeSubmitPrompt", "afterShellExecution", "afterFileEdit", "preCompact",
    "stop", "sessionEnd",
];

pub(super) fn wanted_changes(scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
    let base = if scope == InstallScope::User { &target.home } else { &target.project };
    let folder = base.join(".cursor");
    let version = JsonEdit::Member {
        path: path(&["version"]),
        value: CstInputValue::Number("1".to_owned()),
        keep: true,
    };
    let hook = |event: &&str| JsonEdit::Element {
        path: path(&["hooks", event]),
        value: object([("command", target.hook_command(CodingAgent::Cursor, event).into())]),
    };
    let edits = std::iter::once(version).chain(EVENTS.iter().map(hook)).collect();
    let hooks = WantedContent::Json(edits);
    let server = mcp_server(target);
    let mut wanted = vec![
        WantedChange::new(folder.join("hooks.json"), IntegrationPart::Hooks, hooks),
        WantedChange::new(folder.join("mcp.json"), IntegrationPart::Server, server),
    ];
    if scope != InstallScope::User {
        wanted.push(WantedChange::section(base.join("AGENTS.md"), target));
    }
    wanted
}
