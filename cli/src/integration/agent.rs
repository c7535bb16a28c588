//! The agents, and whom an installation is for.

mod claude;
mod codex;
mod cursor;
mod gemini;
mod opencode;

use super::json::JsonEdit;
use super::permission_rules;
use super::toml::WantedTable;
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use jsonc_parser::cst::CstInputValue;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A coding agent that forge can be made part of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum CodingAgent {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// OpenCode
    #[value(name = "opencode")]
    OpenCode,
}

impl CodingAgent {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::OpenCode];

    /// Its word on the command line and in the log of the hooks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::OpenCode => "opencode",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::OpenCode => "OpenCode",
        }
    }

    /// Whom an installation is for where nobody says: the narrowest that no colleague notices.
    #[must_use]
    pub const fn default_scope(self) -> InstallScope {
        if matches!(self, Self::Claude) { InstallScope::Local } else { InstallScope::User }
    }

    /// Whether the agent has settings for this.
    #[must_use]
    pub const fn has_scope(self, scope: InstallScope) -> bool {
        matches!(self, Self::Claude) || !matches!(scope, InstallScope::Local)
    }

    /// What is wanted in which file.
    #[must_use]
    pub fn wanted_changes(self, scope: InstallScope, place: &InstallTarget) -> Vec<WantedChange> {
        match self {
            Self::Claude => claude::wanted(scope, place),
            Self::Codex => codex::wanted(scope, place),
            Self::Gemini => gemini::wanted(scope, place),
            Self::Cursor => cursor::wanted(scope, place),
            Self::OpenCode => opencode::wanted(scope, place),
        }
    }

    /// What a person has to know or do besides.
    #[must_use]
    pub fn notes(self, scope: InstallScope) -> &'static [&'static str] {
        match (self, scope) {
            (Self::Claude, InstallScope::Project) => &[
                "Claude Code asks each person once whether the server of '.mcp.json' may be used.",
            ],
            (Self::Codex, InstallScope::User) => &[
                "Codex runs new hooks only after you trusted them: start 'codex' and say '/hooks'.",
            ],
            (Self::Codex, _) => &[
                "Codex reads the settings of a project that you trust, and runs new hooks only after \
                 you trusted them too: start 'codex' and say '/hooks'.",
            ],
            (Self::Gemini, InstallScope::Project) => &[
                "Gemini CLI warns of new hooks of a project, and reads its settings if you trust it.",
                "Gemini CLI reads policies of the user only, so no permission rules are written.",
            ],
            (Self::Cursor, InstallScope::User) => &[
                "Cursor keeps your own rules in its settings: no section was written for them.",
                "Cursor can allow a whole program only, so no permission rules are written.",
            ],
            (Self::Cursor, _) => {
                &["Cursor can allow a whole program only, so no permission rules are written."]
            }
            (Self::Claude | Self::Gemini | Self::OpenCode, _) => &[],
        }
    }
}

/// Whom an installation is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum InstallScope {
    /// You, in this project
    Local,
    /// Everybody who works in this project
    Project,
    /// You, in all projects
    User,
}

impl InstallScope {
    /// All of them, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Local, Self::Project, Self::User];

    /// Its word on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The four things an installation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntegrationPart {
    /// The agent calls forge at its events.
    Hooks,
    /// The agent knows forge's MCP server.
    Server,
    /// The agent's instructions say when to record what.
    Section,
    /// The agent need not ask for forge's reading and recording commands.
    Permissions,
}

impl IntegrationPart {
    /// What it is, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Server => "MCP server",
            Self::Section => "section of instructions",
            Self::Permissions => "permission rules",
        }
    }
}

/// One thing that is wanted in one file.
#[derive(Clone, Debug)]
pub struct WantedChange {
    /// The file, as the agent names it.
    pub file: PathBuf,
    /// Which of the four things it is.
    pub part: IntegrationPart,
    /// What is wanted in it.
    pub form: WantedContent,
}

impl WantedChange {
    /// What it is, in lines for people.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        match (&self.form, self.part) {
            (WantedContent::Section(text), _) => text.lines().map(str::to_owned).collect(),
            (_, IntegrationPart::Permissions) => {
                vec![format!("may run unasked: {}", permission_rules::short_rules().join(", "))]
            }
            (WantedContent::Json(edits), _) => edits
                .iter()
                .filter_map(|edit| match edit {
                    JsonEdit::Element { path, value } => {
                        let value = super::json::input_value(value);
                        let line = value.pointer("/hooks/0/command").or(value.get("command"));
                        let event = path.last().map(String::as_str).unwrap_or_default();
                        Some(format!("{event}: {}", line?.as_str()?))
                    }
                    JsonEdit::Member { keep: true, .. } => None,
                    JsonEdit::Member { name, value, .. } => {
                        Some(format!("{name}: {}", super::json::input_value(value)))
                    }
                })
                .collect(),
            (WantedContent::Toml(table), _) => {
                let values = table.values.iter();
                values.map(|(name, value)| format!("{name} = {value}")).collect()
            }
            (WantedContent::Whole(_), _) => {
                vec!["a plugin that passes the agent's events on to forge".to_owned()]
            }
        }
    }
}

