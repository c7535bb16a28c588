//! Goes to the next landmark: among the loaded rows, or by a search of the history.

use super::navigation;
use crate::answer::{RowSign, TimelineRow};
use crate::app::App;
use crate::effect::{AppEffect, LandmarkKind, WorkerRequest};
use crate::query::TimelineLevel;
use crate::theme::TextTone;
use forge_store::model::Kind;
use forge_store::store::PageDirection;
use forge_store::story::StoryKind;

/// Goes to the next landmark of a kind, or says that there is none.
pub(super) fn find(
    app: &mut App,
    wanted: LandmarkKind,
    direction: PageDirection,
) -> Vec<AppEffect> {
    // The search of the history finds facts that only the list of everything has.
    let lists_all =
        app.timeline.level == TimelineLevel::Everything && app.timeline.filter.is_empty();
    if (app.timeline.is_story() && wanted != LandmarkKind::Tag) || (wanted.is_fact() && !lists_all)
    {
        return among_rows(app, wanted, direction);
    }
    let Some(from) = app.row().map(|row| row.place) else { return Vec::new() };
    vec![app.ask(WorkerRequest::Find { wanted, from, direction })]
}

/// Finds a landmark among the rows that are loaded.
fn among_rows(app: &mut App, wanted: LandmarkKind, direction: PageDirection) -> Vec<AppEffect> {
    let cursor = app.timeline.cursor;
    let selected = app.row().map(|row| row.target);
    let rows = &app.timeline.rows;
    // All lines of one revision are one landmark.
    let is_wanted = |row: &usize| {
        rows.get(*row).is_some_and(|row| {
            is_landmark(row, wanted)
                && (wanted != LandmarkKind::Status || Some(row.target) != selected)
        })
    };
    let found = match direction {
        PageDirection::Older => (cursor + 1..rows.len()).find(is_wanted),
        PageDirection::Newer => (0..cursor).rev().find(is_wanted),
    };
    match found {
        // Of the lines of one revision, the oldest is selected. Rows are sorted newest first.
        Some(row) if wanted == LandmarkKind::Status => {
            let target = rows.get(row).map(|row| row.target);
            let same = |row: &&TimelineRow| Some(row.target) == target && is_landmark(row, wanted);
            let more = rows.iter().skip(row + 1).take_while(same).count();
            navigation::move_to_row(app, row + more)
        }
        Some(row) => navigation::move_to_row(app, row),
        None => {
            let side = if direction == PageDirection::Older { "before" } else { "after" };
            let lists_less = app.timeline.level != TimelineLevel::Everything;
            let has_more = lists_less && app.timeline.filter.is_empty();
            let more = if has_more { "; v lists more" } else { "" };
            let text = format!("no {} is listed {side} this moment{more}", wanted.word());
            app.say(TextTone::Warning, text);
            Vec::new()
        }
    }
}

fn is_landmark(row: &TimelineRow, wanted: LandmarkKind) -> bool {
    let Some(story) = &row.story else {
        return match wanted {
            LandmarkKind::Prompt => row.by == Kind::Prompt.name(),
            LandmarkKind::Failure => row.sign == RowSign::Failed,
            _ => false,
        };
    };
    match wanted {
        LandmarkKind::Prompt => matches!(story.kind, Some(StoryKind::Prompt | StoryKind::Answer)),
        LandmarkKind::Status => story.is_claim(),
        LandmarkKind::Checkpoint => matches!(
            story.kind,
            Some(StoryKind::Checkpoint | StoryKind::Compaction | StoryKind::Commit)
        ),
        LandmarkKind::Compaction => story.kind == Some(StoryKind::Compaction),
        LandmarkKind::Failure => {
            story.kind == Some(StoryKind::Check) && story.sign.1 == TextTone::Bad
        }
        LandmarkKind::Tag => false,
    }
}
