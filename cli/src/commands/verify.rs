//! `forge verify`, `forge rebuild`, `forge repair`.

use super::status::unfinished_imports;
use crate::context::Context;
use crate::error::{CommandError, EXIT_FORGED};
use crate::report::verify::{
    LossAcknowledgement, StoreRebuildReport, StoreRepairReport, StoreVerifyReport,
};
use crate::workspace::{self, StoreAccess};
use forge_store::store::{SealStatus, Store, VerifyDepth, VerifyOutcome};
use std::path::PathBuf;

/// Arguments of `forge verify`. Exit code 0: the store is sound; 1: it is damaged, and everything
/// can be rebuilt or repaired; 2: data is lost; 6: data was not written with the store's key; 7:
/// sound, but its key is missing here.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Also read every object and compare every derived row
    #[arg(long)]
    pub read_data: bool,
}

/// Arguments of `forge repair`. Exit code 0: nothing was lost; 2: the lost data is listed.
#[derive(Debug, clap::Args)]
pub struct RepairArgs {
    /// Directory for the repaired store, which must be empty or not exist
    #[arg(value_name = "TO", required_unless_present = "acknowledge")]
    pub to: Option<PathBuf>,

    /// End the notice of 'forge status' about what an earlier repair of this store could not save
    #[arg(long, conflicts_with = "to")]
    pub acknowledge: bool,
}

/// Checks the store.
pub fn verify(args: &VerifyArgs, context: &mut Context) -> Result<(), CommandError> {
    let path = context.store_directory()?;
    let depth = if args.read_data { VerifyDepth::ReadData } else { VerifyDepth::Quick };
    let keyring = context.keyring();
    let found = Store::verify(&path, depth, context.now, keyring.as_deref())?;
    if matches!(found.standing, SealStatus::NoKey | SealStatus::NoWitness) {
        context.unverified.set(true);
    }
    context.exit_code = match found.outcome {
        VerifyOutcome::Clean => 0,
        VerifyOutcome::Repairable => 1,
        VerifyOutcome::Loss => 2,
        VerifyOutcome::Forged => EXIT_FORGED,
    };
    let mut verified = StoreVerifyReport::new(&path, args.read_data, found);
    // If the store cannot be read, only its damage matters.
    let options = workspace::store_options(context, StoreAccess::Read);
    verified.unfinished = Store::open(&path, options)
        .and_then(|store| unfinished_imports(&store))
        .unwrap_or_default();
    context.out.emit(&verified)
}

/// Rebuilds all derived data.
pub fn rebuild(context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Write)?;
    let rebuilt = store.rebuild()?;
    context.out.emit(&StoreRebuildReport::from(rebuilt))
}

/// Saves what can be saved into a new store.
pub fn repair(args: &RepairArgs, context: &mut Context) -> Result<(), CommandError> {
    let Some(to) = &args.to else {
        let store = workspace::open_store(context, StoreAccess::Write)?;
        let losses = store.acknowledge_losses()?;
        return context.out.emit(&LossAcknowledgement::from(losses));
    };
    let from = context.store_directory()?;
    let to = context.cwd.join(to);
    let keyring = context.keyring();
    let done = Store::repair(&from, &to, context.now, keyring.as_deref())?;
    context.exit_code = if done.lost.is_empty() { 0 } else { 2 };
    context.out.emit(&StoreRepairReport::new(&from, &to, done))
}
