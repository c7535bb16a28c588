//! For any history, the provider accepts the sanitised one; and nothing valid is lost.

use super::generate::{FORMS, Step, messages, steps, turns, word};
use super::rules;
use forge_systems::thread::{
    FaultKind, OrphanPolicy, Remedy, SanitizeError, SanitizeOptions, SanitizedHistory, ThreadFault,
    apply, sanitize_history,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(messages: &[Value]) -> Vec<String> {
    messages.iter().map(Value::to_string).collect()
}

fn parsed(messages: &[String]) -> Vec<Value> {
    messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Checks the properties that hold for every accepted history and every way to sanitise it.
fn check(
    form: &str,
    history: &[Value],
    orphans: OrphanPolicy,
) -> Result<SanitizedHistory, TestCaseError> {
    let done = check_or_refuse(form, history, orphans)?;
    done.map_err(|refused| TestCaseError::fail(refused.to_string()))
}

pub(super) fn check_or_refuse(
    form: &str,
    history: &[Value],
    orphans: OrphanPolicy,
) -> Result<Result<SanitizedHistory, SanitizeError>, TestCaseError> {
    let options = SanitizeOptions { orphans, ..SanitizeOptions::default() };
    let texts = written(history);
    let done = match sanitize_history(&texts, &options) {
        Ok(done) => done,
        Err(refused) => return Ok(Err(refused)),
    };
    let out = parsed(&done.messages);
    // A history without signs of its form is taken for a plain one, or for one of a similar form.
    let judged = if done.form.word() == "plain" { "plain" } else { word(form) };
    let judged = if messages_are_ambiguous(&done, form) { done.form.word() } else { judged };
    let story =
        || format!("\n in: {texts:#?}\nout: {:#?}\nfaults: {:#?}", done.messages, done.faults);
    if let Err(fault) = rules::of(judged, &out) {
        return Err(TestCaseError::fail(format!("{fault}{}", story())));
    }
    let mut applied = texts.clone();
    apply(&mut applied, &done.actions);
    prop_assert_eq!(
        &applied,
        &done.messages,
        "the actions give another result: {:#?}",
        done.actions
    );
    prop_assert_eq!(done.actions.is_empty(), done.faults.is_empty(), "{}", story());
    prop_assert_eq!(done.reset, !texts.is_empty() && done.messages.is_empty());
    prop_assert!(done.faults.iter().all(|fault| fault.index < texts.len()));
    for result in results(&texts.join("\n")) {
        prop_assert!(done.messages.join("\n").contains(&result), "{} is gone{}", result, story());
    }
    let named = |fault, remedy| {
        let is_one = move |one: &&ThreadFault| one.fault == fault && one.remedy == remedy;
        done.faults.iter().filter(is_one).filter_map(|fault| fault.tool_call_id.as_deref())
    };
    let lost: Vec<&str> = named(FaultKind::ResultWithoutCall, Remedy::KeptAsText).collect();
    // A screenshot cannot be the result of another call.
    if !texts.iter().any(|text| text.contains("computer_call_output")) {
        for id in named(FaultKind::OrphanedCall, Remedy::Answered) {
            prop_assert!(
                !lost.contains(&id),
                "the result of {} is said to be missing{}",
                id,
                story()
            );
        }
    }
    let again = sanitize_history(&done.messages, &options).map_err(|refused| {
        TestCaseError::fail(format!("refused a second time: {refused}{}", story()))
    })?;
    if again.form == done.form {
        prop_assert_eq!(&again.actions, &[], "a second time: {}", story());
        prop_assert_eq!(&again.messages, &done.messages);
    }
    Ok(Ok(done))
}

/// Whether another form was detected, because too few signs of the generated one are left.
fn messages_are_ambiguous(done: &SanitizedHistory, form: &str) -> bool {
    done.form.word() != "plain" && done.form.word() != word(form)
}

/// The texts of the results in a history, which must be in the sanitised one.
fn results(text: &str) -> Vec<String> {
    let found = text.split("<result ").skip(1).filter_map(|rest| rest.split_once('>'));
    found.map(|(result, _)| format!("<result {result}>")).collect()
}

/// The texts in these messages, sorted.
fn texts_of(messages: &[Value]) -> Vec<String> {
    let text = serde_json::to_string(messages).unwrap();
    let mut found: Vec<String> = text
        .split("\"text ")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect();
    found.sort();
    found
}

/// The calls of this history that have a result after them.
fn answered(steps: &[Step]) -> Vec<String> {
    let mut open = Vec::new();
    let mut answered = Vec::new();
    let mut turn = 0;
    for (place, step) in steps.iter().enumerate() {
        match step {
            Step::Calls(ids, _) | Step::Thinks(ids) => {
                turn = place;
                open.extend(ids.iter().map(|id| format!("call_{place}_{id}")));
            }
            Step::Result(id) => answered.push(format!("call_{turn}_{id}")),
            Step::Results(ids, _) => {
                answered.extend(ids.iter().map(|id| format!("call_{turn}_{id}")));
            }
            _ => {}
        }
    }
    answered.retain(|id| open.contains(id));
    answered
}

/// Regression: an item of an unknown type was kept if a call next to it showed the form. Once the
/// call was removed, nothing showed it, so sanitising again removed the rest. Found by fuzzing.
#[test]
fn items_of_unknown_types_are_removed_in_the_first_sanitising() {
    for kept in [json!({"type": "custom_to"}), json!({"type": "new", "role": "user"})] {
        let call = json!({"type": "computer_call", "call_id": "c3", "action": {}});
        check("openai_responses", &[kept, call], OrphanPolicy::Answer).unwrap();
    }
    let known = json!({"type": "mcp_list_tools", "role": "user"});
    let call = json!({"type": "computer_call", "call_id": "c3", "action": {}});
    let done = check("openai_responses", &[known, call], OrphanPolicy::Answer).unwrap();
    assert_eq!(done.messages.len(), 1);
}

/// Regression: what was next to the blocks in a LangChain message, and was neither a block nor a
/// text, was kept. Found by fuzzing.
#[test]
fn values_that_are_no_blocks_are_removed_from_langchain_messages() {
    let untyped = json!({"tyme": "tool_use", "id": "c1", "name": "f", "input": {}});
    for kind in ["human", "ai"] {
        let history = [json!({"type": kind, "content": [untyped.clone(), "text", 7]})];
        let done = check("langchain_flat", &history, OrphanPolicy::Answer).unwrap();
        assert_eq!(parsed(&done.messages)[0]["content"], json!(["text"]));
        let history = [json!({"type": kind, "content": [untyped.clone()]})];
        assert!(check("langchain_flat", &history, OrphanPolicy::Answer).unwrap().reset);
    }
    let call =
        json!({"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": "c1"}]});
    let result = json!({"type": "tool", "content": [untyped], "tool_call_id": "c1"});
    let done = check("langchain_flat", &[call, result], OrphanPolicy::Answer).unwrap();
    assert!(parsed(&done.messages)[1]["content"].as_str().unwrap().contains("tyme"));
}

