//! Lines that cannot be read, incomplete lines, and lines that are too long.

use super::script::Script;
use super::*;
use crate::claude_code::UnreadableLine;
use crate::piece::SkippedLine;
use forge_store::model::TextRef;

fn skipped(bytes: &[u8]) -> Vec<(u64, u64, String)> {
    let piece = read_whole(bytes);
    assert_eq!(piece.taken, bytes.len() as u64);
    piece.skipped.into_iter().map(|it| (it.line, it.offset, it.reason)).collect()
}

#[test]
fn a_bad_line_is_reported_with_its_number_and_the_rest_is_read() {
    let good = Script::new().user("hello").text;
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let bad: [(&[u8], &str); 8] = [
        (b"junk", "is not a JSON object"),
        (b"[1]", "is not a JSON object"),
        (b"\0\0\0\0", "is not a JSON object"),
        (b"{\"type\":\"user\"", "is not complete JSON"),
        (b"{\"a\":\"\xff\"}", "is not UTF-8 at its byte 6"),
        (deep.as_bytes(), "is nested deeper than 512 levels"),
        (b"{\"type\":\"user\",\"uuid\":\"u\"}", "is a message without a time"),
        (b"{\"type\":\"user\",\"uuid\":\"u\",\"timestamp\":\"noon\"}", "has the time 'noon'"),
    ];
    for (line, reason) in bad {
        let bytes = [good.as_bytes(), b"\n", line, b"\r\n", good.as_bytes()].concat();
        let found = skipped(&bytes);
        assert_eq!(found.len(), 1, "{reason}");
        assert_eq!((found[0].0, found[0].1), (3, good.len() as u64 + 1));
        assert!(found[0].2.starts_with(reason), "{}", found[0].2);
        let strict = TranscriptOptions { strict: true, ..TranscriptOptions::default() };
        let error =
            TranscriptReader::new(strict).read(&bytes, InputEnding::File, RECORDED_AT).unwrap_err();
        assert_eq!(
            error,
            UnreadableLine { line: 3, offset: found[0].1, reason: found[0].2.clone() }
        );
        assert!(error.to_string().starts_with("line 3 (at byte "), "{error}");
    }
}

