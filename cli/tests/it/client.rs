//! Real agents read what `forge hooks install` wrote. Each test is skipped, with a message, if its
//! agent is not installed; `FORGE_TEST_CLIENTS` names a directory of programs in addition to the
//! path. No agent reaches anything but the loopback, where no model answers.

use crate::environment::Environment;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// An agent that does not end by itself is killed after this time.
const PATIENCE: Duration = Duration::from_secs(120);

fn program(name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("FORGE_TEST_CLIENTS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = own.into_iter().chain(std::env::split_paths(&path)).map(|it| it.join(name));
    let found = found.into_iter().find(|file| file.is_file());
    if found.is_none() {
        let why = format!("'{name}' is not installed; FORGE_TEST_CLIENTS names where it is");
        forge_testkit::skip::skipped(name, why);
    }
    found
}

/// Returns a command that runs an agent in the project, with the home directory and the settings of
/// the test.
fn command(environment: &Environment, program: &PathBuf) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .current_dir(environment.path("project").canonicalize().unwrap())
        .env_clear()
        .env("PATH", path)
        .env("HOME", environment.path("home").canonicalize().unwrap())
        .env("XDG_CONFIG_HOME", environment.path("config").canonicalize().unwrap())
        .env("XDG_DATA_HOME", environment.path("home/data"))
        .env("XDG_CACHE_HOME", environment.path("home/cache"))
        .env("XDG_STATE_HOME", environment.path("home/state"))
        .env("CI", "1")
        .env("NO_COLOR", "1")
        .env("ANTHROPIC_API_KEY", "none")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn output(mut command: Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            let _ = Command::new("kill").arg(id.to_string()).status();
            panic!("the agent did not end");
        }
    }
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
}

#[test]
fn claude_code_fires_the_hooks_and_finds_the_server() {
    let Some(claude) = program("claude") else { return };
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["hooks", "install", "claude", "--local", "--yes"]).success();
    let mut session = command(&environment, &claude);
    session.args(["-p", "hello"]);
    output(session);
    let log = environment.read("project/.forge/log/hooks.jsonl");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<(String, Value)> =
        lines.map(|line| (line["event"].as_str().unwrap().to_owned(), line)).collect();
    for wanted in ["SessionStart", "UserPromptSubmit", "SessionEnd"] {
        let line = events.iter().find(|(event, _)| event == wanted);
        let (_, line) = line.unwrap_or_else(|| panic!("{wanted} did not fire: {log}"));
        assert_eq!(line["agent"], "claude");
        assert!(line["session"].is_string(), "{line}");
    }
    let mut look = command(&environment, &claude);
    look.args(["mcp", "get", "forge"]);
    let found = text(&output(look));
    assert!(found.contains(env!("CARGO_BIN_EXE_forge")), "{found}");
    assert!(found.contains("Local"), "{found}");
    // The agent has also written to this file: only forge's entries are removed.
    environment.forge(["hooks", "uninstall", "claude"]).success();
    let left = environment.read("home/.claude.json");
    assert!(!left.contains("CARGO_BIN_EXE_forge") && !left.contains("\"forge\""), "{left}");
    assert!(left.contains("firstStartTime") || left.contains("projects"), "{left}");
    assert!(!environment.path("project/.claude/settings.local.json").exists());
}

