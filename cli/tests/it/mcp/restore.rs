//! A restore needs consent to the preview, in both eras.

use super::{Server, meta, place};
use serde_json::{Value, json};

fn notes(server: &mut Server, texts: &[&str]) {
    for text in texts {
        server.found("record_finding", &json!({ "kind": "note", "description": text }));
    }
}

fn count(server: &mut Server) -> Value {
    server.found("state", &json!({ "kinds": ["note"] }))["counts"]["note"].clone()
}

/// Calls `restore` with the protocol of 2026-07-28, as a client that can ask its user.
fn call_restore(server: &mut Server, more: &Value) -> Value {
    let mut params = json!({
        "_meta": meta(&json!({ "elicitation": {} })),
        "name": "restore",
        "arguments": { "moment": "#1" },
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let answer = server.request("tools/call", &params);
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

#[test]
fn a_restore_needs_the_users_consent_if_the_client_can_request_it() {
    let environment = place();
    let mut server = Server::begin(&environment);
    notes(&mut server, &["one", "two\u{1b}[2J"]);
    let question = call_restore(&mut server, &json!({}));
    assert_eq!(question["resultType"], "input_required", "{question}");
    let request = &question["inputRequests"]["confirm"];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["requestedSchema"]["required"], json!(["confirm"]));
    let state = &question["requestState"];
    assert_eq!(count(&mut server), 2, "asking changes nothing");
    let answered = |action: &str, confirm: bool, state: &Value| {
        let response = json!({ "action": action, "content": { "confirm": confirm } });
        json!({ "inputResponses": { "confirm": response }, "requestState": state })
    };
    for (action, confirm) in [("decline", true), ("cancel", true), ("accept", false)] {
        let result = call_restore(&mut server, &answered(action, confirm, state));
        let found = &result["structuredContent"];
        assert_eq!((&found["done"], &found["confirm_token"]), (&json!(false), &Value::Null));
        assert!(found["next"].as_str().unwrap().contains("refused"), "{found}");
    }
    assert_eq!(count(&mut server), 2);
    // Consent to another preview does not count.
    let result = call_restore(&mut server, &answered("accept", true, &json!("0123456789abcdef")));
    assert_eq!(result["resultType"], "input_required", "{result}");
    let result = call_restore(&mut server, &answered("accept", true, state));
    let found = &result["structuredContent"];
    assert_eq!((&found["done"], &found["revision"]), (&json!(true), &json!(3)), "{result}");
    assert_eq!(count(&mut server), 1);
    let _ = environment.forge(["undo"]).success();
    assert_eq!(count(&mut server), 2);
}

#[test]
fn a_client_without_user_prompts_confirms_a_restore_with_the_previews_token() {
    let environment = place();
    let mut server = Server::begin(&environment);
    notes(&mut server, &["one", "two", "three"]);
    let preview = server.found("restore", &json!({ "moment": "#1" }));
    assert_eq!((&preview["done"], &preview["revision"]), (&json!(false), &Value::Null));
    assert_eq!(preview["changes"].as_array().map(Vec::len), Some(2), "{preview}");
    assert!(preview["next"].as_str().unwrap().contains("'confirm'"), "{preview}");
    let token = preview["confirm_token"].clone();
    // Something else is written in the meantime, so the consent no longer counts.
    notes(&mut server, &["four"]);
    let stale = server.found("restore", &json!({ "moment": "#1", "confirm": token }));
    assert_eq!(stale["done"], false);
    assert!(stale["next"].as_str().unwrap().contains("written since"), "{stale}");
    let token = stale["confirm_token"].clone();
    let other = server.found("restore", &json!({ "moment": "#2", "confirm": token }));
    assert_eq!(other["done"], false, "a yes to #1 is none to #2");
    let done = server.found("restore", &json!({ "moment": "#1", "confirm": token }));
    assert_eq!((&done["done"], &done["confirm_token"]), (&json!(true), &Value::Null));
    assert_eq!(count(&mut server), 1);
}

#[test]
fn a_client_of_2025_confirms_a_restore_with_a_token() {
    let environment = place();
    let mut server = Server::of_2025(&environment);
    let mut call = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        server.request("tools/call", &params)["result"]["structuredContent"].clone()
    };
    for text in ["one", "two"] {
        call("record_finding", json!({ "kind": "note", "description": text }));
    }
    let preview = call("restore", json!({ "moment": "#1" }));
    assert_eq!(preview["done"], false);
    let token = preview["confirm_token"].clone();
    let done = call("restore", json!({ "moment": "#1", "confirm": token }));
    assert_eq!(done["done"], true);
    assert_eq!(call("state", json!({ "kinds": ["note"] }))["counts"]["note"], 1);
}
