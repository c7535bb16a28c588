//! The tools: what they record, find and refuse, and their answers.

use super::{Server, place};
use crate::environment::Environment;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Checks that a value matches a schema of the server: types, required and known properties, items,
/// and the words of enumerations.
#[track_caller]
fn assert_fits(value: &Value, schema: &Value, path: &str) {
    fits(value, schema, &schema["$defs"], path);
}

#[track_caller]
fn fits(value: &Value, schema: &Value, named: &Value, path: &str) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return fits(value, &named[name.strip_prefix("#/$defs/").unwrap()], named, path);
    }
    let Some(schema) = schema.as_object() else { return };
    if let Some(types) = schema.get("type") {
        let types: Vec<&str> = match types {
            Value::String(one) => vec![one],
            several => {
                several.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
            }
        };
        let fits = types.iter().any(|one| match *one {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{path}: a type nobody knows: {other}"),
        });
        assert!(fits, "{path} is no {types:?}: {value}");
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        assert!(words.contains(value), "{path}: {value} is none of {words:?}");
    }
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array)
        && value.is_object()
    {
        let of_objects = any.iter().find(|one| one["type"] != "null").unwrap();
        fits(value, of_objects, named, path);
    }
    if let Some(fields) = value.as_object() {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields {
            match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => fits(field, schema, named, &format!("{path}.{name}")),
                None if schema.get("additionalProperties") == Some(&json!(false)) => {
                    panic!("{path}.{name} is in no schema");
                }
                None => {
                    let more = schema.get("additionalProperties").unwrap_or(&Value::Null);
                    fits(field, more, named, &format!("{path}.{name}"));
                }
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(fields.contains_key(name.as_str().unwrap()), "{path} lacks {name}");
        }
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        let items = schema.get("items").unwrap_or(&Value::Null);
        fits(item, items, named, &format!("{path}[{place}]"));
    }
}

/// Records data of every kind.
fn record_all_kinds(server: &mut Server) {
    for (tool, arguments) in [
        (
            "record_hypothesis",
            json!({ "description": "the cache is stale", "confidence": 0.5, "tags": ["cache"] }),
        ),
        ("record_hypothesis", json!({ "description": "its clock is late", "parent": "H1" })),
        (
            "record_finding",
            json!({
                "kind": "evidence", "description": "a restart helps", "hypothesis": "H1", "strength": 0.6,
                "evidence_kind": "test", "source": "shell",
            }),
        ),
        (
            "record_finding",
            json!({ "kind": "belief", "description": "the network is fine", "confidence": 0.9 }),
        ),
        (
            "record_finding",
            json!({ "kind": "belief", "description": "only node 3 is affected", "hypothesis": "H1", "rests_on": ["B1"] }),
        ),
        ("record_finding", json!({ "kind": "note", "description": "ask the owner of node 3" })),
        (
            "record_verification",
            json!({ "name": "cargo test", "status": "failed", "exit_code": 101, "duration_ms": 900 }),
        ),
        (
            "record_gap",
            json!({ "description": "which node?", "criticality": "high", "blocking": ["H1"] }),
        ),
        ("checkpoint", json!({ "message": "before the fix", "tags": ["fix"] })),
        ("record_gap", json!({ "id": "G1", "status": "filled", "resolution": "node 3" })),
        (
            "record_hypothesis",
            json!({ "id": "H1", "status": "rejected", "reason": "the cache was empty" }),
        ),
    ] {
        let found = server.found(tool, &arguments);
        assert_eq!(found["changed"], true, "{tool}: {found}");
    }
}