#[test]
fn codex_lists_every_hook_finds_the_server_and_applies_the_rules() {
    let Some(codex) = program("codex") else { return };
    let environment = Environment::new();
    environment.forge(["hooks", "install", "codex", "--user", "--yes"]).success();
    let project = environment.path("project").canonicalize().unwrap();
    let mut server = command(&environment, &codex);
    let mut server = server.arg("app-server").stdin(Stdio::piped()).spawn().unwrap();
    let mut ask = server.stdin.take().unwrap();
    let cwd = project.to_str().unwrap();
    for request in [
        serde_json::json!({"id": 1, "method": "initialize",
            "params": {"clientInfo": {"name": "forge-test", "version": "1"}}}),
        serde_json::json!({"method": "initialized"}),
        serde_json::json!({"id": 2, "method": "hooks/list", "params": {"cwds": [cwd]}}),
    ] {
        writeln!(ask, "{request}").unwrap();
    }
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines();
    let answer = answers.find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).ok()?;
        (line["id"] == 2).then_some(line)
    });
    drop(ask);
    let _ = server.kill();
    let _ = server.wait();
    let found = &answer.expect("the server answers")["result"]["data"][0];
    assert_eq!(found["warnings"], serde_json::json!([]), "{found}");
    assert_eq!(found["errors"], serde_json::json!([]), "{found}");
    let hooks = found["hooks"].as_array().unwrap();
    let commands: Vec<&str> = hooks.iter().map(|hook| hook["command"].as_str().unwrap()).collect();
    for event in ["SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop"] {
        let wanted = format!("{} hook codex {event}", env!("CARGO_BIN_EXE_forge"));
        assert!(commands.contains(&wanted.as_str()), "{commands:?}");
    }
    assert_eq!(hooks.len(), 7);
    let mut look = command(&environment, &codex);
    look.args(["mcp", "get", "forge"]);
    let found = text(&output(look));
    assert!(found.contains(env!("CARGO_BIN_EXE_forge")), "{found}");
    let decide = |words: &[&str]| {
        let mut check = command(&environment, &codex);
        let rules = environment.path("home/.codex/rules/forge.rules");
        check.args(["execpolicy", "check", "--rules"]).arg(rules);
        check.arg(env!("CARGO_BIN_EXE_forge")).args(words);
        let answer: Value = serde_json::from_slice(&output(check).stdout).unwrap();
        answer["decision"].as_str().map(str::to_owned)
    };
    assert_eq!(decide(&["status"]).as_deref(), Some("allow"));
    assert_eq!(decide(&["hypothesis", "add", "x"]).as_deref(), Some("allow"));
    for never in
        [&["checkpoint", "restore", "#1"][..], &["undo"], &["command", "record", "--", "rm"]]
    {
        assert_eq!(decide(never), None, "{never:?}");
    }
}

#[test]
fn gemini_cli_reads_the_settings_and_finds_the_server() {
    let Some(gemini) = program("gemini") else { return };
    let environment = Environment::new();
    environment.forge(["hooks", "install", "gemini", "--user", "--yes"]).success();
    let mut look = command(&environment, &gemini);
    look.args(["mcp", "list"]);
    let found = text(&output(look));
    assert!(found.contains(env!("CARGO_BIN_EXE_forge")), "{found}");
    assert!(!found.to_lowercase().contains("invalid"), "{found}");
}

#[test]
fn opencode_takes_the_settings_and_loads_the_plugin() {
    let Some(opencode) = program("opencode") else { return };
    let environment = Environment::new();
    environment.write("project/opencode.jsonc", "{\n  // mine\n  \"share\": \"disabled\",\n}\n");
    environment.forge(["hooks", "install", "opencode", "--project", "--yes"]).success();
    let mut look = command(&environment, &opencode);
    look.args(["debug", "config"]);
    let found = output(look);
    let shown = text(&found);
    let config: Value = serde_json::from_slice(&found.stdout).unwrap_or_else(|_| panic!("{shown}"));
    assert_eq!(config["mcp"]["forge"]["command"][0], env!("CARGO_BIN_EXE_forge"), "{shown}");
    assert_eq!(config["share"], "disabled");
    let plugins = config["plugin"].to_string();
    assert!(plugins.contains(".opencode/plugins/forge.js"), "{shown}");
    let rules = config["permission"]["bash"].as_object().unwrap();
    assert!(rules.len() > 50 && rules.values().all(|rule| rule == "allow"), "{shown}");
    environment.forge(["hooks", "uninstall", "opencode", "--project"]).success();
    assert_eq!(
        environment.read("project/opencode.jsonc"),
        "{\n  // mine\n  \"share\": \"disabled\",\n}\n"
    );
}

