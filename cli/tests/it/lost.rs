//! How often the loss report is right, on the recorded sessions in `../shared/data`.

use crate::environment::Environment;
use crate::hook::data;
use forge_cli::compaction::mention::SummaryText;
use forge_cli::compaction::newest_compactions;
use forge_store::model::Kind;
use forge_store::model::claim::{FactText, FieldValue};
use forge_store::store::{Options, Store};
use forge_testkit::skip::skipped;
use std::collections::BTreeMap;
use std::io::Write;

/// Each prompt and inference that was compared with a summary, labelled by hand.
const LABELS: &str = include_str!("lost_labels.tsv");

/// The texts and the summaries of the recorded sessions.
struct RecordedTexts {
    texts: BTreeMap<String, String>,
    summaries: BTreeMap<String, SummaryText>,
}

fn read_sessions() -> Option<RecordedTexts> {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let mut recorded = RecordedTexts { texts: BTreeMap::new(), summaries: BTreeMap::new() };
    for name in ["long", "review-e2e"] {
        let transcript = data(&format!("claude-code/{name}.jsonl"))?;
        let file = environment.path(&format!("home/{name}.jsonl"));
        std::fs::write(&file, transcript).unwrap();
        let mut import = environment.command(["import", "claude-code", file.to_str().unwrap()]);
        environment.finished(import.env("FORGE_TEST_NOW", "2026-06-01T00:00:00Z")).success();
    }
    let store = environment.path("project/.forge");
    let store = Store::open(&store, Options::default().read_only(true)).unwrap();
    for summary in store.sessions().unwrap() {
        let session = store.session(&summary.info.id.to_string()).unwrap();
        let state = session.state(&session.head().unwrap()).unwrap();
        for (kind, field) in [(Kind::Prompt, "text"), (Kind::Inference, "description")] {
            for known in state.facts_of(kind).unwrap() {
                let text = FactText::read(known.fact.value.field(field).unwrap()).unwrap();
                recorded.texts.insert(known.fact.id, text.preview().to_owned());
            }
        }
        for one in newest_compactions(&session, None).unwrap() {
            let summary = SummaryText::new(&one.summary(&session).unwrap().unwrap());
            recorded.summaries.insert(one.checkpoint.time.to_string(), summary);
        }
    }
    Some(recorded)
}

/// `scripts/loss-report` runs this, and prints the figures with each wrong verdict.
#[test]
fn the_loss_report_is_as_often_right_as_the_page_says() {
    let Some(recorded) = read_sessions() else {
        return skipped("the loss report", "no recorded sessions");
    };
    let (mut right, mut wrong, mut missed, mut kept) = (0, 0, 0, 0);
    let mut errors = String::new();
    for line in LABELS.lines().filter(|line| !line.starts_with('#')) {
        let [time, _, id, label] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let is_mentioned = recorded.summaries[time].mention(&recorded.texts[id]).is_mentioned;
        let verdict = match (is_mentioned, label) {
            (false, "lost") => (&mut right, None),
            (false, "kept") => (&mut wrong, Some("named, but the summary has it")),
            (true, "lost") => (&mut missed, Some("lost, but not named")),
            (true, "kept") => (&mut kept, None),
            _ => panic!("{line}"),
        };
        *verdict.0 += 1;
        if let Some(error) = verdict.1 {
            errors.push_str(&format!("  {error}: {time} {id}\n"));
        }
    }
    let share = |part: u32, other: u32| f64::from(part) / f64::from(part + other);
    let (precision, recall) = (share(right, wrong), share(right, missed));
    let lost = right + missed;
    let figures = format!(
        "{lost} lost and {} kept: {right} of the lost are named, and {wrong} of the kept; recall {recall:.2}, \
         precision {precision:.2}",
        kept + wrong
    );
    writeln!(std::io::stdout(), "{figures}\n{errors}").unwrap();
    let page = include_str!("../../../docs/hooks.md").split_whitespace().collect::<Vec<_>>();
    assert!(page.join(" ").contains(&figures), "docs/hooks.md does not say: {figures}");
    assert!(recall >= 0.8 && precision >= 0.8);
}
