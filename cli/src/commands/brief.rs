//! `forge brief`.

use crate::args::value::Moment;
use crate::context::Context;
use crate::error::CommandError;
use crate::reading::Reading;
use crate::report::brief::{BUDGET_BYTES, BriefReport, BriefScreen};
use crate::workplace::{self, Access, Need};
use forge_store::store::SessionBrief;

/// Arguments of `forge brief`.
#[derive(Debug, clap::Args)]
pub struct BriefArgs {
    /// Moment at which it was known
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// Largest size in bytes
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<usize>,
}

/// Runs `forge brief`. Without a session, it explains how to start one.
pub fn run(args: &BriefArgs, context: &mut Context) -> Result<(), CommandError> {
    let budget = args.budget.unwrap_or(BUDGET_BYTES);
    let store = workplace::open(context, Access::Read)?;
    if context.session().is_none() && args.at.is_none() && store.current_session()?.is_none() {
        let screen = BriefScreen { brief: SessionBrief::empty(), checkpoint: None, revision: None };
        return context.out.emit(&BriefReport::new(screen, budget));
    }
    let session = workplace::session(context, &store, Need::Existing)?;
    let reading = Reading { store, session };
    let point = reading.point(context, args.at.as_ref())?;
    let state = reading.state(&point, false)?;
    let screen = super::look::brief_screen(&reading, &state)?;
    context.out.emit(&BriefReport::new(screen, budget))?;
    workplace::finish(&reading.store);
    Ok(())
}
