//! Hypotheses, evidence, beliefs, gaps and notes: writing and showing them.

use crate::environment::Environment;
use insta::assert_snapshot;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

#[test]
fn the_first_write_begins_a_session_named_after_the_project() {
    let environment = project();
    assert_snapshot!(environment.forge(["hypothesis", "add", "the cache is stale"]), @"Added hypothesis H1 (session project, branch main, #1)");
    let second =
        ["hypothesis", "add", "the clock is wrong", "--confidence", "0.3", "--tags", "a,b"];
    assert_snapshot!(environment.forge(second), @"Added hypothesis H2 (session project, branch main, #2)");
    let part =
        ["hypothesis", "add", "the zone is", "--parent", "H2", "--source", "log:7", "--json"];
    assert_snapshot!(environment.forge(part), @r#"{"schema":"forge.hypothesis.add/1","session":"project","branch":"main","operation":"<id1>","id":"H3","revision":{"sequence":3,"id":"<id2>"},"checkpoint":null,"at":null,"changed":[{"kind":"hypothesis","id":"H3","value":{"description":"the zone is","parent":"H2","source":"log:7","status":"active"}}],"warnings":[]}"#);
    let chosen = ["hypothesis", "add", "x", "--id", "disk", "--status", "under_test"];
    assert_snapshot!(environment.forge(chosen), @"
    Added hypothesis disk (session project, branch main, #4)
      checkpoint <id3> #5 disk under test: x [auto]
    ");
}

/// Regression: a hypothesis that was active again kept the reason why it had been rejected.
#[test]
fn a_reason_goes_with_the_status_that_it_explains() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    let reason = || {
        environment.forge(["hypothesis", "show", "H1", "--json"]).json()["hypothesis"]["reason"]
            .clone()
    };
    environment.forge(["hypothesis", "reject", "H1", "--reason", "no"]).success();
    environment.forge(["hypothesis", "update", "H1", "--add-tags", "a"]).success();
    assert_eq!(reason(), "no");
    environment.forge(["hypothesis", "update", "H1", "--status", "active"]).success();
    assert!(reason().is_null());
    let archived = ["hypothesis", "update", "H1", "--status", "archived", "--reason", "too rare"];
    environment.forge(archived).success();
    assert_eq!(reason(), "too rare");
}

#[test]
fn a_hypothesis_is_updated_and_an_equal_update_changes_nothing() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one", "--tags", "a,b"]).success();
    let update = ["hypothesis", "update", "H1", "--add-tags", "c", "--remove-tags", "a", "--json"];
    assert_snapshot!(environment.forge(update), @r#"{"schema":"forge.hypothesis.update/1","session":"project","branch":"main","operation":"<id1>","id":"H1","revision":{"sequence":2,"id":"<id2>"},"checkpoint":null,"at":null,"changed":[{"kind":"hypothesis","id":"H1","value":{"description":"one","status":"active","tags":["b","c"]}}],"warnings":[]}"#);
    assert_snapshot!(environment.forge(update), @r#"{"schema":"forge.hypothesis.update/1","session":"project","branch":"main","operation":null,"id":"H1","revision":null,"checkpoint":null,"at":null,"changed":[],"warnings":[]}"#);
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--status", "archived"]), @"
    Updated hypothesis H1 (session project, branch main, #3)
      checkpoint <id3> #4 H1 archived: one [auto]
    ");
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--status", "archived"]), @"Nothing to change: hypothesis H1 (session project, branch main)");
    environment.forge(["hypothesis", "add", "two", "--parent", "H1"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--parent", "H2"]), @r"
    [stderr]
    error: a cycle of parents: H1 -> H2 -> H1
    hint: name another parent
    [exit 2]
    ");
}

#[test]
fn rejecting_a_hypothesis_reports_the_claims_that_change_with_it() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["hypothesis", "add", "two", "--parent", "H1"]).success();
    environment.forge(["belief", "add", "so it is", "--hypothesis", "H2"]).success();
    environment.forge(["belief", "add", "and this", "--on", "B1"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "reject", "H1", "--reason", "no"]), @"
    Rejected hypothesis H1 (session project, branch main, #5)
      hypothesis H2 is rejected: parent H1 was rejected
      belief B1 is in doubt: hypothesis H2 was rejected
      belief B2 is in doubt: rests on belief B1: hypothesis H2 was rejected
      checkpoint <id1> #6 H1 rejected: no [auto, hypothesis_rejected]
    ");
    assert_snapshot!(environment.forge(["hypothesis", "reject", "H1", "--reason", "no"]), @"Nothing to change: hypothesis H1 (session project, branch main)");
    assert_snapshot!(environment.forge(["hypothesis", "confirm", "H2", "--json"]), @r#"{"schema":"forge.hypothesis.confirm/1","session":"project","branch":"main","operation":"<id2>","id":"H2","revision":{"sequence":7,"id":"<id3>"},"checkpoint":{"id":"<id4>","sequence":8,"time":"2026-02-01T12:00:07Z","message":"H2 confirmed: two","tags":["auto","hypothesis_confirmed"],"trigger":{"automatic":"hypothesis_status_change"}},"at":null,"changed":[{"kind":"hypothesis","id":"H2","value":{"description":"two","parent":"H1","status":"confirmed"}}],"warnings":["hypothesis H2 is confirmed and its parent H1 is rejected"]}"#);
}

#[test]
fn evidence_moves_confidence() {
    let environment = project();
    environment
        .forge(["hypothesis", "add", "one", "--id", "cache", "--confidence", "0.5"])
        .success();
    let supporting =
        ["evidence", "add", "seen", "--hypothesis", "ca", "--strength", "1", "--kind", "log"];
    assert_snapshot!(environment.forge(supporting), @r"
    Added evidence E1 (session project, branch main, #2)
      hypothesis cache is active, confidence 0.90
    ");
    let against = ["evidence", "add", "no", "--hypothesis", "cache", "--strength", "-1", "--json"];
    let json = environment.forge(against).json();
    assert_eq!((&json["schema"], &json["id"]), (&"forge.evidence.add/1".into(), &"E2".into()));
    let confidence = json["changed"][0]["value"]["confidence"].as_f64().unwrap();
    assert!((confidence - 0.5).abs() < 1e-9, "for and against cancel out: {confidence}");
    environment.forge(["hypothesis", "confirm", "cache"]).success();
    let late = ["evidence", "add", "but", "--hypothesis", "cache", "--strength", "-0.5"];
    assert_snapshot!(environment.forge(late), @"
    Added evidence E3 (session project, branch main, #6)
      hypothesis cache is confirmed, confidence 0.25
      checkpoint <id4> #7 contradiction: E3: but [auto, contradiction_detected]
      warning: evidence E3 speaks against hypothesis cache, which is confirmed
    ");
}

#[test]
fn beliefs_can_depend_on_and_contradict_other_beliefs() {
    let environment = project();
    for text in ["a", "b", "c"] {
        environment.forge(["belief", "add", text]).success();
    }
    let depend = ["belief", "depend", "B1", "B2", "--strength", "0.5"];
    assert_snapshot!(environment.forge(depend), @"Added dependency B1->B2 (session project, branch main, #4)");
    assert_snapshot!(environment.forge(depend), @r"
    [stderr]
    error: there is a dependency 'B1->B2' already
    hint: update it, or give the new one another id
    [exit 2]
    ");
    environment.forge(["belief", "depend", "B2", "B3"]).success();
    let listed = environment.forge(["dependency", "list", "--belief", "B1", "--json"]).json();
    assert_eq!(listed["dependencies"].as_array().unwrap().len(), 1);
    let shown = environment.forge(["dependency", "show", "B1->B2", "--json"]).json();
    assert_eq!(shown["schema"], "forge.dependency.show/1");
    assert_snapshot!(environment.forge(["belief", "depend", "B3", "B1"]), @r"
    [stderr]
    error: a dependency cycle, B3 -> B1 -> B2 -> B3: leave one of these out
    [exit 2]
    ");
    let json = ["belief", "depend", "B3", "B1", "--type", "supports", "--json"];
    assert_eq!(environment.forge(json).json()["schema"], "forge.belief.depend/1");
    assert_snapshot!(environment.forge(["belief", "contradict", "B1", "B2", "--reason", "x"]), @"
    Noted a contradiction: dependency B1->B2 (session project, branch main, #7)
      belief B1 is in doubt: contradicts belief B2: x
      belief B2 is in doubt: contradicts belief B1: x
      checkpoint <id3> #8 contradiction: B1: a [auto, contradiction_detected]
      warning: beliefs B1 and B2 contradict each other
    ");
    assert_snapshot!(environment.forge(["belief", "contradict", "B1", "B1"]), @r"
    [stderr]
    error: belief 'B1' cannot contradict itself: name two beliefs
    [exit 2]
    ");
    let update = ["belief", "update", "B3", "--confidence", "1", "--json"];
    assert_snapshot!(environment.forge(update), @r#"{"schema":"forge.belief.update/1","session":"project","branch":"main","operation":"<id4>","id":"B3","revision":{"sequence":9,"id":"<id5>"},"checkpoint":null,"at":null,"changed":[{"kind":"belief","id":"B3","value":{"confidence":1.0,"description":"c"}}],"warnings":[]}"#);
}

#[test]
fn gaps_are_added_updated_and_filled() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    let add = ["gap", "add", "which", "--blocking", "H1", "--criticality", "high", "--json"];
    assert_snapshot!(environment.forge(add), @r#"{"schema":"forge.gap.add/1","session":"project","branch":"main","operation":"<id1>","id":"G1","revision":{"sequence":2,"id":"<id2>"},"checkpoint":null,"at":null,"changed":[{"kind":"gap","id":"G1","value":{"blocking":["H1"],"criticality":"high","description":"which","status":"open"}}],"warnings":[]}"#);
    let update = ["gap", "update", "G1", "--status", "filling", "--blocking", "all"];
    assert_snapshot!(environment.forge(update), @"Updated gap G1 (session project, branch main, #3)");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "that one"]), @"
    Filled gap G1 (session project, branch main, #4)
      checkpoint <id3> #5 G1 filled: that one [auto]
    ");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "that one"]), @"Nothing to change: gap G1 (session project, branch main)");
    // Regression: the earlier answer was replaced without a word.
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "the other"]), @r"
    Filled gap G1 (session project, branch main, #6)
      warning: the earlier answer is replaced: that one
    ");
}

/// Regression: the gap stayed open, and its author took it for filled.
#[test]
fn a_gap_that_stays_open_gets_no_resolution() {
    let environment = project();
    environment.forge(["gap", "add", "which"]).success();
    let update = ["gap", "update", "G1", "--resolution", "that one"];
    assert_snapshot!(environment.forge(update), @r"
    [stderr]
    error: the gap G1 is open: it cannot have a resolution
    hint: 'forge gap fill' fills it; otherwise give its status too: 'unfillable' or 'obsolete'
    [exit 2]
    ");
    environment.forge(["gap", "update", "G1", "--status", "obsolete"]).success();
    assert_snapshot!(environment.forge(update), @"Updated gap G1 (session project, branch main, #3)");
    // Regression: a gap that was opened again kept its answer.
    environment.forge(["gap", "update", "G1", "--status", "open"]).success();
    let gap = environment.forge(["gap", "show", "G1", "--json"]).json();
    assert!(gap["gap"]["resolution"].is_null(), "{gap}");
}

#[test]
fn notes_are_recorded() {
    let environment = project();
    let note = ["note", "add", "look\u{1b}[2J here", "--source", "me", "--json"];
    assert_snapshot!(environment.forge(note), @r#"{"schema":"forge.note.add/1","session":"project","branch":"main","operation":"<id1>","id":"N1","revision":{"sequence":1,"id":"<id2>"},"checkpoint":null,"at":null,"changed":[{"kind":"note","id":"N1","value":{"description":"look\u001b[2J here","source":"me"}}],"warnings":[]}"#);
    assert_snapshot!(environment.forge(["note", "add", "and there"]), @"Added note N2 (session project, branch main, #2)");
}

#[test]
fn a_new_id_is_different_from_ids_on_other_branches() {
    let environment = project();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["branch", "create", "other"]).success();
    environment.forge(["note", "add", "two"]).success();
    environment.forge(["branch", "switch", "other"]).success();
    let added = environment.forge(["note", "add", "three", "--json"]).json();
    assert_eq!(added["id"], "N3");
}

/// Regression: for the id of some evidence or belief, the hint proposed the nearest hypothesis.
#[test]
fn an_error_about_the_id_of_another_kind_names_that_kind() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["evidence", "add", "seen", "-H", "H1", "-s", "0.5"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "reject", "e1"]), @r"
    [stderr]
    error: there is no hypothesis 'e1'
    hint: 'e1' is of the kind evidence; 'forge hypothesis list' lists the hypotheses
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["gap", "show", "H1"]), @r"
    [stderr]
    error: there is no gap 'H1'
    hint: 'H1' is of the kind hypothesis; 'forge gap list' lists the gaps
    [exit 3]
    ");
}

#[test]
fn invalid_claims_are_refused_and_change_nothing() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["hypothesis", "add", "two", "--id", "H1x"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "add", "again", "--id", "H1"]), @r"
    [stderr]
    error: there is a hypothesis 'H1' already
    hint: update it, or give the new one another id
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["hypothesis", "add", "x", "--parent", "H9"]), @"
    [stderr]
    error: there is no hypothesis 'H9'
    hint: the nearest is H1
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["hypothesis", "confirm", "g1", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"not_found","message":"there is no hypothesis 'g1'","causes":[],"hints":["the nearest is H1"]}}
    [exit 3]
    "#);
    let evidence = ["evidence", "add", "x", "--hypothesis", "nothing", "--strength", "1"];
    assert_snapshot!(environment.forge(evidence), @r"
    [stderr]
    error: there is no hypothesis 'nothing'
    hint: 'forge hypothesis list' lists them
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "x"]), @r"
    [stderr]
    error: there is no gap 'G1'
    hint: there are no gaps
    [exit 3]
    ");
    for wrong in [
        ["hypothesis", "add", "x", "--confidence", "1.7"],
        ["hypothesis", "add", "x", "--confidence", "NaN"],
        ["hypothesis", "add", "x", "--status", "maybe"],
        ["hypothesis", "add", "x", "--id", "a\u{1b}b"],
        ["hypothesis", "add", "x", "--id", " a"],
        ["gap", "add", "x", "--criticality", "huge"],
        ["belief", "add", "x", "--confidence", "-0.1"],
    ] {
        assert_eq!(environment.forge(wrong).code, 2, "{wrong:?}");
    }
    let status = environment.forge(["status", "--json"]).json();
    assert_eq!(status["head"], 2);
}

#[test]
fn an_unknown_reference_begins_no_session() {
    let environment = project();
    let evidence = ["evidence", "add", "x", "--hypothesis", "H1", "--strength", "1"];
    assert_eq!(environment.forge(evidence).code, 3);
    assert_eq!(environment.forge(["hypothesis", "add", "x", "--parent", "H1"]).code, 3);
    assert_eq!(environment.forge(["gap", "add", "x", "--blocking", "H1"]).code, 3);
    assert_eq!(environment.forge(["belief", "add", "x", "--on", "B1"]).code, 3);
    assert_eq!(environment.forge(["status", "--json"]).json()["sessions"], 0);
}

#[test]
fn processes_that_add_notes_at_once_get_different_ids() {
    let environment = project();
    environment.forge(["session", "new", "one"]).success();
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut command = environment.command(["note", "add", "x", "--json"]);
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut ids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            json["id"].as_str().unwrap().to_owned()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["N1", "N2", "N3", "N4", "N5", "N6"]);
}
