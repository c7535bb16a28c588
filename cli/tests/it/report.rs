//! `forge report`: the page of a session as a file.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;
use serde_json::{Value, json};

/// Hostile texts in every field of every kind.
const ODD: &str = include_str!("../../../tests/page/odd.jsonl");

#[test]
fn a_page_is_written_to_a_file_with_the_sessions_name() {
    let environment = example_session();
    let output = environment.forge(["report"]).success();
    assert!(output.starts_with("Wrote forge-report-tensor.html ("), "{output}");
    let page = environment.read("project/forge-report-tensor.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("the layout is wrong"));
    let json = environment.forge(["report", "-o", "p.md", "--markdown", "--json"]).json();
    assert_eq!(json["schema"], "forge.report/1");
    assert_eq!((&json["format"], &json["session"]), (&"markdown".into(), &"tensor".into()));
    let markdown = environment.read("project/p.md");
    assert_eq!(json["file"]["bytes"], markdown.len());
    assert!(markdown.starts_with("## tensor\n"), "{markdown}");
    let printed = environment.forge(["report", "tensor", "--markdown", "-o", "-"]).success();
    assert_eq!(printed, markdown);
    // Regression: a file with this ending was an HTML page.
    environment.forge(["report", "-o", "q.md"]).success();
    assert_eq!(environment.read("project/q.md"), markdown);
}

#[test]
fn a_page_can_begin_and_end_at_a_moment() {
    let environment = example_session();
    let page = |args: &[&str]| {
        let mut all = vec!["report", "--markdown", "-o", "-"];
        all.extend(args);
        environment.finished(&mut environment.command(all)).success()
    };
    let then = page(&["--at", "baseline"]);
    assert!(!then.contains("H1 rejected") && then.contains("H1 0.40 → 0.79"), "{then}");
    assert!(then.contains("as of "), "{then}");
    assert_eq!(page(&["..baseline"]).replace("as of", ""), then.replace("as of", ""));
    let last = page(&["baseline..HEAD"]);
    assert!(last.contains("H1 rejected") && !last.contains("G1 open"), "{last}");
    assert!(!page(&["--brief"]).contains("The story"));
}

/// Regression: the page of a run was nearly empty, and nothing said where its outputs are.
#[test]
fn a_report_of_another_kind_of_session_names_the_command_that_shows_it() {
    let environment = example_session();
    let words = ["run", "record", "--run", "r 1", "--item", "a", "--step", "s", "--output", "x"];
    environment.forge(words).success();
    let report = environment.forge(["report", "r 1", "--markdown", "-o", "-"]);
    assert_eq!((report.code, report.stdout.starts_with("## r 1\n")), (0, true), "{report}");
    let warning = report.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "'forge --session 'r 1' at HEAD --full' shows everything in it";
    assert!(warning.contains("of kind 'run'") && warning.contains(command), "{report}");
    let shown = environment.forge(["--session", "r 1", "at", "HEAD", "--full"]).success();
    assert!(shown.contains("content: x"), "{shown}");
}

/// Two dots can be in the name of a session: the name is looked up before it is read as a range.
#[test]
fn a_session_with_two_dots_in_its_name_has_a_page() {
    let environment = example_session();
    environment.forge(["session", "new", "baseline..HEAD"]).success();
    environment.forge(["note", "add", "x"]).success();
    environment.forge(["session", "use", "tensor"]).success();
    let json = environment.forge(["report", "baseline..HEAD", "--json"]).json();
    assert_eq!(json["session"], "baseline..HEAD");
    assert_eq!(json["file"]["path"], "forge-report-baseline..HEAD.html");
    assert_eq!(environment.forge(["report", "baseline..", "--json"]).json()["session"], "tensor");
}

#[test]
fn wrong_usage_of_report_is_refused_with_the_reason() {
    let environment = example_session();
    let run = |args: &[&str]| environment.finished(&mut environment.command(args)).to_string();
    assert_snapshot!(run(&["report", "nowhere"]), @"
    [stderr]
    error: there is no session 'nowhere'
    hint: 'forge session list' names them, 'forge session new NAME' begins one
    [exit 3]
    ");
    assert_snapshot!(run(&["report", "-o", "-", "--open"]), @"
    [stderr]
    error: what is written to standard output cannot be opened
    hint: leave out '-o -', or '--open'
    [exit 2]
    ");
    assert_snapshot!(run(&["report", "a..b", "--at", "HEAD"]), @"
    [stderr]
    error: a range 'A..B' already has both moments
    hint: leave out '--at' and '--since'
    [exit 2]
    ");
    // A story between exchanged moments was empty.
    for args in [
        &["report", "HEAD..baseline"][..],
        &["report", "--since", "HEAD", "--at", "baseline"],
        &["story", "--since", "HEAD", "--at", "baseline"],
    ] {
        let text = run(args);
        assert!(text.contains("error: 'HEAD' is after 'baseline'"), "{text}");
        assert!(text.ends_with("hint: exchange the two moments\n[exit 2]"), "{text}");
    }
    let text = run(&["report", "-o", "no/such/folder.html"]);
    assert!(text.contains("cannot write 'no/such/folder.html'"), "{text}");
    let text = run(&["report", "--max-size", "big"]);
    assert!(text.contains("a size is a number of bytes, such as 300k or 2M"), "{text}");
    let text = run(&["report", "--markdown", "--max-size", "1k"]);
    assert!(text.contains("cannot be used with"), "{text}");
    let text = run(&["report", "--zone", "Mars"]);
    assert!(text.contains("a zone is 'utc', 'local' or an offset"), "{text}");
}

fn odd() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/odd.jsonl", ODD);
    environment.forge(["import", "events", "odd.jsonl"]).success();
    environment
}

#[test]
fn a_hostile_text_adds_no_tag_attribute_or_hidden_character_to_a_report() {
    let environment = odd();
    for form in [&[][..], &["--no-script"], &["--share"], &["--brief"], &["--max-size", "1"]] {
        let mut args = vec!["report", "-o", "odd.html"];
        args.extend(form);
        let done = environment.finished(&mut environment.command(args));
        assert_eq!(done.code, 0, "{done}");
        let page = environment.read("project/odd.html");
        let lower = page.to_lowercase();
        for (place, _) in lower.match_indices('<') {
            let rest = &lower[place..];
            for bad in ["<img", "<b onmouseover", "<svg onload", "<script>alert", "<i>x", "<iframe"]
            {
                assert!(!rest.starts_with(bad), "{form:?}: {}", &page[place..place + 80]);
            }
        }
        for bad in ["href=\"javascript", "href=\"data:", "src=\"", "\u{202e}", "\u{2066}", "\u{7}"]
        {
            assert!(!page.contains(bad), "{form:?}: {bad:?}");
        }
        let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next());
        let style = style.unwrap();
        assert!(!style.contains("url(") && !style.contains("@import"));
        assert_eq!(page.matches("<style>").count(), 1);
        let scripts = usize::from(!form.contains(&"--no-script"));
        assert_eq!(page.matches("<script>").count(), scripts, "{form:?}");
        assert!(page.contains("a\\u{202e}b\\u{2066}c"), "{form:?}: hidden characters are escapes");
    }
    // The data of the slider cannot end its element.
    environment.forge(["report", "-o", "odd.html"]).success();
    let page = environment.read("project/odd.html");
    let data = page.split("id=\"moment-data\">").nth(1).and_then(|rest| rest.split('<').next());
    let data: Value = serde_json::from_str(data.unwrap()).unwrap();
    assert!(data["moments"].as_array().unwrap().len() > 20);
    let markdown = environment.forge(["report", "--markdown", "-o", "-"]).success();
    let outside = markdown.replace("<details><summary>", "").replace("</summary>", "");
    for line in outside.replace("</details>", "").lines() {
        // Text between back quotes is code, in which nothing is a tag. A back quote after a
        // backslash begins no code.
        let plain: String = line.replace("\\`", "").split('`').step_by(2).collect();
        // A bracket after a backslash is not a part of a link.
        let plain = plain.replace("\\]", "");
        assert!(!plain.contains('<') && !plain.contains("](") && !plain.contains("://"), "{line}");
    }
}

/// Regression: of a hypothesis that is not settled, Markdown had only the id.
#[test]
fn markdown_says_what_a_hypothesis_says_that_is_not_settled() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let add = ["hypothesis", "add", "two clocks", "--confidence", "0.6", "--status", "under_test"];
    environment.forge(add).success();
    environment.forge(["hypothesis", "add", "stale cache"]).success();
    let markdown = environment.forge(["report", "--markdown", "-o", "-"]).success();
    let lists =
        "**Under test**\n\n- **H1** (0.60) two clocks\n\n**Active**\n\n- **H2** stale cache\n";
    assert!(markdown.contains(lists), "{markdown}");
}

/// Regression: the page did not have the output of a check that failed.
#[test]
fn a_check_that_failed_opens_to_the_output_of_its_command() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let put = |kind: &str, id: &str, value: Value| {
        let put = json!({"kind": kind, "id": id, "value": value});
        json!({"at": "2026-01-01T10:00:00Z", "put": put}).to_string()
    };
    let call =
        json!({"command": "make test", "stdout_preview": "line 7", "stderr_preview": "broken"});
    let check = json!({"name": "make test", "status": "failed"});
    let events = [put("command", "t1", call), put("verification", "t1/2", check)];
    environment.write("project/run.jsonl", &events.join("\n"));
    environment.forge(["import", "events", "run.jsonl"]).success();
    let page = environment.forge(["report", "run", "-o", "-"]).success();
    assert!(page.contains("<pre>line 7\nbroken</pre>"), "{page}");
    let page = environment.forge(["report", "run", "--share", "-o", "-"]).success();
    assert!(!page.contains("line 7"), "{page}");
}

