//! Screens at several sizes.

use crate::hand::{Hand, at};
use forge_store::model::claim::Note;
use forge_store::model::{Fact, FactOrigin, Kind, Value};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{KnownRemote, MemoryDepot, Remote, RemoteKeyFile};
use forge_store::store::{NewCheckpoint, NewSession, Options, Store, WriteContext};
use forge_tui::action::BrowserAction;
use forge_tui::panes::PaneFocus;
use insta::assert_snapshot;
use std::path::Path;
use std::sync::Arc;

#[test]
fn a_large_window_shows_the_story_its_details_the_claims_and_the_time() {
    let mut hand = Hand::on_example(140, 40);
    assert_snapshot!("large", hand.screen());
    hand.press("t").type_in("when H4 was confirmed").press("<enter>");
    assert_snapshot!("large_hypothesis", hand.screen());
}

#[test]
fn a_terminal_of_the_usual_size_shows_the_details_below_the_story() {
    let mut hand = Hand::on_example(80, 24);
    assert_snapshot!("usual", hand.screen());
    assert_snapshot!("usual_held", hand.press("3 l").screen());
}

#[test]
fn a_small_window_shows_one_pane() {
    let mut hand = Hand::on_example(50, 14);
    assert_snapshot!("small", hand.screen());
    assert_snapshot!("small_detail", hand.press("K <tab>").screen());
}

#[test]
fn a_tiny_window_still_shows_the_position() {
    assert_snapshot!("tiny", Hand::on_example(20, 5).press("k").screen());
}

#[test]
fn the_difference_to_the_mark_follows_the_selection() {
    let mut hand = Hand::on_example(120, 40);
    hand.press("t").type_in("when H1 was rejected").press("<enter> m");
    hand.press("t").type_in("when H4 was confirmed").press("<enter> d");
    assert_snapshot!("difference", hand.screen());
    let before = hand.app.detail.sheet.clone();
    hand.press("j j j j");
    assert!(hand.app.comparing && hand.app.detail.sheet != before);
    hand.press("<esc>");
    assert!(!hand.app.comparing);
    // In a small window it opens as a page.
    let mut hand = Hand::on_example(50, 14);
    hand.press("K d");
    assert!(hand.screen().contains("from #"), "{}", hand.screen());
}

/// Regression: the name of a session that was named by its first prompt was in the line twice.
#[test]
fn a_title_that_is_the_name_of_the_session_is_shown_once() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-03-11T10:00:00Z"));
    let name = "why does the cache lose entries";
    let session = store.create_session(&act, NewSession::named(name)).unwrap();
    let prompt = Fact {
        kind: Kind::Prompt,
        id: "p1".to_owned(),
        at: act.now,
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: act.now,
        value: Value::from([("text", name.into())]),
    };
    session.write(&act).fact(prompt).commit().unwrap();
    let screen = Hand::on(store, 120, 20).screen();
    let head = screen.lines().find(|line| line.starts_with(" forge")).unwrap();
    assert_eq!(head.matches(name).count(), 1, "{screen}");
}

#[test]
fn a_store_without_sessions_says_so() {
    let mut hand = Hand::on(Store::in_memory().unwrap(), 80, 12);
    let screen = hand.press("s").screen();
    assert!(screen.contains("0 of 0") && screen.contains("no sessions yet"), "{screen}");
}

#[test]
fn held_claims_are_listed_by_kind() {
    let mut hand = Hand::on_example(120, 44);
    hand.press("3");
    assert_snapshot!("held_beliefs", hand.press("l l l").screen());
    hand.press("j <enter>");
    assert_snapshot!("belief", hand.screen());
}

#[test]
fn the_brief_is_that_of_the_command() {
    let store = Store::in_memory().unwrap();
    let session = forge_testkit::example::fill(&store).unwrap();
    let state = session.state(&session.head().unwrap()).unwrap();
    let brief = forge_store::story::Story::brief(&state, &forge_agents::resolve).unwrap();
    let mut hand = Hand::on(store, 140, 40);
    // All of it in the pane that can be scrolled, and what is needed most in the others.
    assert!(hand.screen().contains("Failing"), "{}", hand.screen());
    hand.press("3");
    assert_eq!(hand.app.state.lines, forge_store::story::brief_rows(&brief));
}

