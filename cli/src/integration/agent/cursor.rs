//! Cursor: `hooks.json`, `mcp.json`, and `AGENTS.md` in a project.

use super::{
    CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent,
    mcp_server, object, path,
};
use crate::integration::json::JsonEdit;
use crate::integration::section;
use jsonc_parser::cst::CstInputValue;

const EVENTS: [&str; 7] = [
    "sessionStart",
    "beforeSubmitPrompt",
    "afterShellExecution",
    "afterFileEdit",
    "preCompact",
    "stop",
    "sessionEnd",
];

pub(super) fn wanted(scope: InstallScope, place: &InstallTarget) -> Vec<WantedChange> {
    let above = if scope == InstallScope::User { &place.home } else { &place.project };
    let folder = above.join(".cursor");
    let version = JsonEdit::Member {
        path: Vec::new(),
        name: "version".to_owned(),
        value: CstInputValue::Number("1".to_owned()),
        keep: true,
    };
    let hook = |event: &&str| JsonEdit::Element {
        path: path(&["hooks", event]),
        value: object([("command", place.hook_command(CodingAgent::Cursor, event).into())]),
    };
    let hooks = std::iter::once(version).chain(EVENTS.iter().map(hook)).collect();
    let mut wanted = vec![
        WantedChange {
            file: folder.join("hooks.json"),
            part: IntegrationPart::Hooks,
            form: WantedContent::Json(hooks),
        },
        WantedChange {
            file: folder.join("mcp.json"),
            part: IntegrationPart::Server,
            form: mcp_server(place, &["mcpServers"]),
        },
    ];
    if scope != InstallScope::User {
        let form = WantedContent::Section(section::section_text(&place.word));
        wanted.push(WantedChange {
            file: above.join("AGENTS.md"),
            part: IntegrationPart::Section,
            form,
        });
    }
    wanted
}
