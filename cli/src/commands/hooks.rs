//! `forge hooks`: installs forge in a coding agent, and removes it.

use crate::context::Context;
use crate::discovery;
use crate::error::{CommandError, EXIT_NO};
use crate::git;
use crate::integration::agent::{Agent, Part, Place, Scope};
use crate::integration::binary;
use crate::integration::found;
use crate::integration::plan::Plan;
use crate::integration::receipt::Receipts;
use crate::report::hooks::{
    Change, Installation, Installed, LeftOut, PartStatus, ScopeStatus, Status, Uninstalled, told,
};
use std::path::Path;

/// Make forge part of a coding agent.
#[derive(Debug, clap::Subcommand)]
pub enum HooksCommand {
    /// Let an agent save before each compaction and get back what it lost
    Install(InstallArgs),
    /// Say for each agent what of forge is installed where
    Status(StatusArgs),
    /// Take out of an agent's files what was put into them
    Uninstall(UninstallArgs),
}

/// For whom.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// For you, in this project (Claude Code only, and its default)
    #[arg(long)]
    pub local: bool,

    /// For everybody who works in this project
    #[arg(long)]
    pub project: bool,

    /// For you, in all projects (the default of the other agents)
    #[arg(long)]
    pub user: bool,
}

/// Arguments of `forge hooks install`.
#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// Name the agent
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: Agent,

    #[command(flatten)]
    /// For whom
    pub scope: ScopeArgs,

    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `forge hooks status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Name the agent instead of all
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: Option<Agent>,
}

/// Arguments of `forge hooks uninstall`.
#[derive(Debug, clap::Args)]
pub struct UninstallArgs {
    /// Name the agent
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: Agent,

    #[command(flatten)]
    /// For whom
    pub scope: ScopeArgs,
}

/// Runs `forge hooks`.
pub fn run(command: &HooksCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        HooksCommand::Install(args) => install(args, context),
        HooksCommand::Status(args) => status(args, context),
        HooksCommand::Uninstall(args) => uninstall(args, context),
    }
}

fn scope(agent: Agent, args: ScopeArgs) -> Result<Scope, CommandError> {
    let scope = match (args.local, args.project, args.user) {
        (true, ..) => Scope::Local,
        (_, true, _) => Scope::Project,
        (_, _, true) => Scope::User,
        _ => agent.default_scope(),
    };
    if !agent.has(scope) {
        let title = agent.title();
        return Err(CommandError::invalid(format!(
            "{title} has no settings for one person in one project"
        ))
        .hinted(
            "'--user' is for you in all projects; where a project has no store, nothing is done",
        )
        .hinted("'--project' is for everybody who works in this project"));
    }
    Ok(scope)
}

fn install(args: &InstallArgs, context: &mut Context) -> Result<(), CommandError> {
    let scope = scope(args.agent, args.scope)?;
    let place = Place::of(context)?;
    let receipts = Receipts::of(&context.environment)?;
    let plan = Plan::make(args.agent, scope, &place, &receipts)?;
    let mut report = Installation {
        agent: args.agent,
        scope,
        forge: place.forge.clone(),
        outcome: Installed::Already,
        parts: parts(&plan, &place),
        left_out: plan
            .left_out
            .iter()
            .map(|(part, reason)| LeftOut { part: *part, reason: reason.clone() })
            .collect(),
        notes: notes(&plan, &place, context),
    };
    if !plan.is_installed() {
        let question = format!("Install this for {} ({})?", args.agent.title(), scope.name());
        if args.yes || context.out.ask(&question, |screen| told(&report, screen))? {
            plan.install(&receipts)?;
            report.outcome = Installed::Now;
        } else {
            report.outcome = Installed::Not;
            context.exit_code = EXIT_NO;
        }
    }
    context.out.emit(&report)
}

fn parts(plan: &Plan, place: &Place) -> Vec<Change> {
    let wanted = plan.agent.wanted(plan.scope, place);
    let mut parts = Vec::new();
    for wanted in wanted {
        let Some(step) = plan.files.iter().find(|step| step.file == wanted.file) else { continue };
        if !step.parts.contains(&wanted.part) {
            continue;
        }
        parts.push(Change {
            part: wanted.part,
            file: shown(&wanted.file, place),
            new_file: step.without.is_none(),
            unchanged: step.is_installed(),
            contents: wanted.told(),
        });
    }
    parts
}

/// Formats a path for people.
fn shown(file: &Path, place: &Place) -> String {
    if let Ok(inside) = file.strip_prefix(&place.project) {
        return inside.display().to_string();
    }
    match file.strip_prefix(&place.home) {
        Ok(inside) => format!("~/{}", inside.display()),
        Err(_) => file.display().to_string(),
    }
}

fn notes(plan: &Plan, place: &Place, context: &Context) -> Vec<String> {
    let mut notes: Vec<String> =
        plan.agent.notes(plan.scope).iter().map(|note| (*note).to_owned()).collect();
    if plan.scope == Scope::Local {
        let seen: Vec<String> = plan
            .files
            .iter()
            .filter(|step| step.file.starts_with(&place.project))
            .filter(|step| git::ignores(&place.project, &step.file) == Some(false))
            .map(|step| shown(&step.file, place))
            .collect();
        if !seen.is_empty() {
            notes.push(format!(
                "git does not ignore {}: a line for each in '.git/info/exclude' keeps them yours.",
                seen.join(" and ")
            ));
        }
    }
    if plan.scope == Scope::Project {
        notes.push(format!(
            "The hooks call '{}': who has forge elsewhere, or not at all, sees them fail.",
            place.forge
        ));
    }
    if let Err(error) = store(context, place) {
        notes.push(format!(
            "{}: until 'forge init' makes one the hooks do nothing here.",
            capitalised(error.message())
        ));
    }
    notes
}

fn store(context: &Context, place: &Place) -> Result<std::path::PathBuf, CommandError> {
    context.store_directory().or_else(|_| discovery::find(&place.project, &context.environment))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

fn status(args: &StatusArgs, context: &mut Context) -> Result<(), CommandError> {
    let place = Place::of(context)?;
    let agents = args.agent.map_or_else(|| Agent::ALL.to_vec(), |agent| vec![agent]);
    let found: Vec<(Agent, Vec<ScopeStatus>)> =
        agents.into_iter().map(|agent| (agent, installed(agent, &place))).collect();
    let none = |(agent, scopes): &(Agent, Vec<ScopeStatus>)| scopes.is_empty().then_some(*agent);
    let report = Status {
        store: store(context, &place).is_ok(),
        forge: place.forge.clone(),
        not_installed: found.iter().filter_map(none).collect(),
        installed: found.into_iter().flat_map(|(_, scopes)| scopes).collect(),
    };
    context.out.emit(&report)
}

/// Returns the installations of an agent that apply here: each scope with any existing part.
#[must_use]
pub fn installed(agent: Agent, place: &Place) -> Vec<ScopeStatus> {
    let scopes = Scope::ALL.into_iter().filter(|scope| agent.has(*scope));
    scopes
        .map(|scope| {
            let parts: Vec<PartStatus> = found::look(agent, scope, place)
                .into_iter()
                .map(|found| PartStatus {
                    part: found.part,
                    file: shown(&found.file, place),
                    installed: found.there,
                    current: found.binaries.iter().all(|binary| *binary == place.forge),
                    missing_binaries: found
                        .binaries
                        .iter()
                        .filter(|binary| !binary::is_program(Path::new(binary)))
                        .cloned()
                        .collect(),
                    binaries: found.binaries,
                    faults: found.faults,
                    error: found.error,
                })
                .collect();
            ScopeStatus { agent, scope, parts }
        })
        .filter(|status| {
            // A section in a page that several agents read does not show that this agent is
            // installed.
            status
                .parts
                .iter()
                .any(|part| part.part != Part::Section && (part.installed || part.error.is_some()))
        })
        .collect()
}

fn uninstall(args: &UninstallArgs, context: &mut Context) -> Result<(), CommandError> {
    let scope = scope(args.agent, args.scope)?;
    let place = Place::of(context)?;
    let receipts = Receipts::of(&context.environment)?;
    let plan = Plan::make(args.agent, scope, &place, &receipts)?;
    let files: Vec<String> = plan
        .files
        .iter()
        .filter(|step| step.is_to_go())
        .map(|step| shown(&step.file, &place))
        .collect();
    plan.uninstall(&receipts)?;
    let elsewhere = installed(args.agent, &place).into_iter().map(|status| status.scope).collect();
    context.out.emit(&Uninstalled { agent: args.agent, scope, files, elsewhere })
}
