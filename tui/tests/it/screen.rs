//! Every screen at several sizes, from keys written as text.

use crate::hand::{Hand, at};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{Act, ClaimChange, NewCheckpoint, NewSession, Store};
use forge_tui::action::Action;
use insta::assert_snapshot;

#[test]
fn the_timeline_opens_on_the_head_with_the_state_beside_it() {
    assert_snapshot!(Hand::on_example(120, 30).screen(), @"");
}

#[test]
fn a_narrow_window_shows_one_side_at_a_time() {
    let mut hand = Hand::on_example(60, 16);
    assert_snapshot!(hand.screen(), @"");
    assert_snapshot!(hand.press("j j <tab>").screen(), @"");
}

#[test]
fn a_tiny_window_still_shows_where_one_stands() {
    assert_snapshot!(Hand::on_example(20, 5).press("j").screen(), @"");
}

#[test]
fn the_toggle_shows_every_revision_and_then_every_fact() {
    let mut hand = Hand::on_example(100, 14);
    assert_snapshot!(hand.press("v").screen(), @"");
    assert_snapshot!(hand.press("v").screen(), @"");
}

#[test]
fn moving_marks_what_changed_since_the_stop_before() {
    assert_snapshot!(Hand::on_example(120, 16).press("j j j j j").screen(), @"");
}

#[test]
fn beliefs_stand_in_a_tree_and_commands_with_their_codes() {
    let mut hand = Hand::on_example(120, 16);
    assert_snapshot!(hand.press("l l").screen(), @"");
    assert_snapshot!(hand.press("l l l l").screen(), @"");
}

#[test]
fn a_hypothesis_opens_with_its_fields_history_and_dependents() {
    assert_snapshot!(Hand::on_example(100, 40).press("<tab> <enter>").screen(), @"");
}

#[test]
fn a_checkpoint_opens_in_full() {
    assert_snapshot!(Hand::on_example(90, 14).press("j <enter>").screen(), @"");
}

#[test]
fn two_moments_compare_by_kind_with_sections_that_fold() {
    let mut hand = Hand::on_example(100, 24);
    assert_snapshot!(hand.press("j j m k d").screen(), @"");
    assert_snapshot!(hand.press("z").screen(), @"");
}

#[test]
fn a_search_filters_while_it_is_typed_and_escape_clears_it() {
    let mut hand = Hand::on_example(100, 14);
    assert_snapshot!(hand.press("/").type_in("stress").screen(), @"");
    hand.press("<enter> <esc>");
    assert!(!hand.screen().contains("filter:"), "{}", hand.screen());
    assert_snapshot!(hand.press("/").type_in("kind:bogus").screen().lines().nth(13).unwrap(), @"");
}

#[test]
fn a_moment_is_gone_to_by_typing_it() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("t").type_in("2025-03-11 10:00:00Z").press("<enter>");
    assert_snapshot!(hand.screen(), @"");
    hand.press("t").type_in("before last compaction").press("<enter>");
    assert_eq!(hand.app.row().unwrap().title, "Confirmed: one deadline, two clocks");
    hand.press("t").type_in("nowhere at all").press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("nowhere"), "{:?}", hand.app.status);
}

#[test]
fn landmarks_are_gone_to_one_after_the_other() {
    let mut hand = Hand::on_example(100, 20);
    hand.press(">");
    assert!(hand.app.row().unwrap().title.starts_with("Before compaction"));
    hand.press("}");
    let title = hand.app.row().unwrap().title.clone();
    hand.press("{ >");
    assert!(hand.app.status.as_ref().unwrap().text.contains("no compaction before"), "{title}");
}

#[test]
fn charts_show_confidence_verifications_and_activity() {
    assert_snapshot!(Hand::on_example(100, 24).press("c").screen(), @"");
}

#[test]
fn the_help_names_every_key() {
    let mut hand = Hand::on_example(100, 24);
    assert_snapshot!(hand.press("?").screen(), @"");
    let bindings = hand.app.keymap.bindings().len();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let screen = hand.press("j").screen();
        let names = hand.app.keymap.bindings().iter().map(|binding| binding.name);
        seen.extend(names.filter(|name| screen.contains(&format!("[{name}]"))));
    }
    assert_eq!(seen.len(), bindings);
}

#[test]
fn the_sessions_are_listed_and_gone_to() {
    let store = Store::in_memory().unwrap();
    let act = Act::asked("session new", at("2025-01-01T10:00:00Z"));
    store.create_session(&act, NewSession::named("older")).unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store, 90, 12);
    assert_snapshot!(hand.press("s").screen(), @"");
    assert_snapshot!(hand.press("j <enter>").screen(), @"");
    hand.press("s k <enter>");
    assert_eq!(hand.app.session.name, "example");
}

#[test]
fn a_checkpoint_a_tag_and_a_branch_are_made_and_their_commands_shown() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("a").type_in("it's fixed").press("<enter>");
    assert_snapshot!(hand.screen(), @"");
    hand.press("g j T").type_in("good,-auto").press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("--add good --remove auto"));
    hand.press("j j b").type_in("other").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.contains("forge branch create other --from '#"), "{status}");
    assert!(hand.app.session.lines.iter().any(|line| line.name == "other"));
}

#[test]
fn a_restore_is_shown_first_then_done_and_undone() {
    let mut hand = Hand::on_example(100, 16);
    let before = hand.app.session.claims;
    assert_snapshot!(hand.press("j j j j R").screen(), @"");
    let count = hand.app.session.count;
    hand.press("n");
    assert_eq!(hand.app.session.count, count);
    hand.press("R y");
    assert_eq!(hand.app.session.count, count + 1, "{:?}", hand.app.status);
    hand.press("u y");
    assert_eq!(hand.app.session.claims, before, "{:?}", hand.app.status);
}

