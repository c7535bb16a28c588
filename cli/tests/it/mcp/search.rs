//! The tool that searches everything that was recorded.

use super::{Server, place};
use serde_json::{Value, json};

fn note(text: &str) -> Value {
    json!({ "kind": "note", "description": text })
}

fn ids(found: &Value) -> Vec<&str> {
    let hits = found["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_str().unwrap()).collect()
}

#[test]
fn a_search_can_be_limited_by_kinds_sessions_and_quotes() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_hypothesis", &json!({ "description": "the cache is stale" }));
    server.found("record_finding", &note("stale is not what the cache is"));
    let found = |server: &mut Server, arguments: Value| {
        let found = server.found("search", &arguments);
        assert_eq!(found["count"], found["hits"].as_array().unwrap().len(), "{found}");
        found
    };
    assert_eq!(ids(&found(&mut server, json!({ "query": "stale cache" }))), ["N1", "H1"]);
    assert_eq!(ids(&found(&mut server, json!({ "query": "\"cache is stale\"" }))), ["H1"]);
    let notes = json!({ "query": "cache", "kinds": ["note"] });
    assert_eq!(ids(&found(&mut server, notes)), ["N1"]);
    // All records of this test have the same time.
    let since = json!({ "query": "cache", "since": "#1" });
    assert_eq!(ids(&found(&mut server, since)), ["N1", "H1"]);
    let until = json!({ "query": "cache", "until": "2000-01-01 00:00:00" });
    assert_eq!(ids(&found(&mut server, until)), [""; 0]);
    assert_eq!(ids(&found(&mut server, json!({ "query": "cache nowhere" }))), [""; 0]);
    // A new session sees nothing of another one, unless it is asked to.
    let _ = environment.forge(["session", "new", "other"]).success();
    assert_eq!(ids(&found(&mut server, json!({ "query": "cache" }))), [""; 0]);
    let all = found(&mut server, json!({ "query": "cache", "all_sessions": true }));
    assert_eq!((ids(&all), &all["session"]), (vec!["N1", "H1"], &json!("other")));
    assert_eq!(all["hits"][0]["session"], "project");
}

#[test]
fn a_hit_that_a_restore_removed_can_still_be_read() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_hypothesis", &json!({ "description": "the clock is late" }));
    server.found("record_finding", &note("the cache is stale"));
    let _ = environment.forge(["checkpoint", "restore", "#1"]).success();
    let known = server.found("state", &json!({ "kinds": ["note"] }));
    assert_eq!(known["entries"], json!([]), "{known}");
    let result = server.call("search", &json!({ "query": "cache" }));
    let uri = &result["content"][1]["uri"];
    assert_eq!(uri, "forge://session/project/entity/note/N1/%232", "{result}");
    let answer = server.modern("resources/read", json!({ "uri": uri }));
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
    let entity: Value = serde_json::from_str(text).unwrap();
    assert_eq!(entity["entries"][0]["fields"]["description"], "the cache is stale", "{entity}");
}

#[test]
fn a_page_of_long_rows_is_shorter_and_the_next_page_continues_there() {
    let environment = place();
    let _ = environment.forge(["session", "new", &"s".repeat(120)]).success();
    let mut server = Server::begin(&environment);
    let long = "needle".to_owned() + &"\u{202e}".repeat(80);
    for _ in 0..45 {
        server.found("record_finding", &note(&long));
    }
    let mut arguments = json!({ "query": "needle", "limit": 50 });
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page = server.found("search", &arguments);
        assert_eq!(page["count"], 45);
        seen += ids(&page).len();
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = cursor.into(),
            None => break,
        }
    }
    assert_eq!((seen, pages), (45, 2));
}
