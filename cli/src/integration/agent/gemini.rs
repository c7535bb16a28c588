//! Gemini CLI: `settings.json`, `policies/forge.toml` and `GEMINI.md`.

use super::{Agent, Form, Part, Place, Scope, Wanted, groups, server};
use crate::integration::{OWN_MARK, rule, section};

/// Times are in milliseconds here. `PreCompress` is missing because it comes before every request
/// to the model, compacted or not. After a compaction, the first event that takes a text is the
/// result of any tool, or the next prompt.
const EVENTS: [(&str, Option<&str>, u32); 5] = [
    ("SessionStart", None, 10_000),
    ("BeforeAgent", None, 10_000),
    ("AfterTool", None, 10_000),
    ("AfterAgent", None, 10_000),
    ("SessionEnd", None, 10_000),
];

pub(super) fn wanted(scope: Scope, place: &Place) -> Vec<Wanted> {
    let own = place.home.join(".gemini");
    let (settings, page) = match scope {
        Scope::User => (own.join("settings.json"), own.join("GEMINI.md")),
        _ => (place.project.join(".gemini/settings.json"), place.project.join("GEMINI.md")),
    };
    let hooks = groups(Agent::Gemini, place, &EVENTS, |event| {
        vec![("name", format!("forge-{event}").into())]
    });
    let mut wanted = vec![
        Wanted { file: settings.clone(), part: Part::Hooks, form: hooks },
        Wanted { file: settings, part: Part::Server, form: server(place, &["mcpServers"]) },
        Wanted { file: page, part: Part::Section, form: Form::Section(section::text(&place.word)) },
    ];
    // Gemini CLI reads only the user's policies.
    if scope == Scope::User {
        wanted.push(Wanted {
            file: own.join("policies/forge.toml"),
            part: Part::Permissions,
            form: Form::Whole(policy(&place.word)),
        });
    }
    wanted
}

/// Rules that allow commands and forbid nothing: an entry of `tools.allowed` in the settings would
/// forbid all other commands. With the lowest priority, every rule of the user comes first.
fn policy(word: &str) -> String {
    let list = |items: &mut dyn Iterator<Item = String>| {
        let lines = items.map(|item| format!("  {},\n", toml_edit::Value::from(item)));
        lines.collect::<String>()
    };
    let commands = list(&mut rule::short().iter().map(|command| format!("{word} {command}")));
    let tools = list(&mut rule::ALLOWED_TOOLS.iter().map(|tool| (*tool).to_owned()));
    format!(
        "# {OWN_MARK}: commands and tools that read and record\n\
         [[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = [\n{commands}]\n\
         decision = \"allow\"\npriority = 1\n\n\
         [[rule]]\nmcpName = \"forge\"\ntoolName = [\n{tools}]\n\
         decision = \"allow\"\npriority = 1\n"
    )
}
