//! `forge log`.

use super::checkpoint::CheckpointTimelineArgs;
use super::checkpoint_query::revision_summaries;
use super::story::StoryRequest;
use crate::args::value::{EntityArg, MomentArg, NameArg};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::log::{LogLine, LogReport, LostLine, OperationListReport, RevisionLine};
use crate::report::moment::CheckpointJson;
use crate::report::story::StoryReport;
use crate::report::timeline::TimelineReport;
use crate::session_reader::{KnownEntity, SessionReader, find_entity_of_any_kind};
use crate::verb::{EitherReport, Verb, VerbResult};
use crate::workspace;
use forge_store::diff::describe;
use forge_store::error::Error;
use forge_store::model::{Key, Kind};
use forge_store::store::{HistoryEntry, LogItem, ResolvedMoment};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Entity whose changes to show; all by default
    #[arg(value_name = "ENTITY")]
    pub entity: Option<EntityArg>,

    /// Branch to show; the current one by default
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub branch: Option<NameArg>,

    /// Show the changes on all branches
    #[arg(long)]
    pub all: bool,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest moment
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Show operations, with the ids that 'forge undo' takes
    #[arg(long, conflicts_with = "branch")]
    pub operations: bool,

    /// Show each revision with its changes and each checkpoint, newest first, as for an entity
    #[arg(long, conflicts_with = "operations")]
    pub revisions: bool,

    /// Draw branches, revisions and checkpoints, newest first
    #[arg(long, conflicts_with_all = ["entity", "branch", "operations", "revisions", "story"])]
    pub graph: bool,

    #[command(flatten)]
    pub story: LogStoryArgs,

    /// Maximum number to show; of the story, the last 20 lines by default
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
}

/// How the story is shown.
#[derive(Debug, clap::Args)]
#[group(id = "story", multiple = true, conflicts_with_all = ["entity", "branch", "all", "operations", "revisions"])]
pub struct LogStoryArgs {
    /// Show every fact, with what is otherwise only counted
    #[arg(long)]
    pub facts: bool,

    /// Show the patch of each edit
    #[arg(short = 'p', long)]
    pub patch: bool,

    /// Show each line with its date, and no heading
    #[arg(long)]
    pub oneline: bool,
}

impl Verb for LogArgs {
    const NAME: &'static str = "log";
    type Opened = SessionReader;
    type Report = EitherReport<
        EitherReport<StoryReport, TimelineReport>,
        EitherReport<LogReport, OperationListReport>,
    >;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        if self.graph {
            let timeline = CheckpointTimelineArgs::<true> {
                all: true,
                since: self.since.clone(),
                until: self.until.clone(),
                limit: self.limit,
                no_tui: true,
            };
            let drawn = timeline.timeline(reading, context)?;
            return Ok(EitherReport::First(EitherReport::Second(drawn)));
        }
        if self.shows_the_story(context) {
            let story = self.story(reading, context)?;
            return Ok(EitherReport::First(EitherReport::First(story)));
        }
        self.records(reading, context).map(EitherReport::Second)
    }
}

impl LogArgs {
    /// Returns whether to show the story: by default, but as JSON only with an option of the story.
    /// Otherwise the log shows revisions and checkpoints, or operations.
    fn shows_the_story(&self, context: &Context) -> bool {
        let LogStoryArgs { facts, patch, oneline } = self.story;
        let asks_for_records = self.entity.is_some()
            || self.branch.is_some()
            || self.all
            || self.operations
            || self.revisions;
        !asks_for_records && (facts || patch || oneline || !context.global.json)
    }

    fn story(
        &self,
        reading: &SessionReader,
        context: &Context,
    ) -> Result<StoryReport, CommandError> {
        let (since, moment) =
            reading.story_range(context, self.since.as_ref(), self.until.as_ref())?;
        let request = StoryRequest {
            moment,
            since,
            until: None,
            limit: Some(self.limit.unwrap_or(STORY_LINES)),
            all: self.story.facts,
            patches: self.story.patch,
            oneline: self.story.oneline,
        };
        let report = request.read(reading)?;
        if self.limit.is_none() && self.story.oneline && report.earlier > 0 {
            let (earlier, all) = (report.earlier, report.earlier + STORY_LINES);
            let lines = if earlier == 1 { "line is" } else { "lines are" };
            let note = format!("{earlier} earlier {lines} not shown; '-n {all}' shows all.");
            context.out.print_status(&note);
        }
        Ok(report)
    }

