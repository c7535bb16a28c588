//! Stories of whole sessions.

use super::*;
use crate::model::{BranchMetadata, Fact, FactOrigin, Key, Kind, Value};
use crate::store::{ClaimChange, LogItem, NewCheckpoint, NewSession, Session, Store, WriteContext};

fn at(minute: i64) -> Timestamp {
    Timestamp::from_micros(1_770_000_000_000_000 + minute * 60_000_000)
}

fn fact(kind: Kind, id: &str, minute: i64, fields: &[(&str, &str)]) -> Fact {
    let value = fields.iter().map(|(name, value)| {
        let value = match *name {
            "exit_code" | "lines_added" | "lines_removed" => {
                Value::Int(value.parse().expect("a number"))
            }
            _ => Value::from(*value),
        };
        ((*name).to_owned(), value)
    });
    Fact {
        kind,
        id: id.to_owned(),
        at: at(minute),
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: at(minute),
        value: Value::Map(value.collect()),
    }
}

fn session(facts: Vec<Fact>) -> Session {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", at(0));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    session.write(&act).facts(facts, None).commit().unwrap();
    session
}

fn story_of(session: &Session) -> Story {
    Story::read(&session.state(&session.head().unwrap()).unwrap()).unwrap()
}

/// Returns the lines that a reader sees.
fn lines(story: &Story) -> Vec<String> {
    let line = |row| match row {
        StoryRow::Item(item) => {
            let StoryItem { kind, text, detail, .. } = item;
            let detail = detail.as_ref().map(|detail| format!(" | {detail}")).unwrap_or_default();
            format!("{kind:?}: {text}{detail}")
        }
        StoryRow::Folded { folded, .. } => format!("({})", folded_words(&folded)),
    };
    story.rows().into_iter().map(line).collect()
}

fn lines_of(facts: Vec<Fact>) -> Vec<String> {
    lines(&story_of(&session(facts)))
}

fn agent_message(id: &str, minute: i64, text: &str) -> Fact {
    fact(Kind::Message, id, minute, &[("role", "assistant"), ("text", text)])
}

fn prompt(id: &str, minute: i64, text: &str) -> Fact {
    fact(Kind::Prompt, id, minute, &[("text", text), ("cwd", "/home/m/w")])
}

fn command(id: &str, minute: i64, line: &str, exit_code: &str) -> Fact {
    fact(Kind::Command, id, minute, &[("command", line), ("exit_code", exit_code)])
}

fn check_result(id: &str, minute: i64, name: &str, status: &str) -> Fact {
    fact(Kind::Verification, id, minute, &[("name", name), ("status", status)])
}

fn edit(id: &str, minute: i64, path: &str) -> Fact {
    let fields = [("path", path), ("lines_added", "2"), ("lines_removed", "1")];
    fact(Kind::Code, id, minute, &fields)
}

#[test]
fn the_prompts_of_a_brief_have_the_questions_that_they_answer() {
    let of_helper = [("role", "assistant"), ("agent", "a1"), ("text", "Shall I go on?")];
    let facts = vec![
        agent_message("m1", 0, "Shall I begin?"),
        prompt("p1", 1, "yes"),
        agent_message("m2", 2, "I will look."),
        agent_message("m3", 3, "Which one do you prefer?"),
        fact(Kind::Message, "m4", 4, &of_helper),
        fact(Kind::Message, "m5", 4, &[("role", "user"), ("text", "a tool's result?")]),
        fact(Kind::Message, "m6", 4, &[("role", "assistant"), ("text", " ")]),
        prompt("p2", 5, "A."),
        prompt("p3", 6, "go"),
        agent_message("m7", 7, "Is it done?"),
    ];
    let session = session(facts);
    let state = session.state(&session.head().unwrap()).unwrap();
    let brief = Story::brief(&state, &|_, _| None).unwrap();
    let prompts: Vec<_> =
        brief.prompts.iter().map(|line| (&*line.text, line.reason.as_deref())).collect();
    assert_eq!(
        prompts,
        [
            ("go", None),
            ("A.", Some("to: Which one do you prefer?")),
            ("yes", Some("to: Shall I begin?")),
        ]
    );
}