/// Regression: a message with a type that LangChain does not write was kept if another one next to
/// it showed the form. Once that one was removed, nothing showed it, so sanitising again removed
/// the rest. Found by fuzzing.
#[test]
fn an_unknown_langchain_type_is_removed_at_once() {
    let odd = json!({"type": "humaN", "data": {"content": "hi", "type": "human", "id": "h"}});
    let result = json!({"type": "tool", "data": {"content": "r", "tool_call_id": "c2"}});
    let done = check("langchain", &[odd.clone(), result], OrphanPolicy::Remove).unwrap();
    assert_eq!((done.messages.len(), done.faults.len()), (1, 2), "the result is kept as a text");
    let known = json!({"type": "human", "data": {"content": "hi"}});
    let done = check("langchain", &[odd, known.clone()], OrphanPolicy::Answer).unwrap();
    assert_eq!(parsed(&done.messages), [known]);
}

/// Regression: calls in the provider's own form count if the list of calls is empty. Once the
/// list's only call was removed, they counted, and had no results. Found by fuzzing.
#[test]
fn ignored_calls_do_not_replace_removed_ones() {
    let own =
        json!([{"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}]);
    let asks = json!({"type": "ai", "content": "so", "tool_calls": [{"name": "f", "args": {}, "id": "c0"}],
        "additional_kwargs": {"tool_calls": own, "other": 1}});
    let done = check("langchain_flat", &[asks], OrphanPolicy::Remove).unwrap();
    let left = &parsed(&done.messages)[0];
    assert_eq!(
        (&left["tool_calls"], &left["additional_kwargs"]),
        (&json!([]), &json!({"other": 1}))
    );
}

/// A text cut in the middle of an emoji ends with half of it, which no provider accepts ("no low
/// surrogate in string").
#[test]
fn half_of_a_character_becomes_a_replacement_character() {
    let text = |inside: &str| format!(r#"{{"role": "user", "content": "{inside}"}}"#);
    for (given, sanitized) in [
        (r"cut \ud83d", r"cut \ufffd"),
        (r"\uDE00 low", r"\ufffd low"),
        (r"\ud83d\ud83d\ude00 \ud83dx", r"\ufffd\ud83d\ude00 \ufffdx"),
    ] {
        let done = sanitize_history(&[text(given)], &SanitizeOptions::default()).unwrap();
        assert_eq!(done.messages, [text(sanitized)]);
        assert_eq!(done.faults[0].fault, FaultKind::CutCharacter);
        assert!(sanitize_history(&done.messages, &SanitizeOptions::default()).unwrap().is_clean());
    }
    for whole in [r"\ud83d\ude00", r"\\ud83d", r"\u00e9 \n", "\u{1f600}"] {
        assert!(
            sanitize_history(&[text(whole)], &SanitizeOptions::default()).unwrap().is_clean(),
            "{whole}"
        );
    }
}

/// Regression: a block with an empty type was kept, and no provider accepts it.
#[test]
fn a_block_with_an_empty_type_gets_one_or_is_removed() {
    let untyped = json!({"type": "", "text": "y"});
    let empty = json!({"type": "", "id": "t0"});
    let history = [
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "x"}, untyped, empty, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
        ]}),
    ];
    let done = check("anthropic", &history, OrphanPolicy::Answer).unwrap();
    let blocks = parsed(&done.messages)[1]["content"].as_array().unwrap().clone();
    assert_eq!(blocks.len(), 3);
    assert_eq!(blocks[1], json!({"type": "text", "text": "y"}));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::cases(512), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_sanitised_to_a_valid_one(
        form in prop::sample::select(&FORMS[..]), steps in steps(), unique: bool, remove: bool,
    ) {
        let history = messages(form, &steps, unique);
        let orphans = if remove { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
        let Ok(done) = check_or_refuse(form, &history, orphans)? else { return Ok(()) };
        let out = parsed(&done.messages);
        // All texts are kept: only broken messages have texts of other kinds. A chat without signs
        // of its form may be taken for another form, in which its messages may be invalid.
        if done.form.word() == word(form) {
            prop_assert_eq!(texts_of(&history), texts_of(&out));
        }
    }

    #[test]
    fn a_call_that_has_a_result_keeps_both(
        form in prop::sample::select(&FORMS[..]), steps in steps(), remove: bool,
    ) {
        let history = messages(form, &steps, true);
        let orphans = if remove { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
        let Ok(done) = check_or_refuse(form, &history, orphans)? else { return Ok(()) };
        // A call of Gemini needs no id.
        if done.form.word() == word(form) && form != "gemini" {
            let text = done.messages.join("\n");
            for id in answered(&steps) {
                let quoted = format!("\"{id}\"");
                prop_assert!(text.matches(&quoted).count() >= 2, "{} is gone: {}", id, text);
                prop_assert!(!text.contains(&format!("{quoted},\"content\":\"No result")), "{} is answered twice", id);
            }
        }
    }

    #[test]
    fn a_valid_history_is_unchanged(form in prop::sample::select(&FORMS[..]), steps in turns()) {
        let history = messages(form, &steps, true);
        prop_assert_eq!(rules::of(word(form), &history), Ok(()));
        let done = check(form, &history, OrphanPolicy::Answer)?;
        prop_assert_eq!(&done.actions, &[]);
        prop_assert_eq!(done.messages, written(&history));
    }

    #[test]
    fn a_history_cut_anywhere_gets_only_the_missing_results(
        form in prop::sample::select(&FORMS[..]), steps in turns(), cut in any::<prop::sample::Index>(),
    ) {
        let mut history = messages(form, &steps, true);
        history.truncate(cut.index(history.len() + 1));
        let done = check(form, &history, OrphanPolicy::Answer)?;
        prop_assert!(done.faults.iter().all(|fault| fault.fault.word() == "orphaned_call"));
        prop_assert_eq!(done.sources.iter().flatten().count(), history.len());
    }

    #[test]
    fn ids_that_are_numbers_become_texts(
        form in prop::sample::select(&FORMS[..]), steps in steps(), half: bool,
    ) {
        let with_number = |message: &Value| {
            serde_json::from_str(&message.to_string().replace("\"call_0\"", "7")).unwrap()
        };
        let history = messages(form, &steps, false);
        let numbered: Vec<Value> = history.iter().map(with_number).collect();
        let from = if half { history.len() / 2 } else { 0 };
        let mixed: Vec<Value> = [&history[..from], &numbered[from..]].concat();
        check_or_refuse(form, &mixed, OrphanPolicy::Answer)?.ok();
    }

    #[test]
    fn values_that_are_not_json_objects_do_not_stop_sanitising(texts in prop::collection::vec(any::<String>(), 0..6)) {
        let refused = sanitize_history(&texts, &SanitizeOptions::default()).is_err();
        prop_assert_eq!(refused, !texts.is_empty());
    }
}
