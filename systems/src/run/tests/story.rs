//! Reproduces the failure that cost 122 summaries, from its timeline.

use super::*;
use forge_store::store::{ClaimChange, Options};

const TEMPLATE: &str = "Please grade this summary: {conversation_3341_output}";

/// A workflow processed its postings in waves. In the first wave (10:00:00), step 3341 wrote a
/// summary of posting 123, and a checkpoint with that output was saved. Minutes later (10:04:30),
/// the second wave loaded the posting from its checkpoint: its position was restored, its outputs
/// were not. The template of step 3342 found nothing for 3341 and left `{conversation_3341_output}`
/// in the prompt without an error, and the model graded a summary that it had never seen. 122
/// postings got such grades.
#[test]
fn a_wave_in_another_process_has_every_output_of_the_previous_wave() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    {
        let store = Store::create(&path, Options::default()).unwrap();
        let run = WorkflowRun::open_or_create(&store, &act(0), "4567").unwrap();
        for posting in 1..=122 {
            let summary = format!("Summary: role {posting}");
            let record = StepRecord {
                order: Some(2),
                name: Some("extract_summary".to_owned()),
                ..step(&posting.to_string(), "3341", &summary, next_step("3342"))
            };
            run.record(&act(posting), &record).unwrap();
        }
    }
    // Nothing of the first wave is in memory any more.
    let store = Store::open(&path, Options::default()).unwrap();
    let run = WorkflowRun::open(&store, "4567").unwrap();
    let resumed = run.resume().unwrap();
    assert_eq!(resumed.active().count(), 122);
    for loaded in resumed.items {
        let posting = &loaded.item.item;
        assert_eq!(loaded.item.current_step(), Some("3342"));
        assert_eq!(loaded.output("3341").map(|output| output.order), Some(Some(2)));
        assert_eq!(&run.load(posting).unwrap(), &loaded);
        let prompt = run.render(TEMPLATE, posting).unwrap().unwrap();
        assert_eq!(prompt, format!("Please grade this summary: Summary: role {posting}"));
        let by_name = run.render("{extract_summary_output}", posting).unwrap().unwrap();
        assert_eq!(by_name, format!("Summary: role {posting}"));
    }
}

/// The same with the output really missing: the store holds an item without its output, as in the
/// second wave. Every function returns an error that names the step.
#[test]
fn an_item_without_its_outputs_is_an_error_and_no_prompt() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    run.record(&act(1), &step("123", "3341", "Summary", next_step("3342"))).unwrap();
    let removal = ClaimChange::remove(Key::new(Kind::Output, "123/3341"));
    run.session().write(&act(2)).change(removal).commit().unwrap();
    let errors = [
        run.load("123").map(|_| ()),
        run.resume().map(|_| ()),
        run.render(TEMPLATE, "123").map(|_| ()),
        run.render("nothing to fill", "123").map(|_| ()),
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), forge_store::error::ErrorKind::Corrupt);
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("their outputs are missing: 3341"), "{source}");
    }
}

#[test]
fn a_template_that_needs_a_missing_step_is_refused_with_its_name() {
    let store = Store::in_memory().unwrap();
    let run = run(&store);
    run.record(&act(1), &step("123", "3340", "x", next_step("3341"))).unwrap();
    let refusal = run.render(TEMPLATE, "123").unwrap().unwrap_err();
    assert_eq!(refusal.to_string(), "nothing is recorded for {conversation_3341_output}");
    let missing = run.output("123", "3341").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "there is no output '3341' of the item '123' in the run 'nightly'"
    );
}

/// The 122 grades were found later by their text.
#[test]
fn an_audit_finds_the_outputs_of_prompts_with_missing_input() {
    let outputs = [
        "Grade: 7/10 based on the provided summary about {session_9_output}",
        "A strong role, based on session_4_output",
        "Craft a summary of the posting in three sentences",
    ];
    let kinds: Vec<FindingKind> =
        outputs.iter().flat_map(|text| audit(text)).map(|finding| finding.kind).collect();
    assert_eq!(kinds, FindingKind::ALL);
}
