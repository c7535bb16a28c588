//! Searches the history for the next landmark, and finds the moment that a typed text names.

use super::row;
use crate::answer::{RowSign, WorkerAnswer};
use crate::app::DisplayZone;
use crate::effect::{LandmarkKind, MomentTarget};
use forge_store::error::{Error, Result};
use forge_store::model::time_grammar::parse_moment;
use forge_store::model::{Kind, Timestamp};
use forge_store::store::{
    HistoryPosition, PageDirection, PageItem, PageItemContent, PageKinds, ResolvedMoment, Session,
};

/// Maximum number of items that one search reads.
const MAX_SEARCHED_ITEMS: usize = 20_000;

/// Finds the next landmark of a kind before or after a position.
pub(super) fn next_landmark(
    session: &Session,
    wanted: LandmarkKind,
    from: HistoryPosition,
    direction: PageDirection,
) -> Result<WorkerAnswer> {
    let (is_status, is_fact) = (wanted == LandmarkKind::Status, wanted.is_fact());
    let kinds =
        PageKinds { revisions: is_status, checkpoints: !is_status && !is_fact, facts: is_fact };
    let (mut next, mut searched) = (Some(from), 0);
    while let Some(place) = next
        && searched < MAX_SEARCHED_ITEMS
    {
        let page = session.history_page(kinds, None, Some(place), direction, 200)?;
        searched += 200;
        if let Some(found) = page.items.iter().find(|item| is_landmark(item, wanted)) {
            let row = row::row(found);
            let what = format!("{}: {}", wanted.word(), row.title);
            let place = Some((found.place, row.target));
            return Ok(WorkerAnswer::Found { place, what });
        }
        next = page.next;
    }
    let side = if direction == PageDirection::Older { "before" } else { "after" };
    let what = if next.is_some() {
        format!("no {} among the {MAX_SEARCHED_ITEMS} items {side} this moment", wanted.word())
    } else {
        format!("there is no {} {side} this moment", wanted.word())
    };
    Ok(WorkerAnswer::Found { place: None, what })
}

fn is_landmark(item: &PageItem, wanted: LandmarkKind) -> bool {
    match (&item.content, wanted) {
        (PageItemContent::Checkpoint(_), LandmarkKind::Checkpoint) => true,
        // Most automatic checkpoints have one of these tags, so they are no landmarks.
        (PageItemContent::Checkpoint(checkpoint), LandmarkKind::Tag) => {
            checkpoint.tags.iter().any(|tag| !matches!(tag.as_str(), "auto" | "time"))
        }
        (PageItemContent::Checkpoint(checkpoint), LandmarkKind::Compaction) => {
            checkpoint.is_compaction()
        }
        (PageItemContent::Revision { changes, .. }, LandmarkKind::Status) => {
            changes.iter().any(row::changes_status)
        }
        (PageItemContent::Fact(known), LandmarkKind::Prompt) => known.fact.kind == Kind::Prompt,
        (PageItemContent::Fact(_), LandmarkKind::Failure) => row::row(item).sign == RowSign::Failed,
        _ => false,
    }
}

/// Finds the moment that a text names.
pub(super) fn jump(
    session: &Session,
    text: &str,
    now: Timestamp,
    zone: DisplayZone,
) -> Result<WorkerAnswer> {
    let moment = match zone {
        DisplayZone::Local => parse_moment(text, now, &chrono::Local),
        DisplayZone::Fixed(offset) => parse_moment(text, now, &offset),
    };
    let moment = moment.map_err(|error| Error::invalid(error.to_string()))?;
    let resolved = session.resolve(&moment)?;
    let (resolved, target) = exact(session, resolved)?;
    let place = session.position_of(&resolved)?.map(|place| (place, target));
    Ok(WorkerAnswer::Found { place, what: format!("at {text}") })
}

/// Returns what to select for a moment: the checkpoint or revision that it names, else
/// the head or its time.
fn exact(session: &Session, resolved: ResolvedMoment) -> Result<(ResolvedMoment, MomentTarget)> {
    if let Some(checkpoint) = resolved.named_checkpoint() {
        let target = MomentTarget::Sequence(checkpoint.sequence);
        return Ok((resolved, target));
    }
    if resolved == session.head()? {
        return Ok((resolved, MomentTarget::Head));
    }
    if let Some(revision) = resolved.revision() {
        let own = session.at_sequence(revision)?;
        if resolved.time().is_none() || own.time() == resolved.time() {
            return Ok((own, MomentTarget::Sequence(revision)));
        }
    }
    let target = resolved.time().map_or(MomentTarget::Head, MomentTarget::Time);
    Ok((resolved, target))
}
