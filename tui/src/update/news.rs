//! Notices lines that arrive while no person looks at the browser, and announces events.

use crate::action::BrowserAction;
use crate::answer::TimelineRow;
use crate::app::App;
use crate::effect::AppEffect;
use crate::host::NotifyEvent;
use crate::theme::TextTone;
use forge_store::store::HistoryPosition;
use forge_store::story::StoryKind;

/// A person who has pressed no key and not used the mouse for this long counts as absent.
const ABSENT_MICROS: i64 = 60_000_000;
/// Maximum number of events in an announcement. If there are more, only the last ones are named.
const MAX_NAMED: usize = 3;

/// Records whether a person is at the terminal.
pub(super) fn looked(app: &mut App, action: &BrowserAction) {
    match action {
        BrowserAction::Key(_)
        | BrowserAction::Paste(_)
        | BrowserAction::Click { .. }
        | BrowserAction::Wheel(_)
        | BrowserAction::Focus(true) => {
            app.looked.away = false;
            app.looked.back = true;
            app.looked.input = app.now;
        }
        BrowserAction::Focus(false) => app.looked.away = true,
        _ => {}
    }
}

/// Handles the lines that are newer than `newest`. Returns the announcement of their events.
pub(super) fn arrived(
    app: &mut App,
    newest: HistoryPosition,
    rows: &[TimelineRow],
) -> Vec<AppEffect> {
    let own = std::mem::take(&mut app.looked.own);
    let fresh: Vec<&TimelineRow> = rows.iter().take_while(|row| row.place > newest).collect();
    if fresh.is_empty() || own {
        return Vec::new();
    }
    let absent = app.looked.away || app.now.micros_since(app.looked.input) > ABSENT_MICROS;
    if absent && (app.looked.back || app.looked.seen.is_none()) {
        app.looked.seen = Some(newest);
        app.looked.back = false;
    }
    let sentences = fresh
        .iter()
        .rev()
        .filter(|row| event(row).is_some_and(|event| app.notified.contains(&event)));
    let sentences: Vec<String> = sentences.map(|row| words(row)).collect();
    let from = sentences.len().saturating_sub(MAX_NAMED);
    match sentences.get(from..) {
        None | Some([]) => Vec::new(),
        Some(last) => vec![AppEffect::Notify(last.join("; "))],
    }
}

/// Returns the event that a line shows, if it can be announced.
fn event(row: &TimelineRow) -> Option<NotifyEvent> {
    let story = row.story.as_ref()?;
    match (story.kind?, story.sign.1) {
        (StoryKind::Hypothesis, TextTone::Good | TextTone::Bad)
            if ["confirmed", "rejected"].iter().any(|word| row.title.contains(word)) =>
        {
            Some(NotifyEvent::Settled)
        }
        (StoryKind::Check, TextTone::Bad) => Some(NotifyEvent::Failed),
        (StoryKind::Compaction, _) => Some(NotifyEvent::Compacted),
        _ => None,
    }
}

fn words(row: &TimelineRow) -> String {
    let reason = row.story.as_ref().map_or("", |story| story.reason.as_str());
    let space = if reason.is_empty() { "" } else { ": " };
    format!("{}{space}{reason}", row.title)
}
