//! `forge story`.

use crate::args::value::{MomentArg, NameArg};
use crate::context::Context;
use crate::report::story::StoryReport;
use crate::session_reader::SessionReader;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, SessionNeed};
use forge_store::story::Story;

#[derive(Debug, clap::Args)]
pub struct StoryArgs {
    /// Session whose story to tell; the current one by default
    #[arg(value_name = "SESSION")]
    pub of: Option<NameArg>,

    /// Moment up to which to tell it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Largest number of lines to tell; the last ones are told
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Tell what is otherwise only counted, too: every command, message and repeated check
    #[arg(long)]
    pub all: bool,
}

impl Verb for StoryArgs {
    const NAME: &'static str = "story";
    type Opened = OpenedStore;
    type Report = StoryReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = opened.store.clone();
        let session = match &self.of {
            Some(name) => workspace::named_session(&store, name.as_str())?,
            None => workspace::choose_session(context, &store, SessionNeed::Existing)?,
        };
        let reading = SessionReader { store, session };
        let point = reading.point(context, self.at.as_ref())?;
        let mut story = Story::read(&reading.state(&point, false)?)?;
        if let Some(since) = &self.since {
            story.retain_since(reading.time(context, since)?);
        }
        let earlier = self.limit.map_or(0, |limit| story.keep_last(limit));
        story.read_whole_texts(&reading.session, &forge_agents::resolve)?;
        Ok(StoryReport { story, earlier, all: self.all })
    }
}
