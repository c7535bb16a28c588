//! `forge search`.

use super::status::session_count;
use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::session_reader::SessionReader;
use crate::verb::{Verb, VerbResult};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::model::Kind;
use forge_store::store::{SearchPage, SearchQuery};

#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// Words, or parts of words, that must all occur; one in double quotes can have spaces
    #[arg(value_name = "WORD", required = true)]
    pub words: Vec<String>,

    /// Kind to find: message, command, code, hypothesis, note and others; can be repeated
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<Kind>,

    /// Earliest time at which a hit first contained the words, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest time at which a hit first contained the words
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Search all sessions
    #[arg(long)]
    pub all_sessions: bool,

    /// Maximum number to show, up to 200
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// Cursor of the previous page
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

impl Verb for SearchArgs {
    const NAME: &'static str = "search";
    type Opened = ();
    type Report = SearchPage;

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        if self.limit == 0 {
            return Err(CommandError::invalid("a search shows at least one hit")
                .hinted("leave '--limit' out, or give it 1 or more"));
        }
        Ok(())
    }

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        // The search index is updated if the store is writable.
        let store = workspace::open_store(context, StoreAccess::Write)
            .or_else(|_| workspace::open_store(context, StoreAccess::Read))?;
        // A word with spaces, which the shell kept together, is one phrase.
        let quoted = |word: &String| {
            let spaced = word.contains(char::is_whitespace) && !word.contains('"');
            if spaced { format!("\"{word}\"") } else { word.clone() }
        };
        let text = self.words.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let mut query = SearchQuery::parse(&text)?;
        query.kinds = self.kind.iter().copied().collect();
        query.limit = self.limit.max(1);
        query.cursor.clone_from(&self.cursor);
        if self.since.is_some() || self.until.is_some() {
            let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
            let reading = SessionReader { store: store.clone(), session };
            let range = reading.time_range(context, self.since.as_ref(), self.until.as_ref())?;
            (query.since, query.until) = (range.since, range.until);
        }
        if self.all_sessions {
            return Ok(store.search_all(&query, &forge_agents::resolve)?);
        }
        let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
        let page = store.search(&[session], &query, &forge_agents::resolve)?;
        if page.hits.is_empty() && session_count(&store)? > 1 {
            context.out.print_status("'--all-sessions' searches the other sessions too.");
        }
        Ok(page)
    }
}
