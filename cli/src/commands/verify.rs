//! `forge verify`, `forge rebuild`, `forge repair`.

use super::status::unfinished_imports;
use crate::context::Context;
use crate::report::verify::{LossAcknowledgement, StoreRepairReport, StoreVerifyReport};
use crate::verb::{EitherReport, OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::{RebuildCounts, SealStatus, Store, VerifyDepth};
use std::path::PathBuf;

/// Arguments of `forge verify`. Exit code 0: the store is sound; 1: it is damaged, and everything
/// can be rebuilt or repaired; 2: data is lost; 6: data was not written with the store's key; 7:
/// sound, but its key or its witness is missing here.
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

impl Verb for VerifyArgs {
    const NAME: &'static str = "verify";
    type Opened = ();
    type Report = StoreVerifyReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let path = context.store_directory()?;
        let depth = if self.read_data { VerifyDepth::ReadData } else { VerifyDepth::Quick };
        let keyring = context.environment.keyring();
        let is_in_database = Store::database_of(&path).is_ok_and(|place| place.is_some());
        let found = if is_in_database {
            let options = workspace::store_options(context, StoreAccess::Read);
            Store::open(&path, options)?.verify_in_database(depth)?
        } else {
            Store::verify(&path, depth, context.now, keyring.as_deref())?
        };
        if matches!(found.seal_status, SealStatus::NoKey | SealStatus::NoWitness) {
            context.unverified.set(true);
        }
        let mut verified = StoreVerifyReport::new(&path, self.read_data, found);
        // If the store cannot be opened, its damage matters more than unfinished imports.
        let options = workspace::store_options(context, StoreAccess::Read);
        verified.unfinished = Store::open(&path, options)
            .and_then(|store| unfinished_imports(&store))
            .unwrap_or_default();
        Ok(verified)
    }
}

#[derive(Debug, clap::Args)]
pub struct RebuildArgs {}

impl Verb for RebuildArgs {
    const NAME: &'static str = "rebuild";
    type Opened = OpenedStore;
    type Report = RebuildCounts;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        Ok(opened.store.rebuild()?)
    }
}

impl Verb for RepairArgs {
    const NAME: &'static str = "repair";
    type Opened = ();
    type Report = EitherReport<StoreRepairReport, LossAcknowledgement>;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let Some(to) = &self.to else {
            let store = workspace::open_store(context, StoreAccess::Write)?;
            return Ok(EitherReport::Second(store.acknowledge_losses()?.into()));
        };
        let from = context.store_directory()?;
        let to = context.cwd.join(to);
        let keyring = context.environment.keyring();
        let done = Store::repair(&from, &to, context.now, keyring.as_deref())?;
        Ok(EitherReport::First(StoreRepairReport::new(&from, &to, done)))
    }
}
