//! The levels of the timeline: the story, every revision, everything.

use crate::hand::{Hand, at};
use forge_store::model::{
    AutoTrigger, CheckpointTrigger, Fact, FactOrigin, Key, Kind, RetentionPolicy, Value,
};
use forge_store::store::{ClaimChange, NewCheckpoint, NewSession, Store, WriteContext};
use forge_tui::action::BrowserAction;
use forge_tui::answer::RowSign;
use forge_tui::effect::MomentTarget;
use forge_tui::keymap::KeyMode;
use forge_tui::query::TimelineLevel;
use insta::assert_snapshot;
use std::collections::BTreeSet;

pub(crate) fn note(store: &Store, session: &str, id: &str, time: &str) {
    let act = WriteContext::asked("note add", at(time));
    let value = Value::from([("description", id.into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, id), value);
    store.session(session).unwrap().write(&act).change(change).commit().unwrap();
}

#[test]
fn the_timeline_has_the_lines_of_the_story_in_order() {
    let store = Store::in_memory().unwrap();
    let session = forge_testkit::example::fill(&store).unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    let mut story = forge_store::story::Story::read(&state).unwrap();
    story.read_whole_texts(&session, &forge_agents::resolve).unwrap();
    let expected: Vec<String> = story
        .rows()
        .into_iter()
        .map(|row| match row {
            forge_store::story::StoryRow::Item(item) => item.text.clone(),
            forge_store::story::StoryRow::Folded { folded, .. } => {
                forge_store::story::folded_words(&folded)
            }
        })
        .collect();
    let hand = Hand::on(store, 120, 40);
    let shown: Vec<String> =
        hand.app.timeline.rows.iter().rev().map(|row| row.title.clone()).collect();
    assert_eq!(shown, expected);
    // The folded lines hide each folded item once.
    let folded: usize = story.items().filter(|item| !item.loud && item.fold_key.is_some()).count();
    let rows = hand.app.timeline.rows.iter().filter_map(|row| row.story.as_ref());
    assert_eq!(rows.map(|story| story.hidden.len()).sum::<usize>(), folded);
}

#[test]
fn the_story_is_read_downwards_and_can_be_turned() {
    let mut hand = Hand::on_example(120, 40);
    assert_eq!(hand.app.target(), MomentTarget::Head);
    let last = hand.app.row().unwrap().title.clone();
    hand.press("k");
    assert!(hand.app.timeline.cursor == 1 && hand.app.target() != MomentTarget::Head);
    hand.press("g");
    assert!(hand.app.row().unwrap().title.starts_with("redelivery::"), "the first prompt");
    hand.press("k G");
    assert_eq!(
        (hand.app.row().unwrap().title.clone(), hand.app.target()),
        (last, MomentTarget::Head)
    );
    let screen = hand.press("o").screen();
    let first = screen.lines().nth(3).unwrap();
    assert!(first.contains("Tue 11 Mar"), "{screen}");
    assert!(screen.lines().nth(4).unwrap().contains("Fixed on monotonic-lease"), "{screen}");
    hand.press("j");
    assert_eq!(hand.app.timeline.cursor, 1);
}

#[test]
fn a_folded_line_unfolds_in_its_place() {
    let mut hand = Hand::on_example(120, 40);
    hand.press("k");
    assert_eq!(hand.app.row().unwrap().title, "1 task");
    let count = hand.app.timeline.rows.len();
    hand.press("<enter>");
    assert_eq!(hand.app.timeline.rows.len(), count);
    assert!(hand.app.row().unwrap().title.contains("Find and fix the cause"));
    // What was unfolded stays so when the story is read again.
    hand.press("n").type_in("still").press("<enter>");
    assert!(hand.app.timeline.rows.iter().any(|row| row.title.contains("Find and fix the cause")));
}

#[test]
fn days_and_long_pauses_are_separated_and_a_minute_is_named_once() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    store.create_session(&act, NewSession::named("days")).unwrap();
    let times = [
        "2025-03-11T10:00:10Z", "2025-03-11T10:00:40Z", "2025-03-11T10:10:00Z",
        "2025-03-11T11:00:00Z", "2025-03-12T09:00:00Z",
    ];
    for (number, time) in times.into_iter().enumerate() {
        note(&store, "days", &format!("N{number}"), time);
    }
    let mut hand = Hand::on(store, 60, 18);
    hand.press("z");
    assert_snapshot!("days", hand.screen());
    assert_snapshot!("days_turned", hand.press("o").screen());
}

