//! Writes to the store from the browser.

use crate::hand::Hand;
use crate::level::note;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::Store;

fn on_example(width: u16, height: u16) -> (Store, Hand) {
    let store = Store::in_memory().unwrap();
    forge_testkit::example::fill(&store).unwrap();
    (store.clone(), Hand::on(store, width, height))
}

fn claim(store: &Store, kind: Kind, id: &str) -> Option<Value> {
    let session = store.session("example").unwrap();
    let moment = session.head().unwrap();
    session.claim(&moment, &Key::new(kind, id)).unwrap().map(|entry| entry.value)
}

fn text(value: &Value, name: &str) -> String {
    value.field(name).and_then(Value::as_text).unwrap_or_default().to_owned()
}

#[test]
fn a_note_an_idea_and_a_question_are_written_and_appear() {
    let (store, mut hand) = on_example(120, 40);
    hand.press("n").type_in("it's the clocks").press("<enter>");
    let status = hand.app.status.clone().unwrap().text;
    assert_eq!(status, r"added N8   $ forge note add 'it'\''s the clocks'");
    assert_eq!(text(&claim(&store, Kind::Note, "N8").unwrap(), "description"), "it's the clocks");
    assert_eq!(hand.app.row().unwrap().title, "N8", "it is the last line of the story");
    hand.press("i").type_in("the cache is stale").press("<enter>");
    assert_eq!(text(&claim(&store, Kind::Hypothesis, "H7").unwrap(), "status"), "active");
    hand.press("Q").type_in("which cache?").press("<enter>");
    assert_eq!(text(&claim(&store, Kind::Gap, "G7").unwrap(), "status"), "open");
    assert!(hand.screen().contains("G7 open"), "{}", hand.screen());
}

#[test]
fn typed_evidence_changes_the_selected_confidence_and_a_rejection_stores_its_reason() {
    let (store, mut hand) = on_example(120, 40);
    hand.press("i").type_in("the cache is stale").press("<enter>");
    assert!(hand.app.row().unwrap().title.starts_with("H7 new"));
    hand.press("+").type_in(".7 an old value was read").press("<enter>");
    let sure = |store: &Store| {
        let value = claim(store, Kind::Hypothesis, "H7").unwrap();
        value.field("confidence").and_then(Value::as_f64).unwrap()
    };
    let risen = sure(&store);
    assert!(risen > 0.6, "{risen}");
    let title = hand.app.row().unwrap().title.clone();
    assert_eq!(title, "H7 0.50 → 0.82");
    hand.press("-").type_in(".9 it was read before the write").press("<enter>");
    assert!(sure(&store) < risen);
    hand.press("!").type_in("the cache was off").press("<enter>");
    let value = claim(&store, Kind::Hypothesis, "H7").unwrap();
    assert_eq!(
        (text(&value, "status"), text(&value, "reason")),
        ("rejected".into(), "the cache was off".into())
    );
    let status = hand.app.status.clone().unwrap().text;
    assert!(
        status.ends_with("$ forge hypothesis reject H7 --reason 'the cache was off'"),
        "{status}"
    );
}

#[test]
fn a_wrong_strength_keeps_the_typed_text() {
    let (store, mut hand) = on_example(120, 40);
    let count = hand.app.session.count;
    hand.press("i").type_in("a").press("<enter> +").type_in("7 it fails").press("<enter>");
    let screen = hand.screen();
    assert!(screen.contains("evidence for H7") && screen.contains("7 it fails"), "{screen}");
    assert!(screen.contains("is not a strength from 0 to 1"), "{screen}");
    hand.press("<esc>");
    assert_eq!(hand.app.session.count, count + 1);
    assert!(claim(&store, Kind::Evidence, "E15").is_none());
}

#[test]
fn without_a_selected_hypothesis_no_input_is_opened() {
    let (_, mut hand) = on_example(120, 40);
    hand.press("g");
    for key in ["+", "-", "C", "!"] {
        hand.press(key);
        assert!(hand.app.overlays.is_empty(), "{key}");
        assert!(hand.app.status.as_ref().unwrap().text.starts_with("no hypothesis is selected"));
    }
    // A hypothesis can be selected in the pane of the held claims.
    hand.press("G 3 l C").type_in("seen").press("<enter>");
    assert!(
        hand.app.status.as_ref().unwrap().text.contains("is confirmed"),
        "{:?}",
        hand.app.status
    );
}