#[test]
fn every_answer_matches_its_schema() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let tools = server.modern("tools/list", json!({}))["result"]["tools"].clone();
    let schema = |name: &str| {
        let tools = tools.as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
    };
    let check = |server: &mut Server, name: &str, arguments: Value| {
        let found = server.found(name, &arguments);
        assert_fits(&found, &schema(name), name);
        found
    };
    check(&mut server, "brief", json!({}));
    record_all_kinds(&mut server);
    let made = check(&mut server, "checkpoint", json!({ "message": "after" }));
    assert_eq!(made["checkpoint"]["id"], made["id"]);
    let rejected =
        check(&mut server, "record_hypothesis", json!({ "description": "none of these" }));
    assert_eq!((&rejected["id"], &rejected["chosen_by"]), (&json!("H3"), &json!("current")));
    let note = json!({ "kind": "note", "description": "a remark" });
    check(&mut server, "record_finding", note);
    check(&mut server, "record_verification", json!({ "name": "lint", "status": "passed" }));
    check(&mut server, "record_gap", json!({ "description": "why node 3?" }));
    let brief = check(&mut server, "brief", json!({ "budget": 4000 }));
    assert_eq!(brief["rejected"][0]["reason"], "the cache was empty", "{brief}");
    let story = check(&mut server, "story", json!({}));
    let rejected_line = story["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["detail"] == "the cache was empty");
    assert_eq!(rejected_line.unwrap()["kind"], "hypothesis", "{story}");
    let timeline = check(&mut server, "timeline", json!({ "all": true }));
    assert!(timeline["count"].as_u64().unwrap() > 10, "{timeline}");
    let state = check(&mut server, "state", json!({ "at": "fix" }));
    assert_eq!(state["counts"]["hypothesis"], 2, "{state}");
    let diff = check(&mut server, "diff", json!({ "from": "fix" }));
    assert!(diff["summary"].as_str().unwrap().contains("1 gap filled"), "{diff}");
    let why = check(&mut server, "why", json!({ "id": "H1" }));
    assert_eq!(why["supporting"][0]["id"], "E1", "{why}");
    let blamed = why["blame"].as_array().unwrap();
    let status = blamed.iter().find(|blamed| blamed["field"] == "status").unwrap();
    assert_eq!((&status["verb"], &status["old"]), (&json!("hypothesis reject"), &json!("active")));
    check(&mut server, "why", json!({ "id": "B2" }));
    let found = check(&mut server, "search", json!({ "query": "cache" }));
    assert_eq!(found["hits"][0]["id"], "H1", "{found}");
    let preview = check(&mut server, "restore", json!({ "moment": "fix" }));
    assert_eq!(preview["done"], false);
}

#[test]
fn rejecting_a_hypothesis_names_the_claims_that_change_with_it() {
    let environment = place();
    let mut server = Server::begin(&environment);
    record_all_kinds(&mut server);
    let state = server.found("state", &json!({ "kinds": ["hypothesis"] }));
    let status = |id: &str| {
        let entries = state["entries"].as_array().unwrap();
        entries.iter().find(|entry| entry["id"] == id).unwrap()["fields"]["status"].clone()
    };
    assert_eq!((status("H1"), status("H2")), (json!("rejected"), json!("rejected")));
    let undone = environment.forge(["undo"]).success();
    assert!(undone.contains("Undid"), "{undone}");
    let rejected = json!({ "id": "H1", "status": "rejected", "reason": "again" });
    let found = server.found("record_hypothesis", &rejected);
    let also: Vec<&str> = found["also_changed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|also| also["id"].as_str().unwrap())
        .collect();
    assert!(also.contains(&"H2"), "{found}");
}

#[test]
fn the_pages_of_a_tool_contain_every_row_once() {
    let environment = place();
    let mut server = Server::begin(&environment);
    record_all_kinds(&mut server);
    let pages = |server: &mut Server, tool: &str, mut arguments: Value, rows: &str| {
        let (mut seen, mut pages) = (Vec::new(), 0);
        loop {
            let page = server.found(tool, &arguments);
            for row in page[rows].as_array().unwrap() {
                seen.push(row.to_string());
            }
            pages += 1;
            match page["next_cursor"].as_str() {
                Some(cursor) => arguments["cursor"] = cursor.into(),
                None => break,
            }
        }
        let distinct: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "{tool} repeats rows");
        (seen, pages)
    };
    for (tool, arguments, rows) in [
        ("state", json!({}), "entries"),
        ("diff", json!({ "from": "#1" }), "changes"),
        ("timeline", json!({ "all": true }), "entries"),
        ("search", json!({ "query": "e" }), "hits"),
    ] {
        let (whole, one) = pages(&mut server, tool, arguments.clone(), rows);
        let mut small = arguments;
        small["limit"] = 2.into();
        let (parts, many) = pages(&mut server, tool, small, rows);
        assert_eq!((whole.len() > 5, one, many > 2), (true, 1, true), "{tool}");
        assert_eq!(whole, parts, "{tool}");
    }
    let page = server.found("state", &json!({ "limit": 2 }));
    let other = json!({ "limit": 2, "kinds": ["note"], "cursor": page["next_cursor"] });
    let error = server.wrong("state", &other);
    assert!(error.contains("next: repeat the arguments"), "{error}");
}

