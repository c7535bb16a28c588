//! What follows from what happened: changes of the browser, and effects for others to run. No I/O, no clock.

mod input;
mod moves;
mod reply;

use crate::action::{Action, Command};
use crate::answer::Tab;
use crate::app::{App, Charts, Focus, Front, Purpose, Reading, Stage};
use crate::effect::{Change, Effect, Request, Slot, Target, Wanted};
use crate::layout::Layout;
use crate::sheet;
use crate::theme::Tone;
use forge_store::model::{Key, Kind};
use forge_store::store::{Place, Rank, Way};

/// Begins with a session; `None`: the current one.
pub fn begin(app: &mut App, session: Option<String>) -> Vec<Effect> {
    app.stage = Stage::Loading;
    vec![app.ask(Request::Open(session))]
}

/// Takes in what happened.
pub fn update(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::Key(chord) => {
            let mode = app.mode();
            match app.keymap.command(mode, chord) {
                Some(command) => run(app, command),
                None => match chord.typed() {
                    Some(letter) => input::typed(app, &letter.to_string()),
                    None => Vec::new(),
                },
            }
        }
        Action::Paste(text) => input::typed(app, &text),
        Action::Click { x, y } => click(app, x, y),
        Action::Wheel(rows) => moves::by(app, isize::from(rows)),
        Action::Resize { width, height } => {
            (app.width, app.height) = (width, height);
            moves::scroll(app);
            strip(app)
        }
        Action::Tick(now) => {
            app.now = now;
            let mut effects = outgrown(app);
            if app.watching || app.stage == Stage::Loading {
                return effects;
            }
            app.watching = true;
            effects.push(app.ask(Request::Watch));
            effects
        }
        Action::Reply(reply) => {
            let latest = app.asked.get(&reply.slot) == Some(&reply.generation);
            if latest || reply.slot == Slot::Session {
                reply::take(app, *reply)
            } else {
                Vec::new()
            }
        }
    }
}

/// The strip is counted again at most this often while others write.
const STRIP_MICROS: i64 = 2_000_000;

/// Asks for the strip again if the session has gone on since.
fn outgrown(app: &mut App) -> Vec<Effect> {
    let counted = app.strip.as_ref().map(|strip| (Some(strip.from), Some(strip.to)));
    let old = counted.is_some_and(|range| range != (app.session.first, app.session.last));
    let rested = app.strip_asked.is_none_or(|asked| app.now.micros_since(asked) >= STRIP_MICROS);
    if old && rested { strip(app) } else { Vec::new() }
}

/// Asks for the strip as wide as the window.
fn strip(app: &mut App) -> Vec<Effect> {
    if app.stage != Stage::Browsing {
        return Vec::new();
    }
    app.strip_asked = Some(app.now);
    let stretches = usize::from(app.width.clamp(1, 400));
    vec![app.ask(Request::Strip(stretches))]
}

fn run(app: &mut App, command: Command) -> Vec<Effect> {
    let page = moves::page(app);
    match command {
        Command::Quit => app.done = true,
        Command::Suspend => return vec![Effect::Suspend],
        Command::Help => push_sheet(app, Some(sheet::help(&app.keymap))),
        Command::Accept => return input::accept(app),
        Command::Cancel => return input::cancel(app),
        Command::Back => return back(app),
        Command::Erase => return input::erase(app, input::Erased::Character),
        Command::EraseWord => return input::erase(app, input::Erased::Word),
        Command::EraseAll => return input::erase(app, input::Erased::All),
        Command::Down => return moves::by(app, 1),
        Command::Up => return moves::by(app, -1),
        Command::PageDown => return moves::by(app, page),
        Command::PageUp => return moves::by(app, -page),
        Command::First => return moves::first(app),
        Command::Last => return moves::last(app),
        Command::Fold | Command::FoldAll => moves::fold(app, command == Command::FoldAll),
        Command::Open => return open(app),
        Command::Refresh => {
            let mut effects = vec![Effect::Redraw];
            let session = (!app.session.name.is_empty()).then(|| app.session.name.clone());
            effects.push(app.ask(Request::Open(session)));
            return effects;
        }
        Command::Copy => return copy(app),
        Command::Export => input::ask(app, Purpose::Export, "forge-view.txt"),
        _ if app.stage != Stage::Browsing => {
            if command == Command::Sessions {
                return sessions(app);
            }
        }
        _ => return browse(app, command),
    }
    Vec::new()
}

