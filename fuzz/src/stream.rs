//! JSON from other programs: streams of events, documents of progress.

use crate::NOW;
use forge_store::format::EventLine;
use forge_store::model::Value;
use forge_store::store::{Store, StreamImportRequest, WriteContext};
use forge_systems::progress::{
    ProgressDocument, ResumeDecision, check_disposable, resume_point, validate,
};
use std::io::{BufReader, Cursor};

/// A stream of events is imported completely or not at all.
pub fn events(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
    {
        if let Ok(event) = EventLine::parse(line) {
            let again = event.to_line();
            let text = std::str::from_utf8(&again).expect("a line is text");
            assert_eq!(EventLine::parse(text).ok().as_ref(), Some(&event));
        }
    }
    let store = Store::in_memory().expect("a store");
    let stream = StreamImportRequest { source: "fuzz", name: "fuzz", session: None };
    let act = WriteContext::asked("import", NOW);
    let import = |text: Vec<u8>| {
        let mut open =
            || Ok(Box::new(BufReader::new(Cursor::new(text.clone()))) as Box<dyn std::io::BufRead>);
        store.import_events(&act, stream, &mut open, &|_| {})
    };
    match import(data.to_vec()) {
        Ok(taken) => {
            let again = import(data.to_vec()).expect("what was taken can be read again");
            assert_eq!((again.revisions, again.lines), (0, 0), "taken twice: {taken:?}");
        }
        Err(_) => assert!(
            store.sessions().expect("the sessions").is_empty(),
            "what is refused leaves nothing"
        ),
    }
}

/// Documents of progress: a document is resumed only if validation refuses nothing.
pub fn progress(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
    let stage = (which & 1 == 1).then_some("searching");
    let Ok(document) = ProgressDocument::read(value, stage) else { return };
    let judged = validate(&document, NOW);
    let _ = check_disposable(&document, NOW, 0);
    match resume_point(&document, "e", NOW, false) {
        ResumeDecision::Go(moment) => {
            assert!(judged.refusals.is_empty(), "{:?}", judged.refusals);
            assert!(moment.remaining.is_none_or(|left| left >= 0));
        }
        ResumeDecision::Refused { .. } => assert!(!judged.refusals.is_empty()),
        ResumeDecision::Nothing { .. } => {}
    }
}
