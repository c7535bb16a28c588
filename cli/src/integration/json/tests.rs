use super::*;
use crate::integration::splice::TextSplice;
use proptest::prelude::*;
use serde_json::json;

fn element(path: &[&str], value: &str) -> JsonEdit {
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    JsonEdit::Element { path, value: value.into() }
}

fn member(path: &[&str], value: CstInputValue) -> JsonEdit {
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    JsonEdit::Member { path, value, keep: false }
}

#[test]
fn an_edit_keeps_comments_and_formatting() {
    let text = "{\n  // mine\n  \"z\": 1,  /* why */\n  \"permissions\": {\n    \"allow\": [\"Bash(ls)\", ],\n  },\n}\n";
    let edit = element(&["permissions", "allow"], "Bash(forge)");
    let edited = apply_edit(text, &edit).unwrap();
    assert_eq!(
        edited,
        "{\n  // mine\n  \"z\": 1,  /* why */\n  \"permissions\": {\n    \"allow\": [\"Bash(ls)\", \"Bash(forge)\" ],\n  },\n}\n"
    );
    // A second edit changes nothing.
    assert_eq!(apply_edit(&edited, &edit).unwrap(), edited);
}

#[test]
fn missing_objects_on_the_path_are_created() {
    let edit = member(&["a", "b", "c"], CstInputValue::Number("1".to_owned()));
    for text in ["", "{}", "\u{feff}{ }", "{\"a\": {}}", " // only a remark\n"] {
        let edited = apply_edit(text, &edit).unwrap();
        assert_eq!(values(&edited).unwrap(), json!({"a": {"b": {"c": 1}}}), "{edited}");
        assert_eq!(text.starts_with('\u{feff}'), edited.starts_with('\u{feff}'));
    }
}

#[test]
fn an_added_line_ends_as_the_others_do() {
    let edited = apply_edit("{\r\n  \"a\": 1\r\n}\r\n", &element(&["b"], "x")).unwrap();
    assert!(!edited.replace("\r\n", "").contains('\n'), "{edited:?}");
}

#[test]
fn text_that_is_not_json_or_a_value_of_another_type_is_refused() {
    let edit = element(&["a", "b"], "x");
    for (text, reason) in [
        ("{", "it is not JSON"),
        ("{\"a\": 1} {", "it is not JSON"),
        ("{'a': 1}", "it is not JSON"),
        ("{\"a\" 1}", "it is not JSON"),
        ("[]", "it holds no JSON object"),
        ("{\"a\": []}", "'a' in it is not an object"),
        ("{\"a\": {\"b\": {}}}", "'a.b' in it is not an array"),
    ] {
        let error = apply_edit(text, &edit).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{text}: {error}");
    }
    let taken = apply_edit("{\"a\": {\"b\": 2}}", &member(&["a", "b"], true.into())).unwrap_err();
    assert_eq!(taken.to_string(), "'a.b' in it belongs to another program");
}

#[test]
fn a_list_that_becomes_empty_is_removed_and_a_list_that_was_empty_stays() {
    let is_x = |_: &[String], value: &serde_json::Value| value == "x";
    let text = "{\n  \"a\": {\"b\": [\"x\"]},\n  \"kept\": [],\n  \"c\": [\"x\", \"y\"]\n}\n";
    let left = without(text, &is_x, &[]).unwrap();
    assert_eq!(values(&left).unwrap(), json!({"kept": [], "c": ["y"]}));
    assert_eq!(without("{ \"a\": [ ] }", &is_x, &[]).unwrap(), "{ \"a\": [ ] }");
}

/// Generates settings as people write them, with any formatting, comments and trailing commas.
fn jsonc() -> impl Strategy<Value = String> {
    let gap = prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        2 => Just("\n    ".to_owned()),
        1 => Just(" // x: \"{\n".to_owned()),
        1 => Just("/* [ */".to_owned()),
        1 => Just("\r\n\t".to_owned()),
    ];
    let scalar = prop_oneof![
        Just("1.50e3".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        "\"[a-zé/ ]{0,5}\"",
        Just("\"\\u00e9\\\"// no remark\"".to_owned()),
    ];
    let name = prop_oneof![Just("hooks"), Just("permissions"), Just("allow"), Just("a"), Just("é")];
    let gap = gap.boxed();
    let inner_gap = gap.clone();
    scalar
        .prop_recursive(3, 20, 4, move |inner| {
            let (gap, member_gap) = (inner_gap.clone(), inner_gap.clone());
            let array =
                (prop::collection::vec((gap.clone(), inner.clone(), gap), 0..4), any::<bool>())
                    .prop_map(|(elements, comma)| {
                        let parts: Vec<String> = elements
                            .into_iter()
                            .map(|(a, value, b)| [a, value, b].concat())
                            .collect();
                        let end = if comma && !parts.is_empty() { "," } else { "" };
                        format!("[{}{end}]", parts.join(","))
                    });
            let members = prop::collection::btree_map(
                name.clone(),
                (member_gap.clone(), inner, member_gap),
                0..4,
            );
            let object = (members, any::<bool>()).prop_map(|(members, comma)| {
                let parts: Vec<String> = members
                    .into_iter()
                    .map(|(name, (a, value, b))| format!("{a}\"{name}\":{b}{value}{a}"))
                    .collect();
                let end = if comma && !parts.is_empty() { "," } else { "" };
                format!("{{{}{end}}}", parts.join(","))
            });
            prop_oneof![1 => array, 3 => object]
        })
        .prop_flat_map(move |text| (gap.clone(), Just(text), gap.clone()))
        .prop_map(|(a, text, b)| [a, text, b].concat())
}

proptest! {
    #[test]
    fn an_edit_adds_one_value_and_is_undone_to_the_byte(text in jsonc(), deep in any::<bool>()) {
        let before = values(&text).unwrap();
        let path: &[&str] = if deep { &["permissions", "allow"] } else { &["hooks"] };
        let edit = element(path, "forge's own");
        let Ok(edited) = apply_edit(&text, &edit) else {
            // Another value is at the path.
            return Ok(());
        };
        let splice = TextSplice::between(&text, &edited).unwrap();
        prop_assert_eq!(splice.undo(&edited), Some(text));
        prop_assert_eq!(&apply_edit(&edited, &edit).unwrap(), &edited);
        // If the array was not empty before, removing the value gives the values from before.
        let after = values(&edited).unwrap();
        let left = without(&edited, &|_, value| value == "forge's own", &[]).unwrap();
        let (left, pointer) = (values(&left).unwrap(), format!("/{}", path.join("/")));
        let last = after.pointer(&pointer).unwrap().as_array().unwrap().last().unwrap().clone();
        prop_assert_eq!(last, "forge's own");
        if before.pointer(&pointer).is_some_and(|array| array != &json!([])) {
            prop_assert_eq!(left, before);
        }
    }
}
