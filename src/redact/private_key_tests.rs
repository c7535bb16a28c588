//! Redaction of private keys in the forms in which programs and agents write them.

use super::*;

/// Returns all lines of a random key, and the lines between the first and the last one.
fn key_lines() -> (Vec<String>, Vec<String>) {
    let body: Vec<String> =
        (0..7).map(|line| noise(700 + line, 64)).chain([format!("{}==", noise(710, 22))]).collect();
    let mark = |word: &str| format!("{0}{word} RSA {1} KEY{0}", "-----", "PRIVATE");
    let lines = [mark("BEGIN")].into_iter().chain(body.clone()).chain([mark("END")]).collect();
    (lines, body)
}

/// Returns the lines of a key that are still in a text after redaction. Checks that redacting again
/// changes nothing, and that JSON stays valid.
fn leaked(text: &str, form: TextForm, body: &[String]) -> Vec<String> {
    let clean = Redactor::new().clean(text, form).into_owned();
    assert_eq!(Redactor::new().clean(&clean, form), clean);
    if form == TextForm::Json {
        serde_json::from_str::<serde_json::Value>(&clean).unwrap();
    }
    body.iter().filter(|line| clean.contains(*line)).cloned().collect()
}

#[test]
fn a_key_with_prefixes_or_unusual_line_ends_is_redacted() {
    let (lines, body) = key_lines();
    for (prefix, end) in [
        ("", "\n"),
        ("+", "\n"),
        ("-", "\n"),
        ("    12\u{2192}", "\n"),
        ("    12\t", "\n"),
        ("12 | ", "\n"),
        ("api-7  | ", "\n"),
        ("\u{2502} ", "\n"),
        ("> ", "\n"),
        ("# ", "\n"),
        (" * ", "\n"),
        ("host.pem:12:", "\n"),
        ("2026-02-03T04:05:06.789Z stdout F ", "\n"),
        ("", "$\n"),
        ("", "^M$\n"),
        ("", "<br>"),
        ("", "<br />\n"),
        ("", "%0A"),
        ("", "%0D%0A"),
        ("", "\\u000a"),
        ("", "\\x0a"),
        ("", "&#10;"),
        ("", " "),
        ("\u{1b}[32m+\u{1b}[m\u{1b}[32m", "\u{1b}[m\n"),
        ("'", "\\n' +\n    "),
    ] {
        let text: String = lines.iter().map(|line| format!("{prefix}{line}{end}")).collect();
        let text = format!("before\n{text}\nafter\n");
        assert_eq!(leaked(&text, TextForm::Plain, &body), [""; 0], "{prefix:?} {end:?}");
        let json = serde_json::json!({ "out": text, "next": "kept" }).to_string();
        assert_eq!(leaked(&json, TextForm::Json, &body), [""; 0], "{prefix:?} {end:?}");
        assert!(Redactor::new().clean(&json, TextForm::Json).contains("\"next\":\"kept\""));
        // `tail` may print only the end of a key, and `head` only its beginning.
        let tail = text.split_once("KEY-----").unwrap().1;
        assert_eq!(leaked(tail, TextForm::Plain, &body), [""; 0], "{prefix:?} {end:?}");
        let head = text.rsplit_once("-----END").unwrap().0;
        let left = leaked(&format!("{head}\nand so on"), TextForm::Plain, &body[..7]);
        assert_eq!(left, [""; 0], "{prefix:?} {end:?}");
    }
}

#[test]
fn a_key_whose_lines_are_items_of_a_list_is_redacted() {
    let (lines, body) = key_lines();
    for prefix in ["", "+", "  3\u{2192}"] {
        let lines: Vec<String> = lines.iter().map(|line| format!("{prefix}{line}")).collect();
        let list = serde_json::json!({ "lines": lines, "next": ["kept"] });
        for json in [
            list.to_string(),
            serde_json::to_string_pretty(&list).unwrap(),
            serde_json::json!({ "inner": list.to_string() }).to_string(),
        ] {
            assert_eq!(leaked(&json, TextForm::Json, &body), [""; 0], "{json}");
            assert!(Redactor::new().clean(&json, TextForm::Json).contains("kept"), "{json}");
        }
        let tail = serde_json::json!({ "lines": lines[3..] }).to_string();
        assert_eq!(leaked(&tail, TextForm::Json, &body), [""; 0], "{tail}");
    }
}

#[test]
fn text_that_has_only_the_marks_of_a_key_stays() {
    let mark = |word: &str| format!("{0}{word} {1} KEY{0}", "-----", "PRIVATE");
    for text in [
        format!("if line == \"{}\" {{ return decode_the_whole_body_of_it(); }}", mark("BEGIN")),
        format!("a.replace(\"{}\", \"\").replace(\"{}\", \"\")", mark("BEGIN"), mark("END")),
        format!("the checksum is {}\n\nuse {} here", noise(5, 32), mark("END")),
    ] {
        assert_eq!(Redactor::new().clean(&text, TextForm::Plain), text);
    }
}