#[test]
fn sessions_are_listed_and_opened() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-01-01T10:00:00Z"));
    store.create_session(&act, NewSession::named("older")).unwrap();
    forge_testkit::example::fill(&store).unwrap();
    let mut hand = Hand::on(store, 90, 12);
    assert_snapshot!("sessions", hand.press("s").screen());
    assert_snapshot!("sessions_empty", hand.press("j <enter>").screen());
    hand.press("s k <enter>");
    assert_eq!(hand.app.session.name, "example");
    assert!(!hand.app.timeline.rows.is_empty());
}

/// Regression: the list said that there are 1000 sessions if there were more.
#[test]
fn a_list_of_the_latest_sessions_says_so() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("session new", at("2025-01-01T10:00:00Z"));
    for number in 0..=1000 {
        store.create_session(&act, NewSession::named(format!("s{number}"))).unwrap();
    }
    let mut hand = Hand::on(store, 90, 12);
    let screen = hand.press("s").screen();
    assert!(screen.contains(" of the latest 1000 "), "{screen}");
}

#[test]
fn the_list_of_sessions_shows_unpushed_work() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join(".forge"), Options::default()).unwrap();
    let key = RemoteKeyFile::generate().unwrap();
    let remote = Remote::create_with(Arc::new(MemoryDepot::default()), &key).unwrap();
    let write = |name: &str, id: &str, time: &str| {
        let act = WriteContext::asked("note add", at(time));
        let session = store.session(name).unwrap();
        session.write(&act).add(id, Note::default().description(id)).commit().unwrap();
    };
    let act = WriteContext::asked("session new", at("2025-01-01T10:00:00Z"));
    for name in ["never pushed", "all pushed", "cache", "lease", "token"] {
        store.create_session(&act, NewSession::named(name)).unwrap();
        let id = if name == "token" { "hunter2-and-more" } else { "A" };
        write(name, id, "2025-01-01T10:00:00Z");
        if name != "never pushed" {
            store.push(&act, &remote, &store.session(name).unwrap()).unwrap();
        }
    }
    write("cache", "B", "2025-01-02T10:00:00Z");
    write("cache", "C", "2025-01-02T11:00:00Z");
    write("lease", "B", "2025-01-03T10:00:00Z");
    let known = KnownSecrets::new(["hunter2-and-more"]).unwrap();
    store.purge(&act, &known, None, &|_, _| None, &|_| ()).unwrap();
    write("token", "B", "2025-01-01T11:00:00Z");
    let (name, url) = ("origin".to_owned(), "memory:".to_owned());
    let remotes = vec![KnownRemote { name, url, access: key.into() }];
    let mut hand = Hand::on(store.clone(), 120, 12).with_remotes(remotes);
    assert_snapshot!("sessions_unpushed", hand.press("s").screen());
}

#[test]
fn an_empty_store_shows_what_to_do_and_then_the_first_session() {
    let store = Store::in_memory().unwrap();
    let mut hand = Hand::on(store.clone(), 70, 12);
    assert_snapshot!("empty", hand.screen());
    forge_testkit::example::fill(&store).unwrap();
    hand.act(BrowserAction::Tick(at("2025-03-11T13:12:00Z")));
    assert!(hand.screen().contains("● live"), "{}", hand.screen());
}

#[test]
fn a_store_that_cannot_be_read_says_so_and_what_to_do() {
    use forge_tui::answer::{WorkerFailure, WorkerReply};
    use forge_tui::effect::PaneSlot;
    let mut hand = Hand::on_example(70, 12);
    let failure = WorkerFailure {
        message: "the object number 7 is damaged".to_owned(),
        advice: "other moments may be whole".to_owned(),
        damaged: true,
    };
    let reply = |hand: &Hand, slot: PaneSlot| WorkerReply {
        request_number: *hand.app.requested.get(&slot).unwrap(),
        slot,
        answer: Err(failure.clone()),
    };
    for slot in [PaneSlot::State, PaneSlot::Detail, PaneSlot::Brief, PaneSlot::Story] {
        let lost = reply(&hand, slot);
        hand.act(BrowserAction::Reply(Box::new(lost)));
    }
    for pane in ["3", "2"] {
        let screen = hand.press(pane).screen();
        assert!(screen.contains("the object number 7 is damaged"), "{screen}");
        assert!(screen.contains("other moments may be whole"), "{screen}");
    }
    hand.app.stage = forge_tui::app::AppStage::Loading;
    assert!(hand.screen().contains("reading the store ..."));
    let page = reply(&hand, PaneSlot::State);
    hand.act(BrowserAction::Reply(Box::new(page)));
    assert_snapshot!("damaged", hand.screen());
}