/// What can be done while the timeline is shown.
fn browse(app: &mut App, command: Command) -> Vec<Effect> {
    match command {
        Command::NextPane => {
            app.focus = if app.focus == Focus::Timeline { Focus::State } else { Focus::Timeline };
            moves::scroll(app);
        }
        Command::NextTab => return tab(app, 1),
        Command::PreviousTab => return tab(app, Tab::ALL.len() - 1),
        Command::Search => {
            let typed = app.timeline.typed.clone();
            input::ask(app, Purpose::Search, &typed);
        }
        Command::Jump => input::ask(app, Purpose::Jump, ""),
        Command::Create => input::ask(app, Purpose::Create, ""),
        Command::Branch => input::ask(app, Purpose::Branch, ""),
        Command::Tag => {
            let checkpoint = app.row().is_some_and(crate::answer::Row::is_checkpoint);
            if checkpoint {
                input::ask(app, Purpose::Tag, "");
            } else {
                app.say(Tone::Warning, "only checkpoints have tags: press a to make one here");
            }
        }
        Command::Restore => return restore(app),
        Command::Undo => confirm(app, Change::Undo),
        Command::Redo => confirm(app, Change::Redo),
        Command::Level => {
            app.timeline.level = app.timeline.level.next();
            app.say(Tone::Plain, format!("showing {}", app.timeline.level.word()));
            return moves::reload(app);
        }
        Command::Mark => {
            let target = app.target();
            app.mark = Some(target);
            app.say(
                Tone::Plain,
                format!("marked {target}: stand elsewhere and press d to compare"),
            );
        }
        Command::Diff => return diff(app),
        Command::Charts => {
            let stood = app.state.view.as_ref().and_then(|view| view.items.get(app.state.cursor));
            let wanted = stood
                .filter(|item| app.focus == Focus::State && item.key.kind == Kind::Hypothesis)
                .map(|item| item.key.id.clone());
            app.fronts.push(Front::Charts(Charts { wanted, ..Charts::default() }));
            let target = app.target();
            return vec![app.ask(Request::Charts { target })];
        }
        Command::Sessions => return sessions(app),
        Command::OlderCheckpoint => return find(app, Wanted::Checkpoint, Way::Older),
        Command::NewerCheckpoint => return find(app, Wanted::Checkpoint, Way::Newer),
        Command::OlderTag => return find(app, Wanted::Tag, Way::Older),
        Command::NewerTag => return find(app, Wanted::Tag, Way::Newer),
        Command::OlderCompaction => return find(app, Wanted::Compaction, Way::Older),
        Command::NewerCompaction => return find(app, Wanted::Compaction, Way::Newer),
        Command::OlderStatus => return find(app, Wanted::Status, Way::Older),
        Command::NewerStatus => return find(app, Wanted::Status, Way::Newer),
        _ => {}
    }
    Vec::new()
}

fn push_sheet(app: &mut App, sheet: Option<crate::answer::Sheet>) {
    app.status = None;
    app.fronts.push(Front::Sheet(Reading { sheet, ..Reading::default() }));
}

fn confirm(app: &mut App, change: Change) {
    app.fronts.push(Front::Confirm { change, reading: Reading::default() });
}

/// Closes what is in front, else clears the filter, else the mark. Never quits.
fn back(app: &mut App) -> Vec<Effect> {
    if app.fronts.pop().is_some() {
        return Vec::new();
    }
    if !app.timeline.typed.is_empty() {
        return input::clear_filter(app);
    }
    if app.mark.take().is_none() {
        app.status = None;
        app.focus = Focus::Timeline;
    }
    Vec::new()
}

fn tab(app: &mut App, steps: usize) -> Vec<Effect> {
    let place = Tab::ALL.iter().position(|tab| *tab == app.state.tab).unwrap_or(0);
    let tab = Tab::ALL.get((place + steps) % Tab::ALL.len()).copied().unwrap_or_default();
    moves::show_tab(app, tab)
}

fn open(app: &mut App) -> Vec<Effect> {
    let request = match app.fronts.last() {
        Some(Front::Sessions { rows: Some(rows), cursor }) => {
            let chosen = rows.get(*cursor).map(|row| row.id.clone());
            app.fronts.clear();
            return chosen.map_or_else(Vec::new, |id| switch(app, id));
        }
        Some(Front::Sheet(_)) => {
            moves::fold(app, false);
            return Vec::new();
        }
        Some(Front::Charts(charts)) => {
            let data = charts.data.as_ref();
            let Some(series) = data.and_then(|data| data.confidence.get(charts.cursor)) else {
                return Vec::new();
            };
            let key = Key::new(Kind::Hypothesis, series.id.clone());
            Request::Detail { target: app.target(), key }
        }
        Some(_) => return Vec::new(),
        None if app.focus == Focus::Timeline => match app.row() {
            Some(row) => Request::Moment(Box::new(row.clone())),
            None => return Vec::new(),
        },
        None => {
            let view = app.state.view.as_ref();
            let Some(item) = view.and_then(|view| view.items.get(app.state.cursor)) else {
                return Vec::new();
            };
            Request::Detail { target: app.target(), key: item.key.clone() }
        }
    };
    push_sheet(app, None);
    vec![app.ask(request)]
}

