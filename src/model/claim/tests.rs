use super::*;
use crate::model::{
    AutoTrigger, BranchStatus, CheckpointTrigger, FactOrigin, FieldMap, Key, Kind, OperationAuthor,
    SessionKind, Timestamp, Value,
};
use proptest::prelude::*;
use std::time::Duration;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Generates valid values of a field, from the description of its allowed values.
fn valid_values(allowed: &str) -> BoxedStrategy<Value> {
    if let Some(words) = allowed.strip_prefix("one of ") {
        let words: Vec<String> = words.split(", ").map(str::to_owned).collect();
        return prop::sample::select(words).prop_map(Value::from).boxed();
    }
    match allowed {
        "a text" => "[ -~]{0,8}".prop_map(Value::from).boxed(),
        "true or false" => any::<bool>().prop_map(Value::from).boxed(),
        "a whole number" => any::<i64>().prop_map(Value::from).boxed(),
        "a whole number from 0 on" | "a number, a text, true or false" => {
            any::<u64>().prop_map(Value::from).boxed()
        }
        "a number from 0 to 1" => (0.0..=1.0).prop_map(Value::Float).boxed(),
        "a number from -1 to 1" => (-1.0..=1.0).prop_map(|n: f64| Value::Float(n + 0.0)).boxed(),
        "true, false or a list of hypothesis ids" | "a list, each a text" => {
            prop::collection::vec("[a-z]{1,3}", 0..3).prop_map(Value::from).boxed()
        }
        "a map, each a text" => prop::collection::btree_map("[a-z]{1,3}", "[a-z]{1,3}", 0..3)
            .prop_map(|map| Value::Map(map.into_iter().map(|(k, v)| (k, v.into())).collect()))
            .boxed(),
        "any value" => any_value(),
        other => panic!("no strategy for {other}"),
    }
}

/// Generates any value without bytes and negative zero.
fn any_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|n: f64| Value::Float(n + 0.0)),
        "[ -~]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Generates values of a kind, with valid known fields, null fields and unknown fields.
fn values_of(kind: Kind) -> BoxedStrategy<Value> {
    let known: Vec<_> = fields(kind)
        .iter()
        .map(|field| {
            prop::option::of(
                prop_oneof![4 => valid_values(&field.allowed()), 1 => Just(Value::Null)],
            )
            .prop_map(|value| value.map(|value| (field.name.to_owned(), value)))
        })
        .collect();
    (known, prop::collection::btree_map("x_[a-z]{1,3}", any_value(), 0..3))
        .prop_map(|(known, mut unknown)| {
            unknown.extend(known.into_iter().flatten());
            Value::Map(unknown.into_iter().collect())
        })
        .boxed()
}

#[test]
fn is_checked_rejects_a_value_that_check_changes_or_refuses() {
    for text in [
        r#"{"description": null}"#, r#"{"x": [{"y": null}]}"#, r#"{"x": -0.0}"#,
        r#"{"confidence": 1}"#, r#"{"confidence": 1.5}"#, r#"{"status": "odd"}"#,
        r#"{"tags": ["a", 1]}"#, "7",
    ] {
        assert!(!is_checked(Kind::Hypothesis, &json(text)), "{text}");
    }
    assert!(!is_checked(Kind::Note, &Value::from([("x", Value::Float(f64::NAN))])));
}

proptest! {
    #[test]
    fn check_only_removes_nulls_from_a_valid_value(
        (kind, value) in prop::sample::select(Kind::ALL)
            .prop_flat_map(|kind| (Just(kind), values_of(kind)))
    ) {
        let checked = check(kind, &value).unwrap();
        prop_assert!(is_checked(kind, &checked));
        prop_assert_eq!(is_checked(kind, &value), checked == value);
        prop_assert_eq!(&checked, &value.without_nulls());
        prop_assert_eq!(check(kind, &checked), Ok(checked));
    }

    #[test]
    fn check_accepts_any_value_of_a_known_field_or_names_the_field(
        (kind, field, value) in prop::sample::select(Kind::ALL).prop_flat_map(|kind| {
            let names: Vec<_> = fields(kind).iter().map(|field| field.name).collect();
            (Just(kind), prop::sample::select(names), any_value())
        })
    ) {
        let map = Value::Map(FieldMap::from([(field.to_owned(), value)]));
        if let Err(error) = check(kind, &map) {
            prop_assert_eq!(error.field.as_deref(), Some(field));
            prop_assert_eq!(error.kind, kind);
        }
    }
}

