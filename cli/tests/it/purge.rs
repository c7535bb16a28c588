//! `forge purge`: the source of the secret, the report, and what is reported while it is not
//! complete.

use crate::environment::Environment;
use forge_testkit::files::files_below;
use serde_json::json;
use std::path::{Path, PathBuf};

const SECRET: &str = "s3cr3t-Zx9Kq2Lm7Pv4";

#[test]
fn examples_of_the_purging_page_work() {
    crate::page::holds("purge.md");
}

/// Makes a store with the secret in a note and a checkpoint, and a file that contains the secret.
fn store_with_secret() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", &format!("the key is {SECRET}")]).success();
    environment.forge(["checkpoint", "create", &format!("with {SECRET}")]).success();
    environment.write("project/secret", &format!("{SECRET}\n"));
    environment
}

#[test]
fn a_secret_from_a_file_or_the_environment_is_purged_and_never_printed() {
    let environment = store_with_secret();
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

/// The two lines were looked for as one secret, and the purge only said that nothing was left.
#[test]
fn a_file_with_several_secrets_is_said_to_be_looked_for_as_a_whole() {
    let environment = store_with_secret();
    environment.write("project/both", &format!("another-secret\n{SECRET}\n"));
    let looked = environment.forge(["purge", "both", "--dry-run"]);
    assert_eq!((looked.code, looked.stdout.as_str()), (0, "Nothing would be replaced\n"));
    let warning = "warning: a secret with several lines is looked for as a whole: if each line is";
    assert!(looked.stderr.starts_with(warning), "{looked}");
}

#[test]
fn a_secret_that_cannot_be_searched_is_refused_and_nothing_is_changed() {
    let environment = store_with_secret();
    environment.write("project/short", "abc");
    for (arguments, expected) in [
        (vec!["purge", "short", "--yes"], "shorter than 6 bytes"),
        (vec!["purge", "missing", "--yes"], "cannot read"),
        (vec!["purge", "--env", "NOT_SET_ANYWHERE", "--yes"], "is not set"),
        (vec!["purge", "--pattern", "(", "--yes"], "not a regular expression"),
        (vec!["purge", "--pattern", "the k", "--yes"], "shorter than 6 bytes"),
        (vec!["purge", "--pattern", "the key|with", "--dry-run"], "make the pattern match more"),
        (vec!["purge", "--pattern", "z*", "--yes"], "shorter than 6 bytes"),
        (vec!["purge", "--pattern", "description", "--yes"], "it occurs in 'description'"),
        (vec!["purge", "--pattern", "[a-z]+ription", "--dry-run"], "it occurs in 'description'"),
        (vec!["purge", "--yes"], "what is to be purged"),
        (vec!["purge"], "what is to be purged"),
        (vec!["purge", "secret"], "'--dry-run' shows where the secret is"),
    ] {
        let refused = environment.finished(&mut environment.command(&arguments));
        assert!(refused.code > 1, "{arguments:?}: {refused}");
        assert!(refused.stderr.contains(expected), "{arguments:?}: {refused}");
    }
    assert!(environment.forge(["log", "--json"]).stdout.contains(SECRET));
}

#[test]
fn patterns_and_rules_find_secrets_that_were_not_named() {
    let environment = store_with_secret();
    let token = format!("ghp_{}", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
    environment.forge(["note", "add", "--no-redact", &format!("token {token}")]).success();
    let found = environment
        .forge(["purge", "--rules", "--pattern", "s3cr3t-[A-Za-z0-9]+", "--yes", "--json"]);
    let found = found.json();
    assert_eq!(found["secrets"], 2);
    let log = environment.forge(["log", "--json"]).stdout;
    assert!(!log.contains(SECRET) && !log.contains(&token), "{log}");
    environment.forge(["note", "add", "the Kürzel is äb-1234 here"]).success();
    for pattern in [r"\bäb-\d{4}\b", "(?i)\\bKÜRZEL\\b is", r"\w+zel\s+is"] {
        let found = environment.forge(["purge", "--pattern", pattern, "--dry-run", "--json"]);
        assert_eq!(found.json()["secrets"], 1, "{pattern}");
    }
    let nothing = environment.forge(["purge", "--rules", "--dry-run", "--json"]).json();
    assert_eq!((&nothing["secrets"], &nothing["places"]), (&json!(0), &json!([])));
}

/// A secret with a slash: ids that are joined from several words contain it and its replacement in
/// escaped form.
const SLASHED: &str = "s3cr3t/Zx9Kq2Lm7Pv4";
const MASK: &str = "purged/xxxxxxxxxxxx";

/// Runs shell lines with a text in place of `SECRET`. Returns each line with its output, without
/// numbers and words of times.
fn outputs_of(environment: &Environment, lines: &[&str], text: &str) -> Vec<(String, String)> {
    let is_time = |word: &&str| {
        ["s", "min", "ago", "in", "now"].contains(word)
            || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let run = |line: &&str| {
        let output = environment.finished(&mut environment.shell(&line.replace("SECRET", text)));
        let words = format!("{} [exit {}]", output.stdout, output.code);
        let words = words.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>();
        ((*line).to_owned(), words.join(" "))
    };
    lines.iter().map(run).collect()
}

/// Returns the number of files below a folder that contain the secret in one of its forms.
fn files_with_it(folder: &Path) -> usize {
    let forms = [SLASHED.to_owned(), SLASHED.replace('/', "%2F"), SLASHED.replace('/', "\\/")];
    let has_it = |file: &&PathBuf| {
        let bytes = std::fs::read(file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        forms.iter().any(|form| text.contains(form))
    };
    files_below(folder).iter().filter(has_it).count()
}

/// Runs, progress, threads and programs that contained the secret can be read and continued with
/// its replacement.
#[test]
fn the_systems_continue_after_a_purge() {
    let environment = Environment::new();
    environment.write("project/secret", SLASHED);
    environment.write(
        "project/doc.json",
        &format!(
            r#"{{"stage":"screen","progress":{{"items_processed":2,"items_total":9}},"last_processed":{{"document_id":"{SLASHED}"}},"error_info":{{"error_count":1,"failed_item_ids":["{SLASHED}"]}}}}"#
        ),
    );
    let call = format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{SLASHED}","type":"function","function":{{"name":"login","arguments":"{{\"key\":\"{SLASHED}\"}}"}}}}]}}"#
    );
    let message = format!(r#"{{"role":"user","content":"my key is {SLASHED}"}}"#);
    environment.write("project/history.jsonl", &format!("{message}\n{call}\n"));
    let result = format!(r#"{{"role":"tool","tool_call_id":"call_{MASK}","content":"in"}}"#);
    environment.write("project/result.jsonl", &format!("{result}\n"));
    let writes = [
        "forge --no-redact init",
        "forge --no-redact run start --run 'r SECRET' --input '[\"SECRET\",\"other\"]'",
        "forge --no-redact run record --run 'r SECRET' --item SECRET --step s1 --name made --output 'out SECRET' --data '{\"k\":\"SECRET\"}' --next s2",
        "forge --no-redact run record --run 'r SECRET' --item SECRET --step s2 --output \"$(yes SECRET | head -900)\" --next SECRET",
        "forge --no-redact run record --run 'r SECRET' --item other --step SECRET --output fine --next s2",
        "forge --no-redact progress save --review SECRET --execution e1 doc.json",
        "forge --no-redact progress save --review SECRET --execution e1 --item-done SECRET",
        "forge --no-redact progress save --review SECRET --execution e1 --item-failed d2 --error 'HTTP 429 for SECRET'",
        "forge --no-redact thread append --thread 't SECRET' history.jsonl",
        "forge --no-redact session new 'a SECRET'",
        "forge --no-redact session new b",
        "forge --no-redact checkpoint create 'waits for SECRET' --tags first --session 'a SECRET'",
        "forge --no-redact checkpoint create 'has SECRET' --tags second --session b",
        "forge --no-redact program checkpoint --program 'p SECRET' --agent 'a SECRET=first' --agent b=second",
        "forge --no-redact program message 'offer SECRET' --program 'p SECRET' --from 'a SECRET' --to b",
    ];
    for (line, output) in outputs_of(&environment, &writes, SLASHED) {
        assert!(output.ends_with("[exit 0]"), "{line}: {output}");
    }
    let reads = [
        "forge run show --run 'r SECRET' --item SECRET",
        "forge run output --run 'r SECRET' --item SECRET --step s1",
        "forge run output --run 'r SECRET' --item SECRET --step s2",
        "forge run path --run 'r SECRET' --item SECRET",
        "forge run history --run 'r SECRET' --item SECRET",
        "forge run exists --run 'r SECRET' --item other --step SECRET",
        "forge run resume --run 'r SECRET'",
        "forge run render '{made_output} {k}' --run 'r SECRET' --item SECRET",
        "forge run list",
        "forge progress show --review SECRET --execution e1",
        "forge progress done SECRET --review SECRET --stage screen",
        "forge progress resume --review SECRET --stage screen",
        "forge progress failed --review SECRET --execution e1",
        "forge progress validate --review SECRET --execution e1",
        "forge progress list",
        "forge thread show --thread 't SECRET'",
        "forge thread pending --thread 't SECRET'",
        "forge thread check --thread 't SECRET'",
        "forge program show --program 'p SECRET'",
        "forge program resume --program 'p SECRET'",
        "forge session list",
    ];
    let before = outputs_of(&environment, &reads, SLASHED);
    let count = before.iter().filter(|(_, output)| output.contains(SLASHED)).count();
    assert!(count > 14, "{before:#?}");
    assert!(files_with_it(&environment.path("project/.forge")) > 0);

    let purged = environment.forge(["purge", "secret", "--yes", "--json"]).json();
    assert_eq!((&purged["done"], &purged["foreign"]), (&json!(true), &json!([])), "{purged:#}");
    assert_eq!(files_with_it(&environment.path("project/.forge")), 0);
    let left = environment.forge(["purge", "secret", "--dry-run"]).success();
    assert!(left.starts_with("Nothing would be replaced"), "{left}");
    for ((line, after), (_, before)) in
        outputs_of(&environment, &reads, MASK).into_iter().zip(before)
    {
        assert_eq!(after, before.replace(SLASHED, MASK), "{line}");
    }
    // They can also be continued.
    let further = [
        "forge run record --run 'r SECRET' --item SECRET --step s3 --output more --terminal",
        "forge run record --run 'r SECRET' --item SECRET --step s1 --name made --output 'out SECRET' --data '{\"k\":\"SECRET\"}' --next s2",
        "forge progress save --review SECRET --execution e1 --item-done SECRET",
        "forge progress save --review SECRET --execution e1 --item-done d2",
        "forge thread append --thread 't SECRET' result.jsonl",
        "forge thread check --thread 't SECRET'",
        "forge program message 'offer SECRET' --program 'p SECRET' --received",
        "forge program resume --program 'p SECRET' --exact",
        "forge undo --session 'a SECRET'",
        "forge verify --read-data",
    ];
    for (line, output) in outputs_of(&environment, &further, MASK) {
        assert!(output.ends_with("[exit 0]"), "{line}: {output}");
    }
}

/// The secret is overwritten in forge's files beside the records. Settings and foreign files are
/// reported.
#[test]
fn files_beside_the_records_are_overwritten_or_named() {
    let environment = store_with_secret();
    let line = format!("{{\"session\":\"{SECRET}\"}}\n");
    environment.write("project/.forge/log/hooks.jsonl", &line);
    environment.write("project/.forge/agents/77", &line);
    environment.write("project/.forge/config.toml", &format!("[redact]\nallow = \"{SECRET}\"\n"));
    environment.write("project/.forge/copy/1.log", SECRET);
    let purged = environment.forge(["purge", "secret", "--yes"]);
    assert_eq!(purged.code, 8, "{purged}");
    for expected in [
        "Written over in agents/77",
        "Written over in log/hooks.jsonl",
        "Left copy as it is: it is not forge's",
        "config.toml holds it 1 time: it is your file, remove it there",
        "copy/1.log holds it 1 time: it is not forge's, remove it",
        "Not yet gone",
    ] {
        assert!(purged.stdout.contains(expected), "{expected}: {purged}");
    }
    assert!(environment.read("project/.forge/config.toml").contains(SECRET), "it is not forge's");
    for file in ["agents/77", "log/hooks.jsonl"] {
        let text = environment.read(&format!("project/.forge/{file}"));
        assert_eq!(text, "{\"session\":\"purgedxxxxxxxxxxxxx\"}\n");
    }
    std::fs::remove_dir_all(environment.path("project/.forge/copy")).unwrap();
    std::fs::remove_file(environment.path("project/.forge/config.toml")).unwrap();
    environment.forge(["purge", "secret", "--yes"]).success();
}

/// In an encrypted store, the lease that a reader holds shows that it uses an older generation, not
/// the content of its files.
#[test]
fn a_reader_of_an_older_state_of_an_encrypted_store_is_named_with_exit_code_8() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s", "--encrypted"]).success();
    environment.forge(["note", "add", &format!("the key is {SECRET}")]).success();
    environment.write("project/secret", SECRET);
    environment.forge(["maintain"]).success();
    let index = environment.path("project/.forge/index");
    let names = std::fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().path());
    let lease = names.filter(|path| path.extension().is_some_and(|ending| ending == "lease"));
    let lease = std::fs::File::open(lease.max().unwrap()).unwrap();
    lease.lock_shared().unwrap();
    let purged = environment.forge(["purge", "secret", "--yes", "--json"]);
    assert_eq!(purged.code, 8, "{purged}");
    let report: serde_json::Value = serde_json::from_str(&purged.stdout).unwrap();
    assert_eq!((&report["done"], report["held"].as_array().unwrap().len()), (&json!(false), 1));
    let pids: Vec<_> =
        report["holders"].as_array().unwrap().iter().map(|one| &one["pid"]).collect();
    assert_eq!(pids, [&json!(std::process::id())]);
    drop(lease);
    let purged = environment.forge(["purge", "secret", "--yes", "--json"]).json();
    assert_eq!((&purged["done"], &purged["held"]), (&json!(true), &json!([])));
    environment.forge(["verify", "--read-data"]).success();
}
