//! One test for each fault that a trial of the browser found.

use crate::hand::{Hand, at};
use chrono::FixedOffset;
use forge_store::model::{Fact, FactOrigin, Key, Kind, Value};
use forge_store::store::{ClaimChange, NewSession, Store, WriteContext};
use forge_tui::action::BrowserAction;
use forge_tui::answer::StateTab;
use forge_tui::app::DisplayZone;
use forge_tui::effect::MomentTarget;
use forge_tui::panes::PaneFocus;
use forge_tui::theme::{TextTone, ThemeName};

fn hypothesis(hand: &Hand, id: &str) -> (String, f64) {
    let view = hand.app.state.view.as_ref().unwrap();
    let item = view.items.iter().find(|item| item.key.id == id).unwrap();
    (item.status.clone(), item.confidence.unwrap())
}

#[test]
fn a_typed_moment_selects_its_revision_and_shows_the_state_there() {
    for moment in ["when H1 was rejected", "#62"] {
        let mut hand = Hand::on_example(140, 40);
        // What was held, by hypothesis.
        hand.press("l t").type_in(moment).press("<enter>");
        let named = hand.app.target();
        assert!(matches!(named, MomentTarget::Sequence(_)), "{moment}: {named}");
        assert_eq!(hypothesis(&hand, "H1"), ("rejected".to_owned(), 0.04), "{moment}");
        let row = hand.app.row().unwrap();
        assert_eq!(row.target, named);
        assert_eq!(row.title, "H1 rejected 0.30 → 0.04", "{moment}");
    }
}

/// Regression: the pane showed the first 2,000 claims of a tab and did not say that there are more.
#[test]
fn a_tab_with_very_many_claims_says_how_many_it_leaves_out() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", at("2025-03-11T12:00:00Z"));
    let session = store.create_session(&act, NewSession::named("many")).unwrap();
    let note = |number: usize| {
        let text = Value::from([("text", format!("note {number}").into())]);
        ClaimChange::add(Key::new(Kind::Note, format!("N{number}")), text)
    };
    let notes: Vec<ClaimChange> = (1..=2003).map(note).collect();
    session.write(&act).edit(Vec::new(), |_| Ok(notes.clone())).commit().unwrap();
    let mut hand = Hand::on(store, 120, 30);
    hand.press("3");
    for _ in StateTab::ALL {
        if hand.app.state.tab != StateTab::Notes {
            hand.press("l");
        }
    }
    assert_eq!(hand.app.state.tab, StateTab::Notes);
    assert!(hand.screen().contains("and 3 more"), "{}", hand.screen());
    // The last claim is above this line, and not hidden by it.
    hand.press("G");
    let last = hand.app.state.view.as_ref().unwrap().items.last().unwrap().title.clone();
    let screen = hand.screen();
    assert!(screen.contains(&last) && screen.contains("and 3 more"), "{last}: {screen}");
}

#[test]
fn a_moment_missing_in_the_story_is_found_among_the_revisions() {
    let mut hand = Hand::on_example(140, 40);
    // An automatic checkpoint.
    hand.press("t #89 <enter>");
    assert_eq!(hand.app.target(), MomentTarget::Sequence(89));
    assert_eq!(hand.app.row().unwrap().title, "Fix committed");
    // A change that the story folds is unfolded.
    let mut hand = Hand::on_example(140, 40);
    let folded = hand.app.timeline.rows.iter().find_map(|row| {
        let story = row.story.as_ref()?;
        story.hidden.iter().find(|hidden| matches!(hidden.target, MomentTarget::Sequence(_)))
    });
    let target = folded.unwrap().target;
    hand.press("t").type_in(&target.to_string()).press("<enter>");
    assert_eq!(hand.app.target(), target);
    assert!(hand.app.timeline.is_story());
}

#[test]
fn the_key_for_the_next_change_reaches_every_change() {
    for keys in ["", "v"] {
        let mut hand = Hand::on_example(120, 30);
        hand.press("l").press(keys).press("g");
        let mut seen = vec![hand.app.target()];
        for _ in 0..200 {
            let before = hand.app.target();
            hand.press("}");
            if hand.app.target() == before {
                break;
            }
            let view = hand.app.state.view.as_ref().unwrap();
            assert_eq!(view.target, hand.app.target(), "the state is that of the row");
            seen.push(hand.app.target());
        }
        assert!(seen.len() > 15, "{seen:?}");
        // And all the way back.
        for expected in seen.iter().rev().skip(1).take(seen.len() - 2) {
            hand.press("{");
            assert_eq!(hand.app.target(), *expected);
        }
        let mut hand = Hand::on_example(120, 30);
        hand.press("l").press(keys).press("} {");
        let confirmed = hand.press("t").type_in("when H4 was confirmed").press("<enter>");
        assert_eq!(hypothesis(confirmed, "H4").0, "confirmed");
    }
}

