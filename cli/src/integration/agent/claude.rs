//! Claude Code: `settings.json` and related files, `.mcp.json`, `CLAUDE.md`.

use super::{Agent, Form, Part, Place, Scope, Wanted, groups, object, path, texts};
use crate::integration::json::Edit;
use crate::integration::rule;
use crate::integration::section;

/// Event, its matcher, and its time limit in seconds. Claude Code waits that long at the end of a
/// session, but at most 60 seconds.
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
    ("SessionEnd", None, 10),
];

/// The first version that skips an unknown event. Earlier versions skip the whole file, so they get
/// only events that have existed for a long time.
const LENIENT: [u32; 3] = [2, 1, 101];
const YOUNG: [&str; 4] = ["PostCompact", "PermissionDenied", "TaskCompleted", "StopFailure"];

/// Returns the events that the installed version knows; all events if the version is not known.
fn events(version: Option<[u32; 3]>) -> Vec<(&'static str, Option<&'static str>, u32)> {
    let strict = version.is_some_and(|version| version < LENIENT);
    EVENTS.into_iter().filter(|(event, ..)| !(strict && YOUNG.contains(event))).collect()
}

pub(super) fn wanted(scope: Scope, place: &Place) -> Vec<Wanted> {
    let usual = place.home.join(".claude");
    let own = place.claude.as_ref().unwrap_or(&usual);
    // If the user's settings are in another directory, the agent's own notes are there too.
    let notes = match &place.claude {
        Some(moved) => moved.join(".claude.json"),
        None => place.home.join(".claude.json"),
    };
    let project = place.project.to_string_lossy().into_owned();
    let (settings, servers, above, page) = match scope {
        Scope::Local => (
            place.project.join(".claude/settings.local.json"),
            notes,
            path(&["projects", &project, "mcpServers"]),
            place.project.join("CLAUDE.local.md"),
        ),
        Scope::Project => (
            place.project.join(".claude/settings.json"),
            place.project.join(".mcp.json"),
            path(&["mcpServers"]),
            place.project.join("CLAUDE.md"),
        ),
        Scope::User => {
            (own.join("settings.json"), notes, path(&["mcpServers"]), own.join("CLAUDE.md"))
        }
    };
    let server = Form::Json(vec![Edit::Member {
        path: above,
        name: "forge".to_owned(),
        value: object([
            ("type", "stdio".into()),
            ("command", place.forge.as_str().into()),
            ("args", texts(["mcp"])),
            ("env", object([])),
        ]),
        keep: false,
    }]);
    // The agent does not wait for hooks that only record.
    let hooks = groups(Agent::Claude, place, &events(place.claude_version), |event| match event {
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" | "TaskCompleted" => {
            vec![("async", true.into())]
        }
        _ => Vec::new(),
    });
    let commands: Vec<String> =
        rule::short().iter().map(|command| format!("Bash({} {command} *)", place.word)).collect();
    let tools = rule::ALLOWED_TOOLS.map(|tool| format!("mcp__forge__{tool}"));
    let allow = |rule: &String| Edit::Element {
        path: path(&["permissions", "allow"]),
        value: rule.as_str().into(),
    };
    let rules = Form::Json(commands.iter().chain(&tools).map(allow).collect());
    vec![
        Wanted { file: settings.clone(), part: Part::Hooks, form: hooks },
        Wanted { file: servers, part: Part::Server, form: server },
        Wanted { file: page, part: Part::Section, form: Form::Section(section::text(&place.word)) },
        Wanted { file: settings, part: Part::Permissions, form: rules },
    ]
}
