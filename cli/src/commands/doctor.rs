//! `forge doctor`.

use crate::context::Context;
use crate::doctor::{self, FindingSeverity};
use crate::error::{CommandError, CommandErrorKind};
use crate::hook::{log, remote_exchange};
use crate::integration::agent::InstallTarget;
use crate::remote;
use crate::report::doctor::DoctorReport;
use crate::verb::{Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::Store;

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {}

impl Verb for DoctorArgs {
    const NAME: &'static str = "doctor";
    type Opened = ();
    type Report = DoctorReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let target = InstallTarget::from_context(context)?;
        let mut findings = Vec::new();
        let mut store = None;
        let mut compactions = Vec::new();
        let mut log_lines = Vec::new();
        match context.store_directory() {
            Ok(path) => {
                let options = workspace::store_options(context, StoreAccess::Read);
                let (health, found, store_findings) = doctor::examine_store(&path, &options);
                if health.opens {
                    let opened = Store::open(&path, options.clone())?;
                    let unpushed = remote::unpushed_lines(context, &opened);
                    // If the remotes cannot be read, `examine_remotes` reports it.
                    let failed = match &unpushed {
                        Ok(_) => remote_exchange::failed_exchanges(context, &opened)?,
                        Err(_) => Vec::new(),
                    };
                    findings.extend(doctor::examine_remotes(unpushed));
                    findings.extend(doctor::examine_exchanges(&failed));
                    if let Err(error) = workspace::check_session(context, &opened) {
                        findings.push(doctor::unusable("session", &error));
                    }
                }
                store = Some(health);
                compactions = found;
                findings.extend(store_findings);
                findings.extend(doctor::ignored_settings(context.config.ignored()));
                // Without a folder for notes there is no log.
                if let Some(notes) = Store::notes_of(&path, options.keyring.as_deref()) {
                    log_lines = log::read(&log::store_log(&notes)).map_err(|error| {
                        CommandError::io("cannot read the log of the hooks", error)
                    })?;
                }
            }
            Err(error) if error.kind() == CommandErrorKind::NotFound => {
                if context.names_store() {
                    findings.push(doctor::unusable("store", &error));
                }
            }
            Err(error) => return Err(error),
        }
        let installed = |agent| super::hooks::installations(agent, &target);
        let (agents, agent_findings) = doctor::examine_agents(
            &context.environment,
            installed,
            &log_lines,
            &compactions,
            store.is_some(),
        );
        findings.extend(agent_findings);
        findings.sort_by_key(|finding| finding.severity);
        let healthy = findings.iter().all(|finding| finding.severity != FindingSeverity::Problem);
        let (version, forge) = (env!("CARGO_PKG_VERSION").to_owned(), target.forge);
        Ok(DoctorReport { healthy, version, forge, agents, store, findings })
    }
}
