//! Fits the brief into the pane "Held".

use crate::app::App;
use crate::layout::WindowLayout;
use crate::panes::PaneFocus;
use forge_store::store::{BriefLine, SessionBrief};
use forge_store::story::brief_rows;

/// How many entries of each list are kept: these numbers are tried in order until the brief fits.
const ENTRIES: [usize; 4] = [5, 3, 2, 1];
/// Maximum number of bytes of a text. The pane cuts the text at its right border anyway.
const TEXT_BYTES: usize = 1000;

/// Rebuilds the lines of the brief if the pane has another size or shows another moment. A pane
/// with the focus can be scrolled, so it shows the whole brief.
pub(super) fn fit(app: &mut App) {
    let Some((target, brief)) = &app.state.brief else { return };
    let whole = app.focus == PaneFocus::Held;
    let rows = if whole { usize::MAX } else { WindowLayout::held_rows(app) };
    if app.state.lines_for == Some((*target, rows)) {
        return;
    }
    let lines = brief_rows(&fitting(brief, rows));
    app.state.lines_for = Some((*target, rows));
    app.state.lines = lines;
}

type ListOf = fn(&mut SessionBrief) -> &mut Vec<BriefLine>;

/// The lists that are left out if there is not enough room, the least needed first.
const LEAST: [(&str, ListOf); 5] = [
    ("commands", |brief| &mut brief.commands),
    ("evidence", |brief| &mut brief.evidence),
    ("notes", |brief| &mut brief.notes),
    ("beliefs", |brief| &mut brief.beliefs),
    ("tasks", |brief| &mut brief.tasks),
];

/// The lists that are shown whole if there is room, the most needed first.
const MOST: [(&str, ListOf); 7] = [
    ("failing", |brief| &mut brief.failing),
    ("gaps", |brief| &mut brief.gaps),
    ("active", |brief| &mut brief.active),
    ("confirmed", |brief| &mut brief.confirmed),
    ("rejected", |brief| &mut brief.rejected),
    ("prompts", |brief| &mut brief.prompts),
    ("uncommitted", |brief| &mut brief.uncommitted),
];

/// Returns as much of a brief as fits into this many lines, but at least one entry of each needed
/// list.
fn fitting(brief: &SessionBrief, rows: usize) -> SessionBrief {
    let fits = |brief: &SessionBrief| brief_rows(brief).len() <= rows;
    let mut short = brief.clone();
    for (name, list) in LEAST {
        if fits(&short) {
            return short;
        }
        list(&mut short).clear();
        short.omitted.remove(name);
    }
    if fits(&short) {
        return short;
    }
    let mut whole = brief.clone();
    let shorter = ENTRIES.map(|entries| short.shortened(entries, TEXT_BYTES));
    let found = shorter.into_iter().find(|short| fits(short));
    let Some(mut fitted) = found else { return short.shortened(1, TEXT_BYTES) };
    for (name, list) in MOST {
        let mut more = fitted.clone();
        list(&mut more).clone_from(list(&mut whole));
        match brief.omitted.get(name) {
            Some(count) => more.omitted.insert(name, *count),
            None => more.omitted.remove(name),
        };
        if fits(&more) {
            fitted = more;
        }
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::store::Store;
    use forge_store::story::Story;

    #[test]
    fn a_low_pane_still_shows_failures_and_prompts() {
        let store = Store::in_memory().expect("a store in memory");
        let session = forge_testkit::example::fill(&store).expect("the example");
        let state = session.state(&session.head().expect("a head")).expect("a state");
        let brief = Story::brief(&state, &forge_agents::resolve).expect("a brief");
        let labels = |rows| {
            let rows = brief_rows(&fitting(&brief, rows)).into_iter();
            rows.map(|row| row.label).filter(|label| !label.is_empty()).collect::<Vec<_>>()
        };
        let low = labels(10);
        for wanted in ["Failing", "You asked"] {
            assert!(low.iter().any(|label| label.starts_with(wanted)), "{low:?}");
        }
        assert_eq!(brief_rows(&fitting(&brief, 1000)), brief_rows(&brief));
        assert!(brief_rows(&fitting(&brief, 10)).len() <= 10);
    }
}