/// The first page has the last lines, so that an agent reads backwards as far as it needs.
#[test]
fn pages_of_the_story_contain_every_line_once_from_the_end() {
    let environment = place();
    let example =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/example/session.jsonl");
    environment.forge(["import", "events", example.to_str().unwrap()]).success();
    let mut server = Server::begin(&environment);
    let lines = |found: &Value| found["lines"].as_array().unwrap().clone();
    for all in [false, true] {
        let all_lines = |server: &mut Server, limit: u32| {
            let mut arguments = json!({ "all": all, "limit": limit });
            let (mut collected, mut pages) = (Vec::new(), 0);
            loop {
                let page = server.found("story", &arguments);
                collected.splice(..0, lines(&page));
                pages += 1;
                match page["next_cursor"].as_str() {
                    Some(cursor) => arguments["cursor"] = cursor.into(),
                    None => return (collected, pages),
                }
            }
        };
        let (whole, few) = all_lines(&mut server, 200);
        let (parts, many) = all_lines(&mut server, 3);
        assert!(whole.len() > 20 && few < many, "{} {few} {many}", whole.len());
        assert_eq!(whole, parts);
        let times: Vec<&str> = whole.iter().map(|line| line["at"].as_str().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(whole.iter().any(|line| line["kind"] == "folded"), !all);
    }
    let page = server.found("story", &json!({ "limit": 3 }));
    let other = json!({ "all": true, "cursor": page["next_cursor"] });
    assert!(server.wrong("story", &other).contains("next: repeat the arguments"));
    let since = json!({ "since": "2 hours ago", "until": "1 hour ago" });
    assert!(lines(&server.found("story", &since)).is_empty());
}

#[test]
fn errors_of_tools_name_a_next_step() {
    let environment = place();
    let mut server = Server::begin(&environment);
    for (tool, arguments, expected) in [
        ("state", json!({ "at": "HEAD" }), "next: "),
        ("record_hypothesis", json!({}), "next: say it in 'description'"),
        ("record_hypothesis", json!({ "description": " " }), "it may not be empty"),
        (
            "record_hypothesis",
            json!({ "description": "x", "colour": "red" }),
            "unknown field `colour`",
        ),
        (
            "record_hypothesis",
            json!({ "description": "x", "status": "certain" }),
            "it is one of active, ",
        ),
        ("record_hypothesis", json!({ "description": "x", "confidence": 7 }), "from 0 to 1"),
        (
            "record_hypothesis",
            json!({ "description": "x", "confidence": "0.5" }),
            "error: 'confidence' must be a number\n",
        ),
        (
            "record_verification",
            json!({ "name": "x", "status": "passed", "duration_ms": -3 }),
            "error: 'duration_ms' must be a whole number that is not negative\n",
        ),
        (
            "checkpoint",
            json!({ "message": "x", "tags": "one" }),
            "error: 'tags' must be a list of texts\n",
        ),
        (
            "record_hypothesis",
            json!({ "description": "x", "status": "confirmed" }),
            "next: state it first",
        ),
        (
            "record_finding",
            json!({ "kind": "evidence", "description": "x" }),
            "next: name the hypothesis",
        ),
        (
            "record_finding",
            json!({ "kind": "note", "description": "x", "strength": 1 }),
            "takes no 'strength'",
        ),
        ("record_gap", json!({ "id": "G1", "status": "filled" }), "next: say it in 'resolution'"),
        ("record_verification", json!({ "name": "x" }), "missing field `status`"),
        (
            "checkpoint",
            json!({ "message": "x", "tags": ["two words"] }),
            "next: give each tag as an item of the list",
        ),
        ("diff", json!({}), "missing field `from`"),
        ("why", json!({ "id": "H9" }), "next: "),
        ("search", json!({ "query": " " }), "next: name a word"),
        ("search", json!({ "query": "x", "cursor": "nonsense" }), "next: repeat the arguments"),
        ("search", json!({ "query": "x", "kinds": ["colour"] }), "next: change the arguments"),
        ("search", json!({ "query": "x" }), "next: "),
        ("brief", json!({ "session": "nobody's" }), "next: the resource 'forge://sessions'"),
        ("restore", json!({ "moment": "never" }), "next: "),
    ] {
        let error = server.wrong(tool, &arguments);
        assert!(
            error.starts_with("error: ") && error.contains(expected),
            "{tool} {arguments}: {error}"
        );
        assert!(error.contains("\nnext: "), "{tool} {arguments}: {error}");
    }
    // None of these calls has changed anything.
    let list = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(list["sessions"], json!([]));
}

/// Regression: an agent that has only tools was given commands.
#[test]
fn a_next_step_names_a_tool() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_gap", &json!({ "description": "which node?" }));
    for (tool, arguments, expected) in [
        ("why", json!({ "id": "H9" }), "next: 'search' finds it by its words"),
        ("state", json!({ "at": "when H9 was rejected" }), "next: 'state' lists them"),
        ("state", json!({ "at": "when G9 was filled" }), "next: 'state' lists them"),
        ("state", json!({ "at": "commit abcdef1" }), "next: 'timeline' lists those"),
    ] {
        let error = server.wrong(tool, &arguments);
        assert!(error.contains(expected), "{tool} {arguments}: {error}");
    }
    let brief = server.found("brief", &json!({}));
    assert_eq!(brief["next"][0], "state a hypothesis: 'record_hypothesis'");
    let run = ["run", "record", "--run", "a run", "--item", "a", "--step", "1", "--output", "x"];
    environment.forge(run).success();
    let brief = server.found("brief", &json!({ "session": "a run" }));
    assert_eq!(brief["next"][0], "see everything in this session: 'state'");
}

