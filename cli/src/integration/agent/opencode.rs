//! OpenCode: a plugin that calls forge, `opencode.json` or `opencode.jsonc`, and `AGENTS.md`.

use super::{
    InstallScope, InstallTarget, IntegrationPart, WantedChange, WantedContent, object, path, texts,
};
use crate::integration::json::JsonEdit;
use crate::integration::{OWN_MARK, permission_rules};

/// The plugin's source. `@MARK@` and `@FORGE@` are replaced by forge's mark and the path of its
/// binary.
const PLUGIN: &str = include_str!("opencode.js");

pub(super) fn wanted_changes(scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
    let (settings, plugins, page) = match scope {
        InstallScope::User => {
            let folder = target.config.join("opencode");
            (folder.clone(), folder.join("plugins"), folder.join("AGENTS.md"))
        }
        _ => (
            target.project.clone(),
            target.project.join(".opencode/plugins"),
            target.project.join("AGENTS.md"),
        ),
    };
    // If both exist, people edit the one with comments.
    let with_comments = settings.join("opencode.jsonc");
    let settings =
        if with_comments.exists() { with_comments } else { settings.join("opencode.json") };
    let schema = JsonEdit::Member {
        path: path(&["$schema"]),
        value: "https://opencode.ai/config.json".into(),
        keep: true,
    };
    let server = JsonEdit::Member {
        path: path(&["mcp", "forge"]),
        value: object([
            ("type", "local".into()),
            ("command", texts([target.forge.as_str(), "mcp"])),
            ("enabled", true.into()),
        ]),
        keep: false,
    };
    let allow = |command: &str| JsonEdit::Member {
        path: path(&["permission", "bash", &format!("{} {command} *", target.word)]),
        value: "allow".into(),
        keep: true,
    };
    let permissions = permission_rules::short_rules().into_iter().map(allow).collect();
    let forge = serde_json::Value::from(target.forge.as_str()).to_string();
    let plugin = PLUGIN.replace("@MARK@", OWN_MARK).replace("\"@FORGE@\"", &forge);
    let plugin = WantedContent::Whole(plugin);
    let server = WantedContent::Json(vec![schema, server]);
    vec![
        WantedChange::new(plugins.join("forge.js"), IntegrationPart::Hooks, plugin),
        WantedChange::new(settings.clone(), IntegrationPart::Server, server),
        WantedChange::section(page, target),
        WantedChange::new(settings, IntegrationPart::Permissions, WantedContent::Json(permissions)),
    ]
}
