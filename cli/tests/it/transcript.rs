//! Importing transcripts: at once or in pieces, twice, damaged, undone.

use crate::environment::{Environment, recorded_sessions};
use forge_cli::error::CommandError;
use forge_cli::report::import::TranscriptFileReport;
use forge_cli::transcript::{TranscriptImportOptions, TranscriptImporter};
use forge_store::model::{CheckpointTrigger, Key, Kind, Timestamp, Value};
use forge_store::store::{CheckpointFilter, ClaimChange, Options, Session, Store, WriteContext};
use forge_testkit::files::bytes_below;
use forge_testkit::skip::skipped;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

fn act() -> WriteContext {
    let now = Timestamp::parse_rfc3339("2026-06-01T00:00:00Z").unwrap();
    WriteContext::asked("import claude-code", now)
}

fn import_with(
    store: &Store,
    file: &Path,
    options: TranscriptImportOptions,
) -> Result<TranscriptFileReport, CommandError> {
    let act = act();
    TranscriptImporter::new(store, &act, options, &|_| {}).import_file(file)
}

pub(crate) fn import(store: &Store, file: &Path) -> TranscriptFileReport {
    import_with(store, file, TranscriptImportOptions::default()).unwrap()
}

pub(crate) fn line(second: u32, kind: &str, fields: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "{{\"type\":\"{kind}\",\"uuid\":\"u{minute}-{second}\",\"sessionId\":\"cc-1\",\
         \"timestamp\":\"2026-01-28T10:{minute:02}:{second:02}Z\",\"cwd\":\"/w\",{fields}}}\n"
    )
}

pub(crate) fn call(second: u32, id: &str, tool: &str, input: &str) -> String {
    let content = format!(
        "\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"{id}\",\
         \"name\":\"{tool}\",\"input\":{input}}}]}}"
    );
    line(second, "assistant", &content)
}

pub(crate) fn result(second: u32, id: &str, text: &str, noted: &str) -> String {
    let content = format!(
        "\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\
         \"tool_use_id\":\"{id}\",\"content\":\"{text}\"}}]}},\"toolUseResult\":{noted}"
    );
    line(second, "user", &content)
}

/// Returns the lines of a transcript with data of many kinds.
pub(crate) fn small() -> Vec<String> {
    let long = "x".repeat(9000);
    vec![
        line(0, "user", "\"message\":{\"role\":\"user\",\"content\":\"why does the test fail?\"}"),
        call(2, "c1", "Bash", "{\"command\":\"cargo test\"}"),
        result(9, "c1", "Exit code 101", &format!("{{\"stdout\":\"{long}\",\"stderr\":\"\"}}")),
        call(
            12,
            "t1",
            "TodoWrite",
            "{\"todos\":[{\"content\":\"fix it\",\"status\":\"pending\"}]}",
        ),
        result(13, "t1", "ok", "{\"newTodos\":[{\"content\":\"fix it\",\"status\":\"pending\"}]}"),
        call(
            20,
            "e1",
            "Edit",
            "{\"file_path\":\"/w/a.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}",
        ),
        result(
            21,
            "e1",
            "ok",
            "{\"filePath\":\"/w/a.rs\",\"originalFile\":\"a\",\"structuredPatch\":[{\"oldStart\":1,\"oldLines\":1,\"newStart\":1,\"newLines\":1,\"lines\":[\"-a\",\"+b\"]}]}",
        ),
        line(
            400,
            "assistant",
            "\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"done soon\"}]}",
        ),
        call(410, "c2", "Bash", "{\"command\":\"git commit -m fixed\"}"),
        result(
            412,
            "c2",
            "[main abc1234] fixed",
            "{\"stdout\":\"[main abc1234] fixed\",\"stderr\":\"\"}",
        ),
        line(
            500,
            "system",
            "\"subtype\":\"compact_boundary\",\"content\":\"compacted\",\"compactMetadata\":{\"trigger\":\"auto\",\"preTokens\":9}",
        ),
        line(
            501,
            "user",
            "\"isCompactSummary\":true,\"message\":{\"role\":\"user\",\"content\":\"it was about a test\"}",
        ),
        line(505, "user", "\"message\":{\"role\":\"user\",\"content\":\"go on\"}"),
    ]
}

