//! `forge run` from the outside: exit codes, JSON, streams.

use crate::environment::Environment;
use serde_json::{Value, json};

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

fn record(environment: &Environment, item: &str, step: &str, output: &str, next: [&str; 2]) {
    let args = ["run", "record", "--run", "r", "--item", item, "--step", step, "--output", output];
    let more = next.iter().copied().filter(|word| !word.is_empty());
    let output = environment.finished(&mut environment.command(args.into_iter().chain(more)));
    output.success();
}

const END: [&str; 2] = ["--terminal", ""];

#[test]
fn run_commands_print_outputs_and_positions_as_json() {
    let environment = project();
    record(&environment, "123", "3341", "Summary\n", ["--next", "3342"]);
    let output = ["run", "output", "--item", "123", "--step", "3341"];
    assert_eq!(environment.forge(output).success(), "Summary\n");
    let json = |words: &[&str]| -> Value {
        environment.finished(environment.command(words).arg("--json")).json()
    };
    let found = json(&output);
    assert_eq!(found["output"]["content"], "Summary\n");
    assert_eq!(
        json(&["run", "outputs", "--item", "123", "--step", "3341", "--step", "9"]),
        json!({
            "schema": "forge.run.outputs/1", "run": "r", "item": "123",
            "outputs": {"3341": "Summary\n"}, "missing": ["9"],
        })
    );
    let resumed = json(&["run", "resume", "--run", "r"]);
    assert_eq!(resumed["items"][0]["at"], "3342");
    assert_eq!(resumed["items"][0]["outputs"], json!({"3341": "Summary\n"}));
    let shown = json(&["run", "show", "--item", "123"]);
    assert_eq!((&shown["is_terminal"], &shown["order"]), (&json!(false), &json!(1)));
    let run = json(&["run", "show", "--run", "r"]);
    assert_eq!(run["steps"], json!([{"step": "3342", "items": 1}]));
    let history = json(&["run", "history", "--item", "123"]);
    assert_eq!(history["states"][0]["verb"], "run record");
    assert_eq!(json(&["run", "path", "--item", "123"])["path"], json!(["3341"]));
    assert_eq!(json(&["run", "at-step", "--run", "r", "--order", "1"])["items"][0]["item"], "123");
}

#[test]
fn a_missing_output_is_an_error_unless_allowed() {
    let environment = project();
    record(&environment, "a", "1", "x", END);
    let missing = environment.forge(["run", "output", "--item", "a", "--step", "2"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (3, ""));
    assert!(missing.stderr.contains("no output '2' of the item 'a' in the run 'r'"), "{missing}");
    let allowed = ["run", "output", "--item", "z", "--step", "2", "--allow-missing"];
    assert_eq!(environment.forge(allowed).success(), "");
    let json = ["run", "output", "--item", "a", "--step", "2", "--allow-missing", "--json"];
    assert_eq!(environment.forge(json).json()["output"], Value::Null);
    assert_eq!(environment.forge(["run", "exists", "--item", "a", "--step", "1"]).code, 0);
    assert_eq!(environment.forge(["run", "exists", "--item", "a", "--step", "2"]).code, 1);
    assert_eq!(environment.forge(["run", "exists", "--item", "z", "--step", "1"]).code, 1);
    let unknown = environment.forge(["run", "show", "--item", "z"]);
    assert!(unknown.stderr.contains("'forge run list' names the runs"), "{unknown}");
    assert_eq!(environment.forge(["run", "resume", "--run", "z"]).code, 3);
    assert_eq!(environment.forge(["run", "at-step", "--run", "r"]).code, 2);
}

#[test]
fn recording_a_run_does_not_change_the_current_session() {
    let environment = project();
    environment.forge(["note", "add", "mine"]).success();
    record(&environment, "a", "1", "x", END);
    let status = environment.forge(["status", "--json"]).json();
    assert_eq!(status["session"], "project", "{status}");
    // Regression: the log only counted the changes, and did not say how to see them.
    let log = environment.forge(["log", "--session", "r"]).success();
    assert!(log.contains("'forge --session r story --all' shows each item."), "{log}");
    let refused = environment.forge(["session", "use", "r"]);
    assert_eq!(refused.code, 2, "{refused}");
    environment.forge(["undo"]).success();
    assert_eq!(environment.forge(["run", "exists", "--item", "a", "--step", "1"]).code, 0);
    environment.forge(["undo", "--session", "r"]).success();
    assert_eq!(environment.forge(["run", "exists", "--item", "a", "--step", "1"]).code, 1);
}

/// Regression: an error such as `-1: timeout` was refused as an unexpected argument, and the
/// failure was not recorded.
#[test]
fn the_error_of_a_program_may_begin_with_a_hyphen() {
    let environment = project();
    record(&environment, "a", "1", "- x", ["", ""]);
    environment.forge(["run", "fail", "--run", "r", "--error", "-1: timeout"]).success();
    let list = environment.forge(["run", "list", "--json"]).json();
    assert_eq!(list["runs"][0]["error"], "-1: timeout");
    let failed = ["--stage", "s", "--item-failed", "a", "--error", "--new: unknown option"];
    let save = ["progress", "save", "--review", "r", "--execution", "e"];
    environment.finished(&mut environment.command(save.iter().chain(&failed))).success();
}

/// Regression: a file of items was stored as a text without items if it had a broken line, and one
/// with a single line as an object.
#[test]
fn every_line_of_an_input_names_an_item_or_the_input_is_refused() {
    let environment = project();
    let start = |run: &str, input: &str| {
        environment.forge(["run", "start", "--run", run, "--input", input])
    };
    let items = |run: &str| {
        environment.forge(["run", "resume", "--run", run, "--json"]).json()["total"].clone()
    };
    let refused = start("broken", "{\"item\":\"a\"}\n\n{\"item\":");
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("line 3 of the input is not JSON"), "{refused}");
    assert_eq!(environment.forge(["run", "show", "--run", "broken"]).code, 3);
    start("one", "{\"item\":\"a\",\"title\":\"first\"}\n").success();
    assert_eq!(items("one"), 1);
    start("text", "Take each item:\n{\"item\":\"a\"}").success();
    assert_eq!(items("text"), 0);
}

