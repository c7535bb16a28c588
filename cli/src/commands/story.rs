//! `forge story`.

use crate::args::value::{MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::story::StoryReport;
use crate::session_reader::SessionReader;
use crate::text::TextLength;
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace;
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{ResolvedMoment, StateAt};
use forge_store::story::{Story, StoryItem};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, clap::Args)]
pub struct StoryArgs {
    /// Session whose story to show; the current one by default
    #[arg(value_name = "SESSION")]
    pub of: Option<NameArg>,

    /// Last moment of the story
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Maximum number of lines; the last ones are shown
    // `/forge:story` gives a number before the user's arguments, which may contain another one.
    #[arg(short = 'n', long, value_name = "N", overrides_with = "limit")]
    pub limit: Option<usize>,

    /// Show what is otherwise only counted, too: every command, message and repeated check
    #[arg(long)]
    pub all: bool,
}

impl Verb for StoryArgs {
    const NAME: &'static str = "story";
    type Opened = OpenedStore;
    type Report = StoryReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = opened.store.clone();
        let of = self.of.as_ref().map(NameArg::as_str);
        let session = workspace::named_or_chosen_session(context, &store, of)?;
        let reading = SessionReader { store, session };
        let (since, moment) =
            reading.story_range(context, self.since.as_ref(), self.at.as_ref())?;
        let request = StoryRequest {
            moment,
            since,
            until: None,
            limit: self.limit,
            all: self.all,
            patches: false,
            oneline: false,
        };
        request.read(&reading)
    }
}

/// Which part of a story to show, and how.
pub struct StoryRequest {
    /// The moment whose state the story is read from.
    pub moment: ResolvedMoment,
    /// The first moment to show.
    pub since: Option<Timestamp>,
    /// The last moment to show.
    pub until: Option<Timestamp>,
    /// The maximum number of lines.
    pub limit: Option<usize>,
    /// Whether to show what is otherwise only counted.
    pub all: bool,
    /// Whether to read the patches of edits.
    pub patches: bool,
    /// Whether each line contains its date, and there are no headings.
    pub oneline: bool,
}

impl StoryRequest {
    /// Reads the story, and the long texts of the lines that it shows.
    pub fn read(&self, reading: &SessionReader) -> Result<StoryReport, CommandError> {
        let state = reading.state(&self.moment, false)?;
        let mut story = Story::read(&state)?;
        let until = self.until.unwrap_or(Timestamp::MAX);
        story.retain_between(self.since.unwrap_or(Timestamp::MIN), until);
        if self.all {
            story.unfold();
        }
        let earlier = self.limit.map_or(0, |limit| story.keep_last(limit));
        story.read_whole_texts(&reading.session, &forge_agents::resolve)?;
        let patches =
            if self.patches { patches(reading, &state, &story)? } else { BTreeMap::new() };
        Ok(StoryReport { story, earlier, patches, oneline: self.oneline })
    }
}

/// Returns the patches of the edits in a story, by the id of the edit.
fn patches(
    reading: &SessionReader,
    state: &StateAt,
    story: &Story,
) -> Result<BTreeMap<String, String>, CommandError> {
    let edits: BTreeSet<&str> = story.items().flat_map(StoryItem::edit_ids).collect();
    let mut texts = reading.texts(TextLength::Whole);
    let mut patches = BTreeMap::new();
    for known in state.facts_of(Kind::Code)? {
        if !edits.contains(known.fact.id.as_str()) {
            continue;
        }
        let Some(patch) = known.fact.value.field("patch") else { continue };
        let whole = texts.resolve(known.source.as_deref(), patch.clone())?;
        if let Some(text) = whole.as_text() {
            patches.insert(known.fact.id, text.to_owned());
        }
    }
    Ok(patches)
}
