//! Completions and manual pages.

use crate::environment::Environment;
use insta::assert_snapshot;

#[test]
fn completions_know_the_commands() {
    let environment = Environment::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = environment.forge(["completions", shell]).success();
        // The small scripts call forge; the others contain all commands.
        let known = ["complete --", "checkpoint"].into_iter().any(|part| script.contains(part));
        assert!(known, "{shell}");
    }
    assert_eq!(environment.forge(["completions", "csh"]).code, 2);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let environment = Environment::new();
    let pages = environment.forge(["man", "pages/man1", "--json"]).json();
    let pages: Vec<&str> =
        pages["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    assert_eq!(pages[0], "forge.1");
    assert!(pages.contains(&"forge-checkpoint-restore.1"));
    assert!(!pages.contains(&"forge-complete.1"), "it is hidden");
    for page in pages {
        let text = environment.read(&format!("project/pages/man1/{page}"));
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let root = environment.forge(["man"]).success();
    assert!(root.contains(".TH forge 1"));
    // Regression: the page had the names of the global options without what they are.
    assert!(root.contains("Session to work in; the current one by default"), "{root}");
}

#[test]
fn an_error_names_the_directory_for_manual_pages_that_cannot_be_created() {
    let environment = Environment::new();
    environment.write("project/file", "");
    assert_snapshot!(environment.forge(["man", "file/pages"]), @r"
    [stderr]
    error: cannot make '$ROOT/project/file/pages'
    Caused by: Not a directory (os error 20)
    [exit 2]
    ");
}
