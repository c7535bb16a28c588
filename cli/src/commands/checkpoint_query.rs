//! `forge checkpoint`: list, show, at, diff, restore and timeline.

use super::checkpoint::{
    CheckpointAtArgs, CheckpointDiffArgs, CheckpointListArgs, CheckpointRestoreArgs,
    CheckpointShowArgs, CheckpointTimelineArgs, DEFAULT_END, StateViewArgs,
};
use crate::args::value::MomentArg;
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::brief::BriefScreen;
use crate::report::checkpoint::{CheckpointListItem, CheckpointListReport};
use crate::report::diff::{CheckpointDiffReport, readable};
use crate::report::formatted_list::FormattedList;
use crate::report::moment::{CheckpointJson, MomentJson};
use crate::report::restore::CheckpointRestoreReport;
use crate::report::state::{FoldedJson, StateDocument, StateReport, StateScreen, entities_by_kind};
use crate::report::timeline::{TimelineEntry, TimelineEntryKind, TimelineLane, TimelineReport};
use crate::session_reader::SessionReader;
use crate::text::TextLength;
use crate::verb::{OpenedStore, Verb, VerbResult, run_verb};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::diff::{ChangeKind, summary};
use forge_store::model::{Checkpoint, CheckpointTrigger};
use forge_store::store::{
    CheckpointFilter, LogItem, ResolvedMoment, Session, SourcedFact, StateAt,
};
use forge_store::story::{Story, StoryItem, StoryRef};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Verb for CheckpointListArgs {
    const NAME: &'static str = "checkpoint list";
    type Opened = OpenedStore;
    type Report = FormattedList<CheckpointListReport>;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let mut filter = CheckpointFilter { tag: self.tag.clone(), ..CheckpointFilter::default() };
        let (session, sessions) = if self.all {
            let all = store.sessions()?.into_iter();
            let all = all.map(|summary| store.session(&summary.info.id.to_string()));
            (None, all.collect::<Result<Vec<_>, _>>()?)
        } else {
            let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
            (Some(session.summary()?.info.name), vec![session])
        };
        if (self.since.is_some() || self.until.is_some())
            && let Some(session) = sessions.first()
        {
            // A time means the same in every session. Another moment is looked up in the first.
            let reading = SessionReader { store: store.clone(), session: session.clone() };
            let range = reading.time_range(context, self.since.as_ref(), self.until.as_ref())?;
            (filter.since, filter.until) = (range.since, range.until);
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for each in &sessions {
            let name = if self.all { Some(each.summary()?.info.name) } else { None };
            // One more shows that there are more.
            let written = self.written(each, &filter, limit.saturating_add(1))?.into_iter();
            found.extend(written.map(|checkpoint| (each, name.clone(), checkpoint)));
        }
        // The checkpoints of one session stay in the order in which they were written, which a
        // wrong clock does not change.
        if self.all {
            found.sort_by_key(|(_, _, one)| Reverse((one.time, one.sequence)));
        }
        let (mut checkpoints, mut unnamed, mut more) = (Vec::new(), 0, false);
        for (each, session, checkpoint) in found {
            if checkpoints.len() == limit {
                more = more || self.lists(&checkpoint);
            } else if self.lists(&checkpoint) {
                let checkpoint = CheckpointJson::new(each, &checkpoint)?;
                checkpoints.push(CheckpointListItem { checkpoint, session });
            } else {
                unnamed += 1;
            }
        }
        let filtered = self.tag.is_some() || self.since.is_some() || self.until.is_some();
        let list = CheckpointListReport { session, checkpoints, unnamed, more, filtered };
        FormattedList::new(list, self.format.as_ref(), |list| &list.checkpoints)
    }
}

impl CheckpointListArgs {
    /// Returns the last checkpoints of a session, up to the limit of those that are listed or
    /// beyond it. Reads larger and larger numbers of them until the limit is reached.
    fn written(
        &self,
        session: &Session,
        filter: &CheckpointFilter,
        limit: usize,
    ) -> Result<Vec<Checkpoint>, CommandError> {
        let mut rows = limit;
        loop {
            let filter = CheckpointFilter { limit: Some(rows), ..filter.clone() };
            let found = session.written_checkpoints(&filter)?;
            let listed = found.iter().filter(|checkpoint| self.lists(checkpoint)).count();
            if listed >= limit || found.len() < rows {
                return Ok(found);
            }
            rows = rows.saturating_mul(2);
        }
    }

    fn lists(&self, checkpoint: &Checkpoint) -> bool {
        self.unnamed || !checkpoint.is_unnamed()
    }
}

