//! Finding and filtering.

use crate::hand::Hand;
use insta::assert_snapshot;

#[test]
fn a_search_lists_and_counts_its_matches_and_steps_through_them() {
    let mut hand = Hand::on_example(80, 24);
    assert_snapshot!("find", hand.press("/").type_in("clck skew").screen());
    hand.press("<c-u>").type_in("clock diff");
    let screen = hand.screen();
    assert!(screen.contains("/ Find"), "{screen}");
    hand.press("<enter>");
    let found = hand.app.find.as_ref().unwrap().matches.len();
    assert!(found > 2, "{found}");
    assert!(hand.screen().contains(&format!("{found} match 'clock diff'")), "{}", hand.screen());
    // All of them are visited, oldest to newest and back.
    hand.press("N N N N N N N N N N N N N N N N N N N N");
    assert_eq!(hand.app.status.as_ref().unwrap().text, "no match before this moment");
    let mut seen = vec![hand.app.timeline.cursor];
    for _ in 1..found {
        hand.press("n");
        seen.push(hand.app.timeline.cursor);
    }
    let mut all = hand.app.find.as_ref().unwrap().matches.clone();
    all.sort_by_key(|row| std::cmp::Reverse(*row));
    assert_eq!(seen, all);
    // After it is closed, n writes a note again.
    hand.press("<esc> n");
    assert!(hand.screen().contains("note: "), "{}", hand.screen());
}

#[test]
fn a_search_without_a_match_says_what_to_do() {
    let mut hand = Hand::on_example(80, 24);
    hand.press("/").type_in("zzz").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.contains("'zzz' is not among what is listed"), "{status}");
}

#[test]
fn a_filter_lists_while_it_is_typed_and_escape_brings_the_story_back() {
    let mut hand = Hand::on_example(100, 24);
    hand.press("f").type_in("stress");
    assert_snapshot!("filter", hand.screen());
    hand.press("<enter> <esc>");
    assert!(hand.app.timeline.is_story() && !hand.screen().contains("filter:"));
    let screen = hand.press("f").type_in("kind:bogus").screen();
    assert!(screen.contains("there is no kind 'bogus': hypothesis"), "{screen}");
}

#[test]
fn the_help_lists_the_keys_of_the_pane_and_runs_the_chosen_command() {
    let mut hand = Hand::on_example(80, 24);
    assert_snapshot!("help", hand.press("?").screen());
    assert_snapshot!("help_filtered", hand.type_in("charts").screen());
    hand.press("<enter>");
    assert!(hand.screen().contains("c Confidence"), "{}", hand.screen());
    // In the charts it lists the keys of charts.
    let screen = hand.press("?").type_in("next change").screen();
    assert!(screen.contains("Keys in Charts") && screen.contains("l <right>"), "{screen}");
}

#[test]
fn every_key_is_named_in_the_help_of_some_pane() {
    use forge_tui::help::help_lines;
    use forge_tui::keymap::Keymap;
    let keymap = Keymap::default();
    let modes = keymap.bindings().iter().flat_map(|binding| binding.modes);
    let mut named: Vec<&str> = Vec::new();
    for mode in modes {
        let lines = help_lines(&keymap, *mode, "", forge_tui::theme::Theme::default());
        named.extend(lines.iter().map(|line| line.name));
    }
    assert!(keymap.bindings().iter().all(|binding| named.contains(&binding.name)));
}
