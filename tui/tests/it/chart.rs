//! The axis of time and the charts.

use crate::hand::{Hand, at};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, NewSession, Store, WriteContext};
use forge_tui::effect::MomentTarget;
use insta::assert_snapshot;

#[test]
fn the_charts_show_each_hypothesis_with_its_end_and_what_happened_meanwhile() {
    let mut hand = Hand::on_example(120, 36);
    assert_snapshot!("charts", hand.press("c").screen());
    hand.app.theme.ascii = true;
    let screen = hand.screen();
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!("charts_ascii", screen);
}

#[test]
fn steps_in_the_chart_go_to_the_next_change_and_show_its_cause_and_the_confidences() {
    let mut hand = Hand::on_example(120, 36);
    hand.press("t").type_in("when H1 was rejected").press("<enter> c h");
    assert_eq!(hand.app.target(), MomentTarget::Sequence(61));
    let screen = hand.screen();
    assert!(screen.contains(" 10:56  H4 0.93 → 0.97  "), "{screen}");
    assert!(
        screen.contains("held then:  H1 0.04✗  H2 0.05✗  H3 0.03✗  H4 0.97  H5 0.65"),
        "{screen}"
    );
    hand.press("l");
    assert_eq!(hand.app.target(), MomentTarget::Sequence(62));
    // The state follows.
    assert_eq!(hand.app.state.view.as_ref().unwrap().target, MomentTarget::Sequence(62));
    for _ in 0..100 {
        hand.press("h");
    }
    assert_eq!(hand.app.status.as_ref().unwrap().text, "no hypothesis changed before this moment");
    let steps = hand.app.chart.steps().len();
    let mut seen = 1;
    for _ in 1..steps {
        hand.press("l");
        seen += 1;
    }
    assert_eq!(seen, steps);
    assert_eq!(hand.app.target(), MomentTarget::Sequence(87));
}

#[test]
fn the_hypotheses_in_the_chart_can_be_chosen() {
    let mut hand = Hand::on_example(120, 36);
    hand.press("c");
    hand.app.chart.cursor = 0;
    assert!(hand.press("<space>").screen().contains("5 of 6 hypotheses"), "{}", hand.screen());
    hand.press("<space>");
    // All are settled, so nothing is left.
    assert!(hand.press("z").screen().contains("0 of 6 hypotheses"));
    assert!(hand.press("z").screen().contains("6 of 6 hypotheses"));
    hand.press("<enter>");
    assert!(hand.app.overlays.is_empty());
}

/// Regression: with more hypotheses than the chart has, it said that it has all of them.
#[test]
fn the_charts_say_how_many_hypotheses_there_are_in_all() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", at("2025-03-11T12:00:00Z"));
    let session = store.create_session(&act, NewSession::named("many")).unwrap();
    let hypothesis = |number: usize| {
        let value = Value::from([("description", "skew".into()), ("confidence", 0.25.into())]);
        ClaimChange::add(Key::new(Kind::Hypothesis, format!("H{number}")), value)
    };
    let all: Vec<ClaimChange> = (1..=60).map(hypothesis).collect();
    session.write(&act).edit(Vec::new(), |_| Ok(all.clone())).commit().unwrap();
    let mut hand = Hand::on(store, 120, 36);
    assert!(hand.press("c").screen().contains("52 of 60 hypotheses"), "{}", hand.screen());
}

/// Regression: the ids of hypotheses that were stated shortly after one another were written over
/// one another.
#[test]
fn an_id_in_the_charts_does_not_touch_another_one() {
    let store = Store::in_memory().unwrap();
    let act =
        |minute: u32| WriteContext::asked("test", at(&format!("2025-03-11T12:{minute:02}:00Z")));
    let session = store.create_session(&act(0), NewSession::named("often")).unwrap();
    for minute in 0..50 {
        let value = Value::from([("description", "skew".into()), ("confidence", 0.25.into())]);
        let change = ClaimChange::add(Key::new(Kind::Hypothesis, format!("H{minute}")), value);
        session.write(&act(minute)).change(change).commit().unwrap();
    }
    let mut hand = Hand::on(store, 120, 36);
    let screen = hand.press("c").screen();
    let chart = screen.split(" you ").next().unwrap();
    assert!(chart.contains("H0") && !chart.contains("H0H") && !chart.contains("HH"), "{screen}");
}

/// Returns the line with the times below the axis.
fn below_axis(screen: &str) -> &str {
    screen.lines().skip_while(|line| !line.starts_with("│ edit")).nth(1).unwrap()
}

/// Regression: the axis of a session of seconds had the same time every 16 columns.
#[test]
fn a_minute_is_once_below_the_axis() {
    let store = Store::in_memory().unwrap();
    let act = |second: u32| WriteContext::asked("test", at(&format!("2025-03-11T12:00:{second}Z")));
    let session = store.create_session(&act(10), NewSession::named("short")).unwrap();
    for second in 10..50 {
        let key = Key::new(Kind::Note, format!("N{second}"));
        let change = ClaimChange::add(key, Value::from([("description", "seen".into())]));
        session.write(&act(second)).change(change).commit().unwrap();
    }
    let screen = Hand::on(store, 120, 36).screen();
    assert_eq!(below_axis(&screen).matches("12:00").count(), 1, "{screen}");
}

/// Regression: the lengths of many pauses left no room for a single time.
#[test]
fn the_axis_of_a_session_of_many_days_has_days() {
    let store = Store::in_memory().unwrap();
    let act = |text: &str| WriteContext::asked("test", at(text));
    let session = store.create_session(&act("2025-02-01T09:00:00Z"), NewSession::named("weeks"));
    let session = session.unwrap();
    for day in 1..=16 {
        for minute in [10, 20, 30, 40, 50] {
            let key = Key::new(Kind::Note, format!("N{day}{minute}"));
            let change = ClaimChange::add(key, Value::from([("description", "seen".into())]));
            let act = act(&format!("2025-02-{day:02}T09:{minute}:00Z"));
            session.write(&act).change(change).commit().unwrap();
        }
    }
    let screen = Hand::on(store, 140, 36).screen();
    let below = below_axis(&screen);
    assert!(below.contains(" 2 Feb ") && below.contains(" 12 Feb "), "{screen}");
}

#[test]
fn a_click_on_the_axis_goes_to_that_time() {
    let mut hand = Hand::on_example(120, 40);
    let area = forge_tui::layout::WindowLayout::from_app(&hand.app).time;
    hand.act(forge_tui::action::BrowserAction::Click { x: area.x + 7, y: area.y + 3 });
    assert!(hand.app.timeline.cursor + 5 > hand.app.timeline.rows.len());
}
