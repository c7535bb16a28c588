//! Checks that the end of `docs/mcp.md` equals the server's own descriptions of its tools,
//! resources and prompts, and that `docs/mcp-tools.json` equals its `tools/list`.
//!
//! `FORGE_UPDATE_DOCS=1 cargo nextest run --release -p forge-cli mcp::page` updates both.

use super::{Server, place};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The start of the generated part of the page.
const MARK: &str = "<!-- cli/tests/it/mcp/page.rs generates the rest of this page. -->\n";

fn doc(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Compares a file with its expected content, or writes it if `FORGE_UPDATE_DOCS` is set.
#[track_caller]
fn holds(path: &Path, wanted: &str) {
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(path, wanted).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let different = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "{} is not what the server says, first at {different:?}; FORGE_UPDATE_DOCS=1 writes it again",
        path.display()
    );
}

#[test]
fn the_page_and_the_tool_list_equal_the_output_of_the_server() {
    let environment = place();
    let mut server = Server::begin(&environment);
    let tools = server.modern("tools/list", json!({}))["result"]["tools"].clone();
    let whole = serde_json::to_string_pretty(&json!({ "tools": tools })).unwrap();
    holds(&doc("mcp-tools.json"), &format!("{whole}\n"));

    let mut text = String::from("\n## Tools\n");
    for tool in tools.as_array().unwrap() {
        section(tool, &mut text);
    }
    let resources = server.modern("resources/list", json!({}))["result"]["resources"].clone();
    text.push_str("\n## Resources\n\n");
    for resource in resources.as_array().unwrap() {
        line(&mut text, &resource["uri"], &resource["description"]);
    }
    let templates = server.modern("resources/templates/list", json!({}))["result"].clone();
    text.push_str(
        "\nWith names, in which every character except letters, digits and `-_.~:` is \
        percent-encoded:\n\n",
    );
    for template in templates["resourceTemplates"].as_array().unwrap() {
        line(&mut text, &template["uriTemplate"], &template["description"]);
    }
    let prompts = server.modern("prompts/list", json!({}))["result"]["prompts"].clone();
    text.push_str("\n## Prompts\n\n");
    for prompt in prompts.as_array().unwrap() {
        line(&mut text, &prompt["name"], &prompt["description"]);
        for argument in prompt["arguments"].as_array().into_iter().flatten() {
            text.push_str("  ");
            line(&mut text, &argument["name"], &argument["description"]);
        }
    }
    let page = doc("mcp.md");
    let found = std::fs::read_to_string(&page).unwrap();
    let (written, _) = found.split_once(MARK).expect("the page has the mark");
    holds(&page, &format!("{written}{MARK}{text}"));
}

#[test]
fn the_page_names_every_client_that_forge_is_added_to() {
    let page = std::fs::read_to_string(doc("mcp.md")).unwrap();
    for client in ["Claude Code", "Codex", "Gemini", "Cursor", "OpenCode"] {
        assert!(page.contains(&format!("### {client}")), "{client}");
    }
    // Each example of a configuration file in JSON can be parsed.
    let mut blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    assert!(blocks.clone().count() >= 3);
    assert!(blocks.all(|block| serde_json::from_str::<Value>(block).is_ok()));
}

fn line(text: &mut String, name: &Value, about: &Value) {
    let (name, about) = (name.as_str().unwrap(), about.as_str().unwrap());
    writeln!(text, "- `{name}`: {about}").unwrap();
}

fn section(tool: &Value, text: &mut String) {
    let of = |name: &str| tool[name].as_str().unwrap();
    let hints = &tool["annotations"];
    let effect = match (&hints["readOnlyHint"], &hints["destructiveHint"]) {
        (Value::Bool(true), _) => "It only reads.",
        (_, Value::Bool(true)) => "It replaces the present state, and can be undone.",
        _ => "It adds; earlier states are kept.",
    };
    writeln!(text, "\n### {}\n\n{} {effect}\n\nArguments:\n", of("name"), of("description"))
        .unwrap();
    fields(&tool["inputSchema"], "", text);
    text.push_str("\nAnswer:\n\n");
    let answer = &tool["outputSchema"];
    fields(answer, "", text);
    for (name, named) in answer["$defs"].as_object().into_iter().flatten() {
        writeln!(text, "- {}:", name.to_lowercase()).unwrap();
        fields(named, "  ", text);
    }
}

/// Lists the fields of an object, each with its type and description.
fn fields(schema: &Value, indent: &str, text: &mut String) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let needed = if required.iter().any(|one| one == name) { "" } else { ", optional" };
        let about = field["description"].as_str().unwrap_or_default();
        writeln!(text, "{indent}- `{name}` ({}{needed}): {about}", kind(field)).unwrap();
    }
}

fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str() {
        return name.trim_start_matches("#/$defs/").to_lowercase();
    }
    if let Some(words) = field["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    let bounds = match (&field["minimum"], &field["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!(" from {least} to {most}"),
        _ => String::new(),
    };
    let types: Vec<String> = match (&field["type"], &field["anyOf"]) {
        (Value::String(one), _) if one == "array" => match &field["items"] {
            items if items.is_object() => vec![format!("list of {}", kind(items))],
            _ => vec!["list".to_owned()],
        },
        (Value::String(one), _) => vec![one.clone()],
        (Value::Array(several), _) => {
            several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        (_, Value::Array(any)) => any.iter().map(kind).collect(),
        _ => vec!["any".to_owned()],
    };
    format!("{}{bounds}", types.join(" or "))
}
