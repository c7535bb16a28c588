//! Pages whose examples are run: in a block of a console, what follows a command is what it prints.
//!
//! `FORGE_UPDATE_DOCS=1 cargo test -p forge-cli page` writes what they print.

use crate::environment::Environment;
use std::path::Path;

const BEGIN: &str = "```console";
const END: &str = "```";

/// Runs the examples of a page in one place, from the first to the last.
#[track_caller]
pub(crate) fn holds(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let wanted = told(&Environment::new(), &page);
    assert!(page.matches(BEGIN).count() > 1, "{name} has no examples");
    if std::env::var_os("FORGE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let different = page.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        page == wanted,
        "docs/{name} is not what happens, first at {different:#?}; FORGE_UPDATE_DOCS=1 writes it"
    );
}

/// The page with what its commands print.
fn told(environment: &Environment, page: &str) -> String {
    let mut told = String::new();
    let mut lines = page.lines().peekable();
    let mut push = |line: &str| {
        told.push_str(line);
        told.push('\n');
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
            // What was printed before is printed anew.
            let Some(first) = line.strip_prefix("$ ") else { continue };
            push(line);
            let mut command = first.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with("> ") || *line == ">") {
                push(more);
                command.push('\n');
                command.push_str(more.strip_prefix("> ").unwrap_or_default());
            }
            let output = environment.finished(&mut environment.shell(&command));
            output.stdout.lines().for_each(&mut push);
            if output.code != 0 {
                push(&format!("[exit {}]", output.code));
            }
        }
    }
    told
}

#[test]
fn the_page_on_runs_holds() {
    holds("systems/runs.md");
}

#[test]
fn the_page_on_progress_holds() {
    holds("systems/progress.md");
}

#[test]
fn the_page_on_programs_holds() {
    holds("systems/programs.md");
}

#[test]
fn the_page_on_threads_holds() {
    holds("systems/threads.md");
}

#[test]
fn the_page_on_bundles_holds() {
    holds("bundles.md");
}

#[test]
fn the_page_on_verify_holds() {
    holds("verify.md");
}

#[test]
fn what_commands_print_takes_the_place_of_what_stood_there() {
    let page = "x\n```console\n$ echo a\nold\n$ printf '%s\\n' \\\n> b; exit 3\n```\ny\n";
    let wanted =
        "x\n```console\n$ echo a\na\n$ printf '%s\\n' \\\n> b; exit 3\nb\n[exit 3]\n```\ny\n";
    assert_eq!(told(&Environment::new(), page), wanted);
}