/// Goes to another session, with everything about the old one forgotten.
fn switch(app: &mut App, session: String) -> Vec<Effect> {
    let level = app.timeline.level;
    app.timeline = crate::app::Timeline { level, ..Default::default() };
    app.state = Default::default();
    app.strip = None;
    app.mark = None;
    begin(app, Some(session))
}

fn sessions(app: &mut App) -> Vec<Effect> {
    app.fronts.push(Front::Sessions { rows: None, cursor: 0 });
    vec![app.ask(Request::Sessions)]
}

fn diff(app: &mut App) -> Vec<Effect> {
    let below = app.timeline.rows.get(app.timeline.cursor + 1).map(|row| row.target);
    let Some(from) = app.mark.or(below) else {
        app.say(Tone::Warning, "there is nothing before this moment: mark another one with m");
        return Vec::new();
    };
    let to = app.target();
    push_sheet(app, None);
    vec![app.ask(Request::Compare { from, to, preview: false })]
}

fn restore(app: &mut App) -> Vec<Effect> {
    let target = app.target();
    if target == Target::Head {
        app.say(Tone::Warning, "this is the head already: stand on an earlier moment");
        return Vec::new();
    }
    confirm(app, Change::Restore { target });
    vec![app.ask(Request::Compare { from: Target::Head, to: target, preview: true })]
}

fn find(app: &mut App, wanted: Wanted, way: Way) -> Vec<Effect> {
    let Some(from) = app.row().map(|row| row.place) else { return Vec::new() };
    vec![app.ask(Request::Find { wanted, from, way })]
}

fn copy(app: &mut App) -> Vec<Effect> {
    let id = match app.fronts.last() {
        Some(Front::Sheet(reading)) => reading.sheet.as_ref().map(|sheet| sheet.id.clone()),
        Some(Front::Sessions { rows: Some(rows), cursor }) => {
            rows.get(*cursor).map(|row| row.id.clone())
        }
        Some(_) => None,
        None if app.focus == Focus::State => app
            .state
            .view
            .as_ref()
            .and_then(|view| view.items.get(app.state.cursor))
            .map(|item| item.key.id.clone()),
        None => app.row().map(|row| row.id.clone()),
    };
    match id.filter(|id| !id.is_empty()) {
        Some(id) => {
            app.say(Tone::Good, format!("copied {id}"));
            vec![Effect::Copy(id)]
        }
        None => {
            app.say(Tone::Warning, "there is no id here");
            Vec::new()
        }
    }
}

fn click(app: &mut App, x: u16, y: u16) -> Vec<Effect> {
    let at = ratatui::layout::Position { x, y };
    if !app.fronts.is_empty() {
        let front = Layout::front(app);
        if front.contains(at) && y > front.y {
            moves::click_front(app, usize::from(y - front.y - 1));
        }
        return Vec::new();
    }
    if app.stage != Stage::Browsing {
        return Vec::new();
    }
    let layout = Layout::of(app);
    if layout.timeline.contains(at) {
        app.focus = Focus::Timeline;
        let row = app.timeline.top + usize::from(y - layout.timeline.y);
        if row == app.timeline.cursor {
            return open(app);
        }
        return if row < app.timeline.rows.len() { moves::stand(app, row) } else { Vec::new() };
    }
    if layout.state.contains(at) {
        app.focus = Focus::State;
        let line = usize::from(y - layout.state.y);
        let items = app.state.view.as_ref().map_or(0, |view| view.items.len());
        if line >= 2 && app.state.top + line - 2 < items {
            app.state.cursor = app.state.top + line - 2;
        }
        return Vec::new();
    }
    if layout.strip.contains(at)
        && let Some(strip) = &app.strip
    {
        let span = i128::from(strip.to.micros_since(strip.from));
        let offset = span * i128::from(x + 1) / i128::from(app.width.max(1));
        let time = strip.from.plus_micros(i64::try_from(offset).unwrap_or(0));
        return moves::seek(app, Place { time, rank: Rank::Sequence(u64::MAX) });
    }
    Vec::new()
}