impl Verb for CheckpointShowArgs {
    const NAME: &'static str = "checkpoint show";
    type Opened = SessionReader;
    type Report = StateReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let resolved = workspace::resolved_moment(context, &reading.session, &self.which)?;
        state(reading, &resolved, &self.state, context)
    }
}

impl<const TOP: bool> Verb for CheckpointAtArgs<TOP> {
    const NAME: &'static str = if TOP { "at" } else { "checkpoint at" };
    type Opened = SessionReader;
    type Report = StateReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let resolved = workspace::resolved_moment(context, &reading.session, &self.moment)?;
        state(reading, &resolved, &self.state, context)
    }
}

/// Returns the report of a state: a brief, or with `full` everything in the state.
pub fn state_report(
    reading: &SessionReader,
    resolved: &ResolvedMoment,
    full: bool,
    context: &Context,
) -> Result<StateReport, CommandError> {
    let args = StateViewArgs { kinds: Vec::new(), full, as_recorded: false };
    state(reading, resolved, &args, context)
}

fn state(
    reading: &SessionReader,
    resolved: &ResolvedMoment,
    args: &StateViewArgs,
    context: &Context,
) -> Result<StateReport, CommandError> {
    let state = reading.state(resolved, args.as_recorded)?;
    Ok(if context.global.json {
        let document = StateDocument::new(reading, &state, &args.kinds, args.full)?;
        StateReport::Document(Box::new(document))
    } else {
        let facts = state.facts()?;
        let kinds = if args.kinds.is_empty() && !args.full {
            None
        } else {
            let length = if args.full { TextLength::Whole } else { TextLength::Preview };
            let texts = &mut reading.texts(length);
            Some(entities_by_kind(&state, &facts, &args.kinds, texts)?)
        };
        StateReport::Screen(Box::new(StateScreen {
            brief: brief_screen(reading, &state, &facts)?,
            folded: FoldedJson::between(&state)?,
            kinds,
            full: args.full,
            leads: next_commands(&state, context.forge())?,
        }))
    })
}

/// Returns the brief of a state with its header. `facts` are all facts of the state.
pub fn brief_screen(
    reading: &SessionReader,
    state: &StateAt,
    facts: &[SourcedFact],
) -> Result<BriefScreen, CommandError> {
    let brief = Story::brief_of_facts(state, facts, &forge_agents::resolve)?;
    let checkpoint = brief.checkpoint.as_ref();
    let checkpoint =
        checkpoint.map(|one| CheckpointJson::new(&reading.session, one)).transpose()?;
    let revision = state.revision()?.map(|revision| revision.sequence);
    Ok(BriefScreen { brief, checkpoint, revision })
}

/// Suggests commands that continue from a moment. They name it so that they mean the same later.
fn next_commands(
    state: &StateAt,
    forge: &str,
) -> Result<Vec<(String, &'static str)>, CommandError> {
    let named = match (state.moment().named_checkpoint(), state.moment().time()) {
        (Some(checkpoint), _) => format!("'#{}'", checkpoint.sequence),
        (None, Some(time)) => match state.revision()?.filter(|revision| revision.time == time) {
            Some(revision) => format!("'#{}'", revision.sequence),
            // A time alone means the branch that was current at that time.
            None => {
                let session = state.session();
                let branch = state.current_branch()?;
                if session.branch_of(&session.at_time(time)?)? == branch {
                    format!("'{time}'")
                } else {
                    format!("'{branch}@{{{time}}}'")
                }
            }
        },
        (None, None) => {
            return Ok(vec![
                (format!("{forge} checkpoint timeline"), "what led here"),
                (format!("{forge} log"), "each change"),
            ]);
        }
    };
    Ok(vec![
        (format!("{forge} checkpoint diff {named}"), "what has changed since"),
        (format!("{forge} checkpoint restore {named} --dry-run"), "what a restore would change"),
        (format!("{forge} checkpoint at {named} --full"), "everything known then"),
    ])
}

impl<const TOP: bool> Verb for CheckpointDiffArgs<TOP> {
    const NAME: &'static str = if TOP { "diff" } else { "checkpoint diff" };
    type Opened = SessionReader;
    type Report = CheckpointDiffReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let session = &reading.session;
        let (from, to) = self.compared(session, context)?;
        let found = session.compare(&from, &to)?;
        let moments = (MomentJson::new(session, &from)?, MomentJson::new(session, &to)?);
        let name = session.summary()?.info.name;
        let report = CheckpointDiffReport::new(
            name, moments, found.time_delta_micros, found.changes, &self.kinds,
        );
        if self.exit_code && !report.changes.is_empty() {
            context.exit_code = EXIT_NO;
        }
        Ok(report)
    }
}