#[test]
fn outputs_are_read_from_files_and_standard_input() {
    let environment = project();
    environment.write("project/out.txt", "from a file");
    let line = "printf 'from a pipe' | forge run record --run r --item a --step 1 --output - && \
                forge run record --run r --item a --step 2 --output @out.txt && \
                forge run record --run r --item a --step 3 --output @@x && \
                forge run outputs --item a --json";
    let text = environment.finished(&mut environment.shell(line)).success();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["outputs"], json!({"1": "from a pipe", "2": "from a file", "3": "@x"}));
    environment.write("project/bad.txt", "x");
    std::fs::write(environment.path("project/bad.txt"), [0xff, 0xfe]).unwrap();
    let bad =
        ["run", "record", "--run", "new", "--item", "a", "--step", "1", "--output", "@bad.txt"];
    assert_eq!(environment.forge(bad).code, 2);
    let long = "x".repeat(150);
    let bad = ["run", "record", "--run", "new", "--item", &long, "--step", &long, "--output", "x"];
    assert_eq!(environment.forge(bad).code, 2);
    assert_eq!(environment.forge(["run", "show", "--run", "new"]).code, 3, "nothing was made");
}

#[test]
fn a_refused_template_prints_nothing_on_stdout() {
    let environment = project();
    record(&environment, "a", "1", "see {session_9_output}", ["--next", "2"]);
    record(&environment, "a", "2", "fine", END);
    let filled = environment.forge(["run", "render", "It is {step_2_output}", "--item", "a"]);
    assert_eq!(filled.success(), "It is fine");
    let refused =
        environment.forge(["run", "render", "{step_1_output} {step_7_output}", "--item", "a"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""));
    for name in ["{step_7_output}", "{session_9_output}"] {
        assert!(refused.stderr.contains(name), "{refused}");
    }
    assert_eq!(environment.forge(["run", "render", "{step_1_output}", "--item", "a"]).code, 2);
    environment.write("project/t.txt", "Grade {conversation_3341_output}\nplain\n");
    let audit = environment.forge(["run", "audit", "t.txt", "--run", "r", "--json"]);
    assert_eq!(audit.code, 1);
    let audit: Value = serde_json::from_str(&audit.stdout).unwrap();
    assert_eq!((&audit["looked_at"], audit["findings"].as_array().unwrap().len()), (&json!(3), 2));
    assert_eq!(audit["findings"][0]["line"], 1);
    let none = environment.forge(["run", "audit", "--only", "instruction"]);
    assert_eq!(none.success(), "Nothing found in 2 texts\n");
}

#[test]
fn run_show_escapes_control_characters_of_an_output() {
    let environment = project();
    record(&environment, "a", "1", "x\u{1b}[2Jy", END);
    let text = environment.forge(["run", "show", "--item", "a"]).success();
    assert!(text.contains("x\\x1b[2Jy"), "{text}");
    let raw = environment.forge(["run", "output", "--item", "a", "--step", "1"]).success();
    assert_eq!(raw, "x\u{1b}[2Jy", "a pipe gets the bytes");
}
