//! `forge show`: shows anything that has a name.

use super::checkpoint_query::state_report;
use super::entity::show_entity;
use crate::args::value::{EntityArg, MomentArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::entity::EntityShowReport;
use crate::report::state::StateReport;
use crate::session_reader::{SessionReader, find_entity_of_any_kind};
use crate::verb::{EitherReport, Verb, VerbResult};
use crate::workspace;
use forge_store::store::ResolvedMoment;

#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Id of a claim or a fact, or a unique prefix of it; or a moment: '#42', a tag, a branch, a
    /// time
    #[arg(value_name = "WHAT")]
    pub what: String,

    /// Moment at which to show a claim or a fact
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Show whole texts
    #[arg(long)]
    pub full: bool,
}

impl Verb for ShowArgs {
    const NAME: &'static str = "show";
    type Opened = SessionReader;
    type Report = EitherReport<EntityShowReport, StateReport>;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        if is_number(&self.what) {
            let moment = self.moment(reading, context)?;
            return state_report(reading, &moment, self.full, context).map(EitherReport::Second);
        }
        let resolved = reading.moment(context, self.at.as_ref())?;
        let state = reading.state(&resolved, false)?;
        let name: EntityArg = self.what.parse().map_err(CommandError::invalid)?;
        let unknown = match find_entity_of_any_kind(&state, &name) {
            Ok(known) => {
                return show_entity(reading, &state, known, self.full, context)
                    .map(EitherReport::First);
            }
            Err(error) if error.kind() == CommandErrorKind::NotFound => error,
            Err(error) => return Err(error),
        };
        let moment = self.moment(reading, context).map_err(|_| unknown)?;
        state_report(reading, &moment, self.full, context).map(EitherReport::Second)
    }
}

impl ShowArgs {
    fn moment(
        &self,
        reading: &SessionReader,
        context: &Context,
    ) -> Result<ResolvedMoment, CommandError> {
        let moment: MomentArg = self.what.parse().map_err(CommandError::invalid)?;
        workspace::resolved_moment(context, &reading.session, &moment)
    }
}

/// Whether a text is the number of a revision or checkpoint, or goes back from it: `#42`, `#42~3`.
/// Any other text that begins with `#` can be an id.
fn is_number(what: &str) -> bool {
    what.strip_prefix('#').is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'~')
    })
}
