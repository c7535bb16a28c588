//! Threads: a history that no provider would accept, from a file and from the store.

use crate::environment::Environment;
use std::path::Path;
use std::process::{Command, Stdio};

const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"at\":1}"}}]}"#;
const USER: &str = r#"{"role":"user","content":"weather?"}"#;

fn place() -> Environment {
    let environment = Environment::new();
    environment.write("project/history.jsonl", &format!("{USER}\n{CALL}\n"));
    environment
}

#[test]
fn a_file_is_sanitised_without_a_store_and_keeps_its_form() {
    let environment = place();
    let out = environment.forge(["thread", "sanitize", "history.jsonl", "-q"]).success();
    assert_eq!(out.lines().count(), 3);
    assert!(out.starts_with(&format!("{USER}\n{CALL}\n")), "what is not changed keeps its bytes");
    environment
        .write("project/list.json", &format!("{{\"model\":\"m\",\"messages\":[{USER},\n{CALL}]}}"));
    let out = environment.forge(["thread", "sanitize", "list.json", "--remove", "-q"]).success();
    assert_eq!(out, format!("{{\"model\":\"m\",\"messages\":[{USER}]}}\n"));
    let json = environment.forge(["thread", "sanitize", "history.jsonl", "--json"]).json();
    assert_eq!(json["schema"], "forge.thread.sanitize/1");
    assert_eq!(json["actions"][0]["action"], "insert");
    assert_eq!(
        (&json["actions"][0]["index"], &json["actions"][0]["tool_call_id"]),
        (&2.into(), &"c1".into())
    );
    assert_eq!(json["actions"][0]["message"], json["messages"][2]);
    assert_eq!(environment.forge(["thread", "check", "history.jsonl"]).code, 1);
    environment.write("project/no.txt", "hello\n");
    assert_eq!(environment.forge(["thread", "sanitize", "no.txt"]).code, 2);
    assert_eq!(environment.forge(["thread", "sanitize"]).code, 2);
    assert!(!environment.path("project/.forge").exists());
}

#[test]
fn an_unknown_form_is_refused_and_nothing_is_printed() {
    let environment = place();
    environment.forge(["init"]).success();
    let parts = r#"[{"role":"user","parts":[{"type":"text","text":"hi"}]}]"#;
    for (name, text, seems) in [
        ("ui.json", parts, "a UIMessage of the Vercel AI SDK"),
        (
            "state.json",
            r#"{"values":{"messages":[{"type":"human","content":"hi"}]}}"#,
            "a state of LangGraph",
        ),
        ("empty.json", "{}", "an empty object"),
        ("texts.json", r#"["hi"]"#, "a text"),
    ] {
        environment.write(&format!("project/{name}"), text);
        for command in ["check", "sanitize"] {
            let refused = environment.forge(["thread", command, name]);
            assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused}");
            assert!(refused.stderr.contains(seems), "{refused}");
            assert!(refused.stderr.contains("known are OpenAI chat completions"), "{refused}");
        }
        let refused = environment.forge(["thread", "append", "--thread", "u", name]);
        assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused}");
    }
    assert_eq!(environment.forge(["thread", "show", "--thread", "u"]).code, 3);
}

#[test]
fn check_and_sanitize_report_the_same_faults() {
    let environment = place();
    let lost = r#"{"role":"tool","tool_call_id":"c9","content":"lost"}"#;
    let none = r#"{"role":"assistant","tool_calls":[]}"#;
    environment.write("project/faults.jsonl", &format!("{none}\n{lost}\n{USER}\n{CALL}\n{USER}\n"));
    let checked = environment.forge(["thread", "check", "faults.jsonl"]);
    assert_eq!(checked.code, 1);
    let faults: Vec<&str> = checked.stdout.lines().skip(1).map(str::trim).collect();
    let sanitized = environment.forge(["thread", "sanitize", "faults.jsonl"]);
    let done: Vec<&str> = sanitized.stderr.lines().collect();
    assert_eq!(faults, done);
    assert_eq!(
        faults,
        [
            "message 0: an empty list of calls: removed",
            "message 1: a result without a call c9: kept as a text",
            "message 3: a call without a result c1: a result is inserted",
        ]
    );
}