/// Regression: they were in the order of their ids.
#[test]
fn prompts_with_the_same_time_are_in_the_order_of_their_source() {
    let placed = |id: &str, place, text: &str| Fact { place, ..prompt(id, 0, text) };
    let facts = vec![
        placed("z", 1, "first use the cache"),
        placed("y", 2, "then the journal"),
        placed("x", 3, "and test"),
    ];
    let expected = ["Prompt: first use the cache", "Prompt: then the journal", "Prompt: and test"];
    assert_eq!(lines_of(facts), expected);
}

/// Regression: the line ended with `code captured on`.
#[test]
fn a_state_of_the_code_without_a_commit_says_so() {
    let story = story_of(&session(vec![fact(Kind::Code, "c1", 0, &[("branch", "main")])]));
    let texts: Vec<&str> = story.items().map(|item| item.text.as_str()).collect();
    assert_eq!(texts, ["code captured, no commit yet"]);
}

/// Regression: a question that a person left empty gave the answer `; A, B`.
#[test]
fn a_question_without_an_answer_is_not_among_the_answers() {
    let answered = |id: &str, minute: i64, answers: &[(&str, &str)]| {
        let answers = answers.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
        let value = Value::from([
            ("tool", "AskUserQuestion".into()),
            ("answers", Value::Map(answers.collect())),
        ]);
        Fact { value, ..fact(Kind::Tool, id, minute, &[]) }
    };
    let facts = vec![
        prompt("p1", 0, "plan the change"),
        answered("q1", 1, &[("Notes?", ""), ("Which one?", "A, B")]),
        answered("q2", 2, &[("More?", " ")]),
    ];
    let lines = lines_of(facts);
    assert_eq!(lines, ["Prompt: plan the change", "Answer: A, B | Which one?", "(1 tool use)"]);
}

#[test]
fn a_turn_begins_with_a_prompt_and_ends_with_the_last_message() {
    let facts = vec![
        prompt("p1", 0, "why is the cache stale after a restart?"),
        agent_message("m1", 1, "I will look."),
        command("c1", 2, "ls /home/m/w/src", "0"),
        command("c2", 3, "cat x", "1"),
        agent_message("m2", 4, "There are two ways.\n\nWhich one do you prefer?"),
        fact(Kind::Message, "m3", 4, &[("role", "user"), ("text", "a tool's result")]),
        fact(Kind::Message, "m4", 4, &[("role", "assistant"), ("text", " ")]),
        prompt("p2", 5, "A."),
        prompt("p3", 6, "/exit"),
    ];
    let story = story_of(&session(facts));
    assert_eq!(
        lines(&story),
        [
            "Prompt: why is the cache stale after a restart?",
            "(2 commands, 1 message)",
            "Message: There are two ways. Which one do you prefer?",
            "Prompt: A. | Which one do you prefer?",
            "Prompt: /exit",
        ]
    );
    assert_eq!(story.findings.title.as_deref(), Some("why is the cache stale after a restart?"));
    let quiet: Vec<&str> =
        story.items().filter(|item| !item.loud).map(|item| item.text.as_str()).collect();
    assert_eq!(quiet, ["I will look.", "$ ls src", "$ cat x (exit 1)"]);
}

#[test]
fn a_check_has_a_line_where_its_result_changes() {
    let facts = vec![
        check_result("v1", 1, "unit tests", "passed"),
        check_result("v2", 2, "unit tests", "passed"),
        check_result("v3", 3, "unit tests", "failed"),
        check_result("v4", 4, "unit tests", "failed"),
        check_result("v5", 5, "lint && unit tests", "passed"),
        check_result("v6", 6, "lint", "unknown"),
        check_result("v7", 7, "docs", "failed"),
    ];
    let story = story_of(&session(facts));
    assert_eq!(
        lines(&story),
        [
            "Check: unit tests passed",
            "(1 check)",
            "Check: unit tests failed",
            "(1 check)",
            "Check: lint && unit tests passes again",
            "(1 check)",
            "Check: docs failed",
        ]
    );
    let names = |list: &[crate::store::LastCheckResult]| -> Vec<String> {
        list.iter().map(|check| check.text.clone()).collect()
    };
    assert_eq!(names(&story.findings.failing), ["docs"]);
    assert_eq!(names(&story.findings.passing), ["lint && unit tests"]);
}

#[test]
fn a_command_that_has_the_line_of_a_check_has_no_other() {
    let facts = vec![
        command("c1", 1, "make lint && make test", "0"),
        check_result("c1", 1, "make lint", "passed"),
        check_result("c1/2", 1, "make test", "passed"),
        command("c2", 2, "./check", "0"),
        fact(
            Kind::Verification,
            "v",
            2,
            &[("name", "check"), ("status", "passed"), ("command", "./check")],
        ),
    ];
    let expected = ["Check: make lint passed", "Check: make test passed", "Check: check passed"];
    assert_eq!(lines_of(facts), expected);
}