#[test]
fn check_names_kind_field_value_and_allowed_values_of_a_wrong_field() {
    for (kind, text, message) in [
        (
            Kind::Hypothesis,
            r#"{"confidence": 1.7}"#,
            "field 'confidence' of hypothesis is 1.7: use a number from 0 to 1",
        ),
        (
            Kind::Hypothesis,
            r#"{"status": "maybe"}"#,
            "field 'status' of hypothesis is \"maybe\": \
             use one of active, under_test, confirmed, rejected, archived",
        ),
        (
            Kind::Evidence,
            r#"{"strength": -2}"#,
            "field 'strength' of evidence is -2: use a number from -1 to 1",
        ),
        (
            Kind::Belief,
            r#"{"evidence": ["e1", 3]}"#,
            "field 'evidence' of belief is a list with 3: use a list, each a text",
        ),
        (
            Kind::Gap,
            r#"{"blocking": "H1"}"#,
            "field 'blocking' of gap is \"H1\": use true, false or a list of hypothesis ids",
        ),
        (Kind::Note, "[]", "note is a list: use a map of fields"),
        (
            Kind::Note,
            r#"{"description": {"a": 1}}"#,
            "field 'description' of note is a map: use a text",
        ),
        (
            Kind::Command,
            r#"{"exit_code": 1.5}"#,
            "field 'exit_code' of command is 1.5: use a whole number",
        ),
    ] {
        assert_eq!(check(kind, &json(text)).unwrap_err().to_string(), message);
    }
}

/// Regression: a measured value could be bytes, which its description does not allow.
#[test]
fn check_when_a_measured_value_is_bytes_refuses_it() {
    let measured = |value: Value| check(Kind::Measurement, &Value::from([("value", value)]));
    for value in [Value::Int(-1), Value::UInt(u64::MAX), 0.5.into(), "high".into(), true.into()] {
        assert!(measured(value.clone()).is_ok(), "{value:?}");
    }
    assert_eq!(
        measured(Value::Bytes(vec![1])).unwrap_err().to_string(),
        "field 'value' of measurement is bytes: use a number, a text, true or false"
    );
}

#[test]
fn check_refuses_a_number_that_is_not_finite_anywhere() {
    for number in [f64::NAN, f64::INFINITY] {
        let deep = Value::from([("x", Value::List(vec![Value::Float(number)]))]);
        assert!(check(Kind::Note, &deep).is_err());
        assert!(check(Kind::Evidence, &Value::from([("strength", number.into())])).is_err());
    }
}

#[test]
fn check_when_a_value_is_too_deep_refuses_it() {
    let nested = |depth: usize| (0..depth).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let value = |depth| Value::from([("x", nested(depth))]);
    assert!(check(Kind::Output, &value(MAX_DEPTH)).is_ok());
    assert_eq!(
        check(Kind::Output, &value(MAX_DEPTH + 1)).unwrap_err().to_string(),
        "field 'x' of output is a list or map nested too deep: use lists and maps at most 100 deep"
    );
}

