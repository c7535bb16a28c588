//! OpenCode: a plugin that calls forge, `opencode.json` or `opencode.jsonc`, and `AGENTS.md`.

use super::{Form, Part, Place, Scope, Wanted, object, path, texts};
use crate::integration::json::Edit;
use crate::integration::{OWN_MARK, rule, section};

/// The plugin's source, in which only the path of the binary is replaced.
const PLUGIN: &str = include_str!("opencode.js");

pub(super) fn wanted(scope: Scope, place: &Place) -> Vec<Wanted> {
    let (settings, plugins, page) = match scope {
        Scope::User => {
            let own = place.config.join("opencode");
            (own.clone(), own.join("plugins"), own.join("AGENTS.md"))
        }
        _ => (
            place.project.clone(),
            place.project.join(".opencode/plugins"),
            place.project.join("AGENTS.md"),
        ),
    };
    // If both exist, people edit the one with comments.
    let with_comments = settings.join("opencode.jsonc");
    let settings =
        if with_comments.exists() { with_comments } else { settings.join("opencode.json") };
    let schema = Edit::Member {
        path: Vec::new(),
        name: "$schema".to_owned(),
        value: "https://opencode.ai/config.json".into(),
        keep: true,
    };
    let server = Edit::Member {
        path: path(&["mcp"]),
        name: "forge".to_owned(),
        value: object([
            ("type", "local".into()),
            ("command", texts([place.forge.as_str(), "mcp"])),
            ("enabled", true.into()),
        ]),
        keep: false,
    };
    let allow = |command: &str| Edit::Member {
        path: path(&["permission", "bash"]),
        name: format!("{} {command} *", place.word),
        value: "allow".into(),
        keep: true,
    };
    let rules = rule::short().into_iter().map(allow).collect();
    let forge = serde_json::Value::from(place.forge.as_str()).to_string();
    let plugin = PLUGIN.replace("@MARK@", OWN_MARK).replace("\"@FORGE@\"", &forge);
    vec![
        Wanted { file: plugins.join("forge.js"), part: Part::Hooks, form: Form::Whole(plugin) },
        Wanted {
            file: settings.clone(),
            part: Part::Server,
            form: Form::Json(vec![schema, server]),
        },
        Wanted { file: page, part: Part::Section, form: Form::Section(section::text(&place.word)) },
        Wanted { file: settings, part: Part::Permissions, form: Form::Json(rules) },
    ]
}