#[test]
fn the_longest_pause_does_not_depend_on_the_window() {
    for width in [80, 100, 120, 140, 200] {
        let screen = Hand::on_example(width, 40).screen();
        assert!(screen.contains("longest pause 8 min 29 s"), "{width}: {screen}");
    }
}

#[test]
fn a_difference_is_read_from_the_earlier_moment_to_the_later_one() {
    let texts = |hand: &Hand| {
        let sheet = hand.app.detail.sheet.as_ref().unwrap();
        let lines = sheet.sections.iter().flat_map(|section| &section.lines);
        lines.flat_map(|line| &line.parts).map(|(_, text)| text.clone()).collect::<String>()
    };
    // The mark is below, then above.
    let mut hand = Hand::on_example(140, 40);
    hand.press("t").type_in("when H1 was rejected").press("<enter> m");
    hand.press("t").type_in("when H4 was confirmed").press("<enter> d");
    let forward = texts(&hand);
    assert!(forward.contains("confirmed") && forward.contains("later"), "{forward}");
    let mut hand = Hand::on_example(140, 40);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> m");
    hand.press("t").type_in("when H1 was rejected").press("<enter> d");
    assert_eq!(texts(&hand), forward);
}

/// A browser of an edit with these fields.
fn hand_on_edit<const N: usize>(fields: [(&str, Value); N]) -> Hand {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("import", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("edits")).unwrap();
    let fact = Fact {
        kind: Kind::Code,
        id: "x1".to_owned(),
        at: act.now,
        origin: FactOrigin::Recorded,
        place: 1,
        recorded_at: act.now,
        value: Value::from(fields),
    };
    session.write(&act).fact(fact).commit().unwrap();
    Hand::on(store, 100, 30)
}

/// The tones of the first section of the details.
fn first_tones(hand: &Hand) -> Vec<TextTone> {
    let sheet = hand.app.detail.sheet.as_ref().unwrap();
    sheet.sections[0].lines.iter().map(|line| line.parts[0].0).collect()
}

#[test]
fn an_edit_shows_its_patch_first_in_colour_and_the_old_file_last() {
    let mut hand = hand_on_edit([
        ("original_file", "old line\n".repeat(290).into()),
        ("patch", "@@ -1,2 +1,2 @@\n-old line\n+new line\n".into()),
        ("path", "src/a.rs".into()),
    ]);
    hand.app.theme.name = ThemeName::Dark;
    assert_eq!(
        first_tones(&hand),
        [TextTone::Heading, TextTone::Id, TextTone::PatchRemoved, TextTone::PatchAdded]
    );
    assert!(hand.screen().contains("+new line"), "{}", hand.screen());
    let opened = hand.press("<enter>").screen();
    assert!(opened.contains("▸ original file (290 lines)"), "{opened}");
}

#[test]
fn a_changed_line_that_looks_like_the_name_of_a_file_has_the_tone_of_a_change() {
    let patch = "--- q.sql\n+++ q.sql\n@@ -1 +1 @@\n--- a comment\n+++ more\n";
    let hand = hand_on_edit([("patch", patch.into()), ("path", "q.sql".into())]);
    assert_eq!(
        first_tones(&hand),
        [TextTone::Heading, TextTone::Id, TextTone::PatchRemoved, TextTone::PatchAdded]
    );
}