/// Returns the facts at fewer than 80 times of events and just before them, and all checkpoints, as
/// lines.
fn picture(session: &Session) -> Vec<String> {
    let mut times = BTreeSet::new();
    let all = session.state(&session.head().unwrap()).unwrap();
    for kind in Kind::facts() {
        for known in all.facts_of(kind).unwrap() {
            times.extend([known.fact.at, known.fact.at.plus_micros(-1)]);
        }
    }
    let mut lines = Vec::new();
    // In a long session, checking every moment would take minutes.
    let step = (times.len() / 40).max(1);
    for time in times.into_iter().step_by(step) {
        let Ok(moment) = session.at_time(time) else { continue };
        let state = session.state(&moment).unwrap();
        for kind in Kind::facts() {
            for known in state.facts_of(kind).unwrap() {
                let fact = known.fact;
                lines.push(format!("{time}: {kind} {} {} {:?}", fact.id, fact.at, fact.value));
            }
        }
    }
    for one in session.checkpoints(&CheckpointFilter::default()).unwrap() {
        lines.push(format!(
            "{:?} {} {} {:?} {:?}",
            one.trigger, one.time, one.message, one.tags, one.body
        ));
    }
    lines
}

fn exported(session: &Session, source: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    session
        .write_source::<forge_store::error::Error>(source, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
    bytes
}

fn place() -> (tempfile::TempDir, PathBuf, Store) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    (folder, file, Store::in_memory().unwrap())
}

fn claim(session: &Session, id: &str) {
    let key = Key::new(Kind::Note, id);
    let value = Value::from([("text", id.into())]);
    session.write(&act()).change(ClaimChange::put(key, value)).commit().unwrap();
}

#[test]
fn importing_in_pieces_equals_importing_at_once() {
    let (_folder, file, whole) = place();
    let text: Vec<u8> = small().concat().into_bytes();
    std::fs::write(&file, &text).unwrap();
    let report = import(&whole, &file);
    assert_eq!((report.lines, report.skipped.len()), (13, 0));
    let session = whole.agent_session("cc-1").unwrap().unwrap();
    let wanted = picture(&session);
    assert_eq!(session.summary().unwrap().checkpoints, 3, "time, commit, compaction");
    assert!(wanted.len() > 60, "{wanted:?}");
    let mut cuts: Vec<usize> = small()
        .iter()
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    cuts.extend(cuts.clone().into_iter().flat_map(|cut| [cut - 1, cut - 30]));
    for cut in cuts {
        let (_folder, file, store) = place();
        std::fs::write(&file, &text[..cut]).unwrap();
        import(&store, &file);
        if let Some(session) = store.agent_session("cc-1").unwrap() {
            claim(&session, "between");
        }
        std::fs::write(&file, &text).unwrap();
        import(&store, &file);
        let session = store.agent_session("cc-1").unwrap().unwrap();
        assert_eq!(picture(&session), wanted, "cut at {cut}");
        assert_eq!(exported(&session, "claude-code:cc-1"), text, "cut at {cut}");
        let tail = store.tail_bytes().unwrap();
        let again = import(&store, &file);
        assert!(again.unchanged && store.tail_bytes().unwrap() == tail, "cut at {cut}");
        // A shorter, earlier version of the file brings nothing new either.
        std::fs::write(&file, &text[..cut]).unwrap();
        assert_eq!((import(&store, &file).bytes, store.tail_bytes().unwrap()), (0, tail));
    }
}

#[test]
fn a_file_that_changed_is_read_again_and_known_facts_stay_single() {
    let (_folder, file, store) = place();
    let mut lines = small();
    std::fs::write(&file, lines.concat()).unwrap();
    import(&store, &file);
    let session = store.agent_session("cc-1").unwrap().unwrap();
    let facts = session.summary().unwrap().facts;
    lines.insert(1, line(1, "user", "\"message\":{\"role\":\"user\",\"content\":\"forgotten\"}"));
    let text = lines.concat();
    std::fs::write(&file, &text).unwrap();
    let report = import(&store, &file);
    assert!(report.again);
    assert_eq!(report.facts.get("prompts"), Some(&1));
    assert_eq!(session.summary().unwrap().facts, facts + 2, "a message and a prompt");
    assert_eq!(exported(&session, "claude-code:cc-1"), text.as_bytes());
    assert!(import(&store, &file).unchanged);
}

#[test]
fn bad_lines_are_reported_and_skipped_and_strict_refuses_the_file() {
    let (_folder, file, store) = place();
    let mut lines = small();
    lines.insert(2, "nonsense\n".to_owned());
    lines.insert(4, format!("{}\n", "[".repeat(100_000)));
    let mut text = lines.concat().into_bytes();
    text.extend_from_slice(b"{\"x\":\"\xff\"}\n");
    std::fs::write(&file, &text).unwrap();
    let tail = store.tail_bytes().unwrap();
    let error = import_with(
        &store,
        &file,
        TranscriptImportOptions {
            strict: true,
            dry_run: false,
            ..TranscriptImportOptions::default()
        },
    )
    .unwrap_err();
    assert!(error.message().contains("line 3"), "{error}");
    assert_eq!(store.tail_bytes().unwrap(), tail);
    let report = import_with(
        &store,
        &file,
        TranscriptImportOptions {
            strict: false,
            dry_run: true,
            ..TranscriptImportOptions::default()
        },
    )
    .unwrap();
    assert_eq!((store.tail_bytes().unwrap(), report.checkpoints), (tail, 3));
    let report = import(&store, &file);
    let lines: Vec<u64> = report.skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(lines, [3, 5, 16]);
}

