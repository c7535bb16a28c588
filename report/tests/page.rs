//! The report of the recorded example, as a page and as Markdown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use forge_report::html::{HtmlOptions, write_page, write_parts};
use forge_report::markdown::write_markdown;
use forge_report::model::{CompactionNote, LostKnowledge, ReportLimits, ReportModel, ReportSource};
use forge_report::policy;
use forge_store::Timestamp;
use forge_store::model::{Fact, FactOrigin, Key, Kind, Value};
use forge_store::redact::Redactor;
use forge_store::store::{CheckpointFilter, ClaimChange, NewSession, Session, Store, WriteContext};
use std::collections::BTreeSet;

fn example() -> Session {
    forge_testkit::example::fill(&Store::in_memory().unwrap()).unwrap()
}

fn model(session: &Session, at: Option<&str>, limits: ReportLimits) -> ReportModel {
    let at = at.map(|at| Timestamp::parse_rfc3339(at).unwrap());
    let resolved = at.map_or_else(|| session.head(), |at| session.at_time(at)).unwrap();
    let state = session.state(&resolved).unwrap();
    let redactor = Redactor::new();
    let filter = CheckpointFilter { tag: Some("compaction".to_owned()), ..Default::default() };
    let notes = session.checkpoints(&filter).unwrap().into_iter().map(|checkpoint| {
        let (kind, id) = ("note", Some("N6".to_owned()));
        let lost = LostKnowledge { kind, id, text: "clocks of the workers".to_owned() };
        CompactionNote {
            at: checkpoint.time,
            sequence: checkpoint.sequence,
            tokens: Some(148_000),
            known: 17,
            lost: Some(vec![lost]),
            summary: Some("We know **the cause**.".to_owned()),
            ..CompactionNote::default()
        }
    });
    let mut compactions: Vec<CompactionNote> = notes.collect();
    compactions.retain(|note| at.is_none_or(|at| note.at <= at));
    let limits = ReportLimits { as_of: at, ..limits };
    let resolve = &|_: &[u8], _: &str| None;
    let source = ReportSource {
        state: &state,
        resolve,
        compactions: &compactions,
        redactor: &redactor,
        limits,
    };
    ReportModel::read(&source).unwrap()
}

fn page(options: &HtmlOptions) -> String {
    write_page(&model(&example(), None, ReportLimits::default()), None, options).html
}

/// A part of a document: an opening tag with its attributes, a closing tag, or a text.
#[derive(Debug)]
enum Token<'h> {
    Open(&'h str, &'h str),
    Close(&'h str),
    Text(&'h str),
}

/// Splits a document into tags and texts. Styles and scripts are one text each.
fn tokens(html: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let (text, from) = rest.split_at(start);
        if !text.trim().is_empty() {
            tokens.push(Token::Text(text));
        }
        let end = from.find('>').expect("a tag ends");
        let inside = &from[1..end];
        rest = &from[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            tokens.push(Token::Close(name));
            continue;
        }
        let (name, attributes) = inside.split_once([' ', '\n']).unwrap_or((inside, ""));
        tokens.push(Token::Open(name, attributes));
        if name == "style" || name == "script" {
            let end = rest.find(&format!("</{name}>")).expect("it ends");
            tokens.push(Token::Text(&rest[..end]));
            rest = &rest[end..];
        }
    }
    tokens
}

/// Returns all values of an attribute in a document.
fn attributes<'h>(html: &'h str, name: &str) -> Vec<&'h str> {
    let begin = format!("{name}=\"");
    let of_tag = |attributes: &'h str| {
        let mut found = Vec::new();
        let mut rest = attributes;
        while let Some(place) = rest.find(&begin) {
            let is_name = place == 0 || rest[..place].ends_with(' ');
            let value = &rest[place + begin.len()..];
            let end = value.find('"').unwrap();
            found.extend(is_name.then_some(&value[..end]));
            rest = &value[end..];
        }
        found
    };
    let tags = tokens(html).into_iter();
    let tags = tags.filter_map(|token| match token {
        Token::Open(_, attributes) => Some(attributes),
        _ => None,
    });
    tags.flat_map(of_tag).collect()
}