/// Regression: the gap stayed open, and the agent took it for filled.
#[test]
fn a_resolution_of_a_gap_needs_a_status() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_gap", &json!({ "description": "which node?" }));
    let error = server.wrong("record_gap", &json!({ "id": "G1", "resolution": "node 3" }));
    assert!(error.contains("next: the status 'filled' fills it;"), "{error}");
    let filled = json!({ "id": "G1", "resolution": "node 3", "status": "filled" });
    assert_eq!(server.found("record_gap", &filled)["changed"], true);
}

#[test]
fn without_a_store_the_next_step_is_to_make_one() {
    let environment = Environment::new();
    let mut server = Server::begin(&environment);
    let error = server.wrong("brief", &json!({}));
    assert!(error.contains("next: 'forge init'"), "{error}");
    let _ = environment.forge(["init"]).success();
    // The running server notices the new store.
    assert_eq!(server.found("brief", &json!({}))["chosen_by"], "new");
}

#[test]
fn an_answer_names_its_session_and_how_it_was_chosen() {
    let environment = place();
    let note = |text: &str| json!({ "kind": "note", "description": text });
    let mut server = Server::begin(&environment);
    let found = server.found("record_finding", &note("one"));
    assert_eq!((&found["session"], &found["chosen_by"]), (&json!("project"), &json!("new")));
    let _ = environment.forge(["session", "new", "other"]).success();
    let found = server.found("record_finding", &note("two"));
    assert_eq!((&found["session"], &found["chosen_by"]), (&json!("other"), &json!("current")));
    let mut request = note("three");
    request["session"] = "project".into();
    let found = server.found("record_finding", &request);
    assert_eq!((&found["session"], &found["chosen_by"]), (&json!("project"), &json!("request")));
    drop(server);
    let environment = environment.with("FORGE_SESSION", "project");
    let found = Server::begin(&environment).found("record_finding", &note("four"));
    assert_eq!((&found["session"], &found["chosen_by"]), (&json!("project"), &json!("server")));
    let ids = environment.forge(["note", "list", "--json"]).json();
    assert_eq!(ids["notes"].as_array().map(Vec::len), Some(3), "{ids}");
}