#[test]
fn the_toggle_shows_every_revision_and_then_every_fact() {
    let mut hand = Hand::on_example(100, 24);
    hand.press("t").type_in("when H4 was confirmed").press("<enter>");
    let target = hand.app.target();
    assert_snapshot!("revisions", hand.press("v").screen());
    assert_eq!(hand.app.target(), target, "the moment is the same");
    assert_snapshot!("everything", hand.press("v").screen());
    assert_eq!(hand.app.target(), target);
    hand.press("v");
    assert_eq!(hand.app.target(), target);
    assert_eq!(hand.app.row().unwrap().title, "H4 confirmed 0.97 → 0.98");
}

/// Regression: rows that a pruning had removed stayed in the list, also after `r`.
#[test]
fn the_list_of_revisions_leaves_out_what_was_pruned_meanwhile() {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store.clone(), 120, 40);
    hand.press("v k k k k k k k k");
    let targets =
        |hand: &Hand| hand.app.timeline.rows.iter().map(|row| row.target).collect::<Vec<_>>();
    let all = targets(&hand).len();
    let act = WriteContext::asked("checkpoint prune", at("2025-03-11T13:12:00Z"));
    let none = RetentionPolicy::none();
    let bare = RetentionPolicy { manual: false, significant: false, revisions: 0, ..none };
    store.session("example").unwrap().prune(&act, &bare).unwrap();
    let mut reopened = Hand::on(store, 120, 40);
    let left = targets(reopened.press("v"));
    assert!(left.len() < all, "{} of {all}", left.len());
    hand.act(BrowserAction::Tick(at("2025-03-11T13:13:00Z")));
    assert_eq!(targets(&hand), left);
    assert_eq!(targets(hand.press("r")), left);
}

/// Regression: rows that a pruning had removed stayed in the list until `r` if they were not among
/// the newest ones.
#[test]
fn the_list_of_revisions_leaves_out_what_was_pruned_far_from_its_end() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("checkpoint create", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    for number in 0..300 {
        let checkpoint = NewCheckpoint::manual(format!("C{number}"));
        session.write(&act).checkpoint(checkpoint).commit().unwrap();
    }
    note(&store, "s", "N1", "2025-03-11T10:00:00Z");
    let mut hand = Hand::on(store, 120, 40);
    hand.press("v <pgup> <pgup> <pgup> <pgup> <pgup>");
    let is_listed = |hand: &Hand| hand.app.timeline.rows.iter().any(|row| row.title == "C99");
    assert!(is_listed(&hand));
    let policy = RetentionPolicy { last: 200, manual: false, ..RetentionPolicy::none() };
    session.prune(&act, &policy).unwrap();
    hand.act(BrowserAction::Tick(at("2025-03-11T10:01:00Z")));
    assert!(!is_listed(&hand));
}

/// Regression: the list of revisions and the activity had a compaction that did not follow.
#[test]
fn a_compaction_that_did_not_follow_has_not_the_sign_of_one() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    note(&store, "s", "N1", "2025-03-11T10:00:00Z");
    let trigger = CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning);
    let not_followed = Value::from([("not_followed", true.into())]);
    for (key, body) in [("compaction:a", Value::Null), ("compaction:b", not_followed)] {
        let announced = NewCheckpoint::new("announced", trigger).tags(["compaction"]);
        let made = NewCheckpoint { body, key: Some(key.to_owned()), ..announced };
        session.write(&act).checkpoint(made).commit().unwrap();
    }
    let activity = session.activity(act.now, act.now.plus_micros(1), 1).unwrap();
    assert_eq!(activity.compactions.len(), 1);
    let mut hand = Hand::on(store, 100, 30);
    hand.press("v");
    let signs: Vec<RowSign> = hand.app.timeline.rows.iter().map(|row| row.sign).collect();
    let wanted = [RowSign::Head, RowSign::Automatic, RowSign::Compaction, RowSign::Revision];
    assert_eq!(signs, wanted);
    for command in ["forge checkpoint show '#3'", "forge compaction show '#2'"] {
        let details = hand.press("k").app.detail.sheet.as_ref().unwrap();
        assert_eq!(details.command, command);
    }
}