    fn records(
        &self,
        reading: &SessionReader,
        context: &Context,
    ) -> Result<EitherReport<LogReport, OperationListReport>, CommandError> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let name = reading.session.summary()?.info.name;
        if self.operations {
            let mut operations = reading.session.operations(usize::MAX)?;
            if let Some(entity) = &self.entity {
                let head = reading.session.head()?;
                let moment = (!self.all).then_some(&head);
                let history = entity_history(context, reading, moment, entity)?.1;
                let changed: BTreeSet<_> =
                    history.iter().map(|entry| entry.revision.operation).collect();
                operations.retain(|operation| changed.contains(&operation.id));
            }
            let range = reading.time_range(context, self.since.as_ref(), self.until.as_ref())?;
            let operations =
                operations.into_iter().filter(|one| range.contains(one.time)).take(limit);
            let operations = operations.collect();
            let summaries =
                if context.global.json { BTreeMap::new() } else { revision_summaries(reading)? };
            let report = OperationListReport { session: name, operations, summaries };
            return Ok(EitherReport::Second(report));
        }
        let range = reading.time_range(context, self.since.as_ref(), self.until.as_ref())?;
        let moment = match &self.branch {
            None => reading.session.head()?,
            Some(branch) => reading.head_of(context, branch.as_str())?,
        };
        let report = match &self.entity {
            Some(entity) => {
                let moment = (!self.all).then_some(&moment);
                let (key, history) = entity_history(context, reading, moment, entity)?;
                let kept = history.into_iter().filter(|one| range.contains(one.revision.time));
                let line = |HistoryEntry { revision, change }| {
                    LogLine::Revision(RevisionLine::new(revision, describe(&[change])))
                };
                LogReport {
                    session: name,
                    branch: moment.map(|moment| reading.session.branch_of(moment)).transpose()?,
                    entity: Some(key),
                    entries: kept.take(limit).map(line).collect(),
                }
            }
            None => {
                let mut items = if self.all {
                    reading.session.records(0, usize::MAX)?
                } else {
                    reading.session.log(&moment, usize::MAX)?
                };
                items.retain(|item| range.contains(item.time()));
                // By number, which is the order of writing: a clock may have been wrong.
                items.sort_by_key(|item| Reverse(item.sequence()));
                items.truncate(limit);
                warn_of_lost(context, &items);
                let entries = items.into_iter().map(|item| log_line(reading, item));
                LogReport {
                    session: name,
                    branch: if self.all { None } else { Some(reading.session.branch_of(&moment)?) },
                    entity: None,
                    entries: entries.collect::<Result<_, _>>()?,
                }
            }
        };
        Ok(EitherReport::First(report))
    }
}

fn log_line(reading: &SessionReader, item: LogItem) -> Result<LogLine, CommandError> {
    Ok(match item {
        LogItem::Revision(entry) => {
            match reading.session.changes_of(entry.sequence) {
                Ok(changes) => LogLine::Revision(RevisionLine::new(entry, describe(&changes))),
                // The changes were lost before a repair; 'forge verify' reports the loss too.
                Err(error) if error.is_lost() => {
                    LogLine::Unreadable(RevisionLine::new(entry, vec![]))
                }
                Err(error) => return Err(error.into()),
            }
        }
        LogItem::Lost(lost) => {
            LogLine::Lost(LostLine { sequence: lost.sequence, branch: lost.branch })
        }
        LogItem::Checkpoint(checkpoint) => {
            LogLine::Checkpoint(CheckpointJson::new(&reading.session, &checkpoint)?)
        }
    })
}

/// How many lines of the story are shown by default.
const STORY_LINES: usize = 20;

