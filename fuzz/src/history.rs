//! Message threads.

use crate::rules;
use forge_systems::thread::{
    HistoryDocument, OrphanPolicy, SanitizeOptions, apply, sanitize_history,
};

/// Any history is refused, or sanitised so that its provider accepts the result. Sanitising the
/// result changes nothing, unless everything that identified the form was removed.
pub fn thread(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(document) = HistoryDocument::parse(text) else { return };
    let orphans = if which & 1 == 1 { OrphanPolicy::Remove } else { OrphanPolicy::Answer };
    let options = SanitizeOptions { orphans, ..SanitizeOptions::default() };
    // A number that does not fit a float is valid JSON, but the rules here cannot read it.
    let is_too_large = |text: &String| {
        let read = serde_json::from_str::<serde_json::Value>(text);
        read.is_err_and(|error| error.to_string().starts_with("number out of range"))
    };
    if document.messages.iter().any(is_too_large) {
        return;
    }
    let Ok(done) = sanitize_history(&document.messages, &options) else { return };
    let out: Vec<serde_json::Value> = done
        .messages
        .iter()
        .map(|text| serde_json::from_str(text).expect("what comes out is JSON"))
        .collect();
    // LangChain's function messages and custom roles are not checked: the rules do not know them.
    if let Err(fault) = rules::of(done.form.word(), &out)
        && !fault.starts_with("unexpected message type")
    {
        panic!("{fault}\n in: {:#?}\nout: {:#?}", document.messages, done.messages);
    }
    let mut applied = document.messages.clone();
    apply(&mut applied, &done.actions);
    assert_eq!(applied, done.messages, "the steps lead elsewhere: {:#?}", done.actions);
    assert_eq!(done.actions.is_empty(), done.faults.is_empty());
    let Ok(again) = sanitize_history(&done.messages, &options) else { return };
    if again.form == done.form {
        let (out, actions) = (&done.messages, &again.actions);
        assert!(actions.is_empty(), "a second time: {out:#?}\n{actions:#?}");
        assert_eq!(again.messages, done.messages);
    }
    let written = document.write(&done.messages);
    let read = HistoryDocument::parse(&written).expect("what was written is a history").messages;
    assert_eq!(read.len(), done.messages.len());
}
