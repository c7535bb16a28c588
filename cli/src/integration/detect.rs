//! Finds forge's entries in an agent's files, from the files alone.

use super::agent::{CodingAgent, InstallScope, InstallTarget, IntegrationPart, WantedContent};
use super::fault::{self, InstallationFault};
use super::json::JsonEdit;
use super::{OWN_MARK, file, json, permission_rules, section, toml};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Whether this value, at this path in an agent's settings, is an entry of forge, as far as its
/// path and form show. The entry of a server must also be at the path of one of these edits.
pub fn is_ours(agent: CodingAgent, edits: &[JsonEdit], path: &[String], value: &Value) -> bool {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_server = || {
        let is_server_edit = |edit: &JsonEdit| match edit {
            JsonEdit::Member { path: wanted, keep: false, .. } => wanted == path,
            _ => false,
        };
        edits.iter().any(is_server_edit) && server_binary(value).is_some()
    };
    match (agent, names.as_slice()) {
        // An element of an array has no name.
        (CodingAgent::Cursor, ["hooks", _, ""]) | (_, ["hooks", _, "", "hooks", ""]) => {
            hook_binary(agent, value).is_some()
        }
        (_, ["hooks", _, ""]) => {
            let handlers = value.get("hooks").and_then(Value::as_array);
            handlers.is_some_and(|handlers| {
                !handlers.is_empty() && handlers.iter().all(|it| hook_binary(agent, it).is_some())
            })
        }
        (_, [.., "forge"]) => is_server(),
        (CodingAgent::Claude, ["permissions", "allow", ""]) => value.as_str().is_some_and(|rule| {
            let tool = rule.strip_prefix("mcp__forge__");
            let command = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(" *)"));
            tool.is_some_and(|tool| permission_rules::ALLOWED_TOOLS.contains(&tool))
                || command.is_some_and(is_our_command)
        }),
        (CodingAgent::Gemini, ["tools", "allowed", ""]) => value
            .as_str()
            .and_then(|rule| rule.strip_prefix("run_shell_command(")?.strip_suffix(')'))
            .is_some_and(is_our_command),
        (CodingAgent::OpenCode, ["permission", "bash", rule]) => {
            value == "allow" && rule.strip_suffix(" *").is_some_and(is_our_command)
        }
        _ => false,
    }
}

/// Whether an installation added this member, as far as its path and value show.
pub fn is_added(added: &[Vec<String>], edits: &[JsonEdit], path: &[String], value: &Value) -> bool {
    let is_edit_of_member = |edit: &JsonEdit| match edit {
        JsonEdit::Member { path: place, value: wanted, keep: true } => {
            place == path && json::input_value(wanted) == *value
        }
        _ => false,
    };
    added.iter().any(|place| place == path) && edits.iter().any(is_edit_of_member)
}

/// Whether this is a command that the permission rules allow: `forge status`, `/opt/forge status`.
fn is_our_command(line: &str) -> bool {
    permission_rules::ALLOWED.iter().chain(&permission_rules::GROUPS).any(|command| {
        let word = line.strip_suffix(command).and_then(|word| word.strip_suffix(' '));
        word.is_some_and(|word| is_forge(&unquoted(word)))
    })
}

/// Returns the binary that a hook calls, if it is forge's hook for this agent.
fn hook_binary(agent: CodingAgent, handler: &Value) -> Option<String> {
    let line = handler.get("command")?.as_str()?;
    let (before, event) = line.rsplit_once(' ')?;
    let word = before.strip_suffix(agent.name())?.strip_suffix(" hook ")?;
    let plain = event.chars().all(|c| c.is_ascii_alphanumeric());
    Some(unquoted(word)).filter(|word| plain && is_forge(word))
}

/// Returns the binary that a server's entry starts, if it is forge's.
fn server_binary(entry: &Value) -> Option<String> {
    let (command, last) = match entry.get("command")? {
        Value::String(command) => {
            (command.as_str(), entry.get("args")?.as_array()?.first()?.as_str()?)
        }
        Value::Array(words) => (words.first()?.as_str()?, words.get(1)?.as_str()?),
        _ => return None,
    };
    (last == "mcp" && is_forge(command)).then(|| command.to_owned())
}

/// Whether a table of Codex's settings is the entry of forge's server.
pub fn is_our_server(item: &toml_edit::Item) -> bool {
    toml_binary(item).is_some()
}

fn toml_binary(item: &toml_edit::Item) -> Option<String> {
    let command = item.get("command")?.as_str()?;
    let argument = item.get("args")?.as_array()?.get(0)?.as_str()?;
    (argument == "mcp" && is_forge(command)).then(|| command.to_owned())
}

/// Whether a command's program is named `forge`, perhaps with a version: `forge-1.2`, `forge2`.
fn is_forge(command: &str) -> bool {
    let name = Path::new(command).file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("forge").is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
}

/// Removes the quotes of one shell word.
fn unquoted(word: &str) -> String {
    let inside = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\''));
    inside.map_or_else(|| word.to_owned(), |inside| inside.replace(r"'\''", "'"))
}