#[test]
fn edits_are_one_line_until_something_else_has_a_line() {
    let facts = vec![
        prompt("p", 0, "go"),
        edit("e1", 1, "/home/m/w/src/a.rs"),
        command("c1", 2, "ls", "0"),
        edit("e2", 3, "/home/m/w/src/b.rs"),
        edit("e3", 4, "/home/m/w/src/a.rs"),
        command("c2", 5, "git commit -m 'keep it'", "0"),
        edit("e4", 6, "/home/m/w/c.rs"),
    ];
    let story = story_of(&session(facts));
    assert_eq!(
        lines(&story),
        [
            "Prompt: go",
            "Edit: a.rs +4 −2, b.rs +2 −1",
            "(1 command)",
            "Commit: commit | keep it",
            "Edit: c.rs +2 −1",
        ]
    );
    let edit = story.items().find(|item| item.kind == StoryKind::Edit).unwrap();
    assert_eq!(edit.paths, ["src/a.rs", "src/b.rs"]);
    assert_eq!(edit.refs.len(), 3);
    let files = story.findings.uncommitted.iter().map(|file| file.path.as_str());
    assert_eq!(files.collect::<Vec<_>>(), ["c.rs"]);
    assert_eq!(story.root.as_ref().map(ProjectRoot::as_str), Some("/home/m/w"));
}

/// Regression: any commit emptied the list of files that are not committed.
#[test]
fn a_file_that_was_not_added_to_a_commit_is_not_committed() {
    let facts = vec![
        prompt("p", 0, "go"),
        edit("e1", 1, "/home/m/w/src/a.rs"),
        edit("e2", 2, "/home/m/w/b.rs"),
        edit("e3", 3, "/home/m/w/c.rs"),
        edit("e4", 3, "/home/m/w/d.rs"),
        command("c0", 4, "git checkout -- d.rs", "0"),
        command("c1", 4, "git add src && git commit -m one", "0"),
        command("c2", 5, "git add c.rs", "0"),
        command("c3", 6, "git commit -m two", "0"),
    ];
    let story = story_of(&session(facts));
    let files = story.findings.uncommitted.iter().map(|file| file.path.as_str());
    assert_eq!(files.collect::<Vec<_>>(), ["b.rs"]);
    assert_eq!(story.findings.commits.len(), 2);
}

#[test]
fn the_work_of_a_sub_agent_is_one_line_of_the_story() {
    let by_agent = |mut fact: Fact| {
        if let Value::Map(fields) = &mut fact.value {
            fields.insert("agent".to_owned(), "a1".into());
        }
        fact
    };
    let sent = [("description", "Fix the cache"), ("started_at", "2026-02-02T02:41:00Z")];
    let facts = vec![
        prompt("p", 0, "go"),
        fact(Kind::Agent, "a1", 9, &sent),
        by_agent(edit("e1", 2, "/home/m/w/a.rs")),
        by_agent(check_result("v1", 3, "unit tests", "failed")),
        by_agent(check_result("v2", 4, "unit tests", "passed")),
        by_agent(command("c1", 5, "git commit -m x", "0")),
        by_agent(agent_message("m1", 6, "Done.")),
        check_result("v3", 10, "unit tests", "passed"),
    ];
    let story = story_of(&session(facts));
    let work = "4 min, 1 file edited, 1 check passed, 1 check failed, 1 commit";
    let line = format!("Agent: sub-agent: Fix the cache | {work}");
    assert_eq!(lines(&story), ["Prompt: go", &line, "(1 check)"]);
    assert_eq!(story.findings.commits.len(), 1);
    assert!(story.findings.uncommitted.is_empty());
}

