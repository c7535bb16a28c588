//! `forge brief`.

use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::brief::{BUDGET_BYTES, BriefReport, BriefScreen};
use crate::session_reader::SessionReader;
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::store::SessionBrief;

/// Arguments of `forge brief`.
#[derive(Debug, clap::Args)]
pub struct BriefArgs {
    /// Moment at which it was known
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Largest size in bytes
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<usize>,
}

/// Runs `forge brief`. Without a session, it explains how to start one.
pub fn run(args: &BriefArgs, context: &mut Context) -> Result<(), CommandError> {
    let budget = args.budget.unwrap_or(BUDGET_BYTES);
    let store = workspace::open_store(context, StoreAccess::Read)?;
    if context.session().is_none() && args.at.is_none() && store.current_session()?.is_none() {
        let screen = BriefScreen { brief: SessionBrief::empty(), checkpoint: None, revision: None };
        return context.out.emit(&BriefReport::new(screen, budget));
    }
    let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
    let reading = SessionReader { store, session };
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let screen = super::checkpoint_query::brief_screen(&reading, &state)?;
    context.out.emit(&BriefReport::new(screen, budget))?;
    workspace::catch_up_index(&reading.store);
    Ok(())
}
