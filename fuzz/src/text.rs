//! Texts that people and models write.

use crate::NOW;
use forge_store::model::text::{NewlineMode, has_hidden, sanitise};
use forge_store::model::time_grammar::{parse_duration, parse_moment, parse_time};
use forge_store::redact::{Redactor, TextForm};
use forge_systems::run;

/// Moments, times and durations: each text has one meaning, and a time that is written is read as
/// the same time.
pub fn moment(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let moment = parse_moment(text, NOW, &chrono::Utc);
    assert_eq!(moment, parse_moment(text, NOW, &chrono::Utc));
    if let Err(error) = &moment {
        assert!(error.to_string().len() < 2000, "an error is read by a person");
    }
    let _ = parse_duration(text);
    if let Ok(resolved) = parse_time(text, NOW, &chrono::Utc) {
        let written = resolved.time.to_string();
        let read = parse_time(&written, NOW, &chrono::Utc).map(|read| read.time);
        assert_eq!(
            read.ok(),
            Some(resolved.time),
            "a time that was found is written so that it is found again"
        );
    }
}

/// Text for a terminal: no control sequence or hidden character remains, and plain text is
/// unchanged.
pub fn screen(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for newlines in [NewlineMode::Escape, NewlineMode::Keep] {
        let shown = sanitise(&text, newlines);
        let shown_lines = match newlines {
            NewlineMode::Escape => shown.to_string(),
            NewlineMode::Keep => shown.replace('\n', " "),
        };
        assert!(!has_hidden(&shown_lines), "{text:?}");
        assert_eq!(sanitise(&shown, newlines), shown, "{text:?}");
        if !has_hidden(&text) {
            assert_eq!(shown, text);
        }
    }
}

/// Templates: filled completely, or refused.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (text, value) = text.split_once('\u{1}').unwrap_or((text, "ok"));
    let names = run::placeholders(text);
    let filled = run::render(text, &|name| (name.len() % 2 == 0).then(|| value.to_owned()));
    match filled {
        Ok(out) => {
            assert!(
                run::placeholders(&out)
                    .iter()
                    .all(|name| !name.ends_with("_output") || name == "_output"),
                "{out}"
            );
            if names.is_empty() {
                assert_eq!(out, text);
            }
        }
        Err(refusal) => assert!(!refusal.missing.is_empty() || !refusal.surviving.is_empty()),
    }
    for finding in run::audit(text) {
        assert!(finding.line >= 1 && finding.line <= text.lines().count().max(1));
    }
}

/// Secrets: redacting a redacted text changes nothing.
pub fn redact(data: &[u8]) {
    let Some((which, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let form = if which & 1 == 1 { TextForm::Json } else { TextForm::Plain };
    let redactor = Redactor::new();
    let mut end = 0;
    for found in redactor.find(bytes, form) {
        assert!(
            found.range.start >= end && found.range.end <= bytes.len() && !found.range.is_empty()
        );
        end = found.range.end;
    }
    let clean = redactor.clean(text, form);
    assert_eq!(redactor.clean(&clean, form), clean, "nothing is left to be taken out");
    if form == TextForm::Json
        && serde_json::from_str::<serde_json::Value>(text).is_ok()
        && !text.contains('\n')
    {
        assert!(
            serde_json::from_str::<serde_json::Value>(&clean).is_ok(),
            "JSON stays JSON: {clean}"
        );
    }
}