/// Regression: `X` looked only among the loaded rows, and said that there is no failure.
#[test]
fn a_failure_that_is_not_loaded_is_found_in_the_list_of_everything() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    for id in ["V1", "V2"] {
        let fact = Fact {
            kind: Kind::Verification,
            id: id.to_owned(),
            at: act.now,
            origin: FactOrigin::Recorded,
            place: 1,
            recorded_at: act.now,
            value: Value::from([("name", id.into()), ("status", "failed".into())]),
        };
        session.write(&act).fact(fact).commit().unwrap();
    }
    for number in 0..300 {
        note(&store, "s", &format!("N{number}"), "2025-03-11T11:00:00Z");
    }
    let mut hand = Hand::on(store, 100, 30);
    let status = |hand: &Hand| hand.app.status.as_ref().unwrap().text.clone();
    hand.press("v X");
    assert_eq!(status(&hand), "no failure is listed before this moment; v lists more");
    // Both have the same time.
    let title = |hand: &Hand| hand.app.row().unwrap().title.clone();
    let found = [title(hand.press("v X")), title(hand.press("X"))];
    assert!(found == ["V1", "V2"] || found == ["V2", "V1"], "{found:?}");
    hand.press("X");
    assert_eq!(status(&hand), "there is no failure before this moment");
    assert_eq!(title(hand.press("x")), found[0]);
}

#[test]
fn landmarks_are_visited_one_after_the_other() {
    let mut hand = Hand::on_example(100, 40);
    let title = |hand: &Hand| hand.app.row().unwrap().title.clone();
    hand.press("K");
    assert_eq!(title(&hand), "Then fix it properly. Not by asking for better clocks.");
    hand.press("K K J");
    assert!(title(&hand).starts_with("Good thought"), "{}", title(&hand));
    hand.press(">");
    assert_eq!(title(&hand), "context compacted");
    hand.press("x");
    assert_eq!(title(&hand), "cargo build failed");
    hand.press("X");
    assert!(title(&hand).contains("1.8 s behind failed"), "{}", title(&hand));
    hand.press("g [");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert_eq!(status, "no checkpoint is listed before this moment; v lists more");
    hand.press("]");
    assert_eq!(title(&hand), "Three failed runs read; two suspects");
    // Tags are looked up along the history.
    hand.press(")");
    assert!(hand.app.status.as_ref().unwrap().text.starts_with("tag: "), "{:?}", hand.app.status);
}

#[test]
fn new_writes_appear_and_the_selection_stays() {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store.clone(), 100, 30);
    let mut minute = 12;
    let mut tick = |hand: &mut Hand| {
        minute += 1;
        hand.act(BrowserAction::Tick(at(&format!("2025-03-11T13:{minute}:00Z"))));
        hand.act(BrowserAction::Tick(at(&format!("2025-03-11T13:{minute}:02Z"))));
    };
    note(&store, "example", "N90", "2025-03-11T13:11:30Z");
    tick(&mut hand);
    assert_eq!(hand.app.row().unwrap().title, "N90", "the end is followed");
    hand.press("k k");
    let stood = hand.app.row().unwrap().clone();
    for number in 0..20 {
        note(&store, "example", &format!("M{number}"), "2025-03-11T13:11:40Z");
    }
    tick(&mut hand);
    assert_eq!(hand.app.row().unwrap().title, stood.title);
    assert!(hand.screen().contains("20 new, G shows them"), "{}", hand.screen());
    hand.press("G");
    assert!(hand.screen().contains("● live") && hand.app.row().unwrap().title == "M19");
    // At the raw levels, too.
    hand.press("v k k");
    let stood = hand.app.row().unwrap().clone();
    for number in 0..200 {
        note(&store, "example", &format!("L{number}"), "2025-03-11T13:12:40Z");
        if number % 50 == 0 {
            tick(&mut hand);
        }
    }
    tick(&mut hand);
    assert_eq!(hand.app.row().unwrap().place, stood.place);
}

#[test]
fn a_long_history_is_never_loaded_whole_and_walked_through_without_gaps() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    store.create_session(&act, NewSession::named("long")).unwrap();
    for number in 0..750_u64 {
        note(&store, "long", &format!("N{}", number % 7), "2025-03-11T10:00:00Z");
        let value = Value::from([("description", number.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "count"), value);
        store.session("long").unwrap().write(&act).change(change).commit().unwrap();
    }
    let mut hand = Hand::on(store, 80, 30);
    hand.press("v");
    let mut seen = BTreeSet::new();
    let last = hand.app.session.count;
    for _ in 0..=last {
        seen.insert(hand.app.row().unwrap().target);
        assert!(hand.app.timeline.rows.len() <= 1400);
        hand.press("k");
    }
    assert_eq!(seen.len() as u64, last + 1);
    for _ in 0..=last {
        seen.remove(&hand.app.row().unwrap().target);
        hand.press("j");
    }
    assert!(seen.is_empty(), "{}", seen.len());
}

