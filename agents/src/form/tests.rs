use super::{Form, is_document};
use crate::claude_code::Dialect;
use crate::trajectory::Author;

const CLAUDE: Form = Form::Transcript(Dialect::ClaudeCode);
const CODEX: Form = Form::Transcript(Dialect::Codex);
const GEMINI: Form = Form::Transcript(Dialect::Gemini);

#[test]
fn a_form_is_told_by_the_fields() {
    for (head, form) in [
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
            Form::Trajectory(Author::SweAgent),
        ),
        (
            r#"{"environment":"main","trajectory":[],"history":[]}"#,
            Form::Trajectory(Author::SweAgent),
        ),
        (r#"{"attempts":[{"trajectory":[{"action":"ls"}]}]}"#, Form::Trajectory(Author::SweAgent)),
        (
            r#"{"info":{"mini_version":"2"},"messages":[{"role":"system"}]}"#,
            Form::Trajectory(Author::MiniSweAgent),
        ),
        (
            r#"{"messages":[{"role":"user"}],"trajectory_format":"mini-swe-agent-1.1"}"#,
            Form::Trajectory(Author::MiniSweAgent),
        ),
        (
            r#"[{"id":0,"timestamp":"t","source":"user","action":"message","args":{}}]"#,
            Form::Trajectory(Author::OpenHands),
        ),
        (
            r#"{"id":0,"timestamp":"t","source":"agent","observation":"run","content":""}"#,
            Form::Trajectory(Author::OpenHands),
        ),
        (
            r#"{"trajectory":[{"source":"user","timestamp":"t","action":"run","args":{}}]}"#,
            Form::Trajectory(Author::OpenHands),
        ),
        (
            r#"{"history":[[{"source":"user","timestamp":"t","action":"run","args":{}}]]}"#,
            Form::Trajectory(Author::OpenHands),
        ),
        (
            r#"[{"kind":"MessageEvent","id":"e","timestamp":"t","source":"user"}]"#,
            Form::Trajectory(Author::OpenHands),
        ),
        (r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note"}}"#, Form::Events),
        (r#"{"messages":[{"role":"user","content":"x"}]}"#, Form::Messages),
        (r#"[{"role":"user","content":"x"}]"#, Form::Messages),
        (r#"{"name":"forge","version":"1"}"#, Form::Json),
        ("[1, 2]", Form::Json),
        ("hello", Form::Other),
        ("SQLite format 3\0", Form::Packed("a database of SQLite", None)),
        ("\x28\u{b5}", Form::Other),
    ] {
        assert_eq!(Form::of(head.as_bytes(), None), Some(form), "{head}");
        let marked = format!("\u{feff}{head}\n");
        if !matches!(form, Form::Other | Form::Packed(..)) {
            assert_eq!(Form::of(marked.as_bytes(), None), Some(form), "{head}");
        }
    }
    assert_eq!(Form::of(b"\x28\xb5\x2f\xfd\x04", None), Some(Form::Zstd));
    assert!(matches!(Form::of(b"\x1f\x8b\x08", None), Some(Form::Packed(_, Some("gunzip")))));
    for nothing in [&b""[..], b" \n", b"\xef\xbb\xbf\n", b"\0\0\n"] {
        assert_eq!(Form::of(nothing, None), None);
    }
}

#[test]
fn a_torn_line_or_a_field_inside_hides_no_form() {
    let whole = r#"{"timestamp":"t","type":"session_meta","payload":{"cwd":"/w","text":"{\"sessionId\":1}"}}"#;
    for before in
        ["{\"timestamp\":\"20", "{\"a\":", "{\"a\":1,", "garbage\n", "\0\0\0", "{\"x\":\"y\" "]
    {
        assert_eq!(
            Form::of(format!("{before}\n{whole}").as_bytes(), None),
            Some(CODEX),
            "{before}"
        );
    }
    // The beginning tells it, wherever that is cut.
    for cut in 50..whole.len() {
        assert_eq!(Form::of(&whole.as_bytes()[..cut], None), Some(CODEX), "{cut}");
    }
    assert!(Form::of("[".repeat(100_000).as_bytes(), None).is_some());
}

#[test]
fn a_document_goes_over_its_first_line() {
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
fn fields_of_several_lines_make_no_form_together() {
    // A line kind of tomorrow with a field that is another agent's today.
    let lines = concat!(
        r#"{"type":"user","uuid":"u","sessionId":"s","timestamp":"t","message":{}}"#,
        "\n",
        r#"{"type":"blob","sessionId":"s","timestamp":"t","payload":{}}"#,
    );
    assert_eq!(Form::of(lines.as_bytes(), None), Some(CLAUDE));
    let lines = concat!(
        r#"{"sessionId":"g","projectHash":"h"}"#,
        "\n",
        r#"{"id":"m","timestamp":"t","type":"user","content":"x"}"#,
    );
    assert_eq!(Form::of(lines.as_bytes(), Some(CLAUDE)), Some(GEMINI));
    // What may be either is what is wanted.
    let events =
        r#"{"type":"x","sessionId":"s","source":"user","timestamp":"t","action":"run","args":{}}"#;
    for wanted in [CLAUDE, Form::Trajectory(Author::OpenHands)] {
        assert_eq!(Form::of(events.as_bytes(), Some(wanted)), Some(wanted));
    }
}
