//! Finds faults of an installation: what an earlier version of forge made, and hooks that are
//! switched off.

use super::agent::{CodingAgent, IntegrationPart, WantedContent};
use super::json::{self, JsonEdit};
use super::{OWN_MARK, detect};
use crate::doctor::FindingSeverity;
use serde::Serialize;
use serde_json::Value;

/// A fault of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstallationFault {
    pub severity: FindingSeverity,
    /// Its description.
    pub what: String,
    /// What to do about it; absent if installing again fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl InstallationFault {
    fn problem(what: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Problem, what: what.into(), remedy: None }
    }

    fn advice(what: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Advice, what: what.into(), remedy: None }
    }

    /// Returns the fault that a setting in this file switches off all hooks of the agent.
    #[must_use]
    pub fn switched_off(agent: CodingAgent, setting: &str, file: &str) -> Self {
        let title = agent.title();
        Self {
            remedy: Some(format!("remove '{setting}' from {file}, and start {title} again")),
            ..Self::problem(format!("{title} calls no hook: '{setting}' in {file} says so"))
        }
    }
}

/// Returns the faults of one part of an installation in this file.
pub fn find_faults(
    agent: CodingAgent,
    part: IntegrationPart,
    text: &str,
    form: &WantedContent,
) -> Vec<InstallationFault> {
    match form {
        WantedContent::Json(edits) => json::values(text)
            .map(|values| settings_faults(agent, part, &values, edits))
            .unwrap_or_default(),
        WantedContent::Whole(wanted) if text.contains(OWN_MARK) => {
            own_file_faults(part, text, wanted)
        }
        WantedContent::Toml(_) | WantedContent::Section(_) | WantedContent::Whole(_) => Vec::new(),
    }
}

fn own_file_faults(part: IntegrationPart, text: &str, wanted: &str) -> Vec<InstallationFault> {
    // The line with the path of the binary may differ.
    let rest = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("const FORGE = "));
        lines.map(str::to_owned).collect()
    };
    match part {
        _ if rest(text) == rest(wanted) => Vec::new(),
        IntegrationPart::Hooks => vec![InstallationFault::problem(
            "the plugin is of an earlier forge: what is handed back may be in one request only, and prompts are not kept",
        )],
        _ => vec![InstallationFault::advice("the rules are of an earlier forge")],
    }
}

fn settings_faults(
    agent: CodingAgent,
    part: IntegrationPart,
    values: &Value,
    edits: &[JsonEdit],
) -> Vec<InstallationFault> {
    let ours = |path: &[String], value: &Value| detect::is_ours(agent, edits, path, value);
    match part {
        IntegrationPart::Hooks => {
            let mut faults = event_faults(values, edits, &ours);
            let allowed = elements(values, &["tools".to_owned(), "allowed".to_owned()]);
            let path = ["tools", "allowed", ""].map(str::to_owned);
            if agent == CodingAgent::Gemini && allowed.iter().any(|rule| ours(&path, rule)) {
                faults.push(InstallationFault::problem(
                    "its entries in 'tools.allowed' make Gemini CLI refuse every other shell command",
                ));
            }
            faults
        }
        IntegrationPart::Permissions => {
            let mut unwanted = 0_usize;
            detect::visit_values(values, &mut Vec::new(), &mut |path, value| {
                let is_rule = path.first().is_some_and(|first| first.starts_with("permission"));
                let is_unwanted = is_rule && ours(path, value) && !is_wanted(edits, path, value);
                unwanted += usize::from(is_unwanted);
            });
            let what =
                format!("{unwanted} permission rules are of an earlier forge, or for another one");
            if unwanted > 0 { vec![InstallationFault::advice(what)] } else { Vec::new() }
        }
        IntegrationPart::Server | IntegrationPart::Section => Vec::new(),
    }
}

fn is_wanted(edits: &[JsonEdit], path: &[String], value: &Value) -> bool {
    edits.iter().any(|edit| match edit {
        JsonEdit::Element { path: above, value: wanted } => {
            path.split_last().is_some_and(|(_, rest)| rest == above)
                && json::input_value(wanted) == *value
        }
        JsonEdit::Member { path: place, .. } => place == path,
    })
}

/// Finds events whose hook is missing or has another form than the wanted one, and events that
/// forge does not use.
fn event_faults(
    values: &Value,
    edits: &[JsonEdit],
    ours: &dyn Fn(&[String], &Value) -> bool,
) -> Vec<InstallationFault> {
    let mut missing = Vec::new();
    let mut other = Vec::new();
    let mut wanted_events = Vec::new();
    for edit in edits {
        let JsonEdit::Element { path, value } = edit else { continue };
        let Some(event) = path.last() else { continue };
        wanted_events.push(event.as_str());
        let element = [path.as_slice(), &[String::new()]].concat();
        let there: Vec<&Value> =
            elements(values, path).iter().filter(|it| ours(&element, it)).collect();
        let wanted = without_command(json::input_value(value));
        if there.is_empty() {
            missing.push(event.as_str());
        } else if !there.iter().any(|it| without_command((*it).clone()) == wanted) {
            other.push(event.as_str());
        }
    }
    let called = values.get("hooks").and_then(Value::as_object);
    let useless: Vec<&str> = called
        .into_iter()
        .flatten()
        .filter(|(event, _)| !wanted_events.contains(&event.as_str()))
        .filter(|(event, list)| {
            let element = ["hooks".to_owned(), (*event).clone(), String::new()];
            list.as_array().is_some_and(|list| list.iter().any(|it| ours(&element, it)))
        })
        .map(|(event, _)| event.as_str())
        .collect();
    // Without any entry of forge there is no installation, and so no fault.
    if missing.len() == wanted_events.len() && useless.is_empty() {
        return Vec::new();
    }
    [
        (missing, "events do not call forge"),
        (other, "events call forge in the form of an earlier one"),
        (useless, "events call forge for nothing"),
    ]
    .into_iter()
    .filter(|(events, _)| !events.is_empty())
    .map(|(events, what)| InstallationFault::advice(format!("these {what}: {}", events.join(", "))))
    .collect()
}

fn elements<'v>(values: &'v Value, path: &[String]) -> &'v [Value] {
    let found = path.iter().try_fold(values, |value, name| value.get(name));
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns a hook without its command line, whose path of the binary may differ.
fn without_command(mut hook: Value) -> Value {
    if let Some(handler) = hook.pointer_mut("/hooks/0").and_then(Value::as_object_mut) {
        handler.remove("command");
    }
    if let Some(handler) = hook.as_object_mut() {
        handler.remove("command");
    }
    hook
}
