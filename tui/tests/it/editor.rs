//! Long texts, which an editor writes.

use crate::hand::Hand;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::Store;
use forge_tui::action::BrowserAction;
use forge_tui::answer::{WorkerFailure, WorkerReply};
use forge_tui::effect::{AppEffect, PaneSlot};
use forge_tui::host::EditedText;
use forge_tui::key::KeyChord;
use forge_tui::panes::OverlayPane;
use forge_tui::update::update;

fn on_example() -> (Store, Hand) {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    (store.clone(), Hand::on(store, 120, 40))
}

fn note(store: &Store, id: &str) -> Option<String> {
    let session = store.session("example").unwrap();
    let moment = session.head().unwrap();
    let entry = session.claim(&moment, &Key::new(Kind::Note, id)).unwrap()?;
    entry.value.field("description").and_then(Value::as_text).map(str::to_owned)
}

fn written(text: &str, problem: Option<&str>) -> BrowserAction {
    let (text, problem) = (text.to_owned(), problem.map(str::to_owned));
    BrowserAction::Edited(EditedText { text, problem })
}

#[test]
fn the_editor_begins_with_the_typed_text_and_its_result_is_written() {
    let (store, mut hand) = on_example();
    hand.press("n").type_in("first").press("<c-e>");
    assert_eq!(hand.edited, ["first"]);
    hand.act(written("first line\n\nsecond line\n", None));
    assert_eq!(note(&store, "N8").as_deref(), Some("first line\n\nsecond line"));
    assert!(hand.app.overlays.is_empty());
    // A note can be begun in the editor.
    hand.press("e");
    assert_eq!(hand.edited.last().map(String::as_str), Some(""));
    hand.act(written("another", None));
    assert_eq!(note(&store, "N9").as_deref(), Some("another"));
}

#[test]
fn an_editor_that_fails_loses_nothing() {
    let (store, mut hand) = on_example();
    hand.press("n").type_in("typed").press("<c-e>");
    hand.act(written("typed and\nsaved", Some("the editor 'x' failed")));
    assert!(note(&store, "N8").is_none());
    let screen = hand.screen();
    assert!(screen.contains("typed and") && screen.contains("the editor 'x' failed"), "{screen}");
    hand.press("<enter>");
    assert_eq!(note(&store, "N8").as_deref(), Some("typed and\nsaved"));

    // An empty text changes nothing, and what was typed stays.
    hand.press("n").type_in("kept").press("<c-e>").act(written("", None));
    assert!(hand.screen().contains("note: kept"), "{}", hand.screen());
    hand.act(written("", Some("neither VISUAL nor EDITOR names an editor")));
    assert!(hand.screen().contains("note: kept"), "{}", hand.screen());
    assert!(note(&store, "N9").is_none());
}

#[test]
fn a_text_that_cannot_be_written_stays_in_the_input() {
    let (store, mut hand) = on_example();
    hand.press("i").type_in("a").press("<enter> +").type_in(".7 seen").press("<c-e>");
    hand.act(written("no strength\nhere", None));
    let Some(OverlayPane::Input { text, .. }) = hand.app.overlays.last() else {
        panic!("{}", hand.screen());
    };
    assert_eq!(text, "no strength\nhere");
    hand.press("<esc>");
    // The store refuses a second confirmation; the reason is still there.
    hand.press("C").type_in("it is so").press("<enter>");
    let session = store.session("example").unwrap();
    let act = forge_store::store::WriteContext::asked("hypothesis edit", hand.app.now);
    let key = Key::new(Kind::Hypothesis, "H7");
    let change = forge_store::store::ClaimChange::remove(key);
    session.write(&act).change(change).commit().unwrap();
    hand.press("C").type_in("again").press("<enter>");
    let Some(OverlayPane::Input { text, .. }) = hand.app.overlays.last() else {
        panic!("{}", hand.screen());
    };
    assert_eq!(text, "again");
}

/// Regression: a moment, a name or a path that was refused had to be typed again.
#[test]
fn an_input_that_fails_stays_to_be_corrected() {
    let (_, mut hand) = on_example();
    for (key, text) in [
        ("t", "when H4 was foo"),
        ("f", "kind:foo"),
        ("f", "session:nosuch"),
        ("b", "main"),
        ("S <c-u>", "no/such/folder"),
    ] {
        hand.press(key).type_in(text).press("<enter>");
        let Some(OverlayPane::Input { text: kept, .. }) = hand.app.overlays.last() else {
            panic!("'{text}' is lost: {}", hand.screen());
        };
        assert_eq!(kept, text);
        hand.press("<esc>");
        assert!(hand.app.overlays.is_empty(), "{}", hand.screen());
    }
    hand.press("t").type_in("when H4 was confirmed").press("<enter>");
    assert!(hand.app.overlays.is_empty() && hand.app.unsent.is_empty());
}

/// Regression: while a note waited for the store, the failure of something else, such as a jump,
/// opened its text again, so that it could be written twice.
#[test]
fn only_the_failure_of_a_write_opens_its_text_again() {
    let (_, mut hand) = on_example();
    hand.press("n").type_in("slow");
    let enter = KeyChord::parse_all("<enter>").unwrap().remove(0);
    let effects = update(&mut hand.app, BrowserAction::Key(enter));
    let [AppEffect::Ask { request_number, .. }] = effects[..] else { panic!("{effects:?}") };
    let mut fails = |request_number: u64| {
        let failure =
            WorkerFailure { message: "no".to_owned(), advice: "wait".to_owned(), damaged: false };
        let reply = WorkerReply { request_number, slot: PaneSlot::Session, answer: Err(failure) };
        hand.act(BrowserAction::Reply(Box::new(reply)));
        hand.app.overlays.last().cloned()
    };
    assert!(fails(request_number - 1).is_none());
    let Some(OverlayPane::Input { text, .. }) = fails(request_number) else { panic!("not opened") };
    assert_eq!(text, "slow");
}

/// Regression: of two texts whose writes waited for the store, the browser remembered only the
/// second: the first one was lost if its write failed.
#[test]
fn each_write_that_fails_opens_its_own_text_again() {
    let (_, mut hand) = on_example();
    let mut sent = Vec::new();
    for text in ["first", "second"] {
        hand.press("n").type_in(text);
        let enter = KeyChord::parse_all("<enter>").unwrap().remove(0);
        let effects = update(&mut hand.app, BrowserAction::Key(enter));
        let [AppEffect::Ask { request_number, .. }] = effects[..] else { panic!("{effects:?}") };
        sent.push((request_number, text));
    }
    for (request_number, typed) in sent {
        let failure =
            WorkerFailure { message: "no".to_owned(), advice: "wait".to_owned(), damaged: false };
        let reply = WorkerReply { request_number, slot: PaneSlot::Session, answer: Err(failure) };
        hand.act(BrowserAction::Reply(Box::new(reply)));
        let Some(OverlayPane::Input { text, .. }) = hand.app.overlays.last() else {
            panic!("'{typed}' is not opened: {}", hand.screen());
        };
        assert_eq!(text, typed);
    }
}

#[test]
fn only_texts_that_are_written_are_edited() {
    let (_, mut hand) = on_example();
    for keys in ["t", "f", "S"] {
        hand.press(keys).press("<c-e>");
        assert!(hand.edited.is_empty(), "{keys}");
        hand.press("<esc>");
    }
}