#[test]
fn deep_nesting_anywhere_in_a_message_is_reported() {
    let deep = "[".repeat(600) + &"]".repeat(600);
    let line = format!(
        r#"{{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00Z","message":{{"content":{deep}}}}}"#
    ) + "\n";
    assert_eq!(skipped(line.as_bytes())[0].2, "is nested deeper than 512 levels");
    // Brackets inside a string are not nesting.
    let text = format!(r#"{{"type":"summary","summary":"\"{}"}}"#, "[".repeat(1000));
    assert_eq!(skipped(text.as_bytes()), []);
}

#[test]
fn a_text_cut_within_a_character_is_read() {
    let text = Script::new().user("cut HERE").text.replace("HERE", r"\ud83d");
    let piece = read_whole(text.as_bytes());
    assert_eq!(piece.skipped, []);
    let prompt = &only_of_kind(&piece, Kind::Prompt).value;
    assert_eq!(super::text(prompt, "text"), Some("cut \u{fffd}"));
}

#[test]
fn a_byte_that_is_not_utf_8_does_not_lose_its_record() {
    let long = "x".repeat(300);
    let script = Script::new().user(&format!("fix the lexHEREr {long}")).user("two");
    let text = script.text.trim_end();
    for ended in [true, false] {
        let mut bytes = text.as_bytes().to_vec();
        let place = text.find("HERE").unwrap();
        bytes.splice(place..place + 4, [0xff]);
        let start = bytes.len() - text.lines().last().unwrap().len();
        // In the middle of the file, and as a last line without a line break.
        if ended {
            bytes.push(b'\n');
        } else {
            bytes.truncate(start - 1);
        }
        let piece = read_whole(&bytes);
        assert_eq!(piece.taken, bytes.len() as u64);
        assert_eq!(piece.skipped.len(), 1);
        let noted = &piece.skipped[0];
        assert_eq!((noted.line, noted.offset, noted.read), (1, 0, true));
        assert!(noted.reason.starts_with(&format!("is not UTF-8 at its byte {place}")));
        // The reference covers the bytes of the record, and its text is resolved from them.
        let prompt = of_kind(&piece, Kind::Prompt)[0].value.field("text").unwrap().clone();
        let text = TextRef::from_value(&prompt).unwrap();
        let (offset, length) = text.place.unwrap();
        assert_eq!((offset, length), (0, start as u64 - 1));
        let record = &bytes[..length as usize];
        let expected = format!("fix the lex\u{fffd}r {long}");
        assert_eq!(crate::resolve(record, &text.pointer), Some(expected));
    }
}

#[test]
fn a_last_line_waits_until_it_is_complete() {
    let whole = Script::new().user("one").user("two").text;
    let end = whole.len() - 1;
    let mut reader = TranscriptReader::new(TranscriptOptions::default());
    let first = reader.read(&whole.as_bytes()[..end - 1], InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!((of_kind(&first, Kind::Message).len(), first.skipped.len()), (1, 0));
    let from = reader.carry().offset() as usize;
    let mut more = reader.clone();
    assert_eq!(
        more.read(&whole.as_bytes()[from..end], InputEnding::More, RECORDED_AT).unwrap().taken,
        0
    );
    let last = reader.read(&whole.as_bytes()[from..end], InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!(of_kind(&last, Kind::Message).len(), 1);
    let rest = format!("\n{}", Script::new().user("three").text);
    let next = reader.read(rest.as_bytes(), InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!((next.taken as usize, of_kind(&next, Kind::Message).len()), (rest.len(), 1));
    assert_eq!(next.facts[0].place, whole.len() as u64);
    // A last line without a line break is not taken unless it is an object.
    assert_eq!(read_whole(b"[1]").taken, 0);
}

#[test]
fn text_after_a_line_that_was_taken_is_reported() {
    let mut reader = TranscriptReader::new(TranscriptOptions::default());
    reader.read(b"{}", InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!(reader.read(b" junk", InputEnding::File, RECORDED_AT).unwrap().taken, 0);
    let piece = reader.read(b" junk\n{\n", InputEnding::File, RECORDED_AT).unwrap();
    let lines: Vec<_> = piece.skipped.iter().map(|it| (it.line, it.offset)).collect();
    assert_eq!((piece.taken, lines), (8, vec![(1, 3), (2, 8)]));
}

/// Regression: the text was neither read nor skipped, so all of it was kept in memory.
#[test]
fn an_endless_text_after_a_line_that_was_taken_is_skipped() {
    let options = TranscriptOptions { max_line: 1000, ..TranscriptOptions::default() };
    let mut reader = TranscriptReader::new(options);
    reader.read(b"{}", InputEnding::File, RECORDED_AT).unwrap();
    let long = [b'x'; 1001];
    assert_eq!(reader.read(&long[1..], InputEnding::More, RECORDED_AT).unwrap().taken, 0);
    let piece = reader.read(&long, InputEnding::More, RECORDED_AT).unwrap();
    let reason = "is longer than 1000 bytes".to_owned();
    let expected = SkippedLine { line: 1, offset: 2, reason, read: false };
    assert_eq!((piece.taken, piece.skipped), (1001, vec![expected]));
    let rest = format!("xxx\n{}", Script::new().user("hello").text);
    let next = reader.read(rest.as_bytes(), InputEnding::File, RECORDED_AT).unwrap();
    assert_eq!((next.taken as usize, next.skipped.len()), (rest.len(), 0));
    assert_eq!(of_kind(&next, Kind::Message).len(), 1);
}

fn prompts(piece: &TranscriptPiece) -> Vec<&str> {
    let prompts = of_kind(piece, Kind::Prompt);
    prompts.iter().map(|fact| text(&fact.value, "text").unwrap()).collect()
}

#[test]
fn a_byte_order_mark_and_nul_bytes_hide_no_record() {
    let script = Script::new().user("one").user("two");
    let (one, two) = script.text.split_at(script.text.find('\n').unwrap() + 1);
    for before in ["\u{feff}", "\0\0\0\0", "\u{feff}\0 "] {
        let bytes = [before, one, before, two.trim_end(), "\0\0"].concat();
        let piece = read_whole(bytes.as_bytes());
        assert_eq!((prompts(&piece), piece.skipped.len()), (vec!["one", "two"], 0), "{before:?}");
        assert_eq!(piece.taken, bytes.len() as u64);
        assert_eq!(piece.session.unwrap().title.as_deref(), Some("one"));
        assert_eq!(piece.facts[0].place, before.len() as u64);
    }
}

#[test]
fn two_records_on_one_line_are_both_read_and_a_torn_one_is_reported() {
    let script = Script::new().user("one").user("two").user("three");
    let lines: Vec<&str> = script.text.lines().collect();
    let whole = format!("{}{}\n{}\n", lines[0], lines[1], lines[2]);
    let piece = read_whole(whole.as_bytes());
    assert_eq!((prompts(&piece), piece.skipped.len()), (vec!["one", "two", "three"], 0));
    assert_eq!(piece.facts[2].place, lines[0].len() as u64);
    let torn = format!("{}\n{}{}\n", lines[0], &lines[1][..100], lines[2]);
    let piece = read_whole(torn.as_bytes());
    assert_eq!(prompts(&piece), ["one", "three"]);
    let lost: Vec<_> = piece.skipped.iter().map(|it| (it.line, it.offset)).collect();
    assert_eq!(lost, [(2, lines[0].len() as u64 + 1)]);
    let strict = TranscriptOptions { strict: true, ..TranscriptOptions::default() };
    let error = TranscriptReader::new(strict)
        .read(torn.as_bytes(), InputEnding::File, RECORDED_AT)
        .unwrap_err();
    assert_eq!(error.line, 2);
}

#[test]
fn a_long_text_of_the_second_record_on_a_line_is_resolved() {
    let long = "x".repeat(400);
    let script = Script::new().user("one").user(&long);
    let line = script.text.replacen("}\n{", "}{", 1);
    let piece = read_whole(line.as_bytes());
    let prompt = of_kind(&piece, Kind::Prompt)[1].value.field("text").unwrap().clone();
    let text = TextRef::from_value(&prompt).unwrap();
    let (offset, length) = text.place.unwrap();
    let record = &line.as_bytes()[offset as usize..(offset + length) as usize];
    assert_eq!(crate::resolve(record, &text.pointer), Some(long));
}

#[test]
fn unescaped_control_characters_lose_no_record() {
    let long = format!("\u{1b}[31m{}", "x".repeat(400));
    let script = Script::new().user("one\t\u{7}two").user(&long).user("three");
    let raw = script.text.replace("\\t\\u0007", "\t\u{7}").replace("\\u001b", "\u{1b}");
    assert_ne!(raw, script.text);
    // The records alone on their lines, two on a line, after an incomplete one, without a last line
    // break, and with other line ends.
    let lines: Vec<&str> = raw.lines().collect();
    for (text, lost) in [
        (raw.clone(), 0),
        (raw.replacen("}\n{", "}{", 1), 0),
        (format!("{}\0{}", &lines[0][..90], raw), 1),
        (raw.trim_end().to_owned(), 0),
        (raw.replace('\n', "\r\n"), 0),
    ] {
        let piece = read_whole(text.as_bytes());
        assert_eq!(piece.skipped.len(), lost, "{text}");
        assert_eq!(piece.taken, text.len() as u64);
        let prompts = of_kind(&piece, Kind::Prompt);
        assert_eq!(text_of(&prompts[0].value), Some("one\t\u{7}two"));
        assert_eq!(text_of(&prompts[2].value), Some("three"));
        let reference = TextRef::from_value(prompts[1].value.field("text").unwrap()).unwrap();
        let (offset, length) = reference.place.unwrap();
        let record = &text.as_bytes()[offset as usize..(offset + length) as usize];
        assert_eq!(crate::resolve(record, &reference.pointer).as_deref(), Some(&*long));
    }
    let strict = TranscriptOptions { strict: true, ..TranscriptOptions::default() };
    TranscriptReader::new(strict).read(raw.as_bytes(), InputEnding::File, RECORDED_AT).unwrap();
}

fn text_of(value: &Value) -> Option<&str> {
    text(value, "text")
}

#[test]
fn one_bad_element_does_not_lose_a_list() {
    let todos = serde_json::json!({ "todos": [null, { "content": "keep me" }, 7] });
    let content =
        serde_json::json!([null, 3, ["x"], "first", { "type": "text", "text": "second" }]);
    let piece = Script::new()
        .line("user", serde_json::json!({ "message": { "content": content } }))
        .call("t", "TodoWrite", todos)
        .result("t", "ok", serde_json::json!({}))
        .read();
    assert_eq!(prompts(&piece), ["first\nsecond"]);
    assert_eq!(text(&only_of_kind(&piece, Kind::Task).value, "subject"), Some("keep me"));
}

#[test]
fn a_line_that_is_too_long_is_skipped_in_blocks() {
    let options = TranscriptOptions { max_line: 1000, ..TranscriptOptions::default() };
    let good = Script::new().user("hello").text;
    let long = vec![b'x'; 12_345];
    let bytes = [good.as_bytes(), &long, b"\n", good.as_bytes()].concat();
    for block in [1001, 1500, 5000, bytes.len()] {
        let mut reader = TranscriptReader::new(options);
        let (mut facts, mut skipped) = (0, Vec::new());
        while (reader.carry().offset() as usize) < bytes.len() {
            let rest = &bytes[reader.carry().offset() as usize..];
            let (part, ending) = match rest.get(..block) {
                Some(part) if part.len() < rest.len() => (part, InputEnding::More),
                _ => (rest, InputEnding::File),
            };
            let piece = reader.read(part, ending, RECORDED_AT).unwrap();
            assert!(piece.taken > 0, "a block longer than the limit always gets on");
            facts += of_kind(&piece, Kind::Message).len();
            skipped.extend(piece.skipped);
        }
        let reason = "is longer than 1000 bytes".to_owned();
        let expected = SkippedLine { line: 2, offset: good.len() as u64, reason, read: false };
        assert_eq!((facts, skipped), (2, vec![expected]), "{block}");
    }
}
