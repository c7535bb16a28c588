//! Gemini CLI: `settings.json` and `GEMINI.md`.

use super::{Agent, Form, Part, Place, Scope, Wanted, groups, path, server};
use crate::integration::json::Edit;
use crate::integration::{rule, section};

/// Times are milliseconds here.
const EVENTS: [(&str, Option<&str>, u32); 6] = [
    ("SessionStart", None, 10_000),
    ("BeforeAgent", None, 10_000),
    ("AfterTool", Some("write_file|replace|run_shell_command"), 10_000),
    ("AfterAgent", None, 10_000),
    ("PreCompress", None, 20_000),
    ("SessionEnd", None, 10_000),
];

pub(super) fn wanted(scope: Scope, place: &Place) -> Vec<Wanted> {
    let (settings, page) = match scope {
        Scope::User => {
            let own = place.home.join(".gemini");
            (own.join("settings.json"), own.join("GEMINI.md"))
        }
        _ => (place.project.join(".gemini/settings.json"), place.project.join("GEMINI.md")),
    };
    let hooks = groups(Agent::Gemini, place, &EVENTS, |event| {
        vec![("name", format!("forge-{event}").into())]
    });
    let allow = |command: &&str| Edit::Element {
        path: path(&["tools", "allowed"]),
        value: format!("run_shell_command({} {command})", place.word).into(),
    };
    let rules = Form::Json(rule::ALLOWED.iter().map(allow).collect());
    vec![
        Wanted { file: settings.clone(), part: Part::Hooks, form: hooks },
        Wanted { file: settings.clone(), part: Part::Server, form: server(place, &["mcpServers"]) },
        Wanted { file: page, part: Part::Section, form: Form::Section(section::text(&place.word)) },
        Wanted { file: settings, part: Part::Permissions, form: rules },
    ]
}
