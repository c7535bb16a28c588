//! `forge checkpoint at` and `forge checkpoint show`: the state at a moment.

use crate::environment::Environment;
use crate::story::{example_session, write_example};
use insta::assert_snapshot;
use serde_json::Value;

/// The keys of a document, in their order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn ids<'a>(document: &'a Value, array: &str) -> Vec<&'a str> {
    let entities = document["state"][array].as_array().unwrap();
    entities.iter().map(|entity| entity["id"].as_str().unwrap()).collect()
}

/// Regression: a suggested command was without the option, so it was about the current session.
#[test]
fn a_suggested_command_names_the_session_that_was_named() {
    let environment = example_session();
    environment.forge(["session", "new", "later"]).success();
    for (command, suggested) in [
        (&["at", "baseline"][..], "\n  forge --session tensor checkpoint diff '#7' "),
        (&["recover", "baseline"], "  forge --session tensor checkpoint at baseline: "),
        (&["branch", "create", "b"], "\n  forge --session tensor branch switch b\n"),
        (&["restore", "baseline"], "'forge --session tensor undo' reverts this."),
        (&["status"], "'forge --session tensor brief' shows what is known"),
        (&["checkpoint", "list", "--tag", "x"], "'forge --session tensor checkpoint list' lists"),
        (&["at", "when H9 was rejected"], "hint: 'forge --session tensor hypothesis list' lists"),
    ] {
        let words = [&["--session", "tensor"][..], command].concat();
        let output = environment.finished(&mut environment.command(&words)).to_string();
        assert!(output.contains(suggested), "{words:?}: {output}");
    }
    let environment = environment.with("FORGE_SESSION", "tensor");
    let output = environment.forge(["at", "baseline"]).success();
    assert!(output.contains("\n  forge checkpoint diff '#7' "), "{output}");
    // A command is shown whole, also if the screen has no room for what it does.
    let environment = environment.with("COLUMNS", "40");
    let output = environment.forge(["at", "baseline"]).success();
    assert!(output.contains("\n  forge checkpoint restore '#7' --dry-run\n"), "{output}");
}

#[test]
fn a_bare_number_names_a_revision_or_checkpoint() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "diff", "7"]), @r#"
    from 2026-02-01 13:00:07 +01:00 (7 s ago) on main #6 "before the split"
    to   2026-02-01 13:00:13 +01:00 (1 s ago) on main #13
    1 note added, 1 verification; 6 s later

    Notes
      + N1 日本語 wide\x1b[2J\ntext

    Verifications
      + v1 unit tests
    "#);
}

#[test]
fn a_moment_shows_its_brief_and_the_next_commands() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "at", "baseline"]), @"
    tensor on main #6, 2026-02-01 13:00:07 +01:00 (7 s ago)
    checkpoint #7 before the split, at this moment
    Active         0.79  H1  the layout is wrong
    Beliefs           -  B2  kernels assume it
                      -  B1  row major everywhere
    Gaps           critical  G1  who sets strides?
                   medium    G2  which version?
    Evidence       E1  strides swap  (H1 +0.80)
    Next           fill the critical gap G1; test the hypothesis H1

      forge checkpoint diff '#7'               what has changed since
      forge checkpoint restore '#7' --dry-run  what a restore would change
      forge checkpoint at '#7' --full          everything known then
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "main@{3s}"]), @"
    tensor on main #6, 2026-02-01 13:00:12 +01:00 (3 s ago)
    checkpoint #12 unit tests failed, at this moment
    Active         0.79  H1  the layout is wrong
    Beliefs           -  B2  kernels assume it
                      -  B1  row major everywhere
    Gaps           critical  G1  who sets strides?
                   medium    G2  which version?
    Failing        failed  unit tests
    Evidence       E1  strides swap  (H1 +0.80)
    Next           fill the critical gap G1; look into the failing verification: unit tests; test the h…

      forge checkpoint diff '2026-02-01T12:00:12Z'               what has changed since
      forge checkpoint restore '2026-02-01T12:00:12Z' --dry-run  what a restore would change
      forge checkpoint at '2026-02-01T12:00:12Z' --full          everything known then
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "alt"]), @"
    tensor on alt #9, 2026-02-01 13:00:13 +01:00 (3 s ago)
    checkpoint #12 unit tests failed (on main), 1 s before
    Rejected       0.79  H1  the layout is wrong  (the layout is fine)
    In doubt          -  B1  row major everywhere  (hypothesis H1 was rejected)
                      -  B2  kernels assume it  (rests on belief B1: hypothesis H1 was rejected)
    Gaps           critical  G1  who sets strides?
                   medium    G2  which version?
    Failing        failed  unit tests
    Evidence       E1  strides swap  (H1 +0.80)
    Next           fill the critical gap G1; look into the failing verification: unit tests; check the…

      forge checkpoint timeline  what led here
      forge log                  each change
    ");
}