/// Returns the texts that a reader sees, without the sections with these ids.
fn words(html: &str, without: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    let (mut hidden, mut depth) = (0, 0);
    for token in tokens(html) {
        match token {
            Token::Open("style" | "script" | "title", _) => hidden += 1,
            Token::Close("style" | "script" | "title") => hidden -= 1,
            Token::Open("section", attributes) => {
                let is_left_out =
                    without.iter().any(|id| attributes.contains(&format!("id=\"{id}\"")));
                depth += u32::from(depth > 0 || is_left_out);
            }
            Token::Close("section") if depth > 0 => depth -= 1,
            Token::Text(text) if hidden == 0 && depth == 0 => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
                words.push(text.replace("&amp;", "&"));
            }
            _ => {}
        }
    }
    words
}

/// Checks that elements are closed in the right order, that ids are unique, and that each link
/// inside of the page has a target.
fn check(html: &str) {
    const VOID: [&str; 5] = ["meta", "input", "wbr", "!DOCTYPE", "br"];
    let mut open = Vec::new();
    for token in tokens(html) {
        match token {
            Token::Open(name, _) if VOID.contains(&name) => {}
            Token::Open(name, _) => open.push(name),
            Token::Close(name) => assert_eq!(open.pop(), Some(name)),
            Token::Text(_) => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ids = attributes(html, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    for link in attributes(html, "href") {
        if let Some(id) = link.strip_prefix('#') {
            assert!(unique.contains(id), "{link} leads nowhere");
        }
    }
}

#[test]
fn the_page_has_the_words_of_the_snapshot() {
    insta::assert_snapshot!(words(&page(&HtmlOptions::default()), &[]).join("\n"));
}

#[test]
fn the_page_in_markdown_equals_the_snapshot() {
    insta::assert_snapshot!(write_markdown(
        &model(&example(), None, ReportLimits::default()),
        false
    ));
}

#[test]
fn every_form_of_the_page_is_well_formed() {
    let session = example();
    let since = Timestamp::parse_rfc3339("2025-03-11T11:00:00Z");
    for limits in [
        ReportLimits::default(),
        ReportLimits { shared: true, ..ReportLimits::default() },
        ReportLimits { since, ..ReportLimits::default() },
    ] {
        let model = model(&session, None, limits);
        for options in [
            HtmlOptions::default(),
            HtmlOptions { script: false, ..HtmlOptions::default() },
            HtmlOptions { brief: true, ..HtmlOptions::default() },
            HtmlOptions { max_bytes: Some(1), ..HtmlOptions::default() },
        ] {
            check(&write_page(&model, None, &options).html);
        }
        let parts = write_parts(&model, &HtmlOptions::default());
        assert!(parts.iter().any(|(id, html)| *id == "story" && html.contains("class=\"you\"")));
    }
}

#[test]
fn the_page_loads_nothing_and_runs_only_its_own_script() {
    let html = page(&HtmlOptions::default());
    assert!(attributes(&html, "src").is_empty());
    assert!(attributes(&html, "style").is_empty());
    for bad in ["url(", "@import", " onload=", " onclick=", " onerror="] {
        assert!(!html.contains(bad), "{bad}");
    }
    let scripts = tokens(&html).into_iter().filter_map(|token| match token {
        Token::Open("script", attributes) => Some(attributes),
        _ => None,
    });
    assert_eq!(scripts.collect::<Vec<_>>(), ["type=\"application/json\" id=\"moment-data\"", ""]);
    assert!(html.contains(&policy(true, false)), "the policy is on the page");
    assert!(policy(true, false).starts_with("default-src 'none'; style-src 'sha256-"));
    assert!(!policy(true, false).contains("unsafe"));
}

#[test]
fn a_page_without_script_has_every_fact() {
    let with = words(&page(&HtmlOptions::default()), &["moments"]);
    let without = words(&page(&HtmlOptions { script: false, ..HtmlOptions::default() }), &[]);
    let only_with: Vec<&String> = with.iter().filter(|text| !without.contains(text)).collect();
    assert_eq!(only_with, ["What was known when"], "the link to the slider");
}

#[test]
fn a_shared_page_has_no_outputs_patches_or_summaries() {
    let limits = ReportLimits { shared: true, ..ReportLimits::default() };
    let shared = model(&example(), None, limits);
    let html = write_page(&shared, None, &HtmlOptions::default()).html;
    let whole = page(&HtmlOptions::default());
    for raw in [
        "We know <strong>the cause</strong>",
        "const SEEN: usize = 128;",
        "class=\"output\"",
        "class=\"added\"",
    ] {
        assert!(whole.contains(raw) && !html.contains(raw), "{raw}");
    }
    assert!(html.contains("left out of a shared report"));
}

#[test]
fn a_changed_line_that_looks_like_the_name_of_a_file_is_in_the_patch() {
    let store = Store::in_memory().unwrap();
    let now = Timestamp::parse_rfc3339("2025-03-11T10:00:00Z").unwrap();
    let act = WriteContext::asked("import", now);
    let session = store.create_session(&act, NewSession::named("edits")).unwrap();
    let patch = "--- q.sql\n+++ q.sql\n@@ -1,2 +1 @@\n--- a comment\n-x\n+++ more\n";
    let fact = Fact {
        kind: Kind::Code,
        id: "x1".to_owned(),
        at: now,
        origin: FactOrigin::Recorded,
        place: 1,
        recorded_at: now,
        value: Value::from([("patch", patch.into()), ("path", "q.sql".into())]),
    };
    session.write(&act).fact(fact).commit().unwrap();
    let model = model(&session, None, ReportLimits::default());
    let html = write_page(&model, None, &HtmlOptions::default()).html;
    assert!(html.contains("<code class=\"removed\">--- a comment\n"), "{html}");
    assert!(html.contains("<code class=\"added\">+++ more\n"), "{html}");
    assert!(html.contains(" · +1 −2"), "{html}");
    assert!(!html.contains("--- q.sql"), "{html}");
}

/// Regression: the only run of a check was called "check runs".
#[test]
fn the_only_run_of_a_check_is_one_check_run() {
    let store = Store::in_memory().unwrap();
    let now = Timestamp::parse_rfc3339("2025-03-11T10:00:00Z").unwrap();
    let act = WriteContext::asked("import", now);
    let session = store.create_session(&act, NewSession::named("checks")).unwrap();
    for (id, words) in [("v1", "check run passed"), ("v2", "check runs passed")] {
        let fact = Fact {
            kind: Kind::Verification,
            id: id.to_owned(),
            at: now,
            origin: FactOrigin::Recorded,
            place: 1,
            recorded_at: now,
            value: Value::from([("name", id.into()), ("status", "passed".into())]),
        };
        session.write(&act).fact(fact).commit().unwrap();
        let model = model(&session, None, ReportLimits::default());
        let html = write_page(&model, None, &HtmlOptions::default()).html;
        assert!(html.contains(words), "{html}");
    }
}

#[test]
fn a_page_with_a_size_limit_names_the_parts_it_leaves_out() {
    let model = model(&example(), None, ReportLimits::default());
    let written = |most: usize| {
        let options = HtmlOptions { max_bytes: Some(most), ..HtmlOptions::default() };
        write_page(&model, None, &options)
    };
    let whole = written(usize::MAX);
    assert!(whole.left_out.is_empty());
    let smaller = written(whole.html.len() - 1);
    assert!(!smaller.left_out.is_empty() && smaller.html.len() < whole.html.len());
    for what in &smaller.left_out {
        assert!(smaller.html.contains(what), "{what}");
    }
    // The story is short: nothing of it is left out.
    let smallest = written(1).left_out;
    assert!(smallest.contains(&"folded lines"), "{smallest:?}");
    assert!(!smallest.iter().any(|what| what.ends_with("of the story")), "{smallest:?}");
}

/// Regression: where patches were left out, prompts were shortened too, and the page of a session
/// without patches named them as left out.
#[test]
fn a_page_without_patches_names_none_as_left_out() {
    let store = Store::in_memory().unwrap();
    let now = Timestamp::parse_rfc3339("2025-03-11T10:00:00Z").unwrap();
    let act = WriteContext::asked("import", now);
    let session = store.create_session(&act, NewSession::named("asked")).unwrap();
    let fact = Fact {
        kind: Kind::Prompt,
        id: "p1".to_owned(),
        at: now,
        origin: FactOrigin::Recorded,
        place: 1,
        recorded_at: now,
        value: Value::from([("text", "why is it slow? ".repeat(30).as_str().into())]),
    };
    session.write(&act).fact(fact).commit().unwrap();
    let model = model(&session, None, ReportLimits::default());
    let options = HtmlOptions { max_bytes: Some(1), ..HtmlOptions::default() };
    let left_out = write_page(&model, None, &options).left_out;
    assert!(left_out.is_empty(), "{left_out:?}");
}

/// Regression: the head had all confirmed hypotheses, and the charts came after some pages of them.
#[test]
fn the_head_has_only_some_confirmed_hypotheses() {
    let store = Store::in_memory().unwrap();
    let now = Timestamp::parse_rfc3339("2025-03-11T10:00:00Z").unwrap();
    let act = WriteContext::asked("test", now);
    let session = store.create_session(&act, NewSession::named("many")).unwrap();
    for number in 1..=9 {
        let value = Value::from([("description", "skew".into()), ("status", "confirmed".into())]);
        let key = Key::new(Kind::Hypothesis, format!("H{number}"));
        session.write(&act).change(ClaimChange::add(key, value)).commit().unwrap();
    }
    let model = model(&session, None, ReportLimits::default());
    let html = write_page(&model, None, &HtmlOptions::default()).html;
    assert_eq!(html.matches("class=\"who good\"").count(), 5, "{html}");
    assert!(html.contains("and 4 more confirmed"), "{html}");
}

/// Regression: an update of an open page brought back what was left out to keep the page small.
#[test]
fn updates_of_an_open_page_are_as_short_as_on_the_page() {
    let model = model(&example(), None, ReportLimits::default());
    let whole = write_page(&model, None, &HtmlOptions::default()).html;
    for most in [whole.len(), whole.len() - 1, 1] {
        let options = HtmlOptions { max_bytes: Some(most), ..HtmlOptions::default() };
        let page = write_page(&model, None, &options).html;
        for (id, html) in write_parts(&model, &options) {
            assert!(page.contains(&html), "{id}, at most {most} bytes");
        }
    }
}

#[test]
fn a_page_as_of_a_moment_has_no_later_entries() {
    let session = example();
    let whole = model(&session, None, ReportLimits::default());
    let then = model(&session, Some("2025-03-11T10:50:00Z"), ReportLimits::default());
    let html = write_page(&then, Some(&whole), &HtmlOptions::default()).html;
    check(&html);
    let words = words(&html, &["timeline"]).join("\n");
    assert!(words.contains("As of Tue 11 Mar 10:50."), "{words}");
    for later in ["confirmed", "H6", "keep the deadline on the broker", "G5"] {
        assert!(!words.contains(later), "{later}");
    }
    assert!(html.contains("class=\"later\""), "what is later is grey");
}

/// Regression: beliefs that support a belief were left out.
#[test]
fn a_belief_rests_on_what_supports_it() {
    let model = model(&example(), None, ReportLimits::default());
    let belief = model.beliefs.iter().find(|belief| belief.id.as_str() == "B5").unwrap();
    let ids: Vec<&str> = belief.rests_on.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["B4", "B6"]);
}

#[test]
fn a_question_that_was_answered_on_an_abandoned_branch_is_still_open() {
    let model = model(&example(), None, ReportLimits::default());
    let gap =
        |name: &str| model.question_texts.iter().position(|(id, _)| id.as_str() == name).unwrap();
    let of_gap: Vec<(String, bool)> = model
        .moments
        .iter()
        .flat_map(|moment| moment.gaps.iter().map(move |change| (moment.at.to_string(), *change)))
        .filter(|(_, (place, _))| *place == gap("G2"))
        .map(|(at, (_, is_open))| (at, is_open))
        .collect();
    // The question was answered on a branch that was abandoned.
    let times = [("2025-03-11T09:33:30Z", true), ("2025-03-11T09:55:00Z", false)];
    assert_eq!(of_gap.get(..2).unwrap(), times.map(|(at, open)| (at.to_owned(), open)));
    assert_eq!(of_gap.len(), 3, "{of_gap:?}");
    assert!(of_gap[2].1, "on the main branch the question is still open");
    let row = model.gaps.iter().find(|gap| gap.id.as_str() == "G2").unwrap();
    assert_eq!(row.answered_elsewhere.as_ref().unwrap().0.as_str(), "dedup-cache");
}