#[test]
fn files_without_a_whole_line_or_a_session_are_no_error() {
    let (_folder, file, store) = place();
    for text in ["", "{\"type\":\"user\",\"sess", "{\"type\":\"summary\",\"summary\":\"x\"}\n"] {
        std::fs::write(&file, text).unwrap();
        let report = import_with(
            &store,
            &file,
            TranscriptImportOptions {
                strict: true,
                dry_run: false,
                ..TranscriptImportOptions::default()
            },
        )
        .unwrap();
        assert_eq!((report.agent_session, report.lines), (None, 0), "{text}");
        assert!(store.sessions().unwrap().is_empty());
    }
}

#[test]
fn a_transcript_that_is_no_plain_file_is_refused() {
    let place = Environment::new();
    let _ = place.forge(["init"]).success();
    assert_eq!(place.forge(["import", "claude-code", "."]).code, 2);
    assert_eq!(place.forge(["import", "claude-code", "gone.jsonl"]).code, 3);
    assert_eq!(place.forge(["import", "events", "/dev/null"]).code, 2);
    assert_eq!(place.forge(["import", "swe-agent", "."]).code, 2);
}

#[test]
fn a_line_that_is_too_long_is_skipped_in_bounded_memory() {
    let (_folder, path, store) = place();
    let lines = small();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(lines[..3].concat().as_bytes()).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    (0..80).for_each(|_| file.write_all(&chunk).unwrap());
    file.write_all(b"\n").unwrap();
    file.write_all(lines[3..].concat().as_bytes()).unwrap();
    let report = import(&store, &path);
    assert_eq!(report.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [4]);
    assert_eq!(report.checkpoints, 3);
}

#[test]
fn undo_hides_an_import_and_importing_again_brings_it_back() {
    let (_folder, file, store) = place();
    std::fs::write(&file, small().concat()).unwrap();
    import(&store, &file);
    let session = store.agent_session("cc-1").unwrap().unwrap();
    let wanted = picture(&session);
    session.undo(&act(), None).unwrap();
    assert!(picture(&session).is_empty());
    assert!(!import(&store, &file).unchanged);
    assert_eq!(picture(&session), wanted);
}

#[test]
fn two_transcripts_with_one_title_are_two_sessions() {
    let (folder, file, store) = place();
    std::fs::write(&file, small().concat()).unwrap();
    import(&store, &file);
    let other = folder.path().join("b.jsonl");
    std::fs::write(&other, small().concat().replace("cc-1", "cc-2")).unwrap();
    import(&store, &other);
    let names: Vec<String> =
        store.sessions().unwrap().into_iter().map(|session| session.info.name).collect();
    assert_eq!(names, ["why does the test fail?", "why does the test fail?-2"]);
}

/// Returns the recorded sessions with the offsets of their saves. Reports a skip for each that is
/// not on this machine.
fn recorded() -> Vec<(Vec<u8>, Vec<usize>)> {
    #[derive(serde::Deserialize)]
    struct Cuts {
        cuts: Vec<Cut>,
    }
    #[derive(serde::Deserialize)]
    struct Cut {
        bytes: usize,
    }
    let folder = recorded_sessions();
    let mut found = Vec::new();
    for name in ["small", "review-e2e", "long"] {
        let path = folder.join("claude-code").join(format!("{name}.jsonl"));
        let Ok(text) = std::fs::read(&path) else {
            skipped("recorded sessions", format_args!("no {}; set FORGE_DATA", path.display()));
            continue;
        };
        let cuts = std::fs::read(path.with_extension("cuts.json")).unwrap();
        let cuts: Cuts = serde_json::from_slice(&cuts).unwrap();
        found.push((text, cuts.cuts.into_iter().map(|cut| cut.bytes).collect()));
    }
    found
}

