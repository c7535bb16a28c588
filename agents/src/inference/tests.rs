use super::*;

/// Sentences of recorded sessions, one per line, each after the label that a person gave it.
const LABELLED: &str = include_str!("sentences.tsv");

#[test]
fn every_rule_has_a_kind_a_unique_name_and_a_pattern() {
    let mut names = std::collections::BTreeSet::new();
    for (line, text) in RULES.lines().enumerate() {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut words = text.split_whitespace();
        let kind = words.next().unwrap();
        assert!(["hypothesis", "belief", "gap", "nothing"].contains(&kind), "line {}", line + 1);
        assert!(names.insert(words.next().unwrap()), "line {}", line + 1);
        assert!(words.next().is_some(), "line {}", line + 1);
    }
    assert_eq!(ALL.labels.len(), names.len());
}

#[test]
fn a_message_is_read_sentence_by_sentence() {
    let text = "Let me see. The root cause is a stale cache! It might be the lock file, too.\n\
                - **Unclear** what the hook does; it is still unclear why it hangs.\n\
                ```\nthe root cause is in code that is quoted\n```\n\
                1. The root cause is a stale cache!\n";
    let found = read(text);
    let found: Vec<_> =
        found.iter().map(|it| (it.kind.name(), it.rule, it.sentence.as_str())).collect();
    assert_eq!(
        found,
        [
            ("belief", "root-cause", "The root cause is a stale cache!"),
            ("hypothesis", "might", "It might be the lock file, too."),
            ("gap", "unclear", "Unclear what the hook does; it is still unclear why it hangs."),
        ]
    );
    assert_eq!(read("").len(), 0);
}

#[test]
fn headings_fragments_plans_change_logs_and_questions_are_not_statements() {
    for text in [
        "## The root cause is a stale cache",
        "**The root cause is a stale cache**",
        "| file | the root cause is a stale cache |",
        "The problem is that the lock is held because of this line:",
        "Now check if the problem is that the lock is held.",
        "OK, let me see whether the root cause is a stale cache.",
        "Fixed the parser, which failed because the table was empty.",
        "This suggests that the",
        "Is the root cause that the cache is stale?",
    ] {
        assert_eq!(read(text), [], "{text}");
    }
}

#[test]
fn findings_without_a_word_such_as_cause_are_read() {
    for text in [
        "So it's a regression from this branch.",
        "The run removed the comments in the config file.",
        "The second pass is missing these subtractions.",
        "If the open call fails, the descriptor leaks.",
    ] {
        let found = read(text);
        assert_eq!(found.first().map(|it| it.kind), Some(Kind::Belief), "{text}");
    }
}

/// Compares precision and recall on the labelled sentences with `docs/inference.md`. They are
/// printed by `cargo test -p forge-agents precision -- --nocapture`.
#[test]
fn precision_and_recall_on_labelled_sentences_are_as_the_page_says() {
    use std::io::Write;
    let (mut right, mut wrong, mut missed, mut all) = (0, 0, 0, 0);
    let mut misjudged = String::new();
    for line in LABELLED.lines() {
        let (label, sentence) = line.split_once('\t').unwrap();
        let wanted: Option<Kind> = (label != "none").then(|| label.parse().unwrap());
        let found = judge(sentence).map(|(kind, _)| kind);
        all += 1;
        if found.is_some() && found == wanted {
            right += 1;
        } else if found.is_some() {
            wrong += 1;
            misjudged.push_str(&format!("  wrong: {sentence}\n"));
        }
        if wanted.is_some() && found != wanted {
            missed += 1;
            misjudged.push_str(&format!("  missed: {sentence}\n"));
        }
    }
    let share = |part: i32, rest: i32| f64::from(part) / f64::from(part + rest);
    let figures = format!(
        "{all} sentences, {right} right, {wrong} wrong, {missed} missed: precision {:.2}, recall {:.2}",
        share(right, wrong),
        share(right, missed)
    );
    let mut out = std::io::stdout();
    writeln!(out, "{figures}\n{misjudged}").unwrap();
    let page = include_str!("../../../docs/inference.md");
    assert!(page.contains(&figures), "docs/inference.md does not say: {figures}");
    assert!(
        share(right, wrong) >= 0.85,
        "with a lower precision, the rules must not be on by default"
    );
}
