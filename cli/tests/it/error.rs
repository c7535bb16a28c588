//! Errors as text and JSON, and the exit code of each kind.

use crate::environment::Environment;
use insta::assert_snapshot;

#[test]
fn wrong_usage_exits_with_2_and_names_the_fault() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["xyzzy"]), @r"
    [stderr]
    error: unrecognized subcommand 'xyzzy'

    Usage: forge [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["hypothesis", "add", "x", "--confidence", "1.7"]), @"
    [stderr]
    error: invalid value '1.7' for '--confidence <SHARE>': must be a number from 0 to 1, a percentage such as 70%, or one of low, even, high

    For more information, try '--help'.
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["prune"]), @"
    [stderr]
    error: unrecognized subcommand 'prune'

      tip: there is 'forge checkpoint prune'

    Usage: forge [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    let strength = ["evidence", "add", "x", "--hypothesis", "h", "--strength", "NaN"];
    assert_eq!(environment.forge(strength).code, 2);
    assert_eq!(environment.forge(["session", "new", "a\u{1b}b"]).code, 2);
    assert_eq!(environment.forge(["checkpoint", "at", " "]).code, 2);
    assert_eq!(environment.forge(["checkpoint", "at", "now", "--kind", "theory"]).code, 2);
    assert_eq!(environment.forge([]).code, 2);
}

#[test]
fn arguments_that_are_not_utf8_are_wrong_usage() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let environment = Environment::new();
    let args = [OsStr::new("note"), OsStr::new("add"), OsStr::from_bytes(b"\xff")];
    let output = environment.finished(&mut environment.command(args));
    assert_eq!(output.code, 2, "{output}");
}

#[test]
fn with_option_json_errors_are_json() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["xyzzy", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"usage","message":"unrecognized subcommand 'xyzzy'","causes":[],"hints":["'--help' after the command explains it"]}}
    [exit 2]
    "#);
    // Regression: the hint suggested 'purge', which removes data from every moment.
    assert_snapshot!(environment.forge(["prune", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"usage","message":"unrecognized subcommand 'prune'","causes":[],"hints":["there is 'forge checkpoint prune'","'--help' after the command explains it"]}}
    [exit 2]
    "#);
    environment.write("config/forge/config.toml", "color = true\n");
    assert_snapshot!(environment.forge(["status", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"invalid","message":"'$ROOT/config/forge/config.toml' cannot be used","causes":["'color' must be auto, always or never, not 'true'"],"hints":["correct the file, or move it away"]}}
    [exit 2]
    "#);
}

#[test]
fn a_missing_argument_is_named_in_json() {
    let environment = Environment::new();
    let output = environment.forge(["checkpoint", "show", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    let message = "the following required arguments were not provided: <X>";
    assert_eq!((output.code, error["error"]["message"].as_str()), (2, Some(message)));
}

#[test]
fn a_named_store_that_does_not_exist_is_not_found() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["config", "set", "color", "never", "--store", "nowhere"]), @r"
    [stderr]
    error: there is no store '$ROOT/project/nowhere'
    hint: 'forge init' with the same '--store' makes it
    hint: '--user' changes your own file
    [exit 3]
    ");
}