/// Regression: a checkpoint of another branch was shown as one of this moment.
#[test]
fn a_checkpoint_of_another_branch_is_shown_with_its_branch() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["branch", "create", "side"]).success();
    environment.forge(["branch", "switch", "side"]).success();
    let shown = environment.forge(["show", "main"]).success();
    assert!(shown.contains("switched from main to side (on side), at the same time\n"), "{shown}");
    let shown = environment.forge(["show", "side"]).success();
    assert!(shown.contains("switched from main to side, at this moment\n"), "{shown}");
}

#[test]
fn the_json_state_at_a_moment_has_every_array_and_its_metadata() {
    let environment = example_session();
    let document = environment.forge(["checkpoint", "at", "now", "--json"]).json();
    let mut found = keys(&document);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "at", "checkpoint", "current_branch", "distance_seconds", "metrics", "revision",
            "schema", "session", "state"
        ]
    );
    let mut arrays = keys(&document["state"]);
    arrays.sort_unstable();
    assert_eq!(
        arrays,
        [
            "agents", "beliefs", "branches", "channel_elements", "channels", "code", "commands",
            "dependencies", "evidence", "gaps", "graph_steps", "graph_writes", "hypotheses",
            "inferences", "items", "measurements", "memory_items", "messages", "notes", "notices",
            "outputs", "programs", "progress", "prompts", "runs", "tasks", "thread_messages",
            "threads", "tools", "verifications"
        ]
    );
    assert_eq!(document["at"], "2026-02-01T12:00:14Z");
    assert_eq!(document["current_branch"], "main");
    assert_eq!(document["distance_seconds"], 1.0);
    assert_eq!(document["session"]["name"], "tensor");
    assert_eq!(document["metrics"]["verifications_run"], 1);
    assert_eq!(ids(&document, "beliefs"), ["B1", "B2"]);
    assert!(!document.to_string().contains("recorded_at"));
    assert_snapshot!(document["state"]["hypotheses"][0], @r#"{"confidence":0.7945077718120256,"created_at":"2026-02-01T12:00:01Z","description":"the layout is wrong","id":"H1","parent":null,"reason":null,"source":null,"status":"active","tags":null}"#);
    assert_snapshot!(document["state"]["verifications"][0], @r#"{"agent":null,"at":"2026-02-01T12:00:12Z","call":null,"check":null,"command":null,"description":null,"duration_ms":null,"exit_code":null,"id":"v1","name":"unit tests","output":null,"source":null,"status":"failed","target":null,"tool":null,"working_dir":null}"#);
    assert_snapshot!(document["state"]["branches"], @r#"[{"approach":null,"base":null,"created_at":"2026-02-01T12:00:00Z","hypothesis":null,"name":"main","results":[],"revision_at":"2026-02-01T12:00:13Z","status":"active","success_criteria":[]},{"approach":null,"base":{"branch":"main","revision_at":"2026-02-01T12:00:06Z"},"created_at":"2026-02-01T12:00:08Z","hypothesis":null,"name":"alt","results":[],"revision_at":"2026-02-01T12:00:10Z","status":"active","success_criteria":[]}]"#);
}

#[test]
fn checkpoint_and_revision_are_null_in_json_before_there_are_any() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["measurement", "record", "loss", "0.5"]).success();
    let document = environment.forge(["checkpoint", "at", "now", "--json"]).json();
    assert_eq!((&document["checkpoint"], &document["revision"]), (&Value::Null, &Value::Null));
    assert_eq!(document["distance_seconds"], 1.0);
    assert_eq!(document["state"]["measurements"][0]["value"], 0.5);
}