/// What is wanted in a file.
#[derive(Clone, Debug)]
pub enum WantedContent {
    /// These things in settings in JSON.
    Json(Vec<JsonEdit>),
    /// This table in settings in TOML.
    Toml(WantedTable),
    /// This section in a page of text.
    Section(String),
    /// All of a file that is forge's alone.
    Whole(String),
}

/// Where an installation goes, and what it calls.
#[derive(Clone, Debug)]
pub struct InstallTarget {
    /// The user's directory.
    pub home: PathBuf,
    /// The project's directory.
    pub project: PathBuf,
    /// The running binary.
    pub forge: String,
    /// The word a person or an agent types to start it: 'forge' if that is this binary, else its path.
    pub word: String,
    /// Where Claude Code keeps the user's settings, if not where it usually does.
    pub claude: Option<PathBuf>,
    /// The version of Claude Code that is installed, if its files say.
    pub claude_version: Option<[u32; 3]>,
    /// The same of Codex.
    pub codex: Option<PathBuf>,
    /// Where programs keep the user's settings.
    pub config: PathBuf,
}

impl InstallTarget {
    /// The place of this process.
    ///
    /// # Errors
    ///
    /// If the user's directory or the running binary is not known, or is no text.
    pub fn from_context(context: &Context) -> Result<Self, CommandError> {
        let environment = &context.environment;
        let home = environment.directory("HOME").ok_or_else(|| {
            CommandError::not_found("there is no place for the settings of agents")
                .hinted("set HOME")
        })?;
        let binary = std::env::current_exe()
            .map_err(|error| CommandError::io("cannot tell which binary this is", error))?;
        let forge = binary.to_str().map(str::to_owned).ok_or_else(|| {
            let shown = binary.display();
            CommandError::unsupported(format!("the path of this binary is no text: '{shown}'"))
                .hinted("move it to a directory whose name is UTF-8")
        })?;
        let found = super::binary::on_path(environment, "forge");
        let word = match found.and_then(|found| found.canonicalize().ok()) {
            Some(found) if Some(&found) == binary.canonicalize().ok().as_ref() => {
                "forge".to_owned()
            }
            _ => shell_word(&forge),
        };
        let project = discovery::new_store_path(&context.cwd);
        let project = project.parent().unwrap_or(&context.cwd);
        let project = match discovery::find_store(&context.cwd, &context.environment) {
            // A store that was made without a repository says where the project is.
            Ok(store) if !project.join(".git").exists() => {
                store.parent().unwrap_or(project).to_owned()
            }
            _ => project.to_owned(),
        };
        Ok(Self {
            config: environment.config_directory().unwrap_or_else(|| home.join(".config")),
            claude: environment.directory("CLAUDE_CONFIG_DIR"),
            claude_version: super::binary::version_of(environment, "claude"),
            codex: environment.directory("CODEX_HOME"),
            home,
            project,
            forge,
            word,
        })
    }

    /// The command line of a hook, for agents that hand it to a shell.
    #[must_use]
    pub fn hook_command(&self, agent: CodingAgent, event: &str) -> String {
        format!("{} hook {} {event}", shell_word(&self.forge), agent.name())
    }
}

/// A text as one word of a shell.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn path(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn object<const N: usize>(members: [(&str, CstInputValue); N]) -> CstInputValue {
    CstInputValue::Object(
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    )
}

fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> CstInputValue {
    CstInputValue::Array(texts.into_iter().map(CstInputValue::from).collect())
}

/// The hooks as Claude Code has them, and others after it: a list of groups for each event.
fn hook_groups(
    agent: CodingAgent,
    place: &InstallTarget,
    events: &[(&str, Option<&str>, u32)],
    more: impl Fn(&str) -> Vec<(&'static str, CstInputValue)>,
) -> WantedContent {
    let edit = |(event, matcher, timeout): &(&str, Option<&str>, u32)| {
        let mut handler = vec![
            ("type".to_owned(), "command".into()),
            ("command".to_owned(), place.hook_command(agent, event).into()),
            ("timeout".to_owned(), CstInputValue::Number(timeout.to_string())),
        ];
        handler.extend(more(event).into_iter().map(|(name, value)| (name.to_owned(), value)));
        let hooks = CstInputValue::Array(vec![CstInputValue::Object(handler)]);
        let mut group = Vec::new();
        if let Some(matcher) = matcher {
            group.push(("matcher".to_owned(), (*matcher).into()));
        }
        group.push(("hooks".to_owned(), hooks));
        JsonEdit::Element { path: path(&["hooks", event]), value: CstInputValue::Object(group) }
    };
    WantedContent::Json(events.iter().map(edit).collect())
}

/// The MCP server as most agents name it.
fn mcp_server(place: &InstallTarget, above: &[&str]) -> WantedContent {
    WantedContent::Json(vec![JsonEdit::Member {
        path: path(above),
        name: "forge".to_owned(),
        value: object([("command", place.forge.as_str().into()), ("args", texts(["mcp"]))]),
        keep: false,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_shell_is_quoted_where_it_must_be() {
        assert_eq!(shell_word("/usr/bin/forge-1.0"), "/usr/bin/forge-1.0");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
