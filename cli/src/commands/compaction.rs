//! `forge compaction`.

use crate::compaction::loss::LostItem;
use crate::compaction::{self, ContextCompaction};
use crate::context::Context;
use crate::error::CommandError;
use crate::hook::handover::{CompactionKnowledge, compaction_knowledge};
use crate::hook::handover_brief;
use crate::report::compaction::{
    CompactionJson, CompactionListReport, CompactionShowReport, LostItemJson,
};
use crate::session_reader::SessionReader;
use crate::verb::{Verb, VerbResult, commands};
use forge_agents::hook::ReplyBudget;
use forge_store::store::Session;

/// The size limit of the brief for an agent.
const BRIEF_BUDGET: ReplyBudget = ReplyBudget { units: 10_000, bytes: usize::MAX };

/// Show when an agent's context was compacted, and what its summary left out.
#[derive(Debug, clap::Subcommand)]
pub enum CompactionCommand {
    /// List compactions, newest first, each with how much its summary left out
    List(CompactionListArgs),
    /// Show what the summary of a compaction left out, and what the agent gets back
    Show(CompactionShowArgs),
}

#[derive(Debug, clap::Args)]
pub struct CompactionListArgs {
    /// Maximum number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub struct CompactionShowArgs {
    /// Number or id of its checkpoint; the last one by default
    #[arg(value_name = "COMPACTION")]
    pub which: Option<String>,
}

commands!(CompactionCommand: List, Show);

impl Verb for CompactionListArgs {
    const NAME: &'static str = "compaction list";
    type Opened = SessionReader;
    type Report = CompactionListReport;

    fn run(&self, reading: &SessionReader, _: &mut Context) -> VerbResult<Self> {
        let session = &reading.session;
        let mut compactions = Vec::new();
        for one in compaction::newest_compactions(session, self.limit)? {
            let lost = compaction_knowledge(session, &one)?.lost;
            compactions.push(json(session, &one, lost.as_deref())?);
        }
        let name = session.summary()?.info.name;
        Ok(CompactionListReport { session: name, compactions })
    }
}

impl Verb for CompactionShowArgs {
    const NAME: &'static str = "compaction show";
    type Opened = SessionReader;
    type Report = CompactionShowReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let session = &reading.session;
        let found = find_compaction(session, self.which.as_deref(), context)?;
        let CompactionKnowledge { knowledge, summary, lost } =
            compaction_knowledge(session, &found)?;
        let name = session.summary()?.info.name;
        let brief = handover_brief::brief(&name, &found, &knowledge, lost.as_deref(), BRIEF_BUDGET);
        Ok(CompactionShowReport {
            session: name,
            compaction: json(session, &found, lost.as_deref())?,
            known: knowledge.known_items().len(),
            kept: found.kept_count(),
            lost: lost.map(|lost| lost.iter().map(LostItemJson::from).collect()),
            summary,
            brief,
        })
    }
}

fn find_compaction(
    session: &Session,
    which: Option<&str>,
    context: &Context,
) -> Result<ContextCompaction, CommandError> {
    let mut all = compaction::newest_compactions(session, None)?;
    let Some(which) = which else {
        return all.into_iter().next().ok_or_else(|| {
            CommandError::not_found("no compaction is known in this session").hinted(
                "hooks and the import of an agent's own session file find them; \
                 'forge session list' names the sessions",
            )
        });
    };
    let number = which.strip_prefix('#').unwrap_or(which);
    all.retain(|one| {
        one.checkpoint.sequence.to_string() == number
            || (which.len() >= 4 && one.checkpoint.id.to_string().starts_with(which))
    });
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        0 => Err(CommandError::not_found(format!("there is no compaction '{which}'"))
            .hinted(format!("'{} compaction list' names them", context.forge()))),
        _ => Err(CommandError::invalid(format!("'{which}' is the beginning of several ids"))
            .hinted(format!("'{} compaction list' names them by number", context.forge()))),
    }
}

fn json(
    session: &Session,
    one: &ContextCompaction,
    lost: Option<&[LostItem]>,
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
        lost: lost.map(<[LostItem]>::len),
    })
}
