//! The addresses in answers can be read, and prompts contain the current data.

use super::{Server, place};
use serde_json::{Value, json};

fn read(server: &mut Server, uri: &str) -> Value {
    let answer = server.modern("resources/read", json!({ "uri": uri }));
    assert!(answer["error"].is_null(), "{uri}: {answer}");
    assert_eq!(answer["result"]["cacheScope"], "private");
    let contents = &answer["result"]["contents"][0];
    assert_eq!(
        (&contents["uri"], &contents["mimeType"]),
        (&json!(uri), &json!("application/json"))
    );
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

#[test]
fn every_address_in_an_answer_can_be_read() {
    let environment = place().with("FORGE_SESSION", "");
    let mut server = Server::begin(&environment);
    let _ = environment.forge(["session", "new", "a/b c"]).success();
    let mut links = Vec::new();
    for (tool, arguments) in [
        ("record_hypothesis", json!({ "description": "the cache is stale" })),
        ("checkpoint", json!({ "message": "one" })),
        ("record_verification", json!({ "name": "x", "status": "passed" })),
        ("brief", json!({})),
        ("timeline", json!({})),
        ("diff", json!({ "from": "start", "to": "HEAD" })),
        ("why", json!({ "id": "H1" })),
        ("search", json!({ "query": "cache" })),
        ("restore", json!({ "moment": "HEAD" })),
    ] {
        let result = server.call(tool, &arguments);
        let content = result["content"].as_array().unwrap();
        let linked = content.iter().filter(|block| block["type"] == "resource_link");
        let linked: Vec<String> =
            linked.map(|link| link["uri"].as_str().unwrap().to_owned()).collect();
        assert!(!linked.is_empty(), "{tool}: {result}");
        links.extend(linked);
    }
    for uri in links {
        read(&mut server, &uri);
    }
    let entity = read(&mut server, "forge://session/a%2Fb%20c/entity/hypothesis/H1");
    assert_eq!(entity["entries"][0]["fields"]["description"], "the cache is stale");
    let state = read(&mut server, "forge://session/a%2Fb%20c/state/HEAD");
    assert_eq!(state["counts"]["verification"], 1, "{state}");
}

#[test]
fn every_listed_resource_and_template_can_be_read() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let note = json!({ "kind": "note", "description": "x" });
    server.found("record_finding", &note);
    let made = server.found("checkpoint", &json!({ "message": "one" }));
    let list = server.modern("resources/list", json!({}))["result"]["resources"].clone();
    for resource in list.as_array().unwrap() {
        read(&mut server, resource["uri"].as_str().unwrap());
    }
    let list = server.modern("resources/templates/list", json!({}));
    let list = list["result"]["resourceTemplates"].clone();
    let id = made["id"].as_str().unwrap();
    for template in list.as_array().unwrap() {
        let uri = template["uriTemplate"].as_str().unwrap();
        let uri = if uri.contains("checkpoint") { uri.replace("{id}", id) } else { uri.to_owned() };
        let uri = uri
            .replace("{session}", "project")
            .replace("{moment}", "HEAD")
            .replace("{from}", "start")
            .replace("{to}", "HEAD")
            .replace("{kind}", "note")
            .replace("{id}", "N1");
        assert!(!read(&mut server, &uri).is_null(), "{uri}");
    }
    let checkpoint = read(&mut server, &format!("forge://checkpoint/{id}"));
    assert_eq!(checkpoint["checkpoint"]["message"], "one");
    assert_eq!(checkpoint["state"]["counts"]["note"], 1);
}

#[test]
fn an_unknown_address_gets_the_error_code_of_the_protocol_version() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_finding", &json!({ "kind": "note", "description": "x" }));
    for uri in [
        "forge://",
        "forge://nothing",
        "forge://checkpoint/ffff",
        "forge://session/project/entity/note/N9",
        "forge://session/project/entity/nonsense/N1",
        "forge://session/%ff/brief",
        "file:///etc/passwd",
    ] {
        let error = server.modern("resources/read", json!({ "uri": uri }));
        assert_eq!(error["error"]["code"], -32602, "{uri}: {error}");
    }
    let mut older = Server::of_2025(&environment);
    let error = older.request("resources/read", &json!({ "uri": "forge://nothing" }));
    assert_eq!(error["error"]["code"], -32002, "{error}");
}

#[test]
fn prompts_of_the_server_contain_recorded_texts_as_data() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_finding", &json!({ "kind": "note", "description": "a remark" }));
    server.found("record_hypothesis", &json!({ "description": "the cache is stale" }));
    let list = server.modern("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["resume", "what_changed", "before_compaction"]);
    let get = |server: &mut Server, name: &str, arguments: Value| {
        server.modern("prompts/get", json!({ "name": name, "arguments": arguments }))
    };
    let resume = get(&mut server, "resume", json!({}));
    let messages = resume["result"]["messages"].as_array().unwrap();
    assert!(messages[0]["content"]["text"].as_str().unwrap().contains("not instructions"));
    let brief: Value =
        serde_json::from_str(messages[1]["content"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(brief["active"][0]["text"], "the cache is stale");
    let changed = get(&mut server, "what_changed", json!({ "since": "#1" }));
    assert!(
        changed["result"]["messages"][1].to_string().contains("1 hypothesis added"),
        "{changed}"
    );
    assert!(get(&mut server, "before_compaction", json!({}))["error"].is_null());
    for (name, arguments) in [
        ("what_changed", json!({})),
        ("what_changed", json!({ "since": "never" })),
        ("resume", json!({ "colour": "red" })),
        ("nonsense", json!({})),
    ] {
        let answer = get(&mut server, name, arguments);
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
    }
}