#[test]
fn checkpoint_at_reports_an_empty_session() {
    let environment = Environment::new();
    assert_eq!(environment.forge(["checkpoint", "at", "now"]).code, 3);
    environment.forge(["init", "--name", "s"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "at", "now"]), @r"
    [stderr]
    error: the session 's' is empty
    hint: record something first, such as 'forge note add TEXT'
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "HEAD"]), @r"
    s on main, nothing is recorded yet
    Next           state a hypothesis: forge hypothesis add TEXT

      forge checkpoint timeline  what led here
      forge log                  each change
    ");
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    assert_eq!((&document["at"], &document["revision"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_moment_can_be_named_by_revision_time_branch_and_tag() {
    let environment = example_session();
    let revision = |moment: &str| {
        let document = environment.forge(["checkpoint", "at", moment, "--json"]).json();
        let sequence = document["revision"]["sequence"].as_u64();
        (sequence, document["current_branch"].as_str().unwrap().to_owned())
    };
    let main = |sequence| (Some(sequence), "main".to_owned());
    assert_eq!(revision("#1"), main(1));
    assert_eq!(revision("2026-02-01 13:00:01"), main(1));
    let head = revision("HEAD");
    assert_eq!(revision("main"), head);
    assert_eq!(revision("HEAD~2").0, Some(5));
    assert_eq!(revision("baseline"), main(6));
    assert_eq!(revision("start"), main(1));
    assert_eq!(revision("alt").1, "alt");
    assert_eq!(revision("when H1 was active"), main(1));
    let id = environment.forge(["checkpoint", "list", "--tag", "kept", "--json"]);
    assert_eq!(id.code, 0);
    let text = environment.finished_raw(["checkpoint", "list", "--tag", "kept", "--json"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    let id = list["checkpoints"][0]["id"].as_str().unwrap();
    assert_eq!(revision(&id[..12]), main(6));
    assert_eq!(revision(id), main(6));
    // Regression: such a moment named the current branch, and the number of its revision did not.
    environment.forge(["branch", "switch", "alt"]).success();
    assert_eq!(revision("when H1 was active"), main(1));
}

#[test]
fn checkpoint_show_shows_the_named_checkpoint() {
    let environment = example_session();
    let document = environment.forge(["checkpoint", "show", "kept", "--json"]).json();
    assert_eq!(document["schema"], "forge.state/1");
    assert_snapshot!(document["checkpoint"], @r#"{"branch":"main","id":"<id1>","message":"before the split","sequence":7,"tags":["baseline","kept"],"time":"2026-02-01T12:00:07Z","trigger":"manual"}"#);
    assert_eq!(document["at"], document["checkpoint"]["time"]);
}

#[test]
fn option_kind_selects_claims_and_option_full_shows_all_fields() {
    let environment = example_session();
    let args = ["checkpoint", "at", "HEAD", "--kind", "gap", "--kind", "notes", "--json"];
    let document = environment.forge(args).json();
    assert_eq!(keys(&document["state"]), ["gaps", "notes"]);
    assert_snapshot!(environment.forge(["checkpoint", "at", "HEAD", "--kind", "belief"]), @"
    tensor on main #13, 2026-02-01 13:00:13 +01:00 (2 s ago)
    checkpoint #12 unit tests failed, 1 s before

    Beliefs (2)
    Id  Time          Says
    B1   1 Feb 13:00  row major everywhere
    B2   1 Feb 13:00  kernels assume it
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "alt", "--kind", "belief", "--full"]), @"
    tensor on alt #9, 2026-02-01 13:00:13 +01:00 (3 s ago)
    checkpoint #12 unit tests failed (on main), 1 s before

    Beliefs (2)
    belief B1
      description: row major everywhere
      hypothesis: H1
      in doubt: true
      doubt reason: hypothesis H1 was rejected
      created at: 2026-02-01 13:00:03 +01:00 (13 s ago)
    belief B2
      description: kernels assume it
      in doubt: true
      doubt reason: rests on belief B1: hypothesis H1 was rejected
      created at: 2026-02-01 13:00:04 +01:00 (12 s ago)
    ");
    let none = environment.forge(["checkpoint", "at", "HEAD", "--kind", "task"]).success();
    assert!(none.contains("nothing of that kind"), "{none}");
}

#[test]
fn long_texts_are_cut_and_their_hash_given_unless_full_is_set() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    let long = "é".repeat(3000);
    environment.forge(["note", "add", &long, "--id", "N1"]).success();
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    let text = &document["state"]["notes"][0]["description"];
    assert_eq!((text["bytes"].as_u64(), text["text"].as_str().unwrap().len()), (Some(6000), 4096));
    assert!(text["blob"].is_string());
    let document = environment.forge(["checkpoint", "at", "HEAD", "--json", "--full"]).json();
    assert_eq!(document["state"]["notes"][0]["description"], long);
}

/// Regression: the error said that there is no such entity, and named others.
#[test]
fn an_entity_that_came_later_is_not_said_to_be_missing() {
    let environment = example_session();
    for command in [&["show", "G2"][..], &["gap", "show", "G2"], &["why", "g2"], &["blame", "G2"]] {
        let words = [command, &["--at", "#2"]].concat();
        let output = environment.finished(&mut environment.command(&words));
        assert_eq!(output.code, 3, "{output}");
        assert_eq!(
            output.stderr,
            "error: the gap 'G2' is not known at that moment\n\
             hint: it is known now: name a later moment, or none\n"
        );
    }
    let missing = environment.forge(["show", "G9", "--at", "#2"]);
    assert!(missing.stderr.contains("there is no entity 'G9'"), "{missing}");
}

#[test]
fn a_moment_can_be_when_a_gap_was_filled() {
    let environment = example_session();
    environment.forge(["gap", "fill", "G2", "version 3"]).success();
    environment.forge(["note", "written later"]).success();
    let diff = environment.forge(["diff", "when g2 was filled"]).success();
    assert!(diff.contains("written later") && !diff.contains("Gaps"), "{diff}");
    assert_snapshot!(environment.forge(["at", "when G9 was filled"]), @r"
    [stderr]
    error: there is no gap 'G9'
    hint: 'forge gap list' lists them
    [exit 3]
    ");
}

/// Regression: the error named a revision '99 before that one'.
#[test]
fn an_error_about_an_unknown_part_of_a_moment_has_a_hint() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "at", "HEAD~99"]), @r"
    [stderr]
    error: there is no earlier revision '~99'
    hint: 'start' names the first moment
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["gap", "list", "--branch", "other-idea"]), @r"
    [stderr]
    error: there is no branch 'other-idea'
    hint: 'forge branch list --all' lists them
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "when H9 was confirmed"]), @r"
    [stderr]
    error: there is no hypothesis 'H9'
    hint: 'forge hypothesis list' lists them
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "when H1 was archived"]), @r"
    [stderr]
    error: there is no moment at which 'H1 became archived'
    hint: 'forge log H1 --all' shows what it became on each branch
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "before commit 1a2b3c4"]), @r"
    [stderr]
    error: there is no commit '1a2b3c4'
    hint: 'forge checkpoint list --tag commit' lists those that are recorded
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "id:abcdabcdabcd"]), @r"
    [stderr]
    error: there is no checkpoint or revision whose id begins with 'abcdabcdabcd'
    hint: 'forge log --all' lists them with their numbers, such as '#42'
    [exit 3]
    ");
}