#[test]
fn the_plugin_passes_events_on_and_answers_back() {
    let Some(node) = program("node") else { return };
    let environment = Environment::new();
    environment.forge(["hooks", "install", "opencode", "--project", "--yes"]).success();
    // A fake forge, whose answer contains the event and its input.
    environment.write(
        "tmp/forge",
        "#!/bin/sh\nprintf '{\"context\":[\"%s ' \"$3\"\ncat | tr -d '\\n' | sed 's/\"/+/g'\nprintf '\"]}'\n",
    );
    use std::os::unix::fs::PermissionsExt;
    let fake = environment.path("tmp/forge");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plugin = environment.read("project/.opencode/plugins/forge.js");
    let plugin = plugin.replace(env!("CARGO_BIN_EXE_forge"), fake.to_str().unwrap());
    environment.write("tmp/plugin.mjs", &plugin);
    environment.write(
        "tmp/try.mjs",
        r#"import { Forge } from "./plugin.mjs"
        const hooks = await Forge({ directory: process.cwd(), worktree: "/" })
        const output = { context: [], prompt: undefined }
        await hooks["experimental.session.compacting"]({ sessionID: "s1" }, output)
        const system = { system: ["first"] }
        await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, system)
        await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "s1" } } })
        await hooks.event({ event: { type: "other" } })
        await hooks["chat.message"]({ sessionID: "s1" }, { parts: [{ type: "text", text: "hi" }] })
        await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1", callID: "c", args: {} }, undefined)
        console.log(JSON.stringify([output, system]))"#,
    );
    let run = || {
        let mut attempt = command(&environment, &node);
        attempt.arg(environment.path("tmp/try.mjs"));
        let done = output(attempt);
        assert!(done.status.success(), "{}", text(&done));
        serde_json::from_slice::<Value>(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done)))
    };
    let calls = run();
    let compacting = calls[0]["context"][0].as_str().unwrap();
    assert!(compacting.starts_with("session.compacting {+sessionID+:+s1+,+cwd+:"), "{compacting}");
    assert!(calls[1]["system"][1].as_str().unwrap().starts_with("chat.system.transform "));
    // A missing forge, or one with an invalid answer, causes no problem.
    std::fs::write(&fake, "#!/bin/sh\necho nonsense\nexit 3\n").unwrap();
    assert_eq!(run()[0]["context"], serde_json::json!([]));
    std::fs::remove_file(&fake).unwrap();
    assert_eq!(run()[0]["context"], serde_json::json!([]));
}

/// OpenCode builds its system prompt for each request: the plugin asks forge once per compaction,
/// and adds the answer to each request. Prompts in the session of a sub-agent do not come from a
/// person.
#[test]
fn the_plugin_adds_the_same_brief_to_each_request_and_reports_prompts_of_people() {
    let Some(node) = program("node") else { return };
    let environment = Environment::new();
    environment.forge(["hooks", "install", "opencode", "--project", "--yes"]).success();
    // A fake forge that counts its calls and records its input.
    environment.write(
        "tmp/forge",
        "#!/bin/sh\necho \"$3 $(cat)\" >> calls\nprintf '{\"context\":[\"call %s\"]}' $(wc -l < calls)\n",
    );
    use std::os::unix::fs::PermissionsExt;
    let fake = environment.path("tmp/forge");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plugin = environment.read("project/.opencode/plugins/forge.js");
    let plugin = plugin.replace(env!("CARGO_BIN_EXE_forge"), fake.to_str().unwrap());
    environment.write("tmp/plugin.mjs", &plugin);
    environment.write(
        "tmp/try.mjs",
        r#"import { Forge } from "./plugin.mjs"
        const get = async ({ path }) => ({ data: { parentID: path.id === "child" ? "s1" : undefined } })
        const hooks = await Forge({ directory: process.cwd(), worktree: "/", client: { session: { get } } })
        const request = async () => {
          const output = { system: [] }
          await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, output)
          return output.system.join()
        }
        const said = [await request(), await request()]
        const done = hooks["experimental.compaction.autocontinue"]({ sessionID: "s1" })
        said.push(await request(), await request())
        await done
        const ask = (sessionID, text) =>
          hooks["chat.message"]({ sessionID }, { message: { id: "m1" }, parts: [{ type: "text", text }] })
        await ask("s1", "fix it")
        await ask("child", "look for it")
        await hooks["command.execute.before"]({ sessionID: "s1", command: "review", arguments: "all" })
        await ask("s1", "a long template")
        console.log(JSON.stringify(said))"#,
    );
    let mut attempt = command(&environment, &node);
    attempt.arg(environment.path("tmp/try.mjs"));
    let done = output(attempt);
    assert!(done.status.success(), "{}", text(&done));
    let call_ids: Vec<String> = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(call_ids, ["call 1", "call 1", "call 3", "call 3"]);
    let calls = environment.read("project/calls");
    let prompts: Vec<Value> = calls
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("chat.message ")?).ok())
        .map(|call: Value| call["prompt"].clone())
        .collect();
    assert_eq!(prompts, ["fix it".into(), Value::Null, "/review all".into()]);
}
