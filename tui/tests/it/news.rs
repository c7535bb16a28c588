//! What arrives while nobody looks.

use crate::hand::{Hand, at};
use crate::level::note;
use forge_store::model::rule;
use forge_store::model::{Fact, FactOrigin, Kind, Value};
use forge_store::store::{HeadClaims, Store, WriteContext};
use forge_tui::action::BrowserAction;
use forge_tui::host::NotifyEvent;
use forge_tui::view;

fn on_example() -> (Store, Hand) {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    (store.clone(), Hand::on(store, 120, 40))
}

fn tick(hand: &mut Hand, time: &str) {
    hand.act(BrowserAction::Tick(at(time)));
    // The store is asked first, then the story is read.
    hand.act(BrowserAction::Tick(at(time).plus_micros(2_000_000)));
}

fn confirm(store: &Store, id: &str, time: &str) {
    let act = WriteContext::asked("hypothesis confirm", at(time));
    let session = store.session("example").unwrap();
    let rule = |claims: &HeadClaims| rule::confirm_hypothesis(claims, id, Some("seen twice"));
    session.write(&act).rule(rule).commit().unwrap();
}

fn fail(store: &Store, id: &str, time: &str) {
    let value = Value::from([("name", "soak".into()), ("status", "failed".into())]);
    let fact = Fact {
        kind: Kind::Verification,
        id: id.to_owned(),
        at: at(time),
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: at(time),
        value,
    };
    let act = WriteContext::asked("verification add", at(time));
    store.session("example").unwrap().write(&act).fact(fact).commit().unwrap();
}

#[test]
fn settled_hypotheses_and_first_failures_give_notifications_if_enabled() {
    let (store, mut hand) = on_example();
    hand.press("i").type_in("the disk is slow").press("<enter>");
    assert!(hand.notified.is_empty());
    hand.app.notified = vec![NotifyEvent::Settled];
    tick(&mut hand, "2025-03-11T13:12:00Z");
    confirm(&store, "H7", "2025-03-11T13:12:30Z");
    fail(&store, "v90", "2025-03-11T13:12:31Z");
    tick(&mut hand, "2025-03-11T13:13:00Z");
    assert_eq!(hand.notified, ["H7 confirmed: seen twice"]);
    hand.app.notified = vec![NotifyEvent::Failed];
    fail(&store, "v91", "2025-03-11T13:13:30Z");
    tick(&mut hand, "2025-03-11T13:14:00Z");
    // It failed before.
    assert_eq!(hand.notified.len(), 1, "{:?}", hand.notified);
}

#[test]
fn the_users_own_writes_give_no_notification() {
    let (_, mut hand) = on_example();
    hand.app.notified = vec![NotifyEvent::Settled];
    hand.press("i").type_in("the disk is slow").press("<enter> C").type_in("seen").press("<enter>");
    tick(&mut hand, "2025-03-11T13:12:00Z");
    assert!(hand.notified.is_empty(), "{:?}", hand.notified);
}

#[test]
fn a_line_separates_entries_that_arrived_while_the_user_was_away() {
    let (store, mut hand) = on_example();
    tick(&mut hand, "2025-03-11T13:11:10Z");
    note(&store, "example", "N90", "2025-03-11T13:11:11Z");
    tick(&mut hand, "2025-03-11T13:11:20Z");
    // The person was there a moment ago.
    assert!(!hand.screen().contains("new since your last look"), "{}", hand.screen());
    hand.act(BrowserAction::Focus(false));
    note(&store, "example", "N91", "2025-03-11T13:12:11Z");
    tick(&mut hand, "2025-03-11T13:12:20Z");
    note(&store, "example", "N92", "2025-03-11T13:13:11Z");
    tick(&mut hand, "2025-03-11T13:13:20Z");
    let screen = hand.act(BrowserAction::Focus(true)).screen();
    let place = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(place("✎  N90") < place("new since your last look"));
    assert!(place("new since your last look") < place("✎  N91"));
    // Without a report of the focus, a minute without a key is an absence; then there is a new line.
    note(&store, "example", "N93", "2025-03-11T13:30:00Z");
    tick(&mut hand, "2025-03-11T13:30:10Z");
    let screen = hand.screen();
    let place = |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text}: {screen}"));
    assert!(place("✎  N92") < place("new since your last look"));
    assert!(place("new since your last look") < place("✎  N93"));
    hand.press("o");
    assert!(hand.screen().contains("new above"), "{}", hand.screen());
}

#[test]
fn the_terminal_title_counts_failures_gaps_and_new_entries() {
    let (store, mut hand) = on_example();
    let title = view::title(&hand.app);
    assert!(title.starts_with("✗ 2 failing ? 1 gap  forge · redelivery::lease_is_not"), "{title}");
    hand.press("k");
    note(&store, "example", "N90", "2025-03-11T13:11:11Z");
    tick(&mut hand, "2025-03-11T13:12:20Z");
    assert!(
        view::title(&hand.app).starts_with("(1 new) ✗ 2 failing"),
        "{}",
        view::title(&hand.app)
    );
    hand.app.theme.ascii = true;
    assert!(view::title(&hand.app).is_ascii(), "{}", view::title(&hand.app));
}
