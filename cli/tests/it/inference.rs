//! Inferences from messages are listed, promoted and dismissed. They never become claims by
//! themselves.

use crate::environment::Environment;

fn transcript() -> String {
    let line = |number: u64, text: &str| {
        let line = serde_json::json!({
            "type": "assistant", "uuid": format!("u{number}"), "sessionId": "s-1",
            "timestamp": format!("2026-01-28T10:00:{number:02}Z"), "cwd": "/w",
            "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
        });
        format!("{line}\n")
    };
    [
        line(1, "Let me look. The root cause is a stale cache. It might be the lock file, too."),
        line(2, "It is still unclear why the second test hangs."),
    ]
    .concat()
}

#[test]
fn inferences_are_promoted_or_put_aside() {
    let place = Environment::new();
    place.forge(["init"]).success();
    place.write("project/t.jsonl", &transcript());
    place.forge(["import", "claude-code", "t.jsonl"]).success();
    let state = place.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    assert!(state.to_string().contains("\"inferences\""), "{state}");
    assert!(!state.to_string().contains("\"source\":\"inference:"), "{state}");
    let ids = |extra: &[&str]| {
        let mut command = place.command(["inference", "list", "--json"]);
        let listed = place.finished(command.args(extra)).json();
        let listed = listed.pointer("/inferences").unwrap().as_array().unwrap().clone();
        listed.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["u1.1", "u1.2", "u2.1"]);
    place.forge(["inference", "promote", "u1.1", "--id", "b1"]).success();
    let belief = place.forge(["belief", "show", "b1"]).success();
    assert!(belief.contains("The root cause is a stale cache."), "{belief}");
    place.forge(["inference", "promote", "u2", "--id", "g1"]).success();
    assert!(place.forge(["gap", "list"]).success().contains("still unclear"));
    // A promoted inference names its claim, and is not offered again.
    assert_eq!(ids(&[]), ["u1.2"]);
    assert_eq!(ids(&["--promoted"]), ["u1.1", "u2.1"]);
    let shown = place.forge(["inference", "show", "u1.1", "--json"]).json();
    assert_eq!(shown.pointer("/inference/promoted"), Some(&"b1".into()), "{shown}");
    let again = place.forge(["inference", "promote", "u1.1"]);
    assert_eq!(again.code, 2, "{again}");
    assert!(again.stderr.contains("'u1.1' was already promoted to claim 'b1'"), "{again}");
    let dismissed = place.forge(["inference", "dismiss", "u1.1"]);
    assert_eq!(dismissed.code, 2, "{dismissed}");
    assert!(dismissed.stderr.contains("correct the claim instead"), "{dismissed}");
    place.forge(["inference", "dismiss", "u1.2", "--reason", "it was not"]).success();
    assert_eq!(ids(&[]), Vec::<String>::new());
    assert_eq!(ids(&["--dismissed"]), ["u1.2"]);
    assert_eq!(ids(&["--all"]).len(), 3);
    // It can be promoted nevertheless. After an undo it is dismissed again.
    place.forge(["inference", "promote", "u1.2", "--id", "b2"]).success();
    assert_eq!((ids(&["--dismissed"]).len(), ids(&["--promoted"]).len()), (0, 3));
    place.forge(["undo"]).success();
    assert_eq!(ids(&["--dismissed"]), ["u1.2"]);
}

#[test]
fn nothing_is_inferred_where_that_is_turned_off() {
    let place = Environment::new();
    place.forge(["init"]).success();
    place.forge(["config", "set", "inference.enabled", "false"]).success();
    place.write("project/t.jsonl", &transcript());
    place.forge(["import", "claude-code", "t.jsonl"]).success();
    assert!(!place.finished_raw(["checkpoint", "at", "HEAD", "--json"]).contains("root-cause"));
}
