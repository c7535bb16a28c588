//! `forge search`: words in everything that was recorded.

use crate::environment::Environment;

#[test]
fn words_are_found_in_claims_commands_and_checkpoints() {
    let place = Environment::new();
    place.forge(["init"]).success();
    place.forge(["hypothesis", "add", "the Cache is stale", "--id", "H1"]).success();
    place.forge(["note", "add", "nothing to see", "--id", "n1"]).success();
    place.forge(["checkpoint", "create", "cache emptied"]).success();
    let found = place.forge(["search", "cache", "--json"]).json();
    assert_eq!(found.pointer("/total"), Some(&2.into()), "{found}");
    assert_eq!(found.pointer("/hits/0/kind"), Some(&"checkpoint".into()), "{found}");
    assert_eq!(found.pointer("/hits/1/id"), Some(&"H1".into()));
    assert_eq!(found.pointer("/hits/1/revision"), Some(&1.into()));
    let found = place.forge(["search", "cache", "--kind", "hypothesis"]).success();
    assert!(found.contains("hypothesis H1  #1\n  the Cache is stale"), "{found}");
    let none = place.forge(["search", "cache", "nowhere"]).success();
    assert!(none.starts_with("Nothing was found"), "{none}");
    // A new session sees nothing of another one.
    place.forge(["session", "new", "other"]).success();
    place.forge(["note", "add", "a cache here too", "--id", "n2"]).success();
    let count = |all: bool| {
        let args = ["search", "cache", "--json"];
        let mut command = place.command(args);
        if all {
            command.arg("--all-sessions");
        }
        place.finished(&mut command).json().pointer("/total").and_then(|total| total.as_u64())
    };
    assert_eq!((count(false), count(true)), (Some(1), Some(3)));
    // Regression: nothing said that there is more to search.
    let none = place.forge(["search", "emptied"]);
    assert_eq!(none.stderr, "'--all-sessions' searches the other sessions too.\n", "{none}");
}

#[test]
fn a_query_that_is_too_long_is_refused_with_its_limit() {
    let place = Environment::new();
    place.forge(["init"]).success();
    let many: Vec<String> = (0..40).map(|number| format!("w{number}")).collect();
    let run = |words: &[String]| {
        let mut command = place.command(["search"]);
        place.finished(command.args(words)).to_string()
    };
    let message = run(&many);
    assert!(message.contains("[exit 2]"), "{message}");
    assert!(message.contains("at most 32 words, and this one has 40"), "{message}");
    // One argument of a command has at most 128 KiB, so the text is in two arguments.
    let message = run(&["x".repeat(70_000), "y".repeat(70_000)]);
    assert!(message.contains("at most 131072 bytes, and this one has 140001"), "{message}");
}