/// Warns which revisions were lost before a repair.
pub(super) fn warn_of_lost(context: &Context, items: &[LogItem]) {
    const NAMED: usize = 8;
    let lost: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            LogItem::Lost(lost) => Some(format!("#{}", lost.sequence)),
            _ => None,
        })
        .collect();
    if lost.is_empty() {
        return;
    }
    let more = if lost.len() > NAMED { ", ..." } else { "" };
    let named = lost.get(..NAMED.min(lost.len())).unwrap_or_default().join(", ");
    let count = match lost.len() {
        1 => "1 revision was".to_owned(),
        count => format!("{count} revisions were"),
    };
    context.out.warn(&format!("{count} lost before a repair and cannot be shown: {named}{more}"));
}

/// Returns the key of a claim and its changes, the latest first: those up to a moment, or those on
/// all branches if there is no moment.
fn entity_history(
    context: &Context,
    reading: &SessionReader,
    moment: Option<&ResolvedMoment>,
    name: &EntityArg,
) -> Result<(Key, Vec<HistoryEntry>), CommandError> {
    let found = match moment {
        Some(moment) => claim_key(reading, moment, name),
        None => claim_key_on_any_branch(context, reading, name),
    };
    // A removed claim has a history too. Without a kind, its whole id finds it on this branch.
    let (key, missing) = match (found, name.kind) {
        (Ok(key), _) => (key, None),
        (Err(error), Some(kind)) => (Key::new(kind, name.id.clone()), Some(error)),
        (Err(error), None) => {
            let head = reading.session.head()?;
            let moment = moment.unwrap_or(&head);
            match workspace::removed_claim(&reading.session, moment, Kind::claims(), &name.id) {
                Some(key) => (key, Some(error)),
                None => return Err(error),
            }
        }
    };
    let history = match moment {
        Some(moment) => reading.session.history(moment, &key).map_err(CommandError::from),
        None => history_on_all_branches(reading, &key),
    };
    match history {
        Ok(history) => Ok((key, history)),
        Err(error) => Err(missing.unwrap_or(error)),
    }
}

/// Returns the key of the claim with this name at a moment.
fn claim_key(
    reading: &SessionReader,
    moment: &ResolvedMoment,
    name: &EntityArg,
) -> Result<Key, CommandError> {
    match find_entity_of_any_kind(&reading.state(moment, false)?, name)? {
        KnownEntity::Claim(key, _) => Ok(key),
        KnownEntity::Fact(fact) => {
            let kind = fact.fact.kind;
            Err(CommandError::invalid(format!("a {kind} is a fact and has no history"))
                .hinted(format!("'forge {kind} show {}' shows it", fact.fact.id)))
        }
    }
}

/// Returns the key of the claim with this name on the current branch; if it has none, on another
/// branch.
fn claim_key_on_any_branch(
    context: &Context,
    reading: &SessionReader,
    name: &EntityArg,
) -> Result<Key, CommandError> {
    let is_missing = |found: &Result<Key, CommandError>| {
        found.as_ref().is_err_and(|error| error.kind() == CommandErrorKind::NotFound)
    };
    let head = reading.session.head()?;
    let here = claim_key(reading, &head, name);
    if !is_missing(&here) {
        return here;
    }
    for branch in reading.session.branches(&head)? {
        let moment = reading.head_of(context, &branch.name)?;
        let there = claim_key(reading, &moment, name);
        if !is_missing(&there) {
            return there;
        }
    }
    here
}

/// Returns the changes of a claim on all branches, the latest first.
fn history_on_all_branches(
    reading: &SessionReader,
    key: &Key,
) -> Result<Vec<HistoryEntry>, CommandError> {
    let mut history = Vec::new();
    for item in reading.session.records(0, usize::MAX)?.into_iter().rev() {
        let LogItem::Revision(revision) = item else { continue };
        let changes = match reading.session.changes_of(revision.sequence) {
            // The changes were lost before a repair.
            Err(error) if error.is_lost() => continue,
            changes => changes?,
        };
        let change = changes.into_iter().find(|change| change.key == *key);
        history.extend(change.map(|change| HistoryEntry { revision, change }));
    }
    if history.is_empty() {
        return Err(Error::not_found(key.kind.name(), key.id.clone()).into());
    }
    Ok(history)
}
