//! The agents, and the scopes of an installation.

mod claude;
mod codex;
mod cursor;
mod gemini;
mod opencode;

use super::json::JsonEdit;
use super::permission_rules;
use super::section;
use super::toml::WantedTable;
use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use forge_store::shell::quoted;
use forge_store::store_place;
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
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::OpenCode];

    /// Returns the agent's word on the command line and in the log of the hooks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the agent's name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::OpenCode => "OpenCode",
        }
    }

    /// Returns the default scope, which does not affect colleagues.
    pub const fn default_scope(self) -> InstallScope {
        if matches!(self, Self::Claude) { InstallScope::Local } else { InstallScope::User }
    }

    /// Whether the agent has settings for this scope.
    pub const fn has_scope(self, scope: InstallScope) -> bool {
        matches!(self, Self::Claude) || !matches!(scope, InstallScope::Local)
    }

    /// Returns what an installation needs in each file.
    pub fn wanted_changes(self, scope: InstallScope, target: &InstallTarget) -> Vec<WantedChange> {
        match self {
            Self::Claude => claude::wanted_changes(scope, target),
            Self::Codex => codex::wanted_changes(scope, target),
            Self::Gemini => gemini::wanted_changes(scope, target),
            Self::Cursor => cursor::wanted_changes(scope, target),
            Self::OpenCode => opencode::wanted_changes(scope, target),
        }
    }

    /// Returns what a person must know or do in addition.
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
    /// All scopes, narrowest first.
    pub const ALL: [Self; 3] = [Self::Local, Self::Project, Self::User];

    /// Returns the scope's word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The four parts of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntegrationPart {
    /// The agent calls forge at its events.
    Hooks,
    /// The agent knows forge's MCP server.
    Server,
    /// The agent's instructions say when to record what.
    Section,
    /// The agent may run forge's reading and recording commands without asking.
    Permissions,
}

impl IntegrationPart {
    /// Returns its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Server => "MCP server",
            Self::Section => "section of instructions",
            Self::Permissions => "permission rules",
        }
    }
}

/// One part of an installation in one file.
#[derive(Clone, Debug)]
pub struct WantedChange {
    /// The file, as the agent names it.
    pub file: PathBuf,
    /// The part that it belongs to.
    pub part: IntegrationPart,
    pub form: WantedContent,
}

impl WantedChange {
    fn new(file: PathBuf, part: IntegrationPart, form: WantedContent) -> Self {
        Self { file, part, form }
    }

    /// Returns the change that adds the section of instructions to this page.
    fn section(page: PathBuf, target: &InstallTarget) -> Self {
        let text = section::section_text(&target.word);
        Self::new(page, IntegrationPart::Section, WantedContent::Section(text))
    }

    /// Describes the change in lines for people.
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
                        Some(format!("{}: {}", path.last()?, line?.as_str()?))
                    }
                    JsonEdit::Member { keep: true, .. } => None,
                    JsonEdit::Member { path, value, .. } => {
                        Some(format!("{}: {}", path.last()?, super::json::input_value(value)))
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

#[derive(Clone, Debug)]
pub enum WantedContent {
    /// These edits of JSON settings.
    Json(Vec<JsonEdit>),
    /// This table in TOML settings.
    Toml(WantedTable),
    /// This section in a page of text.
    Section(String),
    /// The whole content of a file that only forge writes.
    Whole(String),
}

/// The folders of an installation, and the binary that it calls.
#[derive(Clone, Debug)]
pub struct InstallTarget {
    /// The user's directory.
    pub home: PathBuf,
    /// The project's directory.
    pub project: PathBuf,
    /// The running binary.
    pub forge: String,
    /// The command for starting forge: 'forge' if that is this binary, otherwise its path.
    pub word: String,
    /// The folder of the user's Claude Code settings, if it is not the default one.
    pub claude: Option<PathBuf>,
    /// The version of the installed Claude Code, if its files contain it.
    pub claude_version: Option<[u32; 3]>,
    /// The folder of Codex, if it is not the default one.
    pub codex: Option<PathBuf>,
    /// The folder for the user's settings of programs.
    pub config: PathBuf,
}

impl InstallTarget {
    /// Returns the target for this process.
    ///
    /// # Errors
    ///
    /// If the user's directory or the running binary is not known, or the path of the binary is not
    /// UTF-8.
    pub fn from_context(context: &Context) -> Result<Self, CommandError> {
        let environment = &context.environment;
        let home = environment.directory("HOME").ok_or_else(|| {
            CommandError::not_found("there is no directory for the settings of agents")
                .hinted("set HOME")
        })?;
        let binary = std::env::current_exe()
            .map_err(|error| CommandError::io("cannot find the path of this binary", error))?;
        let forge = binary.to_str().map(str::to_owned).ok_or_else(|| {
            let shown = binary.display();
            CommandError::unsupported(format!("the path of this binary is not UTF-8: '{shown}'"))
                .hinted("move it to a directory whose name is UTF-8")
        })?;
        let found = super::binary::on_path(environment, "forge");
        let word = match found.and_then(|found| found.canonicalize().ok()) {
            Some(found) if Some(&found) == binary.canonicalize().ok().as_ref() => {
                "forge".to_owned()
            }
            _ => quoted(&forge),
        };
        let project = store_place::new_store_path(&context.cwd);
        let project = project.parent().unwrap_or(&context.cwd);
        let project = match discovery::find_store(&context.cwd, &context.environment) {
            // A store that was created without a repository is in the project's folder.
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

    /// Returns the command line of a hook, for agents that run it in a shell.
    pub fn hook_command(&self, agent: CodingAgent, event: &str) -> String {
        format!("{} hook {} {event}", quoted(&self.forge), agent.name())
    }
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

/// Returns the hooks in the form of Claude Code, which other agents use too: a list of groups for
/// each event.
fn hook_groups(
    agent: CodingAgent,
    target: &InstallTarget,
    events: &[(&str, Option<&str>, u32)],
    more: impl Fn(&str) -> Vec<(&'static str, CstInputValue)>,
) -> WantedContent {
    let edit = |(event, matcher, timeout): &(&str, Option<&str>, u32)| {
        let mut handler = vec![
            ("type".to_owned(), "command".into()),
            ("command".to_owned(), target.hook_command(agent, event).into()),
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

/// Returns the entry of the MCP server in the form that most agents use.
fn mcp_server(target: &InstallTarget) -> WantedContent {
    WantedContent::Json(vec![JsonEdit::Member {
        path: path(&["mcpServers", "forge"]),
        value: object([("command", target.forge.as_str().into()), ("args", texts(["mcp"]))]),
        keep: false,
    }])
}
