//! `forge brief`.

use crate::args::value::MomentArg;
use crate::context::Context;
use crate::report::brief::{BUDGET_BYTES, BriefReport, BriefScreen};
use crate::session_reader::SessionReader;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, SessionNeed};
use forge_store::store::SessionBrief;

#[derive(Debug, clap::Args)]
pub struct BriefArgs {
    /// Moment at which it was known
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Largest size in bytes
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<usize>,
}

impl Verb for BriefArgs {
    const NAME: &'static str = "brief";
    type Opened = OpenedStore;
    type Report = BriefReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let budget = self.budget.unwrap_or(BUDGET_BYTES);
        // Before the first session, there is an empty brief instead of an error.
        if context.session().is_none() && self.at.is_none() && store.current_session()?.is_none() {
            let screen =
                BriefScreen { brief: SessionBrief::empty(), checkpoint: None, revision: None };
            return Ok(BriefReport::new(screen, budget));
        }
        let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
        let reading = SessionReader { store: store.clone(), session };
        let moment = reading.moment(context, self.at.as_ref())?;
        let state = reading.state(&moment, false)?;
        let screen = super::checkpoint_query::brief_screen(&reading, &state, &state.facts()?)?;
        Ok(BriefReport::new(screen, budget))
    }
}
