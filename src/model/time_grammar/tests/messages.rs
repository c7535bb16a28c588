//! The texts of errors and distances.

use super::*;

#[test]
fn every_refusal_of_a_time_gives_examples() {
    for text in [
        "",
        "soon",
        "20250230",
        "Jun 18 14:30",
        "2 hours ago at 14:00",
        "Wed Jun 18 14:30:00 CEST 2025",
        "2025-02-30",
        "14:30 CET",
        "last week",
        "tomorrow",
        "@9999999999999",
        "in 2 hours",
        "yesterday 14:30 or so",
    ] {
        let error = parse_time(text, now(), &BERLIN).unwrap_err();
        let examples: Vec<String> = error
            .to_string()
            .split('\'')
            .skip(1)
            .step_by(2)
            .filter(|quoted| *quoted != text && parse_time(quoted, now(), &BERLIN).is_ok())
            .map(str::to_owned)
            .collect();
        assert!(examples.len() >= 2, "{error}");
    }
    for text in ["", "two words", "HEAD^"] {
        let error = parse_moment(text, now(), &BERLIN).unwrap_err().to_string();
        assert!(error.contains("'HEAD~3'") && error.contains("'2 hours ago'"), "{error}");
    }
}

#[test]
fn an_error_about_a_future_time_names_that_time() {
    let error = parse_time("in 2 hours", now(), &BERLIN).unwrap_err();
    assert_eq!(
        error,
        TimeError::Future {
            text: "in 2 hours".to_owned(),
            time: Some(time("2025-06-18T16:45:30Z"))
        }
    );
    assert!(error.to_string().contains("(2025-06-18T16:45:30Z)"), "{error}");
}

#[test]
fn long_and_strange_text_is_quoted_briefly_and_escaped() {
    let long = "9".repeat(1 << 20);
    for text in [long.as_str(), &" x".repeat(1 << 19), &"~".repeat(1 << 20), &"é".repeat(1 << 20)]
    {
        let time = parse_time(text, now(), &BERLIN).unwrap_err().to_string();
        let moment = parse_moment(text, now(), &BERLIN).unwrap_err().to_string();
        let duration = parse_duration(text).unwrap_err().to_string();
        assert!(time.len() < 400 && duration.len() < 400, "{time} {duration}");
        assert!(moment.len() < 800, "{moment}");
        let quoted = time.split('\'').nth(1).unwrap();
        assert_eq!(quoted.chars().count(), 60, "{quoted}");
    }
    let exact = "x".repeat(60);
    let error = parse_time(&exact, now(), &BERLIN).unwrap_err().to_string();
    assert!(error.starts_with(&format!("'{exact}' is not")), "{error}");
    // An escape at the end is left out whole: no part of it is shown.
    let cut = "x".repeat(58) + "\0yyy";
    let error = parse_time(&cut, now(), &BERLIN).unwrap_err().to_string();
    assert!(error.starts_with(&format!("'{}…' is not", "x".repeat(58))), "{error}");
    let error = parse_time("2 hours\0\u{1b}[31m\u{202e}ago", now(), &BERLIN).unwrap_err();
    for text in
        ["2025-01-20T14:30Z[!\u{1b}x]", "2h 2h \u{1b}x", "when H3 was \u{1b}x", "2h \u{1b}x"]
    {
        let moment = parse_moment(text, now(), &BERLIN).unwrap_err().to_string();
        assert!(!moment.contains('\u{1b}') && moment.contains("u{1b}"), "{moment:?}");
    }
    assert!(error.to_string().starts_with(r"'2 hours\0\u{1b}[31m\u{202e}ago' is not"), "{error}");
}

#[test]
fn durations_are_parsed_to_microseconds() {
    for (text, micros) in [
        ("2h", 7_200_000_000),
        ("10m", 600_000_000),
        ("1.5s", 1_500_000),
        ("1d", 86_400_000_000),
        ("1 week", 604_800_000_000),
        ("an hour and 5 minutes", 3_900_000_000),
        ("7 µs", 7),
        ("7 \u{3bc}s", 7),
        ("0s", 0),
    ] {
        assert_eq!(parse_duration(text), Ok(micros), "{text}");
    }
    for (text, part) in [
        ("", "empty"),
        ("10", "unit is missing"),
        ("-2h", "no sign"),
        ("2h ago", "no 'ago'"),
        ("1 month", "no fixed length"),
        ("2h x", "'x' is not understood"),
        ("soon", "no number"),
        (".", "no number"),
        ("99999999999999999999h", "the duration is too long"),
        ("999999999999w", "the duration is too long"),
    ] {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("'2h30m'"), "{error}");
    }
}

#[test]
fn a_distance_has_at_most_two_units() {
    for (micros, text) in [
        (0, "0 s"),
        (7, "7 µs"),
        (1_999, "1 ms"),
        (250_000, "250 ms"),
        (1_999_999, "1 s"),
        (60_000_000, "1 min"),
        (125_000_000, "2 min 5 s"),
        (7_500_000_000, "2 h 5 min"),
        (7_230_000_000, "2 h"),
        (-7_500_000_000, "2 h 5 min"),
        (90_000_000_000, "1 d 1 h"),
        (34_560_000_000_000, "400 d"),
        (i64::MIN, "106751991 d 4 h"),
    ] {
        assert_eq!(describe_distance(micros), text);
    }
}
