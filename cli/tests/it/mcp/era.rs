//! The two eras of the protocol: their differences, and what they have in common.

use super::{Server, meta, place};
use serde_json::{Value, json};

#[test]
fn a_client_of_2026_needs_no_handshake() {
    let environment = place();
    let mut server = Server::begin(&environment);
    // The probe is answered even without data about the client.
    let answer = server.request("server/discover", &json!({}));
    let found = &answer["result"];
    assert_eq!(found["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!(found["capabilities"], json!({ "prompts": {}, "resources": {}, "tools": {} }));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "forge");
    assert_eq!(found["resultType"], "complete");
    let tools = &server.modern("tools/list", json!({}))["result"];
    assert_eq!(
        (&tools["resultType"], &tools["cacheScope"], &tools["ttlMs"]),
        (&json!("complete"), &json!("public"), &json!(3_600_000))
    );
    let brief = server.call("brief", &json!({}));
    assert_eq!(brief["resultType"], "complete");
    // These methods do not exist in this era.
    for method in ["ping", "logging/setLevel"] {
        assert_eq!(server.modern(method, json!({ "level": "info" }))["error"]["code"], -32601);
    }
    let (code, rest, stderr) = server.end();
    assert_eq!((code, rest.as_str(), stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn a_client_of_2025_begins_with_a_handshake() {
    let environment = place();
    let mut server = Server::of_2025(&environment);
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
    let tools = &server.request("tools/list", &json!({}))["result"];
    assert!(tools.get("resultType").is_none(), "the older form has no such field");
    let params = json!({ "name": "record_gap", "arguments": { "description": "which node?" } });
    let answer = server.request("tools/call", &params);
    assert_eq!(answer["result"]["structuredContent"]["id"], "G1", "{answer}");
    assert!(answer["result"].get("resultType").is_none());
    let (code, rest, stderr) = server.end();
    assert_eq!((code, rest.as_str(), stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn both_eras_are_shown_the_same_tools_in_the_same_order() {
    let environment = place();
    let modern = Server::begin(&environment).modern("tools/list", json!({}));
    let older = Server::of_2025(&environment).request("tools/list", &json!({}));
    assert_eq!(modern["result"]["tools"], older["result"]["tools"]);
}

#[test]
fn a_probe_may_be_followed_by_a_handshake() {
    let environment = place();
    let mut server = Server::begin(&environment);
    assert!(server.request("server/discover", &json!({}))["error"].is_null());
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let answer = server.request("initialize", &params);
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert!(server.request("tools/list", &json!({}))["error"].is_null());
}

#[test]
fn an_unknown_version_is_refused_with_a_list_of_the_known_ones() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let mut of_tomorrow = meta(&json!({}));
    of_tomorrow["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let error = &server.request("tools/list", &json!({ "_meta": of_tomorrow }))["error"];
    assert_eq!(
        (&error["code"], &error["data"]["requested"]),
        (&json!(-32022), &json!("2031-01-01"))
    );
    assert_eq!(error["data"]["supported"][0], "2026-07-28");
    // An older client that names an unknown version is offered the newest one with a handshake.
    let params = json!({
        "protocolVersion": "2031-01-01",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    assert_eq!(server.request("initialize", &params)["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn requests_before_the_handshake_are_refused() {
    let environment = place();
    let mut server = Server::begin(&environment);
    // Regression: a notification before anything else ended the service.
    server
        .send(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#);
    let answer = server.request("tools/list", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(server.modern("tools/list", json!({}))["error"].is_null());
}

#[test]
fn all_requests_before_the_end_of_the_input_are_answered() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let note = |number: usize| {
        json!({
            "_meta": meta(&json!({})),
            "name": "record_finding",
            "arguments": { "kind": "note", "description": format!("note {number}") },
        })
    };
    for number in 1..=20 {
        server.ask("tools/call", &note(number));
    }
    let (code, rest, _) = server.end();
    assert_eq!(code, Some(0));
    let mut answers: Vec<Value> =
        rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<&str> = answers
        .iter()
        .map(|answer| answer["result"]["structuredContent"]["id"].as_str().unwrap())
        .collect();
    // The notes are written in the order of the requests, although the requests are received
    // concurrently.
    let wanted: Vec<String> = (1..=20).map(|number| format!("N{number}")).collect();
    assert_eq!(ids, wanted);
}
