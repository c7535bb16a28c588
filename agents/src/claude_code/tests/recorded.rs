//! The true counts of three recorded sessions.

use super::*;
use forge_store::model::{AutoTrigger, CheckpointTrigger, TextRef};
use std::collections::BTreeSet;

#[derive(Debug, PartialEq, Eq)]
struct Counts {
    messages: usize,
    commands: usize,
    agent_commands: usize,
    refused: usize,
    exit_code_1: usize,
    agent_exit_code_1: usize,
    code: usize,
    agent_code: usize,
    prompts: usize,
    slash: usize,
    compactions: usize,
    microcompactions: usize,
    commits: usize,
}

fn counts(piece: &TranscriptPiece) -> Counts {
    let by_agent = |fact: &&&Fact| fact.value.field("agent").is_some();
    let commands = of_kind(piece, Kind::Command);
    let code = of_kind(piece, Kind::Code);
    let prompts = of_kind(piece, Kind::Prompt);
    let messages = of_kind(piece, Kind::Message);
    let failed = |fact: &&&Fact| fact.value.field("exit_code") == Some(&Value::Int(1));
    let with_key =
        |prefix| piece.checkpoints.iter().filter(|it| it.key.starts_with(prefix)).count();
    let ids: BTreeSet<_> =
        piece.facts.iter().map(|fact| (fact.kind, &fact.id, fact.at, fact.place)).collect();
    assert_eq!(ids.len(), piece.facts.len(), "two versions of one time and place");
    Counts {
        messages: messages.len(),
        commands: commands.iter().filter(|fact| !by_agent(fact)).count(),
        agent_commands: commands.iter().filter(by_agent).count(),
        refused: commands.iter().filter(|it| text(&it.value, "outcome") == Some("refused")).count(),
        exit_code_1: commands.iter().filter(|it| !by_agent(it)).filter(failed).count(),
        agent_exit_code_1: commands.iter().filter(by_agent).filter(failed).count(),
        code: code.iter().filter(|fact| !by_agent(fact)).count(),
        agent_code: code.iter().filter(by_agent).count(),
        prompts: prompts.iter().filter(|it| it.value.field("tags").is_none()).count(),
        slash: prompts.iter().filter(|it| it.value.field("tags").is_some()).count(),
        compactions: with_key("compaction:"),
        microcompactions: messages
            .iter()
            .filter(|it| it.value.field("compacted_tool_ids").is_some())
            .count(),
        commits: with_key("commit:"),
    }
}

#[test]
fn the_review_recording_gives_the_expected_counts() {
    let Some((bytes, _)) = recorded("review-e2e") else { return };
    let piece = read_whole(&bytes);
    assert_eq!(piece.skipped, []);
    let expected = Counts {
        messages: 524,
        commands: 29,
        agent_commands: 0,
        refused: 1,
        exit_code_1: 3,
        agent_exit_code_1: 0,
        code: 26,
        agent_code: 0,
        prompts: 22,
        slash: 0,
        compactions: 1,
        microcompactions: 2,
        commits: 0,
    };
    assert_eq!(counts(&piece), expected);
    // Two of the commands ran two checks each.
    assert_eq!(of_kind(&piece, Kind::Verification).len(), 29);
}

#[test]
fn the_long_recording_gives_the_expected_counts() {
    let Some((bytes, _)) = recorded("long") else { return };
    let piece = read_whole(&bytes);
    assert_eq!(piece.skipped, []);
    let expected = Counts {
        messages: 750,
        commands: 78,
        agent_commands: 43,
        refused: 3,
        exit_code_1: 1,
        agent_exit_code_1: 6,
        code: 18,
        agent_code: 16,
        // One of them was typed while the agent worked.
        prompts: 33,
        slash: 5,
        compactions: 2,
        microcompactions: 0,
        commits: 6,
    };
    assert_eq!(counts(&piece), expected);
    let agents: BTreeSet<_> = of_kind(&piece, Kind::Agent).iter().map(|fact| &fact.id).collect();
    assert_eq!(agents.len(), 6);
    let tasks: BTreeSet<_> = of_kind(&piece, Kind::Task).iter().map(|fact| &fact.id).collect();
    assert_eq!(tasks.len(), 7);
    let manual = piece.checkpoints.iter().filter(|it| text(&it.body, "trigger") == Some("manual"));
    assert_eq!(manual.count(), 1);
}