#[test]
fn undo_and_redo_say_what_they_take_back() {
    let mut hand = Hand::on_example(100, 30);
    hand.press("n").type_in("the clocks are apart").press("<enter> u");
    let screen = hand.screen();
    assert!(screen.contains("undo takes back: note add"), "{screen}");
    assert!(
        screen.contains("revision #90") && screen.contains("N8 the clocks are apart"),
        "{screen}"
    );
    hand.press("n");
    assert!(hand.app.session.count == 90, "nothing is undone");
    hand.press("u y U");
    assert!(hand.screen().contains("redo brings back: note add"), "{}", hand.screen());
    hand.press("y");
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("import", at("2025-03-11T10:00:00Z"));
    store.create_session(&act, NewSession::named("empty")).unwrap();
    let mut hand = Hand::on_example(100, 30);
    hand.press("U");
    assert!(hand.app.overlays.is_empty());
    assert_eq!(hand.app.status.as_ref().unwrap().text, "there is no undo to take back");
}

#[test]
fn q_and_escape_close_the_front_and_only_q_on_the_main_screen_quits() {
    let mut hand = Hand::on_example(140, 40);
    for open in ["<enter>", "c", "s", "z"] {
        hand.press(open);
        assert!(!hand.app.overlays.is_empty() || hand.app.zoomed, "{open}");
        hand.press("q");
        assert!(hand.app.overlays.is_empty() && !hand.app.zoomed && !hand.app.done, "{open}");
    }
    for open in ["?", "/", "t", "n"] {
        hand.press(open).press("<esc>");
        assert!(hand.app.overlays.is_empty() && !hand.app.done, "{open}");
    }
    hand.press("<esc> <esc> <tab> <esc>");
    assert!(!hand.app.done);
    assert_eq!(hand.app.focus, PaneFocus::Story);
    hand.press("q");
    assert!(hand.app.done);
}

#[test]
fn the_last_line_always_names_the_keys_for_help_and_quitting() {
    for width in [60, 80, 100, 140, 200] {
        let hand = Hand::on_example(width, 40);
        let screen = hand.screen();
        let keys = screen.lines().last().unwrap();
        assert!(keys.ends_with("q quit") && keys.contains("? keys"), "{width}: {keys}");
    }
}

/// Regression: wide letters, and what was typed into a list, ran out of the line, with the cursor.
#[test]
fn the_end_of_a_long_typed_text_stays_visible() {
    let mut hand = Hand::on_example(40, 12);
    hand.press("n").type_in(&format!("{}終", "時鐘".repeat(30)));
    let screen = hand.screen();
    assert!(screen.contains(" note: ") && screen.ends_with("終▏\n"), "{screen}");
    hand.press("<esc> /").type_in(&format!("{}end", "clock ".repeat(30)));
    assert!(hand.screen().contains("clock end▏"), "{}", hand.screen());
}

/// Regression: in a narrow window, the prompt for evidence left no room for what is typed.
#[test]
fn a_long_prompt_leaves_room_for_the_typed_text() {
    let mut hand = Hand::on_example(40, 12);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> +").type_in(".7 seen");
    let screen = hand.screen();
    assert!(screen.ends_with(" evidence for H4, as: .7 w…: .7 seen▏\n"), "{screen}");
}

