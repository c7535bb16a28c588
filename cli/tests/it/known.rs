//! `list` and `show` of every kind, the brief, the log, blame and why.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;

/// Regression: a list in which nothing matched said that the session had nothing of the kind.
#[test]
fn an_empty_list_says_that_nothing_matches() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["gap", "list", "--status", "filling"]), @"No matching gaps in the session 'tensor'; the whole list has 2.");
    assert_snapshot!(environment.forge(["checkpoint", "list", "--tag", "nothing"]), @r"
    No matching checkpoints.
    'forge checkpoint list' lists all of the session.
    ");
}

#[test]
fn claims_and_facts_are_listed() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["hypothesis", "list"]), @r"
    Id  Time          Status  Confidence  Says
    H1   1 Feb 13:00  active  0.79        the layout is wrong
    ");
    assert_snapshot!(environment.forge(["gap", "list"]), @r"
    Id  Time          Criticality  Status  Says
    G1   1 Feb 13:00  critical     open    who sets strides?
    G2   1 Feb 13:00               open    which version?
    ");
    assert_snapshot!(environment.forge(["gap", "list", "--limit", "1", "--json"]), @r#"{"schema":"forge.gap.list/1","session":"tensor","at":"2026-02-01T12:00:13Z","gaps":[{"id":"G1","description":"who sets strides?","type":null,"criticality":"critical","status":"open","blocking":null,"fill_strategy":null,"effort":null,"resolution":null,"created_at":"2026-02-01T12:00:05Z"}],"more":1}"#);
    assert_snapshot!(environment.forge(["gap", "list", "--limit", "0"]), @"2 more with a greater '--limit'");
    assert_snapshot!(environment.forge(["verification", "list"]), @r"
    Id  Time          Status  Says
    v1   1 Feb 13:00  failed  unit tests
    ");
    assert_snapshot!(environment.forge(["task", "list"]), @"No tasks in the session 'tensor'.");
    assert_snapshot!(environment.forge(["tool", "list"]), @"No tool calls in the session 'tensor'.");
    assert_snapshot!(environment.forge(["agent", "list"]), @"No sub-agents in the session 'tensor'.");
    let lists = [
        ("hypothesis", "hypotheses"),
        ("evidence", "evidence"),
        ("belief", "beliefs"),
        ("dependency", "dependencies"),
        ("gap", "gaps"),
        ("note", "notes"),
        ("verification", "verifications"),
        ("command", "commands"),
        ("code", "code"),
        ("message", "messages"),
        ("prompt", "prompts"),
        ("task", "tasks"),
        ("measurement", "measurements"),
        ("agent", "agents"),
        ("inference", "inferences"),
    ];
    for (kind, plural) in lists {
        let document = environment.forge([kind, "list", "--json"]).json();
        assert_eq!(document["schema"], format!("forge.{kind}.list/1"));
        assert!(document[plural].is_array(), "{document}");
    }
}

#[test]
fn lists_are_filtered() {
    let environment = example_session();
    let count = |args: &[&str]| {
        let mut command = environment.command(args.iter().chain(&["--json"]));
        let document = environment.finished(&mut command).json();
        document.as_object().unwrap().values().find_map(|v| v.as_array()).unwrap().len()
    };
    assert_eq!(count(&["hypothesis", "list", "--status", "rejected"]), 0);
    assert_eq!(count(&["hypothesis", "list", "--status", "rejected", "--branch", "alt"]), 1);
    assert_eq!(count(&["hypothesis", "list", "--tag", "x"]), 0);
    assert_eq!(count(&["evidence", "list", "--hypothesis", "H1"]), 1);
    assert_eq!(count(&["belief", "list", "--at", "#3"]), 1);
    assert_eq!(count(&["verification", "list", "--status", "failed"]), 1);
    assert_eq!(count(&["verification", "list", "--at", "baseline"]), 0);
    assert_eq!(count(&["verification", "list", "--since", "now"]), 0);
    assert_eq!(count(&["verification", "list", "--until", "now"]), 1);
}

/// Regression: a list of claims kept the oldest ones.
#[test]
fn a_limited_list_has_the_latest_claims() {
    let environment = example_session();
    environment.forge(["note", "two"]).success();
    let list = environment.forge(["note", "list", "-n", "1", "--json"]).json();
    let notes = list["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["description"], "two");
}

#[test]
fn an_entity_is_shown_with_all_its_fields() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["hypothesis", "show", "H1"]), @r"
    hypothesis H1
      description: the layout is wrong
      status: active
      confidence: 0.79
      created at: 2026-02-01 13:00:01 +01:00 (13 s ago)

    Evidence
    Id  Time          Hypothesis  Strength  Says
    E1   1 Feb 13:00  H1          0.80      strides swap
    ");
    assert_snapshot!(environment.forge(["gap", "show", "G1", "--json"]), @r#"{"schema":"forge.gap.show/1","session":"tensor","at":"2026-02-01T12:00:13Z","gap":{"id":"G1","description":"who sets strides?","type":null,"criticality":"critical","status":"open","blocking":null,"fill_strategy":null,"effort":null,"resolution":null,"created_at":"2026-02-01T12:00:05Z"}}"#);
    assert_snapshot!(environment.forge(["note", "show", "N"]), @r"
    note N1
      description:
        日本語 wide\x1b[2J
        text
      created at: 2026-02-01 13:00:13 +01:00 (3 s ago)
    ");
    assert_snapshot!(environment.forge(["gap", "show", "G"]), @r"
    [stderr]
    error: 'G' is the beginning of 2 ids: G1, G2
    hint: write more of the id
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["belief", "show", "B7"]), @r"
    [stderr]
    error: there is no belief 'B7'
    hint: the nearest are B1, B2
    [exit 3]
    ");
    assert_eq!(environment.forge(["belief", "show", "B2", "--at", "#1"]).code, 3);
}

#[test]
fn the_brief_is_never_empty_and_keeps_to_its_budget() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["brief"]), @r"
    No debugging session has been begun yet.
    Next           state a hypothesis: forge hypothesis add TEXT
    ");
    let environment = example_session();
    assert_snapshot!(environment.forge(["brief"]), @r"
    tensor on main #13, 2026-02-01 13:00:13 +01:00 (1 s ago)
    checkpoint #12 unit tests failed, 1 s before
    Active         0.79  H1  the layout is wrong
    Beliefs           -  B2  kernels assume it
                      -  B1  row major everywhere
    Gaps           critical  G1  who sets strides?
                   medium    G2  which version?
    Failing        failed  unit tests
    Notes          N1  日本語 wide\x1b[2J text
    Evidence       E1  strides swap  (H1 +0.80)
    Next           fill the critical gap G1; look into the failing verification: unit tests; test the h…
    ");
    assert_snapshot!(environment.forge(["brief", "--at", "alt"]), @"
    tensor on alt #9, 2026-02-01 13:00:13 +01:00 (2 s ago)
    checkpoint #12 unit tests failed (on main), 1 s before
    Rejected       0.79  H1  the layout is wrong  (the layout is fine)
    In doubt          -  B1  row major everywhere  (hypothesis H1 was rejected)
                      -  B2  kernels assume it  (rests on belief B1: hypothesis H1 was rejected)
    Gaps           critical  G1  who sets strides?
                   medium    G2  which version?
    Failing        failed  unit tests
    Evidence       E1  strides swap  (H1 +0.80)
    Next           fill the critical gap G1; look into the failing verification: unit tests; check the…
    ");
    assert_snapshot!(environment.forge(["brief", "--budget", "400"]), @"
    tensor on main #13, 2026-02-01 13:00:13 +01:00 (3 s ago)
    checkpoint #12 unit tests failed, 1 s before
    Active (1)
    Beliefs (2)
    Gaps (2)
    Failing (1)
    Notes (1)
    Evidence (1)
    Next           fill the critical gap G1; look into the failing verification: unit tests; test the h…
    ");
    let document = environment.forge(["brief", "--json"]).json();
    assert_eq!(document["schema"], "forge.brief/1");
    assert_eq!(document["gaps"][0]["criticality"], "critical");
}

#[test]
fn the_log_lists_each_change() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["log", "--revisions", "--limit", "4"]), @r"
    #13 2026-02-01 13:00:13 +01:00 (1 s ago) note add on main
      + N1 日本語 wide\x1b[2J\ntext
    #12 2026-02-01 13:00:12 +01:00 (2 s ago) checkpoint unit tests failed [auto] verification complete
    #11 2026-02-01 13:00:11 +01:00 (3 s ago) checkpoint switched from alt to main [auto] branch switch
    #10 2026-02-01 13:00:10 +01:00 (4 s ago) checkpoint H1 rejected: the layout is fine [auto,hypothesi…
    ");
    assert_snapshot!(environment.forge(["log", "H1", "--branch", "alt"]), @r"
    #9 2026-02-01 13:00:10 +01:00 (5 s ago) hypothesis reject on alt
      ~ H1 reason: none → the layout is fine
      ~ H1 status: active → rejected
    #2 2026-02-01 13:00:02 +01:00 (13 s ago) evidence add on main
      ~ H1 confidence: 0.40 → 0.79
    #1 2026-02-01 13:00:01 +01:00 (14 s ago) hypothesis add on main
      + H1 the layout is wrong
    ");
    assert_snapshot!(environment.forge(["log", "--operations", "--limit", "2"]), @r"
    <id6>  1 Feb 13:00 note add: N1  日本語 wide\x1b[2J text (revision #13)
    <id7>  1 Feb 13:00 verification add (1 fact, checkpoint <id5>)
    ");
    let document = environment.forge(["log", "--all", "--json"]).json();
    let entries = document["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["branch"] == "alt"));
    assert_eq!(entries.last().unwrap()["changes"][0]["change"], "added");
    let until = environment.forge(["log", "--until", "#2", "--json"]).json();
    assert_eq!(until["entries"].as_array().unwrap().len(), 2);
    assert_eq!(environment.forge(["log", "v1"]).code, 2);
    let history = environment.forge(["history", "H1", "--json"]).json();
    assert_eq!(history, environment.forge(["log", "H1", "--json"]).json());
}

/// Regression: with an entity, `--all` showed only the changes on the current branch.
#[test]
fn the_log_of_an_entity_shows_its_changes_on_all_branches() {
    let environment = example_session();
    environment.forge(["branch", "switch", "alt"]).success();
    environment.forge(["belief", "add", "only here", "--id", "alone"]).success();
    environment.forge(["branch", "switch", "main"]).success();
    let numbers = |args: &[&str]| {
        let mut command = environment.command(["log", "--json"].iter().chain(args));
        let document = environment.finished(&mut command).json();
        assert_eq!(document["branch"].is_null(), args.contains(&"--all"), "{document}");
        let entries = document["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&["H1"]), [2, 1]);
    assert_eq!(numbers(&["H1", "--all"]), [9, 2, 1]);
    assert_eq!(numbers(&["H1", "--all", "-n", "1"]), [9]);
    assert_eq!(numbers(&["alone", "--all"]).len(), 1);
    assert_eq!(environment.forge(["log", "alone"]).code, 3);
    assert_eq!(environment.forge(["log", "nothing", "--all"]).code, 3);
    let operations = |args: &[&str]| {
        let mut command = environment.command(["log", "--operations", "--json"].iter().chain(args));
        environment.finished(&mut command).json()["operations"].as_array().unwrap().len()
    };
    assert_eq!((operations(&["H1"]), operations(&["H1", "--all"])), (2, 3));
}

#[test]
fn blame_names_the_last_change_of_each_field() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["blame", "H1", "--at", "alt"]), @r"
    hypothesis H1
    Field        Value                By                           Ago       Before
    confidence   0.79                 #2 evidence add on main      12 s ago  0.40
    description  the layout is wrong  #1 hypothesis add on main    13 s ago
    reason       the layout is fine   #9 hypothesis reject on alt  4 s ago
    status       rejected             #9 hypothesis reject on alt  4 s ago   active
    ");
    let document = environment.forge(["blame", "hypothesis:H1", "--json"]).json();
    assert_snapshot!(document["fields"][0], @r#"{"author":"asked","branch":"main","field":"confidence","id":"<id6>","old":0.4,"operation":"<id7>","sequence":2,"time":"2026-02-01T12:00:02Z","value":0.7945077718120256,"verb":"evidence add"}"#);
    assert_snapshot!(environment.forge(["blame", "v1"]), @r"
    verification v1
    Field   Value       By        Ago      Before
    name    unit tests  recorded  4 s ago
    status  failed      recorded  4 s ago
    ");
    assert_snapshot!(environment.forge(["blame", "X1"]), @r"
    [stderr]
    error: there is no entity 'X1'
    hint: the nearest are B1, E1, G1
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["blame", "B"]), @r"
    [stderr]
    error: 'B' is the beginning of 3 ids: belief:B1, belief:B2, dependency:B2->B1
    hint: write more of the id
    hint: 'KIND:ID' says which kind is meant
    [exit 2]
    ");
}

#[test]
fn why_lists_the_support_of_a_claim_and_the_claims_that_depend_on_it() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["why", "H1", "--at", "alt"]), @r"
    hypothesis H1
      description: the layout is wrong
      status: rejected
      confidence: 0.79
      reason: the layout is fine
      created at: 2026-02-01 13:00:01 +01:00 (13 s ago)

    Speaks for it
      evidence +0.80 E1 strides swap

    Rests on this
      hypothesis B1 row major everywhere (in doubt)
        requires B2 kernels assume it (in doubt)

    History
    #9 2026-02-01 13:00:10 +01:00 (4 s ago) hypothesis reject on alt
      ~ H1 reason: none → the layout is fine
      ~ H1 status: active → rejected
    #2 2026-02-01 13:00:02 +01:00 (12 s ago) evidence add on main
      ~ H1 confidence: 0.40 → 0.79
    #1 2026-02-01 13:00:01 +01:00 (13 s ago) hypothesis add on main
      + H1 the layout is wrong
    ");
    assert_snapshot!(environment.forge(["belief", "why", "B2"]), @r"
    belief B2
      description: kernels assume it
      created at: 2026-02-01 13:00:04 +01:00 (11 s ago)

    Rests on
      requires B1 row major everywhere
        hypothesis H1 the layout is wrong (active)
          evidence +0.80 E1 strides swap

    History
    #4 2026-02-01 13:00:04 +01:00 (11 s ago) belief add on main
      + B2 kernels assume it
    ");
    let document = environment.forge(["why", "B2", "--at", "alt", "--json"]).json();
    assert_eq!(document["schema"], "forge.why/1");
    assert_eq!(document["rests_on"][0]["id"], "B1");
    assert_eq!(document["rests_on"][1]["id"], "H1");
    assert_eq!(document["rests_on"][1]["distance"], 2);
    assert!(document["doubt"].as_str().unwrap().contains("H1 was rejected"));
}
