//! `forge hooks`: installs forge in a coding agent, and removes it.

use crate::context::Context;
use crate::discovery;
use crate::error::CommandError;
use crate::git;
use crate::integration::agent::{CodingAgent, InstallScope, InstallTarget, IntegrationPart};
use crate::integration::binary;
use crate::integration::detect;
use crate::integration::fault::InstallationFault;
use crate::integration::plan::InstallPlan;
use crate::integration::receipt::ReceiptFolder;
use crate::report::hooks::{
    HooksInstallReport, HooksStatusReport, HooksUninstallReport, InstallOutcome, OmittedPart,
    PartChange, PartStatus, ScopeStatus, print_plan,
};
use crate::text::and_list;
use crate::verb::{Verb, VerbResult, commands};
use std::path::Path;

/// Make forge part of a coding agent.
#[derive(Debug, clap::Subcommand)]
pub enum HooksCommand {
    /// Let an agent save before each compaction and get back what it lost
    Install(HooksInstallArgs),
    /// Show what is installed in each agent, and where
    Status(HooksStatusArgs),
    /// Remove forge from an agent's files
    Uninstall(HooksUninstallArgs),
}

/// The scope of an installation.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false)]
pub struct HooksScopeArgs {
    /// Install for you in this project (Claude Code only, and its default)
    #[arg(long)]
    pub local: bool,

    /// Install for everybody who works in this project
    #[arg(long)]
    pub project: bool,

    /// Install for you in all projects (the default of the other agents)
    #[arg(long)]
    pub user: bool,
}

#[derive(Debug, clap::Args)]
pub struct HooksInstallArgs {
    /// Agent
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: CodingAgent,

    #[command(flatten)]
    pub scope: HooksScopeArgs,

    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub struct HooksStatusArgs {
    /// Agent; all by default
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: Option<CodingAgent>,
}

#[derive(Debug, clap::Args)]
pub struct HooksUninstallArgs {
    /// Agent
    #[arg(value_name = "AGENT", value_enum)]
    pub agent: CodingAgent,

    #[command(flatten)]
    pub scope: HooksScopeArgs,