#[test]
fn an_unknown_moment_is_an_error_with_a_hint() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "at", "3 hours ago"]), @r"
    [stderr]
    error: nothing is known at 2026-02-01 10:00:14 +01:00: the session 'tensor' begins at 2026-02-01 13:00:01 +01:00
    hint: 'start' names the first moment
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "#99"]), @"
    [stderr]
    error: there is no revision or checkpoint '#99'
    hint: the last is #13
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "show", "basline"]), @"
    [stderr]
    error: there is no tag, branch or id 'basline'
    hint: the nearest is baseline
    hint: 'basline' is not a time: write for example '2 hours ago', 'yesterday 14:30' or '2025-01-20 14:30:00'
    [exit 3]
    ");
    for text in ["before the split", "Before the split"] {
        let output = environment.forge(["checkpoint", "show", text]);
        assert!(
            output.stderr.ends_with("hint: the checkpoint '#7' has this message\n"),
            "{output}"
        );
    }
    assert_snapshot!(environment.forge(["checkpoint", "show", "tag:basline"]), @"
    [stderr]
    error: there is no tag 'basline'
    hint: the nearest is baseline
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "tomorrow"]), @r"
    [stderr]
    error: 'tomorrow' is in the future: nothing is recorded for it yet; write a time up to now, such as 'now', '10m' or 'yesterday 14:30'
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "at", "14.30"]), @r"
    [stderr]
    error: '14.30' is a number, not a time: write '2025-01-20' for a date, '10m' for ten minutes ago or '@<id6>' for seconds since 1970
    [exit 2]
    ");
    environment.forge(["session", "new", "later"]).success();
    environment.forge(["note", "add", "x"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "at", "2026-02-01 13:00:05"]), @r"
    [stderr]
    error: nothing is known at 2026-02-01 13:00:05 +01:00: the session 'later' begins at 2026-02-01 13:00:23 +01:00
    hint: another session has data for that time: forge --session tensor ...
    [exit 3]
    ");
}

