//! Finding the next thing of a sort, and moments by what was typed.

use super::row;
use crate::answer::Answer;
use crate::app::Zone;
use crate::effect::Wanted;
use forge_store::error::{Error, Result};
use forge_store::model::when::parse_moment;
use forge_store::model::{AutoTrigger, Timestamp, Trigger};
use forge_store::store::{PageItem, PageKinds, Place, Recorded, Session, Way};

/// So many things are looked at before it is said that there is none nearby.
const LOOKED_AT: usize = 20_000;

pub(super) fn next(session: &Session, wanted: Wanted, from: Place, way: Way) -> Result<Answer> {
    let status = wanted == Wanted::Status;
    let kinds = PageKinds { revisions: status, checkpoints: !status, facts: false };
    let (mut next, mut looked) = (Some(from), 0);
    while let Some(place) = next
        && looked < LOOKED_AT
    {
        let page = session.page(kinds, None, Some(place), way, 200)?;
        looked += 200;
        if let Some(found) = page.items.iter().find(|item| is(item, wanted)) {
            let what = format!("{}: {}", wanted.word(), row::row(found).title);
            return Ok(Answer::Found { place: Some(found.place), what });
        }
        next = page.next;
    }
    let where_ = if way == Way::Older { "before" } else { "after" };
    let what = if next.is_some() {
        format!("no {} among the {LOOKED_AT} things {where_} this moment", wanted.word())
    } else {
        format!("there is no {} {where_} this moment", wanted.word())
    };
    Ok(Answer::Found { place: None, what })
}

fn is(item: &PageItem, wanted: Wanted) -> bool {
    match (&item.what, wanted) {
        (Recorded::Checkpoint(_), Wanted::Checkpoint) => true,
        // Those that forge puts on what it makes by itself are no landmarks.
        (Recorded::Checkpoint(checkpoint), Wanted::Tag) => {
            checkpoint.tags.iter().any(|tag| !matches!(tag.as_str(), "auto" | "time"))
        }
        (Recorded::Checkpoint(checkpoint), Wanted::Compaction) => {
            checkpoint.trigger == Trigger::Automatic(AutoTrigger::ContextCompactionWarning)
        }
        (Recorded::Revision { changes, .. }, Wanted::Status) => {
            changes.iter().any(row::changes_status)
        }
        _ => false,
    }
}

pub(super) fn jump(session: &Session, text: &str, now: Timestamp, zone: Zone) -> Result<Answer> {
    let moment = match zone {
        Zone::Local => parse_moment(text, now, &chrono::Local),
        Zone::Fixed(offset) => parse_moment(text, now, &offset),
    };
    let moment = moment.map_err(|error| Error::invalid(error.to_string()))?;
    let place = session.place_of(&session.resolve(&moment)?)?;
    Ok(Answer::Found { place, what: format!("at {text}") })
}
