//! Why, the evidence with its commands, chips, the strip, and what leaves the browser.

use crate::hand::Hand;
use forge_tui::action::BrowserAction;
use forge_tui::layout::WindowLayout;
use insta::assert_snapshot;

#[test]
fn the_pane_why_shows_support_and_dependents_and_the_commands_of_evidence() {
    let mut hand = Hand::on_example(100, 40);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> w");
    assert_snapshot!("why", hand.screen());
    hand.press("q E");
    assert_snapshot!("evidence_sources", hand.screen());
    hand.press("q g w");
    assert!(hand.app.overlays.is_empty());
    assert!(hand.app.status.as_ref().unwrap().text.starts_with("no claim is selected"));
}

#[test]
fn the_details_the_brief_and_the_charts_are_copied_as_markdown() {
    let mut hand = Hand::on_example(120, 40);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> Y");
    let copied = hand.copied.last().unwrap().clone();
    assert_snapshot!("copied_markdown", copied);
    hand.press("3 Y");
    assert!(hand.copied.last().unwrap().starts_with("**Confirmed**\n\n- "), "{:?}", hand.copied);
    hand.press("1 c Y");
    let table = hand.copied.last().unwrap();
    assert!(table.contains("| H4 | 0.55 → 0.75 → 0.93 → 0.97 → 0.98 | confirmed | "), "{table}");
    hand.press("q m g d Y");
    let difference = hand.copied.last().unwrap();
    assert!(difference.starts_with("### from 2025-03-11 "), "{difference}");
    assert!(difference.lines().next().unwrap().contains(" to #"), "{difference}");
    hand.press("<esc> K").press("y");
    assert!(!hand.copied.last().unwrap().contains(' '), "y copies the id");
}

#[test]
fn a_preview_of_a_folded_row_does_not_unfold_it() {
    let mut hand = Hand::on_example(100, 40);
    let row = hand.app.timeline.rows.iter().position(|row| row.title.ends_with("commands"));
    hand.press("g");
    hand.app.timeline.cursor = row.unwrap();
    let rows = hand.app.timeline.rows.len();
    hand.press("<space>");
    assert_eq!(hand.app.overlays.len(), 1);
    assert_eq!(hand.app.timeline.rows.len(), rows);
    hand.press("q");
    assert!(hand.app.overlays.is_empty());
}

#[test]
fn filter_chips_are_switched_by_key_and_by_click() {
    let mut hand = Hand::on_example(120, 40);
    hand.press("f <tab>");
    assert_snapshot!("chips", hand.screen());
    assert_eq!(hand.app.timeline.typed, "kind:prompt ");
    assert_eq!(hand.app.timeline.rows.len(), 3);
    hand.press("<right> <right> <tab>");
    assert_eq!(hand.app.timeline.typed, "kind:prompt kind:verification ");
    let keys = WindowLayout::from_app(&hand.app).keys;
    hand.act(BrowserAction::Click { x: 3, y: keys.y - 1 });
    assert_eq!(hand.app.timeline.typed, "kind:verification");
    hand.press("<left> <tab>");
    // Regression: the last chip was chosen and switched on in 80 columns, but not shown.
    hand.act(BrowserAction::Resize { width: 80, height: 24 });
    assert!(hand.screen().contains("[✓since the mark]"), "{}", hand.screen());
    hand.act(BrowserAction::Resize { width: 120, height: 40 });
    // Nothing is marked yet: the filter stays as it was.
    assert!(hand.screen().contains("nothing is marked"), "{}", hand.screen());
    hand.press("<esc> <esc> k k k m f <left> <tab> <enter>");
    let rows = hand.app.timeline.rows.iter();
    assert!(rows.clone().count() > 0);
    assert!(rows.map(|row| row.place.time).min() >= hand.app.mark_time);
}

#[test]
fn the_strip_has_the_title_the_last_lines_and_the_axis() {
    let mut hand = Hand::on_example(100, 8);
    hand.app.strip_only = true;
    hand.press("G");
    assert_snapshot!("strip", hand.screen());
    // A message and an input take the last line.
    assert!(hand.press("2").screen().contains("without --strip"), "{}", hand.screen());
    hand.press("n").type_in("seen");
    assert!(hand.screen().contains("note: seen"), "{}", hand.screen());
    hand.press("<enter> K");
    assert!(hand.screen().contains("YOU"), "{}", hand.screen());
    for height in 1..8 {
        hand.act(BrowserAction::Resize { width: 30, height });
    }
}

#[test]
fn a_report_is_requested_and_its_result_shown() {
    let mut hand = Hand::on_example(120, 40);
    let session = hand.app.session.id.clone();
    hand.press("O S");
    hand.press("<c-u>").type_in("out.html").press("<enter>");
    assert_eq!(hand.reports, [(session.clone(), None), (session, Some("out.html".to_owned()))]);
    let request_number = *hand.app.unsent.keys().last().unwrap();
    let said = Ok("the report is in out.html".to_owned());
    hand.act(BrowserAction::Reported { request_number, said });
    assert!(hand.screen().contains("the report is in out.html"), "{}", hand.screen());
    assert!(hand.app.unsent.is_empty());
    // Regression: the path of a report that could not be written had to be typed again.
    hand.press("S <c-u>").type_in("no/out.md").press("<enter>");
    let request_number = *hand.app.unsent.keys().last().unwrap();
    hand.act(BrowserAction::Reported { request_number, said: Err("no folder 'no'".to_owned()) });
    let screen = hand.screen();
    assert!(screen.contains(": no/out.md▏   no folder 'no'"), "{screen}");
    // Regression: a path below `~/` was taken for one below a folder with this name.
    hand.press("<esc> S <c-u>").type_in("~/out.html").press("<enter>");
    let path = std::env::home_dir().unwrap().join("out.html");
    assert_eq!(hand.reports.last().unwrap().1.as_deref(), path.to_str());
}

#[test]
fn a_line_says_what_changed_since_the_mark() {
    let mut hand = Hand::on_example(140, 40);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> m");
    hand.press("t").type_in("#20").press("<enter>");
    let screen = hand.screen();
    assert!(screen.contains("until the mark: H1 0.50 → 0.04 rejected"), "{screen}");
    hand.press("t").type_in("when H4 was confirmed").press("<enter>");
    assert!(!hand.screen().contains("the mark:"), "{}", hand.screen());
    hand.press("G");
    assert!(hand.screen().contains("since the mark: "), "{}", hand.screen());
}