#[test]
fn claims_checkpoints_and_branches_have_lines() {
    let session = session(Vec::new());
    let act = |minute| WriteContext::asked("test", at(minute));
    let hypothesis_value = |confidence: f64| {
        let text = "the cache is stale".into();
        Value::from([("description", text), ("confidence", Value::Float(confidence))])
    };
    let key = Key::new(Kind::Hypothesis, "H1");
    let add = ClaimChange::add(key.clone(), hypothesis_value(0.5));
    session.write(&act(1)).change(add).commit().unwrap();
    let named = NewCheckpoint::manual("one suspect");
    session.write(&act(2)).checkpoint(named).commit().unwrap();
    session.create_branch(&act(3), "alt", None, BranchMetadata::default()).unwrap();
    let before = session.head().unwrap();
    session.write(&act(4)).change(ClaimChange::put(key, hypothesis_value(0.25))).commit().unwrap();
    session.restore(&act(5), &before).unwrap();
    let story = story_of(&session);
    assert_eq!(
        lines(&story),
        [
            "Hypothesis: H1 new 0.50 | the cache is stale",
            "Checkpoint: one suspect",
            "Branch: branch alt",
            "Hypothesis: H1 0.50 → 0.25 | the cache is stale",
            "Restore: back to the claims of #1 | confidence of H1 0.25 → 0.50",
        ]
    );
    let then = session.state(&session.at_time(at(2)).unwrap()).unwrap();
    assert_eq!(lines(&Story::read(&then).unwrap()).len(), 2);
}

#[test]
fn retain_between_leaves_out_earlier_and_later_items() {
    let facts = vec![
        prompt("p1", 0, "first"),
        command("c1", 1, "ls", "0"),
        prompt("p2", 2, "second"),
        command("c2", 3, "ls", "0"),
        command("c3", 4, "ls", "0"),
    ];
    let mut story = story_of(&session(facts));
    let mut early = story.clone();
    early.retain_between(Timestamp::MIN, at(2));
    assert_eq!(lines(&early), ["Prompt: first", "(1 command)", "Prompt: second"]);
    story.retain_between(at(4), Timestamp::MAX);
    assert_eq!(lines(&story), ["(1 command)"]);
    story.unfold();
    assert_eq!(lines(&story), ["Command: $ ls"]);
    story.retain_between(at(5), Timestamp::MAX);
    assert_eq!(story.turns, []);
}

#[test]
fn read_whole_texts_reads_the_end_of_a_long_text() {
    let store = Store::in_memory().unwrap();
    let act = WriteContext::asked("test", at(0));
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let text = format!("It begins here.\n\n{}\n\nWhich one do you want?", "long ".repeat(20_000));
    let mut write = session.write(&act);
    let mut message = agent_message("m1", 1, "");
    let long = write.text(&text);
    if let Value::Map(fields) = &mut message.value {
        fields.insert("text".to_owned(), long);
    }
    write.fact(message).fact(prompt("p1", 2, "A.")).commit().unwrap();
    let mut story = story_of(&session);
    assert_eq!(lines(&story).last().unwrap(), "Prompt: A.");
    story.read_whole_texts(&session, &|_, _| None).unwrap();
    let lines = lines(&story);
    assert!(lines[0].ends_with("… Which one do you want?"), "{lines:?}");
    assert_eq!(lines[1], "Prompt: A. | Which one do you want?");
}

fn hypothesis(id: &str, confidence: f64, status: &str) -> ClaimChange {
    let fields = [
        ("description", "the cache is stale".into()),
        ("confidence", confidence.into()),
        ("status", status.into()),
    ];
    ClaimChange::put(Key::new(Kind::Hypothesis, id), Value::from(fields))
}

#[test]
fn each_step_of_a_confidence_has_its_evidence() {
    let session = session(Vec::new());
    let write = |minute| WriteContext::asked("test", at(minute));
    session.write(&write(1)).change(hypothesis("H1", 0.5, "active")).commit().unwrap();
    let evidence = Value::from([
        ("hypothesis", "H1".into()),
        ("strength", (-0.6).into()),
        ("description", "it fails without the cache".into()),
    ]);
    let evidence = ClaimChange::put(Key::new(Kind::Evidence, "E1"), evidence);
    let second = write(2);
    let moved = session.write(&second).change(evidence).change(hypothesis("H1", 0.2, "active"));
    moved.commit().unwrap();
    session.write(&write(3)).change(hypothesis("H1", 0.05, "rejected")).commit().unwrap();
    let more = Value::from([("hypothesis", "H1".into()), ("description", "and again".into())]);
    let more = ClaimChange::put(Key::new(Kind::Evidence, "E2"), more);
    session.write(&write(4)).change(more).commit().unwrap();
    let story = story_of(&session);
    let [path] = story.hypotheses.as_slice() else { panic!("{:?}", story.hypotheses) };
    let steps: Vec<_> =
        path.steps.iter().map(|step| (step.at, step.before, step.confidence)).collect();
    let expected = [
        (at(1), None, Some(0.5)),
        (at(2), Some(0.5), Some(0.2)),
        (at(3), Some(0.2), Some(0.05)),
        (at(4), Some(0.05), Some(0.05)),
    ];
    assert_eq!(steps, expected);
    assert_eq!(path.steps[1].evidence[0].description, "it fails without the cache");
    assert_eq!(path.steps[3].evidence[0].id, "E2");
    assert_eq!(path.steps[2].status, Some(crate::model::claim::HypothesisStatus::Rejected));
    assert_eq!(path.stated_at, at(1));
}

