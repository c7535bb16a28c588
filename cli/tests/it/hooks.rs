//! `forge hooks`: previews, installations, status and removal.

use crate::environment::Environment;
use forge_cli::integration::{permission_rules, section};
use insta::assert_snapshot;
use std::path::Path;

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/install-hooks.md");
    std::fs::read_to_string(page).unwrap()
}

/// Replaces the path of the binary under test by `FORGE`: it is printed, because this binary is not
/// the `forge` on the path.
fn named(text: &str) -> String {
    text.replace(env!("CARGO_BIN_EXE_forge"), "FORGE")
}

#[test]
fn without_consent_the_plan_is_shown_and_nothing_changes() {
    let environment = Environment::new().with("COLUMNS", "500");
    environment.make_directory("project/.forge");
    let shown = environment.forge(["hooks", "install", "cursor", "--project"]);
    assert_eq!(shown.code, 1);
    assert_snapshot!(named(&shown.stdout), @r#"
    forge for Cursor, for everybody in this project:

    Hooks in .cursor/hooks.json (a new file)
      sessionStart: FORGE hook cursor sessionStart
      beforeSubmitPrompt: FORGE hook cursor beforeSubmitPrompt
      afterShellExecution: FORGE hook cursor afterShellExecution
      afterFileEdit: FORGE hook cursor afterFileEdit
      preCompact: FORGE hook cursor preCompact
      stop: FORGE hook cursor stop
      sessionEnd: FORGE hook cursor sessionEnd

    MCP server in .cursor/mcp.json (a new file)
      forge: {"args":["mcp"],"command":"FORGE"}

    Section of instructions in AGENTS.md (a new file)
      <!-- forge: begin -->
      ## Debugging notes (forge)
      forge keeps what is known, believed and tried here, and outlives compaction. Record as you go:
      - an idea of the cause: `FORGE hypothesis add 'TEXT'`; settled: `FORGE hypothesis confirm|reject ID`
      - what speaks for or against it: `FORGE evidence add 'TEXT' --hypothesis ID --strength -1..1`
      - what is taken to be true: `FORGE belief add 'TEXT'`; what is not known: `FORGE gap add 'TEXT'`
      - a result of a test, build or check: `FORGE verification add NAME --status passed|failed`
      - before a risky step: `FORGE checkpoint create 'TEXT'`
      After a break or a compaction `FORGE brief` shows the present state, `FORGE log` how it came about.
      `FORGE COMMAND --help` explains each. Ask before `restore`, `undo`, `prune` or `purge`.
      <!-- forge: end -->

    Cursor can allow a whole program only, so no permission rules are written.

    The hooks call 'FORGE': they fail for anyone who has forge elsewhere or not at all.

    Nothing was changed; '--yes' does it.
    "#);
    assert!(!environment.path("project/.cursor").exists());
}

#[test]
fn hooks_are_installed_reported_and_uninstalled() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let done = environment.forge(["hooks", "install", "claude", "--yes"]).success();
    assert_snapshot!(named(&done), @r"
    Installed for Claude Code, for you in this project:
      hooks in .claude/settings.local.json
      MCP server in ~/.claude.json
      section of instructions in CLAUDE.local.md
      permission rules in .claude/settings.local.json

    'forge doctor' says whether it works, 'forge hooks uninstall claude --local' removes all of it.
    ");
    let again = environment.forge(["hooks", "install", "claude", "--yes"]).success();
    assert_snapshot!(again, @r"All of it is there already for Claude Code.");
    assert_snapshot!(named(&environment.forge(["hooks", "status"]).success()), @r"
    Claude Code, for you in this project
      hooks in .claude/settings.local.json: installed
      MCP server in ~/.claude.json: installed
      section of instructions in CLAUDE.local.md: installed
      permission rules in .claude/settings.local.json: installed

    Not installed: Codex CLI, Gemini CLI, Cursor, OpenCode.
    ");
    let removed = environment.forge(["hooks", "uninstall", "claude"]).success();
    assert_snapshot!(removed, @r"Removed for Claude Code: .claude/settings.local.json, ~/.claude.json, CLAUDE.local.md");
    let removed = environment.forge(["hooks", "uninstall", "claude"]).success();
    assert_eq!(removed, "Nothing is installed for Claude Code, for you in this project.\n");
    assert!(!environment.path("project/.claude").exists());
}

#[test]
fn every_hooks_command_reports_json() {
    let environment = Environment::new();
    let done = environment.forge(["hooks", "install", "gemini", "--yes", "--json"]).json();
    assert_eq!(done["schema"], "forge.hooks.install/1");
    assert_eq!((&done["outcome"], &done["scope"]), (&"now".into(), &"user".into()));
    assert_eq!(done["parts"].as_array().unwrap().len(), 4);
    assert!(done["notes"][0].as_str().unwrap().contains("until 'forge init' makes one"), "{done}");
    let status = environment.forge(["hooks", "status", "--json"]).json();
    assert_eq!(status["schema"], "forge.hooks.status/1");
    assert_eq!(status["store"], false);
    assert_eq!(status["installed"][0]["agent"], "gemini");
    assert!(status["installed"][0]["parts"].as_array().unwrap().iter().all(|part| {
        part["installed"] == true && part["current"] == true && part["error"].is_null()
    }));
    assert_eq!(status["not_installed"].as_array().unwrap().len(), 4);
    let text = environment.forge(["hooks", "status", "gemini"]).success();
    assert!(text.contains("does nothing here: this project has no store"), "{text}");
    let removed = environment.forge(["hooks", "uninstall", "gemini", "--json"]).json();
    assert_eq!(removed["schema"], "forge.hooks.uninstall/1");
    assert_eq!(removed["files"].as_array().unwrap().len(), 3);
}

#[test]
fn a_part_that_an_agent_lacks_is_refused() {
    let environment = Environment::new();
    let refused = environment.forge(["hooks", "install", "codex", "--local", "--yes"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("Codex CLI has no settings for one person in one project"));
    let refused = environment.forge(["hooks", "install", "codex", "--user", "--project"]);
    assert_eq!(refused.code, 2);
}

#[test]
fn a_missing_binary_is_reported() {
    let environment = Environment::new();
    environment.write(
        "project/.cursor/hooks.json",
        r#"{"version":1,"hooks":{"stop":[{"command":"'/gone/with a/forge' hook cursor stop"}]}}"#,
    );
    let status = environment.forge(["hooks", "status", "cursor"]).success();
    assert!(status.contains("calls /gone/with a/forge, which is not there"), "{status}");
    environment.write("project/.cursor/hooks.json", "{");
    let status = environment.forge(["hooks", "status", "cursor"]).success();
    assert!(status.contains("unknown: it is not JSON"), "{status}");
    let refused = environment.forge(["hooks", "install", "cursor", "--project", "--yes"]);
    assert_eq!(refused.code, 2);
    assert_snapshot!(refused.stderr, @r"
    error: '$ROOT/project/.cursor/hooks.json' cannot be changed
    Caused by: it is not JSON: Unterminated object on line 1 column 1
    hint: nothing was changed; correct the file, or move it away
    ");
}

#[test]
fn installing_hooks_warns_about_files_that_git_does_not_ignore() {
    let environment = Environment::new();
    let git = |arguments: &[&str]| {
        let project = environment.path("project");
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(project)
            .args(arguments)
            .env("HOME", environment.path("home"))
            .output();
        assert!(done.unwrap().status.success());
    };
    git(&["init", "-q"]);
    environment.write("project/.gitignore", "CLAUDE.local.md\n");
    let shown = environment.forge(["hooks", "install", "claude", "--json"]);
    assert_eq!(shown.code, 1);
    let notes = shown.stdout;
    let one = "git does not ignore .claude/settings.local.json: a line in '.git/info/exclude' \
               keeps it yours.";
    assert!(notes.contains(one), "{notes}");
}

#[test]
fn the_page_on_hooks_has_the_section_the_permission_rules_and_the_files() {
    let page = page();
    assert!(page.contains(&section::section_text("forge")), "{}", section::section_text("forge"));
    for command in permission_rules::ALLOWED {
        assert!(page.contains(&format!("`forge {command}`")), "{command}");
    }
    for tool in permission_rules::ALLOWED_TOOLS {
        assert!(page.contains(&format!("`{tool}`")), "{tool}");
    }
    let environment = Environment::new();
    for agent in ["claude", "codex", "gemini", "cursor", "opencode"] {
        for scope in ["--local", "--project", "--user"] {
            let shown = environment.forge(["hooks", "install", agent, scope, "--json"]);
            if shown.code == 2 {
                continue;
            }
            let row = format!("| {agent} | `{scope}` |");
            let row = page.lines().find(|line| line.starts_with(&row)).unwrap();
            let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
            for part in shown["parts"].as_array().unwrap() {
                let file = part["file"].as_str().unwrap();
                // In the tests, the directory of settings is not in the home directory.
                let file = file.replace("$ROOT/config", "~/.config");
                assert!(row.contains(&format!("`{file}`")), "{agent} {scope}: {file}");
            }
        }
    }
}
