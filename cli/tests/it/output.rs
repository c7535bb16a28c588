//! Colour, width and pipes.

use crate::environment::Environment;
use std::process::Stdio;

#[test]
fn colour_follows_the_environment_and_the_option_color() {
    let list = ["config", "list"];
    let is_colored =
        |environment: &Environment| environment.forge(list).success().contains('\u{1b}');
    assert!(!is_colored(&Environment::new()), "no terminal");
    let forced = Environment::new().with("CLICOLOR_FORCE", "1");
    assert!(is_colored(&forced));
    let refused = Environment::new().with("CLICOLOR_FORCE", "1").with("NO_COLOR", "1");
    assert!(!is_colored(&refused));
    assert!(refused.forge(["config", "list", "--color=always"]).success().contains('\u{1b}'));
    assert!(!forced.forge(["config", "list", "--color", "never"]).success().contains('\u{1b}'));
    assert!(!forced.forge(["config", "list", "--json"]).success().contains('\u{1b}'));
    let error = Environment::new().with("NO_COLOR", "1").forge(["config", "get", "x"]);
    assert!(!error.stderr.contains('\u{1b}'));
    let error = Environment::new().forge(["config", "get", "x", "--color=always"]);
    assert!(error.stderr.contains("\u{1b}[0m"));
}

#[test]
fn tables_fit_the_width() {
    let environment = Environment::new().with("COLUMNS", "40");
    environment.write("config/forge/config.toml", "pager = \"less --a-long-option -FRX\"\n");
    let text = environment.forge(["config", "list"]).success();
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    assert!(text.contains('…'));
}

#[test]
fn control_characters_of_a_setting_are_printed_as_escapes() {
    let environment = Environment::new();
    environment.write("config/forge/config.toml", "pager = \"\\u001b[2Jmore\\u202e\"\n");
    let text = environment.forge(["config", "get", "pager"]).success();
    assert_eq!(text, "\\x1b[2Jmore\\u{202e}\n");
}

#[test]
fn the_version_is_printed_on_stdout_with_exit_code_0() {
    let environment = Environment::new();
    let version = format!("forge {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(environment.forge([flag]).success(), version);
    }
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let environment = Environment::new();
    let runs: [&[&str]; 5] = [
        &["config", "list"],
        &["config", "list", "--json"],
        &["completions", "bash"],
        &["man"],
        &["checkpoint", "--help"],
    ];
    for args in runs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = environment.command(args);
        let output = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]), "{args:?}");
    }
}

#[test]
fn writing_the_output_to_a_full_disk_is_an_error() {
    let environment = Environment::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = environment.command(["config", "list"]);
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write to standard output"));
}