/// Regression: a problem was cut at the end of the line, with what can be typed instead.
#[test]
fn a_problem_is_shown_whole_in_a_narrow_window() {
    let words = |screen: &str| {
        let text: String = screen.chars().map(|c| if "┃│".contains(c) { ' ' } else { c }).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (width, height) in [(80, 24), (40, 12)] {
        let mut hand = Hand::on_example(width, height);
        let screen = words(&hand.press("g T").screen());
        assert!(
            screen.contains("only checkpoints have tags: press a to make one here"),
            "{screen}"
        );
        // While something is typed, a long problem is above the input, and above the chips.
        let screen = words(&hand.press("f").type_in("since:foo").screen());
        let problem = &hand.app.status.as_ref().unwrap().text;
        assert!(problem.len() > usize::from(width), "{problem}");
        assert!(screen.contains(problem), "{problem}: {screen}");
        assert!(screen.ends_with("filter: since:foo▏"), "{screen}");
    }
}

/// Regression: a narrow window kept the gaps and left out the failing checks. The name was cut for
/// a branch that was not shown.
#[test]
fn a_narrow_first_line_keeps_the_failing_checks_and_the_name() {
    let first = |screen: &str| screen.lines().nth(1).unwrap_or_default().to_owned();
    let line = first(&Hand::on_example(40, 12).press("g").screen());
    assert_eq!(line, " forge  example             ✗ 2 failing");
    let line = first(&Hand::on_example(60, 20).screen());
    assert!(line.starts_with(" forge  redelivery::lease_is"), "{line}");
}

/// Regression: the details of a branch had its time twice, first with microseconds and in UTC.
#[test]
fn the_details_of_a_branch_have_its_time_once() {
    let mut hand = Hand::on_example(140, 40);
    hand.press("/").type_in("branch monotonic").press("<enter>");
    let sheet = hand.app.detail.sheet.as_ref().unwrap();
    let lines = forge_tui::sheet::wrap_sheet(sheet, 80);
    let text: String = lines.iter().map(forge_tui::sheet::WrappedLine::text).collect();
    assert!(text.starts_with("branch monotonic-lease"), "{text}");
    assert_eq!(text.matches("2025-03-11").count(), 1, "{text}");
}

/// Regression: a mark on a row without a number, and its difference, had the time in UTC.
#[test]
fn a_mark_on_a_row_without_a_number_has_its_time_in_the_zone_of_the_others() {
    let mut hand = Hand::on_example(140, 40);
    hand.app.zone = DisplayZone::Fixed(FixedOffset::east_opt(3600).unwrap());
    hand.press("/").type_in("branch monotonic").press("<enter> m");
    let screen = hand.screen();
    assert!(screen.contains("marked 2025-03-11 12:27:00 +01:00: move"), "{screen}");
    assert!(screen.contains("m 2025-03-11 12:27:00 +01:00"), "{screen}");
}

/// Regression: a confidence that evidence moved had 16 decimals among the changes of a revision
/// and in a difference.
#[test]
fn a_change_of_confidence_has_two_decimals() {
    let mut hand = Hand::on_example(140, 40);
    hand.press("i").type_in("skew").press("<enter> +").type_in(".7 seen").press("<enter> v k");
    let screen = hand.screen();
    assert!(screen.contains("~ hypothesis H7 confidence: none → 0.82"), "{screen}");
    let screen = hand.press("d").screen();
    assert!(screen.contains("confidence: none → 0.82"), "{screen}");
    assert!(!screen.contains("0.823"), "{screen}");
}

/// Regression: "correct the text" followed a message that says what to write instead.
#[test]
fn no_advice_follows_a_message_that_says_what_to_write() {
    let mut hand = Hand::on_example(140, 40);
    hand.press("t").type_in("last week").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.ends_with("'last monday' or '2025-01-20'"), "{status}");
    hand.press("<esc> t").type_in("#999").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(
        status.ends_with(": choose another one; r reads the lists again, s lists the sessions")
    );
}

/// Regression: the details of a compaction named the branch of the end of the session.
#[test]
fn the_details_of_a_checkpoint_name_the_branch_of_its_time() {
    let mut hand = Hand::on_example(140, 40);
    let screen = hand.press("<lt>").screen();
    assert!(screen.contains("2025-03-11 11:24:00 +00:00  on main"), "{screen}");
    assert_eq!(hand.app.state.view.as_ref().unwrap().branch, "main");
}

/// Regression: the details of an agent's check that failed did not show its output.
#[test]
fn a_check_shows_the_output_of_its_command() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("import", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("checks")).unwrap();
    let fact = |kind, id: &str, fields: [(&'static str, Value); 2]| Fact {
        kind,
        id: id.to_owned(),
        at: act.now,
        origin: FactOrigin::Recorded,
        place: 1,
        recorded_at: act.now,
        value: Value::from(fields),
    };
    let call = [("command", "make lint test".into()), ("stdout_preview", "line 252".into())];
    let check = [("name", "make test".into()), ("status", "failed".into())];
    let write = session.write(&act).fact(fact(Kind::Command, "t1", call));
    write.fact(fact(Kind::Verification, "t1/2", check)).commit().unwrap();
    let mut hand = Hand::on(store, 120, 30);
    let screen = hand.press("g x").screen();
    assert!(screen.contains("2 Detail ─ verification") && screen.contains("│line 252"), "{screen}");
}

/// Regression: the message named a session that was dropped meanwhile by its id.
#[test]
fn a_session_that_was_dropped_is_named() {
    let store = Store::in_memory().unwrap();
    let session = forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store.clone(), 140, 40);
    let act = WriteContext::asked("session drop", at("2025-03-11T13:12:00Z"));
    store.drop_session(&act, &session).unwrap();
    hand.act(BrowserAction::Tick(at("2025-03-11T13:13:00Z")));
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.starts_with("there is no session 'example': "), "{status}");
}