    /// Accepted as for 'hooks install'; uninstalling does not ask
    #[arg(long)]
    pub yes: bool,
}

commands!(HooksCommand: Install, Status, Uninstall);

fn scope(agent: CodingAgent, args: HooksScopeArgs) -> Result<InstallScope, CommandError> {
    let scope = match (args.local, args.project, args.user) {
        (true, ..) => InstallScope::Local,
        (_, true, _) => InstallScope::Project,
        (_, _, true) => InstallScope::User,
        _ => agent.default_scope(),
    };
    if !agent.has_scope(scope) {
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

impl Verb for HooksInstallArgs {
    const NAME: &'static str = "hooks install";
    type Opened = ();
    type Report = HooksInstallReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let scope = scope(self.agent, self.scope)?;
        let target = InstallTarget::from_context(context)?;
        let receipts = ReceiptFolder::for_user(&context.environment)?;
        let plan = InstallPlan::make(self.agent, scope, &target, &receipts)?;
        let mut report = HooksInstallReport {
            agent: self.agent,
            scope,
            forge: target.forge.clone(),
            outcome: InstallOutcome::Already,
            parts: part_changes(&plan, &target),
            left_out: plan
                .left_out
                .iter()
                .map(|(part, reason)| OmittedPart { part: *part, reason: reason.clone() })
                .collect(),
            notes: notes(&plan, &target, context),
        };
        if !plan.is_installed() {
            let question = format!("Install this for {} ({})?", self.agent.title(), scope.name());
            if self.yes || context.out.ask(&question, |screen| print_plan(&report, screen))? {
                plan.install(&receipts)?;
                report.outcome = InstallOutcome::Now;
            } else {
                report.outcome = InstallOutcome::Not;
            }
        }
        Ok(report)
    }
}

fn part_changes(plan: &InstallPlan, target: &InstallTarget) -> Vec<PartChange> {
    let wanted = plan.agent.wanted_changes(plan.scope, target);
    let mut parts = Vec::new();
    for wanted in wanted {
        let Some(step) = plan.files.iter().find(|step| step.file == wanted.file) else { continue };
        if !step.parts.contains(&wanted.part) {
            continue;
        }
        parts.push(PartChange {
            part: wanted.part,
            file: shown_path(&wanted.file, target),
            new_file: step.without.is_none(),
            unchanged: step.is_installed(),
            contents: wanted.describe(),
        });
    }
    parts
}

/// Formats a path for people.
fn shown_path(file: &Path, target: &InstallTarget) -> String {
    if let Ok(inside) = file.strip_prefix(&target.project) {
        return inside.display().to_string();
    }
    match file.strip_prefix(&target.home) {
        Ok(inside) => format!("~/{}", inside.display()),
        Err(_) => file.display().to_string(),
    }
}

fn notes(plan: &InstallPlan, target: &InstallTarget, context: &Context) -> Vec<String> {
    let mut notes: Vec<String> =
        plan.agent.notes(plan.scope).iter().map(|note| (*note).to_owned()).collect();
    if plan.scope == InstallScope::Local {
        let seen: Vec<String> = plan
            .files
            .iter()
            .filter(|step| step.file.starts_with(&target.project))
            .filter(|step| git::is_ignored(&target.project, &step.file) == Some(false))
            .map(|step| shown_path(&step.file, target))
            .collect();
        if !seen.is_empty() {
            let (line, them) =
                if seen.len() == 1 { ("a line", "it") } else { ("a line for each", "them") };
            notes.push(format!(
                "git does not ignore {}: {line} in '.git/info/exclude' keeps {them} yours.",
                and_list(&seen)
            ));
        }
    }
    if plan.scope == InstallScope::Project {
        notes.push(format!(
            "The hooks call '{}': they fail for anyone who has forge elsewhere or not at all.",
            target.forge
        ));
    }
    if let Err(error) = store_directory(context, target) {
        notes.push(format!(
            "{}: until 'forge init' makes one the hooks do nothing here.",
            crate::text::capitalised(error.message())
        ));
    }
    notes
}

fn store_directory(
    context: &Context,
    target: &InstallTarget,
) -> Result<std::path::PathBuf, CommandError> {
    context
        .store_directory()
        .or_else(|_| discovery::find_store(&target.project, &context.environment))
}

impl Verb for HooksStatusArgs {
    const NAME: &'static str = "hooks status";
    type Opened = ();
    type Report = HooksStatusReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let target = InstallTarget::from_context(context)?;
        let agents = self.agent.map_or_else(|| CodingAgent::ALL.to_vec(), |agent| vec![agent]);
        let found: Vec<(CodingAgent, Vec<ScopeStatus>)> =
            agents.into_iter().map(|agent| (agent, installations(agent, &target))).collect();
        let none =
            |(agent, scopes): &(CodingAgent, Vec<ScopeStatus>)| scopes.is_empty().then_some(*agent);
        Ok(HooksStatusReport {
            store: store_directory(context, &target).is_ok(),
            forge: target.forge.clone(),
            not_installed: found.iter().filter_map(none).collect(),
            installed: found.into_iter().flat_map(|(_, scopes)| scopes).collect(),
        })
    }
}

/// Returns the installations of an agent that apply here: each scope in which a part other than the
/// section is installed or cannot be examined.
pub fn installations(agent: CodingAgent, target: &InstallTarget) -> Vec<ScopeStatus> {
    let scopes = InstallScope::ALL.into_iter().filter(|scope| agent.has_scope(*scope));
    let off = detect::switched_off(agent, target).map(|(file, setting)| {
        InstallationFault::switched_off(agent, setting, &shown_path(&file, target))
    });
    scopes
        .map(|scope| {
            let parts: Vec<PartStatus> = detect::find_parts(agent, scope, target)
                .into_iter()
                .map(|found| PartStatus {
                    part: found.part,
                    file: shown_path(&found.file, target),
                    installed: found.installed,
                    current: found.binaries.iter().all(|binary| *binary == target.forge),
                    missing_binaries: found
                        .binaries
                        .iter()
                        .filter(|binary| !binary::is_program(Path::new(binary)))
                        .cloned()
                        .collect(),
                    binaries: found.binaries,
                    faults: {
                        let is_off = found.part == IntegrationPart::Hooks && found.installed;
                        let off = off.clone().filter(|_| is_off);
                        found.faults.into_iter().chain(off).collect()
                    },
                    error: found.error,
                })
                .collect();
            ScopeStatus { agent, scope, parts }
        })
        .filter(|status| {
            // Several agents may read the page with the section, so the section alone does not show
            // an installation for this agent.
            status.parts.iter().any(|part| {
                part.part != IntegrationPart::Section && (part.installed || part.error.is_some())
            })
        })
        .collect()
}

impl Verb for HooksUninstallArgs {
    const NAME: &'static str = "hooks uninstall";
    type Opened = ();
    type Report = HooksUninstallReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let scope = scope(self.agent, self.scope)?;
        let target = InstallTarget::from_context(context)?;
        let receipts = ReceiptFolder::for_user(&context.environment)?;
        let plan = InstallPlan::make(self.agent, scope, &target, &receipts)?;
        let files: Vec<String> = plan
            .files
            .iter()
            .filter(|step| step.has_own_entries())
            .map(|step| shown_path(&step.file, &target))
            .collect();
        plan.uninstall(&receipts)?;
        let elsewhere =
            installations(self.agent, &target).into_iter().map(|status| status.scope).collect();
        Ok(HooksUninstallReport { agent: self.agent, scope, files, elsewhere })
    }
}