#[test]
fn an_id_is_copied_and_the_view_written_to_a_file() {
    let mut hand = Hand::on_example(100, 14);
    hand.press("j y");
    assert_eq!(hand.copied, [hand.app.row().unwrap().id.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("view.txt");
    hand.press("e <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(std::fs::read_to_string(&file).unwrap().contains("Fix committed"));
    hand.press("e <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("cannot write"));
}

fn note(store: &Store, session: &str, id: &str, time: &str) {
    let act = Act::asked("note add", at(time));
    let value = Value::from([("description", id.into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, id), value);
    store.session(session).unwrap().write(&act).change(change).commit().unwrap();
}

#[test]
fn what_others_write_appears_and_who_stands_elsewhere_stays() {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store.clone(), 100, 14);
    let tick = || Action::Tick(at("2025-03-11T13:12:00Z"));
    note(&store, "example", "N90", "2025-03-11T13:11:30Z");
    hand.act(tick());
    assert_eq!(
        hand.app.state.view.as_ref().unwrap().moved.iter().map(|(_, n)| n).sum::<usize>(),
        1
    );
    hand.press("v j j");
    let stood = hand.app.row().unwrap().clone();
    for number in 0..200 {
        note(&store, "example", &format!("M{number}"), "2025-03-11T13:11:40Z");
        if number % 50 == 0 {
            hand.act(tick());
        }
    }
    hand.act(tick());
    assert_eq!(hand.app.row().unwrap().place, stood.place);
    hand.press("g");
    assert!(hand.screen().contains("following"), "{}", hand.screen());
}

#[test]
fn a_long_history_is_never_loaded_whole_and_walked_through_without_gaps() {
    let store = Store::in_memory().unwrap();
    let act = Act::asked("session new", at("2025-03-11T10:00:00Z"));
    store.create_session(&act, NewSession::named("long")).unwrap();
    for number in 0..3000_u64 {
        note(&store, "long", &format!("N{}", number % 7), "2025-03-11T10:00:00Z");
        let _ = number;
        let value = Value::from([("description", number.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "count"), value);
        store.session("long").unwrap().write(&act).change(change).commit().unwrap();
    }
    let mut hand = Hand::on(store, 80, 30);
    let mut seen = std::collections::BTreeSet::new();
    let last = hand.app.session.count;
    for _ in 0..=last {
        seen.insert(hand.app.row().unwrap().target);
        assert!(hand.app.timeline.rows.len() <= 1400);
        hand.press("j");
    }
    assert_eq!(seen.len() as u64, last + 1);
    for _ in 0..=last {
        seen.remove(&hand.app.row().unwrap().target);
        hand.press("k");
    }
    assert!(seen.is_empty(), "{}", seen.len());
}

#[test]
fn an_empty_store_says_what_to_do_and_comes_to_life() {
    let store = Store::in_memory().unwrap();
    let mut hand = Hand::on(store.clone(), 70, 12);
    assert_snapshot!(hand.screen(), @"");
    forge_testkit::example::fill(&store).unwrap();
    hand.act(Action::Tick(at("2025-03-11T13:12:00Z")));
    assert!(hand.screen().contains("the head of"), "{}", hand.screen());
}

#[test]
fn a_store_that_cannot_be_read_says_so_and_what_to_do() {
    use forge_tui::effect::{Failure, Reply, Slot};
    let mut hand = Hand::on_example(70, 10);
    let failure = Failure {
        message: "the object number 7 is damaged".to_owned(),
        advice: "other moments may be whole".to_owned(),
        damaged: true,
    };
    let reply = |hand: &Hand, slot: Slot| Reply {
        generation: *hand.app.asked.get(&slot).unwrap(),
        slot,
        answer: Err(failure.clone()),
    };
    let state = reply(&hand, Slot::State);
    hand.act(Action::Reply(Box::new(state)));
    assert_snapshot!(hand.press("<tab>").screen(), @"");
    hand.app.stage = forge_tui::app::Stage::Loading;
    assert_snapshot!(hand.screen().lines().nth(2).unwrap(), @"");
    let page = reply(&hand, Slot::Page);
    hand.act(Action::Reply(Box::new(page)));
    assert_snapshot!(hand.screen(), @"");
}

#[test]
fn wide_and_combining_letters_and_escapes_stay_in_their_cells() {
    let store = Store::in_memory().unwrap();
    let act = Act::asked("checkpoint create", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("日本語")).unwrap();
    for text in [
        "日本語のとても長いメッセージ、窓より長い",
        "e\u{301}a\u{308} \u{1b}[31mred\u{202e}",
        "🎉 done",
    ] {
        session.write(&act).checkpoint(NewCheckpoint::manual(text)).commit().unwrap();
    }
    assert_snapshot!(Hand::on(store, 40, 8).screen(), @"");
}

#[test]
fn without_unicode_and_colour_everything_is_still_told() {
    let mut hand = Hand::on_example(100, 24);
    hand.app.theme.ascii = true;
    let screen = hand.press("v").screen();
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!(screen, @"");
}

#[test]
fn the_mouse_stands_on_rows_tabs_and_times() {
    let mut hand = Hand::on_example(120, 30);
    hand.act(Action::Click { x: 10, y: 4 });
    assert_eq!(hand.app.timeline.cursor, 3);
    hand.act(Action::Wheel(3));
    assert_eq!(hand.app.timeline.cursor, 6);
    hand.act(Action::Click { x: 0, y: 26 });
    assert_eq!(hand.app.timeline.rows.len() - 1, hand.app.timeline.cursor);
    hand.act(Action::Click { x: 80, y: 4 });
    assert_eq!((hand.app.focus, hand.app.state.cursor), (forge_tui::app::Focus::State, 1));
}