#[test]
fn check_stores_equal_numbers_in_the_same_type() {
    let checked = check(Kind::Hypothesis, &json(r#"{"confidence": 1, "x": 1}"#)).unwrap();
    assert_eq!(checked, json(r#"{"confidence": 1.0, "x": 1}"#));
    let checked = check(Kind::Command, &json(r#"{"exit_code": 2.0}"#)).unwrap();
    assert_eq!(checked, json(r#"{"exit_code": 2}"#));
    let Value::Map(checked) = check(Kind::Note, &json(r#"{"x": -0.0}"#)).unwrap() else {
        panic!("check returned no map")
    };
    assert_eq!(checked["x"].as_f64().unwrap().to_bits(), 0);
}

#[test]
fn check_keeps_a_field_of_another_kind_unchanged() {
    for (kind, text) in [
        (Kind::Note, r#"{"confidence": 7, "tags": "none"}"#),
        (Kind::Evidence, r#"{"status": "whatever", "confidence": "high"}"#),
        (Kind::Dependency, r#"{"description": 3}"#),
    ] {
        assert_eq!(check(kind, &json(text)), Ok(json(text)));
    }
}

#[test]
fn a_text_reference_is_accepted_in_a_fact_and_refused_in_a_claim() {
    let long = json(&format!(
        r#"{{"$text": {{"preview": "be", "bytes": 9000, "hash": "{}"}}}}"#,
        "0".repeat(64)
    ));
    let value = Value::from([("command", long.clone())]);
    assert_eq!(check(Kind::Command, &value), Ok(value.clone()));
    let command = ExecutedCommand::from_value(&value).unwrap().command.unwrap();
    assert_eq!((command.preview(), command.whole().unwrap().bytes), ("be", 9000));
    assert_eq!((&*command.shown(), &*FactText::from("be").shown()), ("be…", "be"));
    assert!(check(Kind::Note, &Value::from([("description", long)])).is_err());
}

#[test]
fn an_id_of_wrong_form_is_refused_with_the_reason() {
    for id in ["H1", "b1->b2", "\u{e9}t\u{e9}", &"x".repeat(200), "a b"] {
        assert_eq!(check_id(id), Ok(()));
    }
    for (id, problem) in [
        ("", "is empty"),
        (&*"x".repeat(201), "is too long"),
        ("a\u{1b}[31m", "holds a control character"),
        ("a\u{9b}", "holds a control character"),
        (" a", "begins or ends with a space"),
        ("a ", "begins or ends with a space"),
    ] {
        let error = check_id(id).unwrap_err();
        assert_eq!(error.problem, problem);
        assert!(!error.to_string().chars().any(char::is_control));
    }
}

#[test]
fn references_name_every_claim_referred_to_once() {
    let names = |kind, text| -> Vec<String> {
        references(kind, &json(text)).iter().map(Key::to_string).collect()
    };
    assert_eq!(names(Kind::Hypothesis, r#"{"parent": "H1"}"#), ["hypothesis H1"]);
    assert_eq!(names(Kind::Evidence, r#"{"hypothesis": "H1"}"#), ["hypothesis H1"]);
    assert_eq!(
        names(Kind::Belief, r#"{"hypothesis": "H1", "evidence": ["e2", "e1", "e2"]}"#),
        ["hypothesis H1", "evidence e1", "evidence e2"]
    );
    assert_eq!(
        names(Kind::Dependency, r#"{"from": "b2", "to": "b1"}"#),
        ["belief b1", "belief b2"]
    );
    assert_eq!(names(Kind::Gap, r#"{"blocking": ["H2"]}"#), ["hypothesis H2"]);
    assert!(names(Kind::Gap, r#"{"blocking": true}"#).is_empty());
    assert!(names(Kind::Note, r#"{"parent": "H1", "hypothesis": "H2"}"#).is_empty());
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_micros(number * 1_000_000)
}

#[test]
fn periods_that_overlap_count_once() {
    let seconds_in_debugging = |periods: &[(i64, i64)]| {
        let periods = periods.iter().map(|(start, end)| second(*start)..=second(*end));
        time_in_debugging(periods).as_secs()
    };
    assert_eq!(seconds_in_debugging(&[]), 0);
    assert_eq!(seconds_in_debugging(&[(10, 10)]), 0);
    assert_eq!(seconds_in_debugging(&[(100, 900), (0, 1000), (200, 300)]), 1000);
    assert_eq!(seconds_in_debugging(&[(0, 100), (50, 200), (500, 600), (901, 901)]), 600);
}

#[test]
fn metrics_count_claims_and_skip_idle_time() {
    let values = |texts: &[&str]| -> Vec<Value> {
        texts.iter().map(|status| Value::from([("status", (*status).into())])).collect()
    };
    let hypotheses = values(&["active", "under_test", "confirmed", "rejected", "archived"]);
    let gaps = values(&["open", "filled", "obsolete"]);
    let mut verifications = values(&["passed", "skipped", "failed"]);
    verifications.push(Value::from([]));
    // The times are not in order. The pauses are 60 s, exactly the limit, and more than the limit.
    let times = [60, 0, 360, 661].map(second);
    let events = times.map(|time| time..=time);
    let metrics = SessionMetrics::compute(7, &hypotheses, &gaps, &verifications, events);
    assert_eq!(
        metrics,
        SessionMetrics {
            checkpoints_created: 7,
            hypotheses_tested: 3,
            verifications_run: 3,
            gaps_filled: 1,
            time_in_debugging: Duration::from_secs(360),
        }
    );
    let json = serde_json::to_value(metrics).unwrap();
    assert_eq!(json["time_in_debugging_seconds"], 360.0);
}

#[test]
fn every_status_is_read_back_from_its_word() {
    for status in HypothesisStatus::ALL {
        assert_eq!(status.word().parse(), Ok(*status));
    }
    let error = "done".parse::<GapStatus>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown gap status \"done\": use one of open, filling, filled, unfillable, obsolete"
    );
}

#[test]
fn the_glossary_has_every_word_and_field_of_the_code() {
    fn word(word: impl serde::Serialize) -> String {
        serde_json::to_value(word).unwrap().as_str().unwrap().to_owned()
    }
    let page = include_str!("../../../docs/glossary.md");
    let has = |text: &str| assert!(page.contains(text), "not in docs/glossary.md: {text}");
    for list in VOCABULARIES {
        let heading = format!("### {}\n", list.what);
        let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("no {heading}"));
        let section = section.split("\n#").next().unwrap();
        let words: Vec<_> = section
            .lines()
            .filter_map(|line| line.strip_prefix("- `")?.split('`').next())
            .collect();
        assert_eq!(words, list.words, "{}", list.what);
    }
    for &kind in Kind::ALL {
        has(&format!("**`{}`**, several `{}`: ", kind.name(), kind.plural()));
        for field in fields(kind) {
            has(&format!("| `{}` | {} | {} |", field.name, field.about, field.allowed()));
        }
    }
    let triggers = [
        AutoTrigger::HypothesisStatusChange,
        AutoTrigger::NewContradictionDetected,
        AutoTrigger::VerificationComplete,
        AutoTrigger::BranchSwitch,
        AutoTrigger::GapFilled,
        AutoTrigger::CodeModified,
        AutoTrigger::SignificantTimePassed,
        AutoTrigger::ContextCompactionWarning,
    ];
    let words = triggers.map(word).into_iter().chain(BranchStatus::ALL.map(word));
    let words = words.chain(SessionKind::ALL.map(word)).chain(FactOrigin::ALL.map(word));
    let words = words.chain([OperationAuthor::Asked, OperationAuthor::Hook].map(word));
    let words = words.chain([CheckpointTrigger::Manual, CheckpointTrigger::Scheduled].map(word));
    words.for_each(|word| has(&format!("`{word}`")));
}

#[test]
fn a_task_is_open_until_its_agent_says_otherwise() {
    let open = |text: &str| Task::from_value(&json(text)).unwrap().is_open();
    for text in ["{}", r#"{"status": "in_progress"}"#, r#"{"status": "some new word"}"#] {
        assert!(open(text), "{text}");
    }
    for text in [r#"{"status": "completed"}"#, r#"{"status": "dropped"}"#] {
        assert!(!open(text), "{text}");
    }
}
