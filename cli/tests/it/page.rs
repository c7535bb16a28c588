//! Runs the console blocks of the pages and compares the output of each command with the page.
//!
//! The commands of a page run in one new folder, from first to last. The recorded example is in
//! `~/forge/docs/example`, as in a clone. `FORGE_UPDATE_DOCS=1 cargo test -p forge-cli page`
//! updates the pages.

use crate::environment::Environment;
use forge_store::shell;
use std::path::{Path, PathBuf};

const BEGIN: &str = "```console";
const END: &str = "```";
/// The recorded example that `make demo` plays.
const EXAMPLE: &str = "docs/example/session.jsonl";

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs the examples of a page in `docs`, from the first to the last.
#[track_caller]
pub(crate) fn holds(name: &str) {
    let path = root().join("docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let environment = Environment::new();
    let example = std::fs::read_to_string(root().join(EXAMPLE)).unwrap();
    environment.write(&format!("home/forge/{EXAMPLE}"), &example);
    let wanted = with_current_output(&environment, &page);
    assert!(page.matches(BEGIN).count() > 1, "{name} has no examples");
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let different = page.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        page == wanted,
        "docs/{name} differs from what the commands print, first at {different:#?}; \
         FORGE_UPDATE_DOCS=1 writes it"
    );
}

/// Returns the page with the current output of its commands. The binary under test is shown as if
/// it were installed.
fn with_current_output(environment: &Environment, page: &str) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_forge")).parent().unwrap().to_str().unwrap();
    let mut page_text = String::new();
    let mut lines = page.lines().peekable();
    let mut push = |line: &str| {
        page_text.push_str(line);
        page_text.push('\n');
    };
    while let Some(line) = lines.next() {
        push(line);
        if line != BEGIN {
            continue;
        }
        while let Some(line) = lines.next() {
            if line == END {
                push(line);
                break;
            }
            // The output that the page has is left out.
            let Some(first) = line.strip_prefix("$ ") else { continue };
            push(line);
            let mut command = first.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with("> ") || *line == ">") {
                push(more);
                command.push('\n');
                command.push_str(more.strip_prefix("> ").unwrap_or_default());
            }
            // A reader types all commands of a page into one shell.
            let moves = shell::split(&command).iter().any(|one| {
                one.words.first().is_some_and(|program| program == "cd" || program == "export")
            });
            assert!(
                !moves || command.starts_with('('),
                "brackets keep the reader's folder: {command}"
            );
            let output = environment.finished(&mut environment.shell(&command));
            output.stdout.replace(binaries, "/usr/local/bin").lines().for_each(&mut push);
            if output.code != 0 {
                push(&format!("[exit {}]", output.code));
            }
        }
    }
    page_text
}

#[test]
fn examples_of_the_readme_work() {
    holds("../README.md");
}

/// `make readme-screen` updates the screen in the README.
#[test]
fn the_screen_of_the_readme_is_the_brief_that_an_agent_gets() {
    let environment = Environment::new();
    let script = root().join("scripts/demo");
    let mut play = environment.shell(&format!("{} --handed", script.display()));
    play.env("FORGE_BINARY", env!("CARGO_BIN_EXE_forge"));
    let output = play.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let shown = readme
        .split_once("<!-- screen:begin -->\n```text\n")
        .and_then(|(_, rest)| rest.split_once("```\n<!-- screen:end -->"));
    assert_eq!(shown.map(|(shown, _)| shown), Some(printed.as_str()), "make readme-screen");
}

#[test]
fn examples_of_the_tutorial_work() {
    holds("tutorial.md");
}

#[test]
fn examples_of_the_concepts_page_work() {
    holds("concepts.md");
}

#[test]
fn examples_of_the_claude_code_page_work() {
    holds("claude-code.md");
}

#[test]
fn examples_of_the_story_page_work() {
    holds("story.md");
}

#[test]
fn examples_of_the_report_page_work() {
    holds("report.md");
}

#[test]
fn examples_of_the_recipes_page_work() {
    holds("recipes.md");
}

#[test]
fn examples_of_the_runs_page_work() {
    holds("systems/runs.md");
}

#[test]
fn examples_of_the_progress_page_work() {
    holds("systems/progress.md");
}

#[test]
fn examples_of_the_programs_page_work() {
    holds("systems/programs.md");
}

#[test]
fn examples_of_the_threads_page_work() {
    holds("systems/threads.md");
}

#[test]
fn examples_of_the_bundles_page_work() {
    holds("bundles.md");
}

#[test]
fn examples_of_the_verify_page_work() {
    holds("verify.md");
}

#[test]
fn the_output_of_commands_replaces_the_output_in_the_page() {
    let page = "x\n```console\n$ echo a\nold\n$ printf '%s\\n' \\\n> b; exit 3\n```\ny\n";
    let wanted =
        "x\n```console\n$ echo a\na\n$ printf '%s\\n' \\\n> b; exit 3\nb\n[exit 3]\n```\ny\n";
    assert_eq!(with_current_output(&Environment::new(), page), wanted);
}