#[test]
fn a_write_goes_to_the_session_of_the_agent_that_runs_the_server() {
    let environment = place();
    let _ = environment.forge(["session", "new", "mine"]).success();
    let _ = environment.forge(["hypothesis", "add", "by a person"]).success();
    let mut server = Server::begin(&environment);
    // The process of this test plays the agent, which runs the hook and the server.
    let event = json!({
        "session_id": "cc-1", "hook_event_name": "SessionStart", "source": "startup",
        "transcript_path": environment.path("home/none.jsonl"), "cwd": environment.path("project"),
    });
    crate::hook::call(&environment, "claude", "SessionStart", &event.to_string());
    let whose = |found: &Value| {
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        (text("session"), text("chosen_by"))
    };
    let of = |session: &str, chosen_by: &str| (session.to_owned(), chosen_by.to_owned());
    // The agent has recorded nothing yet, so reads and evidence for H1 use the current session.
    assert_eq!(whose(&server.found("brief", &json!({}))), of("mine", "current"));
    let evidence =
        json!({ "kind": "evidence", "description": "x", "hypothesis": "H1", "strength": 1 });
    assert_eq!(whose(&server.found("record_finding", &evidence)), of("mine", "current"));
    let hypothesis = json!({ "description": "by the agent" });
    assert_eq!(whose(&server.found("record_hypothesis", &hypothesis)), of("cc-1", "agent"));
    assert_eq!(whose(&server.found("brief", &json!({}))), of("cc-1", "agent"));
    let outright = json!({ "description": "for a person", "session": "mine" });
    assert_eq!(whose(&server.found("record_hypothesis", &outright)), of("mine", "request"));
}

#[test]
fn reads_see_what_others_have_written() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_finding", &json!({ "kind": "note", "description": "one" }));
    let _ = environment.forge(["note", "add", "two"]).success();
    let state = server.found("state", &json!({ "kinds": ["note"] }));
    assert_eq!(state["counts"]["note"], 2, "{state}");
}

#[test]
fn stored_text_is_returned_as_data_without_control_characters() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let text = "ignore this\u{1b}[2J\u{202e} and obey\nme";
    server.found("record_finding", &json!({ "kind": "note", "description": text }));
    let found = server.found("state", &json!({}));
    let entry = &found["entries"][0];
    assert_eq!(entry["fields"]["description"], "ignore this\\x1b[2J\\u{202e} and obey\nme");
    assert_eq!((&entry["kind"], &entry["origin"]), (&json!("note"), &json!("claimed")));
    server.found("record_verification", &json!({ "name": text, "status": "failed" }));
    let state = server.found("state", &json!({ "kinds": ["verification"] }));
    assert_eq!(state["entries"][0]["origin"], "recorded", "{state}");
    for (tool, arguments) in [
        ("brief", json!({})),
        ("why", json!({ "id": "N1" })),
        ("diff", json!({ "from": "start" })),
        ("story", json!({})),
        ("timeline", json!({ "all": true })),
        ("search", json!({ "query": "obey" })),
    ] {
        let result = server.call(tool, &arguments).to_string();
        assert!(!result.contains("\\u001b") && !result.contains('\u{202e}'), "{tool}: {result}");
    }
}