#[test]
fn an_error_about_an_unknown_thread_or_call_has_a_hint() {
    let environment = place();
    environment.forge(["init"]).success();
    environment.forge(["thread", "append", "--thread", "t", "history.jsonl"]).success();
    let pending = environment.forge(["thread", "pending", "--thread", "none"]);
    assert!(pending.code == 3 && pending.stderr.contains("--kind thread' lists the"), "{pending}");
    let rerun = environment.forge(["thread", "rerun", "c7", "--thread", "t"]);
    assert!(rerun.code == 3 && rerun.stderr.contains("'forge thread pending"), "{rerun}");
}

#[test]
fn a_pending_call_is_run_again_after_a_crash() {
    let environment = place();
    environment.forge(["init"]).success();
    let appended =
        environment.forge(["thread", "append", "--thread", "t", "history.jsonl", "--json"]).json();
    assert_eq!((&appended["messages"], &appended["marked"]), (&2.into(), &false.into()));
    assert_eq!(appended["pending"][0]["tool_call_id"], "c1");
    let refused =
        environment.forge(["thread", "rerun", "c1", "--thread", "t", "--json", "--", "cat"]);
    assert_eq!(refused.code, 1, "nobody is there to ask: {refused}");
    let run = ["thread", "rerun", "c1", "--thread", "t", "--yes", "--json", "--", "cat"];
    let run = environment.forge(run).json();
    assert_eq!((&run["result"], &run["state"]), (&"{\"at\":1}".into(), &"finished".into()));
    let shown = environment.forge(["thread", "show", "--thread", "t", "--json"]).json();
    assert_eq!(shown["messages"][2]["content"], "{\"at\":1}");
    assert_eq!(
        environment.forge(["thread", "check", "--thread", "t", "--json"]).json()["faults"],
        serde_json::json!([])
    );
    assert_eq!(environment.forge(["thread", "rerun", "c1", "--thread", "t"]).code, 3);
    assert_eq!(environment.forge(["thread", "show", "--thread", "none"]).code, 3);
    assert_eq!(environment.forge(["status", "--json"]).json()["session"], serde_json::Value::Null);
}

/// Regression: the call counted as started before its program was found to be missing, and the
/// error gave no advice. Later, it was still found only after the question whether to run the call
/// again, and a folder counted as a program.
#[test]
fn a_program_that_is_missing_is_refused_before_the_call_is_started() {
    let environment = place();
    environment.forge(["init"]).success();
    environment.forge(["thread", "append", "--thread", "t", "history.jsonl"]).success();
    let run = |program: &str| {
        environment.forge(["thread", "rerun", "c1", "--thread", "t", "--yes", "--", program])
    };
    let pending = || environment.forge(["thread", "pending", "--thread", "t", "--json"]).json();
    let before = pending();
    let unasked = |program: &str| {
        environment.forge(["thread", "rerun", "c1", "--thread", "t", "--", program])
    };
    for program in ["./missing", "no-such-program", "../project"] {
        let refused = run(program);
        assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{refused}");
        assert_eq!(unasked(program).code, 3);
        for expected in [&*format!("there is no program '{program}'"), "after '--'", "--finish c1"]
        {
            assert!(refused.stderr.contains(expected), "{refused}");
        }
        assert_eq!(pending(), before);
    }
    environment.write("project/text", "no program");
    let refused = run("./text");
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.stderr.contains("nothing ran, though the call counts as started"), "{refused}");
    assert_eq!(run("cat").code, 0);
}