#[test]
fn the_story_of_a_very_long_session_is_not_read_automatically() {
    use forge_tui::effect::PaneSlot;
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store, 100, 30);
    let mut overview = hand.app.session.clone();
    overview.count = 1_000_000;
    overview.id = "million".to_owned();
    let opened = forge_tui::answer::WorkerAnswer::Opened(Box::new(overview));
    hand.app.story = None;
    hand.app.requested.remove(&PaneSlot::Story);
    let reply = forge_tui::answer::WorkerReply {
        request_number: 0,
        slot: PaneSlot::Session,
        answer: Ok(opened),
    };
    let effects = forge_tui::update::update(&mut hand.app, BrowserAction::Reply(Box::new(reply)));
    assert!(!hand.app.requested.contains_key(&PaneSlot::Story), "{effects:?}");
    assert_eq!(hand.app.timeline.level, TimelineLevel::Revisions);
}

#[test]
fn a_replay_goes_through_the_session_row_by_row() {
    let mut hand = Hand::on_example(100, 30);
    hand.press("p");
    let first = hand.app.timeline.rows.len() - 1;
    assert_eq!(hand.app.timeline.cursor, first);
    for second in 0..3 {
        let time = forge_store::model::Timestamp::from_micros(second * 500_000);
        hand.act(BrowserAction::Tick(at("2025-03-11T13:12:00Z").plus_micros(time.as_micros())));
    }
    assert_eq!(hand.app.timeline.cursor, first - 3);
    assert!(hand.screen().contains("replay 2/s"), "{}", hand.screen());
    // What comes later is not known yet.
    assert!(!hand.screen().contains("H4"), "{}", hand.screen());
    hand.press("+ + +");
    assert_eq!(hand.app.replay.unwrap().speed, 4);
    hand.press("q");
    assert!(hand.app.replay.is_none() && !hand.app.done);
    // From the charts too: they are closed, so that the keys are those of a replay.
    hand.press("c p");
    assert_eq!(hand.app.mode(), KeyMode::Replay);
}

#[test]
fn hindsight_can_be_hidden() {
    let mut hand = Hand::on_example(140, 40);
    hand.press("t").type_in("when H4 was confirmed").press("<enter> k k H");
    let screen = hand.screen();
    assert_snapshot!("hindsight", screen);
    assert!(!hand.press("j").screen().contains("H4 confirmed"), "{}", hand.screen());
    assert!(hand.press("j").screen().contains("H4 confirmed"), "each step shows the next row");
    hand.press("<esc>");
    assert!(hand.screen().contains("Then fix it properly"), "{}", hand.screen());
}

#[test]
fn a_long_story_is_read_from_its_end_and_older_lines_on_request() {
    let mut hand = Hand::on_example(120, 40);
    let (all, ends) = (hand.app.timeline.rows.len(), hand.app.chart.series.clone());
    hand.app.story_revisions = 30;
    hand.press("r");
    let rows = &hand.app.timeline.rows;
    assert!(rows.len() < all, "{} lines", rows.len());
    assert_eq!(rows.last().unwrap().title, "revisions up to #59 are not read");
    // What is known of the whole session stays.
    assert_eq!(hand.app.story.as_ref().unwrap().summary.prompts, 3);
    let last = |series: &Option<Vec<forge_tui::answer::ConfidenceSeries>>| {
        let ends = series.iter().flatten().map(|one| one.points.last().map(|point| point.value));
        ends.collect::<Vec<_>>()
    };
    assert_eq!(last(&hand.app.chart.series), last(&ends));
    assert!(hand.screen().contains("4 Time ─ longest pause since #60"), "{}", hand.screen());

    // A moment that is not in the story is found among the revisions.
    hand.press("t").type_in("#20").press("<enter>");
    assert_eq!(hand.app.target(), MomentTarget::Sequence(20));
    assert_eq!(hand.app.timeline.level, TimelineLevel::Revisions);

    hand.press("v v G g");
    assert!(hand.screen().contains("revisions up to #59 are not read"), "{}", hand.screen());
    hand.press("<enter>");
    assert_eq!(hand.app.timeline.rows.last().unwrap().title, "revisions up to #29 are not read");
    hand.press("g <enter>");
    assert_eq!(hand.app.timeline.rows.len(), all);
}