#[test]
fn a_secret_that_was_stored_is_not_on_the_page() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "keys"]).success();
    let secrets = forge_testkit::secret::fake_secrets(1);
    let secret = secrets.iter().find(|secret| secret.has_secret_shape()).unwrap();
    let (token, text) = (&secret.secret, format!("we saw {}", secret.secret));
    environment.forge(["--no-redact", "note", "add", &text]).success();
    environment
        .forge(["--no-redact", "verification", "add", &text, "--status", "failed"])
        .success();
    for args in [["report", "-o", "-"], ["report", "-o-", "--markdown"]] {
        let page = environment.forge(args).success();
        assert!(!page.contains(token) && page.contains("we saw"), "{args:?}");
    }
}

#[test]
fn a_report_with_a_size_limit_names_the_parts_it_leaves_out() {
    let environment = odd();
    let json = environment.forge(["report", "-o", "all.html", "--json"]).json();
    assert_eq!(json["left_out"], serde_json::json!([]));
    let some = environment
        .finished(&mut environment.command(["report", "-o", "some.html", "--max-size", "1k"]));
    assert_eq!(some.code, 0, "{some}");
    // What the session does not have is not named. A warning says that the page is still too large.
    assert!(some.stdout.ends_with(", folded lines, patches.\n"), "{some}");
    assert!(some.stderr.starts_with("warning: the page is larger than 1000 bytes: "), "{some}");
    let page = environment.read("project/some.html");
    assert!(page.contains("Left out to keep the page small: "));
    assert!(page.contains(", folded lines, patches."));
    assert!(page.len() < environment.read("project/all.html").len());
}
