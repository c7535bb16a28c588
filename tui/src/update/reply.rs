//! Answers of the worker.

use super::{moves, strip};
use crate::answer::{Answer, Failure, Overview, Reply, Row, Sheet, Sign, Tab};
use crate::app::{App, Front, Reading, Stage};
use crate::effect::{Effect, PageFrom, Request, Slot, Target};
use crate::query::Level;
use crate::sheet;
use crate::theme::Tone;
use forge_store::store::{Place, Rank};

pub(super) fn take(app: &mut App, reply: Reply) -> Vec<Effect> {
    match reply.answer {
        Ok(answer) => taken(app, answer),
        Err(failure) => {
            failed(app, reply.slot, failure);
            Vec::new()
        }
    }
}

fn failed(app: &mut App, slot: Slot, failure: Failure) {
    match slot {
        Slot::Watch => app.watching = false,
        Slot::Page => app.timeline.loading = false,
        _ => {}
    }
    if app.stage == Stage::Loading {
        app.stage = Stage::Failed(failure);
        return;
    }
    match slot {
        Slot::State => {
            app.state.view = None;
            app.state.failure = Some(failure);
        }
        Slot::Sheet => match app.fronts.last_mut() {
            Some(Front::Sheet(reading) | Front::Confirm { reading, .. }) => {
                reading.sheet = Some(sheet::failure(&failure));
            }
            Some(Front::Charts(_) | Front::Sessions { .. }) => {
                app.fronts.pop();
                app.say(Tone::Bad, format!("{}: {}", failure.message, failure.advice));
            }
            _ => {}
        },
        _ => {
            let advice = if failure.advice.is_empty() {
                String::new()
            } else {
                format!(": {}", failure.advice)
            };
            app.say(Tone::Bad, format!("{}{advice}", failure.message));
        }
    }
}

fn taken(app: &mut App, answer: Answer) -> Vec<Effect> {
    match answer {
        Answer::Opened(overview) => return opened(app, *overview),
        Answer::NoSession => app.stage = Stage::Empty,
        Answer::Page { from, rows, older, newer } => return page(app, from, rows, older, newer),
        Answer::State(view) => {
            app.state.failure = None;
            app.state.view = Some(*view);
            moves::scroll(app);
        }
        Answer::Sheet(sheet) => put_sheet(app, *sheet),
        Answer::Preview { target, sheet, changes } => {
            if changes {
                put_sheet(app, *sheet);
            } else {
                app.fronts.pop();
                app.say(Tone::Plain, format!("the claims are what they were at {target} already"));
            }
        }
        Answer::Charts(data) => {
            if let Some(Front::Charts(charts)) = app.fronts.last_mut() {
                charts.load(*data);
            }
            moves::scroll(app);
        }
        Answer::Strip(strip) => app.strip = Some(*strip),
        Answer::Found { place: Some(place), what } => {
            app.say(Tone::Plain, what);
            return moves::seek(app, place);
        }
        Answer::Found { place: None, what } => app.say(Tone::Warning, what),
        Answer::Sessions(found) => {
            if let Some(Front::Sessions { rows, cursor }) = app.fronts.last_mut() {
                *cursor = found.iter().position(|row| row.current).unwrap_or(0);
                *rows = Some(found);
            }
        }
        Answer::Watched(position) => {
            app.watching = false;
            if position != app.session.position || matches!(app.stage, Stage::Failed(_)) {
                let name = app.session.name.clone();
                return vec![app.ask(Request::Open((!name.is_empty()).then_some(name)))];
            }
        }
        Answer::Done { said, command } => {
            let command = if command.is_empty() { command } else { format!("   $ {command}") };
            app.say(Tone::Good, format!("{said}{command}"));
            let name = app.session.name.clone();
            return vec![app.ask(Request::Open((!name.is_empty()).then_some(name)))];
        }
    }
    Vec::new()
}

fn put_sheet(app: &mut App, sheet: Sheet) {
    if let Some(Front::Sheet(reading) | Front::Confirm { reading, .. }) = app.fronts.last_mut() {
        *reading = Reading { sheet: Some(sheet), ..Reading::default() };
    }
}

fn opened(app: &mut App, overview: Overview) -> Vec<Effect> {
    let first = app.stage != Stage::Browsing || app.session.name != overview.name;
    let empty = overview.last.is_none();
    let unmoved = app.session.position == overview.position;
    app.session = overview;
    if empty {
        app.stage = Stage::Empty;
        return Vec::new();
    }
    app.stage = Stage::Browsing;
    if first {
        // Without checkpoints there is only something to see among the revisions, or the facts.
        if app.session.checkpoints == 0 && app.timeline.level == Level::Checkpoints {
            app.timeline.level =
                if app.session.count > 0 { Level::Revisions } else { Level::Everything };
        }
        // An imported session holds no claims, but all that was done.
        if app.session.claims == 0 && app.session.facts > 0 {
            app.state.tab = Tab::Commands;
        }
        let mut effects = moves::load(app, PageFrom::Newest);
        effects.push(moves::state(app));
        effects.extend(strip(app));
        return effects;
    }
    let mut effects = Vec::new();
    // Where the newest rows are not loaded, nothing on the screen can have changed but tags.
    if app.timeline.at_newest && !app.timeline.loading {
        effects.extend(moves::load(app, PageFrom::Newest));
    } else if !app.timeline.loading && unmoved {
        effects.extend(moves::reload(app));
    }
    if app.target() == Target::Head {
        effects.push(moves::follow(app));
    }
    effects
}