#[test]
fn the_small_recording_gives_the_expected_counts_and_last_line() {
    let Some((bytes, _)) = recorded("small") else { return };
    let piece = read_whole(&bytes);
    assert_eq!(piece.skipped, []);
    let expected = Counts {
        messages: 122,
        commands: 12,
        agent_commands: 0,
        refused: 0,
        exit_code_1: 1,
        agent_exit_code_1: 0,
        code: 11,
        agent_code: 0,
        prompts: 6,
        slash: 0,
        compactions: 0,
        microcompactions: 0,
        commits: 0,
    };
    assert_eq!(counts(&piece), expected);
    assert_ne!(bytes.last(), Some(&b'\n'));
    assert_eq!(piece.taken, bytes.len() as u64);
    let session = piece.session.unwrap();
    assert_eq!(session.agent_session, "cc432c40-914a-4c1a-a972-0103199a736a");
    assert_eq!(session.title.unwrap(), "why this method does only work on unix and not windows?");
}

#[test]
fn every_compaction_has_its_summary_and_every_trigger_is_automatic() {
    for name in ["review-e2e", "long", "small"] {
        let Some((bytes, _)) = recorded(name) else { return };
        for draft in read_whole(&bytes).checkpoints {
            let expected = match draft.key.split(':').next().unwrap() {
                "compaction" => AutoTrigger::ContextCompactionWarning,
                "commit" => AutoTrigger::CodeModified,
                _ => AutoTrigger::SignificantTimePassed,
            };
            assert_eq!(draft.trigger, CheckpointTrigger::Automatic(expected));
            if draft.key.starts_with("compaction:") {
                let summary = TextRef::from_value(draft.body.field("summary").unwrap()).unwrap();
                assert!(summary.preview.starts_with("This session is being continued"));
                assert!(draft.body.field("pre_tokens").unwrap().as_i64().unwrap() > 100_000);
            }
        }
    }
}

fn references(value: &Value, found: &mut Vec<TextRef>) {
    if let Some(text) = TextRef::from_value(value) {
        found.push(text);
    } else if let Some(fields) = value.as_map() {
        fields.values().for_each(|value| references(value, found));
    } else if let Some(items) = value.as_list() {
        items.iter().for_each(|value| references(value, found));
    } else if let Some(text) = value.as_text() {
        assert!(text.len() <= crate::INLINE_BYTES, "a long text is in a fact: {text}");
    }
}

#[test]
fn every_text_reference_resolves_to_its_text() {
    for name in ["review-e2e", "long", "small"] {
        let Some((bytes, _)) = recorded(name) else { return };
        let piece = read_whole(&bytes);
        let mut found = Vec::new();
        piece.facts.iter().for_each(|fact| references(&fact.value, &mut found));
        piece.checkpoints.iter().for_each(|draft| references(&draft.body, &mut found));
        assert!(found.len() > 40, "{name}: {}", found.len());
        for text in found {
            let (offset, length) = text.place.unwrap();
            let document = &bytes[offset as usize..(offset + length) as usize];
            let whole = crate::resolve(document, &text.pointer)
                .unwrap_or_else(|| panic!("{name}: nothing at {} {}", offset, text.pointer));
            assert_eq!(whole.len() as u64, text.bytes, "{}", text.pointer);
            assert_eq!(blake3::hash(whole.as_bytes()).as_bytes(), text.hash.as_bytes());
            assert!(whole.starts_with(&text.preview));
        }
    }
}