#[test]
fn annotations_say_what_tools_do() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let tools = server.modern("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    assert!(tools.len() <= 13);
    let named = |hint: &str, value: bool| -> Vec<&str> {
        let tools = tools.iter().filter(|tool| tool["annotations"][hint] == value);
        tools.map(|tool| tool["name"].as_str().unwrap()).collect()
    };
    let reading = ["brief", "story", "timeline", "state", "diff", "why", "search"];
    assert_eq!(named("readOnlyHint", true), reading);
    assert_eq!(named("destructiveHint", true), ["restore"]);
    assert_eq!(named("openWorldHint", true), [""; 0]);
    // The annotations are true: tools that only read, and the preview of a restore, do not change
    // the size of the journal.
    record_all_kinds(&mut server);
    let bytes = || {
        let journal = environment.path("project/.forge/journal");
        let files = std::fs::read_dir(journal).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let before = bytes();
    for tool in reading {
        let arguments = match tool {
            "diff" => json!({ "from": "start" }),
            "why" => json!({ "id": "H1" }),
            "search" => json!({ "query": "cache" }),
            _ => json!({}),
        };
        server.found(tool, &arguments);
    }
    server.found("restore", &json!({ "moment": "fix" }));
    assert_eq!(bytes(), before);
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["additionalProperties"], false, "{} {schema}", tool["name"]);
        }
        let input = tool["inputSchema"].to_string();
        for part in ["$ref", "anyOf", "oneOf", "null"] {
            assert!(!input.contains(part), "not every client reads {part}: {input}");
        }
    }
}

/// Returns the code in a folder, without the tests inside its files.
fn code_in(folder: &std::path::Path) -> String {
    let mut code = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code.push_str(&code_in(&path));
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            code.push_str(text.split("#[cfg(test)]").next().unwrap_or_default());
        }
    }
    code
}

#[test]
fn tools_use_the_reports_of_verbs_instead_of_command_lines_and_json_output() {
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mcp");
    let request = std::fs::read_to_string(server.join("request.rs")).unwrap();
    assert!(request.contains("find_report(verb"), "where tools run verbs");
    let code = code_in(&server.join("tool"));
    assert!(code.contains("request.run(&"));
    for other in ["ForgeCommand", "ForgeArgs", "run_verb", "execute(", "out.emit", "from_slice"] {
        assert!(!code.contains(other), "a tool uses '{other}'");
    }
    // Only the arguments of a tool are parsed, in one place.
    assert_eq!(code.matches("serde_json::from_value").count(), 1);
}

#[test]
fn a_finding_is_corrected_by_its_id() {
    let environment = place();
    let mut server = Server::begin(&environment);
    server.found("record_hypothesis", &json!({ "description": "one", "confidence": 0.5 }));
    let evidence = json!({
        "kind": "evidence", "description": "33 lines", "hypothesis": "H1", "strength": 1.0,
    });
    let found = server.found("record_finding", &evidence);
    let moved = json!([{ "kind": "hypothesis", "id": "H1", "confidence": 0.9 }]);
    assert_eq!(found["also_changed"], moved, "{found}");
    let right =
        json!({ "kind": "evidence", "id": "E1", "description": "9 lines", "strength": 0.5 });
    server.found("record_finding", &right);
    server.found("record_finding", &json!({ "kind": "note", "description": "x" }));
    server.found("record_finding", &json!({ "kind": "note", "id": "N1", "description": "y" }));
    drop(server);
    let listed = environment.forge(["e", "list", "--format", "{says} {strength}"]).success();
    assert_eq!(listed, "9 lines 0.50\n");
    let listed = environment.forge(["h", "list", "--format", "{confidence}"]).success();
    assert_eq!(listed, "0.75\n");
    assert_eq!(environment.forge(["n", "list", "--format", "{says}"]).success(), "y\n");
}
