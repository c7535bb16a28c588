//! For any keys, the screen stays valid.

use crate::hand::{Hand, at};
use forge_store::model::{Fact, FactOrigin, Key, Kind, Value};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Store, WriteContext};
use forge_tui::action::BrowserAction;
use proptest::prelude::*;

const KEYS: &[&str] = &[
    "j", "k", "j j j", "<pgdn>", "<pgup>", "g", "G", "<enter>", "<esc>", "<tab>", "l", "h", "v",
    "m", "d", "c", "s", "?", "/", "H", "x", "z", "a", "T", "b", "R", "y", "n", "u", "U", "r", "]",
    "[", ")", "(", ">", "<lt>", "}", "{", "t", ":", "1", "<backspace>", "<c-w>", "<c-u>",
    "<space>", "<c-z>", "#", "1", "2", "3", "4", "f", "o", "p", "q", "i", "+", "-", "C", "!", "Q",
    "J", "K", "X", "N", "<c-e>", "<c-y>", "<s-tab>", ".7 it",
];

fn actions() -> impl Strategy<Value = Vec<Step>> {
    let key = (0..KEYS.len()).prop_map(|place| Step::Keys(KEYS[place]));
    let size = (0_u16..130, 0_u16..50).prop_map(|(width, height)| Step::Size(width, height));
    let click = (0_u16..130, 0_u16..50).prop_map(|(x, y)| Step::Click(x, y));
    let one = prop_oneof![12 => key, 1 => size, 1 => click, 1 => (-9_i16..9).prop_map(Step::Wheel)];
    proptest::collection::vec(one, 1..40)
}

#[derive(Clone, Debug)]
enum Step {
    Keys(&'static str),
    Size(u16, u16),
    Click(u16, u16),
    Wheel(i16),
}

/// A store with texts that must not reach a terminal unchanged.
fn store(what: u8, text: &str) -> Store {
    let store = Store::in_memory().unwrap();
    if what == 0 {
        return store;
    }
    let act = WriteContext::asked("note add", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    if what == 1 {
        return store;
    }
    if what == 2 {
        forge_testkit::example::fill(&store).unwrap();
        return store;
    }
    let value = || Value::from([("description", text.into()), ("confidence", 0.25.into())]);
    for (place, kind) in [Kind::Hypothesis, Kind::Belief].into_iter().enumerate() {
        let change = ClaimChange::put(Key::new(kind, format!("X{place}")), value());
        session.write(&act).change(change).commit().unwrap();
    }
    let fact = Fact {
        kind: Kind::Message,
        id: "m".to_owned(),
        at: act.now,
        origin: FactOrigin::Recorded,
        place: 1,
        recorded_at: act.now,
        value: Value::from([("text", text.into())]),
    };
    session.write(&act).fact(fact).checkpoint(NewCheckpoint::manual(text)).commit().unwrap();
    store
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_keys_on_any_store_break_the_screen(
        what in 0_u8..5,
        text in "(\\PC|\u{1b}\\[31m|\u{202e}|\n|日本|e\u{301}){0,30}",
        (width, height) in (0_u16..130, 0_u16..50),
        steps in actions(),
    ) {
        let mut hand = Hand::on(store(what, &text), width, height);
        for step in steps {
            match step {
                Step::Keys(keys) => _ = hand.press(keys),
                Step::Size(width, height) => _ = hand.act(BrowserAction::Resize { width, height }),
                Step::Click(x, y) => _ = hand.act(BrowserAction::Click { x, y }),
                Step::Wheel(rows) => _ = hand.act(BrowserAction::Wheel(rows)),
            }
            let screen = hand.screen();
            prop_assert_eq!(screen.lines().count(), 1 + usize::from(hand.app.height));
            let hidden = screen.chars().any(|c| c.is_control() && c != '\n');
            prop_assert!(!hidden, "{screen:?}");
            let app = &hand.app;
            prop_assert!(app.timeline.cursor <= app.timeline.rows.len());
            prop_assert!(app.timeline.rows.is_empty() || app.row().is_some());
            let lines = forge_tui::window::timeline_lines(app);
            let is_shown = lines.iter().any(|line| line.row == app.timeline.cursor);
            prop_assert!(lines.is_empty() || is_shown, "the selection is on the screen");
        }
    }
}
