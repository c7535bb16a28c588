//! `forge log`.

use crate::args::value::{EntityName, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::reading::{Known, Reading, entity};
use crate::report::log::{EntityId, Log, LogLine, Operations, Revised};
use crate::report::moment::CheckpointJson;
use crate::workplace;
use forge_store::diff::describe;
use forge_store::model::Timestamp;
use forge_store::store::{LogItem, ResolvedMoment};
use std::cmp::Reverse;

/// Arguments of `forge log`.
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Show the changes of this entity only
    #[arg(value_name = "ENTITY")]
    pub entity: Option<EntityName>,

    /// Show the changes on this branch instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub branch: Option<Name>,

    /// Show the changes on all branches
    #[arg(long)]
    pub all: bool,

    /// Show changes at this moment or later, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// Show changes at this moment or earlier
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// Show operations, by the ids that 'forge undo' takes
    #[arg(long, conflicts_with_all = ["entity", "branch"])]
    pub operations: bool,

    /// Show at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Runs `forge log`.
pub fn run(args: &LogArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let limit = args.limit.unwrap_or(usize::MAX);
    let name = reading.session.summary()?.info.name;
    if args.operations {
        let operations = reading.session.operations(usize::MAX)?;
        let range = Range::of(args, &reading, context)?;
        let operations = operations.into_iter().filter(|one| range.holds(one.time)).take(limit);
        let operations = operations.map(Into::into).collect();
        return context.out.emit(&Operations { session: name, operations });
    }
    let range = Range::of(args, &reading, context)?;
    let point = match &args.branch {
        None => reading.session.head()?,
        Some(branch) => {
            let moment = format!("branch:{branch}").parse().map_err(CommandError::invalid)?;
            workplace::point(context, &reading.session, &moment)?
        }
    };
    let report = match &args.entity {
        Some(entity) => of_entity(&reading, &point, entity, &range, limit)?,
        None => {
            let mut items = if args.all {
                reading.session.records(0, usize::MAX)?
            } else {
                reading.session.log(&point, usize::MAX)?
            };
            items.retain(|item| range.holds(item.time()));
            // The numbers are in the order of writing; a clock may have been wrong.
            items.sort_by_key(|item| Reverse(item.sequence()));
            items.truncate(limit);
            let entries = items.into_iter().map(|item| line(&reading, item));
            Log {
                session: name,
                branch: if args.all { None } else { Some(reading.session.branch_of(&point)?) },
                entity: None,
                entries: entries.collect::<Result<_, _>>()?,
            }
        }
    };
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
    Ok(())
}

fn line(reading: &Reading, item: LogItem) -> Result<LogLine, CommandError> {
    Ok(match item {
        LogItem::Revision(entry) => {
            let changes = describe(&reading.session.changes_of(entry.sequence)?);
            LogLine::Revision(Revised::new(entry, changes))
        }
        LogItem::Checkpoint(checkpoint) => {
            LogLine::Checkpoint(CheckpointJson::new(&reading.session, &checkpoint)?)
        }
    })
}

fn of_entity(
    reading: &Reading,
    point: &ResolvedMoment,
    name: &EntityName,
    range: &Range,
    limit: usize,
) -> Result<Log, CommandError> {
    let state = reading.state(point, false)?;
    let found = entity(&state, name);
    // A removed claim has a history too, if its full name is given.
    let key = match (&found, name.kind) {
        (Ok(Known::Claim(key, _)), _) => key.clone(),
        (Ok(Known::Fact(fact)), _) => {
            let kind = fact.fact.kind;
            return Err(CommandError::invalid(format!("a {kind} is a fact and has no history"))
                .hinted(format!("'forge {kind} show {}' shows it", fact.fact.id)));
        }
        (Err(_), Some(kind)) => forge_store::model::Key::new(kind, name.id.clone()),
        (Err(_), None) => return Err(found.map(|_| ()).expect_err("it was not found")),
    };
    let history = match reading.session.history(point, &key) {
        Ok(history) => history,
        Err(error) => return Err(found.err().unwrap_or_else(|| error.into())),
    };
    let entries = history.into_iter().filter(|entry| range.holds(entry.revision.time)).take(limit);
    let entries = entries
        .map(|entry| LogLine::Revision(Revised::new(entry.revision, describe(&[entry.change]))));
    Ok(Log {
        session: reading.session.summary()?.info.name,
        branch: Some(reading.session.branch_of(point)?),
        entity: Some(EntityId { kind: key.kind, id: key.id }),
        entries: entries.collect(),
    })
}

/// The first and the last moment to show.
struct Range {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Range {
    fn of(args: &LogArgs, reading: &Reading, context: &Context) -> Result<Self, CommandError> {
        let time = |moment| reading.time(context, moment);
        Ok(Self {
            since: args.since.as_ref().map(time).transpose()?,
            until: args.until.as_ref().map(time).transpose()?,
        })
    }

    fn holds(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
    }
}