/// Regression: the browser showed a deleted store without a word, and called the records of another
/// store in its place altered.
#[test]
fn a_store_that_is_deleted_or_replaced_meanwhile_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let [path, other, aside] = ["store", "other", "aside"].map(|name| root.path().join(name));
    let create = |path: &Path| {
        let store = Store::create(path, Options::default()).unwrap();
        forge_testkit::example::fill(&store).unwrap();
        store
    };
    let mut hand = Hand::on(create(&path), 140, 40);
    drop(create(&other));
    let mut said = |time: &str| {
        hand.app.status = None;
        hand.act(BrowserAction::Tick(at(time)));
        hand.app.status.as_ref().map(|status| status.text.clone()).unwrap_or_default()
    };
    assert_eq!(said("2025-03-11T13:12:00Z"), "");
    std::fs::rename(&path, &aside).unwrap();
    let gone = said("2025-03-11T13:13:00Z");
    assert!(gone.contains("was deleted, moved or replaced: this shows the old one"), "{gone}");
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(said("2025-03-11T13:14:00Z"), gone);
    hand.press("n").type_in("a note").press("<enter>");
    assert_eq!(hand.app.status.as_ref().unwrap().text, gone);
}

#[test]
fn wide_and_combining_letters_and_escapes_do_not_shift_columns() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("checkpoint create", at("2025-03-11T10:00:00Z"));
    let session = store.create_session(&act, NewSession::named("日本語")).unwrap();
    for text in [
        "日本語のとても長いメッセージ、窓より長い",
        "e\u{301}a\u{308} \u{1b}[31mred\u{202e}",
        "🎉 done",
    ] {
        session.write(&act).checkpoint(NewCheckpoint::manual(text)).commit().unwrap();
    }
    assert_snapshot!("wide", Hand::on(store, 40, 10).screen());
}

#[test]
fn without_unicode_and_colour_everything_is_still_shown() {
    let mut hand = Hand::on_example(120, 40);
    hand.app.theme.ascii = true;
    let screen = hand.screen();
    assert!(screen.is_ascii(), "{screen}");
    assert_snapshot!("ascii", screen);
    for keys in ["K", "<enter>", "q ?", "<esc> v", "<esc> v", "c", "q 3 l", "z", "z d"] {
        let screen = hand.press(keys).screen();
        assert!(screen.is_ascii(), "{keys}: {screen}");
    }
}

#[test]
fn the_mouse_selects_rows_and_panes() {
    let mut hand = Hand::on_example(120, 40);
    hand.act(BrowserAction::Click { x: 10, y: 10 });
    let row = hand.app.timeline.cursor;
    assert!(row > 5);
    hand.act(BrowserAction::Wheel(-3));
    assert_eq!(hand.app.timeline.cursor, row + 3);
    hand.act(BrowserAction::Click { x: 80, y: 5 });
    assert_eq!(hand.app.focus, PaneFocus::Detail);
    hand.press("1 K").press("<enter>");
    assert!(hand.screen().contains("Then fix it properly"), "{}", hand.screen());
}

#[test]
fn the_focused_pane_has_a_heavy_frame_and_the_selection_a_bar() {
    use forge_tui::theme::ThemeName;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    let mut hand = Hand::on_example(140, 40);
    hand.app.theme.name = ThemeName::Dark;
    hand.press("k k k");
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width: 140, height: 40 });
    forge_tui::view::render(&hand.app, &mut buffer);
    let heavy = |x: u16| buffer.cell((x, 1)).unwrap().symbol() == "┏";
    assert!(heavy(0) && !heavy(72));
    let selected = (2..26).find(|y| buffer.cell((1, *y)).unwrap().symbol() == "▌").unwrap();
    let grounds: std::collections::BTreeSet<String> =
        (1..71).map(|x| format!("{:?}", buffer.cell((x, selected)).unwrap().bg)).collect();
    assert_eq!(grounds.len(), 1, "{grounds:?}");
    assert!(!grounds.contains("Reset"));
}