#[test]
fn a_checkpoint_a_tag_and_a_branch_are_made_and_their_commands_shown() {
    let (_, mut hand) = on_example(120, 40);
    hand.press("a").type_in("it's fixed").press("<enter>");
    let status = hand.app.status.clone().unwrap().text;
    assert_eq!(status, r"made checkpoint #90   $ forge checkpoint create 'it'\''s fixed'");
    assert_eq!(hand.app.row().unwrap().title, "it's fixed");
    hand.press("T").type_in("good,-auto").press("<enter>");
    assert!(
        hand.app.status.as_ref().unwrap().text.contains("--add good --remove auto"),
        "{:?}",
        hand.app.status
    );
    hand.press("k k k b").type_in("other").press("<enter>");
    let status = &hand.app.status.as_ref().unwrap().text;
    assert!(status.contains("forge branch create other --from "), "{status}");
    assert!(hand.app.session.lines.iter().any(|line| line.name == "other"));
}

#[test]
fn a_restore_is_previewed_then_done_and_undone() {
    let (_, mut hand) = on_example(100, 30);
    let before = hand.app.session.claims;
    hand.press("t").type_in("when H4 was confirmed").press("<enter> R");
    insta::assert_snapshot!("restore", hand.screen());
    let count = hand.app.session.count;
    hand.press("n");
    assert_eq!(hand.app.session.count, count);
    hand.press("R y");
    assert_eq!(hand.app.session.count, count + 1, "{:?}", hand.app.status);
    hand.press("u y");
    assert_eq!(hand.app.session.claims, before, "{:?}", hand.app.status);
}

/// Regression: the answer to the question about one operation undid a later one.
#[test]
fn an_undo_takes_back_only_the_operation_that_it_named() {
    let (store, mut hand) = on_example(100, 30);
    hand.press("a").type_in("a checkpoint").press("<enter> u");
    assert!(hand.screen().contains("undo takes back: checkpoint create"), "{}", hand.screen());
    note(&store, "example", "N8", "2025-03-11T13:00:00Z");
    hand.press("y");
    let status = &hand.app.status.as_ref().unwrap().text;
    let wanted = "the last operation is 'note add' by now: look at what changed, then try again";
    assert_eq!(status, wanted);
    assert!(claim(&store, Kind::Note, "N8").is_some());
    hand.press("u y");
    assert!(claim(&store, Kind::Note, "N8").is_none());
}

#[test]
fn an_id_is_copied_and_the_view_written_to_a_file() {
    let (_, mut hand) = on_example(100, 30);
    hand.press("K y");
    assert_eq!(hand.copied, [hand.app.row().unwrap().id.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("view.txt");
    hand.press("S <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(std::fs::read_to_string(&file).unwrap().contains("Then fix it properly"));
    hand.press("S <c-u>").type_in(file.to_str().unwrap()).press("<enter>");
    assert!(hand.app.status.as_ref().unwrap().text.contains("cannot write"));
}

#[test]
fn checkpoints_of_events_that_are_switched_off_are_not_made() {
    use forge_store::model::AutoTrigger;
    use forge_tui::app::DisplayZone;
    use forge_tui::effect::{WorkerRequest, WriteRequest};
    use forge_tui::worker::StoreWorker;
    let zone = DisplayZone::Fixed(chrono::FixedOffset::east_opt(0).unwrap());
    for (triggers, made) in [(Vec::new(), 0), (vec![AutoTrigger::HypothesisStatusChange], 1)] {
        let store = Store::in_memory().unwrap();
        forge_testkit::example::fill(&store).unwrap();
        let before = store.session("example").unwrap().summary().unwrap().checkpoints;
        let mut worker = StoreWorker::new(store.clone(), zone).with_triggers(triggers);
        worker.answer(1, WorkerRequest::Open(None)).answer.unwrap();
        let change =
            WriteRequest::Settle { hypothesis: "H5".into(), confirm: true, reason: String::new() };
        let now = crate::hand::at("2025-03-11T13:12:00Z");
        worker.answer(2, WorkerRequest::Change { change, now }).answer.unwrap();
        let after = store.session("example").unwrap().summary().unwrap().checkpoints;
        assert_eq!(after - before, made);
    }
}