#[test]
fn a_time_skipped_by_a_clock_change_gives_a_warning() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    environment.forge(["note", "add", "x"]).success();
    let output = environment.forge(["checkpoint", "at", "@{2025-03-30 02:30}"]);
    assert!(output.stderr.contains("does not exist"), "{output}");
    assert_eq!(output.code, 3);
    // Regression: the story resolved its end twice, with a warning each time.
    for args in [["story", "--at", "2025-03-30 02:30"], ["log", "--until", "2025-03-30 02:30"]] {
        let output = environment.forge(args);
        assert_eq!(output.stderr.matches("does not exist").count(), 1, "{output}");
    }
}

#[test]
fn option_as_recorded_leaves_out_facts_recorded_later() {
    let environment = example_session();
    environment
        .forge(["measurement", "record", "loss", "1", "--at", "2026-02-01T12:00:05Z"])
        .success();
    let measured = |args: &[&str]| {
        let words = ["checkpoint", "at", "2026-02-01T12:00:06Z", "--json"];
        let mut command = environment.command(words.iter().chain(args));
        let document = environment.finished(&mut command).json();
        document["state"]["measurements"].as_array().unwrap().len()
    };
    assert_eq!((measured(&[]), measured(&["--as-recorded"])), (1, 0));
}

#[test]
fn lines_fit_a_narrow_screen_and_have_no_control_characters() {
    let environment = write_example(Environment::new().with("COLUMNS", "32"));
    let runs: [&[&str]; 8] = [
        &["checkpoint", "at", "HEAD"],
        &["checkpoint", "timeline", "--all"],
        &["checkpoint", "diff", "baseline", "HEAD"],
        &["checkpoint", "at", "HEAD", "--kind", "note"],
        &["note", "list"],
        &["log"],
        &["brief"],
        &["checkpoint", "restore", "#1", "--dry-run"],
    ];
    for run in runs {
        let text = environment.finished(&mut environment.command(run)).success();
        assert!(!text.contains('\u{1b}'), "{text}");
        if run[0] == "checkpoint" && run[1] == "timeline" {
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= 32, "{line}");
            }
        }
    }
    assert_snapshot!(environment.forge(["note", "list"]), @r"
    Id  Time          Says
    N1   1 Feb 13:00  日本語 wide\x…
    ");
}

#[test]
fn a_closed_output_pipe_of_reading_commands_is_no_error() {
    let environment = example_session();
    let runs: [&[&str]; 5] = [
        &["checkpoint", "at", "HEAD"],
        &["checkpoint", "at", "HEAD", "--json"],
        &["checkpoint", "timeline"],
        &["log"],
        &["why", "H1"],
    ];
    for args in runs {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = environment.command(args);
        let output = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]), "{args:?}");
    }
}
