//! `forge purge`: where the secret comes from, what is said of it, and when it is not yet gone.

use crate::environment::Environment;
use serde_json::json;

const SECRET: &str = "s3cr3t-Zx9Kq2Lm7Pv4";

#[test]
fn the_page_on_purging_holds() {
    crate::page::holds("purge.md");
}

/// A store with the secret in a note and a checkpoint, and a file that holds it.
fn told() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", &format!("the key is {SECRET}")]).success();
    environment.forge(["checkpoint", "create", &format!("with {SECRET}")]).success();
    environment.write("project/secret", &format!("{SECRET}\n"));
    environment
}

#[test]
fn a_secret_from_a_file_or_the_environment_is_purged_and_never_said() {
    let environment = told();
    let refused = environment.forge(["purge", "secret"]);
    assert_eq!(refused.code, 2, "it cannot be taken back: {refused}");
    let before = environment.forge(["log", "--json"]).stdout;
    let looked = environment.forge(["purge", "secret", "--dry-run", "--json"]);
    assert!(!looked.stdout.contains(SECRET));
    let looked = looked.json();
    let kinds: Vec<_> =
        looked["places"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, [&json!("revision"), &json!("checkpoint")]);
    assert_eq!(environment.forge(["log", "--json"]).stdout, before);

    let mut command = environment.command(["purge", "--env", "LEAKED", "--yes", "--json"]);
    let purged = environment.finished(command.env("LEAKED", SECRET)).json();
    assert_eq!((&purged["done"], &purged["found"]), (&json!(true), &json!([])));
    assert_eq!(purged["places"], looked["places"]);
    let after = environment.forge(["log", "--json"]).stdout;
    assert!(!after.contains(SECRET) && after.contains("purgedxxx"), "{after}");
    let again = environment.forge(["purge", "secret", "--yes"]).success();
    assert!(again.starts_with("Nothing was left to replace"), "{again}");
    environment.forge(["verify", "--read-data"]).success();
}

#[test]
fn what_cannot_be_looked_for_is_refused_and_nothing_is_changed() {
    let environment = told();
    environment.write("project/short", "abc");
    for (arguments, said) in [
        (vec!["purge", "short", "--yes"], "shorter than 6 bytes"),
        (vec!["purge", "missing", "--yes"], "cannot read"),
        (vec!["purge", "--env", "NOT_SET_ANYWHERE", "--yes"], "is not set"),
        (vec!["purge", "--pattern", "(", "--yes"], "no regular expression"),
        (vec!["purge", "--yes"], "what is to be purged"),
        (vec!["purge"], "what is to be purged"),
        (vec!["purge", "secret"], "'--dry-run' says where it stands"),
    ] {
        let refused = environment.finished(&mut environment.command(&arguments));
        assert!(refused.code > 1, "{arguments:?}: {refused}");
        assert!(refused.stderr.contains(said), "{arguments:?}: {refused}");
    }
    assert!(environment.forge(["log", "--json"]).stdout.contains(SECRET));
}

#[test]
fn patterns_and_rules_find_what_nobody_names() {
    let environment = told();
    let token = format!("ghp_{}", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
    environment.forge(["note", "add", "--no-redact", &format!("token {token}")]).success();
    let found = environment.forge([
        "purge",
        "--rules",
        "--pattern",
        "s3cr3t-[A-Za-z0-9]+",
        "--yes",
        "--json",
    ]);
    let found = found.json();
    assert_eq!(found["secrets"], 2);
    let log = environment.forge(["log", "--json"]).stdout;
    assert!(!log.contains(SECRET) && !log.contains(&token), "{log}");
    let nothing = environment.forge(["purge", "--rules", "--dry-run", "--json"]).json();
    assert_eq!((&nothing["secrets"], &nothing["places"]), (&json!(0), &json!([])));
}