/// The first row: all that is recorded.
fn head(app: &App) -> Option<Row> {
    let last = app.session.last?;
    let branch = app.session.branch.clone();
    Some(Row {
        place: Place { time: last, rank: Rank::Sequence(u64::MAX) },
        target: Target::Head,
        title: format!("the head of {branch}: {} claims held", app.session.claims),
        branch,
        sign: Sign::Head,
        by: String::new(),
        tags: Vec::new(),
        id: "HEAD".to_owned(),
        weight: 3,
        merged: None,
    })
}

fn page(
    app: &mut App,
    from: PageFrom,
    rows: Vec<Row>,
    older: Option<Place>,
    newer: Option<Place>,
) -> Vec<Effect> {
    app.timeline.loading = false;
    let stood = app.row().map(|row| (row.place, row.target));
    let before = stood.map(|(_, target)| target);
    match from {
        PageFrom::Before(_) => {
            let empty = rows.is_empty();
            app.timeline.rows.extend(rows);
            app.timeline.older = older;
            // A filter may leave nothing of a part: go on with the next.
            if empty && app.timeline.older.is_some() {
                return moves::ahead(app);
            }
            let extra = app.timeline.rows.len().saturating_sub(moves::MAX_ROWS);
            let extra = extra.min(app.timeline.top);
            if extra > 0 {
                app.timeline.rows.drain(..extra);
                app.timeline.cursor -= extra;
                app.timeline.top -= extra;
                app.timeline.newer = app.timeline.rows.first().map(|row| row.place);
                app.timeline.at_newest = false;
            }
        }
        PageFrom::After(_) => {
            let added = put_front(app, rows, newer);
            app.timeline.cursor += added;
            app.timeline.top += added;
            if app.timeline.rows.len() > moves::MAX_ROWS {
                let keep = moves::MAX_ROWS.max(app.timeline.cursor + 1);
                app.timeline.rows.truncate(keep);
                app.timeline.older = app.timeline.rows.last().map(|row| row.place);
            }
        }
        PageFrom::Newest => newest(app, rows, older, stood),
        PageFrom::Around(_) | PageFrom::Oldest => {
            app.timeline.rows.clear();
            app.timeline.at_newest = false;
            put_front(app, rows, newer);
            app.timeline.older = older;
            app.timeline.cursor = match (from, app.timeline.seek.take()) {
                (PageFrom::Oldest, _) | (_, None) => app.timeline.rows.len().saturating_sub(1),
                (_, Some(place)) => standing(&app.timeline.rows, place),
            };
            app.timeline.top = app.timeline.cursor.saturating_sub(3);
        }
    }
    moves::scroll(app);
    let mut effects = Vec::new();
    if app.row().map(|row| row.target) != before {
        app.state.before = before.filter(|target| *target != Target::Head).or(app.state.before);
        effects.push(moves::state(app));
    }
    effects.extend(moves::ahead(app));
    effects
}

/// The row to stand on for a place: the newest at or before it.
fn standing(rows: &[Row], place: Place) -> usize {
    let found = rows.iter().position(|row| row.place <= place && row.target != Target::Head);
    found.unwrap_or(rows.len().saturating_sub(1))
}

/// Puts rows before the others, and the head before all where the newest are there. Returns how many there are more.
fn put_front(app: &mut App, rows: Vec<Row>, newer: Option<Place>) -> usize {
    let mut added = rows.len();
    app.timeline.rows.splice(0..0, rows);
    app.timeline.newer = newer;
    app.timeline.at_newest = newer.is_none();
    if app.timeline.at_newest
        && app.timeline.filter.is_empty()
        && let Some(head) = head(app)
    {
        app.timeline.rows.insert(0, head);
        added += 1;
    }
    added
}

/// Takes in the newest rows: by those who stand at the top at once, by others without moving.
fn newest(app: &mut App, rows: Vec<Row>, older: Option<Place>, stood: Option<(Place, Target)>) {
    let follows = stood.is_none_or(|(_, target)| target == Target::Head);
    let old = std::mem::take(&mut app.timeline.rows);
    let was_newest = app.timeline.at_newest && app.timeline.filter.is_empty();
    let oldest_new = rows.last().map(|row| row.place);
    let first_old = old.iter().find(|row| row.target != Target::Head).map(|row| row.place);
    if !follows && was_newest && app.timeline.filter.is_empty() && first_old < oldest_new {
        // More came in than one page holds: it is loaded when somebody goes there.
        app.timeline.rows = old;
        app.timeline.at_newest = false;
        app.timeline.newer = first_old;
        return;
    }
    put_front(app, rows, None);
    app.timeline.older = older;
    if follows || !was_newest || !app.timeline.filter.is_empty() {
        app.timeline.cursor = 0;
        app.timeline.top = 0;
        return;
    }
    let Some((place, _)) = stood else { return };
    // What was loaded below joins what is new, unless more came in than one page holds.
    let rest = old.into_iter().filter(|row| row.target != Target::Head);
    let rest: Vec<Row> =
        rest.filter(|row| oldest_new.is_some_and(|last| row.place < last)).collect();
    if let Some(last) = rest.last() {
        app.timeline.older = Some(last.place);
        app.timeline.rows.extend(rest);
    }
    let offset = app.timeline.cursor.saturating_sub(app.timeline.top);
    app.timeline.cursor = standing(&app.timeline.rows, place);
    app.timeline.top = app.timeline.cursor.saturating_sub(offset);
}
