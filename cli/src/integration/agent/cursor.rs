//! Cursor: `hooks.json`, `mcp.json`, and `AGENTS.md` in a project.

use super::{Agent, Form, Part, Place, Scope, Wanted, object, path, server};
use crate::integration::json::Edit;
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

pub(super) fn wanted(scope: Scope, place: &Place) -> Vec<Wanted> {
    let above = if scope == Scope::User { &place.home } else { &place.project };
    let folder = above.join(".cursor");
    let version = Edit::Member {
        path: Vec::new(),
        name: "version".to_owned(),
        value: CstInputValue::Number("1".to_owned()),
        keep: true,
    };
    let hook = |event: &&str| Edit::Element {
        path: path(&["hooks", event]),
        value: object([("command", place.hook(Agent::Cursor, event).into())]),
    };
    let hooks = std::iter::once(version).chain(EVENTS.iter().map(hook)).collect();
    let mut wanted = vec![
        Wanted { file: folder.join("hooks.json"), part: Part::Hooks, form: Form::Json(hooks) },
        Wanted {
            file: folder.join("mcp.json"),
            part: Part::Server,
            form: server(place, &["mcpServers"]),
        },
    ];
    if scope != Scope::User {
        let form = Form::Section(section::text(&place.word));
        wanted.push(Wanted { file: above.join("AGENTS.md"), part: Part::Section, form });
    }
    wanted
}
