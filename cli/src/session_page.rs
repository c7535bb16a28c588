//! Reads the content of a session's page, for `forge report` and `forge serve`.

use crate::compaction::ContextCompaction;
use crate::compaction::loss::LostItem;
use crate::error::CommandError;
use crate::hook::handover::{CompactionKnowledge, compaction_knowledge};
use forge_report::model::{CompactionNote, LostKnowledge, ReportLimits, ReportModel, ReportSource};
use forge_store::model::Checkpoint;
use forge_store::redact::Redactor;
use forge_store::store::{CheckpointFilter, ResolvedMoment, Session};

/// Reads the page of a session at a moment.
pub fn read_page(
    session: &Session,
    moment: &ResolvedMoment,
    redactor: &Redactor,
    limits: ReportLimits,
) -> Result<ReportModel, CommandError> {
    let state = session.state(moment)?;
    let compactions = compaction_notes(session, moment)?;
    let resolve = &forge_agents::resolve;
    let source =
        ReportSource { state: &state, resolve, compactions: &compactions, redactor, limits };
    Ok(ReportModel::read(&source)?)
}

/// Returns what is known about each compaction up to a moment.
fn compaction_notes(
    session: &Session,
    moment: &ResolvedMoment,
) -> Result<Vec<CompactionNote>, CommandError> {
    let filter = CheckpointFilter { until: moment.time(), ..CheckpointFilter::default() };
    let mut notes = Vec::new();
    for checkpoint in session.checkpoints(&filter)? {
        if checkpoint.is_compaction() {
            notes.push(compaction_note(session, checkpoint)?);
        }
    }
    Ok(notes)
}

fn compaction_note(
    session: &Session,
    checkpoint: Checkpoint,
) -> Result<CompactionNote, CommandError> {
    let note = CompactionNote {
        at: checkpoint.time,
        sequence: checkpoint.sequence,
        ..CompactionNote::default()
    };
    // A checkpoint without an event key says nothing more, such as one of an imported event stream.
    let Some(compaction) = ContextCompaction::from_checkpoint(checkpoint) else { return Ok(note) };
    let CompactionKnowledge { knowledge, summary, lost } =
        compaction_knowledge(session, &compaction)?;
    let lost = lost.map(|lost| {
        let lost_knowledge = |lost: LostItem| LostKnowledge {
            kind: lost.item.kind.word(),
            id: lost.item.kind.has_meaningful_id().then_some(lost.item.id),
            text: lost.item.text,
        };
        lost.into_iter().map(lost_knowledge).collect()
    });
    Ok(CompactionNote {
        trigger: compaction.trigger().map(str::to_owned),
        tokens: compaction.tokens(),
        known: knowledge.known_items().len(),
        lost,
        summary,
        ..note
    })
}
