//! How often the loss report is right, on two recorded sessions.

use crate::hook::data;
use forge_cli::compaction::mention::SummaryText;
use forge_testkit::skip::skipped;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// Each prompt and statement that was compared with a summary, labelled by hand.
const LABELS: &str = include_str!("lost_labels.tsv");

/// The texts and summaries of the recorded sessions.
struct RecordedSessions {
    /// The texts by the id of the line.
    texts: BTreeMap<String, String>,
    /// The summaries by the time of the compaction.
    summaries: BTreeMap<String, SummaryText>,
}

fn read_sessions() -> Option<RecordedSessions> {
    let mut recorded = RecordedSessions { texts: BTreeMap::new(), summaries: BTreeMap::new() };
    for name in ["long", "review-e2e"] {
        let transcript = data(&format!("claude-code/{name}.jsonl"))?;
        let mut compacted_at = None;
        for line in transcript.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["subtype"] == "compact_boundary" {
                compacted_at = line["timestamp"].as_str().map(str::to_owned);
            }
            let (Some(id), Some(text)) = (line["uuid"].as_str(), text_of(&line)) else { continue };
            if line["isCompactSummary"] == true {
                let time = compacted_at.take().unwrap();
                recorded.summaries.insert(time, SummaryText::new(&text));
            }
            recorded.texts.insert(id.to_owned(), text);
        }
    }
    Some(recorded)
}

/// Returns the text of a line of a transcript.
fn text_of(line: &Value) -> Option<String> {
    match &line["message"]["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            Some(texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// `scripts/loss-report` runs this, and prints the figures with each wrong verdict.
#[test]
fn precision_and_recall_of_the_loss_report_are_as_the_page_says() {
    let Some(recorded) = read_sessions() else {
        return skipped("the loss report", "no recorded sessions");
    };
    let (mut right, mut wrong, mut missed, mut kept) = (0, 0, 0, 0);
    let mut errors = String::new();
    for line in LABELS.lines().filter(|line| !line.starts_with('#')) {
        let [time, id, first, bytes, label] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let first: usize = first.parse().unwrap();
        let text = &recorded.texts[id][first..first + bytes.parse::<usize>().unwrap()];
        let is_mentioned = recorded.summaries[time].mention(text).is_mentioned;
        let verdict = match (is_mentioned, label) {
            (false, "lost") => (&mut right, None),
            (false, "kept") => (&mut wrong, Some("named, but the summary has it")),
            (true, "lost") => (&mut missed, Some("lost, but not named")),
            (true, "kept") => (&mut kept, None),
            _ => panic!("{line}"),
        };
        *verdict.0 += 1;
        if let Some(error) = verdict.1 {
            let begin: String = text.chars().take(80).collect();
            errors.push_str(&format!("  {error}: {time} {begin:?}\n"));
        }
    }
    let share = |part: u32, other: u32| f64::from(part) / f64::from(part + other);
    let (precision, recall) = (share(right, wrong), share(right, missed));
    let lost = right + missed;
    let figures = format!(
        "{lost} lost and {} kept: forge names {right} of the lost and {wrong} of the kept; recall \
         {recall:.2}, precision {precision:.2}",
        kept + wrong
    );
    writeln!(std::io::stdout(), "{figures}\n{errors}").unwrap();
    let page = include_str!("../../../docs/hooks.md").split_whitespace().collect::<Vec<_>>();
    assert!(page.join(" ").contains(&figures), "docs/hooks.md does not say: {figures}");
    assert!(recall >= 0.8 && precision >= 0.8);
}
