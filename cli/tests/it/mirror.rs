//! Transcripts that are mirrored line by line give the same sessions as an import of the file.

use crate::environment::{Environment, recorded_sessions};
use crate::transcript::{import, small};
use forge_agents::{MirrorKey, TranscriptMirror, resolve};
use forge_store::Error;
use forge_store::model::Timestamp;
use forge_store::redact::Redactor;
use forge_store::store::{Options, Session, Store, WriteContext};
use forge_testkit::secret::fake_secrets;
use forge_testkit::skip::skipped;

fn act() -> WriteContext {
    let now = Timestamp::parse_rfc3339("2026-06-01T00:00:00Z").unwrap();
    WriteContext::asked("import claude-code", now)
}

fn key(session: &str) -> MirrorKey {
    MirrorKey { project: "p".to_owned(), session: session.to_owned(), subpath: None }
}

/// Appends lines after the present end of the transcript.
fn append(store: &Store, key: &MirrorKey, lines: &str) {
    let mirror = TranscriptMirror::new(store);
    let end = mirror.state(key).unwrap().map_or(0, |state| state.end);
    mirror.append(&act(), key, end, lines, None).unwrap();
}

fn transcript(session: &Session, source: &str) -> String {
    let mut whole = Vec::new();
    let mut write = |part: &[u8]| {
        whole.extend_from_slice(part);
        Ok::<_, Error>(())
    };
    session.write_source(source, &mut write).unwrap();
    String::from_utf8(whole).unwrap()
}

fn events(store: &Store, id: &str) -> String {
    let session = store.agent_session(id).unwrap().unwrap();
    let mut whole = Vec::new();
    let mut write = |part: &[u8]| {
        whole.extend_from_slice(part);
        Ok::<_, Error>(())
    };
    session.export_events(&resolve, &mut write).unwrap();
    String::from_utf8(whole).unwrap()
}

/// Compares the session that an import of a file makes with the one from mirrored lines. The first
/// `first` lines are appended at once, the others `lines_at_once` at a time.
fn compare(text: &str, id: &str, (first, lines_at_once): (usize, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{id}.jsonl"));
    std::fs::write(&file, text).unwrap();
    let (whole, pieces) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    import(&whole, &file);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (first, rest) = lines.split_at(first.min(lines.len()));
    for part in [first].into_iter().chain(rest.chunks(lines_at_once)) {
        append(&pieces, &key(id), &part.concat());
    }
    let (found, wanted) = (events(&pieces, id), events(&whole, id));
    let different = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(found == wanted, "{different:?}");
    let session = pieces.agent_session(id).unwrap().unwrap();
    assert!(transcript(&session, &format!("claude-code:{id}")) == text);
    // The stored transcript equals the file, so nothing is read again.
    let again = import(&pieces, &file);
    assert!(again.unchanged && !again.again, "{again:?}");
}

#[test]
fn mirrored_lines_give_the_session_of_an_import() {
    for lines_at_once in [1, 4, 100] {
        compare(&small().concat(), "cc-1", (lines_at_once, lines_at_once));
    }
}

#[test]
fn a_recorded_session_in_pieces_gives_the_session_of_its_import() {
    let file = recorded_sessions().join("claude-code/small.jsonl");
    let Ok(mut text) = std::fs::read_to_string(&file) else {
        skipped("recorded sessions", format_args!("no {}; set FORGE_DATA", file.display()));
        return;
    };
    // A mirror takes whole lines; the last line of a recorded file may have no line break.
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let id = text.lines().find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["sessionId"].as_str().map(str::to_owned)
    });
    // The first append gives the session its name and its beginning, so it has the first prompt.
    let is_prompt = |line: &str| line.contains("\"type\":\"user\"");
    let first = text.lines().position(is_prompt).unwrap() + 1;
    compare(&text, &id.unwrap(), (first, 7));
}

#[test]
fn lines_are_appended_after_an_import_whose_last_line_has_no_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cc-1.jsonl");
    let store = Store::in_memory().unwrap();
    let lines = small();
    let (first, rest) = lines.split_at(3);
    std::fs::write(&file, first.concat().trim_end()).unwrap();
    import(&store, &file);
    let (mirror, key) = (TranscriptMirror::new(&store), key("cc-1"));
    assert!(mirror.lines(&key).unwrap().is_some());
    append(&store, &key, &rest.concat());
    assert_eq!(String::from_utf8(mirror.lines(&key).unwrap().unwrap()).unwrap(), lines.concat());
    std::fs::write(&file, lines.concat()).unwrap();
    assert!(import(&store, &file).unchanged);
}