impl<const TOP: bool> CheckpointDiffArgs<TOP> {
    /// Returns the two moments.
    fn compared(
        &self,
        session: &Session,
        context: &Context,
    ) -> Result<(ResolvedMoment, ResolvedMoment), CommandError> {
        let resolve = |moment: &MomentArg| workspace::resolved_moment(context, session, moment);
        let Some(from) = &self.from else {
            return Ok((last_made_checkpoint(context, session)?, resolve(&self.to)?));
        };
        let Some((begin, end)) = MomentArg::range(from.as_str()) else {
            return Ok((resolve(from)?, resolve(&self.to)?));
        };
        // The name of a branch or tag may contain two dots.
        match workspace::unhinted_moment(context, session, from) {
            Ok(from) => Ok((from, resolve(&self.to)?)),
            Err(error) if self.to.as_str() != DEFAULT_END => {
                Err(workspace::hint_moment(session, from, error)
                    .hinted("leave out the second moment: a range 'A..B' already has both moments"))
            }
            Err(_) => Ok((resolve(&begin)?, resolve(&end)?)),
        }
    }
}

/// Returns the moment of the last manual checkpoint, or else the start of the session.
fn last_made_checkpoint(
    context: &Context,
    session: &Session,
) -> Result<ResolvedMoment, CommandError> {
    let written = session.written_checkpoints(&CheckpointFilter::default())?;
    match written.iter().find(|checkpoint| checkpoint.trigger == CheckpointTrigger::Manual) {
        Some(checkpoint) => Ok(session.at_checkpoint(checkpoint)?),
        None => {
            let start = "start".parse().map_err(CommandError::invalid)?;
            workspace::resolved_moment(context, session, &start)
        }
    }
}

impl<const TOP: bool> Verb for CheckpointRestoreArgs<TOP> {
    const NAME: &'static str = if TOP { "restore" } else { "checkpoint restore" };
    type Opened = OpenedStore;
    type Report = CheckpointRestoreReport;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
        let resolved = workspace::resolved_moment(context, &session, &self.which)?;
        let head = session.head()?;
        let found = session.compare(&head, &resolved)?;
        let facts = found.changes.iter().filter(|change| !change.kind.is_claim());
        let facts_since =
            facts.filter(|change| change.change == ChangeKind::Removed).count() as u64;
        let mut changes = found.changes;
        changes.retain(|change| change.kind.is_claim());
        let revision = if self.dry_run {
            None
        } else {
            let done = session.restore(&opened.write_context, &resolved)?;
            match done.revision {
                Some((sequence, _)) => session.revision_of(&session.at_sequence(sequence)?)?,
                None => None,
            }
        };
        let target = session.revision_of(&resolved)?;
        let named = resolved.named_checkpoint();
        let restored_to = match (named, &target) {
            (Some(checkpoint), _) => Some(checkpoint.id.to_string()),
            (None, Some(revision)) => Some(revision.id.to_string()),
            (None, None) => None,
        };
        Ok(CheckpointRestoreReport {
            restored_to,
            timestamp: session.time_of(&resolved)?,
            message: named
                .map_or_else(|| self.which.as_str().to_owned(), |one| one.message.clone()),
            recovery_complete: !self.dry_run,
            dry_run: self.dry_run,
            session: session.summary()?.info.name,
            branch: session.branch_of(&head)?,
            revision,
            claims_restored: target.map_or(0, |revision| revision.claims),
            facts_since,
            summary: summary(&changes, None),
            changes: changes.into_iter().map(readable).collect(),
        })
    }
}

impl<const TOP: bool> Verb for CheckpointTimelineArgs<TOP> {
    const NAME: &'static str = if TOP { "timeline" } else { "checkpoint timeline" };
    type Opened = SessionReader;
    type Report = Option<TimelineReport>;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        if self.is_plain() && super::tui::on_terminal(context) {
            run_verb(&super::tui::TuiArgs::default(), context)?;
            return Ok(None);
        }
        self.timeline(reading, context).map(Some)
    }
}

