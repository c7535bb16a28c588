use super::{FileFormat, is_document};
use crate::claude_code::TranscriptDialect;
use crate::trajectory::TrajectoryAuthor;

const CLAUDE: FileFormat = FileFormat::Transcript(TranscriptDialect::ClaudeCode);
const CODEX: FileFormat = FileFormat::Transcript(TranscriptDialect::Codex);
const GEMINI: FileFormat = FileFormat::Transcript(TranscriptDialect::Gemini);

#[test]
fn a_format_is_detected_by_its_fields() {
    for (head, format) in [
        (r#"{"type":"user","uuid":"u","sessionId":"s","message":{}}"#, CLAUDE),
        (r#"{"type":"summary","summary":"x","leafUuid":"l"}"#, CLAUDE),
        (
            r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"x"}"#,
            CLAUDE,
        ),
        (r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c"}}"#, CODEX),
        (r#"{"id":"c","timestamp":"t","instructions":null,"git":{}}"#, CODEX),
        (r#"{"sessionId":"g","projectHash":"h","startTime":"t"}"#, GEMINI),
        ("{\n  \"sessionId\": \"g\",\n  \"projectHash\": \"h\",\n  \"messages\": [", GEMINI),
        (r#"{"id":"m","timestamp":"t","type":"gemini","content":"x"}"#, GEMINI),
        (r#"{"$set":{"lastUpdated":"t"}}"#, GEMINI),
        (
            r#"{"trajectory":[{"action":"ls","observation":""}],"info":{}}"#,
            FileFormat::Trajectory(TrajectoryAuthor::SweAgent),
        ),
        (
            r#"{"environment":"main","trajectory":[],"history":[]}"#,
            FileFormat::Trajectory(TrajectoryAuthor::SweAgent),
        ),
        (
            r#"{"attempts":[{"trajectory":[{"action":"ls"}]}]}"#,
            FileFormat::Trajectory(TrajectoryAuthor::SweAgent),
        ),
        (
            r#"{"info":{"mini_version":"2"},"messages":[{"role":"system"}]}"#,
            FileFormat::Trajectory(TrajectoryAuthor::MiniSweAgent),
        ),
        (
            r#"{"messages":[{"role":"user"}],"trajectory_format":"mini-swe-agent-1.1"}"#,
            FileFormat::Trajectory(TrajectoryAuthor::MiniSweAgent),
        ),
        (
            r#"[{"id":0,"timestamp":"t","source":"user","action":"message","args":{}}]"#,
            FileFormat::Trajectory(TrajectoryAuthor::OpenHands),
        ),
        (
            r#"{"id":0,"timestamp":"t","source":"agent","observation":"run","content":""}"#,
            FileFormat::Trajectory(TrajectoryAuthor::OpenHands),
        ),
        (
            r#"{"trajectory":[{"source":"user","timestamp":"t","action":"run","args":{}}]}"#,
            FileFormat::Trajectory(TrajectoryAuthor::OpenHands),
        ),
        (
            r#"{"history":[[{"source":"user","timestamp":"t","action":"run","args":{}}]]}"#,
            FileFormat::Trajectory(TrajectoryAuthor::OpenHands),
        ),
        (
            r#"[{"kind":"MessageEvent","id":"e","timestamp":"t","source":"user"}]"#,
            FileFormat::Trajectory(TrajectoryAuthor::OpenHands),
        ),
        (r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note"}}"#, FileFormat::Events),
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, FileFormat::Messages),
        (r#"[{"role":"user","content":"x"}]"#, FileFormat::Messages),
        (
            "{\"type\":\"init\",\"timestamp\":\"t\",\"session_id\":\"g\"}\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}",
            FileFormat::RunOutput,
        ),
        (r#"{"type":"system","subtype":"init","session_id":"c"}"#, FileFormat::RunOutput),
        (
            r#"{"messages":[{"role":"user","content":"x"},{"role":"assistant","extra":{"actions":[{"command":"ls"#,
            FileFormat::Trajectory(TrajectoryAuthor::MiniSweAgent),
        ),
        (r#"{"name":"forge","version":"1"}"#, FileFormat::Json),
        ("[1, 2]", FileFormat::Json),
        ("hello", FileFormat::Other),
        (
            r#"{"display":"fix it","pastedContents":{},"timestamp":1,"project":"/w","sessionId":"s"}"#,
            FileFormat::Packed(
                "Claude Code's list of what was typed, which is no transcript",
                None,
            ),
        ),
        (
            r#"{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"x"}]}}"#,
            FileFormat::Packed("a session of Qwen Code", None),
        ),
        // A record of another file in a transcript does not hide it.
        (
            "{\"display\":\"x\",\"timestamp\":1,\"project\":\"/w\"}\n{\"type\":\"user\",\"sessionId\":\"s\"}",
            CLAUDE,
        ),
        (
            "{\"parentUuid\":null,\"message\":{\"parts\":[]}}\n{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"content\":\"x\"}}",
            CLAUDE,
        ),
        ("SQLite format 3\0", FileFormat::Packed("a database of SQLite", None)),
        ("\x28\u{b5}", FileFormat::Other),
    ] {
        assert_eq!(FileFormat::detect(head.as_bytes(), None), Some(format), "{head}");
        let with_bom = format!("\u{feff}{head}\n");
        if !matches!(format, FileFormat::Other | FileFormat::Packed(..)) {
            assert_eq!(FileFormat::detect(with_bom.as_bytes(), None), Some(format), "{head}");
        }
    }
    assert_eq!(FileFormat::detect(b"\x28\xb5\x2f\xfd\x04", None), Some(FileFormat::Zstd));
    let bundle = FileFormat::detect(b"forge bundle\r\n\x01\0", None);
    assert_eq!(bundle, Some(FileFormat::Bundle));
    assert_eq!(bundle.and_then(FileFormat::import_subcommand), Some("bundle"));
    assert!(matches!(
        FileFormat::detect(b"\x1f\x8b\x08", None),
        Some(FileFormat::Packed(_, Some("gunzip")))
    ));
    let mut archive = b"a.jsonl".to_vec();
    archive.resize(257, 0);
    archive.extend(b"ustar\x0000");
    archive.resize(512, 0);
    archive.extend(br#"{"type":"user","uuid":"u","sessionId":"s","message":{}}"#);
    assert_eq!(
        FileFormat::detect(&archive, Some(CLAUDE)),
        Some(FileFormat::Packed("a tar archive", Some("tar -xf")))
    );
    for blank in [&b""[..], b" \n", b"\xef\xbb\xbf\n", b"\0\0\n"] {
        assert_eq!(FileFormat::detect(blank, None), None);
    }
}

#[test]
fn a_torn_line_or_a_nested_field_does_not_hide_the_format() {
    let whole = r#"{"timestamp":"t","type":"session_meta","payload":{"cwd":"/w","text":"{\"sessionId\":1}"}}"#;
    for before in
        ["{\"timestamp\":\"20", "{\"a\":", "{\"a\":1,", "garbage\n", "\0\0\0", "{\"x\":\"y\" "]
    {
        assert_eq!(
            FileFormat::detect(format!("{before}\n{whole}").as_bytes(), None),
            Some(CODEX),
            "{before}"
        );
    }
    // The first 50 bytes of the line are enough.
    for cut in 50..whole.len() {
        assert_eq!(FileFormat::detect(&whole.as_bytes()[..cut], None), Some(CODEX), "{cut}");
    }
    assert!(FileFormat::detect("[".repeat(100_000).as_bytes(), None).is_some());
}

#[test]
fn a_document_continues_after_its_first_line() {
    for (head, expected) in [
        ("{\n  \"sessionId\": \"g\"", true),
        ("\u{feff}{\n\"a\":1}", true),
        ("{ \"a\": 1,\n\"b\": 2}", true),
        ("{\"a\":1}\n{\"b\":2}", false),
        ("{\"a\":1}", false),
        ("{\"a\":\"torn\n{\"b\":2}", false),
        ("{", false),
    ] {
        assert_eq!(is_document(head.as_bytes()), expected, "{head}");
    }
}

#[test]
fn fields_of_different_lines_are_not_combined() {
    // A future kind of line, with a field that belongs to another agent today.
    let lines = concat!(
        r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"t","message":{}}"#,
        "\n",
        r#"{"type":"blob","sessionId":"s","timestamp":"t","payload":{}}"#,
    );
    assert_eq!(FileFormat::detect(lines.as_bytes(), None), Some(CLAUDE));
    let lines = concat!(
        r#"{"sessionId":"g","projectHash":"h"}"#,
        "\n",
        r#"{"id":"m","timestamp":"t","type":"user","content":"x"}"#,
    );
    assert_eq!(FileFormat::detect(lines.as_bytes(), Some(CLAUDE)), Some(GEMINI));
    // Regression: the events of OpenHands became commands of SWE-agent.
    let open_hands = FileFormat::Trajectory(TrajectoryAuthor::OpenHands);
    let events =
        r#"{"trajectory":[{"timestamp":"t","source":"agent","action":"run","args":{}}],"info":{}}"#;
    let swe_agent = FileFormat::Trajectory(TrajectoryAuthor::SweAgent);
    assert_eq!(FileFormat::detect(events.as_bytes(), Some(swe_agent)), Some(open_hands));
    // An ambiguous file has the format that is wanted.
    let events =
        r#"{"type":"x","sessionId":"s","source":"user","timestamp":"t","action":"run","args":{}}"#;
    for wanted in [CLAUDE, FileFormat::Trajectory(TrajectoryAuthor::OpenHands)] {
        assert_eq!(FileFormat::detect(events.as_bytes(), Some(wanted)), Some(wanted));
    }
}

#[test]
fn utf_16_without_a_byte_order_mark_and_lists_of_records_are_recognised() {
    let record = r#"{"type":"user","uuid":"u","sessionId":"s","message":{}}"#;
    let utf_16 =
        |order: fn(u16) -> [u8; 2]| -> Vec<u8> { record.encode_utf16().flat_map(order).collect() };
    let packed = |head: &[u8]| match FileFormat::detect(head, Some(CLAUDE)) {
        Some(FileFormat::Packed(what, unpack)) => (what, unpack.unwrap()),
        other => panic!("{other:?}"),
    };
    let little = ("a text in UTF-16", "iconv -f utf-16le -t utf-8");
    assert_eq!(packed(&utf_16(u16::to_le_bytes)), little);
    let big = ("a text in UTF-16", "iconv -f utf-16be -t utf-8");
    assert_eq!(packed(&utf_16(u16::to_be_bytes)), big);
    // NUL bytes around a record are not UTF-16.
    for record in [format!("\0{record}"), format!("{{\0\0\0\n{record}")] {
        assert_eq!(FileFormat::detect(record.as_bytes(), None), Some(CLAUDE), "{record:?}");
    }
    for (record, what) in [
        (record, "a transcript of Claude Code as one JSON list"),
        (
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c"}}"#,
            "a rollout of Codex as one JSON list",
        ),
        (
            r#"{"sessionId":"g","projectHash":"h","startTime":"t"}"#,
            "a recording of Gemini CLI as one JSON list",
        ),
    ] {
        let list = format!("[\n  {record},\n  {record}\n]");
        assert_eq!(packed(list.as_bytes()), (what, "jq -c '.[]'"));
    }
    assert_eq!(FileFormat::detect(br#"[{"a":1}]"#, None), Some(FileFormat::Json));
    let bad_line = format!("{record}\n[[[[\n{record}\n");
    let found = FileFormat::detect(bad_line.as_bytes(), Some(CLAUDE));
    assert!(!matches!(found, Some(FileFormat::Packed(..))), "{found:?}");
}
