//! `forge compaction`.

use crate::compaction::loss::Lost;
use crate::compaction::{self, Compaction};
use crate::context::Context;
use crate::error::CommandError;
use crate::hook::handing;
use crate::hook::handover::{Remembered, remembered};
use crate::reading::Reading;
use crate::report::compaction::{CompactionJson, Compactions, LostJson, OneCompaction};
use crate::workplace;
use forge_agents::hook::ReplyBudget;
use forge_store::store::Session;

/// The size limit of a text for an agent.
const ROOM: ReplyBudget = ReplyBudget { units: 10_000, bytes: usize::MAX };

/// Show when an agent's context was compacted, and what its summary left out.
#[derive(Debug, clap::Subcommand)]
pub enum CompactionCommand {
    /// List compactions, newest first, each with how much its summary left out
    List(ListArgs),
    /// Show what the summary of a compaction left out, and what the agent gets back
    Show(ShowArgs),
}

/// Arguments of `forge compaction list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Largest number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Arguments of `forge compaction show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Number or id of its checkpoint; the last one by default
    #[arg(value_name = "COMPACTION")]
    pub which: Option<String>,
}

/// Runs `forge compaction`.
pub fn run(command: &CompactionCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        CompactionCommand::List(args) => list(args, context),
        CompactionCommand::Show(args) => show(args, context),
    }
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let session = &reading.session;
    let mut compactions = Vec::new();
    for one in compaction::newest(session, args.limit)? {
        let lost = remembered(session, &one)?.lost;
        compactions.push(json(session, &one, lost.as_deref())?);
    }
    let name = session.summary()?.info.name;
    context.out.emit(&Compactions { session: name, compactions })?;
    workplace::finish(&reading.store);
    Ok(())
}

fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let reading = Reading::begin(context)?;
    let session = &reading.session;
    let found = named(session, args.which.as_deref())?;
    let Remembered { knowledge, summary, lost } = remembered(session, &found)?;
    let name = session.summary()?.info.name;
    let brief = handing::brief(&name, &found, &knowledge, lost.as_deref(), ROOM);
    let report = OneCompaction {
        session: name,
        compaction: json(session, &found, lost.as_deref())?,
        known: knowledge.items().len(),
        lost: lost.map(|lost| lost.iter().map(LostJson::from).collect()),
        summary,
        brief,
    };
    context.out.emit(&report)?;
    workplace::finish(&reading.store);
    Ok(())
}

fn named(session: &Session, which: Option<&str>) -> Result<Compaction, CommandError> {
    let mut all = compaction::newest(session, None)?;
    let Some(which) = which else {
        let none = || {
            CommandError::not_found("no compaction is known in this session").hinted(
                "hooks and 'forge import' find them; 'forge session list' names the sessions",
            )
        };
        return if all.is_empty() { Err(none()) } else { Ok(all.swap_remove(0)) };
    };
    let number = which.strip_prefix('#').unwrap_or(which);
    all.retain(|one| {
        one.checkpoint.sequence.to_string() == number
            || (which.len() >= 4 && one.checkpoint.id.to_string().starts_with(which))
    });
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        0 => Err(CommandError::not_found(format!("there is no compaction '{which}'"))
            .hinted("'forge compaction list' names them")),
        _ => Err(CommandError::invalid(format!("'{which}' is the beginning of several ids"))
            .hinted("'forge compaction list' names them by number")),
    }
}

fn json(
    session: &Session,
    one: &Compaction,
    lost: Option<&[Lost]>,
) -> Result<CompactionJson, CommandError> {
    let checkpoint = &one.checkpoint;
    Ok(CompactionJson {
        id: checkpoint.id,
        sequence: checkpoint.sequence,
        time: checkpoint.time,
        branch: session.branch_name(checkpoint.branch)?,
        trigger: one.trigger().map(str::to_owned),
        tokens: one.tokens(),
        phase: one.phase().word(),
        announced_at: one.announced_at(),
        done_at: one.done_at(),
        boundary: one.boundary().map(str::to_owned),
        has_summary: one.has_summary(),
        handed_at: one.handed_at(),
        lost: lost.map(<[Lost]>::len),
    })
}
