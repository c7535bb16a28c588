//! Fits the brief into the pane of what was held.

use crate::app::App;
use crate::layout::WindowLayout;
use crate::panes::PaneFocus;
use forge_store::store::SessionBrief;
use forge_store::story::brief_rows;

/// How many entries of each list are tried, until the brief fits.
const ENTRIES: [usize; 4] = [5, 3, 2, 1];
/// The most bytes of a text; the pane cuts it at its end.
const TEXT_BYTES: usize = 1000;

/// Makes the lines of the brief anew if the pane has another size, or shows another moment. A pane
/// that has the focus can be scrolled, and shows all of it.
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

/// Returns as much of a brief as this many lines hold. What is least needed goes first: commands,
/// evidence, notes, beliefs, tasks.
fn fitting(brief: &SessionBrief, rows: usize) -> SessionBrief {
    let fits = |brief: &SessionBrief| brief_rows(brief).len() <= rows;
    let mut short = brief.clone();
    let lists = ["commands", "evidence", "notes", "beliefs", "tasks"];
    for name in lists {
        if fits(&short) {
            return short;
        }
        let list = match name {
            "commands" => &mut short.commands,
            "evidence" => &mut short.evidence,
            "notes" => &mut short.notes,
            "beliefs" => &mut short.beliefs,
            _ => &mut short.tasks,
        };
        list.clear();
        short.omitted.remove(name);
    }
    let shorter = ENTRIES.map(|entries| short.shortened(entries, TEXT_BYTES));
    let found = shorter.into_iter().find(|short| fits(short));
    found.unwrap_or_else(|| short.shortened(1, TEXT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::store::Store;
    use forge_store::story::Story;

    #[test]
    fn what_fails_and_what_was_asked_is_seen_in_a_low_pane() {
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