impl<const TOP: bool> CheckpointTimelineArgs<TOP> {
    pub(super) fn timeline(
        &self,
        reading: &SessionReader,
        context: &Context,
    ) -> Result<TimelineReport, CommandError> {
        let session = &reading.session;
        let range = reading.time_range(context, self.since.as_ref(), self.until.as_ref())?;
        let branches: Vec<TimelineLane> = session
            .branches(&session.head()?)?
            .into_iter()
            .map(|branch| {
                let (base, base_revision) = branch.base.map_or((None, None), |(b, r)| (Some(b), r));
                let (status, current, head) = (branch.status, branch.current, branch.revision);
                TimelineLane { name: branch.name, status, current, base, base_revision, head }
            })
            .collect();
        let mut entries = Vec::new();
        let items = session.records(0, usize::MAX)?;
        super::log::warn_of_lost(context, &items);
        for item in items {
            if range.contains(item.time()) {
                entries.extend(entry(reading, item)?);
            }
        }
        entries.sort_by_key(|entry| Reverse((entry.time, entry.sequence)));
        if !self.all {
            let is_head = |entry: &TimelineEntry| {
                branches.iter().any(|branch| branch.head == Some(entry.sequence))
            };
            let is_fork = |entry: &TimelineEntry| {
                branches.iter().any(|branch| branch.base_revision == Some(entry.sequence))
            };
            let mut kept: Vec<TimelineEntry> = Vec::new();
            for entry in entries {
                let is_merge = entry.merged.is_some();
                if entry.sort == TimelineEntryKind::Checkpoint
                    || is_head(&entry)
                    || is_fork(&entry)
                    || is_merge
                {
                    kept.push(entry);
                } else if let Some(above) = kept.last_mut() {
                    above.revisions_below += 1;
                }
            }
            entries = kept;
        }
        let omitted = entries.len().saturating_sub(self.limit.unwrap_or(usize::MAX));
        entries.truncate(entries.len() - omitted);
        summarise(reading, &mut entries)?;
        let session = session.summary()?.info.name;
        let is_narrowed = range.since.is_some() || range.until.is_some() || omitted > 0;
        Ok(TimelineReport { session, branches, entries, omitted, is_narrowed })
    }
}

/// Adds to each revision a summary of its changes.
fn summarise(reading: &SessionReader, entries: &mut [TimelineEntry]) -> Result<(), CommandError> {
    let mut summaries = revision_summaries(reading)?;
    for entry in entries.iter_mut().filter(|entry| entry.sort == TimelineEntryKind::Revision) {
        entry.summary = summaries.remove(&entry.sequence);
    }
    Ok(())
}

/// Returns a summary of the changes of each revision, in the words of the story, by its number.
pub(super) fn revision_summaries(
    reading: &SessionReader,
) -> Result<BTreeMap<u64, String>, CommandError> {
    let story = Story::read(&reading.state(&reading.session.head()?, false)?)?;
    let mut items_by_sequence: BTreeMap<u64, Vec<&StoryItem>> = BTreeMap::new();
    for item in story.items() {
        for about in &item.refs {
            if let StoryRef::Sequence(sequence) = about {
                items_by_sequence.entry(*sequence).or_default().push(item);
            }
        }
    }
    let summary = |items: &[&StoryItem]| {
        let first = items.iter().find(|item| item.loud).or(items.first())?;
        let detail = first.detail.as_ref().map(|detail| format!("  {detail}")).unwrap_or_default();
        let more = match items.len() {
            1 => String::new(),
            count => format!("  and {} more", count - 1),
        };
        Some(format!("{}{detail}{more}", first.text))
    };
    Ok(items_by_sequence
        .iter()
        .filter_map(|(sequence, items)| Some((*sequence, summary(items)?)))
        .collect())
}

fn entry(reading: &SessionReader, item: LogItem) -> Result<Option<TimelineEntry>, CommandError> {
    Ok(Some(match item {
        LogItem::Lost(_) => return Ok(None),
        LogItem::Revision(revision) => TimelineEntry {
            sort: TimelineEntryKind::Revision,
            sequence: revision.sequence,
            id: revision.id.to_string(),
            time: revision.time,
            branch: revision.branch,
            message: revision.verb,
            summary: None,
            tags: Vec::new(),
            trigger: None,
            merged: revision.merged,
            revisions_below: 0,
        },
        LogItem::Checkpoint(checkpoint) => TimelineEntry {
            sort: TimelineEntryKind::Checkpoint,
            sequence: checkpoint.sequence,
            id: checkpoint.id.to_string(),
            time: checkpoint.time,
            branch: reading.session.branch_name(checkpoint.branch)?,
            message: checkpoint.message,
            summary: None,
            tags: checkpoint.tags,
            trigger: Some(checkpoint.trigger),
            merged: None,
            revisions_below: 0,
        },
    }))
}
