//! Invalid messages: each is answered with an error, and the server continues.

use super::{Server, place};
use serde_json::json;

#[test]
fn invalid_requests_get_an_error_and_the_server_continues() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"brief","arguments":{{"at":{}1{}}}}}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let cases: [(&[u8], i64); 11] = [
        (b"hello", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,", -32700),
        (b"\xff\xfe\x00", -32700),
        (deep.as_bytes(), -32700),
        (deep_arguments.as_bytes(), -32700),
        (b"[]", -32600),
        (b"17", -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":4,"method":["ping"]}"#, -32600),
    ];
    for (line, code) in cases {
        server.send(line);
        let answer = server.read();
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    }
    // Empty lines and unknown notifications get no answer.
    server.send(b"");
    server.send(b" \t\r");
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/of_another_protocol","params":[1]}"#);
    assert!(server.modern("tools/list", json!({}))["error"].is_null());
}

#[test]
fn a_text_that_is_cut_within_an_emoji_is_read() {
    let environment = place();
    let mut server = Server::of_2025(&environment);
    let lines: [&[u8]; 2] = [
        br#"{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"record_finding","arguments":{"kind":"note","description":"cut \ud83d"}}}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":\"n\",\"method\":\"tools/call\",\"params\":{\"name\":\"record_finding\",\"arguments\":{\"kind\":\"note\",\"description\":\"cut \xf0\x9f\"}}}",
    ];
    for line in lines {
        server.send(line);
        let answer = server.read();
        assert_eq!(answer["id"], "n", "{answer}");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let long = vec![b'x'; 9 * 1024 * 1024];
    server.send(&long);
    let answer = server.read();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("at most 4194304 bytes"));
    let text = "y".repeat(1024 * 1024);
    let note = json!({ "kind": "note", "description": text });
    assert_eq!(server.found("record_finding", &note)["id"], "N1");
    // An answer contains a limited part of a long text.
    let state = server.found("state", &json!({ "kinds": ["note"] }));
    assert!(state.to_string().len() < 4000, "{}", state.to_string().len());
    let whole = server.found("state", &json!({ "kinds": ["note"], "id": "N1", "full": true }));
    assert!(whole.to_string().len() < 64 * 1024, "{}", whole.to_string().len());
}

#[test]
fn parameters_of_another_form_are_refused_by_name() {
    let environment = place();
    let mut server = Server::begin(&environment);
    assert!(server.modern("tools/list", json!({}))["error"].is_null());
    let answer = server.modern("tools/call", json!({ "name": 7 }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = server.modern("tools/call", json!({ "name": "brief", "arguments": "all" }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = server.modern("tools/call", json!({ "name": "forget\u{1b}[2J" }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(!answer.to_string().contains("\\u001b"), "{answer}");
    let answer = server.modern("tools/erase", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert_eq!(answer["error"]["message"], "there is no method 'tools/erase'");
    let answer = server.modern("tools/list", json!({ "cursor": "7" }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(server.modern("prompts/list", json!({}))["error"].is_null());
}