#[test]
fn real_sessions_are_the_same_in_the_pieces_they_were_saved_in() {
    for (text, cuts) in recorded() {
        let (_folder, file, whole) = place();
        std::fs::write(&file, &text).unwrap();
        let report = import(&whole, &file);
        assert_eq!(report.skipped.len(), 0);
        let id = report.agent_session.unwrap();
        let source = format!("claude-code:{id}");
        let session = whole.agent_session(&id).unwrap().unwrap();
        assert_eq!(exported(&session, &source), text);
        let (_folder, file, store) = place();
        for cut in cuts.into_iter().chain([text.len()]) {
            std::fs::write(&file, &text[..cut]).unwrap();
            import(&store, &file);
            if let Some(session) = store.agent_session(&id).unwrap() {
                claim(&session, &format!("n{cut}"));
                assert_eq!(exported(&session, &source), &text[..cut]);
            }
        }
        let pieces = store.agent_session(&id).unwrap().unwrap();
        let (a, b) = (picture(&session), picture(&pieces));
        assert_eq!(a.len(), b.len());
        for (one, other) in a.iter().zip(&b) {
            assert_eq!(one, other);
        }
        assert!(import(&store, &file).unchanged);
    }
}

/// Each save of a transcript costs little more than its new part.
#[test]
#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn a_session_saved_in_many_pieces_takes_little_more_than_one_compressed_copy() {
    for (text, cuts) in recorded() {
        let (folder, file, _) = place();
        let path = folder.path().join("store");
        let store = Store::create(&path, Options::default()).unwrap();
        let one = zstd::bulk::compress(&text, 3).unwrap().len() as f64;
        let (mut before, mut blob) = (0, 0);
        let mut id = None;
        for cut in cuts.into_iter().chain([text.len()]) {
            std::fs::write(&file, &text[..cut]).unwrap();
            let used = bytes_below(&path);
            id = import(&store, &file).agent_session.or(id);
            let Some(session) = id.as_ref().and_then(|id| store.agent_session(id).unwrap()) else {
                continue;
            };
            let source = format!("claude-code:{}", id.as_ref().unwrap());
            let stored = session.stored_bytes(&source).unwrap();
            let new = zstd::bulk::compress(&text[before..cut], 3).unwrap().len() as u64;
            assert!(
                stored - blob <= new + new / 10 + 500,
                "{stored} after {blob}, {new} new at {cut}"
            );
            if cut == before {
                assert!(
                    bytes_below(&path) - used < 1000,
                    "{} for an equal save",
                    bytes_below(&path) - used
                );
            }
            (before, blob) = (cut, stored);
        }
        assert!(blob as f64 <= one * 1.1, "{blob} bytes of blob, {one} of one copy");
    }
}

/// The number of checkpoints is about ten per hour of activity.
#[test]
fn recorded_sessions_have_about_ten_checkpoints_per_active_hour() {
    const IDLE_MICROS: i64 = 5 * 60 * 1_000_000;
    for (text, _) in recorded() {
        let (_folder, file, store) = place();
        std::fs::write(&file, &text).unwrap();
        let id = import(&store, &file).agent_session.unwrap();
        let session = store.agent_session(&id).unwrap().unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        let mut times: Vec<Timestamp> = Vec::new();
        for kind in Kind::facts() {
            times.extend(state.facts_of(kind).unwrap().iter().map(|known| known.fact.at));
        }
        times.sort();
        let active: i64 = times
            .windows(2)
            .map(|pair| pair[1].micros_since(pair[0]))
            .filter(|gap| *gap < IDLE_MICROS)
            .sum();
        let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = checkpoints.len() as f64 / (active as f64 / 3.6e9);
        assert!(rate >= 10.0, "{rate} checkpoints an hour, {} in all", checkpoints.len());
        assert!(checkpoints.iter().all(|one| one.trigger != CheckpointTrigger::Manual));
    }
}

#[test]
fn text_that_a_compaction_kept_verbatim_is_not_reported_as_lost() {
    let edit = "{\"file_path\":\"/w/src/lexer.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}";
    let message = "\"message\":{\"role\":\"assistant\",\"content\":\"Now lexer.rs takes tabs.\"}";
    for (kept, lost) in [("u0-5", 0), ("u0-1", 1)] {
        let place = Environment::new();
        let metadata = format!(
            "\"subtype\":\"compact_boundary\",\"compactMetadata\":{{\"trigger\":\"manual\",\
             \"preservedMessages\":{{\"uuids\":[\"{kept}\"]}}}}"
        );
        let summary = "\"isCompactSummary\":true,\"message\":{\"content\":\"Nothing of note.\"}";
        let lines = [
            line(0, "user", "\"message\":{\"content\":\"tabs\"}"),
            call(1, "e", "Edit", edit),
            result(2, "e", "done", "{}"),
            line(5, "assistant", message),
            line(6, "system", &metadata),
            line(7, "user", summary),
        ];
        place.write("project/s.jsonl", &lines.concat());
        assert_eq!(place.forge(["init", "-q"]).code, 0);
        assert_eq!(place.forge(["import", "claude-code", "s.jsonl"]).code, 0);
        let shown = place.forge(["compaction", "show", "--json"]).json();
        assert_eq!(shown["lost"].as_array().unwrap().len(), lost, "{shown}");
    }
}