#[test]
fn each_run_of_a_check_lists_what_fails_after_it() {
    let facts = vec![
        check_result("v1", 1, "unit", "passed"),
        check_result("v2", 2, "unit", "failed"),
        check_result("v3", 3, "lint", "failed"),
        check_result("v4", 4, "unit", "failed"),
        check_result("v5", 5, "unit && lint", "passed"),
    ];
    let story = story_of(&session(facts));
    let failing: Vec<_> = story
        .checks
        .iter()
        .map(|run| (run.is_loud, run.failing.as_ref().map(|names| names.join(" "))))
        .collect();
    let names = |text: &str| Some(text.to_owned());
    assert_eq!(
        failing,
        [
            (true, None),
            (true, names("unit")),
            (true, names("lint unit")),
            (false, None),
            (true, names(""))
        ]
    );
}

#[test]
fn the_claims_over_time_are_those_of_the_branch_checked_out_then() {
    let session = session(Vec::new());
    let act = |minute| WriteContext::asked("test", at(minute));
    session.write(&act(1)).change(hypothesis("H1", 0.5, "active")).commit().unwrap();
    session.create_branch(&act(2), "other", None, BranchMetadata::default()).unwrap();
    session.switch_branch(&act(2), "other", true).unwrap();
    session.write(&act(3)).change(hypothesis("H1", 0.9, "active")).commit().unwrap();
    session.switch_branch(&act(4), "main", true).unwrap();
    session.write(&act(5)).change(hypothesis("H2", 0.4, "active")).commit().unwrap();
    let times: Vec<_> = [-1, 1, 3, 3, 5].into_iter().map(at).collect();
    let shown = |changes: Vec<crate::model::EntryChange>| {
        let confidence_of = |change: &crate::model::EntryChange| {
            let confidence = change.new.as_ref()?.value.field("confidence")?.as_f64()?;
            Some(format!("{} {confidence}", change.key.id))
        };
        changes.iter().filter_map(confidence_of).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<String> =
        session.claims_over_time(&times).unwrap().into_iter().map(shown).collect();
    assert_eq!(all, ["", "H1 0.5", "H1 0.9", "", "H1 0.5, H2 0.4"]);
}

#[test]
fn the_story_of_the_last_revisions_leaves_out_older_lines_and_keeps_the_findings() {
    let prompt = fact(Kind::Prompt, "p1", 0, &[("text", "find out why the tests fail")]);
    let early = fact(Kind::Verification, "v1", 1, &[("name", "unit"), ("status", "failed")]);
    let late = fact(Kind::Verification, "v2", 8, &[("name", "lint"), ("status", "failed")]);
    let session = session(vec![prompt, early, late]);
    for minute in 2..=9 {
        let act = WriteContext::asked("hypothesis edit", at(minute));
        let value = Value::from([
            ("description", "the cache is stale".into()),
            ("confidence", (minute as f64 / 10.0).into()),
        ]);
        let change = ClaimChange::put(Key::new(Kind::Hypothesis, "H1"), value);
        session.write(&act).change(change).commit().unwrap();
    }
    let state = session.state(&session.head().unwrap()).unwrap();
    let whole = Story::read(&state).unwrap();
    let recent = Story::read_recent(&state, 3).unwrap();
    assert_eq!(recent.cut, Some(StoryCut { at: at(7), sequence: 6 }));
    assert!(recent.items().all(|item| item.at >= at(7)), "{:?}", lines(&recent));
    let end = |story: &Story| lines(story).into_iter().rev().take(4).collect::<Vec<_>>();
    assert_eq!(end(&recent), end(&whole));
    assert_eq!(recent.findings.title, whole.findings.title);
    assert_eq!(recent.findings.failing, whole.findings.failing);
    assert_eq!(recent.findings.prompts, 1);
    let steps: Vec<Option<f64>> =
        recent.hypotheses[0].steps.iter().map(|step| step.before).collect();
    assert_eq!(steps, [Some(0.6), Some(0.7), Some(0.8)]);
    let all = Story::read_recent(&state, 8).unwrap();
    assert_eq!((all.cut, lines(&all)), (None, lines(&whole)));
}

/// Regression: the story of a past moment counted also the revisions after it. If there were
/// `count` of these, it had no revisions, and no cut.
#[test]
fn the_last_revisions_of_a_past_moment_are_those_up_to_it() {
    let session = session(Vec::new());
    for minute in 1..=9 {
        let act = WriteContext::asked("note", at(minute));
        let value = Value::from([("description", minute.to_string().into())]);
        let change = ClaimChange::put(Key::new(Kind::Note, "n"), value);
        session.write(&act).change(change).commit().unwrap();
    }
    let state = session.state(&session.at_time(at(4)).unwrap()).unwrap();
    for (count, cut) in [(1, Some(4)), (2, Some(3)), (3, Some(2)), (4, None), (5, None)] {
        let numbers: Vec<u64> =
            state.last_records(count).unwrap().0.iter().map(LogItem::sequence).collect();
        assert_eq!(numbers, (cut.unwrap_or(1)..=4).collect::<Vec<_>>(), "{count}");
        let story = Story::read_recent(&state, count).unwrap();
        assert_eq!(story.cut.map(|cut| cut.sequence), cut, "{count}");
    }
}

fn digest(session: &Session) -> Vec<(&'static str, String)> {
    let state = session.state(&session.head().unwrap()).unwrap();
    let lines = Story::read(&state).unwrap().digest(&state).unwrap();
    lines.into_iter().map(|line| (line.label, line.text)).collect()
}

#[test]
fn a_digest_has_the_question_the_result_the_ruled_out_and_the_open_points() {
    let facts = vec![
        prompt("p1", 0, "why is the cache stale after a restart?"),
        command("c1", 1, "git commit -m 'cache: drop it at the start'", "0"),
        edit("e1", 2, "/home/m/w/src/cache.rs"),
        prompt("p2", 3, "and now the tests"),
        agent_message("m1", 4, "Done.\n\nShall I commit it?"),
    ];
    let session = session(facts);
    let act = WriteContext::asked("test", at(5));
    let gap = Value::from([("description", "which node?".into()), ("status", "open".into())]);
    let gap = ClaimChange::put(Key::new(Kind::Gap, "G1"), gap);
    let write = session.write(&act).change(hypothesis("H1", 0.9, "confirmed"));
    write.change(hypothesis("H2", 0.1, "rejected")).change(gap).commit().unwrap();
    let lines = digest(&session);
    let expected = [
        ("Asked", "why is the cache stale after a restart?"),
        ("Asked last", "and now the tests"),
        (
            "Came out",
            "H1 confirmed 0.90: the cache is stale; 1 commit: cache: drop it at the start",
        ),
        ("Ruled out", "H2 the cache is stale"),
        ("Open", "G1 which node?; Shall I commit it?; not committed: cache.rs"),
    ];
    assert_eq!(lines, expected.map(|(label, text)| (label, text.to_owned())));
}

#[test]
fn a_digest_does_not_take_the_status_from_another_branch() {
    let session = session(vec![prompt("p1", 0, "why is the cache stale?")]);
    let act = WriteContext::asked("test", at(5));
    session.write(&act).change(hypothesis("H1", 0.6, "under_test")).commit().unwrap();
    session.create_branch(&act, "other", None, BranchMetadata::default()).unwrap();
    let elsewhere = session.write(&act).on("other");
    elsewhere.change(hypothesis("H1", 0.1, "rejected")).commit().unwrap();
    let lines = digest(&session);
    assert!(lines.contains(&("Ruled out", "nothing is recorded".to_owned())), "{lines:?}");
}

#[test]
fn a_digest_of_an_empty_session_says_that_nothing_is_recorded() {
    let expected = [
        ("Asked", "no prompt is recorded"),
        ("Came out", "nothing is recorded"),
        ("Ruled out", "nothing is recorded"),
        ("Open", "nothing is recorded"),
    ];
    assert_eq!(
        digest(&session(Vec::new())),
        expected.map(|(label, text)| (label, text.to_owned()))
    );
}