/// The result of looking for one part of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPart {
    pub part: IntegrationPart,
    pub file: PathBuf,
    pub installed: bool,
    pub binaries: Vec<String>,
    pub faults: Vec<InstallationFault>,
    /// Why the file could not be examined.
    pub error: Option<String>,
}

/// Looks for each part of an installation in the agent's files.
pub fn find_parts(
    agent: CodingAgent,
    scope: InstallScope,
    target: &InstallTarget,
) -> Vec<FoundPart> {
    let wanted = agent.wanted_changes(scope, target);
    wanted
        .into_iter()
        .map(|wanted| {
            let mut found = FoundPart {
                part: wanted.part,
                file: wanted.file.clone(),
                installed: false,
                binaries: Vec::new(),
                faults: Vec::new(),
                error: None,
            };
            // The file is only read, so a link may lead anywhere.
            match file::read(&wanted.file, Path::new("/")) {
                Ok(file::AgentFile { text: Some(text), .. }) => {
                    found.faults = fault::find_faults(agent, wanted.part, &text, &wanted.form);
                    if let Err(error) = find_in_text(agent, &text, &wanted.form, &mut found) {
                        found.error = Some(error.to_string());
                    }
                }
                Ok(_) => {}
                Err(error) => found.error = Some(error.message().to_owned()),
            }
            found.binaries.sort();
            found.binaries.dedup();
            found
        })
        .collect()
}

/// Returns the file and its setting that switch off all hooks of the agent. The narrowest file with
/// the setting decides.
pub fn switched_off(agent: CodingAgent, target: &InstallTarget) -> Option<(PathBuf, &'static str)> {
    let (part, setting, off) = match agent {
        CodingAgent::Claude => (IntegrationPart::Hooks, "disableAllHooks", true),
        // Codex has its hooks in a file of their own, and its settings in the file with the server.
        CodingAgent::Codex => (IntegrationPart::Server, "features.hooks", false),
        CodingAgent::Gemini => (IntegrationPart::Hooks, "hooksConfig.enabled", false),
        CodingAgent::Cursor | CodingAgent::OpenCode => return None,
    };
    let names: Vec<String> = setting.split('.').map(str::to_owned).collect();
    let scopes = InstallScope::ALL.into_iter().filter(|scope| agent.has_scope(*scope));
    let mut files = scopes
        .flat_map(|scope| agent.wanted_changes(scope, target))
        .filter(|wanted| wanted.part == part);
    let deciding = files.find_map(|wanted| {
        let text = file::read(&wanted.file, Path::new("/")).ok()?.text?;
        let value = if let WantedContent::Toml(_) = wanted.form {
            toml::item(&text, &names).ok()??.as_bool()?
        } else {
            let values = json::values(&text).ok()?;
            names.iter().try_fold(&values, |value, name| value.get(name))?.as_bool()?
        };
        Some((wanted.file, value))
    });
    deciding.filter(|(_, value)| *value == off).map(|(path, _)| (path, setting))
}

fn find_in_text(
    agent: CodingAgent,
    text: &str,
    form: &WantedContent,
    found: &mut FoundPart,
) -> Result<(), json::UnusableSettings> {
    match form {
        WantedContent::Json(edits) => {
            let values = json::values(text)?;
            visit_values(&values, &mut Vec::new(), &mut |path, value| {
                let first = path.first().map(String::as_str);
                let part = match first {
                    Some("hooks") => IntegrationPart::Hooks,
                    Some("permissions" | "tools" | "permission") => IntegrationPart::Permissions,
                    _ => IntegrationPart::Server,
                };
                if part != found.part || !is_ours(agent, edits, path, value) {
                    return;
                }
                found.installed = true;
                let binary = match part {
                    IntegrationPart::Hooks => hook_binary(agent, value),
                    _ => server_binary(value),
                };
                found.binaries.extend(binary);
            });
        }
        WantedContent::Toml(table) => {
            let binary = toml::item(text, &table.path)?.and_then(|item| toml_binary(&item));
            found.installed = binary.is_some();
            found.binaries.extend(binary);
        }
        WantedContent::Section(_) => found.installed = section::find_section(text).is_some(),
        WantedContent::Whole(_) => {
            found.installed = text.contains(OWN_MARK);
            let line = text.lines().find_map(|line| line.strip_prefix("const FORGE = "));
            found.binaries.extend(line.and_then(|line| serde_json::from_str::<String>(line).ok()));
        }
    }
    Ok(())
}

/// Visits a value and everything in it; an element of an array has an empty name.
pub(super) fn visit_values(
    value: &Value,
    path: &mut Vec<String>,
    visit: &mut dyn FnMut(&[String], &Value),
) {
    visit(path, value);
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(elements) => elements.iter().map(|it| (String::new(), it)).collect(),
        _ => return,
    };
    for (name, value) in inside {
        path.push(name);
        visit_values(value, path, visit);
        path.pop();
    }
}