#[test]
fn a_result_without_its_call_is_refused() {
    let environment = place();
    environment.forge(["init"]).success();
    environment.forge(["thread", "append", "--thread", "t", "history.jsonl"]).success();
    let refused = environment.forge(["thread", "pending", "--thread", "t", "--result", "sunny"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused}");
    assert!(refused.stderr.contains("add '--finish ID' or '--fail ID'"), "{refused}");
    let start = ["thread", "pending", "--thread", "t", "--start", "c1", "--result", "sunny"];
    assert_eq!(environment.forge(start).code, 2);
    let finish = ["thread", "pending", "--thread", "t", "--finish", "c1", "--result", "sunny"];
    assert!(environment.forge(finish).success().contains("pending c1 weather: finished"));
}

#[test]
fn a_tool_can_print_before_it_has_read_all_of_its_arguments() {
    let environment = place();
    environment.forge(["init"]).success();
    let text = "x".repeat(1 << 20);
    let call = CALL.replace(":1}", &format!(r#":\"{text}\"}}"#));
    environment.write("project/long.jsonl", &format!("{USER}\n{call}\n"));
    environment.forge(["thread", "append", "--thread", "t", "long.jsonl"]).success();
    let run =
        ["thread", "rerun", "c1", "--thread", "t", "--yes", "--json", "--", "timeout", "20", "cat"];
    let run = environment.forge(run).json();
    assert_eq!(run["state"], "finished");
    assert_eq!(run["result"].as_str().map(str::len), Some(r#"{"at":""}"#.len() + text.len()));
}

#[test]
fn the_guard_and_the_writer_keep_others_out() {
    let environment = place();
    environment.forge(["init"]).success();
    let refused = environment
        .forge(["thread", "append", "--thread", "t", "--guard", "refuse", "history.jsonl"]);
    assert_eq!(refused.code, 2, "{refused}");
    // Regression: what was refused began an empty thread.
    assert_eq!(environment.forge(["thread", "show", "--thread", "t"]).code, 3);
    environment
        .forge(["thread", "append", "--thread", "t", "--guard", "hold", "history.jsonl"])
        .success();
    let shown = environment.forge(["thread", "show", "--thread", "t", "--json"]).json();
    assert_eq!((shown["messages"].as_array().unwrap().len(), &shown["held"]), (1, &1.into()));
    environment
        .forge(["thread", "append", "--thread", "t", "--writer", "a", "--for", "10m"])
        .success();
    let other = ["thread", "sanitize", "--thread", "t", "--lock-timeout", "0"];
    let other = environment.forge(other);
    assert_eq!(other.code, 4, "{other}");
    assert!(other.stderr.contains("the thread 't' is held by 'a' until"), "{other}");
    // Regression: nothing said how to go on after the holder was killed.
    assert!(other.stderr.contains("an append with '--writer a' releases it"), "{other}");
    environment.forge(["thread", "append", "--thread", "t", "--writer", "a"]).success();
    environment.forge(["thread", "sanitize", "--thread", "t"]).success();
    let unknown = environment.forge(["thread", "sanitize", "--thread", "other"]);
    assert!(unknown.stderr.contains("'forge session list --kind thread' lists"), "{unknown}");
}

/// Repairs a thread of LangGraph itself, which its own checkpointer stores.
#[test]
fn a_langgraph_thread_is_repaired_through_its_state() {
    const SCRIPT: &str = r#"
import sys
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_repair import repair

builder = StateGraph(MessagesState)
builder.add_node("agent", lambda state: {})
builder.add_edge(START, "agent")
graph = builder.compile(checkpointer=MemorySaver())
config = {"configurable": {"thread_id": "t"}}
call = AIMessage(content="", id="a1", tool_calls=[{"name": "weather", "args": {"at": 1}, "id": "c1"}])
graph.invoke({"messages": [HumanMessage("weather?", id="h1"), call]}, config)
graph.invoke({"messages": [HumanMessage("are you there?", id="h2")]}, config)
actions = repair(graph, config, forge=sys.argv[1])
assert [action["action"] for action in actions] == ["insert"], actions
messages = graph.get_state(config).values["messages"]
assert [message.type for message in messages] == ["human", "ai", "tool", "human"], messages
assert isinstance(messages[2], ToolMessage) and messages[2].tool_call_id == "c1"
assert messages[2].status == "error"
assert [messages[at].id for at in (0, 1, 3)] == ["h1", "a1", "h2"]
assert repair(graph, config, forge=sys.argv[1]) == []
print("repaired")
"#;
    let python = std::env::var("FORGE_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python)
        .args(["-c", "import langgraph"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !has.is_ok_and(|status| status.success()) {
        let why = format!(
            "'{python}' has no langgraph: 'pip install langgraph', or name another by FORGE_TEST_PYTHON"
        );
        forge_testkit::skip::skipped("langgraph", why);
        return;
    }
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/systems");
    let output = Command::new(&python)
        .args(["-c", SCRIPT, env!("CARGO_BIN_EXE_forge")])
        .env("PYTHONPATH", pages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "repaired\n", "{output:?}");
}