/// Regression: the line break that the last line lacked remained.
#[test]
fn a_deleted_transcript_whose_last_line_had_no_end_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent-1.jsonl");
    let store = Store::in_memory().unwrap();
    std::fs::write(&file, small()[0].trim_end()).unwrap();
    import(&store, &file);
    let mirror = TranscriptMirror::new(&store);
    let key = MirrorKey { subpath: Some("subagents/agent-1".to_owned()), ..key("cc-1") };
    assert!(mirror.lines(&key).unwrap().is_some());
    mirror.delete(&act(), &key).unwrap();
    assert_eq!(mirror.lines(&key).unwrap(), None);
    append(&store, &key, &small()[1]);
    assert_eq!(mirror.lines(&key).unwrap().unwrap(), small()[1].as_bytes());
}

#[test]
fn an_append_at_an_outdated_end_is_refused() {
    let store = Store::in_memory().unwrap();
    let (mirror, key) = (TranscriptMirror::new(&store), key("cc-1"));
    append(&store, &key, &small()[0]);
    let refused = mirror.append(&act(), &key, 0, &small()[1], None).unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused}");
    assert_eq!(mirror.lines(&key).unwrap().unwrap(), small()[0].as_bytes());
    // A line without a line break and an invalid key are refused too.
    let end = mirror.state(&key).unwrap().unwrap().end;
    assert!(mirror.append(&act(), &key, end, "{\"type\":", None).is_err());
    let bad = MirrorKey { subpath: Some(String::new()), ..key.clone() };
    assert!(mirror.append(&act(), &bad, 0, &small()[1], None).is_err());
    assert_eq!(mirror.state(&key).unwrap().unwrap().end, end);
}

/// Regression: a writer that had seen no session took the session that another writer created
/// meanwhile for one of another project, and began a second session.
#[test]
fn writers_that_begin_one_transcript_at_once_share_its_session() {
    let store = Store::in_memory().unwrap();
    let (writers, transcripts) = (4, 50);
    let start = std::sync::Barrier::new(writers);
    let write = |writer: usize| {
        for number in 0..transcripts {
            let (mirror, key) = (TranscriptMirror::new(&store), key(&format!("cc-{number}")));
            let line = format!("{{\"type\":\"x\",\"of\":{writer}}}\n");
            start.wait();
            loop {
                let end = mirror.state(&key).unwrap().map_or(0, |state| state.end);
                match mirror.append(&act(), &key, end, &line, None) {
                    Err(Error::Conflict(_)) => {}
                    result => break result.unwrap(),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|one| scope.spawn(move || write(one))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(store.sessions().unwrap().len(), transcripts);
    for number in 0..transcripts {
        let lines = TranscriptMirror::new(&store).lines(&key(&format!("cc-{number}"))).unwrap();
        assert_eq!(lines.unwrap().split_inclusive(|byte| *byte == b'\n').count(), writers);
    }
}

#[test]
fn a_store_that_redacts_stores_lines_without_secrets() {
    let options = Options::default().redaction(Some(Redactor::new().into()));
    let store = Store::in_memory_with(options).unwrap();
    let (mirror, key) = (TranscriptMirror::new(&store), key("cc-1"));
    let token = fake_secrets(1).into_iter().find(|fake| fake.shape == "aws access key").unwrap();
    let line = small()[0].replace("why does", &format!("{} {}", token.text, "y".repeat(100_000)));
    let clean = mirror.clean(&line);
    assert!(clean.contains("[redacted:aws-access-key]") && !clean.contains(&token.secret));
    append(&store, &key, &clean);
    append(&store, &key, &small()[1]);
    assert!(!events(&store, "cc-1").contains(&token.secret));
    let whole = mirror.lines(&key).unwrap().unwrap();
    assert!(String::from_utf8(whole).unwrap() == format!("{clean}{}", small()[1]));
    assert_eq!(mirror.clean(&clean), clean);
}

#[test]
fn the_transcript_of_a_store_is_exported() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let options = Options::default().keyring(environment.path("home/.local/state/forge/keyring"));
    let store = Store::open(&environment.path("project/.forge"), options).unwrap();
    append(&store, &key("cc-1"), &small().concat());
    drop(store);
    assert_eq!(environment.forge(["export", "transcript", "cc-1"]).success(), small().concat());
    let shown = environment.forge(["session", "show", "cc-1"]).success();
    assert!(shown.contains("claude-code:cc-1"), "{shown}");
}
